//! The vectors of Wycheproof for RSA, and for ECDSA on P-256, P-384 and P-521, through a keystore:
//! see `tests/wycheproof/README.md`.
#![cfg(all(feature = "nist", feature = "transfer"))]

use std::num::NonZeroU32;

use bulla_kms::prehash::{HashFunction, PssSaltLength, RsaPadding};
use bulla_kms::transfer::{
    PrivateFormat, PrivateKeyData, PublicFormat, ecdsa_from_der, ecdsa_to_der, import_public, with_lower_s,
};
use bulla_kms::{Algorithm, CiphertextParts, Code, EncryptionOptions, Keystore, NewKey, PublicKey};
use serde::Deserialize;

use super::wycheproof::{bytes, rows};

#[derive(Deserialize)]
struct Group<T> {
    key: String,
    tests: Vec<T>,
}

/// Number, message, signature, result.
type Signed = (u32, String, String, String);

/// Runs all signatures of a file whose keys we take; returns how many, and how many keys were
/// refused.
fn signatures(name: &str, is_valid: impl Fn(&PublicKey, &[u8], &[u8]) -> bool) -> [usize; 2] {
    let (mut run, mut refused) = (0, 0);
    for group in rows::<Group<Signed>>(name) {
        let pem = if group.key.ends_with('\n') { group.key.clone() } else { format!("{}\n", group.key) };
        let Ok(key) = import_public(pem.as_bytes(), PublicFormat::Pem, None) else {
            refused += 1;
            continue;
        };
        for (number, message, signature, result) in group.tests {
            let valid = is_valid(&key, &bytes(&message), &bytes(&signature));
            // "Acceptable" is a DigestInfo without NULL, which we refuse.
            assert_eq!(valid, result == "valid", "{name} {number}");
            run += 1;
        }
    }
    println!("{name}: {run} run, {refused} keys refused");
    [run, refused]
}

#[test]
fn signatures_of_ecdsa_are_valid_exactly_if_they_are() {
    use Algorithm::{EcdsaP256, EcdsaP384, EcdsaP521};
    use HashFunction::{Sha256, Sha384, Sha512};
    for (name, algorithm, hash, is_der, expected) in [
        ("ecdsa_secp256r1_sha256", EcdsaP256, Sha256, true, 484),
        ("ecdsa_secp256r1_sha256_p1363", EcdsaP256, Sha256, false, 262),
        ("ecdsa_secp384r1_sha256", EcdsaP384, Sha256, true, 472),
        ("ecdsa_secp384r1_sha384", EcdsaP384, Sha384, true, 504),
        ("ecdsa_secp384r1_sha384_p1363", EcdsaP384, Sha384, false, 280),
        ("ecdsa_secp521r1_sha512", EcdsaP521, Sha512, true, 542),
        ("ecdsa_secp521r1_sha512_p1363", EcdsaP521, Sha512, false, 318),
    ] {
        let found = signatures(name, |key, message, signature| {
            assert_eq!(key.algorithm(), algorithm);
            let low = match is_der {
                true => ecdsa_from_der(algorithm, signature),
                false => with_lower_s(algorithm, signature),
            };
            let Some(low) = low else { return false };
            let digest = hash.of(message);
            let valid = key.verify_prehashed(&digest, &low).is_valid();
            if [(EcdsaP256, Sha256), (EcdsaP384, Sha384), (EcdsaP521, Sha512)].contains(&(algorithm, hash)) {
                assert_eq!(key.verify(message, &low).is_valid(), valid);
            }
            // The other value of s is refused.
            if !is_der && low != signature {
                assert!(!key.verify_prehashed(&digest, signature).is_valid());
            }
            assert_eq!(ecdsa_from_der(algorithm, &ecdsa_to_der(algorithm, &low).unwrap()).unwrap(), low);
            valid
        });
        assert_eq!(found, [expected, 0], "{name}");
    }
}

#[test]
fn signatures_of_rsa_are_valid_exactly_if_they_are() {
    use HashFunction::{Sha256, Sha384, Sha512};
    use RsaPadding::{Pkcs1v15, Pss};
    for (name, hash, padding, expected) in [
        // The exponent of two keys is 3.
        ("rsa_signature_2048_sha256", Sha256, Pkcs1v15, [257, 2]),
        ("rsa_signature_3072_sha384", Sha384, Pkcs1v15, [259, 0]),
        ("rsa_signature_4096_sha512", Sha512, Pkcs1v15, [259, 0]),
        ("rsa_pss_2048_sha256_mgf1_0", Sha256, Pss(PssSaltLength::Bytes(0)), [103, 0]),
        ("rsa_pss_2048_sha256_mgf1_32", Sha256, Pss(PssSaltLength::Hash), [108, 0]),
        ("rsa_pss_3072_sha256_mgf1_32", Sha256, Pss(PssSaltLength::Hash), [108, 0]),
        ("rsa_pss_4096_sha512_mgf1_64", Sha512, Pss(PssSaltLength::Hash), [179, 0]),
    ] {
        let found = signatures(name, |key, message, signature| {
            let digest = hash.of(message).rsa_padding(padding);
            let valid = key.verify_prehashed(&digest, signature).is_valid();
            if valid {
                for (other, expected) in [
                    (Pkcs1v15, padding == Pkcs1v15),
                    (Pss(PssSaltLength::Auto), padding != Pkcs1v15),
                    (Pss(PssSaltLength::Max), false),
                ] {
                    let digest = hash.of(message).rsa_padding(other);
                    assert_eq!(key.verify_prehashed(&digest, signature).is_valid(), expected);
                }
            }
            if (hash, padding) == (Sha256, RsaPadding::default()) {
                assert_eq!(key.verify(message, signature).is_valid(), valid);
            }
            valid
        });
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn ciphertexts_of_rsa_decrypt_exactly_if_they_are_valid() {
    type Row = (u32, String, String, String, String);
    for (bits, algorithm) in
        [(2048, Algorithm::Rsa2048), (3072, Algorithm::Rsa3072), (4096, Algorithm::Rsa4096)]
    {
        let name = format!("rsa_oaep_{bits}_sha256_mgf1sha256");
        let mut run = 0;
        for group in rows::<Group<Row>>(&name) {
            let data = PrivateKeyData::read(&bytes(&group.key), PrivateFormat::Pkcs8Der, None, None).unwrap();
            let keystore = Keystore::in_memory().unwrap();
            let new = NewKey::new("local".parse().unwrap(), "vectors".parse().unwrap(), algorithm);
            let id = keystore.import_key(new, &data).unwrap();
            for (number, label, message, ciphertext, result) in group.tests {
                let (label, body) = (bytes(&label), bytes(&ciphertext));
                let options = EncryptionOptions::default().associated_data(&label);
                let found = CiphertextParts::new(algorithm, NonZeroU32::MIN, &body)
                    .and_then(|parts| keystore.decrypt(id.key_id(), &parts.to_bytes(), &options));
                match found {
                    Ok(found) => {
                        assert_eq!((&**found.bytes, &*result), (&*bytes(&message), "valid"), "{number}");
                    }
                    Err(error) => {
                        assert_eq!((error.code, &*result), (Code::InvalidCiphertext, "invalid"), "{number}");
                    }
                }
                run += 1;
            }
        }
        println!("{name}: {run} run");
        assert_eq!(run, 37, "{name}");
    }
}
