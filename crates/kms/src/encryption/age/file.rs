//! age files with one short secret (C2SP, age-encryption.org/v1): a header with a stanza for each
//! recipient, and one chunk of payload. Only native X25519 recipients are supported.
//!
//! This module exists because the crate `age` brings translations, other tools' file formats and
//! older generations of its ciphers, and a key provider needs none of them. The tests compare it
//! with the program `age`.

use base64ct::{Base64Unpadded, Encoding as _};
use chacha20poly1305::aead::{Aead as _, KeyInit as _};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use hkdf::Hkdf;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::error::Result;
use crate::random;

const VERSION: &str = "age-encryption.org/v1\n";
const STANZA: &str = "-> ";
const X25519: &str = "X25519";
const END: &str = "---";
/// Columns of a full line of a stanza's body; a shorter line ends the body.
const COLUMNS: usize = 64;

const FILE_KEY_LEN: usize = 16;
const TAG_LEN: usize = 16;
const PAYLOAD_NONCE_LEN: usize = 16;

/// The key that a file's stanzas carry.
type FileKey = Zeroizing<[u8; FILE_KEY_LEN]>;

/// Encrypts `secret` to `recipient` as a file. `None` if the recipient is a point of low order, to
/// which nothing can be encrypted.
///
/// # Errors
/// [`Code::RandomUnavailable`](crate::Code::RandomUnavailable).
pub(super) fn encrypt(recipient: &PublicKey, secret: &[u8; 32]) -> Result<Option<Vec<u8>>> {
    let mut file_key = FileKey::default();
    random::fill(&mut *file_key)?;
    let mut ephemeral = Zeroizing::new([0; 32]);
    random::fill(&mut *ephemeral)?;
    let ephemeral = StaticSecret::from(*ephemeral);
    let share = PublicKey::from(&ephemeral);
    let Some(wrapping) = wrapping_key(&ephemeral, recipient, &share, recipient) else { return Ok(None) };
    let body = encrypt_chunk(&wrapping, Nonce::default(), &*file_key);

    let mut header = format!(
        "{VERSION}{STANZA}{X25519} {}\n{}\n{END}",
        Base64Unpadded::encode_string(share.as_bytes()),
        Base64Unpadded::encode_string(&body),
    );
    let mac = header_mac(&file_key, header.as_bytes()).finalize().into_bytes();
    header.push(' ');
    header.push_str(&Base64Unpadded::encode_string(&mac));
    header.push('\n');

    let mut nonce = [0; PAYLOAD_NONCE_LEN];
    random::fill(&mut nonce)?;
    let mut file = header.into_bytes();
    file.extend_from_slice(&nonce);
    file.extend_from_slice(&encrypt_chunk(&payload_key(&file_key, &nonce), last_chunk(), secret));
    Ok(Some(file))
}

/// The 32 bytes in a file, if `identity` is one of its recipients and nothing in it was changed.
pub(super) fn decrypt(identity: &StaticSecret, file: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    let header = Header::parse(file)?;
    let recipient = PublicKey::from(identity);
    let file_key = header.stanzas.iter().find_map(|stanza| stanza.unwrap(identity, &recipient))?;
    header_mac(&file_key, header.authenticated).verify_slice(&header.mac).ok()?;
    let (nonce, encrypted) = header.payload.split_first_chunk::<PAYLOAD_NONCE_LEN>()?;
    let secret = Zeroizing::new(decrypt_chunk(&payload_key(&file_key, nonce), last_chunk(), encrypted)?);
    secret.as_slice().try_into().ok().map(Zeroizing::new)
}

/// What the fuzzer does with the parser: a header that parses covers all of the file before the
/// payload, and what is encrypted comes back.
pub(super) fn fuzz(bytes: &[u8]) {
    if let Some(Header { stanzas: _, authenticated, mac, payload }) = Header::parse(bytes) {
        let mac = Base64Unpadded::encode_string(&mac);
        let again = [authenticated, b" ", mac.as_bytes(), b"\n", payload].concat();
        assert_eq!(again, bytes, "a header has one form");
    }
    // The identity of the seeds.
    let identity = StaticSecret::from([1; 32]);
    let _ = decrypt(&identity, bytes);
    if let Ok(secret) = bytes.try_into() {
        let encrypted = encrypt(&PublicKey::from(&identity), secret).expect("random bytes");
        assert_eq!(
            *decrypt(&identity, &encrypted.expect("a recipient of full order")).expect("it opens"),
            *secret
        );
    }
}

/// A native X25519 stanza: the sender's share, and the file key under the key that both sides
/// derive.
#[derive(Debug, PartialEq, Eq)]
struct Stanza {
    share: [u8; 32],
    body: [u8; FILE_KEY_LEN + TAG_LEN],
}

impl Stanza {
    fn unwrap(&self, identity: &StaticSecret, recipient: &PublicKey) -> Option<FileKey> {
        let share = PublicKey::from(self.share);
        let wrapping = wrapping_key(identity, &share, &share, recipient)?;
        let key = Zeroizing::new(decrypt_chunk(&wrapping, Nonce::default(), &self.body)?);
        key.as_slice().try_into().ok().map(Zeroizing::new)
    }
}

/// The header of a file. Stanzas of unsupported kinds are left out: they are for other recipients.
#[derive(Debug, PartialEq, Eq)]
struct Header<'a> {
    stanzas: Vec<Stanza>,
    /// The header up to and including [`END`].
    authenticated: &'a [u8],
    mac: [u8; 32],
    payload: &'a [u8],
}

impl<'a> Header<'a> {
    /// Parses a header; `None` if it breaks the specification's grammar.
    fn parse(file: &'a [u8]) -> Option<Self> {
        let mut rest = file.strip_prefix(VERSION.as_bytes())?;
        let mut stanzas = Vec::new();
        loop {
            let start = rest;
            let first = line(&mut rest)?;
            if let Some(mac) = first.strip_prefix(END).and_then(|mac| mac.strip_prefix(' ')) {
                let length = file.len() - start.len() + END.len();
                let authenticated = &file[..length];
                return Some(Self { stanzas, authenticated, mac: decode(mac)?, payload: rest });
            }
            let mut arguments = first.strip_prefix(STANZA)?.split(' ');
            let kind = arguments.next().filter(|kind| is_word(kind))?;
            let body = body(&mut rest)?;
            if kind == X25519 {
                let (Some(share), None) = (arguments.next(), arguments.next()) else { return None };
                stanzas.push(Stanza { share: decode(share)?, body: body.as_slice().try_into().ok()? });
            } else if !arguments.all(is_word) {
                return None;
            }
        }
    }
}

/// Whether this is an argument of a stanza: one or more printable ASCII characters without blanks.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Takes one line of text off `rest`, without its end.
fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, after) = rest.split_at(end);
    *rest = &after[1..];
    str::from_utf8(line).ok()
}

/// Takes the body of a stanza off `rest`: full lines, then a shorter one, which may be empty.
fn body(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let line = line(rest)?;
        if line.len() > COLUMNS {
            return None;
        }
        bytes.extend(Base64Unpadded::decode_vec(line).ok()?);
        if line.len() < COLUMNS {
            return Some(bytes);
        }
    }
}

/// Exactly 32 bytes in base64 without padding.
fn decode(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let length = Base64Unpadded::decode(text, &mut bytes).ok()?.len();
    (length == bytes.len()).then_some(bytes)
}

/// The key under which a stanza carries the file key. `None` if the two sides share nothing,
/// because one key is of low order.
fn wrapping_key(
    secret: &StaticSecret,
    theirs: &PublicKey,
    share: &PublicKey,
    recipient: &PublicKey,
) -> Option<Zeroizing<[u8; 32]>> {
    let shared = secret.diffie_hellman(theirs);
    let salt = [share.as_bytes().as_slice(), recipient.as_bytes()].concat();
    shared.was_contributory().then(|| derive(shared.as_bytes(), &salt, b"age-encryption.org/v1/X25519"))
}

fn payload_key(file_key: &FileKey, nonce: &[u8; PAYLOAD_NONCE_LEN]) -> Zeroizing<[u8; 32]> {
    derive(&**file_key, nonce, b"payload")
}

fn header_mac(file_key: &FileKey, header: &[u8]) -> Hmac<Sha256> {
    let key = derive(&**file_key, &[], b"header");
    let mut mac =
        <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&*key).expect("HMAC takes keys of any length");
    mac.update(header);
    mac
}

fn derive(secret: &[u8], salt: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(Some(salt), secret)
        .expand(info, &mut *key)
        .expect("HKDF-SHA-256 gives up to 8,160 bytes");
    key
}

/// The nonce of the payload's only chunk: its number, 0, and the mark of the last.
fn last_chunk() -> Nonce {
    let mut nonce = Nonce::default();
    nonce[11] = 1;
    nonce
}

fn encrypt_chunk(key: &[u8; 32], nonce: Nonce, plaintext: &[u8]) -> Vec<u8> {
    let encrypted = ChaCha20Poly1305::new(key.into()).encrypt(&nonce, plaintext);
    encrypted.expect("the cipher takes messages of up to 256 GiB")
}

fn decrypt_chunk(key: &[u8; 32], nonce: Nonce, encrypted: &[u8]) -> Option<Vec<u8>> {
    ChaCha20Poly1305::new(key.into()).decrypt(&nonce, encrypted).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> StaticSecret {
        StaticSecret::from([byte; 32])
    }

    fn file() -> Vec<u8> {
        encrypt(&PublicKey::from(&key(1)), &[7; 32]).unwrap().unwrap()
    }

    #[test]
    fn a_file_opens_for_its_recipient_alone() {
        assert_eq!(*decrypt(&key(1), &file()).unwrap(), [7; 32]);
        assert!(decrypt(&key(2), &file()).is_none());
    }

    /// What is written and read here alone could share a mistake.
    #[test]
    fn a_file_of_the_program_age_opens() {
        let kept: serde_json::Value = serde_json::from_str(include_str!("../../../fuzz/seeds.json")).unwrap();
        let file = crate::encoding::from_hex(kept["age"][0]["file"].as_str().unwrap()).unwrap();
        assert_eq!(*decrypt(&key(1), &file).unwrap(), [7; 32]);
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_refused() {
        let file = file();
        for place in 0..file.len() {
            for bit in 0..8 {
                let mut changed = file.clone();
                changed[place] ^= 1 << bit;
                assert!(decrypt(&key(1), &changed).is_none(), "bit {bit} of byte {place}");
            }
            assert!(decrypt(&key(1), &file[..place]).is_none(), "cut at {place}");
        }
        assert!(decrypt(&key(1), &[&file, [0].as_slice()].concat()).is_none(), "longer");
    }

    /// `age` writes stanzas of unknown kinds on purpose, so that readers learn to pass over them.
    #[test]
    fn stanzas_for_others_are_passed_over() {
        let text =
            [VERSION, "-> ssh-ed25519 abc def\nAAAA\n-> x\n\n--- ", &"A".repeat(43), "\nrest"].concat();
        let header = Header::parse(text.as_bytes()).unwrap();
        assert_eq!((header.stanzas, header.payload), (vec![], b"rest".as_slice()));
        let full = "A".repeat(64);
        let long = [VERSION, "-> x\n", &full, "\n", &full, "\n\n--- ", &"A".repeat(43), "\n"].concat();
        assert!(Header::parse(long.as_bytes()).is_some(), "a body of full lines ends with an empty one");
    }

    #[test]
    fn other_forms_of_the_header_are_refused() {
        let mac = format!("--- {}\n", "A".repeat(43));
        let share = "A".repeat(43);
        for lines in [
            "-> \n\n",
            "->\n\n",
            "-> x  y\n\n",
            "-> x\u{e9}\n\n",
            "-> x\nAAA=\n",
            "-> x\nAAB\n",
            "-> X25519\nAAAA\n",
            &format!("-> X25519 {share}\nAAAA\n"),
            &format!("-> X25519 {share} {share}\n{share}\n"),
            &format!("-> x\n{}\n\n", "A".repeat(68)),
            "-> x\n",
        ] {
            let text = [VERSION, lines, &mac].concat();
            assert!(Header::parse(text.as_bytes()).is_none(), "{lines:?}");
        }
        for end in ["---\n", "--- AAAA\n", "--- \n", "", &mac[..mac.len() - 1]] {
            assert!(Header::parse([VERSION, end].concat().as_bytes()).is_none(), "{end:?}");
        }
        assert!(Header::parse([VERSION, &mac].concat().as_bytes()).is_some());
    }

    #[test]
    fn nothing_is_encrypted_to_a_point_of_low_order() {
        for u in [0, 1] {
            let mut point = [0; 32];
            point[0] = u;
            assert!(encrypt(&PublicKey::from(point), &[7; 32]).unwrap().is_none());
        }
    }
}
