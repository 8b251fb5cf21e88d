//! A client with HTTP/1.1 over a Unix socket, or over TCP.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than any answer takes: the service itself gives up before.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Where a service listens.
#[derive(Clone, Debug)]
pub(crate) enum ListenAddress {
    Socket(PathBuf),
    Port(u16),
}

impl From<&Path> for ListenAddress {
    fn from(path: &Path) -> Self {
        Self::Socket(path.to_owned())
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A client that keeps its connection as long as the service does.
pub(crate) struct Client {
    place: ListenAddress,
    open: Option<BufReader<Box<dyn Stream>>>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

impl Answer {
    /// The revision in the answer.
    pub(crate) fn revision(&self) -> Option<u64> {
        self.headers.get("bulla-revision")?.parse().ok()
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or("")
    }

    pub(crate) fn is_ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Client {
    pub(crate) fn new(place: impl Into<ListenAddress>) -> Self {
        Self { place: place.into(), open: None }
    }

    /// # Errors
    /// The connection broke: nobody knows whether the request was answered.
    pub(crate) fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<Answer> {
        let mut stream = match self.open.take() {
            Some(stream) => stream,
            None => BufReader::new(self.connect()?),
        };
        let body = if *body == Value::Null { String::new() } else { body.to_string() };
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: bulla\r\n{headers}content-length: {length}\r\n\r\n");
        stream.get_mut().write_all((head + &body).as_bytes())?;
        let (answer, stays) = read(&mut stream)?;
        self.open = stays.then_some(stream);
        Ok(answer)
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Answer> {
        self.send("GET", path, &[], &Value::Null)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Answer> {
        self.send("POST", path, &[], body)
    }

    fn connect(&self) -> Result<Box<dyn Stream>> {
        Ok(match &self.place {
            ListenAddress::Socket(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(WAIT_TIMEOUT))?;
                Box::new(stream)
            }
            ListenAddress::Port(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port))?;
                stream.set_read_timeout(Some(WAIT_TIMEOUT))?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        })
    }
}

/// Reads an answer, and whether the connection stays open after it.
fn read(stream: &mut BufReader<Box<dyn Stream>>) -> Result<(Answer, bool)> {
    let (mut status, mut headers) = (0, BTreeMap::new());
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            let malformed = || Error::new(ErrorKind::InvalidData, "no status");
            status = rest.get(..3).and_then(|text| text.parse().ok()).ok_or_else(malformed)?;
        } else if let Some((name, value)) = line.split_once(": ") {
            headers.insert(name.to_owned(), value.to_owned());
        } else if line.is_empty() {
            break;
        }
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let stays = headers.get("connection").is_none_or(|value| value != "close");
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok((Answer { status, headers, body }, stays))
}
