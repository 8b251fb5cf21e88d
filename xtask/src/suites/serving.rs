//! A `bulla serve` that runs, for those who ask it something.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result, bail};
use bulla_devtools::quiet;

/// A folder with a keystore, before a service runs on it.
pub(super) struct Prepared<'a> {
    bulla: &'a Path,
    folder: PathBuf,
}

impl<'a> Prepared<'a> {
    /// Makes a keystore in an empty folder.
    pub(super) fn new(bulla: &'a Path, folder: PathBuf) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let prepared = Self { bulla, folder };
        prepared.run(&["keys", "init"])?;
        Ok(prepared)
    }

    /// Runs the command `bulla` on the keystore.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String> {
        quiet(Command::new(self.bulla).args(arguments).arg("--keystore").arg(self.keystore()))
    }

    pub(super) fn keystore(&self) -> PathBuf {
        self.folder.join("keystore")
    }

    /// A file in the folder, beside the keystore.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The command that serves the keystore.
    pub(super) fn serve_command(&self) -> Command {
        let mut serve = Command::new(self.bulla);
        serve.args(["serve", "--keystore"]).arg(self.keystore());
        serve
    }

    /// Starts the service, with a token that permits these operations.
    pub(super) fn serve(&self, operations: &[&str]) -> Result<Serving> {
        let mut new = vec!["token", "new", "--expires-in", "1h"];
        new.extend(operations.iter().flat_map(|operation| ["--operation", operation]));
        let token = self.run(&new)?.trim().to_owned();
        Serving::start(self.serve_command().args(["--listen", "127.0.0.1:0"]), token)
    }
}

/// A service with its address, and a token that it knows.
pub(super) struct Serving {
    process: Child,
    pub(super) address: String,
    pub(super) token: String,
}

impl Serving {
    /// Starts a service with a keystore in memory, where every caller may do everything.
    pub(super) fn development(bulla: &Path) -> Result<Self> {
        Self::start(Command::new(bulla).args(["serve", "--dev", "--listen", "127.0.0.1:0"]), String::new())
    }

    fn start(serve: &mut Command, token: String) -> Result<Self> {
        let (mut service, [address]) = Self::listening_at(serve)?;
        (service.address, service.token) = (address, token);
        Ok(service)
    }

    /// Starts a service that listens at N addresses, and returns them in the order of its settings.
    pub(super) fn listening_at<const N: usize>(serve: &mut Command) -> Result<(Self, [String; N])> {
        let process =
            serve.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot start bulla serve")?;
        let mut service = Self { process, address: String::new(), token: String::new() };
        let addresses = service.addresses(N)?;
        let addresses = addresses.try_into().ok().context("the service listens elsewhere, too")?;
        Ok((service, addresses))
    }

    /// The addresses that the service logs when it listens.
    fn addresses(&mut self, count: usize) -> Result<Vec<String>> {
        let errors = self.process.stderr.take().context("the service has no standard error")?;
        let mut lines = BufReader::new(errors).lines();
        let (mut addresses, mut said) = (Vec::new(), Vec::new());
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, address)) = line.split_once("listening on ") {
                addresses.push(address.split('"').next().unwrap_or_default().to_owned());
                if addresses.len() == count {
                    // What it says later must not fill the pipe.
                    thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
                    return Ok(addresses);
                }
            }
            said.push(line);
        }
        bail!("bulla serve ended: {}", said.join("; "))
    }

    /// Tells a client where the service is, and its token, as clients of Vault and ours are told.
    pub(super) fn named_in<'a>(&self, client: &'a mut Command) -> &'a mut Command {
        client.env("VAULT_ADDR", &self.address).env("VAULT_TOKEN", &self.token);
        client.env("BULLA_ADDR", &self.address).env("BULLA_TOKEN", &self.token)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
