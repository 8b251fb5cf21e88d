//! Where the cluster is, and how to speak with it.

use std::time::Duration;

use secrecy::SecretString;

use crate::error::{Code, KmsError, Result};

/// Where an etcd cluster is, and which keystore in it is meant.
///
/// ```
/// use bulla_kms::EtcdOptions;
///
/// let etcd = EtcdOptions::new(["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"], "bulla/files");
/// assert_eq!(etcd.endpoints.len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// The client URLs of one or more nodes, `http://HOST:PORT` or `https://HOST:PORT`. When one does not answer, the
    /// next one is asked.
    pub endpoints: Vec<String>,
    /// The keystore's name in the cluster: 1 to 200 of `a-z A-Z 0-9 . _ - /`. Its rows are those whose keys begin with
    /// the prefix and a colon, which is what a role in etcd has to permit.
    pub prefix: String,
    /// How long to try before a request counts as failed. A change may need three requests: one that looks, one that writes, and
    /// one that finds out the result of a write without an answer.
    pub timeout: Duration,
    /// The user of etcd's authentication, where that is enabled.
    pub user: Option<EtcdUser>,
    /// For `https` endpoints.
    pub tls: Option<EtcdTls>,
}

/// A user of etcd's authentication.
#[derive(Clone, Debug)]
pub struct EtcdUser {
    /// The name.
    pub name: String,
    /// The password.
    pub password: SecretString,
}

/// How TLS connections authenticate both ends.
#[derive(Clone, Debug)]
pub struct EtcdTls {
    /// The certificates, in PEM, of the authorities that sign those of the nodes. No others are trusted.
    pub authorities: Vec<u8>,
    /// The client's certificate, if the nodes ask for one.
    pub identity: Option<EtcdIdentity>,
}

/// A client's certificate.
#[derive(Clone, Debug)]
pub struct EtcdIdentity {
    /// The certificate and those between it and its authority, in PEM.
    pub certificate: Vec<u8>,
    /// Its private key, in PEM.
    pub private_key: SecretString,
}

impl EtcdOptions {
    /// Endpoints and prefix, without user or TLS, and five seconds of patience.
    pub fn new<E: Into<String>>(endpoints: impl IntoIterator<Item = E>, prefix: impl Into<String>) -> Self {
        Self {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            prefix: prefix.into(),
            timeout: Duration::from_secs(5),
            user: None,
            tls: None,
        }
    }

    /// Refuses what cannot be meant, before anything is sent.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(KmsError::new(Code::InvalidArgument, message));
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
