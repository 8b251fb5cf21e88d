//! ML-KEM (FIPS 203) and X-Wing (draft-connolly-cfrg-xwing-kem) in software. The material is the
//! seed: 64 random bytes for ML-KEM (FIPS 203, section 7.1), 32 for X-Wing.

use std::sync::Arc;

use bulla_pq::kem::{self, InvalidKey};
use bulla_pq::{DecapsulationKey, EncapsulationKey};
use zeroize::Zeroizing;

use super::interface::{
    Backend, Capabilities, Encapsulated, KeyMaterial, PrivateKey, SOFTWARE, SharedKey, VerifyRequest,
};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::{EncodedKey, Prepared};
use crate::random;

#[derive(Debug)]
pub(super) struct MlKemBackend;

fn kem(algorithm: Algorithm) -> Option<kem::Algorithm> {
    match algorithm {
        Algorithm::MlKem512 => Some(kem::Algorithm::MlKem512),
        Algorithm::MlKem768 => Some(kem::Algorithm::MlKem768),
        Algorithm::MlKem1024 => Some(kem::Algorithm::MlKem1024),
        Algorithm::XWing => Some(kem::Algorithm::XWing),
        _ => None,
    }
}

/// The implementation of an algorithm that the backend supports.
fn served(algorithm: Algorithm) -> kem::Algorithm {
    kem(algorithm).expect("only algorithms that are served are asked for")
}

impl Backend for MlKemBackend {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        kem(algorithm).map(|_| Capabilities::default().material_is_key(true))
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        let mut seed = Zeroizing::new(vec![0; served(algorithm).seed_length()]);
        random::fill(&mut seed)?;
        Ok(seed)
    }

    fn expanded(&self, algorithm: Algorithm, seed: &KeyMaterial) -> Option<KeyMaterial> {
        kem(algorithm)?.expanded(seed)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        let key = served(algorithm)
            .decapsulation_key(material)
            .ok_or_else(|| KmsError::corrupt(format!("a stored key of {algorithm} has a wrong length")))?;
        Ok(Arc::new(MlKemPrivateKey { algorithm, key }))
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        match served(algorithm).encapsulation_key(public_key) {
            Ok(key) => Ok(Box::new(key)),
            Err(error) => {
                let why = match error {
                    InvalidKey::Encoding => {
                        format!(
                            "it must have {} bytes and contain only numbers in range",
                            algorithm.public_key_length()
                        )
                    }
                    InvalidKey::LowOrder => "its X25519 part has low order".to_owned(),
                };
                let message = format!("not a public key of {algorithm}: {why}");
                Err(KmsError::new(Code::InvalidPublicKey, message))
            }
        }
    }

    /// A key that does not sign verifies nothing.
    fn verify(&self, _request: VerifyRequest<'_>) -> Verdict {
        Verdict::Invalid
    }

    fn encapsulate(&self, public_key: &EncodedKey) -> Result<Encapsulated> {
        let key = public_key.prepared::<Box<dyn EncapsulationKey>>().ok_or_else(|| {
            KmsError::new(Code::InvalidPublicKey, format!("not a public key of {}", public_key.algorithm()))
        })?;
        let (ciphertext, shared_key) = key.encapsulate().map_err(random::unavailable)?;
        Ok(Encapsulated { ciphertext, shared_key })
    }
}

struct MlKemPrivateKey {
    algorithm: Algorithm,
    key: Box<dyn DecapsulationKey>,
}

impl PrivateKey for MlKemPrivateKey {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.key.public_key())
    }

    fn decapsulate(&self, ciphertext: &[u8]) -> Result<SharedKey> {
        self.key.decapsulate(ciphertext).ok_or_else(|| {
            let length = self.algorithm.output_length();
            let why = format!("not a ciphertext of {}, which has {length} bytes", self.algorithm);
            KmsError::new(Code::InvalidCiphertext, why)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public_key::PublicKey;

    fn bytes(hex: &str) -> [u8; 32] {
        std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
    }

    /// The u coordinates of all points of low order, on the curve and its twist, with their
    /// encodings that are not reduced.
    fn low_order() -> Vec<[u8; 32]> {
        let near_p = |low| {
            let mut u = [0xff; 32];
            (u[0], u[31]) = (low, 0x7f);
            u
        };
        let mut all = vec![[0; 32], std::array::from_fn(|at| u8::from(at == 0))];
        all.extend([0xec, 0xed, 0xee].map(near_p));
        all.push(bytes("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"));
        all.push(bytes("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"));
        // X25519 ignores the highest bit.
        let with_bit: Vec<_> =
            all.iter().map(|u| std::array::from_fn(|at| u[at] | if at == 31 { 0x80 } else { 0 })).collect();
        all.extend(with_bit);
        all
    }

    #[test]
    fn a_public_key_of_x_wing_whose_part_of_x25519_is_of_low_order_is_refused() {
        let private = MlKemBackend.load(Algorithm::XWing, &Zeroizing::new(vec![7; 32])).unwrap();
        let good = private.public_key().unwrap();
        PublicKey::from_bytes(Algorithm::XWing, &good).unwrap().encapsulate().unwrap();
        for u in low_order() {
            let mut bad = good.clone();
            let at = bad.len() - u.len();
            bad[at..].copy_from_slice(&u);
            let error = PublicKey::from_bytes(Algorithm::XWing, &bad).unwrap_err();
            assert_eq!(error.code, Code::InvalidPublicKey, "{u:02x?}");
        }
    }
}
