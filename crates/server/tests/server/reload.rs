//! Other settings while the service runs.

use bulla_kms::Code;
use bulla_kms::token::{GrantedKeys, Revocations, Token, TokenOperation};
use serde_json::json;

use crate::support::on_disk::OnDisk;
use crate::support::tls::{Authority, Client, Files, Until};
use crate::support::unix::{UnixClient, me, unix_config};
use crate::support::{Service, config, keystore, token};

#[test]
fn a_reload_takes_other_certificates_and_drops_no_connection() {
    let (old, new) = (Authority::new(), Authority::new());
    let files = Files::new(&old.certify("localhost", Until::Future), None);
    let service = Service::start(keystore(&[]), files.config());
    let get = |authority: &Authority| Client::new(authority).get(&service.url, "/api/v1/health", None);
    let mut open = Client::new(&old).connect(&service.url).unwrap();
    assert_eq!(open.get("/api/v1/health", None).unwrap(), 200);
    files.certificate(&new.certify("localhost", Until::Future));
    assert!(get(&new).is_err(), "nobody asked for a reload yet");
    service.handle.reload(files.config()).unwrap();
    assert_eq!(get(&new).unwrap(), 200);
    assert!(get(&old).is_err());
    assert_eq!(open.get("/api/v1/health", None).unwrap(), 200, "the old connection goes on");
    // What cannot be used changes nothing, not even the settings that could be.
    files.certificate(&new.certify("localhost", Until::Past));
    let mut expired = files.config();
    expired.limits.max_batch_items = 1;
    assert_eq!(service.handle.reload(expired).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(get(&new).unwrap(), 200);
}

#[test]
fn a_reload_takes_other_limits_and_rates() {
    let keystore = keystore(&["local"]);
    let reader = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read, TokenOperation::Sign]);
    let service = Service::start(keystore, config());
    let batch = |items: usize| {
        let body = json!({ "key": "a", "items": vec![json!({ "message": "" }); items] });
        service.post(Some(&reader), "/api/v1/sign", &body)
    };
    assert_eq!(batch(2).ok()["results"].as_array().unwrap().len(), 2);
    let mut new = config();
    new.limits.max_batch_items = 1;
    service.handle.reload(new.clone()).unwrap();
    assert_eq!(batch(2).error().1, "too_many_items");
    (new.limits.max_batch_items, new.limits.max_body_bytes) = (10, 10);
    service.handle.reload(new.clone()).unwrap();
    assert_eq!(batch(2).error().1, "body_too_large");
    new.limits.max_body_bytes = 0;
    assert_eq!(service.handle.reload(new).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(batch(2).error().1, "body_too_large", "the settings before it stay");
    for _ in 0..5 {
        service.get(Some(&reader), "/api/v1/keys").ok();
    }
    let mut slow = config();
    let (per_second, burst) = (1.try_into().unwrap(), 1.try_into().unwrap());
    slow.limits.request_rate = Some(bulla_server::RequestRate { per_second, burst });
    service.handle.reload(slow).unwrap();
    let limited = (0..5).filter(|_| service.get(Some(&reader), "/api/v1/keys").status == 429).count();
    assert!(limited >= 3, "{limited} of 5 were refused");
}

#[test]
fn a_reload_takes_other_callers_on_open_connections_too() {
    let folder = tempfile::tempdir().unwrap();
    let config = unix_config(&folder.path().join("socket"));
    let service = Service::start(keystore(&["local"]), config.clone());
    let mut open = UnixClient::connect(&folder.path().join("socket"));
    assert_eq!(open.get("/api/v1/keys"), 401);
    let me = me("local", None);
    let mut named = config.clone();
    named.caller = vec![me];
    service.handle.reload(named).unwrap();
    assert_eq!(open.get("/api/v1/keys"), 200);
    service.handle.reload(config).unwrap();
    assert_eq!(open.get("/api/v1/keys"), 401);
}

#[test]
fn a_reload_reads_the_list_of_revoked_tokens_again() {
    let folder = tempfile::tempdir().unwrap();
    let source = OnDisk::create(folder.path());
    let keystore = source.keystore();
    let [mine, theirs, third] =
        [(); 3].map(|()| token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]));
    drop(keystore);
    let service = source.start(config());
    let list = folder.path().join("revoked");
    let id = |token: &Token| token.inspect().unwrap().blocks[0].revocation_id.clone();
    let status = |token| service.get(Some(token), "/api/v1/keys").status;
    std::fs::write(&list, format!("{}\n", id(&mine))).unwrap();
    assert_eq!(status(&mine), 200, "nobody asked for a reload yet");
    service.handle.reload(config()).unwrap();
    assert_eq!((status(&mine), status(&theirs), status(&third)), (403, 200, 200));
    // What the service writes itself keeps what another program wrote, and a shorter list brings no
    // token back.
    std::fs::write(&list, format!("{}\n", id(&theirs))).unwrap();
    service.post(Some(&third), "/api/v1/tokens/revoke", &json!({})).ok();
    let written: Revocations = std::fs::read_to_string(&list).unwrap().parse().unwrap();
    assert!([&mine, &theirs, &third].iter().all(|token| written.contains(&id(token))));
    assert_eq!((status(&mine), status(&theirs), status(&third)), (403, 403, 403));
    std::fs::write(&list, "what is this\n").unwrap();
    let error = service.handle.reload(config()).unwrap_err();
    assert!(error.code == Code::InvalidArgument && error.message.contains("line 1"), "{error}");
    assert_eq!(status(&mine), 403);
}

#[test]
fn the_metrics_say_when_the_first_certificate_expires() {
    let authority = Authority::new();
    let files = Files::new(&authority.certify("localhost", Until::Future), None);
    let keystore = keystore(&["local"]);
    let reader = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let mut config = files.config();
    config.listen.push(crate::support::config().listen.remove(0));
    let service = Service::start(keystore, config.clone());
    let expiry = || {
        let mut connection = Client::new(&authority).connect(&service.url).unwrap();
        let (status, text) = connection.text("/metrics", Some(reader.expose())).unwrap();
        assert_eq!(status, 200);
        let lines = text
            .lines()
            .find_map(|line| line.strip_prefix("bulla_tls_certificate_expiry_timestamp_seconds "));
        lines.map(|value| value.parse::<u64>().unwrap())
    };
    // 2100-01-01 and 2090-01-01.
    assert_eq!(expiry(), Some(4_102_444_800));
    files.certificate(&authority.certify("localhost", Until::Sooner));
    service.handle.reload(config).unwrap();
    assert_eq!(expiry(), Some(3_786_912_000));
}
