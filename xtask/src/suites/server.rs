//! The suite of `crates/server`: its own tests, and Vault's clients, as they are, against a service that runs.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    go::{formatted, go},
    programs,
    runner::Runner,
    server_ops, server_page,
};
use crate::{context::Context, install, process::quiet};

/// What the clients' token permits.
const OPERATIONS: [&str; 7] = ["sign", "verify", "create", "rotate", "update", "destroy", "read"];

pub(super) fn run(runner: &mut Runner<'_>) {
    server_ops::run(runner);
    runner.programs(|package| package == "bulla-server");
    let bulla = match programs::built(runner.context) {
        Ok(programs) => programs.command.clone(),
        Err(error) => return runner.need("bulla", |_| Err(error)),
    };
    server_page::run(runner, &bulla);
    let service = match Service::start(&bulla, &runner.context.target.join("service-clients")) {
        Ok(service) => service,
        Err(error) => return runner.need("bulla serve", |_| Err(error)),
    };
    let mut ours = go(&runner.context.root.join("go"));
    ours.args(["test", "-json", "-count=1", "-tags=service", "-run=TestAgainstTheService", "./kms"]);
    runner.go_test("go test, our client for Go", service.named_in(&mut ours));
    let clients = runner.context.root.join("crates/server/tests/clients");
    runner
        .check("hvac, Vault's client for Python", |context| hvac(context, &clients.join("python"), &service));
    let folder = clients.join("go");
    runner.check("gofmt, Vault's client for Go", |_| formatted(&folder));
    runner.command("go vet, Vault's client for Go", go(&folder).args(["vet", "./..."]));
    // Go would take the results of a service that ran before.
    let mut test = go(&folder);
    test.args(["test", "-json", "-count=1", "./..."]);
    runner.go_test("go test, Vault's client for Go", service.named_in(&mut test));
}

fn hvac(context: &Context, folder: &Path, service: &Service) -> Result<()> {
    let python = install::python_packages(context, "python-vault", &folder.join("requirements.txt"))?;
    let said = quiet(service.named_in(Command::new(python).arg("-B").arg(folder.join("test_hvac.py"))))?;
    print!("{said}");
    let passed = said.lines().filter(|line| line.ends_with("... ok")).count();
    ensure!(passed >= 11, "only {passed} tests passed");
    Ok(())
}

/// A `bulla serve` with a keystore and a token of its own.
struct Service {
    process: Child,
    address: String,
    token: String,
}

impl Service {
    /// Starts one in an empty folder.
    fn start(bulla: &Path, folder: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let (keystore, token) = (folder.join("keystore"), folder.join("token"));
        quiet(Command::new(bulla).args(["keys", "init", "--keystore"]).arg(&keystore))?;
        let mut new = Command::new(bulla);
        new.args(["token", "new", "--expires-in", "1h", "--keystore"]).arg(&keystore);
        new.args(OPERATIONS.iter().flat_map(|operation| ["--operation", operation]))
            .arg("--output")
            .arg(&token);
        quiet(&mut new)?;
        let mut serve = Command::new(bulla);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--keystore"]).arg(&keystore);
        let process =
            serve.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().context("cannot start bulla serve")?;
        let token = fs::read_to_string(&token)?.trim().to_owned();
        let mut service = Self { process, address: String::new(), token };
        service.address = service.listening()?;
        Ok(service)
    }

    /// Where it listens, as it says when it does.
    fn listening(&mut self) -> Result<String> {
        let errors = self.process.stderr.take().context("the service has no standard error")?;
        let mut lines = BufReader::new(errors).lines();
        let mut said = Vec::new();
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, address)) = line.split_once("listening on ") {
                // What it says later must not fill the pipe.
                let address = address.split('"').next().unwrap_or_default().to_owned();
                thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
                return Ok(address);
            }
            said.push(line);
        }
        bail!("bulla serve ended: {}", said.join("; "))
    }

    /// Tells a client where the service is, and its token, as clients of Vault and ours are told.
    fn named_in<'a>(&self, client: &'a mut Command) -> &'a mut Command {
        client.env("VAULT_ADDR", &self.address).env("VAULT_TOKEN", &self.token);
        client.env("BULLA_SERVER", &self.address).env("BULLA_TOKEN", &self.token)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
