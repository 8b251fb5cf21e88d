//! The table at the end of `cargo xtask test`.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{count::Tally, slowest::Slowest};

/// What became of one suite.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SuiteResult {
    pub(crate) name: String,
    pub(crate) tally: Tally,
    /// The time to build its tests. Checks that build something and examine it count as running.
    pub(crate) build: Duration,
    pub(crate) run: Duration,
    pub(crate) slow: Slowest,
    /// One line for each step that failed.
    pub(crate) failures: Vec<String>,
    /// The kernels that its tests could not run on this processor.
    pub(crate) untested: BTreeSet<String>,
}

impl SuiteResult {
    /// Of a suite that ended without a result, for this reason.
    pub(crate) fn lost(name: &str, reason: String) -> Self {
        let (build, run, slow) = (Duration::ZERO, Duration::ZERO, Slowest::default());
        let (name, untested) = (name.to_owned(), BTreeSet::new());
        Self { name, tally: Tally::FAIL, build, run, slow, failures: vec![reason], untested }
    }
}

/// Formats the failures, the table and the last line.
pub(crate) fn summary(results: &[SuiteResult]) -> String {
    let mut text = String::new();
    for result in results {
        for failure in &result.failures {
            text.push_str(&format!("failed: {}: {failure}\n", result.name));
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let mut slow = Slowest::default();
    results.iter().for_each(|result| slow.add(&result.name, &result.slow));
    text.push_str("the slowest tests, in seconds:\n");
    slow.lines().for_each(|line| text.push_str(&format!("{line}\n")));
    text.push_str(&format!(
        "\n{:<8} {:>8} {:>8} {:>9} {:>9}\n",
        "suite", "passed", "failed", "build, s", "run, s"
    ));
    let mut total = Tally::default();
    let (mut build, mut run) = (Duration::ZERO, Duration::ZERO);
    for result in results {
        let Tally { passed, failed } = result.tally;
        total += result.tally;
        build += result.build;
        run += result.run;
        text.push_str(&row(&result.name, passed, failed, result.build, result.run));
    }
    text.push_str(&row("all", total.passed, total.failed, build, run));
    text.push_str(&format!("\n{} passed, {} failed", total.passed, total.failed));
    text
}

fn row(name: &str, passed: u64, failed: u64, build: Duration, run: Duration) -> String {
    let (build, run) = (build.as_secs_f64(), run.as_secs_f64());
    format!("{name:<8} {passed:>8} {failed:>8} {build:>9.1} {run:>9.1}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_sum() {
        let result = |name: &str, passed, failed| SuiteResult {
            name: name.to_owned(),
            tally: Tally { passed, failed },
            build: Duration::from_millis(500),
            run: Duration::from_millis(1500),
            slow: Slowest::default(),
            failures: vec![],
            untested: BTreeSet::new(),
        };
        let text = summary(&[result("tidy", 9, 0), result("rust", 30, 2)]);
        assert_eq!(text.lines().last(), Some("39 passed, 2 failed"));
        assert!(text.contains("\ntidy            9        0       0.5       1.5\n"), "{text}");
        assert!(text.contains("\nall            39        2       1.0       3.0\n"), "{text}");
    }

    #[test]
    fn failures_are_named_first() {
        let text = summary(&[SuiteResult::lost("tidy", "clippy: exit status: 101".to_owned())]);
        assert_eq!(text.lines().next(), Some("failed: tidy: clippy: exit status: 101"));
    }
}
