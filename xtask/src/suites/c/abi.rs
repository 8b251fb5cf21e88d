//! What the installed libraries export, and what their headers declare.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use bulla_devtools::{
    c_libraries::{LibraryName, symbols, symbols_path},
    quiet,
};

use super::Folders;
use crate::suites::runner::Runner;

pub(super) fn check(runner: &mut Runner<'_>, folders: &Folders, name: LibraryName) {
    let library = name.library();
    let lib = folders.prefix.join("lib");
    let shared = lib.join(format!("lib{}.so.{}", library.name, library.version));
    let title = |what: &str| format!("lib{}: {what}", library.name);
    runner.check(&title("it exports what its version script says"), |context| {
        let script = fs::read_to_string(symbols_path(context, name))?;
        // Our own functions have a version, so that a later library can change one and keep the old
        // one. The official library's have none.
        let version = if name == LibraryName::Bulla { "@@BULLA_0.1" } else { "" };
        let should = symbols(&script).iter().map(|symbol| format!("{symbol}{version}")).collect();
        same(&exported(&["-D"], &shared)?, &should)
    });
    runner.check(&title("the static library shows the same"), |context| {
        let script = fs::read_to_string(symbols_path(context, name))?;
        let should = symbols(&script).iter().map(ToString::to_string).collect();
        same(&exported(&["-g"], &lib.join(format!("lib{}.a", library.name)))?, &should)
    });
    runner.check(&title("its header declares the same"), |context| {
        let script = fs::read_to_string(symbols_path(context, name))?;
        let header = folders.prefix.join("include").join(format!("{}.h", library.name));
        let should = symbols(&script).iter().map(ToString::to_string).collect();
        same(&declared(&fs::read_to_string(header)?, library.name), &should)
    });
    runner.check(&title("its name is the one that the loader asks for"), |_| {
        let dynamic = quiet(Command::new("objdump").arg("-p").arg(&shared))?;
        let soname = dynamic.lines().find(|line| line.contains("SONAME")).unwrap_or_default();
        ensure!(soname.trim().ends_with(&format!("lib{}.so.0", library.name)), "it is {soname:?}");
        Ok(())
    });
}

fn same(is: &BTreeSet<String>, should: &BTreeSet<String>) -> Result<()> {
    let more: Vec<_> = is.difference(should).collect();
    let less: Vec<_> = should.difference(is).collect();
    ensure!(more.is_empty() && less.is_empty(), "too many: {more:?}; missing: {less:?}");
    ensure!(!is.is_empty(), "it has no symbol");
    Ok(())
}

/// The symbols that a library defines for others, but not the names of versions.
fn exported(options: &[&str], library: &Path) -> Result<BTreeSet<String>> {
    let text = quiet(
        Command::new("nm").args(options).args(["--defined-only", "--with-symbol-versions"]).arg(library),
    )?;
    let symbols = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()? != "A").then(|| words.next().map(str::to_owned)).flatten()
    });
    Ok(symbols.collect())
}

/// The functions that a header declares: names with the library's prefix before a parenthesis,
/// outside of comments.
fn declared(header: &str, prefix: &str) -> BTreeSet<String> {
    let mut code = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let ends = code.match_indices('(').map(|(at, _)| &code[..at]);
    let names = ends.map(|before| &before[before.rfind(|c| !is_name(c)).map_or(0, |at| at + 1)..]);
    names
        .filter(|name| name.starts_with(&format!("{prefix}_")) || *name == "bulla_blake3")
        .map(str::to_owned)
        .collect()
}
