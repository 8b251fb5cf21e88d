//! Tests that need internals of the writer.

use super::*;
use crate::audit_log::Actor;
use crate::audit_log::CheckpointSigningKey;
use crate::id::KeyId;

/// Signs nothing.
struct Nobody;

impl CheckpointSigner for Nobody {
    fn find_key(&self, _tenant: &Name, _label: &Name) -> Result<Option<KeyId>> {
        Ok(None)
    }

    fn checkpoint_signing_key(&self, _key: KeyRef<'_>) -> Result<Box<dyn CheckpointSigningKey + '_>> {
        Err(KmsError::new(Code::KeyNotFound, "no key"))
    }
}

#[test]
fn the_disk_gets_a_long_file_before_it_is_full() {
    let folder = tempfile::tempdir().unwrap();
    let options = AuditLogOptions { durability: Durability::AtCheckpoints, ..AuditLogOptions::default() };
    let log = AuditLog::create(folder.path(), options).unwrap();
    let who: Actor = "a".repeat(Actor::MAX).parse().unwrap();
    let (operation, outcome) = (AuditOperation::Sign, Outcome::Done);
    let events = vec![AuditEvent { who, operation, key: None, outcome, digest: None }; 1000];
    let mut on_the_disk = Vec::new();
    while on_the_disk.last().is_none_or(|durable| *durable == 0) {
        log.record(&events).unwrap();
        log.settle(&Nobody);
        on_the_disk.push(log.state().durable);
    }
    assert!(on_the_disk.len() > 1 && log.state().unsynced == 0);
    assert_eq!(on_the_disk.last(), Some(&log.len()));
}

/// A clock that went forward and back leaves a last checkpoint that lies ahead of it.
#[test]
fn a_checkpoint_is_due_by_the_time_that_passed_whatever_the_clock_says() {
    let (interval, id) = (Duration::from_nanos(1), LogId::random().unwrap());
    let tomorrow = Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() + 86_400_000);
    let key = "local/audit/ed25519/0197a5c0-4c1e-7e0b-9a37-0d2a6f3b8c11/v1".parse().unwrap();
    let public_key = crate::PublicKey::from_bytes(
        crate::Algorithm::Ed25519,
        &[
            0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
            0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
        ],
    );
    let unsigned = UnsignedCheckpoint {
        log: id,
        size: 0,
        root: Frontier::<super::super::tree::Blake3>::default().root(),
        time: tomorrow.unwrap(),
    };
    let checkpoint = Some(unsigned.signed(key, &public_key.unwrap(), vec![0; 64]));
    let report = Report { checkpoint, ..Report::default() };
    let stand = Stand { log: id, chain: id.chain(), tree: Frontier::default(), report };
    let signer = Some(("local".parse().unwrap(), "audit".parse().unwrap()));
    let options = AuditLogOptions { signer, checkpoint_interval: interval, ..AuditLogOptions::default() };
    let log = AuditLog::new(options, Medium::Memory(Vec::new()), stand, None).unwrap();
    let (who, operation, outcome) = (AuditContext::actor(), AuditOperation::Sign, Outcome::Done);
    log.record(&[AuditEvent { who, operation, key: None, outcome, digest: None }]).unwrap();
    while log.state().sealed_at.elapsed() < interval {}
    assert!(log.is_due(&log.state()));
}

#[test]
fn an_error_that_another_threads_sync_got_is_the_error_of_this_sync() {
    let folder = tempfile::tempdir().unwrap();
    let log = AuditLog::create(folder.path(), AuditLogOptions::default()).unwrap();
    let file = File::open(folder.path().join("00000000000000000000.jsonl")).unwrap();
    log.sync(&file).unwrap();
    log.state().fail("cannot sync the audit log", std::io::Error::other("the disk failed"));
    assert_eq!(log.sync(&file).unwrap_err().code, Code::Io);
}
