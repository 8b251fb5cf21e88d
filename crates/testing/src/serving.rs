//! A service as a process of its own, with a Unix socket in the working folder on which this user
//! may do everything.

use crate::{Home, bulla};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A service, which is killed when it is dropped.
pub struct Serving<'a> {
    pub home: &'a Home,
    child: Child,
}

impl<'a> Serving<'a> {
    /// Starts the service with the settings in `serve.toml`, which [`settings`] writes, and waits
    /// until it listens.
    pub fn start(home: &'a Home) -> Self {
        Self::run(home, &mut Self::command(home))
    }

    /// The command. It reacts to signals even if the test's parent ignores them.
    pub fn command(home: &Home) -> Command {
        let mut command = home.program("env");
        command.args(["--default-signal=HUP,INT,TERM", bulla(), "serve", "--config", "serve.toml"]);
        command
    }

    pub fn run(home: &'a Home, command: &mut Command) -> Self {
        let log = fs::File::create(home.path("log")).expect("a file for the log");
        let child = command.stderr(log).stdout(Stdio::null()).spawn().expect("the service starts");
        let mut serving = Self { home, child };
        serving.wait_for("listening on unix:socket");
        serving
    }

    /// The lines that the service has logged.
    pub fn log(&self) -> String {
        String::from_utf8(self.home.read("log")).expect("the log is text")
    }

    /// Waits until the log has `text` in it.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        while !self.log().contains(text) {
            if let Some(status) = self.child.try_wait().expect("the service is there") {
                assert!(self.log().contains(text), "{status}:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the service is there");
    }

    /// Waits for the end.
    pub fn ends(&mut self) -> ExitStatus {
        self.child.wait().expect("the service ends")
    }

    pub fn connect(&self) -> Connection {
        let path = self.home.path("socket");
        Connection(BufReader::new(UnixStream::connect(path).expect("the service listens")))
    }

    /// One request over a connection of its own.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.connect().send("POST", path, &[], body).expect("an answer")
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        // It may have ended by now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes the settings of a service with a socket, and `more`.
pub fn settings(home: &Home, more: &str) {
    let uid = rustix::process::getuid().as_raw();
    let identity = format!("[[caller]]\nname = \"me\"\ntenant = \"local\"\nuid = {uid}\n");
    home.write("serve.toml", format!("{more}\n[[listen]]\nunix = \"socket\"\n{identity}"));
}

/// A connection with HTTP/1.1.
pub struct Connection(pub BufReader<UnixStream>);

impl Connection {
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<(u16, Value)> {
        let body = body.to_string();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        // In one piece: the service may answer, and close, before it has read the body.
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: a\r\n{headers}content-length: {length}\r\n\r\n");
        self.0.get_mut().write_all((head + &body).as_bytes())?;
        self.answer()
    }

    /// Reads an answer.
    pub fn answer(&mut self) -> Result<(u16, Value)> {
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().expect("a status");
            } else if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().expect("a length");
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }
}
