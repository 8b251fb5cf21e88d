//! What is between `C_Initialize` and `C_Finalize`: slots and sessions.
//!
//! A child that `fork` made has the memory of its parent, with its locks as they were. So each
//! process has a state of its own, and a child never looks at its parent's: to it, the module is
//! not initialized.

use std::collections::HashMap;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use cryptoki_sys::*;

use crate::config::SlotConfig;
use crate::error::{Failure, Result, fail, require, write_reason};
use crate::object::Object;
use crate::operation::mechanism::{MECHANISMS, MechanismInfo};
use crate::session::{InSession, Session};
use crate::slot::{Access, Slot};

/// The module in one process. It stays in memory until the process ends.
struct Module {
    process: u32,
    state: RwLock<Option<Arc<ModuleState>>>,
    /// That of a child, in its copy of the memory.
    child: OnceLock<Box<Module>>,
}

static FIRST: OnceLock<Box<Module>> = OnceLock::new();

impl Module {
    fn new() -> Box<Self> {
        Box::new(Self { process: process::id(), state: RwLock::new(None), child: OnceLock::new() })
    }

    /// That of this process, if the process has initialized it before.
    fn current() -> Option<&'static Self> {
        let mut module = FIRST.get()?;
        while module.process != process::id() {
            module = module.child.get()?;
        }
        Some(module)
    }

    /// That of this process.
    fn current_or_new() -> &'static Self {
        let mut module = FIRST.get_or_init(Self::new);
        while module.process != process::id() {
            module = module.child.get_or_init(Self::new);
        }
        module
    }
}

/// An initialized module.
pub(crate) struct ModuleState {
    slots: Vec<Slot>,
    sessions: RwLock<HashMap<CK_SESSION_HANDLE, Arc<Session>>>,
    next_session: AtomicU64,
}

/// Begins, with the slots of a configuration.
///
/// # Errors
/// `CKR_CRYPTOKI_ALREADY_INITIALIZED`; `CKR_GENERAL_ERROR` without a usable configuration.
pub(crate) fn initialize(
    configuration: impl FnOnce() -> std::result::Result<Vec<SlotConfig>, String>,
) -> Result<()> {
    let module = Module::current_or_new();
    let mut state = module.state.write().unwrap_or_else(PoisonError::into_inner);
    require(state.is_none(), CKR_CRYPTOKI_ALREADY_INITIALIZED)?;
    let configs = configuration().map_err(|reason| {
        write_reason(&reason);
        Failure(CKR_GENERAL_ERROR)
    })?;
    let slots = configs.into_iter().map(Slot::new).collect::<Result<_>>()?;
    *state =
        Some(Arc::new(ModuleState { slots, sessions: RwLock::default(), next_session: AtomicU64::new(1) }));
    Ok(())
}

/// Ends. Calls of other threads that are under way end by themselves.
///
/// # Errors
/// `CKR_CRYPTOKI_NOT_INITIALIZED`.
pub(crate) fn finalize() -> Result<()> {
    let module = Module::current().ok_or(Failure(CKR_CRYPTOKI_NOT_INITIALIZED))?;
    let state = module.state.write().unwrap_or_else(PoisonError::into_inner).take();
    require(state.is_some(), CKR_CRYPTOKI_NOT_INITIALIZED)
}

/// The state of this process.
///
/// # Errors
/// `CKR_CRYPTOKI_NOT_INITIALIZED`.
pub(crate) fn state() -> Result<Arc<ModuleState>> {
    let module = Module::current().ok_or(Failure(CKR_CRYPTOKI_NOT_INITIALIZED))?;
    let state = module.state.read().unwrap_or_else(PoisonError::into_inner).clone();
    state.ok_or(Failure(CKR_CRYPTOKI_NOT_INITIALIZED))
}

/// A text as PKCS #11 has it: padded with spaces, and cut between characters.
fn padded<const N: usize>(text: &str) -> [CK_UTF8CHAR; N] {
    let mut out = [b' '; N];
    let text = &text[..text.floor_char_boundary(N)];
    out[..text.len()].copy_from_slice(text.as_bytes());
    out
}

const MANUFACTURER: &str = "bulla";

/// The version of this package.
fn version() -> CK_VERSION {
    let part = |text: &str| text.parse().unwrap_or(0);
    CK_VERSION { major: part(env!("CARGO_PKG_VERSION_MAJOR")), minor: part(env!("CARGO_PKG_VERSION_MINOR")) }
}

/// What programs learn of the module.
pub(crate) fn info() -> CK_INFO {
    CK_INFO {
        cryptokiVersion: CK_VERSION { major: 3, minor: 0 },
        manufacturerID: padded(MANUFACTURER),
        flags: 0,
        libraryDescription: padded("bulla key management service"),
        libraryVersion: version(),
    }
}

/// A mechanism of every token.
///
/// # Errors
/// `CKR_MECHANISM_INVALID`.
pub(crate) fn mechanism_info(kind: CK_MECHANISM_TYPE) -> Result<CK_MECHANISM_INFO> {
    let found = MECHANISMS.iter().find(|info| info.kind == kind);
    let MechanismInfo { key_sizes: (least, most), flags, .. } =
        found.ok_or(Failure(CKR_MECHANISM_INVALID))?;
    Ok(CK_MECHANISM_INFO { ulMinKeySize: *least, ulMaxKeySize: *most, flags: *flags })
}

impl ModuleState {
    /// The ids of all slots.
    pub(crate) fn slot_ids(&self) -> Vec<CK_SLOT_ID> {
        (0..self.slots.len() as CK_SLOT_ID).collect()
    }

    /// # Errors
    /// `CKR_SLOT_ID_INVALID`.
    pub(crate) fn slot(&self, id: CK_SLOT_ID) -> Result<&Slot> {
        usize::try_from(id).ok().and_then(|id| self.slots.get(id)).ok_or(Failure(CKR_SLOT_ID_INVALID))
    }

    /// # Errors
    /// `CKR_SLOT_ID_INVALID`.
    pub(crate) fn slot_info(&self, id: CK_SLOT_ID) -> Result<CK_SLOT_INFO> {
        let slot = self.slot(id)?;
        Ok(CK_SLOT_INFO {
            slotDescription: padded(slot.address()),
            manufacturerID: padded(MANUFACTURER),
            flags: CKF_TOKEN_PRESENT,
            hardwareVersion: CK_VERSION { major: 0, minor: 0 },
            firmwareVersion: version(),
        })
    }

    /// # Errors
    /// `CKR_SLOT_ID_INVALID`.
    pub(crate) fn token_info(&self, id: CK_SLOT_ID) -> Result<CK_TOKEN_INFO> {
        let slot = self.slot(id)?;
        let (all, read_write) = self.count_sessions(id);
        let login = if slot.requires_login() { CKF_LOGIN_REQUIRED } else { 0 };
        Ok(CK_TOKEN_INFO {
            label: padded(&slot.label),
            manufacturerID: padded(MANUFACTURER),
            model: padded("service"),
            serialNumber: padded(&slot.serial_number()),
            flags: CKF_RNG | CKF_USER_PIN_INITIALIZED | CKF_TOKEN_INITIALIZED | login,
            ulMaxSessionCount: CK_EFFECTIVELY_INFINITE,
            ulSessionCount: all as CK_ULONG,
            ulMaxRwSessionCount: CK_EFFECTIVELY_INFINITE,
            ulRwSessionCount: read_write as CK_ULONG,
            // A token.
            ulMaxPinLen: 65536,
            ulMinPinLen: 1,
            ulTotalPublicMemory: CK_ULONG::MAX,
            ulFreePublicMemory: CK_ULONG::MAX,
            ulTotalPrivateMemory: CK_ULONG::MAX,
            ulFreePrivateMemory: CK_ULONG::MAX,
            hardwareVersion: CK_VERSION { major: 0, minor: 0 },
            firmwareVersion: version(),
            utcTime: [b' '; 16],
        })
    }

    /// How many sessions a slot has, and how many of them may write.
    fn count_sessions(&self, slot: CK_SLOT_ID) -> (usize, usize) {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let of_slot = sessions.values().filter(|session| session.slot == slot);
        let writes = |session: &&Arc<Session>| session.access == Access::ReadWrite;
        (of_slot.clone().count(), of_slot.filter(writes).count())
    }

    /// # Errors
    /// `CKR_SLOT_ID_INVALID`; `CKR_SESSION_PARALLEL_NOT_SUPPORTED`.
    pub(crate) fn open_session(&self, slot: CK_SLOT_ID, flags: CK_FLAGS) -> Result<CK_SESSION_HANDLE> {
        self.slot(slot)?;
        require(flags & CKF_SERIAL_SESSION != 0, CKR_SESSION_PARALLEL_NOT_SUPPORTED)?;
        let access = if flags & CKF_RW_SESSION != 0 { Access::ReadWrite } else { Access::ReadOnly };
        let handle = self.next_session.fetch_add(1, Ordering::Relaxed) as CK_SESSION_HANDLE;
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(handle, Arc::new(Session::new(slot, access)));
        Ok(handle)
    }

    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`.
    pub(crate) fn session(&self, handle: CK_SESSION_HANDLE) -> Result<Arc<Session>> {
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        sessions.get(&handle).cloned().ok_or(Failure(CKR_SESSION_HANDLE_INVALID))
    }

    /// Adds objects of a session, unless it has ended meanwhile.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`; those of [`Slot::add`].
    pub(crate) fn add<const N: usize>(
        &self,
        handle: CK_SESSION_HANDLE,
        objects: [Object; N],
    ) -> Result<[CK_OBJECT_HANDLE; N]> {
        // Whoever ends a session waits for this, and then removes the objects.
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let session = sessions.get(&handle).ok_or(Failure(CKR_SESSION_HANDLE_INVALID))?;
        self.slot(session.slot)?.add(objects)
    }

    /// Ends a session. With the last one of a slot, the program is logged out.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`.
    pub(crate) fn close_session(&self, handle: CK_SESSION_HANDLE) -> Result<()> {
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        let ended = sessions.remove(&handle).ok_or(Failure(CKR_SESSION_HANDLE_INVALID))?;
        let is_last = !sessions.values().any(|session| session.slot == ended.slot);
        let slot = self.slot(ended.slot)?;
        slot.forget_sessions(|session| session == handle);
        if is_last && slot.is_logged_in() {
            slot.log_out()?;
        }
        Ok(())
    }

    /// # Errors
    /// `CKR_SLOT_ID_INVALID`.
    pub(crate) fn close_all_sessions(&self, id: CK_SLOT_ID) -> Result<()> {
        let slot = self.slot(id)?;
        let mut sessions = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| session.slot != id);
        slot.forget_sessions(|_| true);
        if slot.is_logged_in() {
            slot.log_out()?;
        }
        Ok(())
    }

    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`.
    pub(crate) fn session_info(&self, handle: CK_SESSION_HANDLE) -> Result<CK_SESSION_INFO> {
        let session = self.session(handle)?;
        let is_user = self.slot(session.slot)?.is_logged_in();
        let (state, flags) = match (session.access, is_user) {
            (Access::ReadOnly, false) => (CKS_RO_PUBLIC_SESSION, 0),
            (Access::ReadOnly, true) => (CKS_RO_USER_FUNCTIONS, 0),
            (Access::ReadWrite, false) => (CKS_RW_PUBLIC_SESSION, CKF_RW_SESSION),
            (Access::ReadWrite, true) => (CKS_RW_USER_FUNCTIONS, CKF_RW_SESSION),
        };
        let flags = flags | CKF_SERIAL_SESSION;
        Ok(CK_SESSION_INFO { slotID: session.slot, state, flags, ulDeviceError: 0 })
    }

    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`; `CKR_USER_TYPE_INVALID`, because there is no security officer;
    /// those of [`Slot::log_in`].
    pub(crate) fn log_in(&self, handle: CK_SESSION_HANDLE, user: CK_USER_TYPE, pin: &[u8]) -> Result<()> {
        let session = self.session(handle)?;
        match user {
            CKU_USER => self.slot(session.slot)?.log_in(pin),
            CKU_CONTEXT_SPECIFIC => session.authenticate(|| self.slot(session.slot)?.check_pin(pin)),
            _ => fail(CKR_USER_TYPE_INVALID),
        }
    }

    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`; `CKR_USER_NOT_LOGGED_IN`.
    pub(crate) fn log_out(&self, handle: CK_SESSION_HANDLE) -> Result<()> {
        let slot = self.session(handle)?.slot;
        self.slot(slot)?.log_out()?;
        // They have private keys, which end now. An operation may wait for the service, and
        // sessions begin and end meanwhile.
        let sessions = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        let of_slot: Vec<_> = sessions.values().filter(|session| session.slot == slot).cloned().collect();
        drop(sessions);
        of_slot.iter().for_each(|session| session.end_operations());
        Ok(())
    }
}

impl<'a> InSession<'a> {
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`.
    pub(crate) fn new(state: &'a ModuleState, handle: CK_SESSION_HANDLE) -> Result<Self> {
        let session = state.session(handle)?;
        let slot = state.slot(session.slot)?;
        Ok(Self { slot, session })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_padded_and_cut_between_characters() {
        assert_eq!(&padded::<4>("ab"), b"ab  ");
        assert_eq!(&padded::<4>("abcde"), b"abcd");
        assert_eq!(&padded::<4>("abc\u{e9}"), b"abc ");
    }

    #[test]
    fn nothing_works_before_it_begins() {
        assert_eq!(state().err(), Some(Failure(CKR_CRYPTOKI_NOT_INITIALIZED)));
        assert_eq!(finalize(), fail(CKR_CRYPTOKI_NOT_INITIALIZED));
    }
}
