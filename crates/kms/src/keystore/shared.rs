//! What processes that share a store need beside the keys: how current the keys are, and how to
//! keep notes that only these processes can read.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::Keystore;
use crate::encryption::EnvelopeKind;
use crate::error::{Code, KmsError, Result};
use crate::lease::StoreLease;

/// The longest name of a note.
const LONGEST_NAME: usize = 512;

impl Keystore {
    /// Permits the use of private keys from now on only while `lease` lasts. Verifying needs no
    /// lease, and neither do the checkpoints of an audit log.
    #[must_use]
    pub fn leased(mut self, lease: Arc<StoreLease>) -> Self {
        self.lease = Some(lease);
        self
    }

    /// The number of the newest change that readers see. The store counts its changes, so the
    /// number is the same for all processes that share it, and never goes back.
    pub fn revision(&self) -> u64 {
        self.index.load().generation()
    }

    /// A value that changes whenever any root key of tokens changes, and otherwise stays.
    pub fn token_roots(&self) -> [u8; 32] {
        self.index.load().token_roots()
    }

    /// Encrypts a note under the keystore's root key. Whoever has the same keystore open can
    /// decrypt it, under the same name only.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for a name of more than 512 bytes; [`Code::RandomUnavailable`].
    pub fn seal_note(&self, name: &str, note: &[u8]) -> Result<Vec<u8>> {
        self.cipher.encrypt(place(name)?, note)
    }

    /// Decrypts a note.
    ///
    /// # Errors
    /// [`Code::KeystoreCorrupt`] if this keystore did not encrypt these bytes under that name;
    /// [`Code::InvalidArgument`].
    pub fn open_note(&self, name: &str, encrypted: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        self.cipher.decrypt(&place(name)?, encrypted)
    }

    /// A digest that only processes with the same keystore can compute.
    pub fn note_digest(&self, bytes: &[u8]) -> [u8; 32] {
        self.cipher.note_digest(bytes)
    }

    /// To be called before the keys are looked at: keys that are looked at later are at least as
    /// current as the lease says.
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

fn place(name: &str) -> Result<EnvelopeKind> {
    if name.len() <= LONGEST_NAME {
        return Ok(EnvelopeKind::Note(name.to_owned()));
    }
    Err(KmsError::new(Code::InvalidArgument, format!("a note's name has at most {LONGEST_NAME} bytes")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::keystore::{KeystoreOptions, NewKey, SignItem, VerifyItem};
    use crate::lease::BootInstant;
    use crate::{Algorithm, Verdict};

    fn new_key(purpose: &str) -> NewKey {
        NewKey::new("local".parse().unwrap(), purpose.parse().unwrap(), Algorithm::Ed25519)
    }

    #[test]
    fn a_note_opens_under_its_name_in_its_keystore_and_nowhere_else() {
        let (keystore, other) = (Keystore::in_memory(), Keystore::in_memory());
        let encrypted = keystore.seal_note("a", b"note").unwrap();
        assert_eq!(**keystore.open_note("a", &encrypted).unwrap(), *b"note");
        assert!(!encrypted.windows(4).any(|part| part == b"note"));
        for (keystore, name) in [(&keystore, "b"), (&other, "a")] {
            assert_eq!(keystore.open_note(name, &encrypted).unwrap_err().code, Code::KeystoreCorrupt);
        }
        assert_eq!(keystore.seal_note(&"n".repeat(513), b"").unwrap_err().code, Code::InvalidArgument);
        assert_eq!(keystore.note_digest(b"x"), keystore.note_digest(b"x"));
        assert_ne!(keystore.note_digest(b"x"), other.note_digest(b"x"));
        assert_ne!(keystore.note_digest(b"x"), keystore.note_digest(b"y"));
    }

    #[test]
    fn each_change_has_the_next_number() {
        let keystore = Keystore::in_memory();
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
        let keystore = Keystore::in_memory();
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
        let keystore = KeystoreOptions::default().in_memory();
        let key = keystore.create_key(new_key("files")).unwrap();
        let signature = keystore.sign(&key, b"m").unwrap().bytes;
        let lease = Arc::new(StoreLease::new(Duration::from_secs(3600)));
        let keystore = keystore.leased(Arc::clone(&lease));
        let item = SignItem { key: (&key).into(), message: b"m" };
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
        let keystore = Keystore::in_memory().leased(Arc::clone(&lease));
        let tenant: crate::Name = "local".parse().unwrap();
        keystore.create_token_root(&tenant).unwrap();
        let kem = NewKey::new(tenant.clone(), "files".parse().unwrap(), Algorithm::MlKem768);
        let kem = keystore.create_key(kem).unwrap();
        let ciphertext = keystore.public_key(&kem).unwrap().encapsulate().unwrap().ciphertext;
        let expires = crate::Timestamp::from_unix_millis(4_000_000_000_000).unwrap();
        let grant = Grant { tenant, keys: GrantedKeys::All, operations: vec![TokenOperation::Sign], expires };
        assert_eq!(keystore.mint_token(&grant).unwrap_err().code, Code::Unavailable);
        let decapsulated = keystore.decapsulate(&kem, &ciphertext);
        assert_eq!(decapsulated.map(drop).unwrap_err().code, Code::Unavailable);
        lease.renew(BootInstant::now());
        keystore.mint_token(&grant).unwrap();
        keystore.decapsulate(&kem, &ciphertext).unwrap();
    }
}
