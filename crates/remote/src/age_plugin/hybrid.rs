//! The stanza `mlkem768x25519` of age (<https://c2sp.org/age>), for a private key elsewhere: it is
//! HPKE (RFC 9180) over X-Wing, and only the decapsulation needs the private key.

use age_core::format::{FILE_KEY_BYTES, FileKey, Stanza};
use age_core::primitives::bech32_encode;
use age_core::secrecy::ExposeSecret as _;
use base64ct::{Base64Unpadded, Encoding as _};
use bech32::Hrp;
use bulla_command::error::{Error, Result};
use bulla_kms::encryption::KeyEncryptionKey;
use bulla_kms::{Algorithm, KeyId, PublicKey};
use chacha20poly1305::aead::{Aead as _, KeyInit as _};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The first argument of a stanza, which age's own recipients have, too.
pub(super) const TAG: &str = "mlkem768x25519";
const INFO: &[u8] = b"age-encryption.org/mlkem768x25519";
/// The length of a public key of X-Wing.
const PUBLIC_KEY_LEN: usize = 1216;
/// The length of a ciphertext of X-Wing.
const CIPHERTEXT_LEN: usize = 1120;
/// A file key and the tag of its encryption.
const BODY_LEN: usize = FILE_KEY_BYTES + 16;

/// What each label begins with: the suite MLKEM768-X25519 (0x647a), HKDF-SHA256 (1),
/// ChaCha20Poly1305 (3).
const SUITE: &[u8] = b"HPKE\x64\x7a\x00\x01\x00\x03";
const VERSION: &[u8] = b"HPKE-v1";
/// A mode without a key of the sender.
const MODE_BASE: u8 = 0;

/// A public key to which files are encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgeRecipient(PublicKey);

impl AgeRecipient {
    /// # Errors
    /// The key is one of another algorithm.
    pub(super) fn new(key: PublicKey) -> Result<Self> {
        if key.algorithm() == Algorithm::XWing {
            return Ok(Self(key));
        }
        let message = format!("age encrypts to keys of x-wing, and this is one of {}", key.algorithm());
        Err(Error::new("key_usage_mismatch", message)
            .hint("create one with `bulla keys create NAME --algorithm x-wing`"))
    }

    /// Reads what the text of a recipient has.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != PUBLIC_KEY_LEN {
            let message = format!("a recipient has {PUBLIC_KEY_LEN} bytes, and this one has {}", bytes.len());
            return Err(
                Error::new("invalid_public_key", message).hint("print it again: `bulla age-plugin KEY`")
            );
        }
        Ok(Self(PublicKey::from_bytes(Algorithm::XWing, bytes)?))
    }

    /// The text for which age starts the plugin.
    pub(super) fn plugin_text(&self) -> String {
        bech32_encode(Hrp::parse_unchecked("age1bulla"), self.0.as_bytes())
    }

    /// The text of the same key that age reads without the plugin, from version 1.3 on.
    pub(super) fn native_text(&self) -> String {
        bech32_encode(Hrp::parse_unchecked("age1pq"), self.0.as_bytes())
    }

    /// Wraps the key of a file.
    pub(super) fn wrap(&self, file_key: &FileKey) -> Result<Stanza> {
        let sent = self.0.encapsulate()?;
        let (cipher, nonce) = hpke_cipher(&sent.shared_key);
        let body = cipher.encrypt(&nonce, file_key.expose_secret().as_slice()).expect("16 bytes are few");
        let args = vec![Base64Unpadded::encode_string(&sent.ciphertext)];
        Ok(Stanza { tag: TAG.to_owned(), args, body })
    }
}

/// The wrapped key of a file.
#[derive(Debug)]
pub(super) struct WrappedFileKey {
    /// A ciphertext of X-Wing.
    pub(super) ciphertext: Vec<u8>,
    body: Vec<u8>,
}

impl WrappedFileKey {
    /// Reads a stanza with the right tag. Its lengths are checked here, before anything is
    /// decrypted: <https://c2sp.org/age#mlkem768x25519-recipient-stanza>.
    pub(super) fn read(stanza: &Stanza) -> Result<Self, &'static str> {
        let [argument] = stanza.args.as_slice() else {
            return Err("a stanza mlkem768x25519 has one argument");
        };
        // Base64 with a second form is refused.
        let ciphertext = Base64Unpadded::decode_vec(argument).unwrap_or_default();
        if ciphertext.len() != CIPHERTEXT_LEN {
            return Err("the argument of a stanza mlkem768x25519 is not a ciphertext of X-Wing in base64");
        }
        if stanza.body.len() != BODY_LEN {
            return Err("the body of a stanza mlkem768x25519 has 32 bytes");
        }
        Ok(Self { ciphertext, body: stanza.body.clone() })
    }

    /// The key of the file, if this shared key is that of the ciphertext.
    pub(super) fn unwrap(&self, shared_key: &KeyEncryptionKey) -> Option<FileKey> {
        let (cipher, nonce) = hpke_cipher(shared_key);
        let plaintext = Zeroizing::new(cipher.decrypt(&nonce, self.body.as_slice()).ok()?);
        FileKey::try_init_with_mut(|key| {
            key.copy_from_slice(plaintext.get(..FILE_KEY_BYTES).ok_or(())?);
            Ok::<_, ()>(())
        })
        .ok()
    }
}

/// The text of an identity. It names the key, and has no secret.
pub(super) fn identity_text(key: &KeyId) -> String {
    bech32_encode(Hrp::parse_unchecked("age-plugin-bulla-"), key.to_string().as_bytes()).to_uppercase()
}

/// Reads what the text of an identity has.
pub(super) fn read_identity(bytes: &[u8]) -> Result<KeyId> {
    let id = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<KeyId>().ok());
    let message = "this is not an identity of bulla: it does not name a key";
    id.ok_or_else(|| Error::new("malformed", message).hint("print it again: `bulla age-plugin KEY`"))
}

/// `KeySchedule` of RFC 9180, section 5.1, for the first message in base mode.
fn hpke_cipher(shared_key: &[u8; 32]) -> (ChaCha20Poly1305, Nonce) {
    let (psk_id_hash, _) = labeled_extract(&[], b"psk_id_hash", &[]);
    let (info_hash, _) = labeled_extract(&[], b"info_hash", INFO);
    let context = [[MODE_BASE].as_slice(), &psk_id_hash, &info_hash].concat();
    let (_, secret) = labeled_extract(shared_key, b"secret", &[]);
    let mut key = Zeroizing::new([0; 32]);
    labeled_expand(&secret, b"key", &context, &mut *key);
    let mut nonce = [0; 12];
    labeled_expand(&secret, b"base_nonce", &context, &mut nonce);
    (ChaCha20Poly1305::new(&Key::from(*key)), Nonce::from(nonce))
}

/// `LabeledExtract` of RFC 9180, section 4.
fn labeled_extract(salt: &[u8], label: &[u8], ikm: &[u8]) -> ([u8; 32], Hkdf<Sha256>) {
    let labeled = Zeroizing::new([VERSION, SUITE, label, ikm].concat());
    let (key, hkdf) = Hkdf::<Sha256>::extract(Some(salt), &labeled);
    (key.into(), hkdf)
}

/// `LabeledExpand` of RFC 9180, section 4.
fn labeled_expand(key: &Hkdf<Sha256>, label: &[u8], info: &[u8], out: &mut [u8]) {
    let length = u16::try_from(out.len()).expect("a key is short").to_be_bytes();
    key.expand_multi_info(&[&length, VERSION, SUITE, label, info], out).expect("a key is short");
}
