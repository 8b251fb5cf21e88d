//! `bulla completions`: a completion script for a shell.

use crate::args::{Cli, CompletionsArgs};
use crate::error::Result;
use crate::exit::Exit;
use crate::output::Out;

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::with_programs(), "bulla", &mut script);
    let mut out = Out::stdout();
    out.bytes(&script)?;
    out.flush()?;
    Ok(Exit::Ok)
}
