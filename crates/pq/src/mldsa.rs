//! ML-DSA (FIPS 204). A private key is the seed of 32 random bytes (FIPS 204, section 3.6.3).

use getrandom::SysRng;
use ml_dsa::{
    EncodedVerifyingKey, Keypair as _, MlDsa44, MlDsa65, MlDsa87, MlDsaParams, Signature,
    SignatureEncoding as _,
};
use zeroize::{Zeroize as _, Zeroizing};

use crate::{RandomError, Secret, SigningKey, VerifyingKey};

/// The length of the seed in bytes.
pub const SEED: usize = 32;

/// The parameter sets of FIPS 204.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterSet {
    /// ML-DSA-44.
    MlDsa44,
    /// ML-DSA-65.
    MlDsa65,
    /// ML-DSA-87.
    MlDsa87,
}

/// Calls a generic function with the type of a parameter set.
macro_rules! of {
    ($set:expr, $function:ident($($argument:expr),*)) => {
        match $set {
            ParameterSet::MlDsa44 => $function::<MlDsa44>($($argument),*),
            ParameterSet::MlDsa65 => $function::<MlDsa65>($($argument),*),
            ParameterSet::MlDsa87 => $function::<MlDsa87>($($argument),*),
        }
    };
}

impl ParameterSet {
    /// The private key from a seed; `None` if the seed has a wrong length. The key is expanded
    /// once.
    #[must_use]
    pub fn signing_key(self, seed: &[u8]) -> Option<Box<dyn SigningKey>> {
        of!(self, signing_key(seed))
    }

    /// A public key. Every byte string of the right length is one (FIPS 204, section 7.2); `None`
    /// for other lengths.
    #[must_use]
    pub fn verifying_key(self, bytes: &[u8]) -> Option<Box<dyn VerifyingKey>> {
        of!(self, verifying_key(bytes))
    }

    /// The expanded form of the private key (FIPS 204, algorithm 24); `None` when the seed has a
    /// wrong length.
    #[must_use]
    pub fn expanded(self, seed: &[u8]) -> Option<Secret> {
        of!(self, expanded(seed))
    }
}

fn signing_key<P: MlDsaParams + Send + Sync + 'static>(seed: &[u8]) -> Option<Box<dyn SigningKey>> {
    Some(Box::new(Signing(ml_dsa::SigningKey::<P>::from_seed(seed.try_into().ok()?))))
}

fn verifying_key<P: MlDsaParams + Send + Sync + 'static>(bytes: &[u8]) -> Option<Box<dyn VerifyingKey>> {
    let encoded = EncodedVerifyingKey::<P>::try_from(bytes).ok()?;
    Some(Box::new(Verifying(ml_dsa::VerifyingKey::<P>::decode(&encoded))))
}

fn expanded<P: MlDsaParams>(seed: &[u8]) -> Option<Secret> {
    let key = ml_dsa::SigningKey::<P>::from_seed(seed.try_into().ok()?);
    #[allow(
        deprecated,
        reason = "what is deprecated is the import of such a key; here it is compared with one"
    )]
    let mut bytes = key.expanded_key().to_expanded();
    let expanded = Zeroizing::new(bytes.to_vec());
    bytes.as_mut_slice().zeroize();
    Some(expanded)
}

struct Signing<P: MlDsaParams>(ml_dsa::SigningKey<P>);

impl<P: MlDsaParams + Send + Sync> SigningKey for Signing<P> {
    fn public_key(&self) -> Vec<u8> {
        self.0.verifying_key().encode().to_vec()
    }

    fn sign(&self, message: &[u8], context: &[u8]) -> Result<Vec<u8>, RandomError> {
        assert!(context.len() <= 255, "a context has at most 255 bytes");
        let signature = self.0.expanded_key().sign_randomized(message, context, &mut SysRng);
        // The context is not too long, so only the random bytes can fail.
        Ok(signature.map_err(|_| RandomError::UNSUPPORTED)?.to_vec())
    }
}

struct Verifying<P: MlDsaParams>(ml_dsa::VerifyingKey<P>);

impl<P: MlDsaParams + Send + Sync> VerifyingKey for Verifying<P> {
    fn verify(&self, message: &[u8], context: &[u8], signature: &[u8]) -> bool {
        Signature::<P>::try_from(signature)
            .is_ok_and(|signature| self.0.verify_with_context(message, context, &signature))
    }
}
