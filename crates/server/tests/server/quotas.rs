//! Quotas of tenants: what a tenant has used up it does not get, and the others do.

use std::sync::Barrier;

use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, Keystore, NewKey};
use bulla_server::{ByteRate, Config, IssuerConfig, QuotaConfig, RequestRate};
use serde_json::{Value, json};

use crate::login::{SigningKey, claims, issuer, keys, role};
use crate::support::{Answer, Service, config, keystore, name, token};

const NOTHING: QuotaConfig =
    QuotaConfig { tenant: None, request_rate: None, byte_rate: None, max_slow_jobs: None, max_keys: None };

/// So slow that no request becomes possible while a test runs.
fn requests(burst: u32) -> Option<RequestRate> {
    Some(RequestRate { per_second: 1.try_into().unwrap(), burst: burst.try_into().unwrap() })
}

fn quota(tenant: &str) -> QuotaConfig {
    QuotaConfig { tenant: Some(name(tenant)), ..NOTHING }
}

fn with(quotas: &[QuotaConfig]) -> Config {
    let mut config = config();
    config.quota = quotas.to_vec();
    config
}

/// A keystore with a key `a` of two tenants, and two tokens of the first and one of the other.
fn two_tenants() -> (Keystore, [Token; 3]) {
    let all = keystore(&["local", "other"]);
    for tenant in ["local", "other"] {
        all.create_key(NewKey::new(name(tenant), name("transit"), Algorithm::Ed25519).label(name("a")))
            .unwrap();
    }
    let tokens = ["local", "local", "other"];
    let tokens = tokens.map(|tenant| token(&all, tenant, GrantedKeys::All, TokenOperation::ALL));
    (all, tokens)
}

#[track_caller]
fn is_limited(answer: &Answer, what: &str) {
    assert_eq!(answer.error(), (429, "rate_limited".to_owned()), "{}", answer.text());
    assert!(answer.headers.contains_key("retry-after") && answer.text().contains(what), "{}", answer.text());
}

#[test]
fn all_callers_of_a_tenant_share_its_rate_and_no_other_tenant_notices() {
    let (all, [token, sibling, other]) = two_tenants();
    let mut config = with(&[QuotaConfig { request_rate: requests(6), ..quota("local") }]);
    config.service.operator_tenant = name("other");
    let service = Service::start(all, config);
    let sign = |token: &Token| service.post(Some(token), "/v1/transit/sign/a", &json!({ "input": "" }));
    let batch = |items: usize| {
        let body = json!({ "batch_input": vec![json!({ "input": "" }); items] });
        service.post(Some(&token), "/v1/transit/sign/a", &body)
    };
    sign(&token).ok();
    sign(&sibling).ok();
    // A batch counts as its items, and the request that was refused as one.
    is_limited(&batch(5), "requests");
    batch(3).ok();
    is_limited(&sign(&token), "requests");
    is_limited(&sign(&sibling), "requests");
    is_limited(&service.get(Some(&sibling), "/api/v1/keys"), "requests");
    for _ in 0..20 {
        sign(&other).ok();
    }
    let metrics = service.get(Some(&other), "/metrics");
    assert_eq!(metrics.status, 200);
    let labels = ["\"local\"", "\"other\""];
    assert!(labels.iter().all(|label| !metrics.text().contains(label)), "{}", metrics.text());
}

#[test]
fn the_quota_without_a_tenant_is_one_for_each_other_tenant() {
    let (all, [token, _, other]) = two_tenants();
    let others = QuotaConfig { request_rate: requests(2), ..NOTHING };
    let service = Service::start(all, with(std::slice::from_ref(&others)));
    let passing = |token: &Token| {
        (0..5).filter(|_| service.get(Some(token), "/v1/transit/keys/a").status == 200).count()
    };
    assert_eq!((passing(&token), passing(&other)), (2, 2));
    // A reload keeps what was used, and takes what is new.
    let own = QuotaConfig { request_rate: requests(3), ..quota("other") };
    service.handle.reload(with(&[others, own])).unwrap();
    assert_eq!((passing(&token), passing(&other)), (0, 3));
    service.handle.reload(with(&[])).unwrap();
    assert_eq!((passing(&token), passing(&other)), (5, 5));
}

#[test]
fn bytes_of_bodies_count_before_they_arrive() {
    let (all, [token, sibling, other]) = two_tenants();
    let mut config = with(&[QuotaConfig {
        byte_rate: Some(ByteRate {
            per_second: 1.try_into().unwrap(),
            burst: (64 << 10).try_into().unwrap(),
        }),
        ..quota("local")
    }]);
    config.limits.max_body_bytes = 64 << 10;
    let service = Service::start(all, config);
    let sign = |token: &Token, length: usize| {
        let body = json!({ "input": "A".repeat(length) });
        service.post(Some(token), "/v1/transit/sign/a", &body)
    };
    sign(&token, 40_000).ok();
    is_limited(&sign(&sibling, 40_000), "bytes");
    sign(&sibling, 20_000).ok();
    is_limited(&sign(&sibling, 20_000), "bytes");
    sign(&other, 40_000).ok();
    // What has no body needs no bytes.
    service.get(Some(&token), "/v1/transit/keys/a").ok();
}

#[test]
fn a_tenant_has_at_most_so_many_keys_whichever_way_they_come() {
    let (all, [token, sibling, other]) = two_tenants();
    let service = Service::start(all, with(&[QuotaConfig { max_keys: Some(2), ..quota("local") }]));
    let vault = |token: &Token, label: &str| {
        service.post(Some(token), &format!("/v1/transit/keys/{label}"), &json!({ "type": "ed25519" }))
    };
    vault(&token, "b").ok();
    let refused = vault(&sibling, "c");
    assert_eq!(refused.error(), (400, "quota_exceeded".to_owned()));
    assert!(refused.text().contains("may have 2 keys"), "{}", refused.text());
    vault(&token, "b").ok();
    let own = service.post(Some(&token), "/api/v1/keys", &json!({}));
    assert_eq!(own.error(), (409, "quota_exceeded".to_owned()));
    let upsert = json!({ "plaintext": "" });
    assert_eq!(service.post(Some(&token), "/v1/transit/encrypt/d", &upsert).error().1, "quota_exceeded");
    let public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
    let import = json!({ "type": "ed25519", "public_key": public });
    let imported = service.post(Some(&token), "/v1/transit/keys/e/import", &import);
    assert_eq!(imported.error().1, "quota_exceeded", "{}", imported.text());
    let import = json!({ "public_key": { "data": public, "format": "pem" } });
    let imported = service.post(Some(&token), "/api/v1/import", &import);
    assert_eq!(imported.error().1, "quota_exceeded", "{}", imported.text());
    vault(&other, "b").ok();
    vault(&other, "c").ok();
    // A destroyed key makes room.
    service.post(Some(&token), "/v1/transit/keys/b/config", &json!({ "deletion_allowed": true })).ok();
    assert_eq!(service.send("DELETE", Some(&token), "/v1/transit/keys/b", b"").status, 204);
    // Of many at once, one gets the room.
    let begin = Barrier::new(6);
    let made: usize = std::thread::scope(|scope| {
        let create = |number: usize| {
            begin.wait();
            usize::from(vault(&token, &format!("n{number}")).status == 200)
        };
        let threads: Vec<_> = (0..6).map(|number| scope.spawn(move || create(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(made, 1);
    let keys = service.send("LIST", Some(&other), "/v1/transit/keys", b"").ok();
    assert_eq!(keys["data"]["keys"].as_array().unwrap().len(), 3);
}

#[test]
fn logins_count_as_requests_of_their_tenant() {
    let (key, folder) = (SigningKey::p256(), tempfile::tempdir().unwrap());
    let file = folder.path().join("keys.json");
    std::fs::write(&file, keys(&[key.jwk("1")]).to_string()).unwrap();
    let mut config = with(&[QuotaConfig { request_rate: requests(2), ..quota("local") }]);
    config.issuer = vec![IssuerConfig { keys_file: Some(file), ..issuer() }];
    config.role = vec![bulla_server::RoleConfig { keys: None, ..role() }];
    let (all, [token, ..]) = two_tenants();
    let service = Service::start(all, config);
    let login =
        |jwt: &str| service.post(None, "/api/v1/login", &json!({ "role": "release", "jwt": jwt })).status;
    let jwt = key.jwt("1", &claims());
    assert_eq!((login(&jwt), login("a.b.c"), login(&jwt)), (201, 403, 201), "a forged JWT uses up nothing");
    assert_eq!(login(&jwt), 429);
    assert_eq!(service.get(Some(&token), "/v1/transit/keys/a").status, 429);
}

#[test]
fn slow_work_of_a_tenant_at_its_limit_waits_and_is_done() {
    let (all, [token, sibling, other]) = two_tenants();
    let one = QuotaConfig { max_slow_jobs: 1.try_into().ok(), ..quota("local") };
    let service = Service::start(all, with(&[one]));
    let create = |token: &Token, label: &str| -> Value {
        let path = format!("/v1/transit/keys/{label}");
        service.post(Some(token), &path, &json!({ "type": "rsa-2048" })).ok()["data"]["name"].clone()
    };
    std::thread::scope(|scope| {
        let tokens = [&token, &sibling, &token, &other];
        let threads: Vec<_> = (0..tokens.len())
            .map(|number| {
                scope.spawn({
                    let create = &create;
                    move || create(tokens[number], &format!("r{number}"))
                })
            })
            .collect();
        for (number, thread) in threads.into_iter().enumerate() {
            assert_eq!(thread.join().unwrap(), format!("r{number}"));
        }
    });
}
