//! Keys that are used only with approvals: who decides, about what, and that each request is used
//! once.

use std::num::{NonZeroU32, NonZeroU64};
use std::thread;
use std::time::Duration;

use bulla_kms::approval::{ApprovalDecision, ApprovalRequest, ApprovalRule, Approver};
use bulla_kms::token::{Grant, GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, KeyId, Keystore, NewKey, Timestamp};
use bulla_server::Config;
use serde_json::{Value, json};

use crate::support::on_disk::OnDisk;
use crate::support::{Answer, Service, after, base64, config, from_base64, keystore, name};

const MESSAGE: &[u8] = b"release 1.0";

/// An approver with a keystore of their own.
struct Person {
    name: &'static str,
    keystore: Keystore,
    key: KeyId,
}

impl Person {
    fn new(name: &'static str) -> Self {
        let keystore = Keystore::in_memory().unwrap();
        let key = keystore.create_key(new_key(Algorithm::Ed25519, "own")).unwrap();
        Self { name, key: key.key_id().clone(), keystore }
    }

    fn approver(&self) -> Approver {
        let version = self.keystore.latest_version_id(&self.key).unwrap();
        let public_key = self.keystore.public_key(&version).unwrap();
        Approver { name: self.name.parse().unwrap(), public_key }
    }

    /// The body that decides about a request, as the service showed it.
    fn decides(&self, shown: &Value, decision: ApprovalDecision) -> Value {
        let request: ApprovalRequest = serde_json::from_value(shown["request"].clone()).unwrap();
        let statement =
            self.keystore.sign_approval(&self.key, &request, &self.name.parse().unwrap(), decision);
        json!({ "approver": self.name, "signature": statement.unwrap().signature })
    }

    fn approves(&self, shown: &Value) -> Value {
        self.decides(shown, ApprovalDecision::Approve)
    }
}

fn new_key(algorithm: Algorithm, label: &str) -> NewKey {
    NewKey::new(name("local"), name("files"), algorithm).label(name(label))
}

fn people() -> [Person; 3] {
    ["ann", "bob", "carol"].map(Person::new)
}

/// Two of three people approve within an hour.
fn rule(people: &[Person]) -> ApprovalRule {
    let two = NonZeroU32::new(2).unwrap();
    ApprovalRule::new(two, people.iter().map(Person::approver).collect(), NonZeroU64::new(3600).unwrap())
}

/// A token that names its holder.
fn token_of(keystore: &Keystore, holder: &str, operations: &[TokenOperation]) -> Token {
    let grant = Grant::new(name("local"), GrantedKeys::All, operations.to_vec(), after(3600));
    keystore.mint_token(&grant.holder(holder.parse().unwrap())).unwrap()
}

/// A service with the key `release`, three approvers, and a requester who is none of them.
struct Approvals {
    service: Service,
    people: [Person; 3],
    requester: Token,
    /// The token of an approver: it sees keys and their requests, and no more.
    reader: Token,
    /// Another program that may sign.
    other: Token,
    /// An approver's token that may sign as well.
    ann: Token,
}

const SIGNER: [TokenOperation; 6] = [
    TokenOperation::Sign,
    TokenOperation::Encrypt,
    TokenOperation::Decrypt,
    TokenOperation::Update,
    TokenOperation::Rotate,
    TokenOperation::Mac,
];

fn place_with(change: impl FnOnce(&mut ApprovalRule), config: Config) -> Approvals {
    let keystore = keystore(&["local"]);
    let people = people();
    let mut rule = rule(&people);
    change(&mut rule);
    keystore.create_key(new_key(Algorithm::Ed25519, "release").approval(rule.clone())).unwrap();
    keystore.create_key(new_key(Algorithm::Aes256Gcm, "orders").approval(rule)).unwrap();
    let [requester, other, ann] = ["ci", "cd", "ann"].map(|holder| token_of(&keystore, holder, &SIGNER));
    let reader = token_of(&keystore, "bob", &[TokenOperation::Read]);
    Approvals { service: Service::start(keystore, config), people, requester, reader, other, ann }
}

fn place() -> Approvals {
    place_with(|_| {}, config())
}

fn subject(message: &[u8]) -> Value {
    json!({ "operation": "sign", "digest": bulla_blake3::hash(message).to_string(), "size": message.len() })
}

fn request_on(service: &Service, token: &Token, subject: &Value) -> Answer {
    let body = json!({ "key": "release", "subject": subject, "reason": "release 1.0" });
    service.post(Some(token), "/api/v1/approvals", &body)
}

fn id(shown: &Value) -> String {
    shown["request"]["id"].as_str().unwrap().to_owned()
}

fn sign_on(service: &Service, token: &Token, message: &[u8], approval: &str) -> Answer {
    let body = json!({ "message": base64(message), "approval": approval });
    service.post(Some(token), "/api/v1/keys/release/sign", &body)
}

fn decide_on(service: &Service, token: &Token, shown: &Value, what: &str, body: &Value) -> Answer {
    service.post(Some(token), &format!("/api/v1/approvals/{}/{what}", id(shown)), body)
}

impl Approvals {
    fn request(&self, message: &[u8]) -> Value {
        let answer = request_on(&self.service, &self.requester, &subject(message));
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.ok()
    }

    fn approve(&self, shown: &Value, body: &Value) -> Answer {
        decide_on(&self.service, &self.reader, shown, "approve", body)
    }

    fn sign(&self, message: &[u8], shown: &Value) -> Answer {
        sign_on(&self.service, &self.requester, message, &id(shown))
    }

    /// A request that two people have approved.
    fn approved(&self, message: &[u8]) -> Value {
        let shown = self.request(message);
        for person in &self.people[..2] {
            self.approve(&shown, &person.approves(&shown)).ok();
        }
        shown
    }
}

/// The lines of the audit log.
fn logged(service: &Service, auditor: &Token) -> Vec<Value> {
    let page = service.get(Some(auditor), "/api/v1/audit-log/entries?limit=1000").ok();
    let lines = page["entries"].as_array().unwrap().iter().map(|entry| entry["line"].as_str().unwrap());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn required() -> (u16, String) {
    (403, "approval_required".to_owned())
}

fn forbidden() -> (u16, String) {
    (403, "forbidden".to_owned())
}

fn too_many() -> (u16, String) {
    (409, "quota_exceeded".to_owned())
}

/// A page of requests: their sizes, by which tests tell them apart, and the name of the next page.
fn page(service: &Service, token: &Token, query: &str) -> (Vec<u64>, Option<String>) {
    let page = service.get(Some(token), &format!("/api/v1/approvals{query}")).ok();
    let size = |shown: &Value| shown["request"]["subject"]["size"].as_u64().unwrap();
    let sizes = page["approvals"].as_array().unwrap().iter().map(size).collect();
    (sizes, page["next"].as_str().map(str::to_owned))
}

/// All pages of requests.
fn pages(service: &Service, token: &Token, limit: usize) -> Vec<Vec<u64>> {
    let (mut pages, mut query) = (Vec::new(), format!("?limit={limit}"));
    loop {
        let (sizes, next) = page(service, token, &query);
        pages.push(sizes);
        let Some(next) = next else { return pages };
        query = format!("?limit={limit}&after={next}");
    }
}

#[test]
fn a_list_of_requests_has_pages_and_those_of_a_key_that_a_caller_reads() {
    let keystore = keystore(&["local"]);
    let people = people();
    let [_, orders] = ["release", "orders"].map(|label| {
        let new = new_key(Algorithm::Ed25519, label).approval(rule(&people));
        keystore.create_key(new).unwrap().key_id().clone()
    });
    let requester = token_of(&keystore, "ci", &[TokenOperation::Sign]);
    let reader = token_of(&keystore, "bob", &[TokenOperation::Read]);
    let granted = GrantedKeys::These(vec![orders]);
    let reads_orders = crate::support::token(&keystore, "local", granted, &[TokenOperation::Read]);
    let service = Service::start(keystore, config());
    for size in 1..=7_u64 {
        let key = if size % 3 == 0 { "orders" } else { "release" };
        let mut subject = subject(MESSAGE);
        subject["size"] = json!(size);
        let body = json!({ "key": key, "subject": subject, "reason": "r" });
        let made = service.post(Some(&requester), "/api/v1/approvals", &body).ok();
        // Requests of one millisecond have no order.
        while made["request"]["created"] == Timestamp::now().unwrap().to_string() {}
    }
    let all = vec![1, 2, 3, 4, 5, 6, 7];
    assert_eq!(page(&service, &reader, ""), (all.clone(), None));
    assert_eq!(pages(&service, &reader, 3), [&all[..3], &all[3..6], &all[6..]]);
    assert_eq!(pages(&service, &reader, 7), [&all[..]], "the last page names no next one");
    assert_eq!(pages(&service, &reads_orders, 1), [[3], [6]]);
    let (_, next) = page(&service, &reads_orders, "?limit=1");
    let shown = service.get(Some(&reads_orders), &format!("/api/v1/approvals/{}", next.unwrap())).ok();
    assert_eq!(shown["request"]["subject"]["size"], 3, "it names a request that the caller reads");
    let refused = |query: &str| service.get(Some(&reader), &format!("/api/v1/approvals?{query}")).error();
    for query in ["limit=0", "limit=1001", "limit=x", "page=1"] {
        assert_eq!(refused(query), (400, "malformed_request".to_owned()), "{query}");
    }
    assert_eq!(refused("after=x"), (400, "invalid_id".to_owned()));
}

#[test]
fn a_requester_has_room_for_a_hundred_requests_and_takes_none_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let people = people();
    let (requester, other, reader, auditor) = {
        let keystore = OnDisk::create(folder.path()).keystore();
        keystore.create_key(new_key(Algorithm::Ed25519, "release").approval(rule(&people))).unwrap();
        let token = |holder, operation| token_of(&keystore, holder, &[operation]);
        (
            token("ci", TokenOperation::Sign),
            token("cd", TokenOperation::Sign),
            token("bob", TokenOperation::Read),
            token("eve", TokenOperation::Audit),
        )
    };
    let service = OnDisk::existing(folder.path()).start(config());
    let request = || request_on(&service, &requester, &subject(MESSAGE));
    let (used, rejected) = (request().ok(), request().ok());
    let body =
        json!({ "key": "release", "subject": subject(MESSAGE), "reason": "r", "expires_in_seconds": 1 });
    let expired = service.post(Some(&requester), "/api/v1/approvals", &body).ok();
    let path = format!("/api/v1/approvals/{}", id(&expired));
    while service.get(Some(&reader), &path).status == 200 {
        thread::sleep(Duration::from_millis(20));
    }
    for _ in 0..98 {
        request().ok();
    }
    let refused = request();
    assert_eq!(refused.error(), too_many());
    assert!(refused.text().contains("ci has 100 requests") && refused.text().contains("use some"));
    request_on(&service, &other, &subject(MESSAGE)).ok();

    for person in &people[..2] {
        decide_on(&service, &reader, &used, "approve", &person.approves(&used)).ok();
    }
    assert_eq!(request().error(), too_many(), "it is approved, and not used");
    sign_on(&service, &requester, MESSAGE, &id(&used)).ok();
    request().ok();
    assert_eq!(request().error(), too_many());
    for person in &people[..2] {
        let body = person.decides(&rejected, ApprovalDecision::Reject);
        decide_on(&service, &reader, &rejected, "reject", &body).ok();
    }
    request().ok();
    assert_eq!(request().error(), too_many());
    // It counts after a restart, too, and the log has no request that was refused.
    drop(service);
    let service = OnDisk::existing(folder.path()).start(config());
    assert_eq!(request_on(&service, &requester, &subject(MESSAGE)).error(), too_many());
    let steps = logged(&service, &auditor);
    assert_eq!(steps.iter().filter(|entry| entry["op"] == "request_approval").count(), 104);
}

/// How many of many requests that are made at the same time, by turns on these services, are made.
fn made_at_once(services: &[&Service], requester: &Token) -> usize {
    let statuses: Vec<_> = thread::scope(|scope| {
        let request = |place: usize| {
            let request = || request_on(services[place % services.len()], requester, &subject(MESSAGE));
            (0..16).map(|_| request().status).collect::<Vec<_>>()
        };
        let all: Vec<_> = (0..8).map(|place| scope.spawn(move || request(place))).collect();
        all.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| [201, 409].contains(status)), "{statuses:?}");
    statuses.iter().filter(|status| **status == 201).count()
}

#[test]
fn requests_of_one_moment_do_not_go_over_the_bound() {
    let place = place();
    assert_eq!(made_at_once(&[&place.service], &place.requester), 100);
}

#[test]
fn two_of_three_people_approve_one_signature_and_no_second() {
    let place = place();
    let message = json!({ "message": base64(MESSAGE) });
    let alone = place.service.post(Some(&place.requester), "/api/v1/keys/release/sign", &message);
    assert_eq!(alone.error(), required());
    let shown = place.request(MESSAGE);
    assert_eq!((&shown["state"], &shown["threshold"]), (&json!("waiting"), &json!(2)));
    assert_eq!(shown["request"]["requester"], "ci");
    assert_eq!(place.sign(MESSAGE, &shown).error(), required());
    let [ann, bob, _] = &place.people;
    assert_eq!(place.approve(&shown, &ann.approves(&shown)).ok()["state"], "waiting");
    assert_eq!(place.sign(MESSAGE, &shown).error(), required());
    assert_eq!(place.approve(&shown, &bob.approves(&shown)).ok()["state"], "approved");
    let signed = place.sign(MESSAGE, &shown).ok();
    let verify = json!({ "message": base64(MESSAGE), "signature": signed["signature"] });
    let all = place.service.post(Some(&place.reader), "/api/v1/keys/release/verify", &verify);
    assert_eq!(all.error(), forbidden(), "the token of a reader verifies nothing here");
    assert_eq!(from_base64(&signed["signature"]).len(), 64);
    assert_eq!(place.sign(MESSAGE, &shown).error(), required());
    let listed = place.service.get(Some(&place.reader), "/api/v1/approvals").ok();
    assert_eq!(listed["approvals"][0]["state"], "used");
}

#[test]
fn of_many_who_use_one_request_at_the_same_time_one_gets_a_signature() {
    let place = place();
    let shown = place.approved(MESSAGE);
    let statuses: Vec<_> = thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|_| scope.spawn(|| place.sign(MESSAGE, &shown).status)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
}

#[test]
fn a_forged_statement_and_one_of_a_stranger_count_for_nothing() {
    let place = place();
    let shown = place.request(MESSAGE);
    let [ann, bob, _] = &place.people;
    let forged = json!({ "approver": "ann", "signature": bob.approves(&shown)["signature"] });
    assert_eq!(place.approve(&shown, &forged).error(), forbidden());
    let rejecting = ann.decides(&shown, ApprovalDecision::Reject);
    assert_eq!(place.approve(&shown, &rejecting).error(), forbidden(), "it was signed to reject");
    let stranger = Person::new("dave");
    assert_eq!(place.approve(&shown, &stranger.approves(&shown)).error(), forbidden());
    let nonsense = json!({ "approver": "ann", "signature": "AAAA" });
    assert_eq!(place.approve(&shown, &nonsense).error(), forbidden());
    let found = place.service.get(Some(&place.reader), &format!("/api/v1/approvals/{}", id(&shown))).ok();
    assert_eq!(found["statements"], json!([]));
}

#[test]
fn a_statement_about_one_request_does_not_count_for_another() {
    let place = place();
    let (first, second) = (place.request(MESSAGE), place.request(MESSAGE));
    let statement = place.people[0].approves(&first);
    assert_eq!(place.approve(&second, &statement).error(), forbidden());
    // Nobody can show an approver another digest than the one that they sign.
    let mut changed = first.clone();
    changed["request"]["subject"] = subject(b"another message");
    assert_eq!(place.approve(&first, &place.people[0].approves(&changed)).error(), forbidden());
}

#[test]
fn an_approved_request_signs_nothing_else_and_is_not_used_up_by_a_mistake() {
    let place = place();
    let shown = place.approved(MESSAGE);
    assert_eq!(place.sign(b"release 1.1", &shown).error(), required());
    let stolen = sign_on(&place.service, &place.other, MESSAGE, &id(&shown));
    assert_eq!(stolen.error(), (404, "not_found".to_owned()), "another caller made it");
    let statement = json!({ "kind": "file", "digest": base64(bulla_blake3::hash(MESSAGE).as_bytes()),
        "size": MESSAGE.len(), "approval": id(&shown) });
    let path = "/api/v1/keys/release/sign-statement";
    assert_eq!(place.service.post(Some(&place.requester), path, &statement).error(), required());
    place.sign(MESSAGE, &shown).ok();
}

#[test]
fn an_expired_request_is_dead() {
    let place = place();
    let body =
        json!({ "key": "release", "subject": subject(MESSAGE), "reason": "r", "expires_in_seconds": 1 });
    let shown = place.service.post(Some(&place.requester), "/api/v1/approvals", &body).ok();
    let path = format!("/api/v1/approvals/{}", id(&shown));
    let statement = place.people[0].approves(&shown);
    while place.service.get(Some(&place.reader), &path).status == 200 {
        thread::sleep(Duration::from_millis(20));
    }
    let gone = (404, "not_found".to_owned());
    assert_eq!(place.approve(&shown, &statement).error(), gone);
    assert_eq!(place.sign(MESSAGE, &shown).error(), gone);
    let longer =
        json!({ "key": "release", "subject": subject(MESSAGE), "reason": "r", "expires_in_seconds": 3601 });
    let longer = place.service.post(Some(&place.requester), "/api/v1/approvals", &longer);
    assert_eq!(longer.error(), (400, "invalid_argument".to_owned()));
}

#[test]
fn one_person_does_not_decide_twice() {
    let place = place();
    let shown = place.request(MESSAGE);
    let ann = &place.people[0];
    place.approve(&shown, &ann.approves(&shown)).ok();
    let again = (409, "conflict".to_owned());
    assert_eq!(place.approve(&shown, &ann.approves(&shown)).error(), again);
    let reject = ann.decides(&shown, ApprovalDecision::Reject);
    assert_eq!(decide_on(&place.service, &place.reader, &shown, "reject", &reject).error(), again);
    assert_eq!(place.sign(MESSAGE, &shown).error(), required());
}

#[test]
fn a_requester_approves_their_own_request_only_if_the_rule_says_so() {
    for may in [false, true] {
        let place = place_with(|rule| rule.requester_may_approve = may, config());
        let shown = request_on(&place.service, &place.ann, &subject(MESSAGE)).ok();
        let answer = place.approve(&shown, &place.people[0].approves(&shown));
        if may {
            assert_eq!(answer.ok()["statements"][0]["approver"], "ann");
        } else {
            assert_eq!(answer.error(), forbidden());
        }
    }
}

/// A name of the settings is the same as a holder's, and another name of the same person is not.
#[test]
fn names_are_compared_and_not_people() {
    let mut config = config();
    config.service.development = true;
    let keystore = keystore(&["local"]);
    let people = ["development", "bob", "carol"].map(Person::new);
    keystore.create_key(new_key(Algorithm::Ed25519, "release").approval(rule(&people))).unwrap();
    let tokens = ["development", "corp/ann"].map(|holder| token_of(&keystore, holder, &SIGNER));
    let service = Service::start(keystore, config);
    let body = json!({ "key": "release", "subject": subject(MESSAGE), "reason": "release 1.0" });
    for (token, may_approve) in [(None, false), (Some(&tokens[0]), false), (Some(&tokens[1]), true)] {
        let shown = service.post(token, "/api/v1/approvals", &body).ok();
        let path = format!("/api/v1/approvals/{}/approve", id(&shown));
        let answer = service.post(None, &path, &people[0].approves(&shown));
        if may_approve {
            answer.ok();
        } else {
            assert_eq!(shown["request"]["requester"], "development");
            assert_eq!(answer.error(), forbidden());
        }
    }
}

#[test]
fn a_caller_without_a_name_requests_nothing() {
    let keystore = keystore(&["local"]);
    let people = people();
    keystore.create_key(new_key(Algorithm::Ed25519, "release").approval(rule(&people))).unwrap();
    let unnamed = crate::support::token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Sign]);
    let service = Service::start(keystore, config());
    let refused = request_on(&service, &unnamed, &subject(MESSAGE));
    assert_eq!(refused.error(), (400, "malformed_request".to_owned()));
}

#[test]
fn rejections_end_a_request_when_too_few_people_are_left() {
    let place = place();
    let shown = place.request(MESSAGE);
    let [ann, bob, carol] = &place.people;
    let reject = |person: &Person| {
        let body = person.decides(&shown, ApprovalDecision::Reject);
        decide_on(&place.service, &place.reader, &shown, "reject", &body).ok()["state"].clone()
    };
    assert_eq!(reject(ann), "waiting");
    assert_eq!(reject(bob), "rejected");
    assert_eq!(place.approve(&shown, &carol.approves(&shown)).ok()["state"], "rejected");
    assert_eq!(place.sign(MESSAGE, &shown).error(), required());
}

#[test]
fn no_other_way_to_the_key_goes_around_its_approvals() {
    let place = place();
    let input = base64(MESSAGE);
    let digest = json!({ "digest": base64(bulla_blake3::hash(MESSAGE).as_bytes()), "prehash": "blake3" });
    for (path, body) in [
        ("/api/v1/keys/release/sign", json!({ "message": input })),
        ("/api/v1/keys/release/sign-digest", digest.clone()),
        (
            "/api/v1/keys/release/sign-statement",
            json!({ "kind": "file", "digest": digest["digest"], "size": 1 }),
        ),
    ] {
        let refused = place.service.post(Some(&place.requester), path, &body);
        assert_eq!(refused.error(), required(), "{path}");
    }
    let batch = json!({ "key": "release", "items": [{ "message": input }, { "message": input }] });
    let results = place.service.post(Some(&place.requester), "/api/v1/sign", &batch).ok();
    for result in results["results"].as_array().unwrap() {
        assert_eq!(result["error"]["code"], "approval_required");
    }
    for path in ["sign/release", "hmac/release"] {
        let path = format!("/v1/transit/{path}");
        let refused = place.service.post(Some(&place.requester), &path, &json!({ "input": input }));
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        assert!(refused.text().contains("approvals"), "it says what to do: {}", refused.text());
    }
    let batch = json!({ "batch_input": [{ "input": input }] });
    let answer = place.service.post(Some(&place.requester), "/v1/transit/sign/release", &batch);
    assert!(!answer.text().contains("vault:v"), "{}", answer.text());
}

#[test]
fn a_ciphertext_is_decrypted_with_approvals_and_made_without() {
    let place = place();
    let plaintext = json!({ "plaintext": base64(b"a secret") });
    let made = place.service.post(Some(&place.requester), "/api/v1/keys/orders/encrypt", &plaintext).ok();
    place.service.post(Some(&place.requester), "/api/v1/keys/orders/rotate", &json!({})).ok();
    let decrypt = |approval: Option<&str>| {
        let body = json!({ "ciphertext": made["ciphertext"], "approval": approval });
        place.service.post(Some(&place.requester), "/api/v1/keys/orders/decrypt", &body)
    };
    assert_eq!(decrypt(None).error(), required());
    let items = json!({ "items": [{ "ciphertext": made["ciphertext"] }] });
    let many = place.service.post(Some(&place.requester), "/api/v1/keys/orders/decrypt/batch", &items).ok();
    assert_eq!(many["results"][0]["error"]["code"], "approval_required");
    let bytes = from_base64(&made["ciphertext"]);
    let subject = json!({ "operation": "decrypt", "digest": bulla_blake3::hash(&bytes).to_string(), "size": bytes.len() });
    let body = json!({ "key": "orders", "subject": subject, "reason": "an order is disputed" });
    let shown = place.service.post(Some(&place.requester), "/api/v1/approvals", &body).ok();
    for person in &place.people[1..] {
        place.approve(&shown, &person.approves(&shown)).ok();
    }
    assert_eq!(from_base64(&decrypt(Some(&id(&shown))).ok()["plaintext"]), b"a secret");
    assert_eq!(decrypt(Some(&id(&shown))).error(), required());
}

#[test]
fn a_signature_file_has_the_approved_name_and_comment() {
    let place = place();
    let digest = bulla_blake3::hash(MESSAGE);
    let mut subject = subject(MESSAGE);
    subject["operation"] = json!("sign_statement");
    subject["kind"] = json!("file");
    subject["name"] = json!("app.tar.gz");
    let shown = request_on(&place.service, &place.requester, &subject).ok();
    for person in &place.people[..2] {
        place.approve(&shown, &person.approves(&shown)).ok();
    }
    let sign = |name: &str| {
        let body = json!({ "kind": "file", "digest": base64(digest.as_bytes()), "size": MESSAGE.len(),
            "name": name, "approval": id(&shown) });
        place.service.post(Some(&place.requester), "/api/v1/keys/release/sign-statement", &body)
    };
    assert_eq!(sign("other.tar.gz").error(), required());
    assert!(sign("app.tar.gz").ok()["signature_file"].as_str().unwrap().contains("app.tar.gz"));
}

#[test]
fn a_rotated_key_keeps_its_rule_and_approvals_are_about_one_version() {
    let place = place();
    let shown = place.approved(MESSAGE);
    let rotated = place.service.post(Some(&place.requester), "/api/v1/keys/release/rotate", &json!({})).ok();
    assert_eq!(rotated["approval_rule"]["threshold"], 2);
    assert_eq!(place.sign(MESSAGE, &shown).error(), required());
    let next = place.approved(MESSAGE);
    assert_eq!(place.sign(MESSAGE, &next).ok()["version"], 2);
}

#[test]
fn the_rule_changes_only_with_approvals_by_the_old_rule() {
    let place = place();
    let mut weaker = rule(&place.people);
    weaker.threshold = NonZeroU32::MIN;
    let weaker = serde_json::to_value(&weaker).unwrap();
    let change = |approval: Option<&str>| {
        let body = json!({ "approval_rule": weaker, "approval": approval }).to_string();
        place.service.send("PATCH", Some(&place.requester), "/api/v1/keys/release", body.as_bytes())
    };
    assert_eq!(change(None).error(), required());
    let subject = json!({ "operation": "change_rule", "rule": weaker });
    let shown = request_on(&place.service, &place.requester, &subject).ok();
    assert_eq!(change(Some(&id(&shown))).error(), required());
    for person in &place.people[..2] {
        place.approve(&shown, &person.approves(&shown)).ok();
    }
    assert_eq!(change(Some(&id(&shown))).ok()["approval_rule"]["threshold"], 1);
    assert_eq!(change(Some(&id(&shown))).error(), required());
}

#[test]
fn a_request_and_its_approvals_outlive_the_service_and_the_log_has_every_step() {
    let folder = tempfile::tempdir().unwrap();
    let people = people();
    let (requester, reader, auditor) = {
        let keystore = OnDisk::create(folder.path()).keystore();
        keystore.create_key(new_key(Algorithm::Ed25519, "release").approval(rule(&people))).unwrap();
        let token = |holder, operation| token_of(&keystore, holder, &[operation]);
        (
            token("ci", TokenOperation::Sign),
            token("bob", TokenOperation::Read),
            token("eve", TokenOperation::Audit),
        )
    };
    let service = OnDisk::existing(folder.path()).start(config());
    let shown = request_on(&service, &requester, &subject(MESSAGE)).ok();
    decide_on(&service, &reader, &shown, "approve", &people[0].approves(&shown)).ok();
    drop(service);
    let service = OnDisk::existing(folder.path()).start(config());
    decide_on(&service, &reader, &shown, "approve", &people[1].approves(&shown)).ok();
    sign_on(&service, &requester, MESSAGE, &id(&shown)).ok();
    drop(service);
    let service = OnDisk::existing(folder.path()).start(config());
    assert_eq!(sign_on(&service, &requester, MESSAGE, &id(&shown)).error(), required(), "it was used");

    let entries = logged(&service, &auditor).into_iter();
    let steps: Vec<_> = entries.filter(|entry| entry["approval"]["id"] == id(&shown).as_str()).collect();
    let told = |entry: &Value| {
        assert_eq!(entry["digest"], bulla_blake3::hash(MESSAGE).to_string());
        let approver = entry["approval"]["approver"].as_str().unwrap_or("-");
        format!("{} {} {approver}", entry["op"].as_str().unwrap(), entry["result"].as_str().unwrap())
    };
    let told: Vec<_> = steps.iter().map(told).collect();
    assert_eq!(told, ["request_approval ok -", "approve ok ann", "approve ok bob", "sign ok -"]);
}

#[test]
fn an_emergency_needs_the_permission_the_settings_and_a_reason_and_leaves_a_trace() {
    for is_allowed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let people = people();
        let (officer, requester, auditor) = {
            let keystore = OnDisk::create(folder.path()).keystore();
            keystore.create_key(new_key(Algorithm::Ed25519, "release").approval(rule(&people))).unwrap();
            let override_too = [TokenOperation::Sign, TokenOperation::OverrideApproval];
            (
                token_of(&keystore, "officer", &override_too),
                token_of(&keystore, "ci", &[TokenOperation::Sign]),
                token_of(&keystore, "eve", &[TokenOperation::Audit, TokenOperation::Read]),
            )
        };
        let mut config = config();
        config.service.allow_approval_override = is_allowed;
        let service = OnDisk::existing(folder.path()).start(config);
        let sign = |token: &Token, reason: &str| {
            let shown = request_on(&service, token, &subject(MESSAGE)).ok();
            let body =
                json!({ "message": base64(MESSAGE), "approval": id(&shown), "override_reason": reason });
            service.post(Some(token), "/api/v1/keys/release/sign", &body)
        };
        assert_eq!(sign(&requester, "I want it").error(), forbidden());
        let answer = sign(&officer, "the release is on fire");
        if !is_allowed {
            assert_eq!(answer.error(), required());
            continue;
        }
        answer.ok();
        assert_eq!(sign(&officer, "").error().0, 400, "without a reason");
        let entries = logged(&service, &auditor).into_iter();
        let traces: Vec<_> = entries.filter(|entry| entry["op"] == "override_approval").collect();
        assert_eq!(traces.len(), 1, "{traces:?}");
        assert_eq!(traces[0]["approval"]["reason"], "the release is on fire");
        assert!(traces[0]["who"].as_str().unwrap().starts_with("officer token "));
        let metrics = service.get(Some(&auditor), "/metrics").text();
        assert!(metrics.contains(r#"kms_ops_total{op="override_approval",alg="ed25519"} 1"#), "{metrics}");
    }
}

#[test]
fn an_approver_whose_key_is_in_the_service_approves_with_it() {
    let keystore = keystore(&["local"]);
    let mut people = people();
    let own = keystore.create_key(new_key(Algorithm::Ed25519, "anns")).unwrap();
    let mut rule = rule(&people);
    rule.approvers[0].public_key = keystore.public_key(&own).unwrap();
    keystore.create_key(new_key(Algorithm::Ed25519, "release").approval(rule)).unwrap();
    let requester = token_of(&keystore, "ci", &[TokenOperation::Sign]);
    let grant = Grant::new(
        name("local"),
        GrantedKeys::All,
        vec![TokenOperation::Sign, TokenOperation::Read],
        after(3600),
    );
    let ann = keystore.mint_token(&grant.holder("ann".parse().unwrap())).unwrap();
    let service = Service::start(keystore, config());
    let shown = request_on(&service, &requester, &subject(MESSAGE)).ok();
    let body = json!({ "approver": "ann", "signing_key": "anns" });
    decide_on(&service, &ann, &shown, "approve", &body).ok();
    let wrong = json!({ "approver": "bob", "signing_key": "anns" });
    assert_eq!(decide_on(&service, &ann, &shown, "approve", &wrong).error(), forbidden());
    let bob = people[1].approves(&shown);
    decide_on(&service, &ann, &shown, "approve", &bob).ok();
    people[0].name = "unused";
    sign_on(&service, &requester, MESSAGE, &id(&shown)).ok();
}

/// Two nodes with the key `release`, and the tokens of a requester and a reader.
#[cfg(feature = "etcd")]
fn two_nodes(people: &[Person]) -> (crate::support::nodes::Shared, [Service; 2], Token, Token) {
    use crate::support::nodes::{Shared, eventually};

    let shared = Shared::start(1);
    let (requester, reader) = {
        let keystore = shared.create(&shared.closed());
        keystore.create_token_root(&name("local")).unwrap();
        keystore.create_key(new_key(Algorithm::Ed25519, "release").approval(rule(people))).unwrap();
        let token = |holder, operation| token_of(&keystore, holder, &[operation]);
        (token("ci", TokenOperation::Sign), token("bob", TokenOperation::Read))
    };
    let nodes = [(); 2].map(|()| shared.node(shared.closed()));
    eventually("both nodes have the keys", || {
        nodes.iter().all(|node| node.get(Some(&reader), "/api/v1/keys/release").status == 200)
    });
    (shared, nodes, requester, reader)
}

#[cfg(feature = "etcd")]
#[test]
fn a_requester_has_a_hundred_requests_on_all_nodes_together_and_each_lists_them_in_pages() {
    let (_shared, nodes, requester, reader) = two_nodes(&people());
    assert_eq!(made_at_once(&[&nodes[0], &nodes[1]], &requester), 100);
    for node in &nodes {
        let lengths: Vec<_> = pages(node, &reader, 40).iter().map(Vec::len).collect();
        assert_eq!(lengths, [40, 40, 20]);
    }
}

#[cfg(feature = "etcd")]
#[test]
fn two_nodes_use_one_request_once() {
    let people = people();
    let (_shared, nodes, requester, reader) = two_nodes(&people);
    for _ in 0..4 {
        let shown = request_on(&nodes[0], &requester, &subject(MESSAGE)).ok();
        for (node, person) in nodes.iter().zip(&people) {
            decide_on(node, &reader, &shown, "approve", &person.approves(&shown)).ok();
        }
        let statuses: Vec<_> = thread::scope(|scope| {
            let sign = |place: usize| sign_on(&nodes[place % 2], &requester, MESSAGE, &id(&shown)).status;
            let all: Vec<_> = (0..6).map(|place| scope.spawn(move || sign(place))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    }
}
