//! What the plugin does for age: it wraps and unwraps the keys of files.

use super::hybrid::{AgeRecipient, TAG, WrappedFileKey, read_identity};
use super::{explain, latest_recipient, with_keys_for_age};
use age_core::format::{FileKey, Stanza};
use age_plugin::identity::{self, IdentityPluginV1};
use age_plugin::recipient::{self, RecipientPluginV1};
use age_plugin::{Callbacks, PluginHandler};
use bulla_cli::keystore::KeystoreArgs;
use bulla_cli::remote::Keys;
use bulla_command::error::{Error, Result};
use bulla_kms::encryption::{KeyProvider, WrappingParams};
use bulla_kms::{KeyId, VersionAttestation, VersionState};
use std::collections::{HashMap, HashSet};
use std::io;

/// The method of data that is encrypted to a keystore's key.
const KEYSTORE: &str = "keystore";
/// How often a private key is used for one file at most. Who writes a file chooses how many stanzas
/// it has, and each is tried with each version of the key.
const MAX_TRIALS: usize = 256;

/// The two parts of the plugin, of which age runs one.
pub(super) struct Handler<'a>(
    /// The flags and variables, or what is wrong with them.
    pub(super) &'a Result<KeystoreArgs>,
);

impl<'a> PluginHandler for Handler<'a> {
    type RecipientV1 = Wrapper<'a>;
    type IdentityV1 = Unwrapper<'a>;

    fn recipient_v1(self) -> io::Result<Self::RecipientV1> {
        Ok(Wrapper { args: self.0, recipients: Vec::new(), identities: Vec::new() })
    }

    fn identity_v1(self) -> io::Result<Self::IdentityV1> {
        Ok(Unwrapper { args: self.0, identities: Vec::new() })
    }
}

/// Encrypts.
pub(super) struct Wrapper<'a> {
    args: &'a Result<KeystoreArgs>,
    recipients: Vec<AgeRecipient>,
    /// Each has its index at age.
    identities: Vec<(usize, KeyId)>,
}

impl RecipientPluginV1 for Wrapper<'_> {
    fn add_recipient(&mut self, index: usize, _: &str, bytes: &[u8]) -> Result<(), recipient::Error> {
        let error = |error| recipient::Error::Recipient { index, message: explain(&error) };
        self.recipients.push(AgeRecipient::from_bytes(bytes).map_err(error)?);
        Ok(())
    }

    fn add_identity(&mut self, index: usize, _: &str, bytes: &[u8]) -> Result<(), recipient::Error> {
        let error = |error| recipient::Error::Identity { index, message: explain(&error) };
        self.identities.push((index, read_identity(bytes).map_err(error)?));
        Ok(())
    }

    /// With `postquantum`, which would be right, the library refuses every age that has no labels:
    /// all before 1.2.
    fn labels(&mut self) -> HashSet<String> {
        HashSet::new()
    }

    fn wrap_file_keys(
        &mut self,
        file_keys: Vec<FileKey>,
        _: impl Callbacks<recipient::Error>,
    ) -> io::Result<Result<Vec<Vec<Stanza>>, Vec<recipient::Error>>> {
        // A public key is enough. An identity has none: only for it, the keys are asked.
        let mut recipients = self.recipients.clone();
        for (index, key) in &self.identities {
            match with_keys_for_age(self.args, |keys| latest_recipient(keys, &key.to_string())) {
                Ok((_, recipient)) => recipients.push(recipient),
                Err(error) => {
                    let message = explain(&error);
                    return Ok(Err(vec![recipient::Error::Identity { index: *index, message }]));
                }
            }
        }
        let wrap = |key: &FileKey| recipients.iter().map(|recipient| recipient.wrap(key)).collect();
        let stanzas: Result<Vec<Vec<Stanza>>> = file_keys.iter().map(wrap).collect();
        Ok(stanzas.map_err(|error| vec![recipient::Error::Internal { message: explain(&error) }]))
    }
}

/// Decrypts.
pub(super) struct Unwrapper<'a> {
    args: &'a Result<KeystoreArgs>,
    /// Each has its index at age.
    identities: Vec<(usize, KeyId)>,
}

impl IdentityPluginV1 for Unwrapper<'_> {
    fn add_identity(&mut self, index: usize, _: &str, bytes: &[u8]) -> Result<(), identity::Error> {
        let error = |error| identity::Error::Identity { index, message: explain(&error) };
        self.identities.push((index, read_identity(bytes).map_err(error)?));
        Ok(())
    }

    fn unwrap_file_keys(
        &mut self,
        files: Vec<Vec<Stanza>>,
        mut callbacks: impl Callbacks<identity::Error>,
    ) -> io::Result<HashMap<usize, Result<FileKey, Vec<identity::Error>>>> {
        let mut done = HashMap::new();
        let mut waiting = Vec::new();
        for (file, stanzas) in files.iter().enumerate() {
            match read_stanzas(file, stanzas) {
                Ok(wrapped) if wrapped.is_empty() => {}
                Ok(wrapped) => waiting.push((file, wrapped)),
                Err(errors) => drop(done.insert(file, Err(errors))),
            }
        }
        // Nobody is asked about files that are for others.
        if waiting.is_empty() {
            return Ok(done);
        }
        let mut failed = Vec::new();
        for (index, key) in &self.identities {
            match with_keys_for_age(self.args, |keys| Trials::of(keys, key)?.open(&waiting)) {
                Ok((note, opened)) => {
                    if let Some(note) = note {
                        // Whether it is shown is up to age.
                        drop(callbacks.message(&note)?);
                    }
                    waiting.retain(|(file, _)| !opened.iter().any(|(one, _)| one == file));
                    done.extend(opened.into_iter().map(|(file, key)| (file, Ok(key))));
                }
                Err(error) => {
                    // age has one file a time, and another identity may still open it.
                    failed.push(identity::Error::Identity { index: *index, message: explain(&error) });
                }
            }
        }
        if let Some((file, _)) = waiting.first().filter(|_| !failed.is_empty()) {
            done.insert(*file, Err(failed));
        }
        Ok(done)
    }
}

/// The stanzas of a file that may be for keys of ours.
fn read_stanzas(file: usize, stanzas: &[Stanza]) -> Result<Vec<WrappedFileKey>, Vec<identity::Error>> {
    let ours = stanzas.iter().enumerate().filter(|(_, stanza)| stanza.tag == TAG);
    let (mut read, mut errors) = (Vec::new(), Vec::new());
    for (stanza_index, stanza) in ours {
        match WrappedFileKey::read(stanza) {
            Ok(wrapped) => read.push(wrapped),
            Err(message) => errors.push(identity::Error::Stanza {
                file_index: file,
                stanza_index,
                message: message.to_owned(),
            }),
        }
    }
    if errors.is_empty() { Ok(read) } else { Err(errors) }
}

/// A key whose versions are tried.
struct Trials<'a> {
    decrypter: Box<dyn KeyProvider + 'a>,
    /// The newest is first.
    versions: Vec<VersionAttestation>,
    /// Which versions are left out, if any are.
    note: Option<String>,
}

/// Files by their number, with their keys.
type Opened = Vec<(usize, FileKey)>;

impl<'a> Trials<'a> {
    fn of(keys: &'a dyn Keys, key: &KeyId) -> Result<Self> {
        let attestation = keys.key(&key.to_string())?;
        let (versions, gone): (Vec<_>, Vec<_>) =
            attestation.versions.into_iter().rev().partition(|version| {
                version.state == VersionState::Usable && version.version >= attestation.minimum_version
            });
        let gone: Vec<_> = gone.iter().rev().map(|version| version.version.to_string()).collect();
        let note = (!gone.is_empty()).then(|| {
            format!("the versions {} of {key} are revoked or destroyed, and decrypt nothing", gone.join(", "))
        });
        Ok(Self { decrypter: keys.decrypter(), versions, note })
    }

    /// Opens files, and says what a user should know if one stays closed.
    fn open(self, files: &[(usize, Vec<WrappedFileKey>)]) -> Result<(Option<String>, Opened)> {
        let mut opened = Vec::new();
        for (file, stanzas) in files {
            if let Some(key) = self.open_file(stanzas)? {
                opened.push((*file, key));
            }
        }
        Ok((self.note.filter(|_| opened.len() < files.len()), opened))
    }

    fn open_file(&self, stanzas: &[WrappedFileKey]) -> Result<Option<FileKey>> {
        if stanzas.len() * self.versions.len() > MAX_TRIALS {
            let message = format!(
                "the file has {} recipients and the key {} versions, which are too many to try",
                stanzas.len(),
                self.versions.len()
            );
            return Err(Error::new("invalid_argument", message)
                .hint("revoke versions that no file needs, or encrypt the file to fewer recipients"));
        }
        for version in &self.versions {
            for stanza in stanzas {
                let params =
                    WrappingParams::new(KEYSTORE, version.id.to_string(), stanza.ciphertext.clone())?;
                if let Some(key) = stanza.unwrap(&self.decrypter.recover_kek(&params)?) {
                    return Ok(Some(key));
                }
            }
        }
        Ok(None)
    }
}
