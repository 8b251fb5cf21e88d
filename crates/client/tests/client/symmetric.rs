//! Keys that encrypt and keys that make MACs; random bytes.

use bulla_client::{
    Ciphertext, DataKeyLength, DecryptItem, EncryptItem, EncryptionOptions, ErrorCode, KeyDerivation, NewKey,
    Verdict, VerifyMacItem,
};
use bulla_kms::token::{GrantedKeys, TokenOperation};

use crate::faulty::{Canned, Fault, Faulty};
use crate::support::{Service, config, keystore, token};
use crate::{blocking, builder, client};

const NONE: EncryptionOptions<'static> = EncryptionOptions { associated_data: &[], context: &[] };

fn of_algorithm(label: &str, algorithm: &str) -> NewKey {
    NewKey { label: Some(label.to_owned()), algorithm: Some(algorithm.to_owned()), ..NewKey::default() }
}

#[test]
fn values_are_encrypted_rewrapped_and_decrypted() {
    let service = Service::open();
    let client = client(&service.url);
    for algorithm in ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"] {
        let key = client.create_key(&of_algorithm(algorithm, algorithm)).unwrap();
        assert_eq!((key.versions[0].public_key.as_ref(), key.derivation), (None, KeyDerivation::None));
        for plaintext in [&b""[..], b"4 crates", &[7; 5000]] {
            let options = EncryptionOptions { associated_data: b"order 7", ..NONE };
            let made = client.encrypt(algorithm, plaintext, &options).unwrap();
            let found = client.decrypt(&key.id, &made.bytes, &options).unwrap();
            assert_eq!(
                (found.bytes.as_slice(), &found.key, found.version),
                (plaintext, &made.key, made.version)
            );
            let error = client.decrypt(algorithm, &made.bytes, &NONE).unwrap_err();
            assert_eq!(error.code(), Some(&ErrorCode::InvalidCiphertext));
        }
        let old = client.encrypt(algorithm, b"old", &NONE).unwrap();
        client.rotate_key(algorithm).unwrap();
        let new = client.rewrap(algorithm, &old.bytes, &NONE).unwrap();
        assert_eq!((old.version, new.version), (1, 2));
        for one in [&old, &new] {
            assert_eq!(client.decrypt(algorithm, &one.bytes, &NONE).unwrap().bytes.as_slice(), b"old");
        }
        client.revoke_version(algorithm, 1).unwrap();
        assert!(client.decrypt(algorithm, &old.bytes, &NONE).is_err());
        assert!(client.decrypt(algorithm, &new.bytes, &NONE).is_ok());
    }
}

#[test]
fn keys_are_derived_from_a_context() {
    let service = Service::open();
    let client = client(&service.url);
    for (label, derivation) in [("derived", KeyDerivation::PerContext), ("equal", KeyDerivation::Convergent)]
    {
        let key = client.create_key(&NewKey { derivation, ..of_algorithm(label, "aes-256-gcm") }).unwrap();
        assert_eq!(key.derivation, derivation);
        let of = |context| EncryptionOptions { context, ..NONE };
        let encrypt = |context| client.encrypt(label, b"value", &of(context)).unwrap().bytes;
        let made = encrypt(b"customer 17");
        assert_eq!(made == encrypt(b"customer 17"), derivation == KeyDerivation::Convergent);
        assert_ne!(made, encrypt(b"customer 18"));
        assert_eq!(client.decrypt(label, &made, &of(b"customer 17")).unwrap().bytes.as_slice(), b"value");
        assert!(client.decrypt(label, &made, &of(b"customer 18")).is_err());
        assert!(client.encrypt(label, b"value", &NONE).is_err(), "a context is missing");
    }
}

#[test]
fn data_keys_are_made_with_and_without_their_plaintext() {
    let service = Service::open();
    let client = client(&service.url);
    client.create_key(&of_algorithm("a", "xchacha20-poly1305")).unwrap();
    let options = EncryptionOptions { associated_data: b"disk", ..NONE };
    for (length, bytes) in
        [(DataKeyLength::Bits128, 16), (DataKeyLength::default(), 32), (DataKeyLength::Bits512, 64)]
    {
        let made = client.generate_data_key("a", length, &options).unwrap();
        assert_eq!(made.plaintext.len(), bytes);
        let found = client.decrypt("a", &made.wrapped.bytes, &options).unwrap();
        assert_eq!(found.bytes, made.plaintext);
        let wrapped = client.generate_wrapped_data_key("a", length, &options).unwrap();
        assert_eq!(client.decrypt(&wrapped.key, &wrapped.bytes, &options).unwrap().bytes.len(), bytes);
    }
}

#[test]
fn codes_are_made_and_verified() {
    let service = Service::open();
    let client = client(&service.url);
    for (algorithm, length) in [("hmac-sha256", 32), ("hmac-sha384", 48), ("hmac-sha512", 64), ("blake3", 32)]
    {
        client.create_key(&of_algorithm(algorithm, algorithm)).unwrap();
        let mac = client.mac(algorithm, b"user=7").unwrap();
        assert_eq!((mac.version, mac.bytes.len()), (1, length));
        client.rotate_key(algorithm).unwrap();
        let verify = |key, message, mac| client.verify_mac(key, message, mac).unwrap();
        assert_eq!(verify(&mac.key, b"user=7", &mac.bytes), Verdict::Valid);
        assert_eq!(verify(&mac.key, b"user=8", &mac.bytes), Verdict::Invalid);
        assert_eq!(verify(algorithm, b"user=7", &mac.bytes), Verdict::Invalid, "the latest did not make it");
        let items = [
            VerifyMacItem { message: b"user=7", mac: &mac.bytes, version: Some(mac.version) },
            VerifyMacItem { message: b"user=7", mac: &mac.bytes, version: None },
            VerifyMacItem { message: b"user=7", mac: &mac.bytes, version: Some(9) },
        ];
        let verdicts = client.verify_mac_many(algorithm, &items).unwrap();
        assert_eq!(verdicts[..2], [Ok(Verdict::Valid), Ok(Verdict::Invalid)]);
        assert_eq!(verdicts[2].as_ref().unwrap_err().code, ErrorCode::UnknownVersion);
        let made = client.mac_many(&mac.key, &[b"", b"user=7"]).unwrap();
        assert!(
            made.iter().all(|one| one.as_ref().is_err_and(|error| error.code == ErrorCode::NotLatestVersion))
        );
        let made = client.mac_many(algorithm, &[b"", b"user=7"]).unwrap();
        assert_eq!(*made[1].as_ref().unwrap(), client.mac(algorithm, b"user=7").unwrap());
    }
}

#[test]
fn a_key_of_another_usage_is_refused() {
    let service = Service::open();
    let client = client(&service.url);
    client.create_key(&of_algorithm("signs", "ed25519")).unwrap();
    client.create_key(&of_algorithm("encrypts", "aes-256-gcm")).unwrap();
    let errors = [
        client.encrypt("signs", b"", &NONE).unwrap_err(),
        client.mac("encrypts", b"").unwrap_err(),
        client.sign("encrypts", b"").unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), Some(&ErrorCode::KeyUsageMismatch));
    }
}

#[test]
fn batches_are_of_any_length_and_their_results_in_order() {
    const ITEMS: usize = 103;
    let service = Service::open();
    let client = blocking(builder(&service.url).max_batch_items(10));
    client.create_key(&of_algorithm("a", "chacha20-poly1305")).unwrap();
    let plaintexts: Vec<_> = (0..ITEMS).map(|index| index.to_string().into_bytes()).collect();
    let item = |plaintext| EncryptItem { plaintext, options: NONE };
    let made =
        client.encrypt_many("a", &plaintexts.iter().map(|one| item(one.as_slice())).collect::<Vec<_>>());
    let mut made: Vec<Ciphertext> = made.unwrap().into_iter().collect::<Result<_, _>>().unwrap();
    client.rotate_key("a").unwrap();
    *made[77].bytes.last_mut().unwrap() ^= 1;
    let items: Vec<_> =
        made.iter().map(|one| DecryptItem { ciphertext: &one.bytes, options: NONE }).collect();
    let found = client.decrypt_many("a", &items).unwrap();
    let rewrapped = client.rewrap_many("a", &items).unwrap();
    assert_eq!((found.len(), rewrapped.len()), (ITEMS, ITEMS));
    for (index, (found, rewrapped)) in found.iter().zip(&rewrapped).enumerate() {
        if index == 77 {
            assert_eq!(found.as_ref().unwrap_err().code, ErrorCode::InvalidCiphertext);
            assert_eq!(rewrapped.as_ref().unwrap_err().code, ErrorCode::InvalidCiphertext);
        } else {
            assert_eq!(*found.as_ref().unwrap().bytes, plaintexts[index]);
            assert_eq!(rewrapped.as_ref().unwrap().version, 2);
        }
    }
    assert_eq!(client.encrypt_many("a", &[]).unwrap(), []);
}

#[test]
fn a_batch_keeps_what_was_done() {
    let service = Service::open();
    client(&service.url).create_key(&of_algorithm("a", "aes-256-gcm")).unwrap();
    let refusal = Fault::Answer(Canned(500, 0, r#"{"code":"internal","message":"a","retryable":false}"#));
    let network = Faulty::before(&service.url, &[Fault::Last, refusal]);
    let client = blocking(builder(&network.url).max_batch_items(2));
    let items = [EncryptItem { plaintext: b"value", options: NONE }; 5];
    let failed = client.encrypt_many("a", &items).unwrap_err();
    assert_eq!((failed.results.len(), failed.error.code()), (2, Some(&ErrorCode::Internal)));
    assert!(failed.results.iter().all(Result::is_ok));
}

#[test]
fn each_operation_has_a_permission_of_its_own() {
    let keystore = keystore(&["local"]);
    let permitted = [TokenOperation::Create, TokenOperation::Encrypt];
    let token = token(&keystore, "local", GrantedKeys::All, &permitted);
    let service = Service::start(keystore, config());
    let token = bulla_client::Token::new(token.expose()).unwrap();
    let client = blocking(builder(&service.url).token(token));
    client.create_key(&of_algorithm("a", "aes-256-gcm")).unwrap();
    let made = client.encrypt("a", b"value", &NONE).unwrap();
    let error = client.decrypt("a", &made.bytes, &NONE).unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::Forbidden));
}

#[test]
fn random_bytes_are_of_the_length_that_is_asked_for() {
    let service = Service::open();
    let client = client(&service.url);
    assert_eq!(client.random(65_536).unwrap().len(), 65_536);
    assert_ne!(client.random(32).unwrap(), client.random(32).unwrap());
    for length in [0, 65_537] {
        assert_eq!(client.random(length).unwrap_err().code(), Some(&ErrorCode::MalformedRequest));
    }
}
