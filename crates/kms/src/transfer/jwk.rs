//! JSON Web Keys: `OKP` (RFC 8037), `EC` and `RSA` (RFC 7518, sections 6.2 and 6.3) and `AKP` (RFC
//! 9964).

use base64ct::{Base64UrlUnpadded, Encoding};
use serde::{Deserialize, Serialize};

use super::der::coordinate_length;
use super::public_key::{invalid_public, unsupported};
use crate::algorithm::{Algorithm, KeyUsage};
use crate::backend::p256;
use crate::error::{KmsError, Result};
use crate::public_key::PublicKey;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Jwk {
    kty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crv: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alg: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    y: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<String>,
    #[serde(rename = "pub", default, skip_serializing_if = "Option::is_none")]
    public: Option<String>,
    // The owner's name for the key: ignored.
    #[serde(rename = "kid", default, skip_serializing)]
    _kid: Option<String>,
    #[serde(rename = "use", default, skip_serializing)]
    usage: Option<String>,
    #[serde(default, skip_serializing)]
    key_ops: Option<Vec<String>>,
}

/// The value of `crv` for the curves of ECDSA and ECDH.
fn curve(algorithm: Algorithm) -> Option<&'static str> {
    match algorithm {
        Algorithm::EcdsaP256 | Algorithm::EcdhP256 => Some("P-256"),
        Algorithm::EcdsaP384 | Algorithm::EcdhP384 => Some("P-384"),
        Algorithm::EcdsaP521 | Algorithm::EcdhP521 => Some("P-521"),
        _ => None,
    }
}

/// The algorithms of RSA signatures with any of our keys.
const RSA_ALGORITHMS: [&str; 6] = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
/// The exponent of all our RSA keys, 65537, in base64url.
const RSA_EXPONENT: &str = "AQAB";

/// The value of `alg` for algorithms with the key type `AKP`.
fn akp(algorithm: Algorithm) -> Option<&'static str> {
    match algorithm {
        Algorithm::MlDsa44 | Algorithm::MlDsa65 | Algorithm::MlDsa87 => algorithm.jose_name(),
        _ => None,
    }
}

/// Writes a public key as one line of JSON.
pub(super) fn public(key: &PublicKey) -> Result<String> {
    let text = |bytes: &[u8]| Some(Base64UrlUnpadded::encode_string(bytes));
    let encoded = text(key.as_bytes());
    let empty = Jwk {
        kty: "OKP".to_owned(),
        crv: None,
        alg: None,
        x: None,
        y: None,
        n: None,
        e: None,
        public: None,
        _kid: None,
        usage: None,
        key_ops: None,
    };
    let jwk = match (key.algorithm(), akp(key.algorithm())) {
        (Algorithm::Ed25519, _) => Jwk { crv: Some("Ed25519".to_owned()), x: encoded, ..empty },
        (Algorithm::X25519, _) => Jwk { crv: Some("X25519".to_owned()), x: encoded, ..empty },
        (algorithm, _) if curve(algorithm).is_some() => {
            let crv = curve(algorithm).unwrap_or_default();
            let point = uncompressed(key).ok_or_else(|| not_a_point(crv))?;
            let (x, y) = point[1..].split_at(coordinate_length(algorithm));
            Jwk { kty: "EC".to_owned(), crv: Some(crv.to_owned()), x: text(x), y: text(y), ..empty }
        }
        (algorithm, _) if algorithm.is_rsa() => {
            let modulus = &key.as_bytes()[RSA_MODULUS..][..algorithm.output_length()];
            Jwk { kty: "RSA".to_owned(), n: text(modulus), e: Some(RSA_EXPONENT.to_owned()), ..empty }
        }
        (_, Some(name)) => {
            Jwk { kty: "AKP".to_owned(), alg: Some(name.to_owned()), public: encoded, ..empty }
        }
        (algorithm, None) => return Err(unsupported("a JSON Web Key", algorithm)),
    };
    Ok(serde_json::to_string(&jwk).expect("a structure of text") + "\n")
}

pub(super) fn parse_public(bytes: &[u8], wanted: Option<Algorithm>) -> Result<PublicKey> {
    let jwk: Jwk = serde_json::from_slice(bytes).map_err(|error| {
        let why = error.to_string();
        if ["`d`", "`priv`"].iter().any(|member| why.contains(&format!("unknown field {member}"))) {
            return invalid_public("the JSON Web Key holds a private key");
        }
        // serde's message names a member or a position, never a value, because no member is an
        // enumeration or a number.
        invalid_public(format_args!("it is not a JSON Web Key that is understood here: {why}"))
    })?;
    let agrees =
        wanted.is_some_and(|wanted| wanted.usage() == KeyUsage::KeyAgreement) || is_for_agreement(&jwk);
    check_use(&jwk, agrees)?;
    let has_no_rsa = jwk.n.is_none() && jwk.e.is_none();
    let (algorithm, encoded) = match (jwk.kty.as_str(), jwk.crv.as_deref(), jwk.alg.as_deref()) {
        ("OKP", Some("Ed25519"), None | Some("EdDSA" | "Ed25519"))
            if jwk.public.is_none() && jwk.y.is_none() && has_no_rsa =>
        {
            (Algorithm::Ed25519, jwk.x)
        }
        ("OKP", Some("X25519"), alg)
            if jwk.public.is_none() && jwk.y.is_none() && has_no_rsa && alg.is_none_or(is_ecdh_es) =>
        {
            (Algorithm::X25519, jwk.x)
        }
        ("EC", Some(crv), alg) if jwk.public.is_none() && has_no_rsa => {
            return parse_point(&jwk, crv, alg, agrees);
        }
        ("RSA", None, alg) if jwk.public.is_none() && jwk.x.is_none() && jwk.y.is_none() => {
            return parse_rsa(&jwk, alg);
        }
        ("AKP", None, Some(name)) if jwk.x.is_none() && jwk.y.is_none() && has_no_rsa => {
            let known = Algorithm::ALL.iter().copied().find(|algorithm| akp(*algorithm) == Some(name));
            (known.ok_or_else(|| invalid_public("its `alg` is not known here"))?, jwk.public)
        }
        _ => return Err(other_members()),
    };
    PublicKey::from_bytes(algorithm, &decode(encoded.as_deref())?)
}

fn decode(encoded: Option<&str>) -> Result<Vec<u8>> {
    let encoded = encoded.ok_or_else(|| invalid_public("the JSON Web Key has no key in it"))?;
    Base64UrlUnpadded::decode_vec(encoded)
        .map_err(|_| invalid_public("its key is not base64url without padding"))
}

fn other_members() -> KmsError {
    invalid_public("its members are not those of a key of Ed25519, X25519, ECDSA, ECDH, RSA or ML-DSA")
}

fn not_a_point(crv: &str) -> KmsError {
    invalid_public(format_args!("it is not a point of {crv}"))
}

fn uncompressed(key: &PublicKey) -> Option<Vec<u8>> {
    match key.algorithm() {
        Algorithm::EcdsaP256 => p256::uncompressed(key.as_bytes()),
        _ => Some(key.as_bytes().to_vec()),
    }
}

/// A key of a curve by both coordinates of its point. Leading zeros stay.
fn parse_point(jwk: &Jwk, crv: &str, alg: Option<&str>, agrees: bool) -> Result<PublicKey> {
    let names = |algorithm: &Algorithm| {
        let is_named = |alg| if agrees { is_ecdh_es(alg) } else { algorithm.jose_name() == Some(alg) };
        curve(*algorithm) == Some(crv) && algorithm.is_ecdsa() != agrees && alg.is_none_or(is_named)
    };
    let algorithm = Algorithm::ALL.iter().copied().find(names).ok_or_else(other_members)?;
    let (x, y) = (decode(jwk.x.as_deref())?, decode(jwk.y.as_deref())?);
    let mut point = [&[4], x.as_slice(), y.as_slice()].concat();
    let length = coordinate_length(algorithm);
    if (x.len(), y.len()) != (length, length) {
        return Err(not_a_point(crv));
    }
    if algorithm == Algorithm::EcdsaP256 {
        point = p256::compress(&point).ok_or_else(|| not_a_point(crv))?;
    }
    PublicKey::from_bytes(algorithm, &point)
}

/// The bytes of an RSAPublicKey before its modulus: a SEQUENCE, an INTEGER, and a byte 0.
const RSA_MODULUS: usize = 9;

/// An RSA key by its modulus, without leading zeros, and its exponent.
fn parse_rsa(jwk: &Jwk, alg: Option<&str>) -> Result<PublicKey> {
    if alg.is_some_and(|alg| !RSA_ALGORITHMS.contains(&alg)) {
        return Err(other_members());
    }
    let modulus = decode(jwk.n.as_deref())?;
    let is_of = |algorithm: &Algorithm| algorithm.is_rsa() && algorithm.output_length() == modulus.len();
    let algorithm =
        Algorithm::ALL.iter().copied().find(is_of).filter(|_| jwk.e.as_deref() == Some(RSA_EXPONENT));
    let algorithm = algorithm.ok_or_else(|| {
        invalid_public("the RSA key does not have 2048, 3072 or 4096 bits and the exponent 65537")
    })?;
    let be = |length: usize| u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    let (whole, integer) = (be(modulus.len() + 10), be(modulus.len() + 1));
    let begin = [0x30, 0x82, whole[0], whole[1], 0x02, 0x82, integer[0], integer[1], 0];
    PublicKey::from_bytes(algorithm, &[&begin[..], &modulus, &[0x02, 0x03, 0x01, 0x00, 0x01]].concat())
}

/// Whether `alg` is of key agreement (RFC 7518, section 4.6).
fn is_ecdh_es(alg: &str) -> bool {
    ["ECDH-ES", "ECDH-ES+A128KW", "ECDH-ES+A192KW", "ECDH-ES+A256KW"].contains(&alg)
}

/// Whether the owner says that the key agrees on secrets. A curve alone does not.
fn is_for_agreement(jwk: &Jwk) -> bool {
    jwk.crv.as_deref() == Some("X25519") || jwk.alg.as_deref().is_some_and(is_ecdh_es)
}

/// An error if the owner made the key for a purpose other than verifying, or than agreeing on
/// secrets.
fn check_use(jwk: &Jwk, agrees: bool) -> Result<()> {
    let (usage, does) = if agrees { ("enc", "agree on secrets") } else { ("sig", "verify signatures") };
    // A public key has no operations in an agreement (RFC 7517, section 4.3, and WebCrypto).
    let is_op = |op: &String| if agrees { op.starts_with("derive") } else { op == "verify" };
    let fits = jwk.key_ops.as_ref().is_none_or(|ops| (agrees && ops.is_empty()) || ops.iter().any(is_op));
    if jwk.usage.as_deref().is_none_or(|found| found == usage) && fits {
        return Ok(());
    }
    Err(invalid_public(format_args!("its `use` or `key_ops` says that it does not {does}")))
}
