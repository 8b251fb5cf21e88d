//! ML-KEM (FIPS 203) and X-Wing (draft-connolly-cfrg-xwing-kem). A private key is the seed: 64
//! random bytes for ML-KEM (FIPS 203, section 7.1), 32 for X-Wing.

use getrandom::SysRng;
use getrandom::rand_core::UnwrapErr;
use ml_kem::kem::{Ciphertext, Decapsulator, TryDecapsulate};
use ml_kem::{Encapsulate, KeyExport as _, KeyInit, MlKem512, MlKem768, MlKem1024, TryKeyInit};
use x_wing::DecapsulationKeyRejectNonContrib;
use x25519_dalek::StaticSecret;
use zeroize::{Zeroize as _, Zeroizing};

use crate::{DecapsulationKey, EncapsulationKey, RandomError, Secret, SharedKey};

/// The algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ML-KEM-512.
    MlKem512,
    /// ML-KEM-768.
    MlKem768,
    /// ML-KEM-1024.
    MlKem1024,
    /// X-Wing.
    XWing,
}

/// The reason why bytes are not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidKey {
    /// The length is wrong, or a number is out of its range.
    Encoding,
    /// The X25519 part of an X-Wing key has low order: its shared secret is zero for every private
    /// key (RFC 7748, section 6.1), so half of the hybrid would protect nothing.
    LowOrder,
}

impl Algorithm {
    /// The length of a seed in bytes.
    #[must_use]
    pub const fn seed_length(self) -> usize {
        match self {
            Self::MlKem512 | Self::MlKem768 | Self::MlKem1024 => 64,
            Self::XWing => 32,
        }
    }

    /// The private key from a seed; `None` if the seed has a wrong length.
    #[must_use]
    pub fn decapsulation_key(self, seed: &[u8]) -> Option<Box<dyn DecapsulationKey>> {
        match self {
            Self::MlKem512 => decapsulation_key::<ml_kem::DecapsulationKey<MlKem512>>(seed),
            Self::MlKem768 => decapsulation_key::<ml_kem::DecapsulationKey<MlKem768>>(seed),
            Self::MlKem1024 => decapsulation_key::<ml_kem::DecapsulationKey<MlKem1024>>(seed),
            Self::XWing => decapsulation_key::<DecapsulationKeyRejectNonContrib>(seed),
        }
    }

    /// A public key.
    ///
    /// # Errors
    /// [`InvalidKey`] if the bytes are not a public key, or are one that makes the key exchange
    /// worthless.
    pub fn encapsulation_key(self, bytes: &[u8]) -> Result<Box<dyn EncapsulationKey>, InvalidKey> {
        let key = match self {
            Self::MlKem512 => encapsulation_key::<ml_kem::DecapsulationKey<MlKem512>>(bytes),
            Self::MlKem768 => encapsulation_key::<ml_kem::DecapsulationKey<MlKem768>>(bytes),
            Self::MlKem1024 => encapsulation_key::<ml_kem::DecapsulationKey<MlKem1024>>(bytes),
            Self::XWing => encapsulation_key::<DecapsulationKeyRejectNonContrib>(bytes),
        };
        let key = key.ok_or(InvalidKey::Encoding)?;
        if self == Self::XWing && !has_large_order(bytes) { Err(InvalidKey::LowOrder) } else { Ok(key) }
    }

    /// The expanded form of a private key (FIPS 203, algorithm 16); `None` for X-Wing, which has no
    /// such form, and for a seed of a wrong length.
    #[must_use]
    pub fn expanded(self, seed: &[u8]) -> Option<Secret> {
        match self {
            Self::MlKem512 => expanded::<ml_kem::DecapsulationKey<MlKem512>>(seed),
            Self::MlKem768 => expanded::<ml_kem::DecapsulationKey<MlKem768>>(seed),
            Self::MlKem1024 => expanded::<ml_kem::DecapsulationKey<MlKem1024>>(seed),
            Self::XWing => None,
        }
    }
}

/// Whether the X25519 part, at the end of an X-Wing public key, gives a shared secret that others
/// do not know.
fn has_large_order(public_key: &[u8]) -> bool {
    // Any private key can test this: each is a multiple of 8, and of no other factor of the order.
    let any = StaticSecret::from([1; 32]);
    public_key
        .last_chunk::<32>()
        .is_some_and(|point| any.diffie_hellman(&x25519_dalek::PublicKey::from(*point)).was_contributory())
}

/// A private key of one of the algorithms.
trait Private: TryDecapsulate + KeyInit + Send + Sync + 'static {}

impl<D: TryDecapsulate + KeyInit + Send + Sync + 'static> Private for D {}

/// The public key that belongs to a private key of type `D`.
type PublicOf<D> = ml_kem::kem::EncapsulationKey<<D as Decapsulator>::Kem>;

fn decapsulation_key<D: Private>(seed: &[u8]) -> Option<Box<dyn DecapsulationKey>> {
    Some(Box::new(Decapsulating(D::new_from_slice(seed).ok()?)))
}

fn encapsulation_key<D: Private>(bytes: &[u8]) -> Option<Box<dyn EncapsulationKey>>
where
    PublicOf<D>: Send + Sync + 'static,
{
    Some(Box::new(Encapsulating(PublicOf::<D>::new_from_slice(bytes).ok()?)))
}

#[allow(deprecated, reason = "what is deprecated is the import of such a key; here it is compared with one")]
fn expanded<D: ml_kem::ExpandedKeyEncoding + KeyInit>(seed: &[u8]) -> Option<Secret> {
    let mut bytes = D::new_from_slice(seed).ok()?.to_expanded_bytes();
    let expanded = Zeroizing::new(bytes.to_vec());
    bytes.as_mut_slice().zeroize();
    Some(expanded)
}

struct Decapsulating<D>(D);

impl<D: Private> DecapsulationKey for Decapsulating<D> {
    fn public_key(&self) -> Vec<u8> {
        self.0.encapsulation_key().to_bytes().to_vec()
    }

    fn decapsulate(&self, ciphertext: &[u8]) -> Option<SharedKey> {
        let ciphertext = <&Ciphertext<D::Kem>>::try_from(ciphertext).ok()?;
        let mut shared = self.0.try_decapsulate(ciphertext).ok()?;
        let bytes = shared.as_slice().try_into().ok();
        shared.as_mut_slice().zeroize();
        bytes.map(Zeroizing::new)
    }
}

struct Encapsulating<E>(E);

impl<E: Encapsulate + Send + Sync> EncapsulationKey for Encapsulating<E> {
    fn encapsulate(&self) -> Result<(Vec<u8>, SharedKey), RandomError> {
        // Check for random bytes here, where a failure can be returned as an error.
        getrandom::fill(&mut [0])?;
        let (ciphertext, mut shared) = self.0.encapsulate_with_rng(&mut UnwrapErr(SysRng));
        let shared_key = Zeroizing::new(shared.as_slice().try_into().expect("a shared key has 32 bytes"));
        shared.as_mut_slice().zeroize();
        Ok((ciphertext.to_vec(), shared_key))
    }
}
