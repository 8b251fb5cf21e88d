//! What keys do: signatures, encryption, derived keys and digests, each under a mechanism. With a
//! key of the service, the service computes; with one of a session, `session` does.

pub(crate) mod cipher;
pub(crate) mod derive;
pub(crate) mod digest;
pub(crate) mod mechanism;
pub(crate) mod signing;
