//! Signature files as a keystore makes and verifies them.

use super::file::SignatureFile;
use super::statement::{Statement, StatementKind};
use crate::approval::KeyUse;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyRef, KeyVersionId};
use crate::key_signature::Verdict;
use crate::keystore::{Keystore, SignedContent};
use crate::prehash::{Prehash, Prehashed};
use crate::public_key::PublicKey;
use crate::time::Timestamp;

impl SignatureFile {
    /// Signs a statement with the latest version of a key, at the present time.
    ///
    /// ```
    /// use bulla_kms::{Algorithm, Keystore, NewKey, SignatureFile, Statement};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
    /// let statement = Statement::message(b"a message").comment("by hand".parse()?);
    /// let text = SignatureFile::sign(&keystore, &key, statement)?.to_string();
    ///
    /// let file = SignatureFile::parse(text.as_bytes())?;
    /// assert!(file.verify_with(&keystore.public_key(&key)?).is_valid());
    /// assert_eq!(file.comment.as_str(), "by hand");
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] for a name of something else than a file; the errors of
    /// [`Keystore::sign`].
    pub fn sign<'a>(keystore: &Keystore, key: impl Into<KeyRef<'a>>, statement: Statement) -> Result<Self> {
        Self::sign_with(keystore, key, statement, None)
    }

    /// Like [`SignatureFile::sign`], but signs the statement's digest, for verifiers that support
    /// only such signatures.
    ///
    /// # Errors
    /// Those of [`SignatureFile::sign`] and [`Keystore::sign_prehashed`].
    ///
    /// ```
    /// use bulla_kms::prehash::Prehash;
    /// use bulla_kms::{Algorithm, Keystore, NewKey, SignatureFile, Statement};
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let key = keystore.create_key(new)?;
    /// let statement = Statement::message(b"a message");
    /// let file = SignatureFile::sign_with(&keystore, &key, statement, Some(Prehash::Blake3))?;
    /// assert!(file.verify_in(&keystore)?.is_valid());
    ///
    /// // The body of a manifest would follow:
    /// let text = file.to_string();
    /// let same = SignatureFile::read_from(&mut text.as_bytes())?;
    /// assert_eq!(same.signed_bytes(), file.signed_bytes());
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    pub fn sign_with<'a>(
        keystore: &Keystore,
        key: impl Into<KeyRef<'a>>,
        statement: Statement,
        prehash: Option<Prehash>,
    ) -> Result<Self> {
        if statement.name.is_some() && statement.kind != StatementKind::File {
            let message = format!("a statement about a {} has no name: only files have one", statement.kind);
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        let signed_at = Timestamp::now()?;
        let keystore = &keystore.with_signed_at(signed_at);
        let mut file = None;
        let mut signed_bytes = |key: &KeyVersionId, public_key: &PublicKey| {
            file.insert(Self::unsigned(&statement, prehash, key, public_key, signed_at)).signed_bytes()
        };
        let used = KeyUse::Statement(&statement, prehash);
        let signature = match prehash {
            None => keystore.sign_statement(key.into(), used, signed_bytes)?,
            Some(prehash) => {
                keystore.sign_form(key.into(), SignedContent::Statement, used, |key, public_key| {
                    Prehashed::of_file(prehash, &signed_bytes(key, public_key))
                })?
            }
        };
        let file = file.expect("the keystore asks what to sign before it signs");
        Ok(Self { signature: signature.bytes, ..file })
    }

    /// Whether the keystore's key version that the file names signed this.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`] if the keystore has no such key; [`Code::UnknownVersion`] if the key
    /// has no such version.
    pub fn verify_in(&self, keystore: &Keystore) -> Result<Verdict> {
        Ok(self.verify_with(&keystore.public_key(&self.key)?))
    }
}
