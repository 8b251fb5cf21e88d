//! ML-KEM (FIPS 203) by `ml-kem`, and X-Wing (draft-connolly-cfrg-xwing-kem) by `x-wing`, both of RustCrypto, in
//! software. The material is the seed: 64 random bytes for ML-KEM (FIPS 203, section 7.1), 32 for X-Wing.

use std::sync::Arc;

use getrandom::SysRng;
use getrandom::rand_core::UnwrapErr;
use ml_kem::kem::{Ciphertext, Decapsulator, EncapsulationKey, TryDecapsulate};
use ml_kem::{Encapsulate as _, KeyExport as _, KeyInit, MlKem512, MlKem768, MlKem1024, TryKeyInit as _};
use x_wing::DecapsulationKeyRejectNonContrib;
use x25519_dalek::StaticSecret;
use zeroize::{Zeroize as _, Zeroizing};

use super::encoded_key::{EncodedKey, Prepared};
use super::interface::{
    Backend, Capabilities, Encapsulated, KeyMaterial, PrivateKey, Request, SOFTWARE, SharedKey,
};
use crate::algorithm::Algorithm;
use crate::error::{Code, KmsError, Result};
use crate::verdict::Verdict;

#[derive(Debug)]
pub(super) struct Software;

/// A private key of one of the algorithms.
trait Private: TryDecapsulate + KeyInit + Send + Sync + 'static {}

impl<D: TryDecapsulate + KeyInit + Send + Sync + 'static> Private for D {}

/// The public key that belongs to one of type `D`.
type PublicOf<D> = EncapsulationKey<<D as Decapsulator>::Kem>;

/// What there is for one algorithm.
struct Set {
    seed: usize,
    load: fn(Algorithm, &[u8]) -> Result<Arc<dyn PrivateKey>>,
    prepare: fn(Algorithm, &[u8]) -> Result<Prepared>,
    encapsulate: fn(&EncodedKey) -> Option<Encapsulated>,
}

impl Set {
    fn of<D: Private>() -> Self
    where
        PublicOf<D>: Send + Sync + 'static,
    {
        Self { seed: D::key_size(), load: load::<D>, prepare: prepare::<D>, encapsulate: encapsulate::<D> }
    }
}

fn set(algorithm: Algorithm) -> Option<Set> {
    match algorithm {
        Algorithm::MlKem512 => Some(Set::of::<ml_kem::DecapsulationKey<MlKem512>>()),
        Algorithm::MlKem768 => Some(Set::of::<ml_kem::DecapsulationKey<MlKem768>>()),
        Algorithm::MlKem1024 => Some(Set::of::<ml_kem::DecapsulationKey<MlKem1024>>()),
        Algorithm::XWing => Some(Set::of::<DecapsulationKeyRejectNonContrib>()),
        _ => None,
    }
}

/// The set of an algorithm that the backend said to serve.
fn served(algorithm: Algorithm) -> Set {
    set(algorithm).expect("only algorithms that are served are asked for")
}

impl Backend for Software {
    fn name(&self) -> &str {
        SOFTWARE
    }

    fn capabilities(&self, algorithm: Algorithm) -> Option<Capabilities> {
        set(algorithm).map(|_| Capabilities { verify_lanes: 1, sign_lanes: 1, material_is_key: true })
    }

    fn generate(&self, algorithm: Algorithm) -> Result<KeyMaterial> {
        let mut seed = Zeroizing::new(vec![0; served(algorithm).seed]);
        crate::random::fill(&mut seed)?;
        Ok(seed)
    }

    fn expanded(&self, algorithm: Algorithm, seed: &KeyMaterial) -> Option<KeyMaterial> {
        expanded(algorithm, seed)
    }

    fn load(&self, algorithm: Algorithm, material: &KeyMaterial) -> Result<Arc<dyn PrivateKey>> {
        (served(algorithm).load)(algorithm, material)
    }

    fn prepare(&self, algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared> {
        let prepared = (served(algorithm).prepare)(algorithm, public_key)?;
        if algorithm == Algorithm::XWing && !has_large_order(public_key) {
            let why = "not a public key of X-Wing: its part of X25519 is of low order";
            return Err(KmsError::new(Code::InvalidPublicKey, why));
        }
        Ok(prepared)
    }

    /// Nothing verifies under a key that does not sign.
    fn verify(&self, _request: Request<'_>) -> Verdict {
        Verdict::Invalid
    }

    fn encapsulate(&self, public_key: &EncodedKey) -> Result<Encapsulated> {
        // Whether there are random bytes is asked here, where it can be answered by an error.
        crate::random::fill(&mut [0])?;
        (served(public_key.algorithm()).encapsulate)(public_key).ok_or_else(|| {
            KmsError::new(Code::InvalidPublicKey, format!("not a public key of {}", public_key.algorithm()))
        })
    }
}

/// Whether the part of X25519, which ends a public key of X-Wing, makes a shared secret that others do not know. Under one of
/// low order it is zero for every private key (RFC 7748, section 6.1), and half of the hybrid is gone.
fn has_large_order(public_key: &[u8]) -> bool {
    // Which private key it is does not matter: each is a multiple of 8, and none of another factor of the order.
    let any = StaticSecret::from([1; 32]);
    public_key
        .last_chunk::<32>()
        .is_some_and(|point| any.diffie_hellman(&x25519_dalek::PublicKey::from(*point)).was_contributory())
}

fn load<D: Private>(algorithm: Algorithm, seed: &[u8]) -> Result<Arc<dyn PrivateKey>> {
    let key = D::new_from_slice(seed)
        .map_err(|_| KmsError::damaged(format!("a sealed key of {algorithm} has a wrong length")))?;
    Ok(Arc::new(SoftwareKey { algorithm, key }))
}

fn prepare<D: Private>(algorithm: Algorithm, public_key: &[u8]) -> Result<Prepared>
where
    PublicOf<D>: Send + Sync + 'static,
{
    match PublicOf::<D>::new_from_slice(public_key) {
        Ok(key) => Ok(Box::new(key)),
        Err(_) => {
            let length = algorithm.public_key_length();
            let why =
                format!("not a public key of {algorithm}: it has {length} bytes, of numbers in their range");
            Err(KmsError::new(Code::InvalidPublicKey, why))
        }
    }
}

/// The expanded private key (FIPS 203, algorithm 16).
#[allow(deprecated, reason = "deprecated is to import it; here it is compared with one")]
fn expanded(algorithm: Algorithm, seed: &KeyMaterial) -> Option<KeyMaterial> {
    use ml_kem::{DecapsulationKey, ExpandedKeyEncoding};

    fn of<D: ExpandedKeyEncoding + KeyInit>(seed: &[u8]) -> Option<KeyMaterial> {
        let mut bytes = D::new_from_slice(seed).ok()?.to_expanded_bytes();
        let expanded = Zeroizing::new(bytes.to_vec());
        bytes.as_mut_slice().zeroize();
        Some(expanded)
    }
    match algorithm {
        Algorithm::MlKem512 => of::<DecapsulationKey<MlKem512>>(seed),
        Algorithm::MlKem768 => of::<DecapsulationKey<MlKem768>>(seed),
        Algorithm::MlKem1024 => of::<DecapsulationKey<MlKem1024>>(seed),
        _ => None,
    }
}

fn encapsulate<D: Private>(public_key: &EncodedKey) -> Option<Encapsulated>
where
    PublicOf<D>: 'static,
{
    let (ciphertext, mut shared) =
        public_key.prepared::<PublicOf<D>>()?.encapsulate_with_rng(&mut UnwrapErr(SysRng));
    let shared_key = Zeroizing::new(shared.as_slice().try_into().ok()?);
    shared.as_mut_slice().zeroize();
    Some(Encapsulated { ciphertext: ciphertext.to_vec(), shared_key })
}

/// A private key. The crates wipe it when it is dropped.
struct SoftwareKey<D> {
    algorithm: Algorithm,
    key: D,
}

impl<D: Private> PrivateKey for SoftwareKey<D> {
    fn public_key(&self) -> Result<Vec<u8>> {
        Ok(self.key.encapsulation_key().to_bytes().to_vec())
    }

    fn decapsulate(&self, ciphertext: &[u8]) -> Result<SharedKey> {
        let invalid = || {
            let length = self.algorithm.output_length();
            let why = format!("not a ciphertext of {}, which has {length} bytes", self.algorithm);
            KmsError::new(Code::InvalidCiphertext, why)
        };
        let ciphertext = <&Ciphertext<D::Kem>>::try_from(ciphertext).map_err(|_| invalid())?;
        let mut shared = self.key.try_decapsulate(ciphertext).map_err(|_| invalid())?;
        let bytes = shared.as_slice().try_into().map_err(|_| invalid())?;
        shared.as_mut_slice().zeroize();
        Ok(Zeroizing::new(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::public_key::PublicKey;

    fn bytes(hex: &str) -> [u8; 32] {
        std::array::from_fn(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
    }

    /// The u of all points of low order, on the curve and its twist, and the encodings of them that are not reduced.
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
        // The highest bit is not looked at by X25519.
        let with_bit: Vec<_> =
            all.iter().map(|u| std::array::from_fn(|at| u[at] | if at == 31 { 0x80 } else { 0 })).collect();
        all.extend(with_bit);
        all
    }

    #[test]
    fn a_public_key_of_x_wing_whose_part_of_x25519_is_of_low_order_is_refused() {
        let private = Software.load(Algorithm::XWing, &Zeroizing::new(vec![7; 32])).unwrap();
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
