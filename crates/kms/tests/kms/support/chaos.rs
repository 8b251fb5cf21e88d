//! Continuous rotation under threads that sign and verify.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bulla_kms::{Algorithm, Code, KeyId, Keystore, NewKey, Signature, Verdict, VerifyItem};

const SIGNERS: u32 = 3;
const VERIFIERS: usize = 2;
/// Rotations after which a key is left and another one takes its place: a record has a line for
/// each version.
const ROTATIONS: u32 = 500;
/// Signatures that verifiers choose from.
const KEPT: usize = 512;

/// What happened.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) rotations: u64,
    pub(crate) signatures: u64,
    pub(crate) verifications: u64,
    /// Of one signature or verification.
    pub(crate) slowest_read: Duration,
    pub(crate) slowest_rotation: Duration,
    pub(crate) keys: usize,
}

/// What all threads see of the key that is rotated now.
struct Key {
    key_id: KeyId,
    /// The latest version that was acknowledged.
    acknowledged: AtomicU32,
}

/// Rotates through `writer` while others sign and verify through `reader`, which may be the same
/// keystore or one that sees the same store, for a while.
///
/// Each signature is made by a version that was the head when the call began or later, and
/// verifies: at once, and whenever it is met again.
pub(crate) fn run(writer: &Keystore, reader: &Keystore, time: Duration) -> Report {
    let chaos = Chaos {
        writer,
        reader,
        done: AtomicBool::new(false),
        key: Mutex::new(Arc::new(new_key(writer))),
        kept: Mutex::default(),
    };
    let mut report = Report { keys: 1, ..Report::default() };
    std::thread::scope(|scope| {
        let chaos = &chaos;
        let signers: Vec<_> = (0..SIGNERS).map(|thread| scope.spawn(move || chaos.sign(thread))).collect();
        let verifiers: Vec<_> = (0..VERIFIERS).map(|_| scope.spawn(|| chaos.verify())).collect();
        chaos.rotate(time, &mut report);
        chaos.done.store(true, Ordering::SeqCst);
        let sum = |results: Vec<(u64, Duration)>| {
            let slowest = results.iter().map(|(_, slowest)| *slowest).max().unwrap_or_default();
            (results.iter().map(|(count, _)| count).sum::<u64>(), slowest)
        };
        let (signatures, slowest) = sum(signers.into_iter().map(|thread| thread.join().unwrap()).collect());
        report.signatures = signatures;
        let (verified, slower) = sum(verifiers.into_iter().map(|thread| thread.join().unwrap()).collect());
        report.verifications = verified + signatures;
        report.slowest_read = slowest.max(slower);
    });
    assert!(report.rotations > 1 && report.signatures > 0 && report.verifications > 0, "{report:?}");
    report
}

/// What the threads share.
struct Chaos<'a> {
    writer: &'a Keystore,
    reader: &'a Keystore,
    done: AtomicBool,
    key: Mutex<Arc<Key>>,
    kept: Mutex<Vec<(Vec<u8>, Signature)>>,
}

impl Chaos<'_> {
    fn key(&self) -> Arc<Key> {
        Arc::clone(&self.key.lock().unwrap())
    }

    /// Signs and verifies until the end; how often, and how long the slowest signature took.
    fn sign(&self, thread: u32) -> (u64, Duration) {
        let same = std::ptr::eq(self.writer, self.reader);
        let (mut count, mut slowest) = (0_u64, Duration::ZERO);
        while !self.done.load(Ordering::SeqCst) {
            let key = self.key();
            let message = [u64::from(thread), count].map(u64::to_be_bytes).concat();
            let before = key.acknowledged.load(Ordering::SeqCst);
            let start = Instant::now();
            let signature = match self.reader.sign(&key.key_id, &message) {
                // Another node may not have heard of a new key yet.
                Err(error) if !same && error.code == Code::KeyNotFound => continue,
                result => result.unwrap(),
            };
            slowest = slowest.max(start.elapsed());
            assert!(!same || signature.key.version() >= before, "a version that was rotated away signed");
            let verdict = self.reader.verify(&signature.key, &message, &signature.bytes).unwrap();
            assert_eq!(verdict, Verdict::Valid, "{}", signature.key);
            count += 1;
            if count % 16 == 0 {
                let mut kept = self.kept.lock().unwrap();
                let place = count as usize * SIGNERS as usize + thread as usize;
                match kept.len() {
                    KEPT => kept[place % KEPT] = (message, signature),
                    _ => kept.push((message, signature)),
                }
            }
        }
        (count, slowest)
    }

    /// Verifies what was signed, again and again, until the end; how often, and how long the
    /// slowest took.
    fn verify(&self) -> (u64, Duration) {
        let (mut count, mut slowest) = (0_u64, Duration::ZERO);
        while !self.done.load(Ordering::SeqCst) {
            let some: Vec<_> = self.kept.lock().unwrap().iter().rev().take(64).cloned().collect();
            let items: Vec<_> = some
                .iter()
                .map(|(message, signature)| VerifyItem {
                    key: &signature.key,
                    message,
                    signature: &signature.bytes,
                })
                .collect();
            let start = Instant::now();
            let verdicts = self.reader.verify_batch(&items);
            slowest = slowest.max(start.elapsed() / items.len().max(1) as u32);
            assert!(verdicts.iter().all(|verdict| verdict.is_valid()), "{verdicts:?}");
            count += items.len() as u64;
        }
        (count, slowest)
    }

    /// Rotates for a while, and makes another key now and then.
    fn rotate(&self, time: Duration, report: &mut Report) {
        let start = Instant::now();
        while start.elapsed() < time {
            let now = self.key();
            let began = Instant::now();
            let id = self.writer.rotate(&now.key_id).unwrap();
            report.slowest_rotation = report.slowest_rotation.max(began.elapsed());
            assert_eq!(id.version(), now.acknowledged.load(Ordering::SeqCst) + 1, "no rotation is lost");
            now.acknowledged.store(id.version(), Ordering::SeqCst);
            report.rotations += 1;
            if id.version() > ROTATIONS {
                *self.key.lock().unwrap() = Arc::new(new_key(self.writer));
                report.keys += 1;
            }
        }
    }
}

fn new_key(writer: &Keystore) -> Key {
    let new = NewKey::new("local".parse().unwrap(), "chaos".parse().unwrap(), Algorithm::Ed25519);
    Key { key_id: writer.create_key(new).unwrap().key_id().clone(), acknowledged: AtomicU32::new(1) }
}
