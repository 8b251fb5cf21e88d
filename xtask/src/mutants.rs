//! `cargo xtask mutants`: whether the tests notice when one operation of a predicate, a parser, a
//! proof or a policy is another.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{
    Context,
    install::{self, CargoTool},
    quiet,
};
use serde::Deserialize;
use serde_json::Value;

const CARGO_MUTANTS: CargoTool = CargoTool { name: "cargo-mutants", version: "27.1.0" };

/// What is run, and which survivors are known, below the root.
const LIST: &str = "xtask/mutants.toml";

/// Quick to build: see the workspace's `Cargo.toml`.
const PROFILE: &str = "--profile=mutants";
/// What tests may take at least, in seconds, before the mutant counts as an endless loop: far more
/// than they do, so that a busy machine catches nothing.
const LONGEST_TEST: &str = "--minimum-test-timeout=60";
/// A mutant can make a loop allocate without end, and then the kernel would kill whatever uses most
/// memory. On Linux, a test program gets 4 GiB, many times what the tests need. Only writable
/// memory counts: reserved addresses cost nothing.
const MEMORY_LIMIT: &str =
    r#"--cargo-arg=--config=target.'cfg(target_os = "linux")'.runner = ["prlimit", "--data=4294967296"]"#;

/// What `cargo xtask mutants` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask mutants\n  cargo xtask mutants audit-text kms-tree\n  cargo xtask mutants --changed\n\n\
    xtask/mutants.toml has the groups, their tests, and the known survivors with the reason. All groups take hours.\n\n\
    Exit status: 0 every mutant was caught or is a known survivor, 1 another mutant survived, or a known survivor no longer does."
)]
pub(crate) struct Args {
    /// The groups of files to run [default: all, one after another]
    groups: Vec<String>,
    /// Run only the files that differ from BASE, the branch `main` by default
    #[arg(long, value_name = "BASE", num_args = 0..=1, require_equals = true, default_missing_value = "main")]
    changed: Option<String>,
}

/// `xtask/mutants.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    group: Vec<Group>,
    #[serde(default)]
    survivor: Vec<Survivor>,
}

/// The names of the groups.
pub(crate) fn groups(root: &Path) -> Result<BTreeSet<String>> {
    let list = List::parse(&fs::read_to_string(root.join(LIST))?)?;
    Ok(list.group.into_iter().map(|group| group.name).collect())
}

/// Files whose mutants the same tests must catch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    package: String,
    files: Vec<String>,
    /// Arguments of every Cargo command: features, and the targets that are built.
    targets: Vec<String>,
    /// Arguments of the test programs [default: all tests].
    #[serde(default)]
    tests: Vec<String>,
    why: String,
}

/// A mutant that may survive.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Survivor {
    /// As [`key`] has it.
    mutant: String,
    why: String,
    /// How many mutants of this name survive; operators may be in a function several times.
    #[serde(default = "once")]
    times: usize,
}

fn once() -> usize {
    1
}

/// How many mutants came to which end, and the names of those that survived.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    caught: usize,
    missed: usize,
    unviable: usize,
    timeout: usize,
    survivors: BTreeMap<String, usize>,
}

/// Installs what is missing, and runs the groups.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let context = Context::find()?;
    let mut list = List::parse(&fs::read_to_string(context.root.join(LIST))?)?;
    let names: Vec<_> = list.group.iter().map(|group| group.name.as_str()).collect();
    if let Some(unknown) = args.groups.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("no group {unknown}; there are: {}", names.join(", "));
    }
    if let Some(base) = &args.changed {
        list.keep(&changed_since(&context.root, base)?);
        if list.group.is_empty() {
            println!("no file of {LIST} differs from {base}");
            return Ok(ExitCode::SUCCESS);
        }
    }
    let program = install::cargo_tool(&context, &CARGO_MUTANTS)?;
    let mut all = Outcome::default();
    let mut faults = Vec::new();
    for group in list.group.iter().filter(|group| args.groups.is_empty() || args.groups.contains(&group.name))
    {
        println!("== {}: {}", group.name, group.why);
        let outcome = group.run(&context, &program)?;
        println!("{}: {}", group.name, outcome.counts());
        faults.extend(faults_of(&outcome, group, &list.survivor));
        all.add(outcome);
    }
    for fault in &faults {
        println!("{fault}");
    }
    println!("{}", all.counts());
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl List {
    fn parse(toml: &str) -> Result<Self> {
        let list: Self = toml::from_str(toml).with_context(|| LIST.to_owned())?;
        for survivor in &list.survivor {
            let is_of = |group: &Group| group.files.iter().any(|file| survivor.is_in(file));
            ensure!(list.group.iter().any(is_of), "{LIST}: {} is in no group's files", survivor.mutant);
            ensure!(!survivor.why.trim().is_empty(), "{LIST}: {} has no reason", survivor.mutant);
        }
        Ok(list)
    }

    /// Leaves only these files in the groups, and only groups with files.
    fn keep(&mut self, files: &BTreeSet<String>) {
        for group in &mut self.group {
            group.files.retain(|file| files.contains(file));
        }
        self.group.retain(|group| !group.files.is_empty());
    }
}

/// The files that differ from the last common commit with `base`, committed or not.
///
/// # Errors
/// git fails, for example because it knows no such branch.
fn changed_since(root: &Path, base: &str) -> Result<BTreeSet<String>> {
    let git = |arguments: &[&str]| quiet(Command::new("git").args(arguments).current_dir(root));
    let common = git(&["merge-base", base, "HEAD"])?;
    let names = git(&["diff", "--name-only", common.trim()])?;
    Ok(names.lines().map(str::to_owned).collect())
}

impl Survivor {
    fn is_in(&self, file: &str) -> bool {
        self.mutant.strip_prefix(file).is_some_and(|rest| rest.starts_with(": "))
    }
}

impl Group {
    fn run(&self, context: &Context, program: &Path) -> Result<Outcome> {
        let folder = context.target.join("mutants").join(&self.name);
        fs::create_dir_all(&folder)?;
        let mut command = Command::new(program);
        // The tree is copied, so that nothing happens to the checkout whenever this is stopped.
        command.args([
            "mutants",
            "--no-config",
            "--colors=never",
            "--jobs=1",
            PROFILE,
            LONGEST_TEST,
            MEMORY_LIMIT,
            "--package",
            &self.package,
        ]);
        command.args(self.files.iter().flat_map(|file| ["--file", file])).arg("--output").arg(&folder);
        // What stood behind `--` alone would be left out of the build, which would then build too
        // much and without the features.
        command.args(self.targets.iter().map(|argument| format!("--cargo-arg={argument}")));
        command.args(["--", "--"]).args(&self.tests).current_dir(&context.root);
        // Every copy is elsewhere, but what it depends on is built once.
        command.env("CARGO_TARGET_DIR", context.target.join("mutants/build"));
        let status = command.status().context("cannot start cargo-mutants")?;
        // 2 and 3 are survivors and timeouts.
        ensure!(
            matches!(status.code(), Some(0 | 2 | 3)),
            "cargo-mutants: {status}; its logs: {}",
            folder.join("mutants.out").display()
        );
        let path = folder.join("mutants.out/outcomes.json");
        let text = fs::read(&path).with_context(|| path.display().to_string())?;
        let outcome = Outcome::of(&serde_json::from_slice(&text)?)?;
        ensure!(outcome.all() > 0, "{}: no mutant of its files; are they where {LIST} says?", self.name);
        Ok(outcome)
    }
}

impl Outcome {
    /// From what cargo-mutants leaves behind.
    fn of(report: &Value) -> Result<Self> {
        let mut outcome = Self::default();
        for one in report["outcomes"].as_array().context("cargo-mutants has listed no outcomes")? {
            // The tests of the program as it is are one, too.
            let Some(name) = one["scenario"]["Mutant"]["name"].as_str() else { continue };
            match one["summary"].as_str() {
                Some("CaughtMutant") => outcome.caught += 1,
                Some("Unviable") => outcome.unviable += 1,
                Some("Timeout") => outcome.timeout += 1,
                Some("MissedMutant") => {
                    outcome.missed += 1;
                    *outcome.survivors.entry(key(name)?).or_default() += 1;
                }
                other => bail!("cargo-mutants says {other:?} of {name}"),
            }
        }
        Ok(outcome)
    }

    fn add(&mut self, other: Self) {
        self.caught += other.caught;
        self.missed += other.missed;
        self.unviable += other.unviable;
        self.timeout += other.timeout;
    }

    fn all(&self) -> usize {
        self.caught + self.missed + self.unviable + self.timeout
    }

    fn counts(&self) -> String {
        format!(
            "{} mutants: {} caught, {} missed, {} unviable, {} timeout",
            self.all(),
            self.caught,
            self.missed,
            self.unviable,
            self.timeout
        )
    }
}

/// `src/file.rs:12:30: replace < with == in f` without the place, which every edit moves.
fn key(name: &str) -> Result<String> {
    let (place, what) = name.split_once(": ").with_context(|| format!("not the name of a mutant: {name}"))?;
    let file = place.split(':').next().unwrap_or(place);
    Ok(format!("{file}: {what}"))
}

/// Survivors that are not listed, and listed ones that no longer survive.
fn faults_of(outcome: &Outcome, group: &Group, known: &[Survivor]) -> Vec<String> {
    let mut faults = Vec::new();
    let listed =
        |name: &str| known.iter().find(|survivor| survivor.mutant == name).map_or(0, |known| known.times);
    for (name, times) in &outcome.survivors {
        let known = listed(name);
        if *times > known {
            faults.push(format!("survived, {times} times, {known} listed: {name}"));
        }
    }
    let own = known.iter().filter(|survivor| group.files.iter().any(|file| survivor.is_in(file)));
    for survivor in own {
        let times = outcome.survivors.get(&survivor.mutant).copied().unwrap_or(0);
        if times < survivor.times {
            let name = &survivor.mutant;
            faults.push(format!(
                "no longer survives {} times but {times}, so change {LIST}: {name}",
                survivor.times
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        let one = |summary: &str, name: &str| serde_json::json!({"scenario": {"Mutant": {"name": name}}, "summary": summary});
        let report = serde_json::json!({"outcomes": [
            {"scenario": "Baseline", "summary": "Success"},
            one("CaughtMutant", "a/b.rs:1:2: replace < with > in f"),
            one("MissedMutant", "a/b.rs:3:4: replace < with <= in f"),
            one("MissedMutant", "a/b.rs:5:6: replace < with <= in f"),
            one("Unviable", "a/b.rs:7:8: replace f -> T with Default::default()"),
            one("Timeout", "a/b.rs:9:1: replace += with *= in f"),
        ]});
        Outcome::of(&report).expect("outcomes")
    }

    fn list(survivors: &str) -> Result<List> {
        List::parse(&format!(
            "[[group]]\nname = \"g\"\npackage = \"p\"\nfiles = [\"a/b.rs\"]\ntargets = []\nwhy = \"w\"\n{survivors}"
        ))
    }

    fn faults(survivors: &str) -> Vec<String> {
        let list = list(survivors).expect("a list");
        faults_of(&outcome(), &list.group[0], &list.survivor)
    }

    #[test]
    fn mutants_are_counted_by_their_end() {
        let expected = "5 mutants: 1 caught, 2 missed, 1 unviable, 1 timeout";
        assert_eq!(outcome().counts(), expected);
        let odd =
            serde_json::json!({"outcomes": [{"scenario": {"Mutant": {"name": "a: b"}}, "summary": "New"}]});
        assert!(Outcome::of(&odd).is_err());
    }

    #[test]
    fn a_survivor_that_is_not_listed_or_listed_too_seldom_is_a_fault() {
        assert!(faults("")[0].starts_with("survived, 2 times, 0 listed: a/b.rs: replace < with <= in f"));
        let once = "[[survivor]]\nmutant = \"a/b.rs: replace < with <= in f\"\nwhy = \"w\"\n";
        assert_eq!(faults(once).len(), 1);
        assert!(faults(&format!("{once}times = 2\n")).is_empty());
    }

    #[test]
    fn a_listed_survivor_that_is_caught_now_is_a_fault() {
        let survivor = "[[survivor]]\nmutant = \"a/b.rs: replace < with <= in f\"\nwhy = \"w\"\ntimes = 3\n";
        assert!(faults(survivor)[0].starts_with("no longer survives 3 times but 2"));
    }

    #[test]
    fn a_survivor_needs_a_reason_and_a_file_of_a_group() {
        assert!(list("[[survivor]]\nmutant = \"a/b.rs: x\"\nwhy = \" \"\n").is_err());
        assert!(list("[[survivor]]\nmutant = \"a/c.rs: x\"\nwhy = \"w\"\n").is_err());
    }

    #[test]
    fn only_changed_files_are_kept_and_only_groups_that_have_some() {
        let toml = r#"
            group = [
                { name = "g", package = "p", files = ["a/b.rs", "a/c.rs"], targets = [], why = "w" },
                { name = "h", package = "p", files = ["a/d.rs"], targets = [], why = "w" },
            ]
        "#;
        let mut list = List::parse(toml).expect("a list");
        list.keep(&["a/c.rs", "a/e.rs"].map(str::to_owned).into());
        let kept: Vec<_> = list.group.iter().map(|group| (group.name.as_str(), &group.files[..])).collect();
        assert_eq!(kept, [("g", &["a/c.rs".to_owned()][..])]);
    }

    #[test]
    fn changed_files_are_those_since_the_common_commit_and_those_not_committed() {
        let folder = std::env::temp_dir().join(format!("bulla-xtask-mutants-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let git = |arguments: &[&str]| {
            let who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
            quiet(Command::new("git").args(who).args(arguments).current_dir(&folder)).expect("git")
        };
        let write = |name: &str| fs::write(folder.join(name), name).expect("a file");
        git(&["init", "--initial-branch=main"]);
        ["old", "edited"].iter().for_each(|name| write(name));
        git(&["add", "."]);
        git(&["commit", "-m", "A"]);
        git(&["checkout", "-b", "branch"]);
        write("new");
        git(&["add", "."]);
        git(&["commit", "-m", "B"]);
        fs::write(folder.join("edited"), "otherwise").expect("a file");
        let changed = changed_since(&folder, "main").expect("changes");
        assert_eq!(changed, ["edited", "new"].map(str::to_owned).into());
        assert!(changed_since(&folder, "nowhere").is_err());
        fs::remove_dir_all(&folder).expect("the folder goes");
    }

    #[test]
    fn the_committed_list_names_files_that_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let list = List::parse(&fs::read_to_string(root.join(LIST)).expect("the list")).expect("a list");
        for file in list.group.iter().flat_map(|group| &group.files) {
            assert!(root.join(file).is_file(), "{file}");
        }
    }
}
