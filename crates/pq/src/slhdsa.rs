//! SLH-DSA (FIPS 205). A private key has 4n bytes (FIPS 205, figure 15).

use getrandom::SysRng;
use getrandom::rand_core::UnwrapErr;
use slh_dsa::signature::Keypair as _;
use slh_dsa::{
    Sha2_128f, Sha2_128s, Sha2_192f, Sha2_192s, Sha2_256f, Sha2_256s, Shake128f, Shake128s, Shake192f,
    Shake192s, Shake256f, Shake256s, Signature,
};
use zeroize::Zeroizing;

use crate::{RandomError, Secret, SigningKey, VerifyingKey};

/// The parameter sets of FIPS 205.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each has the name that FIPS 205 gives it")]
pub enum ParameterSet {
    Sha2_128s,
    Sha2_128f,
    Sha2_192s,
    Sha2_192f,
    Sha2_256s,
    Sha2_256f,
    Shake128s,
    Shake128f,
    Shake192s,
    Shake192f,
    Shake256s,
    Shake256f,
}

/// Calls a generic function with the type of a parameter set.
macro_rules! of {
    ($set:expr, $function:ident($($argument:expr),*)) => {
        match $set {
            ParameterSet::Sha2_128s => $function::<Sha2_128s>($($argument),*),
            ParameterSet::Sha2_128f => $function::<Sha2_128f>($($argument),*),
            ParameterSet::Sha2_192s => $function::<Sha2_192s>($($argument),*),
            ParameterSet::Sha2_192f => $function::<Sha2_192f>($($argument),*),
            ParameterSet::Sha2_256s => $function::<Sha2_256s>($($argument),*),
            ParameterSet::Sha2_256f => $function::<Sha2_256f>($($argument),*),
            ParameterSet::Shake128s => $function::<Shake128s>($($argument),*),
            ParameterSet::Shake128f => $function::<Shake128f>($($argument),*),
            ParameterSet::Shake192s => $function::<Shake192s>($($argument),*),
            ParameterSet::Shake192f => $function::<Shake192f>($($argument),*),
            ParameterSet::Shake256s => $function::<Shake256s>($($argument),*),
            ParameterSet::Shake256f => $function::<Shake256f>($($argument),*),
        }
    };
}

impl ParameterSet {
    /// A new private key.
    ///
    /// # Errors
    /// The operating system gives no random bytes.
    pub fn generate(self) -> Result<Secret, RandomError> {
        // Check for random bytes here, where a failure can be returned as an error.
        getrandom::fill(&mut [0])?;
        Ok(of!(self, generate()))
    }

    /// A private key; `None` when it has a wrong length.
    #[must_use]
    pub fn signing_key(self, bytes: &[u8]) -> Option<Box<dyn SigningKey>> {
        of!(self, signing_key(bytes))
    }

    /// A public key. Every byte string of the right length is one; `None` for other lengths.
    #[must_use]
    pub fn verifying_key(self, bytes: &[u8]) -> Option<Box<dyn VerifyingKey>> {
        of!(self, verifying_key(bytes))
    }

    /// Whether the root in a private key matches its seeds. With another root, its signatures could
    /// reveal its secrets.
    #[must_use]
    pub fn is_consistent(self, bytes: &[u8]) -> bool {
        of!(self, is_consistent(bytes))
    }
}

/// The traits that every parameter set implements here.
trait Set: slh_dsa::ParameterSet + Send + Sync + 'static {}

impl<P: slh_dsa::ParameterSet + Send + Sync + 'static> Set for P {}

fn generate<P: Set>() -> Secret {
    Zeroizing::new(slh_dsa::SigningKey::<P>::new(&mut UnwrapErr(SysRng)).to_vec())
}

fn signing_key<P: Set>(bytes: &[u8]) -> Option<Box<dyn SigningKey>> {
    let key = slh_dsa::SigningKey::<P>::try_from(bytes).ok()?;
    Some(Box::new(Signing { key, n: bytes.len() / 4 }))
}

fn verifying_key<P: Set>(bytes: &[u8]) -> Option<Box<dyn VerifyingKey>> {
    Some(Box::new(Verifying(slh_dsa::VerifyingKey::<P>::try_from(bytes).ok()?)))
}

fn is_consistent<P: Set>(bytes: &[u8]) -> bool {
    if slh_dsa::SigningKey::<P>::try_from(bytes).is_err() {
        return false;
    }
    let n = bytes.len() / 4;
    let key =
        slh_dsa::SigningKey::<P>::slh_keygen_internal(&bytes[..n], &bytes[n..2 * n], &bytes[2 * n..3 * n]);
    *Zeroizing::new(key.to_vec()) == *bytes
}

struct Signing<P: slh_dsa::ParameterSet> {
    key: slh_dsa::SigningKey<P>,
    /// The security parameter of FIPS 205, in bytes.
    n: usize,
}

impl<P: Set> SigningKey for Signing<P> {
    fn public_key(&self) -> Vec<u8> {
        self.key.verifying_key().to_vec()
    }

    fn sign(&self, message: &[u8], context: &[u8]) -> Result<Vec<u8>, RandomError> {
        // As many random bytes as the public key's seed has (FIPS 205, section 9.2).
        let mut random = Zeroizing::new(vec![0; self.n]);
        getrandom::fill(&mut random)?;
        let signature = self.key.try_sign_with_context(message, context, Some(&random));
        Ok(signature.expect("a context has at most 255 bytes").to_vec())
    }
}

struct Verifying<P: slh_dsa::ParameterSet>(slh_dsa::VerifyingKey<P>);

impl<P: Set> VerifyingKey for Verifying<P> {
    fn verify(&self, message: &[u8], context: &[u8], signature: &[u8]) -> bool {
        Signature::<P>::try_from(signature)
            .is_ok_and(|signature| self.0.try_verify_with_context(message, context, &signature).is_ok())
    }
}
