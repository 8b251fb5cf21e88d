//! The gate's limits, from `lab/limits.toml`: the largest share of a peer's time that ours may
//! take.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::gate::Cell;

/// The distance of a limit above the measured median. Unchanged code stays below the limit; code
/// that takes 5 % longer does not.
pub const MARGIN: f64 = 0.02;

/// Limits by lane, suite, peer and case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The loosened limits with their reasons, in order.
    #[serde(default)]
    pub loosened: Vec<Loosened>,
    /// The cases without a limit on purpose.
    #[serde(default)]
    pub without: Vec<Without>,
    #[serde(default)]
    lane: BTreeMap<String, BySuite>,
}

type BySuite = BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>;

/// Limits that were loosened, and the reason.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loosened {
    /// The day, as `2026-11-20`.
    pub date: String,
    /// The lane.
    pub lane: String,
    /// The suite.
    pub suite: String,
    /// The cases.
    pub cases: Vec<String>,
    /// Why.
    pub reason: String,
}

/// Cases that the gate skips, and the reason.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Without {
    /// The lane; none means all.
    pub lane: Option<String>,
    /// The suite.
    pub suite: String,
    /// The cases, by their whole names; none means all of the suite.
    #[serde(default)]
    pub cases: Vec<String>,
    /// Why.
    pub reason: String,
}

impl Without {
    fn takes(&self, lane: &str, suite: &str, case: &str) -> bool {
        self.lane.as_deref().is_none_or(|own| own == lane)
            && self.suite == suite
            && (self.cases.is_empty() || self.cases.iter().any(|own| own == case))
    }
}

impl Limits {
    /// Reads the file's text.
    ///
    /// # Errors
    /// The text is malformed.
    pub fn parse(text: &str) -> Result<Self> {
        let limits: Self = toml::from_str(text)?;
        let values = limits.lane.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values);
        let is_ratio = |limit: &f64| limit.is_finite() && *limit > 0.0;
        ensure!(values.flat_map(BTreeMap::values).all(is_ratio), "a limit that is no ratio");
        ensure!(
            limits.loosened.iter().all(|entry| !entry.reason.trim().is_empty()),
            "limits loosened without a reason"
        );
        ensure!(
            limits.without.iter().all(|entry| !entry.reason.trim().is_empty()),
            "cases without a limit, and without a reason for that"
        );
        Ok(limits)
    }

    /// The suites that have limits in a lane.
    pub fn suites(&self, lane: &str) -> BTreeSet<&str> {
        self.lane.get(lane).into_iter().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// The lanes that have limits.
    pub fn lanes(&self) -> impl Iterator<Item = &str> {
        self.lane.keys().map(String::as_str)
    }

    /// The limit of one cell.
    pub fn get(&self, lane: &str, suite: &str, peer: &str, case: &str) -> Option<f64> {
        self.lane.get(lane)?.get(suite)?.get(peer)?.get(case).copied()
    }

    /// Whether a case has no limit on purpose.
    pub fn is_without(&self, lane: &str, suite: &str, case: &str) -> bool {
        self.without.iter().any(|entry| entry.takes(lane, suite, case))
    }

    /// The peers and cases with a limit in a lane and suite.
    pub fn cells(&self, lane: &str, suite: &str) -> BTreeSet<(String, String)> {
        let peers = self.lane.get(lane).and_then(|suites| suites.get(suite)).into_iter().flatten();
        peers.flat_map(|(peer, cases)| cases.keys().map(|case| (peer.clone(), case.clone()))).collect()
    }

    /// Sets the limits of `cells` to their medians plus [`MARGIN`]. A limit that would become
    /// looser stays, unless there is a `reason`. A cell sets no limit if the machine could not
    /// distinguish equal programs from unequal ones, or if it must have no limit. Returns the cells
    /// whose limits did not change, and why.
    ///
    /// # Errors
    /// The reason is empty.
    pub fn set(&mut self, lane: &str, cells: &[Cell], reason: Option<(&str, &str)>) -> Result<Vec<String>> {
        let mut kept = Vec::new();
        for cell in cells {
            let name = format!("{} {} {}", cell.suite, cell.peer, cell.case);
            if self.is_without(lane, &cell.suite, &cell.case) {
                continue;
            }
            if !cell.is_fit() {
                kept.push(format!("{name}: the machine could not tell"));
                continue;
            }
            let limit = (cell.ratio.median * (1.0 + MARGIN) * 1000.0).round() / 1000.0;
            let old = self.get(lane, &cell.suite, &cell.peer, &cell.case);
            if old.is_some_and(|old| limit > old) {
                let Some((date, reason)) = reason else {
                    kept.push(format!("{name}: not loosened; with --reason it would be"));
                    continue;
                };
                ensure!(!reason.trim().is_empty(), "the reason is empty");
                self.note(lane, cell, date, reason);
            }
            let suite = self.lane.entry(lane.to_owned()).or_default().entry(cell.suite.clone()).or_default();
            suite.entry(cell.peer.clone()).or_default().insert(cell.case.clone(), limit);
        }
        Ok(kept)
    }

    fn note(&mut self, lane: &str, cell: &Cell, date: &str, reason: &str) {
        let case = format!("{}: {}", cell.peer, cell.case);
        let is_same = |entry: &&mut Loosened| {
            (&*entry.date, &*entry.lane, &entry.suite, &*entry.reason) == (date, lane, &cell.suite, reason)
        };
        match self.loosened.iter_mut().find(is_same) {
            Some(entry) => entry.cases.push(case),
            None => self.loosened.push(Loosened {
                date: date.to_owned(),
                lane: lane.to_owned(),
                suite: cell.suite.clone(),
                cases: vec![case],
                reason: reason.to_owned(),
            }),
        }
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let mut out = format!(
            "# The most that ours may take, as a share of a peer's time, by lane, suite, peer and case: what `cargo xtask gate` holds.\n\
             # Each is the median of the launches that set it, and {:.0} % above. Set by: cargo xtask gate --suite SUITE --set-limits\n\
             # A limit is loosened only with a reason, which is kept here; so is the reason where a case of a suite has none.\n",
            MARGIN * 100.0
        );
        // Writing to a String cannot fail.
        for Loosened { date, lane, suite, cases, reason } in &self.loosened {
            let _ = writeln!(out, "\n[[loosened]]\ndate = {date:?}\nlane = {lane:?}\nsuite = {suite:?}");
            let _ = writeln!(out, "cases = {cases:?}\nreason = {reason:?}");
        }
        for Without { lane, suite, cases, reason } in &self.without {
            let _ = writeln!(out, "\n[[without]]");
            if let Some(lane) = lane {
                let _ = writeln!(out, "lane = {lane:?}");
            }
            let _ = writeln!(out, "suite = {suite:?}\ncases = {cases:?}\nreason = {reason:?}");
        }
        for (lane, suites) in &self.lane {
            for (suite, peers) in suites {
                for (peer, cases) in peers {
                    let _ = writeln!(out, "\n[lane.{lane:?}.{suite:?}.{peer:?}]");
                    for (case, limit) in sorted(cases) {
                        let _ = writeln!(out, "{case:?} = {limit:.3}");
                    }
                }
            }
        }
        out
    }

    /// Reads what [`Self::text`] wrote, with the name of the file in errors.
    ///
    /// # Errors
    /// The file cannot be read, or is malformed.
    pub fn read(path: &std::path::Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }
}

/// Sorts cases by the words of their names, and numbers in them by value.
fn sorted(cases: &BTreeMap<String, f64>) -> Vec<(&String, &f64)> {
    let mut cases: Vec<_> = cases.iter().collect();
    cases.sort_by_key(|(case, _)| {
        let (group, last) = case.rsplit_once('/').unwrap_or(("", case));
        (group.to_owned(), last.parse::<u64>().unwrap_or(u64::MAX), last.to_owned())
    });
    cases
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    fn cell(case: &str, median: f64) -> Cell {
        let exactly = |median| Interval { low: median, median, high: median };
        let (suite, case, peer) = ("oneshot".into(), case.into(), "blake3".into());
        let (ratio, control) = (exactly(median), exactly(1.0));
        Cell { suite, case, peer, launches: 9, ratio, control, disturbed: 0.0, limit: None }
    }

    fn limits(cells: &[Cell]) -> Limits {
        let mut limits = Limits::default();
        assert_eq!(limits.set("amd-zen4", cells, None).unwrap(), [""; 0]);
        limits
    }

    #[test]
    fn limits_are_the_median_and_the_margin() {
        let limits = limits(&[cell("hash/64", 0.8)]);
        assert_eq!(limits.get("amd-zen4", "oneshot", "blake3", "hash/64"), Some(0.816));
        assert_eq!(limits.get("amd-zen4", "oneshot", "blake3", "hash/65"), None);
        assert_eq!(limits.get("intel-icl", "oneshot", "blake3", "hash/64"), None);
    }

    #[test]
    fn the_text_reads_back_with_sizes_in_order() {
        let mut limits = limits(&[cell("hash/1024", 1.0), cell("hash/64", 1.0), cell("x", 1.0)]);
        limits.set("amd-zen4", &[cell("x", 2.0)], Some(("2026-11-20", "a \"slower\" way"))).unwrap();
        let text = limits.text();
        assert_eq!(Limits::parse(&text).unwrap(), limits, "{text}");
        assert!(text.find("\"hash/64\"").unwrap() < text.find("\"hash/1024\"").unwrap(), "{text}");
    }

    #[test]
    fn limits_are_tightened_freely_and_loosened_with_a_reason() {
        let mut limits = limits(&[cell("a", 1.0), cell("b", 1.0)]);
        assert_eq!(
            limits.set("amd-zen4", &[cell("a", 0.5), cell("b", 1.5)], None).unwrap(),
            ["oneshot blake3 b: not loosened; with --reason it would be"]
        );
        let get = |limits: &Limits, case| limits.get("amd-zen4", "oneshot", "blake3", case).unwrap();
        assert_eq!((get(&limits, "a"), get(&limits, "b")), (0.51, 1.02));
        limits.set("amd-zen4", &[cell("b", 1.5)], Some(("2026-11-20", "why"))).unwrap();
        assert_eq!((get(&limits, "b"), limits.loosened[0].reason.as_str()), (1.53, "why"));
        assert!(limits.set("amd-zen4", &[cell("b", 2.0)], Some(("2026-11-20", " "))).is_err());
    }

    #[test]
    fn a_machine_that_cannot_tell_sets_no_limit() {
        let noisy = Cell { control: Interval { low: 0.9, median: 1.0, high: 1.1 }, ..cell("a", 1.0) };
        let shared = Cell { disturbed: 0.5, ..cell("b", 1.0) };
        let mut limits = Limits::default();
        let kept = limits.set("amd-zen4", &[noisy, shared, cell("c", 1.0)], None).unwrap();
        assert_eq!(kept.len(), 2, "{kept:?}");
        assert_eq!(limits.cells("amd-zen4", "oneshot").len(), 1);
    }

    #[test]
    fn what_is_to_have_no_limit_gets_none() {
        let text = "[[without]]\nsuite = \"oneshot\"\ncases = [\"a\"]\nreason = \"why\"";
        let mut limits = Limits::parse(text).unwrap();
        assert_eq!(limits.set("amd-zen4", &[cell("a", 1.0), cell("b", 1.0)], None).unwrap(), [""; 0]);
        let limit = |case| limits.get("amd-zen4", "oneshot", "blake3", case);
        assert_eq!((limit("a"), limit("b")), (None, Some(1.02)));
        assert!(limits.is_without("any", "oneshot", "a") && !limits.is_without("any", "oneshot", "b"));
        assert_eq!(Limits::parse(&limits.text()).unwrap(), limits);
        assert!(Limits::parse("[[without]]\nsuite = \"oneshot\"\nreason = \" \"").is_err());
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for text in ["[lane.a.b.c]\nd = -1.0", "[lane.a.b.c]\nd = nan", "[lame]", "[lane.a.b]\nc = 1.0"] {
            assert!(Limits::parse(text).is_err(), "{text}");
        }
        let unexplained =
            "[[loosened]]\ndate = \"d\"\nlane = \"l\"\nsuite = \"s\"\ncases = []\nreason = \"\"";
        assert!(Limits::parse(unexplained).is_err());
    }
}
