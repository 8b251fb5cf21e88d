//! Archives: one folder with the programs and all that belongs to them. Their bytes depend on the
//! files alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};
use bulla_devtools::quiet;

use super::{
    files,
    pages::Pages,
    platform::{PackageFormat, Platform},
    source::Source,
};

/// The documents in an archive.
const DOCUMENTS: [&str; 5] = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Writes the archive of a platform into `out`.
pub(super) fn write(
    platform: Platform,
    source: &Source,
    command: &Path,
    pages: &Pages,
    work: &Path,
    out: &Path,
) -> Result<()> {
    let name = name(platform, &source.version);
    let parent = work.join("archive");
    files::fresh(&parent)?;
    let folder = parent.join(&name);
    let tree = work.join("source");
    for program in platform.programs() {
        files::copy(&command.with_file_name(&program), &folder.join(program))?;
    }
    for document in DOCUMENTS {
        files::copy(&tree.join(document), &folder.join(document))?;
    }
    for (file, text) in &pages.completions {
        files::write(&folder.join("completions").join(file), text)?;
    }
    if platform.form() == PackageFormat::Tar {
        for (file, text) in &pages.manual {
            files::write(&folder.join("man/man1").join(file), text)?;
        }
        let unit = "systemd/bulla.service";
        files::copy(&tree.join("ops").join(unit), &folder.join(unit))?;
    }
    let out = out.canonicalize()?;
    match platform.form() {
        PackageFormat::Tar => tar(&parent, &name, source, &out),
        PackageFormat::Zip => zip(&parent, &name, source, &out),
        PackageFormat::Deb => bail!("a Debian package is no archive"),
    }
}

/// The name of the folder in the archive, and of the archive without its ending.
pub(super) fn name(platform: Platform, version: &str) -> String {
    format!("bulla-{version}-{}", platform.triple())
}

/// Entries in the order of their names, of nobody, with the time of the commit.
fn tar(parent: &Path, name: &str, source: &Source, out: &Path) -> Result<()> {
    let archive = out.join(format!("{name}.tar"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--format=ustar", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mode=u=rwX,go=rX", &format!("--mtime=@{}", source.time), "-cf"]).arg(&archive);
    quiet(tar.arg("-C").arg(parent).arg(name))?;
    quiet(Command::new("gzip").args(["-9", "--no-name", "--force"]).arg(&archive))?;
    Ok(())
}

/// Writes a `zip`, which takes order, time and mode from its arguments and from the files.
fn zip(parent: &Path, name: &str, source: &Source, out: &Path) -> Result<()> {
    let mut entries = Vec::new();
    collect(&parent.join(name), &mut entries)?;
    for entry in &entries {
        quiet(Command::new("touch").arg(format!("--date=@{}", source.time)).arg(entry))?;
        quiet(Command::new("chmod").arg("u=rwX,go=rX").arg(entry))?;
    }
    let mut zip = Command::new("zip");
    zip.current_dir(parent).env("TZ", "UTC").args(["-9", "-X", "--quiet", "--no-dir-entries"]);
    zip.arg(out.join(format!("{name}.zip")));
    for entry in &entries {
        zip.arg(entry.strip_prefix(parent)?);
    }
    quiet(&mut zip)?;
    Ok(())
}

/// The files below a folder, in the order of their names.
fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    for path in files::list(folder)? {
        if fs::metadata(&path)?.is_dir() { collect(&path, into)? } else { into.push(path) }
    }
    Ok(())
}
