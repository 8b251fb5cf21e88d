//! The places of things: the root of the checkout and the build folder.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

/// The places that every command of xtask works with.
#[derive(Debug)]
pub struct Context {
    /// The root of the checkout: the folder of the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// Cargo's build folder, wherever the environment put it.
    pub target: PathBuf,
}

impl Context {
    /// The context of a known checkout and build folder.
    pub fn new(root: PathBuf, target: PathBuf) -> Self {
        Self { root, target }
    }

    /// Asks cargo, so that a `CARGO_TARGET_DIR` or a `build.target-dir` of the user is honored.
    pub fn find() -> Result<Self> {
        // `cargo run` sets it. For a binary started by hand, use the current folder.
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
        Ok(Self::new(folder("workspace_root")?, folder("target_directory")?))
    }

    /// The folder in which the tests' tools are installed. It is in the user's cache, so that each
    /// clone finds them, and never on the `PATH`. Without a home folder, it is the build folder.
    pub fn tools(&self) -> PathBuf {
        cache().unwrap_or_else(|| self.target.join("tools"))
    }

    /// `cargo` in the root.
    pub fn cargo(&self) -> Command {
        cargo(&self.root)
    }
}

/// Our folder in the user's cache.
pub(crate) fn cache() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache")));
    cache.map(|cache| cache.join("bulla-xtask"))
}

/// Runs `command`, a `cargo build` with any arguments, and returns the path of the program that it
/// built.
///
/// # Errors
/// It does not build, or builds no program.
pub fn build_program(command: &mut Command) -> Result<PathBuf> {
    let output = command
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo build")?;
    ensure!(output.status.success(), "cargo build: {}", output.status);
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs: Vec<_> =
        messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect();
    // The command, if it was built with the programs beside it.
    programs.sort_by_key(|program| program.file_stem().is_none_or(|name| name != "bulla"));
    programs.into_iter().next().context("cargo build names no program")
}

/// Whether cargo keeps what the next build of the same crate can take over.
const INCREMENTAL: &str = "CARGO_INCREMENTAL";

/// The cargo that started us, so that the toolchain stays the one of `rust-toolchain.toml`.
///
/// What it keeps for the next build of a crate, if the user does not ask for it, only costs time
/// here: most crates are built once.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(folder);
    if env::var_os(INCREMENTAL).is_none() {
        command.env(INCREMENTAL, "0");
    }
    // They name this program's package. The build script of the crate `ring` depends on them: with
    // them, it and what depends on it would be built again whenever the user builds without them.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}
