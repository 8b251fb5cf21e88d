//! Keys with a rule of approvals, in a keystore.

use std::num::{NonZeroU32, NonZeroU64};

use bulla_kms::approval::{
    ApprovalDecision, ApprovalRule, ApprovalState, ApprovalSubject, ApprovedUse, Approver,
};
use bulla_kms::{Algorithm, Code, KeyChange, KeyFile, KeyId, KeyVersionId, Keystore, Name, NewKey, Unlock};

const MESSAGE: &[u8] = b"a message";

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn new_key() -> NewKey {
    NewKey::new(name("local"), name("files"), Algorithm::Ed25519)
}

/// A keystore of an approver.
fn person() -> (Keystore, KeyVersionId) {
    let keystore = Keystore::in_memory().unwrap();
    let key = keystore.create_key(new_key()).unwrap();
    (keystore, key)
}

fn rule_of(name: &str, (keystore, key): &(Keystore, KeyVersionId)) -> ApprovalRule {
    let ann = Approver { name: name.parse().unwrap(), public_key: keystore.public_key(key).unwrap() };
    ApprovalRule::new(NonZeroU32::MIN, vec![ann], NonZeroU64::new(60).unwrap())
}

fn subject() -> ApprovalSubject {
    ApprovalSubject::Sign { digest: bulla_blake3::hash(MESSAGE), size: MESSAGE.len() as u64, name: None }
}

/// The approved use of a key to sign the message.
fn approved(keystore: &Keystore, key: &KeyId, ann: &(Keystore, KeyVersionId)) -> ApprovedUse {
    let (bob, why) = ("bob".parse().unwrap(), "a test".parse().unwrap());
    let request = keystore.request_approval(key, subject(), &bob, why, None).unwrap();
    let statement =
        ann.0.sign_approval(ann.1.key_id(), &request, &"ann".parse().unwrap(), ApprovalDecision::Approve);
    ApprovedUse::new(request, vec![statement.unwrap()])
}

fn code<T: std::fmt::Debug>(result: bulla_kms::Result<T>) -> Code {
    result.unwrap_err().code
}

#[test]
fn a_rule_that_nobody_can_meet_is_refused() {
    let ann = person();
    let good = rule_of("ann", &ann);
    let refused = |change: &dyn Fn(&mut ApprovalRule)| {
        let mut rule = good.clone();
        change(&mut rule);
        assert_eq!(code(rule.check()), Code::InvalidArgument, "{rule:?}");
    };
    good.check().unwrap();
    refused(&|rule| rule.approvers.clear());
    refused(&|rule| rule.threshold = NonZeroU32::new(2).unwrap());
    refused(&|rule| rule.approvers.push(rule.approvers[0].clone()));
    refused(&|rule| {
        let same_key = Approver { name: "bob".parse().unwrap(), ..rule.approvers[0].clone() };
        rule.approvers.push(same_key);
    });
    refused(&|rule| rule.max_seconds = NonZeroU64::MAX);
    // Nobody could see what each use of such keys is about.
    for algorithm in [Algorithm::HmacSha256, Algorithm::EcdhP256] {
        let key = NewKey::new(name("local"), name("files"), algorithm).approval(good.clone());
        assert_eq!(code(Keystore::in_memory().unwrap().create_key(key)), Code::InvalidArgument);
    }
}

#[test]
fn the_private_key_neither_leaves_nor_is_replaced_from_outside() {
    use bulla_kms::transfer::{PrivateFormat, PrivateKeyData};
    let (keystore, ann) = (Keystore::in_memory().unwrap(), person());
    let key = keystore.create_key(new_key().approval(rule_of("ann", &ann))).unwrap();
    let mine = PrivateKeyData::read(&[7; 32], PrivateFormat::Raw, Some(Algorithm::Ed25519), None).unwrap();
    assert_eq!(code(keystore.import_version(key.key_id(), &mine)), Code::ApprovalRequired);
    assert_eq!(code(keystore.sign(&key, MESSAGE)), Code::ApprovalRequired);
    assert!(keystore.attest_signed(key.key_id()).unwrap().attestation.approval.is_some());
    keystore.rotate(key.key_id()).unwrap();
    assert_eq!(keystore.successions(key.key_id()).unwrap().len(), 1);
    assert_eq!(code(keystore.sign(key.key_id(), MESSAGE)), Code::ApprovalRequired);
}

#[test]
fn a_key_keeps_its_rule_in_a_backup_and_a_rule_is_never_lost() {
    let (keystore, ann) = (Keystore::in_memory().unwrap(), person());
    let rule = rule_of("ann", &ann);
    let new = new_key().exportable(true).backup_allowed(true).label(name("release"));
    let key = keystore.create_key(new).unwrap().key_id().clone();
    let before = keystore.backup_key(&key).unwrap();
    keystore.update(&key, None, &KeyChange::Approval(rule.clone())).unwrap();
    let after = keystore.backup_key(&key).unwrap();
    let restore = |backup: &[u8], label| {
        let restored = keystore.restore_key(&name("local"), Some(&name(label)), backup).unwrap();
        assert_eq!(keystore.approval_rule(restored.key_id()).unwrap().as_ref(), Some(&rule), "{label}");
        assert_eq!(code(keystore.sign(restored.key_id(), MESSAGE)), Code::ApprovalRequired);
        restored
    };
    // Also in one that was made before the rule.
    restore(&before, "before");
    let restored = restore(&after, "after");
    let other = KeyChange::Approval(rule_of("bob", &person()));
    assert_eq!(code(keystore.update(&key, None, &other)), Code::ApprovalRequired);
    // An approval of a signature permits no change, and none of another key.
    let handle = keystore.with_approval(approved(&keystore, &key, &ann));
    assert_eq!(code(handle.update(&key, None, &other)), Code::ApprovalRequired);
    assert_eq!(code(handle.sign(restored.key_id(), MESSAGE)), Code::ApprovalRequired);
    handle.sign(&key, MESSAGE).unwrap();
}

#[test]
fn refused_uses_neither_count_nor_rotate_a_key() {
    use bulla_kms::RotationPolicy;
    let (keystore, ann) = (Keystore::in_memory().unwrap(), person());
    let policy = RotationPolicy::default().max_uses(NonZeroU64::new(1));
    let key = keystore.create_key(new_key().rotation(policy).approval(rule_of("ann", &ann))).unwrap();
    for _ in 0..4 {
        assert_eq!(code(keystore.sign(key.key_id(), MESSAGE)), Code::ApprovalRequired);
    }
    assert_eq!(keystore.latest_version_id(key.key_id()).unwrap(), key);
    let approved = approved(&keystore, key.key_id(), &ann);
    keystore.with_approval(approved.clone()).sign(key.key_id(), MESSAGE).unwrap();
    // The next use is one of version 2, which nobody has approved.
    assert_eq!(code(keystore.with_approval(approved).sign(key.key_id(), MESSAGE)), Code::ApprovalRequired);
}

#[test]
fn of_several_statements_of_one_person_one_counts() {
    let (keystore, ann, bob) = (Keystore::in_memory().unwrap(), person(), person());
    let mut rule = rule_of("ann", &ann);
    rule.approvers.extend(rule_of("bob", &bob).approvers);
    rule.threshold = NonZeroU32::new(2).unwrap();
    let key = keystore.create_key(new_key().approval(rule.clone())).unwrap();
    let (carol, why) = ("carol".parse().unwrap(), "a test".parse().unwrap());
    let request = keystore.request_approval(&key, subject(), &carol, why, None).unwrap();
    let statement = |name: &str, (own, id): &(Keystore, KeyVersionId)| {
        let approve = ApprovalDecision::Approve;
        own.sign_approval(id.key_id(), &request, &name.parse().unwrap(), approve).unwrap()
    };
    let anns = statement("ann", &ann);
    assert_eq!(rule.state(&request, &[anns.clone(), anns.clone()]), ApprovalState::Waiting);
    assert_eq!(rule.state(&request, &[anns.clone(), statement("bob", &ann)]), ApprovalState::Waiting);
    assert_eq!(rule.state(&request, &[anns, statement("bob", &bob)]), ApprovalState::Approved);
    let same: bulla_kms::approval::ApprovalRequest =
        serde_json::from_slice(&serde_json::to_vec(&request).unwrap()).unwrap();
    let approve = ApprovalDecision::Approve;
    assert_eq!(same.signed_bytes(approve), request.signed_bytes(approve), "JSON has one form");
    // A keystore signs no such bytes for a caller.
    assert_eq!(code(ann.0.sign(&ann.1, &request.signed_bytes(approve))), Code::ReservedMessage);
}

#[test]
fn a_store_file_that_was_changed_does_not_drop_the_rule() {
    const RECORDS: redb::TableDefinition<'static, &[u8], &[u8]> = redb::TableDefinition::new("records");
    let (folder, ann) = (tempfile::tempdir().unwrap(), person());
    let (path, secret) = (folder.path().join("keys.redb"), folder.path().join("secret"));
    KeyFile::create(&secret).unwrap();
    let unlock = Unlock::KeyFile(secret);
    let keystore = Keystore::create(&path, &unlock).unwrap();
    let key = keystore.create_key(new_key()).unwrap();
    drop(keystore);
    let row = |replaced: Option<Vec<u8>>| {
        let database = redb::Database::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        let before = {
            use redb::ReadableTable as _;
            let mut table = transaction.open_table(RECORDS).unwrap();
            let name = key.key_id().to_string().into_bytes();
            let before = table.get(&*name).unwrap().unwrap().value().to_vec();
            if let Some(row) = replaced {
                table.insert(&*name, &*row).unwrap();
            }
            before
        };
        transaction.commit().unwrap();
        before
    };
    let without_rule = row(None);
    let change = KeyChange::Approval(rule_of("ann", &ann));
    Keystore::open(&path, &unlock).unwrap().update(key.key_id(), None, &change).unwrap();
    assert_eq!(code(Keystore::open(&path, &unlock).unwrap().sign(&key, MESSAGE)), Code::ApprovalRequired);
    let with_rule = row(Some(without_rule));
    assert_eq!(code(Keystore::open(&path, &unlock)), Code::KeystoreCorrupt);
    row(Some(with_rule));
    assert!(Keystore::open(&path, &unlock).unwrap().approval_rule(key.key_id()).unwrap().is_some());
}
