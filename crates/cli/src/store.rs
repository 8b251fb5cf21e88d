//! The keystore of the command line: its location, the secret that opens it, and how users name keys.

mod access;
mod change;
mod guard;
mod key_file_naming;
mod keys;
mod log;
mod passphrase;
mod place;
mod recording;
mod serving;

pub(crate) use self::access::{Access, NewSeal};
pub(crate) use self::guard::guard;
pub(crate) use self::keys::{Named, ensure_default};
pub(crate) use self::passphrase::{Asked, key_passphrase, passphrase_of};
pub(crate) use self::place::{exists, log_folder, parse_name, tenant};
pub(crate) use self::serving::{FolderSource, MemorySource};
