//! A way between two nodes of a group that reads and changes what goes over it. It has the private
//! keys of both nodes, as an attacker who has taken over one of them, and the network.

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What a node shows the others.
pub(crate) struct NodeIdentity {
    name: String,
    certificate: CertificateDer<'static>,
    key: String,
    pem: String,
}

impl NodeIdentity {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self {
            name: name.to_owned(),
            certificate: certificate.der().clone(),
            key: key.serialize_pem(),
            pem: certificate.pem(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn sha256(&self) -> String {
        hex::encode(Sha256::digest(&self.certificate))
    }

    pub(crate) fn write(&self, folder: &Path) {
        fs::write(folder.join("group.pem"), &self.pem).expect("the certificate");
        fs::write(folder.join("group.key"), &self.key).expect("the key");
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key")
    }
}

/// A connection to a node, in the name of another one.
pub(crate) struct PeerConnection(StreamOwned<ClientConnection, TcpStream>);

impl PeerConnection {
    pub(crate) fn open(port: u16, from: &NodeIdentity, to: &NodeIdentity) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(to.certificate.clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("a version")
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![from.certificate.clone()], from.key())
            .expect("a certificate");
        let name = ServerName::try_from(to.name.clone()).expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("settings");
        let tcp = TcpStream::connect(("127.0.0.1", port))?;
        tcp.set_nodelay(true)?;
        Ok(Self(StreamOwned::new(connection, tcp)))
    }

    pub(crate) fn call(&mut self, request: &Value) -> Result<Value> {
        write_frame(&mut self.0, request)?;
        read_frame(&mut self.0)
    }
}

/// Changes an answer. It gets the request, and all answers of before.
type Lie = Box<dyn Fn(&Value, &mut Value, &[Value]) + Send>;

/// The way.
pub(crate) struct Liar {
    port: u16,
    state: Arc<Mutex<LiarState>>,
}

struct LiarState {
    lie: Lie,
    requests: Vec<Value>,
    answers: Vec<Value>,
    keeps: bool,
}

impl Liar {
    /// Honest, until it is told to lie.
    pub(crate) fn start(from: &Arc<NodeIdentity>, to: &Arc<NodeIdentity>, target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it listens").port();
        let honest: Lie = Box::new(|_, _, _| ());
        let state = LiarState { lie: honest, requests: Vec::new(), answers: Vec::new(), keeps: true };
        let state = Arc::new(Mutex::new(state));
        let (from, to, shared) = (Arc::clone(from), Arc::clone(to), Arc::clone(&state));
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let (from, to, shared) = (Arc::clone(&from), Arc::clone(&to), Arc::clone(&shared));
                std::thread::spawn(move || drop(pass(tcp, &from, &to, target, &shared)));
            }
        });
        Self { port, state }
    }

    /// Honest, and lets somebody see each request and its answer. It keeps none of them.
    pub(crate) fn watch(
        from: &Arc<NodeIdentity>,
        to: &Arc<NodeIdentity>,
        target: u16,
        note: impl Fn(&Value, &Value) + Send + 'static,
    ) -> Self {
        let liar = Self::start(from, to, target);
        liar.lie(move |request, answer, _| note(request, answer));
        liar.state.lock().expect("no panic").keeps = false;
        liar
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn lie(&self, lie: impl Fn(&Value, &mut Value, &[Value]) + Send + 'static) {
        self.state.lock().expect("no panic").lie = Box::new(lie);
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.state.lock().expect("no panic").requests.clone()
    }

    /// All answers so far, as the node gave them.
    pub(crate) fn answers(&self) -> Vec<Value> {
        self.state.lock().expect("no panic").answers.clone()
    }
}

fn pass(
    tcp: TcpStream,
    from: &NodeIdentity,
    to: &NodeIdentity,
    target: u16,
    state: &Mutex<LiarState>,
) -> Result<()> {
    tcp.set_nodelay(true)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("a version")
        .with_no_client_auth()
        .with_single_cert(vec![to.certificate.clone()], to.key())
        .expect("a certificate");
    let connection = ServerConnection::new(Arc::new(config)).expect("settings");
    let mut client = StreamOwned::new(connection, tcp);
    let mut node = PeerConnection::open(target, from, to)?;
    loop {
        let request = read_frame(&mut client)?;
        let mut answer = node.call(&request)?;
        {
            let mut state = state.lock().expect("no panic");
            let before = answer.clone();
            (state.lie)(&request, &mut answer, &state.answers);
            if state.keeps {
                state.requests.push(request);
                state.answers.push(before);
            }
        }
        write_frame(&mut client, &answer)?;
    }
}

fn write_frame(stream: &mut impl Write, value: &Value) -> Result<()> {
    let bytes = serde_json::to_vec(value)?;
    let length = u32::try_from(bytes.len()).expect("it is short");
    stream.write_all(&[&length.to_be_bytes()[..], &bytes].concat())?;
    stream.flush()
}

fn read_frame(stream: &mut impl Read) -> Result<Value> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}
