//! The folder `threshold` in a keystore's folder: the keys of a participant, unfinished key
//! generations, and shares. Each is a file of its own, encrypted to a key of the keystore, so that
//! whatever opens the keystore opens it. No nonce is ever in it.

use super::failed;
use bulla_cli::file::atomic::{self, cannot_write};
use bulla_cli::keystore::LocalKeystore;
use bulla_cli::remote::parse_name;
use bulla_command::error::{Error, Result};
use bulla_files::{create_folder, escape_path, sync_folder};
use bulla_keystore::tenant;
use bulla_kms::encrypted_file::{decrypt, encrypt};
use bulla_kms::encryption::KeystoreRecipient;
use bulla_kms::{Algorithm, KeyVersionId, Keystore, KeystoreProvider, Name, NewKey};
use bulla_threshold::{KeyGeneration, KeyShare, Message, ParticipantKeys, SessionId};
use std::fs;
use std::io;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The label and the purpose of the key to which the files are encrypted.
const KEY: &str = "threshold";
const IDENTITY: &str = "identity";
const SHARE: &str = ".share";
const JOINING: &str = ".joining";
const REFRESHING: &str = ".refreshing";
const REPAIRING: &str = ".repairing";
/// The most bytes of a file: messages of one session.
const MAX_FILE_LEN: u64 = 4 << 20;

/// The folder, and what opens the keystore.
pub(super) struct ThresholdFolder {
    path: PathBuf,
    keystore: LocalKeystore,
}

/// The folder with the open keystore. Drop it soon: other processes wait meanwhile.
pub(super) struct OpenThresholdFolder<'a> {
    folder: &'a ThresholdFolder,
    keystore: Keystore,
}

impl ThresholdFolder {
    pub(super) fn of(keystore: LocalKeystore) -> Self {
        Self { path: keystore.folder().join("threshold"), keystore }
    }

    pub(super) fn open(&self) -> Result<OpenThresholdFolder<'_>> {
        Ok(OpenThresholdFolder { folder: self, keystore: self.keystore.open()? })
    }
}

impl OpenThresholdFolder<'_> {
    /// The keys of the participant, if there are any.
    pub(super) fn find_keys(&self) -> Result<Option<ParticipantKeys>> {
        let bytes = self.read(IDENTITY)?;
        bytes.map(|bytes| ParticipantKeys::from_secret_bytes(&bytes)).transpose().map_err(failed)
    }

    pub(super) fn keys(&self) -> Result<ParticipantKeys> {
        self.find_keys()?.ok_or_else(|| {
            Error::new("no_card", "you have no card, by which others know you in a group")
                .hint("make one: `bulla threshold card NAME`")
        })
    }

    pub(super) fn create_keys(&self, name: Name) -> Result<ParticipantKeys> {
        let keys = ParticipantKeys::generate(name).map_err(failed)?;
        self.write(IDENTITY, &keys.to_secret_bytes())?;
        Ok(keys)
    }

    /// The share of a group.
    pub(super) fn find_share(&self, group: &Name) -> Result<Option<KeyShare>> {
        let bytes = self.read(&format!("{group}{SHARE}"))?;
        bytes.map(|bytes| KeyShare::from_secret_bytes(&bytes)).transpose().map_err(failed)
    }

    /// All shares, sorted by the names of their groups.
    pub(super) fn shares(&self) -> Result<Vec<KeyShare>> {
        let path = &self.folder.path;
        let cannot = |error: &io::Error| Error::io("cannot read", error).about(escape_path(path));
        let entries = match fs::read_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| cannot(&error))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| cannot(&error))?.file_name();
            let group = name.to_str().and_then(|name| name.strip_suffix(SHARE));
            names.extend(group.and_then(|group| group.parse::<Name>().ok()));
        }
        names.sort();
        names.iter().filter_map(|name| self.find_share(name).transpose()).collect()
    }

    /// The share of the group that the user names, or of the only one.
    pub(super) fn share(&self, group: Option<&str>) -> Result<KeyShare> {
        if let Some(group) = group {
            return self.find_share(&parse_name(group)?)?.ok_or_else(|| {
                Error::new("unknown_group", "you have no share of the key of this group")
                    .about(group)
                    .hint("`bulla threshold list` shows your groups")
            });
        }
        let mut shares = self.shares()?;
        match (shares.pop(), shares.len()) {
            (Some(share), 0) => Ok(share),
            (Some(_), _) => {
                Err(Error::new("usage", "you are in several groups: name one of them with --group NAME")
                    .hint("`bulla threshold list` shows them"))
            }
            (None, _) => Err(Error::new("unknown_group", "you have no share of any key")
                .hint("start a group: `bulla threshold new --help`")),
        }
    }

    pub(super) fn find_generation(
        &self,
        group: &Name,
        keys: &ParticipantKeys,
    ) -> Result<Option<KeyGeneration>> {
        let bytes = self.read(&format!("{group}{JOINING}"))?;
        bytes.map(|bytes| KeyGeneration::from_secret_bytes(keys, &bytes)).transpose().map_err(failed)
    }

    pub(super) fn write_generation(&self, group: &Name, generation: &KeyGeneration) -> Result<()> {
        let suffix = if generation.old_share().is_some() { REFRESHING } else { JOINING };
        self.write(&format!("{group}{suffix}"), &generation.to_secret_bytes())
    }

    /// The refresh of a share that has begun. One that has ended with this share is removed.
    pub(super) fn find_refresh(
        &self,
        share: &KeyShare,
        keys: &ParticipantKeys,
    ) -> Result<Option<KeyGeneration>> {
        let group = share.group().name();
        let bytes = self.read(&format!("{group}{REFRESHING}"))?;
        let found = bytes.map(|bytes| KeyGeneration::from_secret_bytes(keys, &bytes)).transpose();
        match found.map_err(failed)? {
            // The process ended after it had kept the new share.
            Some(refresh) if refresh.shares_id() == Some(share.shares_id()) => {
                self.remove(&format!("{group}{REFRESHING}"))?;
                Ok(None)
            }
            found => Ok(found),
        }
    }

    /// The share of the group with this id.
    pub(super) fn find_share_of(&self, group: SessionId) -> Result<Option<KeyShare>> {
        Ok(self.shares()?.into_iter().find(|share| share.group_id() == group))
    }

    /// Forgets a refresh that has begun.
    pub(super) fn remove_refresh(&self, group: &Name) -> Result<()> {
        self.remove(&format!("{group}{REFRESHING}"))
    }

    /// The messages of the repair in which this participant helped last. None of them is secret.
    pub(super) fn find_repair(&self, group: &Name) -> Result<Vec<Message>> {
        let bytes = self.read(&format!("{group}{REPAIRING}"))?.unwrap_or_default();
        Message::parse_all(&String::from_utf8_lossy(&bytes)).map_err(failed)
    }

    pub(super) fn write_repair<'a>(
        &self,
        group: &Name,
        messages: impl IntoIterator<Item = &'a Message>,
    ) -> Result<()> {
        let text: String = messages.into_iter().map(|message| format!("{message}\n")).collect();
        self.write(&format!("{group}{REPAIRING}"), text.as_bytes())
    }

    /// Keeps the share, and then removes what it was made from. A share of before is replaced in
    /// one step.
    pub(super) fn finish_generation(&self, group: &Name, share: &KeyShare) -> Result<()> {
        self.write(&format!("{group}{SHARE}"), &share.to_secret_bytes())?;
        self.remove(&format!("{group}{JOINING}"))?;
        self.remove(&format!("{group}{REFRESHING}"))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.folder.path.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(cannot_write(&path, &error)),
            Ok(()) => sync_folder(&self.folder.path).map_err(|error| cannot_write(&path, &error)),
        }
    }

    fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let path = self.folder.path.join(name);
        let about = |error: Error| error.about(escape_path(&path));
        let found = fs::metadata(&path).and_then(|metadata| {
            if metadata.len() > MAX_FILE_LEN {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            fs::read(&path)
        });
        let bytes = match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found => found.map_err(|error| about(Error::io("cannot read", &error)))?,
        };
        let decrypted = decrypt(&bytes, &[&KeystoreProvider(&self.keystore)], &context(name));
        decrypted.map(Some).map_err(|error| about(error.into()))
    }

    fn write(&self, name: &str, secret: &[u8]) -> Result<()> {
        let key = self.keystore.recipient(&self.key()?)?;
        let encrypted = encrypt(secret, &[&KeystoreRecipient::new(key)?], &context(name))?;
        let path = self.folder.path.join(name);
        create_folder(&self.folder.path).map_err(|error| cannot_write(&path, &error))?;
        atomic::write_private(&path, |file| file.write_all(&encrypted))
    }

    /// The latest version of the key to which the files are encrypted.
    fn key(&self) -> Result<KeyVersionId> {
        let label = parse_name(KEY)?;
        let Some(id) = self.keystore.find(&tenant(), &label)? else {
            let new = NewKey::new(tenant(), parse_name(KEY)?, Algorithm::XWing).label(label);
            return Ok(self.keystore.create_key(new)?);
        };
        let attestation = self.keystore.attest(&id)?;
        let head = attestation.latest_version;
        let latest = attestation.versions.into_iter().find(|version| version.version == head);
        Ok(latest.expect("a key has its latest version").id)
    }
}

/// A file opens only under its own name.
fn context(name: &str) -> Vec<u8> {
    format!("bulla threshold v1 file\0{name}").into_bytes()
}
