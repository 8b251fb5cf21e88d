//! The Debian package: the programs, its manual, completions, and the unit of the service, which
//! nobody enables but the administrator.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::quiet;

use super::{files, pages::Pages, platform::Platform, source::Source};

/// The scripts that dpkg runs, each with its mode.
const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", include_str!("deb/postinst.sh")),
    ("prerm", include_str!("deb/prerm.sh")),
    ("postrm", include_str!("deb/postrm.sh")),
];

/// Where shells look for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bulla.bash", "usr/share/bash-completion/completions/bulla"),
    ("_bulla", "usr/share/zsh/vendor-completions/_bulla"),
    ("bulla.fish", "usr/share/fish/vendor_completions.d/bulla.fish"),
];

/// The documents in the package.
const DOCUMENTS: [&str; 3] = ["README.md", "SECURITY.md", "docs/operations.md"];

/// The C library of the oldest Debian that the package is for: Debian 12.
const LIBC: (u32, u32) = (2, 36);

/// Writes the package into `out`.
pub(super) fn write(source: &Source, command: &Path, pages: &Pages, work: &Path, out: &Path) -> Result<()> {
    let root = work.join("deb");
    files::fresh(&root)?;
    fill(source, command, pages, &work.join("source"), &root)?;
    let depends = depends(work, command)?;
    installs_on_the_oldest(&depends)?;
    let size = quiet(Command::new("du").args(["-sk", "--apparent-size"]).arg(&root))?;
    let size = size.split_whitespace().next().context("du says nothing")?.to_owned();
    files::write(&root.join("DEBIAN/control"), control(&source.version, &depends, &size))?;
    files::write(&root.join("DEBIAN/md5sums"), sums(&root)?)?;
    for (name, text) in SCRIPTS {
        files::write(&root.join("DEBIAN").join(name), text)?;
        fs::set_permissions(root.join("DEBIAN").join(name), fs::Permissions::from_mode(0o755))?;
    }
    quiet(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root))?;
    let file = out.join(format!("bulla_{}-1_amd64.deb", source.version));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--threads-max=1", "-Zxz", "-z9", "--build"]).arg(&root).arg(&file);
    quiet(build.env("SOURCE_DATE_EPOCH", source.time.to_string()))?;
    Ok(())
}

/// Writes the files that are installed.
fn fill(source: &Source, command: &Path, pages: &Pages, tree: &Path, root: &Path) -> Result<()> {
    for program in Platform::DebianX86.programs() {
        let installed = root.join("usr/bin").join(&program);
        files::copy(&command.with_file_name(program), &installed)?;
        quiet(Command::new("strip").arg("--strip-unneeded").arg(installed))?;
    }
    for (name, text) in &pages.manual {
        compressed(&root.join("usr/share/man/man1").join(name), text)?;
    }
    for (name, place) in COMPLETIONS {
        let completion = pages.completions.iter().find(|(file, _)| *file == name);
        files::write(&root.join(place), &completion.context("a completion is missing")?.1)?;
    }
    files::copy(&tree.join("ops/systemd/bulla.service"), &root.join("usr/lib/systemd/system/bulla.service"))?;
    let documents = root.join("usr/share/doc/bulla");
    for document in DOCUMENTS {
        let name = Path::new(document).file_name().context("a document without a name")?;
        files::copy(&tree.join(document), &documents.join(name))?;
    }
    compressed(&documents.join("changelog"), &fs::read_to_string(tree.join("CHANGELOG.md"))?)?;
    let date =
        quiet(Command::new("date").args(["--utc", "--rfc-email", &format!("--date=@{}", source.time)]))?;
    compressed(&documents.join("changelog.Debian"), &changelog(&source.version, date.trim()))?;
    files::write(&documents.join("copyright"), copyright(&fs::read_to_string(tree.join("LICENSE-MIT"))?))
}

/// Writes `text`, and lets gzip replace the file by `FILE.gz`.
fn compressed(file: &Path, text: &str) -> Result<()> {
    files::write(file, text)?;
    quiet(Command::new("gzip").args(["-9", "--no-name", "--force"]).arg(file))?;
    Ok(())
}

/// The packages with the libraries that the programs use, in the versions that they need.
fn depends(work: &Path, command: &Path) -> Result<String> {
    let folder = work.join("shlibdeps");
    files::fresh(&folder)?;
    // The program asks for this file, and takes nothing from it that counts here.
    files::write(&folder.join("debian/control"), "Source: bulla\n\nPackage: bulla\nArchitecture: any\n")?;
    let programs = Platform::DebianX86.programs().map(|program| command.with_file_name(program));
    let said = quiet(Command::new("dpkg-shlibdeps").arg("-O").args(programs).current_dir(&folder))?;
    let line = said.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    line.map(str::to_owned).context("dpkg-shlibdeps names no package")
}

/// Whether the oldest Debian has the C library that the package needs. A newer system has functions
/// that Rust's library then uses.
fn installs_on_the_oldest(depends: &str) -> Result<()> {
    let needed =
        depends.split(", ").find_map(|package| package.strip_prefix("libc6 (>= ")?.strip_suffix(')'));
    let needed = needed.with_context(|| format!("the package needs no C library, but {depends}"))?;
    let mut numbers = needed.split('.').map_while(|number| number.parse().ok());
    let version = (numbers.next().context("a version is no number")?, numbers.next().unwrap_or(0));
    let (major, minor) = LIBC;
    ensure!(
        version <= LIBC,
        "the package needs libc6 {needed}: build it on Debian 12, which has {major}.{minor}"
    );
    Ok(())
}

/// The digests by which `dpkg --verify` finds files that changed.
fn sums(root: &Path) -> Result<String> {
    let listed = quiet(Command::new("find").args(["usr", "-type", "f"]).current_dir(root))?;
    let mut listed: Vec<_> = listed.lines().collect();
    listed.sort_unstable();
    quiet(Command::new("md5sum").arg("--").args(&listed).current_dir(root))
}

fn control(version: &str, depends: &str, size: &str) -> String {
    format!(
        "Package: bulla\nVersion: {version}-1\nArchitecture: amd64\nMaintainer: The bulla authors <bulla-dev@users.noreply.github.com>\n\
         Installed-Size: {size}\nDepends: {depends}\nSuggests: minisign\nSection: utils\nPriority: optional\n\
         Homepage: https://github.com/bulla-dev/bulla\n\
         Description: hash, sign and verify files, with keys from an encrypted keystore\n \
         bulla hashes files with BLAKE3 and signs files and folders with Ed25519 and\n \
         post-quantum keys. Later it says, file by file, what has changed. It also\n \
         encrypts files, and serves its keys over HTTP.\n"
    )
}

fn changelog(version: &str, date: &str) -> String {
    format!(
        "bulla ({version}-1) unstable; urgency=medium\n\n  * Version {version}: changelog.gz says what is new.\n\n \
         -- The bulla authors <bulla-dev@users.noreply.github.com>  {date}\n"
    )
}

fn copyright(mit: &str) -> String {
    let lines = mit.lines().map(|line| if line.is_empty() { " .".to_owned() } else { format!(" {line}") });
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: bulla\n\
         Source: https://github.com/bulla-dev/bulla\n\nFiles: *\nCopyright: 2026 The bulla authors\nLicense: MIT or Apache-2.0\n\n\
         License: MIT\n{}\n\nLicense: Apache-2.0\n On Debian systems, /usr/share/common-licenses/Apache-2.0 has the text.\n",
        lines.collect::<Vec<_>>().join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_a_description_is_short_and_indented() {
        let control = control("1.2.3", "libc6", "10");
        let (_, text) = control.split_once("Description: ").unwrap();
        assert!(text.lines().skip(1).all(|line| line.starts_with(' ') && line.len() <= 80), "{text}");
        assert!(control.starts_with("Package: bulla\nVersion: 1.2.3-1\n"));
    }

    #[test]
    fn a_package_that_the_oldest_debian_cannot_install_is_refused() {
        installs_on_the_oldest("libc6 (>= 2.34), libgcc-s1 (>= 4.2)").unwrap();
        installs_on_the_oldest("libgcc-s1 (>= 4.2), libc6 (>= 2.36)").unwrap();
        for refused in ["libc6 (>= 2.39), libgcc-s1 (>= 4.2)", "libc6 (>= 3.0)", "libgcc-s1 (>= 4.2)"] {
            assert!(installs_on_the_oldest(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn an_empty_line_of_a_license_is_a_point() {
        assert!(copyright("one\n\ntwo\n").contains("License: MIT\n one\n .\n two\n"));
    }
}
