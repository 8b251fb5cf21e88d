//! Backups: a whole keystore in one encrypted file, which is checked from end to end before it is
//! restored.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;

use zeroize::Zeroizing;

use super::Keystore;
use super::KeystoreOptions;
use super::index::LoadedKey;
use super::observe::Subject;
use super::{load, maintenance, open};
use crate::algorithm::KeyUsage;
use crate::attestation::{Attestation, SignedAttestation};
use crate::audit_log::AuditOperation;
use crate::backend::{Backends, KeyMaterial};
use crate::encrypted_file;
use crate::encrypted_file::Encryptor;
use crate::encryption::{EnvelopeKind, KeyProvider, StoreCipher, Unlock};
use crate::error::{Code, KmsError, Result};
use crate::id::KeyVersionId;
use crate::key_signature::Signature;
use crate::policy::KeyState;
use crate::record::{KeyRecord, StoreState};
use crate::rollback::RollbackGuard;
#[cfg(feature = "etcd")]
use crate::store::etcd::{EtcdOptions, EtcdStore};
use crate::store::{EmbeddedStore, Rows, STATE};
use crate::time::Timestamp;

/// The associated data of a backup's encryption, so that no other encrypted data passes for a
/// backup.
const ASSOCIATED: &[u8] = b"bulla keystore backup v1";
const MAGIC: &[u8; 4] = b"BBAK";
const FORMAT: u8 = 1;
const FIXED_HEADER: usize = 29;

/// A backup that was opened and checked: every record can be read, every private key matches its
/// version's public key, and every attestation was signed by the latest version of its key.
///
/// ```
/// use std::sync::Arc;
///
/// use bulla_kms::backend::Backends;
/// use bulla_kms::encryption::{Identity, IdentityKind};
/// use bulla_kms::{Algorithm, Backup, BackupSummary, Keystore, KeystoreOptions, NewKey, Unlock};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = &folder.path().join("keystore.redb");
/// let keystore = Keystore::in_memory()?;
/// keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
/// let identity = Identity::generate(IdentityKind::Age)?;
/// let mut file = Vec::new();
/// let sink = &mut file;
/// let begin = move |summary: &BackupSummary| {
///     println!("{} keys", summary.keys);
///     sink
/// };
/// let written = keystore.backup_to(begin, &[&identity.recipient()])?;
///
/// // On another day, on another machine.
/// let backup = Backup::read(&file[..], &[&identity], Backends::software())?;
/// assert_eq!((backup.summary(), written.keys), (written, 1));
/// let unlock = Unlock::Provider(Arc::new(identity));
/// let restored = backup.restore(path, &unlock, &KeystoreOptions::default())?;
/// assert_eq!(restored.list()?, keystore.list()?);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub struct Backup {
    summary: BackupSummary,
    entries: Vec<Entry>,
}

/// One key.
struct Entry {
    record: KeyRecord,
    /// The attestation that the latest version signed, if it can sign.
    attestation: Option<SignedAttestation>,
    /// In the order of their versions.
    private_keys: Vec<(KeyVersionId, KeyMaterial)>,
}

impl Keystore {
    /// Writes a backup of the keystore at one moment. Any key of `to` can decrypt it. It contains
    /// the private keys; for a key in a device, it contains the backend's handle.
    ///
    /// In the backup, each enabled key that signs attests itself, with one signature that no
    /// rotation policy counts.
    ///
    /// # Errors
    /// [`Code::KeystoreCorrupt`] if the store has changed; errors of the backends and of encryptor;
    /// errors of recording. After the last, `sink` has a complete backup, which you should delete.
    pub fn backup(&self, sink: impl Write, to: &[&dyn KeyProvider]) -> Result<BackupSummary> {
        self.backup_to(|_| sink, to)
    }

    /// Like [`Keystore::backup`], for a sink that begins with the summary of the backup: `begin`
    /// makes the sink.
    ///
    /// # Errors
    /// Those of [`Keystore::backup`].
    pub fn backup_to<W: Write>(
        &self,
        begin: impl FnOnce(&BackupSummary) -> W,
        to: &[&dyn KeyProvider],
    ) -> Result<BackupSummary> {
        self.observed(Subject::store(AuditOperation::Backup), || self.write_backup(begin, to))
    }

    fn write_backup<W: Write>(
        &self,
        begin: impl FnOnce(&BackupSummary) -> W,
        to: &[&dyn KeyProvider],
    ) -> Result<BackupSummary> {
        let rows = self.writer().store.load()?;
        let (state, _, index) = load::index(&self.cipher, &rows, Some(&self.index.load()))?;
        let mut keys: Vec<_> = index.keys().collect();
        keys.sort_unstable_by(|a, b| a.record.key.cmp(&b.record.key));
        let private_keys: usize = keys.iter().map(|key| key.record.held().count()).sum();
        let summary = BackupSummary {
            made: Timestamp::now()?,
            counter: state.generation,
            keys: keys.len() as u64,
            private_keys: private_keys as u64,
        };
        let mut encryptor = Encryptor::new(begin(&summary), to, ASSOCIATED)?;
        encryptor.write_all(&summary.header()).map_err(cannot_write)?;
        for key in keys {
            write_part(&mut encryptor, &key.record.to_bytes())?;
            let attestation = self.attestation_for_backup(key)?;
            let attestation = attestation.map(|attestation| serde_json::to_vec(&attestation));
            let attestation = attestation.transpose().expect("an attestation has text keys");
            write_part(&mut encryptor, &attestation.unwrap_or_default())?;
            for id in key.record.held() {
                let name = id.to_string();
                let encrypted = rows.private_keys.get(&name).ok_or_else(|| {
                    KmsError::corrupt(format!("the private key of {id} is missing from the store"))
                })?;
                write_part(
                    &mut encryptor,
                    &self.cipher.decrypt(&EnvelopeKind::PrivateKey(name), encrypted)?,
                )?;
            }
        }
        encryptor.finish()?;
        Ok(summary)
    }

    fn attestation_for_backup(&self, key: &LoadedKey) -> Result<Option<SignedAttestation>> {
        if !attests_itself(&key.record) {
            return Ok(None);
        }
        let attestation = Attestation::from(&key.record);
        let bytes = key.signer(&self.cipher, &self.backends)?.sign(&attestation.signed_bytes())?;
        let id = key.record.key.version(key.record.latest_number());
        Ok(Some(SignedAttestation { attestation, signature: Signature { key: id, bytes } }))
    }
}

/// Whether a backup must have an attestation of the key. A disabled key signs nothing, not even
/// this, and a key that signs digests signs no statements.
fn attests_itself(record: &KeyRecord) -> bool {
    record.state == KeyState::Enabled
        && !record.signs_digests
        && record.key.algorithm().usage() == KeyUsage::Signature
        && record.latest_version().is_held()
}

/// Writes a part: its length (4 bytes, big-endian), then its bytes.
fn write_part(encryptor: &mut Encryptor<impl Write>, part: &[u8]) -> Result<()> {
    let length = u32::try_from(part.len()).expect("a record has less than 4 GiB");
    encryptor.write_all(&length.to_be_bytes()).and_then(|()| encryptor.write_all(part)).map_err(cannot_write)
}

fn cannot_write(error: std::io::Error) -> KmsError {
    KmsError::io("cannot write the encrypted file", error)
}

impl BackupSummary {
    /// Magic, format, time in milliseconds since 1970, generation, number of keys: the last three 8
    /// bytes each, big-endian.
    fn header(&self) -> Vec<u8> {
        let numbers = [self.made.unix_millis(), self.counter, self.keys].map(u64::to_be_bytes);
        [&MAGIC[..], &[FORMAT], numbers.as_flattened()].concat()
    }
}

impl Backup {
    /// Opens a backup with one of the keys of `with` and checks all of it, in memory. `backends`
    /// load its private keys.
    ///
    /// # Errors
    /// [`Code::MalformedBackup`] if it contradicts itself; [`Code::UnsupportedAlgorithm`] if no
    /// backend supports one of its keys; the errors of [`encrypted_file::decrypt`].
    pub fn read(mut source: impl Read, with: &[&dyn KeyProvider], backends: &Backends) -> Result<Self> {
        let mut encrypted = Vec::new();
        source.read_to_end(&mut encrypted).map_err(|error| KmsError::io("cannot read the backup", error))?;
        let opened = encrypted_file::decrypt(&encrypted, with, ASSOCIATED)?;
        drop(encrypted);
        let backup = Self::parse(&opened)?;
        backup.prove(backends)?;
        Ok(backup)
    }

    /// A summary of its content.
    pub fn summary(&self) -> BackupSummary {
        self.summary
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut parts = Parts(bytes);
        let header: &[u8; FIXED_HEADER] = parts.take()?;
        let number = |at: usize| {
            let bytes = header[at..].first_chunk().expect("the header is long enough");
            u64::from_be_bytes(*bytes)
        };
        if header[..4] != *MAGIC || header[4] != FORMAT {
            return Err(malformed("its first bytes are not those of one"));
        }
        let made =
            Timestamp::from_unix_millis(number(5)).map_err(|_| malformed("its time is out of bounds"))?;
        let mut summary = BackupSummary { made, counter: number(13), keys: number(21), private_keys: 0 };
        let mut entries = Vec::new();
        while !parts.0.is_empty() {
            let entry = parts.entry()?;
            summary.private_keys += entry.private_keys.len() as u64;
            entries.push(entry);
        }
        if entries.len() as u64 != summary.keys {
            return Err(malformed("it contains another number of keys than it states"));
        }
        Ok(Self { summary, entries })
    }

    fn prove(&self, backends: &Backends) -> Result<()> {
        let (mut names, mut labels) = (BTreeSet::new(), BTreeSet::new());
        for entry in &self.entries {
            let key = &entry.record.key;
            let label = entry.record.label.as_ref();
            if !names.insert(key) || label.is_some_and(|label| !labels.insert((key.tenant(), label))) {
                return Err(malformed(&format!("the key {key}, or its label, occurs twice")));
            }
            entry.prove(backends)?;
        }
        Ok(())
    }

    /// Makes a keystore from the backup, in a new file that `unlock` opens, under a new root key:
    /// see [`KeystoreOptions::create`]. It needs a new rollback guard too, because it is a separate
    /// store. It continues to count changes from the backup's number.
    ///
    /// Limits on the number of signatures count from the state in the backup: signatures made later
    /// are unknown to it.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if `path` exists; errors of writing.
    pub fn restore(&self, path: &Path, unlock: &Unlock, options: &KeystoreOptions) -> Result<Keystore> {
        if path.symlink_metadata().is_ok() {
            return Err(crate::files::already_exists(path));
        }
        let (rows, cipher) = self.rows(unlock, options)?;
        let store = EmbeddedStore::create(path, &rows)?;
        open::load_keystore(Box::new(store), rows, cipher, options)
    }

    /// As [`Backup::restore`], in an etcd cluster. The keystore appears there complete, or not at
    /// all. An attempt that is interrupted may leave rows under the prefix, which have to be
    /// deleted before the next one.
    ///
    /// # Errors
    /// Those of [`KeystoreOptions::create_etcd`]; [`Code::TooLarge`] if etcd does not accept a
    /// key's record.
    #[cfg(feature = "etcd")]
    pub fn restore_etcd(
        &self,
        etcd: &EtcdOptions,
        unlock: &Unlock,
        options: &KeystoreOptions,
    ) -> Result<Keystore> {
        let (rows, cipher) = self.rows(unlock, options)?;
        let store = EtcdStore::create(etcd, &rows)?;
        open::load_keystore(Box::new(store), rows, cipher, options)
    }

    /// All rows of the new store, which were opened once as a store is opened.
    fn rows(&self, unlock: &Unlock, options: &KeystoreOptions) -> Result<(Rows, StoreCipher)> {
        let (mut rows, cipher) = open::new_rows(&*unlock.provider()?, &*options.guard)?;
        self.fill(&mut rows, &cipher, &*options.guard)?;
        load::index(&cipher, &rows, None)?;
        Ok((rows, cipher))
    }

    fn fill(&self, rows: &mut Rows, cipher: &StoreCipher, guard: &dyn RollbackGuard) -> Result<()> {
        let mut state = StoreState {
            generation: self.summary.counter + 1,
            changed: guard.time()?,
            guard: maintenance::guard_digest(guard),
            ..StoreState::default()
        };
        for entry in &self.entries {
            let name = entry.record.key.to_string();
            let encrypted =
                cipher.encrypt(EnvelopeKind::KeyRecord(name.clone()), &entry.record.to_bytes())?;
            state.replace(None, &cipher.bind(&encrypted));
            rows.records.insert(name, encrypted);
            for (id, material) in &entry.private_keys {
                let name = id.to_string();
                let encrypted = cipher.encrypt(EnvelopeKind::PrivateKey(name.clone()), material)?;
                rows.private_keys.insert(name, encrypted);
            }
        }
        let encrypted = cipher.encrypt(EnvelopeKind::StoreState, &state.to_bytes())?;
        rows.meta.insert(STATE.to_owned(), encrypted);
        Ok(())
    }
}

impl Entry {
    fn prove(&self, backends: &Backends) -> Result<()> {
        let record = &self.record;
        let key = &record.key;
        let has_none = record.state == KeyState::Destroyed || record.is_public_only();
        if record.latest_version().is_held() == has_none {
            return Err(malformed(&format!("the record of {key} contradicts itself")));
        }
        if !record.versions.is_sorted_by_key(|version| version.created) {
            return Err(malformed(&format!("a version of {key} is older than the one before it")));
        }
        for (id, material) in &self.private_keys {
            let algorithm = key.algorithm();
            let loaded = backends.find(&record.backend, algorithm)?.load(algorithm, material)?;
            let version = record.version(id.version());
            if !version.is_some_and(|version| version.is_of(&*loaded).unwrap_or(false)) {
                return Err(malformed(&format!("the private key of {id} does not match its record")));
            }
        }
        let attested = match &self.attestation {
            Some(signed) => {
                attests_itself(record)
                    && signed.attestation == Attestation::from(record)
                    && signed.verify().is_valid()
            }
            None => !attests_itself(record),
        };
        if attested { Ok(()) } else { Err(malformed(&format!("the attestation of {key} does not verify"))) }
    }
}

/// The bytes that are still unread.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(|| malformed("it is cut"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn part(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(u32::from_be_bytes(*self.take()?)).unwrap_or(usize::MAX);
        let (part, rest) = self.0.split_at_checked(length).ok_or_else(|| malformed("it is cut"))?;
        self.0 = rest;
        Ok(part)
    }

    fn entry(&mut self) -> Result<Entry> {
        let record = KeyRecord::parse(self.part()?)?;
        let attestation = match self.part()? {
            [] => None,
            json => Some(
                serde_json::from_slice(json)
                    .map_err(|error| malformed("an attestation is malformed").with_source(error))?,
            ),
        };
        let mut private_keys = Vec::new();
        for id in record.held() {
            private_keys.push((id, Zeroizing::new(self.part()?.to_vec())));
        }
        Ok(Entry { record, attestation, private_keys })
    }
}

fn malformed(why: &str) -> KmsError {
    KmsError::new(Code::MalformedBackup, format!("not a valid backup of a keystore: {why}"))
}

/// A summary of a backup's content.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// When it was made.
    pub made: Timestamp,
    /// How many changes the keystore had seen then.
    pub counter: u64,
    /// Its keys.
    pub keys: u64,
    /// Their private keys: one for each version that was not destroyed or revoked.
    pub private_keys: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Algorithm;
    use crate::keystore::NewKey;

    /// A decrypted backup, and the problem that is reported after a change to it. The holder of a
    /// backup's key could make a false backup; one that contradicts itself must not be restored.
    fn made() -> Backup {
        let keystore = Keystore::in_memory().unwrap();
        for label in ["a", "b"] {
            let new = NewKey::new("t".parse().unwrap(), "p".parse().unwrap(), Algorithm::Ed25519);
            let key = keystore.create_key(new.label(label.parse().unwrap())).unwrap();
            keystore.rotate(key.key_id()).unwrap();
        }
        let rows = keystore.writer().store.load().unwrap();
        let (state, _, index) = load::index(&keystore.cipher, &rows, None).unwrap();
        let entries: Vec<_> = index
            .keys()
            .map(|key| Entry {
                record: key.record.clone(),
                attestation: keystore.attestation_for_backup(key).unwrap(),
                private_keys: (key.record.held())
                    .map(|id| {
                        let place = EnvelopeKind::PrivateKey(id.to_string());
                        let opened = keystore.cipher.decrypt(&place, &rows.private_keys[&id.to_string()]);
                        (id, opened.unwrap())
                    })
                    .collect(),
            })
            .collect();
        let made = Timestamp::now().unwrap();
        let summary = BackupSummary { made, counter: state.generation, keys: 2, private_keys: 4 };
        Backup { summary, entries }
    }

    #[test]
    fn a_backup_that_contradicts_itself_is_refused() {
        type Edit = fn(&mut Backup);
        let edits: [(&str, Edit); 9] = [
            ("a key twice", |b| b.entries[1].record = b.entries[0].record.clone()),
            ("a label twice", |b| b.entries[1].record.label = b.entries[0].record.label.clone()),
            ("private keys swapped", |b| {
                let [first, second] = &mut b.entries[0].private_keys[..] else {
                    unreachable!("two versions")
                };
                std::mem::swap(&mut first.1, &mut second.1);
            }),
            ("another private key", |b| b.entries[0].private_keys[0].1[0] ^= 1),
            ("an attestation missing", |b| b.entries[0].attestation = None),
            ("another's attestation", |b| b.entries[0].attestation = b.entries[1].attestation.clone()),
            ("a record changed after its attestation", |b| b.entries[0].record.revision += 1),
            ("a destroyed key with a private key", |b| b.entries[0].record.state = KeyState::Destroyed),
            ("versions out of order", |b| {
                b.entries[0].record.versions[0].created = "2999-01-01T00:00:00.000Z".parse().unwrap();
            }),
        ];
        made().prove(Backends::software()).unwrap();
        for (name, edit) in edits {
            let mut backup = made();
            // Entries have no order.
            backup.entries.sort_by(|a, b| a.record.key.cmp(&b.record.key));
            edit(&mut backup);
            assert_eq!(backup.prove(Backends::software()).unwrap_err().code, Code::MalformedBackup, "{name}");
        }
    }
}
