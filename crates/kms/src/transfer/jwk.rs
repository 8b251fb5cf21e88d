//! JSON Web Keys: `OKP` (RFC 8037), `EC` (RFC 7518, section 6.2) and `AKP` (RFC 9964).

use base64ct::{Base64UrlUnpadded, Encoding};
use serde::{Deserialize, Serialize};

use super::public_key::{invalid_public, unsupported};
use crate::algorithm::Algorithm;
use crate::backend::p256;
use crate::error::Result;
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

/// The bytes of a coordinate of P-256: leading zeros stay.
const COORDINATE: usize = 32;

/// The value of `alg` for algorithms with the key type `AKP`.
fn akp(algorithm: Algorithm) -> Option<&'static str> {
    match algorithm {
        Algorithm::MlDsa44 => Some("ML-DSA-44"),
        Algorithm::MlDsa65 => Some("ML-DSA-65"),
        Algorithm::MlDsa87 => Some("ML-DSA-87"),
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
        public: None,
        _kid: None,
        usage: None,
        key_ops: None,
    };
    let jwk = match (key.algorithm(), akp(key.algorithm())) {
        (Algorithm::Ed25519, _) => Jwk { crv: Some("Ed25519".to_owned()), x: encoded, ..empty },
        (Algorithm::EcdsaP256, _) => {
            let point = p256::uncompressed(key.as_bytes());
            let point = point.ok_or_else(|| invalid_public("it is not a point of P-256"))?;
            let (x, y) = point[1..].split_at(COORDINATE);
            Jwk { kty: "EC".to_owned(), crv: Some("P-256".to_owned()), x: text(x), y: text(y), ..empty }
        }
        (_, Some(name)) => {
            Jwk { kty: "AKP".to_owned(), alg: Some(name.to_owned()), public: encoded, ..empty }
        }
        (algorithm, None) => return Err(unsupported("a JSON Web Key", algorithm)),
    };
    Ok(serde_json::to_string(&jwk).expect("a structure of text") + "\n")
}

pub(super) fn parse_public(bytes: &[u8]) -> Result<PublicKey> {
    let jwk: Jwk = serde_json::from_slice(bytes).map_err(|error| {
        let why = error.to_string();
        if ["`d`", "`priv`"].iter().any(|member| why.contains(&format!("unknown field {member}"))) {
            return invalid_public("the JSON Web Key holds a private key");
        }
        // serde's message names a member or a position, never a value, because no member is an
        // enumeration or a number.
        invalid_public(format_args!("it is not a JSON Web Key that is understood here: {why}"))
    })?;
    check_use(&jwk)?;
    let (algorithm, encoded) = match (jwk.kty.as_str(), jwk.crv.as_deref(), jwk.alg.as_deref()) {
        ("OKP", Some("Ed25519"), None | Some("EdDSA" | "Ed25519"))
            if jwk.public.is_none() && jwk.y.is_none() =>
        {
            (Algorithm::Ed25519, jwk.x)
        }
        ("EC", Some("P-256"), None | Some("ES256")) if jwk.public.is_none() => return parse_point(&jwk),
        ("AKP", None, Some(name)) if jwk.x.is_none() && jwk.y.is_none() => {
            let known = Algorithm::ALL.iter().copied().find(|algorithm| akp(*algorithm) == Some(name));
            (known.ok_or_else(|| invalid_public("its `alg` is not known here"))?, jwk.public)
        }
        _ => return Err(invalid_public("its members are not those of an Ed25519, a P-256 or an ML-DSA key")),
    };
    PublicKey::from_bytes(algorithm, &decode(encoded.as_deref())?)
}

fn decode(encoded: Option<&str>) -> Result<Vec<u8>> {
    let encoded = encoded.ok_or_else(|| invalid_public("the JSON Web Key has no key in it"))?;
    Base64UrlUnpadded::decode_vec(encoded)
        .map_err(|_| invalid_public("its key is not base64url without padding"))
}

/// A key of P-256 by both coordinates of its point.
fn parse_point(jwk: &Jwk) -> Result<PublicKey> {
    let (x, y) = (decode(jwk.x.as_deref())?, decode(jwk.y.as_deref())?);
    let point = [&[4], x.as_slice(), y.as_slice()].concat();
    let is_long = x.len() == COORDINATE && y.len() == COORDINATE;
    let key = is_long.then(|| p256::compress(&point)).flatten();
    PublicKey::from_bytes(
        Algorithm::EcdsaP256,
        &key.ok_or_else(|| invalid_public("it is not a point of P-256"))?,
    )
}

/// An error if the owner made the key for a purpose other than verifying.
fn check_use(jwk: &Jwk) -> Result<()> {
    let verifies = jwk.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
    if jwk.usage.as_deref().is_none_or(|usage| usage == "sig") && verifies {
        return Ok(());
    }
    Err(invalid_public("its `use` or `key_ops` says that it does not verify signatures"))
}
