//! Commands that other programs have, so that this one stays small: it builds the program and
//! starts it with the same arguments.

use std::{
    env::consts::EXE_SUFFIX,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result};
use bulla_devtools::{Context, build_program};

/// The laboratory's front end. Its own commands have the same names.
pub(crate) const BENCH: &str = "bulla-bench";
/// `cargo xtask dist`.
pub(crate) const DIST: &str = "bulla-dist";
/// `cargo xtask site`.
pub(crate) const SITE: &str = "bulla-site";

/// The commands, and the program that has each.
const COMMANDS: [(&str, &str); 9] = [
    ("bench", BENCH),
    ("gate", BENCH),
    ("lanes", BENCH),
    ("report", BENCH),
    ("dashboard", BENCH),
    ("flame", BENCH),
    ("audit-matrix", BENCH),
    ("dist", DIST),
    ("site", SITE),
];

/// What such a command takes: its program reads it.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Builds the program of the command, runs it, and has its exit status.
pub(crate) fn run(command: &str, args: &Args) -> Result<ExitCode> {
    let (package, words) = program(command).with_context(|| format!("no program has {command}"))?;
    let path = build(&Context::find()?, &[package])?.path(package);
    let status = Command::new(&path).args(words).args(&args.arguments).status();
    let status = status.with_context(|| format!("cannot start {}", path.display()))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2)))
}

/// The program that has the command, and its first arguments.
pub(crate) fn program(command: &str) -> Option<(&'static str, Option<&'static str>)> {
    let (command, package) = COMMANDS.into_iter().find(|(name, _)| *name == command)?;
    Some((package, (package == BENCH).then_some(command)))
}

/// The built programs.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    /// The folder that they are in.
    pub(crate) folder: PathBuf,
}

impl Built {
    /// The path of a program, which has the name of its package.
    pub(crate) fn path(&self, package: &str) -> PathBuf {
        self.folder.join(format!("{package}{EXE_SUFFIX}"))
    }
}

/// Builds these programs, in the profile of this one and of the tests.
pub(crate) fn build(context: &Context, packages: &[&str]) -> Result<Built> {
    let mut cargo = context.cargo();
    cargo
        .args(["build", "--quiet", "--profile=test"])
        .args(packages.iter().flat_map(|package| ["-p", package]));
    let one = build_program(&mut cargo)?;
    Ok(Built { folder: one.parent().unwrap_or(Path::new("")).to_owned() })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_of_another_program_is_one_of_xtask() {
        let xtask = crate::Args::command();
        for (command, _) in COMMANDS {
            assert!(xtask.find_subcommand(command).is_some(), "{command}");
        }
        assert_eq!(program("gate"), Some((BENCH, Some("gate"))));
        assert_eq!(program("dist"), Some((DIST, None)));
        assert_eq!(program("test"), None);
    }
}
