//! Signatures of RSA and message authentication codes with keys of a session. Those of curves are
//! made as those of the service's keys, see `signing`.

use std::sync::Arc;

use aws_lc_rs::hmac;
use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::error::{Failure, Result, fail, require};
use crate::object::Object;
use crate::operation::digest::Hasher;
use crate::operation::mechanism::{Mechanism, Parameters, can_sign};
use crate::session::key::SessionKey;
use crate::session::rsa::{RsaScheme, sign, verify};

/// The longest data that RSA signs without a hash function, for the longest keys.
const MAX_RAW_LEN: usize = 1024;

/// A signature that is being made or verified.
pub(crate) struct SessionSignature {
    object: Arc<Object>,
    input: Input,
}

/// What is signed so far, and how.
enum Input {
    Raw(RsaScheme, Zeroizing<Vec<u8>>),
    Hash(RsaScheme, Box<Hasher>),
    /// With the length of the code.
    Hmac(Box<hmac::Context>, usize),
}

impl SessionSignature {
    /// # Errors
    /// `CKR_MECHANISM_INVALID`; `CKR_KEY_TYPE_INCONSISTENT`; `CKR_KEY_FUNCTION_NOT_PERMITTED`;
    /// `CKR_MECHANISM_PARAM_INVALID`.
    pub(crate) fn new(mechanism: &Mechanism, object: Arc<Object>, flag: CK_ATTRIBUTE_TYPE) -> Result<Self> {
        require(can_sign(mechanism.kind), CKR_MECHANISM_INVALID)?;
        object.permits(mechanism.kind, flag)?;
        let inconsistent = |failure: Failure| match failure.0 {
            CKR_MECHANISM_INVALID => Failure(CKR_KEY_TYPE_INCONSISTENT),
            _ => failure,
        };
        let input = match object.session_key.as_deref() {
            Some(SessionKey::Rsa(_) | SessionKey::RsaPublic(_)) => {
                let scheme = RsaScheme::of(mechanism).map_err(inconsistent)?;
                match scheme.hashes() {
                    Some(hash) => Input::Hash(scheme, Box::new(hash.hasher())),
                    None => Input::Raw(scheme, Zeroizing::default()),
                }
            }
            _ => {
                let (algorithm, kind) = hmac_algorithm(mechanism.kind).map_err(inconsistent)?;
                let has_kind =
                    |kind: CK_KEY_TYPE| object.attributes.get(CKA_KEY_TYPE) == Some(&kind.to_ne_bytes());
                require(has_kind(kind) || has_kind(CKK_GENERIC_SECRET), CKR_KEY_TYPE_INCONSISTENT)?;
                require(mechanism.parameters == Parameters::None, CKR_MECHANISM_PARAM_INVALID)?;
                let key = hmac::Key::new(algorithm, object.secret()?);
                Input::Hmac(Box::new(hmac::Context::with_key(&key)), algorithm.tag_len())
            }
        };
        Ok(Self { object, input })
    }

    /// The length of the signature.
    pub(crate) fn output_len(&self) -> usize {
        use rsa::traits::PublicKeyParts as _;
        match (&self.input, self.object.session_key.as_deref()) {
            (_, Some(SessionKey::Rsa(key))) => key.size(),
            (_, Some(SessionKey::RsaPublic(key))) => key.size(),
            (Input::Hmac(_, length), _) => *length,
            _ => 0,
        }
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE` if it becomes longer than any key signs.
    pub(crate) fn update(&mut self, data: &[u8]) -> Result<()> {
        match &mut self.input {
            Input::Raw(_, all) => {
                let left = MAX_RAW_LEN - all.len();
                require(data.len() <= left, CKR_DATA_LEN_RANGE)?;
                // A buffer that does not grow leaves no copy behind.
                all.reserve_exact(left);
                all.extend_from_slice(data);
            }
            Input::Hash(_, hasher) => hasher.update(data),
            Input::Hmac(context, _) => context.update(data),
        }
        Ok(())
    }

    /// Signs, with a last piece.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE`; `CKR_DEVICE_ERROR`.
    pub(crate) fn sign(mut self, rest: &[u8]) -> Result<Vec<u8>> {
        self.update(rest)?;
        let (scheme, data) = match self.input {
            Input::Hmac(context, _) => return Ok(context.sign().as_ref().to_vec()),
            Input::Raw(scheme, data) => (scheme, data),
            Input::Hash(scheme, hasher) => (scheme, Zeroizing::new(hasher.finish())),
        };
        match self.object.session_key.as_deref() {
            Some(SessionKey::Rsa(key)) => sign(key, scheme, &data),
            _ => fail(CKR_GENERAL_ERROR),
        }
    }

    /// Verifies, with a last piece.
    ///
    /// # Errors
    /// `CKR_SIGNATURE_LEN_RANGE`; `CKR_SIGNATURE_INVALID`; `CKR_DATA_LEN_RANGE`.
    pub(crate) fn verify(mut self, rest: &[u8], signature: &[u8]) -> Result<()> {
        self.update(rest)?;
        let (scheme, data) = match self.input {
            Input::Hmac(context, _) => {
                let mac = context.sign();
                require(signature.len() == mac.as_ref().len(), CKR_SIGNATURE_LEN_RANGE)?;
                let same = aws_lc_rs::constant_time::verify_slices_are_equal(mac.as_ref(), signature);
                return same.map_err(|_| Failure(CKR_SIGNATURE_INVALID));
            }
            Input::Raw(scheme, data) => (scheme, data),
            Input::Hash(scheme, hasher) => (scheme, Zeroizing::new(hasher.finish())),
        };
        match self.object.session_key.as_deref() {
            Some(SessionKey::RsaPublic(key)) => verify(key, scheme, &data, signature),
            _ => fail(CKR_GENERAL_ERROR),
        }
    }
}

/// The algorithm of a mechanism, and the type of the keys that are for it alone.
fn hmac_algorithm(kind: CK_MECHANISM_TYPE) -> Result<(hmac::Algorithm, CK_KEY_TYPE)> {
    Ok(match kind {
        CKM_SHA_1_HMAC => (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, CKK_SHA_1_HMAC),
        CKM_SHA224_HMAC => (hmac::HMAC_SHA224, CKK_SHA224_HMAC),
        CKM_SHA256_HMAC => (hmac::HMAC_SHA256, CKK_SHA256_HMAC),
        CKM_SHA384_HMAC => (hmac::HMAC_SHA384, CKK_SHA384_HMAC),
        CKM_SHA512_HMAC => (hmac::HMAC_SHA512, CKK_SHA512_HMAC),
        _ => return fail(CKR_MECHANISM_INVALID),
    })
}
