//! What a program needs beside the keys: how current they are, and a cipher for data of its own
//! that only programs with the same keystore can read.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::Keystore;
use crate::encryption::{EnvelopeKind, StoreCipher};
use crate::error::{Code, KmsError, Result};
use crate::lease::StoreLease;

/// Encrypts small data of a program under a keystore's root key, for example what several programs
/// with the same keystore keep in a place that others can read. See [`Keystore::data_cipher`].
pub struct DataCipher<'a>(&'a StoreCipher);

impl DataCipher<'_> {
    /// The maximum length of a name in bytes.
    pub const MAX_NAME_LEN: usize = 512;

    /// Encrypts data under a name.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for a name that is too long; [`Code::RandomUnavailable`].
    pub fn encrypt(&self, name: &str, data: &[u8]) -> Result<Vec<u8>> {
        self.0.encrypt(envelope_kind(name)?, data)
    }

    /// Decrypts data.
    ///
    /// # Errors
    /// [`Code::KeystoreCorrupt`] if these bytes were not encrypted under that name with this
    /// keystore; [`Code::InvalidArgument`].
    pub fn decrypt(&self, name: &str, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        self.0.decrypt(&envelope_kind(name)?, encrypted)
    }

    /// A digest that only programs with the same keystore can compute.
    pub fn keyed_digest(&self, bytes: &[u8]) -> [u8; 32] {
        self.0.note_digest(bytes)
    }
}

impl fmt::Debug for DataCipher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataCipher").finish_non_exhaustive()
    }
}

fn envelope_kind(name: &str) -> Result<EnvelopeKind> {
    if name.len() <= DataCipher::MAX_NAME_LEN {
        return Ok(EnvelopeKind::Note(name.to_owned()));
    }
    let message = format!("a name of encrypted data has at most {} bytes", DataCipher::MAX_NAME_LEN);
    Err(KmsError::new(Code::InvalidArgument, message))
}

impl Keystore {
    /// Permits the use of private keys from now on only while `lease` lasts. Verifying needs no
    /// lease, and neither do the checkpoints of an audit log.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    ///
    /// use bulla_kms::{Algorithm, BootInstant, Keystore, NewKey, StoreLease};
    ///
    /// let lease = Arc::new(StoreLease::new(Duration::from_secs(5)));
    /// let keystore = Keystore::in_memory()?.leased(lease.clone());
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// assert!(keystore.sign(&key, b"a message").is_err());
    ///
    /// // After each look at the newest state of the store:
    /// let before = BootInstant::now();
    /// keystore.catch_up()?;
    /// lease.renew(before);
    /// keystore.sign(&key, b"a message")?;
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    #[must_use]
    pub fn leased(mut self, lease: Arc<StoreLease>) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The number of the newest change that readers see. The store counts its changes, so the
    /// number is the same for all processes that share it, and never goes back.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let before = (keystore.revision(), keystore.token_roots());
    /// keystore.rotate(key.key_id())?;
    /// // A cache of what was read before is old, and the tokens are the same.
    /// assert!(keystore.revision() > before.0);
    /// assert_eq!(keystore.token_roots(), before.1);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn revision(&self) -> u64 {
        self.index.load().generation()
    }

    /// A value that changes whenever any root key of tokens changes, and otherwise stays.
    pub fn token_roots(&self) -> [u8; 32] {
        self.index.load().token_roots()
    }

    /// A cipher under the root key of this keystore. What it encrypts can be decrypted by every
    /// program that has the same keystore open, and by nobody else.
    ///
    /// ```
    /// let keystore = bulla_kms::Keystore::in_memory()?;
    /// let cipher = keystore.data_cipher();
    /// let encrypted = cipher.encrypt("sessions", b"a secret")?;
    /// assert_eq!(*cipher.decrypt("sessions", &encrypted)?, b"a secret");
    /// assert!(cipher.decrypt("other rows", &encrypted).is_err());
    /// assert_ne!(cipher.keyed_digest(b"a secret"), cipher.keyed_digest(b"another"));
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn data_cipher(&self) -> DataCipher<'_> {
        DataCipher(&self.cipher)
    }

    /// Call this before the keys are looked at: then they are at least as current as the lease
    /// says.
    ///
    /// # Errors
    /// [`Code::Unavailable`] if the keystore has a lease and it has ended;
    /// [`Code::KeystoreChanged`] if another file is in the place of the store's file.
    pub(super) fn check_lease(&self) -> Result<()> {
        if let Some(file) = &self.file {
            file.check_now_and_then()?;
        }
        self.lease.as_ref().map_or(Ok(()), |lease| lease.check())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::keystore::{KeyMessage, KeystoreOptions, NewKey, VerifyItem};
    use crate::lease::BootInstant;
    use crate::{Algorithm, Verdict};

    fn new_key(purpose: &str) -> NewKey {
        NewKey::new("local".parse().unwrap(), purpose.parse().unwrap(), Algorithm::Ed25519)
    }

    #[test]
    fn data_is_decrypted_under_its_name_in_its_keystore_and_nowhere_else() {
        let (keystore, other) = (Keystore::in_memory().unwrap(), Keystore::in_memory().unwrap());
        let encrypted = keystore.data_cipher().encrypt("a", b"note").unwrap();
        assert_eq!(**keystore.data_cipher().decrypt("a", &encrypted).unwrap(), *b"note");
        assert!(!encrypted.windows(4).any(|part| part == b"note"));
        for (keystore, name) in [(&keystore, "b"), (&other, "a")] {
            assert_eq!(
                keystore.data_cipher().decrypt(name, &encrypted).unwrap_err().code,
                Code::KeystoreCorrupt
            );
        }
        assert_eq!(
            keystore.data_cipher().encrypt(&"n".repeat(513), b"").unwrap_err().code,
            Code::InvalidArgument
        );
        assert_eq!(keystore.data_cipher().keyed_digest(b"x"), keystore.data_cipher().keyed_digest(b"x"));
        assert_ne!(keystore.data_cipher().keyed_digest(b"x"), other.data_cipher().keyed_digest(b"x"));
        assert_ne!(keystore.data_cipher().keyed_digest(b"x"), keystore.data_cipher().keyed_digest(b"y"));
    }

    #[test]
    fn each_change_has_the_next_number() {
        let keystore = Keystore::in_memory().unwrap();
        let start = keystore.revision();
        let key = keystore.create_key(new_key("files")).unwrap();
        assert_eq!(keystore.revision(), start + 1);
        keystore.rotate(key.key_id()).unwrap();
        assert_eq!(keystore.revision(), start + 2);
        keystore.refresh().unwrap();
        assert_eq!(keystore.revision(), start + 3);
        keystore.sign(&key.key_id().clone(), b"m").unwrap();
        assert_eq!(keystore.revision(), start + 3);
    }

    #[test]
    fn the_value_of_root_keys_changes_with_them_and_with_nothing_else() {
        let keystore = Keystore::in_memory().unwrap();
        let none = keystore.token_roots();
        keystore.create_key(new_key("files")).unwrap();
        assert_eq!(keystore.token_roots(), none);
        let root = keystore.create_key(new_key("tokens")).unwrap();
        let one = keystore.token_roots();
        assert_ne!(one, none);
        keystore.rotate(root.key_id()).unwrap();
        assert!(![one, none].contains(&keystore.token_roots()));
    }

    #[test]
    fn without_its_lease_a_keystore_verifies_and_uses_no_private_key() {
        let keystore = KeystoreOptions::default().in_memory().unwrap();
        let key = keystore.create_key(new_key("files")).unwrap();
        let signature = keystore.sign(&key, b"m").unwrap().bytes;
        let lease = Arc::new(StoreLease::new(Duration::from_secs(3600)));
        let keystore = keystore.leased(Arc::clone(&lease));
        let item = KeyMessage { key: (&key).into(), message: b"m" };
        let refused = |error: KmsError| assert_eq!(error.code, Code::Unavailable);
        refused(keystore.sign(&key, b"m").unwrap_err());
        refused(keystore.sign_batch(&[item]).remove(0).unwrap_err());
        refused(keystore.attest_signed(key.key_id()).unwrap_err());
        refused(keystore.sign_time(key.key_id(), &[0; 32]).unwrap_err());
        let verify = VerifyItem { key: &key, message: b"m", signature: &signature };
        assert_eq!(keystore.verify_batch(&[verify]), [Verdict::Valid]);
        lease.renew(BootInstant::now());
        keystore.sign(&key, b"m").unwrap();
        keystore.sign_batch(&[item]).remove(0).unwrap();
    }

    #[cfg(all(feature = "tokens", feature = "mlkem"))]
    #[test]
    fn without_its_lease_a_keystore_neither_mints_nor_decapsulates() {
        use crate::token::{Grant, GrantedKeys, TokenOperation};
        let lease = Arc::new(StoreLease::new(Duration::from_secs(3600)));
        let keystore = Keystore::in_memory().unwrap().leased(Arc::clone(&lease));
        let tenant: crate::Name = "local".parse().unwrap();
        keystore.create_token_root(&tenant).unwrap();
        let kem = NewKey::new(tenant.clone(), "files".parse().unwrap(), Algorithm::MlKem768);
        let kem = keystore.create_key(kem).unwrap();
        let ciphertext = keystore.public_key(&kem).unwrap().encapsulate().unwrap().ciphertext;
        let expires = crate::Timestamp::from_unix_millis(4_000_000_000_000).unwrap();
        let grant = Grant::new(tenant, GrantedKeys::All, vec![TokenOperation::Sign], expires);
        assert_eq!(keystore.mint_token(&grant).unwrap_err().code, Code::Unavailable);
        let decapsulated = keystore.decapsulate(&kem, &ciphertext);
        assert_eq!(decapsulated.map(drop).unwrap_err().code, Code::Unavailable);
        lease.renew(BootInstant::now());
        keystore.mint_token(&grant).unwrap();
        keystore.decapsulate(&kem, &ciphertext).unwrap();
    }
}
