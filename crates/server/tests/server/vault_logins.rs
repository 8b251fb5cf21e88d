//! Logins by AppRole and by certificate, as clients of Vault make them, and who does not get in.

use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, NewKey};
use bulla_server::{AppRoleConfig, CertificateRoleConfig, Config};
use serde_json::{Value, json};

use crate::support::tls::{Authority, Client, Files, Until};
use crate::support::{Answer, Service, config, keystore, name, token};

pub(crate) fn role(label: &str) -> AppRoleConfig {
    AppRoleConfig {
        name: name(label),
        role_id: None,
        bind_secret_id: true,
        secret_id_num_uses: 0,
        secret_id_ttl_seconds: 0,
        secret_id_bound_cidrs: Vec::new(),
        tenant: name("local"),
        operations: vec![TokenOperation::Sign],
        policies: Vec::new(),
        keys: Some(vec!["a".to_owned()]),
        lifetime_seconds: 60,
    }
}

/// The settings of a service whose callers without a token may do everything.
fn with_roles(roles: &[AppRoleConfig]) -> Config {
    let mut config = config();
    config.service.development = true;
    config.approle = roles.to_vec();
    config
}

fn start(roles: &[AppRoleConfig]) -> Service {
    let keystore = keystore(&["local"]);
    for label in ["a", "b"] {
        let key = NewKey::new(name("local"), name("transit"), Algorithm::Ed25519).label(name(label));
        keystore.create_key(key).unwrap();
    }
    Service::start(keystore, with_roles(roles))
}

pub(crate) fn ask(service: &Service, path: &str, body: &Value) -> Answer {
    service.post(None, &format!("/v1/auth/approle/{path}"), body)
}

pub(crate) fn role_id(service: &Service, role: &str) -> Value {
    let answer = service.get(None, &format!("/v1/auth/approle/role/{role}/role-id"));
    answer.ok()["data"]["role_id"].clone()
}

/// A secret id, and its accessor.
pub(crate) fn secret_id(service: &Service, role: &str, body: &Value) -> (Value, Value) {
    let data = ask(service, &format!("role/{role}/secret-id"), body).ok()["data"].clone();
    (data["secret_id"].clone(), data["secret_id_accessor"].clone())
}

pub(crate) fn log_in(service: &Service, role_id: &Value, secret_id: &Value) -> Answer {
    ask(service, "login", &json!({ "role_id": role_id, "secret_id": secret_id }))
}

#[track_caller]
fn refused(answer: &Answer, words: &str) {
    assert_eq!((answer.status, &answer.json()["errors"]), (400, &json!([words])), "{}", answer.text());
}

const UNKNOWN: &str = "invalid role or secret ID";

#[test]
fn a_role_id_with_a_secret_id_gives_the_token_of_the_role() {
    let service =
        start(&[role("build"), AppRoleConfig { role_id: Some("deploy-id".to_owned()), ..role("deploy") }]);
    let id = role_id(&service, "build");
    assert_eq!((&role_id(&service, "build"), &role_id(&service, "deploy")), (&id, &json!("deploy-id")));
    let (secret, accessor) = secret_id(&service, "build", &json!({ "metadata": "{\"host\":\"x\"}" }));
    let auth = log_in(&service, &id, &secret).ok()["auth"].clone();
    assert_eq!((&auth["policies"], &auth["lease_duration"]), (&json!(["sign"]), &json!(60)));
    assert_eq!(auth["metadata"], json!({ "role_name": "build", "host": "x" }));
    let token: Token = auth["client_token"].as_str().unwrap().parse().unwrap();
    let own = service.get(Some(&token), "/v1/auth/token/lookup-self").ok()["data"].clone();
    let display = own["display_name"].as_str().unwrap();
    assert!(
        display.starts_with(&format!("approle/build/{} token ", accessor.as_str().unwrap())),
        "{display}"
    );
    let sign = |key: &str| {
        service.post(Some(&token), &format!("/v1/transit/sign/{key}"), &json!({ "input": "" })).status
    };
    assert_eq!((sign("a"), sign("b")), (200, 403));
    // It has no bound, and so it works again.
    log_in(&service, &id, &secret).ok();
    for (id, secret, words) in [
        (&id, &json!("nope"), UNKNOWN),
        (&json!("nope"), &secret, UNKNOWN),
        (&json!("deploy-id"), &secret, UNKNOWN),
        (&id, &accessor, UNKNOWN),
        (&Value::Null, &secret, "missing role_id"),
        (&id, &Value::Null, "missing secret_id"),
        (&id, &json!(""), "missing secret_id"),
    ] {
        refused(&log_in(&service, id, secret), words);
    }
}

#[test]
fn a_secret_id_is_for_as_many_logins_and_as_long_as_it_says() {
    let bounded = AppRoleConfig { secret_id_num_uses: 3, secret_id_ttl_seconds: 600, ..role("build") };
    let service = start(&[bounded]);
    let id = role_id(&service, "build");
    let made =
        ask(&service, "role/build/secret-id", &json!({ "num_uses": 2, "ttl": "5m" })).ok()["data"].clone();
    assert_eq!((&made["secret_id_num_uses"], &made["secret_id_ttl"]), (&json!(2), &json!(300)));
    let secret = &made["secret_id"];
    let left = || {
        let answer = ask(&service, "role/build/secret-id/lookup", &json!({ "secret_id": secret }));
        if answer.status == 204 { Value::Null } else { answer.ok()["data"]["secret_id_num_uses"].clone() }
    };
    assert_eq!(left(), 2);
    log_in(&service, &id, secret).ok();
    assert_eq!(left(), 1);
    log_in(&service, &id, secret).ok();
    refused(&log_in(&service, &id, secret), UNKNOWN);
    assert_eq!(left(), Value::Null);
    for (body, words) in [
        (json!({ "num_uses": 4 }), "num_uses cannot be higher than the role's secret_id_num_uses"),
        (json!({ "num_uses": 0 }), "num_uses cannot be higher than the role's secret_id_num_uses"),
        (json!({ "num_uses": -1 }), "num_uses cannot be higher than the role's secret_id_num_uses"),
        (json!({ "ttl": "11m" }), "ttl cannot be longer than the role's secret_id_ttl"),
        (json!({ "cidr_list": ["x"] }), "invalid CIDR address: x"),
        (json!({ "token_bound_cidrs": ["10.0.0.0/8"] }), "bulla's tokens are not bound to networks"),
    ] {
        refused(&ask(&service, "role/build/secret-id", &body), words);
    }
    assert_eq!(ask(&service, "role/build/secret-id", &json!({ "metadata": "x" })).status, 400);
}

#[test]
fn secret_ids_are_listed_looked_up_and_destroyed() {
    let service = start(&[role("build"), role("other")]);
    let id = role_id(&service, "build");
    let list = || service.send("LIST", None, "/v1/auth/approle/role/build/secret-id", &[]);
    assert_eq!((list().status, list().json()), (404, json!({ "errors": [] })));
    let (one, accessor) = secret_id(&service, "build", &json!({ "cidr_list": "127.0.0.0/8" }));
    let custom = json!({ "secret_id": "chosen by an operator" });
    let made = ask(&service, "role/build/custom-secret-id", &custom).ok()["data"].clone();
    assert_eq!(made["secret_id"], custom["secret_id"]);
    assert_eq!(ask(&service, "role/build/custom-secret-id", &custom).status, 400, "it is there");
    refused(&ask(&service, "role/build/custom-secret-id", &json!({})), "missing secret_id");
    let short = ask(&service, "role/build/custom-secret-id", &json!({ "secret_id": "short" }));
    refused(&short, "a secret id has 20 to 1024 characters");
    assert_eq!(list().ok()["data"]["keys"].as_array().unwrap().len(), 2);
    let by_accessor = json!({ "secret_id_accessor": accessor });
    let found = ask(&service, "role/build/secret-id-accessor/lookup", &by_accessor).ok()["data"].clone();
    assert_eq!((&found["cidr_list"], &found["secret_id_accessor"]), (&json!(["127.0.0.0/8"]), &accessor));
    assert!(!found.to_string().contains(one.as_str().unwrap()));
    // Another role knows neither of them.
    assert_eq!(ask(&service, "role/other/secret-id-accessor/lookup", &by_accessor).status, 404);
    assert_eq!(ask(&service, "role/other/secret-id/lookup", &json!({ "secret_id": one })).status, 204);
    assert_eq!(ask(&service, "role/other/secret-id/destroy", &json!({ "secret_id": one })).status, 204);
    assert_eq!(ask(&service, "role/other/secret-id-accessor/destroy", &by_accessor).status, 400);
    log_in(&service, &id, &one).ok();
    assert_eq!(ask(&service, "role/build/secret-id-accessor/destroy", &by_accessor).status, 204);
    refused(&log_in(&service, &id, &one), UNKNOWN);
    assert_eq!(ask(&service, "role/build/secret-id/destroy", &custom).status, 204);
    refused(&log_in(&service, &id, &custom["secret_id"]), UNKNOWN);
    assert_eq!(list().status, 404);
    assert_eq!(ask(&service, "role/none/secret-id", &json!({})).status, 404);
}

#[test]
fn only_callers_who_may_mint_for_the_tenant_make_secret_ids() {
    let keystore = keystore(&["local", "other"]);
    let all = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let mut config = with_roles(&[role("build")]);
    config.service.operator_tenant = name("other");
    let service = Service::start(keystore, config);
    for path in ["secret-id", "custom-secret-id", "secret-id/lookup", "secret-id-accessor/destroy"] {
        let path = format!("/v1/auth/approle/role/build/{path}");
        assert_eq!(service.post(Some(&all), &path, &json!({})).status, 403, "a token never mints: {path}");
        assert_eq!(service.post(None, &path, &json!({})).status, 404, "another tenant: {path}");
    }
    assert_eq!(service.get(None, "/v1/auth/approle/role/build/role-id").status, 404);
}

#[test]
fn a_login_comes_from_the_networks_of_the_role_and_of_the_secret_id() {
    let cidrs = |text: &str| vec![text.parse().unwrap()];
    let free =
        AppRoleConfig { bind_secret_id: false, secret_id_bound_cidrs: cidrs("127.0.0.1/32"), ..role("free") };
    let far = AppRoleConfig { secret_id_bound_cidrs: cidrs("10.0.0.0/8"), ..role("far") };
    let service = start(&[free, far, role("build")]);
    ask(&service, "login", &json!({ "role_id": role_id(&service, "free") })).ok();
    let (secret, _) = secret_id(&service, "far", &json!({}));
    refused(&log_in(&service, &role_id(&service, "far"), &secret), UNKNOWN);
    let id = role_id(&service, "build");
    let (secret, accessor) =
        secret_id(&service, "build", &json!({ "cidr_list": ["10.0.0.0/8"], "num_uses": 1 }));
    refused(&log_in(&service, &id, &secret), UNKNOWN);
    // That was no use of it.
    let body = json!({ "secret_id_accessor": accessor });
    let found = ask(&service, "role/build/secret-id-accessor/lookup", &body).ok();
    assert_eq!(found["data"]["secret_id_num_uses"], 1);
    let (secret, _) = secret_id(&service, "build", &json!({ "cidr_list": ["10.0.0.0/8", "127.0.0.0/8"] }));
    log_in(&service, &id, &secret).ok();
}

#[test]
fn secret_ids_are_guessed_slowly() {
    let service = start(&[role("build")]);
    let id = role_id(&service, "build");
    let tries: Vec<_> = (0..150).map(|_| log_in(&service, &id, &json!("a guess"))).collect();
    let limited = tries.iter().filter(|answer| answer.status == 429).count();
    assert!(limited > 0 && tries[..100].iter().all(|answer| answer.status == 400), "{limited}");
    let last = tries.iter().rfind(|answer| answer.status == 429).unwrap();
    assert_eq!(last.error().1, "rate_limited");
}

/// A service with TLS, whose clients' certificates are of an authority, with certificate roles.
fn with_certificates(roles: Vec<CertificateRoleConfig>) -> (Service, Authority, Files) {
    let authority = Authority::new();
    let files = Files::new(&authority.certify("localhost", Until::Future), Some(&authority));
    let keystore = keystore(&["local"]);
    let mut config = files.config();
    config.certificate_role = roles;
    (Service::start(keystore, config), authority, files)
}

fn certificate_role(label: &str, common_names: &[&str]) -> CertificateRoleConfig {
    CertificateRoleConfig {
        name: name(label),
        ca: None,
        common_names: common_names.iter().map(|&text| text.to_owned()).collect(),
        organizational_units: Vec::new(),
        dns_names: Vec::new(),
        email_addresses: Vec::new(),
        uris: Vec::new(),
        tenant: name("local"),
        operations: vec![TokenOperation::Read],
        policies: Vec::new(),
        keys: None,
        lifetime_seconds: 60,
    }
}

fn with_certificate(service: &Service, client: &Client, body: &Value) -> (u16, Value) {
    let mut connection = client.connect(&service.url).unwrap();
    let (status, text) = connection.post("/v1/auth/cert/login", &body.to_string()).unwrap();
    (status, serde_json::from_str(&text).unwrap())
}

#[test]
fn a_certificate_gives_the_token_of_the_first_role_whose_names_it_has() {
    let hosts = CertificateRoleConfig {
        dns_names: vec!["*.Example.org".to_owned()],
        ..certificate_role("hosts", &[])
    };
    let both =
        CertificateRoleConfig { dns_names: vec!["other".to_owned()], ..certificate_role("both", &["robot"]) };
    let units = CertificateRoleConfig {
        organizational_units: vec!["*".to_owned()],
        ..certificate_role("units", &["*"])
    };
    let (service, authority, _files) =
        with_certificates(vec![both, units, certificate_role("robots", &["robot"]), hosts]);
    let log_in = |subject: &str, body: &Value| {
        let client = Client::showing(&authority, &authority.certify(subject, Until::Future));
        with_certificate(&service, &client, body)
    };
    let (status, answer) = log_in("robot", &json!({}));
    assert_eq!((status, &answer["auth"]["metadata"]["cert_name"]), (200, &json!("robots")), "{answer}");
    assert_eq!(
        (&answer["auth"]["policies"], &answer["auth"]["lease_duration"]),
        (&json!(["read"]), &json!(60))
    );
    assert_eq!(answer["auth"]["metadata"]["common_name"], "robot");
    let token = answer["auth"]["client_token"].as_str().unwrap().to_owned();
    let mut plain = Client::new(&authority).connect(&service.url).unwrap();
    let (_, own) = plain.text("/v1/auth/token/lookup-self", Some(&token)).unwrap();
    let own: Value = serde_json::from_str(&own).unwrap();
    assert!(own["data"]["display_name"].as_str().unwrap().starts_with("cert/robots/robot token "), "{own}");
    assert_eq!(log_in("build.example.org", &json!({ "name": "hosts" })).0, 200);
    let words = json!(["invalid certificate or no client certificate supplied"]);
    for (subject, body) in [
        ("robot", json!({ "name": "hosts" })),
        ("robot", json!({ "name": "both" })),
        ("robot", json!({ "name": "none" })),
        ("stranger", json!({})),
        ("example.org", json!({})),
    ] {
        let (status, answer) = log_in(subject, &body);
        assert_eq!((status, &answer["errors"]), (400, &words), "{subject} {body}");
    }
    let (status, answer) = with_certificate(&service, &Client::new(&authority), &json!({}));
    assert_eq!((status, &answer["errors"]), (400, &words), "without a certificate");
}

#[test]
fn a_role_may_take_the_certificates_of_one_of_the_authorities_alone() {
    let (own, other) = (Authority::new(), Authority::new());
    let files = Files::new(&own.certify("localhost", Until::Future), None);
    files.write("clients.pem", &format!("{}{}", own.pem, other.pem));
    files.write("other.pem", &other.pem);
    let mut config = files.config();
    let ca = Some(files.path("other.pem"));
    config.certificate_role = vec![CertificateRoleConfig { ca, ..certificate_role("robots", &["robot"]) }];
    let service = Service::start(keystore(&["local"]), config);
    for (authority, expected) in [(&own, 400), (&other, 200)] {
        let client = Client::showing(&own, &authority.certify("robot", Until::Future));
        let (status, answer) = with_certificate(&service, &client, &json!({}));
        assert_eq!(status, expected, "{answer}");
    }
}
