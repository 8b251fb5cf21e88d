//! Where the service listens.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use bulla_kms::{Code, KmsError, Result};
use serde::{Deserialize, Serialize};

/// One address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListenConfig {
    /// A socket address, for example `127.0.0.1:8200`.
    pub address: Option<SocketAddr>,
    /// The path of a Unix socket.
    pub unix: Option<PathBuf>,
    /// The permissions of the Unix socket in octal digits; `0600` by default.
    pub mode: Option<SocketMode>,
    /// TLS for the socket address.
    pub tls: Option<TlsConfig>,
}

/// TLS for an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate chain, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// The certificate authorities, in PEM, whose client certificates prove callers.
    /// Without one, clients show no certificate.
    pub client_ca: Option<PathBuf>,
}

/// The permissions of a Unix socket. A caller needs the permission to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SocketMode(u32);

impl SocketMode {
    /// The permission bits.
    pub fn bits(self) -> u32 {
        self.0
    }
}

impl Default for SocketMode {
    fn default() -> Self {
        Self(0o600)
    }
}

impl FromStr for SocketMode {
    type Err = KmsError;

    fn from_str(text: &str) -> Result<Self> {
        let is_octal = (3..=4).contains(&text.len()) && text.bytes().all(|b| (b'0'..=b'7').contains(&b));
        match u32::from_str_radix(text, 8) {
            Ok(bits) if is_octal && bits <= 0o777 => Ok(Self(bits)),
            _ => Err(invalid("the mode of a socket is three or four octal digits, at most 0777: \"0660\"")),
        }
    }
}

impl fmt::Display for SocketMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl TryFrom<String> for SocketMode {
    type Error = KmsError;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<SocketMode> for String {
    fn from(mode: SocketMode) -> Self {
        mode.to_string()
    }
}

impl ListenConfig {
    /// # Errors
    /// [`Code::InvalidArgument`] for settings that contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        match (&self.address, &self.unix) {
            (Some(_), None) if self.mode.is_some() => Err(invalid("`mode` is for a Unix socket")),
            (Some(_), None) => Ok(()),
            (None, Some(_)) if self.tls.is_some() => Err(invalid("a Unix socket takes no TLS")),
            // A name that begins with a zero byte is not in the file system, so no mode protects
            // it.
            (None, Some(path)) if path.as_os_str().as_encoded_bytes().contains(&0) => {
                Err(invalid("the path of a Unix socket has no zero bytes"))
            }
            (None, Some(path)) if path.as_os_str().is_empty() => {
                Err(invalid("the path of a Unix socket is empty"))
            }
            (None, Some(_)) => Ok(()),
            _ => Err(invalid("each [[listen]] has either `address` or `unix`")),
        }
    }

    /// The settings that need a new socket. Certificates do not.
    pub(super) fn socket(&self) -> impl PartialEq + use<'_> {
        (self.address, self.unix.as_deref(), self.mode, self.tls.is_some())
    }
}

fn invalid(message: &str) -> KmsError {
    KmsError::new(Code::InvalidArgument, message)
}
