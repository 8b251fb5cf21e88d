//! Nonces that sign once, and what the others know of them.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use base64ct::{Base64, Encoding as _};
use bulla_kms::Name;
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::traits::IsIdentity as _;
use curve25519_dalek::{EdwardsPoint, Scalar};
use frost_ed25519::{Ciphersuite as _, Ed25519Sha512};
use rand_core::{OsRng, RngCore as _};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::{Result, ThresholdError};
use crate::message::serde_as_text;
use crate::order::{OrderShare, PreparedOrder};
use crate::share::KeyShare;

/// The number that eight times is one.
static EIGHTH: LazyLock<Scalar> = LazyLock::new(|| Scalar::from(8_u8).invert());

/// What a participant commits to for one signature: the points of a hiding and of a binding nonce.
///
/// A point travels as its eighth, and whoever reads it multiplies by eight. So it has the prime
/// order that RFC 9591 asks for, whatever was sent. To check that of a point would take a whole
/// multiplication.
#[derive(Clone, Copy)]
pub struct NonceCommitments {
    eighths: [[u8; 32]; 2],
    pub(crate) hiding: EdwardsPoint,
    pub(crate) binding: EdwardsPoint,
}

impl NonceCommitments {
    /// None if one of the two is no point, or stands for the neutral element, which commits to
    /// nothing.
    fn read(eighths: [[u8; 32]; 2]) -> Option<Self> {
        let read = |eighth| {
            let point = CompressedEdwardsY(eighth).decompress()?.mul_by_cofactor();
            (!point.is_identity()).then_some(point)
        };
        Some(Self { eighths, hiding: read(eighths[0])?, binding: read(eighths[1])? })
    }
}

/// A point has several eighths.
impl PartialEq for NonceCommitments {
    fn eq(&self, other: &Self) -> bool {
        self.hiding == other.hiding && self.binding == other.binding
    }
}

impl Eq for NonceCommitments {}

impl fmt::Display for NonceCommitments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(self.eighths.as_flattened()))
    }
}

impl fmt::Debug for NonceCommitments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for NonceCommitments {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self> {
        let mut eighths = [[0; 32]; 2];
        let is_whole = Base64::decode(text, eighths.as_flattened_mut()).is_ok_and(|bytes| bytes.len() == 64);
        let read = is_whole.then(|| Self::read(eighths)).flatten();
        read.ok_or_else(|| ThresholdError::malformed("the commitments are not two points in base64"))
    }
}

serde_as_text!(NonceCommitments);

/// Nonces that sign once: signing consumes them.
pub struct Nonce {
    share: Arc<KeyShare>,
    /// The hiding and the binding one.
    secrets: [Zeroizing<Scalar>; 2],
    commitments: NonceCommitments,
}

impl Nonce {
    /// Makes this many nonces: for the coordinator, who needs none in advance. Many take less time
    /// together, because they share an inversion.
    pub fn fresh(share: &Arc<KeyShare>, count: usize) -> Vec<Self> {
        let secret = Zeroizing::new(share.key().signing_share().serialize());
        let nonce = || {
            let mut random = Zeroizing::new([0; 32]);
            OsRng.fill_bytes(&mut *random);
            nonce_of(&random, &secret)
        };
        Self::from_secrets(share, (0..count).map(|_| [nonce(), nonce()]).collect())
    }

    pub(crate) fn from_secrets(share: &Arc<KeyShare>, secrets: Vec<[Zeroizing<Scalar>; 2]>) -> Vec<Self> {
        let eighth_of =
            |nonce: &Zeroizing<Scalar>| EdwardsPoint::mul_base(&Zeroizing::new(**nonce * *EIGHTH));
        let eighths: Vec<_> = secrets.iter().flatten().map(eighth_of).collect();
        let encodings = EdwardsPoint::compress_batch_alloc(&eighths);
        let pairs = eighths.as_chunks().0.iter().zip(encodings.as_chunks().0);
        let commitments = pairs.map(|([hiding, binding], encodings): (_, &[_; 2])| NonceCommitments {
            eighths: encodings.map(|encoding| encoding.to_bytes()),
            hiding: hiding.mul_by_cofactor(),
            binding: binding.mul_by_cofactor(),
        });
        let one = |(secrets, commitments)| Self { share: Arc::clone(share), secrets, commitments };
        secrets.into_iter().zip(commitments).map(one).collect()
    }

    /// Returns what the participant commits to.
    pub fn commitments(&self) -> NonceCommitments {
        self.commitments
    }

    pub(crate) fn holder(&self) -> &Name {
        self.share.holder()
    }

    /// Signs. The nonces are gone afterwards, whatever happens.
    ///
    /// # Errors
    /// [`ErrorCode::WrongSession`] if the order is for other shares;
    /// [`ErrorCode::InvalidArgument`] if it was prepared for another signer, or is not for these
    /// nonces.
    ///
    /// [`ErrorCode::WrongSession`]: crate::ErrorCode::WrongSession
    /// [`ErrorCode::InvalidArgument`]: crate::ErrorCode::InvalidArgument
    pub fn sign(self, order: &PreparedOrder) -> Result<OrderShare> {
        let [hiding, binding] = &self.secrets;
        order.sign(&self.share, &self.commitments, hiding, binding)
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonce").finish_non_exhaustive()
    }
}

/// Makes a nonce of randomness and the encoded share (RFC 9591, section 4.1): if the randomness is
/// bad, nobody without the share knows the nonce.
pub(crate) fn nonce_of(random: &[u8; 32], share: &[u8]) -> Zeroizing<Scalar> {
    let input = Zeroizing::new([&random[..], share].concat());
    Zeroizing::new(Scalar::from_bytes_mod_order(Ed25519Sha512::H3(&input).to_bytes()))
}
