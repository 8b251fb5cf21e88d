//! Checkpoints: the signed size and root of a log's tree, as a signed note of C2SP
//! (`tlog-checkpoint`, `signed-note`), which other programs can read too. A log has a number, and a
//! keystore signs its checkpoints.

use std::fmt;
use std::str::FromStr;

use bulla_blake3::Hash;

use super::note;
use super::note::SIGNATURE;
use super::witness::TreeHead;
use crate::algorithm::Algorithm;
use crate::encoding::serde_as_text;
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, KeyRef, KeyVersionId, Name};
use crate::key_signature::{Signature, Verdict};
use crate::public_key::PublicKey;
use crate::time::Timestamp;
use crate::{encoding, random, reserved};

/// A log's own number: 16 random bytes, as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogId([u8; 16]);

impl LogId {
    pub(super) fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        random::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Where the chain of this log begins.
    pub(super) fn chain(self) -> Hash {
        bulla_blake3::derive_key("bulla audit log v1 first link", &self.0).into()
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for LogId {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let number = u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()));
        number.filter(|id| id.to_string() == text).ok_or_else(|| {
            KmsError::new(Code::InvalidArgument, "a log's number is 32 lower-case hexadecimal digits")
        })
    }
}

serde_as_text!(LogId);

const ORIGIN: &str = match std::str::from_utf8(reserved::CHECKPOINT) {
    Ok(origin) => origin,
    Err(_) => panic!("the prefix is text"),
};

/// The head of a log's tree at one moment, signed by a key of the keystore.
///
/// The text form is a signed note:
///
/// ```text
/// bulla audit log v1/NUMBER OF THE LOG
/// NUMBER OF ENTRIES
/// ROOT OF THE TREE IN BASE64
/// time 2026-01-31T09:30:00.000Z
///
/// — KEY ID BASE64
/// ```
///
/// The last base64 text encodes the first four bytes of the key's hash, followed by the key's
/// signature of the lines before the empty one.
///
/// ```
/// use bulla_kms::audit_log::{AuditLog, AuditLogOptions, Checkpoint};
/// use bulla_kms::{Algorithm, Keystore, NewKey, Verdict};
///
/// let log = AuditLog::in_memory(AuditLogOptions::default())?;
/// let keystore = Keystore::in_memory()?;
/// let key = keystore.create_key(NewKey::new("local".parse()?, "audit".parse()?, Algorithm::Ed25519))?;
/// let text = log.checkpoint(&keystore, &key)?.to_string();
///
/// // Anyone with the text and the public key checks it without the log.
/// let checkpoint: Checkpoint = text.parse()?;
/// assert_eq!(checkpoint.verify_with(&keystore.public_key(&key)?), Verdict::Valid);
/// assert!(text.starts_with(&checkpoint.signed_text()));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log.
    pub log: LogId,
    /// How many entries it had.
    pub size: u64,
    /// The root of their tree.
    pub root: Hash,
    /// When it was signed, by the clock of the machine.
    pub time: Timestamp,
    /// The key version that signed.
    pub key: KeyVersionId,
    key_hash: [u8; 4],
    signature: Vec<u8>,
}

/// A checkpoint before it is signed. Only a log makes one.
pub struct UnsignedCheckpoint {
    pub(super) log: LogId,
    pub(super) size: u64,
    pub(super) root: Hash,
    pub(super) time: Timestamp,
}

impl UnsignedCheckpoint {
    /// The lines that are signed.
    pub fn signed_text(&self) -> String {
        let root = encoding::base64(self.root.as_bytes());
        format!("{ORIGIN}{}\n{}\n{root}\ntime {}\n", self.log, self.size, self.time)
    }

    pub(super) fn signed(self, key: KeyVersionId, public_key: &PublicKey, signature: Vec<u8>) -> Checkpoint {
        let Self { log, size, root, time } = self;
        let key_hash = key_hash(&key, public_key);
        Checkpoint { log, size, root, time, key, key_hash, signature }
    }
}

impl Checkpoint {
    /// The lines that are signed.
    pub fn signed_text(&self) -> String {
        UnsignedCheckpoint { log: self.log, size: self.size, root: self.root, time: self.time }.signed_text()
    }

    /// Whether the holder of the public key signed this.
    pub fn verify_with(&self, public_key: &PublicKey) -> Verdict {
        if self.key_hash != key_hash(&self.key, public_key) {
            return Verdict::Invalid;
        }
        public_key.verify(self.signed_text().as_bytes(), &self.signature)
    }
}

/// The hash of a key in a signed note. Kinds other than Ed25519 are given by name: the
/// specification leaves them to applications.
fn key_hash(key: &KeyVersionId, public_key: &PublicKey) -> [u8; 4] {
    let kind = match public_key.algorithm() {
        Algorithm::Ed25519 => vec![note::ED25519],
        other => [&[0xff], format!("bulla {other}\n").as_bytes()].concat(),
    };
    note::key_hash(&key.to_string(), &kind, public_key.as_bytes())
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signature = encoding::base64(&[&self.key_hash[..], &self.signature].concat());
        writeln!(f, "{}\n{SIGNATURE}{} {signature}", self.signed_text(), self.key)
    }
}

impl FromStr for Checkpoint {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let malformed = || KmsError::new(Code::MalformedProof, "not a checkpoint of an audit log");
        let checkpoint = parse(text).ok_or_else(malformed)?;
        if checkpoint.to_string() == text { Ok(checkpoint) } else { Err(malformed()) }
    }
}

fn parse(text: &str) -> Option<Checkpoint> {
    let mut lines = text.split('\n');
    let log = lines.next()?.strip_prefix(ORIGIN)?.parse().ok()?;
    let size = lines.next()?.parse().ok()?;
    let root = <[u8; 32]>::try_from(encoding::from_base64(lines.next()?)?).ok()?.into();
    let time = lines.next()?.strip_prefix("time ")?.parse().ok()?;
    let (key, signature) = lines.nth(1)?.strip_prefix(SIGNATURE)?.split_once(' ')?;
    let signature = encoding::from_base64(signature)?;
    let (key_hash, signature) = signature.split_first_chunk()?;
    let key: KeyVersionId = key.parse().ok()?;
    if signature.len() != key.key_id().algorithm().output_length() {
        return None;
    }
    Some(Checkpoint { log, size, root, time, key, key_hash: *key_hash, signature: signature.to_vec() })
}

serde_as_text!(Checkpoint);

/// Signs the checkpoints of a log: a [`Keystore`](crate::Keystore) does.
pub trait CheckpointSigner {
    /// The tenant's key with this label.
    ///
    /// # Errors
    /// Errors of reading.
    fn find_key(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>>;

    /// The right to sign one checkpoint with a key's head. Taking it may rotate the key, and the
    /// rotation is recorded. Using it records nothing, so that the log's lock may be held
    /// meanwhile.
    ///
    /// # Errors
    /// The errors of [`Keystore::sign`](crate::Keystore::sign).
    fn checkpoint_signing_key(&self, key: KeyRef<'_>) -> Result<Box<dyn CheckpointSigningKey + '_>>;
}

/// The right to sign one checkpoint: see [`CheckpointSigner::checkpoint_signing_key`].
pub trait CheckpointSigningKey {
    /// The public key that verifies the signature.
    fn public_key(&self) -> &PublicKey;

    /// Signs [`UnsignedCheckpoint::signed_text`].
    ///
    /// # Errors
    /// Errors of the key's backend.
    fn sign_checkpoint(&self, checkpoint: &UnsignedCheckpoint) -> Result<Signature>;

    /// Signs [`TreeHead::signed_text`].
    ///
    /// # Errors
    /// Errors of the key's backend.
    fn sign_tree_head(&self, head: &TreeHead) -> Result<Signature>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest as _, Sha256};

    const KEY: &str = "local/audit/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3";

    /// The key hash that other note libraries compute: SHA-256 of name, line feed, 1 and the key.
    #[test]
    fn the_key_hash_is_that_of_signed_notes() {
        let bytes: Vec<u8> = (0..32).collect();
        let expected = Sha256::digest([KEY.as_bytes(), b"\n\x01", &bytes].concat());
        let keystore = crate::Keystore::in_memory().unwrap();
        let new = crate::NewKey::new("a".parse().unwrap(), "b".parse().unwrap(), Algorithm::Ed25519);
        let id = keystore.create_key(new).unwrap();
        let public_key = keystore.public_key(&id).unwrap();
        let other = Sha256::digest([KEY.as_bytes(), b"\n\x01", public_key.as_bytes()].concat());
        assert_eq!(key_hash(&KEY.parse().unwrap(), &public_key), other[..4]);
        assert_ne!(expected[..4], other[..4]);
    }

    /// Readers of signed notes choose the key by its hash, so a checkpoint with another key's hash
    /// is not valid, either.
    #[test]
    fn a_checkpoint_is_valid_for_the_key_that_signed_it_with_its_hash() {
        let keystore = crate::Keystore::in_memory().unwrap();
        let create = || {
            let new = crate::NewKey::new("a".parse().unwrap(), "b".parse().unwrap(), Algorithm::Ed25519);
            let id = keystore.create_key(new).unwrap();
            (keystore.public_key(&id).unwrap(), id)
        };
        let ((public_key, id), (other, _)) = (create(), create());
        let log = "0f".repeat(16).parse().unwrap();
        let unsigned =
            UnsignedCheckpoint { log, size: 7, root: Hash::from_bytes([2; 32]), time: Timestamp::default() };
        let signer = keystore.checkpoint_signing_key((&id).into()).unwrap();
        let signature = signer.sign_checkpoint(&unsigned).unwrap();
        let checkpoint = unsigned.signed(id, &public_key, signature.bytes);
        assert_eq!(checkpoint.verify_with(&public_key), Verdict::Valid);
        assert_eq!(checkpoint.verify_with(&other), Verdict::Invalid);
        let of_another_key = Checkpoint { key_hash: key_hash(&checkpoint.key, &other), ..checkpoint.clone() };
        assert_eq!(of_another_key.verify_with(&public_key), Verdict::Invalid);
        let of_another_size = Checkpoint { size: 8, ..checkpoint };
        assert_eq!(of_another_size.verify_with(&public_key), Verdict::Invalid);
    }

    #[test]
    fn texts_that_are_no_checkpoints_are_refused() {
        let signature = encoding::base64(&[1; 68]);
        let root = encoding::base64(&[2; 32]);
        let good = format!(
            "bulla audit log v1/{}\n7\n{root}\ntime 2026-01-31T09:30:00.000Z\n\n{SIGNATURE}{KEY} {signature}\n",
            "0f".repeat(16)
        );
        assert_eq!(good.parse::<Checkpoint>().unwrap().to_string(), good);
        for (from, to) in [
            ("v1/", "v2/"),
            ("\n7\n", "\n07\n"),
            ("\n7\n", "\n+7\n"),
            ("\n7\n", "\n\n"),
            ("time ", "at "),
            ("\n\n", "\nextra\n\n"),
            ("\n\n", "\n"),
            (SIGNATURE, "- "),
            ("/v3", ""),
            ("ed25519", "ml-dsa-65"),
            ("=\n", "=\r\n"),
            ("0f", "0F"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            assert!(bad.parse::<Checkpoint>().is_err(), "{bad}");
        }
        assert!(format!("{good}more").parse::<Checkpoint>().is_err());
        assert!(good.trim_end().parse::<Checkpoint>().is_err());
    }
}
