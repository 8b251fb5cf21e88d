//! The root key: random, one per keystore, wrapped under a key from the passphrase, the key file or
//! another provider. Everything else in the store is encrypted under keys derived from it.

use bulla_blake3 as blake3;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::envelope::{Envelope, EnvelopeKind};
use super::provider::UnlockMethod;
use super::provider::{KeyProvider, WrappedKey, WrappingParams};
use crate::error::{Code, KmsError, Result};
use crate::random;

/// The root key, encrypted under a provider's key. The row is plain data, because it must be read
/// before anything can be opened.
///
/// ```text
/// magic      4   "BPRO"
/// format     1   1
/// root       n   the root key as a wrapped key
/// checksum  32   BLAKE3 of everything before
/// ```
///
/// The checksum has no key: it distinguishes damage from a wrong passphrase. Editing the other
/// fields changes the key-encryption key, which then does not open the envelope.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrappedRootKey(WrappedKey);

const MAGIC: &[u8; 5] = b"BPRO\x01";

impl WrappedRootKey {
    /// Makes a root key and protects it.
    pub(crate) fn generate(provider: &dyn KeyProvider) -> Result<(Self, RootKey)> {
        let root = RootKey::random()?;
        Ok((Self::wrap(&root, provider)?, root))
    }

    /// Protects a root key.
    pub(crate) fn wrap(root: &RootKey, provider: &dyn KeyProvider) -> Result<Self> {
        Ok(Self(WrappedKey::wrap(provider, EnvelopeKind::RootKey, &root.0)?))
    }

    /// The method that opens it.
    pub(crate) fn method(&self) -> UnlockMethod {
        UnlockMethod::of(&self.0.params)
    }

    /// Opens the root key.
    ///
    /// # Errors
    /// [`Code::WrongUnlockMethod`] if it opens by another method; the errors of
    /// [`KeyProvider::recover_kek`] and [`KeyProvider::wrong_key`].
    pub(crate) fn unwrap(&self, provider: &dyn KeyProvider) -> Result<RootKey> {
        if !provider.matches(&self.0.params) {
            return Err(KmsError::new(
                Code::WrongUnlockMethod,
                format!(
                    "this keystore opens with {}, not with {}",
                    self.method(),
                    UnlockMethod::of(&WrappingParams::new(provider.method(), provider.key_name(), [])?)
                ),
            ));
        }
        Ok(RootKey(*self.0.unwrap(provider, &EnvelopeKind::RootKey)?))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        self.0.write(&mut bytes);
        let checksum = blake3::hash(&bytes);
        bytes.extend_from_slice(checksum.as_bytes());
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let error = || KmsError::corrupt("the keystore is damaged where it says how it is protected");
        let (body, checksum) = bytes.split_last_chunk::<32>().ok_or_else(error)?;
        if blake3::hash(body).as_bytes() != checksum {
            return Err(error());
        }
        match body.strip_prefix(MAGIC).and_then(WrappedKey::read) {
            Some((wrapped, [])) => Some(Self(wrapped)),
            _ => None,
        }
        .filter(|protection| protection.to_bytes() == bytes)
        .ok_or_else(error)
    }
}

/// The root key of a store.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct RootKey([u8; 32]);

impl RootKey {
    pub(crate) fn random() -> Result<Self> {
        let mut key = Self([0; 32]);
        random::fill(&mut key.0)?;
        Ok(key)
    }
}

/// Encrypts and decrypts a store's content under keys derived from its root key.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct StoreCipher {
    envelope_key: [u8; 32],
    binding_key: [u8; 32],
    note_key: [u8; 32],
    store_name: [u8; 16],
}

impl StoreCipher {
    pub(crate) fn new(root: &RootKey) -> Self {
        let name = blake3::derive_key("bulla keystore v1 store name", &root.0);
        Self {
            envelope_key: blake3::derive_key("bulla keystore v1 envelope key", &root.0),
            binding_key: blake3::derive_key("bulla keystore v1 record binding key", &root.0),
            note_key: blake3::derive_key("bulla keystore v1 note digest key", &root.0),
            store_name: *name.first_chunk().expect("32 bytes have 16"),
        }
    }

    /// The store's name. It does not depend on the secret that protects the root key. It is not a
    /// secret.
    pub(crate) fn store_name(&self) -> [u8; 16] {
        self.store_name
    }

    pub(crate) fn encrypt(&self, kind: EnvelopeKind, secret: &[u8]) -> Result<Vec<u8>> {
        Ok(Envelope::encrypt(&self.envelope_key, kind, secret)?.to_bytes())
    }

    /// Decrypts an envelope of this kind.
    ///
    /// # Errors
    /// [`Code::KeystoreCorrupt`] if this store's root key did not encrypt these bytes as that kind.
    pub(crate) fn decrypt(&self, kind: &EnvelopeKind, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        Envelope::decrypt_bytes(&self.envelope_key, kind, bytes)?.ok_or_else(|| {
            KmsError::corrupt(format!(
                "the keystore was damaged or edited: {kind} does not open as what it says"
            ))
        })
    }

    /// One record's contribution to the store's state: see `crate::record::StoreState`.
    pub(crate) fn bind(&self, record: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.binding_key, record).as_bytes()
    }

    /// A digest for notes that only holders of the root key can compute.
    pub(crate) fn note_digest(&self, bytes: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.note_key, bytes).as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::passphrase::{Argon2Cost, Passphrase};
    use super::super::provider::KeyEncryptionKey;
    use super::*;

    fn passphrase(text: &str) -> Passphrase {
        Passphrase::with_cost(text.into(), Argon2Cost::MIN).unwrap()
    }

    /// A provider as a user might write it: its key is the exclusive or of its own secret and the
    /// params.
    #[derive(Debug)]
    struct Foreign(u8);

    impl KeyProvider for Foreign {
        fn method(&self) -> &str {
            "foreign"
        }

        fn key_name(&self) -> String {
            "key 1".to_owned()
        }

        fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
            let mut bytes = vec![0; 32];
            random::fill(&mut bytes)?;
            Ok((self.recover_kek(&WrappingParams::new("foreign", "key 1", bytes.clone())?)?, bytes))
        }

        fn recover_kek(&self, params: &WrappingParams) -> Result<KeyEncryptionKey> {
            let mut key: [u8; 32] = params.bytes().try_into().map_err(|_| KmsError::corrupt("cut"))?;
            key.iter_mut().for_each(|byte| *byte ^= self.0);
            Ok(Zeroizing::new(key))
        }
    }

    #[test]
    fn each_use_of_the_root_key_has_a_key_of_its_own() {
        let StoreCipher { envelope_key, binding_key, note_key, store_name } =
            &StoreCipher::new(&RootKey([7; 32]));
        let keys = [&envelope_key[..16], &binding_key[..16], &note_key[..16], &store_name[..], &[7; 16]];
        assert_eq!(std::collections::BTreeSet::from(keys).len(), keys.len());
    }

    #[test]
    fn a_root_key_comes_back_under_the_same_passphrase_only() {
        let (protection, root) = WrappedRootKey::generate(&passphrase("right")).unwrap();
        let read = WrappedRootKey::parse(&protection.to_bytes()).unwrap();
        assert_eq!(read, protection);
        assert_eq!(read.unwrap(&passphrase("right")).unwrap().0, root.0);
        assert_eq!(read.unwrap(&passphrase("wrong")).err().unwrap().code, Code::WrongPassphrase);
    }

    #[test]
    fn a_root_key_comes_back_from_a_provider_of_another_kind() {
        let (protection, root) = WrappedRootKey::generate(&Foreign(1)).unwrap();
        let read = WrappedRootKey::parse(&protection.to_bytes()).unwrap();
        assert_eq!(read, protection);
        assert_eq!(read.unwrap(&Foreign(1)).unwrap().0, root.0);
        assert_eq!(read.unwrap(&Foreign(2)).err().unwrap().code, Code::WrongDecryptionKey);
        let error = read.unwrap(&passphrase("right")).err().unwrap();
        assert_eq!(error.code, Code::WrongUnlockMethod);
        assert_eq!(error.message, "this keystore opens with foreign (key 1), not with a passphrase");
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_damage_and_not_a_wrong_passphrase() {
        let providers: [&dyn KeyProvider; 2] = [&passphrase("right"), &Foreign(1)];
        for provider in providers {
            let bytes = WrappedRootKey::generate(provider).unwrap().0.to_bytes();
            for index in 0..bytes.len() {
                assert_eq!(WrappedRootKey::parse(&bytes[..index]).unwrap_err().code, Code::KeystoreCorrupt);
                let mut flipped = bytes.clone();
                flipped[index] ^= 0x20;
                assert_eq!(
                    WrappedRootKey::parse(&flipped).unwrap_err().code,
                    Code::KeystoreCorrupt,
                    "byte {index}"
                );
            }
        }
    }

    /// Even if an attacker repairs the checksum, a lower cost, another salt or another name gives
    /// another key.
    #[test]
    fn an_edit_with_a_repaired_checksum_opens_nothing() {
        let dear = Argon2Cost { memory_kib: 64, passes: 2, lanes: 1 };
        let right = Passphrase::with_cost("right".into(), dear).unwrap();
        let (protection, _) = WrappedRootKey::generate(&right).unwrap();
        let bytes = protection.to_bytes();
        // After the names of the method and the key and the parameters' length: change Argon2id's
        // memory from 64 to 32 KiB, and the salt's first byte.
        let params = MAGIC.len() + 1 + Passphrase::METHOD.len() + 1 + 2;
        for (at, flip) in [(params + 3, 64 ^ 32), (params + 12, 1)] {
            let mut edited = bytes[..bytes.len() - 32].to_vec();
            edited[at] ^= flip;
            edited.extend_from_slice(blake3::hash(&edited).as_bytes());
            let error = WrappedRootKey::parse(&edited).unwrap().unwrap(&right).err().unwrap();
            assert_eq!(error.code, Code::WrongPassphrase);
        }
    }

    /// The encryption is bound to the whole params, even if the provider's key does not depend on
    /// all of it.
    #[test]
    fn a_wrapped_key_does_not_open_beside_other_wrapping_params() {
        #[derive(Debug)]
        struct Fixed;
        impl KeyProvider for Fixed {
            fn method(&self) -> &str {
                "fixed"
            }
            fn key_name(&self) -> String {
                String::new()
            }
            fn new_kek(&self) -> Result<(KeyEncryptionKey, Vec<u8>)> {
                Ok((Zeroizing::new([1; 32]), b"capsule".to_vec()))
            }
            fn recover_kek(&self, _params: &WrappingParams) -> Result<KeyEncryptionKey> {
                Ok(Zeroizing::new([1; 32]))
            }
        }
        let wrapped = WrappedKey::wrap(&Fixed, EnvelopeKind::RootKey, &[7; 32]).unwrap();
        assert_eq!(*wrapped.unwrap(&Fixed, &EnvelopeKind::RootKey).unwrap(), [7; 32]);
        for params in [
            WrappingParams::new("fixee", "", *b"capsule").unwrap(),
            WrappingParams::new("fixed", "a", *b"capsule").unwrap(),
            WrappingParams::new("fixed", "", *b"capsulf").unwrap(),
        ] {
            let moved = WrappedKey { params, ..wrapped.clone() };
            assert_eq!(
                moved.unwrap(&Fixed, &EnvelopeKind::RootKey).unwrap_err().code,
                Code::WrongDecryptionKey
            );
        }
        assert!(wrapped.unwrap(&Fixed, &EnvelopeKind::StoreState).is_err());
    }
}
