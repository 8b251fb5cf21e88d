//! Has witnesses cosign a log's checkpoints (C2SP `tlog-witness`).

use std::path::Path;

use super::cosigned::{CosignedCheckpoint, TreeHead, WitnessKey};
use super::log::AuditLog;
use super::signer::CheckpointSigner;
use super::tree::{self, Frontier, Sha256, TreeHash as _};
use super::{files, reading};
use crate::algorithm::Algorithm;
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyRef;

/// How often a checkpoint is made again because the key was rotated meanwhile.
const TRIES: usize = 3;

/// What a witness answers to `add-checkpoint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// The text.
    pub body: String,
}

/// Sends a request to a witness: the body of `POST add-checkpoint`.
pub type WitnessTransport = dyn Fn(&str) -> Result<WitnessAnswer> + Send + Sync;

/// A witness, and what it has of a log.
struct Witness {
    key: WitnessKey,
    ask: Box<WitnessTransport>,
    /// The tree that it has seen. A witness that has seen more says so when it is asked.
    seen: Frontier<Sha256>,
}

/// Witnesses of one log. It remembers what they have seen; a new one asks them.
pub struct Witnesses {
    all: Vec<Witness>,
    required: usize,
    /// The newest tree, so that only new entries are read.
    tree: Frontier<Sha256>,
}

/// What came of asking all witnesses.
#[derive(Clone, Debug)]
pub struct WitnessReport {
    /// The checkpoint with all cosignatures that arrived.
    pub checkpoint: CosignedCheckpoint,
    /// The witnesses that did not cosign, by their names, and why.
    pub failed: Vec<(String, KmsError)>,
    /// Whether enough of them cosigned, so that the checkpoint was stored beside the log.
    pub stored: bool,
}

impl Witnesses {
    /// Witnesses, of which `required` must cosign a checkpoint before it is stored.
    pub fn new(all: Vec<(WitnessKey, Box<WitnessTransport>)>, required: usize) -> Self {
        let all = all.into_iter().map(|(key, ask)| Witness { key, ask, seen: Frontier::default() }).collect();
        Self { all, required, tree: Frontier::default() }
    }

    /// Makes a checkpoint, has all witnesses cosign it, and stores it beside the log if enough of
    /// them did.
    ///
    /// # Errors
    /// Those of [`AuditLog::checkpoint`]; [`Code::InvalidArgument`] for a log in memory and for a
    /// key that is not Ed25519; [`Code::AuditLogCorrupt`]. What a single witness did is in the result.
    pub fn witness<'a>(
        &mut self,
        log: &AuditLog,
        signer: &dyn CheckpointSigner,
        key: impl Into<KeyRef<'a>>,
    ) -> Result<WitnessReport> {
        let in_memory = || KmsError::new(Code::InvalidArgument, "a log in memory has no witnesses");
        let folder = log.folder().ok_or_else(in_memory)?;
        let mut checkpoint = self.sign(&folder, log, signer, key.into())?;
        let request = checkpoint.to_string();
        let mut failed = Vec::new();
        for witness in &mut self.all {
            match witness
                .cosign(&folder, &self.tree, &request)
                .and_then(|answer| checkpoint.add(&answer, &witness.key))
            {
                Ok(()) => witness.seen = self.tree.clone(),
                Err(error) => failed.push((witness.key.name().to_owned(), error)),
            }
        }
        let stored = self.all.len() - failed.len() >= self.required;
        if stored {
            files::set_cosigned(&folder, &checkpoint)?;
        }
        Ok(WitnessReport { checkpoint, failed, stored })
    }

    /// A checkpoint of all entries, signed for witnesses by the key version that signed the log's
    /// own checkpoint.
    fn sign(
        &mut self,
        folder: &Path,
        log: &AuditLog,
        signer: &dyn CheckpointSigner,
        key: KeyRef<'_>,
    ) -> Result<CosignedCheckpoint> {
        for _ in 0..TRIES {
            let sealed = log.checkpoint(signer, key)?;
            let signing = signer.checkpoint_signing_key(key)?;
            let public_key = signing.public_key();
            if public_key.algorithm() != Algorithm::Ed25519 {
                let message =
                    "witnesses take only signatures with Ed25519, and the log's key has another algorithm";
                return Err(KmsError::new(Code::InvalidArgument, message));
            }
            reading::leaf_lines(folder, self.tree.size(), sealed.size, &mut |line| {
                self.tree.push(Sha256::leaf(line));
            })?;
            let head = TreeHead { log: sealed.log, size: sealed.size, root: self.tree.root() };
            let signature = signing.sign_tree_head(&head)?;
            if signature.key == sealed.key {
                return Ok(head.signed(public_key, &signature.bytes));
            }
            // The key was rotated between the two signatures, and the log has an entry about that.
        }
        Err(KmsError::new(Code::Busy, "the log's key is rotated all the time"))
    }
}

impl Witness {
    /// The lines with which the witness answers a signed checkpoint of this tree.
    fn cosign(&mut self, folder: &Path, tree: &Frontier<Sha256>, note: &str) -> Result<String> {
        let error = |code, why: String| KmsError::new(code, format!("the witness {} {why}", self.key.name()));
        let refused = |why: &str| error(Code::Unavailable, why.to_owned());
        let contradicted = |why: String| {
            error(
                Code::AuditLogCorrupt,
                format!("has seen {why}: the log was altered, or there is another log with its number"),
            )
        };
        for _ in 0..TRIES {
            let request = request(folder, &self.seen, tree, note)?;
            let WitnessAnswer { status, body } = (self.ask)(&request)?;
            match status {
                200 => return Ok(body),
                409 => {
                    let size =
                        body.trim_end().parse().map_err(|_| refused("does not say what it has seen"))?;
                    if size > tree.size() {
                        return Err(contradicted(format!(
                            "{size} entries of the log, which has {}",
                            tree.size()
                        )));
                    }
                    self.seen = reading::sha256_tree(folder, size)?;
                }
                422 => return Err(contradicted("other entries".to_owned())),
                404 => return Err(refused("does not know the log")),
                403 => return Err(refused("does not trust the log's key")),
                status => return Err(refused(&format!("answered with the status {status}"))),
            }
        }
        Err(refused("keeps seeing another tree"))
    }
}

/// The body of a request: how many entries the witness has seen, the proof that the log begins with
/// those, and the note.
fn request(folder: &Path, seen: &Frontier<Sha256>, tree: &Frontier<Sha256>, note: &str) -> Result<String> {
    let mut new = Vec::new();
    // The proof from an empty tree is empty.
    if seen.size() > 0 {
        reading::leaf_lines(folder, seen.size(), tree.size(), &mut |line| new.push(Sha256::leaf(line)))?;
    }
    let mut request = format!("old {}\n", seen.size());
    for hash in tree::consistency(seen, &new) {
        request += &encoding::base64(hash.as_bytes());
        request.push('\n');
    }
    Ok(request + "\n" + note)
}

impl std::fmt::Debug for Witnesses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.all.iter().map(|witness| witness.key.name());
        f.debug_list().entries(names).finish()
    }
}
