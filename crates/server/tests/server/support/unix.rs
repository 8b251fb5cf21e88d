//! Unix sockets.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use bulla_server::{Config, Listen};

/// The user who runs the test.
pub(crate) fn my_uid() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

pub(crate) fn unix_config(path: &Path) -> Config {
    let mut config = super::config();
    config.listen = vec![Listen { unix: Some(path.to_owned()), ..Listen::default() }];
    config
}

/// A connection with HTTP/1.1.
pub(crate) struct UnixClient(BufReader<UnixStream>);

impl UnixClient {
    pub(crate) fn connect(path: &Path) -> Self {
        Self(BufReader::new(UnixStream::connect(path).unwrap()))
    }

    /// The status of a request.
    pub(crate) fn get(&mut self, path: &str) -> u16 {
        write!(self.0.get_mut(), "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            status = status.or_else(|| line[9..12].parse().ok());
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        self.0.read_exact(&mut vec![0; length]).unwrap();
        status.unwrap()
    }
}
