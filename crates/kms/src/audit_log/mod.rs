//! The audit log: which actor did what with which key, when, and how it ended; append-only,
//! chained, and covered by checkpoints.
//!
//! Every line has a hash of all lines before it, every entry is a leaf of a Merkle tree in the
//! shape of RFC 9162, and from time to time a key of the keystore signs the tree's root. So
//! [`verify`] finds any entry that was altered, removed or moved, and an [`InclusionProof`] proves
//! one entry to people who do not have the log. The log never contains secrets or messages, only
//! digests of messages. `spec/audit-log.md` describes the format, and the attacks that it does not
//! detect.
//!
//! ```
//! use std::sync::Arc;
//! use bulla_kms::audit_log::{AuditLog, AuditLogOptions};
//! use bulla_kms::{Algorithm, KeystoreOptions, NewKey};
//!
//! let log = Arc::new(AuditLog::in_memory(AuditLogOptions::default())?);
//! let keystore = KeystoreOptions::default().audit(log.clone()).in_memory()?;
//! let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
//! keystore.on_behalf_of(&"alice".parse()?).sign(&key, b"a message")?;
//! log.checkpoint(&keystore, &key)?;
//! let report = log.verify(&|id| keystore.public_key(id).ok(), &[])?;
//! assert_eq!((report.entries, report.signed_entries, report.problems), (2, 2, vec![]));
//! # Ok::<(), bulla_kms::KmsError>(())
//! ```

mod actor;
mod checkpoint;
mod entry;
mod event;
mod files;
mod log;
mod note;
mod options;
mod proof;
mod reading;
mod tree;
mod walk;
mod witness;
mod writer;

pub use self::actor::Actor;
pub use self::checkpoint::{Checkpoint, CheckpointSigner, CheckpointSigningKey, LogId, UnsignedCheckpoint};
pub use self::entry::{Entry, EventName};
pub use self::event::{AuditEvent, AuditOperation, AuditSink, CertificateSummary, Outcome};
pub use self::files::{read_cosigned_checkpoint, read_log_id};
pub use self::log::{AuditLog, CheckpointThread, Recovered};
pub use self::options::{AuditLogOptions, Durability, Verifications};
pub use self::proof::{ConsistencyProof, InclusionProof, prove_consistency, prove_inclusion};
pub use self::reading::{CosignedReport, for_each_entry, read_entry_page, verify, verify_cosigned};
pub(crate) use self::walk::fuzz;
pub use self::walk::{FindKey, Problem, ProblemKind, Report};
pub use self::witness::{
    CosignedCheckpoint, TreeHead, WitnessAnswer, WitnessKey, WitnessReport, WitnessTransport, Witnesses,
    verifier_key,
};
