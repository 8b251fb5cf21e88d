//! Keys that are used only with approvals: requests, statements about them, and the use itself.

use std::sync::Arc;

use super::Keystore;
use super::keys::new_uuid;
use super::lifecycle::{check_enabled, check_statements};
use super::observe::Subject;
use super::signing::check_purpose;
use crate::algorithm::Algorithm;
use crate::approval::{
    ApprovalDecision, ApprovalId, ApprovalRequest, ApprovalRule, ApprovalStatement, ApprovalSubject,
    ApprovalSummary, ApprovedUse, KeyUse, KnownRule, approval_required,
};
use crate::audit_log::{Actor, AuditOperation};
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyRef, KeyVersionId};
use crate::record::KeyRecord;
use crate::signature::Comment;
use crate::time::Timestamp;

/// How many changes of its rule a key's record keeps. A machine that missed more of them does not
/// follow any more.
const MAX_RULE_CHANGES: usize = 32;

impl Keystore {
    /// The rule of approvals of a key; none if it is used without.
    ///
    /// # Errors
    /// [`Code::KeyNotFound`].
    pub fn approval_rule(&self, key_id: &KeyId) -> Result<Option<ApprovalRule>> {
        Ok(self.index.load().key(key_id)?.record.approval.clone())
    }

    /// A request to use a key's latest version, or the version that is named, once for `subject`.
    /// It is recorded with its digest, and kept nowhere: the caller keeps it. It counts for
    /// `seconds`, or for as long as the key's rule says.
    ///
    /// ```
    /// use std::num::{NonZeroU32, NonZeroU64};
    ///
    /// use bulla_kms::approval::{
    ///     ApprovalDecision, ApprovalRule, ApprovalSubject, ApprovedUse, Approver,
    /// };
    /// use bulla_kms::{Algorithm, Code, Keystore, NewKey};
    ///
    /// let new = || Ok::<_, bulla_kms::KmsError>(
    ///     NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519));
    /// let own = Keystore::in_memory()?;
    /// let anns = own.create_key(new()?)?;
    /// let ann = Approver { name: "ann".parse()?, public_key: own.public_key(&anns)? };
    /// let rule = ApprovalRule::new(NonZeroU32::MIN, vec![ann], NonZeroU64::new(3600).unwrap());
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(new()?.approval(rule))?;
    /// let refused = keystore.sign(&key, b"a message").unwrap_err();
    /// assert_eq!(refused.code, Code::ApprovalRequired);
    ///
    /// let digest = bulla_blake3::hash(b"a message");
    /// let subject = ApprovalSubject::Sign { digest, size: 9, name: None };
    /// let request = keystore.request_approval(
    ///     &key, subject, &"bob".parse()?, "release 1.0".parse()?, None)?;
    ///
    /// // Ann looks at the request, and signs.
    /// let decision = ApprovalDecision::Approve;
    /// let statement = own.sign_approval(anns.key_id(), &request, &"ann".parse()?, decision)?;
    ///
    /// keystore.record_decision(&request, &statement)?;
    /// let approved = keystore.with_approval(ApprovedUse::new(request, vec![statement]));
    /// assert!(approved.sign(&key, b"another message").is_err());
    /// approved.sign(&key, b"a message")?;
    /// assert_eq!(keystore.approval_rule(key.key_id())?.unwrap().threshold.get(), 1);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::InvalidArgument`]: the key is used without approvals, or the time is longer than its
    /// rule says, or the new rule is not valid; [`Code::KeyNotFound`], [`Code::UnknownVersion`],
    /// [`Code::KeyDisabled`], [`Code::KeyPendingDestruction`], [`Code::KeyDestroyed`]; errors of
    /// recording.
    pub fn request_approval<'a>(
        &self,
        key: impl Into<KeyRef<'a>>,
        subject: ApprovalSubject,
        requester: &Actor,
        reason: Comment,
        seconds: Option<u64>,
    ) -> Result<ApprovalRequest> {
        let key = key.into();
        let refuse = |message: String| Err(KmsError::new(Code::InvalidArgument, message));
        let index = self.index.load();
        let loaded = index.key(key.key_id())?;
        let Some(rule) = &loaded.record.approval else {
            return refuse(format!("the key {} needs no approvals: use it", key.key_id()));
        };
        check_enabled(&loaded.record)?;
        let version = match key {
            KeyRef::Key(key) => key.version(loaded.record.latest_number()),
            KeyRef::Version(id) => id.clone(),
        };
        loaded.usable(&version)?;
        match &subject {
            ApprovalSubject::ChangeRule { rule } => rule.check()?,
            ApprovalSubject::SignStatement { .. } => check_statements(&loaded.record)?,
            _ => {}
        }
        let max = rule.max_seconds.get();
        let seconds = seconds.unwrap_or(max);
        if seconds == 0 || seconds > max {
            return refuse(format!("approvals of the key {} count for 1 to {max} seconds", key.key_id()));
        }
        let now = Timestamp::now()?;
        let expires = Timestamp::from_unix_millis(now.unix_millis().saturating_add(seconds * 1000))?;
        let id = ApprovalId::new(new_uuid(now)?);
        let times = (now, expires);
        let request = ApprovalRequest::new(id, version, subject, requester.clone(), reason, times);
        let summary = ApprovalSummary { reason: Some(request.reason.clone()), ..ApprovalSummary::of(id) };
        self.record_step(AuditOperation::RequestApproval, &request, summary, Ok(()))?;
        Ok(request)
    }

    /// Signs a statement about a request, with the key of an approver in their own keystore.
    ///
    /// # Errors
    /// [`Code::KeyUsageMismatch`] for a key that is not an Ed25519 key; the errors of
    /// [`Keystore::sign`].
    pub fn sign_approval(
        &self,
        key_id: &KeyId,
        request: &ApprovalRequest,
        approver: &Actor,
        decision: ApprovalDecision,
    ) -> Result<ApprovalStatement> {
        if key_id.algorithm() != Algorithm::Ed25519 {
            let message = format!("approvals are signed by keys of Ed25519, not {}", key_id.algorithm());
            return Err(KmsError::new(Code::KeyUsageMismatch, message));
        }
        let message = request.signed_bytes(decision);
        let signature = self.sign_statement(KeyRef::Key(key_id), KeyUse::Opaque, |_, _| message)?;
        let signature = encoding::base64(&signature.bytes);
        Ok(ApprovalStatement { approver: approver.clone(), decision, signature })
    }

    /// Checks a statement about a request by the key's rule, and records it.
    ///
    /// # Errors
    /// Those of [`ApprovalRule::verify`], which are recorded as well; [`Code::ApprovalRequired`]:
    /// the request has expired; [`Code::KeyNotFound`], [`Code::InvalidArgument`]; errors of
    /// recording.
    pub fn record_decision(&self, request: &ApprovalRequest, statement: &ApprovalStatement) -> Result<()> {
        let operation = match statement.decision {
            ApprovalDecision::Approve => AuditOperation::Approve,
            ApprovalDecision::Reject => AuditOperation::Reject,
        };
        let check = || {
            let rule = self.approval_rule(request.key.key_id())?.ok_or_else(|| {
                let message = format!("the key {} needs no approvals", request.key.key_id());
                KmsError::new(Code::InvalidArgument, message)
            })?;
            if request.expires <= Timestamp::now()? {
                let message = format!("the request {} has expired", request.id);
                return Err(KmsError::new(Code::ApprovalRequired, message));
            }
            rule.verify(request, statement).map(drop)
        };
        let approver = Some(statement.approver.clone());
        let summary = ApprovalSummary { approver, ..ApprovalSummary::of(request.id) };
        self.record_step(operation, request, summary, check())
    }

    /// A handle of the same keystore that makes the approved use of the key, if its rule is met.
    /// The audit log names the request in the entry of the use.
    ///
    /// The same value permits the use again and again: whoever has the requests lets each be used
    /// once.
    #[must_use]
    pub fn with_approval(&self, approved: ApprovedUse) -> Self {
        let mut handle = self.on_behalf_of(&self.actor());
        handle.approved = Some(Arc::new(approved));
        handle
    }

    /// A handle that makes a requested use without approvals. This is recorded before, as
    /// `override_approval`, with the reason.
    ///
    /// ```
    /// use bulla_kms::approval::ApprovalRequest;
    /// use bulla_kms::{Keystore, Signature};
    ///
    /// fn in_an_emergency(keystore: &Keystore, request: &ApprovalRequest) -> bulla_kms::Result<Signature> {
    ///     let handle = keystore.override_approval(request, "the release is on fire".parse()?)?;
    ///     handle.sign(&request.key, b"a message")
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Code::InvalidArgument`] without a reason; errors of recording.
    pub fn override_approval(&self, request: &ApprovalRequest, reason: Comment) -> Result<Self> {
        if reason.as_str().is_empty() {
            let message = "who uses a key without its approvals must say why";
            return Err(KmsError::new(Code::InvalidArgument, message));
        }
        let summary = ApprovalSummary { reason: Some(reason.clone()), ..ApprovalSummary::of(request.id) };
        self.record_step(AuditOperation::OverrideApproval, request, summary, Ok(()))?;
        Ok(self.with_approval(ApprovedUse::overridden(request.clone(), reason)))
    }

    /// A handle of the same approved use that names the time in the statement of a signature file
    /// to those who have the key together: no approver has seen it. It changes nothing for a handle
    /// without an approved use.
    ///
    /// ```
    /// use bulla_kms::approval::ApprovedUse;
    /// use bulla_kms::{Keystore, Timestamp};
    ///
    /// // What another machine was asked for, and has to check.
    /// fn handle(keystore: &Keystore, approved: ApprovedUse, time: Timestamp) -> Keystore {
    ///     keystore.with_approval(approved).with_signed_at(time)
    /// }
    /// ```
    #[must_use]
    pub fn with_signed_at(&self, signed_at: Timestamp) -> Self {
        let mut handle = self.on_behalf_of(&self.actor());
        handle.approved = self.approved.as_ref().map(|approved| Arc::new(approved.with_signed_at(signed_at)));
        handle
    }

    /// Keeps the approvals of this change of a key's rule in its record.
    pub(super) fn note_rule_change(&self, record: &mut KeyRecord) {
        let Some(approved) = self.approved.as_deref() else { return };
        record.rule_changes.push(approved.into());
        let excess = record.rule_changes.len().saturating_sub(MAX_RULE_CHANGES);
        record.rule_changes.drain(..excess);
    }

    /// The rule of a key as this machine sees it now, if it is the one that it knew, or if a chain
    /// of changes leads to it of which each was approved by the rule before. None if the key has no
    /// rule and never had one, as far as this machine knows.
    ///
    /// A store's writer who has its root key can write any record. A machine that remembers the
    /// rules that it saw notices if one was dropped or replaced. It follows no change that was made
    /// without approvals, also not in an emergency.
    ///
    /// ```
    /// use std::num::{NonZeroU32, NonZeroU64};
    ///
    /// use bulla_kms::approval::{ApprovalRule, Approver};
    /// use bulla_kms::{Algorithm, Code, KeyChange, Keystore, NewKey};
    ///
    /// let own = Keystore::in_memory()?;
    /// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
    /// let anns = own.create_key(new.clone())?;
    /// let ann = Approver { name: "ann".parse()?, public_key: own.public_key(&anns)? };
    /// let rule = ApprovalRule::new(NonZeroU32::MIN, vec![ann], NonZeroU64::new(3600).unwrap());
    ///
    /// let keystore = Keystore::in_memory()?;
    /// let key = keystore.create_key(new)?.key_id().clone();
    /// assert_eq!(keystore.follow_rule(&key, None)?, None);
    /// keystore.update(&key, None, &KeyChange::Approval(rule.clone()))?;
    /// let known = keystore.follow_rule(&key, None)?;
    /// assert!(known.as_ref().is_some_and(|known| known.matches(Some(&rule))));
    /// // Nothing has changed since.
    /// assert_eq!(keystore.follow_rule(&key, known.as_ref())?, known);
    /// # Ok::<(), bulla_kms::KmsError>(())
    /// ```
    ///
    /// # Errors
    /// [`Code::Forbidden`]: the rule was dropped or replaced without approvals;
    /// [`Code::KeyNotFound`].
    pub fn follow_rule(&self, key_id: &KeyId, known: Option<&KnownRule>) -> Result<Option<KnownRule>> {
        let index = self.index.load();
        let KeyRecord { approval, rule_changes, .. } = &index.key(key_id)?.record;
        let Some(known) = known else {
            return Ok(approval.as_ref().map(|rule| KnownRule::first(rule, rule_changes)));
        };
        let now = known.after(key_id, rule_changes);
        if now.matches(approval.as_ref()) {
            return Ok(Some(now));
        }
        let message = format!(
            "the rule of approvals of the key {key_id} is not the one that this machine has seen, and no change that enough people have approved leads to it: somebody may have changed the store"
        );
        Err(KmsError::new(Code::Forbidden, message))
    }

    /// Records a step of a request, whose outcome is known.
    fn record_step(
        &self,
        operation: AuditOperation,
        request: &ApprovalRequest,
        summary: ApprovalSummary,
        outcome: Result<()>,
    ) -> Result<()> {
        let digest = request.subject.digest();
        self.observed(Subject::approval(operation, &request.key, &digest, &summary), || outcome)
    }

    /// An error unless this use of a key version needs no approval, or has it.
    pub(super) fn check_approval(
        &self,
        record: &KeyRecord,
        id: &KeyVersionId,
        used: KeyUse<'_>,
    ) -> Result<()> {
        let Some(rule) = &record.approval else { return Ok(()) };
        match (used, &self.approved) {
            (KeyUse::Free, _) => Ok(()),
            (KeyUse::Opaque, _) | (_, None) => Err(approval_required(id, rule, used)),
            (_, Some(approved)) => approved.permit(rule, id, used, Timestamp::now()?),
        }
    }
}

/// An error unless keys like this one can have a rule of approvals.
pub(super) fn check_approvable(key: &KeyId, rule: &ApprovalRule) -> Result<()> {
    use crate::algorithm::KeyUsage;
    use crate::id::JWT_PURPOSE;
    rule.check()?;
    check_purpose(key.into())?;
    let is_opaque = matches!(key.algorithm().usage(), KeyUsage::Authentication | KeyUsage::KeyAgreement);
    if is_opaque || key.purpose().as_str() == JWT_PURPOSE {
        let message = "nobody can approve MACs, shared secrets and JSON Web Tokens one by one: such a key has no approvers";
        return Err(KmsError::new(Code::InvalidArgument, message));
    }
    Ok(())
}
