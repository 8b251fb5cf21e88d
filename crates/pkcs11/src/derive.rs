//! Secrets that a key shares with the holder of a peer's private key: Diffie-Hellman on a curve.
//!
//! The service gives the secret itself, because each protocol derives its keys in another way. So
//! it is an object of the session, and a program reads it unless it asked for one that is
//! sensitive.

use bulla_kms::PublicKey;
use cryptoki_sys::*;

use crate::attributes::{Attribute, Attributes, Template};
use crate::backend::Backend;
use crate::error::{Failure, Result, fail, require};
use crate::mechanism::{Mechanism, Parameters};
use crate::object::{Object, ServiceKey, agrees};
use crate::public::of_peer;

/// A derivation whose arguments are checked.
pub(crate) struct Derivation {
    key: ServiceKey,
    peer: PublicKey,
    /// How many bytes of the secret the program wants, from its end.
    length: usize,
    attributes: Attributes,
}

impl Derivation {
    /// # Errors
    /// `CKR_MECHANISM_INVALID`; `CKR_KEY_TYPE_INCONSISTENT`; `CKR_KEY_FUNCTION_NOT_PERMITTED`;
    /// `CKR_MECHANISM_PARAM_INVALID` for another key derivation function than none, and for what is
    /// not a public key of the curve; codes about the template.
    pub(crate) fn new(mechanism: Mechanism, base: &Object, template: &[Attribute]) -> Result<Self> {
        require(mechanism.kind == CKM_ECDH1_DERIVE, CKR_MECHANISM_INVALID)?;
        let key = base.key()?;
        let is_private = base.class == CKO_PRIVATE_KEY && base.attributes.is_set(CKA_DERIVE);
        require(is_private, CKR_KEY_FUNCTION_NOT_PERMITTED)?;
        require(agrees(key.algorithm), CKR_KEY_TYPE_INCONSISTENT)?;
        let Parameters::Ecdh { kdf: CKD_NULL, shared_data, public_data } = mechanism.parameters else {
            return fail(CKR_MECHANISM_PARAM_INVALID);
        };
        // Only a key derivation function would use them.
        require(shared_data.is_empty(), CKR_MECHANISM_PARAM_INVALID)?;
        let peer = of_peer(key.algorithm, &public_data)?;
        let (length, attributes) = attributes_of(template, key.algorithm.output_length())?;
        Ok(Self { key: key.of_service()?.clone(), peer, length, attributes })
    }

    /// Derives the secret.
    ///
    /// # Errors
    /// Those of the service.
    pub(crate) fn run(mut self, backend: &dyn Backend, session: CK_SESSION_HANDLE) -> Result<Object> {
        let secret = backend.derive_shared_secret(&self.key.id, &self.peer)?;
        let start = secret.len().checked_sub(self.length).ok_or(Failure(CKR_DEVICE_ERROR))?;
        self.attributes.set(CKA_VALUE, &secret[start..]);
        Ok(Object { class: CKO_SECRET_KEY, attributes: self.attributes, key: None, session: Some(session) })
    }
}

/// How many bytes a template asks for, at most `longest`, and the attributes of the secret without
/// its value.
fn attributes_of(template: &[Attribute], longest: usize) -> Result<(usize, Attributes)> {
    let asked = Template(template);
    let class = asked.number(CKA_CLASS)?.unwrap_or(CKO_SECRET_KEY);
    require(class == CKO_SECRET_KEY, CKR_TEMPLATE_INCONSISTENT)?;
    // The service keeps the keys that it makes, and no others.
    require(asked.flag(CKA_TOKEN)? != Some(true), CKR_TEMPLATE_INCONSISTENT)?;
    let kind = asked.number(CKA_KEY_TYPE)?.unwrap_or(CKK_GENERIC_SECRET);
    let length = match (kind, asked.number(CKA_VALUE_LEN)?) {
        (CKK_GENERIC_SECRET, None) => longest as CK_ULONG,
        (CKK_GENERIC_SECRET, Some(length)) if length > 0 => length,
        (CKK_AES, Some(length @ (16 | 24 | 32))) => length,
        (CKK_AES, None) => return fail(CKR_TEMPLATE_INCOMPLETE),
        (CKK_GENERIC_SECRET | CKK_AES, Some(_)) => return fail(CKR_ATTRIBUTE_VALUE_INVALID),
        _ => return fail(CKR_TEMPLATE_INCONSISTENT),
    };
    require(length <= longest as CK_ULONG, CKR_ATTRIBUTE_VALUE_INVALID)?;
    let mut attributes = Attributes::default();
    attributes.set_number(CKA_CLASS, CKO_SECRET_KEY).set_number(CKA_KEY_TYPE, kind);
    attributes.set_number(CKA_VALUE_LEN, length);
    attributes.set_number(CKA_KEY_GEN_MECHANISM, CK_MECHANISM_TYPE::MAX);
    for text in [CKA_LABEL, CKA_ID] {
        attributes.set(text, asked.get(text).unwrap_or_default());
    }
    attributes.set(CKA_START_DATE, b"").set(CKA_END_DATE, b"");
    // The program reads the secret, and no operation of the module uses it.
    for use_of_key in [CKA_SIGN, CKA_VERIFY, CKA_ENCRYPT, CKA_DECRYPT, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE] {
        attributes.set_flags(&[(use_of_key, false)]);
    }
    attributes.set_flags(&[
        (CKA_TOKEN, false),
        (CKA_PRIVATE, asked.flag(CKA_PRIVATE)?.unwrap_or(true)),
        (CKA_MODIFIABLE, true),
        (CKA_COPYABLE, false),
        (CKA_DESTROYABLE, true),
        (CKA_SENSITIVE, asked.flag(CKA_SENSITIVE)?.unwrap_or(false)),
        (CKA_EXTRACTABLE, asked.flag(CKA_EXTRACTABLE)?.unwrap_or(true)),
        (CKA_ALWAYS_SENSITIVE, false),
        (CKA_NEVER_EXTRACTABLE, false),
        (CKA_LOCAL, false),
        (CKA_WRAP_WITH_TRUSTED, false),
        (CKA_TRUSTED, false),
    ]);
    Ok((length as usize, attributes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_as_long_as_its_type_and_the_curve_permit() {
        let length = |kind, length: Option<CK_ULONG>| {
            let mut template = vec![Attribute::number(CKA_KEY_TYPE, kind)];
            template.extend(length.map(|length| Attribute::number(CKA_VALUE_LEN, length)));
            attributes_of(&template, 32).map(|(length, _)| length)
        };
        assert_eq!(length(CKK_GENERIC_SECRET, None), Ok(32));
        assert_eq!(length(CKK_GENERIC_SECRET, Some(20)), Ok(20));
        assert_eq!(length(CKK_AES, Some(16)), Ok(16));
        for wrong in [(CKK_GENERIC_SECRET, 0), (CKK_GENERIC_SECRET, 33), (CKK_AES, 20), (CKK_AES, 33)] {
            assert_eq!(length(wrong.0, Some(wrong.1)), fail(CKR_ATTRIBUTE_VALUE_INVALID));
        }
        assert_eq!(length(CKK_AES, None), fail(CKR_TEMPLATE_INCOMPLETE));
        assert_eq!(length(CKK_DES3, None), fail(CKR_TEMPLATE_INCONSISTENT));
    }

    #[test]
    fn a_secret_does_not_stay_in_the_token() {
        let template = [Attribute::new(CKA_TOKEN, &[1])];
        assert_eq!(attributes_of(&template, 32).err(), Some(Failure(CKR_TEMPLATE_INCONSISTENT)));
    }
}
