//! A test program of the workspace.

use std::path::PathBuf;

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
