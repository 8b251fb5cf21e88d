//! The workflows in `.github/workflows`: actionlint reads them, they run only commands that exist,
//! and their lists are those of the repository.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{
    Context,
    install::{self, GoTool},
    quiet,
};

use super::commands::{Parsers, check_command};
use crate::{fuzz, mutants};

const FOLDER: &str = ".github/workflows";

const ACTIONLINT: GoTool =
    GoTool { name: "actionlint", package: "github.com/rhysd/actionlint/cmd/actionlint", version: "1.7.12" };

/// What stands for a variable of a workflow when its commands are parsed: any value that the
/// variable can have.
const VALUES: [(&str, &str); 6] = [
    ("\"$TARGET\"", "key_id"),
    ("\"$GROUP\"", "audit-text"),
    ("\"$SUITE\"", "oneshot"),
    ("\"$KERNEL\"", "x86_64/avx2"),
    ("${{ matrix.suites }}", "tidy page"),
    ("${{ matrix.target }}", "x86_64-unknown-linux-musl"),
];

/// The repositories of which a step may use an action.
const ACTIONS: &str = "actions/";

/// Checks every workflow.
pub(crate) fn check(context: &Context, parsers: &Parsers<'_>) -> Result<()> {
    let mut commands = 0;
    for path in files(&context.root)? {
        let text = fs::read_to_string(&path)?;
        let checked = check_text(&text, parsers);
        commands += checked.with_context(|| format!("{}", path.display()))?;
    }
    ensure!(commands > 0, "no workflow runs a command of ours");
    check_lists(&context.root, parsers)?;
    check_oldest(&context.root)?;
    let actionlint = install::go_tool(context, &ACTIONLINT)?;
    quiet(Command::new(actionlint).arg("-oneline").current_dir(&context.root))?;
    println!("{commands} commands");
    Ok(())
}

fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(root.join(FOLDER)).with_context(|| format!("cannot read {FOLDER}"))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Checks one workflow: its rights, its limits of time, its actions and its commands. Returns the
/// number of commands of ours.
fn check_text(text: &str, parsers: &Parsers<'_>) -> Result<usize> {
    for needed in ["\npermissions:\n  contents: read\n", "\nconcurrency:\n"] {
        ensure!(text.contains(needed), "the workflow has no `{}`", needed.trim());
    }
    let count = |key: &str| text.lines().filter(|line| line.trim_start().starts_with(key)).count();
    ensure!(count("runs-on:") == count("timeout-minutes:"), "a job has no `timeout-minutes`");
    for line in text.lines() {
        if let Some((_, action)) = line.split_once("uses: ") {
            ensure!(action.starts_with(ACTIONS), "{action} is not one of GitHub's own actions");
        }
    }
    let mut checked = 0;
    for command in commands(text) {
        checked += usize::from(check_command(parsers, &command)?);
    }
    Ok(checked)
}

/// The calls of `cargo xtask`, up to a pipe or the end of the line, with values for variables.
fn commands(text: &str) -> Vec<String> {
    let uncommented = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    uncommented
        .filter_map(|line| line.find("cargo xtask ").map(|at| &line[at..]))
        .map(|call| {
            let call = call.split(['|', ';', '&', '>']).next().unwrap_or_default().trim();
            VALUES.iter().fold(call.to_owned(), |call, (variable, value)| call.replace(variable, value))
        })
        .collect()
}

/// Checks the lists of the workflows: suites of tests, fuzz targets, and groups of mutants. Tests
/// of `crates/bench` and `crates/dist` check those of `gate.yml` and `release.yml`.
fn check_lists(root: &Path, parsers: &Parsers<'_>) -> Result<()> {
    let read = |name: &str| fs::read_to_string(root.join(FOLDER).join(name)).context(name.to_owned());
    let (test, nightly) = (read("test.yml")?, read("nightly.yml")?);
    for suites in list(&test, "suites:") {
        check_command(parsers, &format!("cargo xtask test {suites}"))?;
    }
    same("fuzz targets of nightly.yml", &list(&nightly, "target:"), &fuzz::names(root)?)?;
    same("groups of nightly.yml", &list(&nightly, "group:"), &mutants::groups(root)?)
}

/// Where a package promises its oldest version of a language, what stands around it there, and
/// around it in `test.yml`, which must test with it.
const OLDEST: [(&str, [&str; 2], [&str; 2]); 3] = [
    ("go/go.mod", ["\ngo ", "\n"], ["GOTOOLCHAIN: go", "\n"]),
    ("js/package.json", ["\"node\": \">=", "\""], ["node-version: \"", "\"\n"]),
    ("python/pyproject.toml", ["requires-python = \">=", "\""], ["python-version: |\n            ", "\n"]),
];

/// Checks that the oldest versions that the packages promise are tested.
fn check_oldest(root: &Path) -> Result<()> {
    let test = fs::read_to_string(root.join(FOLDER).join("test.yml"))?;
    for (file, around, tested) in OLDEST {
        let promised = fs::read_to_string(root.join(file))?;
        let oldest = between(&promised, around).with_context(|| format!("{file} names no oldest version"))?;
        let wanted = [tested[0], oldest, tested[1]].concat();
        ensure!(test.contains(&wanted), "{file} promises {oldest}, and test.yml has no `{}`", wanted.trim());
    }
    Ok(())
}

/// The first text between two others.
fn between<'a>(text: &'a str, [before, after]: [&str; 2]) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

/// The items of the first list after the line `key`.
fn list(text: &str, key: &str) -> BTreeSet<String> {
    let after = text.lines().skip_while(|line| line.trim() != key).skip(1);
    after
        .map(|line| line.trim().strip_prefix("- "))
        .skip_while(Option::is_none)
        .map_while(|item| item.map(str::to_owned))
        .collect()
}

fn same(what: &str, found: &BTreeSet<String>, wanted: &BTreeSet<String>) -> Result<()> {
    let (less, more): (Vec<_>, Vec<_>) =
        (wanted.difference(found).collect(), found.difference(wanted).collect());
    if !(less.is_empty() && more.is_empty()) {
        bail!("{what}: missing {less:?}, too many {more:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::forward;

    const GOOD: &str = "on: push\n\npermissions:\n  contents: read\n\nconcurrency:\n  group: a\n\njobs:\n  a:\n    runs-on: b\n    \
        timeout-minutes: 5\n    steps:\n      - uses: actions/checkout@v5\n      # cargo xtask nothing\n      - run: cargo xtask test tidy | tee a\n";

    #[test]
    fn a_workflow_is_refused_for_each_of_its_faults() {
        let (none, xtask) = (Path::new("no such program"), &crate::Args::command());
        let forward = &forward::Built { folder: none.to_owned() };
        let parsers = Parsers { bulla: none, forward, xtask };
        let check = |text: &str| check_text(text, &parsers);
        assert_eq!(check(GOOD).unwrap(), 1);
        for (from, to) in [
            ("contents: read", "contents: write"),
            ("concurrency:", "other:"),
            ("timeout-minutes", "minutes"),
            ("actions/checkout", "somebody/checkout"),
            ("test tidy", "test untidy"),
            ("xtask test", "xtask tset"),
        ] {
            assert!(check(&GOOD.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_promised_version_without_a_test_is_found() {
        let root = std::env::temp_dir().join(format!("bulla-xtask-oldest-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("go/go.mod", "module a\n\ngo 1.24.0\n");
        write("js/package.json", "{ \"node\": \">=20\" }");
        write("python/pyproject.toml", "requires-python = \">=3.11\"\n");
        let tested = "GOTOOLCHAIN: go1.24.0\nnode-version: \"20\"\npython-version: |\n            3.11\n            3.13\n";
        let workflow = ".github/workflows/test.yml";
        write(workflow, tested);
        check_oldest(&root).unwrap();
        for (from, to) in [("1.24.0", "1.24.1"), ("\"20\"", "\"22\""), ("3.11", "3.12")] {
            write(workflow, &tested.replace(from, to));
            assert!(check_oldest(&root).is_err(), "{to}");
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn lists_are_read() {
        let text = "  lane:\n    about: c\n    options:\n      - a\n      - b\n  suite:\n      - c\n";
        assert_eq!(list(text, "lane:"), ["a", "b"].map(str::to_owned).into());
        assert_eq!(list(text, "suite:"), ["c".to_owned()].into());
        assert!(same("x", &list(text, "lane:"), &list(text, "suite:")).is_err());
    }
}
