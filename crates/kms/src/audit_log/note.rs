//! Signed notes of C2SP (`signed-note`): the keys that sign them.

use sha2::{Digest as _, Sha256};

use crate::algorithm::Algorithm;
use crate::encoding;
use crate::error::{Code, KmsError, Result};
use crate::public_key::PublicKey;

/// The beginning of a signature line: an em dash and a space.
pub(super) const SIGNATURE: &str = "\u{2014} ";
/// The kind of an Ed25519 signature of the text.
pub(super) const ED25519: u8 = 0x01;
/// The kind of a witness' Ed25519 cosignature with a time (C2SP `tlog-cosignature`).
pub(super) const COSIGNATURE: u8 = 0x04;

/// The first four bytes of the SHA-256 digest of the key's name, a line feed, the kind of
/// signature, and the public key.
pub(super) fn key_hash(name: &str, kind: &[u8], public_key: &[u8]) -> [u8; 4] {
    let hash = Sha256::new().chain_update(name).chain_update(b"\n").chain_update(kind);
    let hash = hash.chain_update(public_key).finalize();
    [hash[0], hash[1], hash[2], hash[3]]
}

/// A line with a signature.
pub(super) fn signature_line(name: &str, hash: [u8; 4], signature: &[u8]) -> String {
    format!("{SIGNATURE}{name} {}\n", encoding::base64(&[&hash[..], signature].concat()))
}

/// The name, the key's hash, and the signature in a line without its line feed.
pub(super) fn parse_signature(line: &str) -> Option<(&str, [u8; 4], Vec<u8>)> {
    let (name, signature) = line.strip_prefix(SIGNATURE)?.split_once(' ')?;
    let signature = encoding::from_base64(signature)?;
    let (hash, signature) = signature.split_first_chunk()?;
    Some((name, *hash, signature.to_vec()))
}

/// The text of a key that verifies notes: `NAME+HASH+KEY`.
pub(super) fn verifier_key(name: &str, kind: u8, public_key: &PublicKey) -> String {
    let hash = encoding::hex(&key_hash(name, &[kind], public_key.as_bytes()));
    format!("{name}+{hash}+{}", encoding::base64(&[&[kind], public_key.as_bytes()].concat()))
}

/// The name and the Ed25519 key of such a text.
///
/// # Errors
/// [`Code::InvalidArgument`].
pub(super) fn parse_verifier_key(text: &str, kind: u8) -> Result<(String, PublicKey)> {
    let invalid = || {
        KmsError::new(
            Code::InvalidArgument,
            "this is not the key of a witness: write NAME+HASH+KEY, as the witness' operator publishes it",
        )
    };
    // Base64 has plus signs, too.
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(_), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(invalid());
    };
    let key = encoding::from_base64(key).ok_or_else(invalid)?;
    let key = key.strip_prefix(&[kind]).ok_or_else(invalid)?;
    let key = PublicKey::from_bytes(Algorithm::Ed25519, key)?;
    let has_name = !name.is_empty() && !name.chars().any(|char| char.is_whitespace() || char.is_control());
    if has_name && verifier_key(name, kind, &key) == text {
        Ok((name.to_owned(), key))
    } else {
        Err(invalid())
    }
}
