//! Minting, attenuating and revoking tokens.

use bulla_kms::Keystore;
use bulla_kms::token::{GrantedKeys, Revocations, Token, TokenLimits, TokenOperation};
use serde_json::json;

use crate::support::on_disk::OnDisk;
use crate::support::{Answer, Service, base64, config, keystore, name, token};

fn refused(answer: &Answer) {
    assert_eq!(answer.error(), (403, "forbidden".to_owned()));
}

fn minted(answer: &Answer) -> Token {
    assert_eq!(answer.headers["cache-control"], "no-store");
    answer.ok()["token"].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_minted_token_permits_what_it_says_and_is_made_weaker() {
    let service = Service::open();
    for label in ["a", "b"] {
        service.post(None, "/api/v1/keys", &json!({ "label": label })).ok();
    }
    let body = json!({ "operations": ["sign", "read"], "keys": ["a"], "expires_in_seconds": 60 });
    let answer = service.post(None, "/api/v1/tokens", &body);
    assert_eq!(answer.status, 201);
    let token = minted(&answer);
    let own = service.get(Some(&token), "/api/v1/tokens/self").ok();
    assert_eq!((&own["operations"], &own["tenant"]), (&json!(["sign", "read"]), &json!("local")));
    assert_eq!((&own["can_mint_tokens"], own["keys"].as_array().unwrap().len()), (&json!(false), 1));
    assert_eq!(own["revocation_ids"], json!([answer.json()["revocation_id"]]));
    assert_eq!(own["expires"].as_str().unwrap()[..19], answer.json()["expires"].as_str().unwrap()[..19]);
    let sign = |token: &Token, key: &str| {
        service.post(Some(token), &format!("/api/v1/keys/{key}/sign"), &json!({ "message": base64(b"x") }))
    };
    sign(&token, "a").ok();
    refused(&sign(&token, "b"));
    let weaker = service.post(Some(&token), "/api/v1/tokens/attenuate", &json!({ "operations": ["read"] }));
    assert_eq!(weaker.status, 201);
    let weaker = minted(&weaker);
    service.get(Some(&weaker), "/api/v1/keys/a").ok();
    refused(&sign(&weaker, "a"));
    let more = json!({ "operations": ["sign"], "keys": ["b"] });
    refused(&service.post(Some(&token), "/api/v1/tokens/attenuate", &more));
    let nothing = service.post(Some(&token), "/api/v1/tokens/attenuate", &json!({}));
    assert_eq!(nothing.error().0, 400);
    let none = service.post(None, "/api/v1/tokens/attenuate", &json!({ "operations": ["read"] }));
    assert_eq!(none.error(), (400, "malformed_request".to_owned()));
}

#[test]
fn only_a_caller_that_mints_mints_and_nobody_grants_more_than_it_has() {
    let all = keystore(&["local"]);
    let every = token(&all, "local", GrantedKeys::All, TokenOperation::ALL);
    let service = Service::start(all, config());
    let body = json!({ "operations": ["sign"], "expires_in_seconds": 60 });
    refused(&service.post(Some(&every), "/api/v1/tokens", &body));
    drop(service);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut config = config();
    config.listen.push(bulla_server::ListenConfig { unix: Some(socket.clone()), ..Default::default() });
    let uid = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(folder.path()).unwrap());
    config.caller.push(bulla_server::CallerConfig {
        name: "minter".to_owned(),
        uid: Some(uid),
        certificate_sha256: None,
        tenant: name("local"),
        operations: Some(vec![TokenOperation::Sign]),
        keys: None,
        can_mint_tokens: true,
    });
    let _service = Service::start(Keystore::in_memory().unwrap(), config);
    let post = |operations: &[&str]| {
        over_socket(&socket, &json!({ "operations": operations, "expires_in_seconds": 60 }))
    };
    assert!(post(&["sign"]).starts_with("HTTP/1.1 201"));
    assert!(post(&["sign", "export"]).starts_with("HTTP/1.1 403"));
    assert!(post(&[]).starts_with("HTTP/1.1 400"));
}

#[test]
fn who_makes_a_token_weaker_learns_nothing_of_the_keys_of_other_tenants() {
    let keystore = keystore(&["local", "other"]);
    let [mine, theirs] = ["local", "other"].map(|tenant| {
        let new = bulla_kms::NewKey::new(name(tenant), name("files"), bulla_kms::Algorithm::Ed25519);
        keystore.create_key(new).unwrap().key_id().to_string()
    });
    let token = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let service = Service::start(keystore, config());
    let missing = format!("{}00", &theirs[..theirs.len() - 2]);
    let attenuate = |body| service.post(Some(&token), "/api/v1/tokens/attenuate", &body);
    attenuate(json!({ "keys": [mine] })).ok();
    let [there, not_there] = [&theirs, &missing].map(|key| attenuate(json!({ "keys": [key] })));
    refused(&there);
    assert_eq!((there.status, &there.body), (not_there.status, &not_there.body));
}

/// Asks for a token over a Unix socket.
fn over_socket(socket: &std::path::Path, body: &serde_json::Value) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    let body = body.to_string();
    let length = body.len();
    let head = "POST /api/v1/tokens HTTP/1.1\r\nhost: x\r\nconnection: close";
    write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_revoked_token_is_refused_on_every_thread_at_once() {
    let keystore = keystore(&["local"]);
    let parent = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let child = parent.attenuate(&TokenLimits::default().expires(crate::support::after(60)));
    let child = child.unwrap();
    let service = Service::start(keystore, config());
    // Each request has a connection of its own, and the threads get connections in turn.
    let read = |token: &Token| {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let bearer = format!("Bearer {}", token.expose());
        let request = agent.get(format!("{}/api/v1/keys", service.url)).header("authorization", bearer);
        request.call().unwrap().status().as_u16()
    };
    for _ in 0..4 {
        assert_eq!((read(&parent), read(&child)), (200, 200));
    }
    service.post(Some(&child), "/api/v1/tokens/revoke", &json!({})).ok();
    for _ in 0..4 {
        assert_eq!((read(&parent), read(&child)), (200, 403), "only the one that was revoked");
    }
    service.post(Some(&parent), "/api/v1/tokens/revoke", &json!({})).ok();
    assert_eq!(read(&parent), 403);
}

#[test]
fn a_revocation_outlives_the_service_and_the_command_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = OnDisk::create(folder.path());
    let keystore = source.keystore();
    let [mine, theirs] =
        [(); 2].map(|()| token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]));
    drop(keystore);
    let mut config = config();
    config.service.development = true;
    let service = source.start(config.clone());
    service.post(Some(&mine), "/api/v1/tokens/revoke", &json!({})).ok();
    let id = theirs.inspect().unwrap().blocks[0].revocation_id.clone();
    let by_id = json!({ "revocation_id": id });
    refused(&service.post(Some(&theirs), "/api/v1/tokens/revoke", &by_id));
    assert_eq!(service.post(None, "/api/v1/tokens/revoke", &by_id).ok()["revocation_id"], id);
    for wrong in ["", "xyz", "0A", "abc"] {
        let answer = service.post(None, "/api/v1/tokens/revoke", &json!({ "revocation_id": wrong }));
        assert_eq!(answer.error(), (400, "malformed_request".to_owned()), "{wrong}");
    }
    drop(service);
    let list: Revocations = std::fs::read_to_string(folder.path().join("revoked")).unwrap().parse().unwrap();
    assert!(list.contains(&id) && list.ids().len() == 2);
    let service = OnDisk::existing(folder.path()).start(config);
    for token in [&mine, &theirs] {
        refused(&service.get(Some(token), "/api/v1/keys"));
    }
}

#[test]
fn a_damaged_list_of_revocations_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let source = OnDisk::create(folder.path());
    std::fs::write(folder.path().join("revoked"), "what is this\n").unwrap();
    let error = bulla_server::Server::bind(config(), Box::new(source)).err().unwrap();
    assert_eq!(error.code, bulla_kms::Code::InvalidArgument);
    assert!(error.message.contains("line 1"), "{error}");
}

#[test]
fn nobody_takes_a_revocation_back_and_a_minter_revokes_tokens_of_its_tenant_alone() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let keystore = keystore(&["local", "other"]);
    let [revoked, healthy, more] =
        [(); 3].map(|()| token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]));
    let id = |token: &Token| token.inspect().unwrap().blocks[0].revocation_id.clone();
    let mut config = config();
    config.service.development = true;
    config.listen.push(bulla_server::ListenConfig { unix: Some(socket.clone()), ..Default::default() });
    config.caller.push(bulla_server::CallerConfig {
        name: "minter of another tenant".to_owned(),
        uid: Some(crate::support::unix::my_uid()),
        certificate_sha256: None,
        tenant: name("other"),
        operations: None,
        keys: None,
        can_mint_tokens: true,
    });
    let service = Service::start(keystore, config);
    let mut other = crate::support::unix::UnixClient::connect(&socket);
    let status = |token| service.get(Some(token), "/api/v1/keys").status;
    let ended = |id: &str| json!({ "revocation_id": id, "expires": "1971-01-01T00:00:00.000Z" });
    let revoke = |body| service.post(None, "/api/v1/tokens/revoke", &body).ok();
    revoke(json!({ "revocation_id": id(&revoked) }));
    assert_eq!((status(&revoked), status(&healthy)), (403, 200));
    for body in [ended(&id(&revoked)), ended("0a"), json!({ "revocation_id": id(&healthy) })] {
        assert_eq!(other.post("/api/v1/tokens/revoke", &body.to_string()).0, 200);
    }
    assert_eq!((status(&revoked), status(&healthy)), (403, 200));
    revoke(ended(&id(&revoked)));
    revoke(ended("0b"));
    revoke(json!({ "revocation_id": id(&more) }));
    assert_eq!((status(&revoked), status(&healthy), status(&more)), (403, 200, 403));
}
