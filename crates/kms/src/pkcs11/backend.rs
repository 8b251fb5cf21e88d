//! The token as a backend.

use std::fmt;
use std::sync::{Arc, Mutex};

use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::eddsa::{EddsaParams, EddsaSignatureScheme};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::config::DeviceConfig;
use super::encoding;
use super::fault::Fault;
use super::module::lock;
use super::token::{Access, At, Token};
use crate::algorithm::Algorithm;
use crate::backend::{Backend, Backends, Capabilities, KeyMaterial, Prepared, PrivateKey, VerifyRequest};
use crate::encoding::hex;
use crate::error::{Code, KmsError, Result};
use crate::prehash::not_prehashed;
use crate::public_key::PublicKey;
use crate::verdict::Verdict;

/// The name of this backend in the records of keys.
pub const NAME: &str = "pkcs11";

/// The length of an object's id in bytes.
pub(super) const ID: usize = 16;

/// The object identifiers of the curves, in DER: id-Ed25519 (RFC 8410) and secp256r1 (RFC 5480).
const ED25519_OID: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];
const P256_OID: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// The name of Ed25519's curve in PKCS #11 3.0: a PrintableString in DER.
const EDWARDS25519_NAME: &[u8] = b"\x13\x0cedwards25519";

/// A token as a backend. Cloning is cheap, and all clones use the same token.
#[derive(Clone)]
pub struct Pkcs11 {
    config: Arc<DeviceConfig>,
    token: Arc<Mutex<Option<Arc<Token>>>>,
}

impl Pkcs11 {
    /// Finds the token and logs in to it.
    ///
    /// # Errors
    /// [`Code::NotFound`] or [`Code::DeviceFailed`] if the library cannot be loaded;
    /// [`Code::DeviceUnavailable`] if there is no such token; [`Code::WrongPin`],
    /// [`Code::PinLocked`]; [`Code::InvalidArgument`] if several tokens match or there is no PIN;
    /// errors of reading the PIN.
    pub fn open(config: &DeviceConfig) -> Result<Self> {
        let token = Self::when_needed(config);
        token.token()?;
        Ok(token)
    }

    /// A token that is opened on its first use. As long as signatures are only verified, it is not
    /// needed.
    pub fn when_needed(config: &DeviceConfig) -> Self {
        Self { config: Arc::new(config.clone()), token: Arc::default() }
    }

    pub(super) fn token(&self) -> Result<Arc<Token>> {
        let mut token = lock(&self.token);
        if let Some(token) = &*token {
            return Ok(Arc::clone(token));
        }
        let opened = Arc::new(Token::open(&self.config)?);
        *token = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn key(&self, algorithm: Algorithm, id: [u8; ID]) -> Result<TokenKey> {
        Ok(TokenKey { token: self.token()?, algorithm, id, handle: Mutex::default() })
    }
}

impl fmt::Debug for Pkcs11 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pkcs11").field(&self.config).finish()
    }
}

/// The parameters of an algorithm on a token.
struct Scheme {
    key_type: KeyType,
    /// The curve's names, the preferred one first.
    curves: &'static [&'static [u8]],
}

fn scheme(algorithm: Algorithm) -> Scheme {
    match algorithm {
        Algorithm::Ed25519 => {
            Scheme { key_type: KeyType::EC_EDWARDS, curves: &[ED25519_OID, EDWARDS25519_NAME] }
        }
        Algorithm::EcdsaP256 => Scheme { key_type: KeyType::EC, curves: &[P256_OID] },
        _ => unreachable!("only algorithms that are served are asked for"),
    }
}

fn sign_mechanism(algorithm: Algorithm) -> Mechanism<'static> {
    match algorithm {
        Algorithm::Ed25519 => Mechanism::Eddsa(EddsaParams::new(EddsaSignatureScheme::Ed25519)),
        _ => Mechanism::Ecdsa,
    }
}

fn generate_mechanism(algorithm: Algorithm) -> Mechanism<'static> {
    match algorithm {
        Algorithm::Ed25519 => Mechanism::EccEdwardsKeyPairGen,
        _ => Mechanism::EccKeyPairGen,
    }
}

impl Backend for Pkcs11 {
    fn name(&self) -> &str {
        NAME
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        // Whether the token supports the algorithm shows when a key is made.
        matches!(algorithm, Algorithm::Ed25519 | Algorithm::EcdsaP256).then_some(Capabilities {
            verify_lanes: 1,
            sign_lanes: 1,
            material_is_key: false,
        })
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        let id = self.token()?.run(Access::Write, |at| generate(at, algorithm))?;
        let key = self.key(algorithm, id)?;
        // Check that the token computes the algorithm that we expect.
        let (public_key, signature) = (key.public_key()?, key.sign(&id)?);
        match PublicKey::from_bytes(algorithm, &public_key)?.verify(&id, &signature) {
            Verdict::Valid => Ok(Zeroizing::new(id.to_vec())),
            _ => {
                key.destroy()?;
                Err(KmsError::new(
                    Code::DeviceFailed,
                    format!("the token made a key of {algorithm} whose signature does not verify"),
                ))
            }
        }
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        Ok(Arc::new(self.key(algorithm, id(material)?)?))
    }

    fn destroy(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<()> {
        self.key(algorithm, id(material)?)?.destroy()
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        Backends::software().verifier(algorithm)?.prepare(algorithm, public_key)
    }

    fn verify(&self, request: VerifyRequest<'_>) -> Verdict {
        match Backends::software().verifier(request.public_key.algorithm()) {
            Ok(software) => software.verify(request),
            Err(_) => Verdict::Invalid,
        }
    }

    fn verify_many(&self, requests: &[VerifyRequest<'_>]) -> Vec<Verdict> {
        let Some(first) = requests.first() else { return Vec::new() };
        match Backends::software().verifier(first.public_key.algorithm()) {
            Ok(software) => software.verify_many(requests),
            Err(_) => vec![Verdict::Invalid; requests.len()],
        }
    }
}

fn id(material: &[u8]) -> Result<[u8; ID]> {
    material.try_into().map_err(|_| KmsError::corrupt("the id of a key on a token does not have 16 bytes"))
}

/// Makes a pair of objects and returns their id.
fn generate(at: &At<'_>, algorithm: Algorithm) -> Result<[u8; ID], Fault> {
    let mut id = [0; ID];
    crate::random::fill(&mut id)?;
    let scheme = scheme(algorithm);
    let mut refused = None;
    for curve in scheme.curves {
        let common = [
            Attribute::Token(true),
            Attribute::KeyType(scheme.key_type),
            Attribute::Id(id.to_vec()),
            Attribute::Label(b"bulla".to_vec()),
        ];
        let public = [
            &common[..],
            &[Attribute::Private(false), Attribute::Verify(true), Attribute::EcParams(curve.to_vec())],
        ];
        let private = [
            &common[..],
            &[
                Attribute::Private(true),
                Attribute::Sensitive(true),
                Attribute::Extractable(false),
                Attribute::Sign(true),
            ],
        ];
        let mechanism = generate_mechanism(algorithm);
        match at.session.generate_key_pair(&mechanism, &public.concat(), &private.concat()) {
            Ok((public, private)) => return check_kept(at, [public, private]).map(|()| id),
            Err(error) => match Fault::from(error) {
                Fault::Failed(error) => refused = Some(error),
                lost => return Err(lost),
            },
        }
    }
    Err(refused.map_or_else(|| Fault::failed("no curve is known"), Fault::Failed))
}

/// Checks that the token will never reveal the private key, as requested; deletes the pair
/// otherwise.
fn check_kept(at: &At<'_>, [public, private]: [ObjectHandle; 2]) -> Result<(), Fault> {
    let wanted = [
        Attribute::Sensitive(true),
        Attribute::AlwaysSensitive(true),
        Attribute::Extractable(false),
        Attribute::NeverExtractable(true),
    ];
    let types = [
        AttributeType::Sensitive,
        AttributeType::AlwaysSensitive,
        AttributeType::Extractable,
        AttributeType::NeverExtractable,
    ];
    if at.session.get_attributes(private, &types)? == wanted {
        return Ok(());
    }
    at.session.destroy_object(private)?;
    at.session.destroy_object(public)?;
    Err(Fault::failed(
        "the token created an extractable private key, although bulla asked for a key that is not; bulla deleted that key",
    ))
}

/// A private key on a token.
struct TokenKey {
    token: Arc<Token>,
    algorithm: Algorithm,
    id: [u8; ID],
    /// The private object's handle, and the life of the module for which it is valid.
    handle: Mutex<Option<(u64, ObjectHandle)>>,
}

impl TokenKey {
    fn objects(&self, at: &At<'_>, class: ObjectClass) -> Result<Vec<ObjectHandle>, Fault> {
        let key_type = scheme(self.algorithm).key_type;
        at.find(&[Attribute::Class(class), Attribute::KeyType(key_type), Attribute::Id(self.id.to_vec())])
    }

    /// The error for a key that is missing from a token that is present.
    fn missing(&self, at: &At<'_>) -> Fault {
        if let Err(lost) = at.check_present() {
            return lost;
        }
        let id = hex(&self.id);
        Fault::Failed(KmsError::new(
            Code::KeyNotFound,
            format!(
                "the token has no {} key with the id {id}: the key was deleted, or is on another token",
                self.algorithm
            ),
        ))
    }

    fn private_object(&self, at: &At<'_>) -> Result<ObjectHandle, Fault> {
        if let Some((_, handle)) = lock(&self.handle).filter(|(life, _)| *life == at.life) {
            return Ok(handle);
        }
        match self.objects(at, ObjectClass::PRIVATE_KEY)?[..] {
            [handle] => {
                *lock(&self.handle) = Some((at.life, handle));
                Ok(handle)
            }
            [] => Err(self.missing(at)),
            _ => Err(Fault::failed("the token has several private keys with one id")),
        }
    }

    fn read_public_key(&self, at: &At<'_>) -> Result<Vec<u8>, Fault> {
        // Some tokens keep no public objects, and store the point with the private object.
        for class in [ObjectClass::PUBLIC_KEY, ObjectClass::PRIVATE_KEY] {
            for object in self.objects(at, class)? {
                let attributes = at.session.get_attributes(object, &[AttributeType::EcPoint])?;
                let Some(Attribute::EcPoint(point)) = attributes.first() else { continue };
                return encoding::public_key(self.algorithm, point).ok_or_else(|| {
                    Fault::failed(format!("the token's public key is not a public key of {}", self.algorithm))
                });
            }
        }
        Err(self.missing(at))
    }

    fn destroy(&self) -> Result<()> {
        self.token.run(Access::Write, |at| {
            *lock(&self.handle) = None;
            let mut found = 0;
            // The private object first: if the token is lost in between, the rest can be found by
            // its id later.
            for class in [ObjectClass::PRIVATE_KEY, ObjectClass::PUBLIC_KEY] {
                for object in self.objects(at, class)? {
                    at.session.destroy_object(object)?;
                    found += 1;
                }
            }
            if found == 0 { at.check_present() } else { Ok(()) }
        })
    }
}

impl PrivateKey for TokenKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        self.token.run(Access::Read, |at| self.read_public_key(at))
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        match self.algorithm {
            // Every token supports ECDSA of a digest.
            Algorithm::EcdsaP256 => self.sign_data(&Sha256::digest(message)),
            _ => self.sign_data(message),
        }
    }

    fn sign_digest(&self, digest: &[u8]) -> Result<Vec<u8>> {
        match self.algorithm {
            // Some tokens refuse digests that are longer than the order of the curve, and do not
            // cut them.
            Algorithm::EcdsaP256 => self.sign_data(digest.get(..32).unwrap_or(digest)),
            algorithm => Err(not_prehashed(algorithm)),
        }
    }
}

impl TokenKey {
    /// Signs what the token's mechanism takes: a message, or for ECDSA a digest.
    fn sign_data(&self, data: &[u8]) -> Result<Vec<u8>> {
        let mechanism = sign_mechanism(self.algorithm);
        self.token.run(Access::Read, |at| {
            let object = self.private_object(at)?;
            let signature = at.session.sign(&mechanism, object, data).inspect_err(|_| {
                // The handle may belong to another object by now.
                *lock(&self.handle) = None;
            })?;
            encoding::signature(self.algorithm, &signature)
                .ok_or_else(|| Fault::failed("the token's signature does not have the form of its algorithm"))
        })
    }
}
