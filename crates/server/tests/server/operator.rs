//! Sealing, unsealing, and who reads the metrics.

use std::path::Path;

use bulla_kms::Keystore;
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_server::Server;
use serde_json::json;

use crate::support::on_disk::{OnDisk, PASSPHRASE};
use crate::support::unix::{UnixClient, me, unix_config};
use crate::support::{Answer, Service, config, keystore, token};

fn unseal(service: &Service, passphrase: &str) -> Answer {
    service.post(None, "/api/v1/operator/unseal", &json!({ "passphrase": passphrase }))
}

#[test]
fn a_sealed_service_does_nothing_until_the_passphrase_opens_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = OnDisk::create(folder.path());
    let prepared = source.keystore();
    let operator =
        token(&prepared, "local", GrantedKeys::All, &[TokenOperation::Update, TokenOperation::Read]);
    let reader = token(&prepared, "local", GrantedKeys::All, &[TokenOperation::Read]);
    drop(prepared);
    let service = source.start(config());
    assert_eq!(unseal(&service, "anything").ok()["sealed"], false, "it is not sealed");
    assert_eq!(service.post(Some(&reader), "/api/v1/operator/seal", &json!({})).error().0, 403);
    assert_eq!(service.post(Some(&operator), "/api/v1/operator/seal", &json!({})).ok()["sealed"], true);
    assert_eq!(service.get(None, "/api/v1/ready").status, 503);
    assert_eq!(service.get(Some(&reader), "/api/v1/keys").error(), (503, "sealed".to_owned()));
    assert_eq!(service.get(Some(&reader), "/metrics").error(), (503, "sealed".to_owned()));
    let wrong = unseal(&service, "wrong horse");
    assert_eq!(wrong.error(), (400, "wrong_passphrase".to_owned()));
    assert!(!wrong.text().contains("horse"));
    let bad = service.send("POST", None, "/api/v1/operator/unseal", b"{\"passphrase\":[\"horse\"]}");
    assert!(bad.error().0 == 400 && !bad.text().contains("horse"), "{}", bad.text());
    assert_eq!(unseal(&service, PASSPHRASE).ok()["sealed"], false);
    service.get(Some(&reader), "/api/v1/keys").ok();
}

/// A sealed service on a Unix socket in `folder`, whose keystore opens with a key file. The
/// settings name this user, with these operations.
fn sealed_with_key_file(folder: &Path, tenant: &str, operations: &[TokenOperation]) -> Service {
    let mut config = unix_config(&folder.join("socket"));
    config.caller = vec![me(tenant, Some(operations))];
    Service::run(Server::bind(config, Box::new(OnDisk::create_with_key_file(folder))).unwrap())
}

const UNSEAL: &str = "/api/v1/operator/unseal";
const VAULT_UNSEAL: &str = "/v1/sys/unseal";

#[test]
fn an_operator_unseals_a_keystore_with_a_key_file_which_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let service =
        sealed_with_key_file(folder.path(), "local", &[TokenOperation::Read, TokenOperation::Update]);
    let mut connection = UnixClient::connect(&folder.path().join("socket"));
    let (key, away) = (folder.path().join("key"), folder.path().join("away"));
    for unseal in [UNSEAL, VAULT_UNSEAL] {
        assert_eq!(connection.get("/api/v1/keys"), 503);
        std::fs::rename(&key, &away).unwrap();
        let (status, body) = connection.post(unseal, "{}");
        assert!(status >= 400 && body.contains("not_found"), "{status} {body}");
        assert_eq!(connection.get("/api/v1/keys"), 503);
        std::fs::rename(&away, &key).unwrap();
        let (status, body) = connection.post(unseal, "{}");
        assert!(status == 200 && body.contains("\"sealed\":false"), "{status} {body}");
        assert_eq!(connection.get("/api/v1/keys"), 200);
        assert_eq!(connection.post(unseal, "{}").0, 200, "it is not sealed");
        assert_eq!(connection.post("/api/v1/operator/seal", "").0, 200);
    }
    drop(service);
}

#[test]
fn without_a_passphrase_only_an_operator_whom_the_settings_name_unseals() {
    for (tenant, operation) in [("local", TokenOperation::Read), ("other", TokenOperation::Update)] {
        let folder = tempfile::tempdir().unwrap();
        let _service = sealed_with_key_file(folder.path(), tenant, &[operation]);
        let mut connection = UnixClient::connect(&folder.path().join("socket"));
        for unseal in [UNSEAL, VAULT_UNSEAL] {
            assert_eq!(connection.post(unseal, "{}").0, 403, "{unseal}");
        }
        assert_eq!(connection.get("/api/v1/ready"), 503);
    }
    let folder = tempfile::tempdir().unwrap();
    let source = OnDisk::create_with_key_file(folder.path());
    let operator = token(&source.keystore(), "local", GrantedKeys::All, &[TokenOperation::Update]);
    let service = source.start(config());
    service.post(Some(&operator), "/api/v1/operator/seal", &json!({})).ok();
    for caller in [None, Some(&operator)] {
        assert_eq!(service.post(caller, UNSEAL, &json!({})).error(), (401, "unauthenticated".to_owned()));
        assert_eq!(service.post(caller, VAULT_UNSEAL, &json!({})).status, 403);
    }
    assert_eq!(service.get(None, "/api/v1/ready").status, 503);
}

#[test]
fn without_a_passphrase_a_keystore_that_needs_one_stays_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config();
    config.service.development = true;
    let service = OnDisk::create(folder.path()).start(config);
    service.post(None, "/api/v1/operator/seal", &json!({})).ok();
    assert_eq!(service.post(None, UNSEAL, &json!({})).error(), (400, "wrong_passphrase".to_owned()));
    assert_eq!(service.post(None, VAULT_UNSEAL, &json!({})).status, 400);
    assert_eq!(unseal(&service, PASSPHRASE).ok()["sealed"], false);
}

#[test]
fn the_passphrase_cannot_be_guessed_quickly() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::bind(config(), Box::new(OnDisk::create(folder.path()))).unwrap();
    let service = Service::run(server);
    let answers: Vec<_> = (0..6).map(|_| unseal(&service, "a guess").error()).collect();
    let tried = answers.iter().filter(|answer| answer.1 == "wrong_passphrase").count();
    assert!((1..=4).contains(&tried), "{answers:?}");
    assert_eq!(answers.last().unwrap(), &(429, "rate_limited".to_owned()));
}

#[test]
fn guesses_of_others_do_not_lock_a_caller_of_the_settings_out() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut config = config();
    config.listen.push(bulla_server::ListenConfig { unix: Some(socket.clone()), ..Default::default() });
    config.caller = vec![me("local", Some(&[TokenOperation::Update]))];
    let service = Service::run(Server::bind(config, Box::new(OnDisk::create(folder.path()))).unwrap());
    while unseal(&service, "a guess").error().1 != "rate_limited" {}
    let mut connection = UnixClient::connect(&socket);
    let mut try_as_me =
        |passphrase: &str| connection.post(UNSEAL, &json!({ "passphrase": passphrase }).to_string());
    assert!(try_as_me("a wrong one").1.contains("wrong_passphrase"));
    assert_eq!(try_as_me(PASSPHRASE).0, 200);
    service.get(None, "/api/v1/ready").ok();
    // Its own guesses are counted, too, and they are not those of others.
    connection.post("/api/v1/operator/seal", "");
    let mut guess = || connection.post(VAULT_UNSEAL, r#"{"key":"a guess"}"#).0;
    while guess() != 429 {}
}

#[test]
fn metrics_are_for_operators() {
    let keystore = keystore(&["local", "other"]);
    let operator = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let other = token(&keystore, "other", GrantedKeys::All, &[TokenOperation::Read]);
    let service = Service::start(keystore, config());
    assert_eq!(service.get(None, "/metrics").error().0, 401);
    assert_eq!(service.get(Some(&other), "/metrics").error().0, 403);
    service.get(None, "/nothing").error();
    let answer = service.get(Some(&operator), "/metrics");
    assert!(answer.headers["content-type"].to_str().unwrap().starts_with("application/openmetrics-text"));
    let text = answer.text();
    for line in [
        "bulla_http_requests_total{class=\"4xx\"} 3",
        "bulla_sealed 0",
        "bulla_http_request_duration_seconds_count 3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("# TYPE kms_batch_len histogram") && text.ends_with("# EOF\n"), "{text}");
    let open = text.lines().find_map(|line| line.strip_prefix("bulla_http_open_connections ")).unwrap();
    assert!(open.parse::<u32>().unwrap() >= 1);
    assert!(!text.contains("local"), "no tenant is a label");
}

#[test]
fn a_sealed_service_shows_its_metrics_to_a_caller_that_the_configuration_names() {
    let mut config = config();
    config.service.development = true;
    let service = Service::start(Keystore::in_memory().unwrap(), config);
    service.post(None, "/api/v1/operator/seal", &json!({})).ok();
    let text = service.get(None, "/metrics").text();
    assert!(text.lines().any(|line| line == "bulla_sealed 1"), "{text}");
    let stranger = token(&keystore(&["local"]), "local", GrantedKeys::All, &[TokenOperation::Read]);
    assert_eq!(service.get(Some(&stranger), "/metrics").error(), (503, "sealed".to_owned()));
}
