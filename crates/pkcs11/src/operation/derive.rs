//! Keys that are derived from others: the secret that a key shares with the holder of a peer's
//! private key (Diffie-Hellman on a curve), and data that a key of AES encrypted.
//!
//! The service gives the shared secret itself, because each protocol derives its keys in another
//! way. What is derived is a key of the session, and a program reads it unless it asked for one
//! that is sensitive.

use std::sync::Arc;

use bulla_kms::{Algorithm, PublicKey};
use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::backend::Backend;
use crate::error::{Failure, Result, fail, require};
use crate::object::Object;
use crate::object::attributes::{Attribute, Template};
use crate::object::public::peer_point;
use crate::operation::digest::{of_kdf, x963};
use crate::operation::mechanism::{Direction, MAX_SECRET_LEN, Mechanism, Parameters, agrees};
use crate::session::aes;
use crate::session::key::SessionKey;
use crate::session::template::{Origin, secret_key};

/// Derives a key of a session.
///
/// # Errors
/// `CKR_MECHANISM_INVALID`; `CKR_KEY_TYPE_INCONSISTENT`; `CKR_KEY_FUNCTION_NOT_PERMITTED`;
/// `CKR_MECHANISM_PARAM_INVALID`; codes about the template; those of the service.
pub(crate) fn derive(
    mechanism: Mechanism,
    base: &Object,
    backend: impl FnOnce() -> Result<Arc<dyn Backend>>,
    template: &[Attribute],
    session: CK_SESSION_HANDLE,
) -> Result<Object> {
    match (mechanism.kind, mechanism.parameters) {
        (CKM_ECDH1_DERIVE, Parameters::Ecdh { kdf, shared_data, public_data }) => {
            let agreement = Agreement { base, kdf, shared_data, public_data };
            agreement.run(backend, template, session)
        }
        (kind @ (CKM_AES_ECB_ENCRYPT_DATA | CKM_AES_CBC_ENCRYPT_DATA), Parameters::Data { iv, data }) => {
            let encrypted = encrypt_data(base, kind, iv, &data)?;
            let wanted = Wanted::of(template, encrypted.len())?;
            // The data decide how much there is.
            require(wanted.length <= encrypted.len(), CKR_MECHANISM_PARAM_INVALID)?;
            let value = &encrypted[..wanted.length];
            secret_key(template, wanted.kind, value, Origin::derived(base), session)
        }
        (CKM_ECDH1_DERIVE, _) => {
            may_agree(base)?;
            fail(CKR_MECHANISM_PARAM_INVALID)
        }
        (CKM_AES_ECB_ENCRYPT_DATA | CKM_AES_CBC_ENCRYPT_DATA, _) => fail(CKR_MECHANISM_PARAM_INVALID),
        _ => fail(CKR_MECHANISM_INVALID),
    }
}

/// Encrypts data with a key of AES, from which another key is then derived.
///
/// # Errors
/// `CKR_KEY_TYPE_INCONSISTENT`; `CKR_KEY_FUNCTION_NOT_PERMITTED`; `CKR_MECHANISM_PARAM_INVALID` for
/// data that is not whole blocks.
fn encrypt_data(
    base: &Object,
    mechanism: CK_MECHANISM_TYPE,
    iv: Option<[u8; 16]>,
    data: &[u8],
) -> Result<Zeroizing<Vec<u8>>> {
    base.permits(mechanism, CKA_DERIVE)?;
    let key = base.aes_key()?;
    let is_whole = !data.is_empty() && data.len().is_multiple_of(aes::BLOCK_LEN);
    require(is_whole, CKR_MECHANISM_PARAM_INVALID)?;
    let mode = iv.map_or(aes::Mode::Ecb, aes::Mode::Cbc);
    let mut out = Zeroizing::new(data.to_vec());
    aes::whole_blocks(key, mode, Direction::Encrypt)?(&mut out);
    Ok(out)
}

/// The algorithm of a key that agrees on secrets.
fn may_agree(base: &Object) -> Result<Algorithm> {
    let key = base.key()?;
    let is_private = base.class == CKO_PRIVATE_KEY && base.attributes.is_set(CKA_DERIVE);
    require(is_private, CKR_KEY_FUNCTION_NOT_PERMITTED)?;
    let is_here = matches!(base.session_key.as_deref(), Some(SessionKey::Curve(_)));
    require(is_here || agrees(key.algorithm), CKR_KEY_TYPE_INCONSISTENT)?;
    Ok(key.algorithm)
}

/// What an agreement on a secret is made of.
struct Agreement<'a> {
    base: &'a Object,
    kdf: CK_EC_KDF_TYPE,
    shared_data: Vec<u8>,
    /// The peer's public key.
    public_data: Vec<u8>,
}

impl Agreement<'_> {
    fn run(
        self,
        backend: impl FnOnce() -> Result<Arc<dyn Backend>>,
        template: &[Attribute],
        session: CK_SESSION_HANDLE,
    ) -> Result<Object> {
        let algorithm = may_agree(self.base)?;
        let hash = of_kdf(self.kdf)?;
        // Only a key derivation function uses them.
        require(hash.is_some() || self.shared_data.is_empty(), CKR_MECHANISM_PARAM_INVALID)?;
        let peer = peer_point(algorithm, &self.public_data)?;
        let secret_len = secret_len(algorithm);
        let wanted = Wanted::of(template, hash.map_or(secret_len, |hash| hash.output_len()))?;
        let most = if hash.is_some() { MAX_SECRET_LEN } else { secret_len };
        require(wanted.length <= most, CKR_ATTRIBUTE_VALUE_INVALID)?;
        // What is wrong with the template is told before the service is asked.
        let origin = Origin::derived(self.base);
        secret_key(template, wanted.kind, &vec![0; wanted.length], origin, session)?;
        let secret = self.secret(backend, algorithm, peer)?;
        let value = match hash {
            Some(hash) => x963(hash, &secret, &self.shared_data, wanted.length)?,
            None => {
                // The last bytes, as the standard says.
                let start = secret.len().checked_sub(wanted.length).ok_or(Failure(CKR_DEVICE_ERROR))?;
                Zeroizing::new(secret[start..].to_vec())
            }
        };
        secret_key(template, wanted.kind, &value, origin, session)
    }

    fn secret(
        &self,
        backend: impl FnOnce() -> Result<Arc<dyn Backend>>,
        algorithm: Algorithm,
        peer: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>> {
        if let Some(SessionKey::Curve(key)) = self.base.session_key.as_deref() {
            self.base.allows(CKM_ECDH1_DERIVE)?;
            return key.agree(peer);
        }
        let peer = PublicKey::from_bytes(algorithm, peer);
        let peer = peer.map_err(|_| Failure(CKR_MECHANISM_PARAM_INVALID))?;
        backend()?.derive_shared_secret(&self.base.key()?.of_service()?.id, &peer)
    }
}

/// The length of the secret that keys of a curve share: a coordinate.
fn secret_len(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::EcdsaP384 | Algorithm::EcdhP384 => 48,
        Algorithm::EcdsaP521 | Algorithm::EcdhP521 => 66,
        _ => 32,
    }
}

/// What a template asks for.
struct Wanted {
    kind: CK_KEY_TYPE,
    /// In bytes.
    length: usize,
}

impl Wanted {
    /// Without a length, a secret of no certain use is as long as what there is.
    fn of(template: &[Attribute], there: usize) -> Result<Self> {
        let asked = Template(template);
        let class = asked.number(CKA_CLASS)?.unwrap_or(CKO_SECRET_KEY);
        require(class == CKO_SECRET_KEY, CKR_TEMPLATE_INCONSISTENT)?;
        require(asked.get(CKA_VALUE).is_none(), CKR_TEMPLATE_INCONSISTENT)?;
        let kind = asked.number(CKA_KEY_TYPE)?.unwrap_or(CKK_GENERIC_SECRET);
        let length = match (kind, asked.number(CKA_VALUE_LEN)?) {
            (CKK_AES, None) => return fail(CKR_TEMPLATE_INCOMPLETE),
            (_, None) => there,
            (CKK_AES, Some(length @ (16 | 24 | 32))) => length as usize,
            (CKK_AES, Some(_)) => return fail(CKR_ATTRIBUTE_VALUE_INVALID),
            (_, Some(length)) if length > 0 && length <= MAX_SECRET_LEN as CK_ULONG => length as usize,
            (_, Some(_)) => return fail(CKR_ATTRIBUTE_VALUE_INVALID),
        };
        Ok(Self { kind, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_as_long_as_its_type_permits() {
        let length = |kind, length: Option<CK_ULONG>| {
            let mut template = vec![Attribute::number(CKA_KEY_TYPE, kind)];
            template.extend(length.map(|length| Attribute::number(CKA_VALUE_LEN, length)));
            Wanted::of(&template, 32).map(|wanted| wanted.length)
        };
        assert_eq!(length(CKK_GENERIC_SECRET, None), Ok(32));
        assert_eq!(length(CKK_GENERIC_SECRET, Some(20)), Ok(20));
        assert_eq!(length(CKK_AES, Some(16)), Ok(16));
        let too_long = (CKK_GENERIC_SECRET, CK_ULONG::MAX);
        for wrong in [(CKK_GENERIC_SECRET, 0), too_long, (CKK_AES, 20), (CKK_AES, 33)] {
            assert_eq!(length(wrong.0, Some(wrong.1)), fail(CKR_ATTRIBUTE_VALUE_INVALID));
        }
        assert_eq!(length(CKK_AES, None), fail(CKR_TEMPLATE_INCOMPLETE));
    }
}
