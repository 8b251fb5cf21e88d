//! JSON Web Keys: `OKP` (RFC 8037) and `AKP` (RFC 9964).

use base64ct::{Base64UrlUnpadded, Encoding};
use serde::{Deserialize, Serialize};

use super::refusal::{invalid_public, unsupported};
use crate::algorithm::Algorithm;
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
    let encoded = Some(Base64UrlUnpadded::encode_string(key.as_bytes()));
    let empty = Jwk {
        kty: "OKP".to_owned(),
        crv: None,
        alg: None,
        x: None,
        public: None,
        _kid: None,
        usage: None,
        key_ops: None,
    };
    let jwk = match (key.algorithm(), akp(key.algorithm())) {
        (Algorithm::Ed25519, _) => Jwk { crv: Some("Ed25519".to_owned()), x: encoded, ..empty },
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
        // serde's message names a member or a position, never a value, because no member is an enumeration or a number.
        invalid_public(format_args!("it is not a JSON Web Key that is understood here: {why}"))
    })?;
    check_use(&jwk)?;
    let (algorithm, encoded) = match (jwk.kty.as_str(), jwk.crv.as_deref(), jwk.alg.as_deref()) {
        ("OKP", Some("Ed25519"), None | Some("EdDSA" | "Ed25519")) if jwk.public.is_none() => {
            (Algorithm::Ed25519, jwk.x)
        }
        ("AKP", None, Some(name)) if jwk.x.is_none() => {
            let known = Algorithm::ALL.into_iter().find(|algorithm| akp(*algorithm) == Some(name));
            (known.ok_or_else(|| invalid_public("its `alg` is not known here"))?, jwk.public)
        }
        _ => return Err(invalid_public("its members are those of neither an Ed25519 nor an ML-DSA key")),
    };
    let encoded = encoded.ok_or_else(|| invalid_public("the JSON Web Key has no key in it"))?;
    let key = Base64UrlUnpadded::decode_vec(&encoded)
        .map_err(|_| invalid_public("its key is not base64url without padding"))?;
    PublicKey::from_bytes(algorithm, &key)
}

/// An error if the owner made the key for a purpose other than verifying.
fn check_use(jwk: &Jwk) -> Result<()> {
    let verifies = jwk.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
    if jwk.usage.as_deref().is_none_or(|usage| usage == "sig") && verifies {
        return Ok(());
    }
    Err(invalid_public("its `use` or `key_ops` says that it does not verify signatures"))
}
