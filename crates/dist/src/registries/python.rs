//! PyPI.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{Context, install, quiet};

use crate::{files, source::Source};

/// A program that shows that the package is complete.
const TRIAL_PROGRAM: &str = "import bulla_hash, hashlib, platform\n\
    from bulla_hash import bao\n\
    assert bulla_hash.blake2b(b'abc').digest() == hashlib.blake2b(b'abc').digest()\n\
    encoded, digest = bao.encode(bytes(5000))\n\
    assert bao.decode(encoded, digest) == bytes(5000)\n\
    print(bulla_hash.blake3(b'abc').hexdigest(), platform.python_version(), sep='\\n')";

/// The wheels are thrown away: their builds must be quick.
const QUICK_PROFILE: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];

pub(super) fn run(context: &Context, source: &Source) -> Result<()> {
    let tools = install::python_packages(
        context,
        "python-package",
        &context.root.join("python/tests/requirements.txt"),
    )?;
    let folder = context.target.join("dist-python");
    files::fresh(&folder)?;
    let tree = folder.join("source");
    source.unpack(context, &tree)?;
    let packages = folder.join("packages");
    let mut maturin = Command::new(tools.with_file_name("maturin"));
    maturin.args(["sdist", "--manifest-path"]).arg(tree.join("python/Cargo.toml"));
    quiet(maturin.arg("--out").arg(&packages))?;
    let sdist = files::list(&packages)?.into_iter().next().context("maturin made no source distribution")?;
    contents(&sdist, &source.version)?;
    // The source distribution makes the wheel, as pip does where there is no wheel. So this shows
    // both.
    let wheels = folder.join("wheels");
    let target = &context.target.join("python-sdist");
    let mut wheel = Command::new(&tools);
    wheel.args(["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]).arg(&wheels).arg(&sdist);
    // Outside of the tree, so that nothing but the archive can be found.
    wheel.current_dir(std::env::temp_dir()).env("CARGO_TARGET_DIR", target);
    quiet(wheel.envs(QUICK_PROFILE)).context("cannot build the source distribution")?;
    let wheel = files::list(&wheels)?.into_iter().next().context("pip made no wheel")?;
    // What a user does who has no wheel for the machine, and one who has.
    used(&tools, &folder.join("by-source"), &sdist, target, &[])?;
    used(&tools, &folder.join("by-wheel"), &wheel, target, &["--no-index"])?;
    for file in [&sdist, &wheel] {
        let name = file.file_name().unwrap_or_default().display();
        println!("{name}: {} bytes", std::fs::metadata(file)?.len());
    }
    files::fresh(&tree)
}

/// Installs a package in a new and empty environment, and uses it there.
fn used(tools: &Path, place: &Path, package: &Path, target: &Path, options: &[&str]) -> Result<()> {
    let name = package.file_name().unwrap_or_default().display();
    quiet(Command::new(tools).args(["-m", "venv", "--clear", "--without-pip"]).arg(place))?;
    let python = place.join("bin/python");
    let mut pip = Command::new(tools);
    pip.args(["-m", "pip", "--python"]).arg(&python).args(["install", "--quiet"]).args(options);
    // Outside of the tree, so that nothing but the package can be found.
    pip.arg(package).current_dir(std::env::temp_dir()).env("CARGO_TARGET_DIR", target).envs(QUICK_PROFILE);
    quiet(&mut pip).with_context(|| format!("cannot install {name}"))?;
    let said = quiet(Command::new(&python).args(["-I", "-W", "error", "-c", TRIAL_PROGRAM]))?;
    let [digest, version] = said.lines().collect::<Vec<_>>()[..] else { bail!("{name} says {said}") };
    ensure!(digest.starts_with("6437b3ac38465133"), "{name} says {said}");
    println!("{name}: installed and used with Python {version}");
    Ok(())
}

/// Whether the source distribution has what it must.
fn contents(sdist: &Path, version: &str) -> Result<()> {
    let listed = quiet(Command::new("tar").arg("-tzf").arg(sdist))?;
    for required in ["PKG-INFO", "LICENSE-MIT", "LICENSE-APACHE", "README.md", "Cargo.lock"] {
        let has = listed.lines().any(|line| line.rsplit('/').next() == Some(required));
        ensure!(has, "{} has no {required}", sdist.display());
    }
    let name = sdist.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ensure!(name.ends_with(&format!("-{version}.tar.gz")), "{name} is not of version {version}");
    Ok(())
}
