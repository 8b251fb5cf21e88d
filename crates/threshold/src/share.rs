//! A participant's share of a group's key.

use std::fmt;

use bulla_kms::{Algorithm, Name, PublicKey};
use curve25519_dalek::Scalar;
use frost_ed25519::keys::{KeyPackage, PublicKeyPackage};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::error::{ErrorCode, Result, ThresholdError};
use crate::group::Group;
use crate::message::{Message, MessageContent, SessionId, digest};
use crate::participant::{from_secret_json, secret_json};
use crate::reshare::Terms;

/// A participant's share of a group's key, with what is public of the group. It is secret, and is
/// wiped from memory when it is dropped.
///
/// [`KeyGeneration`](crate::KeyGeneration) makes shares, and so does [`deal`](crate::deal).
pub struct KeyShare {
    proposal: Message,
    id: SessionId,
    group: Group,
    me: Name,
    epoch: u32,
    /// Only shares with the same digest belong together.
    shares: SessionId,
    key: KeyPackage,
    public: PublicKeyPackage,
    verifying_key: [u8; 32],
}

/// As a [`KeyShare`] is kept.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptShare {
    proposal: String,
    me: Name,
    epoch: u32,
    key: KeyPackage,
    public: PublicKeyPackage,
}

impl KeyShare {
    pub(crate) fn new(
        proposal: Message,
        me: Name,
        epoch: u32,
        key: KeyPackage,
        public: PublicKeyPackage,
    ) -> Result<Self> {
        let (id, group) = holders_of(&proposal)?;
        let mine = public.verifying_shares().get(&group.identifier(&me)?);
        let fits = mine == Some(key.verifying_share())
            && key.identifier() == &group.identifier(&me)?
            && key.verifying_key() == public.verifying_key()
            && *key.min_signers() == group.threshold();
        if !fits {
            let text = "the share does not fit what is public of the group";
            return Err(ThresholdError::new(ErrorCode::InvalidArgument, text));
        }
        let shares = public_digest(&public);
        let verifying_key = verifying_key(&public);
        Ok(Self { proposal, id, group, me, epoch, shares, key, public, verifying_key })
    }

    /// Returns the group.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns the group's id: the session in which the key was made. It stays when the holders
    /// change.
    pub fn group_id(&self) -> SessionId {
        self.id
    }

    /// Returns the message that proposed the group, or that opened the last
    /// [`Resharing`](crate::Resharing).
    pub fn proposal(&self) -> &Message {
        &self.proposal
    }

    /// Returns the name of the participant whose share it is.
    pub fn holder(&self) -> &Name {
        &self.me
    }

    /// Returns how often the shares were refreshed.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the names of those who hold a share now: a refresh may leave participants out.
    pub fn members(&self) -> Vec<Name> {
        let identifiers = self.public.verifying_shares().keys();
        identifiers.filter_map(|identifier| self.group.name_of(identifier)).collect()
    }

    /// Returns the group's public key, which verifies its signatures like those of any other key.
    ///
    /// # Panics
    /// Never: the key is a point that is not of small order.
    pub fn public_key(&self) -> PublicKey {
        public_key(&self.public)
    }

    /// Returns the share as bytes, for a file that must be encrypted.
    pub fn to_secret_bytes(&self) -> Zeroizing<Vec<u8>> {
        secret_json(&KeptShare {
            proposal: self.proposal.to_string(),
            me: self.me.clone(),
            epoch: self.epoch,
            key: self.key.clone(),
            public: self.public.clone(),
        })
    }

    /// Reads what [`KeyShare::to_secret_bytes`] wrote.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidArgument`] for anything else.
    pub fn from_secret_bytes(bytes: &[u8]) -> Result<Self> {
        let kept: KeptShare = from_secret_json(bytes, "share of a key")?;
        Self::new(Message::parse(&kept.proposal)?, kept.me, kept.epoch, kept.key, kept.public)
    }

    pub(crate) fn key(&self) -> &KeyPackage {
        &self.key
    }

    pub(crate) fn public(&self) -> &PublicKeyPackage {
        &self.public
    }

    /// The group's public key as bytes.
    pub(crate) fn verifying_key(&self) -> &[u8; 32] {
        &self.verifying_key
    }

    pub(crate) fn secret_scalar(&self) -> Zeroizing<Scalar> {
        secret_scalar(&Zeroizing::new(self.key.signing_share().serialize()))
    }

    /// Returns what tells these shares from those before or after a refresh: only shares with the
    /// same id sign together.
    pub fn shares_id(&self) -> SessionId {
        self.shares
    }

    pub(crate) fn is_member(&self, name: &Name) -> bool {
        self.group.identifier(name).is_ok_and(|one| self.public.verifying_shares().contains_key(&one))
    }

    /// Refuses what was sent for another group, or for shares before or after a refresh.
    pub(crate) fn check_shares(&self, group: SessionId, shares: SessionId) -> Result<()> {
        if group == self.group_id() && shares == self.shares {
            return Ok(());
        }
        let text = match group == self.group_id() {
            true => {
                "the message is for older or newer shares of this key: one of you has refreshed the shares and the other has not"
            }
            false => "the message is for another group",
        };
        Err(ThresholdError::new(ErrorCode::WrongSession, text))
    }
}

impl fmt::Debug for KeyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyShare")
            .field("group", self.group.name())
            .field("holder", &self.me)
            .field("epoch", &self.epoch)
            .field("public_key", &self.public_key())
            .finish_non_exhaustive()
    }
}

/// Who holds the shares of a proposal or of a resharing, and the group's id.
pub(crate) fn holders_of(proposal: &Message) -> Result<(SessionId, Group)> {
    match proposal.content() {
        MessageContent::Reshare { .. } => Terms::of(proposal).map(|terms| (terms.group, terms.to)),
        _ => Group::of(proposal).map(|group| (proposal.digest(), group)),
    }
}

/// Computes the private key from shares. There is seldom a reason: it gives up what a group is for.
///
/// Returns the scalar, which signs like an expanded key of Ed25519; no seed exists.
///
/// # Errors
/// [`ErrorCode::NotEnoughShares`] if the shares are fewer than the group's threshold, or do not
/// belong together.
pub fn reconstruct(shares: &[&KeyShare]) -> Result<Zeroizing<[u8; 32]>> {
    let refused = |text: &str| ThresholdError::new(ErrorCode::NotEnoughShares, text);
    let first = shares.first().ok_or_else(|| refused("there is no share"))?;
    if shares.iter().any(|share| share.shares != first.shares) {
        return Err(refused("the shares are of different keys, or one of them was refreshed"));
    }
    if shares.len() < usize::from(first.group.threshold()) {
        return Err(refused("there are fewer shares than sign together, and they say nothing about the key"));
    }
    let packages: Vec<_> = shares.iter().map(|share| share.key.clone()).collect();
    let key = frost_ed25519::keys::reconstruct(&packages)
        .map_err(|error| refused(&format!("the shares do not give a key: {error}")))?;
    let mut scalar = Zeroizing::new([0; 32]);
    scalar.copy_from_slice(&Zeroizing::new(key.serialize()));
    Ok(scalar)
}

pub(crate) fn public_key(public: &PublicKeyPackage) -> PublicKey {
    PublicKey::from_bytes(Algorithm::Ed25519, &verifying_key(public)).expect("it has the prime order")
}

fn verifying_key(public: &PublicKeyPackage) -> [u8; 32] {
    let bytes = public.verifying_key().serialize().expect("the key is not the neutral element");
    bytes.try_into().expect("an encoded point has 32 bytes")
}

/// A secret scalar of the library, which writes it reduced.
pub(crate) fn secret_scalar(bytes: &Zeroizing<Vec<u8>>) -> Zeroizing<Scalar> {
    let mut copy = Zeroizing::new([0; 32]);
    copy.copy_from_slice(bytes);
    Zeroizing::new(Scalar::from_bytes_mod_order(*copy))
}

/// The digest of what is public: all holders of shares that belong together agree on it.
pub(crate) fn public_digest(public: &PublicKeyPackage) -> SessionId {
    let json = serde_json::to_vec(public).expect("plain structures serialize");
    digest("bulla threshold v1 digest of public shares", &json)
}
