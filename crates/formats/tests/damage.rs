//! Damaged signature files of other programs: none is accepted, none causes a panic, and each error
//! is one clear line. `tests/vectors/README.md` says who made the files.

use std::collections::BTreeSet;
use std::mem::discriminant;

use base64ct::{Base64, Encoding as _};
use bulla_formats::in_toto::InTotoStatement;
use bulla_formats::minisign::{MinisignSignature, NumberedKey};
use bulla_formats::oms::ModelManifest;
use bulla_formats::signify::SignifySignature;
use bulla_formats::ssh::{FILE_NAMESPACE, SshKey, SshSignature};
use bulla_formats::{ContentHasher, Coverage, ForeignSignature, MessageKey, MultiHasher};
use bulla_kms::PublicKey;
use bulla_kms::transfer::{PublicFormat, import_public};
use serde_json::{Value, json};

macro_rules! vector {
    ($name:literal) => {
        include_bytes!(concat!("vectors/", $name))
    };
}

const CONTENT: &[u8] = vector!("content");

/// A signature file, and who accepts it.
struct Signed {
    name: &'static str,
    file: &'static [u8],
    key: &'static [u8],
    /// Parts of the file that its signature does not cover.
    uncovered: &'static [&'static str],
}

const LINES: [Signed; 6] = [
    Signed {
        name: "minisign",
        file: vector!("content.minisig"),
        key: vector!("minisign.pub"),
        uncovered: &["signature from minisign secret key"],
    },
    Signed {
        name: "minisign, legacy",
        file: vector!("content.legacy.minisig"),
        key: vector!("minisign.pub"),
        uncovered: &["signature from minisign secret key"],
    },
    Signed {
        name: "signify",
        file: vector!("content.signify.sig"),
        key: vector!("signify.pub"),
        uncovered: &["verify with signify.pub"],
    },
    Signed {
        name: "signify with the content in it",
        file: vector!("content.signify.embedded.sig"),
        key: vector!("signify.pub"),
        uncovered: &["verify with signify.pub"],
    },
    Signed {
        name: "OpenSSH, Ed25519",
        file: vector!("content.ssh-ed25519.sig"),
        key: vector!("ssh-ed25519.pub"),
        uncovered: &[],
    },
    Signed {
        name: "OpenSSH, P-256",
        file: vector!("content.ssh-ecdsa.sig"),
        key: vector!("ssh-ecdsa.pub"),
        uncovered: &[],
    },
];

const COMPACT: [Signed; 2] = [
    Signed { name: "JWS", file: vector!("content.jws"), key: vector!("jws.pub"), uncovered: &[] },
    Signed {
        name: "JWS without its content",
        file: vector!("content.detached.jws"),
        key: vector!("jws.pub"),
        uncovered: &[],
    },
];

/// The names of keys are covered by nothing, and neither are the version of a bundle's form and the
/// spelling of a hash function's name.
const JSON: [Signed; 4] = [
    Signed {
        name: "DSSE",
        file: vector!("content.intoto.jsonl"),
        key: vector!("dsse.pub"),
        uncovered: &[r#""keyid": "25ff42eb65c9126334fc1e8b6545a6e5dbcc71f7e3d7cd07a9b7f659a7114d02""#],
    },
    Signed {
        name: "Sigstore",
        file: vector!("content.sigstore.json"),
        key: vector!("cosign.pub"),
        uncovered: &[
            "0.3",
            r#""hint":"bDjigS32tBb2l45So1I+HmjNqycrJDA3Srw2g/ofGnw=""#,
            "messageDigest",
            "SHA2_256",
        ],
    },
    Signed {
        name: "Sigstore with a statement",
        file: vector!("content.attested.sigstore.json"),
        key: vector!("cosign.pub"),
        uncovered: &["0.3", r#""hint":"bDjigS32tBb2l45So1I+HmjNqycrJDA3Srw2g/ofGnw=""#],
    },
    Signed {
        name: "a model",
        file: vector!("model.sig"),
        key: vector!("model.pub"),
        uncovered: &[
            "0.3",
            r#""hint":"5c87768554afec4a987f5cbeb393ae090bba9e22514af44a46b3a50d72fe1e87""#,
            "tlogEntries",
            "keyid",
        ],
    },
];

/// The members of these files that may be another value, or be left out.
const OPTIONAL: [&str; 5] = [
    "/signatures/0/keyid",
    "/dsseEnvelope/signatures/0/keyid",
    "/verificationMaterial/publicKey/hint",
    "/verificationMaterial/tlogEntries",
    "/messageSignature/messageDigest",
];

impl Signed {
    fn public_key(&self) -> PublicKey {
        import_public(self.key, PublicFormat::Pem, None).unwrap()
    }

    fn numbered_key(&self) -> NumberedKey {
        NumberedKey::parse(str::from_utf8(self.key).unwrap()).unwrap()
    }

    fn text(&self) -> &'static str {
        str::from_utf8(self.file).unwrap()
    }

    /// Whether `file` is accepted as this signature, by this key. What is not says why.
    fn accepts(&self, file: &[u8]) -> bool {
        match ForeignSignature::parse(file) {
            Ok(None) => false,
            Ok(Some(signature)) => self.is_by_key(&signature),
            Err(error) => {
                let said = error.to_string();
                let is_clear = (10..200).contains(&said.len()) && !said.contains('\n');
                assert!(is_clear && !said.ends_with('.'), "{}: {said:?}", self.name);
                false
            }
        }
    }

    fn is_by_key(&self, signature: &ForeignSignature) -> bool {
        match signature {
            ForeignSignature::Minisign(file) => is_minisign(file, &self.numbered_key()),
            ForeignSignature::Signify(file) => self.is_signify(file),
            ForeignSignature::Ssh(file) => self.is_ssh(file),
            ForeignSignature::Jws(file) => file
                .message(CONTENT)
                .is_some_and(|message| file.is_signed_by(&message, MessageKey::Kms(&self.public_key()))),
            other => self.is_json(other),
        }
    }

    fn is_signify(&self, file: &SignifySignature) -> bool {
        let key = self.numbered_key();
        // Without the content in it, it would be a signature of another file.
        let embedded = self.name.contains("content").then_some(CONTENT);
        file.message() == embedded && file.number() == key.number && file.verifies(&key.key, CONTENT)
    }

    fn is_ssh(&self, file: &SshSignature) -> bool {
        let key = SshKey::parse(str::from_utf8(self.key).unwrap()).unwrap();
        file.signer().key() == &key
            && file.namespace() == FILE_NAMESPACE
            && file.verifies(&covered(file.coverage()))
    }

    fn is_json(&self, signature: &ForeignSignature) -> bool {
        let key = self.public_key();
        let key = MessageKey::Kms(&key);
        let Some(envelope) = signature.envelope() else {
            let ForeignSignature::Sigstore(bundle) = signature else { return false };
            return bundle.is_file_signed_by(&covered(bundle.coverage()), key);
        };
        if !envelope.is_signed_by(&envelope.message(), key) {
            return false;
        }
        if ModelManifest::is_in(envelope) {
            return ModelManifest::parse(envelope).is_ok_and(|manifest| manifest.parts.len() == 2);
        }
        let statement = InTotoStatement::parse(envelope).unwrap();
        let mut hasher = MultiHasher::new(&statement.algorithms());
        hasher.update(CONTENT);
        statement.subjects()[0].has(&hasher.finish())
    }

    /// Whether something that the signature does not cover is at a place of the file.
    fn is_uncovered(&self, place: usize) -> bool {
        let found = |part: &&str| self.text().find(part).map(|start| start..start + part.len());
        let parts: Vec<_> = self.uncovered.iter().map(|part| found(part).expect(part)).collect();
        parts.iter().any(|part| part.contains(&place))
    }
}

fn is_minisign(file: &MinisignSignature, key: &NumberedKey) -> bool {
    file.number() == key.number
        && file.comment_verifies(&key.key)
        && file.verifies(&key.key, &covered(file.coverage()))
}

fn covered(coverage: Coverage) -> Vec<u8> {
    let mut hasher = ContentHasher::new(coverage);
    hasher.update(CONTENT);
    hasher.finish().unwrap()
}

fn all() -> impl Iterator<Item = &'static Signed> {
    const ALL: [&[Signed]; 3] = [&LINES, &COMPACT, &JSON];
    ALL.into_iter().flatten()
}

#[test]
fn a_changed_bit_is_refused_at_every_place() {
    for signed in all() {
        assert!(signed.accepts(signed.file), "{}", signed.name);
        for place in (0..signed.text().trim_end().len()).filter(|place| !signed.is_uncovered(*place)) {
            // The second changes the case of a letter.
            for bit in [0x01, 0x20, 0x80] {
                let mut file = signed.file.to_vec();
                file[place] ^= bit;
                assert!(!signed.accepts(&file), "{}: {bit:#x} at {place}", signed.name);
            }
        }
    }
}

/// The first two lines of a legacy signature of minisign are one of signify, by the same key.
fn is_whole_signify(signed: &Signed, cut: &[u8]) -> bool {
    let lines: Vec<_> = signed.text().lines().take(2).collect();
    signed.name == "minisign, legacy" && cut.trim_ascii_end() == lines.join("\n").as_bytes()
}

#[test]
fn a_cut_file_is_refused_at_every_length() {
    for signed in all() {
        for len in 0..signed.text().trim_end().len() {
            let cut = &signed.file[..len];
            assert!(is_whole_signify(signed, cut) || !signed.accepts(cut), "{}: {len}", signed.name);
            assert!(!signed.accepts(&signed.file[len + 1..]), "{}: from {}", signed.name, len + 1);
        }
    }
}

#[test]
fn lines_that_are_missing_or_there_twice_are_refused() {
    for signed in &LINES {
        let lines: Vec<_> = signed.text().split_inclusive('\n').collect();
        for at in 0..lines.len() {
            let without: Vec<_> = [&lines[..at], &lines[at + 1..]].concat();
            let twice: Vec<_> = [&lines[..=at], &lines[at..]].concat();
            assert!(!signed.accepts(without.concat().as_bytes()), "{}: without {at}", signed.name);
            assert!(!signed.accepts(twice.concat().as_bytes()), "{}: twice {at}", signed.name);
        }
    }
}

#[test]
fn parts_of_a_jws_that_are_missing_or_there_twice_are_refused() {
    for signed in &COMPACT {
        let parts: Vec<_> = signed.text().trim_end().split('.').collect();
        for at in 0..parts.len() {
            let without: Vec<_> = [&parts[..at], &parts[at + 1..]].concat();
            let twice: Vec<_> = [&parts[..=at], &parts[at..]].concat();
            let mut empty = parts.clone();
            empty[at] = "";
            let is_detached = parts[at].is_empty();
            for (what, parts) in [("without", without), ("twice", twice), ("empty", empty)] {
                let is_same = is_detached && what == "empty";
                // A signature that had its content in it covers the same content beside it.
                let is_detached_now = at == 1 && what == "empty";
                let accepted = signed.accepts(parts.join(".").as_bytes());
                assert_eq!(accepted, is_same || is_detached_now, "{}: {what} {at}", signed.name);
            }
        }
    }
}

/// All members and items of a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in inner {
        let place = format!("{at}/{name}");
        places(value, &place, found);
        found.insert(place);
    }
}

/// A value without what is at a place.
fn without(value: &Value, place: &str) -> Value {
    let mut value = value.clone();
    let (parent, name) = place.rsplit_once('/').unwrap();
    match value.pointer_mut(parent).unwrap() {
        Value::Object(members) => drop(members.remove(name)),
        Value::Array(items) => drop(items.remove(name.parse().unwrap())),
        _ => unreachable!("only objects and arrays have places"),
    }
    value
}

/// The text of a value in which the member at a place is there twice. None for items of a list.
fn twice(value: &Value, place: &str) -> Option<String> {
    const OTHER: &str = "the same name";
    let mut value = value.clone();
    let (parent, name) = place.rsplit_once('/').unwrap();
    let Value::Object(members) = value.pointer_mut(parent).unwrap() else { return None };
    members.insert(OTHER.to_owned(), members[name].clone());
    Some(value.to_string().replace(OTHER, name))
}

/// A value with values of every type at a place.
fn retyped(value: &Value, place: &str) -> Vec<Value> {
    let old = value.pointer(place).unwrap();
    let others = [json!(null), json!(true), json!(7), json!(-1.5), json!("text"), json!([]), json!({})];
    let others = others.into_iter().filter(|other| other != old);
    let replaced = |other| {
        let mut value = value.clone();
        *value.pointer_mut(place).unwrap() = other;
        value
    };
    others.map(replaced).collect()
}

#[test]
fn members_that_are_missing_twice_or_of_another_type_are_refused() {
    for signed in &JSON {
        let value: Value = serde_json::from_slice(signed.file).unwrap();
        assert!(signed.accepts(value.to_string().as_bytes()), "{}", signed.name);
        let mut found = BTreeSet::new();
        places(&value, "", &mut found);
        for place in &found {
            if let Some(text) = twice(&value, place) {
                assert!(!signed.accepts(text.as_bytes()), "{}: twice {place}", signed.name);
            }
            if OPTIONAL.contains(&&place[..]) {
                continue;
            }
            let missing = without(&value, place).to_string();
            assert!(!signed.accepts(missing.as_bytes()), "{}: without {place}", signed.name);
            for other in retyped(&value, place) {
                // The hint, its only member, may be left out.
                if place == "/verificationMaterial/publicKey" && other.pointer(place) == Some(&json!({})) {
                    continue;
                }
                let text = other.to_string();
                assert!(!signed.accepts(text.as_bytes()), "{}: {place} in {text}", signed.name);
            }
        }
    }
}

/// An envelope with another payload, and an error of its reader, if there is one.
fn payload_error(payload: &str, is_model: bool) -> Option<String> {
    let payload = Base64::encode_string(payload.as_bytes());
    let envelope = format!(
        r#"{{"payloadType":"application/vnd.in-toto+json","payload":"{payload}","signatures":[{{"sig":"AAAA"}}]}}"#
    );
    let Ok(Some(ForeignSignature::Dsse(envelope))) = ForeignSignature::parse(envelope.as_bytes()) else {
        panic!("it is an envelope");
    };
    let error = match is_model {
        true => ModelManifest::parse(&envelope).err(),
        false => InTotoStatement::parse(&envelope).err(),
    };
    error.map(|error| error.to_string())
}

#[test]
fn statements_without_a_member_or_with_one_twice_are_refused_whoever_signed_them() {
    // The type of a predicate says what is in it, and only the reader of that type knows.
    // A subject of in-toto may have a digest alone.
    for (file, is_model) in [(JSON[3].file, true), (JSON[0].file, false), (JSON[2].file, false)] {
        let file: Value = serde_json::from_slice(file).unwrap();
        let payload = file.pointer("/dsseEnvelope/payload").or(file.pointer("/payload")).unwrap();
        let payload = Base64::decode_vec(payload.as_str().unwrap()).unwrap();
        let value: Value = serde_json::from_slice(&payload).unwrap();
        assert_eq!(payload_error(&value.to_string(), is_model), None);
        let mut found = BTreeSet::new();
        places(&value, "", &mut found);
        for place in &found {
            if let Some(text) = twice(&value, place) {
                let said = payload_error(&text, is_model).unwrap_or_default();
                assert!(said.contains("twice"), "{place}: {said:?}");
            }
            let is_optional = match is_model {
                true => place.starts_with("/predicate/serialization/ignore_paths"),
                false if place == "/subject/0/name" => true,
                false => place.starts_with("/predicate") && place != "/predicateType",
            };
            let missing = payload_error(&without(&value, place).to_string(), is_model);
            assert_eq!(missing.is_some(), !is_optional, "{place}: {missing:?}");
            for other in retyped(&value, place) {
                // Another value of the same type may be right: that it is read without a panic
                // counts.
                let said = payload_error(&other.to_string(), is_model);
                let [old, new] = [&value, &other].map(|value| value.pointer(place).unwrap());
                let is_same_type = discriminant(old) == discriminant(new);
                assert!(said.is_some() || is_same_type || is_optional, "{place} in {other}");
            }
        }
    }
}
