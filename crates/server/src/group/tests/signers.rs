//! Nodes that sign for a node that lies: they check by themselves what it should have checked. The
//! backend of the first node is asked without its keystore, which may be that of an attacker.

use std::num::NonZeroU64;

use bulla_kms::approval::{
    ApprovalDecision, ApprovalRequest, ApprovalRule, ApprovalSubject, ApprovedUse, Approver, Overrides,
};
use bulla_kms::audit_log::{AuditLog, AuditLogOptions};
use bulla_kms::encryption::KeyFileProvider;
use bulla_kms::{Backup, KeyFile, KmsError, RotationPolicy, SignatureFile, Statement, Timestamp, Unlock};

use super::*;

/// An approver with a keystore of their own.
struct Person {
    name: &'static str,
    keystore: Keystore,
    key: KeyVersionId,
}

impl Person {
    fn new(name: &'static str) -> Self {
        let keystore = Keystore::in_memory().unwrap();
        let new = NewKey::new("local".parse().unwrap(), "own".parse().unwrap(), Algorithm::Ed25519);
        let key = keystore.create_key(new).unwrap();
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

impl Three {
    /// Three nodes, of which the first one checks nothing itself.
    fn with_a_liar() -> Self {
        let three = Self::start();
        three.node(0).detach();
        three
    }

    fn request(&self, subject: ApprovalSubject) -> ApprovalRequest {
        let (dave, why) = ("dave".parse().unwrap(), "a test".parse().unwrap());
        self.keystore.request_approval(&self.version, subject, &dave, why, None).unwrap()
    }

    fn request_to_sign(&self, message: &[u8]) -> ApprovalRequest {
        let (digest, size) = (bulla_blake3::hash(message), message.len() as u64);
        self.request(ApprovalSubject::Sign { digest, size, name: None })
    }

    /// What the first node gets from the others for an approved use.
    fn sign_approved(&self, message: &[u8], approved: &ApprovedUse) -> Result<Vec<u8>> {
        self.key(0).sign_approved(message, approved)
    }

    fn set_rule(&self, rule: &ApprovalRule) {
        let change = KeyChange::Approval(rule.clone());
        self.keystore.update(self.version.key_id(), None, &change).unwrap();
    }
}

#[track_caller]
fn is_refused(signed: Result<Vec<u8>>, why: &str) -> KmsError {
    let error = signed.unwrap_err();
    assert_eq!(error.code, Code::DeviceUnavailable, "{error}");
    assert!(error.message.contains(why), "{error}");
    error
}

#[test]
fn nodes_sign_with_approvals_that_they_verify_and_each_request_for_one_message() {
    let (three, ann) = (Three::with_a_liar(), Person::new("ann"));
    three.set_rule(&ann.rule());
    let request = three.request_to_sign(MESSAGE);
    is_refused(three.key(0).sign(MESSAGE), "is used only when 1 of its approvers");
    let approved = ann.approves(&request);
    let refused = three.node(1).0.counters.refused_parts.get() + three.node(2).0.counters.refused_parts.get();
    assert_eq!(refused, 2, "both of the others were asked");
    is_refused(three.sign_approved(b"another", &approved), "is about something else");
    let nobody = ApprovedUse::new(request.clone(), Vec::new());
    is_refused(three.sign_approved(MESSAGE, &nobody), "needs approvals of 1 people");
    // The honest way, and once more: an answer may have been lost.
    let signature = three.keystore.with_approval(approved.clone()).sign(&three.version, MESSAGE).unwrap();
    assert!(three.public_key.verify(MESSAGE, &signature.bytes).is_valid());
    three.sign_approved(MESSAGE, &approved).unwrap();
    // A batch has the approval in each of its orders.
    let key = three.key(0);
    let requests =
        [MESSAGE, b"another"].map(|message| SignRequest::new(&*key, message).approved(Some(&approved)));
    let mut signed = three.node(0).backend().sign_many(Algorithm::Ed25519, &requests);
    is_refused(signed.remove(1), "is about something else");

    // The time in a statement is all that a node that lies can choose, once.
    let statement = Statement::message(MESSAGE);
    let request = three.request(ApprovalSubject::of_statement(&statement, None));
    let approved = ann.approves(&request);
    let handle = three.keystore.with_approval(approved.clone());
    let file = SignatureFile::sign(&handle, &three.version, statement).unwrap();
    assert!(file.verify_with(&three.public_key).is_valid());
    let millis = file.signed_at.unix_millis() + 1;
    let moved = SignatureFile { signed_at: Timestamp::from_unix_millis(millis).unwrap(), ..file };
    let lie = approved.with_signed_at(moved.signed_at);
    // The node that had no part in it does not know; then it does.
    let mut last = Ok(Vec::new());
    for second in [0, 1] {
        let millis = millis + second;
        let moved =
            SignatureFile { signed_at: Timestamp::from_unix_millis(millis).unwrap(), ..moved.clone() };
        last = three.sign_approved(&moved.signed_bytes(), &approved.with_signed_at(moved.signed_at));
    }
    is_refused(last, "was used for another message");
    is_refused(three.sign_approved(b"another", &lie), "is about something else");
}

#[test]
fn without_approvals_only_where_the_own_settings_permit_it_and_the_own_log_has_it_before() {
    let (mut three, ann) = (Three::with_a_liar(), Person::new("ann"));
    three.set_rule(&ann.rule());
    three.end(2);
    let request = three.request_to_sign(MESSAGE);
    let handle =
        three.keystore.override_approval(&request, "the release is on fire".parse().unwrap()).unwrap();
    let error = handle.sign(&three.version, MESSAGE).unwrap_err();
    assert!(error.message.contains("`service.allow_approval_override`"), "{error}");
    // The other node has a log of its own.
    let log = Arc::new(AuditLog::in_memory(AuditLogOptions::default()).unwrap());
    let keystore = Arc::new(three.keystore.on_behalf_of(&three.keystore.actor()).audited(log.clone()));
    three.node(1).attach(&keystore, Overrides::Forbidden);
    assert!(handle.sign(&three.version, MESSAGE).is_err());
    three.node(1).attach(&keystore, Overrides::Permitted);
    handle.sign(&three.version, MESSAGE).unwrap();
    let entries: Vec<_> = log
        .entries()
        .unwrap()
        .iter()
        .map(|entry| {
            assert_eq!(entry.actor.as_str(), "node node0");
            format!("{} {}", entry.operation.as_str(), entry.result.as_str())
        })
        .collect();
    assert_eq!(entries, ["sign approval_required", "override_approval ok", "sign ok"]);
    let entry = &log.entries().unwrap()[1];
    let approval = entry.approval.as_ref().unwrap();
    assert_eq!(approval.reason.as_ref().unwrap().as_str(), "the release is on fire");
    assert_eq!(approval.id, request.id);
}

#[test]
fn a_rule_that_was_dropped_in_the_store_still_counts_also_after_a_restart() {
    let (mut three, ann, bob) = (Three::with_a_liar(), Person::new("ann"), Person::new("bob"));
    // A copy of the keystore from before the rule stands for one that an attacker wrote.
    let secret = three.folder.path().join("secret");
    KeyFile::create(&secret).unwrap();
    let mut backup = Vec::new();
    three.keystore.backup(&mut backup, &[&KeyFileProvider::new(&secret)]).unwrap();
    let backends = Backends::software().clone().with(three.node(0).backend());
    let backup = Backup::read(&*backup, &[&KeyFileProvider::new(&secret)], &backends).unwrap();
    let options = KeystoreOptions::default().backends(backends);
    let path = three.folder.path().join("forged.redb");
    let forged = Arc::new(backup.restore(&path, &Unlock::KeyFile(secret), &options).unwrap());
    assert_eq!(forged.approval_rule(three.version.key_id()).unwrap(), None);

    three.set_rule(&ann.rule());
    // Each node has seen the rule without being asked for a signature.
    let has_seen = |three: &Three, number: usize| {
        let node = &three.node(number).0;
        node.memory.check_rule(&node.shares, three.group(), Some(&ann.rule())).is_ok()
    };
    eventually(|| (1..3).all(|number| has_seen(&three, number)));
    three.end(2);
    for restart in [false, true] {
        if restart {
            three.end(1);
            three.start_again(1);
        }
        three.node(1).attach(&forged, Overrides::Permitted);
        eventually(|| three.node(0).0.peers.iter().any(|peer| peer.standing() == Standing::Answering));
        is_refused(three.key(0).sign(MESSAGE), "somebody may have changed the store");
    }
    // The node that is asked remembers the rule as well, also if the others have forgotten it.
    three.node(0).attach(&three.keystore, Overrides::Forbidden);
    eventually(|| has_seen(&three, 0));
    three.node(0).attach(&forged, Overrides::Forbidden);
    three.node(1).0.memory.forget(three.group());
    let error = three.key(0).sign(MESSAGE).unwrap_err();
    assert!(error.message.contains("somebody may have changed the store"), "{error}");
    three.node(0).detach();
    three.signs(0);

    three.node(1).attach(&three.keystore, Overrides::Forbidden);
    let approved = ann.approves(&three.request_to_sign(MESSAGE));
    three.sign_approved(MESSAGE, &approved).unwrap();

    // A new rule that ann has approved. The share of a new version has it, too.
    let change = ann.approves(&three.request(ApprovalSubject::ChangeRule { rule: bob.rule() }));
    let handle = three.keystore.with_approval(change);
    handle.update(three.version.key_id(), None, &KeyChange::Approval(bob.rule())).unwrap();
    let request = three.request_to_sign(b"another");
    three.sign_approved(b"another", &bob.approves(&request)).unwrap();
    is_refused(three.sign_approved(b"another", &ann.approves(&request)), "needs approvals of 1 people");
}

#[test]
fn a_node_signs_as_many_parts_as_a_version_may_be_used_also_after_a_restart() {
    let mut three = Three::with_a_liar();
    let policy = RotationPolicy::default().max_uses(NonZeroU64::new(3));
    three.keystore.update(three.version.key_id(), None, &KeyChange::Rotation(policy)).unwrap();
    three.end(2);
    three.signs(0);
    three.signs(0);
    three.end(1);
    three.start_again(1);
    eventually(|| three.node(0).0.peers[0].standing() == Standing::Answering);
    three.signs(0);
    is_refused(three.key(0).sign(MESSAGE), "this node has signed 3 parts");
    // The statement that leads to the next version is always the same one, and not counted.
    three.start_again(2);
    eventually(|| three.node(0).0.peers[1].standing() == Standing::Answering);
    let next = three.keystore.rotate(three.version.key_id()).unwrap();
    assert_eq!(three.keystore.successions(next.key_id()).unwrap().len(), 1);
    // The node that was away has all of its parts left.
    let key = three.key(0);
    (0..3).for_each(|_| assert!(key.sign(MESSAGE).is_ok()));
    is_refused(key.sign(MESSAGE), "which is the limit of its uses");
}
