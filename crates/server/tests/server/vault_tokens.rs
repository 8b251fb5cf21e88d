//! Tokens as clients of Vault make, look up and revoke them, and what nobody gets by that.

use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, Keystore, NewKey};
use serde_json::{Value, json};

use crate::support::{Answer, Service, config, keystore, name, token};

const PARENT: [TokenOperation; 3] = [TokenOperation::Sign, TokenOperation::Verify, TokenOperation::Read];

/// A service with a token that signs, verifies and reads, and the token.
fn with_parent() -> (Service, Token) {
    let keystore = with_key();
    let parent = token(&keystore, "local", GrantedKeys::All, &PARENT);
    (Service::start(keystore, config()), parent)
}

fn with_key() -> Keystore {
    let keystore = keystore(&["local", "other"]);
    let key = NewKey::new(name("local"), name("transit"), Algorithm::Ed25519).label(name("a"));
    keystore.create_key(key).unwrap();
    keystore
}

fn auth(answer: &Answer) -> Value {
    answer.ok()["auth"].clone()
}

fn made(auth: &Value) -> Token {
    auth["client_token"].as_str().unwrap().parse().unwrap()
}

fn create(service: &Service, parent: &Token, body: &Value) -> Value {
    auth(&service.post(Some(parent), "/v1/auth/token/create", body))
}

fn ask(service: &Service, token: &Token, what: &str, body: &Value) -> Answer {
    service.post(Some(token), &format!("/v1/auth/token/{what}"), body)
}

fn works(service: &Service, token: &Token) -> bool {
    service.get(Some(token), "/v1/auth/token/lookup-self").status == 200
}

#[track_caller]
fn refused(answer: &Answer, words: &str) {
    assert_eq!((answer.status, &answer.json()["errors"]), (400, &json!([words])), "{}", answer.text());
}

#[test]
fn a_child_permits_no_more_and_lives_no_longer_than_its_parent() {
    let (service, parent) = with_parent();
    for more in ["root", "create", "backup", "sign,create", "nonsense"] {
        let answer = ask(&service, &parent, "create", &json!({ "policies": more }));
        refused(&answer, "child policies must be subset of parent");
    }
    let child = create(&service, &parent, &json!({ "policies": ["sign", "default", "sign"], "ttl": "10m" }));
    assert_eq!((&child["policies"], &child["token_policies"]), (&json!(["sign"]), &json!(["sign"])));
    assert_eq!((&child["lease_duration"], &child["renewable"]), (&json!(600), &json!(false)));
    assert_eq!((&child["orphan"], &child["metadata"]), (&json!(false), &Value::Null));
    let child = made(&child);
    let sign = |token: &Token| service.post(Some(token), "/v1/transit/sign/a", &json!({ "input": "" }));
    let read = |token: &Token| service.get(Some(token), "/v1/transit/keys/a").status;
    sign(&child).ok();
    assert_eq!((read(&child), read(&parent)), (403, 200));
    // A child of the child cannot get back what its parent lost.
    refused(
        &ask(&service, &child, "create", &json!({ "policies": "read" })),
        "child policies must be subset of parent",
    );
    let longer = service.post(Some(&child), "/v1/auth/token/create", &json!({ "ttl": "24h" }));
    let seconds = auth(&longer)["lease_duration"].as_u64().unwrap();
    assert!((590..=600).contains(&seconds), "{seconds}");
    let warning = longer.json()["warnings"][0].as_str().unwrap().to_owned();
    assert!(warning.starts_with("TTL of \"86400s\" exceeded the effective max_ttl of"), "{warning}");
    let grandchild = made(&auth(&longer));
    let own = service.get(Some(&grandchild), "/api/v1/tokens/self").ok();
    assert_eq!(own["operations"], json!(["sign"]));
    assert_eq!(own["revocation_ids"].as_array().unwrap().len(), 3);
    let bounded = create(&service, &parent, &json!({ "ttl": 3000, "explicit_max_ttl": "60" }));
    assert_eq!(bounded["lease_duration"], 60);
}

#[test]
fn what_no_token_of_bulla_has_is_refused() {
    let (service, parent) = with_parent();
    let not_made = |body: Value| {
        let answer = ask(&service, &parent, "create", &body);
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
    };
    not_made(json!({ "no_parent": true }));
    not_made(json!({ "period": "1h" }));
    not_made(json!({ "id": "mine" }));
    not_made(json!({ "num_uses": 1 }));
    not_made(json!({ "num_uses": -1 }));
    not_made(json!({ "type": "root" }));
    not_made(json!({ "ttl": "-1" }));
    not_made(json!({ "ttl": "x" }));
    not_made(json!({ "policies": ["default"] }));
    not_made(json!({ "entity_alias": "a" }));
    let orphan = ask(&service, &parent, "create-orphan", &json!({}));
    assert_eq!((orphan.status, &orphan.json()["errors"]), (403, &json!(["permission denied"])));
    for what in ["create/role", "revoke-orphan", "tidy", "roles/a"] {
        assert_eq!(ask(&service, &parent, what, &json!({})).status, 400, "{what}");
    }
    // A token has at most 16 blocks.
    let mut token = parent;
    for _ in 1..16 {
        token = made(&create(&service, &token, &json!({})));
    }
    refused(&ask(&service, &token, "create", &json!({})), "a token has at most 16 blocks");
}

#[test]
fn a_token_is_looked_up_by_itself_and_by_the_accessor_for_its_parent() {
    let (service, parent) = with_parent();
    let child = create(&service, &parent, &json!({ "policies": "sign", "ttl": "30m" }));
    let (accessor, token) = (child["accessor"].clone(), made(&child));
    let own = service.get(Some(&token), "/v1/auth/token/lookup-self").ok()["data"].clone();
    assert_eq!((&own["accessor"], &own["orphan"]), (&accessor, &json!(false)));
    assert_eq!(own["id"], token.expose());
    let same = |answer: Answer| {
        let mut data = answer.ok()["data"].clone();
        data["ttl"] = own["ttl"].clone();
        assert_eq!(data, own);
    };
    same(ask(&service, &parent, "lookup", &json!({ "token": token.expose() })));
    same(ask(&service, &token, "lookup", &json!({})));
    same(service.get(Some(&token), "/v1/auth/token/lookup"));
    let bad = ask(&service, &parent, "lookup", &json!({ "token": "nope" }));
    assert_eq!((bad.status, &bad.json()["errors"]), (403, &json!(["bad token"])));
    let by_accessor =
        |token: &Token| ask(&service, token, "lookup-accessor", &json!({ "accessor": accessor }));
    let found = by_accessor(&parent).ok()["data"].clone();
    assert_eq!((&found["id"], &found["policies"]), (&json!(""), &json!(["sign"])));
    for field in ["accessor", "display_name", "expire_time", "meta", "orphan", "path"] {
        assert_eq!(found[field], own[field], "{field}");
    }
    assert_eq!(found["creation_ttl"], 1800);
    assert!(found["issue_time"].is_string() && found["creation_time"].is_u64());
    assert_eq!(by_accessor(&token).ok()["data"]["accessor"], accessor, "its own");
    let sibling = made(&create(&service, &parent, &json!({})));
    refused(&by_accessor(&sibling), "invalid accessor");
    refused(&ask(&service, &parent, "lookup-accessor", &json!({})), "missing accessor");
    // The child does not learn of its parent by that one's accessor.
    let of_parent = service.get(Some(&parent), "/v1/auth/token/lookup-self").ok()["data"]["accessor"].clone();
    refused(&ask(&service, &token, "lookup-accessor", &json!({ "accessor": of_parent })), "invalid accessor");
}

#[test]
fn no_token_is_renewed() {
    let (service, parent) = with_parent();
    let accessor = create(&service, &parent, &json!({}))["accessor"].clone();
    let words = "lease is not renewable";
    refused(&ask(&service, &parent, "renew-self", &json!({ "increment": "1h" })), words);
    refused(&ask(&service, &parent, "renew", &json!({ "token": parent.expose() })), words);
    refused(&ask(&service, &parent, "renew-accessor", &json!({ "accessor": accessor })), words);
    refused(&ask(&service, &parent, "renew", &json!({ "token": "nope" })), "token not found");
    refused(&ask(&service, &parent, "renew", &json!({})), "missing token ID");
    refused(&ask(&service, &parent, "renew-accessor", &json!({ "accessor": "nope" })), "invalid accessor");
}

#[test]
fn a_revoked_token_takes_its_children_along_and_no_other() {
    let (service, parent) = with_parent();
    let child = || create(&service, &parent, &json!({}));
    let (one, other, spare) = (child(), child(), made(&child()));
    let (one, other_token) = (made(&one), made(&other));
    let grandchild = made(&create(&service, &one, &json!({})));
    assert_eq!(ask(&service, &one, "revoke-self", &json!({})).status, 204);
    assert!(!works(&service, &one) && !works(&service, &grandchild));
    assert!(works(&service, &parent) && works(&service, &other_token));
    let by_accessor = json!({ "accessor": other["accessor"] });
    // A sibling may not; nothing tells it whether the token is there.
    let unknown = "No token found with this accessor";
    assert_eq!(ask(&service, &spare, "revoke-accessor", &by_accessor).ok()["warnings"], json!([unknown]));
    assert!(works(&service, &other_token));
    assert_eq!(ask(&service, &parent, "revoke-accessor", &by_accessor).status, 204);
    assert!(!works(&service, &other_token));
    refused(&ask(&service, &parent, "lookup-accessor", &by_accessor), "invalid accessor");
    assert_eq!(ask(&service, &parent, "revoke-accessor", &by_accessor).ok()["warnings"], json!([unknown]));
    // A child may not revoke its parent by that one's accessor.
    let of_parent = service.get(Some(&parent), "/v1/auth/token/lookup-self").ok()["data"]["accessor"].clone();
    ask(&service, &spare, "revoke-accessor", &json!({ "accessor": of_parent })).ok();
    assert!(works(&service, &parent));
    for body in
        [json!({ "token": spare.expose() }), json!({ "token": spare.expose() }), json!({ "token": "x" })]
    {
        assert_eq!(ask(&service, &parent, "revoke", &body).status, 204);
    }
    assert!(!works(&service, &spare));
    assert_eq!(ask(&service, &parent, "revoke", &json!({ "token": parent.expose() })).status, 204);
    assert!(!works(&service, &parent));
}

#[test]
fn an_accessor_of_another_tenant_is_unknown() {
    let keystore = with_key();
    let mine = token(&keystore, "local", GrantedKeys::All, &PARENT);
    let theirs = token(&keystore, "other", GrantedKeys::All, TokenOperation::ALL);
    let mut config = config();
    config.service.development = true;
    config.service.operator_tenant = name("other");
    let service = Service::start(keystore, config);
    let child = create(&service, &mine, &json!({}));
    let body = json!({ "accessor": child["accessor"] });
    refused(&ask(&service, &theirs, "lookup-accessor", &body), "invalid accessor");
    ask(&service, &theirs, "revoke-accessor", &body).ok();
    // Neither does a caller who mints for the other tenant.
    refused(&service.post(None, "/v1/auth/token/lookup-accessor", &body), "invalid accessor");
    assert_eq!(service.post(None, "/v1/auth/token/revoke-accessor", &body).status, 204);
    assert!(works(&service, &made(&child)), "the id is revoked in the other tenant alone");
}

#[test]
fn a_caller_who_may_mint_mints_and_sees_every_token_of_its_tenant() {
    let mut config = config();
    config.service.development = true;
    let service = Service::start(with_key(), config);
    let body = json!({ "policies": "sign,read", "ttl": "1h", "display_name": "build 7" });
    let mint = |what: &str, body: &Value| auth(&service.post(None, &format!("/v1/auth/token/{what}"), body));
    for what in ["create", "create-orphan"] {
        let minted = mint(what, &body);
        assert_eq!((&minted["orphan"], &minted["lease_duration"]), (&json!(true), &json!(3600)));
        let own = service.get(Some(&made(&minted)), "/v1/auth/token/lookup-self").ok()["data"].clone();
        assert_eq!((&own["policies"], &own["orphan"]), (&json!(["sign", "read"]), &json!(true)));
        let display = own["display_name"].as_str().unwrap();
        assert!(display.starts_with("token/build%207 token "), "{display}");
    }
    assert_eq!(mint("create", &json!({}))["lease_duration"], 768 * 3600);
    let child = create(&service, &made(&mint("create", &body)), &json!({}));
    let accessor = json!({ "accessor": child["accessor"] });
    let found = service.post(None, "/v1/auth/token/lookup-accessor", &accessor).ok()["data"].clone();
    assert!(found["display_name"].as_str().unwrap().starts_with("token/build%207 token "), "{found}");
    assert_eq!(service.post(None, "/v1/auth/token/revoke-accessor", &accessor).status, 204);
    assert!(!works(&service, &made(&child)));
    // It knows an accessor that the service does not, for example from a login.
    let minted =
        service.post(None, "/api/v1/tokens", &json!({ "operations": ["read"], "expires_in_seconds": 60 }));
    let (token, id) = (minted.ok()["token"].clone(), minted.json()["revocation_id"].clone());
    assert_eq!(service.post(None, "/v1/auth/token/revoke-accessor", &json!({ "accessor": id })).status, 204);
    assert!(!works(&service, &token.as_str().unwrap().parse().unwrap()));
    refused(&service.post(None, "/v1/auth/token/revoke-self", &json!({})), "missing token ID");
}
