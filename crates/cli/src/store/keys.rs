//! What commands do with keys, wherever these are; and how they do it with a keystore on this
//! machine.

use crate::error::{Error, Result};
use bulla_keystore::{ensure_default_key, find_key};
use bulla_kms::encryption::{KeyProvider, Recipient};
use bulla_kms::prehash::{HashFunction, Prehash, RsaPadding};
use bulla_kms::transfer::{PrivateFormat, PrivateKeyData, WrappedPrivateKey};
use bulla_kms::{
    Algorithm, Attestation, BackupSummary, Ciphertext, EncryptionOptions, KeyChange, KeyVersionId, Keystore,
    KeystoreProvider, KmsError, Name, NewKey, PublicKey, SecretString, Signature, SignatureFile, Snapshot,
    Statement, Succession, Timestamp,
};
use std::io::Write;
use zeroize::Zeroizing;

/// Reading keys.
pub trait ReadKeys {
    /// All keys, sorted by their names.
    fn list(&self) -> Result<Vec<Attestation>>;

    /// The key that a user names.
    fn key(&self, name: &str) -> Result<Attestation>;
}

/// Using and changing keys. A user names a key by its label, its id, or its id with a version.
pub trait Keys: ReadKeys {
    /// Makes sure that the key `default` exists, where a command may create it unasked.
    fn ensure_default(&self) -> Result<()>;

    /// The key that a user names, for a check before long work; none if the user may use it and may
    /// not read it.
    fn planned_key(&self, name: &str) -> Result<Option<Attestation>>;

    /// Creates a key. Its tenant is the user's own.
    fn create(&self, new: NewKey) -> Result<Attestation>;

    fn rotate(&self, name: &str) -> Result<Attestation>;

    /// Gives the nodes of a service new shares of a key that they have together.
    fn refresh_shares(&self, name: &str) -> Result<Attestation>;

    /// Repairs the shares that a node of a service has lost.
    fn repair_shares(&self, name: &str) -> Result<Attestation>;

    /// Changes a key, which must be at this revision if there is one.
    fn update(&self, name: &str, revision: Option<u64>, change: &KeyChange) -> Result<Attestation>;

    /// The statements by which each version vouches for the next one.
    fn successions(&self, name: &str) -> Result<Vec<Succession>>;

    /// Everything about the key, signed by it, as JSON.
    fn attest(&self, name: &str) -> Result<String>;

    fn sign(&self, name: &str, message: &[u8]) -> Result<Signature>;

    /// Signs with a key of ECDSA or RSA by this hash function, RSA by PKCS #1 version 1.5.
    fn sign_hashed(&self, name: &str, message: &[u8], hash: HashFunction) -> Result<Signature>;

    fn sign_statement(
        &self,
        name: &str,
        statement: Statement,
        prehash: Option<Prehash>,
    ) -> Result<SignatureFile>;

    /// Encrypts a value with a key's latest version.
    fn encrypt(&self, name: &str, plaintext: &[u8], options: &EncryptionOptions<'_>) -> Result<Ciphertext>;

    /// Decrypts a value that a version of the key encrypted.
    fn decrypt(
        &self,
        name: &str,
        ciphertext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Zeroizing<Vec<u8>>>;

    fn public_key(&self, version: &KeyVersionId) -> Result<PublicKey>;

    /// Imports a key: its latest version is the imported one.
    fn import(&self, material: &Material, target: ImportTarget) -> Result<Attestation>;

    /// Writes a backup of all keys, which each recipient and each of the other providers can
    /// decrypt.
    fn backup(
        &self,
        recipients: &[String],
        others: &[Box<dyn KeyProvider>],
        sink: &mut dyn Write,
    ) -> Result<BackedUp>;

    /// What decrypts data that was encrypted to one of the keys.
    fn decrypter(&self) -> Box<dyn KeyProvider + '_>;
}

/// What a backup has.
pub struct BackedUp {
    pub keys: u64,
    pub private_keys: u64,
    pub made: Timestamp,
}

impl From<BackupSummary> for BackedUp {
    fn from(BackupSummary { keys, private_keys, made, .. }: BackupSummary) -> Self {
        Self { keys, private_keys, made }
    }
}

impl ReadKeys for Snapshot {
    fn list(&self) -> Result<Vec<Attestation>> {
        Ok(self.list())
    }

    fn key(&self, name: &str) -> Result<Attestation> {
        Ok(self.attest(find_key(self, name)?.key_id())?)
    }
}

impl ReadKeys for Keystore {
    fn list(&self) -> Result<Vec<Attestation>> {
        Ok(self.list()?)
    }

    fn key(&self, name: &str) -> Result<Attestation> {
        Ok(self.attest(find_key(self, name)?.key_id())?)
    }
}

impl Keys for Keystore {
    fn ensure_default(&self) -> Result<()> {
        ensure_default_key(self)?;
        Ok(())
    }

    fn planned_key(&self, name: &str) -> Result<Option<Attestation>> {
        self.key(name).map(Some)
    }

    fn create(&self, new: NewKey) -> Result<Attestation> {
        let id = self.create_key(new)?;
        Ok(self.attest(id.key_id())?)
    }

    fn rotate(&self, name: &str) -> Result<Attestation> {
        let key = find_key(self, name)?;
        self.rotate(key.key_id())?;
        Ok(self.attest(key.key_id())?)
    }

    fn refresh_shares(&self, name: &str) -> Result<Attestation> {
        let key = find_key(self, name)?;
        self.refresh_shares(key.key_id())?;
        Ok(self.attest(key.key_id())?)
    }

    fn repair_shares(&self, name: &str) -> Result<Attestation> {
        let key = find_key(self, name)?;
        self.repair_shares(key.key_id())?;
        Ok(self.attest(key.key_id())?)
    }

    fn update(&self, name: &str, revision: Option<u64>, change: &KeyChange) -> Result<Attestation> {
        Ok(self.update(find_key(self, name)?.key_id(), revision, change)?)
    }

    fn successions(&self, name: &str) -> Result<Vec<Succession>> {
        Ok(self.successions(find_key(self, name)?.key_id())?)
    }

    fn attest(&self, name: &str) -> Result<String> {
        let attested = self.attest_signed(find_key(self, name)?.key_id())?;
        Ok(serde_json::to_string(&attested).expect("plain structures serialize"))
    }

    fn sign(&self, name: &str, message: &[u8]) -> Result<Signature> {
        Ok(self.sign(find_key(self, name)?.as_ref(), message)?)
    }

    fn sign_hashed(&self, name: &str, message: &[u8], hash: HashFunction) -> Result<Signature> {
        Ok(self.sign_hashed(find_key(self, name)?.as_ref(), message, hash, RsaPadding::Pkcs1v15)?)
    }

    fn sign_statement(
        &self,
        name: &str,
        statement: Statement,
        prehash: Option<Prehash>,
    ) -> Result<SignatureFile> {
        Ok(SignatureFile::sign_with(self, find_key(self, name)?.as_ref(), statement, prehash)?)
    }

    fn encrypt(&self, name: &str, plaintext: &[u8], options: &EncryptionOptions<'_>) -> Result<Ciphertext> {
        Ok(self.encrypt(find_key(self, name)?.as_ref(), plaintext, options)?)
    }

    fn decrypt(
        &self,
        name: &str,
        ciphertext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Zeroizing<Vec<u8>>> {
        Ok(self.decrypt(find_key(self, name)?.key_id(), ciphertext, options)?.bytes.into())
    }

    fn public_key(&self, version: &KeyVersionId) -> Result<PublicKey> {
        Ok(self.public_key(version)?)
    }

    fn import(&self, material: &Material, target: ImportTarget) -> Result<Attestation> {
        import(self, material, target)
    }

    fn backup(
        &self,
        recipients: &[String],
        others: &[Box<dyn KeyProvider>],
        sink: &mut dyn Write,
    ) -> Result<BackedUp> {
        let parsed = recipients.iter().map(|text| text.parse());
        let recipients = parsed.collect::<Result<Vec<Recipient>, KmsError>>()?;
        let recipients = recipients.iter().map(|one| one as &dyn KeyProvider);
        let to: Vec<_> = recipients.chain(others.iter().map(|one| &**one)).collect();
        Ok(self.backup(sink, &to)?.into())
    }

    fn decrypter(&self) -> Box<dyn KeyProvider + '_> {
        Box::new(KeystoreProvider(self))
    }
}

/// Parses a label or a purpose from the command line.
pub fn parse_name(text: &str) -> Result<Name> {
    Ok(text.parse()?)
}

/// A key to import.
pub enum Material {
    Private(PrivateFile),
    Wrapped {
        text: String,
        wrapped: Box<WrappedPrivateKey>,
        /// The key for which it was wrapped, as the user names it.
        unwrap_with: String,
    },
    Public(PublicKey),
}

/// A private key, and the file that contains it: a service reads that itself.
pub struct PrivateFile {
    pub key: PrivateKeyData,
    pub bytes: Zeroizing<Vec<u8>>,
    pub format: PrivateFormat,
    pub passphrase: Option<SecretString>,
}

/// Where an imported key goes.
pub enum ImportTarget {
    New(NewKey),
    /// The next version of the key that a user names.
    VersionOf(String),
}

impl Material {
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Self::Private(file) => file.key.algorithm(),
            Self::Wrapped { wrapped, .. } => wrapped.key.key_id().algorithm(),
            Self::Public(key) => key.algorithm(),
        }
    }
}

/// Imports a key into a keystore on this machine.
fn import(keystore: &Keystore, material: &Material, target: ImportTarget) -> Result<Attestation> {
    let unwrapped;
    let private = match material {
        Material::Private(file) => Ok(&file.key),
        Material::Wrapped { wrapped, unwrap_with, .. } => {
            unwrapped = unwrap(keystore, wrapped, unwrap_with)?;
            Ok(&unwrapped)
        }
        Material::Public(key) => Err(key),
    };
    let id = match (target, private) {
        (ImportTarget::New(new), Ok(key)) => keystore.import_key(new, key)?,
        (ImportTarget::New(new), Err(key)) => keystore.import_public_key(new, key)?,
        (ImportTarget::VersionOf(name), key) => {
            let found = find_key(keystore, &name)?;
            match key {
                Ok(key) => keystore.import_version(found.key_id(), key)?,
                Err(key) => keystore.import_public_version(found.key_id(), key)?,
            }
        }
    };
    Ok(keystore.attest(id.key_id())?)
}

fn unwrap(keystore: &Keystore, wrapped: &WrappedPrivateKey, unwrap_with: &str) -> Result<PrivateKeyData> {
    let found = find_key(keystore, unwrap_with)?;
    // It may have been wrapped for any version.
    let versions = keystore.attest(found.key_id())?.versions;
    let is_recipient = |key: &PublicKey| wrapped.check_recipient(key).is_ok();
    match versions.iter().find(|version| version.public_key.as_ref().is_some_and(is_recipient)) {
        Some(version) => Ok(keystore.unwrap_key(&version.id, wrapped)?),
        None => {
            let message = format!("the key was wrapped for another recipient, not for {}", found.key_id());
            Err(Error::new("invalid_argument", message))
        }
    }
}
