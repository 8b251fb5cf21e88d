//! The etcd cluster that the nodes of a service share.

#[cfg(feature = "etcd")]
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use bulla_kms::{Code, KmsError, Result};
use serde::{Deserialize, Serialize};

/// Where a keystore is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoreKind {
    /// In a file of the keystore's folder.
    #[default]
    File,
    /// In the etcd cluster of the table `[etcd]`, which any number of nodes share.
    Etcd,
}

/// The etcd cluster, and what a node does when it cannot reach the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EtcdConfig {
    /// The client URLs of all members: `https://HOST:PORT`, or `http://HOST:PORT` without TLS.
    pub endpoints: Vec<String>,
    /// The keystore's name in the cluster.
    pub prefix: String,
    /// The authorities of the members' certificates, in PEM. No others are trusted.
    pub ca: Option<PathBuf>,
    /// The client certificate, in PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    pub key: Option<PathBuf>,
    /// The user, if etcd's authentication is enabled.
    pub user: Option<String>,
    /// A file with the user's password in its first line. Only its owner may read it.
    pub password_file: Option<PathBuf>,
    /// How many seconds a request to the cluster may take.
    pub request_timeout_seconds: u64,
    /// For how many seconds a node uses private keys without an answer from the cluster.
    pub key_use_lease_seconds: u64,
    /// For how many milliseconds a request waits for the revision that it wants.
    pub revision_wait_milliseconds: u64,
}

impl Default for EtcdConfig {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            prefix: "bulla".to_owned(),
            ca: None,
            certificate: None,
            key: None,
            user: None,
            password_file: None,
            request_timeout_seconds: 5,
            key_use_lease_seconds: 10,
            revision_wait_milliseconds: 2000,
        }
    }
}

impl EtcdConfig {
    /// # Errors
    /// [`Code::InvalidArgument`] for settings that contradict each other, or a program without
    /// etcd.
    pub(super) fn check(&self, store: StoreKind) -> Result<()> {
        if store == StoreKind::File {
            return match *self == Self::default() {
                true => Ok(()),
                false => Err(invalid("needs `store = \"etcd\"` in [keystore]")),
            };
        }
        if !cfg!(feature = "etcd") {
            return Err(invalid("this program was built without etcd (the feature `etcd`)"));
        }
        if self.endpoints.is_empty() {
            return Err(invalid("name the members of the cluster by `endpoints`"));
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err(invalid("`certificate` and `key` belong together"));
        }
        if self.certificate.is_some() && self.ca.is_none() {
            return Err(invalid("a client certificate needs `ca`"));
        }
        if self.user.is_some() != self.password_file.is_some() {
            return Err(invalid("`user` and `password_file` belong together"));
        }
        if self.request_timeout_seconds == 0 || self.key_use_lease_seconds == 0 {
            return Err(invalid("`request_timeout_seconds` and `key_use_lease_seconds` must be at least 1"));
        }
        Ok(())
    }

    pub(crate) fn key_use_lease(&self) -> Duration {
        Duration::from_secs(self.key_use_lease_seconds)
    }

    pub(crate) fn revision_wait(&self) -> Duration {
        Duration::from_millis(self.revision_wait_milliseconds)
    }

    /// The options of connections, with the certificates and the password that the settings name.
    ///
    /// # Errors
    /// A file cannot be read; others than its owner may read the password's file.
    #[cfg(feature = "etcd")]
    pub fn options(&self) -> Result<bulla_kms::EtcdOptions> {
        use bulla_kms::{EtcdClientCertificate, EtcdOptions, EtcdTls, EtcdUser, SecretString};
        let text = |path: &Path| -> Result<SecretString> {
            let not_text = |_| invalid(format!("{} is not text", path.display()));
            Ok(SecretString::from(String::from_utf8(read(path)?).map_err(not_text)?))
        };
        let client_certificate = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                Some(EtcdClientCertificate { certificate: read(certificate)?, private_key: text(key)? })
            }
            _ => None,
        };
        let tls = match &self.ca {
            Some(ca) => Some(EtcdTls::new(read(ca)?).client_certificate(client_certificate)),
            None => None,
        };
        let user = match (&self.user, &self.password_file) {
            (Some(name), Some(file)) => Some(EtcdUser { name: name.clone(), password: password(file)? }),
            _ => None,
        };
        let timeout = Duration::from_secs(self.request_timeout_seconds);
        Ok(EtcdOptions::new(self.endpoints.clone(), &self.prefix).timeout(timeout).user(user).tls(tls))
    }
}

/// The first line of a file that only its owner may read.
#[cfg(feature = "etcd")]
fn password(path: &Path) -> Result<bulla_kms::SecretString> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let cannot = |error| KmsError::new(Code::Io, format!("cannot read {}: {error}", path.display()));
        if std::fs::metadata(path).map_err(cannot)?.permissions().mode() & 0o077 != 0 {
            let message = format!("others may read {}: only its owner may", path.display());
            return Err(KmsError::new(Code::KeyFileMode, message));
        }
    }
    let bytes = zeroize::Zeroizing::new(read(path)?);
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let not_text = |_| invalid(format!("{} is not text", path.display()));
    match std::str::from_utf8(line).map_err(not_text)? {
        "" => Err(invalid(format!("the first line of {} is empty", path.display()))),
        password => Ok(password.into()),
    }
}

#[cfg(feature = "etcd")]
fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Io };
        KmsError::new(code, format!("cannot read {}: {error}", path.display()))
    })
}

fn invalid(message: impl std::fmt::Display) -> KmsError {
    KmsError::new(Code::InvalidArgument, format!("[etcd]: {message}"))
}

#[cfg(all(test, feature = "etcd"))]
mod tests {
    use super::*;

    fn config() -> EtcdConfig {
        EtcdConfig { endpoints: vec!["http://127.0.0.1:1".to_owned()], ..EtcdConfig::default() }
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        config().check(StoreKind::Etcd).unwrap();
        let some = || Some(PathBuf::from("a"));
        for wrong in [
            EtcdConfig { endpoints: Vec::new(), ..config() },
            EtcdConfig { certificate: some(), ca: some(), ..config() },
            EtcdConfig { key: some(), ca: some(), ..config() },
            EtcdConfig { certificate: some(), key: some(), ..config() },
            EtcdConfig { user: Some("a".to_owned()), ..config() },
            EtcdConfig { password_file: some(), ..config() },
            EtcdConfig { request_timeout_seconds: 0, ..config() },
            EtcdConfig { key_use_lease_seconds: 0, ..config() },
        ] {
            assert_eq!(wrong.check(StoreKind::Etcd).unwrap_err().code, Code::InvalidArgument, "{wrong:?}");
        }
        assert_eq!(config().check(StoreKind::File).unwrap_err().code, Code::InvalidArgument);
        EtcdConfig::default().check(StoreKind::File).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_password_is_the_first_line_of_a_file_that_only_its_owner_reads() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        std::fs::write(&path, "geheim\r\nmore").unwrap();
        let named =
            || EtcdConfig { user: Some("bulla".to_owned()), password_file: Some(path.clone()), ..config() };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(named().options().unwrap_err().code, Code::KeyFileMode);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let user = named().options().unwrap().user.unwrap();
        assert_eq!(secrecy::ExposeSecret::expose_secret(&user.password), "geheim");
        std::fs::write(&path, "\n").unwrap();
        assert_eq!(named().options().unwrap_err().code, Code::InvalidArgument);
        std::fs::remove_file(&path).unwrap();
        assert!(named().options().is_err());
    }
}
