//! Signing and verifying: what an operation of a session gathers, and how it ends.

use std::sync::Arc;

use bulla_kms::prehash::HashFunction;
use cryptoki_sys::*;

use crate::backend::Backend;
use crate::error::{Failure, Result, fail, require};
use crate::object::public;
use crate::object::{KeyOfObject, Object};
use crate::operation::digest::{Hash, Hasher};
use crate::operation::mechanism::{Mechanism, Padding, Scheme};
use crate::session::curve::CurvePrivateKey;
use crate::session::key::SessionKey;
use crate::session::signature::SessionSignature;

/// The longest message that is sent to the service. Longer ones are hashed in the module, where the
/// key permits that.
const MAX_MESSAGE_LEN: usize = 16 << 20;

/// A signature that is being made or verified.
pub(crate) enum SignatureOperation {
    /// With a key of the service, or of a curve.
    Key(KeySignature),
    /// With another key of a session.
    Session(SessionSignature),
}

impl SignatureOperation {
    /// # Errors
    /// `CKR_KEY_FUNCTION_NOT_PERMITTED` if the object does not sign, or no digests of the
    /// program's; those of [`Scheme::of`].
    pub(crate) fn to_sign(mechanism: &Mechanism, object: Arc<Object>) -> Result<Self> {
        Ok(match object.session_key.as_deref() {
            None | Some(SessionKey::Curve(_)) => Self::Key(KeySignature::to_sign(mechanism, object)?),
            Some(_) => Self::Session(SessionSignature::new(mechanism, object, CKA_SIGN)?),
        })
    }

    /// # Errors
    /// `CKR_KEY_FUNCTION_NOT_PERMITTED` if the object does not verify; those of [`Scheme::of`].
    pub(crate) fn to_verify(mechanism: &Mechanism, object: Arc<Object>) -> Result<Self> {
        Ok(match object.session_key.as_deref() {
            None | Some(SessionKey::Curve(_)) => Self::Key(KeySignature::to_verify(mechanism, object)?),
            Some(_) => Self::Session(SessionSignature::new(mechanism, object, CKA_VERIFY)?),
        })
    }

    /// The length of the signature.
    pub(crate) fn output_len(&self) -> usize {
        match self {
            Self::Key(signature) => signature.output_len(),
            Self::Session(signature) => signature.output_len(),
        }
    }

    /// Adds a piece of the message.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE` if it becomes too long.
    pub(crate) fn update(&mut self, data: &[u8]) -> Result<()> {
        match self {
            Self::Key(signature) => signature.update(data),
            Self::Session(signature) => signature.update(data),
        }
    }

    /// Signs the message, of which `rest` is the last piece.
    ///
    /// # Errors
    /// Those of the service; `CKR_DATA_LEN_RANGE` and `CKR_DATA_INVALID` for digests.
    pub(crate) fn sign(
        self,
        backend: impl FnOnce() -> Result<Arc<dyn Backend>>,
        rest: &[u8],
    ) -> Result<Vec<u8>> {
        match self {
            Self::Key(signature) => signature.sign(backend, rest),
            Self::Session(signature) => signature.sign(rest),
        }
    }

    /// Verifies a signature of the message, of which `rest` is the last piece. Only a message
    /// authentication code of a key of the service needs the service.
    ///
    /// # Errors
    /// `CKR_SIGNATURE_INVALID` and `CKR_SIGNATURE_LEN_RANGE`; those of the service.
    pub(crate) fn verify(
        self,
        backend: impl FnOnce() -> Result<Arc<dyn Backend>>,
        rest: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        match self {
            Self::Key(operation) => operation.verify(backend, rest, signature),
            Self::Session(operation) => operation.verify(rest, signature),
        }
    }
}

/// A signature with a key of the service, or with a key of a curve.
pub(crate) struct KeySignature {
    object: Arc<Object>,
    scheme: Scheme,
    input: Input,
}

/// The message so far.
enum Input {
    Message(Vec<u8>),
    Hash(Box<Hasher>, (HashFunction, Padding)),
}

impl KeySignature {
    fn to_sign(mechanism: &Mechanism, object: Arc<Object>) -> Result<Self> {
        let key = key_for(mechanism, &object, CKA_SIGN)?;
        let scheme = Scheme::of(mechanism, key.algorithm)?;
        if object.session_key.is_none() {
            let service = key.of_service()?;
            require(service.signs_digests || !scheme.takes_digests(), CKR_KEY_FUNCTION_NOT_PERMITTED)?;
        }
        Ok(Self { object, scheme, input: Input::Message(Vec::new()) })
    }

    fn to_verify(mechanism: &Mechanism, object: Arc<Object>) -> Result<Self> {
        let key = key_for(mechanism, &object, CKA_VERIFY)?;
        let scheme = Scheme::of(mechanism, key.algorithm)?;
        Ok(Self { object, scheme, input: Input::Message(Vec::new()) })
    }

    fn output_len(&self) -> usize {
        self.object.key.as_ref().map_or(0, |key| key.algorithm.output_length())
    }

    /// Adds a piece of the message.
    ///
    /// # Errors
    /// `CKR_DATA_LEN_RANGE` if it becomes longer than the service takes.
    fn update(&mut self, data: &[u8]) -> Result<()> {
        if let (Scheme::Hashed(hash, padding), true) = (self.scheme, self.hashes_here())
            && let Input::Message(message) = &self.input
        {
            let mut hasher = Box::new(Hash::from(hash).hasher());
            hasher.update(message);
            self.input = Input::Hash(hasher, (hash, padding));
        }
        match &mut self.input {
            Input::Hash(hasher, _) => hasher.update(data),
            Input::Message(message) => {
                require(message.len() + data.len() <= MAX_MESSAGE_LEN, CKR_DATA_LEN_RANGE)?;
                message.extend_from_slice(data);
            }
        }
        Ok(())
    }

    /// Whether a message in pieces can be hashed in the module: to verify it always can, and to
    /// sign if the key signs digests, or is in the module.
    fn hashes_here(&self) -> bool {
        let Some(key) = &self.object.key else { return false };
        let is_here = self.object.class == CKO_PUBLIC_KEY || self.object.session_key.is_some();
        is_here || key.version.as_ref().is_some_and(|key| key.signs_digests)
    }

    fn sign(mut self, backend: impl FnOnce() -> Result<Arc<dyn Backend>>, rest: &[u8]) -> Result<Vec<u8>> {
        self.update_last(rest)?;
        if let Some(SessionKey::Curve(curve)) = self.object.session_key.as_deref() {
            return self.sign_here(curve);
        }
        let backend = backend()?;
        let key = self.object.key.as_ref().ok_or(Failure(CKR_GENERAL_ERROR))?;
        let service = key.of_service()?;
        let message = match self.input {
            Input::Message(message) => message,
            Input::Hash(hasher, (hash, padding)) => {
                let digest = public::Digest { hash, bytes: hasher.finish(), padding };
                return backend.sign_digest(&service.id, &digest);
            }
        };
        match self.scheme {
            scheme if scheme.is_default_of(key.algorithm) => backend.sign(&service.id, message),
            Scheme::Hashed(hash, padding) => backend.sign_hashed(&service.id, &message, (hash, padding)),
            Scheme::Hmac => backend.mac(&service.id, &message),
            scheme => {
                let digest = public::digest_of(scheme, key.algorithm, &message)?;
                backend.sign_digest(&service.id, &digest)
            }
        }
    }

    /// Signs with a key that is in the module.
    fn sign_here(&self, key: &CurvePrivateKey) -> Result<Vec<u8>> {
        let algorithm = self.object.key()?.algorithm;
        let digest = match (&self.input, self.scheme) {
            (Input::Hash(hasher, _), _) => hasher.as_ref().clone().finish(),
            (Input::Message(message), Scheme::Hashed(hash, _)) => {
                let mut hasher = Hash::from(hash).hasher();
                hasher.update(message);
                hasher.finish()
            }
            (Input::Message(message), Scheme::EdDsa) => return key.sign_message(message),
            (Input::Message(message), scheme) => public::digest_of(scheme, algorithm, message)?.bytes,
        };
        key.sign_digest(&digest)
    }

    fn verify(
        mut self,
        backend: impl FnOnce() -> Result<Arc<dyn Backend>>,
        rest: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        self.update_last(rest)?;
        let key = self.object.key.as_ref().ok_or(Failure(CKR_GENERAL_ERROR))?;
        match (&key.public, self.input) {
            (Some(public), Input::Message(message)) => {
                public::verify(public, self.scheme, &message, signature)
            }
            (Some(public), Input::Hash(hasher, how)) => {
                public::verify_hash(public, how, &hasher.finish(), signature)
            }
            (None, Input::Message(message)) => {
                require(signature.len() == key.algorithm.output_length(), CKR_SIGNATURE_LEN_RANGE)?;
                let is_valid = backend()?.verify_mac(&key.of_service()?.id, &message, signature)?;
                require(is_valid, CKR_SIGNATURE_INVALID)
            }
            (None, Input::Hash(..)) => fail(CKR_GENERAL_ERROR),
        }
    }

    /// Adds the last piece. A short message that came as one piece is not hashed here: the service
    /// signs many messages at once.
    fn update_last(&mut self, rest: &[u8]) -> Result<()> {
        match &mut self.input {
            Input::Message(message) if message.len() + rest.len() <= MAX_MESSAGE_LEN => {
                message.extend_from_slice(rest);
                Ok(())
            }
            _ => self.update(rest),
        }
    }
}

/// The key of an object that has a flag set.
fn key_for<'a>(
    mechanism: &Mechanism,
    object: &'a Object,
    flag: CK_ATTRIBUTE_TYPE,
) -> Result<&'a KeyOfObject> {
    let key = object.key()?;
    if !object.is_token_object() {
        object.allows(mechanism.kind)?;
    }
    // A mechanism that nobody has is told first.
    if Scheme::of(mechanism, key.algorithm) == fail(CKR_MECHANISM_INVALID) {
        return fail(CKR_MECHANISM_INVALID);
    }
    require(object.attributes.is_set(flag), CKR_KEY_FUNCTION_NOT_PERMITTED)?;
    Ok(key)
}
