//! The programs beside `bulla` that are commands of it to its users: `bulla audit` starts
//! `bulla-audit`. bulla finds them as git finds its own: in its own folder first, and then on the
//! PATH; never in the current folder.
//!
//! `bulla-remote` has the commands `token`, `threshold`, `approvals`, `x509`, `kms-plugin` and
//! `age-plugin`, and all commands of bulla with the keys of a service.

use crate::error::{Error, Result};
use bulla_command::tree::{CommandTree, DESCRIBE};
use bulla_files::escape_path;
use std::env::{self, consts::EXE_SUFFIX};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

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
    /// Why bulla starts it, for the error when it is missing.
    purpose: &'static str,
    /// Whether the program has several commands, so that its first argument is the command's name.
    has_commands: bool,
}

/// The audit of binaries.
const AUDIT: Program = Program {
    command: "audit",
    about: "Show which vector instructions and kernels a compiled binary really contains",
    file: "bulla-audit",
    package: "bulla-audit",
    purpose: "`bulla audit` starts it",
    has_commands: false,
};

/// The service.
pub(crate) const SERVE: Program = Program {
    command: "serve",
    about: "Run the key management service over HTTP",
    file: "bulla-serve",
    package: "bulla-server",
    purpose: "`bulla serve` starts it",
    has_commands: false,
};

/// What needs the client of the service, tokens, or keys of groups.
pub(crate) const REMOTE: Program = Program {
    command: "token",
    about: "Mint, attenuate and inspect capability tokens, and log in for one",
    file: "bulla-remote",
    package: "bulla-remote",
    purpose: "bulla starts it for tokens, and for the keys of a service",
    has_commands: true,
};

/// Keys of groups: their protocol, and its curve, are many crates.
const THRESHOLD: Program = Program {
    command: "threshold",
    about: "Sign with keys that no single machine holds",
    purpose: "`bulla threshold` starts it",
    ..REMOTE
};

/// Approvals of the uses of a service's keys.
const APPROVALS: Program = Program {
    command: "approvals",
    about: "Use keys of a service that need the approvals of several people",
    purpose: "`bulla approvals` starts it",
    ..REMOTE
};

/// Certificates: the library that writes them is for this command alone.
const X509: Program = Program {
    command: "x509",
    about: "Sign X.509 certificates, and limit which ones a key signs",
    purpose: "`bulla x509` starts it",
    ..REMOTE
};

/// The plugin for Kubernetes, which asks a service.
const KMS_PLUGIN: Program = Program {
    command: "kms-plugin",
    about: "Let the API server of Kubernetes encrypt with a key of a service (KMS v2)",
    purpose: "`bulla kms-plugin` starts it",
    ..REMOTE
};

/// The plugin for age, with which age uses keys of a keystore or a service.
const AGE_PLUGIN: Program = Program {
    command: "age-plugin",
    about: "Let age encrypt and decrypt with a key of a keystore or a service",
    purpose: "`bulla age-plugin` starts it, and age by `age-plugin-bulla`",
    ..REMOTE
};

/// The policies of the service.
const POLICY: Program = Program {
    command: "policy",
    about: "Check policies of the service, and explain what they permit",
    purpose: "`bulla policy` starts it",
    has_commands: true,
    ..SERVE
};

/// All programs.
pub(crate) const PROGRAMS: [Program; 9] =
    [AUDIT, SERVE, REMOTE, THRESHOLD, APPROVALS, X509, KMS_PLUGIN, AGE_PLUGIN, POLICY];

/// The place of the command's name on a command line: after the only flag of bulla itself.
fn command_index(words: &[OsString]) -> usize {
    let mut at = 1;
    while let Some(word) =
        words.get(at).map(|word| word.as_encoded_bytes()).filter(|word| word.starts_with(b"--color"))
    {
        at += if word == b"--color" { 2 } else { 1 };
    }
    at
}

/// The words of a command line of bulla without the command's name, if the command is this one.
#[must_use]
pub fn strip_command(words: &[OsString], name: &str) -> Option<Vec<OsString>> {
    let at = command_index(words);
    words.get(at).filter(|word| *word == name)?;
    Some([&words[..at], &words[at + 1..]].concat())
}

/// Becomes the plugin for age, with the arguments of this process. Returns only if it cannot.
#[must_use]
pub fn start_age_plugin() -> ExitCode {
    let mut args = vec![AGE_PLUGIN.command.into()];
    args.extend(env::args_os().skip(1));
    AGE_PLUGIN.start(&args).report()
}

/// The program that a command line of bulla starts, and its arguments.
pub(crate) fn asked(words: &[OsString]) -> Option<(&'static Program, Vec<OsString>)> {
    let at = command_index(words);
    let program =
        |at: usize| PROGRAMS.iter().find(|program| words.get(at).is_some_and(|word| word == program.command));
    let color = words.get(1..at)?;
    if let Some(program) = program(at) {
        let rest = if program.has_commands { at } else { at + 1 };
        return Some((program, [color, &words[rest..]].concat()));
    }
    let is_help = words.get(at).is_some_and(|word| word == "help");
    let program = program(at + 1).filter(|_| is_help)?;
    let rest = if program.has_commands { at + 1 } else { at + 2 };
    Some((program, [color, &words[rest..], &["--help".into()]].concat()))
}

impl Program {
    /// The command in the list of commands. It parses nothing.
    pub(crate) fn stub(&self) -> clap::Command {
        clap::Command::new(self.command).about(self.about)
    }

    /// The command with its flags and the commands below it, if the program is there.
    pub(crate) fn describe(&self) -> clap::Command {
        let described = || -> Option<CommandTree> {
            let name = self.has_commands.then_some(self.command);
            let output = Command::new(self.find().ok()?).args(name).arg(DESCRIBE).output().ok()?;
            serde_json::from_slice(&output.stdout).ok()
        };
        described().map_or_else(|| self.stub(), |tree| tree.into_command(self.command))
    }

    /// Starts this program with the arguments of this process: it carries out this command. Returns
    /// as [`Program::start`] does.
    pub(crate) fn start_same(&self) -> Error {
        let args: Vec<_> = env::args_os().skip(1).collect();
        self.start(&args)
    }

    /// Becomes this program, where the system can do that; else runs it, and ends as it does.
    /// Returns only an error: the program is missing, or cannot be started.
    pub(crate) fn start(&self, args: &[OsString]) -> Error {
        let path = match self.find() {
            Ok(path) => path,
            Err(missing) => return missing,
        };
        let mut command = Command::new(&path);
        command.args(args);
        #[cfg(unix)]
        let error = {
            use std::os::unix::process::CommandExt as _;
            // It shows commands to the user, which begin with the name that bulla has here.
            if let Some(own) = env::args_os().next().filter(|_| self.has_commands) {
                command.arg0(own);
            }
            command.exec()
        };
        #[cfg(not(unix))]
        let error = match command.status() {
            Ok(status) => std::process::exit(status.code().unwrap_or(2)),
            Err(error) => error,
        };
        Error::io("cannot be started", &error).about(escape_path(&path))
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
            let message = format!("the program {} is missing: {}", self.file, self.purpose);
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
    fn a_program_with_commands_gets_the_name_of_the_command() {
        let found = |args: &[&str]| Some(("token", args.iter().map(ToString::to_string).collect()));
        assert_eq!(asked_for(&["bulla", "token", "inspect", "-"]), found(&["token", "inspect", "-"]));
        assert_eq!(asked_for(&["bulla", "--color=never", "token"]), found(&["--color=never", "token"]));
        assert_eq!(asked_for(&["bulla", "help", "token", "new"]), found(&["token", "new", "--help"]));
        let plugin = Some(("kms-plugin", vec!["kms-plugin".to_owned(), "--key".to_owned()]));
        assert_eq!(asked_for(&["bulla", "kms-plugin", "--key"]), plugin);
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
