//! Bundles that the tools of Sigstore made with its public logs and authorities, verified against
//! its trusted root, and damaged.
#![cfg(feature = "trusted-root")]

use base64ct::{Base64, Encoding as _};
use bulla_formats::sigstore::{BundleSigner, SigstoreBundle};
use bulla_formats::trusted_root::{CertificateChain, ExpiredCertificates, TrustedRoot, WantedSigner};
use bulla_formats::{Evidence, EvidenceError, MessageKey};
use bulla_kms::transfer::{PublicFormat, import_public};
use bulla_kms::{PublicKey, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const ROOT: &str = include_str!("vectors/trusted_root.json");
/// A key signed a file: an entry of a log, and a timestamp.
const BY_KEY: &str = include_str!("vectors/logged-key.sigstore.json");
const KEY: &[u8] = include_bytes!("vectors/logged-key.pub");
const CONTENT: &[u8] = include_bytes!("vectors/logged-key");
/// A workflow signed a statement: a certificate, and an entry of a log.
const BY_CERTIFICATE: &str = include_str!("vectors/signed-package-2.1.0-hb0f4dca_0.conda.sigstore.json");
const IDENTITY: &str =
    "https://github.com/prefix-dev/sigstore-example/.github/workflows/action.yaml@refs/heads/main";
const ISSUER: &str = "https://token.actions.githubusercontent.com";
/// A person signed a file, and another one a statement: certificates, timestamps, and entries of
/// logs of the second version of Rekor, which are tiles of files.
const TILED: &str = include_str!("vectors/tiled-log.sigstore.json");
const TILED_CONTENT: &[u8] = include_bytes!("vectors/tiled-log");
const TILED_STATEMENT: &str = include_str!("vectors/tiled-log.attested.sigstore.json");
const STAGING_ROOT: &str = include_str!("vectors/trusted_root_staging.json");
/// An authority that is not one of Sigstore certified the signer.
const CERTIFIED: &str = include_str!("vectors/model.certified.sig");
const AUTHORITY: &[u8] = include_bytes!("vectors/authority.pem");

fn root() -> TrustedRoot {
    TrustedRoot::parse(ROOT.as_bytes()).unwrap()
}

fn key() -> PublicKey {
    import_public(KEY, PublicFormat::Pem, None).unwrap()
}

fn wanted() -> WantedSigner {
    WantedSigner { identity: IDENTITY.to_owned(), issuer: ISSUER.to_owned() }
}

/// What vouches for a bundle that `key` signed; the signature counts as well.
fn by_key(root: &TrustedRoot, text: &str, content: &[u8]) -> Result<Evidence, String> {
    let bundle = SigstoreBundle::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let (digest, key) = (Sha256::digest(content), key());
    if !bundle.is_file_signed_by(&digest, MessageKey::Kms(&key)) {
        return Err("the signature does not verify".to_owned());
    }
    let found = root.verify_key(&bundle, MessageKey::Kms(&key), Some(&digest));
    found.map_err(|error| error.to_string())
}

fn by_certificate(root: &TrustedRoot, text: &str) -> Result<Evidence, EvidenceError> {
    let bundle =
        SigstoreBundle::parse(text.as_bytes()).map_err(|error| EvidenceError::Invalid(error.to_string()))?;
    root.verify_certificate(&bundle, &wanted(), None)
}

/// What vouches for one of the bundles with an entry of a log of the second version.
fn by_tiled_log(root: &TrustedRoot, text: &str, content: &[u8]) -> Result<Evidence, EvidenceError> {
    let bundle =
        SigstoreBundle::parse(text.as_bytes()).map_err(|error| EvidenceError::Invalid(error.to_string()))?;
    let wanted = WantedSigner {
        identity: "jku@goto.fi".to_owned(),
        issuer: "https://github.com/login/oauth".to_owned(),
    };
    let digest = Sha256::digest(content);
    root.verify_certificate(&bundle, &wanted, bundle.envelope().is_none().then_some(&digest[..]))
}

#[test]
fn a_log_and_an_authority_vouch_for_the_signature_of_a_key() {
    let root = root();
    assert!(root.has_logs());
    let evidence = by_key(&root, BY_KEY, CONTENT).unwrap();
    assert_eq!((evidence.log_entries, evidence.timestamps, &evidence.certificate), (1, 1, &None));
    assert_eq!(evidence.time.unwrap().to_string(), "2025-12-18T17:04:39.000Z");
    let other = by_key(&root, BY_KEY, b"another content").unwrap_err();
    assert_eq!(other, "the signature does not verify");
    // The caller may forget to verify the signature.
    let bundle = SigstoreBundle::parse(BY_KEY.as_bytes()).unwrap();
    assert_eq!(bundle.signer(), BundleSigner::Key);
    let digest = Sha256::digest(b"another content");
    let found = root.verify_key(&bundle, MessageKey::Kms(&key()), Some(&digest)).unwrap_err();
    assert!(matches!(found, EvidenceError::Changed(_)), "{found:?}");
    let found = root.verify_certificate(&bundle, &wanted(), Some(&digest)).unwrap_err();
    assert!(matches!(found, EvidenceError::WrongSigner(_)), "{found:?}");
}

#[test]
fn a_certificate_says_who_signed() {
    let root = root();
    let evidence = by_certificate(&root, BY_CERTIFICATE).unwrap();
    assert_eq!((evidence.log_entries, evidence.timestamps), (1, 0));
    assert_eq!(evidence.time.unwrap().to_string(), "2025-09-01T12:13:59.000Z");
    let certificate = evidence.certificate.unwrap();
    assert_eq!((&certificate.identity[..], certificate.issuer.as_deref()), (IDENTITY, Some(ISSUER)));
    assert_eq!(certificate.fingerprint.len(), 64);
    let bundle = SigstoreBundle::parse(BY_CERTIFICATE.as_bytes()).unwrap();
    assert_eq!(bundle.signer(), BundleSigner::Certificate);
    for (identity, issuer) in [("https://github.com/other", ISSUER), (IDENTITY, "https://other"), ("", "")] {
        let other = WantedSigner { identity: identity.to_owned(), issuer: issuer.to_owned() };
        let found = root.verify_certificate(&bundle, &other, None).unwrap_err();
        assert!(matches!(found, EvidenceError::WrongSigner(_)), "{found:?}");
    }
    let found = root.verify_key(&bundle, MessageKey::Kms(&key()), None).unwrap_err();
    assert!(matches!(found, EvidenceError::WrongSigner(_)), "{found:?}");
}

#[test]
fn logs_of_the_second_version_vouch_as_well() {
    let root = TrustedRoot::parse(STAGING_ROOT.as_bytes()).unwrap();
    for (text, time) in [(TILED, "2025-06-09T11:57:38.000Z"), (TILED_STATEMENT, "2026-05-26T07:42:21.000Z")] {
        let evidence = by_tiled_log(&root, text, TILED_CONTENT).unwrap();
        assert_eq!((evidence.log_entries, evidence.timestamps), (1, 1));
        // The authority's time: these logs sign none.
        assert_eq!(evidence.time.unwrap().to_string(), time);
        // These logs are not those of the public instance.
        let found = by_tiled_log(&self::root(), text, TILED_CONTENT).unwrap_err();
        assert!(matches!(found, EvidenceError::Invalid(_)), "{found:?}");
        let entry = |change: &dyn Fn(&mut Value)| {
            let text = changed(text, |value| change(&mut value["verificationMaterial"]["tlogEntries"][0]));
            let found = by_tiled_log(&root, &text, TILED_CONTENT).unwrap_err();
            assert!(matches!(found, EvidenceError::Invalid(_)), "{found:?}");
            found.to_string()
        };
        // The signed checkpoint says these too, and the library does not compare them.
        for (member, value) in
            [("logIndex", "1"), ("treeSize", "4"), ("rootHash", &Base64::encode_string(&[7; 32]))]
        {
            let said = entry(&|entry| entry["inclusionProof"][member] = json!(value));
            assert!(said.contains("something else than its checkpoint"), "{member}: {said}");
        }
        let said = entry(&|entry| entry["integratedTime"] = json!("1700000000"));
        assert!(said.contains("has a time"), "{said}");
        let other: Value = serde_json::from_str(STAGING_ROOT).unwrap();
        let said = entry(&|entry| entry["logId"] = other["tlogs"][0]["logId"].clone());
        assert!(said.contains("another log than its checkpoint"), "{said}");
        // Without the timestamp, nothing says when the certificate was used.
        let timeless = changed(text, |value| {
            value["verificationMaterial"]["timestampVerificationData"] = json!({});
        });
        by_tiled_log(&root, &timeless, TILED_CONTENT).unwrap_err();
        entry(&|entry| entry["kindVersion"]["version"] = json!("0.0.1"));
        entry(&|entry| entry["kindVersion"] = json!({"kind": "dsse", "version": "0.0.2"}));
        entry(&|entry| drop(entry.as_object_mut().unwrap().remove("inclusionProof")));
        entry(&|entry| entry["inclusionProof"]["checkpoint"]["envelope"] = json!(""));
    }
    let found = by_tiled_log(&root, TILED, b"another content").unwrap_err();
    assert!(matches!(found, EvidenceError::Changed(_)), "{found:?}");
}

fn by_authority(text: &str, expired: ExpiredCertificates, year: &str) -> Result<Evidence, EvidenceError> {
    let bundle =
        SigstoreBundle::parse(text.as_bytes()).map_err(|error| EvidenceError::Invalid(error.to_string()))?;
    let now: Timestamp = format!("{year}-06-01T00:00:00.000Z").parse().unwrap();
    CertificateChain::parse(AUTHORITY).unwrap().verify(&bundle, None, expired, now)
}

#[test]
fn a_certificate_of_another_authority_counts_while_it_is_valid() {
    use ExpiredCertificates::{Accept, Refuse};
    for (expired, year) in [(Refuse, "2027"), (Accept, "2027"), (Accept, "2040")] {
        let evidence = by_authority(CERTIFIED, expired, year).unwrap();
        assert_eq!(evidence.certificate.unwrap().identity, "signer@example.org");
        assert_eq!((evidence.log_entries, evidence.timestamps, evidence.time), (0, 0, None));
    }
    for (expired, year) in [(Refuse, "2040"), (Refuse, "2025"), (Accept, "2025")] {
        let found = by_authority(CERTIFIED, expired, year).unwrap_err();
        assert!(matches!(found, EvidenceError::Expired(_)), "{found:?}");
    }
    // A certificate of Fulcio is not one of this authority, nor the other way round.
    let found = by_authority(BY_CERTIFICATE, Accept, "2027").unwrap_err();
    assert!(matches!(found, EvidenceError::WrongSigner(_)), "{found:?}");
    assert!(by_certificate(&root(), CERTIFIED).is_err());
    assert!(by_authority(BY_KEY, Accept, "2027").is_err());
}

/// The bundles with a change.
fn changed(text: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap();
    change(&mut value);
    value.to_string()
}

#[test]
fn what_is_missing_or_of_others_is_refused() {
    let root = root();
    let refused = |text: &str, reason: &str| {
        let found = by_key(&root, text, CONTENT).unwrap_err();
        assert!(found.contains(reason), "{found}, and not {reason}");
    };
    let material =
        |change: &dyn Fn(&mut Value)| changed(BY_KEY, |value| change(&mut value["verificationMaterial"]));
    refused(&material(&|found| found["tlogEntries"] = json!([])), "no proof of a transparency log");
    refused(
        &material(&|found| {
            let entry = found["tlogEntries"][0].as_object_mut().unwrap();
            entry.remove("inclusionProof");
            entry.remove("inclusionPromise");
        }),
        "neither a proof nor a promise",
    );
    // A second entry that nothing proves, beside one that is proven.
    refused(
        &material(&|found| {
            let mut entry = found["tlogEntries"][0].clone();
            entry.as_object_mut().unwrap().remove("inclusionProof");
            entry.as_object_mut().unwrap().remove("inclusionPromise");
            found["tlogEntries"].as_array_mut().unwrap().push(entry);
        }),
        "neither a proof nor a promise",
    );
    refused(
        &material(&|found| found["tlogEntries"] = json!(vec![found["tlogEntries"][0].clone(); 65])),
        "more than 64",
    );
    // The entry of another signature.
    let other: Value = serde_json::from_str(BY_CERTIFICATE).unwrap();
    let other = &other["verificationMaterial"]["tlogEntries"][0];
    refused(&material(&|found| found["tlogEntries"][0] = other.clone()), "malformed, or of an unknown kind");
}

#[test]
fn logs_and_authorities_that_are_not_trusted_do_not_count() {
    let without = |member: &str| {
        let text = changed(ROOT, |root| drop(root.as_object_mut().unwrap().remove(member)));
        TrustedRoot::parse(text.as_bytes()).unwrap()
    };
    let no_authority = by_key(&without("timestampAuthorities"), BY_KEY, CONTENT).unwrap_err();
    assert!(no_authority.contains("a timestamp is not one"), "{no_authority}");
    // Without logs, entries are not verified and do not count.
    let no_logs = without("tlogs");
    let evidence = by_key(&no_logs, BY_KEY, CONTENT).unwrap();
    assert_eq!((evidence.log_entries, evidence.timestamps), (0, 1));
    let bundle = SigstoreBundle::parse(BY_KEY.as_bytes()).unwrap();
    assert_eq!(bundle.unverified(&evidence), ["1 entry of a transparency log"]);
    let found = by_certificate(&no_logs, BY_CERTIFICATE).unwrap_err();
    assert!(matches!(found, EvidenceError::Invalid(_)), "{found:?}");
    let found = by_certificate(&without("certificateAuthorities"), BY_CERTIFICATE).unwrap_err();
    assert!(matches!(found, EvidenceError::Expired(_)), "{found:?}");
    // Fulcio's certificates name a log of certificates. If none is trusted, none is wanted.
    by_certificate(&without("ctlogs"), BY_CERTIFICATE).unwrap();
    // Another log's key under the same name.
    let text = changed(ROOT, |root| {
        root["tlogs"][0]["publicKey"]["rawBytes"] = root["ctlogs"][0]["publicKey"]["rawBytes"].clone();
    });
    let other = TrustedRoot::parse(text.as_bytes()).unwrap();
    assert!(by_key(&other, BY_KEY, CONTENT).is_err());
    assert!(by_certificate(&other, BY_CERTIFICATE).is_err());
}

/// All texts in a value, as JSON pointers.
fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| texts(value, &format!("{at}/{name}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| texts(value, &format!("{at}/{index}"), found));
        }
        Value::String(_) => found.push(at.to_owned()),
        _ => {}
    }
}

/// The texts that are one changed byte away from this one: of what it decodes to, if it is base64.
fn variants(text: &str) -> Vec<String> {
    let flipped = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 1;
        bytes
    };
    match Base64::decode_vec(text) {
        Ok(bytes) if bytes.len() > 8 => {
            (0..bytes.len()).map(|at| Base64::encode_string(&flipped(&bytes, at))).collect()
        }
        _ => {
            let covered =
                (0..text.len()).filter(|at| text.is_char_boundary(*at) && !is_signer_name(text, *at));
            let all = covered.map(|at| flipped(text.as_bytes(), at));
            all.filter_map(|bytes| String::from_utf8(bytes).ok()).collect()
        }
    }
}

/// What nothing covers: how a bundle names its key, and its version, of which older ones may be
/// like it.
const UNCOVERED: [&str; 3] =
    ["/mediaType", "/verificationMaterial/publicKey/hint", "/dsseEnvelope/signatures/0/keyid"];

/// Whether a place in a text is the name in front of a signature of a checkpoint, whose number says
/// whose key that is, or in the signature of a witness, which is not the log.
fn is_signer_name(text: &str, at: usize) -> bool {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let name = text[line..].strip_prefix("\u{2014} ").and_then(|rest| rest.split(' ').next());
    name.is_some_and(|name| (line..line + 4 + name.len()).contains(&at) || !text.starts_with(name))
}

/// Whether a place in a bundle's timestamp is one of its frame, which its signature does not cover:
/// versions, a status, algorithms that are named again where the signature covers them, and a copy
/// of the authority's certificate, where that of the trusted root counts.
fn is_frame(bundle: &str, place: &str, at: usize) -> bool {
    const FRAME: [std::ops::Range<usize>; 7] = [8..9, 34..35, 41..50, 69..70, 236..237, 248..249, 604..612];
    const TILED_FRAME: [std::ops::Range<usize>; 3] = [34..35, 248..783, 1147..1157];
    let frame = if [TILED, TILED_STATEMENT].contains(&bundle) { &TILED_FRAME[..] } else { &FRAME };
    place.ends_with("/signedTimestamp") && frame.iter().any(|part| part.contains(&at))
}

#[test]
fn a_changed_byte_is_refused_all_over() {
    let root = root();
    let staging_root = TrustedRoot::parse(STAGING_ROOT.as_bytes()).unwrap();
    let mut accepted = Vec::new();
    let mut count = 0;
    for text in [BY_KEY, BY_CERTIFICATE, CERTIFIED, TILED, TILED_STATEMENT] {
        let value: Value = serde_json::from_str(text).unwrap();
        let mut found = Vec::new();
        texts(&value, "", &mut found);
        for place in found.iter().filter(|place| !UNCOVERED.contains(&&place[..])) {
            let old = value.pointer(place).unwrap().as_str().unwrap();
            // Each takes several verifications of ECDSA, so not every place is tried.
            let step = if [TILED, TILED_STATEMENT].contains(&text) { 34 } else { 17 };
            for (at, new) in variants(old).into_iter().enumerate().step_by(step) {
                let mut value = value.clone();
                *value.pointer_mut(place).unwrap() = json!(new);
                let changed = value.to_string();
                let is_accepted = match text {
                    BY_KEY => by_key(&root, &changed, CONTENT).is_ok(),
                    TILED | TILED_STATEMENT => by_tiled_log(&staging_root, &changed, TILED_CONTENT).is_ok(),
                    CERTIFIED => by_authority(&changed, ExpiredCertificates::Refuse, "2027").is_ok(),
                    _ => by_certificate(&root, &changed).is_ok(),
                };
                count += 1;
                if is_accepted && !is_frame(text, place, at) {
                    accepted.push(format!("{place} at {at}"));
                }
            }
        }
    }
    assert!(count > 300, "{count}");
    assert!(accepted.is_empty(), "{} of {count}: {accepted:?}", accepted.len());
}

#[test]
fn roots_that_cannot_be_used_are_refused() {
    let refused = |text: &str, reason: &str| {
        let error = TrustedRoot::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}, and not {reason}");
    };
    refused("", "not JSON");
    refused("{}", "not a trusted root");
    refused(r#"{"mediaType":"x"}"#, "not a trusted root");
    refused(BY_KEY, "not a trusted root");
    refused(&ROOT.replacen("\"tlogs\"", "\"tlogs\":[],\"tlogs\"", 1), "twice");
    let twice = changed(ROOT, |root| {
        let log = root["tlogs"][0].clone();
        root["tlogs"].as_array_mut().unwrap().push(log);
    });
    refused(&twice, "one of its keys");
    let cut = changed(ROOT, |root| {
        root["certificateAuthorities"][0]["certChain"]["certificates"][0]["rawBytes"] = json!("AAAA");
    });
    refused(&cut, "one of its keys");
    for text in ["", "-----BEGIN CERTIFICATE-----", ROOT] {
        CertificateChain::parse(text.as_bytes()).unwrap_err();
    }
    // Programs write what is in a certificate before it.
    let authority = std::str::from_utf8(AUTHORITY).unwrap();
    let explained = |end: &str| format!("subject=CN = root\n\n{authority}{authority}# the end{end}");
    CertificateChain::parse(explained("\n").as_bytes()).unwrap();
    CertificateChain::parse(explained("").replace('\n', "\r\n").as_bytes()).unwrap();
    CertificateChain::parse(explained("\n-----BEGIN CERTIFICATE-----\nMIIB\n").as_bytes()).unwrap_err();
}
