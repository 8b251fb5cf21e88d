//! TLS, client certificates and Unix sockets.

use std::io::Read as _;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_kms::{Algorithm, Code, Keystore, NewKey};
use bulla_server::{CallerConfig, Config, Server};
use rustls::HandshakeKind;

use crate::support::tls::{Authority, Certified, Client, Files, Until};
use crate::support::unix::{UnixClient, my_uid, unix_config};
use crate::support::{Prepared, Service, keystore, name, token};

const KEYS: &str = "/api/v1/keys";
const HEALTH: &str = "/api/v1/health";

fn caller(certificate: &Certified) -> CallerConfig {
    CallerConfig {
        name: "robot".to_owned(),
        uid: None,
        certificate_sha256: Some(certificate.digest()),
        tenant: name("local"),
        operations: Some(vec![TokenOperation::Read]),
        keys: None,
        can_mint_tokens: false,
    }
}

#[test]
fn a_client_meets_the_certificate_in_both_versions_and_both_protocols() {
    let authority = Authority::new();
    let files = Files::new(&authority.certify("localhost", Until::Future), None);
    let service = Service::start(keystore(&[]), files.config());
    assert!(service.url.starts_with("https://"), "{}", service.url);
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let client = Client { version, ..Client::new(&authority) };
        assert_eq!(client.get(&service.url, HEALTH, None).unwrap(), 200);
        let both = Client { version, protocol: b"h2", ..Client::new(&authority) };
        assert_eq!(both.connect(&service.url).unwrap().0.conn.alpn_protocol(), Some(&b"h2"[..]));
    }
    // A client of others, by HTTP/2.
    files.write("authority.pem", &authority.pem);
    let port = service.url.rsplit_once(':').unwrap().1;
    let curl = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--http2",
            "--write-out",
            "%{http_version} %{http_code}",
            "--cacert",
        ])
        .arg(files.path("authority.pem"))
        .args(["--connect-to", &format!("localhost:443:127.0.0.1:{port}"), "--output", "/dev/null"])
        .arg(format!("https://localhost{HEALTH}"))
        .output()
        .expect("curl is there");
    assert_eq!(String::from_utf8_lossy(&curl.stdout), "2 200", "{}", String::from_utf8_lossy(&curl.stderr));
}

#[test]
fn a_client_refuses_a_wrong_name_an_expired_certificate_and_an_unknown_authority() {
    let authority = Authority::new();
    let start = |certificate: &Certified| {
        let files = Files::new(certificate, None);
        Service::start(keystore(&[]), files.config())
    };
    let good = start(&authority.certify("localhost", Until::Future));
    let error = |client: &Client, service: &Service| match client.connect(&service.url) {
        Ok(_) => panic!("the client took the certificate"),
        Err(error) => format!("{error:?}"),
    };
    let elsewhere = Client { name: "elsewhere", ..Client::new(&authority) };
    assert!(error(&elsewhere, &good).contains("NotValidForName"));
    assert!(error(&Client::new(&Authority::new()), &good).contains("UnknownIssuer"));
    // The service starts all the same: callers on a Unix socket need no certificate.
    let expired = start(&authority.certify("localhost", Until::Past));
    assert!(error(&Client::new(&authority), &expired).contains("Expired"));
    let later = start(&authority.certify("localhost", Until::Later));
    assert!(error(&Client::new(&authority), &later).contains("NotValidYet"));
}

#[test]
fn a_client_certificate_that_the_configuration_names_is_a_caller() {
    let (authority, others) = (Authority::new(), Authority::new());
    let files = Files::new(&authority.certify("localhost", Until::Future), Some(&authority));
    let known = authority.certify("robot", Until::Future);
    let mut config = files.config();
    config.caller = vec![caller(&known)];
    let keystore = keystore(&["local"]);
    keystore.create_key(NewKey::new(name("local"), name("files"), Algorithm::Ed25519)).unwrap();
    let reader = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let service = Service::start(keystore, config);
    let get = |client: &Client, token| client.get(&service.url, KEYS, token);
    let robot = Client::showing(&authority, &known);
    assert_eq!(get(&robot, None).unwrap(), 200);
    assert_eq!(get(&robot, Some("nonsense")).unwrap(), 403, "a token takes precedence over the certificate");
    let nobody = Client::new(&authority);
    assert_eq!(get(&nobody, None).unwrap(), 401);
    assert_eq!(get(&nobody, Some(reader.expose())).unwrap(), 200, "a token needs no certificate");
    let unnamed = Client::showing(&authority, &authority.certify("robot", Until::Future));
    assert_eq!(get(&unnamed, None).unwrap(), 401, "the configuration names another certificate");
    assert_eq!(get(&unnamed, Some(reader.expose())).unwrap(), 200);
    let foreign = Client::showing(&authority, &others.certify("robot", Until::Future));
    assert!(get(&foreign, Some(reader.expose())).is_err(), "another authority");
    let expired = Client::showing(&authority, &authority.certify("robot", Until::Past));
    assert!(get(&expired, Some(reader.expose())).is_err(), "it has expired");
    let later = Client::showing(&authority, &authority.certify("robot", Until::Later));
    assert!(get(&later, Some(reader.expose())).is_err(), "it is not valid yet");
    let server = Client::showing(&authority, &authority.certify_server("robot"));
    assert!(get(&server, Some(reader.expose())).is_err(), "it is for servers");
}

/// A resumed session would show a certificate that nobody verified again.
#[test]
fn where_clients_show_certificates_each_connection_has_a_whole_handshake() {
    let authority = Authority::new();
    for (clients, again) in [(None, HandshakeKind::Resumed), (Some(&authority), HandshakeKind::Full)] {
        let files = Files::new(&authority.certify("localhost", Until::Future), clients);
        let service = Service::start(keystore(&[]), files.config());
        let robot = authority.certify("robot", Until::Future);
        for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
            let client = Client { version, ..Client::showing(&authority, &robot) };
            let settings = client.settings();
            let kind = || {
                let mut connection = client.connect_as(&service.url, &settings).unwrap();
                // With the answer comes what the next connection could resume with.
                assert_eq!(connection.get(HEALTH, None).unwrap(), 200);
                connection.0.conn.handshake_kind().unwrap()
            };
            assert!(matches!(kind(), HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest));
            assert_eq!(kind(), again, "{version:?}");
        }
    }
}

#[test]
fn without_an_authority_for_clients_a_certificate_proves_nothing() {
    let authority = Authority::new();
    let files = Files::new(&authority.certify("localhost", Until::Future), None);
    let robot = authority.certify("robot", Until::Future);
    let mut config = files.config();
    config.caller = vec![caller(&robot)];
    let service = Service::start(keystore(&["local"]), config);
    assert_eq!(Client::showing(&authority, &robot).get(&service.url, KEYS, None).unwrap(), 401);
}

#[test]
fn a_handshake_that_does_not_go_on_is_cut_off() {
    let authority = Authority::new();
    let files = Files::new(&authority.certify("localhost", Until::Future), None);
    let mut config = files.config();
    config.limits.idle_timeout_seconds = 1;
    let service = Service::start(keystore(&[]), config);
    let mut silent = TcpStream::connect(service.url.trim_start_matches("https://")).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // It ends because the service closes it, and not because this client waits no longer.
    match silent.read(&mut [0]) {
        Ok(read) => assert_eq!(read, 0),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
    assert_eq!(Client::new(&authority).get(&service.url, HEALTH, None).unwrap(), 200);
}

/// What is wrong with a configuration.
fn refused(config: &Config) -> String {
    Server::check(config).unwrap_err().message
}

#[test]
fn files_that_cannot_be_used_are_named_and_never_quoted() {
    let authority = Authority::new();
    let good = authority.certify("localhost", Until::Future);
    let files = Files::new(&good, Some(&authority));
    let config = files.config();
    Server::check(&config).unwrap();
    files.write("server.key", &authority.certify("localhost", Until::Future).key_pem);
    assert!(refused(&config).contains("server.key"), "the key of another certificate: {}", refused(&config));
    files.write("server.key", &good.pem);
    assert!(refused(&config).contains("contains no private key"), "{}", refused(&config));
    files.certificate(&authority.certify("localhost", Until::Past));
    assert!(refused(&config).contains("expired at 2021-01-01"), "{}", refused(&config));
    files.certificate(&authority.certify("localhost", Until::Later));
    assert!(refused(&config).contains("not valid before 2090-01-01"), "{}", refused(&config));
    files.certificate(&good);
    files.write("server.pem", "hunter2");
    assert!(refused(&config).contains("server.pem contains no certificate"), "{}", refused(&config));
    files.certificate(&good);
    files.write("clients.pem", "-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n");
    assert!(refused(&config).contains("clients.pem"), "{}", refused(&config));
    assert!(!refused(&config).contains("hunter2"));
    std::fs::remove_file(files.path("clients.pem")).unwrap();
    assert!(refused(&config).contains("cannot read the certificate"), "{}", refused(&config));
    assert!(Server::bind(config, Box::new(Prepared::new(Keystore::in_memory().unwrap()))).is_err());
}

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
