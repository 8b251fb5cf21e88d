//! The shares of this node: files of a folder of its own, which a key file in it opens. etcd and
//! the backups of keystores have none of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use bulla_files::{AtomicFile, IfExists, Visibility, escape_path, sync_folder};
use bulla_kms::encrypted_file::{decrypt, encrypt};
use bulla_kms::encryption::KeyFileProvider;
use bulla_kms::{Code, KeyFile, KmsError, Name, Result};
use bulla_threshold::{KeyShare, ParticipantKeys, SessionId, ThresholdError};
use zeroize::Zeroizing;

const KEY_FILE: &str = "node.key";
const IDENTITY: &str = "identity";
const SHARE: &str = ".share";
/// The most bytes of a file.
const MAX_FILE_LEN: u64 = 1 << 20;

/// The folder with this node's shares.
pub(super) struct ShareFolder {
    path: PathBuf,
    key: KeyFileProvider,
    /// The shares that were used.
    open: Mutex<HashMap<SessionId, Arc<KeyShare>>>,
}

impl ShareFolder {
    /// Opens the folder. Without anything in it, it gets a key file.
    ///
    /// # Errors
    /// It has shares and no key file; errors of the disk.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let mut options = fs::DirBuilder::new();
        options.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut options, 0o700);
        options.create(path).map_err(|error| failed("make", path, error))?;
        let key_file = path.join(KEY_FILE);
        if !key_file.exists() {
            let mut entries = fs::read_dir(path).map_err(|error| failed("read", path, error))?;
            if entries.next().is_some() {
                let message = format!(
                    "the folder {} has shares, and the key file {KEY_FILE} that opens them is missing: restore it",
                    escape_path(path)
                );
                return Err(KmsError::new(Code::NotFound, message));
            }
            KeyFile::create(&key_file)?;
        }
        Ok(Self { path: path.to_owned(), key: KeyFileProvider::new(&key_file), open: Mutex::default() })
    }

    /// The keys by which the others know this node. They are made once.
    ///
    /// # Errors
    /// They are another node's; errors of the disk.
    pub(super) fn identity(&self, name: &Name) -> Result<ParticipantKeys> {
        if let Some(bytes) = self.read(IDENTITY)? {
            let keys = ParticipantKeys::from_secret_bytes(&bytes).map_err(damaged)?;
            if keys.name() != name {
                let message = format!(
                    "the folder {} is that of the node {}, and not of {name}",
                    escape_path(&self.path),
                    keys.name()
                );
                return Err(KmsError::new(Code::InvalidArgument, message));
            }
            return Ok(keys);
        }
        let keys = ParticipantKeys::generate(name.clone()).map_err(damaged)?;
        self.write(IDENTITY, &keys.to_secret_bytes())?;
        Ok(keys)
    }

    /// This node's share of a key.
    ///
    /// # Errors
    /// The file is damaged; errors of the disk.
    pub(super) fn find(&self, group: SessionId) -> Result<Option<Arc<KeyShare>>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = open.get(&group) {
            return Ok(Some(Arc::clone(share)));
        }
        let Some(bytes) = self.read(&format!("{group}{SHARE}"))? else { return Ok(None) };
        let share = Arc::new(KeyShare::from_secret_bytes(&bytes).map_err(damaged)?);
        open.insert(group, Arc::clone(&share));
        Ok(Some(share))
    }

    /// Keeps a share. When this returns, it is on the disk.
    pub(super) fn keep(&self, share: &KeyShare) -> Result<()> {
        self.write(&format!("{}{SHARE}", share.group_id()), &share.to_secret_bytes())
    }

    /// Destroys a share, if there is one.
    pub(super) fn destroy(&self, group: SessionId) -> Result<()> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&group);
        let path = self.path.join(format!("{group}{SHARE}"));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", &path, error)),
            _ => sync_folder(&self.path).map_err(|error| failed("write", &path, error)),
        }
    }

    fn read(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let path = self.path.join(name);
        let found = fs::metadata(&path).and_then(|metadata| match metadata.len() > MAX_FILE_LEN {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => fs::read(&path),
        });
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &path, error)),
            Ok(bytes) => decrypt(&bytes, &[&self.key], &context(name)).map(Some),
        }
    }

    fn write(&self, name: &str, secret: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        let encrypted = encrypt(secret, &[&self.key], &context(name))?;
        let write = || {
            let mut file = AtomicFile::create(&self.path, Visibility::OwnerOnly)?;
            io::Write::write_all(file.file()?, &encrypted)?;
            file.persist(&path, IfExists::Replace)?;
            sync_folder(&self.path)
        };
        write().map_err(|error| failed("write", &path, error))
    }
}

/// A file opens only under its own name.
fn context(name: &str) -> Vec<u8> {
    format!("bulla group v1 file\0{name}").into_bytes()
}

fn failed(what: &str, path: &Path, error: io::Error) -> KmsError {
    KmsError::io(format!("cannot {what} {}", escape_path(path)), error)
}

fn damaged(error: ThresholdError) -> KmsError {
    KmsError::new(Code::KeystoreCorrupt, format!("a file of the group's folder: {error}"))
}
