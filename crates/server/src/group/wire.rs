//! What nodes say to each other: one request and one answer, as JSON.

use bulla_kms::{Code, KmsError};
use bulla_threshold::{NonceId, OrderShare, ReadyNonce, SessionId, SigningOrder};
use serde::{Deserialize, Serialize};

/// The most orders of a request, and the most nonces that a request asks for.
pub(super) const MAX_ORDERS: usize = 256;

/// What a node asks another one for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum PeerRequest {
    /// The card by which the node is known in groups.
    Card {},
    /// Messages of a key generation: the node joins it, and goes on with it.
    Generate { messages: Vec<String> },
    /// Nonces that are ready for this peer.
    Prepare { group: SessionId, count: usize },
    /// Parts of signatures, and new nonces in place of the used ones.
    Sign { group: SessionId, orders: Vec<PeerOrder>, refill: usize },
    /// The destruction of the share.
    Destroy { group: SessionId },
}

/// An order, and the nonces that sign it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerOrder {
    pub(super) nonce: NonceId,
    pub(super) order: SigningOrder,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum PeerReply {
    Card { card: String },
    Generated { messages: Vec<String>, complete: bool },
    Ready { nonces: Vec<ReadyNonce> },
    Signed { parts: Vec<PeerPart>, nonces: Vec<ReadyNonce> },
    Destroyed {},
    Refused(Refusal),
}

/// The answer to one order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PeerPart {
    Part(OrderShare),
    Refused(Refusal),
}

/// Why a node does not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Refusal {
    pub(super) reason: RefusalReason,
    pub(super) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RefusalReason {
    /// The nonces were used, or the node was started again since.
    NoncesSpent,
    /// Its own view of the keystore does not permit it, it is sealed, or it has no share.
    NotPermitted,
    /// The request is not one that an honest node sends.
    Malformed,
}

impl Refusal {
    pub(super) fn new(reason: RefusalReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    pub(super) fn not_permitted(error: &KmsError) -> Self {
        Self::new(RefusalReason::NotPermitted, error.message.clone())
    }
}

/// The error of a caller whose signature needs nodes that are not there.
pub(super) fn unavailable(message: String) -> KmsError {
    KmsError::new(Code::DeviceUnavailable, message)
}
