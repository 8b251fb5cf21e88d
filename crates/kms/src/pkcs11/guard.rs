//! A rollback guard on a device: it keeps a keystore's counter.

use std::sync::{Arc, Mutex};

use cryptoki::object::{Attribute, AttributeType, ObjectClass, ObjectHandle};

use super::backend::Pkcs11;
use super::device::Fault;
use super::device::{Access, Device, DeviceSession};
use super::module::lock;
use crate::error::{Code, KmsError, Result};
use crate::id::Name;
use crate::rollback::{RollbackGuard, StoreMark, rolled_back};

/// The application attribute of the guard's objects.
const APPLICATION: &[u8] = b"bulla rollback guard v1";

/// How often reading the objects is tried while other processes replace them.
const MAX_READ_ATTEMPTS: usize = 20;

/// A guard in a private data object of a device. Somebody who puts back the store needs the device
/// and its PIN to put back the guard.
///
/// The object's label is the guard's name, and its application is `bulla rollback guard v1`. Its
/// value is empty before the first store uses it, and then has the store's name (16 bytes), the
/// counter (8, big-endian) and the digest (32). A change makes the next object and then deletes the
/// previous one, so that the device always has one. If there are several, the one with the greatest
/// counter counts.
///
/// This program keeps the order of changes, not the device: few devices have a counter that only
/// grows, and it grows when they are reset.
#[derive(Clone, Debug)]
pub struct DeviceGuard {
    device: Arc<Device>,
    name: Name,
    /// Makes threads take turns. Processes detect each other's changes.
    turn: Arc<Mutex<()>>,
}

/// The content of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GuardMark {
    store: [u8; 16],
    counter: u64,
    digest: [u8; 32],
}

impl GuardMark {
    fn to_bytes(self) -> Vec<u8> {
        [&self.store[..], &self.counter.to_be_bytes(), &self.digest].concat()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (store, rest) = bytes.split_first_chunk()?;
        let (counter, digest) = rest.split_first_chunk()?;
        Some(Self { store: *store, counter: u64::from_be_bytes(*counter), digest: digest.try_into().ok()? })
    }
}

impl DeviceGuard {
    /// The guard with this name on the device. It is read on each use.
    ///
    /// # Errors
    /// The errors of [`Pkcs11::open`].
    pub fn new(device: &Pkcs11, name: Name) -> Result<Self> {
        Ok(Self { device: device.device()?, name, turn: Arc::default() })
    }

    /// Makes a guard that no store has used yet.
    ///
    /// # Errors
    /// [`Code::AlreadyExists`] if the device has a guard with this name; errors of the device.
    pub fn create(device: &Pkcs11, name: Name) -> Result<Self> {
        let guard = Self::new(device, name)?;
        guard.device.run(Access::Write, |session| {
            if !guard.objects(session)?.is_empty() {
                let message = format!("the device already has a rollback guard {}", guard.name);
                return Err(Fault::Failed(KmsError::new(Code::AlreadyExists, message)));
            }
            guard.write(session, Vec::new())
        })?;
        Ok(guard)
    }

    fn template(&self) -> Vec<Attribute> {
        vec![
            Attribute::Class(ObjectClass::DATA),
            Attribute::Application(APPLICATION.to_vec()),
            Attribute::Label(self.name.as_str().as_bytes().to_vec()),
        ]
    }

    fn objects(&self, session: &DeviceSession<'_>) -> Result<Vec<ObjectHandle>, Fault> {
        session.find(&self.template())
    }

    fn write(&self, session: &DeviceSession<'_>, value: Vec<u8>) -> Result<(), Fault> {
        let mut template = self.template();
        template.extend([Attribute::Token(true), Attribute::Private(true), Attribute::Value(value)]);
        session.raw.create_object(&template)?;
        Ok(())
    }

    /// The newest known state, and the objects with that state or an older one.
    fn read(&self, session: &DeviceSession<'_>) -> Result<(Option<GuardMark>, Vec<ObjectHandle>), Fault> {
        for _ in 1..MAX_READ_ATTEMPTS {
            match self.read_once(session) {
                // Another process may have replaced the object since it was found.
                Err(Fault::Lost(_)) => session.check_present()?,
                done => return done,
            }
        }
        self.read_once(session)
    }

    fn read_once(
        &self,
        session: &DeviceSession<'_>,
    ) -> Result<(Option<GuardMark>, Vec<ObjectHandle>), Fault> {
        let objects = self.objects(session)?;
        if objects.is_empty() {
            session.check_present()?;
            let message = format!(
                "the device has no rollback guard {}: the guard was deleted, or is on another device",
                self.name
            );
            return Err(Fault::Failed(KmsError::new(Code::GuardMismatch, message)));
        }
        let mut newest: Option<GuardMark> = None;
        for object in &objects {
            let value = match &session.raw.get_attributes(*object, &[AttributeType::Value])?[..] {
                [Attribute::Value(value)] => value.clone(),
                _ => Vec::new(),
            };
            if value.is_empty() {
                continue;
            }
            let known = GuardMark::parse(&value).ok_or_else(|| self.mismatch("is damaged"))?;
            match newest {
                Some(other) if other.store != known.store => {
                    return Err(self.mismatch("belongs to two keystores"));
                }
                Some(other) if other.counter >= known.counter => {}
                _ => newest = Some(known),
            }
        }
        Ok((newest, objects))
    }

    fn mismatch(&self, why: &str) -> Fault {
        let message = format!("the rollback guard {} on the device {why}", self.name);
        Fault::Failed(KmsError::new(Code::GuardMismatch, message))
    }

    fn check_against(&self, known: &GuardMark, mark: &StoreMark) -> Result<(), Fault> {
        if known.store != mark.store {
            return Err(self.mismatch("belongs to another keystore"));
        }
        if mark.counter < known.counter {
            return Err(Fault::Failed(rolled_back(mark.counter, known.counter)));
        }
        if mark.counter == known.counter && mark.digest != known.digest {
            let message = format!(
                "the keystore is not the copy that the device knows: its change {} differs",
                mark.counter
            );
            return Err(Fault::Failed(KmsError::new(Code::RolledBack, message)));
        }
        Ok(())
    }
}

impl RollbackGuard for DeviceGuard {
    fn check(&self, mark: &StoreMark) -> Result<()> {
        let _turn = lock(&self.turn);
        self.device.run(Access::Read, |session| match self.read(session)? {
            (Some(known), _) => self.check_against(&known, mark),
            (None, _) => Ok(()),
        })
    }

    fn advance(&self, mark: &StoreMark) -> Result<()> {
        let _turn = lock(&self.turn);
        self.device.run(Access::Write, |session| {
            let (known, objects) = self.read(session)?;
            if let Some(known) = known {
                if known.store == mark.store && known.counter > mark.counter {
                    return Ok(());
                }
                self.check_against(&known, mark)?;
                if known.counter == mark.counter {
                    return Ok(());
                }
            }
            let next = GuardMark { store: mark.store, counter: mark.counter, digest: mark.digest };
            self.write(session, next.to_bytes())?;
            for object in objects {
                // Another process may have been quicker.
                let _ = session.raw.destroy_object(object);
            }
            Ok(())
        })
    }
}
