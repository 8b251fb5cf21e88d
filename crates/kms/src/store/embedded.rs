//! A store in one file, by `redb`.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::{Bound, RangeBounds};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::thread::Builder;
use std::time::{Duration, Instant};

use bulla_files::IfExists;
use redb::backends::{FileBackend, InMemoryBackend};
use redb::{
    Database, DatabaseError, Durability, ReadTransaction, ReadableDatabase as _, ReadableTable as _,
    ReadableTableMetadata as _, StorageBackend as _, TableDefinition, TableError,
};

use super::file_identity::FileIdentity;
use super::interface::{Change, Meta, Rows, STATE, Store, Table, changed, key_ranges};
use super::packed::{PackedRows, PackedTable};
use crate::error::{Code, KmsError, Result};
use crate::files;

/// Names are kept as bytes: `redb` panics on a damaged name of its text type.
type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

const META: Definition = TableDefinition::new("meta");
const RECORDS: Definition = TableDefinition::new("records");
const PRIVATE_KEYS: Definition = TableDefinition::new("private_keys");

/// How long to wait for another process to close the store: longer than a dozen commands hold it on
/// a busy machine, shorter than a person waits.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Rows are few and small, and read once: the default cache of 1 GiB would never be used.
const CACHE_BYTES: usize = 4 << 20;

fn definition(table: Table) -> Definition {
    match table {
        Table::Meta => META,
        Table::Records => RECORDS,
        Table::PrivateKeys => PRIVATE_KEYS,
    }
}

/// The file is locked while this lives.
pub(crate) struct EmbeddedStore {
    path: PathBuf,
    /// The file that is open, or was before a failed write.
    file: Arc<FileIdentity>,
    /// `None` after a failed write: `redb` then refuses everything until the file is reopened.
    database: Option<Database>,
}

impl EmbeddedStore {
    /// Creates a store with these rows. It appears at `path` complete, or not at all.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if something exists at `path`.
    pub(crate) fn create(path: &Path, rows: &Rows) -> Result<Self> {
        let mut draft = files::draft(path)?;
        let file = draft.file().and_then(|file| file.try_clone());
        let file = file.map_err(|error| KmsError::io(format!("cannot write {}", path.display()), error))?;
        let database = builder().create_file(file).map_err(|error| failure(path, error))?;
        let all = rows.iter().map(|(table, name, value)| (table, name, Some(value)));
        write(&database, None, all).map_err(|error| error.at(path))?;
        files::persist(draft, path, IfExists::Fail)?;
        let file = Arc::new(FileIdentity::at(path)?);
        Ok(Self { path: path.to_owned(), file, database: Some(database) })
    }

    /// Opens a store. If another process has it open, this waits for a while.
    ///
    /// # Errors
    /// [`Code::NotFound`], [`Code::Locked`], [`Code::KeystoreCorrupt`] if the file is not a `redb`
    /// database.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = FileIdentity::at(path).map_err(|error| match error.code {
            Code::NotFound => missing(path),
            _ => error,
        })?;
        Ok(Self { path: path.to_owned(), file: Arc::new(file), database: Some(open(path)?) })
    }

    /// Reads everything without changing a byte of the file, and closes it. Permission to read the
    /// file is enough. Readers exclude writers, but not each other.
    ///
    /// # Errors
    /// The errors of [`EmbeddedStore::open`].
    pub(crate) fn peek(path: &Path) -> Result<PackedRows> {
        look(path, read_packed)
    }

    /// Reads [`Table::Meta`] as [`EmbeddedStore::peek`] does it: a handful of rows, however many
    /// keys there are.
    ///
    /// # Errors
    /// The errors of [`EmbeddedStore::open`].
    pub(crate) fn peek_meta(path: &Path) -> Result<Meta> {
        look(path, read_meta)
    }
}

impl EmbeddedStore {
    /// The row with the state.
    ///
    /// # Errors
    /// The errors of [`EmbeddedStore::load`].
    pub(crate) fn state(&mut self) -> Result<Option<Vec<u8>>> {
        self.read(|database| match database.begin_read()?.open_table(META) {
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            meta => Ok(meta?.get(STATE.as_bytes())?.map(|state| state.value().to_owned())),
        })
    }

    fn read<T>(&mut self, read: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T> {
        let database = match &mut self.database {
            Some(database) => database,
            none => {
                self.file.check()?;
                none.insert(open(&self.path)?)
            }
        };
        guarded(|| read(database)).map_err(|failure| failure.at(&self.path))
    }
}

impl Store for EmbeddedStore {
    fn load(&mut self) -> Result<Rows> {
        self.read(|database| read(&database.begin_read()?))
    }

    fn load_key(&mut self, key_id: &str) -> Result<Rows> {
        self.read(|database| {
            let (transaction, mut rows) = (database.begin_read()?, Rows::default());
            for (table, names) in key_ranges(key_id) {
                let found = rows.table_mut(table);
                let names = names.start.as_bytes()..names.end.as_bytes();
                for_each_row(&transaction, table, names, |name, value| {
                    found.insert(name.to_owned(), value.to_owned());
                })?;
            }
            Ok(rows)
        })
    }

    fn commit(&mut self, change: Change<'_>) -> Result<()> {
        self.file.check()?;
        let database = match self.database.take() {
            Some(database) => database,
            None => open(&self.path)?,
        };
        let rows = change.rows.iter().map(|(table, name, value)| (*table, name, value.as_ref()));
        let written = write(&database, Some(change.expected_state), rows);
        if !matches!(written, Err(Failure::Database(_))) {
            self.database = Some(database);
        }
        written.map_err(|failure| failure.at(&self.path))
    }

    fn file(&self) -> Option<Arc<FileIdentity>> {
        Some(Arc::clone(&self.file))
    }
}

fn missing(path: &Path) -> KmsError {
    KmsError::new(Code::NotFound, format!("there is no keystore at {}", path.display()))
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Opens the file for writing, and lets `redb` check all of it: a damaged file must not be written
/// to.
fn open(path: &Path) -> Result<Database> {
    let open = || {
        let mut database = builder().open(path)?;
        database.check_integrity()?;
        Ok(database)
    };
    patiently(path, open).map_err(|failure| failure.at(path))
}

/// Reads from the file, which is open for reading only meanwhile.
fn look<T>(path: &Path, read: impl Fn(&ReadTransaction) -> Result<T, redb::Error>) -> Result<T> {
    let look = || match builder().open_read_only(path) {
        Err(DatabaseError::RepairAborted) => read(&repaired_copy(path)?.begin_read()?),
        database => read(&database?.begin_read()?),
    };
    patiently(path, look).map_err(|failure| failure.at(path))
}

/// If the last writer was killed, the file must be repaired before it can be read. A reader repairs
/// a copy in memory, which gives the same rows as the next writer's repair of the file.
fn repaired_copy(path: &Path) -> Result<Database, redb::Error> {
    let file = FileBackend::new(File::open(path)?)?;
    // Lock the whole file, which includes the ranges that a writer locks.
    if !file.try_lock_shared_range(Bound::Unbounded, Bound::Unbounded)? {
        return Err(redb::Error::DatabaseAlreadyOpen);
    }
    let length = file.len()?;
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read(0, &mut bytes)?;
    file.close()?;
    let copy = InMemoryBackend::new();
    copy.set_len(length)?;
    copy.write(0, &bytes)?;
    Ok(builder().create_with_backend(copy)?)
}

/// Tries again while another process has the file open.
fn patiently<T>(path: &Path, action: impl Fn() -> Result<T, redb::Error>) -> Result<T, Failure> {
    let start = Instant::now();
    loop {
        match guarded(&action) {
            Err(Failure::Database(redb::Error::DatabaseAlreadyOpen)) if start.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_RETRY_PAUSE);
            }
            Err(Failure::Database(redb::Error::Io(error)))
                if error.kind() == std::io::ErrorKind::NotFound =>
            {
                return Err(Failure::Other(missing(path)));
            }
            result => return result,
        }
    }
}

/// A damaged file can make `redb` panic; this reports the panic as damage.
fn guarded<T>(action: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, Failure> {
    match catch_quietly(action) {
        Some(result) => result.map_err(Failure::Database),
        None => Err(Failure::Database(damaged())),
    }
}

fn damaged() -> redb::Error {
    redb::Error::Corrupted("the file's structure is damaged".to_owned())
}

/// Passes the rows of a table with these names to `take`, in the order of their names.
fn for_each_row<'a>(
    transaction: &ReadTransaction,
    table: Table,
    names: impl RangeBounds<&'a [u8]>,
    mut take: impl FnMut(&str, &[u8]),
) -> Result<(), redb::Error> {
    let opened = match transaction.open_table(definition(table)) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        opened => opened?,
    };
    for row in opened.range(names)? {
        let (name, value) = row?;
        let name = std::str::from_utf8(name.value())
            .map_err(|_| redb::Error::Corrupted("a row's name is not UTF-8".to_owned()))?;
        take(name, value.value());
    }
    Ok(())
}

fn read_map(transaction: &ReadTransaction, table: Table) -> Result<BTreeMap<String, Vec<u8>>, redb::Error> {
    let mut rows = Vec::new();
    for_each_row(transaction, table, .., |name, value| rows.push((name.to_owned(), value.to_owned())))?;
    // They are sorted: building a map of all of them is faster than inserting one by one.
    Ok(rows.into_iter().collect())
}

fn read_packed_table(transaction: &ReadTransaction, table: Table) -> Result<PackedTable, redb::Error> {
    let mut rows = PackedTable::default();
    for_each_row(transaction, table, .., |name, value| rows.push(name, value))?;
    Ok(rows)
}

fn read(transaction: &ReadTransaction) -> Result<Rows, redb::Error> {
    let mut rows = Rows::default();
    for table in Table::ALL {
        *rows.table_mut(table) = read_map(transaction, table)?;
    }
    Ok(rows)
}

fn read_meta(transaction: &ReadTransaction) -> Result<Meta, redb::Error> {
    read_map(transaction, Table::Meta)
}

/// Reads all rows. If there are many, private keys are read while another thread reads the records.
fn read_packed(transaction: &ReadTransaction) -> Result<PackedRows, redb::Error> {
    let meta = read_meta(transaction)?;
    let records = || read_packed_table(transaction, Table::Records);
    let private_keys = || read_packed_table(transaction, Table::PrivateKeys);
    if is_small(transaction)? {
        return Ok(PackedRows { meta, records: records()?, private_keys: private_keys()? });
    }
    // A damaged file can make `redb` panic, on any thread: this reports it as `guarded` does.
    let (private_keys, records) = run_in_parallel(|| catch_quietly(records), private_keys);
    Ok(PackedRows { meta, records: records.ok_or_else(damaged)??, private_keys: private_keys? })
}

/// What `own` returns on this thread, and `other` on another one meanwhile; or on this one, if the
/// system has no room for a thread.
pub(crate) fn run_in_parallel<O: Send, T>(other: impl Fn() -> O + Sync, own: impl FnOnce() -> T) -> (T, O) {
    std::thread::scope(|scope| match Builder::new().spawn_scoped(scope, &other) {
        Ok(thread) => (own(), thread.join().unwrap_or_else(|panic| resume_unwind(panic))),
        Err(_) => (own(), other()),
    })
}

/// Whether a thread would take longer to start than to read the records.
fn is_small(transaction: &ReadTransaction) -> Result<bool, redb::Error> {
    match transaction.open_table(RECORDS) {
        Err(TableError::TableDoesNotExist(_)) => Ok(true),
        records => Ok(records?.len()? < 1024),
    }
}

/// Writes rows in one transaction, if the state is the expected one. `None` accepts any state.
fn write<'a>(
    database: &Database,
    expected_state: Option<&[u8]>,
    rows: impl Iterator<Item = (Table, &'a String, Option<&'a Vec<u8>>)>,
) -> Result<(), Failure> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    // Otherwise `redb` could fall back to an older commit if the newer one is damaged.
    transaction.set_two_phase_commit(true);
    if let Some(expected) = expected_state {
        let meta = transaction.open_table(META)?;
        if meta.get(STATE.as_bytes())?.as_ref().map(|state| state.value()) != Some(expected) {
            return Err(Failure::Other(changed()));
        }
    }
    for (table, name, value) in rows {
        let mut table = transaction.open_table(definition(table))?;
        match value {
            Some(value) => table.insert(name.as_bytes(), value.as_slice())?,
            None => table.remove(name.as_bytes())?,
        };
    }
    transaction.commit()?;
    Ok(())
}

enum Failure {
    Database(redb::Error),
    Other(KmsError),
}

impl<E: Into<redb::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Database(error.into())
    }
}

impl Failure {
    fn at(self, path: &Path) -> KmsError {
        match self {
            Self::Database(error) => failure(path, error),
            Self::Other(error) => error,
        }
    }
}

/// Converts an error of `redb`.
fn failure(path: &Path, error: impl Into<redb::Error>) -> KmsError {
    use std::io::ErrorKind;
    let shown = path.display();
    let damaged = format!("{shown} is damaged or is not a keystore");
    match error.into() {
        redb::Error::Io(error)
            if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
        {
            KmsError::corrupt(damaged).with_source(error)
        }
        redb::Error::Io(error) => KmsError::io(format!("cannot use the keystore {shown}"), error),
        redb::Error::DatabaseAlreadyOpen => KmsError::new(
            Code::Locked,
            format!("another process has the keystore {shown} open; try again when it is done"),
        ),
        error @ (redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::RepairAborted
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TableIsMultimap(_)
        | redb::Error::TypeDefinitionChanged { .. }) => KmsError::corrupt(damaged).with_source(error),
        error => {
            KmsError::new(Code::Io, format!("cannot use the keystore {shown}: {error}")).with_source(error)
        }
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `action`; `None` if it panicked. After a panic, the values that it worked on must not be
/// used again.
///
/// The first call installs a hook before the process's panic hook. It suppresses the report of a
/// panic that is caught here, and passes on every other one.
fn catch_quietly<T>(action: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let next = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                next(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(action));
    QUIET.set(before);
    result.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_none_and_the_next_call_works() {
        assert_eq!(catch_quietly(|| -> u8 { panic!("held back") }), None);
        assert_eq!(catch_quietly(|| 1), Some(1));
        assert!(!QUIET.get());
    }
}
