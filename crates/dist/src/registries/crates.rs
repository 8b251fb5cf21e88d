//! crates.io.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, quiet};

use crate::{files, semver, source::Source};

/// The libraries whose packages contain all that their tests need.
const LIBRARIES: [&str; 8] = [
    "bulla-simd",
    "bulla-blake2",
    "bulla-blake3",
    "bulla-ed25519",
    "bulla-files",
    "bulla-mmap",
    "bulla-pq",
    "bulla-sums",
];

/// The builds of a dry run are thrown away: they must be quick.
const QUICK_PROFILE: [(&str, &str); 2] = [("CARGO_PROFILE_DEV_DEBUG", "0"), ("CARGO_INCREMENTAL", "0")];

/// Without optimization, the tests of every length take minutes. The sources are those of a
/// release: their own profiles are not in a package.
const OPTIMIZED_PROFILE: [(&str, &str); 3] =
    [("CARGO_PROFILE_TEST_OPT_LEVEL", "2"), ("CARGO_PROFILE_TEST_DEBUG", "0"), ("CARGO_INCREMENTAL", "0")];

pub(super) fn run(context: &Context, source: &Source) -> Result<()> {
    semver::run(context)?;
    // Cargo packages all crates, in the order in which they are published, and builds each from its
    // package.
    let mut publish = context.cargo();
    publish.args(["publish", "--dry-run", "--workspace", "--locked"]).envs(QUICK_PROFILE);
    let status = publish.status().context("cannot start cargo publish")?;
    ensure!(status.success(), "cargo publish --dry-run: {status}");
    packaged_tests(context, source)
}

/// Runs the tests of the libraries from their packages, outside of the repository.
fn packaged_tests(context: &Context, source: &Source) -> Result<()> {
    let mut package = context.cargo();
    package.args(["package", "--quiet", "--locked", "--no-verify"]);
    quiet(package.args(LIBRARIES.iter().flat_map(|library| ["--package", library])))?;
    let folder = std::env::temp_dir().join(format!("bulla-packages-{}", std::process::id()));
    files::fresh(&folder)?;
    let mut patches = Vec::new();
    for library in LIBRARIES {
        let name = format!("{library}-{}", source.version);
        let archive = context.target.join("package").join(format!("{name}.crate"));
        quiet(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&folder))?;
        // Nothing is published yet: the packages are beside each other instead.
        let path = folder.join(&name);
        patches.extend(["--config".to_owned(), format!("patch.crates-io.{library}.path={path:?}")]);
    }
    for library in LIBRARIES {
        let at = folder.join(format!("{library}-{}", source.version));
        let mut test = context.cargo();
        test.args(["test", "--all-features", "--target-dir"]).arg(context.target.join("packaged-tests"));
        let used = patches.chunks(2).filter(|patch| !patch[1].contains(&format!(".{library}.")));
        test.args(used.flatten()).current_dir(&at).envs(OPTIMIZED_PROFILE);
        let status = test.status().context("cannot start cargo test")?;
        ensure!(status.success(), "the tests in the package of {library}: {status}");
    }
    println!("{} packages pass their tests in {}", LIBRARIES.len(), folder.display());
    remove(&folder)
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}
