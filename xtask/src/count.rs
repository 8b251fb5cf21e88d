//! Counts tests from the output of test runners.

use std::{collections::BTreeMap, ops::AddAssign};

use serde::{Deserialize, Serialize};

/// Tests that passed and tests that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    pub(crate) const PASS: Self = Self { passed: 1, failed: 0 };
    pub(crate) const FAIL: Self = Self { passed: 0, failed: 1 };
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// Reads the summary line of Rust's libtest, such as
/// `test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s`.
///
/// An ignored test is a test that did not run, and counts as failed.
pub(crate) fn libtest(line: &str) -> Option<Tally> {
    // If a test prints without a final newline, the summary may not be at the start of its line.
    let summary = &line[line.find("test result: ")?..];
    let field = |name: &str| {
        let before = &summary[..summary.find(name)?];
        before.rsplit(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty())?.parse::<u64>().ok()
    };
    Some(Tally { passed: field(" passed")?, failed: field(" failed")? + field(" ignored")? })
}

/// Node's word for a test that was canceled.
const CANCELED: &str = concat!("cancel", "led");

/// Reads a line of the summary of Node's test runner, such as `i pass 67`, where the `i` is the
/// sign U+2139.
///
/// A test that was canceled, skipped or postponed did not run, and counts as failed.
pub(crate) fn node_test(line: &str) -> Option<Tally> {
    let (kind, count) = line.strip_prefix("\u{2139} ")?.split_once(' ')?;
    let count = count.parse().ok()?;
    match kind {
        "pass" => Some(Tally { passed: count, failed: 0 }),
        "fail" | CANCELED | "skipped" | "todo" => Some(Tally { passed: 0, failed: count }),
        _ => None,
    }
}

/// Reads the summary line of pytest, such as `== 3 failed, 67 passed, 1 skipped in 4.20s ==`.
///
/// A test that was skipped, was expected to fail, or could not be set up did not run, and counts as
/// failed.
pub(crate) fn pytest(line: &str) -> Option<Tally> {
    let line = line.trim_matches(['=', ' ']);
    let (counts, time) = line.rsplit_once(" in ")?;
    if !time.split(' ').next()?.trim_end_matches('s').bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let mut tally = Tally::default();
    for part in counts.split(", ") {
        let (count, kind) = part.split_once(' ')?;
        let count = count.parse::<u64>().ok()?;
        match kind {
            "passed" => tally.passed += count,
            "failed" | "error" | "errors" | "skipped" | "xfailed" | "xpassed" => tally.failed += count,
            _ => {}
        }
    }
    Some(tally)
}

/// One event of `go test -json` (cmd/test2json).
#[derive(Deserialize)]
struct GoEvent {
    #[serde(rename = "Action")]
    action: String,
    #[serde(rename = "Package", default)]
    package: String,
    #[serde(rename = "Test", default)]
    test: String,
    #[serde(rename = "Output", default)]
    output: String,
}

/// How a Go test ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Pass,
    Fail,
}

/// Counts the events of `go test -json`.
///
/// Only leaves count: a test with subtests is their sum. A skipped test did not run, and counts as
/// failed.
#[derive(Default)]
pub(crate) struct GoTests {
    ends: BTreeMap<(String, String), End>,
    output: BTreeMap<(String, String), String>,
}

impl GoTests {
    /// Takes one line, and returns the part of it that should be shown at once.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
        let Ok(event) = serde_json::from_str::<GoEvent>(line) else {
            return Some(format!("{line}\n"));
        };
        if event.test.is_empty() && event.action == "output" {
            return Some(event.output);
        }
        let is_package = event.test.is_empty();
        let key = (event.package, event.test);
        match event.action.as_str() {
            "output" => self.output.entry(key).or_default().push_str(&event.output),
            "pass" => {
                self.output.remove(&key);
                if !is_package {
                    self.ends.insert(key, End::Pass);
                }
            }
            // A package may be skipped: it has no test files.
            "fail" | "skip" if event.action == "fail" || !is_package => {
                let shown = self.output.remove(&key);
                self.ends.insert(key, End::Fail);
                return shown;
            }
            _ => {}
        }
        None
    }

    /// The sum of all events so far.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for ((package, test), end) in &self.ends {
            let prefix = if test.is_empty() { String::new() } else { format!("{test}/") };
            let below = |wanted: Option<End>| {
                self.ends.iter().any(|((p, t), e)| {
                    p == package && t != test && t.starts_with(&prefix) && wanted.is_none_or(|w| *e == w)
                })
            };
            match end {
                End::Pass if !below(None) => tally.passed += 1,
                // A parent, or a package, that failed by itself.
                End::Fail if !below(Some(End::Fail)) => tally.failed += 1,
                _ => {}
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libtest_summary_is_read() {
        let line =
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.01s";
        assert_eq!(libtest(line), Some(Tally { passed: 12, failed: 0 }));
        let line = "test result: FAILED. 7 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(libtest(line), Some(Tally { passed: 7, failed: 2 }));
    }

    #[test]
    fn libtest_summary_after_a_torn_line_is_read() {
        let line =
            "no newline heretest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(libtest(line), Some(Tally::PASS));
    }

    #[test]
    fn libtest_ignored_counts_as_failed() {
        let line =
            "test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(libtest(line), Some(Tally { passed: 1, failed: 2 }));
    }

    #[test]
    fn libtest_other_lines_are_not_counted() {
        for line in ["", "running 3 tests", "test a::b ... ok", "3 passed; 1 failed", "test result: ok."] {
            assert_eq!(libtest(line), None, "{line}");
        }
    }

    #[test]
    fn node_summary_is_read() {
        let lines = [
            "\u{2139} tests 9",
            "\u{2139} suites 1",
            "\u{2139} pass 5",
            "\u{2139} fail 1",
            &format!("\u{2139} {CANCELED} 1"),
        ];
        let more = [
            "\u{2139} skipped 1",
            "\u{2139} todo 1",
            "\u{2139} duration_ms 12.5",
            "pass 3",
            "\u{2714} a test (3ms)",
        ];
        let mut tally = Tally::default();
        for line in lines.into_iter().chain(more) {
            tally += node_test(line).unwrap_or_default();
        }
        assert_eq!(tally, Tally { passed: 5, failed: 4 });
    }

    #[test]
    fn pytest_summary_is_read() {
        assert_eq!(pytest("67 passed in 4.20s"), Some(Tally { passed: 67, failed: 0 }));
        let line = "==== 3 failed, 67 passed, 1 skipped, 2 warnings, 1 error in 64.20s (0:01:04) ====";
        assert_eq!(pytest(line), Some(Tally { passed: 67, failed: 5 }));
        for line in ["", "collected 3 items", "3 passed", "2 passed in the end", "no tests ran in 0.01s"] {
            assert_eq!(pytest(line), None, "{line}");
        }
    }

    fn go(lines: &[&str]) -> Tally {
        let mut tests = GoTests::default();
        for line in lines {
            tests.line(line);
        }
        tests.tally()
    }

    #[test]
    fn go_leaves_are_counted() {
        let tally = go(&[
            r#"{"Action":"run","Package":"p","Test":"TestA"}"#,
            r#"{"Action":"pass","Package":"p","Test":"TestA/x","Elapsed":0}"#,
            r#"{"Action":"pass","Package":"p","Test":"TestA/y","Elapsed":0}"#,
            r#"{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}"#,
            r#"{"Action":"pass","Package":"p","Test":"TestAB","Elapsed":0}"#,
            r#"{"Action":"pass","Package":"p","Elapsed":0}"#,
            r#"{"Action":"skip","Package":"q","Elapsed":0}"#,
        ]);
        assert_eq!(tally, Tally { passed: 3, failed: 0 });
    }

    #[test]
    fn go_failures_and_skips_are_counted_once() {
        let tally = go(&[
            r#"{"Action":"fail","Package":"p","Test":"TestA/x","Elapsed":0}"#,
            r#"{"Action":"pass","Package":"p","Test":"TestA/y","Elapsed":0}"#,
            r#"{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0}"#,
            r#"{"Action":"skip","Package":"p","Test":"TestB","Elapsed":0}"#,
            r#"{"Action":"fail","Package":"p","Elapsed":0}"#,
        ]);
        assert_eq!(tally, Tally { passed: 1, failed: 2 });
    }

    #[test]
    fn go_package_that_dies_is_a_failure() {
        let tally = go(&[
            r#"{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}"#,
            r#"{"Action":"fail","Package":"p","Elapsed":0}"#,
        ]);
        assert_eq!(tally, Tally { passed: 1, failed: 1 });
    }

    #[test]
    fn go_shows_the_output_of_what_failed() {
        let mut tests = GoTests::default();
        tests.line(r#"{"Action":"output","Package":"p","Test":"TestA","Output":"why\n"}"#);
        assert_eq!(tests.line(r#"{"Action":"fail","Package":"p","Test":"TestA"}"#).as_deref(), Some("why\n"));
    }
}
