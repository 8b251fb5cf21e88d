//! Keys of a session that are made, and those that a program brings.

use std::sync::Arc;

use ::rsa::{PrivateKey, PublicKey};
use bulla_kms::Algorithm;
use cryptoki_sys::*;
use zeroize::Zeroizing;

use crate::backend::generate;
use crate::error::{Failure, Result, fail, require};
use crate::object::attributes::{Attribute, Template};
use crate::object::public::{algorithm_of_curve, describe, key_type, of_template, public_key_of};
use crate::object::{KeyOfObject, Object};
use crate::operation::mechanism::{MAX_SECRET_LEN, Mechanism, Parameters};
use crate::session::curve::{self, CurvePrivateKey};
use crate::session::key::SessionKey;
use crate::session::rsa;
use crate::session::template::{Origin, attributes, is_secret_kind, secret_key};

/// Makes a secret key of a session.
///
/// # Errors
/// `CKR_MECHANISM_INVALID`; codes about the template; `CKR_DEVICE_ERROR` without random bytes.
pub(crate) fn generate_secret(
    mechanism: &Mechanism,
    template: &[Attribute],
    session: CK_SESSION_HANDLE,
) -> Result<Object> {
    let asked = Template(template);
    let kind = match mechanism.kind {
        CKM_AES_KEY_GEN => CKK_AES,
        CKM_GENERIC_SECRET_KEY_GEN => asked.number(CKA_KEY_TYPE)?.unwrap_or(CKK_GENERIC_SECRET),
        _ => return fail(CKR_MECHANISM_INVALID),
    };
    require(mechanism.parameters == Parameters::None, CKR_MECHANISM_PARAM_INVALID)?;
    require(asked.get(CKA_VALUE).is_none(), CKR_TEMPLATE_INCONSISTENT)?;
    let is_other = kind == CKK_AES && mechanism.kind != CKM_AES_KEY_GEN;
    require(is_secret_kind(kind) && !is_other, CKR_TEMPLATE_INCONSISTENT)?;
    let length = asked.number(CKA_VALUE_LEN)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    require((1..=MAX_SECRET_LEN as CK_ULONG).contains(&length), CKR_ATTRIBUTE_VALUE_INVALID)?;
    let mut value = Zeroizing::new(vec![0; length as usize]);
    getrandom::fill(&mut value).map_err(|_| Failure(CKR_DEVICE_ERROR))?;
    secret_key(template, kind, &value, Origin::generated(mechanism.kind), session)
}

/// Makes a pair of a session: the public and the private object.
///
/// # Errors
/// As for [`generate_secret`].
pub(crate) fn generate_pair(
    mechanism: &Mechanism,
    public: &[Attribute],
    private: &[Attribute],
    session: CK_SESSION_HANDLE,
) -> Result<[Object; 2]> {
    let made = New { public, private, origin: Origin::generated(mechanism.kind), session };
    require(mechanism.parameters == Parameters::None, CKR_MECHANISM_PARAM_INVALID)?;
    match mechanism.kind {
        CKM_RSA_PKCS_KEY_PAIR_GEN => {
            // What is wrong with the templates is told before the long computation.
            attributes(CKO_PRIVATE_KEY, CKK_RSA, private, made.origin)?;
            attributes(CKO_PUBLIC_KEY, CKK_RSA, public, made.origin)?;
            let key = rsa::generate(&Template(public))?;
            Ok([made.rsa_public(key.to_public_key())?, made.rsa_private(key)?])
        }
        CKM_EC_KEY_PAIR_GEN | CKM_EC_EDWARDS_KEY_PAIR_GEN | CKM_EC_MONTGOMERY_KEY_PAIR_GEN => {
            let algorithm = generate::curve(mechanism.kind, &Template(public))?;
            let value = curve::generate(algorithm)?;
            let private = made.curve_private(algorithm, &value)?;
            Ok([made.curve_public(&private)?, private])
        }
        _ => fail(CKR_MECHANISM_INVALID),
    }
}

/// The key that a program brings.
///
/// # Errors
/// Codes about the template.
pub(crate) fn create(
    class: CK_OBJECT_CLASS,
    template: &[Attribute],
    session: CK_SESSION_HANDLE,
) -> Result<Object> {
    let asked = Template(template);
    let kind = asked.number(CKA_KEY_TYPE)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    let made = New { public: template, private: template, origin: Origin::BROUGHT, session };
    match (class, kind) {
        (CKO_SECRET_KEY, kind) => {
            let value = asked.get(CKA_VALUE).ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
            secret_key(template, kind, value, made.origin, session)
        }
        (CKO_PRIVATE_KEY, CKK_RSA) => made.rsa_private(rsa::private_of_template(&asked)?),
        (CKO_PUBLIC_KEY, CKK_RSA) => made.rsa_public(rsa::public_of_template(&asked)?),
        (CKO_PRIVATE_KEY, CKK_EC | CKK_EC_EDWARDS | CKK_EC_MONTGOMERY) => {
            let parameters = asked.get(CKA_EC_PARAMS).ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
            let algorithm = algorithm_of_curve(parameters).ok_or(Failure(CKR_CURVE_NOT_SUPPORTED))?;
            require(key_type(algorithm) == Some(kind), CKR_TEMPLATE_INCONSISTENT)?;
            let value = asked.get(CKA_VALUE).ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
            made.curve_private(algorithm, &curve::normalized(algorithm, value)?)
        }
        (CKO_PUBLIC_KEY, _) => {
            let public = of_template(&asked)?;
            let mut attributes = attributes(class, kind, template, made.origin)?;
            describe(&public, &mut attributes)?;
            let key = KeyOfObject { algorithm: public.algorithm(), version: None, public: Some(public) };
            Ok(Object { class, attributes, key: Some(key), session: Some(session), session_key: None })
        }
        _ => fail(CKR_TEMPLATE_INCONSISTENT),
    }
}

/// The private key that was in PKCS #8.
///
/// # Errors
/// `CKR_WRAPPED_KEY_INVALID`; codes about the template.
pub(crate) fn private_of_pkcs8(
    template: &[Attribute],
    pkcs8: &[u8],
    session: CK_SESSION_HANDLE,
) -> Result<Object> {
    let made = New { public: template, private: template, origin: Origin::UNWRAPPED, session };
    let kind = Template(template).number(CKA_KEY_TYPE)?.ok_or(Failure(CKR_TEMPLATE_INCOMPLETE))?;
    let algorithms: &[Algorithm] = match kind {
        CKK_RSA => return made.rsa_private(rsa::of_pkcs8(pkcs8)?),
        CKK_EC => &[Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::EcdsaP521],
        CKK_EC_EDWARDS => &[Algorithm::Ed25519],
        _ => return fail(CKR_TEMPLATE_INCONSISTENT),
    };
    for algorithm in algorithms {
        if let Ok(value) = curve::of_pkcs8(*algorithm, pkcs8) {
            return made.curve_private(*algorithm, &value);
        }
    }
    fail(CKR_WRAPPED_KEY_INVALID)
}

/// What keys are made of, beside their values.
struct New<'a> {
    public: &'a [Attribute],
    private: &'a [Attribute],
    origin: Origin,
    session: CK_SESSION_HANDLE,
}

impl New<'_> {
    fn object(
        &self,
        class: CK_OBJECT_CLASS,
        attributes: crate::object::attributes::Attributes,
        key: Option<KeyOfObject>,
        session_key: Option<SessionKey>,
    ) -> Object {
        let (session, session_key) = (Some(self.session), session_key.map(Arc::new));
        Object { class, attributes, key, session, session_key }
    }

    fn rsa_public(&self, key: PublicKey) -> Result<Object> {
        let mut attributes = attributes(CKO_PUBLIC_KEY, CKK_RSA, self.public, self.origin)?;
        rsa::describe_public(&key, &mut attributes)?;
        Ok(self.object(CKO_PUBLIC_KEY, attributes, None, Some(SessionKey::RsaPublic(key))))
    }

    fn rsa_private(&self, key: PrivateKey) -> Result<Object> {
        let mut attributes = attributes(CKO_PRIVATE_KEY, CKK_RSA, self.private, self.origin)?;
        rsa::describe_private(&key, &mut attributes)?;
        Ok(self.object(CKO_PRIVATE_KEY, attributes, None, Some(SessionKey::Rsa(Box::new(key)))))
    }

    fn curve_private(&self, algorithm: Algorithm, value: &[u8]) -> Result<Object> {
        let kind = key_type(algorithm).ok_or(Failure(CKR_CURVE_NOT_SUPPORTED))?;
        let mut attributes = attributes(CKO_PRIVATE_KEY, kind, self.private, self.origin)?;
        let key = CurvePrivateKey::new(algorithm, value)?;
        let public = public_key_of(algorithm, &key.public_key()?)?;
        describe(&public, &mut attributes)?;
        attributes.remove(&[CKA_EC_POINT]);
        attributes.set(CKA_VALUE, value);
        let of_object = KeyOfObject { algorithm, version: None, public: Some(public) };
        Ok(self.object(CKO_PRIVATE_KEY, attributes, Some(of_object), Some(SessionKey::Curve(key))))
    }

    /// The public half of a private key.
    fn curve_public(&self, private: &Object) -> Result<Object> {
        let key = private.key.clone().ok_or(Failure(CKR_GENERAL_ERROR))?;
        let public = key.public.as_ref().ok_or(Failure(CKR_GENERAL_ERROR))?;
        let kind = key_type(key.algorithm).ok_or(Failure(CKR_CURVE_NOT_SUPPORTED))?;
        let mut attributes = attributes(CKO_PUBLIC_KEY, kind, self.public, self.origin)?;
        describe(public, &mut attributes)?;
        Ok(self.object(CKO_PUBLIC_KEY, attributes, Some(key), None))
    }
}
