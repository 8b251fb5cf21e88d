//! The libraries of devices, each loaded and initialized once in a process.
//!
//! Initialization belongs to the process, not to the caller (PKCS #11 3.1, section 5.4), so all
//! devices of a library share it. Some libraries, including SoftHSM, see a returned device only
//! after they are initialized again. That ends all sessions, so it waits until no thread is using
//! one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::session::Session;

use super::device::Fault;
use crate::error::{Code, KmsError, Result};

/// The shortest time between two initializations of a library: initializing is slow for some, and
/// disturbs all devices of the library.
const MIN_RESTART_INTERVAL: Duration = Duration::from_secs(1);

static MODULES: Mutex<BTreeMap<PathBuf, Arc<Module>>> = Mutex::new(BTreeMap::new());

/// A library.
pub(super) struct Module {
    library: Pkcs11,
    /// A thread that uses a session holds it for reading; a thread that initializes the library
    /// again, for writing.
    life: RwLock<LibraryLife>,
    /// Idle sessions, by the number of their device.
    idle: Mutex<BTreeMap<u64, Vec<Session>>>,
}

/// The time between two initializations.
pub(super) struct LibraryLife {
    /// Increases by one with each initialization. Object handles are valid only within one life.
    pub(super) number: u64,
    pub(super) state: LibraryState,
    began: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LibraryState {
    /// Initialized by us, so that we may end it.
    Ours,
    /// Initialized by another part of this process, whose sessions we would end.
    Others,
    /// The initialization failed.
    Down,
}

impl Module {
    /// The library at `path`, loaded if it is not loaded yet.
    pub(super) fn load(path: &Path) -> Result<Arc<Self>> {
        let shown = path.display();
        let path = path
            .canonicalize()
            .map_err(|error| KmsError::io(format!("cannot load the device's library {shown}"), error))?;
        let mut modules = lock(&MODULES);
        if let Some(module) = modules.get(&path) {
            return Ok(Arc::clone(module));
        }
        let library = Pkcs11::new(&path).map_err(|error| {
            let message = format!("cannot load the device's library {shown}: {error}");
            KmsError::new(Code::DeviceFailed, message).with_source(error)
        })?;
        let state = initialize(&library).map_err(|why| {
            let message = format!("cannot initialize the device's library {shown}: {why}");
            KmsError::new(Code::DeviceUnavailable, message)
        })?;
        let life = RwLock::new(LibraryLife { number: 0, state, began: Instant::now() });
        let module = Arc::new(Self { library, life, idle: Mutex::default() });
        modules.insert(path, Arc::clone(&module));
        Ok(module)
    }

    pub(super) fn library(&self) -> &Pkcs11 {
        &self.library
    }

    /// The current life. It lasts as long as the caller holds this guard.
    pub(super) fn enter(&self) -> RwLockReadGuard<'_, LibraryLife> {
        self.life.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle session of a device.
    pub(super) fn take_idle(&self, device: u64) -> Option<Session> {
        lock(&self.idle).get_mut(&device)?.pop()
    }

    /// Keeps a session for its next use. It must belong to the current life.
    pub(super) fn keep(&self, device: u64, session: Session) {
        lock(&self.idle).entry(device).or_default().push(session);
    }

    /// Closes a device's idle sessions.
    pub(super) fn close_idle(&self, device: u64) {
        let sessions = lock(&self.idle).remove(&device);
        drop(sessions);
    }

    /// Begins a new life after the one with this number. Returns whether there is a later one now.
    pub(super) fn restart(&self, after: u64) -> bool {
        let mut life = self.life.write().unwrap_or_else(PoisonError::into_inner);
        if life.number != after {
            return true;
        }
        if life.state == LibraryState::Others || life.began.elapsed() < MIN_RESTART_INTERVAL {
            return false;
        }
        // Close them before the life ends: afterwards, their numbers will belong to other sessions.
        lock(&self.idle).clear();
        if life.state == LibraryState::Ours {
            // If this fails, the next initialization reports it.
            let _ = self.library.clone().finalize();
        }
        let state = initialize(&self.library).unwrap_or(LibraryState::Down);
        *life = LibraryLife { number: life.number + 1, state, began: Instant::now() };
        true
    }
}

fn initialize(library: &Pkcs11) -> Result<LibraryState, String> {
    let arguments = CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK);
    match library.initialize(arguments) {
        Ok(()) => Ok(LibraryState::Ours),
        Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => Ok(LibraryState::Others),
        Err(error) => Err(match Fault::from(error) {
            Fault::Lost(why) => why,
            Fault::Failed(error) => error.message,
        }),
    }
}

/// Locks a mutex and ignores poisoning: a panic under one of these locks leaves nothing
/// half-changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
