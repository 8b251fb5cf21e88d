//! Mounts of the transit engine beside `transit/`: their keys are apart, and only their tenant
//! reaches them.

use bulla_kms::token::{GrantedKeys, Token, TokenLimits, TokenOperation};
use bulla_kms::{Algorithm, Code, NewKey};
use bulla_server::{AppRoleConfig, Config, MountConfig, PolicyConfig, QuotaConfig};
use serde_json::{Value, json};

use crate::support::{Answer, Service, config, keystore, name, token};
use crate::vault_logins;

fn mount(tenant: &str, path: &str, keys_tenant: &str) -> MountConfig {
    MountConfig { tenant: name(tenant), path: name(path), keys_tenant: name(keys_tenant) }
}

fn with_mounts() -> Config {
    let mut config = config();
    config.mount = vec![mount("team-a", "pay", "team-a-pay"), mount("team-b", "bills", "team-b-bills")];
    config
}

/// A service whose tenants have mounts, and tokens of these tenants.
fn start(config: Config) -> (Service, [Token; 3]) {
    let all = keystore(&["team-a", "team-b", "team-a-pay"]);
    let tokens = ["team-a", "team-b", "team-a-pay"];
    let tokens = tokens.map(|tenant| token(&all, tenant, GrantedKeys::All, TokenOperation::ALL));
    (Service::start(all, config), tokens)
}

fn create(service: &Service, token: &Token, path: &str) -> Answer {
    service.post(Some(token), &format!("/v1/{path}"), &json!({ "type": "ed25519" }))
}

fn public(service: &Service, token: &Token, path: &str) -> Value {
    service.get(Some(token), &format!("/v1/{path}")).ok()["data"]["keys"]["1"]["public_key"].clone()
}

#[test]
fn mounts_have_keys_of_one_name_that_are_apart() {
    let (service, [token, _, of_keys]) = start(with_mounts());
    create(&service, &token, "transit/keys/a").ok();
    create(&service, &token, "pay/keys/a").ok();
    create(&service, &token, "team-a/pay/keys/b").ok();
    let (own, at_mount) =
        (public(&service, &token, "transit/keys/a"), public(&service, &token, "pay/keys/a"));
    assert!(own != at_mount && at_mount == public(&service, &token, "team-a/pay/keys/a"));
    // The keys are those of their own tenant, whose tokens have them at `transit/`.
    assert_eq!(public(&service, &of_keys, "transit/keys/a"), at_mount);
    let list = |path: &str| service.send("LIST", Some(&token), path, b"").ok()["data"]["keys"].clone();
    assert_eq!((list("/v1/transit/keys"), list("/v1/pay/keys")), (json!(["a"]), json!(["a", "b"])));
    let post = |path: &str, body: &Value| service.post(Some(&token), path, body);
    let signed = post("/v1/pay/sign/a", &json!({ "input": "aGk=" })).ok()["data"]["signature"].clone();
    let body = json!({ "input": "aGk=", "signature": signed });
    let valid = |path: &str| post(path, &body).ok()["data"]["valid"].clone();
    assert_eq!((valid("/v1/pay/verify/a"), valid("/v1/transit/verify/a")), (json!(true), json!(false)));
    let headers = [("x-vault-wrap-ttl", "60")];
    let wrapped = service.send_with("GET", Some(&token), "/v1/pay/keys/a", b"", &headers).ok();
    assert_eq!(wrapped["wrap_info"]["creation_path"], "pay/keys/a");
    assert_eq!(post("/v1/pay/random/8", &json!({})).status, 200);
}

#[test]
fn a_mount_is_its_tenants_and_every_other_is_answered_alike() {
    let (service, [token, other, _]) = start(with_mounts());
    create(&service, &token, "pay/keys/a").ok();
    let ask = |token: &Token, path: &str| {
        let answer = service.get(Some(token), path);
        (answer.status, answer.json()["errors"].clone())
    };
    let denied = (403, json!(["permission denied"]));
    for path in ["/v1/pay/keys/a", "/v1/nowhere/keys/a", "/v1/team-a/pay/keys/a", "/v1/team-b/pay/keys/a"] {
        assert_eq!(ask(&other, path), denied, "{path}");
    }
    for path in ["/v1/bills/keys/a", "/v1/team-a/bills/keys/a", "/v1/p%61y/keys/a", "/v1/Pay/keys/a"] {
        assert_eq!(ask(&token, path), denied, "{path}");
    }
    assert_eq!(service.get(None, "/v1/pay/keys/a").status, 403);
    let mounts = |token: &Token| {
        let mounts = service.get(Some(token), "/v1/sys/mounts").ok()["data"].clone();
        mounts.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        (mounts(&token), mounts(&other)),
        (vec!["pay/".to_owned(), "transit/".to_owned()], vec!["bills/".to_owned(), "transit/".to_owned()],)
    );
    let engine = |token: &Token| service.get(Some(token), "/v1/sys/internal/ui/mounts/pay/keys/a");
    assert_eq!((engine(&token).ok()["data"]["path"].clone(), engine(&other).status), (json!("pay/"), 403));
    let may = |token: &Token| {
        let body = json!({ "paths": ["pay/sign/a"] });
        service.post(Some(token), "/v1/sys/capabilities-self", &body).ok()["data"]["pay/sign/a"].clone()
    };
    assert_eq!((may(&token), may(&other)), (json!(["update"]), json!(["deny"])));
}

#[test]
fn keys_are_exported_at_a_mount() {
    // No token was ever made for the tenant of this mount's keys.
    let (service, [token, other, _]) = start(with_mounts());
    for (token, mount) in [(&token, "pay"), (&other, "bills")] {
        let key = json!({ "type": "ed25519", "exportable": true });
        service.post(Some(token), &format!("/v1/{mount}/keys/a"), &key).ok();
        service.post(Some(token), &format!("/v1/{mount}/keys/to"), &json!({ "type": "rsa-2048" })).ok();
        for path in ["export/signing-key/a", "byok-export/to/a"] {
            let keys = service.get(Some(token), &format!("/v1/{mount}/{path}")).ok()["data"]["keys"].clone();
            assert!(keys["1"].is_string(), "{mount}/{path}: {keys}");
        }
    }
    assert_eq!(service.get(Some(&other), "/v1/pay/export/signing-key/a").status, 403);
    let reader = other.attenuate(&TokenLimits::default().operations(vec![TokenOperation::Read])).unwrap();
    assert_eq!(service.get(Some(&reader), "/v1/bills/export/signing-key/a").status, 403);
}

#[test]
fn a_token_for_some_keys_reaches_none_at_a_mount() {
    let all = keystore(&["team-a"]);
    let key = NewKey::new(name("team-a"), name("transit"), Algorithm::Ed25519).label(name("a"));
    let key = all.create_key(key).unwrap().key_id().clone();
    let other = NewKey::new(name("team-a-pay"), name("transit"), Algorithm::Ed25519).label(name("a"));
    all.create_key(other).unwrap();
    let token = token(&all, "team-a", GrantedKeys::These(vec![key]), TokenOperation::ALL);
    let service = Service::start(all, with_mounts());
    let sign = |path: &str| service.post(Some(&token), path, &json!({ "input": "" })).status;
    assert_eq!((sign("/v1/transit/sign/a"), sign("/v1/pay/sign/a")), (200, 403));
}

/// Settings with a policy of the tenant `team-a`, and a role that has it.
fn with_policy(text: &str) -> (Config, tempfile::TempDir) {
    let (mut config, folder) = (with_mounts(), tempfile::tempdir().unwrap());
    let file = folder.path().join("p.hcl");
    std::fs::write(&file, text).unwrap();
    config.policy = vec![PolicyConfig { name: name("p"), tenant: name("team-a"), file }];
    config.approle = vec![AppRoleConfig {
        tenant: name("team-a"),
        role_id: Some("id".to_owned()),
        bind_secret_id: false,
        secret_id_bound_cidrs: vec!["127.0.0.0/8".parse().unwrap()],
        operations: Vec::new(),
        policies: vec![name("p")],
        keys: None,
        ..vault_logins::role("build")
    }];
    (config, folder)
}

#[test]
fn policies_are_about_the_path_of_the_mount() {
    let text = "path \"pay/sign/a\" {\n  capabilities = [\"update\"]\n}\n";
    let (config, _folder) = with_policy(text);
    let (service, [all, ..]) = start(config);
    for path in ["transit/keys/a", "pay/keys/a", "pay/keys/b"] {
        create(&service, &all, path).ok();
    }
    let login = service.post(None, "/v1/auth/approle/login", &json!({ "role_id": "id" })).ok();
    let token: Token = login["auth"]["client_token"].as_str().unwrap().parse().unwrap();
    let sign = |path: &str| service.post(Some(&token), path, &json!({ "input": "" })).status;
    for (path, status) in [
        ("/v1/pay/sign/a", 200),
        ("/v1/team-a/pay/sign/a", 200),
        ("/v1/pay/sign/b", 403),
        ("/v1/transit/sign/a", 403),
        ("/v1/bills/sign/a", 403),
    ] {
        assert_eq!(sign(path), status, "{path}");
    }
    let wrong = "path \"nowhere/sign/a\" {\n  capabilities = [\"update\"]\n}\n";
    let (config, _folder) = with_policy(wrong);
    let refused = service.handle.reload(config).unwrap_err();
    assert_eq!(refused.code, Code::InvalidArgument);
    assert!(refused.message.ends_with("p.hcl:1: the tenant team-a has no mount nowhere"), "{refused}");
    assert_eq!(sign("/v1/pay/sign/a"), 200, "a wrong reload changes nothing");
}

#[test]
fn a_mount_counts_for_its_tenants_quota_and_goes_with_a_reload() {
    let mut config = with_mounts();
    let quota = QuotaConfig {
        tenant: Some(name("team-a")),
        request_rate: None,
        byte_rate: None,
        max_slow_jobs: None,
        max_keys: Some(1),
    };
    config.quota = vec![quota];
    let (service, [token, ..]) = start(config.clone());
    create(&service, &token, "transit/keys/a").ok();
    create(&service, &token, "pay/keys/a").ok();
    assert_eq!(create(&service, &token, "pay/keys/b").error().1, "quota_exceeded");
    config.mount.clear();
    service.handle.reload(config).unwrap();
    assert_eq!(service.get(Some(&token), "/v1/pay/keys/a").status, 403);
}
