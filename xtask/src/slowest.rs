//! The tests that took longest.

use serde::{Deserialize, Serialize};

/// How many are listed.
const LISTED: usize = 10;

/// The slowest tests so far, the slowest first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Slowest(Vec<(f64, String)>);

impl Slowest {
    /// Reads a line of libtest that was asked for times: `test a::b ... ok <0.120s>`.
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
        // The time of a test includes that of its parts.
        if !event.test.contains('/') {
            let package = event.package.rsplit('/').next().unwrap_or_default();
            self.0.push((event.elapsed, format!("{package}.{}", event.test)));
            self.cut();
        }
    }

    /// Takes in those of a suite.
    pub(crate) fn add(&mut self, suite: &str, other: &Self) {
        self.0.extend(other.0.iter().map(|(seconds, name)| (*seconds, format!("{suite}: {name}"))));
        self.cut();
    }

    /// One line for each.
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
