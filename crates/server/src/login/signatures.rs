//! The signatures of JWTs: EdDSA, ES256, ES384, RS256 to RS512 and PS256 to PS512, by `ring`.
//!
//! `jsonwebtoken` reads tokens, and asks this for each signature.

use std::sync::Once;

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

/// Makes `jsonwebtoken` verify by `ring`. Without this, it would panic.
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

/// The methods of verification, and the family of the keys that each is for.
enum Method {
    Elliptic(&'static dyn VerificationAlgorithm, AlgorithmFamily),
    Rsa(&'static RsaParameters),
}

fn method(algorithm: Algorithm) -> Option<Method> {
    Some(match algorithm {
        Algorithm::EdDSA => Method::Elliptic(&signature::ED25519, AlgorithmFamily::Ed),
        Algorithm::ES256 => Method::Elliptic(&signature::ECDSA_P256_SHA256_FIXED, AlgorithmFamily::Ec),
        Algorithm::ES384 => Method::Elliptic(&signature::ECDSA_P384_SHA384_FIXED, AlgorithmFamily::Ec),
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
struct RingVerifier {
    algorithm: Algorithm,
    method: Method,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let method = method(*algorithm).ok_or(ErrorKind::UnsupportedAlgorithm)?;
    let family = match method {
        Method::Elliptic(_, family) => family,
        Method::Rsa(_) => AlgorithmFamily::Rsa,
    };
    if key.family() != family {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(RingVerifier { algorithm: *algorithm, method, key: key.clone() }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verdict = match (&self.method, self.key.kind()) {
            (Method::Elliptic(method, _), DecodingKeyKind::SecretOrDer(key)) => {
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

impl JwtVerifier for RingVerifier {
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
