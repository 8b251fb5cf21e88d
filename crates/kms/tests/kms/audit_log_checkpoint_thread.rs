//! A thread makes the checkpoints of an audit log: operations do not wait for it, and nothing stays
//! open.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bulla_kms::audit_log::{
    AuditLog, AuditLogOptions, CheckpointSigner, CheckpointSigningKey, CheckpointThread, Report, verify,
};
use bulla_kms::{Code, KeyId, KeyRef, Keystore, Name, Result};

use crate::audit_log::{LogFixture, by_hand, kinds, place};

/// How long a thread may take for something that takes it milliseconds.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Checkpoints are due after so many entries, or so long after the last one.
fn due_after(entries: u64, interval: Duration) -> AuditLogOptions {
    by_hand()
        .signer("local".parse().unwrap(), "audit".parse().unwrap())
        .checkpoint_entries(entries)
        .checkpoint_interval(interval)
}

const NEVER: Duration = Duration::from_secs(1 << 30);

/// The keystore of a place signs, but only after somebody has allowed it.
struct Held {
    keystore: Keystore,
    allowed: Mutex<Receiver<()>>,
}

impl CheckpointSigner for Held {
    fn find_key(&self, tenant: &Name, label: &Name) -> Result<Option<KeyId>> {
        // When nobody can allow it any more, it is allowed.
        let _ = self.allowed.lock().unwrap().recv();
        self.keystore.find_key(tenant, label)
    }

    fn checkpoint_signing_key(&self, key: KeyRef<'_>) -> Result<Box<dyn CheckpointSigningKey + '_>> {
        self.keystore.checkpoint_signing_key(key)
    }
}

#[test]
fn operations_do_not_wait_for_a_checkpoint_that_is_due() {
    let LogFixture { folder, log, keystore, key } = place(due_after(1, NEVER));
    let (allow, allowed) = channel();
    let held = Arc::new(Held { keystore, allowed: Mutex::new(allowed) });
    // The key's creation made one by itself.
    let made = log.newest_checkpoint().unwrap().size;
    assert_eq!(made, 1);
    let sealer = CheckpointThread::start(&held, &log).unwrap();
    (0..10).for_each(|_| drop(held.keystore.sign(&key, b"a message").unwrap()));
    assert_eq!((log.len(), log.newest_checkpoint().unwrap().size), (11, 1));
    drop(allow);
    drop(sealer);
    let report = verify(folder.path(), &|id| held.keystore.public_key(id).ok(), &[]).unwrap();
    assert_eq!((report.entries, report.signed_entries, kinds(&report)), (11, 11, vec![]));
}

#[test]
fn a_sealer_leaves_no_due_entry_open_and_operations_make_checkpoints_after_it() {
    let mut place = place(due_after(5, NEVER));
    let keystore = Arc::new(std::mem::replace(&mut place.keystore, Keystore::in_memory().unwrap()));
    let sealer = CheckpointThread::start(&keystore, &place.log).unwrap();
    let other = CheckpointThread::start(&keystore, &place.log).unwrap_err();
    assert_eq!(other.code, Code::AlreadyExists);
    let sign = |times: usize| (0..times).for_each(|_| drop(keystore.sign(&place.key, b"a message").unwrap()));
    sign(30);
    drop(sealer);
    let open = |report: &Report| report.entries - report.signed_entries;
    let report = || verify(place.path(), &|id| keystore.public_key(id).ok(), &[]).unwrap();
    assert_eq!((report().entries, kinds(&report())), (31, vec![]));
    assert!(open(&report()) < 5 && report().checkpoints > 0, "{:?}", report());
    sign(5);
    assert!(open(&report()) < 5 && report().signed_entries > 31 - 5, "{:?}", report());
    drop(CheckpointThread::start(&keystore, &place.log).unwrap());
}

#[test]
fn the_last_entries_before_a_pause_are_sealed() {
    let mut place = place(due_after(u64::MAX, Duration::from_millis(5)));
    let keystore = Arc::new(std::mem::replace(&mut place.keystore, Keystore::in_memory().unwrap()));
    let _sealer = CheckpointThread::start(&keystore, &place.log).unwrap();
    (0..3).for_each(|_| drop(keystore.sign(&place.key, b"a message").unwrap()));
    let start = Instant::now();
    while place.log.newest_checkpoint().is_none_or(|newest| newest.size < 4) {
        assert!(start.elapsed() < WAIT_TIMEOUT, "nobody seals the last entries");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn threads_that_write_while_checkpoints_are_made_leave_one_chain_that_opens_again() {
    let options = due_after(7, Duration::ZERO).max_file_bytes(5000);
    let mut place = place(options.clone());
    let keystore = Arc::new(std::mem::replace(&mut place.keystore, Keystore::in_memory().unwrap()));
    let sealer = CheckpointThread::start(&keystore, &place.log).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (keystore, place) = (&keystore, &place);
            scope.spawn(move || {
                for round in 0..25 {
                    keystore.sign(&place.key, b"a message").unwrap();
                    if (round + thread) % 10 == 0 {
                        place.log.checkpoint(&**keystore, place.key.key_id()).unwrap();
                    }
                }
            });
        }
    });
    drop(sealer);
    let report = verify(place.path(), &|id| keystore.public_key(id).ok(), &[]).unwrap();
    assert_eq!((report.entries, report.signed_entries, kinds(&report)), (201, 201, vec![]));
    let newest = place.log.newest_checkpoint().unwrap();
    let LogFixture { folder, log, .. } = place;
    drop((log, keystore));
    let log = AuditLog::open(folder.path(), options).unwrap();
    assert_eq!((log.len(), log.newest_checkpoint()), (201, Some(newest)));
}

#[test]
fn a_keystore_that_is_closed_leaves_no_entry_open() {
    let place = place(due_after(u64::MAX, NEVER));
    place.sign(3);
    let public_key = place.keystore.public_key(&place.key).unwrap();
    let LogFixture { folder, keystore, log, .. } = place;
    let report = || verify(folder.path(), &|_| Some(public_key.clone()), &[]).unwrap();
    assert_eq!((report().entries, report().signed_entries), (4, 0));
    drop(keystore);
    assert_eq!((report().entries, report().signed_entries, report().checkpoints), (4, 4, 1));
    assert_eq!(log.newest_checkpoint().map(|newest| newest.size), Some(4));
    assert!(log.checkpoint_error().is_none());
}
