//! The same program built in many ways: with other flags, without and with link-time optimisation, with other features.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::context::{Context, build_program};

/// One way to build it.
#[derive(Debug)]
pub(crate) struct Variant {
    /// What tables call it.
    pub(crate) name: &'static str,
    /// Flags of the compiler, blanks between them.
    pub(crate) rustflags: &'static str,
    /// Arguments for cargo that choose features.
    pub(crate) features: &'static [&'static str],
}

/// The target that is built for, named so that flags do not reach build scripts.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds the program `name` of the workspace in `folder`, below the root, and puts it where the next build does not replace it.
/// `lto` is what a profile takes.
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
        // One for each variant: in a common one cargo builds all anew whenever the flags are others.
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
