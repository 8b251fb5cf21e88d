//! Checksums of the files to publish, and signatures of these checksums by two programs: bulla, and
//! minisign for those who have no bulla.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{
    Context,
    install::{self, DebianTool},
    quiet,
};

use super::{files, platform::Platform};

/// The lists of checksums. Each gets a signature of bulla (`.bulla`) and one of minisign
/// (`.minisig`).
pub(super) const LISTS: [&str; 2] = ["SHA256SUMS", "B3SUMS"];

/// The programs that sign.
pub(super) struct Signers<'a> {
    pub(super) bulla: &'a Path,
    /// The label of bulla's key.
    pub(super) key: &'a str,
    pub(super) minisign_key: &'a Path,
    /// Variables for bulla beside those of the user.
    pub(super) environment: &'a [(&'a str, &'a Path)],
}

/// Writes the lists of a folder and their signatures. Both programs may ask for a passphrase on the
/// terminal.
///
/// # Errors
/// The folder has no files, or was signed; a program fails.
pub(super) fn sign(folder: &Path, signers: &Signers<'_>) -> Result<()> {
    install::debian(&DebianTool { program: "minisign", package: "minisign" })?;
    let minisign_key = signers.minisign_key.canonicalize();
    let minisign_key =
        minisign_key.with_context(|| format!("no secret key {}", signers.minisign_key.display()))?;
    let bulla = signers.bulla.canonicalize();
    let bulla = bulla.with_context(|| format!("no command {}", signers.bulla.display()))?;
    let names = names(folder)?;
    for (list, mut program) in
        LISTS.into_iter().zip([Command::new("sha256sum"), with(&bulla, "sum", signers)])
    {
        let sums = quiet(program.arg("--").args(&names).current_dir(folder))?;
        files::write(&folder.join(list), sums)?;
    }
    for list in LISTS {
        let list = folder.join(list);
        let mut by_bulla = with(&bulla, "sign", signers);
        interactive(by_bulla.args(["--quiet", "--key", signers.key]).arg(&list))?;
        let mut by_minisign = Command::new("minisign");
        interactive(by_minisign.arg("-S").arg("-m").arg(&list).arg("-s").arg(&minisign_key))?;
    }
    println!("{}: {} files, {} signed", folder.display(), names.len(), LISTS.join(" and "));
    Ok(())
}

/// The files to publish.
fn names(folder: &Path) -> Result<Vec<String>> {
    let name = |file: &PathBuf| file.file_name().map(|name| name.to_string_lossy().into_owned());
    let names: Vec<_> = files::list(folder)?.iter().filter_map(name).collect();
    ensure!(!names.is_empty(), "{} has no files: `cargo xtask dist build` writes them", folder.display());
    let old = names.iter().find(|name| LISTS.iter().any(|list| name.starts_with(list)));
    if let Some(old) = old {
        anyhow::bail!("{} was signed before: remove {old} and what is like it", folder.display());
    }
    Ok(names)
}

fn with(bulla: &Path, command: &str, signers: &Signers<'_>) -> Command {
    let mut start = Command::new(bulla);
    start.arg(command).envs(signers.environment.iter().copied());
    start
}

/// Runs a program that may ask on the terminal.
fn interactive(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

/// Unpacks the command for this machine from its archive in `folder`.
pub(super) fn own_command(context: &Context, folder: &Path) -> Result<PathBuf> {
    let platform = if env::consts::ARCH == "aarch64" { Platform::LinuxArm } else { Platform::LinuxX86 };
    let ending = format!("{}.tar.gz", platform.triple());
    let archive = files::list(folder)?.into_iter().find(|file| file.to_string_lossy().ends_with(&ending));
    let archive = archive.with_context(|| format!("{} has no archive *{ending}", folder.display()))?;
    let to = context.target.join("dist-signer");
    files::fresh(&to)?;
    quiet(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(&to).arg("--strip-components=1"))?;
    Ok(to.join(platform.command()))
}
