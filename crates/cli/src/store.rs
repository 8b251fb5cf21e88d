//! The keystore of the command line: its location, the secret that opens it, and how users name
//! keys.

mod access;
mod change;
mod guard;
mod holder;
mod import;
mod key_file_naming;
mod keys;
mod known;
mod log;
mod logs;
mod named;
mod passphrase;
mod place;
mod recording;
mod remote;
mod serving;
#[cfg(feature = "etcd")]
mod serving_etcd;

pub(crate) use self::access::{Access, NewSeal};
pub(crate) use self::guard::guard;
pub(crate) use self::holder::{Holder, log};
pub(crate) use self::import::{Material, Place, PrivateFile};
pub(crate) use self::keys::{BackedUp, Export, Keys, from_now};
pub(crate) use self::known::KnownKeys;
pub(crate) use self::log::log_key_version;
#[cfg(feature = "etcd")]
pub(crate) use self::log::{distrusted, found};
pub(crate) use self::logs::Seen;
#[cfg(feature = "etcd")]
pub(crate) use self::logs::{Log, LogFolder};
pub(crate) use self::named::Asked as AskedKey;
pub(crate) use self::passphrase::{Asked, key_passphrase, passphrase_of};
pub(crate) use self::place::{exists, parse_name, tenant};
#[cfg(feature = "etcd")]
pub(crate) use self::remote::Remote;
pub(crate) use self::serving::{FolderSource, MemorySource, print_variable};
#[cfg(feature = "etcd")]
pub(crate) use self::serving_etcd::EtcdSource;
