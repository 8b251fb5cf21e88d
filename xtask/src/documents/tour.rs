//! Runs the tours of the documents, and compares their output with the documents.

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{Context, build_program};

use crate::program::{FEATURES, QUICK};

/// The mark of the blocks to run, all in one shell, one after the other.
const TOUR: &str = "console tour";

/// Printed before the output of each step, to separate the steps. No command prints this.
const MARK: &str = "\u{1}step";

/// A command, and the lines that it prints, including standard error.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    command: String,
    output: Vec<String>,
}

/// The documents with tours.
const DOCUMENTS: [&str; 7] = [
    "README.md",
    "docs/tutorials/run-the-service.md",
    "docs/tutorials/sign-a-git-tag.md",
    "docs/tutorials/sign-a-model.md",
    "docs/tutorials/sign-a-release.md",
    "docs/tutorials/sign-a-terabyte.md",
    "docs/tutorials/sign-from-ci.md",
];

/// The document whose tour audits the command itself.
const AUDIT: &str = "docs/tutorials/audit-a-binary.md";

/// Runs the tour of each document in an empty folder. `optimized` is a command with all kernels.
pub(crate) fn check(context: &Context, optimized: &Path) -> Result<()> {
    let mut commands = run(context, optimized, AUDIT).context(AUDIT)?;
    // As it is shipped: with those features of our crates that its own manifest names.
    let packages = ["bulla", "bulla-audit", "bulla-remote", "bulla-server", FEATURES];
    let packages = packages.into_iter().flat_map(|package| ["-p", package]);
    let build = ["build", "--quiet", "--profile=test"].into_iter().chain(packages);
    let program = build_program(context.cargo().args(build).args(QUICK))?;
    for document in DOCUMENTS {
        commands += run(context, &program, document).with_context(|| document.to_owned())?;
    }
    println!("{commands} commands");
    Ok(())
}

/// Runs one tour. Returns the number of its commands.
fn run(context: &Context, bulla: &Path, document: &str) -> Result<usize> {
    let steps = steps(&fs::read_to_string(context.root.join(document)).context("cannot read it")?);
    ensure!(!steps.is_empty(), "it has no block marked `{TOUR}`");
    let folder = context.target.join("tour");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let script: String = steps.iter().map(|step| format!("echo {MARK}\n{}\n", step.command)).collect();
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = bulla.parent().map(Into::into).into_iter().chain(env::split_paths(&path));
    let output = Command::new("bash")
        .arg("-c")
        // What a tour left running would keep the output open.
        .arg(format!("exec 2>&1\n{script}echo {MARK}\nkill $(jobs -p)\nwait\n"))
        .current_dir(&folder)
        .env("PATH", env::join_paths(folders)?)
        .env("HOME", &folder)
        .env_remove("XDG_DATA_HOME")
        .output()
        .context("cannot start bash")?;
    let printed = String::from_utf8(output.stdout)?;
    let mut outputs: Vec<&str> = printed.split(&format!("{MARK}\n")).skip(1).collect();
    outputs.pop();
    ensure!(outputs.len() == steps.len(), "{} of {} commands ran", outputs.len(), steps.len());
    for (step, output) in steps.iter().zip(outputs) {
        compare(step, output)?;
    }
    Ok(steps.len())
}

fn compare(step: &Step, output: &str) -> Result<()> {
    let lines: Vec<_> = output.lines().collect();
    let same = lines.len() == step.output.len() && lines.iter().zip(&step.output).all(|(a, b)| alike(a, b));
    if !same {
        bail!("`{}` printed\n{output}and not\n{}", step.command, step.output.join("\n"));
    }
    Ok(())
}

/// Whether two lines are equal, except for words that differ each time.
fn alike(a: &str, b: &str) -> bool {
    let (a, b): (Vec<_>, Vec<_>) = (a.split(' ').collect(), b.split(' ').collect());
    a.len() == b.len()
        && a.iter()
            .zip(&b)
            .all(|(a, b)| a == b || (a.len() == b.len() && differs_each_time(a) && differs_each_time(b)))
}

/// Keys, signatures, identifiers and times are long, have a fixed length, and contain a digit or a
/// capital letter. Digests do too, but the tour's files are the same each time, so their digests
/// are as well.
fn differs_each_time(word: &str) -> bool {
    let is_digest = word.len() == 64 && word.chars().all(|c| c.is_ascii_hexdigit());
    word.len() >= 16 && word.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase()) && !is_digest
}

/// The steps of all blocks of the tour.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut in_tour = false;
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            in_tour = language == TOUR;
        } else if !in_tour {
        } else if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step { command: command.to_owned(), output: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            step.output.push(line.to_owned());
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_from_marked_blocks() {
        let text =
            "```console tour\n$ a b\none\n  two\n$ c\n```\n```console\n$ d\n```\n```console tour\n$ e\n```\n";
        let step = |command: &str, output: &[&str]| Step {
            command: command.into(),
            output: output.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(steps(text), [step("a b", &["one", "  two"]), step("c", &[]), step("e", &[])]);
    }

    #[test]
    fn only_what_differs_each_time_may_differ() {
        assert!(alike("signed 2026-11-20T16:23:13.109Z by me", "signed 2027-01-02T03:04:05.006Z by me"));
        assert!(!alike("signed 2026-11-20T16:23:13.109Z", "signed 2026-11-20T16:23:13Z"));
        assert!(!alike("4 bytes", "5 bytes"));
        assert!(!alike("one two", "one"));
        assert!(!alike(&"0a".repeat(32), &"0b".repeat(32)));
    }

    #[test]
    fn other_output_is_refused() {
        let step = Step { command: "x".into(), output: vec!["one".into()] };
        assert!(compare(&step, "one\n").is_ok());
        for other in ["", "two\n", "one\ntwo\n"] {
            assert!(compare(&step, other).is_err(), "{other}");
        }
    }
}
