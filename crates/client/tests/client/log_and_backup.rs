//! The audit log, backups, and sealing the service.

use bulla_client::NewKey;
use bulla_kms::audit_log::{Checkpoint, ConsistencyProof, InclusionProof};
use bulla_kms::backend::Backends;
use bulla_kms::encryption::{Identity, IdentityKind};
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Backup, PublicKey};

use crate::support::on_disk::{OnDisk, PASSPHRASE};
use crate::support::{config, token};
use crate::{address, of};

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
    let settings = bulla_client::Settings::new(address(&service.url)).token(operator.expose()).unwrap();
    of(settings).wait(async |client| {
        let old = client.make_checkpoint().await.unwrap();
        client.create_key(&NewKey { label: Some("a".to_owned()), ..NewKey::default() }).await.unwrap();
        client.sign("a", b"message").await.unwrap();
        let new = client.make_checkpoint().await.unwrap();
        assert!(new.size > old.size && client.checkpoint().await.unwrap() == new);

        let page = client.audit_entries(None).await.unwrap();
        assert_eq!((page.entries[0].number, page.next), (0, None));
        let signed = page
            .entries
            .iter()
            .rev()
            .find(|entry| entry.operation == "sign" && entry.digest.is_some())
            .unwrap();
        assert_eq!(signed.digest.as_deref(), Some(&*bulla_blake3::hash(b"message").to_hex()));
        let after = client.audit_entries(Some(signed.number - 1)).await.unwrap();
        assert_eq!(&after.entries[0], signed);

        let log_key = client.key("audit-log").await.unwrap();
        let key = &log_key.versions[0].public_key;
        let key = PublicKey::from_bytes(bulla_kms::Algorithm::Ed25519, key).unwrap();
        let proof: InclusionProof =
            serde_json::from_str(&client.prove_entry(signed.number).await.unwrap()).unwrap();
        assert!(proof.verify(&key).unwrap().is_valid());
        assert_eq!(proof.entry().unwrap().number, signed.number);
        assert!(signed.line.contains(&format!("\"n\":{}", signed.number)), "{}", signed.line);
        let growth = client.prove_growth(&old.checkpoint).await.unwrap();
        let growth: ConsistencyProof = serde_json::from_str(&growth).unwrap();
        assert!(growth.verify(&key, &key).is_valid());
        assert_eq!(growth.old, old.checkpoint.parse::<Checkpoint>().unwrap());
        let report = client.verify_log(&[&old.checkpoint, &new.checkpoint]).await.unwrap();
        assert!(report.valid && report.problems.is_empty() && report.sealed >= new.size);

        let mut backup = client.backup(&[&recipient]).await.unwrap();
        let mut whole = Vec::new();
        while let Some(piece) = backup.next().await.unwrap() {
            whole.extend_from_slice(&piece);
        }
        let told = (backup.keys, backup.private_keys, backup.made.clone());
        let backup = Backup::read(&whole[..], &[&identity], Backends::software()).unwrap();
        let summary = backup.summary();
        assert_eq!(summary.keys, 3);
        assert_eq!(told, (summary.keys, summary.private_keys, summary.made.to_string()));
        let refused =
            client.backup(&["age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"]).await;
        assert!(refused.unwrap_err().code().is_some());

        assert!(client.seal_service().await.unwrap().sealed);
        let closed = client.clone().with_deadline(std::time::Duration::from_millis(500));
        assert_eq!(closed.sign("a", b"").await.unwrap_err().code(), Some("sealed"));
        assert!(!client.unseal_service(Some(PASSPHRASE)).await.unwrap().sealed);
        client.sign("a", b"").await.unwrap();
        assert!(!client.version().await.unwrap().is_empty());
    });
}
