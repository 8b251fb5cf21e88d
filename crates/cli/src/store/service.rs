//! What only the program `bulla-remote` can do: use the keys of a service, and tokens, request
//! certificates, and verify certificates and logs. The crates for that are many, and `bulla` does
//! not have them.

use super::audit_logs::Log;
use super::keys::Keys;
use crate::args::{BundleTrustArgs, KeysCsrArgs, KeysExportArgs, ServerArgs};
use crate::error::Result;
use crate::programs::REMOTE;
use bulla_formats::sigstore::SigstoreBundle;
use bulla_formats::{Evidence, EvidenceError, MessageKey};
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

/// What the flags trust in bundles of Sigstore, besides keys. `covered` is what
/// [`SigstoreBundle::coverage`] names, and None for a bundle with an envelope.
pub trait BundleTrust: Send + Sync {
    /// Verifies what vouches for a bundle that a key signed. None if the flags ask for nothing.
    fn verify_key(
        &self,
        bundle: &SigstoreBundle,
        key: MessageKey<'_>,
        covered: Option<&[u8]>,
    ) -> Option<std::result::Result<Evidence, EvidenceError>>;

    /// Verifies a bundle that was made under a certificate.
    fn verify_certificate(
        &self,
        bundle: &SigstoreBundle,
        covered: Option<&[u8]>,
    ) -> std::result::Result<Evidence, EvidenceError>;
}

/// The functions of `bulla-remote` that commands of bulla need.
pub trait RemoteFunctions: Sync {
    /// Returns the service at an address. It is not asked anything yet.
    fn service(&self, address: &str, args: &ServerArgs) -> Result<Box<dyn Service>>;

    /// Carries out `bulla keys export`, which needs a token.
    fn export_key(&self, args: &KeysExportArgs) -> Result<()>;

    /// Carries out `bulla keys csr`, which needs the library of certificates.
    fn request_certificate(&self, args: &KeysCsrArgs) -> Result<()>;

    /// Reads the files that the flags about bundles name.
    fn bundle_trust(&self, args: &BundleTrustArgs) -> Result<Box<dyn BundleTrust>>;
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
