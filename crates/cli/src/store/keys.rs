//! What commands do with keys, wherever these are; and how they do it with a keystore on this
//! machine.

use crate::args::Deadline;
use crate::diagnostics::note_line;
use crate::error::{Error, Result};
use bulla_keystore::{ensure_default_key, find_key, tenant};
use bulla_kms::encryption::{KeyProvider, Recipient};
use bulla_kms::prehash::Prehash;
use bulla_kms::token::{Grant, GrantedKeys, Revocations, TOKEN_ROOT_PURPOSE, Token, TokenOperation};
use bulla_kms::transfer::{PrivateFormat, PrivateKeyData, WrappedPrivateKey};
use bulla_kms::{
    Algorithm, Attestation, BackupSummary, KeyChange, KeySelector, KeyVersionId, Keystore, KeystoreProvider,
    KmsError, Name, NewKey, PublicKey, SecretString, Signature, SignatureFile, Snapshot, Statement,
    Succession, Timestamp,
};
use std::io::Write;
use zeroize::Zeroizing;

/// Reading keys.
pub(crate) trait ReadKeys {
    /// All keys, sorted by their names.
    fn list(&self) -> Result<Vec<Attestation>>;

    /// The key that a user names.
    fn key(&self, name: &str) -> Result<Attestation>;
}

/// Using and changing keys. A user names a key by its label, its id, or its id with a version.
pub(crate) trait Keys: ReadKeys {
    /// Makes sure that the key `default` exists, where a command may create it unasked.
    fn ensure_default(&self) -> Result<()>;

    /// The key that a user names, for a check before long work; none if the user may use it and may
    /// not read it.
    fn planned_key(&self, name: &str) -> Result<Option<Attestation>>;

    /// Creates a key. Its tenant is the user's own.
    fn create(&self, new: NewKey) -> Result<Attestation>;

    fn rotate(&self, name: &str) -> Result<Attestation>;

    /// Changes a key, which must be at this revision if there is one.
    fn update(&self, name: &str, revision: Option<u64>, change: &KeyChange) -> Result<Attestation>;

    /// The statements by which each version vouches for the next one.
    fn successions(&self, name: &str) -> Result<Vec<Succession>>;

    /// Everything about the key, signed by it, as JSON.
    fn attest(&self, name: &str) -> Result<String>;

    fn sign(&self, name: &str, message: &[u8]) -> Result<Signature>;

    fn sign_statement(
        &self,
        name: &str,
        statement: Statement,
        prehash: Option<Prehash>,
    ) -> Result<SignatureFile>;

    fn public_key(&self, version: &KeyVersionId) -> Result<PublicKey>;

    /// Mints a token for these keys, or for all keys if none is named.
    fn mint(&self, keys: &[String], operations: &[TokenOperation], expires: Deadline) -> Result<Token>;

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

    /// Exports a private key, wrapped for a recipient.
    fn export(&self, export: &Export<'_>) -> Result<String>;

    /// What decrypts data that was encrypted to one of the keys.
    fn decrypter(&self) -> Box<dyn KeyProvider + '_>;
}

/// What a backup has.
pub(crate) struct BackedUp {
    pub(crate) keys: u64,
    pub(crate) private_keys: u64,
    pub(crate) made: Timestamp,
}

impl From<BackupSummary> for BackedUp {
    fn from(BackupSummary { keys, private_keys, made, .. }: BackupSummary) -> Self {
        Self { keys, private_keys, made }
    }
}

/// The export of a private key.
pub(crate) struct Export<'a> {
    pub(crate) key: &'a str,
    pub(crate) recipient: &'a PublicKey,
    /// The token that permits it, for a keystore on this machine.
    pub(crate) token: Option<&'a Token>,
    pub(crate) revoked: Option<&'a Revocations>,
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

    fn sign_statement(
        &self,
        name: &str,
        statement: Statement,
        prehash: Option<Prehash>,
    ) -> Result<SignatureFile> {
        Ok(SignatureFile::sign_with(self, find_key(self, name)?.as_ref(), statement, prehash)?)
    }

    fn public_key(&self, version: &KeyVersionId) -> Result<PublicKey> {
        Ok(self.public_key(version)?)
    }

    fn mint(&self, keys: &[String], operations: &[TokenOperation], expires: Deadline) -> Result<Token> {
        let tenant = tenant();
        let mut key_ids = Vec::new();
        for key in keys {
            key_ids.push(find_key(self, key)?.key_id().clone());
        }
        if self.find(&tenant, &parse_name(TOKEN_ROOT_PURPOSE)?)?.is_none() {
            self.create_token_root(&tenant)?;
            note_line(&format!(
                "created the key `{TOKEN_ROOT_PURPOSE}`, which signs tokens; to stop all tokens, disable this key"
            ));
        }
        Ok(self.mint_token(&Grant {
            tenant,
            keys: if key_ids.is_empty() { GrantedKeys::All } else { GrantedKeys::These(key_ids) },
            operations: operations.to_vec(),
            expires: expires.time()?,
        })?)
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

    fn export(&self, export: &Export<'_>) -> Result<String> {
        let Export { key, recipient, token, revoked } = *export;
        let token = token.ok_or_else(|| Error::new("usage", "an export needs a token"))?;
        let id = match find_key(self, key)? {
            KeySelector::Version(id) => id,
            KeySelector::Key(key_id) => self.latest_version_id(&key_id)?,
        };
        let none = Revocations::default();
        Ok(self.export_key(&id, recipient, token, revoked.unwrap_or(&none))?.to_string())
    }

    fn decrypter(&self) -> Box<dyn KeyProvider + '_> {
        Box::new(KeystoreProvider(self))
    }
}

/// Parses a label or a purpose from the command line.
pub(crate) fn parse_name(text: &str) -> Result<Name> {
    Ok(text.parse()?)
}

/// A key to import.
pub(crate) enum Material {
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
pub(crate) struct PrivateFile {
    pub(crate) key: PrivateKeyData,
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    pub(crate) format: PrivateFormat,
    pub(crate) passphrase: Option<SecretString>,
}

/// Where an imported key goes.
pub(crate) enum ImportTarget {
    New(NewKey),
    /// The next version of the key that a user names.
    VersionOf(String),
}

impl Material {
    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Private(file) => file.key.algorithm(),
            Self::Wrapped { wrapped, .. } => wrapped.public_key.algorithm(),
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
    match versions.iter().find(|version| wrapped.check_recipient(&version.public_key).is_ok()) {
        Some(version) => Ok(keystore.unwrap_key(&version.id, wrapped)?),
        None => {
            let message = format!("the key was wrapped for another recipient, not for {}", found.key_id());
            Err(Error::new("invalid_argument", message))
        }
    }
}
