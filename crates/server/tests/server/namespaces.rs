//! Namespaces of Vault's clients: each tenant has one, by a header or in the path.

use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, NewKey};
use bulla_server::{Config, IssuerConfig, RoleConfig};
use serde_json::{Value, json};

use crate::login::{SigningKey, claims, issuer, keys, role};
use crate::support::{Answer, Service, config, keystore, name, token};
use crate::vault_logins;

/// A service with a key `a` of two tenants, and a token of each.
fn two_tenants(config: Config) -> (Service, [Token; 2]) {
    let all = keystore(&["team-a", "team-b"]);
    let tokens = ["team-a", "team-b"].map(|tenant| {
        all.create_key(NewKey::new(name(tenant), name("transit"), Algorithm::Ed25519).label(name("a")))
            .unwrap();
        token(&all, tenant, GrantedKeys::All, TokenOperation::ALL)
    });
    (Service::start(all, config), tokens)
}

fn ask(service: &Service, token: Option<&Token>, namespace: &str, path: &str, body: &Value) -> Answer {
    let method = if body.is_null() { "GET" } else { "POST" };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    service.send_with(method, token, path, body.as_bytes(), &[("x-vault-namespace", namespace)])
}

#[test]
fn a_token_is_for_the_namespace_of_its_tenant() {
    let (service, [token, other]) = two_tenants(config());
    let read = |token: &Token, namespace: &str, path: &str| {
        let answer = ask(&service, Some(token), namespace, path, &Value::Null);
        (answer.status, answer.json()["data"]["keys"]["1"]["public_key"].clone())
    };
    let (status, public) = read(&token, "", "/v1/transit/keys/a");
    assert!(status == 200 && public.is_string());
    for (namespace, path) in [
        ("team-a", "/v1/transit/keys/a"),
        ("team-a/", "/v1/transit/keys/a"),
        ("/team-a", "/v1/transit/keys/a"),
        ("root", "/v1/transit/keys/a"),
        ("", "/v1/team-a/transit/keys/a"),
    ] {
        assert_eq!(read(&token, namespace, path), (200, public.clone()), "{namespace} {path}");
    }
    let (status, another) = read(&other, "team-b", "/v1/transit/keys/a");
    assert!(status == 200 && another != public);
    for (namespace, path) in [
        ("team-b", "/v1/transit/keys/a"),
        ("Team-A", "/v1/transit/keys/a"),
        ("team-a", "/v1/team-a/transit/keys/a"),
        ("team-b", "/v1/team-a/transit/keys/a"),
        ("team-a/team-a", "/v1/transit/keys/a"),
        ("", "/v1/team-b/transit/keys/a"),
        ("", "/v1/nowhere/transit/keys/a"),
        ("", "/v1/team%2da/transit/keys/a"),
    ] {
        assert_eq!(read(&token, namespace, path), (403, Value::Null), "{namespace} {path}");
    }
    // Vault's header and OpenBao's, which do not say the same.
    let both = [("x-vault-namespace", "team-a"), ("x-bao-namespace", "team-b")];
    assert_eq!(service.send_with("GET", Some(&token), "/v1/transit/keys/a", b"", &both).status, 403);
    let same = [("x-vault-namespace", "team-a"), ("x-bao-namespace", "team-a/")];
    assert_eq!(service.send_with("GET", Some(&token), "/v1/transit/keys/a", b"", &same).status, 200);
    // There are no namespaces in bulla's own API.
    assert_eq!(ask(&service, Some(&token), "team-b", "/api/v1/keys", &Value::Null).status, 200);
    for path in ["/v1/team-a", "/v1/team-a/", "/v1/team-a/nothing", "/v1/a/team-a/transit/keys/a"] {
        assert_eq!(service.get(Some(&token), path).status, 404, "{path}");
    }
}

#[test]
fn paths_in_a_namespace_are_those_within_it() {
    let (service, [token, _]) = two_tenants(config());
    let post = |path: &str, body: &Value| service.post(Some(&token), path, body).ok();
    let own = service.get(Some(&token), "/v1/team-a/auth/token/lookup-self").ok()["data"].clone();
    assert_eq!(own["namespace_path"], "team-a/");
    let mount = service.get(Some(&token), "/v1/team-a/sys/internal/ui/mounts/transit").ok();
    assert_eq!(mount["data"]["path"], "transit/");
    let paths = json!({ "paths": ["transit/sign/a", "team-a/transit/sign/a"] });
    let may = post("/v1/team-a/sys/capabilities-self", &paths)["data"].clone();
    assert_eq!(
        (&may["transit/sign/a"], &may["team-a/transit/sign/a"]),
        (&json!(["update"]), &json!(["deny"]))
    );
    let list = service.send("LIST", Some(&token), "/v1/team-a/transit/keys", &[]).ok();
    assert_eq!(list["data"]["keys"], json!(["a"]));
    post("/v1/team-a/transit/sign/a", &json!({ "input": "" }));
    let made = post("/v1/team-a/auth/token/create", &json!({ "ttl": "1m" }))["auth"]["client_token"].clone();
    let child: Token = made.as_str().unwrap().parse().unwrap();
    assert_eq!(service.get(Some(&child), "/v1/team-b/transit/keys/a").status, 403);
    assert_eq!(service.get(Some(&child), "/v1/team-a/transit/keys/a").status, 200);
    // A wrapped answer says where it comes from within the namespace, and is taken from anywhere.
    let headers = [("x-vault-wrap-ttl", "60")];
    let wrapped = service.send_with("GET", Some(&token), "/v1/team-a/transit/keys/a", b"", &headers).ok();
    assert_eq!(wrapped["wrap_info"]["creation_path"], "transit/keys/a");
    let body = json!({ "token": wrapped["wrap_info"]["token"] });
    let taken = service.post(None, "/v1/team-b/sys/wrapping/unwrap", &body).ok();
    assert_eq!(taken["data"]["name"], "a");
}

#[test]
fn what_concerns_the_whole_service_is_in_no_namespace() {
    let (service, [token, _]) = two_tenants(config());
    for (method, path) in
        [("GET", "sys/health"), ("GET", "sys/init"), ("PUT", "sys/seal"), ("PUT", "sys/unseal")]
    {
        let answer = service.send(method, Some(&token), &format!("/v1/team-a/{path}"), b"{}");
        let words = json!(["operation unavailable in namespaces"]);
        assert_eq!((answer.status, &answer.json()["errors"]), (400, &words), "{path}");
    }
    // `bao status` asks these with the namespace of its settings.
    for path in ["sys/seal-status", "sys/leader"] {
        assert_eq!(ask(&service, None, "team-a", &format!("/v1/{path}"), &Value::Null).status, 200);
    }
}

#[test]
fn tenants_have_roles_of_one_name_and_a_login_names_the_tenant() {
    let (key, folder) = (SigningKey::p256(), tempfile::tempdir().unwrap());
    let file = folder.path().join("keys.json");
    std::fs::write(&file, keys(&[key.jwk("1")]).to_string()).unwrap();
    let mut config = config();
    config.issuer = vec![IssuerConfig { keys_file: Some(file), ..issuer() }];
    let of = |tenant: &str| RoleConfig { tenant: name(tenant), keys: None, ..role() };
    config.role = vec![of("team-a"), of("team-b"), RoleConfig { name: name("only"), ..of("team-b") }];
    let (service, _) = two_tenants(config);
    let jwt = key.jwt("1", &claims());
    let tenant_of = |token: &Value| {
        let token: Token = token.as_str().unwrap().parse().unwrap();
        service.get(Some(&token), "/v1/auth/token/lookup-self").ok()["data"]["namespace_path"].clone()
    };
    let log_in = |namespace: &str, path: &str, role: &str| {
        ask(&service, None, namespace, path, &json!({ "role": role, "jwt": jwt }))
    };
    for tenant in ["team-a", "team-b"] {
        let expected = format!("{tenant}/");
        let by_header = log_in(tenant, "/v1/auth/jwt/login", "release").ok();
        let by_path = log_in("", &format!("/v1/{tenant}/auth/kubernetes/login"), "release").ok();
        for made in [by_header, by_path] {
            assert_eq!(tenant_of(&made["auth"]["client_token"]), expected);
        }
        let own = log_in("", "/api/v1/login", &format!("{tenant}/release")).ok();
        assert_eq!(tenant_of(&own["token"]), expected);
    }
    assert_eq!(tenant_of(&log_in("", "/api/v1/login", "only").ok()["token"]), "team-b/");
    // A role of another tenant, one of two tenants, and one that is nowhere.
    let refused = [
        log_in("team-a", "/v1/auth/jwt/login", "only"),
        log_in("", "/v1/auth/jwt/login", "release"),
        log_in("nowhere", "/v1/auth/jwt/login", "release"),
        log_in("team-a/team-b", "/v1/auth/jwt/login", "release"),
        log_in("team-a", "/v1/auth/jwt/login", "nobody"),
    ];
    assert!(refused.iter().all(|one| one.status == 400 && one.body == refused[0].body), "{refused:?}");
    for role in ["nowhere/release", "team-a/only", "/release", "team-a/", "release", "a/team-a/release"] {
        assert_eq!(log_in("", "/api/v1/login", role).error().0, 403, "{role}");
    }
}

#[test]
fn a_role_id_is_known_in_the_namespace_of_its_role_alone() {
    let mut config = config();
    let of = |tenant: &str, id: &str| bulla_server::AppRoleConfig {
        tenant: name(tenant),
        role_id: Some(id.to_owned()),
        keys: None,
        bind_secret_id: false,
        secret_id_bound_cidrs: vec!["127.0.0.0/8".parse().unwrap()],
        ..vault_logins::role("build")
    };
    config.approle = vec![of("team-a", "id-a"), of("team-b", "id-b")];
    let (service, _) = two_tenants(config);
    let log_in = |namespace: &str, id: &str| {
        ask(&service, None, namespace, "/v1/auth/approle/login", &json!({ "role_id": id }))
    };
    for (namespace, id) in [("team-a", "id-a"), ("team-b", "id-b"), ("", "id-a"), ("", "id-b")] {
        log_in(namespace, id).ok();
    }
    let answers = [log_in("team-b", "id-a"), log_in("nowhere", "id-a"), log_in("team-a", "id-c")];
    for answer in answers {
        assert_eq!(answer.json()["errors"], json!(["invalid role or secret ID"]));
    }
}
