//! Keys in the formats of others: what goes out comes back, and nothing but the one form of it is
//! read.
#![cfg(feature = "transfer")]

use bulla_kms::backend::Backends;
use bulla_kms::transfer::{
    PrivateFormat, PrivateKeyData, PublicFormat, export_public, import_public, unwrap_aes_kwp, wrap_aes_kwp,
};
use bulla_kms::{Algorithm, Code, Keystore, NewKey, Origin, PublicKey, Verdict};
use proptest::prelude::*;

const FORMATS: [PublicFormat; 6] = [
    PublicFormat::Pem,
    PublicFormat::Der,
    PublicFormat::Raw,
    PublicFormat::OpenSsh,
    PublicFormat::Jwk,
    PublicFormat::Minisign,
];

fn served() -> impl Iterator<Item = Algorithm> {
    let has_public_keys = |algorithm: &Algorithm| !algorithm.is_symmetric();
    let is_served = |algorithm: &Algorithm| Backends::software().verifier(*algorithm).is_ok();
    Algorithm::ALL.iter().copied().filter(has_public_keys).filter(is_served)
}

fn new_key(algorithm: Algorithm) -> NewKey {
    NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), algorithm)
}

fn public_key(algorithm: Algorithm) -> PublicKey {
    let keystore = Keystore::in_memory().unwrap();
    let id = keystore.create_key(new_key(algorithm)).unwrap();
    keystore.public_key(&id).unwrap()
}

/// RFC 8032, section 7.1, test 1.
const SEED: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const PUBLIC: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn example() -> PublicKey {
    PublicKey::from_bytes(Algorithm::Ed25519, &bytes(PUBLIC)).unwrap()
}

#[test]
fn what_is_exported_is_read_as_the_same_key() {
    let mut read = 0;
    for algorithm in served() {
        let key = public_key(algorithm);
        for format in FORMATS {
            // `a_format_without_a_form_for_an_algorithm_says_so` has the list of those.
            let text = match export_public(&key, format) {
                Err(error) if error.code == Code::UnsupportedFormat => continue,
                text => text.unwrap(),
            };
            read += 1;
            assert_eq!(
                import_public(&text, format, Some(algorithm)).unwrap(),
                key,
                "{algorithm}, {format:?}"
            );
            let other = if algorithm == Algorithm::Ed25519 { Algorithm::MlDsa44 } else { Algorithm::Ed25519 };
            // Raw bytes of the right length may be a key of the other algorithm too: they say
            // nothing of theirs.
            let refused = import_public(&text, format, Some(other)).is_err();
            assert!(refused || format == PublicFormat::Raw, "{algorithm}, {format:?}");
        }
    }
    // Every algorithm in PEM, in DER and raw, and Ed25519 in three forms more.
    assert!(read >= 3 * served().count() + 3, "{read}");
}

#[test]
fn a_format_without_a_form_for_an_algorithm_says_so() {
    let all = |algorithm| {
        let key = public_key(algorithm);
        FORMATS.map(|format| export_public(&key, format).err().map(|error| error.code))
    };
    assert_eq!(all(Algorithm::Ed25519), [None; 6]);
    for algorithm in served().filter(|algorithm| *algorithm != Algorithm::Ed25519) {
        let refused = Some(Code::UnsupportedFormat);
        let is_ml_dsa = algorithm.as_str().starts_with("ml-dsa-") && algorithm != Algorithm::MlDsa65Ed25519;
        let has_jwk = algorithm.can_sign_digests() || algorithm.usage() == bulla_kms::KeyUsage::KeyAgreement;
        let jwk = if is_ml_dsa || has_jwk { None } else { refused };
        assert_eq!(all(algorithm), [None, None, None, refused, jwk, refused], "{algorithm}");
    }
}

/// RFC 8410, section 10.1, has this form of a public key; RFC 8037, appendix A.2, and the manual of
/// ssh-keygen the other ones.
#[test]
fn an_ed25519_key_has_the_published_forms() {
    let text = |format| String::from_utf8(export_public(&example(), format).unwrap()).unwrap();
    assert_eq!(
        text(PublicFormat::Pem),
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n"
    );
    assert_eq!(
        text(PublicFormat::Jwk),
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}\n"
    );
    assert_eq!(
        text(PublicFormat::OpenSsh),
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea\n"
    );
}

#[test]
fn public_keys_have_one_form_in_each_format() {
    let refused = |format, text: &str| {
        let error = import_public(text.as_bytes(), format, None).unwrap_err();
        assert_eq!(error.code, Code::InvalidPublicKey, "{format:?} {text:?}: {error}");
    };
    let pem = String::from_utf8(export_public(&example(), PublicFormat::Pem).unwrap()).unwrap();
    refused(PublicFormat::Pem, &pem.replace('\n', "\r\n"));
    refused(PublicFormat::Pem, pem.trim_end());
    refused(PublicFormat::Pem, &format!("# a remark\n{pem}"));
    refused(PublicFormat::Pem, &format!("{pem}{pem}"));
    refused(PublicFormat::Pem, &pem.replace("MCowBQ", "MCow\nBQ"));
    refused(PublicFormat::Pem, &pem.replace("PUBLIC KEY", "CERTIFICATE"));
    let ssh = String::from_utf8(export_public(&example(), PublicFormat::OpenSsh).unwrap()).unwrap();
    let with_comment = ssh.replace('\n', " me@here\n");
    assert_eq!(import_public(with_comment.as_bytes(), PublicFormat::OpenSsh, None).unwrap(), example());
    refused(PublicFormat::OpenSsh, &format!("no-pty {ssh}"));
    refused(PublicFormat::OpenSsh, &format!("{ssh}{ssh}"));
    refused(PublicFormat::OpenSsh, &ssh.replace("ssh-ed25519 ", "ssh-ed25519  "));
    let minisign = String::from_utf8(export_public(&example(), PublicFormat::Minisign).unwrap()).unwrap();
    let line = minisign.lines().nth(1).unwrap();
    assert_eq!(import_public(line.as_bytes(), PublicFormat::Minisign, None).unwrap(), example());
    refused(PublicFormat::Minisign, &format!("{minisign}more\n"));
    refused(PublicFormat::Minisign, &line.replacen("RW", "RU", 1));
}

#[test]
fn a_json_web_key_is_understood_whole_or_not_at_all() {
    let read = |text: &str| import_public(text.as_bytes(), PublicFormat::Jwk, None);
    let x = "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"";
    for text in [
        format!("{{\"crv\":\"Ed25519\", \"kty\":\"OKP\", {x}}}"),
        format!(
            "{{\"kty\":\"OKP\",\"alg\":\"EdDSA\",\"crv\":\"Ed25519\",{x},\"kid\":\"me\",\"use\":\"sig\"}}"
        ),
        format!("{{\"kty\":\"OKP\",\"alg\":\"Ed25519\",\"crv\":\"Ed25519\",{x},\"key_ops\":[\"verify\"]}}"),
    ] {
        assert_eq!(read(&text).unwrap(), example(), "{text}");
    }
    for text in [
        format!(
            "{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",{x},\"d\":\"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A\"}}"
        ),
        format!("{{\"kty\":\"OKP\",\"crv\":\"X448\",{x}}}"),
        format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",{x},{x}}}"),
        format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",{x},\"use\":\"enc\"}}"),
        format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",{x},\"key_ops\":[\"sign\"]}}"),
        format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",{x},\"x5u\":\"https://example.org\"}}"),
        format!("{{\"kty\":\"AKP\",\"alg\":\"ML-DSA-44\",{x}}}"),
        format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",{x}}} more"),
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"}"
            .to_owned(),
        "{\"kty\":\"OKP\",\"crv\":\"Ed25519\"}".to_owned(),
        "[]".to_owned(),
    ] {
        assert_eq!(read(&text).unwrap_err().code, Code::InvalidPublicKey, "{text}");
    }
    let private = read(&format!("{{\"kty\":\"OKP\",\"crv\":\"Ed25519\",{x},\"d\":\"nWGx\"}}")).unwrap_err();
    assert!(private.message.contains("private key") && !private.message.contains("nWGx"), "{private}");
}

/// The public key of RFC 7517, appendix A.1.
#[test]
fn a_p256_key_has_the_published_json_web_key() {
    let read = |text: &str| import_public(text.as_bytes(), PublicFormat::Jwk, None);
    let (x, y) =
        ("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM");
    let text = format!("{{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"{x}\",\"y\":\"{y}\"}}\n");
    let key = read(&text).unwrap();
    assert_eq!(key.algorithm(), Algorithm::EcdsaP256);
    assert_eq!(String::from_utf8(export_public(&key, PublicFormat::Jwk).unwrap()).unwrap(), text);
    let with = |members: &str| text.replace("\"kty\"", &format!("{members},\"kty\""));
    assert_eq!(read(&with("\"alg\":\"ES256\",\"use\":\"sig\",\"kid\":\"1\"")).unwrap(), key);
    for other in [
        with("\"alg\":\"ES384\""),
        with("\"use\":\"enc\""),
        with("\"pub\":\"AAAA\""),
        text.replace("P-256", "P-384"),
        text.replace("\"kty\":\"EC\"", "\"kty\":\"OKP\""),
        text.replace("\"y\":", "\"d\":"),
        text.replace(y, x),
        text.replace(y, &y[..42]),
        text.replace(&format!("\"{x}\",\"y\":\"{y}\""), &format!("\"{x}{y}\",\"y\":\"\"")),
        text.replace(&format!(",\"y\":\"{y}\""), ""),
    ] {
        assert_eq!(read(&other).unwrap_err().code, Code::InvalidPublicKey, "{other}");
    }
}

#[test]
fn a_key_of_small_order_is_read_in_no_format() {
    let mut weak = vec![0; 32];
    weak[0] = 1;
    assert!(import_public(&weak, PublicFormat::Raw, Some(Algorithm::Ed25519)).is_err());
    let der = [&bytes("302a300506032b6570032100"), weak.as_slice()].concat();
    assert_eq!(import_public(&der, PublicFormat::Der, None).unwrap_err().code, Code::InvalidPublicKey);
}

#[test]
fn every_flipped_bit_of_a_public_key_is_another_key_or_none() {
    for format in FORMATS {
        let text = export_public(&example(), format).unwrap();
        for index in 0..text.len() {
            assert!(
                format == PublicFormat::Minisign
                    || import_public(&text[..index], format, Some(Algorithm::Ed25519)).is_err()
                    || (format == PublicFormat::OpenSsh || format == PublicFormat::Jwk)
                        && index == text.len() - 1,
                "{format:?} cut at {index}"
            );
            for bit in 0..8 {
                let mut flipped = text.clone();
                flipped[index] ^= 1 << bit;
                if let Ok(key) = import_public(&flipped, format, Some(Algorithm::Ed25519)) {
                    // The comment of minisign, its key id and the white space of JSON do not belong
                    // to the key.
                    let outside =
                        matches!(format, PublicFormat::Minisign | PublicFormat::Jwk | PublicFormat::OpenSsh);
                    assert!(key != example() || outside, "{format:?}, byte {index}, bit {bit}");
                }
            }
        }
    }
}

fn pkcs8() -> Vec<u8> {
    [bytes("302e020100300506032b657004220420"), bytes(SEED)].concat()
}

fn pem(der: &[u8]) -> String {
    use base64ct::Encoding as _;
    let encoded = base64ct::Base64::encode_string(der);
    let lines: Vec<_> =
        encoded.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
}

fn read(bytes: &[u8], format: PrivateFormat) -> bulla_kms::Result<PrivateKeyData> {
    PrivateKeyData::read(bytes, format, None, None)
}

#[test]
fn pkcs8_of_both_versions_is_read() {
    let v1 = pkcs8();
    let v2 =
        [bytes("3051020101300506032b657004220420"), bytes(SEED), bytes("812100"), bytes(PUBLIC)].concat();
    for der in [&v1, &v2] {
        assert_eq!(*read(der, PrivateFormat::Pkcs8Der).unwrap().public_key().unwrap(), example());
        assert_eq!(
            *read(pem(der).as_bytes(), PrivateFormat::Pkcs8Pem).unwrap().public_key().unwrap(),
            example()
        );
    }
    let raw = PrivateKeyData::read(&bytes(SEED), PrivateFormat::Raw, Some(Algorithm::Ed25519), None).unwrap();
    assert_eq!(*raw.public_key().unwrap(), example());
    assert_eq!(read(&bytes(SEED), PrivateFormat::Raw).unwrap_err().code, Code::InvalidArgument);
}

/// A running OpenBao exported both, and showed these public keys.
#[test]
fn keys_are_read_as_vault_exports_them() {
    let ed25519 = "/+lxJZJgQ6WMz40Q+k5Y/rJSmHDWDSysXTdTclWULfRdGrNMRoMo21FVLaexl5+irzi8b9++/xkRaA57cntEiQ==";
    let p256 = "-----BEGIN EC PRIVATE KEY-----\n\
        MHcCAQEEILzJ3+t/1mCcJPIdNEayEDnMkiqB95HkpzgTNAY40VpboAoGCCqGSM49\n\
        AwEHoUQDQgAECc+xG6mFKRbZv7Fx8KZrfbmjUCBHiojAscZBg1TTQ9GNapjxCkOs\n\
        YzdjSb9S43ruFQw5BNjraZmeqzKD2Ry3rA==\n-----END EC PRIVATE KEY-----";
    let public = [
        (ed25519, "XRqzTEaDKNtRVS2nsZefoq84vG/fvv8ZEWgOe3J7RIk="),
        (p256, "ecdsa-p256:AgnPsRuphSkW2b+xcfCma325o1AgR4qIwLHGQYNU00PR"),
    ];
    for (text, public_key) in public {
        for text in [text.to_owned(), format!("{text}\n")] {
            let key = read(text.as_bytes(), PrivateFormat::Vault).unwrap();
            assert_eq!(key.public_key().unwrap().to_string(), public_key);
        }
        let others = [
            format!("{text}\n\n"),
            format!(" {text}"),
            text.replace("MHcCAQEE", "MHcCAQIE").replace("/+lx", "/-lx"),
            text.replace("3rA==", "3rB==").replace("iQ==", "iR=="),
            text.replace("Ry3rA", "Ry3qA").replace("fRdGr", "fRdGs"),
            text.replace("EC PRIVATE", "PRIVATE").replace("iQ==", ""),
            text.replace('\n', "\r\n").replace("iQ==", "iQ==\r\n"),
            text[..text.len() / 2].to_owned(),
        ];
        for other in others {
            let error = read(other.as_bytes(), PrivateFormat::Vault).unwrap_err();
            assert_eq!(error.code, Code::MalformedKey, "{other}");
        }
    }
    let other =
        PrivateKeyData::read(ed25519.as_bytes(), PrivateFormat::Vault, Some(Algorithm::EcdsaP256), None);
    assert_eq!(other.unwrap_err().code, Code::InvalidArgument);
}

/// RFC 8410, section 10.3: a key of version 2 with an attribute. What we would not heed we do not
/// take.
#[test]
fn pkcs8_with_attributes_is_refused() {
    let text = "-----BEGIN PRIVATE KEY-----\n\
        MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB\n\
        Z9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PRIVATE KEY-----\n";
    let error = read(text.as_bytes(), PrivateFormat::Pkcs8Pem).unwrap_err();
    assert_eq!(error.code, Code::MalformedKey);
    assert!(error.message.contains("attributes"), "{error}");
}

#[test]
fn a_public_key_that_is_not_its_own_is_refused() {
    let other = public_key(Algorithm::Ed25519);
    let der =
        [bytes("3051020101300506032b657004220420"), bytes(SEED), bytes("812100"), other.as_bytes().to_vec()];
    let error = read(&der.concat(), PrivateFormat::Pkcs8Der).unwrap_err();
    assert_eq!((error.code, error.message.contains("not its own")), (Code::MalformedKey, true));
}

#[test]
fn other_forms_of_private_keys_are_named_and_refused() {
    let says = |text: &str, what: &str| {
        let error = read(text.as_bytes(), PrivateFormat::Pkcs8Pem).unwrap_err();
        assert!(error.code == Code::MalformedKey && error.message.contains(what), "{error}");
    };
    let good = pem(&pkcs8());
    says(&good.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), "encrypted PKCS#8");
    says(&good.replace("PRIVATE KEY", "EC PRIVATE KEY"), "label");
    says(&good.replace('\n', "\r\n"), "64 characters");
    says(&format!("{good}\n"), "");
    says(&String::from_utf8(export_public(&example(), PublicFormat::Pem).unwrap()).unwrap(), "public key");
    let mut rsa = pkcs8();
    rsa[10] ^= 1;
    assert!(read(&rsa, PrivateFormat::Pkcs8Der).unwrap_err().message.contains("not known here"));
}

#[test]
fn every_cut_and_flipped_bit_of_pkcs8_is_another_key_or_none() {
    let good = pkcs8();
    for index in 0..good.len() {
        assert!(read(&good[..index], PrivateFormat::Pkcs8Der).is_err());
        for bit in 0..8 {
            let mut flipped = good.clone();
            flipped[index] ^= 1 << bit;
            if let Ok(key) = read(&flipped, PrivateFormat::Pkcs8Der) {
                assert_ne!(*key.public_key().unwrap(), example(), "byte {index}, bit {bit}");
            }
        }
    }
}

#[cfg(feature = "mldsa")]
#[test]
fn seeds_of_mldsa_are_read_alone_and_beside_the_right_expanded_key() {
    let seed = [7_u8; 32];
    let data = PrivateKeyData::read(&seed, PrivateFormat::Raw, Some(Algorithm::MlDsa44), None).unwrap();
    let algorithm = bytes("300b0609608648016503040311");
    let wrap = |tag: u8, inner: &[u8]| {
        let length = u16::try_from(inner.len()).unwrap().to_be_bytes();
        let length = match inner.len() {
            0..0x80 => vec![length[1]],
            0x80..0x100 => vec![0x81, length[1]],
            _ => vec![0x82, length[0], length[1]],
        };
        [&[tag], length.as_slice(), inner].concat()
    };
    let document = |inner: &[u8]| wrap(0x30, &[&[2, 1, 0], algorithm.as_slice(), &wrap(4, inner)].concat());
    let alone = document(&wrap(0x80, &seed));
    assert_eq!(read(&alone, PrivateFormat::Pkcs8Der).unwrap().public_key(), data.public_key());
    let expanded = {
        use ml_dsa::{MlDsa44, SigningKey};
        #[allow(deprecated)]
        SigningKey::<MlDsa44>::from_seed(&seed.into()).expanded_key().to_expanded().to_vec()
    };
    let both = |expanded: &[u8]| document(&wrap(0x30, &[wrap(4, &seed), wrap(4, expanded)].concat()));
    assert_eq!(read(&both(&expanded), PrivateFormat::Pkcs8Der).unwrap().public_key(), data.public_key());
    let mut other = expanded.clone();
    other[40] ^= 1;
    assert!(read(&both(&other), PrivateFormat::Pkcs8Der).unwrap_err().message.contains("expanded"));
    let error = read(&document(&wrap(4, &expanded)), PrivateFormat::Pkcs8Der).unwrap_err();
    assert!(error.message.contains("expanded key alone"), "{error}");
}

#[cfg(feature = "slhdsa")]
#[test]
fn an_slhdsa_key_whose_root_is_another_ones_is_refused() {
    let key = [9_u8; 64];
    let error =
        PrivateKeyData::read(&key, PrivateFormat::Raw, Some(Algorithm::SlhDsaShake128f), None).unwrap_err();
    assert!(error.code == Code::MalformedKey && error.message.contains("do not fit"), "{error}");
}

#[test]
fn openssh_text_that_is_no_key_is_refused() {
    for text in
        ["", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n", &pem(&pkcs8())]
    {
        assert_eq!(read(text.as_bytes(), PrivateFormat::OpenSsh).unwrap_err().code, Code::MalformedKey);
    }
}

#[test]
fn an_imported_key_signs_and_is_marked_as_imported() {
    let keystore = Keystore::in_memory().unwrap();
    let data = read(&pkcs8(), PrivateFormat::Pkcs8Der).unwrap();
    let id = keystore.import_key(new_key(Algorithm::Ed25519), &data).unwrap();
    let signature = keystore.sign(&id, b"").unwrap();
    assert!(signature.bytes.starts_with(&bytes("e5564300c360ac72")), "RFC 8032, test 1");
    assert_eq!(keystore.verify(&id, b"", &signature.bytes).unwrap(), Verdict::Valid);
    let origin = |version: usize| keystore.attest(id.key_id()).unwrap().versions[version].origin;
    assert_eq!(origin(0), Origin::Imported);
    keystore.rotate(id.key_id()).unwrap();
    assert_eq!(origin(1), Origin::Generated);
    // The same key again would not replace it.
    let again = keystore.import_version(id.key_id(), &data).unwrap_err();
    assert_eq!(again.code, Code::InvalidArgument);
    let other = PrivateKeyData::read(&[5; 32], PrivateFormat::Raw, Some(Algorithm::Ed25519), None).unwrap();
    assert_eq!(keystore.import_version(id.key_id(), &other).unwrap().version(), 3);
    assert_eq!(origin(2), Origin::Imported);
    assert_eq!(
        keystore.public_key(&keystore.sign(id.key_id(), b"m").unwrap().key).unwrap(),
        *other.public_key().unwrap()
    );
}

#[test]
fn a_public_key_alone_verifies_and_does_nothing_else() {
    let signer = Keystore::in_memory().unwrap();
    let theirs = signer.create_key(new_key(Algorithm::Ed25519)).unwrap();
    let signature = signer.sign(&theirs, b"m").unwrap();
    let keystore = Keystore::in_memory().unwrap();
    let public = signer.public_key(&theirs).unwrap();
    let id = keystore.import_public_key(new_key(Algorithm::Ed25519), &public).unwrap();
    let key_id = id.key_id();
    assert_eq!(keystore.verify(&id, b"m", &signature.bytes).unwrap(), Verdict::Valid);
    assert_eq!(keystore.sign(&id, b"m").unwrap_err().code, Code::NoPrivateKey);
    assert_eq!(keystore.rotate(key_id).unwrap_err().code, Code::NoPrivateKey);
    assert_eq!(keystore.attest_signed(key_id).unwrap_err().code, Code::NoPrivateKey);
    let data = PrivateKeyData::read(&[5; 32], PrivateFormat::Raw, Some(Algorithm::Ed25519), None).unwrap();
    assert_eq!(keystore.import_version(key_id, &data).unwrap_err().code, Code::NoPrivateKey);
    let second = signer.rotate(theirs.key_id()).unwrap();
    let public = signer.public_key(&second).unwrap();
    let second = keystore.import_public_version(key_id, &public).unwrap();
    assert_eq!(second.version(), 2);
    assert_eq!(keystore.import_public_version(key_id, &public).unwrap_err().code, Code::InvalidArgument);
    let signature = signer.sign(theirs.key_id(), b"n").unwrap();
    assert_eq!(keystore.verify(&second, b"n", &signature.bytes).unwrap(), Verdict::Valid);
    let own = keystore.create_key(new_key(Algorithm::Ed25519)).unwrap();
    assert_eq!(
        keystore.import_public_version(own.key_id(), &public).unwrap_err().code,
        Code::InvalidArgument,
        "a key with private keys takes no public key"
    );
}

#[test]
fn imported_keys_are_there_when_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, key_file) = (folder.path().join("store"), folder.path().join("key"));
    bulla_kms::KeyFile::create(&key_file).unwrap();
    let unlock = bulla_kms::Unlock::KeyFile(key_file);
    let keystore = Keystore::create(&path, &unlock).unwrap();
    let data = read(&pkcs8(), PrivateFormat::Pkcs8Der).unwrap();
    let private = keystore.import_key(new_key(Algorithm::Ed25519), &data).unwrap();
    let public = keystore.import_public_key(new_key(Algorithm::Ed25519), &example()).unwrap();
    drop(keystore);
    let keystore = Keystore::open(&path, &unlock).unwrap();
    let signature = keystore.sign(&private, b"m").unwrap();
    assert_eq!(keystore.verify(&public, b"m", &signature.bytes).unwrap(), Verdict::Valid);
    assert_eq!(keystore.sign(&public, b"m").unwrap_err().code, Code::NoPrivateKey);
    assert_eq!(keystore.attest(public.key_id()).unwrap().versions[0].origin, Origin::PublicOnly);
}

#[test]
fn aes_kwp_unwraps_what_it_wraps_and_nothing_that_was_changed() {
    let key = [3; 32];
    for length in [1, 7, 8, 9, 48, 100] {
        let secret = vec![length as u8; length];
        let wrapped = wrap_aes_kwp(&key, &secret).unwrap();
        assert_eq!(wrapped.len(), length.div_ceil(8) * 8 + 8);
        assert_eq!(*unwrap_aes_kwp(&key, &wrapped).unwrap(), secret);
        assert!(unwrap_aes_kwp(&[4; 32], &wrapped).is_err());
        for index in 0..wrapped.len() {
            assert!(unwrap_aes_kwp(&key, &wrapped[..index]).is_err());
            for bit in 0..8 {
                let mut flipped = wrapped.clone();
                flipped[index] ^= 1 << bit;
                assert_eq!(unwrap_aes_kwp(&key, &flipped).unwrap_err().code, Code::MalformedKey);
            }
        }
    }
    assert_eq!(wrap_aes_kwp(&key, b"").unwrap_err().code, Code::InvalidArgument);
}

#[test]
fn aes_kwp_of_nothing_is_unwrapped_under_no_key() {
    // The header of nothing: Wycheproof's test 253 of AES-KWP.
    let nothing = bytes("a65959a600000000");
    for key in [[0; 32], [3; 32], [0xff; 32]] {
        assert_eq!(unwrap_aes_kwp(&key, &nothing).unwrap_err().code, Code::MalformedKey);
    }
    assert_eq!(unwrap_aes_kwp(&[3; 32], b"").unwrap_err().code, Code::MalformedKey);
}

#[test]
fn a_private_key_prints_nothing_of_itself() {
    let data = read(&pkcs8(), PrivateFormat::Pkcs8Der).unwrap();
    let shown = format!("{data:?}");
    assert!(shown.contains("11qYAYKx") && !shown.contains("9d61") && !shown.contains("157, 97"), "{shown}");
}

proptest! {
    #[test]
    fn no_input_makes_a_reader_panic(input in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in FORMATS {
            let _ = import_public(&input, format, None);
        }
        for format in [PrivateFormat::Pkcs8Pem, PrivateFormat::Pkcs8Der, PrivateFormat::OpenSsh] {
            let _ = read(&input, format);
        }
        let _ = String::from_utf8_lossy(&input).parse::<bulla_kms::transfer::WrappedPrivateKey>();
    }
}
