//! The table at the end of `cargo xtask test`.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use crate::count::Tally;

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
    /// The packages that are missing and could not be installed, by their names on Debian.
    pub(crate) missing: BTreeSet<String>,
}

impl SuiteResult {
    /// Of a suite that ended without a result, for this reason.
    pub(crate) fn lost(name: &str, reason: String) -> Self {
        let (build, run, slow) = (Duration::ZERO, Duration::ZERO, Slowest::default());
        let (name, untested, missing) = (name.to_owned(), BTreeSet::new(), BTreeSet::new());
        Self { name, tally: Tally::FAIL, build, run, slow, failures: vec![reason], untested, missing }
    }
}

/// Formats the table, the failures, the `remark`, and the last line.
pub(crate) fn summary(results: &[SuiteResult], remark: &str) -> String {
    let mut text = String::new();
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
    text.push('\n');
    // Here, because the end of a long output is what is kept and what is read.
    for result in results {
        for failure in &result.failures {
            text.push_str(&format!("failed: {}: {failure}\n", result.name));
        }
    }
    text.push_str(&format!("{remark}{} passed, {} failed", total.passed, total.failed));
    text
}

fn row(name: &str, passed: u64, failed: u64, build: Duration, run: Duration) -> String {
    let (build, run) = (build.as_secs_f64(), run.as_secs_f64());
    format!("{name:<8} {passed:>8} {failed:>8} {build:>9.1} {run:>9.1}\n")
}

/// The number of tests to list.
const LISTED: usize = 10;

/// The slowest tests so far, the slowest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Slowest(Vec<(f64, String)>);

impl Slowest {
    /// Reads a line of libtest with times: `test a::b ... ok <0.120s>`.
    pub(crate) fn libtest(&mut self, line: &str) {
        let time = || {
            let (name, rest) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
            let seconds = rest.split_once('<')?.1.strip_suffix("s>")?.parse().ok()?;
            Some((seconds, name.to_owned()))
        };
        self.0.extend(time());
        self.cut();
    }

    /// Reads an event of `go test -json`.
    pub(crate) fn go(&mut self, line: &str) {
        #[derive(Deserialize)]
        struct Event {
            #[serde(rename = "Package")]
            package: String,
            #[serde(rename = "Test")]
            test: String,
            #[serde(rename = "Elapsed")]
            elapsed: f64,
        }
        let Ok(event) = serde_json::from_str::<Event>(line) else { return };
        // The time of a test includes its subtests.
        if !event.test.contains('/') {
            let package = event.package.rsplit('/').next().unwrap_or_default();
            self.0.push((event.elapsed, format!("{package}.{}", event.test)));
            self.cut();
        }
    }

    /// Adds the tests of a suite.
    pub(crate) fn add(&mut self, suite: &str, other: &Self) {
        self.0.extend(other.0.iter().map(|(seconds, name)| (*seconds, format!("{suite}: {name}"))));
        self.cut();
    }

    /// One line for each test.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(seconds, name)| format!("{seconds:>9.1}  {name}"))
    }

    fn cut(&mut self) {
        self.0.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.0.truncate(LISTED);
    }
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
            missing: BTreeSet::new(),
        };
        let text = summary(&[result("tidy", 9, 0), result("rust", 30, 2)], "a remark\n");
        assert!(text.ends_with("\n\na remark\n39 passed, 2 failed"), "{text}");
        assert!(text.contains("\ntidy            9        0       0.5       1.5\n"), "{text}");
        assert!(text.contains("\nall            39        2       1.0       3.0\n"), "{text}");
    }

    #[test]
    fn failures_are_at_the_end() {
        let text = summary(&[SuiteResult::lost("tidy", "clippy: exit status: 101".to_owned())], "");
        assert!(text.ends_with("\n\nfailed: tidy: clippy: exit status: 101\n0 passed, 1 failed"), "{text}");
    }

    #[test]
    fn the_slowest_come_first() {
        let mut slow = Slowest::default();
        slow.libtest("test a::quick ... ok <0.001s>");
        slow.libtest("test a::slow ... ok <12.250s>");
        slow.libtest("test a::failed ... FAILED <1.500s>");
        slow.libtest("test result: ok. 3 passed; 0 failed; finished in 1.00s");
        slow.go(r#"{"Action":"pass","Package":"x/blake3","Test":"TestLong","Elapsed":3.5}"#);
        slow.go(r#"{"Action":"pass","Package":"x/blake3","Test":"TestLong/part","Elapsed":3.4}"#);
        let lines: Vec<_> = slow.lines().map(|line| line.trim().to_owned()).collect();
        assert_eq!(lines, ["12.2  a::slow", "3.5  blake3.TestLong", "1.5  a::failed", "0.0  a::quick"]);
    }

    #[test]
    fn no_more_than_ten_are_kept() {
        let mut slow = Slowest::default();
        (0..30).for_each(|n| slow.libtest(&format!("test t{n} ... ok <{n}.000s>")));
        let mut all = Slowest::default();
        all.add("rust", &slow);
        assert_eq!(all.lines().count(), 10);
        assert_eq!(all.lines().next().unwrap().trim(), "29.0  rust: t29");
    }
}
