//! Requests to a service, one after another on one connection.

use std::{
    io::{BufRead as _, BufReader, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// A caller, and the connection that it keeps.
pub(super) struct Caller {
    stream: BufReader<Box<dyn Stream>>,
    /// The header that names the caller, or nothing.
    authorization: String,
}

trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

impl Caller {
    /// The holder of a token, at an address.
    pub(super) fn of(address: &str, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self::new(Box::new(stream), format!("authorization: Bearer {token}\r\n")))
    }

    /// This user, at a socket.
    pub(super) fn at(socket: &Path) -> Result<Self> {
        Ok(Self::new(Box::new(UnixStream::connect(socket)?), String::new()))
    }

    fn new(stream: Box<dyn Stream>, authorization: String) -> Self {
        Self { stream: BufReader::new(stream), authorization }
    }

    /// What the service answers to a request.
    ///
    /// # Errors
    /// The answer is no success; the connection breaks.
    pub(super) fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        let (status, answer) = self.ask("POST", path, &body.to_string())?;
        ensure!((200..300).contains(&status), "{path}: {status} {answer}");
        Ok(serde_json::from_str(&answer)?)
    }

    /// The status and the body of an answer.
    ///
    /// # Errors
    /// The connection breaks.
    pub(super) fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let (authorization, length) = (&self.authorization, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{authorization}content-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.read()
    }

    fn read(&mut self) -> Result<(u16, String)> {
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest.get(..3).and_then(|number| number.parse().ok());
            } else if let Some(number) = line.strip_prefix("content-length: ") {
                length = number.parse()?;
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status.context("the service answers no HTTP")?, String::from_utf8(body)?))
    }
}
