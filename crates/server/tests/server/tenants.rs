//! What a caller learns of other tenants: nothing, whatever it asks, and in whose namespace.

use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Algorithm, KeyId, NewKey};
use bulla_server::MountConfig;
use serde_json::Value;

use crate::description::{description, operations};
use crate::permissions::{Asked, Key, asked, new_key};
use crate::support::{Answer, Service, config, keystore, name, token};

/// An answer without what differs between any two requests. A success may differ in its values: it
/// made something, or is random.
fn normalized(answer: &Answer, asked: &Asked, key: &Key) -> String {
    let is_success = (200..300).contains(&answer.status);
    let mut headers: Vec<_> = answer.headers.iter().map(|(name, value)| (name.as_str(), value)).collect();
    headers.retain(|(name, _)| !["date", "x-request-id", "content-length"].contains(name));
    headers.sort();
    let body = match serde_json::from_slice::<Value>(&answer.body) {
        Ok(mut body) => {
            plain(&mut body, is_success);
            body.to_string()
        }
        Err(_) if is_success => String::new(),
        Err(_) => answer.text(),
    };
    // What the caller itself has sent may come back.
    let id = key.name.rsplit('/').next().unwrap();
    let texts = [
        (key.name.as_str(), "NAME"),
        (id, "ID"),
        (key.label.as_str(), "LABEL"),
        (asked.path.as_str(), "PATH"),
    ];
    let body = texts.into_iter().fold(body, |body, (text, word)| body.replace(text, word));
    format!("{} {headers:?} {body}", answer.status)
}

fn plain(value: &mut Value, is_success: bool) {
    match value {
        Value::Object(fields) => {
            fields.remove("request_id");
            fields.values_mut().for_each(|inner| plain(inner, is_success));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| plain(inner, is_success)),
        Value::String(text) if is_success => text.clear(),
        Value::Number(_) if is_success => *value = Value::Null,
        _ => {}
    }
}

#[test]
fn a_key_of_another_tenant_is_answered_as_one_that_is_nowhere() {
    let description = description();
    let all = keystore(&["local", "other"]);
    let mine = new_key(&all, "local");
    // Of each kind that an endpoint could tell apart.
    let theirs = [Algorithm::Ed25519, Algorithm::Aes256Gcm, Algorithm::HmacSha256].map(|algorithm| {
        let label = format!("theirs-{}", all.list().unwrap().len());
        let new = NewKey::new(name("other"), name("transit"), algorithm).label(name(&label));
        Key { label, name: all.create_key(new).unwrap().key_id().to_string() }
    });
    let mine: KeyId = mine.name.parse().unwrap();
    let callers: Vec<_> = (0..theirs.len())
        .flat_map(|_| [GrantedKeys::All, GrantedKeys::These(vec![mine.clone()])])
        .map(|keys| token(&all, "local", keys, TokenOperation::ALL))
        .collect();
    let service = Service::start(all, config());
    let mut callers = callers.iter();
    let mut compared = 0;
    for exists in &theirs {
        // The same but for the id and the label.
        let (begin, _) = exists.name.rsplit_once('/').unwrap();
        let nowhere = Key {
            label: exists.label.replace("theirs", "nobody"),
            name: format!("{begin}/01890000-0000-7000-8000-000000000001"),
        };
        for caller in callers.by_ref().take(2) {
            for described in operations(&description) {
                let what = format!("{} {}", described.method, described.path);
                // These end the token, and name no key.
                if described.path.contains("/revoke") || described.path.ends_with("/seal") {
                    continue;
                }
                let answers = [exists, &nowhere].map(|key| {
                    let asked = asked(&description, &described, key);
                    let answer = asked.send(&service, Some(caller));
                    normalized(&answer, &asked, key)
                });
                assert_eq!(answers[0], answers[1], "{what}");
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared} answers were compared");
}

#[test]
fn a_namespace_of_another_tenant_is_answered_as_one_that_is_nowhere() {
    let description = description();
    let all = keystore(&["local", "other", "third"]);
    let theirs = new_key(&all, "other");
    let caller = token(&all, "local", GrantedKeys::All, TokenOperation::ALL);
    let mut config = config();
    config.mount =
        vec![MountConfig { tenant: name("other"), path: name("bills"), keys_tenant: name("third") }];
    let service = Service::start(all, config);
    let mut compared = 0;
    for caller in [Some(&caller), None] {
        for described in operations(&description).into_iter().filter(|one| one.path.starts_with("/v1/")) {
            let what = format!("{} {}", described.method, described.path);
            let plain = asked(&description, &described, &theirs);
            let by_header = |namespace: &'static str| {
                let headers = [("x-vault-namespace", namespace)];
                service.send_with(&plain.method, caller, &plain.path, &plain.body, &headers)
            };
            let by_path = |namespace: &str| {
                let path = plain.path.replacen("/v1/", &format!("/v1/{namespace}/"), 1);
                service.send(&plain.method, caller, &path, &plain.body)
            };
            let by_mount = |mount: &str| {
                let path = plain.path.replacen("/v1/transit/", &format!("/v1/{mount}/"), 1);
                service.send(&plain.method, caller, &path, &plain.body)
            };
            let mut answers =
                vec![by_header("other"), by_header("nowhere"), by_path("other"), by_path("nowhere")];
            if plain.path.starts_with("/v1/transit/") {
                answers.extend(["bills", "nowhere", "other/bills", "other/nowhere"].map(by_mount));
            }
            let texts: Vec<_> = answers.iter().map(|answer| normalized(answer, &plain, &theirs)).collect();
            assert!(texts.iter().all(|text| *text == texts[0]), "{what}: {texts:?}");
            // What concerns the whole service is in no namespace.
            let expected = if plain.path.ends_with("/seal") { 400 } else { 403 };
            if described.operation["x-permission"] != "open" {
                assert_eq!(answers[0].status, expected, "{what}: {}", answers[0].text());
            }
            compared += 1;
        }
    }
    assert!(compared > 150, "{compared} requests were compared");
}
