//! Keys of a service, and their forms in its answers.

use crate::connection::{ServiceConnection, error_of, unexpected};
use bulla_cli::remote::{BackedUp, ImportTarget, Keys, Material, PrivateFile, ReadKeys};
use bulla_client::blocking::Client;
use bulla_client::{
    Key, KeyMaterial, KeyUpdate, KeyVersion, PrivateKeyFormat, PublicKeyFormat, Rotation, RsaPadding,
    SignatureScheme, StatementKind,
};
use bulla_command::error::{Error, Result};
use bulla_keystore::LabelOrId;
use bulla_kms::backend::SOFTWARE;
use bulla_kms::encryption::{KeyEncryptionKey, KeyProvider, WrappingParams};
use bulla_kms::prehash::{HashFunction, Prehash};
use bulla_kms::transfer::PrivateFormat;
use bulla_kms::{
    Algorithm, Attestation, Ciphertext, Code, EncryptionOptions, ExposeSecret as _, KeyChange, KeyDerivation,
    KeyShares, KeyState, KeyVersionId, KmsError, NamedPublicKey, NewKey, Origin, PublicKey, RotationPolicy,
    Signature, SignatureFile, Statement, Succession, Timestamp, VersionAttestation, VersionState,
};
use std::io::Write;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// A statement as the client sends it. `signed_name` is its name as a text.
pub(crate) fn client_statement<'a>(
    statement: &'a Statement,
    signed_name: Option<&'a str>,
    prehash: Option<Prehash>,
) -> bulla_client::Statement<'a> {
    bulla_client::Statement {
        kind: match statement.kind {
            bulla_kms::StatementKind::Manifest => StatementKind::Manifest,
            bulla_kms::StatementKind::Message => StatementKind::Message,
            _ => StatementKind::File,
        },
        digest: *statement.digest.as_bytes(),
        size: statement.size,
        comment: statement.comment.as_str(),
        name: signed_name,
        prehash: prehash.map(|prehash| match prehash {
            Prehash::Ed25519ph => bulla_client::Prehash::Ed25519ph,
            _ => bulla_client::Prehash::Blake3,
        }),
    }
}

/// The signature file in an answer of the service.
///
/// # Errors
/// It is not a valid signature of the statement that was asked for.
pub(crate) fn read_signature_file(
    text: &str,
    statement: &Statement,
    prehash: Option<Prehash>,
) -> Result<SignatureFile> {
    let file = SignatureFile::read_from(&mut text.as_bytes())
        .map_err(|_| unexpected("it is not a signature file"))?;
    let is_asked = (file.kind, file.digest, file.size, &file.comment, &file.name, file.prehash)
        == (statement.kind, statement.digest, statement.size, &statement.comment, &statement.name, prehash);
    let public_key = file.public_key.clone();
    if is_asked && file.verify_with(&public_key).is_valid() {
        return Ok(file);
    }
    Err(unexpected("the signature in it is not the one that was asked for"))
}

impl ServiceConnection {
    /// Makes a call about the key that a user names.
    pub(crate) fn about<T>(
        &self,
        name: &str,
        call: impl FnOnce(&Client) -> bulla_client::Result<T>,
    ) -> Result<T> {
        let asked = LabelOrId::parse(name)?;
        self.ask(call).map_err(|error| match asked {
            // The label is what the user knows; the service names its tenant, too.
            LabelOrId::Label(_) if error.code() == Code::KeyNotFound.as_str() => {
                bulla_keystore::Error::unknown_label(name).into()
            }
            _ => error,
        })
    }

    /// Imports a key.
    fn bring(&self, material: KeyMaterial<'_>, target: ImportTarget) -> Result<Attestation> {
        let brought = match target {
            ImportTarget::New(new) => {
                let new = as_asked(&new);
                self.ask(|client| client.import_key(&new, material))
            }
            ImportTarget::VersionOf(name) => {
                self.about(&name, |client| client.import_version(&name, material))
            }
        };
        attestation(brought?)
    }
}

/// A key to create, as the client asks for it.
fn as_asked(new: &NewKey) -> bulla_client::NewKey {
    bulla_client::NewKey {
        approval_rule: None,
        purpose: Some(new.purpose.to_string()),
        algorithm: Some(new.algorithm.to_string()),
        label: new.label.as_ref().map(ToString::to_string),
        exportable: new.exportable,
        signs_digests: new.signs_digests,
        derivation: match new.derivation {
            KeyDerivation::PerContext => bulla_client::KeyDerivation::PerContext,
            KeyDerivation::Convergent => bulla_client::KeyDerivation::Convergent,
            _ => bulla_client::KeyDerivation::None,
        },
        rotation: Some(rotation(new.rotation)),
        backend: (new.backend != SOFTWARE).then(|| new.backend.clone()),
    }
}

fn client_options<'a>(options: &EncryptionOptions<'a>) -> bulla_client::EncryptionOptions<'a> {
    let EncryptionOptions { associated_data, context, .. } = *options;
    bulla_client::EncryptionOptions { associated_data, context }
}

fn private_format(format: PrivateFormat) -> Result<PrivateKeyFormat> {
    Ok(match format {
        PrivateFormat::Pkcs8Pem => PrivateKeyFormat::Pem,
        PrivateFormat::Pkcs8Der => PrivateKeyFormat::Der,
        PrivateFormat::OpenSsh => PrivateKeyFormat::OpenSsh,
        PrivateFormat::Raw => PrivateKeyFormat::Raw,
        PrivateFormat::Vault => PrivateKeyFormat::Vault,
        _ => return Err(Error::new("usage", "the service does not take keys of this format")),
    })
}

impl ReadKeys for ServiceConnection {
    fn list(&self) -> Result<Vec<Attestation>> {
        let keys: Vec<_> = self.ask(|client| client.keys().collect())?;
        keys.into_iter().map(attestation).collect()
    }

    fn key(&self, name: &str) -> Result<Attestation> {
        attestation(self.about(name, |client| client.key(name))?)
    }
}

impl Keys for ServiceConnection {
    /// Nobody asked the service's owner for a key.
    fn ensure_default(&self) -> Result<()> {
        Ok(())
    }

    fn planned_key(&self, name: &str) -> Result<Option<Attestation>> {
        match self.key(name) {
            // The user may be permitted to sign, and not to read. If it is neither, signing says
            // so.
            Err(error) if error.code() == Code::Forbidden.as_str() => Ok(None),
            key => key.map(Some),
        }
    }

    fn create(&self, new: NewKey) -> Result<Attestation> {
        let new = as_asked(&new);
        attestation(self.ask(|client| client.create_key(&new))?)
    }

    fn rotate(&self, name: &str) -> Result<Attestation> {
        attestation(self.about(name, |client| client.rotate_key(name))?)
    }

    fn refresh_shares(&self, name: &str) -> Result<Attestation> {
        attestation(self.about(name, |client| client.refresh_shares(name))?)
    }

    fn repair_shares(&self, name: &str) -> Result<Attestation> {
        attestation(self.about(name, |client| client.repair_shares(name))?)
    }

    fn update(&self, name: &str, revision: Option<u64>, change: &KeyChange) -> Result<Attestation> {
        let made = self.about(name, |client| {
            let update = |update| client.update_key(name, revision, update);
            let key = match change {
                KeyChange::Label(label) => {
                    update(KeyUpdate::Label(label.as_ref().map(|label| label.as_str())))
                }
                KeyChange::Disable => update(KeyUpdate::Enabled(false)),
                KeyChange::Enable => update(KeyUpdate::Enabled(true)),
                KeyChange::MinimumVersion(version) => update(KeyUpdate::MinimumVersion(version.get())),
                KeyChange::Rotation(policy) => update(KeyUpdate::Rotation(rotation(*policy))),
                KeyChange::Revoke(version) => client.revoke_version(name, version.get()),
                KeyChange::DestroyVersion(version) => client.destroy_version(name, version.get()),
                KeyChange::ScheduleDestruction(after) => {
                    client.schedule_destruction(name, system_time(*after))
                }
                KeyChange::CancelDestruction => client.cancel_destruction(name),
                KeyChange::Destroy => client.destroy_key(name),
                _ => return Ok(None),
            };
            key.map(Some)
        });
        let none = || Error::new("invalid_argument", "a service does not offer this change");
        attestation(made?.ok_or_else(none)?)
    }

    fn successions(&self, name: &str) -> Result<Vec<Succession>> {
        let statements = self.about(name, |client| client.successions(name))?;
        statements.iter().map(|text| read(text, "a statement")).collect()
    }

    fn attest(&self, name: &str) -> Result<String> {
        let text = self.about(name, |client| client.attest_key(name))?;
        let attested: bulla_kms::SignedAttestation =
            serde_json::from_str(&text).map_err(|_| unexpected("it is not an attestation"))?;
        match attested.verify().is_valid() {
            true => Ok(text),
            false => Err(unexpected("the attestation in it is not one of the key that it names")),
        }
    }

    fn sign(&self, name: &str, message: &[u8]) -> Result<Signature> {
        let signature = self.about(name, |client| client.sign(name, message))?;
        Ok(Signature { key: read(&signature.key, "the name of a key version")?, bytes: signature.bytes })
    }

    fn sign_hashed(&self, name: &str, message: &[u8], hash: HashFunction) -> Result<Signature> {
        let hash = match hash {
            HashFunction::Sha256 => bulla_client::HashFunction::Sha256,
            HashFunction::Sha384 => bulla_client::HashFunction::Sha384,
            HashFunction::Sha512 => bulla_client::HashFunction::Sha512,
            _ => return Err(Error::new("invalid_argument", "a service does not offer this hash function")),
        };
        let scheme = SignatureScheme::default().hash(hash).padding(RsaPadding::Pkcs1v15);
        let signature = self.about(name, |client| client.sign_with(name, message, scheme))?;
        Ok(Signature { key: read(&signature.key, "the name of a key version")?, bytes: signature.bytes })
    }

    fn sign_statement(
        &self,
        name: &str,
        statement: Statement,
        prehash: Option<Prehash>,
    ) -> Result<SignatureFile> {
        let signed_name = statement.name.as_ref().map(ToString::to_string);
        let asked = client_statement(&statement, signed_name.as_deref(), prehash);
        let signed = self.about(name, |client| client.sign_statement(name, &asked))?;
        read_signature_file(&signed.signature_file, &statement, prehash)
    }

    fn encrypt(&self, name: &str, plaintext: &[u8], options: &EncryptionOptions<'_>) -> Result<Ciphertext> {
        self.check_encrypted("the value", "use https or a Unix socket")?;
        let made = self.about(name, |client| client.encrypt(name, plaintext, &client_options(options)))?;
        Ok(Ciphertext::new(read(&made.key, "the name of a key version")?, made.bytes))
    }

    fn decrypt(
        &self,
        name: &str,
        ciphertext: &[u8],
        options: &EncryptionOptions<'_>,
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.check_encrypted("the value", "use https or a Unix socket")?;
        let found = self.about(name, |client| client.decrypt(name, ciphertext, &client_options(options)))?;
        Ok(found.bytes)
    }

    fn public_key(&self, version: &KeyVersionId) -> Result<PublicKey> {
        let name = version.to_string();
        let format = PublicKeyFormat::Bulla;
        let public = self.about(&name, |client| client.public_key(&name, format))?;
        let named: NamedPublicKey = read(&public.text, "a public key")?;
        if named.key == *version { Ok(named.public_key) } else { Err(unexpected("it is about another key")) }
    }

    fn import(&self, material: &Material, target: ImportTarget) -> Result<Attestation> {
        let algorithm = material.algorithm().to_string();
        match material {
            Material::Private(PrivateFile { bytes, format, passphrase, .. }) => {
                let hint = "use https or a Unix socket, or import a wrapped key";
                self.check_encrypted("the private key", hint)?;
                let passphrase = passphrase.as_ref().map(|text| text.expose_secret());
                let (format, algorithm) = (private_format(*format)?, Some(&*algorithm));
                self.bring(KeyMaterial::Private { format, bytes, algorithm, passphrase }, target)
            }
            Material::Wrapped { text, unwrap_with, .. } => {
                self.bring(KeyMaterial::Wrapped { wrapped: text, recipient: unwrap_with }, target)
            }
            Material::Public(key) => {
                let text = key.to_string();
                // ALGORITHM:BASE64, or the base64 alone.
                let text = text.rsplit(':').next().unwrap_or_default();
                let (format, algorithm) = (PublicKeyFormat::Raw, Some(&*algorithm));
                self.bring(KeyMaterial::Public { format, text, algorithm }, target)
            }
        }
    }

    fn backup(
        &self,
        recipients: &[String],
        others: &[Box<dyn KeyProvider>],
        sink: &mut dyn Write,
    ) -> Result<BackedUp> {
        if !others.is_empty() {
            let message = "a service makes backups for recipients alone";
            return Err(Error::new("usage", message).hint("give only --recipient"));
        }
        let recipients: Vec<_> = recipients.iter().map(String::as_str).collect();
        let mut backup = self.ask(|client| client.backup(&recipients))?;
        for piece in &mut backup {
            sink.write_all(&piece.map_err(error_of)?)
                .map_err(|error| Error::io("cannot write the backup", &error))?;
        }
        let made = timestamp(backup.made)?;
        Ok(BackedUp { keys: backup.keys, private_keys: backup.private_keys, made })
    }

    fn decrypter(&self) -> Box<dyn KeyProvider + '_> {
        Box::new(Decrypter(self))
    }
}

/// Reads a text of an answer.
pub(crate) fn read<T: FromStr>(text: &str, what: &str) -> Result<T> {
    text.parse().map_err(|_| unexpected(&format!("{what} in it does not have the expected form")))
}

/// A time as the keystore has it.
fn timestamp(time: SystemTime) -> Result<Timestamp> {
    Timestamp::try_from(time).map_err(|_| unexpected("a time in it is out of range"))
}

fn system_time(time: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(time.unix_millis())
}

pub(crate) fn attestation(key: Key) -> Result<Attestation> {
    let (algorithm, state): (Algorithm, _) = (read(&key.algorithm, "an algorithm")?, state(&key)?);
    let versions = key.versions.into_iter().map(|one| version(algorithm, one)).collect::<Result<_>>()?;
    let mut attestation = Attestation::new(read(&key.id, "a key id")?, versions);
    attestation.label = key.label.map(|label| read(&label, "a label")).transpose()?;
    attestation.algorithm = algorithm;
    attestation.state = state;
    attestation.revision = key.revision;
    attestation.backend = key.backend;
    attestation.exportable = key.exportable;
    attestation.deletion_allowed = key.deletion_allowed;
    attestation.signs_digests = key.signs_digests;
    attestation.minimum_version = key.minimum_version;
    attestation.minimum_signing_version = key.minimum_signing_version;
    attestation.derivation = derivation(key.derivation)?;
    attestation.rotation = RotationPolicy::default()
        .max_age_seconds(key.rotation.max_age.and_then(|age| NonZeroU64::new(age.as_secs())))
        .max_uses(key.rotation.max_uses.and_then(NonZeroU64::new));
    attestation.latest_version = key.latest_version;
    Ok(attestation)
}

fn derivation(derivation: bulla_client::KeyDerivation) -> Result<KeyDerivation> {
    match derivation {
        bulla_client::KeyDerivation::None => Ok(KeyDerivation::None),
        bulla_client::KeyDerivation::PerContext => Ok(KeyDerivation::PerContext),
        bulla_client::KeyDerivation::Convergent => Ok(KeyDerivation::Convergent),
        _ => Err(unexpected("a key in it has a derivation that this program does not know")),
    }
}

pub(crate) fn rotation(policy: RotationPolicy) -> Rotation {
    Rotation {
        max_age: policy.max_age_seconds.map(|seconds| Duration::from_secs(seconds.get())),
        max_uses: policy.max_uses.map(Into::into),
    }
}

fn state(key: &Key) -> Result<KeyState> {
    use bulla_client::KeyState as Told;
    match (key.state, key.destroy_after) {
        (Told::Enabled, _) => Ok(KeyState::Enabled),
        (Told::Disabled, _) => Ok(KeyState::Disabled),
        (Told::PendingDestruction, Some(after)) => {
            Ok(KeyState::PendingDestruction { after: timestamp(after)? })
        }
        (Told::Destroyed, _) => Ok(KeyState::Destroyed),
        _ => Err(unexpected("a key in it has a state that this program does not know")),
    }
}

fn version(algorithm: Algorithm, version: KeyVersion) -> Result<VersionAttestation> {
    use bulla_client::{Origin as From, VersionState as Told};
    let unknown = || unexpected("a key version in it has a state that this program does not know");
    let mut attestation = VersionAttestation::new(
        read(&version.id, "the name of a key version")?,
        version.public_key.map(|key| PublicKey::from_bytes(algorithm, &key)).transpose()?,
        timestamp(version.created)?,
    );
    attestation.version = version.version;
    attestation.retired = version.retired.map(timestamp).transpose()?;
    if let Some(shares) = version.shares {
        let holders = shares.holders.iter().map(|name| read(name, "the name of a node"));
        let holders = holders.collect::<Result<_>>()?;
        attestation.shares = Some(KeyShares::new(shares.threshold, holders, shares.epoch));
    }
    attestation.state = match version.state {
        Told::Usable => VersionState::Usable,
        Told::Revoked => VersionState::Revoked,
        Told::Destroyed => VersionState::Destroyed,
        _ => return Err(unknown()),
    };
    attestation.origin = match version.origin {
        From::Generated => Origin::Generated,
        From::Imported => Origin::Imported,
        From::PublicOnly => Origin::PublicOnly,
        _ => return Err(unknown()),
    };
    Ok(attestation)
}

/// The method of data that is encrypted to a keystore's key.
const KEYSTORE: &str = "keystore";

/// The keys of a service with which the user may decapsulate.
#[derive(Debug)]
struct Decrypter<'a>(&'a ServiceConnection);

impl KeyProvider for Decrypter<'_> {
    fn method(&self) -> &str {
        KEYSTORE
    }

    fn key_name(&self) -> String {
        String::new()
    }

    fn new_kek(&self) -> bulla_kms::Result<(KeyEncryptionKey, Vec<u8>)> {
        let message = "nothing is encrypted to a service as a whole; name the public key of one of its keys";
        Err(KmsError::new(Code::KeyUsageMismatch, message))
    }

    fn recover_kek(&self, params: &WrappingParams) -> bulla_kms::Result<KeyEncryptionKey> {
        let decapsulate = |client: &Client| client.decapsulate(params.key_name(), params.bytes());
        let shared = self.0.ask_coded(decapsulate)?;
        let key: [u8; 32] = shared.as_slice().try_into().map_err(|_| self.wrong_key())?;
        Ok(Zeroizing::new(key))
    }

    fn matches(&self, params: &WrappingParams) -> bool {
        params.method() == KEYSTORE
    }
}
