//! Uses what was built, as a user would.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    archive, files,
    launcher::Launcher,
    platform::{Form, Platform},
    sign::{self, LISTS, Signers},
    source::Source,
};
use crate::{context::Context, install, process::quiet};

/// The trial of a platform: it installs or unpacks, uses and removes.
pub(super) fn platform(context: &Context, platform: Platform, source: &Source, out: &Path) -> Result<()> {
    let folder = context.target.join("dist-trial");
    files::fresh(&folder)?;
    let name = archive::name(platform, source);
    match platform.form() {
        Form::Deb => return debian(context, source, out, &folder),
        Form::Tar => {
            quiet(
                Command::new("tar")
                    .arg("-xzf")
                    .arg(out.join(format!("{name}.tar.gz")))
                    .arg("-C")
                    .arg(&folder),
            )?;
        }
        Form::Zip => {
            let zip = out.join(format!("{name}.zip"));
            quiet(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(zip).arg(&folder))?;
        }
    }
    let command = folder.join(&name).join(platform.command());
    if platform.form() == Form::Tar {
        is_static(&command)?;
    }
    signs(&Launcher::new(context, platform, &command)?, source, &folder.join("home"))
        .with_context(|| platform.triple())
}

/// A static program names no interpreter, and so no library.
fn is_static(command: &Path) -> Result<()> {
    let headers = quiet(Command::new("readelf").args(["--program-headers", "--wide"]).arg(command))?;
    ensure!(headers.contains("LOAD"), "readelf shows no program");
    ensure!(!headers.contains("INTERP"), "{} needs the system's C library", command.display());
    Ok(())
}

/// Signs a file, verifies it, and does not verify it when it has changed.
fn signs(launcher: &Launcher, source: &Source, home: &Path) -> Result<()> {
    files::fresh(home)?;
    let version = launcher.says(["--version"])?;
    ensure!(version.trim() == format!("bulla {}", source.version), "--version says {version}");
    files::write(&home.join("file"), "abc")?;
    let run = |arguments: &[&str]| {
        let mut command = launcher.start(home);
        command.args(arguments).env("BULLA_KEYSTORE", "keystore");
        command
    };
    let sum = quiet(&mut run(&["sum", "file"]))?;
    ensure!(sum.starts_with("6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"), "{sum}");
    quiet(&mut run(&["sign", "file"]))?;
    let said = quiet(&mut run(&["verify", "file"]))?;
    ensure!(said.starts_with("file: OK"), "verify says {said}");
    files::write(&home.join("file"), "abd")?;
    let changed = run(&["verify", "file"]).output()?;
    ensure!(changed.status.code() == Some(1), "verify of a changed file: {}", changed.status);
    Ok(())
}

/// Installs the package, uses it, and removes it: then nothing of it may be left.
fn debian(context: &Context, source: &Source, out: &Path, folder: &Path) -> Result<()> {
    if quiet(Command::new("dpkg-query").args(["--status", "bulla"])).is_ok() {
        bail!("the package bulla is installed here, and the trial would remove it: remove it by hand");
    }
    let package = out.join(format!("bulla_{}-1_amd64.deb", source.version));
    let listed = quiet(Command::new("dpkg-deb").arg("--contents").arg(&package))?;
    let installed: Vec<PathBuf> = listed
        .lines()
        .filter_map(|line| line.split_once(" ./").map(|(_, path)| Path::new("/").join(path)))
        .filter(|path| !path.to_string_lossy().ends_with('/'))
        .collect();
    for place in
        ["usr/bin/bulla", "usr/share/man/man1/bulla-sign.1.gz", "usr/lib/systemd/system/bulla.service"]
    {
        ensure!(installed.contains(&Path::new("/").join(place)), "the package has no {place}");
    }
    quiet(install::dpkg()?.arg("--install").arg(&package)).context("cannot install the package")?;
    let used = used(context, source, &installed, folder);
    quiet(install::dpkg()?.args(["--purge", "bulla"])).context("cannot remove the package")?;
    used?;
    match installed.iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(left) => bail!("{} is left when the package is removed", left.display()),
        None => Ok(()),
    }
}

fn used(context: &Context, source: &Source, installed: &[PathBuf], folder: &Path) -> Result<()> {
    // Systems without documentation tell dpkg to leave it out. Everything else must be there.
    let has = |path: &&PathBuf| path.exists() || path.starts_with("/usr/share/");
    if let Some(missing) = installed.iter().find(|path| !has(path)) {
        bail!("{} was not installed", missing.display());
    }
    let command = Path::new("/usr/bin/bulla");
    let verified = quiet(Command::new("dpkg").args(["--verify", "bulla"]))?;
    ensure!(!verified.lines().any(|line| line.ends_with("/bulla")), "dpkg --verify says {verified}");
    signs(&Launcher::new(context, Platform::DebianX86, command)?, source, &folder.join("home"))
}

/// Signs the files in `out` with new keys, verifies them with both programs, and with neither when a list has changed.
pub(super) fn signatures(context: &Context, out: &Path) -> Result<()> {
    let folder = context.target.join("dist-keys");
    files::fresh(&folder)?;
    let (secret, public, keystore) =
        (folder.join("minisign.key"), folder.join("minisign.pub"), folder.join("keystore"));
    let bulla = sign::own_command(context, out)?;
    install::debian(&install::DebianTool { program: "minisign", package: "minisign" })?;
    quiet(Command::new("minisign").args(["-G", "-W", "-s"]).arg(&secret).arg("-p").arg(&public))?;
    let own = |arguments: &[&str], keystore: &Path| {
        let mut command = Command::new(&bulla);
        command.args(arguments).env("BULLA_KEYSTORE", keystore).current_dir(out);
        command
    };
    quiet(&mut own(&["keys", "init"], &keystore))?;
    quiet(&mut own(&["keys", "new", "release"], &keystore))?;
    let environment = [("BULLA_KEYSTORE", keystore.as_path())];
    let signers = Signers { bulla: &bulla, key: "release", minisign_key: &secret, environment: &environment };
    sign::sign(out, &signers)?;
    let exported = folder.join("bulla.pub");
    files::write(&exported, quiet(&mut own(&["keys", "export-public", "release"], &keystore))?)?;
    let nowhere = folder.join("nowhere");
    for list in LISTS {
        let by_minisign = || {
            quiet(Command::new("minisign").args(["-V", "-p"]).arg(&public).args(["-m"]).arg(out.join(list)))
        };
        let by_bulla = || quiet(own(&["verify", list, "--public-key"], &nowhere).arg(&exported));
        by_minisign()?;
        by_bulla()?;
        let text = fs::read(out.join(list))?;
        files::write(&out.join(list), [&text[..], b"\n"].concat())?;
        ensure!(by_minisign().is_err() && by_bulla().is_err(), "{list} has changed, and nobody says so");
        files::write(&out.join(list), text)?;
    }
    quiet(Command::new("sha256sum").args(["--check", "--strict", LISTS[0]]).current_dir(out))?;
    quiet(&mut own(&["check", "--strict", LISTS[1]], &nowhere))?;
    Ok(())
}
