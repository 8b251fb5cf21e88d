//! SubjectPublicKeyInfo (RFC 5280) and PKCS#8 (RFC 5208, RFC 5958), as DER and as PEM.
//!
//! The private key inside PKCS#8 has one of four shapes, by algorithm:
//!
//! - Ed25519 and X25519: an OCTET STRING inside the OCTET STRING (RFC 8410, section 7);
//! - ML-DSA and ML-KEM: a choice of the seed, the expanded key, or both (RFC 9881 and RFC 9935,
//!   section 6). We keep the seed, so an expanded key alone is refused, and an expanded key beside
//!   a seed must be derived from it;
//! - ECDSA and ECDH: the scalar in an ECPrivateKey (RFC 5915, section 3), alone or with its public
//!   key;
//! - RSA (RFC 8017, appendix A.1), SLH-DSA, the composite and X-Wing: the bytes as they are (RFC
//!   9909, section 6, and the drafts).

use pkcs8::der::asn1::{AnyRef, BitStringRef, ContextSpecific, OctetStringRef};
use pkcs8::der::{Decode, Encode, Reader, SliceReader, TagNumber};
use pkcs8::spki::AlgorithmIdentifierRef;
use pkcs8::{LineEnding, ObjectIdentifier, PrivateKeyInfoRef, SecretDocument, SubjectPublicKeyInfoRef};
use zeroize::Zeroizing;

use super::private_key::PrivateKeyData;
use super::public_key::{invalid_public, malformed};
use crate::algorithm::{Algorithm, KeyUsage};
use crate::backend::{Backends, KeyMaterial, SOFTWARE, p256};
use crate::error::{Code, KmsError, Result};
use crate::public_key::PublicKey;

const PUBLIC_LABEL: &str = "PUBLIC KEY";
pub(super) const PRIVATE_LABEL: &str = "PRIVATE KEY";

/// The object identifier of an algorithm's keys and signatures; none if it is symmetric.
fn oid(algorithm: Algorithm) -> Option<ObjectIdentifier> {
    Some(ObjectIdentifier::new_unwrap(match algorithm {
        Algorithm::Ed25519 => "1.3.101.112",
        Algorithm::X25519 => "1.3.101.110",
        Algorithm::EcdsaP256
        | Algorithm::EcdsaP384
        | Algorithm::EcdsaP521
        | Algorithm::EcdhP256
        | Algorithm::EcdhP384
        | Algorithm::EcdhP521 => "1.2.840.10045.2.1",
        Algorithm::Rsa2048 | Algorithm::Rsa3072 | Algorithm::Rsa4096 => "1.2.840.113549.1.1.1",
        Algorithm::MlDsa44 => "2.16.840.1.101.3.4.3.17",
        Algorithm::MlDsa65 => "2.16.840.1.101.3.4.3.18",
        Algorithm::MlDsa87 => "2.16.840.1.101.3.4.3.19",
        Algorithm::SlhDsaSha2_128s => "2.16.840.1.101.3.4.3.20",
        Algorithm::SlhDsaSha2_128f => "2.16.840.1.101.3.4.3.21",
        Algorithm::SlhDsaSha2_192s => "2.16.840.1.101.3.4.3.22",
        Algorithm::SlhDsaSha2_192f => "2.16.840.1.101.3.4.3.23",
        Algorithm::SlhDsaSha2_256s => "2.16.840.1.101.3.4.3.24",
        Algorithm::SlhDsaSha2_256f => "2.16.840.1.101.3.4.3.25",
        Algorithm::SlhDsaShake128s => "2.16.840.1.101.3.4.3.26",
        Algorithm::SlhDsaShake128f => "2.16.840.1.101.3.4.3.27",
        Algorithm::SlhDsaShake192s => "2.16.840.1.101.3.4.3.28",
        Algorithm::SlhDsaShake192f => "2.16.840.1.101.3.4.3.29",
        Algorithm::SlhDsaShake256s => "2.16.840.1.101.3.4.3.30",
        Algorithm::SlhDsaShake256f => "2.16.840.1.101.3.4.3.31",
        Algorithm::MlDsa65Ed25519 => "1.3.6.1.5.5.7.6.48",
        Algorithm::MlKem512 => "2.16.840.1.101.3.4.4.1",
        Algorithm::MlKem768 => "2.16.840.1.101.3.4.4.2",
        Algorithm::MlKem1024 => "2.16.840.1.101.3.4.4.3",
        Algorithm::XWing => "1.3.6.1.4.1.62253.25722",
        Algorithm::Aes128Gcm
        | Algorithm::Aes256Gcm
        | Algorithm::ChaCha20Poly1305
        | Algorithm::XChaCha20Poly1305
        | Algorithm::HmacSha256
        | Algorithm::HmacSha384
        | Algorithm::HmacSha512
        | Algorithm::Blake3 => return None,
    }))
}

/// The curves, which keys of elliptic curves name as a parameter (RFC 5480, section 2.1.1).
static P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
static P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
static P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

/// The curve of keys of ECDSA and ECDH. None for other algorithms.
fn curve(algorithm: Algorithm) -> Option<&'static ObjectIdentifier> {
    match algorithm {
        Algorithm::EcdsaP256 | Algorithm::EcdhP256 => Some(&P256),
        Algorithm::EcdsaP384 | Algorithm::EcdhP384 => Some(&P384),
        Algorithm::EcdsaP521 | Algorithm::EcdhP521 => Some(&P521),
        _ => None,
    }
}

/// The length in bytes of a coordinate, and of a scalar, on the curve of ECDSA or ECDH.
pub(super) fn coordinate_length(algorithm: Algorithm) -> usize {
    if algorithm.is_ecdsa() { algorithm.output_length() / 2 } else { algorithm.output_length() }
}

fn identifier(algorithm: Algorithm) -> AlgorithmIdentifierRef<'static> {
    let parameters = match curve(algorithm) {
        Some(curve) => Some(AnyRef::from(curve)),
        None => algorithm.is_rsa().then_some(AnyRef::NULL),
    };
    let oid = oid(algorithm).expect("a symmetric key has no public key and is not written as PKCS#8");
    AlgorithmIdentifierRef { oid, parameters }
}

/// The algorithm of an identifier. The parameters must be those that we write, or none. All RSA
/// keys have one identifier; `is_rsa_of` tells whether this key is of that length. Keys of ECDSA
/// and ECDH on one curve have one identifier: they are keys of ECDSA, unless ECDH is wanted.
fn algorithm(
    identifier: &AlgorithmIdentifierRef<'_>,
    wanted: Option<Algorithm>,
    is_rsa_of: impl Fn(Algorithm) -> bool,
) -> Result<Algorithm, String> {
    if let Some(wanted) = wanted.filter(|wanted| wanted.usage() == KeyUsage::KeyAgreement)
        && *identifier == self::identifier(wanted)
    {
        return Ok(wanted);
    }
    let of_oid = || Algorithm::ALL.iter().copied().filter(|known| oid(*known) == Some(identifier.oid));
    let mut found = of_oid().filter(|known| *identifier == self::identifier(*known));
    match (found.clone().find(|known| !known.is_rsa() || is_rsa_of(*known)), found.next(), of_oid().next()) {
        (Some(algorithm), ..) => Ok(algorithm),
        (None, Some(_), _) => Err("it is an RSA key with a modulus of another length than 2048, 3072 or 4096 bits, or with another exponent than 65537".into()),
        (None, None, Some(algorithm)) if algorithm.is_ecdsa() => {
            Err("it is a key of another elliptic curve than P-256, P-384 and P-521".into())
        }
        (None, None, Some(algorithm)) if algorithm.is_rsa() => {
            Err("the parameter of its algorithm is not NULL".into())
        }
        (None, None, Some(_)) => Err("its algorithm has parameters, and must have none".into()),
        (None, None, None) => {
            Err(format!("it is of an algorithm that is not known here ({})", identifier.oid))
        }
    }
}

pub(super) fn unwritable(error: der::Error) -> KmsError {
    KmsError::new(Code::InvalidArgument, "the key cannot be written as DER").with_source(error)
}

/// SubjectPublicKeyInfo. It contains a P-256 point uncompressed, because everyone writes this form
/// and some read only this one (RFC 5480, section 2.2).
pub(super) fn public_der(key: &PublicKey) -> Result<Vec<u8>> {
    let uncompressed = match key.algorithm() {
        Algorithm::EcdsaP256 => p256::uncompressed(key.as_bytes()),
        _ => None,
    };
    public_info(key.algorithm(), uncompressed.as_deref().unwrap_or(key.as_bytes()))
}

fn public_info(algorithm: Algorithm, key: &[u8]) -> Result<Vec<u8>> {
    let write = || {
        let subject_public_key = BitStringRef::new(0, key)?;
        SubjectPublicKeyInfoRef { algorithm: identifier(algorithm), subject_public_key }.to_der()
    };
    write().map_err(unwritable)
}

pub(super) fn public_pem(key: &PublicKey) -> Result<String> {
    let document = pkcs8::Document::try_from(public_der(key)?).map_err(unwritable)?;
    document.to_pem(PUBLIC_LABEL, LineEnding::LF).map_err(unwritable)
}

pub(super) fn parse_public_der(bytes: &[u8], wanted: Option<Algorithm>) -> Result<PublicKey> {
    let info = SubjectPublicKeyInfoRef::from_der(bytes)
        .map_err(|_| invalid_public("it is not a SubjectPublicKeyInfo in DER"))?;
    let bits = info.subject_public_key.as_bytes().ok_or_else(|| invalid_public("its bits are no bytes"))?;
    let is_rsa_of = |algorithm: Algorithm| bits.len() == algorithm.public_key_length();
    let algorithm = algorithm(&info.algorithm, wanted, is_rsa_of).map_err(invalid_public)?;
    let point = match algorithm {
        // An uncompressed point begins with 04.
        Algorithm::EcdsaP256 if bits.first() == Some(&4) => p256::compress(bits),
        Algorithm::EcdhP256 if bits.first() != Some(&4) => p256::uncompressed(bits),
        _ => None,
    };
    let key = PublicKey::from_bytes(algorithm, point.as_deref().unwrap_or(bits))?;
    if public_info(algorithm, bits)? == bytes {
        Ok(key)
    } else {
        Err(invalid_public("its DER has another form"))
    }
}

pub(super) fn parse_public_pem(text: &str, wanted: Option<Algorithm>) -> Result<PublicKey> {
    let (label, document) =
        pkcs8::Document::from_pem(text).map_err(|_| invalid_public("it is not PEM of one DER document"))?;
    match label {
        PUBLIC_LABEL => {}
        "PRIVATE KEY" | "ENCRYPTED PRIVATE KEY" | "OPENSSH PRIVATE KEY" => {
            return Err(invalid_public("it is a private key"));
        }
        _ => return Err(invalid_public("its label is not PUBLIC KEY")),
    }
    let key = parse_public_der(document.as_bytes(), wanted)?;
    if document.to_pem(PUBLIC_LABEL, LineEnding::LF).map_err(unwritable)? == text {
        return Ok(key);
    }
    Err(invalid_public(
        "PEM has lines of 64 characters, each with a line feed, and nothing before or after them",
    ))
}

/// The content of the OCTET STRING in PKCS#8.
enum Shape {
    OctetString,
    SeedOrExpanded,
    EcPrivateKey,
    Raw,
}

fn shape(algorithm: Algorithm) -> Shape {
    match algorithm {
        Algorithm::Ed25519 | Algorithm::X25519 => Shape::OctetString,
        algorithm if curve(algorithm).is_some() => Shape::EcPrivateKey,
        Algorithm::MlDsa44
        | Algorithm::MlDsa65
        | Algorithm::MlDsa87
        | Algorithm::MlKem512
        | Algorithm::MlKem768
        | Algorithm::MlKem1024 => Shape::SeedOrExpanded,
        _ => Shape::Raw,
    }
}

const SEED_TAG: TagNumber = TagNumber(0);

/// PKCS#8 of a private key, of version 1.
#[cfg(feature = "tokens")]
pub(super) fn private_der(algorithm: Algorithm, material: &KeyMaterial) -> Result<SecretDocument> {
    let write = || {
        let octets = OctetStringRef::new(material)?;
        let inner = Zeroizing::new(match shape(algorithm) {
            Shape::OctetString => octets.to_der()?,
            Shape::SeedOrExpanded => {
                ContextSpecific { tag_number: SEED_TAG, tag_mode: der::TagMode::Implicit, value: octets }
                    .to_der()?
            }
            Shape::EcPrivateKey => ec_private_key(material, None, None).to_vec(),
            Shape::Raw => material.to_vec(),
        });
        let info = PrivateKeyInfoRef::new(identifier(algorithm), OctetStringRef::new(&inner)?);
        SecretDocument::encode_msg(&info)
    };
    write().map_err(unwritable)
}

pub(super) fn parse_private_pem(text: &str, wanted: Option<Algorithm>) -> Result<PrivateKeyData> {
    let (label, document) =
        SecretDocument::from_pem(text).map_err(|_| malformed("it is not PEM of one DER document"))?;
    match label {
        PRIVATE_LABEL => {}
        "ENCRYPTED PRIVATE KEY" => {
            return Err(malformed(
                "it is encrypted PKCS#8, which is not read; decrypt it with `openssl pkcs8` first",
            ));
        }
        PUBLIC_LABEL => return Err(malformed("it is a public key; import it as one")),
        _ => return Err(malformed("its label is not PRIVATE KEY")),
    }
    let again = document.to_pem(PRIVATE_LABEL, LineEnding::LF).map_err(unwritable)?;
    if again.as_str() != text {
        return Err(malformed(
            "PEM has lines of 64 characters, each with a line feed, and nothing around them",
        ));
    }
    parse_private_der(document.as_bytes(), wanted)
}

pub(super) fn parse_private_der(bytes: &[u8], wanted: Option<Algorithm>) -> Result<PrivateKeyData> {
    let info = PrivateKeyInfoRef::from_der(bytes).map_err(|_| malformed("it is not PKCS#8 in DER"))?;
    let inner = info.private_key.as_bytes();
    let is_rsa_of = |algorithm: Algorithm| is_rsa_private_key(algorithm, inner);
    let algorithm = algorithm(&info.algorithm, wanted, is_rsa_of).map_err(malformed)?;
    // Refuse what the parser skipped, attributes and fields of later versions: we would ignore
    // them.
    let again = SecretDocument::encode_msg(&info).map_err(unwritable)?;
    if again.as_bytes() != bytes {
        return Err(malformed("it has attributes or fields that are not known here"));
    }
    let material = material(algorithm, inner)?;
    let claimed = match info.public_key {
        Some(bits) => Some(bits.as_bytes().ok_or_else(|| malformed("its public key's bits are no bytes"))?),
        None => None,
    };
    PrivateKeyData::new(algorithm, material, claimed)
}

/// The key material in the content of the OCTET STRING.
fn material(algorithm: Algorithm, inner: &[u8]) -> Result<KeyMaterial> {
    let error = || malformed(format_args!("it does not have the form of a private key of {algorithm}"));
    let whole = |octets: &OctetStringRef| Zeroizing::new(octets.as_bytes().to_vec());
    match shape(algorithm) {
        Shape::Raw => Ok(Zeroizing::new(inner.to_vec())),
        Shape::EcPrivateKey => ec_scalar(algorithm, inner).ok_or_else(error),
        Shape::OctetString => <&OctetStringRef>::from_der(inner).map(whole).map_err(|_| error()),
        Shape::SeedOrExpanded => match inner.first() {
            Some(0x04) => Err(malformed(
                "it holds the expanded key alone, from which its seed cannot be had; export it with its seed",
            )),
            Some(0x30) => {
                let (seed, expanded) = both(inner).map_err(|_| error())?;
                let seed = whole(seed);
                check_expanded(algorithm, &seed, expanded.as_bytes())?;
                Ok(seed)
            }
            _ => {
                let read = || {
                    let mut reader = SliceReader::new(inner)?;
                    let seed = ContextSpecific::<&OctetStringRef>::decode_implicit(&mut reader, SEED_TAG)?;
                    reader.finish()?;
                    Ok::<_, der::Error>(seed)
                };
                read().ok().flatten().map(|seed| whole(seed.value)).ok_or_else(error)
            }
        },
    }
}

/// Whether the bytes begin like an RSAPrivateKey with a modulus of the algorithm's length (RFC
/// 8017, appendix A.1.2).
pub(super) fn is_rsa_private_key(algorithm: Algorithm, bytes: &[u8]) -> bool {
    let Some((begin, rest)) = bytes.split_at_checked(4) else { return false };
    let modulus = u16::try_from(algorithm.output_length() + 1).unwrap_or_default().to_be_bytes();
    let [high, low] = modulus;
    begin.starts_with(&[0x30, 0x82]) && rest.starts_with(&[0x02, 0x01, 0x00, 0x02, 0x82, high, low, 0])
}

/// A tag, the length, and the content of at most 255 bytes.
fn element(tag: u8, content: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    let content = Zeroizing::new(content.concat());
    let length = u8::try_from(content.len()).expect("the key of a curve has less than 256 bytes");
    let begin: &[u8] = if length < 0x80 { &[tag, length] } else { &[tag, 0x81, length] };
    Zeroizing::new([begin, &content].concat())
}

/// An ECPrivateKey (RFC 5915, section 3), with or without its curve and its public key.
fn ec_private_key(scalar: &[u8], curve: Option<&[u8]>, point: Option<&[u8]>) -> Zeroizing<Vec<u8>> {
    let part = |tag, content: Option<Zeroizing<Vec<u8>>>| {
        content.map_or_else(Default::default, |content| element(tag, &[&content]))
    };
    let curve = part(0xa0, curve.map(|curve| element(0x06, &[curve])));
    let point = part(0xa1, point.map(|point| element(0x03, &[&[0], point])));
    element(0x30, &[&[0x02, 0x01, 0x01], &element(0x04, &[scalar]), &curve, &point])
}

/// The scalar of an ECPrivateKey. A public key beside it must match the scalar.
fn ec_scalar(algorithm: Algorithm, inner: &[u8]) -> Option<KeyMaterial> {
    let (Some(bytes), point) = ec_parts(algorithm, inner) else { return None };
    let scalar = Zeroizing::new(bytes.to_vec());
    let is_alone = ec_private_key(&scalar, None, None).as_slice() == inner;
    let is_with = |point| {
        ec_private_key(&scalar, None, Some(point)).as_slice() == inner && is_pair(algorithm, &scalar, point)
    };
    (is_alone || point.is_some_and(is_with)).then_some(scalar)
}

/// An ECPrivateKey that names its curve, with its public key, as Vault writes it. None if the
/// algorithm has no curve.
#[cfg(feature = "tokens")]
pub(super) fn ec_key_of_curve(
    algorithm: Algorithm,
    scalar: &[u8],
    public_key: &[u8],
) -> Option<SecretDocument> {
    let parameters = identifier(algorithm).parameters.filter(|_| algorithm.is_ecdsa())?;
    let uncompressed = match algorithm {
        Algorithm::EcdsaP256 => p256::uncompressed(public_key)?,
        _ => public_key.to_vec(),
    };
    let bytes = ec_private_key(scalar, Some(parameters.value()), Some(&uncompressed));
    SecretDocument::try_from(bytes.as_slice()).ok()
}

/// The scalar and the public key of an ECPrivateKey that names its curve, as Vault writes it.
pub(super) fn ec_pair_of_curve(algorithm: Algorithm, bytes: &[u8]) -> Option<KeyMaterial> {
    let (Some(scalar), Some(point)) = ec_parts(algorithm, bytes) else { return None };
    let parameters = identifier(algorithm).parameters?;
    let is_form = ec_private_key(scalar, Some(parameters.value()), Some(point)).as_slice() == bytes;
    let scalar = Zeroizing::new(scalar.to_vec());
    (is_form && is_pair(algorithm, &scalar, point)).then_some(scalar)
}

/// The bytes where the scalar and the uncompressed point of an ECPrivateKey would be. Whoever takes
/// them checks the rest.
fn ec_parts(algorithm: Algorithm, bytes: &[u8]) -> (Option<&[u8]>, Option<&[u8]>) {
    let scalar_length = coordinate_length(algorithm);
    let begin = if bytes.get(1) == Some(&0x81) { 8 } else { 7 };
    let point = bytes.len().checked_sub(2 * scalar_length + 1).and_then(|begin| bytes.get(begin..));
    (bytes.get(begin..begin + scalar_length), point.filter(|point| point[0] == 4))
}

/// Whether an uncompressed point is the public key of a scalar.
fn is_pair(algorithm: Algorithm, scalar: &KeyMaterial, point: &[u8]) -> bool {
    if curve(algorithm) == Some(&P256) {
        return p256::is_pair(scalar, point);
    }
    let key = || Backends::software().find(SOFTWARE, algorithm)?.load(algorithm, scalar)?.public_key();
    // A build without the algorithm says so later.
    key().map_or(true, |public_key| public_key == point)
}

/// The seed and the expanded key beside it.
fn both(inner: &[u8]) -> der::Result<(&OctetStringRef, &OctetStringRef)> {
    let mut reader = SliceReader::new(inner)?;
    let pair = reader.sequence(|reader| {
        Ok::<_, der::Error>((<&OctetStringRef>::decode(reader)?, <&OctetStringRef>::decode(reader)?))
    })?;
    reader.finish()?;
    Ok(pair)
}

/// An error unless the expanded key matches the seed: otherwise one file would contain two keys.
fn check_expanded(algorithm: Algorithm, seed: &KeyMaterial, expanded: &[u8]) -> Result<()> {
    let backend = Backends::software().find(SOFTWARE, algorithm).ok();
    match backend.and_then(|backend| backend.expanded(algorithm, seed)) {
        Some(ours) if ours.as_slice() == expanded => Ok(()),
        Some(_) => Err(malformed("its expanded key is not the one of its seed")),
        None => Err(malformed("its seed has a wrong length, or this build does not serve its algorithm")),
    }
}
