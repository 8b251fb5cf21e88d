//! Keys that sign X.509 certificates: which ones, and what of a certificate is recorded.
//!
//! Of what callers bring, a key with such a policy signs certificates that the policy permits, and
//! the certificate of its own public key: by itself, or as a request to another authority. Its
//! statements (signature files, attestations) pass for no certificate. The keystore reads what it
//! signs (RFC 5280, section 4.1: TBSCertificate), so nobody gets around the policy, whichever
//! program asks.

mod certificate;
mod policy;

pub use self::certificate::{X509CertificateKind, X509CertificateSummary, X509Usage};
pub use self::policy::X509Authority;
pub(crate) use self::policy::fuzz;
