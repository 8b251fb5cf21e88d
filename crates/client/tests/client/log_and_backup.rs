//! The audit log, backups, and sealing the service.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bulla_client::blocking::Client;
use bulla_client::{ErrorCode, ErrorKind, NewKey, Token};
use bulla_kms::audit_log::{Checkpoint, ConsistencyProof, InclusionProof};
use bulla_kms::backend::Backends;
use bulla_kms::encryption::{Identity, IdentityKind};
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Backup, PublicKey};

use crate::support::on_disk::{OnDisk, PASSPHRASE};
use crate::support::{config, token};
use crate::{blocking, builder};

#[test]
fn a_log_is_read_proved_and_verified_and_a_backup_opens() {
    let folder = tempfile::tempdir().unwrap();
    let source = OnDisk::create(folder.path());
    let prepared = source.keystore();
    let operator = token(&prepared, "local", GrantedKeys::All, TokenOperation::ALL);
    drop(prepared);
    let identity = Identity::generate(IdentityKind::XWing).unwrap();
    let recipient = identity.recipient().to_string();
    let mut config = config();
    config.service.backup_recipients = vec![recipient.clone()];
    let service = source.start(config);
    let settings = builder(&service.url).token(Token::new(operator.expose()).unwrap());
    let client = blocking(settings);
    let old = client.make_checkpoint().unwrap();
    client.create_key(&NewKey { label: Some("a".to_owned()), ..NewKey::default() }).unwrap();
    client.sign("a", b"message").unwrap();
    let new = client.make_checkpoint().unwrap();
    assert!(new.size > old.size && client.checkpoint().unwrap() == new);

    let page = client.audit_entry_page(None).unwrap();
    assert_eq!((page.entries[0].number, page.next), (0, None));
    let signed =
        page.entries.iter().rev().find(|entry| entry.operation == "sign" && entry.digest.is_some()).unwrap();
    assert_eq!(signed.digest.as_deref(), Some(&*bulla_blake3::hash(b"message").to_hex()));
    let after = client.audit_entry_page(Some(signed.number - 1)).unwrap();
    assert_eq!(&after.entries[0], signed);

    let entries: Vec<_> = client.audit_entries(None).collect::<Result<_, _>>().unwrap();
    assert_eq!(entries[..page.entries.len()], page.entries);
    assert!(entries[0].time <= SystemTime::now() && entries[0].time > new.time - Duration::from_secs(60));
    let log_key = client.key("audit-log").unwrap();
    let key = log_key.versions[0].public_key.as_ref().unwrap();
    let key = PublicKey::from_bytes(bulla_kms::Algorithm::Ed25519, key).unwrap();
    let proof: InclusionProof =
        serde_json::from_str(&client.inclusion_proof(signed.number).unwrap()).unwrap();
    assert!(proof.verify(&key).unwrap().is_valid());
    assert_eq!(proof.entry().unwrap().number, signed.number);
    assert!(signed.line.contains(&format!("\"n\":{}", signed.number)), "{}", signed.line);
    let growth = client.consistency_proof(&old.text).unwrap();
    let growth: ConsistencyProof = serde_json::from_str(&growth).unwrap();
    assert!(growth.verify(&key, &key).is_valid());
    assert_eq!(growth.old, old.text.parse::<Checkpoint>().unwrap());
    let report = client.verify_audit_log(&[&old.text, &new.text]).unwrap();
    assert!(report.valid && report.problems.is_empty() && report.signed_entries >= new.size);

    let mut backup = client.backup(&[&recipient]).unwrap();
    let mut whole = Vec::new();
    for piece in &mut backup {
        whole.extend_from_slice(&piece.unwrap());
    }
    let told = (backup.keys, backup.private_keys, backup.made);
    let backup = Backup::read(&whole[..], &[&identity], Backends::software()).unwrap();
    let summary = backup.summary();
    assert_eq!(summary.keys, 3);
    assert_eq!(
        told,
        (summary.keys, summary.private_keys, UNIX_EPOCH + Duration::from_millis(summary.made.unix_millis()))
    );
    let refused = client.backup(&["age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"]);
    assert!(refused.unwrap_err().code().is_some());
    seal_and_unseal(&client);
}

/// Seals the service, and unseals it with its passphrase.
fn seal_and_unseal(client: &Client) {
    let ready = client.readiness().unwrap();
    assert!(ready.ready && !ready.sealed && ready.store.is_none());
    assert!(client.seal_service().unwrap().sealed);
    let closed = client.readiness().unwrap();
    assert!(!closed.ready && closed.sealed);
    // The service asks for a pause of a second before the next attempt. The deadline is earlier, so
    // the call ends with the first answer. On a busy machine it may also end without one.
    let closed = client.clone().with_timeout(Duration::from_millis(500));
    let mut errors = std::iter::repeat_with(|| closed.sign("a", b"").unwrap_err()).take(100);
    let answered = errors.find(|error| error.kind() != ErrorKind::Timeout).unwrap();
    assert_eq!(answered.code(), Some(&ErrorCode::Sealed));
    assert!(!client.unseal_service(Some(PASSPHRASE)).unwrap().sealed);
    client.sign("a", b"").unwrap();
    assert!(!client.health().unwrap().version.is_empty());
}
