//! The suite `windows`: the Rust libraries as Windows programs, which Wine runs on this processor.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::runner::Runner;
use crate::{
    context::Context,
    install::{self, DebianFile, DebianTool},
    process::quiet,
};

const TARGET: &str = "x86_64-pc-windows-gnu";

/// Programs for Windows are linked with it.
pub(super) const GCC: DebianTool =
    DebianTool { program: "x86_64-w64-mingw32-gcc", package: "gcc-mingw-w64-x86-64-win32" };

pub(super) const WINE: DebianFile = DebianFile { path: "/usr/lib/wine/wine64", package: "wine64" };

/// The libraries with kernels.
const LIBRARIES: [&str; 4] = ["bulla-simd", "bulla-blake2", "bulla-blake3", "bulla-ed25519"];

/// Rust's library takes random bytes from the system library `bcryptprimitives`, which Debian's Wine lacks. This source provides the one function that
/// is needed.
const MISSING_LIBRARY: &str = include_str!("windows/bcryptprimitives.c");

pub(super) fn run(runner: &mut Runner<'_>) {
    let context = runner.context;
    runner.need("rust target", |_| install::rust_target(TARGET));
    runner.need(GCC.program, |_| install::debian(&GCC));
    runner.need(WINE.package, |_| install::debian_file(&WINE));
    let folder = match prepare(context) {
        Ok(folder) => folder,
        Err(error) => return runner.need("wine", |_| Err(error)),
    };
    let launcher = format!("target.{TARGET}.runner = ['{}']", WINE.path);
    let mut arguments = vec!["--config".to_owned(), launcher];
    for (name, value) in [
        ("WINEPREFIX", folder.join("prefix").display().to_string()),
        // Wine's name for the root folder of this machine is the drive Z.
        ("WINEPATH", format!("Z:{}", folder.display())),
        ("WINEDEBUG", "-all".to_owned()),
    ] {
        arguments.extend(["--config".to_owned(), format!("env.{name} = '{value}'")]);
    }
    arguments.extend(["--target", TARGET].map(str::to_owned));
    arguments.extend(LIBRARIES.map(|library| format!("--package={library}")));
    runner.cargo_test(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A folder for Wine's files and the library that it lacks.
fn prepare(context: &Context) -> Result<PathBuf> {
    let folder = context.target.join("wine");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let source = folder.join("bcryptprimitives.c");
    fs::write(&source, MISSING_LIBRARY).with_context(|| format!("cannot write {}", source.display()))?;
    build_library(&source, &folder.join("bcryptprimitives.dll"))?;
    Ok(folder)
}

fn build_library(source: &Path, library: &Path) -> Result<()> {
    quiet(
        Command::new(GCC.program).args(["-shared", "-O1", "-o"]).args([library, source]).arg("-ladvapi32"),
    )?;
    Ok(())
}
