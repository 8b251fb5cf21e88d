//! The source of a release: a commit, and nothing that is not in it.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, quiet};

use super::files;

/// The commit that is shipped.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) version: String,
    pub(super) commit: String,
    /// When it was committed: seconds since 1970. Everything in a release has this time.
    pub(super) time: u64,
}

impl Source {
    /// HEAD.
    ///
    /// # Errors
    /// The working tree differs from it, so that what is tested here would not be what is shipped.
    pub(super) fn head(context: &Context) -> Result<Self> {
        let git = |args: &[&str]| quiet(Command::new("git").args(args).current_dir(&context.root));
        let changed = git(&["status", "--porcelain"])?;
        ensure!(
            changed.is_empty(),
            "a release is made of a commit: commit or remove these first:\n{changed}"
        );
        let time = git(&["log", "-1", "--format=%ct"])?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: git(&["rev-parse", "HEAD"])?.trim().to_owned(),
            time: time.trim().parse().context("git names no time")?,
        })
    }

    /// Writes its files into a new folder.
    pub(super) fn unpack(&self, context: &Context, to: &Path) -> Result<()> {
        files::fresh(to)?;
        let archive = to.with_extension("tar");
        let mut git = Command::new("git");
        git.args(["archive", "--format=tar", "--output"]).arg(&archive).arg(&self.commit);
        quiet(git.current_dir(&context.root))?;
        quiet(Command::new("tar").args(["-x", "-m", "-f"]).arg(&archive).arg("-C").arg(to))?;
        fs::remove_file(&archive)?;
        Ok(())
    }
}
