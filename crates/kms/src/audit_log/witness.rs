//! Witnesses, which cosign a log's checkpoints (C2SP `tlog-witness`): the checkpoints that they get
//! (`tlog-checkpoint` over the tree of RFC 6962), their cosignatures (`tlog-cosignature`), and the
//! requests.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use bulla_blake3::Hash;

use super::checkpoint::{CheckpointSigner, LogId};
use super::log::AuditLog;
use super::note::{COSIGNATURE, ED25519};
use super::tree::{Frontier, Sha256, TreeHash as _};
use super::{files, note, reading, tree};
use crate::algorithm::Algorithm;
use crate::encoding::serde_as_text;
use crate::error::{Code, KmsError, Result};
use crate::id::KeyRef;
use crate::public_key::PublicKey;
use crate::time::Timestamp;
use crate::{encoding, reserved};

const ORIGIN: &str = match std::str::from_utf8(reserved::WITNESSED) {
    Ok(origin) => origin,
    Err(_) => panic!("the prefix is text"),
};

/// The size and the root of the tree with SHA-256, which a log's key signs for witnesses. Only a
/// log makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeHead {
    pub(super) log: LogId,
    pub(super) size: u64,
    pub(super) root: Hash,
}

/// The name under which witnesses know a log. It is also the name of the log's key for them.
pub(super) fn origin(log: LogId) -> String {
    format!("{ORIGIN}{log}")
}

/// The key with which a log signs, in the form that witnesses take: `NAME+HASH+KEY`.
pub fn verifier_key(log: LogId, key: &PublicKey) -> String {
    note::verifier_key(&origin(log), ED25519, key)
}

impl TreeHead {
    /// The lines that are signed.
    pub fn signed_text(&self) -> String {
        format!("{}\n{}\n{}\n", origin(self.log), self.size, encoding::base64(self.root.as_bytes()))
    }

    /// The note with the log's signature, for a witness.
    pub(super) fn signed(self, key: &PublicKey, signature: &[u8]) -> CosignedCheckpoint {
        let name = origin(self.log);
        let hash = note::key_hash(&name, &[ED25519], key.as_bytes());
        let lines = note::signature_line(&name, hash, signature);
        CosignedCheckpoint { head: self, lines }
    }
}

/// A checkpoint for witnesses with its signatures: the log's, and those of witnesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CosignedCheckpoint {
    pub(super) head: TreeHead,
    /// The lines with signatures, each with its line feed.
    lines: String,
}

impl CosignedCheckpoint {
    /// The log.
    pub fn log(&self) -> LogId {
        self.head.log
    }

    /// How many entries it covers.
    pub fn size(&self) -> u64 {
        self.head.size
    }

    /// Whether the holder of the log's key signed this.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        let (name, text) = (origin(self.head.log), self.head.signed_text());
        let hash = note::key_hash(&name, &[ED25519], key.as_bytes());
        self.signatures(&name, hash).any(|signature| key.verify(text.as_bytes(), &signature).is_valid())
    }

    /// When this witness cosigned, by its own clock; none if it did not.
    pub fn cosigned_by(&self, witness: &WitnessKey) -> Option<Timestamp> {
        let hash = note::key_hash(&witness.name, &[COSIGNATURE], witness.key.as_bytes());
        self.signatures(&witness.name, hash).find_map(|signature| {
            let (seconds, signature) = signature.split_first_chunk()?;
            let seconds = u64::from_be_bytes(*seconds);
            let text = format!("cosignature/v1\ntime {seconds}\n{}", self.head.signed_text());
            let is_valid = witness.key.verify(text.as_bytes(), signature).is_valid();
            is_valid.then(|| Timestamp::from_unix_millis(seconds.checked_mul(1000)?).ok()).flatten()
        })
    }

    fn signatures<'a>(&'a self, name: &'a str, hash: [u8; 4]) -> impl Iterator<Item = Vec<u8>> + 'a {
        let signatures = self.lines.lines().filter_map(note::parse_signature);
        signatures.filter(move |found| (found.0, found.1) == (name, hash)).map(|(_, _, signature)| signature)
    }

    /// Adds the cosignature of a witness from the lines of its answer.
    ///
    /// # Errors
    /// [`Code::MalformedProof`] if it is not among them, or is invalid.
    pub(super) fn add(&mut self, answer: &str, witness: &WitnessKey) -> Result<()> {
        for line in answer.lines() {
            let with = Self { head: self.head.clone(), lines: format!("{line}\n") };
            if with.cosigned_by(witness).is_some() {
                self.lines += &with.lines;
                return Ok(());
            }
        }
        let message = format!("the witness {} answered without a valid cosignature", witness.name);
        Err(KmsError::new(Code::MalformedProof, message))
    }
}

impl fmt::Display for CosignedCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.head.signed_text(), self.lines)
    }
}

impl FromStr for CosignedCheckpoint {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = || KmsError::new(Code::MalformedProof, "not a checkpoint for witnesses");
        let checkpoint = parse(text).ok_or_else(malformed)?;
        if checkpoint.to_string() == text { Ok(checkpoint) } else { Err(malformed()) }
    }
}

fn parse(text: &str) -> Option<CosignedCheckpoint> {
    let (head, lines) = text.split_once("\n\n")?;
    let mut parts = head.split('\n');
    let log = parts.next()?.strip_prefix(ORIGIN)?.parse().ok()?;
    let size = parts.next()?.parse().ok()?;
    let root = <[u8; 32]>::try_from(encoding::from_base64(parts.next()?)?).ok()?.into();
    let is_signed = lines.strip_suffix('\n')?.split('\n').all(|line| note::parse_signature(line).is_some());
    is_signed.then(|| CosignedCheckpoint { head: TreeHead { log, size, root }, lines: lines.to_owned() })
}

/// A witness' public key, as C2SP writes it: `NAME+HASH+KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessKey {
    name: String,
    key: PublicKey,
}

impl WitnessKey {
    /// The witness' name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for WitnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&note::verifier_key(&self.name, COSIGNATURE, &self.key))
    }
}

impl FromStr for WitnessKey {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let (name, key) = note::parse_verifier_key(text, COSIGNATURE)?;
        Ok(Self { name, key })
    }
}

serde_as_text!(CosignedCheckpoint, WitnessKey);

/// How often a checkpoint is made again because the key was rotated meanwhile.
const MAX_TRIES: usize = 3;

/// The answer of a witness to `add-checkpoint`.
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

/// The result of asking all witnesses.
#[non_exhaustive]
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
    /// key that is not Ed25519; [`Code::AuditLogCorrupt`]. What a single witness did is in the
    /// result.
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
        for _ in 0..MAX_TRIES {
            let checkpoint = log.checkpoint(signer, key)?;
            let signing = signer.checkpoint_signing_key(key)?;
            let public_key = signing.public_key();
            if public_key.algorithm() != Algorithm::Ed25519 {
                let message =
                    "witnesses take only signatures with Ed25519, and the log's key has another algorithm";
                return Err(KmsError::new(Code::InvalidArgument, message));
            }
            reading::leaf_lines(folder, self.tree.size(), checkpoint.size, &mut |line| {
                self.tree.push(Sha256::leaf(line));
            })?;
            let head = TreeHead { log: checkpoint.log, size: checkpoint.size, root: self.tree.root() };
            let signature = signing.sign_tree_head(&head)?;
            if signature.key == checkpoint.key {
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
        for _ in 0..MAX_TRIES {
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

impl fmt::Debug for Witnesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.all.iter().map(|witness| witness.key.name());
        f.debug_list().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_witnesses_have_one_form() {
        let keystore = crate::Keystore::in_memory().unwrap();
        let new = crate::NewKey::new("a".parse().unwrap(), "b".parse().unwrap(), Algorithm::Ed25519);
        let key = keystore.public_key(&keystore.create_key(new).unwrap()).unwrap();
        let text = note::verifier_key("witness.example.org", COSIGNATURE, &key);
        let read: WitnessKey = text.parse().unwrap();
        assert_eq!((read.name(), read.to_string()), ("witness.example.org", text.clone()));
        let of_log = note::verifier_key("witness.example.org", ED25519, &key);
        let (_, hash) = text.split_once('+').unwrap();
        for wrong in [
            of_log,
            text.replace("witness", "other"),
            text.replace(".org", ".o rg"),
            format!("+{hash}"),
            text[..text.len() - 1].to_owned(),
            String::new(),
        ] {
            assert_eq!(wrong.parse::<WitnessKey>().unwrap_err().code, Code::InvalidArgument, "{wrong}");
        }
    }
}
