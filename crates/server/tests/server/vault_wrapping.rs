//! Answers that wait to be unwrapped: once, by the holder of the token, on every node.

use bulla_kms::token::{GrantedKeys, Token, TokenOperation};
use bulla_kms::{Algorithm, NewKey};
use serde_json::{Value, json};

use crate::support::on_disk::OnDisk;
use crate::support::{Answer, Service, config, keystore, name, token};

fn start() -> Service {
    let keystore = keystore(&["local"]);
    let key = NewKey::new(name("local"), name("transit"), Algorithm::Aes256Gcm).label(name("a"));
    keystore.create_key(key).unwrap();
    let mut config = config();
    config.service.development = true;
    Service::start(keystore, config)
}

fn wrapped(service: &Service, path: &str, body: &Value, ttl: &str) -> Answer {
    let headers = [("x-vault-wrap-ttl", ttl)];
    service.send_with("POST", None, &format!("/v1/{path}"), body.to_string().as_bytes(), &headers)
}

fn info(answer: &Answer) -> Value {
    let answer = answer.ok();
    assert_eq!((&answer["data"], &answer["auth"]), (&Value::Null, &Value::Null));
    answer["wrap_info"].clone()
}

fn ask(service: &Service, what: &str, token: &Value) -> Answer {
    service.post(None, &format!("/v1/sys/wrapping/{what}"), &json!({ "token": token }))
}

#[track_caller]
fn not_valid(answer: &Answer) {
    let words = json!(["wrapping token is not valid or does not exist"]);
    assert_eq!((answer.status, &answer.json()["errors"]), (400, &words), "{}", answer.text());
}

#[test]
fn a_wrapped_answer_is_taken_once() {
    let service = start();
    let wrap = info(&wrapped(&service, "transit/datakey/plaintext/a", &json!({}), "2m"));
    assert_eq!((&wrap["ttl"], &wrap["creation_path"]), (&json!(120), &json!("transit/datakey/plaintext/a")));
    let found = ask(&service, "lookup", &wrap["token"]).ok()["data"].clone();
    let expected = json!({
        "creation_path": wrap["creation_path"], "creation_time": wrap["creation_time"], "creation_ttl": 120,
    });
    assert_eq!(found, expected);
    let answer = ask(&service, "unwrap", &wrap["token"]);
    let data = answer.ok()["data"].clone();
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert_eq!(answer.headers["x-request-id"], answer.json()["request_id"].as_str().unwrap());
    let opened =
        service.post(None, "/v1/transit/decrypt/a", &json!({ "ciphertext": data["ciphertext"] })).ok();
    assert_eq!(opened["data"]["plaintext"], data["plaintext"]);
    for what in ["unwrap", "lookup", "rewrap"] {
        not_valid(&ask(&service, what, &wrap["token"]));
    }
}

#[test]
fn of_many_who_take_a_wrapped_answer_at_once_one_gets_it() {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = OnDisk::create(folder.path());
    let mut config = config();
    config.service.development = true;
    for service in [start(), on_disk.start(config)] {
        for _ in 0..5 {
            let wrap = info(&wrapped(&service, "sys/wrapping/wrap", &json!({ "a": 1 }), "60"));
            let taken: usize = std::thread::scope(|scope| {
                let take = || ask(&service, "unwrap", &wrap["token"]).status == 200;
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
                threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
            });
            assert_eq!(taken, 1);
        }
    }
}

#[test]
fn tokens_and_secret_ids_and_any_data_are_wrapped() {
    let service = start();
    let wrap = info(&wrapped(&service, "auth/token/create", &json!({ "policies": "sign" }), "60"));
    let auth = ask(&service, "unwrap", &wrap["token"]).ok()["auth"].clone();
    assert_eq!(auth["accessor"], wrap["wrapped_accessor"]);
    let made: Token = auth["client_token"].as_str().unwrap().parse().unwrap();
    service.get(Some(&made), "/v1/auth/token/lookup-self").ok();
    let wrap = info(&wrapped(&service, "sys/wrapping/wrap", &json!({ "a": { "b": [1] } }), "60s"));
    assert_eq!(ask(&service, "unwrap", &wrap["token"]).ok()["data"], json!({ "a": { "b": [1] } }));
    // An error is not wrapped, and neither is an answer without a body.
    assert_eq!(wrapped(&service, "transit/datakey/plaintext/none", &json!({}), "60").status, 400);
    let words = json!(["endpoint requires response wrapping to be used"]);
    let plain = service.post(None, "/v1/sys/wrapping/wrap", &json!({ "a": 1 }));
    assert_eq!((plain.status, &plain.json()["errors"]), (400, &words));
    assert!(wrapped(&service, "transit/random/4", &json!({}), "0").ok()["data"].is_object());
    for ttl in ["x", "-1", "99999999", "1.5h"] {
        let refused = wrapped(&service, "transit/random/4", &json!({}), ttl);
        assert_eq!(refused.status, 400, "{ttl}");
        assert!(refused.json()["errors"][0].as_str().unwrap().contains("X-Vault-Wrap-TTL"), "{ttl}");
    }
}

#[test]
fn a_batch_of_which_an_item_fails_is_wrapped_and_keeps_its_status() {
    let service = start();
    let made = service.post(None, "/v1/transit/encrypt/a", &json!({ "plaintext": "aGk=" })).ok();
    let items = json!([{ "ciphertext": made["data"]["ciphertext"] }, { "ciphertext": "vault:v1:AAAA" }]);
    for (code, status) in [(json!(null), 400), (json!(200), 200), (json!(206), 206), (json!(599), 599)] {
        let body = json!({ "batch_input": items, "partial_failure_response_code": code });
        let old = info(&wrapped(&service, "transit/decrypt/a", &body, "60"));
        let new = info(&ask(&service, "rewrap", &old["token"]));
        let answer = ask(&service, "unwrap", &new["token"]);
        let plaintext = answer.json()["data"]["batch_results"][0]["plaintext"].clone();
        assert_eq!((answer.status, plaintext), (status, json!("aGk=")), "{code}");
    }
}

#[test]
fn a_rewrapped_answer_has_another_token_and_the_old_one_is_gone() {
    let service = start();
    let old = info(&wrapped(&service, "sys/wrapping/wrap", &json!({ "a": 1 }), "60"));
    let new = info(&ask(&service, "rewrap", &old["token"]));
    assert_eq!((&new["ttl"], &new["creation_path"]), (&json!(60), &json!("sys/wrapping/wrap")));
    not_valid(&ask(&service, "unwrap", &old["token"]));
    // Clients also send the token where their own would be.
    let header = [("x-vault-token", new["token"].as_str().unwrap())];
    let looked = service.send_with("GET", None, "/v1/sys/wrapping/lookup", &[], &header);
    assert_eq!(looked.ok()["data"]["creation_ttl"], 60);
    let taken = service.send_with("POST", None, "/v1/sys/wrapping/unwrap", &[], &header);
    assert_eq!(taken.ok()["data"], json!({ "a": 1 }));
    not_valid(&service.send_with("POST", None, "/v1/sys/wrapping/unwrap", &[], &header));
}

#[test]
fn a_wrapping_token_is_one_of_this_keystore_and_no_credential() {
    let (service, other) = (start(), start());
    let wrap = info(&wrapped(&service, "sys/wrapping/wrap", &json!({ "a": 1 }), "60"));
    let text = wrap["token"].as_str().unwrap();
    not_valid(&ask(&other, "unwrap", &wrap["token"]));
    let last = if text.ends_with('A') { "B" } else { "A" };
    let middle = text.len() / 2;
    let other_letter = if &text[middle..=middle] == "A" { "B" } else { "A" };
    for changed in [
        String::new(),
        text[..text.len() - 1].to_owned(),
        format!("{}{last}", &text[..text.len() - 1]),
        format!("{}{other_letter}{}", &text[..middle], &text[middle + 1..]),
        text.replace("wrap.", ""),
        format!("{text}="),
    ] {
        not_valid(&ask(&service, "unwrap", &json!(changed)));
    }
    for path in ["/v1/auth/token/lookup-self", "/v1/transit/keys/a", "/api/v1/keys"] {
        let answer = service.send_with("GET", None, path, &[], &[("x-vault-token", text)]);
        assert_eq!(answer.error().0, 403, "{path}");
    }
    ask(&service, "unwrap", &wrap["token"]).ok();
}

#[test]
fn a_caller_without_a_credential_wraps_nothing() {
    let keystore = keystore(&["local"]);
    let reader = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let service = Service::start(keystore, config());
    let headers = [("x-vault-wrap-ttl", "60")];
    let health = service.send_with("GET", None, "/v1/sys/health", &[], &headers).ok();
    assert_eq!(health["initialized"], true);
    let seal = service.send_with("GET", None, "/v1/sys/seal-status", &[], &headers).ok();
    assert_eq!(seal["sealed"], false);
    assert_eq!(service.send_with("POST", None, "/v1/sys/wrapping/wrap", b"{}", &headers).error().0, 403);
    let own = service.send_with("GET", Some(&reader), "/v1/auth/token/lookup-self", &[], &headers);
    assert!(own.ok()["wrap_info"]["token"].is_string());
}

#[test]
fn a_tenant_has_room_for_few_long_answers_and_many_short_ones() {
    let keystore = keystore(&["local", "other"]);
    let other = token(&keystore, "other", GrantedKeys::All, &[TokenOperation::Read]);
    let mut config = config();
    config.service.development = true;
    let service = Service::start(keystore, config);
    let long = json!({ "a": "x".repeat(100 << 10) });
    let first = info(&wrapped(&service, "sys/wrapping/wrap", &long, "1h"));
    for _ in 1..128 {
        info(&wrapped(&service, "sys/wrapping/wrap", &long, "1h"));
    }
    let (status, code) = wrapped(&service, "sys/wrapping/wrap", &long, "1h").error();
    assert_eq!((status, code.as_str()), (503, "busy"));
    info(&wrapped(&service, "sys/wrapping/wrap", &json!({ "a": 1 }), "1h"));
    let body = long.to_string();
    let headers = [("x-vault-wrap-ttl", "1h")];
    let theirs = service.send_with("POST", Some(&other), "/v1/sys/wrapping/wrap", body.as_bytes(), &headers);
    assert_eq!(ask(&service, "unwrap", &info(&theirs)["token"]).ok()["data"], long);
    // One that is wrapped again takes the room of two for a moment.
    assert_eq!(ask(&service, "rewrap", &first["token"]).error().1, "busy");
    assert_eq!(ask(&service, "unwrap", &first["token"]).ok()["data"], long);
    info(&wrapped(&service, "sys/wrapping/wrap", &long, "1h"));
}

#[test]
fn wrapped_answers_secret_ids_and_accessors_are_there_after_a_restart() {
    use crate::vault_logins::{log_in, role, role_id, secret_id};
    let folder = tempfile::tempdir().unwrap();
    let settings = || {
        let mut config = config();
        config.service.development = true;
        config.approle =
            vec![bulla_server::AppRoleConfig { keys: None, secret_id_num_uses: 2, ..role("build") }];
        config
    };
    let service = OnDisk::create(folder.path()).start(settings());
    let wrap = info(&wrapped(&service, "sys/wrapping/wrap", &json!({ "a": 1 }), "600"));
    let (id, (secret, _)) = (role_id(&service, "build"), secret_id(&service, "build", &json!({})));
    log_in(&service, &id, &secret).ok();
    let minted = service.post(None, "/v1/auth/token/create", &json!({ "ttl": "1h" })).ok()["auth"].clone();
    drop(service);
    let service = OnDisk::existing(folder.path()).start(settings());
    assert_eq!(ask(&service, "unwrap", &wrap["token"]).ok()["data"], json!({ "a": 1 }));
    assert_eq!(role_id(&service, "build"), id);
    log_in(&service, &id, &secret).ok();
    assert_eq!(log_in(&service, &id, &secret).status, 400, "the use before the restart counts");
    let accessor = json!({ "accessor": minted["accessor"] });
    service.post(None, "/v1/auth/token/lookup-accessor", &accessor).ok();
    drop(service);
    let service = OnDisk::existing(folder.path()).start(settings());
    not_valid(&ask(&service, "unwrap", &wrap["token"]));
    assert_eq!(log_in(&service, &id, &secret).status, 400);
}

#[cfg(feature = "etcd")]
#[test]
fn of_many_nodes_one_takes_a_wrapped_answer_and_each_use_of_a_secret_id_counts_once() {
    use crate::support::nodes::Shared;
    use crate::vault_logins::{log_in, role, role_id, secret_id};
    let shared = Shared::start(1);
    drop(shared.create(&shared.open()));
    let mut settings = shared.open();
    settings.approle = vec![bulla_server::AppRoleConfig { keys: None, ..role("build") }];
    let nodes = [(); 2].map(|()| shared.node(settings.clone()));
    let at_once = |ask: &(dyn Fn(&Service) -> bool + Sync)| -> usize {
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                nodes.iter().cycle().take(6).map(|node| scope.spawn(move || ask(node))).collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
        })
    };
    for round in 0..4_usize {
        let wrap = info(&wrapped(&nodes[round % 2], "sys/wrapping/wrap", &json!({ "a": 1 }), "60"));
        assert_eq!(at_once(&|node| ask(node, "unwrap", &wrap["token"]).status == 200), 1);
    }
    let id = role_id(&nodes[0], "build");
    assert_eq!(role_id(&nodes[1], "build"), id);
    let (secret, _) = secret_id(&nodes[0], "build", &json!({ "num_uses": 4 }));
    assert_eq!(at_once(&|node| log_in(node, &id, &secret).status == 200), 4);
    let child = nodes[0].post(None, "/v1/auth/token/create", &json!({})).ok()["auth"]["accessor"].clone();
    nodes[1].post(None, "/v1/auth/token/lookup-accessor", &json!({ "accessor": child })).ok();
}
