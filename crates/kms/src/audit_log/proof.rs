//! Proofs of single entries, and of consistency, for people who do not have the log.

use std::path::Path;

use bulla_blake3::Hash;
use serde::{Deserialize, Serialize};

use super::checkpoint::Checkpoint;
use super::entry::{Digest, Entry, Line, LineContent};
use super::tree::Frontier;
use super::walk::ProblemKind;
use super::{reading, tree};
use crate::error::{Code, KmsError, Result};
use crate::key_signature::Verdict;
use crate::public_key::PublicKey;

/// A proof that an entry is in the log that a checkpoint covers.
///
/// serde gives `{"entry", "path", "checkpoint"}`: the entry's line, the siblings on the path from
/// its leaf to the root in hexadecimal, and the checkpoint's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionProof {
    entry: String,
    path: Vec<Digest>,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
}

impl InclusionProof {
    /// The entry that this proves.
    ///
    /// # Errors
    /// [`Code::MalformedProof`].
    pub fn entry(&self) -> Result<Entry> {
        match Line::parse(&self.entry) {
            Ok(Line { content: LineContent::Entry(entry), .. }) => Ok(entry),
            _ => Err(KmsError::new(Code::MalformedProof, "the proof does not contain an entry of a log")),
        }
    }

    /// Whether this key signed the checkpoint, and the checkpoint's tree contains the entry.
    ///
    /// # Errors
    /// [`Code::MalformedProof`].
    pub fn verify(&self, public_key: &PublicKey) -> Result<Verdict> {
        let number = self.entry()?.number;
        let leaf = tree::leaf(self.entry.as_bytes());
        let Checkpoint { size, root, .. } = &self.checkpoint;
        let included = tree::includes(&leaf, number, *size, &hashes(&self.path), root);
        Ok(if included { self.checkpoint.verify_with(public_key) } else { Verdict::Invalid })
    }
}

/// A proof that the log that a checkpoint covers begins with the log that an older checkpoint
/// covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyProof {
    /// The older checkpoint.
    pub old: Checkpoint,
    /// The newer one.
    pub new: Checkpoint,
    path: Vec<Digest>,
}

impl ConsistencyProof {
    /// Whether both checkpoints belong to one log and verify under the keys, and the newer log
    /// begins with the older one.
    pub fn verify(&self, old_key: &PublicKey, new_key: &PublicKey) -> Verdict {
        let Self { old, new, path } = self;
        let extends = tree::extends((old.size, &old.root), (new.size, &new.root), &hashes(path));
        if extends && old.log == new.log && old.verify_with(old_key).is_valid() {
            new.verify_with(new_key)
        } else {
            Verdict::Invalid
        }
    }
}

fn hashes(path: &[Digest]) -> Vec<Hash> {
    path.iter().map(|digest| digest.0).collect()
}

fn digests(path: Vec<Hash>) -> Vec<Digest> {
    path.into_iter().map(Digest).collect()
}

/// Proves that an entry is in the log that its newest checkpoint covers.
///
/// # Errors
/// [`Code::InvalidArgument`] if no checkpoint covers an entry of that number;
/// [`Code::AuditLogCorrupt`] if the log contradicts the checkpoint; errors of reading.
///
/// ```
/// use std::sync::Arc;
///
/// use bulla_kms::audit_log::{self, AuditLog, AuditLogOptions};
/// use bulla_kms::{Algorithm, KeystoreOptions, NewKey};
///
/// # let folder = std::env::temp_dir().join(format!("bulla-log-{}", std::process::id()));
/// let log = Arc::new(AuditLog::create(&folder, AuditLogOptions::default())?);
/// let keystore = KeystoreOptions::default().audit(log.clone()).in_memory()?;
/// let new = NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519);
/// let key = keystore.create_key(new)?;
/// let old = log.checkpoint(&keystore, &key)?;
/// keystore.sign(&key, b"a message")?;
/// log.checkpoint(&keystore, &key)?;
///
/// let public_key = keystore.public_key(&key)?;
/// let proof = audit_log::prove_inclusion(&folder, 1)?;
/// assert!(proof.verify(&public_key)?.is_valid());
/// assert_eq!(proof.entry()?.number, 1);
///
/// // To a person who kept the older checkpoint:
/// let proof = audit_log::prove_consistency(&folder, &old)?;
/// assert!(proof.verify(&public_key, &public_key).is_valid());
///
/// let page = audit_log::read_entry_page(&folder, 0, 100)?;
/// assert_eq!(page.len(), 2);
/// let mut each = |entry: &audit_log::Entry, line: &str| {
///     println!("{}: {line}", entry.number);
///     Ok(())
/// };
/// assert!(audit_log::for_each_entry(&folder, &mut each)?.problems.is_empty());
/// assert_eq!(audit_log::read_log_id(&folder)?, log.id());
/// # drop(log);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
pub fn prove_inclusion(folder: &Path, number: u64) -> Result<InclusionProof> {
    let Tree { leaves, line, checkpoint } = Tree::read(folder, Some(number))?;
    let (Some(entry), Some(index)) = (line, place(number, &leaves)) else {
        let message = match checkpoint.size {
            0 => "no checkpoint signs any entry yet".to_owned(),
            size => format!(
                "no checkpoint signs entry {number} yet: the last one signs entries 0 to {}",
                size - 1
            ),
        };
        return Err(KmsError::new(Code::InvalidArgument, message));
    };
    let path = digests(tree::inclusion(&leaves, index));
    Ok(InclusionProof { entry, path, checkpoint })
}

fn place(number: u64, leaves: &[Hash]) -> Option<usize> {
    usize::try_from(number).ok().filter(|index| *index < leaves.len())
}

/// Proves that the log that its newest checkpoint covers begins with the log that an older
/// checkpoint covers.
///
/// # Errors
/// [`Code::InvalidArgument`] if the older checkpoint belongs to another log or covers more entries;
/// [`Code::AuditLogCorrupt`] if the log contradicts one of the checkpoints; errors of reading.
pub fn prove_consistency(folder: &Path, old: &Checkpoint) -> Result<ConsistencyProof> {
    let Tree { leaves, checkpoint: new, .. } = Tree::read(folder, None)?;
    if old.log != new.log || old.size > new.size {
        let message = "the checkpoint belongs to another log, or is newer than this log's last checkpoint";
        return Err(KmsError::new(Code::InvalidArgument, message));
    }
    let (before, after) = leaves.split_at(usize::try_from(old.size).unwrap_or(usize::MAX).min(leaves.len()));
    let mut older: Frontier = Frontier::default();
    older.extend(before.to_vec());
    let path = tree::consistency(&older, after);
    if !tree::extends((old.size, &old.root), (new.size, &new.root), &path) {
        let message = "the log was altered: it does not begin with the entries that the checkpoint signs";
        return Err(KmsError::new(Code::AuditLogCorrupt, message));
    }
    Ok(ConsistencyProof { old: old.clone(), new, path: digests(path) })
}

/// The leaves that the newest checkpoint covers.
struct Tree {
    leaves: Vec<Hash>,
    /// The requested entry's line.
    line: Option<String>,
    checkpoint: Checkpoint,
}

impl Tree {
    fn read(folder: &Path, wanted: Option<u64>) -> Result<Self> {
        let (mut leaves, mut line) = (Vec::new(), None);
        let report = reading::for_each_entry(folder, &mut |entry, text| {
            leaves.push(tree::leaf(text.as_bytes()));
            if Some(entry.number) == wanted {
                line = Some(text.to_owned());
            }
            Ok(())
        })?;
        if let Some(problem) = report.problems.iter().find(|problem| problem.kind != ProblemKind::Torn) {
            return Err(KmsError::new(
                Code::AuditLogCorrupt,
                format!(
                    "the log was damaged or edited: {}, line {}: {}",
                    problem.file, problem.line, problem.message
                ),
            ));
        }
        let none = || {
            KmsError::new(
                Code::InvalidArgument,
                "the log has no checkpoint yet; a proof leads to a checkpoint",
            )
        };
        let checkpoint = report.checkpoint.ok_or_else(none)?;
        leaves.truncate(usize::try_from(checkpoint.size).unwrap_or(usize::MAX));
        Ok(Self { leaves, line, checkpoint })
    }
}
