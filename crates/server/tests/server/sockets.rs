//! Unix sockets: who may connect, and who is at the other end.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bulla_kms::Code;
use bulla_server::{CallerConfig, Server};

use crate::support::unix::{UnixClient, my_uid, unix_config};
use crate::support::{Prepared, Service, keystore, name};

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_socket_has_the_mode_of_the_settings_and_goes_with_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut config = unix_config(&path);
    let service = Service::start(keystore(&[]), config.clone());
    assert_eq!(mode(&path), 0o600);
    assert_eq!(service.url, format!("unix:{}", path.display()));
    drop(service);
    assert!(!path.exists());
    config.listen[0].mode = Some("0666".parse().unwrap());
    let service = Service::start(keystore(&[]), config.clone());
    assert_eq!(mode(&path), 0o666);
    // One that somebody listens on is not taken away.
    let second = Server::bind(config, Box::new(Prepared::new(keystore(&[]))));
    assert_eq!(second.err().unwrap().code, Code::AlreadyExists);
    assert_eq!(UnixClient::connect(&path).get("/api/v1/health"), 200);
    drop(service);
}

#[test]
fn a_socket_that_a_killed_service_left_is_replaced_and_a_file_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let service = Service::start(keystore(&[]), unix_config(&path));
    assert_eq!(UnixClient::connect(&path).get("/api/v1/health"), 200);
    drop(service);
    std::fs::write(&path, "a file").unwrap();
    assert!(Server::bind(unix_config(&path), Box::new(Prepared::new(keystore(&[])))).is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"a file");
}

#[test]
fn the_user_at_the_other_end_is_a_caller_where_the_configuration_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    for (uid, status) in [(my_uid(), 200), (my_uid() + 1, 401)] {
        let mut config = unix_config(&path);
        config.caller = vec![CallerConfig {
            name: "somebody".to_owned(),
            uid: Some(uid),
            certificate_sha256: None,
            tenant: name("local"),
            operations: None,
            keys: None,
            can_mint_tokens: false,
        }];
        let _service = Service::start(keystore(&["local"]), config);
        assert_eq!(UnixClient::connect(&path).get("/api/v1/keys"), status);
    }
}
