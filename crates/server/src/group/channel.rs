//! Connections between nodes: TLS 1.3, on which each side proves to have the certificate that the
//! other's settings name. No authority is trusted, and a certificate has no end: it stands for its
//! key.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bulla_kms::{Code, KmsError, Name, Result};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName, ServerConfig,
    ServerConnection, SignatureScheme, StreamOwned,
};
use sha2::{Digest as _, Sha256};

/// The longest request or answer in bytes.
pub(super) const MAX_FRAME_LEN: usize = 32 << 20;

/// How long a handshake may take on the side that listens.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The name in the handshake. The certificate need not have it.
const SERVER_NAME: &str = "group.bulla.invalid";

/// The nodes whose certificates are accepted, by the SHA-256 of these.
#[derive(Clone)]
pub(super) struct PinnedNodes {
    names: HashMap<[u8; 32], Name>,
    provider: Arc<CryptoProvider>,
}

impl PinnedNodes {
    pub(super) fn new(names: impl IntoIterator<Item = ([u8; 32], Name)>) -> Self {
        Self { names: names.into_iter().collect(), provider: Arc::new(default_provider()) }
    }

    fn find(&self, certificate: &CertificateDer<'_>) -> Option<&Name> {
        self.names.get(&<[u8; 32]>::from(Sha256::digest(certificate)))
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        match self.find(certificate) {
            Some(_) => Ok(()),
            None => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl fmt::Debug for PinnedNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names.values()).finish()
    }
}

/// TLS 1.2 is not spoken.
fn no_tls12() -> Result<HandshakeSignatureValid, rustls::Error> {
    Err(rustls::Error::General("nodes speak TLS 1.3".to_owned()))
}

impl ServerCertVerifier for PinnedNodes {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for PinnedNodes {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.check_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

/// The certificate and the private key of this node.
pub(super) struct NodeCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl NodeCertificate {
    /// # Errors
    /// A file cannot be read, or has no certificate or key in PEM.
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self> {
        let wrong = |path: &Path, what: &str, error: &dyn fmt::Display| {
            let message = format!("[group]: cannot read the {what} {}: {error}", path.display());
            KmsError::new(Code::InvalidArgument, message)
        };
        let first = CertificateDer::from_pem_file(certificate)
            .map_err(|error| wrong(certificate, "certificate", &error))?;
        // The error of a key says nothing of its content.
        let key =
            PrivateKeyDer::from_pem_file(key).map_err(|_| wrong(key, "private key", &"no key in PEM"))?;
        Ok(Self { chain: vec![first], key })
    }

    /// The settings of connections to one node.
    pub(super) fn client(&self, peer: PinnedNodes) -> Result<Arc<ClientConfig>> {
        let mut config = ClientConfig::builder_with_provider(Arc::clone(&peer.provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(peer))
            .with_client_auth_cert(self.chain.clone(), self.key.clone_key())
            .map_err(unusable)?;
        config.resumption = Resumption::disabled();
        config.enable_sni = false;
        Ok(Arc::new(config))
    }

    /// The settings of connections from any of these nodes.
    pub(super) fn server(&self, peers: PinnedNodes) -> Result<Arc<ServerConfig>> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&peers.provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(Arc::new(peers))
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(unusable)?;
        // A resumed session would skip the certificate.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

fn unusable(error: rustls::Error) -> KmsError {
    KmsError::new(Code::InvalidArgument, format!("[group]: the certificate cannot be used: {error}"))
}

/// A socket whose reads and writes end at a time.
pub(super) struct TimedSocket {
    tcp: TcpStream,
    /// None waits for ever.
    deadline: Option<Instant>,
}

impl TimedSocket {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
        match left {
            Some(Duration::ZERO) => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left),
        }
    }
}

impl Read for TimedSocket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(self.left()?)?;
        self.tcp.read(bytes).map_err(timed_out)
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(self.left()?)?;
        self.tcp.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

/// A read that takes too long ends with `WouldBlock`, which rustls would take for a request to try
/// again.
fn timed_out(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

/// A connection to another node.
pub(super) struct Outgoing(StreamOwned<ClientConnection, TimedSocket>);

impl Outgoing {
    pub(super) fn open(address: &str, tls: &Arc<ClientConfig>, deadline: Instant) -> io::Result<Self> {
        let address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let tcp = TcpStream::connect_timeout(&address, left)?;
        tcp.set_nodelay(true)?;
        let name = ServerName::try_from(SERVER_NAME).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(connection, TimedSocket { tcp, deadline: Some(deadline) });
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(Self(stream))
    }

    pub(super) fn send(&mut self, frame: &[u8], deadline: Instant) -> io::Result<()> {
        self.0.sock.deadline = Some(deadline);
        write_frame(&mut self.0, frame)
    }

    pub(super) fn receive(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        self.0.sock.deadline = Some(deadline);
        read_frame(&mut self.0)
    }
}

/// A connection from another node.
pub(super) struct Incoming(StreamOwned<ServerConnection, TimedSocket>);

impl Incoming {
    /// Returns also who is there.
    pub(super) fn accept(
        tcp: TcpStream,
        tls: &Arc<ServerConfig>,
        peers: &PinnedNodes,
    ) -> io::Result<(Self, Name)> {
        tcp.set_nodelay(true)?;
        let connection = ServerConnection::new(Arc::clone(tls)).map_err(io::Error::other)?;
        let deadline = Some(Instant::now() + HANDSHAKE_TIMEOUT);
        let mut stream = StreamOwned::new(connection, TimedSocket { tcp, deadline });
        stream.conn.complete_io(&mut stream.sock)?;
        let shown = stream.conn.peer_certificates().and_then(<[_]>::first);
        let name = shown.and_then(|certificate| peers.find(certificate)).cloned();
        let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::PermissionDenied))?;
        Ok((Self(stream), name))
    }

    /// Waits for the next request, however long that takes.
    pub(super) fn receive(&mut self) -> io::Result<Vec<u8>> {
        self.0.sock.deadline = None;
        read_frame(&mut self.0)
    }

    pub(super) fn send(&mut self, frame: &[u8], deadline: Instant) -> io::Result<()> {
        self.0.sock.deadline = Some(deadline);
        write_frame(&mut self.0, frame)
    }
}

/// A frame is a length of four bytes, big-endian, and as many bytes.
fn write_frame(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= MAX_FRAME_LEN);
    let length = length.ok_or(io::ErrorKind::FileTooLarge)?;
    stream.write_all(&[&length.to_be_bytes()[..], bytes].concat())?;
    stream.flush()
}

fn read_frame(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_FRAME_LEN {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // Memory is taken as bytes arrive.
    let mut bytes = Vec::new();
    let read = stream.take(length as u64).read_to_end(&mut bytes)?;
    if read == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_whole_or_not_at_all() {
        let mut written = Vec::new();
        write_frame(&mut written, b"a request").unwrap();
        assert_eq!(read_frame(&mut &*written).unwrap(), b"a request");
        for end in 0..written.len() {
            let kind = read_frame(&mut &written[..end]).unwrap_err().kind();
            assert_eq!(kind, io::ErrorKind::UnexpectedEof);
        }
        // Nothing is allocated for what is only announced.
        let announced = [&u32::MAX.to_be_bytes()[..], b"x"].concat();
        assert_eq!(read_frame(&mut &*announced).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
