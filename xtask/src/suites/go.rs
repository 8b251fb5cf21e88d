//! The suite of `go/`: every Go module below it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use ignore::WalkBuilder;

use super::runner::Runner;
use crate::{install, process::quiet};

/// The linter, pinned; `go run` fetches it through the module proxy.
const STATICCHECK: &str = "honnef.co/go/tools/cmd/staticcheck@v0.8.2";

/// One Go module.
struct Module {
    /// Its folder as people know it, such as `go/bench`.
    name: String,
    folder: PathBuf,
    has_tests: bool,
    has_purego: bool,
}

pub(super) fn run(runner: &mut Runner<'_>) {
    let modules = match modules(&runner.context.root) {
        Ok(modules) => modules,
        Err(error) => return runner.need("go", |_| Err(error)),
    };
    for module in modules {
        let name = &module.name;
        let go = || go(&module.folder);
        runner.check(&format!("gofmt, {name}"), |_| formatted(&module.folder));
        runner.command(&format!("go vet, {name}"), go().args(["vet", "./..."]));
        runner.command(&format!("staticcheck, {name}"), go().args(["run", STATICCHECK, "./..."]));
        if module.has_tests {
            runner.go_test(&format!("go test, {name}"), go().args(["test", "-json", "./..."]));
        }
        if module.has_purego {
            runner.command(&format!("go vet, purego, {name}"), go().args(["vet", "-tags=purego", "./..."]));
            let mut test = go();
            test.args(["test", "-json", "-tags=purego", "./..."]);
            runner.go_test(&format!("go test, purego, {name}"), &mut test);
        }
    }
}

/// All modules, the main one first.
fn modules(root: &Path) -> Result<Vec<Module>> {
    if !install::on_path("go") {
        bail!("go is missing: install Go 1.26 or newer from https://go.dev/dl/");
    }
    let mut files = Vec::new();
    for entry in WalkBuilder::new(root.join("go")).hidden(false).require_git(false).build() {
        files.push(entry?.into_path());
    }
    let folders = files.iter().filter(|file| file.ends_with("go.mod")).filter_map(|file| file.parent());
    let mut folders: Vec<_> = folders.map(Path::to_owned).collect();
    folders.sort();
    if folders.is_empty() {
        bail!("the folder go/ has no go.mod");
    }
    let belongs = |file: &Path, folder: &Path| {
        folders.iter().filter(|other| file.starts_with(other)).max_by_key(|other| other.as_os_str().len())
            == Some(&folder.to_owned())
    };
    let mut modules = Vec::new();
    for folder in &folders {
        let own: Vec<_> = files.iter().filter(|file| belongs(file, folder)).collect();
        let is_go = |file: &&&PathBuf| file.extension().is_some_and(|extension| extension == "go");
        let mut has_purego = false;
        for file in own.iter().filter(is_go) {
            let source =
                std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            has_purego |=
                source.lines().any(|line| line.starts_with("//go:build ") && line.contains("purego"));
        }
        modules.push(Module {
            name: folder.strip_prefix(root)?.display().to_string(),
            has_tests: own.iter().any(|file| file.to_string_lossy().ends_with("_test.go")),
            has_purego,
            folder: folder.clone(),
        });
    }
    Ok(modules)
}

fn formatted(folder: &Path) -> Result<()> {
    let files = quiet(Command::new("gofmt").args(["-l", "."]).current_dir(folder))?;
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
