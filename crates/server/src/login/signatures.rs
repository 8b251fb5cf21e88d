//! The signatures of JWTs: EdDSA by our own `bulla-ed25519`, and ES256, ES384, RS256 to RS512 and
//! PS256 to PS512 by `ring`.
//!
//! `jsonwebtoken` reads tokens, and asks this for each signature.

use std::sync::Once;

use bulla_ed25519::VerifyItem;
use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{
    self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

/// What a JWT may be signed with.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::EdDSA,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
];

/// Makes `jsonwebtoken` verify by this module. Without this, it would panic.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    static PROVIDER: CryptoProvider = CryptoProvider {
        signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        verifier_factory: verifier,
        key_utils: KeyUtils::new_unimplemented(),
    };
    // Nothing else in this program reads JWTs.
    INSTALLED.call_once(|| {
        let _ = PROVIDER.install_default();
    });
}

/// The methods of verification.
enum Method {
    Ed25519,
    Ecdsa(&'static dyn VerificationAlgorithm),
    Rsa(&'static RsaParameters),
}

impl Method {
    fn family(&self) -> AlgorithmFamily {
        match self {
            Self::Ed25519 => AlgorithmFamily::Ed,
            Self::Ecdsa(_) => AlgorithmFamily::Ec,
            Self::Rsa(_) => AlgorithmFamily::Rsa,
        }
    }
}

fn method(algorithm: Algorithm) -> Option<Method> {
    Some(match algorithm {
        Algorithm::EdDSA => Method::Ed25519,
        Algorithm::ES256 => Method::Ecdsa(&signature::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Method::Ecdsa(&signature::ECDSA_P384_SHA384_FIXED),
        Algorithm::RS256 => Method::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Method::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Method::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Method::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Method::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Method::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        // HMAC: an issuer's public key would be its secret.
        _ => return None,
    })
}

/// One key, and one method.
struct KeyVerifier {
    algorithm: Algorithm,
    method: Method,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let method = method(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    if key.family() != method.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(KeyVerifier { algorithm: *algorithm, method, key: key.clone() }))
}

/// The strict verification of `bulla-ed25519`; none if the signature is not one of the key.
fn verify_ed25519(key: &[u8], message: &[u8], signature: &[u8]) -> Option<()> {
    let (public_key, signature) = (key.try_into().ok()?, signature.try_into().ok()?);
    bulla_ed25519::verify_strict(&VerifyItem { public_key, message, signature }).is_valid().then_some(())
}

impl Verifier<Vec<u8>> for KeyVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verdict = match (&self.method, self.key.kind()) {
            (Method::Ed25519, DecodingKeyKind::SecretOrDer(key)) => {
                return verify_ed25519(key, message, signature).ok_or_else(Error::new);
            }
            (Method::Ecdsa(method), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*method, key).verify(message, signature)
            }
            (Method::Rsa(method), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*method, key).verify(message, signature)
            }
            (Method::Rsa(method), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(method, message, signature)
            }
            _ => return Err(Error::new()),
        };
        verdict.map_err(|_| Error::new())
    }
}

impl JwtVerifier for KeyVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::crypto;

    use super::super::IssuerKeys;
    use super::*;

    /// RFC 7515, appendix A.2.1.
    const RS256_KEY: &str = r#"{"keys":[{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}]}"#;
    const RS256: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    /// RFC 7515, appendix A.3.1.
    const ES256_KEY: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;
    const ES256: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    /// RFC 8037, appendix A.4.
    const EDDSA_KEY: &str =
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    const EDDSA: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn verdict(keys: &str, algorithm: Algorithm, jws: &str) -> Option<bool> {
        install();
        let keys = IssuerKeys::read(keys.as_bytes()).unwrap();
        let key = keys.candidates(None, algorithm).next()?;
        let (message, signature) = jws.rsplit_once('.').unwrap();
        crypto::verify(signature, message.as_bytes(), key, algorithm).ok()
    }

    #[test]
    fn signatures_of_the_standards_verify_and_no_changed_one() {
        for (keys, algorithm, jws) in [
            (RS256_KEY, Algorithm::RS256, RS256),
            (ES256_KEY, Algorithm::ES256, ES256),
            (EDDSA_KEY, Algorithm::EdDSA, EDDSA),
        ] {
            assert_eq!(verdict(keys, algorithm, jws), Some(true), "{algorithm:?}");
            let (message, signature) = jws.rsplit_once('.').unwrap();
            for other in [format!("{message}A.{signature}"), format!("{message}.A{}", &signature[1..])] {
                assert_eq!(verdict(keys, algorithm, &other), Some(false), "{algorithm:?}");
            }
        }
        assert_eq!(verdict(RS256_KEY, Algorithm::PS256, RS256), Some(false));
        assert_eq!(verdict(RS256_KEY, Algorithm::ES256, ES256), None);
        assert_eq!(verdict(ES256_KEY, Algorithm::ES384, ES256), None);
        assert_eq!(verdict(RS256_KEY, Algorithm::HS256, RS256), None);
    }

    #[test]
    fn a_key_of_small_order_signs_nothing() {
        let encode = |bytes: &[u8]| base64_simd::URL_SAFE_NO_PAD.encode_to_string(bytes);
        // The neutral element: under this key, R of the same bytes and S of zero fit every message.
        let mut signature = [0; 64];
        signature[0] = 1;
        let key = encode(&signature[..32]);
        let keys = format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","x":"{key}"}}]}}"#);
        let jws = format!("{}.{}", EDDSA.rsplit_once('.').unwrap().0, encode(&signature));
        assert_eq!(verdict(&keys, Algorithm::EdDSA, &jws), Some(false));
    }

    #[test]
    fn a_key_of_another_family_verifies_nothing() {
        let keys = IssuerKeys::read(ES256_KEY.as_bytes()).unwrap();
        let key = keys.candidates(None, Algorithm::ES256).next().unwrap();
        for algorithm in ALGORITHMS {
            let is_own = algorithm.family() == AlgorithmFamily::Ec;
            assert_eq!(verifier(&algorithm, key).is_ok(), is_own, "{algorithm:?}");
        }
        assert!(verifier(&Algorithm::HS256, &DecodingKey::from_secret(b"secret")).is_err());
    }
}
