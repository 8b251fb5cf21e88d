//! What commands do with keys, wherever these are; and how they do it with a keystore of this
//! machine.

use super::import::{Material, Place, import};
use super::named::Named;
use super::place::{parse_name, tenant};
use crate::args::{DEFAULT_LABEL, DEFAULT_PURPOSE};
use crate::diagnostics::note_line;
use crate::error::Result;
use bulla_kms::encryption::{KeyProvider, Recipient};
use bulla_kms::prehash::Prehash;
use bulla_kms::token::{Grant, GrantedKeys, Revocations, TOKEN_ROOT_PURPOSE, Token, TokenOperation};
use bulla_kms::{
    Algorithm, Attestation, BackupSummary, KeyChange, KeyId, KeyVersionId, Keystore, KeystoreProvider,
    KmsError, Name, NewKey, PublicKey, Signature, SignatureFile, Snapshot, Statement, Succession, Timestamp,
};
use std::io::Write;
use std::time::Duration;

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
    fn foresee(&self, name: &str) -> Result<Option<Attestation>>;

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
    fn mint(&self, keys: &[String], operations: &[TokenOperation], lifetime: Duration) -> Result<Token>;

    /// Imports a key: its newest version is the imported one.
    fn import(&self, material: &Material, place: Place) -> Result<Attestation>;

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

    /// What decrypts data that was sealed to one of the keys.
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

/// The export of a private key, as the token permits and unless that is revoked.
pub(crate) struct Export<'a> {
    pub(crate) key: &'a str,
    pub(crate) recipient: &'a PublicKey,
    pub(crate) token: &'a Token,
    pub(crate) revoked: Option<&'a Revocations>,
}

impl ReadKeys for Snapshot {
    fn list(&self) -> Result<Vec<Attestation>> {
        Ok(self.list())
    }

    fn key(&self, name: &str) -> Result<Attestation> {
        Ok(self.attest(Named::find(self, name)?.key_id())?)
    }
}

impl ReadKeys for Keystore {
    fn list(&self) -> Result<Vec<Attestation>> {
        Ok(self.list()?)
    }

    fn key(&self, name: &str) -> Result<Attestation> {
        Ok(self.attest(Named::find(self, name)?.key_id())?)
    }
}

impl Keys for Keystore {
    fn ensure_default(&self) -> Result<()> {
        ensure_default(self).map(drop)
    }

    fn foresee(&self, name: &str) -> Result<Option<Attestation>> {
        self.key(name).map(Some)
    }

    fn create(&self, new: NewKey) -> Result<Attestation> {
        let id = self.create_key(new)?;
        Ok(self.attest(id.key_id())?)
    }

    fn rotate(&self, name: &str) -> Result<Attestation> {
        let named = Named::find(self, name)?;
        self.rotate(named.key_id())?;
        Ok(self.attest(named.key_id())?)
    }

    fn update(&self, name: &str, revision: Option<u64>, change: &KeyChange) -> Result<Attestation> {
        Ok(self.update(Named::find(self, name)?.key_id(), revision, change)?)
    }

    fn successions(&self, name: &str) -> Result<Vec<Succession>> {
        Ok(self.successions(Named::find(self, name)?.key_id())?)
    }

    fn attest(&self, name: &str) -> Result<String> {
        let attested = self.attest_signed(Named::find(self, name)?.key_id())?;
        Ok(serde_json::to_string(&attested).expect("plain structures serialize"))
    }

    fn sign(&self, name: &str, message: &[u8]) -> Result<Signature> {
        Ok(self.sign(Named::find(self, name)?.as_ref(), message)?)
    }

    fn sign_statement(
        &self,
        name: &str,
        statement: Statement,
        prehash: Option<Prehash>,
    ) -> Result<SignatureFile> {
        Ok(SignatureFile::sign_with(self, Named::find(self, name)?.as_ref(), statement, prehash)?)
    }

    fn public_key(&self, version: &KeyVersionId) -> Result<PublicKey> {
        Ok(self.public_key(version)?)
    }

    fn mint(&self, keys: &[String], operations: &[TokenOperation], lifetime: Duration) -> Result<Token> {
        let tenant = tenant()?;
        let mut key_ids = Vec::new();
        for key in keys {
            key_ids.push(Named::find(self, key)?.key_id().clone());
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
            expires: from_now(lifetime)?,
        })?)
    }

    fn import(&self, material: &Material, place: Place) -> Result<Attestation> {
        import(self, material, place)
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
        let id = match Named::find(self, key)? {
            Named::Version(id) => id,
            Named::Key(key_id) => self.latest_version_id(&key_id)?,
        };
        let none = Revocations::default();
        Ok(self.export_key(&id, recipient, token, revoked.unwrap_or(&none))?.to_string())
    }

    fn decrypter(&self) -> Box<dyn KeyProvider + '_> {
        Box::new(KeystoreProvider(self))
    }
}

/// The time that long from now.
pub(crate) fn from_now(duration: Duration) -> Result<Timestamp> {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Ok(Timestamp::from_unix_millis(Timestamp::now()?.unix_millis().saturating_add(millis))?)
}

/// Creates the key `default` if it does not exist: the process that created the keystore may have
/// stopped before that.
pub(super) fn ensure_default(keystore: &Keystore) -> Result<KeyId> {
    let label = parse_name(DEFAULT_LABEL)?;
    match keystore.find(&tenant()?, &label)? {
        Some(key_id) => Ok(key_id),
        None => Ok(create_key(keystore, label, parse_name(DEFAULT_PURPOSE)?)?.key_id().clone()),
    }
}

/// Creates a key that the command itself needs, independent of the options for other keys.
pub(super) fn create_key(keystore: &Keystore, label: Name, purpose: Name) -> Result<KeyVersionId> {
    let new = NewKey::new(tenant()?, purpose, Algorithm::Ed25519);
    Ok(keystore.create_key(new.label(label))?)
}
