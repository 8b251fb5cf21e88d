//! Connections by TLS, client certificates and Unix sockets. None of them shows a secret.

use bulla_client::{Blocking, Client, Error, Settings};
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_server::CallerConfig;

use crate::support::tls::{Authority, Certified, Files, Until};
use crate::support::unix::{me, unix_config};
use crate::support::{Service, keystore, name, token};
use crate::{address, of};

/// A service with a certificate, which knows one client by another.
fn service(server: &Certified, clients: &Authority, shown: &Certified) -> (Files, Service) {
    let files = Files::new(server, Some(clients));
    let mut config = files.config();
    config.caller = vec![CallerConfig {
        name: "ann".to_owned(),
        uid: None,
        certificate_sha256: Some(shown.digest()),
        tenant: name("local"),
        operations: None,
        keys: None,
        can_mint_tokens: false,
    }];
    let service = Service::start(keystore(&["local"]), config);
    (files, service)
}

fn settings(service: &Service, authority: &Authority) -> Settings {
    Settings::new(address(&service.url)).authorities(authority.pem.as_bytes()).unwrap().retries(0)
}

fn keys(client: &Blocking) -> Result<usize, Error> {
    client.wait(async |client| client.keys().await.map(|keys| keys.len()))
}

#[test]
fn a_client_certificate_is_a_credential() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let shown = clients.certify("ann", Until::Future);
    let (_files, service) = service(&authority.certify("127.0.0.1", Until::Future), &clients, &shown);
    let identified = settings(&service, &authority);
    let identified = identified.certificate(shown.pem.as_bytes(), shown.key_pem.as_bytes()).unwrap();
    assert_eq!(keys(&of(identified)), Ok(1));
    let error = keys(&of(settings(&service, &authority))).unwrap_err();
    assert_eq!(error.code(), Some("unauthenticated"));
    for other in [authority.certify("ann", Until::Future), clients.certify("ann", Until::Past)] {
        let stranger = settings(&service, &authority);
        let stranger = stranger.certificate(other.pem.as_bytes(), other.key_pem.as_bytes()).unwrap();
        let error = keys(&of(stranger)).unwrap_err();
        assert!(matches!(error, Error::Certificate(_)), "{error:?}");
        assert!(error.to_string().starts_with("the service refused the client's certificate"), "{error}");
    }
}

#[test]
fn a_service_whose_certificate_is_wrong_gets_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    let shown = other.certify("ann", Until::Future);
    let cases = [
        (authority.certify("127.0.0.1", Until::Future), &other, "unknown issuer"),
        (authority.certify("localhost", Until::Future), &authority, "not valid for name"),
        (authority.certify("127.0.0.1", Until::Past), &authority, "expired"),
    ];
    for (certificate, trusted, why) in cases {
        let (_files, service) = service(&certificate, &other, &shown);
        let error = keys(&of(settings(&service, trusted))).unwrap_err();
        assert!(matches!(error, Error::Certificate(_)), "{why}: {error:?}");
        assert!(
            error.to_string().to_ascii_lowercase().replace("unknownissuer", "unknown issuer").contains(why),
            "{error}"
        );
    }
}

#[test]
fn only_named_authorities_are_trusted() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let shown = clients.certify("ann", Until::Future);
    let (_files, service) = service(&authority.certify("127.0.0.1", Until::Future), &clients, &shown);
    // Those of the operating system do not have it. A system without any is an error, too.
    match Client::new(Settings::new(address(&service.url)).retries(0)) {
        Ok(client) => {
            let error = keys(&Blocking::new(client).unwrap()).unwrap_err();
            assert!(matches!(error, Error::Certificate(_)), "{error:?}");
        }
        Err(error) => assert!(matches!(error, Error::Invalid(_)), "{error:?}"),
    }
}

#[test]
fn a_service_without_tls_is_unreachable_over_tls() {
    let service = Service::open();
    let url = service.url.replace("http://", "https://");
    let authority = Authority::new();
    let settings = Settings::new(address(&url)).authorities(authority.pem.as_bytes()).unwrap().retries(0);
    assert!(matches!(keys(&of(settings)).unwrap_err(), Error::Unreachable(_)));
}

#[test]
fn a_user_of_the_machine_needs_no_token_on_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut config = unix_config(&path);
    config.caller = vec![me("local", None)];
    let service = Service::start(keystore(&["local"]), config);
    assert_eq!(keys(&of(Settings::new(address(&service.url)))), Ok(1));
    drop(service);
    let gone = Settings::new(address(&format!("unix:{}", path.display()))).retries(0);
    let error = keys(&of(gone)).unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    assert!(error.to_string().contains("socket"), "{error}");
}

#[test]
fn no_secret_is_shown() {
    let keystore = keystore(&["local"]);
    let token = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let service = Service::start(keystore, crate::support::config());
    let authority = Authority::new();
    let shown = authority.certify("ann", Until::Future);
    let settings = Settings::new(address(&service.url)).token(token.expose()).unwrap();
    let settings = settings.certificate(shown.pem.as_bytes(), shown.key_pem.as_bytes()).unwrap();
    let client = of(settings.clone());
    let error = client.wait(async |client| client.sign("a", b"hunter2").await.unwrap_err());
    let texts = [format!("{settings:?}"), format!("{client:?}"), format!("{error:?}"), error.to_string()];
    let key: String = shown.key_pem.lines().nth(1).unwrap().to_owned();
    for text in texts {
        assert!(
            !text.contains(token.expose()) && !text.contains(&key) && !text.contains("hunter2"),
            "{text}"
        );
    }
    let swapped = settings.certificate(shown.key_pem.as_bytes(), shown.pem.as_bytes()).unwrap_err();
    assert!(!swapped.to_string().contains(&key), "{swapped}");
}
