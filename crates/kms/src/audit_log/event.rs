//! The recorded events: which actor did what with which key, and with which result.

use std::fmt;

use bulla_blake3::Hash;
use serde::{Deserialize, Serialize};

use super::actor::Actor;
use super::checkpoint::CheckpointSigner;
use crate::approval::ApprovalSummary;
use crate::error::{Code, Result};
use crate::id::KeyRef;
use crate::key_signature::Verdict;
use crate::policy::KeyChange;
use crate::ssh_authority::SshCertificateSummary;
use crate::x509::X509CertificateSummary;

/// An operation, as a word that never changes once released.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuditOperation {
    /// A key was made.
    Create,
    /// A key was imported.
    Import,
    /// A private key was exported, wrapped.
    Export,
    /// A private key was exported as plain text.
    ExportPlaintext,
    /// A key got its next version.
    Rotate,
    /// The machines that have a key together got new shares of it.
    RefreshShares,
    /// A machine's lost share of a key was repaired.
    RepairShares,
    /// Something was signed.
    Sign,
    /// A signature was verified.
    Verify,
    /// A shared key was decapsulated from its ciphertext.
    Decapsulate,
    /// A shared secret was derived with the public key of a peer, whose digest the entry has.
    DeriveSharedSecret,
    /// Something was encrypted.
    Encrypt,
    /// Something was decrypted.
    Decrypt,
    /// A ciphertext was encrypted again with the latest version.
    Rewrap,
    /// A data key was made.
    GenerateDataKey,
    /// A MAC was made.
    Mac,
    /// A MAC was verified.
    VerifyMac,
    /// An attestation of a key was signed.
    Attest,
    /// A key got another label, or none.
    Label,
    /// A key was disabled.
    Disable,
    /// A key was enabled.
    Enable,
    /// A key's minimum version was set.
    MinimumVersion,
    /// The oldest version that signs was set.
    MinimumSigningVersion,
    /// The rotation policy was set.
    RotationPolicy,
    /// Whether the key may be destroyed without a waiting time was set.
    DeletionAllowed,
    /// Backups of one key were allowed.
    AllowBackup,
    /// The certificates of a version were set.
    Certificates,
    /// The certificates of OpenSSH that the key signs were set.
    SshAuthority,
    /// The X.509 certificates that the key signs were set.
    X509Authority,
    /// The rule of approvals was set.
    ApprovalRule,
    /// A use of a key was requested that needs approvals.
    RequestApproval,
    /// A request was approved.
    Approve,
    /// A request was rejected.
    Reject,
    /// A key is used without its approvals, in an emergency.
    OverrideApproval,
    /// A version was revoked.
    Revoke,
    /// A version was destroyed.
    DestroyVersion,
    /// The destruction of a key was scheduled.
    ScheduleDestruction,
    /// A scheduled destruction was canceled.
    CancelDestruction,
    /// A key was destroyed.
    Destroy,
    /// The store was copied.
    Backup,
    /// The store got another secret that opens it.
    Rekey,
    /// The store got another rollback guard, or none.
    Guard,
    /// The log itself was opened after a crash, and an incomplete line was removed.
    Recover,
}

impl AuditOperation {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Create,
        Self::Import,
        Self::Export,
        Self::ExportPlaintext,
        Self::Rotate,
        Self::RefreshShares,
        Self::RepairShares,
        Self::Sign,
        Self::Verify,
        Self::Decapsulate,
        Self::DeriveSharedSecret,
        Self::Encrypt,
        Self::Decrypt,
        Self::Rewrap,
        Self::GenerateDataKey,
        Self::Mac,
        Self::VerifyMac,
        Self::Attest,
        Self::Label,
        Self::Disable,
        Self::Enable,
        Self::MinimumVersion,
        Self::MinimumSigningVersion,
        Self::RotationPolicy,
        Self::DeletionAllowed,
        Self::AllowBackup,
        Self::Certificates,
        Self::SshAuthority,
        Self::X509Authority,
        Self::ApprovalRule,
        Self::RequestApproval,
        Self::Approve,
        Self::Reject,
        Self::OverrideApproval,
        Self::Revoke,
        Self::DestroyVersion,
        Self::ScheduleDestruction,
        Self::CancelDestruction,
        Self::Destroy,
        Self::Backup,
        Self::Rekey,
        Self::Guard,
        Self::Recover,
    ];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Import => "import",
            Self::Export => "export",
            Self::ExportPlaintext => "export_plaintext",
            Self::Rotate => "rotate",
            Self::RefreshShares => "refresh_shares",
            Self::RepairShares => "repair_shares",
            Self::Sign => "sign",
            Self::Verify => "verify",
            Self::Decapsulate => "decapsulate",
            Self::DeriveSharedSecret => "derive_shared_secret",
            Self::Encrypt => "encrypt",
            Self::Decrypt => "decrypt",
            Self::Rewrap => "rewrap",
            Self::GenerateDataKey => "generate_data_key",
            Self::Mac => "mac",
            Self::VerifyMac => "verify_mac",
            Self::Attest => "attest",
            Self::Label => "label",
            Self::Disable => "disable",
            Self::Enable => "enable",
            Self::MinimumVersion => "minimum_version",
            Self::MinimumSigningVersion => "minimum_signing_version",
            Self::RotationPolicy => "rotation_policy",
            Self::DeletionAllowed => "deletion_allowed",
            Self::AllowBackup => "allow_backup",
            Self::Certificates => "certificates",
            Self::SshAuthority => "ssh_authority",
            Self::X509Authority => "certificate_authority",
            Self::ApprovalRule => "approval_rule",
            Self::RequestApproval => "request_approval",
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::OverrideApproval => "override_approval",
            Self::Revoke => "revoke",
            Self::DestroyVersion => "destroy_version",
            Self::ScheduleDestruction => "schedule_destruction",
            Self::CancelDestruction => "restore",
            Self::Destroy => "destroy",
            Self::Backup => "backup",
            Self::Rekey => "reseal",
            Self::Guard => "guard",
            Self::Recover => "recover",
        }
    }
}

impl AuditOperation {
    /// Whether it changes the keystore. Its result is then in the store before its entry is in the
    /// log, so the entry's place is reserved first.
    pub(crate) const fn changes_keystore(self) -> bool {
        match self {
            Self::Create
            | Self::Import
            | Self::Rotate
            | Self::RefreshShares
            | Self::RepairShares
            | Self::Label
            | Self::Disable
            | Self::Enable
            | Self::MinimumVersion
            | Self::MinimumSigningVersion
            | Self::RotationPolicy
            | Self::DeletionAllowed
            | Self::AllowBackup
            | Self::Certificates
            | Self::SshAuthority
            | Self::X509Authority
            | Self::ApprovalRule
            | Self::Revoke
            | Self::DestroyVersion
            | Self::ScheduleDestruction
            | Self::CancelDestruction
            | Self::Destroy
            | Self::Rekey
            | Self::Guard => true,
            Self::Export
            | Self::ExportPlaintext
            | Self::Sign
            | Self::Verify
            | Self::Decapsulate
            | Self::DeriveSharedSecret
            | Self::Encrypt
            | Self::Decrypt
            | Self::Rewrap
            | Self::GenerateDataKey
            | Self::Mac
            | Self::VerifyMac
            | Self::Attest
            | Self::RequestApproval
            | Self::Approve
            | Self::Reject
            | Self::OverrideApproval
            | Self::Backup
            | Self::Recover => false,
        }
    }
}

impl From<&KeyChange> for AuditOperation {
    fn from(change: &KeyChange) -> Self {
        match change {
            KeyChange::Label(_) => Self::Label,
            KeyChange::Disable => Self::Disable,
            KeyChange::Enable => Self::Enable,
            KeyChange::MinimumVersion(_) => Self::MinimumVersion,
            KeyChange::MinimumSigningVersion(_) => Self::MinimumSigningVersion,
            KeyChange::Rotation(_) => Self::RotationPolicy,
            KeyChange::DeletionAllowed(_) => Self::DeletionAllowed,
            KeyChange::AllowBackup => Self::AllowBackup,
            KeyChange::Certificates { .. } => Self::Certificates,
            KeyChange::SshAuthority(_) => Self::SshAuthority,
            KeyChange::X509Authority(_) => Self::X509Authority,
            KeyChange::Approval(_) => Self::ApprovalRule,
            KeyChange::Revoke(_) => Self::Revoke,
            KeyChange::DestroyVersion(_) => Self::DestroyVersion,
            KeyChange::ScheduleDestruction(_) => Self::ScheduleDestruction,
            KeyChange::CancelDestruction => Self::CancelDestruction,
            KeyChange::Destroy => Self::Destroy,
        }
    }
}

impl fmt::Display for AuditOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How an operation ended.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// A verification: its verdict.
    Verdict(Verdict),
    /// It was refused or failed, with this error code.
    Failed(Code),
}

impl Outcome {
    /// As a word: `ok`, the verdict, or the error's code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Verdict(Verdict::Valid) => "valid",
            Self::Verdict(Verdict::Invalid) => "invalid",
            Self::Verdict(Verdict::Unusable) => "unusable",
            Self::Failed(code) => code.as_str(),
        }
    }
}

/// What a log says of a certificate that was signed, or should have been.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CertificateSummary {
    /// One of OpenSSH.
    Ssh(SshCertificateSummary),
    /// One of X.509.
    X509(X509CertificateSummary),
}

impl CertificateSummary {
    /// What is recorded of a message, if it is a certificate before its signature.
    pub(crate) fn of(message: &[u8]) -> Option<Self> {
        let ssh = SshCertificateSummary::of(message).map(Self::Ssh);
        ssh.or_else(|| X509CertificateSummary::of(message).map(Self::X509))
    }
}

/// One operation on a keystore.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct AuditEvent<'a> {
    /// The actor on whose behalf it was done.
    pub actor: Actor,
    /// The operation.
    pub operation: AuditOperation,
    /// The key, or key version, that was used.
    pub key: Option<KeyRef<'a>>,
    /// How it ended.
    pub outcome: Outcome,
    /// The BLAKE3 digest of the message that was signed or verified, or of the ciphertext that was
    /// made or decrypted. There is none of a plaintext, or of a message with a MAC.
    pub digest: Option<Hash>,
    /// The certificate that was signed, if the message was one.
    pub certificate: Option<Box<CertificateSummary>>,
    /// The request for approval that this was a step of, or that the use of the key had.
    pub approval: Option<Box<ApprovalSummary>>,
}

impl AuditEvent<'_> {
    /// An event that is about no key and no message.
    pub(super) fn without_key(actor: Actor, operation: AuditOperation, outcome: Outcome) -> Self {
        Self { actor, operation, key: None, outcome, digest: None, certificate: None, approval: None }
    }
}

/// The receiver of a keystore's reports on its operations:
/// [`KeystoreOptions::audit`](crate::KeystoreOptions::audit).
pub trait AuditSink: fmt::Debug + Send + Sync {
    /// Whether the sink wants events of this operation. The keystore asks before each operation, so
    /// that unwanted events cost nothing.
    fn wants(&self, operation: AuditOperation) -> bool;

    /// Called before a change of the keystore: makes room for its event, so that
    /// [`AuditSink::record`] does not fail for want of space. After an error the change is not
    /// made. [`AuditSink::release`] follows when the change was recorded, or was not made.
    ///
    /// # Errors
    /// Errors of writing.
    fn reserve(&self) -> Result<()> {
        Ok(())
    }

    /// Ends what one successful call of [`AuditSink::reserve`] began.
    fn release(&self) {}

    /// Records events. If this returns an error, the operations return an error too, and their
    /// results (such as signatures) are withheld: no result leaves the keystore unrecorded. A
    /// change to a key that was already written is not undone: its caller gets
    /// [`Code::OutcomeUnknown`], and the sink records it as soon as it can.
    ///
    /// # Errors
    /// Errors of writing.
    fn record(&self, events: &[AuditEvent<'_>]) -> Result<()>;

    /// Called after events were recorded. `signer` is the keystore, which can sign for the sink. No
    /// lock is held.
    fn recorded(&self, signer: &dyn CheckpointSigner) {
        let _ = signer;
    }

    /// Called when the keystore is dropped, which can sign for the sink for the last time.
    fn closing(&self, signer: &dyn CheckpointSigner) {
        let _ = signer;
    }
}
