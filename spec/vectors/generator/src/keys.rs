//! Key ids, public keys in other programs' formats, and signatures of digests.

use crate::json::{Value, json};
use base64ct::{Base64, Base64UrlUnpadded, Encoding as _};
use ed25519_dalek::{Signer as _, SigningKey};
use p256::ecdsa::{Signature, SigningKey as P256Key};
use sha2::{Digest as _, Sha512};

/// The seed of RFC 8032, section 7.1, test 1.
pub(crate) const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

/// A key id that the vectors use.
pub(crate) const KEY: &str = "local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11";

/// The key of [`SEED`].
pub(crate) fn signing_key() -> SigningKey {
    let seed: [u8; 32] = hex::decode(SEED).expect("hex").try_into().expect("32 bytes");
    SigningKey::from_bytes(&seed)
}

pub(crate) fn cases() -> Value {
    json!({ "key_ids": key_ids(), "public_keys": public_keys(), "prehash": prehash(), "ecdsa": ecdsa() })
}

fn key_ids() -> Value {
    let uuid = "0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11";
    let long = "a".repeat(64);
    let valid = [
        ("local", "files", "ed25519", 1_u32),
        ("0", "a.b-c_d", "ml-dsa-65", 10),
        (&long, "files", "slh-dsa-shake-256f", u32::MAX),
        ("x", "y", "ml-dsa-65-ed25519", 2),
        ("x", "y", "x-wing", 3),
        ("x", "y", "ecdsa-p256", 4),
        ("x", "y", "ecdsa-p384", 9),
        ("x", "y", "ecdsa-p521", 10),
        ("x", "y", "rsa-2048", 11),
        ("x", "y", "rsa-3072", 12),
        ("x", "y", "rsa-4096", 13),
        ("x", "y", "aes-256-gcm", 5),
        ("x", "y", "xchacha20-poly1305", 6),
        ("x", "y", "hmac-sha384", 7),
        ("x", "y", "blake3", 8),
    ];
    let valid = valid.map(|(tenant, purpose, algorithm, version)| {
        json!({
            "id": format!("{tenant}/{purpose}/{algorithm}/{uuid}/v{version}"),
            "tenant": tenant, "purpose": purpose, "algorithm": algorithm, "uuid": uuid, "version": version,
        })
    });
    let invalid = [
        KEY.to_owned(),
        format!("{KEY}/v0"),
        format!("{KEY}/v01"),
        format!("{KEY}/v+1"),
        format!("{KEY}/v4294967296"),
        format!("{KEY}/1"),
        format!("{KEY}/v1/"),
        format!("/{KEY}/v1"),
        format!("{}/v1", KEY.to_uppercase()),
        format!("{}/v1", KEY.replace('-', "")),
        format!("{}/v1", KEY.replace("ed25519", "rsa")),
        format!("{}/v1", KEY.replace("local", "-local")),
        format!("{}/v1", KEY.replace("local", &"a".repeat(65))),
        format!("{}/v1", KEY.replace("local", "")),
        format!("{}/v1", KEY.replace("local", "l\u{f6}cal")),
        String::new(),
    ];
    json!({ "valid": valid, "invalid": invalid })
}

/// DER of one tag.
pub(crate) fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let header = match length {
        0..0x80 => vec![tag, length as u8],
        0x80..0x100 => vec![tag, 0x81, length as u8],
        _ => vec![tag, 0x82, (length >> 8) as u8, length as u8],
    };
    [header.as_slice(), content].concat()
}

/// SubjectPublicKeyInfo with an object identifier in DER.
fn spki(oid: &[u8], key: &[u8]) -> Vec<u8> {
    der(0x30, &[der(0x30, oid), der(3, &[&[0], key].concat())].concat())
}

fn pem(der: &[u8]) -> String {
    let text = Base64::encode_string(der);
    let lines: Vec<_> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("text")).collect();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
}

fn public_keys() -> Value {
    let key = signing_key().verifying_key().to_bytes();
    let info = spki(&hex::decode("06032b6570").expect("hex"), &key);
    let ssh = [&[0, 0, 0, 11], b"ssh-ed25519".as_slice(), &[0, 0, 0, 32], &key].concat();
    let id = blake3::derive_key("bulla 2026-11-20 minisign key id of an Ed25519 public key", &key);
    let number = u64::from_le_bytes(id[..8].try_into().expect("8 bytes"));
    let line = Base64::encode_string(&[b"Ed", &id[..8], &key].concat());
    let p256 = p256_key();
    let [point, uncompressed] = [true, false].map(|form| p256.verifying_key().to_encoded_point(form));
    let p256_info =
        spki(&hex::decode("06072a8648ce3d020106082a8648ce3d030107").expect("hex"), uncompressed.as_bytes());
    let ml_dsa = crate::post_quantum::ml_dsa_65().0;
    let ml_dsa_info = spki(&hex::decode("0609608648016503040312").expect("hex"), &ml_dsa);
    json!([
        json!({
            "algorithm": "ed25519",
            "raw": hex::encode(key),
            "der": hex::encode(&info),
            "pem": pem(&info),
            "openssh": format!("ssh-ed25519 {}\n", Base64::encode_string(&ssh)),
            "jwk": format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"{}\"}}\n", Base64UrlUnpadded::encode_string(&key)),
            "minisign": format!("untrusted comment: minisign public key {number:016X}\n{line}\n"),
        }),
        json!({
            "algorithm": "ecdsa-p256",
            "raw": hex::encode(point.as_bytes()),
            "der": hex::encode(&p256_info),
            "pem": pem(&p256_info),
        }),
        json!({
            "algorithm": "ml-dsa-65",
            "raw": hex::encode(&ml_dsa),
            "der": hex::encode(&ml_dsa_info),
            "pem": pem(&ml_dsa_info),
            "jwk": format!("{{\"kty\":\"AKP\",\"alg\":\"ML-DSA-65\",\"pub\":\"{}\"}}\n", Base64UrlUnpadded::encode_string(&ml_dsa)),
        }),
    ])
}

/// The key of RFC 6979, section A.2.5.
fn p256_key() -> P256Key {
    let scalar = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721";
    P256Key::from_slice(&hex::decode(scalar).expect("hex")).expect("a scalar")
}

/// With the nonces of RFC 6979 and the lower s.
fn ecdsa() -> Vec<Value> {
    // This trait is of an older generation than dalek's.
    use p256::ecdsa::signature::Signer as _;
    let key = p256_key();
    let case = |message: &str| {
        let signature: Signature = key.sign(message.as_bytes());
        let signature = signature.normalize_s().unwrap_or(signature);
        json!({
            "private_key": hex::encode(key.to_bytes()),
            "public_key": hex::encode(key.verifying_key().to_encoded_point(true).as_bytes()),
            "message": hex::encode(message),
            "signature": hex::encode(signature.to_bytes()),
        })
    };
    let all = Vec::from(["sample", "test", ""].map(case));
    assert!(
        all[0]
            .member("signature")
            .and_then(Value::as_str)
            .is_some_and(|text| text.starts_with("efd48b2aacb6a8fd")),
        "RFC 6979, A.2.5"
    );
    all
}

/// RFC 8032, section 7.3, and the same key with contexts.
fn prehash() -> Vec<Value> {
    let seed = "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42";
    let key = SigningKey::from_bytes(&hex::decode(seed).expect("hex").try_into().expect("32 bytes"));
    let mut all = Vec::new();
    for (message, context) in [("616263", ""), ("616263", "612075736500"), ("", "ff")] {
        let (bytes, context_bytes) = (hex::decode(message).expect("hex"), hex::decode(context).expect("hex"));
        let digest = Sha512::new_with_prefix(&bytes);
        let signature = key.sign_prehashed(digest, Some(&context_bytes)).expect("a short context");
        let framed = [
            b"bulla ed25519 blake3\0".as_slice(),
            &[context_bytes.len() as u8],
            &context_bytes,
            blake3::hash(&bytes).as_bytes(),
        ]
        .concat();
        let public_key = hex::encode(key.verifying_key().to_bytes());
        for (prehash, signature) in [("ed25519ph", signature), ("blake3", key.sign(&framed))] {
            all.push(json!({
                "prehash": prehash, "seed": seed, "public_key": public_key.as_str(), "message": message, "context": context,
                "signature": hex::encode(signature.to_bytes()),
            }));
        }
    }
    assert!(
        all[0]
            .member("signature")
            .and_then(Value::as_str)
            .is_some_and(|text| text.starts_with("98a70222f0b8121a")),
        "RFC 8032, 7.3"
    );
    all
}
