//! The audit log: who did what with which key, when, and how it ended; append-only, chained, and
//! sealed by checkpoints.
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
//! use bulla_kms::audit_log::{AuditContext, AuditLog, AuditLogOptions};
//! use bulla_kms::{Algorithm, KeystoreOptions, NewKey};
//!
//! let log = Arc::new(AuditLog::in_memory(AuditLogOptions::default())?);
//! let keystore = KeystoreOptions { audit: Some(log.clone()), ..KeystoreOptions::default() }.in_memory();
//! let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
//! AuditContext::scope(&"alice".parse()?, || keystore.sign(&key, b"a message"))?;
//! log.checkpoint(&keystore, &key)?;
//! let report = log.verify(&|id| keystore.public_key(id).ok(), &[])?;
//! assert_eq!((report.entries, report.sealed, report.problems), (2, 2, vec![]));
//! # Ok::<(), bulla_kms::KmsError>(())
//! ```

mod checkpoint;
mod cosigned;
mod entry;
mod event;
mod files;
mod fuzz;
mod group;
mod log;
mod log_id;
mod note;
mod owed;
mod proof;
mod reading;
mod sealer;
mod signer;
mod state;
mod tree;
mod walk;
mod witnessing;

pub use self::checkpoint::{Checkpoint, UnsignedCheckpoint};
pub use self::cosigned::{CosignedCheckpoint, TreeHead, WitnessKey, verifier_key};
pub use self::entry::{Entry, EventName};
pub use self::event::{Actor, AuditContext, AuditEvent, AuditOperation, AuditSink, Outcome};
pub use self::files::{read_cosigned_checkpoint, read_log_id};
pub(crate) use self::fuzz::fuzz;
pub use self::log::{AuditLog, AuditLogOptions, Durability, Recovered, Verifications};
pub use self::log_id::LogId;
pub use self::proof::{ConsistencyProof, InclusionProof, prove_consistency, prove_inclusion};
pub use self::reading::{CosignedReport, for_each_entry, read_entry_page, verify, verify_cosigned};
pub use self::sealer::CheckpointThread;
pub use self::signer::{CheckpointSigner, CheckpointSigningKey};
pub use self::walk::{FindKey, Problem, ProblemKind, Report};
pub use self::witnessing::{WitnessAnswer, WitnessReport, WitnessTransport, Witnesses};
