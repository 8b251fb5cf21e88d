//! Where things are: the root of the checkout and the build folder.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

/// The places that every command of xtask works with.
#[derive(Debug)]
pub(crate) struct Context {
    /// The root of the checkout: the folder of the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Cargo's build folder, wherever the environment put it.
    pub(crate) target: PathBuf,
}

impl Context {
    /// Asks cargo, so that a `CARGO_TARGET_DIR` or a `build.target-dir` of the user is honoured.
    pub(crate) fn find() -> Result<Self> {
        // Set by `cargo run`; a binary started by hand falls back on the current folder.
        let start = env::var_os("CARGO_MANIFEST_DIR").map_or_else(env::current_dir, |dir| Ok(dir.into()))?;
        let output = cargo(&start)
            .args(["metadata", "--format-version=1", "--no-deps"])
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let folder = |key: &str| {
            metadata[key].as_str().map(PathBuf::from).with_context(|| format!("cargo metadata has no {key}"))
        };
        Ok(Self { root: folder("workspace_root")?, target: folder("target_directory")? })
    }

    /// The folder into which tools of the tests are installed: inside the build folder, never the user's own.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// `cargo` in the root.
    pub(crate) fn cargo(&self) -> Command {
        cargo(&self.root)
    }
}

/// Runs `command`, a `cargo build` with any arguments, and returns the path of the program that it built.
///
/// # Errors
/// It does not build, or builds no program.
pub(crate) fn build_program(command: &mut Command) -> Result<PathBuf> {
    let output = command
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo build")?;
    ensure!(output.status.success(), "cargo build: {}", output.status);
    let messages = String::from_utf8_lossy(&output.stdout);
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo build names no program")
}

/// The cargo that started us, so that the toolchain stays the one of `rust-toolchain.toml`.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    command
}
