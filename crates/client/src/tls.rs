//! TLS: the root certificates that a client trusts, and the certificate that it shows.

use std::sync::Arc;
use std::{fmt, io};

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::address::{Address, Encryption, Peer};
use crate::error::{Error, ErrorKind, Result};

/// Root certificates to trust, instead of those of the operating system.
#[derive(Clone, Debug)]
pub struct RootCertificates(Vec<CertificateDer<'static>>);

impl RootCertificates {
    /// Reads one or more certificates in PEM.
    ///
    /// ```no_run
    /// use bulla_client::{Client, RootCertificates};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let roots = RootCertificates::from_pem(&std::fs::read("ca.pem")?)?;
    /// let builder = Client::builder("https://keys.example.org".parse()?);
    /// let client = builder.root_certificates(roots).build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if the text has no certificate, or one that is malformed.
    pub fn from_pem(pem: &[u8]) -> Result<Self> {
        certificates(pem).map(Self)
    }
}

/// The root certificates of a connection: the given ones, or those of the operating system.
fn root_store(given: Option<&RootCertificates>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(RootCertificates(given)) = given else {
        // Some systems have certificates that rustls cannot read. They are left out.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let message = "the operating system has no root certificates: name some";
            return Err(Error::invalid_argument(message));
        }
        return Ok(roots);
    };
    for certificate in given {
        roots.add(certificate.clone()).map_err(|error| {
            Error::invalid_argument("a root certificate cannot be used").with_source(error)
        })?;
    }
    Ok(roots)
}

/// A certificate that the client shows, with its private key.
pub struct ClientCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl ClientCertificate {
    /// Reads a certificate and its private key in PEM. `chain` has the certificate first, and then
    /// those between it and the root.
    ///
    /// ```no_run
    /// use bulla_client::{Client, ClientCertificate};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (chain, key) = (std::fs::read("client.pem")?, std::fs::read("client.key")?);
    /// let certificate = ClientCertificate::from_pem(&chain, &key)?;
    /// let address = "https://keys.example.org".parse()?;
    /// let client = Client::builder(address).client_certificate(certificate).build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if one of the texts is not valid PEM.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self> {
        // The error of the parser is not shown: it might quote the key.
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| Error::invalid_argument("the client's private key is not one in PEM"))?;
        Ok(Self { chain: certificates(chain)?, key })
    }
}

impl Clone for ClientCertificate {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

/// Shows no key.
impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(Error::invalid_argument("there is no certificate in PEM")),
    }
}

/// The error if one of the two certificates is refused. It has no source yet.
pub(crate) fn certificate_error(error: &io::Error) -> Option<Error> {
    use AlertDescription as Alert;
    // A service with TLS 1.3 refuses a certificate when the client's handshake has ended: then this
    // is the error of reading the answer.
    let message = match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(_) => "the client does not trust the service's certificate",
        rustls::Error::AlertReceived(
            Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::CertificateRequired,
        ) => "the service refused the client's certificate",
        _ => return None,
    };
    Some(Error::new(ErrorKind::Certificate, message))
}

/// What a handshake needs.
pub(crate) struct TlsConnection {
    pub(crate) connector: TlsConnector,
    /// The name that the service's certificate must have.
    pub(crate) name: ServerName<'static>,
}

/// The certificates that a client trusts and shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsSettings {
    pub(crate) roots: Option<RootCertificates>,
    pub(crate) certificate: Option<ClientCertificate>,
}

impl TlsSettings {
    /// What a handshake with this address needs; none for an address without TLS.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: there is no usable root certificate, or the client's
    /// certificate and its key do not belong together.
    pub(crate) fn connector(&self, address: &Address) -> Result<Option<TlsConnection>> {
        let Peer::Network(network) = address.peer() else { return Ok(None) };
        if network.encryption == Encryption::None {
            return Ok(None);
        }
        let name = ServerName::try_from(network.host.clone()).map_err(|error| {
            Error::invalid_argument("no certificate can have the host's name").with_source(error)
        })?;
        Ok(Some(TlsConnection { connector: TlsConnector::from(Arc::new(self.config()?)), name }))
    }

    fn config(&self) -> Result<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::invalid_argument("TLS cannot be used").with_source(error))?
            .with_root_certificates(root_store(self.roots.as_ref())?);
        let mut config = match self.certificate.clone() {
            None => builder.with_no_client_auth(),
            Some(ClientCertificate { chain, key }) => {
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    Error::invalid_argument("the client's certificate cannot be used").with_source(error)
                })?
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}
