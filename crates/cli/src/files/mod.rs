//! Files as they are on a real disk: odd names, links, special files, files that change while they
//! are read.

pub(crate) mod atomic;
pub(crate) mod kind;
pub(crate) mod order;
pub(crate) mod outboard;
pub(crate) mod read;
pub(crate) mod replaceable;
pub(crate) mod secret;
pub(crate) mod sidecar;
pub(crate) mod size;

/// The name of standard input, and of standard output for commands that write.
pub(crate) const STDIN: &str = "-";
