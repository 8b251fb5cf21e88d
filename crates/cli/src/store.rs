//! The keys that commands use: those of a keystore on this machine, or those of a service.

mod audit_logs;
mod key_source;
mod keys;
mod known_keys;
mod local;
mod prompt;
mod remote;
mod serving;
#[cfg(feature = "etcd")]
mod serving_etcd;

pub(crate) use self::audit_logs::LogCondition;
#[cfg(feature = "etcd")]
pub(crate) use self::audit_logs::{Log, LogFolder};
pub(crate) use self::key_source::{KeySource, keystore_folder, open_log};
pub(crate) use self::keys::{
    BackedUp, Export, ImportTarget, Keys, Material, PrivateFile, parse_name, time_from_now,
};
pub(crate) use self::known_keys::KnownKeys;
pub(crate) use self::local::{LocalKeystore, default_secret};
pub(crate) use self::prompt::{Prompt, key_passphrase, passphrase_of};
#[cfg(feature = "etcd")]
pub(crate) use self::remote::Remote;
pub(crate) use self::serving::{FolderSource, MemorySource, print_variable};
#[cfg(feature = "etcd")]
pub(crate) use self::serving_etcd::EtcdSource;
