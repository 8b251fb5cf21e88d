//! A running service, on a processor of its own.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::cases::{KEYS, label};
use crate::{
    context::{Context, build_program},
    process::quiet,
};

/// The processor of the service; the load has the next one.
pub(super) const SERVICE: &str = "0";
pub(super) const LOAD: &str = "1";

/// Whether there is an audit log, and when its entries are on the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Audit {
    Off,
    AtCheckpoints,
    Grouped,
}

impl Audit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::AtCheckpoints => "at checkpoints",
            Self::Grouped => "grouped",
        }
    }
}

/// The command, built for speed.
pub(super) struct Built {
    program: PathBuf,
    folder: PathBuf,
}

impl Built {
    pub(super) fn new(context: &Context) -> Result<Self> {
        let mut build = context.cargo();
        build.args(["build", "--profile", "dist", "-p", "bulla"]);
        let folder = context.target.join("bench-service");
        Ok(Self { program: build_program(&mut build)?, folder })
    }
}

/// A service that runs until it is dropped.
pub(super) struct Served {
    process: Child,
    pub(super) address: String,
    pub(super) token: String,
    /// Where requests are written for the programs that make the load.
    pub(super) folder: PathBuf,
}

impl Served {
    /// A new keystore with its keys and a token for them, and a service over it.
    pub(super) fn start(built: &Built, audit: Audit) -> Result<Self> {
        let folder = built.folder.join(audit.name().replace(' ', "-"));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let keystore = folder.join("keystore");
        let bulla = |arguments: &[&str]| {
            quiet(Command::new(&built.program).args(arguments).env("BULLA_KEYSTORE", &keystore))
        };
        bulla(&["keys", "init"])?;
        if audit != Audit::Off {
            bulla(&["audit-log", "init"])?;
        }
        let operations = ["--operation", "sign", "--operation", "verify", "--operation", "create"];
        let token = bulla(&[&["token", "new", "--expires-in", "1d"], &operations[..]].concat())?;
        let address = format!("127.0.0.1:{}", TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let mut command = Command::new("taskset");
        command.args(["-c", SERVICE]).arg(&built.program).args(["serve", "--listen", &address]);
        command.env("BULLA_KEYSTORE", &keystore).env("BULLA_SERVE__SERVICE__THREADS", "1");
        if audit == Audit::AtCheckpoints {
            command.env("BULLA_SERVE__AUDIT__DURABILITY", "at-checkpoints");
        }
        let process =
            command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().context("cannot start taskset")?;
        let served = Self { process, address, token: token.trim().to_owned(), folder };
        served.wait()?;
        for key in 0..KEYS {
            served.post("/api/v1/keys", &serde_json::json!({ "label": label(key) }))?;
        }
        Ok(served)
    }

    fn wait(&self) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            ensure!(start.elapsed() < Duration::from_secs(30), "the service does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What the service answers to one request.
    pub(super) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let (mut stream, body) = (TcpStream::connect(&self.address)?, body.to_string());
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("the service answers no HTTP")?;
        ensure!(head.starts_with("HTTP/1.1 20"), "{path}: {head}\n{body}");
        Ok(serde_json::from_str(body)?)
    }

    /// The memory that the service holds, in MB.
    pub(super) fn memory(&self) -> Result<f64> {
        let status =
            fs::read_to_string(Path::new("/proc").join(self.process.id().to_string()).join("status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kilobytes / 1000.0)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It is measured and holds nothing that matters.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
