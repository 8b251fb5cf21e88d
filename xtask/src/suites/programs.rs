//! The test programs of the workspace: built once, with one set of features, for all suites.
//!
//! `cargo test -p PACKAGE` uses other features for each package, and builds the dependencies with
//! these features again each time.

use std::{
    env::consts::DLL_SUFFIX,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, quiet};
use serde_json::Value;

use crate::program::{Program, Programs};

/// Lets the test harness of a stable compiler take unstable options. A test that starts cargo must
/// remove it, because cargo would build everything again.
pub(super) const UNSTABLE_HARNESS: &str = "RUSTC_BOOTSTRAP";

/// The programs of the workspace; the first suite that asks for them waits for their build. If it
/// fails, the next suite tries again.
pub(super) fn built(context: &Context) -> Result<&'static Programs> {
    static BUILT: OnceLock<Programs> = OnceLock::new();
    match BUILT.get() {
        Some(programs) => Ok(programs),
        None => build(context).map(|programs| BUILT.get_or_init(|| programs)),
    }
}

/// Builds the test programs of all packages with all features, except those that restrict peers.
fn build(context: &Context) -> Result<Programs> {
    let metadata = metadata(context)?;
    let output = context
        .cargo()
        .args(["test", "--no-run", "--workspace", "--message-format=json-render-diagnostics", "--features"])
        .arg(all_features(&metadata).join(","))
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo test")?;
    ensure!(output.status.success(), "cargo test --no-run: {}", output.status);
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<_> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut tests: Vec<_> = messages.iter().filter_map(|message| program(&metadata, message)).collect();
    ensure!(!tests.is_empty(), "cargo built no test program");
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    let command = keep(&messages.iter().filter_map(shipped).collect::<Vec<_>>())?;
    Ok(Programs { tests, command })
}

/// Gives the programs that we ship a second name, in a folder of their own, and returns the path of
/// `bulla` there. Later builds with other features replace the first names, while tests run.
fn keep(programs: &[PathBuf]) -> Result<PathBuf> {
    let command = programs.iter().find(|path| path.file_name().is_some_and(|name| name == "bulla"));
    let folder = command.and_then(|path| path.parent()).context("cargo did not build the command")?;
    let folder = folder.join("programs");
    fs::create_dir_all(&folder)?;
    for path in programs {
        let kept = folder.join(path.file_name().context("a program without a name")?);
        // A program of an earlier build may still run: its name goes, and not its file.
        let _ = fs::remove_file(&kept);
        fs::hard_link(path, &kept).with_context(|| format!("cannot keep {}", kept.display()))?;
    }
    Ok(folder.join("bulla"))
}

/// The argument of `--features` for the same features that the test programs have.
pub(super) fn features(context: &Context) -> Result<String> {
    Ok(all_features(&metadata(context)?).join(","))
}

/// A target that is not this machine's, and what links its programs.
pub(super) struct Foreign {
    pub(super) target: &'static str,
    pub(super) linker: &'static str,
}

/// Builds test programs for several targets at once: those that `arguments` of cargo select,
/// `programs` for each target.
pub(super) fn build_foreign(
    context: &Context,
    targets: &[&Foreign],
    arguments: &[&str],
    programs: usize,
) -> Result<Vec<Program>> {
    let metadata = metadata(context)?;
    let mut command = context.cargo();
    command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    for Foreign { target, linker } in targets {
        command.args(["--target", target, "--config", &format!("target.{target}.linker=\"{linker}\"")]);
    }
    let output =
        command.args(arguments).stderr(Stdio::inherit()).output().context("cannot start cargo test")?;
    ensure!(output.status.success(), "cargo test --no-run: {}", output.status);
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let tests: Vec<_> = messages.filter_map(|message| program(&metadata, &message)).collect();
    let expected = targets.len() * programs;
    ensure!(tests.len() == expected, "cargo built {} test programs, not {expected}", tests.len());
    Ok(tests)
}

fn metadata(context: &Context) -> Result<Value> {
    let text = quiet(context.cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    Ok(serde_json::from_str(&text)?)
}

/// Every feature of every package, as `PACKAGE/FEATURE`.
fn all_features(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |package: &Value| {
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        let features = package["features"].as_object().into_iter().flatten();
        let wanted = features.filter(|(feature, _)| *feature != "default" && !feature.starts_with("peer-"));
        wanted.map(|(feature, _)| format!("{name}/{feature}")).collect::<Vec<_>>()
    };
    packages.iter().flat_map(of).collect()
}

/// The test program that a message of cargo names, if it names one.
fn program(metadata: &Value, message: &Value) -> Option<Program> {
    if message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let packages = metadata["packages"].as_array()?;
    let package = packages.iter().find(|package| package["id"] == message["package_id"])?["name"].as_str()?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let (kind, target) = (message["target"]["kind"][0].as_str()?, message["target"]["name"].as_str()?);
    Some(Program { package: package.to_owned(), name: format!("{package}, {kind} {target}"), path, folder })
}

/// The programs that we ship. Tests start them.
const SHIPPED: [&str; 5] = ["bulla", "bulla-audit", "bulla-remote", "age-plugin-bulla", "bulla-serve"];

/// The library that programs load as a module of PKCS #11.
pub(super) const MODULE: &str = "bulla_pkcs11";

/// The path of a program or a module that we ship, if the message of cargo names one.
fn shipped(message: &Value) -> Option<PathBuf> {
    let target = &message["target"];
    if message["profile"]["test"] != false {
        return None;
    }
    if target["name"] == MODULE {
        let mut files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
        return files.find(|path| path.ends_with(DLL_SUFFIX)).map(PathBuf::from);
    }
    let is_shipped =
        target["name"].as_str().is_some_and(|name| SHIPPED.contains(&name)) && target["kind"][0] == "bin";
    message["executable"].as_str().filter(|_| is_shipped).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::program::FEATURES;

    const TESTS: &str = "--edges=normal,build,dev";
    const PROGRAMS: &str = "--edges=normal,build";

    /// What cargo builds for these arguments: a line for each crate, with its features.
    fn tree(context: &Context, arguments: &[&str]) -> String {
        let mut tree = context.cargo();
        tree.args(["tree", "--quiet", "--locked", "--prefix=none", "--no-dedupe", "--format={p} with {f}"]);
        quiet(tree.args(arguments)).unwrap()
    }

    /// The third-party crates that cargo builds for these arguments, each with its features.
    fn crates(context: &Context, arguments: &[&str]) -> BTreeSet<String> {
        // Ours have a path.
        let crates: BTreeSet<_> =
            tree(context, arguments).lines().filter(|line| !line.contains("(/")).map(str::to_owned).collect();
        assert!(crates.len() > 100, "{arguments:?}: {} crates", crates.len());
        crates
    }

    /// Fails if crates would be built again with other features.
    fn share(before: &[&str], after: &[&str]) {
        let context = Context::find().unwrap();
        let (before, after) = (crates(&context, before), crates(&context, after));
        let again = |one: &&String| {
            let name = one.split(" with ").next().unwrap_or_default();
            let there = before.iter().filter(|other| other.split(" with ").next() == Some(name));
            format!("{one}\n  before: {}", there.cloned().collect::<Vec<_>>().join("\n  before: "))
        };
        let again: Vec<_> = after.difference(&before).map(|one| again(&one)).collect();
        assert!(again.is_empty(), "add what is missing to {FEATURES}:\n{}", again.join("\n"));
    }

    #[test]
    fn rustdoc_needs_no_crate_that_clippy_did_not_check() {
        let all = |edges| ["--workspace", "--all-features", edges];
        share(&all(TESTS), &all(PROGRAMS));
    }

    #[test]
    fn packages_that_are_built_alone_need_no_crate_that_the_tests_do_not_have() {
        let features = features(&Context::find().unwrap()).unwrap();
        let tests = ["--workspace", "--features", &features, TESTS];
        let ours = ["bulla", "bulla-audit", "bulla-remote", "bulla-server", FEATURES];
        let shipped: Vec<_> =
            ours.into_iter().flat_map(|package| ["-p", package]).chain([PROGRAMS]).collect();
        share(&tests, &shipped);
        share(&tests, &["-p", "bulla-kms", "-p", FEATURES, TESTS]);
    }

    /// Otherwise Ed25519 and BLAKE3 are built once more.
    #[test]
    fn the_keystore_without_features_has_the_libraries_of_the_shipped_command() {
        let context = Context::find().unwrap();
        let libraries = |arguments: &[&str]| {
            let text = tree(&context, arguments);
            let ours = text
                .lines()
                .filter(|line| line.starts_with("bulla-blake3 v") || line.starts_with("bulla-ed25519 v"));
            let ours: BTreeSet<_> = ours.map(|line| line.trim_end_matches(" (*)").to_owned()).collect();
            assert_eq!(ours.len(), 2, "{arguments:?}: {ours:?}");
            ours
        };
        let keystore = ["-p", "bulla-kms", "--features", "bulla-blake3/bao", PROGRAMS];
        assert_eq!(libraries(&keystore), libraries(&["-p", "bulla", PROGRAMS]));
    }

    /// The model is two megabytes of code that no user needs, and without it the tests of Ed25519
    /// would say less.
    #[test]
    fn only_tests_have_the_model_of_ed25519() {
        let context = Context::find().unwrap();
        let has_model = |arguments: &[&str]| {
            let text = tree(&context, arguments);
            let ours = text.lines().filter(|line| line.starts_with("bulla-ed25519 v"));
            let features: Vec<_> = ours.filter_map(|line| line.split(" with ").nth(1)).collect();
            assert!(!features.is_empty(), "{arguments:?}: no bulla-ed25519");
            features.iter().any(|features| features.split(',').any(|feature| feature == "scalar-model"))
        };
        assert!(has_model(&["-p", "bulla-ed25519", TESTS]));
        assert!(!has_model(&["--workspace", PROGRAMS]));
    }

    fn metadata() -> Value {
        serde_json::json!({ "packages": [
            { "id": "path+a", "name": "a", "features": { "default": [], "x": [], "y": [] } },
            { "id": "path+lab", "name": "lab", "features": { "peer-no-avx2": [] } },
        ]})
    }

    #[test]
    fn all_features_are_named_but_those_of_peers() {
        assert_eq!(all_features(&metadata()), ["a/x", "a/y"]);
    }

    #[test]
    fn programs_are_those_that_are_tests() {
        let message = |test: bool| {
            serde_json::json!({
                "package_id": "path+a", "manifest_path": "/checkout/a/Cargo.toml", "executable": "/t/a-1",
                "target": { "kind": ["test"], "name": "all" }, "profile": { "test": test },
            })
        };
        assert!(program(&metadata(), &message(false)).is_none());
        let program = program(&metadata(), &message(true)).unwrap();
        assert_eq!((program.package.as_str(), program.name.as_str()), ("a", "a, test all"));
        assert_eq!(program.folder, Path::new("/checkout/a"));
    }

    #[test]
    fn the_command_is_not_its_own_test_program() {
        let message = |kind: &str, test: bool| {
            let target = serde_json::json!({ "kind": [kind], "name": "bulla" });
            serde_json::json!({ "executable": "/t/bulla", "target": target, "profile": { "test": test } })
        };
        assert_eq!(shipped(&message("bin", false)), Some(PathBuf::from("/t/bulla")));
        assert_eq!((shipped(&message("bin", true)), shipped(&message("test", false))), (None, None));
    }

    #[test]
    fn a_kept_program_stays_when_a_later_build_replaces_the_first() {
        let folder = Context::find().unwrap().target.join("kept-programs-test");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let programs = SHIPPED.map(|name| folder.join(name));
        for round in ["first", "second"] {
            for program in &programs {
                let _ = fs::remove_file(program);
                fs::write(program, round).unwrap();
            }
            assert_eq!(keep(&programs).unwrap(), folder.join("programs/bulla"));
            for program in &programs {
                fs::remove_file(program).unwrap();
                fs::write(program, "other features").unwrap();
            }
            for name in SHIPPED {
                assert_eq!(fs::read_to_string(folder.join("programs").join(name)).unwrap(), round);
            }
        }
        assert!(keep(&programs[1..]).is_err(), "without the command");
        fs::remove_dir_all(&folder).unwrap();
    }
}
