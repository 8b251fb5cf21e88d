//! Parts of signatures for other machines: a keystore permits what it would sign itself.

use std::num::{NonZeroU32, NonZeroU64};

use bulla_kms::approval::{
    ApprovalDecision, ApprovalRequest, ApprovalRule, ApprovalSubject, ApprovedUse, Approver,
};
use bulla_kms::audit_log::{AuditLog, AuditLogOptions};
use bulla_kms::prehash::Prehash;
use bulla_kms::rollback::SignedTime;
use bulla_kms::{
    Algorithm, Code, JWT_PURPOSE, KeyChange, KeyId, KeyMessage, KeyVersionId, Keystore, KeystoreOptions,
    NewKey, RotationPolicy, SignatureFile, Statement, TOKEN_ROOT_PURPOSE, Timestamp,
};

const MESSAGE: &[u8] = b"a message";

fn new_key(purpose: &str) -> NewKey {
    NewKey::new("local".parse().unwrap(), purpose.parse().unwrap(), Algorithm::Ed25519)
}

/// What the keystore says of one message: the code of a refusal, if it is one.
fn contribute(keystore: &Keystore, key: &KeyVersionId, message: &[u8]) -> Result<Option<u64>, Code> {
    let item = KeyMessage { key: key.into(), message };
    let mut max_uses = None;
    let mut results = keystore.contribute_batch(&[item], |_, permitted| {
        max_uses = permitted.max_uses.map(NonZeroU64::get);
        Ok(())
    });
    results.remove(0).map(|()| max_uses).map_err(|error| error.code)
}

/// An approver with a keystore of their own.
struct Person {
    name: &'static str,
    keystore: Keystore,
    key: KeyVersionId,
}

impl Person {
    fn new(name: &'static str) -> Self {
        let keystore = Keystore::in_memory().unwrap();
        let key = keystore.create_key(new_key("own")).unwrap();
        Self { name, keystore, key }
    }

    fn rule(&self) -> ApprovalRule {
        let public_key = self.keystore.public_key(&self.key).unwrap();
        let approver = Approver { name: self.name.parse().unwrap(), public_key };
        ApprovalRule::new(NonZeroU32::MIN, vec![approver], NonZeroU64::new(3600).unwrap())
    }

    fn approves(&self, request: &ApprovalRequest) -> ApprovedUse {
        let name = self.name.parse().unwrap();
        let approve = ApprovalDecision::Approve;
        let statement = self.keystore.sign_approval(self.key.key_id(), request, &name, approve).unwrap();
        ApprovedUse::new(request.clone(), vec![statement])
    }
}

fn sign_subject(message: &[u8]) -> ApprovalSubject {
    ApprovalSubject::Sign { digest: bulla_blake3::hash(message), size: message.len() as u64, name: None }
}

fn request(keystore: &Keystore, key: &KeyVersionId, subject: ApprovalSubject) -> ApprovalRequest {
    let (dave, why) = ("dave".parse().unwrap(), "a test".parse().unwrap());
    keystore.request_approval(key, subject, &dave, why, None).unwrap()
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_unix_millis(time.unix_millis().checked_add_signed(seconds * 1000).unwrap()).unwrap()
}

#[test]
fn only_the_approved_message_of_the_approved_version_gets_a_part() {
    let (ann, bob) = (Person::new("ann"), Person::new("bob"));
    let log = std::sync::Arc::new(AuditLog::in_memory(AuditLogOptions::default()).unwrap());
    let keystore = KeystoreOptions::default().audit(log.clone()).in_memory().unwrap();
    let key = keystore.create_key(new_key("files").approval(ann.rule())).unwrap();
    let other = keystore.create_key(new_key("files").approval(ann.rule())).unwrap();
    assert_eq!(contribute(&keystore, &key, MESSAGE), Err(Code::ApprovalRequired));
    let good = request(&keystore, &key, sign_subject(MESSAGE));
    let handle = |approved: ApprovedUse| keystore.with_approval(approved);
    let approved = handle(ann.approves(&good));
    assert_eq!(contribute(&approved, &key, MESSAGE), Ok(None));
    assert_eq!(log.entries().unwrap().last().unwrap().approval.as_ref().unwrap().id, good.id);
    assert_eq!(contribute(&approved, &key, b"another"), Err(Code::ApprovalRequired));
    assert_eq!(contribute(&approved, &other, MESSAGE), Err(Code::ApprovalRequired));
    let refused = |change: &dyn Fn(&mut ApprovalRequest), by: &Person| {
        let mut changed = good.clone();
        change(&mut changed);
        assert_eq!(contribute(&handle(by.approves(&changed)), &key, MESSAGE), Err(Code::ApprovalRequired));
        // Whoever changes what was approved has no approval.
        let statements = ann.approves(&good).statements().to_vec();
        let moved = handle(ApprovedUse::new(changed.clone(), statements));
        assert!(changed == good || contribute(&moved, &key, MESSAGE).is_err());
    };
    refused(&|_| {}, &bob);
    refused(&|request| request.requester = "ann".parse().unwrap(), &ann);
    refused(&|request| request.expires = later(request.created, -1), &ann);
    refused(&|request| request.expires = later(request.created, 86_400), &ann);
    refused(&|request| request.subject = sign_subject(b"another"), &ann);
    // The same person twice is one.
    let mut two = ann.rule();
    two.approvers.extend(bob.rule().approvers);
    two.threshold = NonZeroU32::new(2).unwrap();
    let key = keystore.create_key(new_key("files").approval(two)).unwrap();
    let of_two = request(&keystore, &key, sign_subject(MESSAGE));
    let statements = [ann.approves(&of_two).statements(), ann.approves(&of_two).statements()].concat();
    let once = handle(ApprovedUse::new(of_two, statements));
    assert_eq!(contribute(&once, &key, MESSAGE), Err(Code::ApprovalRequired));
    let entry = log.entries().unwrap().pop().unwrap();
    assert_eq!((entry.operation.as_str(), entry.result.as_str()), ("sign", "approval_required"));
}

#[test]
fn of_an_approved_statement_only_the_time_is_not_approved_and_it_is_now() {
    let ann = Person::new("ann");
    let keystore = Keystore::in_memory().unwrap();
    let key = keystore.create_key(new_key("files").approval(ann.rule())).unwrap();
    let statement = Statement::message(MESSAGE).comment("release 1".parse().unwrap());
    for prehash in [None, Some(Prehash::Blake3)] {
        let subject = ApprovalSubject::of_statement(&statement, prehash);
        let approved = keystore.with_approval(ann.approves(&request(&keystore, &key, subject)));
        let file = SignatureFile::sign_with(&approved, &key, statement.clone(), prehash).unwrap();
        // What a key of Ed25519 signs for a file.
        let bytes = |file: &SignatureFile| match prehash {
            None => file.signed_bytes(),
            Some(_) => {
                let digest = bulla_blake3::hash(&file.signed_bytes());
                let context: &[u8] = b"bulla signature file";
                let length = [u8::try_from(context.len()).unwrap()];
                [b"bulla ed25519 blake3\0", &length[..], context, digest.as_bytes()].concat()
            }
        };
        let at = |time| approved.with_signed_at(time);
        let signed_at = file.signed_at;
        assert_eq!(contribute(&at(signed_at), &key, &bytes(&file)), Ok(None), "{prehash:?}");
        assert_eq!(contribute(&approved, &key, &bytes(&file)), Err(Code::ApprovalRequired));
        let next = later(signed_at, 1);
        assert_eq!(contribute(&at(next), &key, &bytes(&file)), Err(Code::ApprovalRequired));
        let moved = SignatureFile { signed_at: next, ..file.clone() };
        assert_eq!(contribute(&at(next), &key, &bytes(&moved)), Ok(None));
        let old = SignatureFile { signed_at: later(signed_at, -3600), ..file.clone() };
        assert_eq!(contribute(&at(old.signed_at), &key, &bytes(&old)), Err(Code::Forbidden));
        let other = SignatureFile { comment: "release 2".parse().unwrap(), ..file.clone() };
        assert_eq!(contribute(&at(signed_at), &key, &bytes(&other)), Err(Code::ApprovalRequired));
    }
    // An approval of a message does not approve a statement with the same bytes.
    let file = SignatureFile::sign(
        &keystore.with_approval(ann.approves(&request(
            &keystore,
            &key,
            ApprovalSubject::of_statement(&statement, None),
        ))),
        &key,
        statement.clone(),
    );
    let bytes = file.unwrap().signed_bytes();
    let approved = keystore.with_approval(ann.approves(&request(&keystore, &key, sign_subject(&bytes))));
    assert_eq!(contribute(&approved, &key, &bytes), Err(Code::ApprovalRequired));
}

#[test]
fn what_a_keystore_says_of_its_keys_is_what_this_one_says() {
    let keystore = Keystore::in_memory().unwrap();
    let first = keystore.create_key(new_key("files")).unwrap();
    let key_id = first.key_id().clone();
    let latest = keystore.rotate(&key_id).unwrap();
    let attestation = keystore.attest(&key_id).unwrap();
    assert_eq!(contribute(&keystore, &latest, &attestation.signed_bytes()), Ok(None));
    let mut wrong = attestation;
    wrong.exportable = true;
    assert_eq!(contribute(&keystore, &latest, &wrong.signed_bytes()), Err(Code::Forbidden));
    assert_eq!(contribute(&keystore, &latest, b"bulla attestation\0v1\0{}"), Err(Code::Forbidden));

    let good = keystore.successions(&key_id).unwrap().remove(0);
    assert_eq!(contribute(&keystore, &first, &good.signed_bytes()), Ok(None));
    let mut wrong = good.clone();
    wrong.successor_public_key = wrong.public_key.clone();
    assert_eq!(contribute(&keystore, &first, &wrong.signed_bytes()), Err(Code::Forbidden));
    assert_eq!(contribute(&keystore, &latest, &good.signed_bytes()), Err(Code::Forbidden));

    let now = Timestamp::now().unwrap();
    let time = |seconds| SignedTime::signed_bytes(&[7; 32], later(now, seconds));
    assert_eq!(contribute(&keystore, &latest, &time(0)), Ok(None));
    assert_eq!(contribute(&keystore, &latest, &time(-3600)), Err(Code::Forbidden));
    assert_eq!(contribute(&keystore, &latest, &time(3600)), Err(Code::Forbidden));
    assert_eq!(contribute(&keystore, &latest, b"bulla time\0v1\0"), Err(Code::Forbidden));
}

#[test]
fn an_older_version_a_key_of_tokens_and_one_of_jwts_contribute_as_they_sign() {
    let keystore = Keystore::in_memory().unwrap();
    let first = keystore.create_key(new_key("files")).unwrap();
    let second = keystore.rotate(first.key_id()).unwrap();
    // A signature that was begun before the rotation.
    assert_eq!(contribute(&keystore, &first, MESSAGE), Ok(None));
    keystore.rotate(first.key_id()).unwrap();
    assert_eq!(contribute(&keystore, &first, MESSAGE), Err(Code::NotLatestVersion));
    assert_eq!(contribute(&keystore, &second, MESSAGE), Ok(None));
    let any = keystore.create_key(new_key("files").minimum_signing_version(1)).unwrap();
    (0..2).for_each(|_| drop(keystore.rotate(any.key_id()).unwrap()));
    assert_eq!(contribute(&keystore, &any, MESSAGE), Ok(None));

    let limited = new_key("files").rotation(RotationPolicy::default().max_uses(NonZeroU64::new(7)));
    let limited = keystore.create_key(limited).unwrap();
    assert_eq!(contribute(&keystore, &limited, MESSAGE), Ok(Some(7)));
    // An attestation is no use of the key.
    let attestation = keystore.attest(limited.key_id()).unwrap().signed_bytes();
    assert_eq!(contribute(&keystore, &limited, &attestation), Ok(None));

    let tokens = keystore.create_key(new_key(TOKEN_ROOT_PURPOSE)).unwrap();
    assert_eq!(contribute(&keystore, &tokens, MESSAGE), Err(Code::KeyUsageMismatch));
    let jwts = keystore.create_key(new_key(JWT_PURPOSE)).unwrap();
    assert_eq!(contribute(&keystore, &jwts, MESSAGE), Err(Code::KeyUsageMismatch));
    // {"alg":"EdDSA"} and {"sub":"me"}
    assert_eq!(contribute(&keystore, &jwts, b"eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJtZSJ9"), Ok(None));
    assert_eq!(contribute(&keystore, &jwts, b"eyJhbGciOiJFZERTQSJ9."), Err(Code::KeyUsageMismatch));
}

/// Gives a key another rule, with a request that an approver of the old one approves.
fn change_rule(keystore: &Keystore, key: &KeyId, by: &Person, rule: &ApprovalRule) {
    let version = keystore.latest_version_id(key).unwrap();
    let subject = ApprovalSubject::ChangeRule { rule: rule.clone() };
    let request = request(keystore, &version, subject);
    let approved = by.approves(&request);
    // A change is newer than the one before it.
    while Timestamp::now().unwrap() <= request.created {}
    keystore.with_approval(approved).update(key, None, &KeyChange::Approval(rule.clone())).unwrap();
}

#[test]
fn a_rule_is_followed_through_changes_that_its_approvers_approved_and_no_others() {
    let people = ["ann", "bob", "carol"].map(Person::new);
    let [ann, bob, carol] = &people;
    let keystore = Keystore::in_memory().unwrap();
    let key = keystore.create_key(new_key("files").approval(ann.rule())).unwrap().key_id().clone();
    let follow = |known| keystore.follow_rule(&key, known);
    let first = follow(None).unwrap().unwrap();
    change_rule(&keystore, &key, ann, &bob.rule());
    let second = follow(Some(&first)).unwrap().unwrap();
    change_rule(&keystore, &key, bob, &carol.rule());
    let third = follow(Some(&second)).unwrap();
    assert_eq!(follow(Some(&first)).unwrap(), third, "a machine that was away follows both changes");
    assert_eq!(follow(None).unwrap(), third);

    // Another keystore in which the key has a rule that nobody approved, or none.
    let forged = Keystore::in_memory().unwrap();
    let other = forged.create_key(new_key("files").approval(bob.rule())).unwrap();
    let none = forged.create_key(new_key("files")).unwrap();
    for key in [&other, &none] {
        let refused = forged.follow_rule(key.key_id(), Some(&first)).unwrap_err();
        assert_eq!(refused.code, Code::Forbidden, "{refused}");
    }
    // Also in an emergency, a change without approvals is not followed.
    let version = keystore.latest_version_id(&key).unwrap();
    let emergency = request(&keystore, &version, ApprovalSubject::ChangeRule { rule: ann.rule() });
    let handle = keystore.override_approval(&emergency, "all are away".parse().unwrap()).unwrap();
    handle.update(&key, None, &KeyChange::Approval(ann.rule())).unwrap();
    assert_eq!(follow(third.as_ref()).unwrap_err().code, Code::Forbidden);
    // The record still has the changes of before, and none of them counts a second time.
    let handle = keystore.override_approval(&emergency, "another one".parse().unwrap()).unwrap();
    handle.update(&key, None, &KeyChange::Approval(carol.rule())).unwrap_err();
    assert_eq!(follow(Some(&second)).unwrap_err().code, Code::Forbidden);
}
