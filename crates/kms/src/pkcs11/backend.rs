//! The device as a backend.

use std::fmt;
use std::sync::{Arc, Mutex};

use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::eddsa::{EddsaParams, EddsaSignatureScheme};
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::config::DeviceConfig;
use super::device::Fault;
use super::device::{Access, Device, DeviceSession};
use super::module::lock;
use crate::algorithm::Algorithm;
use crate::backend::{
    Backend, Backends, Capabilities, KeyMaterial, Prepared, PrivateKey, VerifyRequest, p256,
};
use crate::encoding::hex;
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::prehash::not_prehashed;
use crate::public_key::PublicKey;

/// The name of this backend in the records of keys.
pub const NAME: &str = "pkcs11";

/// The length of an object's id in bytes.
pub(super) const ID_LEN: usize = 16;

/// The object identifiers of the curves, in DER: id-Ed25519 (RFC 8410) and secp256r1 (RFC 5480).
const ED25519_OID: &[u8] = &[0x06, 0x03, 0x2b, 0x65, 0x70];
const P256_OID: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// The name of Ed25519's curve in PKCS #11 3.0: a PrintableString in DER.
const EDWARDS25519_NAME: &[u8] = b"\x13\x0cedwards25519";

/// A device as a backend. Cloning is cheap, and all clones use the same device.
///
/// ```
/// use bulla_kms::Code;
/// use bulla_kms::pkcs11::{DeviceConfig, Pkcs11};
///
/// let config: DeviceConfig = "pkcs11:token=keys?module-path=/usr/lib/pkcs11.so".parse()?;
/// // A person has chosen another library, and the device has a pad of keys for its PIN.
/// let config = config.module("/no/such/library.so".into()).pin(None);
///
/// // Nothing is loaded yet: this program may only verify.
/// let device = Pkcs11::when_needed(&config);
/// assert_eq!(Pkcs11::open(&config).unwrap_err().code, Code::NotFound);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone)]
pub struct Pkcs11 {
    config: Arc<DeviceConfig>,
    device: Arc<Mutex<Option<Arc<Device>>>>,
}

impl Pkcs11 {
    /// Finds the device and logs in to it.
    ///
    /// # Errors
    /// [`Code::NotFound`] or [`Code::DeviceFailed`] if the library cannot be loaded;
    /// [`Code::DeviceUnavailable`] if there is no such device; [`Code::WrongPin`],
    /// [`Code::PinLocked`]; [`Code::InvalidArgument`] if several devices match or there is no PIN;
    /// errors of reading the PIN.
    pub fn open(config: &DeviceConfig) -> Result<Self> {
        let device = Self::when_needed(config);
        device.device()?;
        Ok(device)
    }

    /// A device that is opened on its first use. As long as signatures are only verified, it is not
    /// needed.
    pub fn when_needed(config: &DeviceConfig) -> Self {
        Self { config: Arc::new(config.clone()), device: Arc::default() }
    }

    pub(super) fn device(&self) -> Result<Arc<Device>> {
        let mut device = lock(&self.device);
        if let Some(device) = &*device {
            return Ok(Arc::clone(device));
        }
        let opened = Arc::new(Device::open(&self.config)?);
        *device = Some(Arc::clone(&opened));
        Ok(opened)
    }

    fn key(&self, algorithm: Algorithm, id: [u8; ID_LEN]) -> Result<DeviceKey> {
        Ok(DeviceKey { device: self.device()?, algorithm, id, handle: Mutex::default() })
    }
}

impl fmt::Debug for Pkcs11 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pkcs11").field(&self.config).finish()
    }
}

/// The parameters of an algorithm on a device.
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
        // Whether the device supports the algorithm shows when a key is made.
        matches!(algorithm, Algorithm::Ed25519 | Algorithm::EcdsaP256)
            .then_some(Capabilities::default().material_is_key(false))
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        let id = self.device()?.run(Access::Write, |session| generate(session, algorithm))?;
        let key = self.key(algorithm, id)?;
        // Check that the device computes the algorithm that we expect.
        let (public_key, signature) = (key.public_key()?, key.sign(&id)?);
        match PublicKey::from_bytes(algorithm, &public_key)?.verify(&id, &signature) {
            Verdict::Valid => Ok(Zeroizing::new(id.to_vec())),
            _ => {
                key.destroy()?;
                Err(KmsError::new(
                    Code::DeviceFailed,
                    format!("the device made a key of {algorithm} whose signature does not verify"),
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

fn id(material: &[u8]) -> Result<[u8; ID_LEN]> {
    material.try_into().map_err(|_| KmsError::corrupt("the id of a key on a device does not have 16 bytes"))
}

/// Makes a pair of objects and returns their id.
fn generate(session: &DeviceSession<'_>, algorithm: Algorithm) -> Result<[u8; ID_LEN], Fault> {
    let mut id = [0; ID_LEN];
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
        match session.raw.generate_key_pair(&mechanism, &public.concat(), &private.concat()) {
            Ok((public, private)) => return check_kept(session, [public, private]).map(|()| id),
            Err(error) => match Fault::from(error) {
                Fault::Failed(error) => refused = Some(error),
                lost => return Err(lost),
            },
        }
    }
    Err(refused.map_or_else(|| Fault::failed("no curve is known"), Fault::Failed))
}

/// Checks that the device will never reveal the private key, as requested; deletes the pair
/// otherwise.
fn check_kept(session: &DeviceSession<'_>, [public, private]: [ObjectHandle; 2]) -> Result<(), Fault> {
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
    if session.raw.get_attributes(private, &types)? == wanted {
        return Ok(());
    }
    session.raw.destroy_object(private)?;
    session.raw.destroy_object(public)?;
    Err(Fault::failed(
        "the device created an extractable private key, although bulla asked for a key that is not; bulla deleted that key",
    ))
}

/// A private key on a device.
struct DeviceKey {
    device: Arc<Device>,
    algorithm: Algorithm,
    id: [u8; ID_LEN],
    /// The private object's handle, and the life of the module for which it is valid.
    handle: Mutex<Option<(u64, ObjectHandle)>>,
}

impl DeviceKey {
    fn objects(&self, session: &DeviceSession<'_>, class: ObjectClass) -> Result<Vec<ObjectHandle>, Fault> {
        let key_type = scheme(self.algorithm).key_type;
        session.find(&[
            Attribute::Class(class),
            Attribute::KeyType(key_type),
            Attribute::Id(self.id.to_vec()),
        ])
    }

    /// The error for a key that is missing from a device that is present.
    fn missing(&self, session: &DeviceSession<'_>) -> Fault {
        if let Err(lost) = session.check_present() {
            return lost;
        }
        let id = hex(&self.id);
        Fault::Failed(KmsError::new(
            Code::KeyNotFound,
            format!(
                "the device has no {} key with the id {id}: the key was deleted, or is on another device",
                self.algorithm
            ),
        ))
    }

    fn private_object(&self, session: &DeviceSession<'_>) -> Result<ObjectHandle, Fault> {
        if let Some((_, handle)) = lock(&self.handle).filter(|(life, _)| *life == session.life) {
            return Ok(handle);
        }
        match self.objects(session, ObjectClass::PRIVATE_KEY)?[..] {
            [handle] => {
                *lock(&self.handle) = Some((session.life, handle));
                Ok(handle)
            }
            [] => Err(self.missing(session)),
            _ => Err(Fault::failed("the device has several private keys with one id")),
        }
    }

    fn read_public_key(&self, session: &DeviceSession<'_>) -> Result<Vec<u8>, Fault> {
        // Some devices keep no public objects, and store the point with the private object.
        for class in [ObjectClass::PUBLIC_KEY, ObjectClass::PRIVATE_KEY] {
            for object in self.objects(session, class)? {
                let attributes = session.raw.get_attributes(object, &[AttributeType::EcPoint])?;
                let Some(Attribute::EcPoint(point)) = attributes.first() else { continue };
                return decode_public_key(self.algorithm, point).ok_or_else(|| {
                    Fault::failed(format!(
                        "the device's public key is not a public key of {}",
                        self.algorithm
                    ))
                });
            }
        }
        Err(self.missing(session))
    }

    fn destroy(&self) -> Result<()> {
        self.device.run(Access::Write, |session| {
            *lock(&self.handle) = None;
            let mut found = 0;
            // The private object first: if the device is lost in between, the rest can be found by
            // its id later.
            for class in [ObjectClass::PRIVATE_KEY, ObjectClass::PUBLIC_KEY] {
                for object in self.objects(session, class)? {
                    session.raw.destroy_object(object)?;
                    found += 1;
                }
            }
            if found == 0 { session.check_present() } else { Ok(()) }
        })
    }
}

impl PrivateKey for DeviceKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        self.device.run(Access::Read, |session| self.read_public_key(session))
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        match self.algorithm {
            // Every device supports ECDSA of a digest.
            Algorithm::EcdsaP256 => self.sign_data(&Sha256::digest(message)),
            _ => self.sign_data(message),
        }
    }

    fn sign_digest(&self, digest: &[u8]) -> Result<Vec<u8>> {
        match self.algorithm {
            // Some devices refuse digests that are longer than the order of the curve, and do not
            // cut them.
            Algorithm::EcdsaP256 => self.sign_data(digest.get(..32).unwrap_or(digest)),
            algorithm => Err(not_prehashed(algorithm)),
        }
    }
}

impl DeviceKey {
    /// Signs what the device's mechanism takes: a message, or for ECDSA a digest.
    fn sign_data(&self, data: &[u8]) -> Result<Vec<u8>> {
        let mechanism = sign_mechanism(self.algorithm);
        self.device.run(Access::Read, |session| {
            let object = self.private_object(session)?;
            let signature = session.raw.sign(&mechanism, object, data).inspect_err(|_| {
                // The handle may belong to another object by now.
                *lock(&self.handle) = None;
            })?;
            decode_signature(self.algorithm, &signature).ok_or_else(|| {
                Fault::failed("the device's signature does not have the form of its algorithm")
            })
        })
    }
}

/// The public key in an attribute `CKA_EC_POINT`.
///
/// PKCS #11 wants a DER OCTET STRING around the point of a Weierstrass curve. For an Edwards curve,
/// version 3.0 wants only the bytes of RFC 8032; later versions have been read either way. In
/// practice devices return both forms for both kinds of curve, and the lengths tell them apart.
fn decode_public_key(algorithm: Algorithm, attribute: &[u8]) -> Option<Vec<u8>> {
    let is_bare = |length: usize| match algorithm {
        Algorithm::Ed25519 => length == 32,
        // Uncompressed and compressed.
        _ => length == 65 || length == 33,
    };
    // Decide by the length alone: a bare key may begin with the same bytes as an OCTET STRING.
    let point = match attribute {
        bare if is_bare(bare.len()) => bare,
        [4, length, wrapped @ ..] if usize::from(*length) == wrapped.len() && is_bare(wrapped.len()) => {
            wrapped
        }
        _ => return None,
    };
    match algorithm {
        Algorithm::EcdsaP256 => p256::compress(point),
        _ => Some(point.to_vec()),
    }
}

/// A device's signature, in the only form that we verify.
fn decode_signature(algorithm: Algorithm, bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() != algorithm.output_length() {
        return None;
    }
    match algorithm {
        Algorithm::EcdsaP256 => p256::normalize(bytes),
        _ => Some(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator of P-256 (SEC 2, section 2.4.2), whose y is odd.
    const GENERATOR: &str = "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296\
                             4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn an_edwards_key_is_read_alone_and_in_an_octet_string() {
        for first in [0, 4] {
            let key = [vec![first], vec![30], vec![7; 30]].concat();
            let wrapped = [vec![4, 32], key.clone()].concat();
            assert_eq!(
                decode_public_key(Algorithm::Ed25519, &key),
                Some(key.clone()),
                "a key may begin as DER does"
            );
            assert_eq!(decode_public_key(Algorithm::Ed25519, &wrapped), Some(key));
            for wrong in [&wrapped[1..], &wrapped[..33], &[&wrapped[..], &[0]].concat(), &[]] {
                assert_eq!(decode_public_key(Algorithm::Ed25519, wrong), None);
            }
        }
    }

    #[test]
    fn a_point_of_p256_is_read_alone_and_in_an_octet_string() {
        let point = bytes(GENERATOR);
        let compressed = [vec![3], point[1..33].to_vec()].concat();
        let wrapped = [vec![4, 65], point.clone()].concat();
        for form in [&point, &wrapped, &compressed] {
            assert_eq!(decode_public_key(Algorithm::EcdsaP256, form).as_ref(), Some(&compressed));
        }
        let mut moved = point.clone();
        moved[64] ^= 1;
        for wrong in [&moved[..], &point[..64], &[]] {
            assert_eq!(decode_public_key(Algorithm::EcdsaP256, wrong), None);
        }
    }

    #[test]
    fn a_signature_of_another_length_is_none() {
        for algorithm in [Algorithm::Ed25519, Algorithm::EcdsaP256] {
            for length in [0, 63, 65, 71] {
                assert_eq!(decode_signature(algorithm, &vec![1; length]), None);
            }
        }
    }
}
