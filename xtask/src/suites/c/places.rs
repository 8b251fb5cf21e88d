//! The folders of the suite `c`.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use bulla_devtools::Context;

/// The folders of this suite.
pub(super) struct Places {
    /// The sources of the tests.
    pub(super) sources: PathBuf,
    /// Where programs and results go.
    pub(super) build: PathBuf,
    /// Where the libraries are installed.
    pub(super) prefix: PathBuf,
    /// The official library, built from the sources in its crate.
    pub(super) official: PathBuf,
}

impl Places {
    /// Empty folders.
    pub(super) fn make(context: &Context) -> Result<Self> {
        let build = context.target.join("c");
        if build.exists() {
            fs::remove_dir_all(&build)?;
        }
        let (prefix, official) = (build.join("prefix"), build.join("official"));
        fs::create_dir_all(&official).with_context(|| format!("cannot make {}", official.display()))?;
        Ok(Self { sources: context.root.join("c"), build, prefix, official })
    }
}
