//! Uses what was built, as a user would.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{
    Context,
    install::{self, DebianTool},
    quiet,
};
use serde_json::Value;

use super::{
    archive, files,
    launcher::Launcher,
    platform::{PackageFormat, Platform},
    sign::{self, LISTS, Signers},
};

/// The unit of the service, as the package installs it, and the manual that it names.
const UNIT: &str = "/usr/lib/systemd/system/bulla.service";
const MANUAL: &str = "/usr/share/man/man1/bulla-serve.1.gz";

/// The trials of the files in a folder, which have the version of this program.
pub(super) fn all(context: &Context, platforms: &[Platform], folder: &Path) -> Result<()> {
    for built in platforms {
        platform(context, *built, env!("CARGO_PKG_VERSION"), folder)?;
        println!("{}: it works", built.triple());
    }
    if platforms.contains(&Platform::LinuxX86) { signatures(context, folder) } else { Ok(()) }
}

/// The trial of a platform: it installs or unpacks, uses and removes.
pub(super) fn platform(context: &Context, platform: Platform, version: &str, out: &Path) -> Result<()> {
    let folder = context.target.join("dist-trial");
    files::fresh(&folder)?;
    let name = archive::name(platform, version);
    match platform.form() {
        PackageFormat::Deb => return debian(context, version, out, &folder),
        PackageFormat::Tar => {
            quiet(
                Command::new("tar")
                    .arg("-xzf")
                    .arg(out.join(format!("{name}.tar.gz")))
                    .arg("-C")
                    .arg(&folder),
            )?;
        }
        PackageFormat::Zip => {
            let zip = out.join(format!("{name}.zip"));
            install::debian(&DebianTool { program: "python3", package: "python3" })?;
            quiet(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(zip).arg(&folder))?;
        }
    }
    let command = folder.join(&name).join(platform.command());
    let launcher = Launcher::new(context, platform, &command)?;
    if platform.form() == PackageFormat::Tar {
        is_static(&command)?;
        has_kernels(platform, &launcher, &command)?;
    }
    signs(&launcher, version, &folder.join("home")).with_context(|| platform.triple())
}

/// The command audits itself. What it says about our kernels is shown.
fn has_kernels(platform: Platform, launcher: &Launcher, command: &Path) -> Result<()> {
    let audit = launcher.says(["audit", "--json", &command.to_string_lossy()]).context("bulla audit")?;
    let kernels = kernels(platform, &serde_json::from_str(&audit)?)?;
    kernels.iter().for_each(|kernel| println!("{kernel}: present"));
    Ok(())
}

/// The kernels of ours in an audit. For x86-64 the audit has rules about them. For AArch64 it has
/// none, so there they are the functions of which most instructions name vectors.
fn kernels(platform: Platform, audit: &Value) -> Result<Vec<String>> {
    let items = |key: &str| audit[key].as_array().with_context(|| format!("the audit has no {key}"));
    let mut kernels = Vec::new();
    if platform == Platform::LinuxArm {
        for function in items("functions")? {
            let name = function["name"].as_str().unwrap_or_default();
            let count = |of: &Value| of.as_u64().unwrap_or_default();
            let most = 2 * count(&function["widths"]["neon"]) > count(&function["instructions"]);
            if most && name.starts_with("bulla_") && name.contains("::kernel::aarch64::") {
                kernels.push(name.to_owned());
            }
        }
    } else {
        for rule in items("rules")? {
            let name = rule["rule"].as_str().unwrap_or_default();
            if name.starts_with("bulla-") {
                ensure!(rule["verdict"] == "present", "{name} is {}", rule["verdict"]);
                kernels.push(name.to_owned());
            }
        }
    }
    for library in ["blake2", "blake3"] {
        let has = kernels.iter().any(|kernel| kernel.contains(library));
        ensure!(has, "bulla audit finds no kernel of {library}, but {kernels:?}");
    }
    Ok(kernels)
}

/// A static program names no interpreter, and so no library.
fn is_static(command: &Path) -> Result<()> {
    let headers = quiet(Command::new("readelf").args(["--program-headers", "--wide"]).arg(command))?;
    ensure!(headers.contains("LOAD"), "readelf shows no program");
    ensure!(!headers.contains("INTERP"), "{} needs the system's C library", command.display());
    Ok(())
}

/// Signs a file, verifies it, and does not verify it when it has changed.
fn signs(launcher: &Launcher, version: &str, home: &Path) -> Result<()> {
    files::fresh(home)?;
    let said = launcher.says(["--version"])?;
    ensure!(said.trim() == format!("bulla {version}"), "--version says {said}");
    files::write(&home.join("file"), "abc")?;
    let run = |arguments: &[&str]| {
        let mut command = launcher.start(home);
        command.args(arguments).env("BULLA_KEYSTORE", "keystore");
        command
    };
    let sum = quiet(&mut run(&["sum", "file"]))?;
    ensure!(sum.starts_with("6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"), "{sum}");
    quiet(&mut run(&["keystore", "init"]))?;
    quiet(&mut run(&["sign", "file"]))?;
    let said = quiet(&mut run(&["verify", "file"]))?;
    ensure!(said.starts_with("file: OK"), "verify says {said}");
    files::write(&home.join("file"), "abd")?;
    let changed = run(&["verify", "file"]).output()?;
    ensure!(changed.status.code() == Some(1), "verify of a changed file: {}", changed.status);
    quiet(&mut run(&["token", "new", "--operation", "sign", "--expires", "1h", "--output", "token"]))?;
    Ok(())
}

/// Installs the package, uses it, and removes it: then nothing of it may be left.
fn debian(context: &Context, version: &str, out: &Path, folder: &Path) -> Result<()> {
    if quiet(Command::new("dpkg-query").args(["--status", "bulla"])).is_ok() {
        bail!("the package bulla is installed here, and the trial would remove it: remove it by hand");
    }
    let package = out.join(format!("bulla_{version}-1_amd64.deb"));
    let listed = quiet(Command::new("dpkg-deb").arg("--contents").arg(&package))?;
    let installed: Vec<PathBuf> = listed
        .lines()
        .filter_map(|line| line.split_once(" ./").map(|(_, path)| Path::new("/").join(path)))
        .filter(|path| !path.to_string_lossy().ends_with('/'))
        .collect();
    for place in ["/usr/bin/bulla", UNIT] {
        ensure!(installed.contains(&PathBuf::from(place)), "the package has no {place}");
    }
    quiet(install::dpkg()?.arg("--install").arg(&package)).context("cannot install the package")?;
    let used = documents(&package, folder).and_then(|()| used(context, version, &installed, folder));
    quiet(install::dpkg()?.args(["--purge", "bulla"])).context("cannot remove the package")?;
    used?;
    match installed.iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(left) => bail!("{} is left when the package is removed", left.display()),
        None => Ok(()),
    }
}

/// Reads the manual pages with man and groff, which must not warn, and the completion with bash.
/// They are read from the package: the system may have left them out.
fn documents(package: &Path, folder: &Path) -> Result<()> {
    let tree = folder.join("unpacked");
    quiet(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&tree))?;
    for (program, package) in [("man", "man-db"), ("groff", "groff-base")] {
        install::debian(&DebianTool { program, package })?;
    }
    let pages = files::list(&tree.join("usr/share/man/man1"))?;
    ensure!(pages.iter().any(|page| page.ends_with("bulla-sign.1.gz")), "the package has no bulla-sign(1)");
    for page in &pages {
        let mut man = Command::new("man");
        man.args(["--warnings", "--encoding=UTF-8", "--local-file"]).arg(page).env("MANPAGER", "cat");
        let output = man.output().context("cannot start man")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let name = page.display();
        ensure!(
            output.status.success() && text.contains("NAME"),
            "man cannot show {name}: {}",
            output.status
        );
        ensure!(output.stderr.is_empty(), "man of {name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", "source \"$1\" && complete -p bulla", "bash"]);
    let said = quiet(bash.arg(tree.join("usr/share/bash-completion/completions/bulla")))?;
    ensure!(said.trim_end().ends_with(" bulla"), "bash completes {said}");
    println!("{} manual pages", pages.len());
    Ok(())
}

/// Lets systemd look at the installed unit: also whether its program is there, and the manual that
/// it names.
fn unit() -> Result<()> {
    install::debian(&DebianTool { program: "systemd-analyze", package: "systemd" })?;
    let manual = if Path::new(MANUAL).exists() { "--man=yes" } else { "--man=no" };
    quiet(Command::new("systemd-analyze").args(["verify", manual, UNIT]))
        .context("systemd refuses the unit")?;
    Ok(())
}

fn used(context: &Context, version: &str, installed: &[PathBuf], folder: &Path) -> Result<()> {
    // Systems without documentation tell dpkg to leave it out. Everything else must be there.
    let has = |path: &&PathBuf| path.exists() || path.starts_with("/usr/share/");
    if let Some(missing) = installed.iter().find(|path| !has(path)) {
        bail!("{} was not installed", missing.display());
    }
    unit()?;
    let command = Path::new("/usr/bin/bulla");
    let verified = quiet(Command::new("dpkg").args(["--verify", "bulla"]))?;
    ensure!(!verified.lines().any(|line| line.ends_with("/bulla")), "dpkg --verify says {verified}");
    signs(&Launcher::new(context, Platform::DebianX86, command)?, version, &folder.join("home"))
}

/// Signs copies of the files in `from` with new keys, verifies them with both programs, and with
/// neither when a list has changed.
pub(super) fn signatures(context: &Context, from: &Path) -> Result<()> {
    let folder = context.target.join("dist-keys");
    files::fresh(&folder)?;
    let out = &folder.join("signed");
    for file in files::list(from)? {
        let name = file.file_name().unwrap_or_default();
        // Those of an earlier signing.
        if !LISTS.iter().any(|list| name.to_string_lossy().starts_with(list)) {
            files::copy(&file, &out.join(name))?;
        }
    }
    let (secret, public, keystore) =
        (folder.join("minisign.key"), folder.join("minisign.pub"), folder.join("keystore"));
    let bulla = sign::own_command(context, out)?;
    install::debian(&DebianTool { program: "minisign", package: "minisign" })?;
    quiet(Command::new("minisign").args(["-G", "-W", "-s"]).arg(&secret).arg("-p").arg(&public))?;
    let own = |arguments: &[&str], keystore: &Path| {
        let mut command = Command::new(&bulla);
        command.args(arguments).env("BULLA_KEYSTORE", keystore).current_dir(out);
        command
    };
    quiet(&mut own(&["keystore", "init"], &keystore))?;
    quiet(&mut own(&["keys", "create", "release"], &keystore))?;
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
    println!("{} signed, and verified by minisign and bulla", LISTS.join(" and "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn function(name: &str, neon: u64) -> Value {
        json!({ "name": name, "instructions": 100, "widths": { "fp": 0, "neon": neon, "sve": 0 } })
    }

    #[test]
    fn kernels_for_aarch64_are_functions_of_vectors() {
        let (blake2, blake3) =
            ("bulla_blake2::kernel::aarch64::lanes_2b", "bulla_blake3::kernel::aarch64::group");
        let found = |functions: Value| kernels(Platform::LinuxArm, &json!({ "functions": functions }));
        let both = json!([function(blake2, 90), function("core::fmt::write", 90), function(blake3, 60)]);
        assert_eq!(found(both).unwrap(), [blake2, blake3]);
        assert!(found(json!([function(blake2, 90), function(blake3, 50)])).is_err());
        assert!(found(json!([function(blake3, 90)])).is_err());
    }

    #[test]
    fn kernels_for_x86_are_those_that_rules_find() {
        let found = |verdict: &str| {
            let rule = |name: &str, verdict: &str| json!({ "rule": name, "verdict": verdict });
            let others = [rule("bulla-blake2/avx2", "present"), rule("blake3/avx2", "not_linked")];
            let rules = [&others[..], &[rule("bulla-blake3/avx2", verdict)]].concat();
            kernels(Platform::LinuxX86, &json!({ "rules": rules }))
        };
        assert_eq!(found("present").unwrap(), ["bulla-blake2/avx2", "bulla-blake3/avx2"]);
        assert!(found("lost").is_err());
    }
}
