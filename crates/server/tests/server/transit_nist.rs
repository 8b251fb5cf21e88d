//! The API for clients of Vault: keys of RSA, and of ECDSA on P-384 and P-521.

use bulla_kms::prehash::{HashFunction, PssSaltLength, RsaPadding};
use bulla_kms::transfer::{PublicFormat, ecdsa_from_der, import_public};
use bulla_kms::{PublicKey, Verdict};
use serde_json::{Value, json};

use crate::support::{Service, base64, from_base64};
use crate::transit::{post, refused, with_key};

const MESSAGE: &[u8] = b"a message";

/// The public key of a version, from its PEM.
fn public_key(service: &Service, version: &str) -> PublicKey {
    let key = service.get(None, "/v1/transit/keys/a").ok();
    let pem = key["data"]["keys"][version]["public_key"].as_str().unwrap();
    import_public(pem.as_bytes(), PublicFormat::Pem, None).unwrap()
}

/// The bytes of a signature or a ciphertext of this version.
fn bytes(text: &Value, version: u32) -> Vec<u8> {
    from_base64(&text.as_str().unwrap().strip_prefix(&format!("vault:v{version}:")).unwrap().into())
}

fn named(hash: &str) -> HashFunction {
    hash.replace("sha2-", "sha").parse().unwrap()
}

fn digest(hash: HashFunction) -> Vec<u8> {
    let function = match hash {
        HashFunction::Sha384 => &ring::digest::SHA384,
        HashFunction::Sha512 => &ring::digest::SHA512,
        _ => &ring::digest::SHA256,
    };
    ring::digest::digest(function, MESSAGE).as_ref().to_vec()
}

/// Signs with these parameters and verifies. Returns the signature's bytes.
#[track_caller]
fn sign_and_verify(service: &Service, parameters: &Value) -> Vec<u8> {
    let mut body = parameters.clone();
    if body.get("input").is_none() {
        body["input"] = json!(base64(MESSAGE));
    }
    let signed = post(service, "sign/a", &body).ok();
    body["signature"] = signed["data"]["signature"].clone();
    assert_eq!(post(service, "verify/a", &body).ok()["data"]["valid"], true, "{parameters}");
    let items = json!([{ "input": body["input"], "signature": body["signature"] }, {
        "input": base64(&[7; 64][..from_base64(&body["input"]).len()]), "signature": body["signature"],
    }]);
    body["batch_input"] = items;
    let verified = post(service, "verify/a", &body).ok();
    let results = &verified["data"]["batch_results"];
    assert_eq!((&results[0]["valid"], &results[1]["valid"]), (&json!(true), &json!(false)), "{parameters}");
    bytes(&signed["data"]["signature"], 1)
}

#[test]
fn an_rsa_key_signs_with_the_padding_that_is_asked_for() {
    let service = with_key("rsa-2048");
    let public = public_key(&service, "1");
    let is_valid = |hash: HashFunction, padding, signature: &[u8]| {
        public.verify_prehashed(&hash.of(MESSAGE).rsa_padding(padding), signature) == Verdict::Valid
    };
    let cases = [
        (json!({}), RsaPadding::Pss(PssSaltLength::Max)),
        (json!({ "signature_algorithm": "pss", "salt_length": "auto" }), RsaPadding::Pss(PssSaltLength::Max)),
        (json!({ "salt_length": "hash" }), RsaPadding::Pss(PssSaltLength::Hash)),
        (json!({ "salt_length": -1 }), RsaPadding::Pss(PssSaltLength::Hash)),
        (json!({ "signature_algorithm": "pkcs1v15" }), RsaPadding::Pkcs1v15),
    ];
    for (parameters, padding) in cases {
        for hash in ["sha2-256", "sha2-384", "sha2-512"] {
            let mut body = parameters.clone();
            body["hash_algorithm"] = json!(hash);
            let hash = named(hash);
            assert!(is_valid(hash, padding, &sign_and_verify(&service, &body)), "{body}");
            body["prehashed"] = json!(true);
            body["input"] = json!(base64(&digest(hash)));
            assert!(is_valid(hash, padding, &sign_and_verify(&service, &body)), "{body}");
        }
    }
    // A number of bytes must be that of the digest, or the longest one.
    sign_and_verify(&service, &json!({ "salt_length": 32 }));
    let other = post(&service, "sign/a", &json!({ "input": "", "salt_length": 33 }));
    assert_eq!(refused(&other).2, "invalid_argument");
    // One padding does not verify the other.
    let signature = post(&service, "sign/a", &json!({ "input": "" })).ok()["data"]["signature"].clone();
    let body = json!({ "input": "", "signature": signature, "signature_algorithm": "pkcs1v15" });
    assert_eq!(post(&service, "verify/a", &body).ok()["data"]["valid"], false);
    for wrong in [
        json!({ "input": "", "signature_algorithm": "oaep" }),
        json!({ "input": "", "salt_length": "salt" }),
        json!({ "input": "", "prehashed": true }),
    ] {
        assert_eq!(refused(&post(&service, "sign/a", &wrong)).2, "malformed_request", "{wrong}");
    }
    let none = json!({ "input": "", "hash_algorithm": "none", "prehashed": true });
    assert_eq!(refused(&post(&service, "sign/a", &none)).2, "not_supported");
}

#[test]
fn the_larger_curves_sign_with_every_hash_function_in_both_forms() {
    for kind in ["ecdsa-p384", "ecdsa-p521"] {
        let service = with_key(kind);
        let key = service.get(None, "/v1/transit/keys/a").ok()["data"].clone();
        assert_eq!(key["keys"]["1"]["name"], kind.to_uppercase().replace("ECDSA-P", "P-"));
        assert_eq!((&key["supports_signing"], &key["supports_encryption"]), (&json!(true), &json!(false)));
        let public = public_key(&service, "1");
        for hash in ["", "sha2-256", "sha2-384", "sha2-512"] {
            let function = if hash.is_empty() { HashFunction::Sha256 } else { named(hash) };
            for prehashed in [false, true] {
                let mut body = json!({ "hash_algorithm": hash, "prehashed": prehashed });
                if prehashed {
                    body["input"] = json!(base64(&digest(function)));
                }
                let der = sign_and_verify(&service, &body);
                let raw = ecdsa_from_der(public.algorithm(), &der).expect("it is DER");
                assert!(public.verify_prehashed(&function.of(MESSAGE), &raw).is_valid(), "{kind} {body}");
            }
        }
        let jws = json!({ "input": base64(MESSAGE), "marshaling_algorithm": "jws" });
        let signed = post(&service, "sign/a", &jws).ok()["data"]["signature"].clone();
        let text = signed.as_str().unwrap().strip_prefix("vault:v1:").unwrap();
        let raw = base64_simd::URL_SAFE_NO_PAD.decode_to_vec(text).unwrap();
        assert!(public.verify_prehashed(&HashFunction::Sha256.of(MESSAGE), &raw).is_valid(), "{kind}");
        let encrypted = post(&service, "encrypt/a", &json!({ "plaintext": "" }));
        assert_eq!(refused(&encrypted).2, "key_usage_mismatch");
    }
}

#[test]
fn an_rsa_key_encrypts_and_what_does_not_decrypt_says_no_more_than_that() {
    let service = with_key("rsa-2048");
    let key = service.get(None, "/v1/transit/keys/a").ok()["data"].clone();
    let supports = ["encryption", "decryption", "derivation", "signing"]
        .map(|what| key[format!("supports_{what}")] == true);
    assert_eq!(supports, [true, true, false, true]);
    let label = json!(base64(b"row 7"));
    let body = json!({ "plaintext": base64(b"a secret"), "associated_data": label });
    let made = post(&service, "encrypt/a", &body).ok()["data"]["ciphertext"].clone();
    let outside = public_key(&service, "1").encrypt(b"a secret", b"row 7").unwrap();
    post(&service, "keys/a/rotate", &json!({})).ok();
    let decrypt = |ciphertext: &str, label: &Value| {
        post(&service, "decrypt/a", &json!({ "ciphertext": ciphertext, "associated_data": label }))
    };
    for ciphertext in [made.as_str().unwrap(), &format!("vault:v1:{}", base64(&outside))] {
        let found = decrypt(ciphertext, &label).ok();
        assert_eq!(from_base64(&found["data"]["plaintext"]), b"a secret");
    }
    let rewrapped = json!({ "ciphertext": made, "associated_data": label });
    let rewrapped = post(&service, "rewrap/a", &rewrapped).ok()["data"]["ciphertext"].clone();
    assert!(rewrapped.as_str().unwrap().starts_with("vault:v2:"));
    decrypt(rewrapped.as_str().unwrap(), &label).ok();

    let changed = |change: fn(&mut Vec<u8>)| {
        let mut bytes = outside.clone();
        change(&mut bytes);
        format!("vault:v1:{}", base64(&bytes))
    };
    let of_another_version = format!("vault:v2:{}", base64(&outside));
    let with_pkcs1 = format!("vault:v1:{}", base64(&[[0, 2].as_slice(), &[7; 254]].concat()));
    let refusals = [
        decrypt(&changed(|bytes| bytes[255] ^= 1), &label),
        decrypt(&changed(|bytes| bytes[0] ^= 1), &label),
        decrypt(&changed(|bytes| bytes.fill(0)), &label),
        decrypt(&changed(|bytes| bytes.fill(255)), &label),
        decrypt(&of_another_version, &label),
        decrypt(&with_pkcs1, &label),
        decrypt(&changed(|_| {}), &json!(base64(b"row 8"))),
        decrypt(&changed(|_| {}), &Value::Null),
    ];
    let said = refusals.each_ref().map(refused);
    assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
    assert_eq!(said[0], (400, "cipher: message authentication failed".into(), "invalid_ciphertext".into()));
    // The length is no secret.
    let cut = decrypt(&changed(|bytes| bytes.truncate(255)), &label);
    assert_eq!(refused(&cut), (400, "invalid ciphertext length".into(), "invalid_ciphertext".into()));
    let long = post(&service, "encrypt/a", &json!({ "plaintext": base64(&[7; 191]) }));
    assert_eq!(refused(&long).2, "invalid_argument");
}

#[test]
fn an_rsa_key_wraps_data_keys_makes_hmacs_and_is_trimmed() {
    let service = with_key("rsa-2048");
    let made = post(&service, "datakey/plaintext/a", &json!({ "bits": 512 })).ok()["data"].clone();
    let found = post(&service, "decrypt/a", &json!({ "ciphertext": made["ciphertext"] })).ok();
    assert_eq!(found["data"]["plaintext"], made["plaintext"]);
    let hmac = post(&service, "hmac/a", &json!({ "input": "" })).ok()["data"]["hmac"].clone();
    let verified = post(&service, "verify/a", &json!({ "input": "", "hmac": hmac })).ok();
    assert_eq!(verified["data"]["valid"], true);
    post(&service, "keys/a/rotate", &json!({})).ok();
    post(&service, "keys/a/config", &json!({ "min_decryption_version": 2 })).ok();
    let trimmed = post(&service, "keys/a/trim", &json!({ "min_available_version": 2 })).ok();
    assert_eq!(trimmed["data"]["keys"].as_object().unwrap().len(), 1);
    let old = post(&service, "decrypt/a", &json!({ "ciphertext": made["ciphertext"] }));
    let words = "ciphertext or signature version is disallowed by policy (too old)";
    assert_eq!(refused(&old), (400, words.into(), "version_not_usable".into()));
}
