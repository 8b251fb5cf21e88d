//! What one build of the workspace gives.

use std::path::PathBuf;

/// A package that names the features of other people's crates that the tests need. What is built
/// beside it finds these crates built already, and has of our own crates only the features that its
/// own manifest names.
pub(crate) const FEATURES: &str = "bulla-features";

/// Arguments of cargo: our large crates without optimization, for builds whose speed and machine
/// code no test looks at.
pub(crate) const QUICK: [&str; 5] = [
    "--config=profile.test.package.bulla-blake2.opt-level=0",
    "--config=profile.test.package.bulla-blake3.opt-level=0",
    "--config=profile.test.package.bulla-ed25519.opt-level=0",
    "--config=profile.test.package.bulla-kms.opt-level=0",
    "--config=profile.test.package.bulla-sums.opt-level=0",
];

/// One test program.
#[derive(Debug)]
pub(crate) struct Program {
    /// The package whose tests it has.
    pub(crate) package: String,
    /// The package and the target, for people.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    /// The package's folder, in which its tests run.
    pub(crate) folder: PathBuf,
}

impl Program {
    /// Whether it was built for this target, which cargo was told.
    pub(crate) fn is_for(&self, target: &str) -> bool {
        self.path.components().any(|part| part.as_os_str() == target)
    }
}

/// Everything that the build gives.
#[derive(Debug)]
pub(crate) struct Programs {
    /// The test programs of all packages.
    pub(crate) tests: Vec<Program>,
    /// The command `bulla`, whose keystore has every feature. The other programs are beside it.
    pub(crate) command: PathBuf,
}
