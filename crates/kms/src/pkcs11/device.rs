//! One device: finding it, logging in, its sessions, and its loss.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use cryptoki::error::{Error, RvError};
use cryptoki::object::{Attribute, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::{Slot, TokenInfo};
use secrecy::SecretString;

use super::config::{DeviceConfig, DeviceSelector};
use super::module::{LibraryState, Module, lock};
use crate::error::{Code, KmsError, Result};

/// The purpose of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Using keys. These sessions are kept for later calls.
    Read,
    /// Making and deleting keys.
    Write,
}

/// A device that stays logged in.
pub(super) struct Device {
    module: Arc<Module>,
    path: PathBuf,
    name: DeviceSelector,
    pin: Option<SecretString>,
    /// The device refused the PIN once: do not try it again.
    refused: AtomicBool,
    /// Distinguishes this device's sessions from those of other devices.
    number: u64,
    /// The slot in which the device was found, and the life of the module at that time.
    place: Mutex<Option<(u64, Slot)>>,
    turns: SessionLimit,
}

/// A session in use.
pub(super) struct DeviceSession<'a> {
    pub(super) raw: &'a Session,
    /// The life of the module: handles do not outlive it.
    pub(super) life: u64,
    device: &'a Device,
    slot: Slot,
}

impl Device {
    /// Finds the device and logs in.
    pub(super) fn open(config: &DeviceConfig) -> Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let device = Self {
            module: Module::load(&config.module)?,
            path: config.module.clone(),
            name: config.device.clone(),
            pin: config.pin.as_ref().map(|source| source.read()).transpose()?,
            refused: AtomicBool::new(false),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            place: Mutex::default(),
            turns: SessionLimit::new(config.sessions),
        };
        device.run(Access::Read, |_| Ok(()))?;
        Ok(device)
    }

    /// Does `work` on a session that no other thread uses meanwhile. If the device was lost, it
    /// tries again in a new session, and then once more after initializing the library again:
    /// `work` must be safe to repeat.
    ///
    /// # Errors
    /// [`Code::DeviceUnavailable`]; [`Code::WrongPin`], [`Code::PinLocked`]; the errors of `work`.
    pub(super) fn run<T>(
        &self,
        access: Access,
        work: impl Fn(&DeviceSession<'_>) -> Result<T, Fault>,
    ) -> Result<T> {
        // Take the turn before entering the module's life: a life cannot end while a thread that
        // waits here holds it.
        let _turn = self.turns.take();
        let mut why = match self.attempt(access, &work) {
            (_, Ok(value)) => return Ok(value),
            (_, Err(Fault::Failed(error))) => return Err(error),
            (_, Err(Fault::Lost(why))) => why,
        };
        self.module.close_idle(self.number);
        *lock(&self.place) = None;
        let life = match self.attempt(access, &work) {
            (_, Ok(value)) => return Ok(value),
            (_, Err(Fault::Failed(error))) => return Err(error),
            (life, Err(Fault::Lost(_))) => life,
        };
        if self.module.restart(life) {
            why = match self.attempt(access, &work) {
                (_, Ok(value)) => return Ok(value),
                (_, Err(Fault::Failed(error))) => return Err(error),
                (_, Err(Fault::Lost(why))) => why,
            };
        }
        Err(self.unavailable(&why))
    }

    fn unavailable(&self, why: &str) -> KmsError {
        let (name, path) = (&self.name, self.path.display());
        let message = format!(
            "cannot reach the device with {name} through {path}: {why}; try again when the device is plugged in and ready"
        );
        KmsError::new(Code::DeviceUnavailable, message)
    }

    /// One attempt, and the module's life in which it was made.
    fn attempt<T>(
        &self,
        access: Access,
        work: &impl Fn(&DeviceSession<'_>) -> Result<T, Fault>,
    ) -> (u64, Result<T, Fault>) {
        let life = self.module.enter();
        if life.state == LibraryState::Down {
            return (life.number, Err(Fault::Lost("its library could not be initialized".to_owned())));
        }
        let done = self.slot(life.number).and_then(|slot| {
            let raw = self.session(slot, access)?;
            let session = DeviceSession { raw: &raw, life: life.number, device: self, slot };
            let value = work(&session)?;
            if access == Access::Read {
                self.module.keep(self.number, raw);
            }
            Ok(value)
        });
        (life.number, done)
    }

    /// The slot with the device.
    fn slot(&self, life: u64) -> Result<Slot, Fault> {
        let mut place = lock(&self.place);
        if let Some((_, slot)) = place.filter(|(found, _)| *found == life) {
            return Ok(slot);
        }
        let library = self.module.library();
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for slot in library.get_slots_with_token()? {
            // If one device fails, still look at the next.
            let Ok(info) = library.get_token_info(slot) else { continue };
            let name = name_of(&info);
            if info.token_initialized() && self.name.matches(&name) {
                found.push(slot);
            } else if info.token_initialized() {
                others.push(name.label.unwrap_or_default());
            }
        }
        match found[..] {
            [slot] => {
                *place = Some((life, slot));
                Ok(slot)
            }
            [] => Err(Fault::Lost(format!(
                "no slot contains it; the devices in the slots have these labels: {others:?}"
            ))),
            _ => Err(Fault::Failed(KmsError::new(
                Code::InvalidArgument,
                format!("several devices have {}; also give the serial number", self.name),
            ))),
        }
    }

    /// A session that is logged in.
    fn session(&self, slot: Slot, access: Access) -> Result<Session, Fault> {
        if access == Access::Read
            && let Some(session) = self.module.take_idle(self.number)
        {
            return Ok(session);
        }
        let library = self.module.library();
        let session = match access {
            Access::Read => library.open_ro_session(slot)?,
            Access::Write => library.open_rw_session(slot)?,
        };
        self.log_in(&session)?;
        Ok(session)
    }

    fn log_in(&self, session: &Session) -> Result<(), Fault> {
        if self.refused.load(Ordering::Relaxed) {
            let message = "the device refused the PIN before; open the device again with the correct PIN";
            return Err(Fault::Failed(KmsError::new(Code::WrongPin, message)));
        }
        match session.login(UserType::User, self.pin.as_ref()) {
            // All sessions of a process with one device are logged in together.
            Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(()),
            Err(error) => {
                let fault = Fault::from(error);
                if let Fault::Failed(KmsError { code: Code::WrongPin | Code::PinLocked, .. }) = &fault {
                    self.refused.store(true, Ordering::Relaxed);
                }
                Err(fault)
            }
        }
    }
}

impl DeviceSession<'_> {
    /// The objects that have all these attributes.
    pub(super) fn find(&self, template: &[Attribute]) -> Result<Vec<ObjectHandle>, Fault> {
        Ok(self.raw.find_objects(template)?)
    }

    /// An error unless the device is present: some libraries report a missing device only as one
    /// without objects.
    pub(super) fn check_present(&self) -> Result<(), Fault> {
        match self.device.module.library().get_token_info(self.slot) {
            Ok(info) if self.device.name.matches(&name_of(&info)) => Ok(()),
            Ok(_) => Err(Fault::Lost("another device is in its slot".to_owned())),
            Err(error) => Err(Fault::Lost(error.to_string())),
        }
    }
}

fn name_of(info: &TokenInfo) -> DeviceSelector {
    let text = |text: &str| Some(text.trim_end().to_owned());
    DeviceSelector {
        label: text(info.label()),
        serial: text(info.serial_number()),
        manufacturer: text(info.manufacturer_id()),
        model: text(info.model()),
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        self.module.close_idle(self.number);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("path", &self.path).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Limits how many threads use the device at the same time.
struct SessionLimit {
    left: Mutex<usize>,
    given_back: Condvar,
}

struct SessionTurn<'a>(&'a SessionLimit);

impl SessionLimit {
    fn new(most: NonZeroUsize) -> Self {
        Self { left: Mutex::new(most.get()), given_back: Condvar::new() }
    }

    /// Waits for a turn.
    fn take(&self) -> SessionTurn<'_> {
        let waited = self.given_back.wait_while(lock(&self.left), |left| *left == 0);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        SessionTurn(self)
    }
}

impl Drop for SessionTurn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.left) += 1;
        self.0.given_back.notify_one();
    }
}

/// The reason why an operation on a device failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The session, the device or the library was lost. The call may succeed in a new session, or
    /// when the device is back.
    Lost(String),
    /// Trying again does not help.
    Failed(KmsError),
}

impl Fault {
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(KmsError::new(Code::DeviceFailed, message))
    }
}

impl From<KmsError> for Fault {
    fn from(error: KmsError) -> Self {
        Self::Failed(error)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let Error::Pkcs11(value, _) = &error else {
            return Self::Failed(
                KmsError::new(Code::DeviceFailed, format!("the device's library: {error}"))
                    .with_source(error),
            );
        };
        let code = match value {
            // Some libraries, such as SoftHSM, return only a general error for a device that is
            // gone.
            RvError::CryptokiNotInitialized
            | RvError::DeviceError
            | RvError::DeviceRemoved
            | RvError::FunctionFailed
            | RvError::GeneralError
            | RvError::KeyHandleInvalid
            | RvError::ObjectHandleInvalid
            | RvError::SessionClosed
            | RvError::SessionHandleInvalid
            | RvError::SlotIdInvalid
            | RvError::TokenNotPresent
            | RvError::TokenNotRecognized
            | RvError::UserNotLoggedIn => return Self::Lost(error.to_string()),
            RvError::PinIncorrect | RvError::PinInvalid | RvError::PinLenRange | RvError::PinExpired => {
                Code::WrongPin
            }
            RvError::PinLocked => Code::PinLocked,
            RvError::SessionCount | RvError::DeviceMemory | RvError::HostMemory => Code::Busy,
            RvError::MechanismInvalid | RvError::CurveNotSupported | RvError::FunctionNotSupported => {
                Code::UnsupportedAlgorithm
            }
            _ => Code::DeviceFailed,
        };
        let message = match code {
            Code::WrongPin => {
                "the device refuses the PIN; bulla does not try it again, because devices lock themselves after a few wrong PINs"
                    .to_owned()
            }
            Code::PinLocked => {
                "the device is locked after too many wrong PINs; its security officer can unlock it".to_owned()
            }
            Code::Busy => format!("the device has no room now for another session or object: {error}"),
            _ => format!("the device refuses: {error}"),
        };
        Self::Failed(KmsError::new(code, message).with_source(error))
    }
}
