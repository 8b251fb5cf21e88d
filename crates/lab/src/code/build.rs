//! Makes the compiled file whose kernels are read.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The target whose code is held to budgets. Others pass arguments or save registers differently, and so have other counts.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds the library of the kernels as a user's release build does, for [`TARGET`] whatever this machine is, and returns its path.
///
/// # Errors
/// It does not build; on a machine of another kind, perhaps because rustup has not installed the target.
pub fn library() -> Result<PathBuf> {
    // The cargo that started us, so that the toolchain stays the one of `rust-toolchain.toml`.
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--release", "--locked", "-p", "bulla-blake3", "--target", TARGET])
        // Without link-time optimisation the library holds machine code; with it, perhaps LLVM's own form only.
        .args(["--config", "profile.release.lto=\"off\"", "--message-format=json-render-diagnostics"])
        // Present but empty: no flags of the environment or of a configuration, such as another `target-cpu`.
        .env("CARGO_ENCODED_RUSTFLAGS", "")
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo build")?;
    ensure!(
        output.status.success(),
        "cannot build bulla-blake3 for {TARGET} ({}); if the target is missing: rustup target add {TARGET}",
        output.status
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "bulla_blake3")
        .find_map(|message| message["filenames"].as_array()?.iter().find_map(rlib))
        .context("cargo build names no library")
}

fn rlib(path: &Value) -> Option<PathBuf> {
    path.as_str().filter(|path| path.ends_with(".rlib")).map(PathBuf::from)
}
