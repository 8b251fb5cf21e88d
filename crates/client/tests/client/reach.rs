//! Connections by TLS, client certificates and Unix sockets. None of them shows a secret.

use bulla_client::blocking::Client;
use bulla_client::{ClientBuilder, ClientCertificate, Error, ErrorCode, ErrorKind, RootCertificates, Token};
use bulla_kms::token::{GrantedKeys, TokenOperation};
use bulla_server::CallerConfig;

use crate::support::tls::{Authority, Certified, Files, Until};
use crate::support::unix::{me, unix_config};
use crate::support::{Service, keystore, name, token};
use crate::{blocking, builder};

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

fn settings(service: &Service, authority: &Authority) -> ClientBuilder {
    builder(&service.url).root_certificates(roots(authority)).max_retries(0)
}

fn roots(authority: &Authority) -> RootCertificates {
    RootCertificates::from_pem(authority.pem.as_bytes()).unwrap()
}

fn certificate(shown: &Certified) -> ClientCertificate {
    ClientCertificate::from_pem(shown.pem.as_bytes(), shown.key_pem.as_bytes()).unwrap()
}

fn keys(client: &Client) -> Result<usize, Error> {
    client.keys().collect::<Result<Vec<_>, _>>().map(|keys| keys.len())
}

#[test]
fn a_client_certificate_is_a_credential() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let shown = clients.certify("ann", Until::Future);
    let (_files, service) = service(&authority.certify("127.0.0.1", Until::Future), &clients, &shown);
    let identified = settings(&service, &authority);
    let identified = identified.client_certificate(certificate(&shown));
    assert_eq!(keys(&blocking(identified)).unwrap(), 1);
    let error = keys(&blocking(settings(&service, &authority))).unwrap_err();
    assert_eq!(error.code(), Some(&ErrorCode::Unauthenticated));
    for other in [authority.certify("ann", Until::Future), clients.certify("ann", Until::Past)] {
        let stranger = settings(&service, &authority);
        let stranger = stranger.client_certificate(certificate(&other));
        let error = keys(&blocking(stranger)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Certificate), "{error:?}");
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
        let error = keys(&blocking(settings(&service, trusted))).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Certificate), "{why}: {error:?}");
        assert!(
            format!("{error:#}")
                .to_ascii_lowercase()
                .replace("unknownissuer", "unknown issuer")
                .contains(why),
            "{error:#}"
        );
    }
}

#[test]
fn only_named_authorities_are_trusted() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let shown = clients.certify("ann", Until::Future);
    let (_files, service) = service(&authority.certify("127.0.0.1", Until::Future), &clients, &shown);
    // Those of the operating system do not have it. A system without any is an error, too.
    match builder(&service.url).max_retries(0).build() {
        Ok(client) => {
            let error = keys(&Client::new(client).unwrap()).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Certificate), "{error:?}");
        }
        Err(error) => assert!(matches!(error.kind(), ErrorKind::InvalidArgument), "{error:?}"),
    }
}

#[test]
fn a_service_without_tls_is_unreachable_over_tls() {
    let service = Service::open();
    let url = service.url.replace("http://", "https://");
    let authority = Authority::new();
    let settings = builder(&url).root_certificates(roots(&authority)).max_retries(0);
    assert_eq!(keys(&blocking(settings)).unwrap_err().kind(), ErrorKind::Connect);
}

#[test]
fn a_user_of_the_machine_needs_no_token_on_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let mut config = unix_config(&path);
    config.caller = vec![me("local", None)];
    let service = Service::start(keystore(&["local"]), config);
    assert_eq!(keys(&blocking(builder(&service.url))).unwrap(), 1);
    drop(service);
    let gone = builder(&format!("unix:{}", path.display())).max_retries(0);
    let error = keys(&blocking(gone)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Connect), "{error:?}");
    assert!(error.to_string().contains("socket"), "{error}");
}

#[test]
fn no_secret_is_shown() {
    let keystore = keystore(&["local"]);
    let token = token(&keystore, "local", GrantedKeys::All, &[TokenOperation::Read]);
    let service = Service::start(keystore, crate::support::config());
    let authority = Authority::new();
    let shown = authority.certify("ann", Until::Future);
    let settings = builder(&service.url).token(Token::new(token.expose()).unwrap());
    let settings = settings.client_certificate(certificate(&shown));
    let client = blocking(settings.clone());
    let error = client.sign("a", b"hunter2").unwrap_err();
    let texts = [format!("{settings:?}"), format!("{client:?}"), format!("{error:?}"), error.to_string()];
    let key: String = shown.key_pem.lines().nth(1).unwrap().to_owned();
    for text in texts {
        assert!(
            !text.contains(token.expose()) && !text.contains(&key) && !text.contains("hunter2"),
            "{text}"
        );
    }
    let swapped = ClientCertificate::from_pem(shown.key_pem.as_bytes(), shown.pem.as_bytes()).unwrap_err();
    assert!(!swapped.to_string().contains(&key), "{swapped}");
}
