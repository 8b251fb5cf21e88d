//! An audit log whose process is killed, or whose disk is full.

use std::sync::Arc;

use bulla_kms::audit_log::{self, AuditLog, AuditLogOptions};
use bulla_kms::{Algorithm, Code, KeyVersionId, Keystore, KeystoreOptions, NewKey};

use crate::support::child::{Harm, child, limit_file_size, lines, tell_parent};
use bulla_testing::strikes::strikes;

const ROUNDS: u32 = 30;

/// Small files and many checkpoints, so that a kill meets every step.
fn options() -> AuditLogOptions {
    AuditLogOptions::default()
        .signer("local".parse().unwrap(), "audit".parse().unwrap())
        .checkpoint_entries(3)
        .max_file_bytes(2000)
}

fn keystore(log: AuditLog) -> (Keystore, KeyVersionId) {
    let keystore = KeystoreOptions::default().audit(Arc::new(log)).in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "audit".parse().unwrap(), Algorithm::Ed25519);
    let key = keystore.create_key(new.label("audit".parse().unwrap())).unwrap();
    (keystore, key)
}

#[test]
fn no_entry_that_was_acknowledged_is_lost_when_the_process_is_killed() {
    if let Some(folder) = child() {
        let (keystore, key) = keystore(AuditLog::open(&folder, options()).unwrap());
        for number in 0_u64.. {
            // The digest in the entry is that of the number.
            let message = format!("{}-{number}", std::process::id());
            keystore.sign(&key, message.as_bytes()).unwrap();
            tell_parent(message);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    drop(AuditLog::create(folder.path(), options()).unwrap());
    let test = "audit_log_crash::no_entry_that_was_acknowledged_is_lost_when_the_process_is_killed";
    let mut told = Vec::new();
    strikes(ROUNDS, |delay| {
        let before = told.len();
        told.extend(lines(test, folder.path(), Harm::Kill(delay)));
        // What was cut is taken off when the log is opened, and nothing else is ever wrong.
        let log = AuditLog::open(folder.path(), options()).unwrap();
        let entries = log.entries().unwrap();
        for message in &told {
            let digest = Some(bulla_blake3::hash(message.as_bytes()));
            assert!(entries.iter().any(|entry| entry.digest() == digest), "{message} is lost");
        }
        drop(log);
        let report = audit_log::for_each_entry(folder.path(), &mut |_, _| Ok(())).unwrap();
        assert_eq!(report.problems, []);
        told.len() >= before + 40
    });
}

/// A limit on the size of files fails as a full disk does.
#[test]
fn a_full_disk_withholds_what_cannot_be_recorded_and_passes() {
    if let Some(folder) = child() {
        let options = AuditLogOptions::default();
        let (keystore, key) = keystore(AuditLog::open(&folder, options).unwrap());
        // A line and a half.
        let length = std::fs::metadata(folder.join("00000000000000000000.jsonl")).unwrap().len();
        limit_file_size(&(length + 500).to_string());
        let mut signed = 0;
        let error = loop {
            match keystore.sign(&key, b"message") {
                Ok(_) => signed += 1,
                Err(error) => break error,
            }
        };
        assert!(error.retryable, "{error}");
        assert_eq!(keystore.sign(&key, b"message").unwrap_err().code, Code::StorageFull);
        limit_file_size("unlimited");
        keystore.sign(&key, b"message").unwrap();
        tell_parent(format_args!("{} {}", error.code, signed + 1));
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().unwrap();
    drop(AuditLog::create(folder.path(), options()).unwrap());
    let test = "audit_log_crash::a_full_disk_withholds_what_cannot_be_recorded_and_passes";
    let told = lines(test, folder.path(), Harm::FullDisk);
    let (code, signed) = told[0].split_once(' ').unwrap();
    assert_eq!(code, "storage_full");
    let mut entries = 0;
    let report = audit_log::for_each_entry(folder.path(), &mut |_, _| {
        entries += 1;
        Ok(())
    });
    assert_eq!((report.unwrap().problems, entries), (vec![], 1 + signed.parse::<usize>().unwrap()));
}
