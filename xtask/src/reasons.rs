//! Why tests failed, in the words of their runners. The end of a long run repeats them, because the
//! beginning of its output is often cut off.

/// The most lines of one step that the end of a run repeats.
const MAX_LINES: usize = 20;

/// The lines of one runner that say why tests failed.
#[derive(Debug, Default)]
pub(crate) struct Reasons {
    lines: Vec<String>,
    /// Whether the lines that come now are reasons.
    within: bool,
    cut: bool,
}

impl Reasons {
    /// A line of Rust's libtest: the reasons stand between the first `failures:` and the second.
    pub(crate) fn libtest(&mut self, line: &str) {
        if line == "failures:" {
            self.within = !self.within;
        } else if line.contains("test result: ") {
            self.within = false;
        } else if self.within {
            self.keep(line);
        }
    }

    /// A line of Node's reporter `spec`: the reasons are the last thing that it writes.
    pub(crate) fn node(&mut self, line: &str) {
        if line == "\u{2716} failing tests:" {
            self.within = true;
        } else if self.within {
            self.keep(line);
        }
    }

    /// A line of pytest: each failed test has one in the short summary.
    pub(crate) fn pytest(&mut self, line: &str) {
        if line.starts_with("FAILED ") || line.starts_with("ERROR ") {
            self.keep(line);
        }
    }

    /// What `go test` shows of one test.
    pub(crate) fn go(&mut self, shown: &str) {
        if shown.contains("--- FAIL") || shown.contains("--- SKIP") {
            shown.lines().for_each(|line| self.keep(line));
        }
    }

    fn keep(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        if self.lines.len() < MAX_LINES {
            self.lines.push(line.to_owned());
        } else {
            self.cut = true;
        }
    }

    /// The lines, indented, each with a line break before it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str("\n    ");
            text.push_str(line);
        }
        if self.cut {
            text.push_str("\n    (the rest stands where the test ran)");
        }
        text
    }
}

/// The text of an error, with at most so many lines as the end of a run repeats.
pub(crate) fn shortened(text: &str) -> String {
    let mut lines = text.lines();
    let mut short = lines.by_ref().take(MAX_LINES).collect::<Vec<_>>().join("\n    ");
    if lines.next().is_some() {
        short.push_str("\n    (the rest stands where the step ran)");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[&str], take: fn(&mut Reasons, &str)) -> String {
        let mut reasons = Reasons::default();
        lines.iter().for_each(|line| take(&mut reasons, line));
        reasons.text()
    }

    #[test]
    fn libtest_says_them_between_two_headings() {
        let first = ["test a ... FAILED", "", "failures:", "", "---- a stdout ----", "it is 3"];
        let then =
            ["", "failures:", "    a", "", "test result: FAILED. 0 passed; 1 failed", "running 2 tests"];
        assert_eq!(text(&[first, then].concat(), Reasons::libtest), "\n    ---- a stdout ----\n    it is 3");
    }

    #[test]
    fn node_says_them_at_the_end() {
        let lines = [
            "\u{2716} a (3ms)",
            "\u{2139} fail 1",
            "\u{2716} failing tests:",
            "",
            "\u{2716} a (3ms)",
            "  it is 3",
        ];
        assert_eq!(text(&lines, Reasons::node), "\n    \u{2716} a (3ms)\n      it is 3");
    }

    #[test]
    fn pytest_says_them_in_its_summary() {
        let lines = [
            "E   assert 3 == 4",
            "FAILED test_a.py::a - assert 3 == 4",
            "ERROR test_b.py - no module",
            "2 failed in 1s",
        ];
        assert_eq!(
            text(&lines, Reasons::pytest),
            "\n    FAILED test_a.py::a - assert 3 == 4\n    ERROR test_b.py - no module"
        );
    }

    #[test]
    fn go_says_them_with_each_test() {
        let lines =
            ["ok  \tp\t0.1s\n", "=== RUN   TestA\n    a_test.go:3: it is 3\n--- FAIL: TestA (0.00s)\n"];
        assert_eq!(
            text(&lines, Reasons::go),
            "\n    === RUN   TestA\n        a_test.go:3: it is 3\n    --- FAIL: TestA (0.00s)"
        );
    }

    #[test]
    fn a_long_error_is_shortened() {
        assert_eq!(shortened("one\ntwo"), "one\n    two");
        let long = shortened(&"it is 3\n".repeat(MAX_LINES + 1));
        assert_eq!(long.lines().count(), MAX_LINES + 1);
        assert!(long.ends_with("where the step ran)"), "{long}");
    }

    #[test]
    fn no_failure_has_no_reason_and_a_long_one_is_cut() {
        assert_eq!(text(&["test a ... ok", "test result: ok. 1 passed; 0 failed"], Reasons::libtest), "");
        let mut lines = vec!["failures:"];
        lines.resize(MAX_LINES + 2, "it is 3");
        let text = text(&lines, Reasons::libtest);
        assert_eq!(text.lines().count(), 1 + MAX_LINES + 1);
        assert!(text.ends_with("where the test ran)"), "{text}");
    }
}
