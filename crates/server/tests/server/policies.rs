//! Tokens whose rights are policies: what they reach, and that nothing gives them more.

use std::path::Path;

use bulla_kms::token::{GrantedKeys, Token, TokenLimits, TokenOperation};
use bulla_kms::{Algorithm, Keystore, NewKey};
use bulla_server::{AppRoleConfig, CallerConfig, Config, ListenConfig, PolicyConfig};
use serde_json::{Value, json};

use crate::support::unix::{UnixClient, me};
use crate::support::{Answer, Service, config, keystore, name, token};
use crate::vault_logins::{log_in, role, role_id, secret_id};

/// Settings with these policies of the tenant `local`, and a folder with their files.
fn with_policies(policies: &[(&str, &str)]) -> (Config, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config();
    config.service.development = true;
    for (label, text) in policies {
        config.policy.push(policy(folder.path(), "local", label, text));
    }
    (config, folder)
}

fn policy(folder: &Path, tenant: &str, label: &str, text: &str) -> PolicyConfig {
    let file = folder.join(format!("{tenant}-{label}.hcl"));
    std::fs::write(&file, text).unwrap();
    PolicyConfig { name: name(label), tenant: name(tenant), file }
}

fn rule(path: &str, more: &str) -> String {
    format!("path \"{path}\" {{\n  {more}\n}}\n")
}

const UPDATE: &str = "capabilities = [\"update\"]";
const DENY: &str = "capabilities = [\"deny\"]";

/// A keystore of the tenants `local` and `other`, each with these keys.
fn keys(labels: &[&str]) -> Keystore {
    let keystore = keystore(&["local", "other"]);
    for tenant in ["local", "other"] {
        for label in labels {
            let key = NewKey::new(name(tenant), name("transit"), Algorithm::Ed25519).label(name(label));
            keystore.create_key(key).unwrap();
        }
    }
    keystore
}

/// A token of these policies, as a caller who may mint makes it.
fn minted(service: &Service, policies: &[&str]) -> Token {
    created(service, None, &json!({ "policies": policies })).ok()["auth"]["client_token"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

fn created(service: &Service, parent: Option<&Token>, body: &Value) -> Answer {
    service.post(parent, "/v1/auth/token/create", body)
}

fn child(service: &Service, parent: &Token, body: &Value) -> Token {
    created(service, Some(parent), body).ok()["auth"]["client_token"].as_str().unwrap().parse().unwrap()
}

fn sign(service: &Service, token: &Token, path: &str) -> u16 {
    service.post(Some(token), &format!("/v1/transit/sign/{path}"), &json!({ "input": "" })).status
}

#[test]
fn a_role_with_policies_gives_a_token_for_their_paths_and_no_others() {
    let text = rule("transit/sign/*", UPDATE)
        + &rule("transit/sign/secret", DENY)
        + &rule("transit/keys/a", "capabilities = [\"read\"]");
    let (mut config, _folder) = with_policies(&[("release", &text)]);
    let of_role = AppRoleConfig {
        operations: Vec::new(),
        policies: vec![name("release")],
        keys: None,
        ..role("build")
    };
    config.approle = vec![of_role];
    let service = Service::start(keys(&["a", "secret"]), config);
    let id = role_id(&service, "build");
    let (secret, _) = secret_id(&service, "build", &json!({}));
    let auth = log_in(&service, &id, &secret).ok()["auth"].clone();
    assert_eq!(auth["policies"], json!(["default", "release"]));
    let token: Token = auth["client_token"].as_str().unwrap().parse().unwrap();
    let own = service.get(Some(&token), "/v1/auth/token/lookup-self").ok()["data"].clone();
    assert_eq!(own["policies"], json!(["default", "release"]));
    // A denial counts however the path is written.
    for (path, expected) in [
        ("a", 200),
        ("secret", 403),
        ("%73ecret", 403),
        ("secre%74", 403),
        ("a%2fsecret", 403),
        ("a%2F..%2Fsecret", 403),
        ("SECRET", 400),
        ("secret/", 404),
        ("nobody", 400),
    ] {
        assert_eq!(sign(&service, &token, path), expected, "{path}");
    }
    for (method, path) in [
        ("POST", "/v1/transit/verify/a"),
        ("DELETE", "/v1/transit/keys/a"),
        ("GET", "/v1/transit/keys/secret"),
        ("HEAD", "/v1/transit/keys/a"),
        ("LIST", "/v1/transit/keys"),
        ("POST", "/v1/auth/token/create"),
        ("GET", "/v1/sys/policies/acl/release"),
        ("POST", "/v1/transit/nothing"),
    ] {
        let answer = service.send(method, Some(&token), path, b"{}");
        assert!([403, 404].contains(&answer.status), "{method} {path}: {}", answer.text());
    }
    service.get(Some(&token), "/v1/transit/keys/a").ok();
    // They say nothing about bulla's own API.
    let answer = service.get(Some(&token), "/api/v1/keys");
    assert!(answer.status == 403 && answer.text().contains("policies"), "{}", answer.text());
}

#[test]
fn a_child_has_some_policies_of_its_parent_and_never_more_rights() {
    let (config, _folder) = with_policies(&[
        ("all", &(rule("transit/*", UPDATE) + &rule("auth/token/create", UPDATE))),
        ("not-b", &rule("transit/sign/b", DENY)),
        ("b", &rule("transit/sign/b", UPDATE)),
    ]);
    let service = Service::start(keys(&["a", "b"]), config);
    let parent = minted(&service, &["all", "not-b"]);
    assert_eq!((sign(&service, &parent, "a"), sign(&service, &parent, "b")), (200, 403));
    for policies in
        [json!(["b"]), json!(["all", "b"]), json!(["root"]), json!(["nobody"]), json!("all,decrypt")]
    {
        let answer = created(&service, Some(&parent), &json!({ "policies": policies }));
        assert_eq!(answer.status, 400, "{policies}: {}", answer.text());
    }
    // Without the policy that denies, the parent's denial still counts.
    let weaker = child(&service, &parent, &json!({ "policies": ["all"] }));
    assert_eq!((sign(&service, &weaker, "a"), sign(&service, &weaker, "b")), (200, 403));
    let weakest = child(&service, &weaker, &json!({ "policies": "default" }));
    assert_eq!(sign(&service, &weakest, "a"), 403);
    service.get(Some(&weakest), "/v1/auth/token/lookup-self").ok();
    // The holder can restrict a token without the service, and cannot widen it.
    let wider = parent.attenuate(&TokenLimits::default().policies(vec![name("b")])).unwrap();
    assert_eq!((sign(&service, &wider, "a"), sign(&service, &wider, "b")), (403, 403));
    // A token with operations alone may give its child policies.
    let plain = child(&service, &minted(&service, &["sign", "verify"]), &json!({ "policies": ["b"] }));
    assert_eq!((sign(&service, &plain, "a"), sign(&service, &plain, "b")), (403, 200));
    let capabilities = json!({ "token": weaker.expose(), "paths": ["transit/sign/a", "transit/sign/b"] });
    let found = service.post(None, "/v1/sys/capabilities", &capabilities).ok()["data"].clone();
    assert_eq!((&found["transit/sign/a"], &found["transit/sign/b"]), (&json!(["update"]), &json!(["deny"])));
}

#[test]
fn a_child_without_policies_has_no_rights_and_not_those_of_its_parent() {
    let text = rule("transit/*", UPDATE) + &rule("auth/token/create", UPDATE);
    let (config, _folder) = with_policies(&[("all", &text)]);
    let service = Service::start(keys(&["a"]), config);
    let parent = minted(&service, &["all"]);
    // OpenBao makes a token that permits nothing.
    let nothing = json!({ "policies": ["default"], "no_default_policy": true });
    let refused = created(&service, Some(&parent), &nothing);
    assert_eq!(refused.status, 400, "{}", refused.text());
    let plain = child(&service, &parent, &json!({ "no_default_policy": true }));
    let own = service.get(Some(&parent), "/v1/auth/token/lookup-self").ok()["data"]["policies"].clone();
    assert_eq!((own, sign(&service, &plain, "a")), (json!(["default", "all"]), 200));
    // Nothing permits the look-up any more.
    assert_eq!(service.get(Some(&plain), "/v1/auth/token/lookup-self").status, 403);
    let twice = created(&service, Some(&parent), &json!({ "policies": ["all", "all", "default"] })).ok();
    assert_eq!(twice["auth"]["policies"], json!(["default", "all"]));
    let default = child(&service, &parent, &json!({ "policies": ["default"] }));
    assert_eq!(created(&service, Some(&default), &json!({ "no_default_policy": true })).status, 403);
}

#[test]
fn a_policy_that_a_token_names_a_thousand_times_counts_once() {
    let (config, _folder) = with_policies(&[("all", &rule("transit/*", UPDATE))]);
    let service = Service::start(keys(&["a"]), config);
    let parent = minted(&service, &["all"]);
    let names = ["default", "all"].repeat(500).into_iter().map(name).collect::<Vec<_>>();
    let token = parent.attenuate(&TokenLimits::default().policies(names)).unwrap();
    assert_eq!(sign(&service, &token, "a"), 200);
    let own = service.get(Some(&token), "/v1/auth/token/lookup-self").ok()["data"]["policies"].clone();
    assert_eq!(own, json!(["default", "all"]));
}

#[test]
fn policies_bind_parameters_new_keys_and_the_time_of_wrapped_answers() {
    let typed = "capabilities = [\"update\"]\n  allowed_parameters = {\n    \"type\" = [\"ed25519\", \"ecdsa-*\"]\n  }\n  required_parameters = [\"type\"]";
    let no_context = "capabilities = [\"update\"]\n  denied_parameters = {\n    \"context\" = []\n  }";
    let wrapped = "capabilities = [\"update\"]\n  min_wrapping_ttl = \"30s\"\n  max_wrapping_ttl = \"1m\"";
    let text = rule("transit/keys/+", typed)
        + &rule("transit/keys/+/rotate", no_context)
        + &rule("transit/sign/+", no_context)
        + &rule("transit/encrypt/new-*", "capabilities = [\"create\"]")
        + &rule("transit/encrypt/old-*", UPDATE)
        + &rule("transit/random", wrapped);
    let (config, _folder) = with_policies(&[("bound", &text)]);
    let service = Service::start(keys(&["a"]), config);
    service.post(None, "/v1/transit/keys/old-1", &json!({})).ok();
    let token = minted(&service, &["bound"]);
    let status =
        |path: &str, body: &Value| service.post(Some(&token), &format!("/v1/transit/{path}"), body).status;
    for (path, body, expected) in [
        ("keys/b", json!({}), 403),
        ("keys/b", json!({ "type": "aes256-gcm96" }), 403),
        ("keys/b", json!({ "Type": "ed25519" }), 403),
        ("keys/b", json!({ "type": "ed25519", "exportable": true }), 403),
        ("keys/b", json!({ "type": ["ed25519"] }), 403),
        ("keys/b", json!({ "type": "ed25519" }), 200),
        ("keys/c", json!({ "type": "ecdsa-p256" }), 200),
        ("sign/a", json!({ "input": "", "context": "" }), 403),
        ("sign/a", json!({ "input": "", "CONTEXT": "" }), 403),
        ("sign/a", json!({ "input": "" }), 200),
        // Nobody reads this body.
        ("keys/a/rotate", json!({ "context": "" }), 403),
        // Making a key is another capability than using one.
        ("encrypt/new-1", json!({ "plaintext": "" }), 200),
        ("encrypt/new-1", json!({ "plaintext": "" }), 403),
        ("encrypt/old-1", json!({ "plaintext": "" }), 200),
        ("encrypt/old-2", json!({ "plaintext": "" }), 403),
        ("random", json!({}), 403),
    ] {
        assert_eq!(status(path, &body), expected, "{path} {body}");
    }
    service.send("POST", Some(&token), "/v1/transit/keys/a/rotate", b"").ok();
    for (time, expected) in [("29", 403), ("30s", 200), ("60", 200), ("61", 403), ("0", 403)] {
        let answer = service.send_with(
            "POST",
            Some(&token),
            "/v1/transit/random",
            b"{}",
            &[("x-vault-wrap-ttl", time)],
        );
        assert_eq!(answer.status, expected, "{time}: {}", answer.text());
    }
}

#[test]
fn what_is_denied_is_denied_in_every_form_that_a_handler_reads() {
    let keys = "capabilities = [\"update\"]\n  denied_parameters = {\n    \"exportable\" = [true]\n    \"key_size\" = [\"64\"]\n    \"auto_rotate_period\" = [\"24h\"]\n  }";
    let tokens = "capabilities = [\"update\"]\n  denied_parameters = {\n    \"policies\" = [\"bound\"]\n  }";
    let text = rule("transit/keys/+", keys) + &rule("auth/token/create", tokens);
    let (config, _folder) = with_policies(&[("bound", &text)]);
    let service = Service::start(keystore(&["local"]), config);
    let token = minted(&service, &["bound"]);
    let made = |body: Value| service.post(Some(&token), "/v1/transit/keys/a", &body).status;
    for value in [json!(true), json!("true"), json!("True"), json!("T"), json!("1"), json!(1)] {
        assert_eq!(made(json!({ "type": "ed25519", "exportable": value })), 403, "{value}");
    }
    for value in [json!("64"), json!(64), json!("064"), json!("+64")] {
        assert_eq!(made(json!({ "type": "ed25519", "key_size": value })), 403, "{value}");
    }
    for value in [json!("24h"), json!("86400"), json!(86_400), json!("23h60m")] {
        assert_eq!(made(json!({ "type": "ed25519", "auto_rotate_period": value })), 403, "{value}");
    }
    for value in [json!(false), json!("false"), json!(0), json!(""), json!(null)] {
        assert_eq!(made(json!({ "type": "ed25519", "exportable": value, "key_size": 32 })), 200, "{value}");
    }
    let child = |policies: Value| created(&service, Some(&token), &json!({ "policies": policies })).status;
    for policies in [json!("bound"), json!(["default", "bound"]), json!("default, bound")] {
        assert_eq!(child(policies.clone()), 403, "{policies}");
    }
    assert_eq!(child(json!(["default"])), 200);
}

#[test]
fn a_policy_about_exports_permits_them() {
    let read = "capabilities = [\"read\"]";
    let text = rule("transit/export/+/a", read) + &rule("transit/byok-export/to/a", read);
    let (config, _folder) = with_policies(&[("out", &text)]);
    let service = Service::start(keystore(&["local"]), config);
    for label in ["a", "b"] {
        let key = json!({ "type": "ed25519", "exportable": true });
        service.post(None, &format!("/v1/transit/keys/{label}"), &key).ok();
    }
    service.post(None, "/v1/transit/keys/to", &json!({ "type": "rsa-2048" })).ok();
    let token = minted(&service, &["out"]);
    for (path, status) in [
        ("export/signing-key/a", 200),
        ("export/hmac-key/a", 200),
        ("export/public-key/a", 200),
        ("export/signing-key/b", 403),
        ("export/signing-key/a/1", 403),
        ("byok-export/to/a", 200),
        ("byok-export/to/b", 403),
    ] {
        let answer = service.get(Some(&token), &format!("/v1/transit/{path}"));
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
}

#[test]
fn lists_are_found_with_a_slash_at_their_end() {
    let (mut config, _folder) = with_policies(&[("one", &rule("transit/sign/a", UPDATE))]);
    config.approle = vec![AppRoleConfig { keys: None, ..role("build") }];
    let service = Service::start(keys(&["a"]), config);
    let (_, accessor) = secret_id(&service, "build", &json!({}));
    for (path, names) in [
        ("sys/policies/acl", json!(["default", "one"])),
        ("sys/policy", json!(["default", "one"])),
        ("auth/approle/role/build/secret-id", json!([accessor])),
        ("transit/keys", json!(["a"])),
    ] {
        for (method, query) in [("LIST", ""), ("LIST", "/"), ("GET", "?list=true"), ("GET", "/?list=true")] {
            let answer = service.send(method, None, &format!("/v1/{path}{query}"), b"");
            assert_eq!(answer.ok()["data"]["keys"], names, "{method} {path}{query}");
        }
    }
}

#[test]
fn a_policy_is_one_of_its_tenant_and_a_reload_changes_it_at_once() {
    let (mut config, folder) =
        with_policies(&[("one", &rule("transit/sign/a", UPDATE)), ("two", &rule("transit/sign/b", UPDATE))]);
    config.policy.push(policy(folder.path(), "other", "theirs", &rule("transit/sign/b", UPDATE)));
    let keystore = keys(&["a", "b"]);
    let other = token(&keystore, "other", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(keystore, config.clone());
    let names = |token: Option<&Token>| {
        service.send("LIST", token, "/v1/sys/policies/acl", b"").ok()["data"]["keys"].clone()
    };
    assert_eq!(
        (names(None), names(Some(&other))),
        (json!(["default", "one", "two"]), json!(["default", "theirs"]))
    );
    let (theirs, nobodys) = ("/v1/sys/policies/acl/theirs", "/v1/sys/policies/acl/nobodys");
    let [theirs, nobodys] = [theirs, nobodys].map(|path| service.get(None, path));
    assert_eq!((theirs.status, theirs.text()), (404, nobodys.text()));
    assert_eq!(created(&service, None, &json!({ "policies": ["theirs"] })).status, 400);
    let read = service.get(None, "/v1/sys/policy/one").ok()["data"].clone();
    assert_eq!(read["rules"], json!(rule("transit/sign/a", UPDATE)));
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(service.send(method, None, "/v1/sys/policies/acl/one", b"{}").status, 405, "{method}");
    }
    let token = minted(&service, &["one", "two"]);
    assert_eq!((sign(&service, &token, "a"), sign(&service, &token, "b")), (200, 200));
    std::fs::write(&config.policy[0].file, rule("transit/sign/a", DENY)).unwrap();
    service.handle.reload(config.clone()).unwrap();
    assert_eq!((sign(&service, &token, "a"), sign(&service, &token, "b")), (403, 200));
    // A wrong policy changes nothing.
    std::fs::write(&config.policy[0].file, rule("secret/a", UPDATE)).unwrap();
    let error = service.handle.reload(config.clone()).unwrap_err();
    assert!(error.message.contains(":1: bulla has nothing at \"secret/a\""), "{}", error.message);
    assert_eq!((sign(&service, &token, "a"), sign(&service, &token, "b")), (403, 200));
    // A policy that was removed may have denied something.
    config.policy.remove(0);
    service.handle.reload(config).unwrap();
    assert_eq!((sign(&service, &token, "a"), sign(&service, &token, "b")), (403, 403));
}

#[test]
fn who_may_mint_little_makes_no_secret_ids_of_a_role_whose_policies_reach_more() {
    let (mut config, folder) = with_policies(&[
        ("less", &rule("transit/sign/*", UPDATE)),
        ("more", &(rule("transit/sign/*", UPDATE) + &rule("transit/decrypt/*", UPDATE))),
    ]);
    config.service.development = false;
    let of = |label: &str| AppRoleConfig {
        operations: Vec::new(),
        policies: vec![name(label)],
        keys: None,
        ..role(label)
    };
    config.approle = vec![of("less"), of("more")];
    let socket = folder.path().join("socket");
    config.listen.push(ListenConfig { unix: Some(socket.clone()), ..ListenConfig::default() });
    config.caller =
        vec![CallerConfig { can_mint_tokens: true, ..me("local", Some(&[TokenOperation::Sign])) }];
    let _service = Service::start(keystore(&["local"]), config);
    let mut minter = UnixClient::connect(&socket);
    let mut made = |role: &str| minter.post(&format!("/v1/auth/approle/role/{role}/secret-id"), "{}").0;
    assert_eq!((made("less"), made("more")), (200, 403));
    let mut read = |role: &str| minter.get(&format!("/v1/auth/approle/role/{role}/role-id"));
    assert_eq!((read("less"), read("more")), (200, 403));
}

#[test]
fn settings_name_policies_that_are_there_and_permit_something() {
    let (config, folder) =
        with_policies(&[("one", &rule("transit/sign/a", UPDATE)), ("none", &rule("transit/sign/a", DENY))]);
    let with = |policies: &[&str], operations: Vec<TokenOperation>| {
        let policies = policies.iter().map(|policy| name(policy)).collect();
        let mut config = config.clone();
        config.approle = vec![AppRoleConfig { operations, policies, keys: None, ..role("build") }];
        bulla_server::Server::check(&config).map_err(|error| error.message)
    };
    assert_eq!(with(&["one"], Vec::new()), Ok(()));
    assert!(with(&["nobody"], Vec::new()).unwrap_err().contains("no policy nobody"));
    assert!(with(&["none"], Vec::new()).unwrap_err().contains("permit nothing"));
    assert!(with(&["one"], vec![TokenOperation::Sign]).unwrap_err().contains("not of both"));
    assert!(with(&[], Vec::new()).unwrap_err().contains("`operations`, or of `policies`"));
    for (label, twice) in [("sign", false), ("root", false), ("one", true)] {
        let mut config = config.clone();
        config.policy.push(policy(folder.path(), "local", label, &rule("transit/sign/a", UPDATE)));
        let error = bulla_server::Server::check(&config).unwrap_err().message;
        assert!(error.contains(if twice { "twice" } else { "no names of policies" }), "{error}");
    }
}
