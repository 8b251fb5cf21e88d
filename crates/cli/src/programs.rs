//! The programs beside `bulla` that are commands of it to its users: `bulla audit` starts
//! `bulla-audit`. bulla finds them as git finds its own: in its own folder first, and then on the
//! PATH; never in the current folder.

use crate::error::{Error, Result};
use crate::exit::Exit;
use bulla_command::tree::{CommandTree, DESCRIBE};
use bulla_files::escape_path;
use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that is a command of bulla.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// The command's name.
    pub(crate) command: &'static str,
    /// What the command does, in the list of commands.
    about: &'static str,
    /// The file's name.
    file: &'static str,
    /// The package that has it.
    package: &'static str,
}

/// The audit of binaries.
const AUDIT: Program = Program {
    command: "audit",
    about: "Show which vector instructions and kernels a compiled binary really contains",
    file: "bulla-audit",
    package: "bulla-audit",
};

/// The service.
pub(crate) const SERVE: Program = Program {
    command: "serve",
    about: "Run the key management service over HTTP",
    file: "bulla-serve",
    package: "bulla-server",
};

/// All programs.
pub(crate) const PROGRAMS: [Program; 2] = [AUDIT, SERVE];

/// The program that a command line of bulla starts, and its arguments.
pub(crate) fn asked(words: &[OsString]) -> Option<(&'static Program, Vec<OsString>)> {
    let mut at = 1;
    // The only flag of bulla itself.
    while let Some(word) =
        words.get(at).map(|word| word.as_encoded_bytes()).filter(|word| word.starts_with(b"--color"))
    {
        at += if word == b"--color" { 2 } else { 1 };
    }
    let program =
        |at: usize| PROGRAMS.iter().find(|program| words.get(at).is_some_and(|word| word == program.command));
    let color = words.get(1..at)?;
    if let Some(program) = program(at) {
        return Some((program, [color, &words[at + 1..]].concat()));
    }
    let is_help = words.get(at).is_some_and(|word| word == "help");
    let program = program(at + 1).filter(|_| is_help)?;
    Some((program, [color, &words[at + 2..], &["--help".into()]].concat()))
}

impl Program {
    /// The command in the list of commands. It parses nothing.
    pub(crate) fn stub(&self) -> clap::Command {
        clap::Command::new(self.command).about(self.about)
    }

    /// The command with its flags and the commands below it, if the program is there.
    pub(crate) fn describe(&self) -> clap::Command {
        let described = || -> Option<CommandTree> {
            let output = Command::new(self.find().ok()?).arg(DESCRIBE).output().ok()?;
            serde_json::from_slice(&output.stdout).ok()
        };
        described().map_or_else(|| self.stub(), |tree| tree.into_command(self.command))
    }

    /// Starts this program with the arguments of this process: it carries out this command.
    ///
    /// # Errors
    /// It is missing, or cannot be started.
    pub(crate) fn start_same(&self) -> Result<Exit> {
        let args: Vec<_> = env::args_os().skip(1).collect();
        self.start(&args)
    }

    /// Becomes this program, where the system can do that; else runs it, and ends as it does.
    ///
    /// # Errors
    /// It is missing, or cannot be started.
    pub(crate) fn start(&self, args: &[OsString]) -> Result<Exit> {
        let path = self.find()?;
        let mut command = Command::new(&path);
        command.args(args);
        #[cfg(unix)]
        let error = std::os::unix::process::CommandExt::exec(&mut command);
        #[cfg(not(unix))]
        let error = match command.status() {
            Ok(status) => std::process::exit(status.code().unwrap_or(2)),
            Err(error) => error,
        };
        Err(Error::io("cannot be started", &error).about(escape_path(&path)))
    }

    fn find(&self) -> Result<PathBuf> {
        let own = env::current_exe();
        let mut folders: Vec<PathBuf> = Vec::new();
        if let Ok(own) = &own {
            folders.extend(own.parent().map(Path::to_owned));
            // The folder that a link to bulla leads to.
            folders.extend(own.canonicalize().ok().and_then(|real| Some(real.parent()?.to_owned())));
        }
        let path = env::var_os("PATH").unwrap_or_default();
        folders.extend(env::split_paths(&path).filter(|folder| folder.is_absolute()));
        let name = format!("{}{EXE_SUFFIX}", self.file);
        let found = folders.iter().map(|folder| folder.join(&name)).find(|path| is_program(path));
        found.ok_or_else(|| {
            let message = format!("the program {} is missing: `bulla {}` starts it", self.file, self.command);
            let folder = folders
                .first()
                .map_or_else(|| "the folder of bulla".to_owned(), |folder| escape_path(folder));
            Error::new("program_missing", message).hint(format!(
                "every package of bulla has it; put it into {folder}, or build it with `cargo install {}`",
                self.package
            ))
        })
    }
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_for(words: &[&str]) -> Option<(&'static str, Vec<String>)> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let (program, args) = asked(&words)?;
        Some((program.command, args.iter().map(|word| word.to_string_lossy().into_owned()).collect()))
    }

    #[test]
    fn a_program_gets_the_words_after_its_name_as_they_are() {
        let found = |args: &[&str]| Some(("audit", args.iter().map(ToString::to_string).collect()));
        assert_eq!(asked_for(&["bulla", "audit"]), found(&[]));
        assert_eq!(asked_for(&["bulla", "audit", "--help"]), found(&["--help"]));
        assert_eq!(asked_for(&["bulla", "audit", "--", "-x", "--color"]), found(&["--", "-x", "--color"]));
        assert_eq!(
            asked_for(&["bulla", "--color", "never", "audit", "x"]),
            found(&["--color", "never", "x"])
        );
        assert_eq!(asked_for(&["bulla", "--color=never", "audit"]), found(&["--color=never"]));
        assert_eq!(asked_for(&["bulla", "help", "audit"]), found(&["--help"]));
    }

    #[test]
    fn other_commands_start_no_program() {
        for words in [
            &["bulla"][..],
            &["bulla", "sum", "audit"],
            &["bulla", "help"],
            &["bulla", "--color"],
            &["bulla", "-x", "audit"],
            &["bulla", "audit-log"],
            &[],
        ] {
            assert_eq!(asked_for(words), None, "{words:?}");
        }
    }
}
