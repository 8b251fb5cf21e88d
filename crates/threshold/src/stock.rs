//! Signing in one round trip, for nodes that are always there: each keeps nonces ready and tells
//! their commitments in advance.
//!
//! Nobody approves: whoever uses this decides before whether to sign, and has channels on which the
//! other side is known. The nonces are in memory alone, as those of a
//! [`SigningSession`](crate::SigningSession).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bulla_kms::Name;
use frost_ed25519::round1::{self, SigningCommitments, SigningNonces};
use frost_ed25519::round2::{self, SignatureShare};
use frost_ed25519::{CheaterDetection, SigningPackage, aggregate_custom};
use rand_core::{OsRng, RngCore as _};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::stranger;
use crate::message::{SessionId, serde_as_text};
use crate::share::{KeyShare, public_key};

/// The most nonces that a stock keeps. The oldest make room.
pub const MAX_READY_NONCES: usize = 4096;

/// The number of nonces in a stock. Stocks have no numbers in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NonceId(u128);

impl fmt::Display for NonceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for NonceId {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self> {
        let canonical =
            text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u128::from_str_radix(text, 16).ok().filter(|_| canonical);
        let text = "the number of a nonce has 32 lower-case hexadecimal digits";
        number.map(Self).ok_or_else(|| ThresholdError::malformed(text))
    }
}

serde_as_text!(NonceId);

/// What a participant commits to for one signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NonceCommitments(SigningCommitments);

/// Nonces that a participant has ready, as the others know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyNonce {
    /// The number by which the participant finds them.
    pub id: NonceId,
    /// What the participant commits to.
    pub commitments: NonceCommitments,
}

/// The nonces that one participant has ready for one coordinator. They are made, and used once, in
/// one process: nothing writes, reads or copies them. A process that starts again has another
/// stock.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Arc;
///
/// use bulla_threshold::{Nonce, NonceStock, SigningOrder, combine};
/// # use bulla_threshold::{Group, ParticipantKeys, deal, take_dealt};
/// # let keys = ["a", "b", "c"].map(|name| ParticipantKeys::generate(name.parse().unwrap()).unwrap());
/// # let group = Group::new("releases".parse()?, 2, keys.iter().map(ParticipantKeys::card).collect())?;
/// # let proposal = group.propose(&keys[0])?;
/// # let key = bulla_ed25519::SigningKey::from_bytes(&[7; 32]);
/// # let dealt = deal(&keys[0], &proposal, &key)?;
/// # let [a, b, _] = keys.each_ref().map(|one| {
/// #     Arc::new(take_dealt(one, &proposal, &dealt, &keys[0].card()).unwrap())
/// # });
///
/// // Some time before: b tells a the commitments.
/// let mut stock = NonceStock::new(Arc::clone(&b));
/// let ready = stock.prepare(1)[0];
///
/// // a is asked for a signature.
/// let own = Nonce::fresh(&a);
/// let commitments = [
///     (a.holder().clone(), own.commitments()),
///     (b.holder().clone(), ready.commitments),
/// ];
/// let order = SigningOrder::new(&a, b"a message", commitments.into());
/// // b signs what it gets.
/// let from_b = stock.take(ready.id)?.sign(&order)?;
/// assert!(stock.take(ready.id).is_err());
///
/// let parts = BTreeMap::from([
///     (a.holder().clone(), own.sign(&order)?),
///     (b.holder().clone(), from_b),
/// ]);
/// let signature = combine(&a, &order, &parts)?;
/// assert!(a.public_key().verify(b"a message", &signature).is_valid());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NonceStock {
    share: Arc<KeyShare>,
    /// The number of the next nonces.
    next: NonceId,
    nonces: BTreeMap<NonceId, SigningNonces>,
}

impl NonceStock {
    /// An empty stock.
    pub fn new(share: Arc<KeyShare>) -> Self {
        let mut prefix = [0; 8];
        OsRng.fill_bytes(&mut prefix);
        let next = NonceId(u128::from(u64::from_be_bytes(prefix)) << 64);
        Self { share, next, nonces: BTreeMap::new() }
    }

    /// Returns the share whose nonces these are.
    pub fn share(&self) -> &Arc<KeyShare> {
        &self.share
    }

    /// Makes this many nonces, and returns what the others need to know. With more than
    /// [`MAX_READY_NONCES`], the oldest are dropped.
    pub fn prepare(&mut self, count: usize) -> Vec<ReadyNonce> {
        let made = (0..count.min(MAX_READY_NONCES)).map(|_| {
            let id = self.next;
            self.next = NonceId(id.0 + 1);
            let (nonces, commitments) = round1::commit(self.share.key().signing_share(), &mut OsRng);
            self.nonces.insert(id, nonces);
            ReadyNonce { id, commitments: NonceCommitments(commitments) }
        });
        let made = made.collect();
        while self.nonces.len() > MAX_READY_NONCES {
            self.nonces.pop_first();
        }
        made
    }

    /// Takes nonces out of the stock, for good.
    ///
    /// # Errors
    /// [`ErrorCode::NoncesSpent`] if they are not there: they were used, or dropped, or are of
    /// another stock.
    pub fn take(&mut self, id: NonceId) -> Result<Nonce> {
        let nonces = self.nonces.remove(&id).ok_or_else(|| {
            ThresholdError::new(ErrorCode::NoncesSpent, "these nonces were used already, or are too old")
        })?;
        Ok(Nonce { share: Arc::clone(&self.share), nonces })
    }
}

impl fmt::Debug for NonceStock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NonceStock").field("ready", &self.nonces.len()).finish_non_exhaustive()
    }
}

/// Nonces that sign once: signing consumes them.
pub struct Nonce {
    share: Arc<KeyShare>,
    nonces: SigningNonces,
}

impl Nonce {
    /// Makes nonces for the coordinator, who needs none in advance.
    pub fn fresh(share: &Arc<KeyShare>) -> Self {
        let (nonces, _) = round1::commit(share.key().signing_share(), &mut OsRng);
        Self { share: Arc::clone(share), nonces }
    }

    /// Returns what the participant commits to.
    pub fn commitments(&self) -> NonceCommitments {
        NonceCommitments(*self.nonces.commitments())
    }

    /// Signs. The nonces are gone afterwards, whatever happens. The order may leave out the
    /// commitments of these nonces ([`SigningOrder::without`]).
    ///
    /// # Errors
    /// [`ErrorCode::WrongSession`] if the order is for other shares;
    /// [`ErrorCode::InvalidArgument`] if it is not for as many members as sign together, or not for
    /// these nonces.
    pub fn sign(self, order: &SigningOrder) -> Result<OrderShare> {
        let (holder, own) = (self.share.holder(), self.commitments());
        let mut order = order.clone();
        if *order.commitments.entry(holder.clone()).or_insert(own) != own {
            let text = "the order has other commitments than those of these nonces";
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        let package = order.package(&self.share)?;
        round2::sign(&package, &self.nonces, self.share.key())
            .map(OrderShare)
            .map_err(|error| self.share.group().blame(&error, "the order"))
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nonce").finish_non_exhaustive()
    }
}

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

    /// Returns the order without the commitments of one signer, for that signer, who knows them:
    /// reading commitments costs as much as a third of a signature share.
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

    fn package(&self, share: &KeyShare) -> Result<SigningPackage> {
        share.check_shares(share.group_id(), self.shares)?;
        if self.commitments.len() != usize::from(share.group().threshold()) {
            let text =
                format!("{} sign together, and not {}", share.group().threshold(), self.commitments.len());
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        if let Some(name) = self.signers().find(|name| !share.is_member(name)) {
            return Err(stranger(name));
        }
        let all = self.commitments.iter().map(|(name, one)| (name.clone(), one.0));
        Ok(SigningPackage::new(share.group().by_identifier(all)?, &self.message))
    }
}

/// One signer's part of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderShare(SignatureShare);

/// Puts the parts of all signers together. What it returns verifies.
///
/// # Errors
/// [`ErrorCode::Misbehavior`], naming all who sent a wrong part; [`ErrorCode::WrongSession`],
/// [`ErrorCode::InvalidArgument`] if a part is missing or the order is not one of this share.
pub fn combine(
    share: &KeyShare,
    order: &SigningOrder,
    parts: &BTreeMap<Name, OrderShare>,
) -> Result<[u8; 64]> {
    let package = order.package(share)?;
    if !order.signers().eq(parts.keys()) {
        let text = "there is not one part from each signer";
        return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
    }
    let named = parts.iter().map(|(name, part)| (name.clone(), part.0));
    let parts = share.group().by_identifier(named)?;
    let public = share.public();
    let signature = aggregate_custom(&package, &parts, public, CheaterDetection::AllCheaters)
        .map_err(|error| share.group().blame(&error, "the signature shares"))?;
    let signature = signature.serialize().ok().and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
    let verifies = |signature: &[u8; 64]| public_key(public).verify(&order.message, signature).is_valid();
    signature
        .filter(verifies)
        .ok_or_else(|| ThresholdError::new(ErrorCode::Misbehavior, "the signature does not verify"))
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
