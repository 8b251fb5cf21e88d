//! TLS: the authorities that a client trusts, and the certificate that it shows.

use std::sync::Arc;
use std::{fmt, io};

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{AlertDescription, ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::address::{Address, Encryption, Peer};
use crate::error::{Error, Result};

/// The authorities whose certificates count.
#[derive(Clone, Debug, Default)]
pub(crate) enum Authorities {
    /// Those of the operating system.
    #[default]
    System,
    /// Only these.
    Given(Vec<CertificateDer<'static>>),
}

impl Authorities {
    /// # Errors
    /// The text has no certificate, or one that is malformed.
    pub(crate) fn from_pem(pem: &[u8]) -> Result<Self> {
        certificates(pem).map(Self::Given)
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match self {
            Self::System => {
                // Some systems have certificates that rustls cannot read. They are left out.
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    let message = "the operating system names no authority for certificates: give one";
                    return Err(Error::Invalid(message.to_owned()));
                }
            }
            Self::Given(certificates) => {
                for certificate in certificates {
                    let unusable =
                        |error| Error::Invalid(format!("an authority's certificate is unusable: {error}"));
                    roots.add(certificate.clone()).map_err(unusable)?;
                }
            }
        }
        Ok(roots)
    }
}

/// A certificate that a client shows, with its private key. It does not show the key.
pub(crate) struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// # Errors
    /// One of the texts is not valid PEM.
    pub(crate) fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self> {
        // The error of the parser is not shown: it might quote the key.
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| Error::Invalid("the client's private key is not one in PEM".to_owned()))?;
        Ok(Self { chain: certificates(chain)?, key })
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(Error::Invalid("there is no certificate in PEM".to_owned())),
    }
}

/// The error that one of the two certificates caused, if one did.
pub(crate) fn certificate_error(error: &io::Error) -> Option<Error> {
    use AlertDescription as Alert;
    // A service with TLS 1.3 refuses a certificate when the client's handshake has ended: then this
    // is the error of reading the answer.
    let message = match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        error @ rustls::Error::InvalidCertificate(_) => {
            format!("the client does not trust the service's certificate: {error}")
        }
        error @ rustls::Error::AlertReceived(
            Alert::NoCertificate
            | Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::CertificateRequired,
        ) => format!("the service refused the client's certificate: {error}"),
        _ => return None,
    };
    Some(Error::Certificate(message))
}

/// What a handshake needs.
pub(crate) struct Tls {
    pub(crate) connector: TlsConnector,
    /// The name that the service's certificate must have.
    pub(crate) name: ServerName<'static>,
}

/// What a handshake with this address needs; none for an address without TLS.
///
/// # Errors
/// [`Error::Invalid`]: there is no usable authority, or the certificate and the key do not belong
/// together.
pub(crate) fn tls(
    address: &Address,
    authorities: &Authorities,
    identity: Option<&Identity>,
) -> Result<Option<Tls>> {
    let Peer::Network(network) = address.peer() else { return Ok(None) };
    if network.encryption == Encryption::None {
        return Ok(None);
    }
    let name = ServerName::try_from(network.host.clone());
    let no_name = |_| Error::Invalid("no certificate can have the host's name".to_owned());
    Ok(Some(Tls { connector: connector(authorities, identity)?, name: name.map_err(no_name)? }))
}

fn connector(authorities: &Authorities, identity: Option<&Identity>) -> Result<TlsConnector> {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Invalid(error.to_string()))?
        .with_root_certificates(authorities.roots()?);
    let mut config = match identity.cloned() {
        None => builder.with_no_client_auth(),
        Some(Identity { chain, key }) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| Error::Invalid(format!("the client's certificate is unusable: {error}")))?,
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
