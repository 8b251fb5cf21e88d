//! The public keys of an issuer.

use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use spki::der::Decode as _;
use spki::der::pem::{PemLabel as _, decode_vec};
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef};

use super::signatures::ALGORITHMS;

/// The most keys of an issuer: a JWT that names none is tried with each.
const MAX_KEYS: usize = 64;
/// The longest text with keys.
pub(super) const MAX_KEYS_LEN: usize = 512 << 10;

/// The public keys of an issuer.
#[derive(Debug)]
pub(crate) struct IssuerKeys(Vec<IssuerKey>);

#[derive(Debug)]
struct IssuerKey {
    /// The name by which JWTs refer to it (`kid`).
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl IssuerKeys {
    /// Reads a JWK set, or public keys in PEM. Keys of a JWK set that sign no JWT are left out.
    ///
    /// # Errors
    /// It is neither, or no key is left. The message says why.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        if text.len() > MAX_KEYS_LEN {
            return Err(format!("the keys are longer than {MAX_KEYS_LEN} bytes"));
        }
        let keys = match text.trim_ascii_start() {
            [b'{', ..] => jwk_set(text)?,
            [b'-', ..] => pem(text)?,
            _ => return Err("it is neither a JWK set nor public keys in PEM".to_owned()),
        };
        match keys.len() {
            0 => Err("it has no key with which a JWT can be signed".to_owned()),
            1..=MAX_KEYS => Ok(Self(keys)),
            _ => Err(format!("it has more than {MAX_KEYS} keys")),
        }
    }

    /// The keys that may have signed a JWT with this algorithm, and with this name of a key. A key
    /// without a name may have signed any.
    pub(super) fn candidates(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &DecodingKey> {
        let is_named = move |key: &&IssuerKey| match (id, &key.id) {
            (Some(id), Some(own)) => id == own,
            _ => true,
        };
        self.0
            .iter()
            .filter(is_named)
            .filter(move |key| key.algorithms.contains(&algorithm))
            .map(|key| &key.key)
    }
}

/// A JWK set, of which only the outer form is fixed: an issuer may have keys of kinds that nobody
/// knew when this was written.
#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

fn jwk_set(text: &[u8]) -> Result<Vec<IssuerKey>, String> {
    let set: JwkSet = serde_json::from_slice(text).map_err(|error| format!("it is no JWK set: {error}"))?;
    Ok(set.keys.iter().filter_map(jwk).collect())
}

/// A key that signs JWTs; none for every other one.
fn jwk(key: &Value) -> Option<IssuerKey> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let is_for_signatures = text("use").is_none_or(|used| used == "sig");
    let operations = key.get("key_ops").and_then(Value::as_array);
    let verifies = operations.is_none_or(|all| all.iter().any(|one| one == "verify"));
    if !is_for_signatures || !verifies {
        return None;
    }
    let (key, algorithms) = match (text("kty")?, text("crv")) {
        ("RSA", _) => {
            (DecodingKey::from_rsa_components(text("n")?, text("e")?), of_family(AlgorithmFamily::Rsa))
        }
        ("EC", Some("P-256")) => {
            (DecodingKey::from_ec_components(text("x")?, text("y")?), vec![Algorithm::ES256])
        }
        ("EC", Some("P-384")) => {
            (DecodingKey::from_ec_components(text("x")?, text("y")?), vec![Algorithm::ES384])
        }
        ("OKP", Some("Ed25519")) => (DecodingKey::from_ed_components(text("x")?), vec![Algorithm::EdDSA]),
        _ => return None,
    };
    let mut algorithms = algorithms;
    if let Some(only) = text("alg") {
        // RFC 9864 names the curve.
        let only = if only == "Ed25519" { "EdDSA" } else { only };
        let only: Algorithm = only.parse().ok()?;
        algorithms.retain(|one| *one == only);
    }
    let id = text("kid").map(str::to_owned);
    (!algorithms.is_empty()).then_some(())?;
    Some(IssuerKey { id, algorithms, key: key.ok()? })
}

fn of_family(family: AlgorithmFamily) -> Vec<Algorithm> {
    ALGORITHMS.into_iter().filter(|algorithm| algorithm.family() == family).collect()
}

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const ELLIPTIC_CURVE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

/// Public keys, one after another.
fn pem(text: &[u8]) -> Result<Vec<IssuerKey>, String> {
    let text = std::str::from_utf8(text).map_err(|_| "the PEM is not text".to_owned())?;
    let end = format!("-----END {}-----", SubjectPublicKeyInfoRef::PEM_LABEL);
    let mut keys = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (one, after) = rest.split_at(rest.find(&end).map_or(rest.len(), |at| at + end.len()));
        keys.push(pem_key(one.trim())?);
        rest = after.trim();
    }
    Ok(keys)
}

fn pem_key(text: &str) -> Result<IssuerKey, String> {
    let wrong = || "it is not `BEGIN PUBLIC KEY` (SPKI) of RSA, P-256, P-384 or Ed25519".to_owned();
    let (label, der) = decode_vec(text.as_bytes()).map_err(|_| wrong())?;
    if label != SubjectPublicKeyInfoRef::PEM_LABEL {
        return Err(wrong());
    }
    let info = SubjectPublicKeyInfoRef::from_der(&der).map_err(|_| wrong())?;
    let bytes = info.subject_public_key.as_bytes().ok_or_else(wrong)?;
    let curve = || info.algorithm.parameters_oid().ok();
    let (key, algorithms) = match info.algorithm.oid {
        RSA => (DecodingKey::from_rsa_der(bytes), of_family(AlgorithmFamily::Rsa)),
        ELLIPTIC_CURVE if curve() == Some(P256) => (DecodingKey::from_ec_der(bytes), vec![Algorithm::ES256]),
        ELLIPTIC_CURVE if curve() == Some(P384) => (DecodingKey::from_ec_der(bytes), vec![Algorithm::ES384]),
        ED25519 => (DecodingKey::from_ed_der(bytes), vec![Algorithm::EdDSA]),
        _ => return Err(wrong()),
    };
    Ok(IssuerKey { id: None, algorithms, key })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn algorithms(text: &str) -> Result<Vec<Vec<Algorithm>>, String> {
        Ok(IssuerKeys::read(text.as_bytes())?.0.into_iter().map(|key| key.algorithms).collect())
    }

    #[test]
    fn keys_that_sign_no_jwt_are_left_out() {
        let (x, n) = ("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "AQAB");
        let of = |key: Value| algorithms(&json!({ "keys": [key] }).to_string());
        let rsa = || json!({ "kty": "RSA", "n": n, "e": "AQAB" });
        let with = |name: &str, value: Value| {
            let mut key = rsa();
            key[name] = value;
            of(key)
        };
        assert_eq!(of(rsa()).unwrap()[0].len(), 6);
        assert_eq!(with("alg", json!("PS256")).unwrap(), [[Algorithm::PS256]]);
        assert!(with("use", json!("sig")).is_ok() && with("key_ops", json!(["sign", "verify"])).is_ok());
        for (name, value) in [
            ("use", json!("enc")),
            ("key_ops", json!(["encrypt"])),
            ("alg", json!("RSA-OAEP")),
            ("alg", json!("HS256")),
            ("alg", json!("ES256")),
            ("kty", json!("oct")),
            ("kty", json!(7)),
            ("n", json!("+/")),
            ("n", json!(null)),
        ] {
            assert!(with(name, value.clone()).is_err(), "{name} {value}");
        }
        let ed25519 = json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "alg": "Ed25519" });
        assert_eq!(of(ed25519).unwrap(), [[Algorithm::EdDSA]]);
        for curve in ["secp256k1", "P-521", "Ed448", "X25519"] {
            assert!(of(json!({ "kty": "EC", "crv": curve, "x": x, "y": x })).is_err(), "{curve}");
            assert!(of(json!({ "kty": "OKP", "crv": curve, "x": x })).is_err(), "{curve}");
        }
        // One that nobody knows does not make the others useless.
        assert_eq!(
            algorithms(&json!({ "keys": [7, { "kty": "NEW" }, rsa()] }).to_string()).unwrap().len(),
            1
        );
    }

    #[test]
    fn what_is_no_list_of_public_keys_is_refused() {
        let many = json!({ "keys": vec![json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" }); MAX_KEYS + 1] });
        let long = " ".repeat(MAX_KEYS_LEN + 1);
        for text in ["", "{}", "[]", "{\"keys\": {}}", "{\"keys\": []}", "keys", &many.to_string(), &long] {
            assert!(IssuerKeys::read(text.as_bytes()).is_err(), "{text:.40}");
        }
    }

    #[test]
    fn keys_in_pem_are_public_ones_of_known_kinds() {
        let key = rcgen::KeyPair::generate().unwrap();
        let one = key.public_key_pem();
        assert_eq!(algorithms(&one).unwrap(), [[Algorithm::ES256]]);
        let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap().public_key_pem();
        let ed25519 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap().public_key_pem();
        let all = format!("{one}{p384}\n\n{ed25519}");
        assert_eq!(algorithms(&all).unwrap(), [[Algorithm::ES256], [Algorithm::ES384], [Algorithm::EdDSA]]);
        for text in
            [key.serialize_pem(), one.replace("PUBLIC", "EVIL"), one[..one.len() / 2].to_owned(), all + "x"]
        {
            assert!(algorithms(&text).is_err(), "{text}");
        }
    }
}
