//! What several modules of tests use.

pub(crate) mod chaos;
pub(crate) mod child;
#[cfg(feature = "pkcs11")]
pub(crate) mod softhsm;
