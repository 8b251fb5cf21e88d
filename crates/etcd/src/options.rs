//! The address of a cluster, and the options of the connection.

use std::time::Duration;

use secrecy::SecretString;

use crate::error::{EtcdError, EtcdErrorKind, Result};

/// The address of an etcd cluster, and the name of a keystore in it.
///
/// ```
/// use bulla_etcd::EtcdOptions;
///
/// let etcd = EtcdOptions::new(["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"], "bulla/files");
/// assert_eq!(etcd.endpoints.len(), 3);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// The client URLs of one or more nodes, `http://HOST:PORT` or `https://HOST:PORT`. If one does
    /// not answer, the next one is asked.
    pub endpoints: Vec<String>,
    /// The keystore's name in the cluster: 1 to 200 of `a-z A-Z 0-9 . _ - /`. The keys of its rows
    /// begin with the prefix and a colon; a role in etcd must permit access to these keys.
    pub prefix: String,
    /// How long to try before a request counts as failed. A change may need three requests: one
    /// that reads the state, one that writes, and one that finds out the result of an unanswered
    /// write.
    pub timeout: Duration,
    /// The user for etcd's authentication, if that is enabled.
    pub user: Option<EtcdUser>,
    /// The options of TLS, for `https` endpoints.
    pub tls: Option<EtcdTls>,
}

/// A user for etcd's authentication.
#[derive(Clone, Debug)]
pub struct EtcdUser {
    /// The name.
    pub name: String,
    /// The password.
    pub password: SecretString,
}

/// How TLS connections authenticate both ends.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct EtcdTls {
    /// The certificates, in PEM, of the authorities that sign the nodes' certificates. No others
    /// are trusted.
    pub authorities: Vec<u8>,
    /// The client's certificate, if the nodes ask for one.
    pub client_certificate: Option<EtcdClientCertificate>,
}

impl EtcdTls {
    /// TLS that trusts these authorities, without a client's certificate.
    pub fn new(authorities: Vec<u8>) -> Self {
        Self { authorities, client_certificate: None }
    }

    /// Sets the client's certificate.
    #[must_use]
    pub fn client_certificate(
        mut self,
        client_certificate: impl Into<Option<EtcdClientCertificate>>,
    ) -> Self {
        self.client_certificate = client_certificate.into();
        self
    }
}

/// A client's certificate.
#[derive(Clone, Debug)]
pub struct EtcdClientCertificate {
    /// The certificate, followed by the intermediate certificates, in PEM.
    pub certificate: Vec<u8>,
    /// Its private key, in PEM.
    pub private_key: SecretString,
}

impl EtcdOptions {
    /// Options with these endpoints and this prefix, without a user or TLS, and a timeout of five
    /// seconds.
    pub fn new<E: Into<String>>(endpoints: impl IntoIterator<Item = E>, prefix: impl Into<String>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: prefix.into(),
            timeout: Duration::from_secs(5),
            user: None,
            tls: None,
        }
    }

    /// Sets how long to try before a request counts as failed.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the user for etcd's authentication.
    #[must_use]
    pub fn user(mut self, user: impl Into<Option<EtcdUser>>) -> Self {
        self.user = user.into();
        self
    }

    /// Sets the options of TLS.
    #[must_use]
    pub fn tls(mut self, tls: impl Into<Option<EtcdTls>>) -> Self {
        self.tls = tls.into();
        self
    }

    /// Refuses invalid options before anything is sent.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(EtcdError::new(EtcdErrorKind::InvalidArgument, message));
        if self.endpoints.is_empty() {
            return refuse("name at least one endpoint of the etcd cluster".to_owned());
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        if !(1..=200).contains(&self.prefix.len()) || !self.prefix.bytes().all(allowed) {
            return refuse(format!(
                "the prefix {:?} of a keystore in etcd may have 1 to 200 of a-z A-Z 0-9 . _ - /",
                self.prefix
            ));
        }
        for endpoint in &self.endpoints {
            let secure = endpoint.starts_with("https://");
            if !secure && !endpoint.starts_with("http://") {
                return refuse(format!("the endpoint {endpoint:?} begins with neither http:// nor https://"));
            }
            if secure != self.tls.is_some() {
                return refuse(format!(
                    "the endpoint {endpoint:?} {}",
                    if secure { "needs TLS certificates" } else { "would not use TLS; use https://" }
                ));
            }
        }
        if self.timeout < Duration::from_millis(50) {
            return refuse(format!("the timeout of {:?} is too short for an answer", self.timeout));
        }
        Ok(())
    }
}
