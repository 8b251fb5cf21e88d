//! Private keys on a device, by PKCS #11: they are made there, sign there and never leave it.
//!
//! [`Pkcs11`] is a backend for [`KeystoreOptions`](crate::KeystoreOptions); its name in the records
//! of keys is `pkcs11`. A key's material is the id (`CKA_ID`) that its two objects have on the
//! device: 16 random bytes. Signatures are verified in software, so that verification needs no
//! device and has the same verdicts as everywhere.
//!
//! Several threads may use the device at once, each with its own session. A device that was removed
//! gives [`Code::DeviceUnavailable`](crate::Code::DeviceUnavailable), which is retryable; when it
//! is back, the next call finds it and logs in again.
//!
//! A login belongs to the process, not to a session (PKCS #11 3.1, section 5.6): two [`Pkcs11`]
//! values for one device in one process share the first one's login.

mod backend;
mod config;
mod device;
mod guard;
mod key_provider;
mod module;

pub use self::backend::{NAME, Pkcs11};
pub use self::config::{DeviceConfig, DeviceSelector, PinSource};
pub use self::guard::DeviceGuard;
pub use self::key_provider::DeviceKeyProvider;
