//! `bulla man`: manual pages, made from the definitions of the command line.

use crate::args::{Cli, ManArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Out;

pub(crate) fn run(args: &ManArgs) -> Result<Exit> {
    let mut root = Cli::with_programs();
    // Gives each command its full name and the global flags.
    root.build();
    let mut command = &root;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            Error::new("no_such_command", format!("there is no command `{}`", args.command.join(" ")))
                .hint("`bulla --help` lists the commands")
        })?;
    }
    let mut page = Vec::new();
    let page_name = command.get_bin_name().unwrap_or("bulla").replace(' ', "-");
    let title = page_name.to_uppercase();
    clap_mangen::Man::new(command.clone().name(page_name).display_name(title.to_lowercase()))
        .title(title)
        .render(&mut page)
        .map_err(|error| Error::io("cannot write the page", &error))?;
    let mut out = Out::stdout();
    out.bytes(&left_aligned(&page))?;
    out.flush()?;
    Ok(Exit::Ok)
}

/// The page with even spaces between words: it has long names and addresses, and a line before one
/// of them cannot be spread to its full width.
fn left_aligned(page: &[u8]) -> Vec<u8> {
    const SECTION: &[u8] = b".SH";
    let at = page.windows(SECTION.len()).position(|bytes| bytes == SECTION).unwrap_or(page.len());
    [&page[..at], b".ad l\n", &page[at..]].concat()
}
