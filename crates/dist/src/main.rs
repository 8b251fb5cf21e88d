//! `cargo xtask dist`: what a release consists of, and whether it could be published. Nothing here
//! publishes anything.
//!
//! `docs/decisions/0226-what-a-release-ships.md` has the reasons, and `RELEASING.md` the order of
//! the commands.
#![forbid(unsafe_code)]

mod archive;
mod build;
mod check;
mod deb;
mod files;
mod launcher;
mod manifests;
mod pages;
mod platform;
mod registries;
mod sbom;
mod semver;
mod sign;
mod source;
mod trial;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use bulla_devtools::Context;
use clap::{Parser, Subcommand};

use self::{platform::Platform, registries::Registry};

/// Builds and checks what a release consists of; publishes nothing.
#[derive(Parser)]
#[command(name = "cargo xtask dist", bin_name = "cargo xtask dist")]
struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build the archives, the Debian package and the bills of materials of HEAD
    Build {
        /// The platforms [default: all]
        #[arg(long, value_enum, value_name = "TRIPLE")]
        target: Vec<Platform>,
        /// Where the files go; the folder must be empty or absent [default: `dist` in the build
        /// folder]
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Write the checksums of a folder of files to publish, and sign them with bulla and with
    /// minisign
    Sign {
        /// The folder that `build` wrote
        folder: PathBuf,
        /// The secret key of minisign
        #[arg(long, value_name = "FILE")]
        minisign_key: PathBuf,
        /// The label of the key in your keystore; BULLA_KEYSTORE and similar variables say where
        /// that is
        #[arg(long, value_name = "LABEL", default_value = "release")]
        key: String,
        /// The command that signs [default: the one in the folder's archive for this machine]
        #[arg(long, value_name = "FILE")]
        bulla: Option<PathBuf>,
    },
    /// Build everything twice, in two folders, compare the bytes, and use and sign what was built
    Check {
        /// The platforms [default: all]
        #[arg(long, value_enum, value_name = "TRIPLE")]
        target: Vec<Platform>,
    },
    /// Use the files of a folder that `build` wrote: install or unpack each, run it, remove it (a
    /// part of `check`)
    Try {
        /// The folder
        folder: PathBuf,
        /// The platforms [default: all]
        #[arg(long, value_enum, value_name = "TRIPLE")]
        target: Vec<Platform>,
    },
    /// Do everything that publishing in the registries does, except the upload, and use the
    /// packages
    Registries {
        /// The registries [default: all]
        #[arg(long, value_enum, value_name = "NAME")]
        only: Vec<Registry>,
    },
    /// Check that the version says what changed for callers of the libraries since the release
    /// before (a part of `registries`)
    Semver,
    /// Check that all packages have the same version, and what their registries require (a part of
    /// the suite `tidy`)
    Manifests,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Something is missing, does not build, or is not as it should be.
fn run(args: &Args) -> Result<()> {
    let context = Context::find()?;
    match &args.command {
        Action::Build { target, out } => {
            let out = out.clone().unwrap_or_else(|| context.target.join("dist-files"));
            build::all(&context, &platforms(target), &out)?;
        }
        Action::Sign { folder, minisign_key, key, bulla } => {
            let bulla = bulla.clone().map_or_else(|| sign::own_command(&context, folder), Ok)?;
            sign::sign(folder, &sign::Signers { bulla: &bulla, key, minisign_key, environment: &[] })?;
        }
        Action::Check { target } => check::run(&context, &platforms(target))?,
        Action::Try { folder, target } => trial::all(&context, &platforms(target), folder)?,
        Action::Registries { only } => registries::run(&context, only)?,
        Action::Semver => semver::run(&context)?,
        Action::Manifests => manifests::check(&context)?,
    }
    Ok(())
}

/// The named platforms, or all.
fn platforms(named: &[Platform]) -> Vec<Platform> {
    if named.is_empty() { Platform::ALL.to_vec() } else { named.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_builds_every_platform() {
        let root = Context::find().unwrap().root;
        let workflow = std::fs::read_to_string(root.join(".github/workflows/release.yml")).unwrap();
        let after = workflow.lines().skip_while(|line| line.trim() != "target:").skip(1);
        let mut listed: Vec<_> = after.map_while(|line| line.trim().strip_prefix("- ")).collect();
        let mut built: Vec<_> = Platform::ALL.iter().map(|platform| platform.triple()).collect();
        listed.sort_unstable();
        built.sort_unstable();
        assert_eq!(listed, built);
    }
}
