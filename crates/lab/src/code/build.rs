//! Makes the compiled file whose kernels are read.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::kernels::LIBRARIES;

/// The target whose code is held to budgets. Others pass arguments or save registers differently, and so have other counts.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Ways in which the users of a library build it; the compiler inlines differently in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// Cargo's own release profile: sixteen units of code, which import small functions from each other. Linked programs with
    /// link-time optimisation have the same code in all but a few places.
    Default,
    /// One unit, as those set it who want the fastest code.
    One,
}

impl Units {
    /// A profile of its own, so that two builds at once do not replace each other's library.
    fn profile(self) -> (&'static str, u32) {
        match self {
            Self::Default => ("kernels", 16),
            Self::One => ("kernels-one-unit", 1),
        }
    }
}

/// Builds every library that has kernels, as [`library`] does.
///
/// # Errors
/// One does not build.
pub fn libraries(units: Units) -> Result<Vec<PathBuf>> {
    LIBRARIES.iter().map(|built| library(built.package, units)).collect()
}

/// Builds the library of a package as a user's release build does, for [`TARGET`] whatever this machine is, and returns its path.
///
/// # Errors
/// It does not build; on a machine of another kind, perhaps because rustup has not installed the target.
pub fn library(package: &str, units: Units) -> Result<PathBuf> {
    let (profile, count) = units.profile();
    // What a feature switches on is read as well.
    let features: &[&str] = if package == "bulla-ed25519" { &["--features", "lane-signing"] } else { &[] };
    // The cargo that started us, so that the toolchain stays the one of `rust-toolchain.toml`.
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "-p", package, "--target", TARGET, "--profile", profile])
        .args(features)
        .args(["--config", &format!("profile.{profile}.inherits=\"release\"")])
        .args(["--config", &format!("profile.{profile}.codegen-units={count}")])
        // What cargo does where a user sets nothing; with more, the library may hold LLVM's own form and no machine code.
        .args(["--config", &format!("profile.{profile}.lto=false")])
        .arg("--message-format=json-render-diagnostics")
        // Present but empty: no flags of the environment or of a configuration, such as another `target-cpu`.
        .env("CARGO_ENCODED_RUSTFLAGS", "")
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo build")?;
    ensure!(
        output.status.success(),
        "cannot build {package} for {TARGET} ({}); if the target is missing: rustup target add {TARGET}",
        output.status
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == package.replace('-', "_"))
        .find_map(|message| message["filenames"].as_array()?.iter().find_map(rlib))
        .context("cargo build names no library")
}

fn rlib(path: &Value) -> Option<PathBuf> {
    path.as_str().filter(|path| path.ends_with(".rlib")).map(PathBuf::from)
}
