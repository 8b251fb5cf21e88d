//! `cargo xtask dashboard`: builds the page of the laboratory from the runs in `lab/runs`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};
use bulla_devtools::{Context, install::node_packages, quiet};
use bulla_record::{gate::Limits, page::Page};

use crate::{gate::limits_path, report};

/// The arguments of `cargo xtask dashboard`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask dashboard\n  cargo xtask dashboard --out pages\n\n\
    The page is a folder that needs no server: open its index.html, or copy it to any static host.")]
pub(crate) struct Args {
    /// The folder to write
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Builds the page, and prints its path.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let context = Context::find()?;
    let folder = match &args.out {
        Some(folder) => std::path::absolute(folder)?,
        None => source(&context).join("dist"),
    };
    build(&context, &folder)?;
    println!("{}", folder.join("index.html").display());
    Ok(ExitCode::SUCCESS)
}

/// The folder of its sources.
pub(crate) fn source(context: &Context) -> PathBuf {
    context.root.join("lab/dashboard")
}

/// Writes the page with the data of all kept runs to `folder`.
pub(crate) fn build(context: &Context, folder: &Path) -> Result<()> {
    let page = Page::new(&report::kept(context)?, &Limits::read(&limits_path(context))?)?;
    let source = source(context);
    node_packages(&source)?;
    quiet(Command::new("node").arg("build.js").arg(folder).current_dir(&source))?;
    let data = folder.join("data.js");
    fs::write(&data, page.script()?).with_context(|| format!("cannot write {}", data.display()))
}
