//! Builds the compiled file whose kernels are checked.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::kernels::LIBRARIES;

/// The target whose code has budgets. Other targets pass arguments or save registers differently,
/// so their counts differ.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Ways in which users build a library. The compiler inlines differently in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// Cargo's own release profile: sixteen codegen units, which import small functions from each
    /// other. Linked programs with link-time optimization have the same code in all but a few
    /// places.
    Default,
    /// One codegen unit, for users who want the fastest code.
    One,
}

impl Units {
    /// A separate profile, so that two simultaneous builds do not replace each other's library.
    fn profile(self) -> (&'static str, u32) {
        match self {
            Self::Default => ("kernels", 16),
            Self::One => ("kernels-one-unit", 1),
        }
    }
}

/// Builds every library with kernels like a user's release build, for [`TARGET`] on any machine,
/// and returns their paths in the order of [`LIBRARIES`].
///
/// # Errors
/// A library does not build; on another kind of machine, perhaps because rustup has not installed
/// the target.
pub fn libraries(units: Units) -> Result<Vec<PathBuf>> {
    let (profile, count) = units.profile();
    // The cargo that started this program, so that the toolchain is the one of
    // `rust-toolchain.toml`.
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--target", TARGET, "--profile", profile])
        // All in one build, so that none waits for the last function of another.
        .args(LIBRARIES.iter().flat_map(|library| ["-p", library.package]))
        // The code that a feature enables is checked too.
        .args(["--features", "bulla-ed25519/lane-signing"])
        .args(["--config", &format!("profile.{profile}.inherits=\"release\"")])
        .args(["--config", &format!("profile.{profile}.codegen-units={count}")])
        // Cargo's default. With more, the library may contain LLVM's own form instead of machine
        // code.
        .args(["--config", &format!("profile.{profile}.lto=false")])
        .arg("--message-format=json-render-diagnostics")
        // Set, but empty: this overrides flags from the environment or a configuration, such as
        // another `target-cpu`.
        .env("CARGO_ENCODED_RUSTFLAGS", "")
        // A test runner that prints times sets it.
        .env_remove("RUSTC_BOOTSTRAP")
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo build")?;
    ensure!(
        output.status.success(),
        "cannot build the libraries for {TARGET} ({}); if the target is missing: rustup target add {TARGET}",
        output.status
    );
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    LIBRARIES.iter().map(|library| built(library.package, &messages)).collect()
}

/// Builds all libraries like [`libraries`], and returns the path of one package's library.
///
/// # Errors
/// The errors of [`libraries`]; there is no such package among them.
pub fn library(package: &str, units: Units) -> Result<PathBuf> {
    let place = LIBRARIES.iter().position(|library| library.package == package);
    let place = place.with_context(|| format!("{package} has no kernels"))?;
    Ok(libraries(units)?.swap_remove(place))
}

/// The library of a package, from cargo's messages about its build.
fn built(package: &str, messages: &[Value]) -> Result<PathBuf> {
    messages
        .iter()
        .filter(|message| message["target"]["name"] == package.replace('-', "_"))
        .find_map(|message| message["filenames"].as_array()?.iter().find_map(rlib))
        .with_context(|| format!("cargo build names no library of {package}"))
}

fn rlib(path: &Value) -> Option<PathBuf> {
    path.as_str().filter(|path| path.ends_with(".rlib")).map(PathBuf::from)
}
