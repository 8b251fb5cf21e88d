//! The vectors of Wycheproof, through a keystore: see `tests/wycheproof/README.md`.
#![cfg(feature = "transfer")]

use std::num::NonZeroU32;
use std::path::Path;

use bulla_kms::transfer::{PrivateFormat, PrivateKeyData};
use bulla_kms::{Algorithm, CiphertextParts, Code, EncryptionOptions, Keystore, KmsError, NewKey};
use serde::de::DeserializeOwned;

pub(crate) fn rows<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wycheproof").join(name).with_extension("json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn keystore(algorithm: Algorithm, secret: &[u8]) -> Result<(Keystore, bulla_kms::KeyVersionId), KmsError> {
    let data = PrivateKeyData::read(secret, PrivateFormat::Raw, Some(algorithm), None)?;
    let keystore = Keystore::in_memory()?;
    let new = NewKey::new("local".parse()?, "vectors".parse()?, algorithm);
    let id = keystore.import_key(new, &data)?;
    Ok((keystore, id))
}

#[test]
fn ciphertexts_decrypt_exactly_if_they_are_valid() {
    type Row = (u32, String, String, String, String, String, String, String);
    for (name, expected) in
        [("aes_gcm", [316, 80, 103]), ("chacha20_poly1305", [325, 9, 0]), ("xchacha20_poly1305", [315, 9, 0])]
    {
        let (mut run, mut other_nonces, mut other_keys) = (0, 0, 0);
        for (number, key, nonce, data, text, ciphertext, tag, result) in rows::<Row>(name) {
            let [key, nonce, data, text] = [key, nonce, data, text].map(|hex| bytes(&hex));
            let algorithm = match (name, key.len()) {
                ("aes_gcm", 16) => Algorithm::Aes128Gcm,
                ("aes_gcm", 32) => Algorithm::Aes256Gcm,
                ("chacha20_poly1305", _) => Algorithm::ChaCha20Poly1305,
                ("xchacha20_poly1305", _) => Algorithm::XChaCha20Poly1305,
                // AES-192 is no algorithm of keystores.
                _ => {
                    other_keys += 1;
                    continue;
                }
            };
            let (keystore, id) = keystore(algorithm, &key).unwrap();
            let body = [nonce.clone(), bytes(&ciphertext), bytes(&tag)].concat();
            let length = if algorithm == Algorithm::XChaCha20Poly1305 { 24 } else { 12 };
            let options = EncryptionOptions::default().associated_data(&data);
            let found = CiphertextParts::new(algorithm, NonZeroU32::MIN, &body)
                .and_then(|parts| keystore.decrypt(id.key_id(), &parts.to_bytes(), &options));
            if nonce.len() != length {
                // The format has nonces of one length: what is left or missing is ciphertext.
                assert_eq!(found.unwrap_err().code, Code::InvalidCiphertext, "{name} {number}");
                other_nonces += 1;
                continue;
            }
            run += 1;
            match found {
                Ok(found) => assert_eq!((&**found.bytes, &*result), (&*text, "valid"), "{name} {number}"),
                Err(error) => {
                    assert_eq!(
                        (error.code, &*result),
                        (Code::InvalidCiphertext, "invalid"),
                        "{name} {number}"
                    );
                }
            }
        }
        println!("{name}: {run} run, {other_nonces} of other nonces, {other_keys} of other keys");
        assert_eq!([run + other_nonces + other_keys, other_nonces, other_keys], expected, "{name}");
    }
}

#[test]
fn macs_are_valid_exactly_if_they_are_and_whole() {
    type Row = (u32, String, String, String, String);
    for (name, algorithm, expected) in [
        ("hmac_sha256", Algorithm::HmacSha256, 174),
        ("hmac_sha384", Algorithm::HmacSha384, 174),
        ("hmac_sha512", Algorithm::HmacSha512, 174),
    ] {
        let (mut run, mut cut) = (0, 0);
        for (number, key, message, tag, result) in rows::<Row>(name) {
            let [key, message, tag] = [key, message, tag].map(|hex| bytes(&hex));
            let (keystore, id) = keystore(algorithm, &key).unwrap();
            let is_valid = keystore.verify_mac(&id, &message, &tag).unwrap().is_valid();
            let made = keystore.mac(id.key_id(), &message).unwrap().bytes;
            run += 1;
            if tag.len() < made.len() {
                // A cut MAC is refused, also where it is the start of the right one.
                cut += 1;
                assert_eq!((is_valid, made.starts_with(&tag)), (false, result == "valid"), "{name} {number}");
            } else {
                assert_eq!((is_valid, made == tag), (result == "valid", is_valid), "{name} {number}");
            }
        }
        println!("{name}: {run} run, {cut} of them cut");
        assert_eq!(run, expected, "{name}");
        assert!(cut > 0, "{name}");
    }
}
