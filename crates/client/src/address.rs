//! The address of a service.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hyper::Uri;

use crate::error::{Error, Result};

/// The address of a service: `https://HOST[:PORT]`, `http://HOST[:PORT]`, or `unix:PATH` for a Unix
/// socket.
///
/// The first two may have a path, for a service behind a proxy.
///
/// ```
/// use bulla_client::Address;
///
/// # fn main() -> bulla_client::Result<()> {
/// let address: Address = "https://keys.example.org:8200".parse()?;
/// assert_eq!(address.to_string(), "https://keys.example.org:8200");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(AddressKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum AddressKind {
    Network(Network),
    Unix(PathBuf),
}

/// A host, its encryption, and the prefix of all paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) encryption: Encryption,
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    authority: String,
    prefix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    None,
    Tls,
}

/// What to connect to.
pub(crate) enum Peer<'a> {
    Network(&'a Network),
    Unix(&'a Path),
}

impl Address {
    /// Whether others can read the traffic: it is not encrypted, and leaves this machine.
    ///
    /// ```
    /// # fn main() -> bulla_client::Result<()> {
    /// let address: bulla_client::Address = "http://keys.example.org".parse()?;
    /// assert!(address.is_exposed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_exposed(&self) -> bool {
        let AddressKind::Network(Network { encryption: Encryption::None, host, .. }) = &self.0 else {
            return false;
        };
        let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        !is_loopback && host != "localhost"
    }

    pub(crate) fn peer(&self) -> Peer<'_> {
        match &self.0 {
            AddressKind::Network(network) => Peer::Network(network),
            AddressKind::Unix(path) => Peer::Unix(path),
        }
    }

    /// The value of the header `Host`.
    pub(crate) fn host(&self) -> &str {
        match &self.0 {
            AddressKind::Network(network) => &network.authority,
            AddressKind::Unix(_) => "localhost",
        }
    }

    /// The prefix of all paths, without a slash at its end.
    pub(crate) fn prefix(&self) -> &str {
        match &self.0 {
            AddressKind::Network(network) => &network.prefix,
            AddressKind::Unix(_) => "",
        }
    }
}

impl FromStr for Address {
    type Err = Error;

    /// The error does not quote the text, because it may contain a password.
    fn from_str(text: &str) -> Result<Self> {
        let invalid = || {
            let forms = "write https://HOST:PORT, http://HOST:PORT or unix:PATH";
            Error::invalid_argument(format!("this is not the address of a service: {forms}"))
        };
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(invalid()) } else { Ok(Self(AddressKind::Unix(path.into()))) };
        }
        let uri: Uri = text.parse().map_err(|_| invalid())?;
        let (encryption, port) = match uri.scheme_str() {
            Some("https") => (Encryption::Tls, 443),
            Some("http") => (Encryption::None, 80),
            _ => return Err(invalid()),
        };
        let authority = uri.authority().ok_or_else(invalid)?;
        let has_user = authority.as_str().contains('@');
        if has_user || uri.query().is_some() || text.contains('#') || authority.host().is_empty() {
            return Err(invalid());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("") => port,
            _ => authority.port_u16().ok_or_else(invalid)?,
        };
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Self(AddressKind::Network(Network {
            encryption,
            host,
            port,
            authority: authority.to_string(),
            prefix,
        })))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            AddressKind::Unix(path) => write!(f, "unix:{}", path.display()),
            AddressKind::Network(Network { encryption, authority, prefix, .. }) => {
                let scheme = if *encryption == Encryption::Tls { "https" } else { "http" };
                write!(f, "{scheme}://{authority}{prefix}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (text, tls, host, port, prefix) in [
            ("http://127.0.0.1:8200", false, "127.0.0.1", 8200, ""),
            ("https://keys.example.org", true, "keys.example.org", 443, ""),
            ("http://keys.example.org/", false, "keys.example.org", 80, ""),
            ("https://[::1]:8200", true, "::1", 8200, ""),
            ("https://[2001:db8::1]", true, "2001:db8::1", 443, ""),
            ("https://keys.example.org:1/a/b/", true, "keys.example.org", 1, "/a/b"),
        ] {
            let address: Address = text.parse().unwrap();
            let Peer::Network(network) = address.peer() else { panic!("{text}") };
            assert_eq!(network.encryption == Encryption::Tls, tls, "{text}");
            assert_eq!((network.host.as_str(), network.port), (host, port), "{text}");
            assert_eq!(address.prefix(), prefix, "{text}");
            assert_eq!(address.to_string(), text.trim_end_matches('/'));
        }
    }

    #[test]
    fn sockets_are_paths() {
        for (text, path) in [("unix:/run/a", "/run/a"), ("unix:a", "a"), ("unix:///run/a", "/run/a")] {
            let address: Address = text.parse().unwrap();
            assert!(matches!(address.peer(), Peer::Unix(found) if found == Path::new(path)), "{text}");
            assert!(!address.is_exposed());
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_not_quoted() {
        for text in [
            "",
            "unix:",
            "keys.example.org",
            "keys.example.org:8200",
            "ftp://keys.example.org",
            "http://",
            "http://:8200",
            "http://user:hunter2@keys.example.org",
            "http://keys.example.org:port",
            "http://keys.example.org:",
            "http://keys.example.org:99999",
            "http://keys.example.org/?a=hunter2",
            "http://keys.example.org/#hunter2",
            "http://keys example.org",
        ] {
            let error = text.parse::<Address>().expect_err(text);
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn only_networks_without_tls_expose() {
        for (text, exposed) in [
            ("http://keys.example.org", true),
            ("http://10.0.0.1", true),
            ("https://keys.example.org", false),
            ("http://127.0.0.2:1", false),
            ("http://[::1]", false),
            ("http://localhost", false),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().is_exposed(), exposed, "{text}");
        }
    }
}
