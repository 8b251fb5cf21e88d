//! The keys that commands use: those of a keystore on this machine, or those of a service.

mod audit_logs;
mod key_source;
mod keys;
mod known_keys;
mod local;
mod prompt;
mod service;

pub use self::audit_logs::{Log, LogCondition, LogFolder, WitnessPolicy};
pub use self::key_source::{KeySource, keystore_folder, service_address};
pub(crate) use self::key_source::{ensure_reachable, open_log};
pub use self::keys::{BackedUp, ImportTarget, Keys, Material, PrivateFile, ReadKeys, parse_name};
pub(crate) use self::known_keys::KnownKeys;
pub(crate) use self::local::default_secret;
pub use self::local::{LocalKeystore, note_recovered, secrets};
pub(crate) use self::prompt::{Prompt, key_passphrase, passphrase_of};
pub(crate) use self::service::remote_functions;
pub use self::service::{BundleTrust, RemoteFunctions, Service, register_remote_functions};
