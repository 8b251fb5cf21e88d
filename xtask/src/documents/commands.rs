//! Checks that every command of ours that a document shows exists and has its flags.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{Context, quiet};

use crate::forward::{self, Built};

/// The documents whose commands are checked.
const DOCUMENTS: [&str; 26] = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "RELEASING.md",
    "docs/README.md",
    "docs/age.md",
    "docs/approvals.md",
    "docs/checksums.md",
    "docs/formats.md",
    "docs/jwt.md",
    "docs/login.md",
    "docs/operations.md",
    "docs/pkcs11.md",
    "docs/remote.md",
    "docs/ssh.md",
    "docs/threshold.md",
    "docs/tutorials/audit-a-binary.md",
    "docs/tutorials/replace-a-library.md",
    "docs/tutorials/run-the-service.md",
    "docs/tutorials/sign-a-git-tag.md",
    "docs/tutorials/sign-a-model.md",
    "docs/tutorials/sign-a-release.md",
    "docs/tutorials/sign-a-terabyte.md",
    "docs/tutorials/sign-from-ci.md",
    "docs/x509.md",
];

/// How a document calls the command `bulla`.
const BULLA: [&[&str]; 2] = [&["bulla"], &["cargo", "run", "--release", "--"]];

/// How a document calls this program.
const XTASK: &[&str] = &["cargo", "xtask"];

/// What reads our commands.
#[derive(Clone, Copy)]
pub(crate) struct Parsers<'a> {
    /// The built command.
    pub(crate) bulla: &'a Path,
    /// The programs that have commands of xtask.
    pub(crate) forward: &'a Built,
    /// The arguments of this program.
    pub(crate) xtask: &'a clap::Command,
}

/// Checks every command of ours in every document.
pub(crate) fn check(context: &Context, parsers: &Parsers<'_>) -> Result<()> {
    let mut checked = 0;
    for document in DOCUMENTS {
        let text = fs::read_to_string(context.root.join(document))
            .with_context(|| format!("cannot read {document}"))?;
        for command in commands(&text).into_iter().chain(inline(&text)) {
            checked += usize::from(
                check_command(parsers, &command).with_context(|| format!("{document}: {command}"))?,
            );
        }
    }
    ensure!(checked > 0, "the documents show none of our commands");
    println!("{checked} commands");
    Ok(())
}

/// Whether `command` is one of ours, and an error if it is and would not run.
pub(super) fn check_command(parsers: &Parsers<'_>, command: &str) -> Result<bool> {
    let words = shlex::split(command).context("the quotes do not match")?;
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    // A parser stops at --help, and refuses before it any command and any flag that does not exist.
    let help = |program: &Path, arguments: &[&str]| {
        quiet(Command::new(program).args(arguments).arg("--help")).map(|_| true)
    };
    if let Some(arguments) = words.strip_prefix(XTASK) {
        if let Some((program, word)) = arguments.first().and_then(|command| forward::program(command)) {
            let arguments: Vec<_> = word.into_iter().chain(arguments[1..].iter().copied()).collect();
            return help(&parsers.forward.path(program), &arguments);
        }
        let parsed = parsers.xtask.clone().try_get_matches_from(["xtask"].iter().chain(arguments));
        if let Err(error) = parsed
            && error.use_stderr()
        {
            bail!("{error}");
        }
        return Ok(true);
    }
    match BULLA.iter().find_map(|name| words.strip_prefix(*name)) {
        Some(arguments) => help(parsers.bulla, own_arguments(arguments)),
        None => Ok(false),
    }
}

/// The arguments without the command that `bulla agent` starts: that one would get the `--help`.
fn own_arguments<'a>(arguments: &'a [&'a str]) -> &'a [&'a str] {
    const STARTED: [&str; 2] = ["git", "ssh"];
    match arguments {
        ["agent", rest @ ..] => {
            let own = rest.iter().position(|word| STARTED.contains(word)).unwrap_or(rest.len());
            &arguments[..=own]
        }
        _ => arguments,
    }
}

/// The commands after `$ ` in blocks marked `console`, one for each part of a pipe.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_console = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            in_console = language.split(' ').next() == Some("console");
        } else if let Some(command) = line.strip_prefix("$ ")
            && in_console
        {
            // A file's name follows a redirection.
            let parts = unquoted_split(command, ['|', ';', '&']).into_iter();
            commands.extend(parts.map(|part| unquoted_split(part, ['>', '<', '#'])[0].trim().to_owned()));
        }
    }
    commands.retain(|command| !command.is_empty());
    commands
}

/// The parts of a line of the shell between these signs, as far as they are in no quotes.
fn unquoted_split(line: &str, signs: [char; 3]) -> Vec<&str> {
    let (mut parts, mut begin, mut quote) = (Vec::new(), 0, None);
    for (at, sign) in line.char_indices() {
        match quote {
            Some(end) if end == sign => quote = None,
            Some(_) => {}
            None if sign == '\'' || sign == '"' => quote = Some(sign),
            None if signs.contains(&sign) => {
                parts.push(&line[begin..at]);
                begin = at + 1;
            }
            None => {}
        }
    }
    parts.push(&line[begin..]);
    parts
}

/// The commands in sentences: code that begins with the name of the command.
fn inline(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let code = line.split('`').skip(1).step_by(2);
            commands.extend(code.filter(|code| code.starts_with("bulla ")).map(str::to_owned));
        }
    }
    commands
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn commands_are_read_from_console_blocks() {
        let text = "$ no\n```console\n$ bulla sum - < a | sort > b\noutput\n$ cd x && bulla man  # why\n$ bulla serve &\n```\n```sh\n$ no\n```\n";
        assert_eq!(commands(text), ["bulla sum -", "sort", "cd x", "bulla man", "bulla serve"]);
    }

    #[test]
    fn signs_in_quotes_end_no_command() {
        let text = "```console\n$ p11tool 'token=a;object=b' | bulla sum \"a > b\" # it's\n```\n";
        assert_eq!(commands(text), ["p11tool 'token=a;object=b'", "bulla sum \"a > b\""]);
    }

    #[test]
    fn what_the_agent_starts_is_not_checked() {
        assert_eq!(own_arguments(&["agent", "--key", "a", "ssh", "--no"]), ["agent", "--key", "a"]);
        assert_eq!(own_arguments(&["agent", "--socket", "a"]), ["agent", "--socket", "a"]);
        assert_eq!(own_arguments(&["verify", "ssh"]), ["verify", "ssh"]);
    }

    #[test]
    fn commands_are_read_from_sentences() {
        let text = "Run `bulla sum --tree FOLDER`, not `bulla` or `bullas x`: `bulla man`.\n```console\n$ `bulla no`\n```\nThen `bulla \n`.\n";
        assert_eq!(inline(text), ["bulla sum --tree FOLDER", "bulla man", "bulla "]);
    }

    #[test]
    fn commands_of_xtask_are_parsed() {
        let (none, xtask) = (Path::new("no such program"), &crate::Args::command());
        let forward = &Built { folder: none.to_owned() };
        let parsers = Parsers { bulla: none, forward, xtask };
        assert!(check_command(&parsers, "cargo xtask test tidy rust").unwrap());
        assert!(check_command(&parsers, "cargo xtask tset").is_err());
        assert!(check_command(&parsers, "cargo xtask test tidy --lunches 9").is_err());
        assert!(!check_command(&parsers, "cargo build").unwrap());
    }

    #[test]
    fn other_programs_read_their_own_commands() {
        let xtask = &crate::Args::command();
        let folder = std::env::temp_dir().join(format!("bulla-xtask-commands-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let forward = &Built { folder: folder.clone() };
        std::os::unix::fs::symlink("/bin/true", forward.path(forward::BENCH)).unwrap();
        std::os::unix::fs::symlink("/bin/false", forward.path(forward::DIST)).unwrap();
        let parsers = Parsers { bulla: Path::new("false"), forward, xtask };
        assert!(check_command(&parsers, "cargo xtask bench blake3 --launches 9").unwrap());
        assert!(check_command(&parsers, "cargo xtask dist build").is_err());
        assert!(check_command(&parsers, "bulla sum a").is_err());
        let parsers = Parsers { bulla: Path::new("true"), forward, xtask };
        assert!(check_command(&parsers, "cargo run --release -- sum a").unwrap());
        fs::remove_dir_all(&folder).unwrap();
    }
}
