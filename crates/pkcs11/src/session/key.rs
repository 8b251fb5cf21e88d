//! Keys that live in the module's memory until their session ends. They are never sent to the
//! service, and the service's keys never come here: what programs use for keys of a session
//! computes with these, and nothing else.
//!
//! The value of a secret key is an attribute of its object, which wipes its memory. Private keys of
//! RSA and of curves are also kept as the libraries compute with them, which wipe theirs.

use cryptoki_sys::*;
use rsa::{PrivateKey, PublicKey};

use crate::error::{Failure, Result, require};
use crate::object::Object;
use crate::operation::cipher::Direction;
use crate::session::aes;
use crate::session::curve::CurvePrivateKey;

/// The longest value of a secret key in bytes.
pub(crate) const MAX_SECRET_LEN: usize = 4096;

/// What a key of a session computes with.
pub(crate) enum SessionKey {
    /// A key of AES or another secret: its value is an attribute.
    Secret,
    Curve(CurvePrivateKey),
    Rsa(Box<PrivateKey>),
    RsaPublic(PublicKey),
}

impl Object {
    /// The value of a secret key of a session.
    ///
    /// # Errors
    /// `CKR_KEY_TYPE_INCONSISTENT` if the object is something else.
    pub(crate) fn secret(&self) -> Result<&[u8]> {
        let is_secret = matches!(self.session_key.as_deref(), Some(SessionKey::Secret));
        let value = self.attributes.get(CKA_VALUE).filter(|_| is_secret);
        value.ok_or(Failure(CKR_KEY_TYPE_INCONSISTENT))
    }

    /// The value of a key of AES of a session.
    ///
    /// # Errors
    /// As for [`Self::secret`].
    pub(crate) fn aes_key(&self) -> Result<&[u8]> {
        let is_aes = self.attributes.get(CKA_KEY_TYPE) == Some(&CKK_AES.to_ne_bytes());
        require(is_aes, CKR_KEY_TYPE_INCONSISTENT)?;
        self.secret()
    }

    /// Checks whether a key of a session may be used by a mechanism for something.
    ///
    /// # Errors
    /// `CKR_KEY_FUNCTION_NOT_PERMITTED`; `CKR_MECHANISM_INVALID` if the program that made the key
    /// did not allow the mechanism.
    pub(crate) fn permits(&self, mechanism: CK_MECHANISM_TYPE, flag: CK_ATTRIBUTE_TYPE) -> Result<()> {
        require(self.attributes.is_set(flag), CKR_KEY_FUNCTION_NOT_PERMITTED)?;
        self.allows(mechanism)
    }

    /// Checks whether the program that made a key of a session allowed a mechanism.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID`.
    pub(crate) fn allows(&self, mechanism: CK_MECHANISM_TYPE) -> Result<()> {
        let Some(allowed) = self.attributes.get(CKA_ALLOWED_MECHANISMS) else { return Ok(()) };
        let mut allowed = allowed.chunks_exact(size_of::<CK_MECHANISM_TYPE>());
        require(allowed.any(|one| one == mechanism.to_ne_bytes()), CKR_MECHANISM_INVALID)
    }
}

/// Encrypts data with a key of AES, from which another key is then derived.
///
/// # Errors
/// `CKR_KEY_TYPE_INCONSISTENT`; `CKR_KEY_FUNCTION_NOT_PERMITTED`; `CKR_MECHANISM_PARAM_INVALID` for
/// data that is not whole blocks.
pub(crate) fn encrypt_data(
    base: &Object,
    mechanism: CK_MECHANISM_TYPE,
    iv: Option<[u8; 16]>,
    data: &[u8],
) -> Result<zeroize::Zeroizing<Vec<u8>>> {
    base.permits(mechanism, CKA_DERIVE)?;
    let key = base.aes_key()?;
    let is_whole = !data.is_empty() && data.len().is_multiple_of(aes::BLOCK_LEN);
    require(is_whole, CKR_MECHANISM_PARAM_INVALID)?;
    let mode = iv.map_or(aes::Mode::Ecb, aes::Mode::Cbc);
    let mut out = zeroize::Zeroizing::new(data.to_vec());
    aes::whole_blocks(key, mode, Direction::Encrypt)?(&mut out);
    Ok(out)
}
