//! Backups of the whole keystore.

use bulla_kms::backend::Backends;
use bulla_kms::encryption::{Identity, IdentityKind};
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Algorithm, Backup, Keystore, KeystoreOptions, NewKey, SecretString, Unlock};
use serde_json::{Value, json};

use crate::support::{Service, config, keystore, name, token};

fn identity() -> Identity {
    Identity::generate(IdentityKind::XWing).unwrap()
}

fn to(identities: &[&Identity]) -> Value {
    let recipients: Vec<_> = identities.iter().map(|identity| identity.recipient().to_string()).collect();
    json!({ "recipients": recipients })
}

/// A service where every caller may do everything, with so many keys.
fn with_keys(keys: usize) -> Service {
    let keystore = Keystore::in_memory().unwrap();
    for _ in 0..keys {
        keystore.create_key(NewKey::new(name("local"), name("files"), Algorithm::MlDsa87)).unwrap();
    }
    let mut config = config();
    config.service.development = true;
    Service::start(keystore, config)
}

#[test]
fn a_backup_of_any_size_is_restored() {
    let identities = [identity(), Identity::generate(IdentityKind::Age).unwrap()];
    for keys in [0, 1, 40] {
        let service = with_keys(keys);
        let answer = service.post(None, "/api/v1/backup", &to(&[&identities[0], &identities[1]]));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.headers["content-type"], "application/octet-stream");
        assert_eq!(answer.headers["cache-control"], "no-store");
        for identity in &identities {
            let backup = Backup::read(&answer.body[..], &[identity], Backends::software()).unwrap();
            assert_eq!(backup.summary().keys, keys as u64);
        }
        // More than all that waits for the network at once.
        assert!(keys < 40 || answer.body.len() > 320 << 10, "{}", answer.body.len());
    }
}

#[test]
fn a_restored_keystore_signs_and_honors_tokens() {
    let keystore = keystore(&["local"]);
    let all = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let identity = identity();
    let mut config = config();
    config.service.backup_recipients = vec![identity.recipient().to_string()];
    let service = Service::start(keystore, config.clone());
    service.post(Some(&all), "/api/v1/keys", &json!({ "label": "a" })).ok();
    let message = json!({ "message": "" });
    let signed = service.post(Some(&all), "/api/v1/keys/a/sign", &message).ok();
    let answer = service.post(Some(&all), "/api/v1/backup", &to(&[&identity]));
    assert_eq!(answer.status, 200, "{}", answer.text());
    drop(service);
    let backup = Backup::read(&answer.body[..], &[&identity], Backends::software()).unwrap();
    let summary = backup.summary();
    let told =
        ["keys", "private-keys", "made"].map(|name| answer.headers[&format!("bulla-backup-{name}")].clone());
    assert_eq!(told, [summary.keys.to_string(), summary.private_keys.to_string(), summary.made.to_string()]);
    let folder = tempfile::tempdir().unwrap();
    let unlock = Unlock::Passphrase(SecretString::from("open sesame"));
    let path = folder.path().join("keystore.redb");
    let restored = backup.restore(&path, &unlock, &KeystoreOptions::default()).unwrap();
    let service = Service::start(restored, config);
    assert_eq!(service.post(Some(&all), "/api/v1/keys/a/sign", &message).ok(), signed);
}

#[test]
fn a_backup_needs_recipients() {
    let service = with_keys(1);
    let refused = |body: &Value| service.post(None, "/api/v1/backup", body).error();
    let (malformed, argument) = ((400, "malformed_request".to_owned()), (400, "invalid_argument".to_owned()));
    assert_eq!(refused(&json!({})), malformed);
    assert_eq!(refused(&json!({ "recipients": [], "passphrase": "x" })), malformed);
    assert_eq!(refused(&json!({ "recipients": [] })), argument);
    let identity = identity();
    assert_eq!(refused(&to(&[&identity; 9])), (400, "too_many_items".to_owned()));
    for text in ["", "a", "age1nobody"] {
        assert_eq!(
            refused(&json!({ "recipients": [text] })),
            (400, "invalid_public_key".to_owned()),
            "{text}"
        );
    }
}

#[test]
fn a_token_makes_backups_only_for_recipients_in_the_configuration() {
    let keystore = keystore(&["local", "other"]);
    let all = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let backs_up = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Backup]);
    let reads = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let other = token(&keystore, "other", GrantedKeys::All, TokenOperation::ALL);
    let (named, thief) = (identity(), identity());
    let mut config = config();
    config.service.backup_recipients = vec![named.recipient().to_string()];
    let service = Service::start(keystore, config);
    let backup = |token, to: &Value| service.post(Some(token), "/api/v1/backup", to);
    let refused = (403, "forbidden".to_owned());
    for token in [&all, &backs_up] {
        assert_eq!(backup(token, &to(&[&named])).status, 200);
        assert_eq!(
            backup(token, &to(&[&thief])).error(),
            refused,
            "the person who opens it could mint tokens"
        );
        assert_eq!(backup(token, &to(&[&named, &thief])).error(), refused);
    }
    for token in [&reads, &other] {
        assert_eq!(backup(token, &to(&[&named])).error(), refused);
    }
}
