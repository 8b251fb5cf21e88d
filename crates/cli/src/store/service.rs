//! What only the program `bulla-remote` can do: use the keys of a service, tokens, and
//! certificates. The crates for that are many, and `bulla` does not have them.

use super::audit_logs::Log;
use super::keys::Keys;
use crate::args::{KeysCsrArgs, KeysExportArgs, ServerArgs};
use crate::error::Result;
use crate::programs::REMOTE;
use bulla_kms::audit_log::Checkpoint;
use std::sync::OnceLock;

/// A service that has keys.
pub trait Service: Send {
    /// Its keys.
    fn keys(&self) -> Box<dyn Keys + Send + Sync>;

    /// Its audit log.
    fn log(&self) -> Box<dyn Log>;

    /// Makes a checkpoint of its audit log.
    fn make_checkpoint(&self) -> Result<Checkpoint>;
}

/// The functions of `bulla-remote` that commands of bulla need.
pub trait RemoteFunctions: Sync {
    /// Returns the service at an address. It is not asked anything yet.
    fn service(&self, address: &str, args: &ServerArgs) -> Result<Box<dyn Service>>;

    /// Carries out `bulla keys export`, which needs a token.
    fn export_key(&self, args: &KeysExportArgs) -> Result<()>;

    /// Carries out `bulla keys csr`, which needs the library of certificates.
    fn request_certificate(&self, args: &KeysCsrArgs) -> Result<()>;
}

static FUNCTIONS: OnceLock<&'static dyn RemoteFunctions> = OnceLock::new();

/// Tells the commands that this process has the functions. Call it before any command runs.
pub fn register_remote_functions(functions: &'static dyn RemoteFunctions) {
    let _ = FUNCTIONS.set(functions);
}

/// The functions, if this process has them. Otherwise, it becomes `bulla-remote` with the same
/// arguments.
///
/// # Errors
/// The program is missing, or cannot be started.
pub(crate) fn remote_functions() -> Result<&'static dyn RemoteFunctions> {
    match FUNCTIONS.get() {
        Some(functions) => Ok(*functions),
        None => Err(REMOTE.start_same()),
    }
}
