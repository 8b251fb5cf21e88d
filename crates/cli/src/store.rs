//! The keys that commands use: those of a keystore on this machine, or those of a service.

mod audit_logs;
mod key_source;
mod keys;
mod known_keys;
mod local;
mod prompt;
mod remote;

pub use self::audit_logs::{Log, LogCondition, LogFolder, WitnessPolicy};
pub use self::key_source::keystore_folder;
pub(crate) use self::key_source::{KeySource, open_log};
pub(crate) use self::keys::{BackedUp, Export, ImportTarget, Keys, Material, PrivateFile, parse_name};
pub(crate) use self::known_keys::KnownKeys;
pub(crate) use self::local::{LocalKeystore, default_secret};
pub use self::local::{note_recovered, secrets};
pub(crate) use self::prompt::{Prompt, key_passphrase, passphrase_of};
pub use self::remote::Remote;
pub(crate) use self::remote::given_token;
