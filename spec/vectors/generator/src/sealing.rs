//! Envelopes (`spec/keystore.md`), and a private key that is wrapped for a recipient.

use crate::json::{Value, json};
use aes_kw::{KeyInit as _, KwpAes256};
use base64ct::{Base64, Encoding as _};
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use crate::keys::{KEY, SEED, der, signing_key};
use crate::post_quantum::{bytes, x_wing};

pub(crate) fn cases() -> Value {
    let version = format!("{KEY}/v3");
    json!({
        "envelopes": [
            envelope(1, "", b"a root key of 32 bytes, or so it "),
            envelope(2, "", &[7; 48]),
            envelope(3, KEY, b"{\"key\":\"a record\"}"),
            envelope(4, &version, &hex::decode(SEED).expect("hex")),
            envelope(4, &version, b""),
        ],
        "wrapped_key": wrapped(&version),
    })
}

fn envelope(kind: u8, subject: &str, secret: &[u8]) -> Value {
    let (key, nonce) = (bytes("envelope key", 32), bytes(&format!("nonce {kind} {}", secret.len()), 24));
    let length = (subject.len() as u16).to_be_bytes();
    let header = [b"BENV".as_slice(), &[1, kind], &length, subject.as_bytes()].concat();
    let cipher = XChaCha20Poly1305::new_from_slice(&key).expect("32 bytes");
    let payload = Payload { msg: secret, aad: &header };
    let sealed =
        cipher.encrypt(&XNonce::try_from(nonce.as_slice()).expect("24 bytes"), payload).expect("short");
    json!({
        "kind": kind,
        "subject": subject,
        "key": hex::encode(&key),
        "secret": hex::encode(secret),
        "envelope": hex::encode([header, nonce, sealed].concat()),
    })
}

fn wrapped(key: &str) -> Value {
    let (seed, public, ciphertext, shared) = x_wing();
    let private = signing_key();
    let lines = format!(
        "bulla wrapped key v1\nkey: {key}\npublic-key: {}\nrecipient: x-wing {}\nencapsulated: {}\n",
        Base64::encode_string(&private.verifying_key().to_bytes()),
        blake3::hash(&public).to_hex(),
        Base64::encode_string(&ciphertext),
    );
    let wrapping =
        blake3::derive_key("bulla wrapped key v1 wrapping key", &[&shared, lines.as_bytes()].concat());
    let algorithm = der(0x30, &hex::decode("06032b6570").expect("hex"));
    let inner = der(4, &der(4, &private.to_bytes()));
    let document = der(0x30, &[&[2, 1, 0], algorithm.as_slice(), &inner].concat());
    let mut buffer = vec![0; document.len() + 16];
    let wrapped = KwpAes256::new(&wrapping.into()).wrap_key(&document, &mut buffer).expect("a short key");
    json!({
        "recipient_private_key": hex::encode(seed),
        "private_key": hex::encode(private.to_bytes()),
        "pkcs8": hex::encode(&document),
        "wrapping_key": hex::encode(wrapping),
        "text": format!("{lines}wrapped-key: {}\n", Base64::encode_string(wrapped)),
    })
}
