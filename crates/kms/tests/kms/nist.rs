//! Keys of RSA, and of ECDSA on P-384 and P-521.
#![cfg(all(feature = "nist", feature = "transfer"))]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use bulla_kms::prehash::{HashFunction, PssSaltLength, RsaPadding};
use bulla_kms::transfer::{
    PrivateFormat, PrivateKeyData, PublicFormat, ecdsa_from_der, ecdsa_to_der, export_public, import_public,
    with_lower_s,
};
use bulla_kms::{
    Algorithm, CiphertextParts, Code, DataKeyLength, EncryptionOptions, KeyChange, KeyVersionId, Keystore,
    NewKey, PublicKey, RotationPolicy, SignatureFile, Statement,
};
use proptest::prelude::*;

const RSA: [Algorithm; 3] = [Algorithm::Rsa2048, Algorithm::Rsa3072, Algorithm::Rsa4096];
const CURVES: [Algorithm; 2] = [Algorithm::EcdsaP384, Algorithm::EcdsaP521];
const PADDINGS: [RsaPadding; 3] =
    [RsaPadding::Pkcs1v15, RsaPadding::Pss(PssSaltLength::Hash), RsaPadding::Pss(PssSaltLength::Max)];

fn new(algorithm: Algorithm) -> NewKey {
    NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), algorithm)
}

fn with_key(algorithm: Algorithm) -> (Keystore, KeyVersionId, PublicKey) {
    let keystore = Keystore::in_memory().unwrap();
    let id = keystore.create_key(new(algorithm)).unwrap();
    let key = keystore.public_key(&id).unwrap();
    (keystore, id, key)
}

fn openssl(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("openssl").current_dir(folder).args(arguments).output().expect("openssl runs")
}

#[track_caller]
fn run_openssl(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = openssl(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The options of `openssl dgst` and `pkeyutl` for a padding.
fn padding_options(padding: RsaPadding) -> &'static [&'static str] {
    match padding {
        RsaPadding::Pkcs1v15 => &["-sigopt", "rsa_padding_mode:pkcs1"],
        RsaPadding::Pss(PssSaltLength::Hash) => {
            &["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"]
        }
        _ => &["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:max"],
    }
}

#[test]
fn openssl_verifies_what_keys_of_rsa_sign_and_the_other_way_round() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("message"), b"a message").unwrap();
    for (algorithm, bits) in RSA.into_iter().zip(["2048", "3072", "4096"]) {
        run_openssl(
            at,
            &[
                "genpkey",
                "-algorithm",
                "RSA",
                "-pkeyopt",
                &format!("rsa_keygen_bits:{bits}"),
                "-out",
                "key.pem",
            ],
        );
        let pem = fs::read(at.join("key.pem")).unwrap();
        let data = PrivateKeyData::read(&pem, PrivateFormat::Pkcs8Pem, None, None).unwrap();
        assert_eq!(data.algorithm(), algorithm);
        let keystore = Keystore::in_memory().unwrap();
        let id = keystore.import_key(new(algorithm), &data).unwrap();
        let key = keystore.public_key(&id).unwrap();
        let public = export_public(&key, PublicFormat::Pem).unwrap();
        assert_eq!(run_openssl(at, &["pkey", "-in", "key.pem", "-pubout"]), public);
        fs::write(at.join("public.pem"), &public).unwrap();
        for &hash in HashFunction::ALL {
            for padding in PADDINGS {
                let ours = keystore.sign_hashed(&id, b"a message", hash, padding).unwrap().bytes;
                fs::write(at.join("signature"), &ours).unwrap();
                let digest = format!("-{hash}");
                let mut arguments = vec!["dgst", &digest, "-verify", "public.pem", "-signature", "signature"];
                arguments.extend(padding_options(padding));
                arguments.push("message");
                run_openssl(at, &arguments);
                let mut arguments = vec!["dgst", &digest, "-sign", "key.pem"];
                arguments.extend(padding_options(padding));
                arguments.push("message");
                let theirs = run_openssl(at, &arguments);
                let message = hash.of(b"a message").rsa_padding(padding);
                assert!(key.verify_prehashed(&message, &theirs).is_valid(), "{algorithm} {hash} {padding:?}");
                if padding == RsaPadding::Pkcs1v15 {
                    assert_eq!(ours, theirs, "this padding has no random bytes");
                }
            }
        }
        let sent = key.encrypt(b"a secret", b"").unwrap();
        fs::write(at.join("ciphertext"), sent).unwrap();
        let oaep = ["-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt", "rsa_oaep_md:sha256"];
        let decrypt =
            [&["pkeyutl", "-decrypt", "-inkey", "key.pem", "-in", "ciphertext"][..], &oaep].concat();
        assert_eq!(run_openssl(at, &decrypt), b"a secret");
        let encrypt =
            [&["pkeyutl", "-encrypt", "-pubin", "-inkey", "public.pem", "-in", "message"][..], &oaep]
                .concat();
        let theirs = run_openssl(at, &encrypt);
        let theirs = CiphertextParts::new(algorithm, 1.try_into().unwrap(), &theirs).unwrap().to_bytes();
        let found = keystore.decrypt(id.key_id(), &theirs, &EncryptionOptions::NONE).unwrap();
        assert_eq!(**found.bytes, *b"a message");
    }
}

#[test]
fn openssl_verifies_what_keys_of_both_curves_sign_and_the_other_way_round() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("message"), b"a message").unwrap();
    for (algorithm, curve) in CURVES.into_iter().zip(["secp384r1", "secp521r1"]) {
        run_openssl(at, &["ecparam", "-name", curve, "-genkey", "-noout", "-out", "sec1.pem"]);
        run_openssl(at, &["pkcs8", "-topk8", "-nocrypt", "-in", "sec1.pem", "-out", "key.pem"]);
        let pem = fs::read(at.join("key.pem")).unwrap();
        let data = PrivateKeyData::read(&pem, PrivateFormat::Pkcs8Pem, None, None).unwrap();
        assert_eq!(data.algorithm(), algorithm);
        // The form of Vault is that of SEC 1 with the curve.
        let sec1 = fs::read(at.join("sec1.pem")).unwrap();
        let same = PrivateKeyData::read(&sec1, PrivateFormat::Vault, None, None).unwrap();
        assert_eq!(same.public_key(), data.public_key());
        let keystore = Keystore::in_memory().unwrap();
        let id = keystore.import_key(new(algorithm), &data).unwrap();
        let key = keystore.public_key(&id).unwrap();
        let public = export_public(&key, PublicFormat::Pem).unwrap();
        assert_eq!(run_openssl(at, &["pkey", "-in", "key.pem", "-pubout"]), public);
        fs::write(at.join("public.pem"), &public).unwrap();
        for &hash in HashFunction::ALL {
            for _ in 0..4 {
                let ours =
                    keystore.sign_hashed(&id, b"a message", hash, RsaPadding::default()).unwrap().bytes;
                fs::write(at.join("signature"), ecdsa_to_der(algorithm, &ours).unwrap()).unwrap();
                let digest = format!("-{hash}");
                run_openssl(
                    at,
                    &["dgst", &digest, "-verify", "public.pem", "-signature", "signature", "message"],
                );
                let theirs = run_openssl(at, &["dgst", &digest, "-sign", "key.pem", "message"]);
                let theirs = ecdsa_from_der(algorithm, &theirs).unwrap();
                assert!(
                    key.verify_prehashed(&hash.of(b"a message"), &theirs).is_valid(),
                    "{algorithm} {hash}"
                );
            }
        }
    }
}

#[test]
fn keys_of_rsa_that_are_weak_or_of_another_form_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (bits, exponent) in
        [("1024", "65537"), ("2048", "3"), ("2048", "65539"), ("2056", "65537"), ("8192", "65537")]
    {
        if bits == "8192" {
            continue;
        }
        run_openssl(
            at,
            &[
                "genpkey",
                "-algorithm",
                "RSA",
                "-pkeyopt",
                &format!("rsa_keygen_bits:{bits}"),
                "-pkeyopt",
                &format!("rsa_keygen_pubexp:{exponent}"),
                "-out",
                "key.pem",
            ],
        );
        let pem = fs::read(at.join("key.pem")).unwrap();
        let error = PrivateKeyData::read(&pem, PrivateFormat::Pkcs8Pem, None, None).unwrap_err();
        assert_eq!(error.code, Code::MalformedKey, "{bits} {exponent}: {error}");
        assert!(error.message.contains("65537"), "{error}");
        let public = run_openssl(at, &["pkey", "-in", "key.pem", "-pubout"]);
        let error = import_public(&public, PublicFormat::Pem, None).unwrap_err();
        assert_eq!(error.code, Code::InvalidPublicKey, "{bits} {exponent}: {error}");
    }
}

/// The `RSAPrivateKey` of a new key.
fn rsa_private_key(folder: &Path) -> Vec<u8> {
    run_openssl(folder, &["genrsa", "-traditional", "-out", "key.pem", "2048"]);
    run_openssl(folder, &["rsa", "-in", "key.pem", "-outform", "DER", "-traditional"])
}

#[test]
fn a_key_of_rsa_with_any_changed_byte_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let key = rsa_private_key(folder.path());
    let read = |bytes: &[u8]| PrivateKeyData::read(bytes, PrivateFormat::Raw, Some(Algorithm::Rsa2048), None);
    read(&key).unwrap();
    let pem = fs::read(folder.path().join("key.pem")).unwrap();
    PrivateKeyData::read(&pem, PrivateFormat::Vault, None, None).unwrap();
    for place in (0..key.len()).step_by(7).chain([0, 1, 2, 3, key.len() - 1]) {
        let mut changed = key.clone();
        changed[place] ^= 1;
        assert_eq!(read(&changed).unwrap_err().code, Code::MalformedKey, "byte {place}");
        assert_eq!(read(&key[..place]).unwrap_err().code, Code::MalformedKey);
    }
    assert!(read(&[&key[..], &[0]].concat()).is_err());
    for other in [Algorithm::Rsa3072, Algorithm::Rsa4096] {
        assert!(PrivateKeyData::read(&key, PrivateFormat::Raw, Some(other), None).is_err());
    }
}

#[test]
fn a_public_key_of_rsa_has_one_form() {
    for algorithm in RSA {
        let (_, _, key) = with_key(algorithm);
        let bytes = key.as_bytes();
        let refused = |bytes: &[u8]| {
            let error = PublicKey::from_bytes(algorithm, bytes).unwrap_err();
            assert_eq!(error.code, Code::InvalidPublicKey, "{error}");
        };
        // Everything but the modulus, its highest bit and its lowest one.
        for place in (0..10).chain(bytes.len() - 6..bytes.len()) {
            let mut changed = bytes.to_vec();
            changed[place] ^= if place == 9 { 0x80 } else { 1 };
            refused(&changed);
        }
        for other in RSA.into_iter().filter(|other| *other != algorithm) {
            assert!(PublicKey::from_bytes(other, bytes).is_err());
        }
        for format in [PublicFormat::Pem, PublicFormat::Der, PublicFormat::Jwk] {
            let text = export_public(&key, format).unwrap();
            assert_eq!(import_public(&text, format, None).unwrap(), key, "{algorithm} {format:?}");
        }
        for format in [PublicFormat::OpenSsh, PublicFormat::Minisign] {
            assert_eq!(export_public(&key, format).unwrap_err().code, Code::UnsupportedFormat);
        }
    }
}

#[test]
fn what_is_no_point_or_no_scalar_of_a_curve_is_refused() {
    for (algorithm, length) in CURVES.into_iter().zip([48, 66]) {
        let (_, _, key) = with_key(algorithm);
        for format in [PublicFormat::Pem, PublicFormat::Der, PublicFormat::Jwk] {
            let text = export_public(&key, format).unwrap();
            assert_eq!(import_public(&text, format, None).unwrap(), key, "{algorithm} {format:?}");
        }
        let mut refused: Vec<Vec<u8>> = Vec::new();
        for place in [0, 1, length, 2 * length] {
            let mut changed = key.as_bytes().to_vec();
            changed[place] ^= 1;
            refused.push(changed);
        }
        // Compressed and hybrid points.
        refused.push([&[2 | (key.as_bytes()[2 * length] & 1)], &key.as_bytes()[1..=length]].concat());
        refused.push([&[6 | (key.as_bytes()[2 * length] & 1)], &key.as_bytes()[1..]].concat());
        refused.push([&[4][..], &vec![0; 2 * length]].concat());
        refused.push([&[4][..], &vec![0xff; 2 * length]].concat());
        refused.push(vec![0]);
        for bytes in refused {
            let error = PublicKey::from_bytes(algorithm, &bytes).unwrap_err();
            assert_eq!(error.code, Code::InvalidPublicKey, "{algorithm}");
        }
        for scalar in [vec![0; length], vec![0xff; length], vec![1; length - 1], vec![1; length + 1], vec![]]
        {
            let read = PrivateKeyData::read(&scalar, PrivateFormat::Raw, Some(algorithm), None);
            assert_eq!(read.unwrap_err().code, Code::MalformedKey, "{algorithm}");
        }
        let mut one = vec![0; length];
        one[length - 1] = 1;
        PrivateKeyData::read(&one, PrivateFormat::Raw, Some(algorithm), None).unwrap();
    }
}

#[test]
fn a_key_of_rsa_signs_so_that_only_the_same_hash_and_padding_verify() {
    let (keystore, id, key) = with_key(Algorithm::Rsa2048);
    let schemes: Vec<_> =
        HashFunction::ALL.iter().flat_map(|hash| PADDINGS.map(|padding| (*hash, padding))).collect();
    for &(hash, padding) in &schemes {
        let made = keystore.sign_hashed(&id, b"m", hash, padding).unwrap();
        assert_eq!(made.bytes.len(), 256);
        for &(other, other_padding) in &schemes {
            let message = other.of(b"m").rsa_padding(other_padding);
            let expected = (other, other_padding) == (hash, padding);
            assert_eq!(key.verify_prehashed(&message, &made.bytes).is_valid(), expected);
            assert_eq!(keystore.verify_prehashed(&id, &message, &made.bytes).unwrap().is_valid(), expected);
        }
        let is_default = (hash, padding) == (HashFunction::Sha256, RsaPadding::default());
        assert_eq!(keystore.verify(&id, b"m", &made.bytes).unwrap().is_valid(), is_default);
        let auto = hash.of(b"m").rsa_padding(RsaPadding::Pss(PssSaltLength::Auto));
        assert_eq!(key.verify_prehashed(&auto, &made.bytes).is_valid(), padding != RsaPadding::Pkcs1v15);
    }
    let with = |length| RsaPadding::Pss(PssSaltLength::Bytes(length));
    let sign = |padding| keystore.sign_hashed(&id, b"m", HashFunction::Sha256, padding);
    for (length, expected) in
        [(32, true), (222, true), (0, false), (20, false), (223, false), (u16::MAX, false)]
    {
        match sign(with(length)) {
            Ok(made) => {
                let digest = |length| HashFunction::Sha256.of(b"m").rsa_padding(with(length));
                assert!(expected && key.verify_prehashed(&digest(length), &made.bytes).is_valid());
                assert!(!key.verify_prehashed(&digest(length - 1), &made.bytes).is_valid());
                assert!(!key.verify_prehashed(&digest(u16::MAX), &made.bytes).is_valid());
            }
            Err(error) => assert_eq!((error.code, expected), (Code::InvalidArgument, false), "{error}"),
        }
    }
    let plain = keystore.create_key(new(Algorithm::Ed25519)).unwrap();
    let error = keystore.sign_hashed(&plain, b"m", HashFunction::Sha256, RsaPadding::Pkcs1v15).unwrap_err();
    assert_eq!(error.code, Code::KeyUsageMismatch);
    let reserved =
        keystore.sign_hashed(&id, b"bulla signature\0", HashFunction::Sha256, RsaPadding::default());
    assert_eq!(reserved.unwrap_err().code, Code::ReservedMessage);
}

#[test]
fn only_a_key_that_was_made_for_it_signs_digests() {
    for algorithm in [Algorithm::Rsa2048, Algorithm::EcdsaP384, Algorithm::EcdsaP521] {
        let (keystore, id, _) = with_key(algorithm);
        let digest = HashFunction::Sha512.of(b"m");
        assert_eq!(keystore.sign_prehashed(&id, &digest).unwrap_err().code, Code::KeyUsageMismatch);
        let able = keystore.create_key(new(algorithm).signs_digests(true)).unwrap();
        for &hash in HashFunction::ALL {
            let made = keystore.sign_prehashed(&able, &hash.of(b"m")).unwrap();
            assert!(keystore.verify_prehashed(&able, &hash.of(b"m"), &made.bytes).unwrap().is_valid());
        }
        let error = SignatureFile::sign(&keystore, able.key_id(), Statement::message(b"m")).unwrap_err();
        assert_eq!(error.code, Code::KeyUsageMismatch);
        SignatureFile::sign(&keystore, id.key_id(), Statement::message(b"m")).unwrap();
        assert!(keystore.attest_signed(id.key_id()).is_ok());
    }
}

#[test]
fn a_key_of_rsa_encrypts_and_every_usable_version_decrypts() {
    for (algorithm, most) in RSA.into_iter().zip([190, 318, 446]) {
        let (keystore, id, key) = with_key(algorithm);
        let options = EncryptionOptions::default().associated_data(b"row 7");
        let full = vec![7; most];
        let made = keystore.encrypt(id.key_id(), &full, &options).unwrap();
        assert_eq!((&made.key, made.bytes.len()), (&id, 5 + algorithm.output_length()));
        assert_ne!(keystore.encrypt(id.key_id(), &full, &options).unwrap(), made);
        let long = keystore.encrypt(id.key_id(), &vec![7; most + 1], &options).unwrap_err();
        assert_eq!(long.code, Code::InvalidArgument);
        assert_eq!(key.encrypt(&vec![7; most + 1], b"").unwrap_err().code, Code::InvalidArgument);
        let next = keystore.rotate(id.key_id()).unwrap();
        let found = keystore.decrypt(id.key_id(), &made.bytes, &options).unwrap();
        assert_eq!((&found.key, &**found.bytes), (&id, &*full));
        let rewrapped = keystore.rewrap(id.key_id(), &made.bytes, &options).unwrap();
        assert_eq!(rewrapped.key, next);
        let refused = |bytes: &[u8], options: &EncryptionOptions<'_>| {
            let error = keystore.decrypt(id.key_id(), bytes, options).unwrap_err();
            assert_eq!(error.code, Code::InvalidCiphertext);
            error.message
        };
        let text = refused(&made.bytes, &EncryptionOptions::NONE);
        for place in [0, 1, 4, 5, 6, 100, made.bytes.len() - 1] {
            let mut changed = made.bytes.clone();
            changed[place] ^= 1;
            assert_eq!(refused(&changed, &options), text);
            assert_eq!(refused(&made.bytes[..place], &options), text);
        }
        let data_key = keystore.generate_data_key(id.key_id(), DataKeyLength::Bits256, &options).unwrap();
        let same = keystore.decrypt(id.key_id(), &data_key.wrapped.bytes, &options).unwrap();
        assert_eq!(*same.bytes, *data_key.plaintext);
        let context = EncryptionOptions::default().context(b"c");
        let error = keystore.encrypt(id.key_id(), b"m", &context).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        keystore.update(id.key_id(), None, &KeyChange::Revoke(1.try_into().unwrap())).unwrap();
        let error = keystore.decrypt(id.key_id(), &made.bytes, &options).unwrap_err();
        assert_eq!(error.code, Code::VersionNotUsable);
        keystore.disable(id.key_id()).unwrap();
        assert_eq!(keystore.encrypt(id.key_id(), b"m", &options).unwrap_err().code, Code::KeyDisabled);
    }
}

#[test]
fn many_threads_that_find_a_key_of_rsa_due_rotate_it_once() {
    let keystore = Arc::new(Keystore::in_memory().unwrap());
    let policy = RotationPolicy::default().max_uses(std::num::NonZeroU64::new(8));
    let id = keystore.create_key(new(Algorithm::Rsa2048).rotation(policy)).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (keystore, id) = (Arc::clone(&keystore), id.clone());
            std::thread::spawn(move || {
                for _ in 0..4 {
                    let made = keystore.sign(id.key_id(), b"m").unwrap();
                    assert!(keystore.verify(&made.key, b"m", &made.bytes).unwrap().is_valid());
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(keystore.attest(id.key_id()).unwrap().latest_version, 2, "16 signatures, 8 of each version");
    assert_eq!(keystore.rotate_from(&id).unwrap_err().code, Code::Conflict);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_a_signature_of_a_curve_or_none(
        bytes in proptest::collection::vec(any::<u8>(), 0..160), which in 0..3usize,
    ) {
        let algorithm = [Algorithm::EcdsaP256, Algorithm::EcdsaP384, Algorithm::EcdsaP521][which];
        if let Some(signature) = ecdsa_from_der(algorithm, &bytes) {
            prop_assert_eq!(with_lower_s(algorithm, &signature), Some(signature));
        }
        let mut signature = bytes;
        signature.resize(algorithm.output_length(), 0);
        // The order of P-521 begins with one bit.
        if algorithm == Algorithm::EcdsaP521 {
            signature[0] = 0;
            signature[66] = 0;
        }
        if let Some(low) = with_lower_s(algorithm, &signature) {
            prop_assert_eq!(with_lower_s(algorithm, &low), Some(low.clone()));
            let der = ecdsa_to_der(algorithm, &low).unwrap();
            prop_assert_eq!(ecdsa_from_der(algorithm, &der), Some(low));
        }
    }

    #[test]
    fn any_bytes_are_no_private_key_of_rsa(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        for algorithm in RSA {
            prop_assert!(PrivateKeyData::read(&bytes, PrivateFormat::Raw, Some(algorithm), None).is_err());
        }
    }
}
