//! Signature files: what they bind, and that their text has one form.

use bulla_kms::prehash::Prehash;
use bulla_kms::signature::{Comment, MAX_COMMENT_LEN, RESERVED_PREFIX, SignedName};
use bulla_kms::{
    Algorithm, Code, KeyId, Keystore, NewKey, PublicKey, SignatureFile, Statement, StatementKind, Timestamp,
    Verdict,
};
use proptest::prelude::*;

const KINDS: [StatementKind; 3] = [StatementKind::File, StatementKind::Manifest, StatementKind::Message];

fn keystore() -> (Keystore, KeyId) {
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    let key = keystore.create_key(new).unwrap().key_id().clone();
    (keystore, key)
}

fn statement(kind: StatementKind) -> Statement {
    Statement::new(kind, bulla_blake3::hash(b"content"), 7)
        .comment("release 7, built by hand".parse().unwrap())
}

fn signed(kind: StatementKind) -> SignatureFile {
    let (keystore, key) = keystore();
    SignatureFile::sign(&keystore, &key, statement(kind)).unwrap()
}

/// A file whose every field is known.
fn fixed() -> SignatureFile {
    SignatureFile {
        kind: StatementKind::File,
        key: "local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3".parse().unwrap(),
        public_key: "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=".parse().unwrap(),
        digest: bulla_blake3::hash(b""),
        size: 0,
        signed_at: Timestamp::from_unix_millis(1_769_851_800_123).unwrap(),
        comment: "a word".parse().unwrap(),
        name: None,
        prehash: None,
        signature: vec![0x5a; 64],
    }
}

const FIXED: &str = "\
bulla signature v1
kind: file
key: local/files/ed25519/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3
public-key: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
digest-algorithm: blake3
digest: af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262
size: 0
time: 2026-01-31T09:30:00.123Z
comment: a word
signature: WlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWlpaWg==
";

#[test]
fn the_text_is_that_of_the_specification() {
    assert_eq!(fixed().to_string(), FIXED);
    assert_eq!(SignatureFile::parse(FIXED.as_bytes()).unwrap(), fixed());
    let expected =
        [&b"bulla signature\0v1\0file\0"[..], FIXED.split("signature: ").next().unwrap().as_bytes()].concat();
    assert_eq!(fixed().signed_bytes(), expected);
}

#[test]
fn an_empty_comment_has_no_space() {
    let file = SignatureFile { comment: Comment::default(), ..fixed() };
    assert_eq!(file.to_string(), FIXED.replace("comment: a word", "comment:"));
    assert_eq!(SignatureFile::parse(file.to_string().as_bytes()).unwrap(), file);
}

#[test]
fn a_signature_verifies_with_the_key_that_made_it() {
    for kind in KINDS {
        let (keystore, key) = keystore();
        let file = SignatureFile::sign(&keystore, &key, statement(kind)).unwrap();
        let read = SignatureFile::parse(file.to_string().as_bytes()).unwrap();
        assert_eq!(read, file);
        let public_key = keystore.public_key(&file.key).unwrap();
        assert_eq!(read.verify_with(&public_key), Verdict::Valid);
        assert_eq!(read.verify_in(&keystore).unwrap(), Verdict::Valid);
        keystore.rotate(&key).unwrap();
        assert_eq!(read.verify_in(&keystore).unwrap(), Verdict::Valid, "{kind}: after a rotation");
    }
}

#[test]
fn another_key_or_another_keystore_does_not_verify() {
    let (keystore, key) = keystore();
    let file = SignatureFile::sign(&keystore, &key, statement(StatementKind::File)).unwrap();
    let second = keystore.rotate(&key).unwrap();
    let other = keystore.public_key(&second).unwrap();
    assert_eq!(file.verify_with(&other), Verdict::Invalid);
    assert_eq!(Keystore::in_memory().unwrap().list().unwrap(), []);
    assert_eq!(file.verify_in(&Keystore::in_memory().unwrap()).unwrap_err().code, Code::KeyNotFound);
    let unknown = SignatureFile { key: key.version(9.try_into().unwrap()), ..file.clone() };
    assert_eq!(unknown.verify_in(&keystore).unwrap_err().code, Code::UnknownVersion);
    // A stranger signs with his own key under our key's name.
    let (stranger, strange_key) = self::keystore();
    let forged = SignatureFile::sign(&stranger, &strange_key, statement(StatementKind::File)).unwrap();
    let forged = SignatureFile { key: file.key.clone(), ..forged };
    assert_eq!(forged.verify_in(&keystore).unwrap(), Verdict::Invalid);
}

#[test]
fn every_field_is_signed() {
    let file = signed(StatementKind::File);
    let valid = |file: &SignatureFile| file.public_key.verify(&file.signed_bytes(), &file.signature);
    assert_eq!(valid(&file), Verdict::Valid);
    let other_key = signed(StatementKind::File);
    let mut signature = file.signature.clone();
    signature[63] ^= 1;
    for changed in [
        SignatureFile { kind: StatementKind::Manifest, ..file.clone() },
        SignatureFile { kind: StatementKind::Message, ..file.clone() },
        SignatureFile { key: other_key.key, ..file.clone() },
        SignatureFile { key: file.key.key_id().version(2.try_into().unwrap()), ..file.clone() },
        SignatureFile { public_key: other_key.public_key, ..file.clone() },
        SignatureFile { digest: bulla_blake3::hash(b"other"), ..file.clone() },
        SignatureFile { size: 8, ..file.clone() },
        SignatureFile {
            signed_at: Timestamp::from_unix_millis(file.signed_at.unix_millis() + 1).unwrap(),
            ..file.clone()
        },
        SignatureFile { comment: "release 8, built by hand".parse().unwrap(), ..file.clone() },
        SignatureFile { signature, ..file.clone() },
    ] {
        assert_eq!(changed.verify_with(&file.public_key), Verdict::Invalid, "{changed}");
    }
}

#[test]
fn no_signature_of_one_kind_is_one_of_another() {
    let (keystore, key) = keystore();
    for kind in KINDS {
        let file = SignatureFile::sign(&keystore, &key, statement(kind)).unwrap();
        for other in KINDS.into_iter().filter(|other| *other != kind) {
            let relabeled = SignatureFile { kind: other, ..file.clone() };
            assert_eq!(relabeled.verify_in(&keystore).unwrap(), Verdict::Invalid, "{kind} as {other}");
        }
    }
}

#[test]
fn no_kinds_bytes_begin_with_anothers() {
    for kind in KINDS {
        let bytes = signed(kind).signed_bytes();
        assert!(bytes.starts_with(RESERVED_PREFIX));
        for other in KINDS.into_iter().filter(|other| *other != kind) {
            let prefix = [RESERVED_PREFIX, b"v1\0", other.as_str().as_bytes(), b"\0"].concat();
            assert!(!bytes.starts_with(&prefix));
        }
    }
}

#[test]
fn a_callers_message_cannot_be_that_of_a_signature_file() {
    let (keystore, key) = keystore();
    for kind in KINDS {
        let file = SignatureFile::sign(&keystore, &key, statement(kind)).unwrap();
        assert_eq!(keystore.sign(&key, &file.signed_bytes()).unwrap_err().code, Code::ReservedMessage);
    }
    assert_eq!(keystore.sign(&key, RESERVED_PREFIX).unwrap_err().code, Code::ReservedMessage);
    // The text of a signature file is no such message, nor is one that only looks like it.
    let text = signed(StatementKind::File).to_string();
    for message in [text.as_bytes(), b"", b"bulla signature", b"bulla signature\n", &RESERVED_PREFIX[1..]] {
        assert!(keystore.sign(&key, message).is_ok());
    }
}

#[test]
fn a_message_statement_is_about_the_message() {
    let (keystore, key) = keystore();
    let file = SignatureFile::sign(&keystore, &key, Statement::message(b"a message")).unwrap();
    assert_eq!((file.kind, file.size), (StatementKind::Message, 9));
    assert_eq!(file.digest, bulla_blake3::hash(b"a message"));
    assert_eq!(file.comment.as_str(), "");
}

#[test]
fn a_disabled_key_makes_no_signature_file() {
    let (keystore, key) = keystore();
    let id = keystore.rotate(&key).unwrap();
    let old = key.version(1.try_into().unwrap());
    assert_eq!(
        SignatureFile::sign(&keystore, &old, statement(StatementKind::File)).unwrap_err().code,
        Code::NotLatestVersion
    );
    assert_eq!(SignatureFile::sign(&keystore, &id, statement(StatementKind::File)).unwrap().key, id);
    keystore.disable(&key).unwrap();
    assert_eq!(
        SignatureFile::sign(&keystore, &key, statement(StatementKind::File)).unwrap_err().code,
        Code::KeyDisabled
    );
}

/// Each edit breaks one rule; the error names the line, and the field where it has a name.
#[test]
fn malformed_files_are_refused_with_the_line_and_the_field() {
    let long_line = format!("comment: {}", "x".repeat(5000));
    let long_comment = format!("comment: {}", "x".repeat(MAX_COMMENT_LEN + 1));
    for (from, to, place) in [
        ("bulla signature v1", "bulla signature", "line 1"),
        ("bulla signature v1", "bulla signature v0", "line 1"),
        ("bulla signature v1", "bulla signature v01", "line 1"),
        ("bulla signature v1", "bulla signature v02", "line 1"),
        ("bulla signature v1", "Bulla signature v1", "line 1"),
        ("bulla signature v1", "\u{feff}bulla signature v1", "line 1"),
        ("bulla signature v1\n", "bulla signature v1\n\n", "line 2, kind"),
        ("bulla signature v1\n", "bulla signature v1\r\n", "line 1, format"),
        ("kind: file", "kind: folder", "line 2, kind"),
        ("kind: file", "kind:file", "line 2, kind"),
        ("kind: file", "kind:  file", "line 2, kind"),
        ("kind: file", "kind: file ", "line 2, kind"),
        ("kind: file", "StatementKind: file", "line 2, kind"),
        ("kind: file", "kind file", "line 2, kind"),
        ("kind: file", "kind:", "line 2, kind"),
        ("kind: file\n", "", "line 2, kind"),
        ("/v3", "/v03", "line 3, key"),
        ("public-key: 1", "public-key: !", "line 4, public-key"),
        (
            "public-key: 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            "public-key: AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "line 4, public-key",
        ),
        ("digest-algorithm: blake3", "digest-algorithm: sha256", "line 5, digest-algorithm"),
        ("digest: af", "digest: AF", "line 6, digest"),
        ("digest: af", "digest: a", "line 6, digest"),
        ("digest: af", "digest: zz", "line 6, digest"),
        ("size: 0", "size: 00", "line 7, size"),
        ("size: 0", "size: -0", "line 7, size"),
        ("size: 0", "size: +0", "line 7, size"),
        ("size: 0", "size: 18446744073709551616", "line 7, size"),
        ("size: 0", "size: 0x0", "line 7, size"),
        (".123Z", "Z", "line 8, time"),
        ("2026-01-31", "2026-02-31", "line 8, time"),
        ("comment: a word", "comment: ", "line 9, comment"),
        ("comment: a word", "comment:  a word", "line 9, comment"),
        ("comment: a word", "comment: a word ", "line 9, comment"),
        ("comment: a word", "comment: a\tword", "line 9, comment"),
        ("comment: a word", "comment: a\u{202e}word", "line 9, comment"),
        ("comment: a word", "comment: a\u{2028}word", "line 9, comment"),
        ("comment: a word", "comment: a\0word", "line 9, comment"),
        ("comment: a word", "comment: a\u{7f}word", "line 9, comment"),
        ("comment: a word", "comment: a\u{85}word", "line 9, comment"),
        ("comment: a word", "comment: a\rword", "line 9, comment"),
        ("comment: a word", &long_line, "line 9, comment: it is longer than 4095 bytes"),
        ("comment: a word", &long_comment, "line 9, comment"),
        ("comment: a word\n", "comment: a word\ncomment: a word\n", "line 10, signature"),
        ("Wg==\n", "Wg=\n", "line 10, signature"),
        ("Wg==\n", "Wh==\n", "line 10, signature"),
        ("Wg==\n", "Wg== \n", "line 10, signature"),
        ("Wg==\n", "Wg==", "line 10, signature: it is cut"),
        ("Wg==\n", "Wg==\n\n", "after the line of the signature"),
        ("Wg==\n", "Wg==\nmore", "after the line of the signature"),
    ] {
        assert_eq!(FIXED.matches(from).count(), 1, "{from} is there once");
        let error = SignatureFile::parse(FIXED.replace(from, to).as_bytes()).expect_err(to);
        assert_eq!(error.code, Code::MalformedSignature, "{to:?}");
        assert!(error.message.contains(place), "{to:?}: {error}");
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_refused_with_the_line() {
    let at = FIXED.find("a word").unwrap();
    let mut bytes = FIXED.as_bytes().to_vec();
    bytes[at] = 0xff;
    let error = SignatureFile::parse(&bytes).unwrap_err();
    assert!(error.message.contains("line 9, comment: it is not UTF-8"), "{error}");
}

#[test]
fn a_newer_format_is_named_as_such() {
    let error = SignatureFile::parse(FIXED.replace("signature v1", "signature v4").as_bytes()).unwrap_err();
    assert_eq!(error.code, Code::SignatureTooNew);
    assert!(error.message.contains("reads up to v3; use a newer version"), "{error}");
}

/// A file of version 3, whose every field is known.
fn named() -> SignatureFile {
    SignatureFile { name: Some("app-1.0".parse().unwrap()), ..fixed() }
}

#[test]
fn a_name_makes_the_third_format() {
    let lines = "comment: a word\nname: app-1.0\nprehash:\n";
    let text = FIXED.replace("signature v1", "signature v3").replace("comment: a word\n", lines);
    assert_eq!(named().to_string(), text);
    assert_eq!(SignatureFile::parse(text.as_bytes()).unwrap(), named());
    assert!(named().signed_bytes().starts_with(b"bulla signature\0v3\0file\0bulla signature v3\n"));
    let prehashed = SignatureFile { prehash: Some(Prehash::Ed25519ph), ..named() };
    assert!(prehashed.to_string().contains("\nname: app-1.0\nprehash: ed25519ph\n"));
    assert_eq!(SignatureFile::parse(prehashed.to_string().as_bytes()).unwrap(), prehashed);
    // Bytes that are not UTF-8, and such that could mislead a reader.
    let odd = SignedName::from_bytes(b"a\xff>\\\n\xe2\x80\xae").unwrap();
    assert_eq!(odd.to_string(), r"a\xff\x3e\\\n\xe2\x80\xae");
    let odd = SignatureFile { name: Some(odd), ..fixed() };
    assert_eq!(SignatureFile::parse(odd.to_string().as_bytes()).unwrap(), odd);
    for (from, to, place) in [
        ("name: app-1.0\n", "", "line 10, name"),
        ("name: app-1.0", "name:", "line 10, name"),
        ("name: app-1.0", "name: a/b", "line 10, name"),
        ("name: app-1.0", "name: ..", "line 10, name"),
        ("name: app-1.0", r"name: \x61", "line 10, name"),
        ("name: app-1.0", &format!("name: {}", "a".repeat(256)), "line 10, name"),
        ("prehash:\n", "", "line 11, prehash"),
        ("prehash:\n", "prehash: \n", "line 11, prehash"),
        ("prehash:\n", "prehash: sha256\n", "line 11, prehash"),
        ("kind: file", "kind: message", "name: only signatures of files have one"),
        ("signature v3", "signature v1", "line 10, signature"),
        ("signature v3", "signature v2", "line 10, prehash"),
    ] {
        let error = SignatureFile::parse(text.replace(from, to).as_bytes()).expect_err(to);
        assert_eq!(error.code, Code::MalformedSignature, "{to:?}");
        assert!(error.message.contains(place), "{to:?}: {error}");
    }
}

#[test]
fn a_signature_with_a_name_is_one_of_that_name_alone() {
    let (keystore, key) = keystore();
    let public_key = keystore.public_key(&key.version(1.try_into().unwrap())).unwrap();
    for prehash in [None, Some(Prehash::Blake3), Some(Prehash::Ed25519ph)] {
        let with_name = statement(StatementKind::File).name(SignedName::from_bytes("app-1.0").unwrap());
        let file = SignatureFile::sign_with(&keystore, &key, with_name, prehash).unwrap();
        assert!(file.verify_with(&public_key).is_valid());
        for name in [None, Some("app-2.0".parse().unwrap())] {
            let renamed = SignatureFile { name, ..file.clone() };
            assert!(!renamed.verify_with(&public_key).is_valid());
        }
    }
}

/// One with the longest signature, which is not valid.
#[cfg(feature = "slhdsa")]
fn longest() -> SignatureFile {
    let algorithm = Algorithm::SlhDsaShake256f;
    SignatureFile {
        key: format!("local/files/{algorithm}/0190f3c2-5d1a-7b52-8c5e-3f2f6f0c9a11/v3").parse().unwrap(),
        public_key: PublicKey::from_bytes(algorithm, &[7; 64]).unwrap(),
        signature: vec![0x5a; 49_856],
        ..fixed()
    }
}

#[test]
#[cfg(feature = "slhdsa")]
fn the_line_of_the_longest_signature_is_read_and_no_longer_one() {
    let text = longest().to_string();
    assert_eq!(SignatureFile::parse(text.as_bytes()).unwrap(), longest());
    let error = SignatureFile::parse(text.replace("signature: ", "signature: W").as_bytes()).unwrap_err();
    let length = text.lines().last().unwrap().len();
    let expected = format!("line 10, signature: it is longer than {length} bytes");
    assert!(error.message.contains(&expected), "{error}");
}

#[test]
#[cfg(feature = "slhdsa")]
fn a_digest_is_signed_by_keys_of_ed25519_alone() {
    let file = SignatureFile { prehash: Some(Prehash::Blake3), ..longest() };
    let error = SignatureFile::parse(file.to_string().as_bytes()).unwrap_err();
    assert!(error.message.contains("prehash: digests are signed by keys of ed25519 alone"), "{error}");
}

#[test]
fn every_cut_is_refused() {
    for kind in KINDS {
        let text = signed(kind).to_string();
        for end in 0..text.len() {
            let error = SignatureFile::parse(&text.as_bytes()[..end]).unwrap_err();
            assert_eq!(error.code, Code::MalformedSignature);
        }
    }
}

#[test]
fn every_flipped_byte_is_refused_or_invalid() {
    let file = signed(StatementKind::File);
    let text = file.to_string();
    for index in 0..text.len() {
        for bit in 0..8 {
            let mut flipped = text.clone().into_bytes();
            flipped[index] ^= 1 << bit;
            if let Ok(read) = SignatureFile::parse(&flipped) {
                assert_eq!(read.verify_with(&file.public_key), Verdict::Invalid, "byte {index}, bit {bit}");
            }
        }
    }
}

#[test]
fn an_endless_line_is_not_read_to_its_end() {
    struct Endless(u64);
    impl std::io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += buffer.len() as u64;
            buffer.fill(b'x');
            Ok(buffer.len())
        }
    }
    let mut reader = std::io::BufReader::new(Endless(0));
    assert_eq!(SignatureFile::read_from(&mut reader).unwrap_err().code, Code::MalformedSignature);
    assert!(reader.into_inner().0 <= 64 * 1024);
}

#[test]
fn a_reader_is_left_where_a_manifests_body_starts() {
    let file = signed(StatementKind::Manifest);
    let text = format!("{file}the body");
    assert!(file.to_string().ends_with("==\n\n"));
    let mut reader = text.as_bytes();
    assert_eq!(SignatureFile::read_from(&mut reader).unwrap(), file);
    assert_eq!(reader, b"the body");
    assert_eq!(SignatureFile::parse(text.as_bytes()).unwrap_err().code, Code::MalformedSignature);
    let no_empty_line = format!("{}the body\n", file.to_string().trim_end_matches('\n').to_owned() + "\n");
    assert!(SignatureFile::read_from(&mut no_empty_line.as_bytes()).unwrap_err().message.contains("line 11"));
}

fn comments() -> impl Strategy<Value = Comment> {
    "\\PC{0,40}".prop_filter_map("a comment", |text| text.parse().ok())
}

prop_compose! {
    fn files()(
        kind in 0..3_usize,
        name in "[a-z0-9][a-z0-9._-]{0,20}",
        uuid: u128,
        version in 1_u32..,
        seed: [u8; 32],
        digest: [u8; 32],
        size: u64,
        time in 0..253_370_764_800_000_u64,
        comment in comments(),
        signed_name in proptest::option::of("[^/\\x00]{3,40}"),
        prehash in 0..3_usize,
        signature in proptest::collection::vec(any::<u8>(), 64),
    ) -> SignatureFile {
        let key = ed25519_dalek::SigningKey::from_bytes(&seed).verifying_key();
        let name: bulla_kms::Name = name.parse().unwrap();
        let key_id = KeyId::new(name.clone(), name, Algorithm::Ed25519, uuid::Uuid::from_u128(uuid));
        SignatureFile {
            kind: KINDS[kind],
            key: key_id.version(version.try_into().unwrap()),
            public_key: PublicKey::from_bytes(Algorithm::Ed25519, key.as_bytes()).unwrap(),
            digest: bulla_blake3::Hash::from_bytes(digest),
            size,
            signed_at: Timestamp::from_unix_millis(time).unwrap(),
            comment,
            name: signed_name
                .filter(|_| KINDS[kind] == StatementKind::File)
                .and_then(|name| SignedName::from_bytes(name).ok()),
            prehash: [None, Some(Prehash::Blake3), Some(Prehash::Ed25519ph)][prehash],
            signature,
        }
    }
}

proptest! {
    #[test]
    fn what_is_formatted_parses_to_the_same(file in files()) {
        prop_assert_eq!(SignatureFile::parse(file.to_string().as_bytes()).unwrap(), file);
    }

    /// One character of a good file is replaced: what still parses is its own text.
    #[test]
    fn what_parses_formats_to_the_same(file in files(), at: prop::sample::Index, c in "[ -~\n]") {
        let mut text = file.to_string();
        let at = at.index(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(at + 1) {
            text.replace_range(at..=at, &c);
            if let Ok(read) = SignatureFile::parse(text.as_bytes()) {
                prop_assert_eq!(read.to_string(), text);
            }
        }
    }

    #[test]
    fn any_bytes_are_parsed_without_a_panic(bytes: Vec<u8>) {
        prop_assert!(SignatureFile::parse(&bytes).is_err());
    }

    #[test]
    fn a_comment_that_is_read_is_one_line(text: String) {
        if let Ok(comment) = text.parse::<Comment>() {
            prop_assert_eq!(comment.as_str(), &text);
            prop_assert!(text.len() <= MAX_COMMENT_LEN && !text.contains(['\n', '\r', '\0']) && text.trim() == text);
        }
    }
}
