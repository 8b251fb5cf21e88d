//! Checkpoints for witnesses: C2SP `tlog-checkpoint` over the tree of RFC 6962, and the witnesses'
//! cosignatures (`tlog-cosignature`).

use std::fmt;
use std::str::FromStr;

use bulla_blake3::Hash;

use super::log_id::LogId;
use super::note::{self, COSIGNATURE, ED25519};
use crate::encoding::{self, serde_as_text};
use crate::error::{Code, KmsError, Result};
use crate::public_key::PublicKey;
use crate::reserved;
use crate::time::Timestamp;

const ORIGIN: &str = match std::str::from_utf8(reserved::WITNESSED) {
    Ok(origin) => origin,
    Err(_) => panic!("the prefix is text"),
};

/// What a log's key signs for witnesses: the size and the root of the tree with SHA-256. Only a log
/// makes one.
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

    /// How many entries it seals.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_witnesses_have_one_form() {
        let keystore = crate::Keystore::in_memory();
        let new = crate::NewKey::new("a".parse().unwrap(), "b".parse().unwrap(), crate::Algorithm::Ed25519);
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
