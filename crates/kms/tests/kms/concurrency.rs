//! Many threads at once.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bulla_kms::{Algorithm, Code, Keystore, NewKey, Verdict};

fn new_key(label: Option<&str>) -> NewKey {
    let mut new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    new.label = label.map(|label| label.parse().unwrap());
    new
}

#[test]
fn every_signature_made_during_rotations_verifies_under_the_version_it_names() {
    const ROTATIONS: u32 = 300;
    let keystore = Keystore::in_memory().unwrap();
    let key = keystore.create_key(new_key(None)).unwrap().key_id().clone();
    let acknowledged = AtomicU32::new(1);
    let done = AtomicBool::new(false);
    let sign = |thread: u32| {
        let mut versions = std::collections::BTreeSet::new();
        let mut last = false;
        while !last {
            last = done.load(Ordering::SeqCst);
            let message = [thread, versions.len() as u32].map(u32::to_be_bytes).concat();
            let before = acknowledged.load(Ordering::SeqCst);
            let signature = keystore.sign(&key, &message).unwrap();
            assert!(signature.key.version() >= before, "a version that was rotated away does not sign");
            assert_eq!(keystore.verify(&signature.key, &message, &signature.bytes).unwrap(), Verdict::Valid);
            versions.insert(signature.key.version());
        }
        versions
    };
    let versions = std::thread::scope(|scope| {
        let signers: Vec<_> = (0..8).map(|thread| scope.spawn(move || sign(thread))).collect();
        for version in 2..=ROTATIONS {
            assert_eq!(keystore.rotate(&key).unwrap().version(), version);
            acknowledged.store(version, Ordering::SeqCst);
        }
        done.store(true, Ordering::SeqCst);
        signers.into_iter().map(|signer| signer.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(versions.iter().all(|versions| versions.contains(&ROTATIONS)), "each thread signed to the end");
    assert!(
        versions.iter().any(|versions| versions.len() > 1),
        "signatures were made while the key was rotated"
    );
}

#[test]
fn rotations_from_many_threads_give_each_number_once() {
    let keystore = Keystore::in_memory().unwrap();
    let key = keystore.create_key(new_key(None)).unwrap().key_id().clone();
    let mut versions = std::thread::scope(|scope| {
        let rotate = || (0..50).map(|_| keystore.rotate(&key).unwrap().version()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(rotate)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    versions.sort_unstable();
    assert!(versions.into_iter().eq(2..=401));
}

#[test]
fn a_label_is_given_once() {
    let keystore = Keystore::in_memory().unwrap();
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| keystore.create_key(new_key(Some("default"))))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    for error in results.into_iter().filter_map(Result::err) {
        assert_eq!(error.code, Code::LabelTaken);
    }
}
