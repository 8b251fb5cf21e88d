//! Objects: the keys of a service or keystore as programs see them, and the objects of a session.

pub(crate) mod attributes;
pub(crate) mod certificate;
pub(crate) mod public;

use std::num::NonZeroU32;
use std::sync::Arc;

use bulla_kms::{Algorithm, JWT_PURPOSE, KeyId, Origin, PublicKey, TOKEN_ROOT_PURPOSE, VersionState};
use cryptoki_sys::*;

use crate::backend::generate::id_of_purpose;
use crate::backend::{EntryState, KeyEntry, VersionEntry};
use crate::error::{Failure, Result, require};
use crate::object::attributes::Attributes;
use crate::object::certificate::Certificate;
use crate::object::public::{describe, key_type};
use crate::operation::mechanism::{agrees, allowed_mechanisms, is_aes};
use crate::session::key::SessionKey;

/// An object.
pub(crate) struct Object {
    pub(crate) class: CK_OBJECT_CLASS,
    pub(crate) attributes: Attributes,
    /// What a key does; none for a certificate.
    pub(crate) key: Option<KeyOfObject>,
    /// The session whose end is the end of the object; none for an object of the token.
    pub(crate) session: Option<CK_SESSION_HANDLE>,
    /// What a key of a session computes with; none for what the service computes, and for public
    /// keys of curves.
    pub(crate) session_key: Option<Arc<SessionKey>>,
}

/// The key of an object.
#[derive(Clone)]
pub(crate) struct KeyOfObject {
    pub(crate) algorithm: Algorithm,
    /// The version in the service; none if the service does not have the key.
    pub(crate) version: Option<ServiceKey>,
    /// None for a symmetric key.
    pub(crate) public: Option<PublicKey>,
}

impl KeyOfObject {
    /// The version in the service.
    ///
    /// # Errors
    /// `CKR_KEY_FUNCTION_NOT_PERMITTED` if the service does not have the key.
    pub(crate) fn of_service(&self) -> Result<&ServiceKey> {
        self.version.as_ref().ok_or(Failure(CKR_KEY_FUNCTION_NOT_PERMITTED))
    }
}

/// A key version of a service.
#[derive(Clone)]
pub(crate) struct ServiceKey {
    /// The key id.
    pub(crate) key: Arc<str>,
    /// The key version id.
    pub(crate) id: Arc<str>,
    pub(crate) version: NonZeroU32,
    /// Whether it signs digests that the program makes.
    pub(crate) signs_digests: bool,
    /// Whether no newer version took its place.
    pub(crate) is_latest: bool,
}

impl Object {
    /// What tells the object from others of the token, as long as the key exists.
    pub(crate) fn identity(&self) -> Option<(Arc<str>, CK_OBJECT_CLASS)> {
        Some((self.key.as_ref()?.version.as_ref()?.id.clone(), self.class))
    }

    /// The key of the object.
    ///
    /// # Errors
    /// `CKR_KEY_HANDLE_INVALID` if it is not a key; `CKR_KEY_TYPE_INCONSISTENT` for a key of RSA or
    /// a secret key of a session, with which `session::key` computes.
    pub(crate) fn key(&self) -> Result<&KeyOfObject> {
        let code = match self.session_key {
            Some(_) => CKR_KEY_TYPE_INCONSISTENT,
            None => CKR_KEY_HANDLE_INVALID,
        };
        self.key.as_ref().ok_or(Failure(code))
    }

    /// The same object with other attributes.
    pub(crate) fn with_attributes(&self, attributes: Attributes) -> Self {
        let (key, session_key) = (self.key.clone(), self.session_key.clone());
        Self { class: self.class, attributes, key, session: self.session, session_key }
    }

    pub(crate) fn is_token_object(&self) -> bool {
        self.session.is_none()
    }
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

/// What the objects of a slot have in common.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    /// Whether programs see keys only after a login.
    pub(crate) is_private: bool,
    pub(crate) certificates: &'a [Certificate],
}

/// The objects of a key: for each version that can be used, one for each half that it has. A key of
/// which programs have no use has none.
pub(crate) fn objects_of(key: &KeyEntry, view: View<'_>) -> Result<Vec<Object>> {
    let algorithm = key.algorithm;
    if key.state == EntryState::Gone || key_type(algorithm).is_none() {
        return Ok(Vec::new());
    }
    let mut objects = Vec::new();
    for version in &key.versions {
        let number = version.version;
        if number.get() < key.minimum_version || version.state == VersionState::Revoked {
            continue;
        }
        let service = ServiceKey {
            key: key.id.clone(),
            id: version.id.clone(),
            version: number,
            signs_digests: key.signs_digests,
            is_latest: number.get() == key.latest_version,
        };
        let source = Source { key, version, algorithm, service, is_private: view.is_private };
        let works = key.state == EntryState::Enabled && version.state == VersionState::Usable;
        if algorithm.is_symmetric() {
            if works {
                objects.push(source.secret());
            }
            continue;
        }
        let Ok(public) = PublicKey::from_bytes(algorithm, &version.public_key) else { continue };
        // An older version of RSA still decrypts, and one that agrees on secrets does that.
        let still_used = algorithm.is_rsa() || agrees(algorithm);
        let has_use = (source.service.is_latest && !is_reserved(key)) || still_used;
        if works && has_use && version.origin != Origin::PublicOnly {
            objects.push(source.private(&public)?);
        }
        let public = source.public(&public)?;
        let about = |one: &&Certificate| one.is_about(public.attributes.get(CKA_PUBLIC_KEY_INFO));
        for certificate in view.certificates.iter().filter(about) {
            let attributes = certificate.attributes(source.label(), &source.id());
            objects.push(source.clone().object(CKO_CERTIFICATE, attributes, None));
        }
        objects.push(public);
    }
    Ok(objects)
}

/// Whether the service signs nothing with a key that a program chooses.
fn is_reserved(key: &KeyEntry) -> bool {
    key.id.split('/').nth(1).is_none_or(|purpose| purpose == TOKEN_ROOT_PURPOSE || purpose == JWT_PURPOSE)
}

/// What the objects of a key version are made of.
struct Source<'a> {
    key: &'a KeyEntry,
    version: &'a VersionEntry,
    algorithm: Algorithm,
    service: ServiceKey,
    /// Whether programs see it only after a login.
    is_private: bool,
}

impl Source<'_> {
    /// What all objects of a key have.
    fn attributes(&self, class: CK_OBJECT_CLASS) -> Attributes {
        let mut attributes = Attributes::default();
        let kind = key_type(self.algorithm).unwrap_or(CKK_GENERIC_SECRET);
        let local = self.version.origin == Origin::Generated;
        attributes.set_number(CKA_CLASS, class).set_number(CKA_KEY_TYPE, kind);
        attributes.set(CKA_LABEL, self.label()).set(CKA_ID, &self.id());
        attributes.set(CKA_START_DATE, b"").set(CKA_END_DATE, b"");
        attributes.set(CKA_UNIQUE_ID, format!("{}/{class}", self.version.id).as_bytes());
        attributes.set_number(CKA_KEY_GEN_MECHANISM, generation_mechanism(self.algorithm, local));
        attributes.set_flags(&[
            (CKA_TOKEN, true),
            (CKA_PRIVATE, self.is_private),
            // Its label.
            (CKA_MODIFIABLE, true),
            (CKA_COPYABLE, false),
            (CKA_DESTROYABLE, true),
            (CKA_DERIVE, agrees(self.algorithm)),
            (CKA_LOCAL, local),
        ]);
        attributes
    }

    /// The key's label, or its id if it has none.
    fn label(&self) -> &[u8] {
        self.key.label.as_deref().unwrap_or(&self.key.id).as_bytes()
    }

    /// The same for both halves of a key version, and for no other: the key's UUID and the number
    /// of the version. If a program chose an id, version 1 has that one, and the others have it
    /// with their numbers.
    fn id(&self) -> Vec<u8> {
        let Ok(key) = self.key.id.parse::<KeyId>() else { return self.version.id.as_bytes().to_vec() };
        let version = self.service.version.get().to_be_bytes();
        match id_of_purpose(key.purpose().as_str()) {
            Some(id) if self.service.version == NonZeroU32::MIN => id,
            Some(id) => [id.as_slice(), &version].concat(),
            None => [key.uuid().as_bytes().as_slice(), &version].concat(),
        }
    }

    fn object(self, class: CK_OBJECT_CLASS, attributes: Attributes, public: Option<PublicKey>) -> Object {
        let key = KeyOfObject { algorithm: self.algorithm, version: Some(self.service), public };
        Object { class, attributes, key: Some(key), session: None, session_key: None }
    }

    fn allowed_mechanisms(&self) -> Vec<u8> {
        let all = allowed_mechanisms(self.algorithm, self.service.signs_digests);
        all.into_iter().flat_map(CK_MECHANISM_TYPE::to_ne_bytes).collect()
    }

    fn private(&self, public: &PublicKey) -> Result<Object> {
        let mut attributes = self.attributes(CKO_PRIVATE_KEY);
        describe(public, &mut attributes)?;
        attributes.remove(&[CKA_EC_POINT, CKA_MODULUS_BITS]);
        attributes.set(CKA_SUBJECT, b"").set(CKA_ALLOWED_MECHANISMS, &self.allowed_mechanisms());
        attributes.set_flags(&[
            (CKA_SENSITIVE, true),
            (CKA_ALWAYS_SENSITIVE, self.version.origin == Origin::Generated && !self.key.exportable),
            (CKA_EXTRACTABLE, false),
            (CKA_NEVER_EXTRACTABLE, self.version.origin == Origin::Generated && !self.key.exportable),
            (CKA_SIGN, self.service.is_latest && !agrees(self.algorithm)),
            (CKA_SIGN_RECOVER, false),
            (CKA_DECRYPT, self.algorithm.is_rsa()),
            (CKA_UNWRAP, self.algorithm.is_rsa()),
            (CKA_WRAP_WITH_TRUSTED, false),
            (CKA_ALWAYS_AUTHENTICATE, false),
        ]);
        Ok(self.clone().object(CKO_PRIVATE_KEY, attributes, Some(public.clone())))
    }

    fn public(&self, public: &PublicKey) -> Result<Object> {
        let mut attributes = self.attributes(CKO_PUBLIC_KEY);
        describe(public, &mut attributes)?;
        attributes.set(CKA_SUBJECT, b"").set_flags(&[
            (CKA_VERIFY, !agrees(self.algorithm)),
            (CKA_VERIFY_RECOVER, false),
            (CKA_ENCRYPT, self.algorithm.is_rsa() && self.service.is_latest),
            (CKA_WRAP, self.algorithm.is_rsa() && self.service.is_latest),
            (CKA_TRUSTED, false),
        ]);
        Ok(self.clone().object(CKO_PUBLIC_KEY, attributes, Some(public.clone())))
    }

    fn secret(&self) -> Object {
        let mut attributes = self.attributes(CKO_SECRET_KEY);
        attributes.set(CKA_ALLOWED_MECHANISMS, &self.allowed_mechanisms());
        let encrypts = is_aes(self.algorithm);
        let length = match self.algorithm {
            Algorithm::Aes128Gcm => 16,
            Algorithm::Aes256Gcm => 32,
            mac => mac.output_length(),
        };
        attributes.set_number(CKA_VALUE_LEN, length as CK_ULONG);
        attributes.set_flags(&[
            (CKA_SENSITIVE, true),
            (CKA_ALWAYS_SENSITIVE, self.version.origin == Origin::Generated && !self.key.exportable),
            (CKA_EXTRACTABLE, false),
            (CKA_NEVER_EXTRACTABLE, self.version.origin == Origin::Generated && !self.key.exportable),
            (CKA_SIGN, !encrypts && self.service.is_latest),
            (CKA_VERIFY, !encrypts),
            (CKA_ENCRYPT, encrypts && self.service.is_latest),
            (CKA_DECRYPT, encrypts),
            (CKA_WRAP, false),
            (CKA_UNWRAP, false),
            (CKA_WRAP_WITH_TRUSTED, false),
            (CKA_TRUSTED, false),
        ]);
        self.clone().object(CKO_SECRET_KEY, attributes, None)
    }
}

impl Clone for Source<'_> {
    fn clone(&self) -> Self {
        Self { service: self.service.clone(), ..*self }
    }
}

/// The mechanism that made a key.
fn generation_mechanism(algorithm: Algorithm, local: bool) -> CK_MECHANISM_TYPE {
    match algorithm {
        _ if !local => CK_MECHANISM_TYPE::MAX,
        Algorithm::Ed25519 => CKM_EC_EDWARDS_KEY_PAIR_GEN,
        Algorithm::X25519 => CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
        _ if algorithm.is_ecdsa() || agrees(algorithm) => CKM_EC_KEY_PAIR_GEN,
        _ if algorithm.is_rsa() => CKM_RSA_PKCS_KEY_PAIR_GEN,
        _ if is_aes(algorithm) => CKM_AES_KEY_GEN,
        _ => CKM_GENERIC_SECRET_KEY_GEN,
    }
}
