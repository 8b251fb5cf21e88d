//! Certificates, made for one test, and clients that use them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bulla_server::{Config, ListenConfig, TlsConfig};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};

use super::conforms::{Answered, conforms};

/// A certificate authority.
pub(crate) struct Authority {
    pub(crate) pem: String,
    der: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
pub(crate) struct Certified {
    pub(crate) pem: String,
    pub(crate) key_pem: String,
    der: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Clone for Certified {
    fn clone(&self) -> Self {
        let (pem, key_pem, der) = (self.pem.clone(), self.key_pem.clone(), self.der.clone());
        Self { pem, key_pem, der, key: self.key.clone_key() }
    }
}

/// Until when a certificate is valid.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    Past,
    /// 2090.
    Sooner,
    /// 2100.
    Future,
    /// The same, but not yet.
    Later,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Each has its own name, by which clients look for it.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        params.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { pem: certificate.pem(), der: certificate.der().clone(), issuer: Issuer::new(params, key) }
    }

    /// A certificate for a name, which servers and clients may use.
    pub(crate) fn certify(&self, name: &str, until: Until) -> Certified {
        let usages = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.certify_for(&usages, name, until)
    }

    /// The same for a server alone.
    pub(crate) fn certify_server(&self, name: &str) -> Certified {
        self.certify_for(&[ExtendedKeyUsagePurpose::ServerAuth], name, Until::Future)
    }

    fn certify_for(&self, usages: &[ExtendedKeyUsagePurpose], name: &str, until: Until) -> Certified {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = usages.to_vec();
        let (begin, end) = match until {
            Until::Past => (2020, 2021),
            Until::Sooner => (2020, 2090),
            Until::Future => (2020, 2100),
            Until::Later => (2090, 2100),
        };
        params.not_before = rcgen::date_time_ymd(begin, 1, 1);
        params.not_after = rcgen::date_time_ymd(end, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Certified {
            pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            der: certificate.der().clone(),
            key: private,
        }
    }
}

impl Certified {
    /// The digest by which the configuration names the certificate.
    pub(crate) fn digest(&self) -> String {
        let digest = ring::digest::digest(&ring::digest::SHA256, &self.der);
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Certified {
    /// What a server of a test needs to show the certificate.
    pub(crate) fn server_settings(&self) -> Arc<ServerConfig> {
        let settings = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.der.clone()], self.key.clone_key());
        Arc::new(settings.unwrap())
    }
}

/// The files that a configuration names.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new(server: &Certified, clients: Option<&Authority>) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.certificate(server);
        if let Some(clients) = clients {
            files.write("clients.pem", &clients.pem);
        }
        files
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Puts another certificate in place of the server's.
    pub(crate) fn certificate(&self, server: &Certified) {
        self.write("server.pem", &server.pem);
        self.write("server.key", &server.key_pem);
    }

    /// A configuration with one address, whose TLS these files are.
    pub(crate) fn config(&self) -> Config {
        let clients = self.path("clients.pem");
        let client_ca = clients.exists().then_some(clients);
        let tls = TlsConfig { certificate: self.path("server.pem"), key: self.path("server.key"), client_ca };
        let address = Some("127.0.0.1:0".parse().unwrap());
        let mut config = super::config();
        config.listen = vec![ListenConfig { address, tls: Some(tls), ..ListenConfig::default() }];
        config
    }
}

/// A client with TLS.
pub(crate) struct Client {
    pub(crate) trusts: CertificateDer<'static>,
    pub(crate) shows: Option<Certified>,
    pub(crate) name: &'static str,
    pub(crate) version: &'static rustls::SupportedProtocolVersion,
    pub(crate) protocol: &'static [u8],
}

impl Client {
    pub(crate) fn new(trusts: &Authority) -> Self {
        let version = &rustls::version::TLS13;
        let trusts = trusts.der.clone();
        Self { trusts, shows: None, name: "localhost", version, protocol: b"http/1.1" }
    }

    pub(crate) fn showing(trusts: &Authority, certificate: &Certified) -> Self {
        Self { shows: Some(certificate.clone()), ..Self::new(trusts) }
    }

    /// Connects, and makes the handshake.
    pub(crate) fn connect(&self, url: &str) -> std::io::Result<Connection> {
        self.connect_as(url, &self.settings())
    }

    /// What the client knows. With the same settings, it resumes sessions if the server lets it.
    pub(crate) fn settings(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusts.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[self.version])
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match &self.shows {
            None => builder.with_no_client_auth(),
            Some(shown) => {
                builder.with_client_auth_cert(vec![shown.der.clone()], shown.key.clone_key()).unwrap()
            }
        };
        config.alpn_protocols = vec![self.protocol.to_vec()];
        Arc::new(config)
    }

    /// Connects with settings that other connections may have, too.
    pub(crate) fn connect_as(&self, url: &str, settings: &Arc<ClientConfig>) -> std::io::Result<Connection> {
        let name = ServerName::try_from(self.name).unwrap();
        let mut connection = ClientConnection::new(Arc::clone(settings), name).unwrap();
        let address: SocketAddr = url.trim_start_matches("https://").parse().unwrap();
        let mut stream = TcpStream::connect(address)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream)?;
        }
        Ok(Connection(StreamOwned::new(connection, stream)))
    }

    /// The status of one request over a connection of its own.
    pub(crate) fn get(&self, url: &str, path: &str, token: Option<&str>) -> std::io::Result<u16> {
        self.connect(url)?.get(path, token)
    }
}

/// A connection with HTTP/1.1.
pub(crate) struct Connection(pub(crate) StreamOwned<ClientConnection, TcpStream>);

impl Connection {
    /// The status of a request.
    pub(crate) fn get(&mut self, path: &str, token: Option<&str>) -> std::io::Result<u16> {
        Ok(self.text(path, token)?.0)
    }

    /// The status of a request, and the body.
    pub(crate) fn text(&mut self, path: &str, token: Option<&str>) -> std::io::Result<(u16, String)> {
        let token = token.map_or_else(String::new, |token| format!("authorization: Bearer {token}\r\n"));
        write!(self.0, "GET {path} HTTP/1.1\r\nhost: localhost\r\n{token}\r\n")?;
        self.answer("GET", path)
    }

    /// The status of a request with a body of JSON, and the body of the answer.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> std::io::Result<(u16, String)> {
        let length = body.len();
        write!(
            self.0,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )?;
        self.answer("POST", path)
    }

    fn answer(&mut self, method: &str, path: &str) -> std::io::Result<(u16, String)> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let (_, length) = head.split_once("content-length: ").unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        let status = head[9..12].parse().unwrap();
        let content_type = head.lines().find_map(|line| line.strip_prefix("content-type: "));
        conforms(&Answered { method, path, status, content_type, body: &body });
        Ok((status, String::from_utf8(body).unwrap()))
    }
}
