//! What nodes say to each other: one request and one answer, as JSON.

use bulla_kms::approval::{ApprovalRequest, ApprovalStatement, ApprovedUse, Overrides};
use bulla_kms::signature::Comment;
use bulla_kms::{Code, Keystore, KmsError, Result, Timestamp};
use bulla_threshold::{
    Group, Handover, Message, NonceId, OrderShare, ReadyNonce, SessionId, SigningOrder, ThresholdError,
};
use serde::{Deserialize, Serialize};

/// The most orders of a request, and the most nonces that a request asks for.
pub(super) const MAX_ORDERS: usize = 256;

/// The most decisions about a request for approval: as many as a rule has approvers.
const MAX_STATEMENTS: usize = 32;

/// What a node asks another one for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum PeerRequest {
    /// The card by which the node is known in groups.
    Card {},
    /// Messages of a key generation: the node joins it, and goes on with it.
    Generate { messages: Vec<String> },
    /// Nonces of these shares that are ready for this peer.
    Prepare { group: SessionId, shares: SessionId, count: usize },
    /// Parts of signatures, and new nonces in place of the used ones.
    Sign { group: SessionId, orders: Vec<PeerOrder>, refill: usize },
    /// The destruction of the share.
    Destroy { group: SessionId },
    /// What the node has of a key.
    Shares { group: SessionId },
    /// Messages of a change of shares.
    Reshare { messages: Vec<String>, wanted: Answer },
    /// Messages of the repair of the asking node's share.
    Repair { group: SessionId, messages: Vec<String> },
}

/// What a node is to say of a change of shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// It joins, and goes on with it.
    Join,
    /// It withdraws, unless it has confirmed its new share.
    Settle,
}

/// What a node has of a key.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ShareStatus {
    /// None without a share.
    pub(super) shares: Option<SessionId>,
    pub(super) epoch: u32,
    /// The message that says who holds these shares.
    pub(super) proposal: Option<String>,
    /// The messages by which the last change counts.
    pub(super) proof: Vec<String>,
    /// The message that opened a change that is not settled, and this node's confirmation.
    pub(super) next: Vec<String>,
}

impl ShareStatus {
    /// How many sign together with these shares.
    pub(super) fn threshold(&self) -> Result<usize, ThresholdError> {
        let proposal = Message::parse(self.proposal.as_deref().unwrap_or_default())?;
        match Handover::of(&proposal) {
            Ok(change) => Ok(usize::from(change.holders().threshold())),
            Err(_) => Group::of(&proposal).map(|group| usize::from(group.threshold())),
        }
    }
}

/// An order, and the nonces that sign it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerOrder {
    pub(super) nonce: NonceId,
    pub(super) order: SigningOrder,
    /// For a key with a rule of approvals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<Box<PeerApproval>>,
}

/// What permits a use of a key with a rule of approvals. The approvers have signed it, so the node
/// that brings it can change nothing.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerApproval {
    pub(super) request: ApprovalRequest,
    statements: Vec<ApprovalStatement>,
    /// Why the use is made without approvals: then nobody has signed anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    override_reason: Option<Comment>,
    /// The time in the statement of a signature file. Approvers do not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signed_at: Option<Timestamp>,
}

impl From<&ApprovedUse> for PeerApproval {
    fn from(approved: &ApprovedUse) -> Self {
        Self {
            request: approved.request().clone(),
            statements: approved.statements().to_vec(),
            override_reason: approved.override_reason().cloned(),
            signed_at: approved.signed_at(),
        }
    }
}

impl PeerApproval {
    /// A handle that may make the use, if the approvals permit it. A use without approvals is in
    /// the audit log and the log of this node before that.
    ///
    /// # Errors
    /// [`Code::ApprovalRequired`]: the settings of this node permit no use without approvals;
    /// [`Code::InvalidArgument`]: no rule has so many approvers; errors of recording.
    pub(super) fn handle(&self, keystore: &Keystore, overrides: Overrides) -> Result<Keystore> {
        let Self { request, statements, override_reason, signed_at } = self;
        if statements.len() > MAX_STATEMENTS {
            return Err(KmsError::new(Code::InvalidArgument, "there are too many decisions about a request"));
        }
        let handle = match override_reason {
            None => keystore.with_approval(ApprovedUse::new(request.clone(), statements.clone())),
            Some(_) if overrides == Overrides::Forbidden => {
                let message = "its settings let nobody use a key without its approvals: they do not have `service.allow_approval_override`";
                return Err(KmsError::new(Code::ApprovalRequired, message));
            }
            Some(reason) => {
                let handle = keystore.override_approval(request, reason.clone())?;
                let (actor, key) = (keystore.actor(), request.key.key_id());
                tracing::error!(%actor, %key, request = %request.id, %reason, "a key is used WITHOUT its approvals");
                handle
            }
        };
        Ok(match signed_at {
            Some(time) => handle.with_signed_at(*time),
            None => handle,
        })
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum PeerReply {
    Card { card: String },
    Generated { messages: Vec<String>, complete: bool },
    Ready { nonces: Vec<ReadyNonce> },
    Signed { parts: Vec<PeerPart>, nonces: Vec<ReadyNonce> },
    Destroyed {},
    Shares(Box<ShareStatus>),
    Reshared { messages: Vec<String> },
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
    /// It changes or repairs shares itself just now.
    Busy,
    /// Its share is older or newer than those of the request.
    OtherShares,
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

/// Reads a request and an answer of any form. Messages in them are read as a node does it.
pub(crate) fn fuzz(bytes: &[u8]) {
    if let Some(PeerRequest::Reshare { messages, .. } | PeerRequest::Repair { messages, .. }) = read(bytes)
        && let Ok(messages) = super::change::parse_lines(&messages)
    {
        let handover = super::change::handover_of(&messages).and_then(Result::ok);
        assert!(handover.is_none_or(|change| change.messages().next().is_some()));
    }
    if let Some(PeerReply::Shares(status)) = read(bytes) {
        let threshold = status.threshold();
        assert!(threshold.is_err() || threshold.is_ok_and(|threshold| threshold >= 2));
    }
}

/// Reads a value that is written as it was read.
fn read<T: Serialize + serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let text = serde_json::to_string(&value).expect("plain structures serialize");
    let again: T = serde_json::from_str(&text).expect("what is written reads");
    assert_eq!(serde_json::to_string(&again).expect("plain structures serialize"), text);
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// The seeds of the fuzzer.
    fn seeds() -> Vec<String> {
        let seeds: Value = serde_json::from_str(include_str!("../../fuzz/seeds.json")).unwrap();
        let texts = seeds["group"].as_array().unwrap().iter().map(|seed| seed["text"].as_str().unwrap());
        texts.map(ToOwned::to_owned).collect()
    }

    #[test]
    fn the_seeds_of_the_fuzzer_are_requests_and_answers() {
        for seed in seeds() {
            let bytes = seed.as_bytes();
            assert!(read::<PeerRequest>(bytes).is_some() || read::<PeerReply>(bytes).is_some(), "{seed}");
            fuzz(bytes);
        }
        for unknown in [json!({ "card": {}, "more": 1 }), json!({ "shares": {} }), json!("card")] {
            assert!(read::<PeerRequest>(unknown.to_string().as_bytes()).is_none(), "{unknown}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_node_panic(
            seed in 0..seeds().len(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
        ) {
            let mut bytes = seeds()[seed].clone().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if cut {
                bytes.truncate(at);
            }
            fuzz(&bytes);
        }
    }
}
