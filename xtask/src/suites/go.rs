//! The suite of `go/`.

use std::{path::Path, process::Command};

use anyhow::{Result, bail};

use super::runner::Runner;
use crate::install;

/// The linter, pinned; `go run` fetches it through the module proxy.
const STATICCHECK: &str = "honnef.co/go/tools/cmd/staticcheck@v0.8.2";

pub(super) fn run(runner: &mut Runner<'_>) {
    let folder = runner.context.root.join("go");
    if let Err(error) = ready(&folder) {
        return runner.need("go", |_| Err(error));
    }
    runner.command("go vet", go(&folder).args(["vet", "./..."]));
    runner.command("go vet, purego", go(&folder).args(["vet", "-tags", "purego", "./..."]));
    runner.command("staticcheck", go(&folder).args(["run", STATICCHECK, "./..."]));
    runner.check("gofmt", |_| formatted(&folder));
    runner.go_test("go test", go(&folder).args(["test", "-json", "./..."]));
    runner.go_test("go test, purego", go(&folder).args(["test", "-json", "-tags", "purego", "./..."]));
}

fn ready(folder: &Path) -> Result<()> {
    if !folder.join("go.mod").is_file() {
        bail!("the folder go/ has no go.mod");
    }
    if !install::on_path("go") {
        bail!("go is missing: install Go 1.26 or newer from https://go.dev/dl/");
    }
    Ok(())
}

fn formatted(folder: &Path) -> Result<()> {
    let files = crate::process::quiet(Command::new("gofmt").args(["-l", "."]).current_dir(folder))?;
    if !files.trim().is_empty() {
        bail!("gofmt would change: {}", files.split_whitespace().collect::<Vec<_>>().join(", "));
    }
    Ok(())
}

fn go(folder: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(folder);
    command
}
