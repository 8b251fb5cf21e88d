//! An audit log on a full disk: no change is made that the log does not record.

use std::sync::Arc;

use bulla_kms::audit_log::{Actor, AuditLog};
use bulla_kms::{Code, KeyChange, KeyState, Keystore, KeystoreOptions, KmsError, RotationPolicy};

use crate::audit_log::{FIRST, by_hand, new_key};
use crate::support::child::{Filler, Harm, child, limit_file_size, lines, tell_parent};

fn keystore(log: &Arc<AuditLog>) -> Keystore {
    KeystoreOptions::default().audit(log.clone()).in_memory().unwrap()
}

/// The operations in the log that succeeded. The log must be undamaged.
fn operations(log: &AuditLog) -> Vec<String> {
    let entries = log.entries().unwrap();
    let done = entries.iter().filter(|entry| entry.result.as_str() == "ok");
    done.map(|entry| entry.operation.as_str().to_owned()).collect()
}

#[track_caller]
fn refused<T>(result: Result<T, KmsError>) {
    let error = result.err().expect("there is no room for the entry");
    assert_eq!((error.code, error.retryable), (Code::StorageFull, true), "{error}");
}

/// On a file system that is really full.
#[test]
fn on_a_full_disk_no_change_is_made_and_with_room_all_are() {
    if let Some(folder) = child() {
        let place = folder.join("log");
        let log = Arc::new(AuditLog::create(&place, by_hand()).unwrap());
        let keystore = keystore(&log);
        let key = keystore.create_key(new_key("a")).unwrap();
        let rotated_by_use = new_key("b").rotation(RotationPolicy::default().max_uses(1.try_into().ok()));
        let by_use = keystore.create_key(rotated_by_use).unwrap();
        keystore.sign(by_use.key_id(), b"m").unwrap();
        let filler = Filler::new(&folder, &place.join(FIRST));
        // The log has reserved some room in advance. This uses it up.
        let mut rotations = 0;
        let key_id = key.key_id();
        let error = loop {
            match keystore.rotate(key_id) {
                Ok(_) => rotations += 1,
                Err(error) => break error,
            }
        };
        refused::<()>(Err(error));
        for _ in 0..3 {
            refused(keystore.rotate(key_id));
            refused(keystore.create_key(new_key("c")));
            refused(keystore.disable(key_id));
            refused(keystore.update(key_id, None, &KeyChange::Label(None)));
            refused(keystore.update(key_id, None, &KeyChange::Revoke(1.try_into().unwrap())));
            refused(keystore.update(key_id, None, &KeyChange::Destroy));
        }
        // A use that has to rotate the key first.
        refused(keystore.sign(by_use.key_id(), b"m"));
        let now = keystore.attest(key_id).unwrap();
        assert_eq!((now.latest_version, now.state), (rotations + 1, KeyState::Enabled));
        assert_eq!(
            (keystore.list().unwrap().len(), keystore.latest_version_id(by_use.key_id()).unwrap()),
            (2, by_use.clone())
        );
        filler.empty();
        keystore.rotate(key_id).unwrap();
        keystore.sign(by_use.key_id(), b"m").unwrap();
        let rotate = vec!["rotate"; rotations as usize + 1];
        let expected = [&["create", "create", "sign"], &rotate[..], &["rotate", "sign"]].concat();
        assert_eq!(operations(&log), expected);
        tell_parent(rotations);
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "audit_log_full::on_a_full_disk_no_change_is_made_and_with_room_all_are";
    let told = lines(test, folder.path(), Harm::SmallDisk);
    assert!(told.len() == 1 && told[0].parse::<u32>().unwrap() > 0, "{told:?}");
}

/// A limit that comes after the file system has promised room stands for one that promises none.
#[test]
fn a_change_that_could_not_be_recorded_is_not_made_twice_and_recorded_before_all_others() {
    if let Some(folder) = child() {
        let log = Arc::new(AuditLog::create(&folder.join("log"), by_hand()).unwrap());
        let keystore = keystore(&log);
        let key = keystore.create_key(new_key("a")).unwrap();
        let key_id = key.key_id();
        let length = std::fs::metadata(folder.join("log").join(FIRST)).unwrap().len();
        limit_file_size(&(length + 10).to_string());
        let alice: Actor = "alice".parse().unwrap();
        let error = keystore.on_behalf_of(&alice).rotate(key_id).unwrap_err();
        assert_eq!((error.code, error.retryable), (Code::OutcomeUnknown, false), "{error}");
        assert!(error.message.contains("the change was made"), "{error}");
        for _ in 0..3 {
            refused(keystore.rotate(key_id));
            refused(keystore.disable(key_id));
            refused(keystore.sign(key_id, b"m"));
        }
        assert_eq!((operations(&log).len(), keystore.attest(key_id).unwrap().latest_version), (1, 2));
        let made = log.entries().unwrap()[0].time;
        limit_file_size("unlimited");
        keystore.disable(key_id).unwrap();
        assert_eq!(operations(&log), ["create", "rotate", "disable"]);
        let entries = log.entries().unwrap();
        assert_eq!(entries[1].actor.as_str(), "alice");
        assert!(made <= entries[1].time && entries[1].time <= entries[2].time, "{entries:?}");
        assert_eq!(keystore.attest(key_id).unwrap().latest_version, 2);
        tell_parent("done");
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "audit_log_full::a_change_that_could_not_be_recorded_is_not_made_twice_and_recorded_before_all_others";
    assert_eq!(lines(test, folder.path(), Harm::FullDisk), ["done"]);
}

/// The last entry is written when the keystore is dropped, if there is room by then.
#[test]
fn a_change_that_could_not_be_recorded_is_recorded_when_the_keystore_is_closed() {
    if let Some(folder) = child() {
        let place = folder.join("log");
        let log = Arc::new(AuditLog::create(&place, by_hand()).unwrap());
        let keystore = keystore(&log);
        let key = keystore.create_key(new_key("a")).unwrap();
        limit_file_size(&std::fs::metadata(place.join(FIRST)).unwrap().len().to_string());
        assert_eq!(keystore.disable(key.key_id()).unwrap_err().code, Code::OutcomeUnknown);
        limit_file_size("unlimited");
        drop(keystore);
        assert_eq!(operations(&log), ["create", "disable"]);
        tell_parent("done");
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().unwrap();
    let test = "audit_log_full::a_change_that_could_not_be_recorded_is_recorded_when_the_keystore_is_closed";
    assert_eq!(lines(test, folder.path(), Harm::FullDisk), ["done"]);
}
