//! Ciphertexts (`spec/ciphertext.md`) and message authentication codes, by the crates of RustCrypto
//! and `blake3`.

use crate::json::{Value, json};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use chacha20poly1305::aead::{Aead, KeyInit, Nonce, Payload};
use chacha20poly1305::{ChaCha20Poly1305, XChaCha20Poly1305};
use hkdf::Hkdf;
use hmac::Hmac;
use sha2::{Sha256, Sha384, Sha512};

use crate::post_quantum::bytes;

const MESSAGE: &[u8] = b"a message";

pub(crate) fn cases() -> Value {
    let (mut ciphertexts, mut macs) = (Vec::new(), Vec::new());
    for derivation in ["none", "per_context", "convergent"] {
        ciphertexts.extend(of_cipher::<Aes128Gcm>("aes-128-gcm", derivation, 16, 12));
        ciphertexts.extend(of_cipher::<Aes256Gcm>("aes-256-gcm", derivation, 32, 12));
        ciphertexts.extend(of_cipher::<ChaCha20Poly1305>("chacha20-poly1305", derivation, 32, 12));
        ciphertexts.extend(of_cipher::<XChaCha20Poly1305>("xchacha20-poly1305", derivation, 32, 24));
    }
    for message in [b"".as_slice(), MESSAGE] {
        macs.push(mac::<Hmac<Sha256>>("hmac-sha256", message, 32));
        macs.push(mac::<Hmac<Sha384>>("hmac-sha384", message, 48));
        macs.push(mac::<Hmac<Sha512>>("hmac-sha512", message, 64));
        let key = bytes("blake3", 32);
        let made = blake3::keyed_hash(key.as_slice().try_into().expect("32 bytes"), message);
        macs.push(mac_case("blake3", &key, message, made.as_bytes()));
    }
    json!({ "ciphertexts": ciphertexts, "macs": macs })
}

/// Plaintexts of several lengths and key versions, each with its ciphertext.
fn of_cipher<C: Aead + KeyInit>(algorithm: &str, derivation: &str, key: usize, nonce: usize) -> Vec<Value> {
    let key = bytes(algorithm, key);
    let texts = [(1_u32, b"".as_slice()), (2, b"a plaintext"), (u32::MAX, &[7; 80])];
    let case = |(version, plaintext): (u32, &[u8])| {
        let (context, data): (&[u8], &[u8]) = match derivation {
            "none" => (b"", b"associated data"),
            "per_context" => (b"a context", b"associated data"),
            _ => (b"a context", b""),
        };
        let mut derived = vec![0; key.len() + 32];
        Hkdf::<Sha256>::new(None, &key).expand(context, &mut derived).expect("short");
        let (context_key, nonce_key) = derived.split_at(key.len());
        let used = if derivation == "none" { key.as_slice() } else { context_key };
        let nonce = match derivation {
            "convergent" => hmac::<Hmac<Sha256>>(nonce_key, plaintext)[..nonce].to_vec(),
            _ => bytes(&format!("nonce {algorithm} {version}"), nonce),
        };
        let cipher = C::new_from_slice(used).expect("a key");
        let payload = Payload { msg: plaintext, aad: data };
        let sealed = cipher.encrypt(<&Nonce<C>>::try_from(nonce.as_slice()).expect("a nonce"), payload);
        let body = [nonce, sealed.expect("short")].concat();
        json!({
            "algorithm": algorithm,
            "derivation": derivation,
            "key": hex::encode(&key),
            "key_version": version,
            "context": hex::encode(context),
            "associated_data": hex::encode(data),
            "plaintext": hex::encode(plaintext),
            "ciphertext": hex::encode([[1].as_slice(), &version.to_be_bytes(), &body].concat()),
        })
    };
    texts.into_iter().map(case).collect()
}

fn hmac<M: hmac::Mac + KeyInit>(key: &[u8], message: &[u8]) -> Vec<u8> {
    <M as KeyInit>::new_from_slice(key)
        .expect("every length")
        .chain_update(message)
        .finalize()
        .into_bytes()
        .to_vec()
}

fn mac<M: hmac::Mac + KeyInit>(algorithm: &str, message: &[u8], length: usize) -> Value {
    let key = bytes(algorithm, length);
    mac_case(algorithm, &key, message, &hmac::<M>(&key, message))
}

fn mac_case(algorithm: &str, key: &[u8], message: &[u8], mac: &[u8]) -> Value {
    json!({
        "algorithm": algorithm,
        "key": hex::encode(key),
        "message": hex::encode(message),
        "mac": hex::encode(mac),
    })
}
