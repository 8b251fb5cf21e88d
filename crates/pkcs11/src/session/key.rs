//! Keys that live in the module's memory until their session ends. They are never sent to the
//! service, and the service's keys never come here: what programs use for keys of a session
//! computes with these, and nothing else.
//!
//! The value of a secret key is an attribute of its object, which wipes its memory. Private keys of
//! RSA and of curves are also kept as the libraries compute with them, which wipe theirs.

use rsa::{PrivateKey, PublicKey};

use crate::session::curve::CurvePrivateKey;

/// What a key of a session computes with.
pub(crate) enum SessionKey {
    /// A key of AES or another secret: its value is an attribute.
    Secret,
    Curve(CurvePrivateKey),
    Rsa(Box<PrivateKey>),
    RsaPublic(PublicKey),
}
