//! The table at the end of `cargo xtask test`.

use std::time::Duration;

use crate::count::Tally;

/// What became of one suite.
pub(crate) struct SuiteResult {
    pub(crate) name: &'static str,
    pub(crate) tally: Tally,
    pub(crate) time: Duration,
    /// One line for each step that failed.
    pub(crate) failures: Vec<String>,
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
    text.push_str(&format!("{:<8} {:>8} {:>8} {:>9}\n", "suite", "passed", "failed", "seconds"));
    let mut total = Tally::default();
    for result in results {
        let Tally { passed, failed } = result.tally;
        total += result.tally;
        text.push_str(&format!(
            "{:<8} {passed:>8} {failed:>8} {:>9.1}\n",
            result.name,
            result.time.as_secs_f64()
        ));
    }
    text.push_str(&format!("\n{} passed, {} failed", total.passed, total.failed));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_sum() {
        let result = |name, passed, failed| SuiteResult {
            name,
            tally: Tally { passed, failed },
            time: Duration::from_millis(1500),
            failures: vec![],
        };
        let text = summary(&[result("tidy", 9, 0), result("rust", 30, 2)]);
        assert_eq!(text.lines().last(), Some("39 passed, 2 failed"));
        assert_eq!(text.lines().nth(1), Some("tidy            9        0       1.5"));
    }

    #[test]
    fn failures_are_named_first() {
        let failures = vec!["clippy: exit status: 101".to_owned()];
        let text =
            summary(&[SuiteResult { name: "tidy", tally: Tally::FAIL, time: Duration::ZERO, failures }]);
        assert_eq!(text.lines().next(), Some("failed: tidy: clippy: exit status: 101"));
    }
}
