//! Shared secrets of ECDH: the vectors of Wycheproof, and OpenSSL.
#![cfg(all(feature = "nist", feature = "transfer"))]

use std::fs;
use std::path::Path;
use std::process::Command;

use base64ct::{Base64UrlUnpadded, Encoding as _};
use bulla_kms::transfer::{PrivateFormat, PrivateKeyData, PublicFormat, export_public, import_public};
use bulla_kms::{Algorithm, Code, KeyVersionId, Keystore, NewKey, PublicKey};

use super::wycheproof::{bytes, rows};

const ALGORITHMS: [(Algorithm, &[&str]); 4] = [
    (Algorithm::EcdhP256, &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
    (Algorithm::EcdhP384, &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]),
    (Algorithm::EcdhP521, &["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"]),
    (Algorithm::X25519, &["-algorithm", "X25519"]),
];

fn import(key: &PrivateKeyData) -> (Keystore, KeyVersionId) {
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "mail".parse().unwrap(), key.algorithm());
    let id = keystore.import_key(new, key).unwrap();
    (keystore, id)
}

/// Number, public key, private key, shared secret, result.
type Row = (u32, String, String, String, String);

#[test]
fn shared_secrets_are_those_of_wycheproof_and_other_public_keys_are_refused() {
    use Algorithm::{EcdhP256, EcdhP384, EcdhP521, X25519};
    // The last numbers: "acceptable" keys that we take. On P-256, it is a compressed point. Others
    // are DER of another form, curves without a name, and keys of X25519 of low order.
    for (name, algorithm, format, [valid, invalid, taken, not_taken]) in [
        ("ecdh_secp256r1", EcdhP256, PublicFormat::Der, [330, 52, 1, 229]),
        ("ecdh_secp384r1_ecpoint", EcdhP384, PublicFormat::Raw, [771, 18, 0, 1]),
        ("ecdh_secp521r1_ecpoint", EcdhP521, PublicFormat::Raw, [632, 28, 0, 1]),
        ("x25519", X25519, PublicFormat::Raw, [264, 0, 223, 31]),
    ] {
        let mut found = [0; 4];
        for (number, public_key, private_key, shared, result) in rows::<Row>(name) {
            let private_key = bytes(&private_key);
            let length = algorithm.output_length();
            let excess = private_key.len().saturating_sub(length);
            let scalar = [vec![0; length.saturating_sub(private_key.len())], private_key[excess..].to_vec()];
            let key = PrivateKeyData::read(&scalar.concat(), PrivateFormat::Raw, Some(algorithm), None);
            let (keystore, id) = import(&key.unwrap());
            let derived = import_public(&bytes(&public_key), format, Some(algorithm))
                .and_then(|peer| keystore.derive_shared_secret(&id, &peer));
            let place = match (&*result, derived) {
                (_, Ok(secret)) => {
                    assert!(*secret == bytes(&shared) && result != "invalid", "{name} {number}");
                    if result == "valid" { 0 } else { 2 }
                }
                (_, Err(error)) => {
                    let expected = [Code::InvalidPublicKey, Code::InvalidArgument];
                    assert!(expected.contains(&error.code) && result != "valid", "{name} {number}: {error}");
                    if result == "invalid" { 1 } else { 3 }
                }
            };
            found[place] += 1;
        }
        assert_eq!(found, [valid, invalid, taken, not_taken], "{name}");
    }
}

#[track_caller]
fn openssl(folder: &Path, arguments: &[&str]) {
    let output = Command::new("openssl").current_dir(folder).args(arguments).output().expect("openssl runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The secret that OpenSSL derives with a private key and a peer's public key.
fn derived_by_openssl(folder: &Path, peer: &PublicKey) -> Vec<u8> {
    fs::write(folder.join("peer.pem"), export_public(peer, PublicFormat::Pem).unwrap()).unwrap();
    let arguments = ["pkeyutl", "-derive", "-inkey", "key.pem", "-peerkey", "peer.pem", "-out", "secret"];
    openssl(folder, &arguments);
    fs::read(folder.join("secret")).unwrap()
}

#[test]
fn openssl_derives_the_same_secrets_and_its_keys_come_in() {
    let folder = tempfile::tempdir().unwrap();
    for (algorithm, options) in ALGORITHMS {
        let keystore = Keystore::in_memory().unwrap();
        let new = NewKey::new("local".parse().unwrap(), "mail".parse().unwrap(), algorithm);
        let id = keystore.create_key(new).unwrap();
        openssl(folder.path(), &[&["genpkey", "-out", "key.pem"][..], options].concat());
        openssl(folder.path(), &["pkey", "-in", "key.pem", "-pubout", "-out", "public.pem"]);
        let pem = fs::read(folder.path().join("public.pem")).unwrap();
        let peer = import_public(&pem, PublicFormat::Pem, Some(algorithm)).unwrap();
        let secret = keystore.derive_shared_secret(&id, &peer).unwrap();
        let public_key = keystore.public_key(&id).unwrap();
        assert!(*secret == derived_by_openssl(folder.path(), &public_key), "{algorithm}");

        let pem = fs::read(folder.path().join("key.pem")).unwrap();
        let key = PrivateKeyData::read(&pem, PrivateFormat::Pkcs8Pem, Some(algorithm), None).unwrap();
        let (theirs, their_id) = import(&key);
        assert!(secret == theirs.derive_shared_secret(&their_id, &public_key).unwrap(), "{algorithm}");
        // Without the algorithm, a key of a curve is for ECDSA.
        let key = PrivateKeyData::read(&pem, PrivateFormat::Pkcs8Pem, None, None).unwrap();
        assert_eq!(key.algorithm() == algorithm, algorithm == Algorithm::X25519);
    }
}

/// RFC 7518, appendix C: Alice's ephemeral public key.
const ALICE: &str = concat!(
    r#"{"kty":"EC","crv":"P-256","x":"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0","#,
    r#""y":"SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps"}"#
);

#[test]
fn the_shared_secret_of_the_example_of_jwe_is_derived() {
    let scalar = Base64UrlUnpadded::decode_vec("VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw").unwrap();
    let bob = PrivateKeyData::read(&scalar, PrivateFormat::Raw, Some(Algorithm::EcdhP256), None).unwrap();
    let (keystore, id) = import(&bob);
    let peer = import_public(ALICE.as_bytes(), PublicFormat::Jwk, Some(Algorithm::EcdhP256)).unwrap();
    let secret = keystore.derive_shared_secret(&id, &peer).unwrap();
    let z = [
        158, 86, 217, 29, 129, 113, 53, 211, 114, 131, 66, 131, 191, 132, 38, 156, 251, 49, 110, 163, 218,
        128, 106, 72, 246, 218, 167, 121, 140, 254, 144, 196,
    ];
    assert!(*secret == z);
}

#[test]
fn a_json_web_key_says_what_it_is_for_or_the_caller_does() {
    let read = |text: &str, algorithm| import_public(text.as_bytes(), PublicFormat::Jwk, algorithm);
    let key = read(ALICE, Some(Algorithm::EcdhP256)).unwrap();
    assert_eq!(key.algorithm(), Algorithm::EcdhP256);
    assert_eq!(read(ALICE, None).unwrap().algorithm(), Algorithm::EcdsaP256);
    let with = |members: &str| ALICE.replace(r#"{"kty""#, &format!(r#"{{{members},"kty""#));
    let named = with(r#""alg":"ECDH-ES+A256KW","use":"enc","key_ops":[]"#);
    assert_eq!(read(&named, None).unwrap(), key);
    for wrong in [r#""use":"sig""#, r#""alg":"ES256""#, r#""key_ops":["verify"]"#] {
        let error = read(&with(wrong), Some(Algorithm::EcdhP256)).unwrap_err();
        assert_eq!(error.code, Code::InvalidPublicKey, "{wrong}");
    }
    assert!(read(&with(r#""use":"enc""#), None).is_err(), "it verifies no signatures");
}

#[test]
fn what_is_no_scalar_is_no_private_key() {
    const P256_ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    for (algorithm, _) in ALGORITHMS {
        let length = algorithm.output_length();
        let mut wrong = vec![vec![], vec![1; length - 1], vec![1; length + 1]];
        if algorithm != Algorithm::X25519 {
            wrong.extend([vec![0; length], vec![0xff; length]]);
        }
        if algorithm == Algorithm::EcdhP256 {
            wrong.push(bytes(P256_ORDER));
        }
        for scalar in wrong {
            let read = PrivateKeyData::read(&scalar, PrivateFormat::Raw, Some(algorithm), None);
            assert_eq!(read.err().unwrap().code, Code::MalformedKey, "{algorithm} {scalar:?}");
        }
    }
}

#[test]
fn a_public_key_is_an_uncompressed_point_of_the_curve_and_not_of_low_order() {
    for (algorithm, _) in ALGORITHMS {
        let length = algorithm.output_length();
        let key = PrivateKeyData::read(&vec![1; length], PrivateFormat::Raw, Some(algorithm), None);
        let good = key.unwrap().public_key().unwrap().as_bytes().to_vec();
        let mut wrong = vec![vec![0; good.len()], vec![0]];
        if algorithm == Algorithm::X25519 {
            // A point of order 4, two of order 8, and zero with the highest bit, which is ignored.
            let order_8 = "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800";
            let other = "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157";
            let one = [vec![1], vec![0; 31]].concat();
            wrong.extend([one, bytes(order_8), bytes(other), [vec![0; 31], vec![0x80]].concat()]);
        } else {
            let mut off_the_curve = good.clone();
            *off_the_curve.last_mut().unwrap() ^= 1;
            let compressed = [&[2][..], &good[1..=length]].concat();
            wrong.extend([off_the_curve, compressed]);
        }
        for key in wrong {
            let error = PublicKey::from_bytes(algorithm, &key).unwrap_err();
            assert_eq!(error.code, Code::InvalidPublicKey, "{algorithm}");
        }
    }
}
