//! Unix sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use bulla_kms::token::TokenOperation;
use bulla_server::{CallerConfig, Config, ListenConfig};

use super::conforms::{Answered, conforms};

/// The user who runs the test.
pub(crate) fn my_uid() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

/// The user who runs the test, in the settings of a service: with these operations, or with all.
pub(crate) fn me(tenant: &str, operations: Option<&[TokenOperation]>) -> CallerConfig {
    CallerConfig {
        name: "me".to_owned(),
        uid: Some(my_uid()),
        certificate_sha256: None,
        tenant: super::name(tenant),
        operations: operations.map(<[TokenOperation]>::to_vec),
        keys: None,
        can_mint_tokens: false,
    }
}

pub(crate) fn unix_config(path: &Path) -> Config {
    let mut config = super::config();
    config.listen = vec![ListenConfig { unix: Some(path.to_owned()), ..ListenConfig::default() }];
    config
}

/// A connection with HTTP/1.1.
pub(crate) struct UnixClient(BufReader<UnixStream>);

impl UnixClient {
    pub(crate) fn connect(path: &Path) -> Self {
        Self(BufReader::new(UnixStream::connect(path).unwrap()))
    }

    /// The status of a request without a body.
    pub(crate) fn get(&mut self, path: &str) -> u16 {
        self.send("GET", path, "").0
    }

    /// The status and the body of the answer to a request.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> (u16, String) {
        self.send("POST", path, body)
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n");
        self.0.get_mut().write_all((head + body).as_bytes()).unwrap();
        let (mut status, mut length, mut content_type) = (None, 0, None);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            status = status.or_else(|| line[9..12].parse().ok());
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            content_type = content_type.or(line.strip_prefix("content-type: ").map(str::to_owned));
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        let (status, content_type) = (status.unwrap(), content_type.as_deref());
        conforms(&Answered { method, path, status, content_type, body: &body });
        (status, String::from_utf8(body).unwrap())
    }
}
