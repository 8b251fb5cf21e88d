//! Who may do what.

use bulla_kms::token::{GrantedKeys, TokenLimits, TokenOperation};
use bulla_kms::{Algorithm, KeyChange, NewKey};
use serde_json::json;

use crate::support::{Service, base64, config, keystore, name, token};

const REFUSED: (u16, &str) = (403, "forbidden");

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
        keystore.create_key(new).unwrap().key_id().clone()
    };
    let (mine, theirs) = (new("local", "mine"), new("local", "theirs"));
    let foreign = new("other", "foreign");
    let narrow = token(&keystore, "local", GrantedKeys::These(vec![mine.clone()]), &[TokenOperation::Sign]);
    let all = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Sign, TokenOperation::Read]);
    let other = token(&keystore, "other", GrantedKeys::All, &[TokenOperation::Sign]);
    let weaker = all.attenuate(&TokenLimits::default().operations(vec![TokenOperation::Read])).unwrap();
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
    let foreign = token(&stranger, "local", GrantedKeys::All, TokenOperation::ALL);
    let good = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
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
    let all = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read, TokenOperation::Update]);
    let mut config = config();
    config.service.development = true;
    let service = Service::start(keystore, config);
    for _ in 0..3 {
        service.get(Some(&all), "/api/v1/keys").ok();
    }
    let disable = json!({ "enabled": false }).to_string();
    service.send("PATCH", None, "/api/v1/keys/tokens", disable.as_bytes()).ok();
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
    let all = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(keystore, config());
    let body = json!({ "purpose": "tokens", "label": "mine" });
    is(service.post(Some(&all), "/api/v1/keys", &body).error(), REFUSED);
}

#[test]
fn no_token_changes_the_root_key_of_its_tenant() {
    let keystore = keystore(&["local"]);
    let all = token(&keystore, "local", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(keystore, config());
    let key = "/api/v1/keys/tokens";
    let after = json!({ "after": "2026-01-01T00:00:00.000Z" }).to_string();
    for (method, path, body) in [
        ("PATCH", key.to_owned(), r#"{"enabled":false}"#),
        ("PATCH", key.to_owned(), r#"{"label":""}"#),
        ("PATCH", key.to_owned(), r#"{"minimum_version":1}"#),
        ("POST", format!("{key}/rotate"), ""),
        ("POST", format!("{key}/schedule-destruction"), after.as_str()),
        ("POST", format!("{key}/cancel-destruction"), ""),
        ("POST", format!("{key}/versions/1/revoke"), ""),
        ("POST", format!("{key}/versions/1/destroy"), ""),
        ("DELETE", key.to_owned(), ""),
    ] {
        is(service.send(method, Some(&all), &path, body.as_bytes()).error(), REFUSED);
    }
    // It may be seen, and the token goes on.
    service.get(Some(&all), key).ok();
}

#[test]
fn a_credential_that_is_no_token_does_not_give_the_rights_of_the_connection() {
    let keystore = keystore(&["local"]);
    let [one, other] = [(); 2].map(|()| token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]));
    let mut config = config();
    config.service.development = true;
    let service = Service::start(keystore, config);
    let ask = |headers: &[(&str, &str)]| service.send_with("GET", None, "/api/v1/keys", &[], headers);
    ask(&[]).ok();
    let bearer = |token: &str| format!("Bearer {token}");
    let (first, second) = (one.expose(), bearer(other.expose()));
    for headers in [
        &[("authorization", "Bearer")][..],
        &[("authorization", "Bearer  ")],
        &[("authorization", "")],
        &[("authorization", first)],
        &[("authorization", "Basic eDp5")],
        &[("authorization", "Basic eDp5"), ("authorization", second.as_str())],
        &[("authorization", second.as_str()), ("authorization", "Basic eDp5")],
        &[("x-vault-token", first), ("authorization", second.as_str())],
        &[("x-vault-token", ""), ("authorization", second.as_str())],
        &[("x-vault-token", first), ("x-vault-token", other.expose())],
        &[("authorization", bearer(first).as_str()), ("authorization", second.as_str())],
    ] {
        is(ask(headers).error(), (401, "unauthenticated"));
        let vault = service.send_with("GET", None, "/v1/transit/keys/a", &[], headers);
        assert_eq!(vault.status, 403, "{}", vault.text());
    }
    ask(&[("x-vault-token", first), ("authorization", bearer(first).as_str())]).ok();
    ask(&[("x-vault-token", first), ("authorization", "Basic eDp5")]).ok();
    ask(&[("authorization", format!("bearer  {first}").as_str())]).ok();
    // Sealing and the metrics of a sealed service also look at the connection.
    service.post(None, "/api/v1/operator/seal", &json!({})).ok();
    for (method, path) in [("POST", "/api/v1/operator/unseal"), ("GET", "/metrics")] {
        let answer = service.send_with(method, None, path, b"{}", &[("authorization", "Bearer")]);
        is(answer.error(), (401, "unauthenticated"));
    }
}

#[test]
fn a_page_of_another_site_cannot_use_the_identity_of_a_connection() {
    let keystore = keystore(&["local"]);
    let reader = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut config = config();
    config.service.development = true;
    config.listen.push(bulla_server::ListenConfig { unix: Some(socket.clone()), ..Default::default() });
    let service = Service::start(keystore, config);
    let place = service.url.strip_prefix("http://").unwrap().to_owned();
    let port = place.rsplit(':').next().unwrap();
    // The status of a request whose head is written as it is here.
    let raw = |stream: &mut dyn ReadWrite, path: &str, head: &str| {
        let credential = if head.contains("token") {
            format!("\r\nx-vault-token: {}", reader.expose())
        } else {
            String::new()
        };
        let head = head.replace("\r\ntoken", &credential);
        write!(stream, "GET {path} HTTP/1.1\r\nconnection: close\r\n{head}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer[9..12].parse::<u16>().unwrap(), answer.contains("\"cross_site_request\""))
    };
    let tcp = |path: &str, head: &str| raw(&mut std::net::TcpStream::connect(&place).unwrap(), path, head);
    let unix = |head: &str| {
        raw(&mut std::os::unix::net::UnixStream::connect(&socket).unwrap(), "/api/v1/keys", head)
    };
    let same =
        format!("host: localhost:{port}\r\norigin: http://localhost:{port}\r\nsec-fetch-site: same-origin");
    for head in [
        &format!("host: {place}"),
        &same,
        &format!("host: {place}\r\nsec-fetch-site: none"),
        &format!("host: {place}\r\ncontent-type: application/x-www-form-urlencoded"),
        "host: [::1]:1",
    ] {
        assert_eq!(tcp("/api/v1/keys", head), (200, false), "{head}");
    }
    for head in [
        "host: evil.example",
        &format!(
            "host: evil.example:{port}\r\norigin: http://evil.example:{port}\r\nsec-fetch-site: same-origin"
        ),
        &format!("host: {place}\r\norigin: http://evil.example"),
        &format!("host: {place}\r\norigin: null"),
        &format!("host: {place}\r\norigin: http://127.0.0.1:1"),
        &format!("host: {place}\r\nsec-fetch-site: cross-site"),
        &format!("host: {place}\r\nsec-fetch-site: same-site"),
        &format!("host: {place}\r\ncontent-type: Text/Plain; charset=utf-8"),
        &format!("host: {place}\r\ncontent-type: multipart/form-data; boundary=x"),
    ] {
        for path in ["/api/v1/keys", "/v1/transit/keys/a", "/metrics"] {
            assert_eq!(tcp(path, head), (403, true), "{path} {head}");
        }
        // A page does not have the token.
        assert_eq!(tcp("/api/v1/keys", &format!("{head}\r\ntoken")), (200, false), "{head}");
    }
    // On a Unix socket, the host is any name.
    assert_eq!(unix("host: x"), (200, false));
    assert_eq!(unix("host: x\r\norigin: http://y"), (403, true));
    // The page of the service itself is loaded from any link.
    assert_eq!(tcp("/ui/", &format!("host: {place}\r\nsec-fetch-site: cross-site")), (200, false));
}

trait ReadWrite: std::io::Read + std::io::Write {}

impl<S: std::io::Read + std::io::Write> ReadWrite for S {}
