//! Builds the Rust laboratory, once for each instruction set to which the official crate is
//! restricted.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{Context, build_program, quiet};

use super::harness::Kernel;

/// The kernels that this machine can run, each forced.
pub(crate) fn kernels(context: &Context, suite: &str) -> Result<Vec<Kernel>> {
    let names = quiet(Command::new(build(context, &Kernel::Default)?).args(["kernels", suite]))?;
    Ok(names.lines().map(|name| Kernel::Forced(name.to_owned())).collect())
}

/// The features of the laboratory that restrict the official crate to the instruction set of our
/// kernel.
fn peer_features(kernel: &Kernel) -> Result<&'static [&'static str]> {
    const X86: [&str; 4] = ["peer-no-avx512", "peer-no-avx2", "peer-no-sse41", "peer-no-sse2"];
    let Kernel::Forced(name) = kernel else { return Ok(&[]) };
    Ok(match name.as_str() {
        "x86_64/avx512" | "aarch64/neon" | "wasm32/simd128" => &[],
        "x86_64/avx2" => X86.split_at(1).0,
        "x86_64/sse4.1" => X86.split_at(2).0,
        "portable" if cfg!(target_arch = "aarch64") => &["peer-no-neon"],
        // The peer has no vector code for any other machine.
        "portable" if !cfg!(target_arch = "x86_64") => &[],
        "portable" => &X86,
        "powerpc64/vsx" | "s390x/vector" => &[],
        name => bail!("no kernel {name}; kernels are named as in x86_64/avx2, aarch64/neon, portable"),
    })
}

/// Builds the program of a package with the names and frames that a profiler needs, and returns its
/// path.
pub(crate) fn build_with_symbols(context: &Context, package: &str) -> Result<PathBuf> {
    let mut command = context.cargo();
    command.args(["build", "--quiet", "-p", package, "--profile", "flame"]);
    command.args([
        "--config",
        "profile.flame.inherits=\"dist\"",
        "--config",
        "profile.flame.debug=\"line-tables-only\"",
    ]);
    command.args(["--config", "profile.flame.strip=false"]);
    build_program(&mut command)
}

/// Builds the laboratory for `kernel`, and keeps the program under a separate name.
pub(crate) fn build(context: &Context, kernel: &Kernel) -> Result<PathBuf> {
    let features = peer_features(kernel)?;
    let mut command = context.cargo();
    command.args([
        "build",
        "--quiet",
        "--profile=dist",
        "-p",
        "bulla-lab",
        "--features",
        &features.join(","),
    ]);
    let built = build_program(&mut command)?;
    // The next build, for another peer, replaces cargo's own copy.
    let folder = context.target.join("lab");
    fs::create_dir_all(&folder)?;
    let name = [&["bulla-lab"], features].concat().join("-");
    let kept = folder.join(name);
    fs::copy(&built, &kept).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(kept)
}

/// Builds the Ed25519 peers, which are a separate workspace. Its script `rustc.sh` lists the crates
/// that are built only for this machine.
pub(crate) fn build_native(context: &Context, folder: &str) -> Result<PathBuf> {
    ensure!(
        has_ifma(),
        "two of the peers have code for AVX-512 IFMA alone, which this machine lacks: measure `cargo xtask bench ed25519` here"
    );
    let folder = context.root.join(folder);
    let target = context.target.join("native-peers");
    let mut command = context.cargo();
    command.args(["build", "--quiet", "--release", "--locked", "--target-dir"]).arg(target);
    command.env("RUSTC_WRAPPER", folder.join("rustc.sh")).env_remove("RUSTFLAGS").current_dir(&folder);
    build_program(&mut command)
}

#[cfg(target_arch = "x86_64")]
fn has_ifma() -> bool {
    std::arch::is_x86_feature_detected!("avx512ifma")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_ifma() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_is_held_to_the_kernels_instruction_set() {
        let features = |name: &str| peer_features(&Kernel::Forced(name.to_owned()));
        assert_eq!(peer_features(&Kernel::Default).unwrap(), &[] as &[&str]);
        assert!(features("x86_64/avx512").unwrap().is_empty());
        assert_eq!(features("x86_64/avx2").unwrap(), ["peer-no-avx512"]);
        assert_eq!(features("x86_64/sse4.1").unwrap(), ["peer-no-avx512", "peer-no-avx2"]);
        assert!(features("x86_64/avx3").is_err());
    }
}
