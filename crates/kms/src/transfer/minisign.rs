//! Public keys of minisign (<https://jedisct1.github.io/minisign/>, "Public key format").

use super::public_key::{invalid_public, unsupported};
use crate::algorithm::Algorithm;
use crate::encoding;
use crate::error::Result;
use crate::public_key::PublicKey;

const UNTRUSTED: &str = "untrusted comment: ";
const KEY_ALGORITHM: &[u8; 2] = b"Ed";

/// The context in which a key id is derived from a public key.
const KEY_ID_CONTEXT: &str = "bulla 2026-11-20 minisign key id of an Ed25519 public key";

/// The number by which minisign distinguishes keys, as in its files: little-endian. It proves
/// nothing.
pub type MinisignId = [u8; 8];

/// The number for one of our keys. It is derived from the public key, so it never changes.
pub fn key_id(key: &PublicKey) -> MinisignId {
    let derived = bulla_blake3::derive_key(KEY_ID_CONTEXT, key.as_bytes());
    let mut id = [0; 8];
    id.copy_from_slice(&derived[..8]);
    id
}

/// A public key and the number that came with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinisignKey {
    /// The number.
    pub id: MinisignId,
    /// The key.
    pub key: PublicKey,
}

/// Writes a public key file, with the number of [`key_id`].
pub(super) fn public(key: &PublicKey) -> Result<String> {
    if key.algorithm() != Algorithm::Ed25519 {
        return Err(unsupported("minisign", key.algorithm()));
    }
    let id = key_id(key);
    let line = encoding::base64(&[KEY_ALGORITHM, id.as_slice(), key.as_bytes()].concat());
    Ok(format!("{UNTRUSTED}minisign public key {:016X}\n{line}\n", u64::from_le_bytes(id)))
}

/// Reads a public key file, or only its line of base64.
///
/// ```
/// use bulla_kms::transfer::{PublicFormat, export_public, minisign};
/// use bulla_kms::{Algorithm, Keystore, NewKey};
///
/// let keystore = Keystore::in_memory()?;
/// let key = keystore.create_key(NewKey::new("local".parse()?, "files".parse()?, Algorithm::Ed25519))?;
/// let public_key = keystore.public_key(&key)?;
/// let file = export_public(&public_key, PublicFormat::Minisign)?;
///
/// let read = minisign::parse_public(std::str::from_utf8(&file).unwrap())?;
/// assert_eq!((read.id, read.key), (minisign::key_id(&public_key), public_key));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
///
/// # Errors
/// [`Code::InvalidPublicKey`](crate::Code::InvalidPublicKey).
pub fn parse_public(text: &str) -> Result<MinisignKey> {
    let rest = match text.strip_prefix(UNTRUSTED) {
        Some(rest) => rest.split_once('\n').ok_or_else(|| invalid_public("its second line is missing"))?.1,
        None => text,
    };
    let line = rest.strip_suffix('\n').unwrap_or(rest);
    let bytes = encoding::from_base64(line).filter(|bytes| bytes.len() == 42);
    let bytes = bytes.ok_or_else(|| invalid_public("a minisign key is a line of 56 characters of base64"))?;
    let (head, key) = bytes.split_at(10);
    if head[..2] != *KEY_ALGORITHM {
        return Err(invalid_public("it is of an algorithm that minisign does not have"));
    }
    let mut id = [0; 8];
    id.copy_from_slice(&head[2..]);
    Ok(MinisignKey { id, key: PublicKey::from_bytes(Algorithm::Ed25519, key)? })
}
