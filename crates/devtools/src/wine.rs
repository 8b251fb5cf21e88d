//! Wine, which runs programs for Windows on this processor.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::{
    Context,
    install::{self, DebianFile, DebianTool},
    quiet,
};

/// Programs for Windows are linked with it.
pub const GCC: DebianTool =
    DebianTool { program: "x86_64-w64-mingw32-gcc", package: "gcc-mingw-w64-x86-64-win32" };

/// Wine itself.
pub const WINE: DebianFile = DebianFile { path: "/usr/lib/wine/wine64", package: "wine64" };

/// Rust's library takes random bytes from the system library `bcryptprimitives`, which Debian's
/// Wine lacks. This source provides the one function that is needed.
const MISSING_LIBRARY: &str = include_str!("bcryptprimitives.c");

/// Installs Wine, and makes a folder for its files and the library that it lacks. All suites and
/// clones share it: Wine's own files take 700 MB.
///
/// # Errors
/// What is missing and cannot be installed.
pub fn prepare(context: &Context) -> Result<PathBuf> {
    install::both(install::debian(&GCC), install::debian_file(&WINE))?;
    let folder = context.tools().join("wine");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    build_library(&folder).context("bcryptprimitives.dll")?;
    Ok(folder)
}

/// The environment in which Wine runs a program, for the folder that [`prepare`] made.
pub fn environment(folder: &Path) -> [(&'static str, String); 3] {
    [
        ("WINEPREFIX", folder.join("prefix").display().to_string()),
        // Wine's name for the root folder of this machine is the drive Z.
        ("WINEPATH", format!("Z:{}", folder.display())),
        ("WINEDEBUG", "-all".to_owned()),
    ]
}

/// Another process may run programs with the library, or be here too. So it is built aside, and
/// then takes its place.
fn build_library(folder: &Path) -> Result<()> {
    let [source, built] = ["c", "dll"].map(|kind| folder.join(format!("{}.{kind}", std::process::id())));
    fs::write(&source, MISSING_LIBRARY)?;
    quiet(
        Command::new(GCC.program).args(["-shared", "-O1", "-o"]).args([&built, &source]).arg("-ladvapi32"),
    )?;
    fs::remove_file(&source)?;
    Ok(fs::rename(&built, folder.join("bcryptprimitives.dll"))?)
}
