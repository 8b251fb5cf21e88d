//! What may be done to a key after it was made: each change is compared, durable, and refused where
//! it makes no sense.

use std::num::{NonZeroU32, NonZeroU64};

use bulla_kms::{
    Algorithm, Code, KeyChange, KeyId, KeyState, KeyVersionId, Keystore, NewKey, RotationPolicy,
    SignedAttestation, Timestamp, Unlock, Verdict, VerifyItem, VersionState,
};

const MESSAGE: &[u8] = b"a message";

fn new_key(label: &str) -> NewKey {
    let name = |text: &str| text.parse().unwrap();
    NewKey::new(name("local"), name("files"), Algorithm::Ed25519).label(name(label))
}

fn keystore_with_key() -> (Keystore, KeyId) {
    let keystore = Keystore::in_memory().unwrap();
    let key_id = keystore.create_key(new_key("a")).unwrap().key_id().clone();
    (keystore, key_id)
}

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

fn after(millis: i64) -> Timestamp {
    let now = i64::try_from(Timestamp::now().unwrap().unix_millis()).unwrap();
    Timestamp::from_unix_millis(u64::try_from(now + millis).unwrap()).unwrap()
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: bulla_kms::Result<T>, code: Code) {
    assert_eq!(result.unwrap_err().code, code);
}

#[test]
fn a_change_is_made_at_the_revision_that_was_seen_or_not_at_all() {
    let (keystore, key) = keystore_with_key();
    let seen = keystore.attest(&key).unwrap().revision;
    let disabled = keystore.update(&key, Some(seen), &KeyChange::Disable).unwrap();
    assert_eq!((disabled.state, disabled.revision), (KeyState::Disabled, seen + 1));
    refused(keystore.update(&key, Some(seen), &KeyChange::Enable), Code::Conflict);
    assert_eq!(keystore.attest(&key).unwrap(), disabled);
    // What changes nothing is no revision.
    assert_eq!(keystore.update(&key, None, &KeyChange::Disable).unwrap(), disabled);
    assert_eq!(keystore.update(&key, None, &KeyChange::Enable).unwrap().revision, seen + 2);
}

#[test]
fn whether_a_key_may_be_deleted_is_remembered_and_left_out_where_it_is_not_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keystore.redb");
    let unlock = Unlock::Passphrase("correct horse".into());
    let keystore = Keystore::create(&path, &unlock).unwrap();
    let key = keystore.create_key(new_key("a")).unwrap().key_id().clone();
    let json = |keystore: &Keystore| serde_json::to_string(&keystore.attest(&key).unwrap()).unwrap();
    assert!(!json(&keystore).contains("deletion_allowed"));
    assert!(keystore.update(&key, None, &KeyChange::DeletionAllowed(true)).unwrap().deletion_allowed);
    drop(keystore);
    let keystore = Keystore::open(&path, &unlock).unwrap();
    assert!(keystore.attest(&key).unwrap().deletion_allowed && json(&keystore).contains("deletion_allowed"));
    // It is asked by the Vault-compatible interface alone.
    refused(keystore.update(&key, None, &KeyChange::Destroy), Code::DestructionNotDue);
    assert!(!keystore.update(&key, None, &KeyChange::DeletionAllowed(false)).unwrap().deletion_allowed);
}

#[test]
fn of_two_rotations_from_one_head_one_is_made() {
    let (keystore, key) = keystore_with_key();
    let first = key.version(number(1));
    assert_eq!(keystore.rotate_from(&first).unwrap().version(), 2);
    refused(keystore.rotate_from(&first), Code::Conflict);
    assert_eq!(keystore.attest(&key).unwrap().latest_version, 2);
}

#[test]
fn a_label_moves_and_stays_unique() {
    let (keystore, key) = keystore_with_key();
    keystore.create_key(new_key("b")).unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|label| label.parse().unwrap());
    refused(keystore.update(&key, None, &KeyChange::Label(Some(b))), Code::LabelTaken);
    keystore.update(&key, None, &KeyChange::Label(Some(c))).unwrap();
    let find = |label: &str| keystore.find(key.tenant(), &label.parse().unwrap()).unwrap();
    assert_eq!((find("a"), find("c")), (None, Some(key.clone())));
    keystore.update(&key, None, &KeyChange::Label(None)).unwrap();
    assert_eq!(find("c"), None);
    keystore.update(&key, None, &KeyChange::Label(Some(a))).unwrap();
    assert_eq!(find("a"), Some(key));
}

#[test]
fn versions_below_the_least_one_neither_verify_nor_come_back_by_themselves() {
    let (keystore, key) = keystore_with_key();
    let old = keystore.sign(&key, MESSAGE).unwrap();
    keystore.rotate(&key).unwrap();
    refused(keystore.update(&key, None, &KeyChange::MinimumVersion(number(3))), Code::UnknownVersion);
    keystore.update(&key, None, &KeyChange::MinimumVersion(number(2))).unwrap();
    refused(keystore.verify(&old.key, MESSAGE, &old.bytes), Code::VersionNotUsable);
    let item = VerifyItem { key: &old.key, message: MESSAGE, signature: &old.bytes };
    assert_eq!(keystore.verify_batch(&[item]), [Verdict::Unusable]);
    // The public key remains known, for those who judge the past themselves.
    assert_eq!(keystore.public_key(&old.key).unwrap().verify(MESSAGE, &old.bytes), Verdict::Valid);
    keystore.update(&key, None, &KeyChange::MinimumVersion(number(1))).unwrap();
    assert_eq!(keystore.verify(&old.key, MESSAGE, &old.bytes).unwrap(), Verdict::Valid);
}

#[test]
fn a_revoked_version_is_refused_and_a_destroyed_one_verifies() {
    let (keystore, key) = keystore_with_key();
    let signatures: Vec<_> = (0..3)
        .map(|_| {
            let signature = keystore.sign(&key, MESSAGE).unwrap();
            keystore.rotate(&key).unwrap();
            signature
        })
        .collect();
    refused(keystore.update(&key, None, &KeyChange::Revoke(number(4))), Code::InvalidArgument);
    refused(keystore.update(&key, None, &KeyChange::Revoke(number(5))), Code::UnknownVersion);
    keystore.update(&key, None, &KeyChange::Revoke(number(1))).unwrap();
    keystore.update(&key, None, &KeyChange::DestroyVersion(number(2))).unwrap();
    // Destroying what was revoked does not make it acceptable again.
    let attested = keystore.update(&key, None, &KeyChange::DestroyVersion(number(1))).unwrap();
    let states: Vec<_> = attested.versions.iter().map(|version| version.state).collect();
    use VersionState::{Destroyed, Revoked, Usable};
    assert_eq!(states, [Revoked, Destroyed, Usable, Usable]);
    let verify =
        |signature: &bulla_kms::Signature| keystore.verify(&signature.key, MESSAGE, &signature.bytes);
    refused(verify(&signatures[0]), Code::VersionNotUsable);
    assert_eq!(verify(&signatures[1]).unwrap(), Verdict::Valid);
    assert_eq!(verify(&signatures[2]).unwrap(), Verdict::Valid);
}

#[test]
fn destruction_is_scheduled_can_be_taken_back_and_then_cannot() {
    let (keystore, key) = keystore_with_key();
    let signature = keystore.sign(&key, MESSAGE).unwrap();
    let update = |change| keystore.update(&key, None, &change);
    refused(update(KeyChange::Destroy), Code::DestructionNotDue);
    refused(update(KeyChange::CancelDestruction), Code::InvalidArgument);
    update(KeyChange::ScheduleDestruction(after(60_000))).unwrap();
    refused(update(KeyChange::Destroy), Code::DestructionNotDue);
    refused(keystore.sign(&key, MESSAGE), Code::KeyPendingDestruction);
    refused(keystore.rotate(&key), Code::KeyPendingDestruction);
    refused(update(KeyChange::Enable), Code::KeyPendingDestruction);
    assert_eq!(update(KeyChange::CancelDestruction).unwrap().state, KeyState::Disabled);
    refused(keystore.sign(&key, MESSAGE), Code::KeyDisabled);
    update(KeyChange::Enable).unwrap();
    assert!(keystore.sign(&key, MESSAGE).is_ok());
    update(KeyChange::ScheduleDestruction(after(-1))).unwrap();
    assert_eq!(update(KeyChange::Destroy).unwrap().state, KeyState::Destroyed);
    refused(keystore.sign(&key, MESSAGE), Code::KeyDestroyed);
    refused(update(KeyChange::Enable), Code::KeyDestroyed);
    refused(update(KeyChange::CancelDestruction), Code::KeyDestroyed);
    assert_eq!(keystore.verify(&signature.key, MESSAGE, &signature.bytes).unwrap(), Verdict::Valid);
}

#[test]
fn what_was_changed_is_so_when_the_store_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, secret) = (folder.path().join("keys.redb"), folder.path().join("secret"));
    bulla_kms::KeyFile::create(&secret).unwrap();
    let unlock = Unlock::KeyFile(secret);
    let keystore = Keystore::create(&path, &unlock).unwrap();
    let policy =
        RotationPolicy::default().max_age_seconds(NonZeroU64::new(86_400)).max_uses(NonZeroU64::new(1000));
    let [a, b] = ["a", "b"].map(|label| {
        let new = new_key(label).rotation(policy).exportable(true);
        keystore.create_key(new).unwrap().key_id().clone()
    });
    for _ in 0..3 {
        keystore.rotate(&a).unwrap();
    }
    for change in [
        KeyChange::Revoke(number(1)),
        KeyChange::DestroyVersion(number(2)),
        KeyChange::MinimumVersion(number(2)),
        KeyChange::ScheduleDestruction(after(3_600_000)),
    ] {
        keystore.update(&a, None, &change).unwrap();
    }
    keystore.update(&b, None, &KeyChange::ScheduleDestruction(after(-1))).unwrap();
    keystore.update(&b, None, &KeyChange::Destroy).unwrap();
    let before = keystore.list().unwrap();
    assert_eq!(before[0].rotation, policy);
    drop(keystore);
    let keystore = Keystore::open(&path, &unlock).unwrap();
    assert_eq!(keystore.list().unwrap(), before);
    keystore.update(&a, None, &KeyChange::CancelDestruction).unwrap();
    keystore.update(&a, None, &KeyChange::Enable).unwrap();
    assert_eq!(keystore.sign(&a, MESSAGE).unwrap().key.version(), 4);
}

#[test]
fn no_version_makes_more_signatures_than_its_policy_allows() {
    // A thousand signatures. A change of a key takes longer the more versions there are, so those
    // that need many have several keys.
    const THREADS: usize = 4;
    let cases = [(1, 10), (2, 5), (63, 1), (64, 1), (65, 1), (200, 1)];
    for (max_uses, signatures) in cases.into_iter().flat_map(|(uses, keys)| vec![(uses, 1000 / keys); keys]) {
        let (keystore, key) = keystore_with_key();
        let policy = RotationPolicy::default().max_uses(NonZeroU64::new(max_uses));
        keystore.update(&key, None, &KeyChange::Rotation(policy)).unwrap();
        let sign = || {
            (0..signatures / THREADS)
                .map(|_| keystore.sign(&key, MESSAGE).unwrap().key)
                .collect::<Vec<KeyVersionId>>()
        };
        let signed: Vec<KeyVersionId> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(sign)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let mut counts = std::collections::BTreeMap::new();
        signed.iter().for_each(|id| *counts.entry(id.version()).or_insert(0) += 1);
        let (_, last) = counts.pop_last().unwrap();
        assert!(last <= max_uses, "{max_uses}: {last}");
        // Threads that were overtaken may leave some uses of a version unused, never use one twice.
        assert!(counts.values().all(|count| *count <= max_uses), "{max_uses}: {counts:?}");
        assert_eq!(counts.values().sum::<u64>() + last, signatures as u64);
    }
}

/// Whoever may read a key may have it attested.
#[test]
fn an_attestation_is_no_use_of_a_key_and_rotates_it_neither_by_number_nor_by_age() {
    let (keystore, key) = keystore_with_key();
    let by_uses = RotationPolicy::default().max_uses(NonZeroU64::new(2));
    let policy = by_uses.max_age_seconds(NonZeroU64::new(1));
    keystore.update(&key, None, &KeyChange::Rotation(policy)).unwrap();
    let attest = || keystore.attest_signed(&key).unwrap();
    for _ in 0..5 {
        assert_eq!(attest().signature.key.version(), 1);
    }
    let created = attest().attestation.versions[0].created;
    while Timestamp::now().unwrap().unix_millis() <= created.unix_millis() + 1000 {
        std::thread::yield_now();
    }
    let old = attest();
    assert!(old.verify().is_valid());
    assert_eq!((old.signature.key.version(), old.attestation.versions.len()), (1, 1));
    // Both uses of the version are left.
    keystore.update(&key, None, &KeyChange::Rotation(by_uses)).unwrap();
    let signed = [(); 3].map(|()| {
        attest();
        keystore.sign(&key, MESSAGE).unwrap().key.version()
    });
    assert_eq!(signed, [1, 1, 2]);
}

#[test]
fn a_version_that_is_too_old_is_replaced_before_the_next_signature() {
    let (keystore, key) = keystore_with_key();
    let policy = RotationPolicy::default().max_age_seconds(NonZeroU64::new(1));
    keystore.update(&key, None, &KeyChange::Rotation(policy)).unwrap();
    let first = keystore.sign(&key, MESSAGE).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let second = keystore.sign(&key, MESSAGE).unwrap();
    assert!(second.key.version() > first.key.version());
    assert_eq!(keystore.verify(&second.key, MESSAGE, &second.bytes).unwrap(), Verdict::Valid);
    // Who asks for the old version by name gets an error, not a signature by another one.
    refused(keystore.sign(&first.key, MESSAGE), Code::NotLatestVersion);
}

#[test]
fn a_batch_gives_each_item_the_verdict_of_its_own_call() {
    let (keystore, a) = keystore_with_key();
    let b = keystore.create_key(new_key("b")).unwrap().key_id().clone();
    let stranger = keystore_with_key().1.version(number(1));
    let mut signatures = Vec::new();
    for turn in 0..40_u8 {
        for key in [&a, &b] {
            let mut signature = keystore.sign(key, &[turn]).unwrap();
            match turn % 5 {
                1 => signature.bytes[usize::from(turn)] ^= 1,
                2 => signature.bytes.truncate(63),
                3 => signature.key = stranger.clone(),
                _ => {}
            }
            signatures.push((turn, signature));
        }
        if turn % 7 == 0 {
            keystore.rotate(&a).unwrap();
        }
    }
    keystore.update(&a, None, &KeyChange::Revoke(number(2))).unwrap();
    let messages: Vec<_> = signatures.iter().map(|(turn, _)| [*turn]).collect();
    let items: Vec<_> = signatures
        .iter()
        .zip(&messages)
        .map(|((_, signature), message)| VerifyItem {
            key: &signature.key,
            message,
            signature: &signature.bytes,
        })
        .collect();
    let single: Vec<_> = items
        .iter()
        .map(|item| keystore.verify(item.key, item.message, item.signature).unwrap_or(Verdict::Unusable))
        .collect();
    assert_eq!(keystore.verify_batch(&items), single);
    for verdict in [Verdict::Valid, Verdict::Invalid, Verdict::Unusable] {
        assert!(single.contains(&verdict), "{verdict:?} occurs");
    }
    assert!(!keystore.verify_all(&items));
    assert!(keystore.verify_all(&items[..2]) && keystore.verify_all(&[]));
}

#[test]
fn a_signed_attestation_is_the_heads_and_nothing_of_it_can_be_changed() {
    let (keystore, key) = keystore_with_key();
    keystore.rotate(&key).unwrap();
    let attested = keystore.attest_signed(&key).unwrap();
    assert_eq!(attested.attestation, keystore.attest(&key).unwrap());
    let text = serde_json::to_string(&attested).unwrap();
    let read: SignedAttestation = serde_json::from_str(&text).unwrap();
    assert_eq!((&read, read.verify()), (&attested, Verdict::Valid));
    for (from, to) in
        [("\"enabled\"", "\"disabled\""), ("\"head\":2", "\"head\":1"), ("\"label\":\"a\"", "\"label\":null")]
    {
        let edited: SignedAttestation = serde_json::from_str(&text.replacen(from, to, 1)).unwrap();
        assert_eq!(edited.verify(), Verdict::Invalid, "{from}");
    }
    // What a caller has signed is never an attestation.
    refused(keystore.sign(&key, &attested.attestation.signed_bytes()), Code::ReservedMessage);
}
