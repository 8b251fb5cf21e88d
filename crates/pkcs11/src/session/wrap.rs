//! Keys of a session that leave the module, encrypted with another key, and keys that come so. A
//! key of the service never leaves it.

use std::sync::Arc;

use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::backend::Backend;
use crate::error::{Failure, Result, fail, require};
use crate::object::Object;
use crate::object::attributes::{Attribute, Template};
use crate::operation::cipher::CipherOperation;
use crate::operation::mechanism::{Direction, Mechanism, Parameters, can_wrap};
use crate::session::aes::KeyWrap;
use crate::session::create::private_of_pkcs8;
use crate::session::key::SessionKey;
use crate::session::rsa;
use crate::session::template::{Origin, attributes, is_secret_kind, secret_key};

/// Wraps a key.
///
/// # Errors
/// `CKR_MECHANISM_INVALID`; `CKR_KEY_UNEXTRACTABLE` for a key of the service, and for others that
/// may not leave; `CKR_KEY_NOT_WRAPPABLE`; `CKR_KEY_SIZE_RANGE`;
/// `CKR_WRAPPING_KEY_TYPE_INCONSISTENT`; `CKR_KEY_FUNCTION_NOT_PERMITTED`.
pub(crate) fn wrap(mechanism: Mechanism, wrapping: Arc<Object>, key: &Object) -> Result<Zeroizing<Vec<u8>>> {
    require(can_wrap(mechanism.kind), CKR_MECHANISM_INVALID)?;
    let is_secret = matches!(key.class, CKO_SECRET_KEY | CKO_PRIVATE_KEY);
    require(is_secret, CKR_KEY_NOT_WRAPPABLE)?;
    let leaves = !key.is_token_object() && key.attributes.is_set(CKA_EXTRACTABLE);
    require(leaves, CKR_KEY_UNEXTRACTABLE)?;
    // No wrapping key is trusted.
    require(!key.attributes.is_set(CKA_WRAP_WITH_TRUSTED), CKR_KEY_NOT_WRAPPABLE)?;
    let value = match key.session_key.as_deref() {
        Some(SessionKey::Secret) => Zeroizing::new(key.secret()?.to_vec()),
        Some(SessionKey::Curve(key)) => key.to_pkcs8()?,
        Some(SessionKey::Rsa(key)) => rsa::to_pkcs8(key)?,
        _ => return fail(CKR_KEY_NOT_WRAPPABLE),
    };
    if let Some(how) = KeyWrap::of_mechanism(mechanism.kind) {
        let kek = kek(&mechanism, &wrapping, CKA_WRAP, CKR_WRAPPING_KEY_TYPE_INCONSISTENT)?;
        return how.wrap(kek, &value).map(Zeroizing::new);
    }
    let operation = CipherOperation::new(Direction::Encrypt, mechanism, wrapping, CKA_WRAP);
    let mut operation = operation.map_err(|failure| instead(failure, CKR_WRAPPING_KEY_TYPE_INCONSISTENT))?;
    let wrapped = operation.finish(|| fail(CKR_GENERAL_ERROR), &value);
    wrapped.cloned().map_err(|failure| match failure.0 {
        CKR_DATA_LEN_RANGE => Failure(CKR_KEY_SIZE_RANGE),
        _ => failure,
    })
}

/// The code for a key of another type.
fn instead(failure: Failure, code: CK_RV) -> Failure {
    if failure == Failure(CKR_KEY_TYPE_INCONSISTENT) { Failure(code) } else { failure }
}

/// The value of a key that wraps.
fn kek<'a>(
    mechanism: &Mechanism,
    key: &'a Object,
    flag: CK_ATTRIBUTE_TYPE,
    inconsistent: CK_RV,
) -> Result<&'a [u8]> {
    key.permits(mechanism.kind, flag)?;
    require(mechanism.parameters == Parameters::None, CKR_MECHANISM_PARAM_INVALID)?;
    key.aes_key().map_err(|failure| instead(failure, inconsistent))
}

/// Unwraps a key, which is then one of a session.
///
/// # Errors
/// `CKR_MECHANISM_INVALID`; `CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT`;
/// `CKR_KEY_FUNCTION_NOT_PERMITTED`; `CKR_WRAPPED_KEY_INVALID`; `CKR_WRAPPED_KEY_LEN_RANGE`; codes
/// about the template; those of the service, if its key unwraps.
pub(crate) fn unwrap(
    mechanism: Mechanism,
    unwrapping: Arc<Object>,
    backend: impl FnOnce() -> Result<Arc<dyn Backend>>,
    wrapped: &[u8],
    template: &[Attribute],
    session: CK_SESSION_HANDLE,
) -> Result<Object> {
    require(can_wrap(mechanism.kind), CKR_MECHANISM_INVALID)?;
    let asked = Template(template);
    let class = asked.number(CKA_CLASS)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    let kind = asked.number(CKA_KEY_TYPE)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    // What is wrong with the template is told before anything is decrypted, and afterwards one
    // code: somebody who sends changed keys learns nothing of what they decrypt to.
    let has_type = match class {
        CKO_SECRET_KEY => is_secret_kind(kind),
        CKO_PRIVATE_KEY => matches!(kind, CKK_RSA | CKK_EC | CKK_EC_EDWARDS),
        _ => false,
    };
    require(has_type, CKR_TEMPLATE_INCONSISTENT)?;
    attributes(class, kind, template, Origin::UNWRAPPED)?;
    let says_value =
        [CKA_VALUE, CKA_MODULUS, CKA_PRIVATE_EXPONENT].iter().any(|kind| asked.get(*kind).is_some());
    require(!says_value, CKR_TEMPLATE_INCONSISTENT)?;
    asked.number(CKA_VALUE_LEN)?;
    let value = if let Some(how) = KeyWrap::of_mechanism(mechanism.kind) {
        let code = CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT;
        how.unwrap(kek(&mechanism, &unwrapping, CKA_UNWRAP, code)?, wrapped)?
    } else {
        let operation = CipherOperation::new(Direction::Decrypt, mechanism, unwrapping, CKA_UNWRAP);
        let mut operation =
            operation.map_err(|failure| instead(failure, CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT))?;
        let value = operation.finish(backend, wrapped);
        value.cloned().map_err(|failure| match failure.0 {
            CKR_ENCRYPTED_DATA_INVALID => Failure(CKR_WRAPPED_KEY_INVALID),
            CKR_ENCRYPTED_DATA_LEN_RANGE => Failure(CKR_WRAPPED_KEY_LEN_RANGE),
            _ => failure,
        })?
    };
    let made = match class {
        CKO_SECRET_KEY => secret_key(template, kind, &value, Origin::UNWRAPPED, session),
        _ => private_of_pkcs8(template, &value, session),
    };
    made.map_err(|_| Failure(CKR_WRAPPED_KEY_INVALID))
}
