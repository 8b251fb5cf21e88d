//! What keys do: they sign with their head, verify for ever, rotate, are attested and disabled.

use bulla_kms::{Algorithm, Code, KeyId, KeyState, KeyVersionId, Keystore, NewKey, Signature, Verdict};

const MESSAGE: &[u8] = b"a message";

fn create(keystore: &Keystore, tenant: &str, label: Option<&str>) -> KeyVersionId {
    let mut new = NewKey::new(tenant.parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    new.label = label.map(|label| label.parse().unwrap());
    keystore.create_key(new).unwrap()
}

fn keystore_with_key() -> (Keystore, KeyId) {
    let keystore = Keystore::in_memory().unwrap();
    let id = create(&keystore, "local", Some("default"));
    (keystore, id.key_id().clone())
}

#[test]
fn a_signature_verifies_under_the_version_it_names_and_no_other() {
    let (keystore, key) = keystore_with_key();
    let first = keystore.sign(&key, MESSAGE).unwrap();
    let rotated = keystore.rotate(&key).unwrap();
    let second = keystore.sign(&key, MESSAGE).unwrap();
    assert_eq!((first.key.version(), second.key.version()), (1, 2));
    assert_eq!(rotated, second.key);
    for (id, signature, verdict) in [
        (&first.key, &first, Verdict::Valid),
        (&second.key, &second, Verdict::Valid),
        (&first.key, &second, Verdict::Invalid),
        (&second.key, &first, Verdict::Invalid),
    ] {
        assert_eq!(keystore.verify(id, MESSAGE, &signature.bytes).unwrap(), verdict);
    }
    assert_eq!(keystore.verify(&first.key, b"another message", &first.bytes).unwrap(), Verdict::Invalid);
}

#[test]
fn only_the_head_signs() {
    let (keystore, key) = keystore_with_key();
    let first = keystore.sign(&key, MESSAGE).unwrap().key;
    assert!(keystore.sign(&first, MESSAGE).is_ok());
    let second = keystore.rotate(&key).unwrap();
    assert_eq!(keystore.sign(&first, MESSAGE).unwrap_err().code, Code::NotLatestVersion);
    assert_eq!(keystore.sign(&second, MESSAGE).unwrap().key, second);
    let third = key.version(3.try_into().unwrap());
    assert_eq!(keystore.sign(&third, MESSAGE).unwrap_err().code, Code::UnknownVersion);
}

#[test]
fn what_is_not_there_is_named() {
    let (keystore, key) = keystore_with_key();
    let signature = keystore.sign(&key, MESSAGE).unwrap();
    let (other, stranger) = keystore_with_key();
    let ninth = key.version(9.try_into().unwrap());
    assert_eq!(keystore.verify(&ninth, MESSAGE, &signature.bytes).unwrap_err().code, Code::UnknownVersion);
    assert_eq!(keystore.public_key(&ninth).unwrap_err().code, Code::UnknownVersion);
    assert_eq!(other.verify(&signature.key, MESSAGE, &signature.bytes).unwrap_err().code, Code::KeyNotFound);
    for code in [
        keystore.sign(&stranger, MESSAGE).unwrap_err().code,
        keystore.rotate(&stranger).unwrap_err().code,
        keystore.attest(&stranger).unwrap_err().code,
        keystore.disable(&stranger).unwrap_err().code,
        keystore.enable(&stranger).unwrap_err().code,
    ] {
        assert_eq!(code, Code::KeyNotFound);
    }
}

#[test]
fn the_same_uuid_under_another_name_is_another_key() {
    let (keystore, key) = keystore_with_key();
    let renamed: KeyId = key.to_string().replace("/files/", "/releases/").parse().unwrap();
    assert_eq!(keystore.sign(&renamed, MESSAGE).unwrap_err().code, Code::KeyNotFound);
}

#[test]
fn signatures_of_wrong_lengths_are_invalid() {
    let (keystore, key) = keystore_with_key();
    let signature = keystore.sign(&key, MESSAGE).unwrap();
    let long = [&signature.bytes[..], &[0]].concat();
    for bytes in [&[][..], &signature.bytes[..63], &long] {
        assert_eq!(keystore.verify(&signature.key, MESSAGE, bytes).unwrap(), Verdict::Invalid);
    }
}

#[test]
fn an_attestation_tells_all_versions_and_their_times() {
    let (keystore, key) = keystore_with_key();
    keystore.rotate(&key).unwrap();
    keystore.rotate(&key).unwrap();
    let attestation = keystore.attest(&key).unwrap();
    assert_eq!(attestation.key, key);
    assert_eq!(attestation.label.as_ref().unwrap().as_str(), "default");
    assert_eq!(attestation.algorithm, Algorithm::Ed25519);
    assert_eq!(attestation.state, KeyState::Enabled);
    assert_eq!(attestation.latest_version, 3);
    let numbers: Vec<_> = attestation.versions.iter().map(|version| version.version).collect();
    assert_eq!(numbers, [1, 2, 3]);
    for pair in attestation.versions.windows(2) {
        assert!(pair[0].created <= pair[1].created);
        assert_eq!(pair[0].retired, Some(pair[1].created));
        assert_ne!(pair[0].public_key, pair[1].public_key);
    }
    assert_eq!(attestation.versions[2].retired, None);
    let signature = keystore.sign(&key, MESSAGE).unwrap();
    assert_eq!(attestation.versions[2].id, signature.key);
    assert_eq!(
        attestation.versions[2].public_key.as_ref().unwrap().verify(MESSAGE, &signature.bytes),
        Verdict::Valid
    );
    assert_eq!(Some(keystore.public_key(&signature.key).unwrap()), attestation.versions[2].public_key);
}

#[test]
fn an_attestation_is_json_with_times_of_rfc_3339() {
    let (keystore, key) = keystore_with_key();
    keystore.rotate(&key).unwrap();
    let attestation = keystore.attest(&key).unwrap();
    let json: serde_json::Value = serde_json::to_value(&attestation).unwrap();
    assert_eq!(json["key"], key.to_string());
    assert_eq!(json["label"], "default");
    assert_eq!(json["algorithm"], "ed25519");
    assert_eq!(json["state"], "enabled");
    assert_eq!(json["head"], 2);
    assert_eq!(json["versions"][0]["id"], format!("{key}/v1"));
    assert_eq!(json["versions"][0]["public_key"].as_str().unwrap().len(), 44);
    assert_eq!(json["versions"][0]["retired"], json["versions"][1]["created"]);
    assert!(json["versions"][1]["created"].as_str().unwrap().ends_with('Z'));
    assert!(json["versions"][1]["retired"].is_null());
    assert_eq!(serde_json::from_value::<bulla_kms::Attestation>(json).unwrap(), attestation);
}

#[test]
fn a_disabled_key_verifies_and_does_not_sign() {
    let (keystore, key) = keystore_with_key();
    let signature = keystore.sign(&key, MESSAGE).unwrap();
    keystore.disable(&key).unwrap();
    keystore.disable(&key).unwrap();
    assert_eq!(keystore.attest(&key).unwrap().state, KeyState::Disabled);
    assert_eq!(keystore.sign(&key, MESSAGE).unwrap_err().code, Code::KeyDisabled);
    assert_eq!(keystore.rotate(&key).unwrap_err().code, Code::KeyDisabled);
    assert_eq!(keystore.verify(&signature.key, MESSAGE, &signature.bytes).unwrap(), Verdict::Valid);
    keystore.enable(&key).unwrap();
    keystore.enable(&key).unwrap();
    assert_eq!(keystore.sign(&key, MESSAGE).unwrap().key, signature.key);
}

#[test]
fn a_label_finds_its_key_within_its_tenant() {
    let keystore = Keystore::in_memory().unwrap();
    let ours = create(&keystore, "ours", Some("default"));
    let theirs = create(&keystore, "theirs", Some("default"));
    create(&keystore, "ours", None);
    create(&keystore, "ours", None);
    let find =
        |tenant: &str, label: &str| keystore.find(&tenant.parse().unwrap(), &label.parse().unwrap()).unwrap();
    assert_eq!(find("ours", "default").as_ref(), Some(ours.key_id()));
    assert_eq!(find("theirs", "default").as_ref(), Some(theirs.key_id()));
    assert_eq!(find("ours", "other"), None);
    assert_eq!(find("nobody", "default"), None);
    let again = NewKey::new("ours".parse().unwrap(), "tokens".parse().unwrap(), Algorithm::Ed25519)
        .label("default".parse().unwrap());
    assert_eq!(keystore.create_key(again).unwrap_err().code, Code::LabelTaken);
    assert_eq!(keystore.list().unwrap().len(), 4);
}

#[test]
fn a_list_is_sorted_by_name() {
    let keystore = Keystore::in_memory().unwrap();
    for tenant in ["b", "c", "a", "b"] {
        create(&keystore, tenant, None);
    }
    let keys: Vec<_> = keystore.list().unwrap().into_iter().map(|key| key.key).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys.is_sorted());
    assert_eq!(keys[0].tenant().as_str(), "a");
}

#[test]
fn a_signature_is_json_of_text() {
    let (keystore, key) = keystore_with_key();
    let signature = keystore.sign(&key, MESSAGE).unwrap();
    let json = serde_json::to_value(&signature).unwrap();
    assert_eq!(json["key"], signature.key.to_string());
    assert_eq!(json["signature"].as_str().unwrap().len(), 88);
    assert_eq!(serde_json::from_value::<Signature>(json).unwrap(), signature);
    assert!(
        serde_json::from_value::<Signature>(serde_json::json!({"key": key, "signature": "AA=="})).is_err()
    );
}

#[test]
fn an_error_has_a_stable_code_in_json() {
    let (keystore, key) = keystore_with_key();
    keystore.disable(&key).unwrap();
    let error = keystore.sign(&key, MESSAGE).unwrap_err();
    let json = serde_json::to_value(&error).unwrap();
    assert_eq!(json["code"], "key_disabled");
    assert_eq!(json["code"], error.code.as_str());
    assert_eq!(json["message"], error.to_string());
    assert_eq!(json["retryable"], false);
}
