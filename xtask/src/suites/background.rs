//! Runs a suite as a process of its own. The output of the suite, and of every process that it
//! starts, is kept until the suite has ended.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};
use bulla_devtools::Context;

use super::{
    BUILT,
    kernels::REQUIRE_KERNELS,
    plan::Ended,
    suite::{Suite, Track},
};
use crate::{forward::Built, summary::SuiteResult};

/// The folder for the output of such suites, and the build folder of those that need no programs of
/// the workspace. In the usual build folder they would wait for cargo's lock.
const FOLDER: &str = "background";

/// Runs the suite with `program`, which is this program, in the build folder `target`. `built` has
/// the programs of other commands, and `required_kernels` the value of [`REQUIRE_KERNELS`].
pub(super) fn run(
    program: &Path,
    built: &Built,
    target: &Path,
    suite: Suite,
    required_kernels: &str,
) -> Ended {
    let folder = target.join(FOLDER);
    let report = folder.join(suite.name()).with_extension("json");
    let mut command = Command::new(program);
    command.args(["test", "--report"]).arg(&report).arg(suite.name());
    command.env(REQUIRE_KERNELS, required_kernels).env(BUILT, &built.folder);
    if suite.track() == Track::Background {
        command.env("CARGO_TARGET_DIR", &folder);
    }
    let output = folder.join(suite.name()).with_extension("txt");
    let result = collect(&mut command, &output, &report);
    let result = result.unwrap_or_else(|error| SuiteResult::lost(suite.name(), format!("{error:#}")));
    Ended { result, output: fs::read(&output).unwrap_or_default() }
}

/// Runs the command with its output in one file, and reads its result from another file.
///
/// The output goes to a file, not to a pipe: a process that outlives the suite would hold a pipe
/// open, and a user can follow a file.
fn collect(command: &mut Command, output: &Path, report: &Path) -> Result<SuiteResult> {
    let folder = report.parent().context("a report without a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if report.exists() {
        fs::remove_file(report).with_context(|| format!("cannot remove {}", report.display()))?;
    }
    let file = File::create(output).with_context(|| format!("cannot make {}", output.display()))?;
    let status = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status();
    let status = status.context("cannot start the suite")?;
    read(report).with_context(|| format!("it ended without a result ({status})"))
}

/// Writes the result of a suite for the process that collects it.
pub(super) fn leave(context: &Context, report: &Path, result: &SuiteResult) -> Result<()> {
    let report = context.root.join(report);
    fs::write(&report, serde_json::to_vec(result)?)
        .with_context(|| format!("cannot write {}", report.display()))
}

fn read(report: &Path) -> Result<SuiteResult> {
    Ok(serde_json::from_slice(&fs::read(report)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::Tally;

    /// What is collected from a shell that runs `script`, whose first argument is where the report
    /// goes, and what it printed.
    fn shell(name: &str, script: &str) -> (Result<SuiteResult>, String) {
        let folder =
            std::env::temp_dir().join(format!("bulla-xtask-background-{name}-{}", std::process::id()));
        let (output, report) = (folder.join("output"), folder.join("report"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(&report, r#"{"left": "by an earlier run"}"#).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(&report);
        let result = collect(&mut command, &output, &report);
        let printed = fs::read_to_string(&output).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        (result, printed)
    }

    #[test]
    fn the_result_is_what_the_suite_leaves_and_the_output_is_all_that_was_printed() {
        let result = SuiteResult::lost("go", "go vet: exit status: 1".to_owned());
        let json = serde_json::to_string(&result).unwrap();
        let script = format!("echo out; echo error >&2; echo out again; printf %s '{json}' > \"$1\"; exit 1");
        let (read, printed) = shell("whole", &script);
        let read = read.unwrap();
        assert_eq!((read.name.as_str(), read.tally), ("go", Tally::FAIL));
        assert_eq!(read.failures, result.failures);
        assert_eq!(printed, "out\nerror\nout again\n");
    }

    #[test]
    fn a_suite_that_dies_has_no_result_whatever_an_earlier_run_left() {
        for (name, script, expected) in [
            ("ends", "echo begun; exit 0", "exit status: 0"),
            ("dies", "echo begun; kill -9 $$", "signal: 9"),
        ] {
            let (result, printed) = shell(name, script);
            let error = format!("{:#}", result.unwrap_err());
            assert!(error.contains("it ended without a result") && error.contains(expected), "{error}");
            assert_eq!(printed, "begun\n");
        }
    }

    #[test]
    fn a_suite_that_cannot_be_started_has_failed() {
        let folder = std::env::temp_dir().join(format!("bulla-xtask-background-none-{}", std::process::id()));
        let ended = run(
            Path::new("/no such program"),
            &Built { folder: folder.clone() },
            &folder,
            Suite::Go,
            "portable",
        );
        assert_eq!((ended.result.name.as_str(), ended.result.tally), ("go", Tally::FAIL));
        assert!(
            ended.result.failures[0].starts_with("cannot start the suite"),
            "{:?}",
            ended.result.failures
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
