//! `cargo xtask dist registries`: everything that publishing does, except the upload.

mod crates;
mod go;
mod npm;
mod python;

use anyhow::{Context as _, Result};
use bulla_devtools::Context;
use clap::ValueEnum;

use super::source::Source;

/// A registry, in the order in which a release goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Registry {
    /// crates.io: a dry run of all crates, and the tests of the libraries outside of the repository
    Crates,
    /// The Go module proxy: our modules, by their tags
    Go,
    /// npm: a dry run of both packages
    Npm,
    /// PyPI: the wheel, and the source distribution, which is installed
    Python,
}

/// Runs the named registries, or all.
pub(super) fn run(context: &Context, only: &[Registry]) -> Result<()> {
    let source = Source::head(context)?;
    for registry in Registry::value_variants() {
        if !only.is_empty() && !only.contains(registry) {
            continue;
        }
        println!("== {registry:?}");
        match registry {
            Registry::Crates => crates::run(context, &source),
            Registry::Go => go::run(context, &source),
            Registry::Npm => npm::run(context, &source),
            Registry::Python => python::run(context, &source),
        }
        .with_context(|| format!("{registry:?}"))?;
    }
    Ok(())
}
