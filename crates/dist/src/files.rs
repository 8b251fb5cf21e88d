//! Folders and files that the commands of this module write.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::quiet;

/// The SHA-256 digest of a file, in hexadecimal digits, as the coreutils say it.
pub(super) fn sha256(file: &Path) -> Result<String> {
    let line = quiet(Command::new("sha256sum").arg("--").arg(file))?;
    line.split(' ').next().map(|digest| digest.trim_start_matches('\\').to_owned()).context("no digest")
}

/// Makes `folder`, which must not have anything in it.
pub(super) fn empty(folder: &Path) -> Result<()> {
    let describe = || format!("cannot make {}", folder.display());
    fs::create_dir_all(folder).with_context(describe)?;
    let first = fs::read_dir(folder)?.next();
    ensure!(first.is_none(), "{} is not empty: remove what is in it", folder.display());
    Ok(())
}

/// Makes `folder` anew.
pub(super) fn fresh(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// The files of a folder, in the order of their names.
pub(super) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut files = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    files.sort();
    Ok(files)
}

/// Copies a file, which keeps its mode. The folder of the copy is made.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Writes a file. Its folder is made.
pub(super) fn write(to: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    make_parent(to)?;
    fs::write(to, content).with_context(|| format!("cannot write {}", to.display()))
}

fn make_parent(file: &Path) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}
