//! Who may do what.

use bulla_kms::token::{Keys, Limits, Operation};
use bulla_kms::{Algorithm, KeyChange, NewKey};
use serde_json::json;

use crate::support::{Service, base64, config, keystore, name, token};

const REFUSED: (u16, &str) = (403, "token_refused");

fn is(answer: (u16, String), expected: (u16, &str)) {
    assert_eq!((answer.0, answer.1.as_str()), expected);
}

#[test]
fn without_a_credential_only_health_answers() {
    let service = Service::start(keystore(&["local"]), config());
    assert_eq!(service.get(None, "/api/v1/health").ok()["status"], "ok");
    assert_eq!(service.get(None, "/api/v1/ready").ok()["ready"], true);
    is(service.get(None, "/api/v1/keys").error(), (401, "unauthenticated"));
    let sign = service.post(None, "/api/v1/keys/a/sign", &json!({ "message": "" }));
    assert_eq!(sign.headers["www-authenticate"], "Bearer");
    is(sign.error(), (401, "unauthenticated"));
}

#[test]
fn a_token_permits_its_operations_on_its_keys_and_a_missing_key_looks_like_a_forbidden_one() {
    let keystore = keystore(&["local", "other"]);
    let new = |tenant: &str, label: &str| {
        let new = NewKey::new(name(tenant), name("files"), Algorithm::Ed25519).label(name(label));
        keystore.create_key(new).unwrap().family().clone()
    };
    let (mine, theirs) = (new("local", "mine"), new("local", "theirs"));
    let foreign = new("other", "foreign");
    let narrow = token(&keystore, "local", Keys::These(vec![mine.clone()]), &[Operation::Sign]);
    let all = token(&keystore, "local", Keys::All, &[Operation::Sign, Operation::Read]);
    let other = token(&keystore, "other", Keys::All, &[Operation::Sign]);
    let weaker =
        all.attenuate(&Limits { operations: Some(vec![Operation::Read]), ..Limits::default() }).unwrap();
    let service = Service::start(keystore, config());
    let sign = |token, key: &str| {
        let body = json!({ "message": base64(b"x") });
        service.post(Some(token), &format!("/api/v1/keys/{}/sign", key.replace('/', "%2F")), &body)
    };
    sign(&narrow, "mine").ok();
    sign(&narrow, &mine.to_string()).ok();
    let (forbidden, missing) = (sign(&narrow, "theirs"), sign(&narrow, "nothing"));
    is(forbidden.error(), REFUSED);
    assert_eq!((forbidden.status, &forbidden.body), (missing.status, &missing.body));
    is(sign(&narrow, &theirs.to_string()).error(), REFUSED);
    is(sign(&narrow, &foreign.to_string()).error(), REFUSED);
    is(service.get(Some(&narrow), "/api/v1/keys/mine").error(), REFUSED);
    is(sign(&all, "nothing").error(), (404, "key_not_found"));
    sign(&all, "theirs").ok();
    is(sign(&all, &foreign.to_string()).error(), REFUSED);
    is(sign(&other, "mine").error(), (404, "key_not_found"));
    is(sign(&weaker, "mine").error(), REFUSED);
    assert_eq!(service.get(Some(&weaker), "/api/v1/keys").ok()["keys"].as_array().unwrap().len(), 3);
    is(service.post(Some(&all), "/api/v1/keys", &json!({})).error(), REFUSED);
}

#[test]
fn a_token_that_is_none_looks_like_one_that_does_not_permit_it() {
    let keystore = keystore(&["local"]);
    let stranger = super::support::keystore(&["local"]);
    let foreign = token(&stranger, "local", Keys::All, &Operation::ALL);
    let good = token(&keystore, "local", Keys::All, &[Operation::Read]);
    let service = Service::start(keystore, config());
    service.get(Some(&good), "/api/v1/keys").ok();
    let refused = service.get(Some(&foreign), "/api/v1/keys");
    let not_permitted = service.post(Some(&good), "/api/v1/keys", &json!({}));
    assert_eq!((refused.status, &refused.body), (not_permitted.status, &not_permitted.body));
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    for (header, value) in [
        ("authorization", "Bearer nonsense"),
        ("x-vault-token", "nonsense"),
        ("authorization", "Bearer x"),
        ("x-vault-token", ""),
    ] {
        let answer = agent.get(format!("{}/api/v1/keys", service.url)).header(header, value).call().unwrap();
        assert_eq!(answer.status(), 403, "{header}: {value}");
    }
    let basic =
        agent.get(format!("{}/api/v1/keys", service.url)).header("authorization", "Basic eDp5").call();
    assert_eq!(basic.unwrap().status(), 401);
    let vault =
        agent.get(format!("{}/api/v1/keys", service.url)).header("x-vault-token", good.expose()).call();
    assert_eq!(vault.unwrap().status(), 200);
}

#[test]
fn a_token_ends_with_the_root_key_that_signed_it() {
    let keystore = keystore(&["local"]);
    let all = token(&keystore, "local", Keys::All, &[Operation::Read, Operation::Update]);
    let service = Service::start(keystore, config());
    for _ in 0..3 {
        service.get(Some(&all), "/api/v1/keys").ok();
    }
    let disable = json!({ "enabled": false }).to_string();
    service.send("PATCH", Some(&all), "/api/v1/keys/tokens", disable.as_bytes()).ok();
    for _ in 0..5 {
        is(service.get(Some(&all), "/api/v1/keys").error(), REFUSED);
    }
}

#[test]
fn a_token_cannot_make_a_root_key() {
    let keystore = keystore(&["local"]);
    let root = keystore.find(&name("local"), &name("tokens")).unwrap().unwrap();
    keystore.update(&root, None, &KeyChange::Label(Some(name("old-root")))).unwrap();
    keystore.update(&root, None, &KeyChange::Label(Some(name("tokens")))).unwrap();
    let all = token(&keystore, "local", Keys::All, &Operation::ALL);
    let service = Service::start(keystore, config());
    let body = json!({ "purpose": "tokens", "label": "mine" });
    is(service.post(Some(&all), "/api/v1/keys", &body).error(), REFUSED);
}
