//! One token: finding it, logging in, its sessions, and its loss.

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
use super::fault::Fault;
use super::module::{Module, State, lock};
use crate::error::{Code, KmsError, Result};

/// The purpose of a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Using keys. These sessions are kept for later calls.
    Read,
    /// Making and deleting keys.
    Write,
}

/// A token that stays logged in.
pub(super) struct Token {
    module: Arc<Module>,
    path: PathBuf,
    name: DeviceSelector,
    pin: Option<SecretString>,
    /// The token refused the PIN once: do not try it again.
    refused: AtomicBool,
    /// Distinguishes this token's sessions from those of other tokens.
    number: u64,
    /// The slot in which the token was found, and the life of the module at that time.
    place: Mutex<Option<(u64, Slot)>>,
    turns: Turns,
}

/// A session in use.
pub(super) struct At<'a> {
    pub(super) session: &'a Session,
    /// The life of the module: handles do not outlive it.
    pub(super) life: u64,
    token: &'a Token,
    slot: Slot,
}

impl Token {
    /// Finds the token and logs in.
    pub(super) fn open(config: &DeviceConfig) -> Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let token = Self {
            module: Module::load(&config.module)?,
            path: config.module.clone(),
            name: config.token.clone(),
            pin: config.pin.as_ref().map(|source| source.read()).transpose()?,
            refused: AtomicBool::new(false),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            place: Mutex::default(),
            turns: Turns::new(config.sessions),
        };
        token.run(Access::Read, |_| Ok(()))?;
        Ok(token)
    }

    /// Does `work` on a session that no other thread uses meanwhile. If the token was lost, it
    /// tries again in a new session, and then once more after initializing the library again:
    /// `work` must be safe to repeat.
    ///
    /// # Errors
    /// [`Code::DeviceUnavailable`]; [`Code::WrongPin`], [`Code::PinLocked`]; the errors of `work`.
    pub(super) fn run<T>(&self, access: Access, work: impl Fn(&At<'_>) -> Result<T, Fault>) -> Result<T> {
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
            "cannot reach the token with {name} through {path}: {why}; try again when the token is plugged in and ready"
        );
        KmsError::new(Code::DeviceUnavailable, message)
    }

    /// One attempt, and the module's life in which it was made.
    fn attempt<T>(
        &self,
        access: Access,
        work: &impl Fn(&At<'_>) -> Result<T, Fault>,
    ) -> (u64, Result<T, Fault>) {
        let life = self.module.enter();
        if life.state == State::Down {
            return (life.number, Err(Fault::Lost("its library could not be initialized".to_owned())));
        }
        let done = self.slot(life.number).and_then(|slot| {
            let session = self.session(slot, access)?;
            let at = At { session: &session, life: life.number, token: self, slot };
            let value = work(&at)?;
            if access == Access::Read {
                self.module.keep(self.number, session);
            }
            Ok(value)
        });
        (life.number, done)
    }

    /// The slot with the token.
    fn slot(&self, life: u64) -> Result<Slot, Fault> {
        let mut place = lock(&self.place);
        if let Some((_, slot)) = place.filter(|(found, _)| *found == life) {
            return Ok(slot);
        }
        let library = self.module.library();
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for slot in library.get_slots_with_token()? {
            // If one token fails, still look at the next.
            let Ok(info) = library.get_token_info(slot) else { continue };
            let name = name_of(&info);
            if info.token_initialized() && self.name.fits(&name) {
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
                "no slot contains it; the tokens in the slots have these labels: {others:?}"
            ))),
            _ => Err(Fault::Failed(KmsError::new(
                Code::InvalidArgument,
                format!("several tokens have {}; also give the serial number", self.name),
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
            let message = "the token refused the PIN before; open the token again with the correct PIN";
            return Err(Fault::Failed(KmsError::new(Code::WrongPin, message)));
        }
        match session.login(UserType::User, self.pin.as_ref()) {
            // All sessions of a process with one token are logged in together.
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

impl At<'_> {
    /// The objects that have all these attributes.
    pub(super) fn find(&self, template: &[Attribute]) -> Result<Vec<ObjectHandle>, Fault> {
        Ok(self.session.find_objects(template)?)
    }

    /// An error unless the token is present: some libraries report a missing token only as one
    /// without objects.
    pub(super) fn check_present(&self) -> Result<(), Fault> {
        match self.token.module.library().get_token_info(self.slot) {
            Ok(info) if self.token.name.fits(&name_of(&info)) => Ok(()),
            Ok(_) => Err(Fault::Lost("another token is in its slot".to_owned())),
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

impl Drop for Token {
    fn drop(&mut self) {
        self.module.close_idle(self.number);
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("path", &self.path).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Limits how many threads use the token at the same time.
struct Turns {
    left: Mutex<usize>,
    given_back: Condvar,
}

struct Turn<'a>(&'a Turns);

impl Turns {
    fn new(most: NonZeroUsize) -> Self {
        Self { left: Mutex::new(most.get()), given_back: Condvar::new() }
    }

    /// Waits for a turn.
    fn take(&self) -> Turn<'_> {
        let waited = self.given_back.wait_while(lock(&self.left), |left| *left == 0);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.left) += 1;
        self.0.given_back.notify_one();
    }
}
