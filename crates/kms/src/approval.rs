//! Keys that are used only after several people have approved it: the rule of such a key, requests
//! for approval, and the signed statements of those who approve.
//!
//! Everything here is pure. [`Keystore::with_approval`](crate::Keystore::with_approval) uses a key,
//! and checks the statements against the rule in the key's own record. That each approved request
//! is used once is up to the program that keeps the requests: a service does so.
//!
//! ```
//! use std::num::{NonZeroU32, NonZeroU64};
//!
//! use bulla_kms::approval::{
//!     ApprovalDecision, ApprovalRule, ApprovalState, ApprovalSubject, ApprovedUse, Approver, KeyUse,
//! };
//! use bulla_kms::{Algorithm, Keystore, NewKey, SignatureFile, Statement};
//!
//! let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
//! let own = Keystore::in_memory()?;
//! let anns = own.create_key(new.clone())?;
//! let ann = Approver { name: "ann".parse()?, public_key: own.public_key(&anns)? };
//! let rule = ApprovalRule::new(NonZeroU32::MIN, vec![ann], NonZeroU64::new(3600).unwrap());
//! let keystore = Keystore::in_memory()?;
//! let key = keystore.create_key(new.approval(rule.clone()))?;
//!
//! let statement = Statement::message(b"release 1.0");
//! let subject = ApprovalSubject::of_statement(&statement, None);
//! assert_eq!(subject.digest(), statement.digest);
//! assert!(subject.covers(KeyUse::Statement(&statement, None)));
//! let why = "release 1.0".parse()?;
//! let request = keystore.request_approval(&key, subject, &"bob".parse()?, why, None)?;
//! assert_eq!(rule.state(&request, &[]), ApprovalState::Waiting);
//!
//! let decision = ApprovalDecision::Approve;
//! println!("{} {} bytes", decision.as_str(), request.signed_bytes(decision).len());
//! let approval = own.sign_approval(anns.key_id(), &request, &"ann".parse()?, decision)?;
//! assert_eq!(rule.verify(&request, &approval)?.name.as_str(), "ann");
//! let approved = ApprovedUse::new(request, vec![approval]);
//! assert_eq!((approved.request().requester.as_str(), approved.statements().len()), ("bob", 1));
//! assert!(approved.override_reason().is_none() && approved.signed_at().is_none());
//! let approved = keystore.with_approval(approved);
//! let file = SignatureFile::sign(&approved, &key, statement)?;
//! assert!(file.verify_in(&keystore)?.is_valid());
//! # Ok::<(), bulla_kms::KmsError>(())
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

use bulla_blake3::Hash;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::algorithm::Algorithm;
use crate::audit_log::Actor;
use crate::encoding::{self, serde_as_text};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyVersionId};
use crate::prehash::Prehash;
use crate::public_key::PublicKey;
use crate::reserved;
use crate::signature::{Comment, SignedName, Statement, StatementKind};
use crate::time::Timestamp;

/// The most approvers of a key.
const MAX_APPROVERS: usize = 32;
/// The longest time within which approvals count: 30 days.
const MAX_SECONDS: u64 = 30 * 86_400;

fn refuse<T>(code: Code, message: impl Into<String>) -> Result<T> {
    Err(KmsError::new(code, message))
}

/// A person whose approval counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approver {
    /// The name by which a service knows the person as a caller: the holder of their tokens, or
    /// their name in the settings.
    pub name: Actor,
    /// The Ed25519 key that signs their approvals. The person has its private key.
    pub public_key: PublicKey,
}

/// The rule of a key that is used only with approvals: so many of these people approve each use.
///
/// ```
/// use std::num::{NonZeroU32, NonZeroU64};
///
/// use bulla_kms::approval::{ApprovalRule, Approver};
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// // The key of an approver, in a keystore of their own.
/// let own = Keystore::in_memory()?;
/// let key = own.create_key(NewKey::new("local".parse()?, "me".parse()?, Algorithm::Ed25519))?;
/// let ann = Approver { name: "ann".parse()?, public_key: own.public_key(&key)? };
/// let rule = ApprovalRule::new(NonZeroU32::MIN, vec![ann], NonZeroU64::new(3600).unwrap());
/// rule.check()?;
/// assert!(!rule.requester_may_approve);
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// How many people must approve.
    pub threshold: NonZeroU32,
    /// The people whose approvals count.
    pub approvers: Vec<Approver>,
    /// Approvals count for so many seconds after the request was made; at most 30 days.
    pub max_seconds: NonZeroU64,
    /// Whether the person who made a request may be one of those who approve it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requester_may_approve: bool,
}

impl ApprovalRule {
    /// A rule by which nobody approves a request of their own.
    pub fn new(threshold: NonZeroU32, approvers: Vec<Approver>, max_seconds: NonZeroU64) -> Self {
        Self { threshold, approvers, max_seconds, requester_may_approve: false }
    }

    /// Whether enough people could approve, and each has one name and one key.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`].
    pub fn check(&self) -> Result<()> {
        let refuse = |why: &str| refuse(Code::InvalidArgument, format!("the rule of approvals: {why}"));
        let count = self.approvers.len();
        if count == 0 || count > MAX_APPROVERS || self.threshold.get() as usize > count {
            return refuse("it names 1 to 32 approvers, and at least as many as must approve");
        }
        let names: BTreeSet<_> = self.approvers.iter().map(|one| one.name.as_str()).collect();
        let keys: BTreeSet<_> = self.approvers.iter().map(|one| one.public_key.as_bytes()).collect();
        if names.len() != count || keys.len() != count {
            return refuse("two approvers have one name or one public key");
        }
        if self.approvers.iter().any(|one| one.public_key.algorithm() != Algorithm::Ed25519) {
            return refuse("the public key of an approver is one of Ed25519");
        }
        if self.max_seconds.get() > MAX_SECONDS {
            return refuse("approvals count for at most 30 days");
        }
        Ok(())
    }

    /// The approver who signed this statement about the request.
    ///
    /// # Errors
    /// [`Code::Forbidden`]: the rule names no such approver, they made the request themselves, or
    /// the signature is not theirs.
    pub fn verify(&self, request: &ApprovalRequest, statement: &ApprovalStatement) -> Result<&Approver> {
        let name = &statement.approver;
        let Some(approver) = self.approvers.iter().find(|one| one.name == *name) else {
            return refuse(Code::Forbidden, format!("{name} is no approver of {}", request.key.key_id()));
        };
        if *name == request.requester && !self.requester_may_approve {
            let message = format!("{name} made the request, and cannot decide about it");
            return refuse(Code::Forbidden, message);
        }
        let signed = request.signed_bytes(statement.decision);
        let signature = encoding::from_base64(&statement.signature).unwrap_or_default();
        if !approver.public_key.verify(&signed, &signature).is_valid() {
            let message = format!("the signature is not one of {name} about this request");
            return refuse(Code::Forbidden, message);
        }
        Ok(approver)
    }

    /// What the statements say together. A statement that does not verify counts for nothing, and
    /// of one approver only the first counts.
    pub fn state(&self, request: &ApprovalRequest, statements: &[ApprovalStatement]) -> ApprovalState {
        let mut decided = BTreeSet::new();
        let (mut approvals, mut rejections) = (0, 0);
        for statement in statements {
            if self.verify(request, statement).is_ok() && decided.insert(statement.approver.as_str()) {
                match statement.decision {
                    ApprovalDecision::Approve => approvals += 1,
                    ApprovalDecision::Reject => rejections += 1,
                }
            }
        }
        let could_decide = |one: &&Approver| self.requester_may_approve || one.name != request.requester;
        let possible = self.approvers.iter().filter(could_decide).count() - rejections;
        match self.threshold.get() as usize {
            threshold if approvals >= threshold => ApprovalState::Approved,
            threshold if possible < threshold => ApprovalState::Rejected,
            _ => ApprovalState::Waiting,
        }
    }
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Too few people have decided.
    Waiting,
    /// Enough people have approved.
    Approved,
    /// So many people have rejected it that too few are left to approve it.
    Rejected,
}

/// The id of a request: a UUID, in lower case with hyphens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ApprovalId(Uuid);

impl ApprovalId {
    pub(crate) fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.hyphenated(), f)
    }
}

impl FromStr for ApprovalId {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        match Uuid::try_parse(text) {
            Ok(uuid) if uuid.hyphenated().to_string() == text => Ok(Self(uuid)),
            _ => refuse(Code::InvalidId, "the id of a request for approval is a UUID in lower case"),
        }
    }
}

serde_as_text!(ApprovalId);

/// What a key is to be used for, once.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case", deny_unknown_fields)]
pub enum ApprovalSubject {
    /// To sign a message.
    Sign {
        /// The BLAKE3 digest of the message.
        #[serde(with = "hex_digest")]
        digest: Hash,
        /// The length of the message in bytes.
        size: u64,
        /// The name of the file that the requester signs. Nobody can check it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<SignedName>,
    },
    /// To sign the statement of a signature file.
    SignStatement {
        /// What it is about.
        kind: StatementKind,
        /// The BLAKE3 digest of the content.
        #[serde(with = "hex_digest")]
        digest: Hash,
        /// The length of the content in bytes.
        size: u64,
        /// The comment, which the signature covers.
        #[serde(default, skip_serializing_if = "is_empty")]
        comment: Comment,
        /// The name of the file, if the signature covers it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<SignedName>,
        /// How the statement is hashed before it is signed: the name of a [`Prehash`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prehash: Option<PrehashName>,
    },
    /// To decrypt or decapsulate a ciphertext.
    Decrypt {
        /// The BLAKE3 digest of the ciphertext.
        #[serde(with = "hex_digest")]
        digest: Hash,
        /// The length of the ciphertext in bytes.
        size: u64,
    },
    /// To give the key another rule.
    ChangeRule {
        /// The new rule.
        rule: ApprovalRule,
    },
}

/// A digest as 64 lower-case hexadecimal digits.
mod hex_digest {
    use super::{Deserialize, Hash, encoding};

    pub(super) fn serialize<S: serde::Serializer>(digest: &Hash, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&digest.to_hex())
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(from)?;
        let malformed = || serde::de::Error::custom("a digest has 64 lower-case hexadecimal digits");
        encoding::digest(&text).ok_or_else(malformed)
    }
}

fn is_empty(comment: &Comment) -> bool {
    comment.as_str().is_empty()
}

/// A [`Prehash`] by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrehashName(pub Prehash);

impl fmt::Display for PrehashName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.as_str())
    }
}

impl FromStr for PrehashName {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        text.parse().map(Self)
    }
}

serde_as_text!(PrehashName);

impl ApprovalSubject {
    /// The digest that the audit log has of it: that of the message, the content or the ciphertext;
    /// of a change, that of the new rule's JSON.
    pub fn digest(&self) -> Hash {
        match self {
            Self::Sign { digest, .. } | Self::SignStatement { digest, .. } | Self::Decrypt { digest, .. } => {
                *digest
            }
            Self::ChangeRule { rule } => {
                bulla_blake3::hash(&serde_json::to_vec(rule).expect("a rule has no values that can fail"))
            }
        }
    }

    /// The subject of signing this statement.
    pub fn of_statement(statement: &Statement, prehash: Option<Prehash>) -> Self {
        Self::SignStatement {
            kind: statement.kind,
            digest: statement.digest,
            size: statement.size,
            comment: statement.comment.clone(),
            name: statement.name.clone(),
            prehash: prehash.map(PrehashName),
        }
    }

    /// Whether this is the subject of a use.
    pub fn covers(&self, used: KeyUse<'_>) -> bool {
        let is = |digest: &Hash, size: u64, bytes: &[u8]| {
            size == bytes.len() as u64 && *digest == bulla_blake3::hash(bytes)
        };
        match (self, used) {
            (Self::Sign { digest, size, .. }, KeyUse::Message(bytes))
            | (Self::Decrypt { digest, size }, KeyUse::Ciphertext(bytes)) => is(digest, *size, bytes),
            (Self::SignStatement { .. }, KeyUse::Statement(statement, prehash)) => {
                *self == Self::of_statement(statement, prehash)
            }
            (Self::ChangeRule { rule }, KeyUse::Rule(new)) => rule == new,
            _ => false,
        }
    }
}

/// A use of a key, as the keystore is about to make it.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub enum KeyUse<'a> {
    /// To sign this message.
    Message(&'a [u8]),
    /// To sign the statement of a signature file.
    Statement(&'a Statement, Option<Prehash>),
    /// To decrypt or decapsulate this ciphertext.
    Ciphertext(&'a [u8]),
    /// To give the key this rule.
    Rule(&'a ApprovalRule),
    /// What nobody can approve, because nobody could see what it is.
    Opaque,
    /// What the rule is not about: encrypting, and what the keystore says of its own keys.
    Free,
}

/// A request for approval. Approvers sign all of it, so a statement about one request never counts
/// for another.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    /// Its id, which no other request has.
    pub id: ApprovalId,
    /// The key version to use.
    pub key: KeyVersionId,
    /// What it is to be used for.
    pub subject: ApprovalSubject,
    /// The name of the person or program that made the request.
    pub requester: Actor,
    /// Why, in the words of the requester.
    pub reason: Comment,
    /// When the request was made.
    pub created: Timestamp,
    /// From this time on, the request is dead.
    pub expires: Timestamp,
}

impl ApprovalRequest {
    pub(crate) fn new(
        id: ApprovalId,
        key: KeyVersionId,
        subject: ApprovalSubject,
        requester: Actor,
        reason: Comment,
        times: (Timestamp, Timestamp),
    ) -> Self {
        Self { id, key, subject, requester, reason, created: times.0, expires: times.1 }
    }

    /// The bytes that an approver signs: `bulla approval`, a zero byte, `v1`, a zero byte,
    /// `approve` or `reject`, a zero byte, and the request as JSON with its fields in the order of
    /// this type, without white space.
    pub fn signed_bytes(&self, decision: ApprovalDecision) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("a request has text keys and no values that can fail");
        [reserved::APPROVAL, b"v1\0", decision.as_str().as_bytes(), b"\0", &json].concat()
    }
}

/// What an approver says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    /// The key may be used for this.
    Approve,
    /// It may not.
    Reject,
}

impl ApprovalDecision {
    /// The word in the signed bytes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
        }
    }
}

/// The signed statement of an approver about a request:
/// [`Keystore::sign_approval`](crate::Keystore::sign_approval) makes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalStatement {
    /// The name of the approver in the rule.
    pub approver: Actor,
    /// What they say.
    pub decision: ApprovalDecision,
    /// The signature of [`ApprovalRequest::signed_bytes`], base64.
    pub signature: String,
}

/// A request with the statements about it, for one use of its key.
#[derive(Clone, Debug)]
pub struct ApprovedUse {
    request: ApprovalRequest,
    proof: Proof,
    signed_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
enum Proof {
    Statements(Vec<ApprovalStatement>),
    Overridden(Comment),
}

impl ApprovedUse {
    /// A request with statements. The keystore checks them when it uses the key.
    pub fn new(request: ApprovalRequest, statements: Vec<ApprovalStatement>) -> Self {
        Self { request, proof: Proof::Statements(statements), signed_at: None }
    }

    pub(crate) fn overridden(request: ApprovalRequest, reason: Comment) -> Self {
        Self { request, proof: Proof::Overridden(reason), signed_at: None }
    }

    /// The request.
    pub fn request(&self) -> &ApprovalRequest {
        &self.request
    }

    /// The statements about it; none if the use is made without approvals.
    pub fn statements(&self) -> &[ApprovalStatement] {
        match &self.proof {
            Proof::Statements(statements) => statements,
            Proof::Overridden(_) => &[],
        }
    }

    /// Why the use is made without approvals; none if it has them.
    pub fn override_reason(&self) -> Option<&Comment> {
        match &self.proof {
            Proof::Statements(_) => None,
            Proof::Overridden(reason) => Some(reason),
        }
    }

    /// The time in the statement of a signature file that is signed; none for other uses. It is all
    /// of the statement that no approver saw.
    pub fn signed_at(&self) -> Option<Timestamp> {
        self.signed_at
    }

    /// The same use, of a statement with this time.
    ///
    /// ```
    /// use bulla_kms::Timestamp;
    /// use bulla_kms::approval::ApprovedUse;
    ///
    /// fn of_now(approved: &ApprovedUse) -> bulla_kms::Result<ApprovedUse> {
    ///     Ok(approved.with_signed_at(Timestamp::now()?))
    /// }
    /// ```
    #[must_use]
    pub fn with_signed_at(&self, signed_at: Timestamp) -> Self {
        Self { signed_at: Some(signed_at), ..self.clone() }
    }

    /// The statement of a signature file that the request is about, and how it is hashed.
    pub(crate) fn statement(&self) -> Option<(Statement, Option<Prehash>)> {
        let ApprovalSubject::SignStatement { kind, digest, size, comment, name, prehash } =
            &self.request.subject
        else {
            return None;
        };
        let statement = Statement::new(*kind, *digest, *size).comment(comment.clone()).name(name.clone());
        Some((statement, prehash.map(|PrehashName(prehash)| prehash)))
    }

    pub(crate) fn id(&self) -> ApprovalId {
        self.request.id
    }

    /// Whether exactly this use of a key version is approved by the rule now.
    pub(crate) fn permit(
        &self,
        rule: &ApprovalRule,
        key: &KeyVersionId,
        used: KeyUse<'_>,
        now: Timestamp,
    ) -> Result<()> {
        let Self { request, proof, signed_at: _ } = self;
        let refuse = |why: &str| {
            let message = format!("the request {} {why}: make another request", request.id);
            refuse(Code::ApprovalRequired, message)
        };
        // A ciphertext belongs to one version by itself, which may be an older one.
        let is_of_key = match used {
            KeyUse::Ciphertext(_) => request.key.key_id() == key.key_id(),
            _ => request.key == *key,
        };
        if !is_of_key || !request.subject.covers(used) {
            return refuse(&format!("is about something else than this use of {key}"));
        }
        let seconds = request.expires.unix_millis().saturating_sub(request.created.unix_millis()) / 1000;
        if request.expires <= now || seconds > rule.max_seconds.get() {
            return refuse("has expired");
        }
        match proof {
            Proof::Overridden(_) => Ok(()),
            Proof::Statements(statements) => match rule.state(request, statements) {
                ApprovalState::Approved => Ok(()),
                ApprovalState::Rejected => refuse("was rejected"),
                ApprovalState::Waiting => {
                    let message = format!(
                        "the request {} needs approvals of {} people, and has fewer: wait until they have approved it",
                        request.id, rule.threshold
                    );
                    self::refuse(Code::ApprovalRequired, message)
                }
            },
        }
    }
}

/// A change of a key's rule, with the approvals that permitted it. A key's record keeps the last
/// ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleChange {
    request: ApprovalRequest,
    statements: Vec<ApprovalStatement>,
}

impl From<&ApprovedUse> for RuleChange {
    fn from(approved: &ApprovedUse) -> Self {
        Self { request: approved.request.clone(), statements: approved.statements().to_vec() }
    }
}

/// The rule of a key, as a machine has seen it. Somebody who can write a store, and has its root
/// key, can write a record without the rule:
/// [`Keystore::follow_rule`](crate::Keystore::follow_rule) tells that from a change that enough
/// people have approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownRule {
    rule: ApprovalRule,
    /// When the request for the last change was made. Older requests change nothing any more.
    changed: Timestamp,
}

impl KnownRule {
    /// A rule that is seen for the first time, in a record with these changes.
    pub(crate) fn first(rule: &ApprovalRule, changes: &[RuleChange]) -> Self {
        let changed = changes.last().map_or_else(Timestamp::default, |change| change.request.created);
        Self { rule: rule.clone(), changed }
    }

    /// Whether this is the rule.
    ///
    /// ```
    /// use bulla_kms::approval::KnownRule;
    /// use bulla_kms::{KeyId, Keystore};
    ///
    /// fn is_unchanged(keystore: &Keystore, key: &KeyId, known: &KnownRule) -> bool {
    ///     keystore.approval_rule(key).is_ok_and(|rule| known.matches(rule.as_ref()))
    /// }
    /// ```
    pub fn matches(&self, rule: Option<&ApprovalRule>) -> bool {
        Some(&self.rule) == rule
    }

    /// The rule to which these changes of a key lead from here.
    pub(crate) fn after(&self, key: &KeyId, changes: &[RuleChange]) -> Self {
        let mut known = self.clone();
        for RuleChange { request, statements } in changes {
            let ApprovalSubject::ChangeRule { rule } = &request.subject else { continue };
            if request.key.key_id() == key
                && request.created > known.changed
                && known.rule.state(request, statements) == ApprovalState::Approved
            {
                known = Self { rule: rule.clone(), changed: request.created };
            }
        }
        known
    }
}

/// Whether a key may be used without its approvals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrides {
    /// In an emergency, with a reason.
    Permitted,
    /// Never.
    Forbidden,
}

/// What an audit log says of a request for approval.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalSummary {
    /// The request.
    pub id: ApprovalId,
    /// Who approved or rejected it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<Actor>,
    /// The reason that the requester gave for the request, or the caller for the override.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Comment>,
}

impl ApprovalSummary {
    pub(crate) fn of(id: ApprovalId) -> Self {
        Self { id, approver: None, reason: None }
    }
}

/// An error that says how a key with this rule is used.
pub(crate) fn approval_required(key: &KeyVersionId, rule: &ApprovalRule, used: KeyUse<'_>) -> KmsError {
    let key = key.key_id();
    let message = match used {
        KeyUse::Opaque => format!(
            "the key {key} is used only with approvals, and nobody can approve this: sign a message or a file, or decrypt, with an approved request"
        ),
        _ => format!(
            "the key {key} is used only when {} of its approvers have approved it: make a request (POST /api/v1/approvals, or `bulla sign` with the service) and repeat this with its id",
            rule.threshold
        ),
    };
    KmsError::new(Code::ApprovalRequired, message)
}
