//! Orders to sign in one round trip, and what is public of them.
//!
//! `sign` and `aggregate` of RFC 9591 (sections 5.2 and 5.3), for many signatures at once. The hash
//! functions are those of `frost-ed25519`, which also finds whoever sent a wrong part.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Encoding as _};
use bulla_ed25519::{Verdict, VerifyItem, verify_many};
use bulla_kms::Name;
use curve25519_dalek::edwards::CompressedEdwardsY;
use curve25519_dalek::traits::VartimeMultiscalarMul as _;
use curve25519_dalek::{EdwardsPoint, Scalar};
use frost_ed25519::round1::{NonceCommitment, SigningCommitments};
use frost_ed25519::round2::SignatureShare;
use frost_ed25519::{CheaterDetection, Ciphersuite as _, Ed25519Sha512, SigningPackage, aggregate_custom};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::stranger;
use crate::message::{SessionId, serde_as_text};
use crate::nonce::{Nonce, NonceCommitments};
use crate::share::KeyShare;

/// What is signed, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SigningOrder {
    pub(crate) shares: SessionId,
    #[serde(with = "base64_text")]
    pub(crate) message: Vec<u8>,
    pub(crate) commitments: BTreeMap<Name, NonceCommitments>,
}

impl SigningOrder {
    /// Describes a signature of the group. `commitments` has those of all signers.
    pub fn new(share: &KeyShare, message: &[u8], commitments: BTreeMap<Name, NonceCommitments>) -> Self {
        Self { shares: share.shares_id(), message: message.to_vec(), commitments }
    }

    /// Returns the order without the commitments of one signer, for that signer, who knows them.
    #[must_use]
    pub fn without(&self, signer: &Name) -> Self {
        let mut order = self.clone();
        order.commitments.remove(signer);
        order
    }

    /// Returns the [`KeyShare::shares_id`] of the shares that sign.
    pub fn shares_id(&self) -> SessionId {
        self.shares
    }

    /// Returns what is signed.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Returns who signs.
    pub fn signers(&self) -> impl Iterator<Item = &Name> {
        self.commitments.keys()
    }

    /// Returns the order with the commitments of these nonces, if it has none of their holder: the
    /// counterpart of [`SigningOrder::without`].
    #[must_use]
    pub fn with(&self, nonce: &Nonce) -> Self {
        let mut order = self.clone();
        order.commitments.entry(nonce.holder().clone()).or_insert(nonce.commitments());
        order
    }

    /// What the order is computed from, if this share can sign it.
    fn list(self, share: &KeyShare) -> Result<Listed> {
        share.check_shares(share.group_id(), self.shares)?;
        let invalid = |text| Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        let threshold = usize::from(share.group().threshold());
        if self.commitments.len() != threshold {
            return invalid(format!("{threshold} sign together, and not {}", self.commitments.len()));
        }
        if let Some(name) = self.signers().find(|name| !share.is_member(name)) {
            return Err(stranger(name));
        }
        let number = |(name, one): (&Name, &NonceCommitments)| Ok((share.group().number(name)?, *one));
        let mut commitments = self.commitments.iter().map(number).collect::<Result<Vec<_>>>()?;
        commitments.sort_unstable_by_key(|(number, _)| *number);
        let own = share.group().number(share.holder())?;
        match commitments.binary_search_by_key(&own, |(number, _)| *number) {
            Ok(own) => Ok(Listed { order: self, commitments, own }),
            Err(_) => invalid(format!("{} is not one of the signers", share.holder())),
        }
    }

    /// The order as `frost-ed25519` takes it.
    fn package(&self, share: &KeyShare) -> Result<SigningPackage> {
        let read = |point: &EdwardsPoint| {
            NonceCommitment::deserialize(point.compress().as_bytes()).expect("it has the prime order")
        };
        let commitments = self.commitments.iter().map(|(name, one)| {
            (name.clone(), SigningCommitments::new(read(&one.hiding), read(&one.binding)))
        });
        Ok(SigningPackage::new(share.group().by_identifier(commitments)?, &self.message))
    }
}

/// An order with what follows from it for one signer. Nothing of it is secret.
#[derive(Clone, Debug)]
pub struct PreparedOrder {
    order: SigningOrder,
    signer: Name,
    /// R of the signature.
    group_commitment: [u8; 32],
    /// The signer's binding factor.
    binding_factor: Scalar,
    /// The challenge times the signer's Lagrange coefficient.
    challenge: Scalar,
}

/// What an order is computed from.
struct Listed {
    order: SigningOrder,
    /// By the signers' numbers.
    commitments: Vec<(u16, NonceCommitments)>,
    /// The place of the signer for whom it is prepared.
    own: usize,
}

impl PreparedOrder {
    /// Prepares orders for a share's holder. Each one that is not valid has its own error.
    ///
    /// Many orders take less time together: they share their inversions.
    ///
    /// # Errors
    /// [`ErrorCode::WrongSession`] if the order is for other shares; [`ErrorCode::UnknownSender`];
    /// [`ErrorCode::InvalidArgument`] if it is not for as many members as sign together, or not for
    /// this one.
    pub fn prepare_all(share: &KeyShare, orders: Vec<SigningOrder>) -> Vec<Result<Self>> {
        let key = share.verifying_key();
        let listed: Vec<_> = orders.into_iter().map(|order| order.list(share)).collect();
        let points = listed.iter().flatten().flat_map(Listed::points).collect::<Vec<_>>();
        let encodings = EdwardsPoint::compress_batch_alloc(&points);
        // As many as sign together have two points each.
        let encodings = encodings.chunks(2 * usize::from(share.group().threshold()));
        let (own_factors, sums): (Vec<_>, Vec<_>) = listed
            .iter()
            .flatten()
            .zip(encodings)
            .map(|(listed, encodings)| listed.sum(key, encodings))
            .unzip();
        let group_commitments = EdwardsPoint::compress_batch_alloc(&sums);
        let (numerators, mut denominators): (Vec<_>, Vec<_>) =
            listed.iter().flatten().map(Listed::lagrange_coefficient).unzip();
        Scalar::invert_batch_alloc(&mut denominators);
        let mut computed =
            group_commitments.into_iter().zip(own_factors).zip(numerators.iter().zip(&denominators));
        let prepare = |listed: Result<Listed>| {
            let order = listed?.order;
            let ((r, binding_factor), (numerator, inverse)) =
                computed.next().expect("one for each valid order");
            let group_commitment = r.to_bytes();
            let challenge = Ed25519Sha512::H2(&[&group_commitment[..], key, &order.message].concat());
            let challenge = Scalar::from_bytes_mod_order(challenge.to_bytes()) * numerator * inverse;
            Ok(Self { order, signer: share.holder().clone(), group_commitment, binding_factor, challenge })
        };
        listed.into_iter().map(prepare).collect()
    }

    /// The part of a share's holder, with these nonces.
    pub(crate) fn sign(
        &self,
        share: &KeyShare,
        commitments: &NonceCommitments,
        hiding: &Scalar,
        binding: &Scalar,
    ) -> Result<OrderShare> {
        share.check_shares(share.group_id(), self.order.shares)?;
        let refused = |text| Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        if self.signer != *share.holder() {
            return refused("the order was prepared for another signer");
        }
        if self.order.commitments.get(share.holder()) != Some(commitments) {
            return refused("the order has other commitments than those of these nonces");
        }
        Ok(OrderShare(hiding + binding * self.binding_factor + *share.secret_scalar() * self.challenge))
    }

    /// The signature, which may be wrong.
    fn add_up(&self, share: &KeyShare, parts: &BTreeMap<Name, OrderShare>) -> Result<[u8; 64]> {
        share.check_shares(share.group_id(), self.order.shares)?;
        if !self.order.signers().eq(parts.keys()) {
            let text = "there is not one part from each signer";
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&self.group_commitment);
        signature[32..].copy_from_slice(parts.values().map(|part| part.0).sum::<Scalar>().as_bytes());
        Ok(signature)
    }

    /// Why a signature is wrong: verifies each part.
    fn blame(&self, share: &KeyShare, parts: &BTreeMap<Name, OrderShare>) -> ThresholdError {
        let find = || {
            let shares = parts.iter().map(|(name, part)| {
                let part = SignatureShare::deserialize(part.0.as_bytes()).expect("a reduced scalar");
                (name.clone(), part)
            });
            let shares = share.group().by_identifier(shares)?;
            aggregate_custom(
                &self.order.package(share)?,
                &shares,
                share.public(),
                CheaterDetection::AllCheaters,
            )
            .map_err(|error| share.group().blame(&error, "the signature shares"))
        };
        let unexplained = || ThresholdError::new(ErrorCode::Misbehavior, "the signature does not verify");
        find().err().unwrap_or_else(unexplained)
    }
}

impl Listed {
    fn points(&self) -> impl Iterator<Item = EdwardsPoint> {
        self.commitments.iter().flat_map(|(_, one)| [one.hiding, one.binding])
    }

    /// The signer's binding factor, and the group commitment (RFC 9591, sections 4.4 and 4.5).
    fn sum(&self, key: &[u8; 32], encodings: &[CompressedEdwardsY]) -> (Scalar, EdwardsPoint) {
        let numbers = || self.commitments.iter().map(|(number, _)| Scalar::from(*number));
        let mut list = Vec::with_capacity(96 * self.commitments.len());
        for (number, [hiding, binding]) in numbers().zip(encodings.as_chunks().0) {
            list.extend([number.as_bytes(), hiding.as_bytes(), binding.as_bytes()].into_iter().flatten());
        }
        let (message, list) = (Ed25519Sha512::H4(&self.order.message), Ed25519Sha512::H5(&list));
        let factor = |number: Scalar| {
            let factor = Ed25519Sha512::H1(&[&key[..], &message, &list, number.as_bytes()].concat());
            Scalar::from_bytes_mod_order(factor.to_bytes())
        };
        let factors: Vec<_> = numbers().map(factor).collect();
        let bindings = self.commitments.iter().map(|(_, one)| one.binding);
        let hidings: EdwardsPoint = self.commitments.iter().map(|(_, one)| one.hiding).sum();
        (factors[self.own], hidings + EdwardsPoint::vartime_multiscalar_mul(&factors, bindings))
    }

    /// The numerator and the denominator of the signer's Lagrange coefficient. The numbers are
    /// distinct, so the denominator is not 0.
    fn lagrange_coefficient(&self) -> (Scalar, Scalar) {
        let own = Scalar::from(self.commitments[self.own].0);
        let others =
            self.commitments.iter().map(|(number, _)| Scalar::from(*number)).filter(|one| *one != own);
        others
            .fold((Scalar::ONE, Scalar::ONE), |(above, below), other| (above * other, below * (other - own)))
    }
}

/// One signer's part of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderShare(pub(crate) Scalar);

impl fmt::Display for OrderShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(self.0.as_bytes()))
    }
}

impl FromStr for OrderShare {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self> {
        let mut bytes = [0; 32];
        let is_whole = Base64::decode(text, &mut bytes).is_ok_and(|bytes| bytes.len() == 32);
        let scalar = is_whole.then(|| Scalar::from_canonical_bytes(bytes).into_option()).flatten();
        scalar
            .map(Self)
            .ok_or_else(|| ThresholdError::malformed("a part of a signature is not a scalar, in base64"))
    }
}

serde_as_text!(OrderShare);

/// Puts the parts of all signers together, for each of many orders. What it returns verifies.
///
/// All signatures are verified at once, and the parts of those alone that are wrong.
///
/// # Errors
/// [`ErrorCode::Misbehavior`], naming all who sent a wrong part; [`ErrorCode::WrongSession`],
/// [`ErrorCode::InvalidArgument`] if a part is missing or the order is not one of this share.
pub fn combine(
    share: &KeyShare,
    signed: &[(&PreparedOrder, &BTreeMap<Name, OrderShare>)],
) -> Vec<Result<[u8; 64]>> {
    let sums: Vec<_> = signed.iter().map(|(order, parts)| order.add_up(share, parts)).collect();
    let added = sums.iter().zip(signed).filter_map(|(sum, (order, _))| Some((sum.as_ref().ok()?, *order)));
    let items: Vec<_> = added
        .map(|(signature, order)| VerifyItem {
            public_key: share.verifying_key(),
            message: &order.order.message,
            signature,
        })
        .collect();
    let mut verdicts = verify_many(&items).into_iter();
    sums.into_iter()
        .zip(signed)
        .map(|(sum, (order, parts))| {
            let signature = sum?;
            let is_valid = verdicts.next().is_some_and(Verdict::is_valid);
            if is_valid { Ok(signature) } else { Err(order.blame(share, parts)) }
        })
        .collect()
}

/// Bytes as base64 in JSON.
mod base64_text {
    use base64ct::{Base64, Encoding as _};
    use serde::Deserialize as _;

    pub(super) fn serialize<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Base64::encode_string(bytes))
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        Base64::decode_vec(&text).map_err(serde::de::Error::custom)
    }
}
