//! Builds the same program in many ways: with different flags, with and without link-time
//! optimization, and with different features.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use bulla_devtools::{Context, build_program};

/// One way to build it.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Its name in tables.
    pub(crate) name: &'static str,
    /// The compiler's flags, separated by blanks.
    pub(crate) rustflags: &'static str,
    /// Arguments for cargo that choose features.
    pub(crate) features: &'static [&'static str],
}

/// The target of the build. It is given explicitly, so that flags do not apply to build scripts.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds the program `name` of the workspace in `folder`, below the root, and copies it to a place
/// where the next build does not replace it. `lto` is a profile's value.
///
/// # Errors
/// It does not build, or cannot be copied.
pub(crate) fn build(
    context: &Context,
    variant: &Variant,
    lto: &str,
    folder: &Path,
    name: &str,
) -> Result<PathBuf> {
    let kept = context.target.join("variants").join(folder.file_name().unwrap_or_default());
    let file_name = variant.name.replace([' ', ','], "-");
    let mut command = context.cargo();
    command
        .args(["build", "--quiet", "--release", "--locked", "--target", TARGET, "--bin", name])
        .arg("--manifest-path")
        .arg(context.root.join(folder).join("Cargo.toml"))
        // One folder for each variant: in a shared one, cargo would rebuild everything whenever the
        // flags change.
        .arg("--target-dir")
        .arg(kept.join(&file_name))
        .args(variant.features)
        .env("CARGO_PROFILE_RELEASE_LTO", lto)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            variant.rustflags.split_whitespace().collect::<Vec<_>>().join("\u{1f}"),
        );
    let built = build_program(&mut command)?;
    let program = kept.join(format!("{name}-{file_name}-{lto}"));
    fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(program)
}
