//! The gate checks, with several launches and a limit, that ours is fast enough. Its limits, from
//! `lab/limits.toml`, are the largest share of a peer's time that ours may take.
//!
//! The unit is a launch of a process, because the luck of addresses does not average out over
//! rounds within one process. Each launch gives one figure, the median of log(ours/peer). The gate
//! uses the median of nine launches, with the second and the eighth as its interval.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
};

use crate::{
    compare::Comparison,
    stats::{Interval, median},
};
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// The maximum distance of the control's interval from 1. Beyond that, this machine currently
/// cannot distinguish equal programs from unequal ones.
pub const MAX_CONTROL_DISTANCE: f64 = 0.01;

/// The maximum share of disturbed rounds, as the median over launches. Below one half, the median
/// round is a quiet one.
pub const MAX_DISTURBED_SHARE: f64 = 0.25;

/// The gate's verdict on one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateVerdict {
    /// The whole interval is above the limit.
    Fail,
    /// The control's interval leaves 1 by more than [`MAX_CONTROL_DISTANCE`], or more than
    /// [`MAX_DISTURBED_SHARE`] of the rounds shared their core: there is no result.
    Unfit,
    /// The limit is within the interval.
    Inconclusive,
    /// There is no limit.
    NoLimit,
    /// The whole interval is at or below the limit.
    Pass,
}

impl fmt::Display for GateVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fail => "fail",
            Self::Unfit => "machine unfit",
            Self::Inconclusive => "inconclusive",
            Self::NoLimit => "no limit",
            Self::Pass => "pass",
        })
    }
}

/// One comparison that the gate checks.
#[derive(Clone, Debug)]
pub struct GateCell {
    /// The suite.
    pub suite: String,
    /// The case within the suite.
    pub case: String,
    /// The peer's name.
    pub peer: String,
    /// The number of launches.
    pub launches: usize,
    /// Ours over the peer, over the launches.
    pub ratio: Interval,
    /// The control over its equal.
    pub control: Interval,
    /// The share of disturbed rounds, the median over the launches.
    pub disturbed: f64,
    /// The limit of `ratio`.
    pub limit: Option<f64>,
}

impl GateCell {
    /// The cells of `comparisons`, each with the limit that `limit` returns for its suite, peer and
    /// case.
    ///
    /// A case has one control, for its first peer. It counts for the other peers too.
    pub fn all(comparisons: &[Comparison], limit: impl Fn(&str, &str, &str) -> Option<f64>) -> Vec<Self> {
        let of = |comparison: &Comparison| {
            let (suite, case) = (comparison.ours.suite.clone(), comparison.ours.case.clone());
            let has_control = |other: &&Comparison| {
                (&other.ours.suite, &other.ours.case) == (&suite, &case) && other.control().is_some()
            };
            let beside = comparisons.iter().find(has_control).unwrap_or(comparison);
            // Without a control, the harness's noise is unknown: use the widest interval.
            let control =
                |launch: &crate::compare::Launch| launch.log_control.map_or(f64::INFINITY, f64::exp);
            Self {
                limit: limit(&suite, &comparison.peer_name, &case),
                peer: comparison.peer_name.clone(),
                launches: comparison.launches.len(),
                ratio: Interval::of(comparison.launches.iter().map(|launch| launch.log_ratio.exp())),
                control: Interval::of(beside.launches.iter().map(control)),
                disturbed: median(comparison.launches.iter().map(|launch| launch.disturbed)),
                suite,
                case,
            }
        };
        comparisons.iter().map(of).collect()
    }

    /// Whether the machine could tell equals from unequals during the measurement.
    pub fn is_fit(&self) -> bool {
        let control = Interval { low: self.control.low - 1.0, high: self.control.high - 1.0, ..self.control };
        control.is_within(MAX_CONTROL_DISTANCE) && self.disturbed <= MAX_DISTURBED_SHARE
    }

    /// The gate's verdict.
    pub fn verdict(&self) -> GateVerdict {
        let Some(limit) = self.limit else { return GateVerdict::NoLimit };
        if !self.is_fit() {
            GateVerdict::Unfit
        } else if self.ratio.low > limit {
            GateVerdict::Fail
        } else if self.ratio.high > limit {
            GateVerdict::Inconclusive
        } else {
            GateVerdict::Pass
        }
    }
}

/// The distance of a limit above the measured median. Unchanged code stays below the limit; code
/// that takes 5 % longer does not.
pub const LIMIT_MARGIN: f64 = 0.02;

/// Limits by lane, suite, peer and case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The loosened limits with their reasons, in order.
    #[serde(default)]
    pub loosened: Vec<LoosenedLimits>,
    /// The cases without a limit on purpose.
    #[serde(default)]
    pub without: Vec<WithoutLimit>,
    #[serde(default)]
    lane: BTreeMap<String, BySuite>,
}

type BySuite = BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>>;

/// Limits that were loosened, and the reason.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoosenedLimits {
    /// The day, as `2026-11-20`.
    pub date: String,
    /// The lane of the limits.
    pub lane: String,
    /// The suite.
    pub suite: String,
    /// The cases.
    pub cases: Vec<String>,
    /// The reason.
    pub reason: String,
}

/// Cases that the gate skips, and the reason.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithoutLimit {
    /// The lane; none means all.
    pub lane: Option<String>,
    /// The suite.
    pub suite: String,
    /// The cases, by their whole names; none means all of the suite.
    #[serde(default)]
    pub cases: Vec<String>,
    /// The reason.
    pub reason: String,
}

impl WithoutLimit {
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

    /// Sets the limits of `cells` to their medians plus [`LIMIT_MARGIN`]. A limit that would become
    /// looser stays, unless there is a `reason`. A cell sets no limit if the machine could not
    /// distinguish equal programs from unequal ones, or if it must have no limit. Returns the cells
    /// whose limits did not change, and why.
    ///
    /// # Errors
    /// The reason is empty.
    pub fn set(
        &mut self,
        lane: &str,
        cells: &[GateCell],
        reason: Option<(&str, &str)>,
    ) -> Result<Vec<String>> {
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
            let limit = (cell.ratio.median * (1.0 + LIMIT_MARGIN) * 1000.0).round() / 1000.0;
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

    fn note(&mut self, lane: &str, cell: &GateCell, date: &str, reason: &str) {
        let case = format!("{}: {}", cell.peer, cell.case);
        let is_same = |entry: &&mut LoosenedLimits| {
            (&*entry.date, &*entry.lane, &entry.suite, &*entry.reason) == (date, lane, &cell.suite, reason)
        };
        match self.loosened.iter_mut().find(is_same) {
            Some(entry) => entry.cases.push(case),
            None => self.loosened.push(LoosenedLimits {
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
            "# The most that ours may take, as a share of a peer's time, by lane, suite, peer and case: what\n\
             # `cargo xtask gate` holds. Each is the median of the launches that set it, and {:.0} % above.\n\
             # `cargo xtask gate --suite SUITE --set-limits` sets them. A limit is loosened only with a reason,\n\
             # which is kept here; so is the reason where a case of a suite has none.\n",
            LIMIT_MARGIN * 100.0
        );
        // Writing to a String cannot fail.
        for LoosenedLimits { date, lane, suite, cases, reason } in &self.loosened {
            let _ = writeln!(out, "\n[[loosened]]\ndate = {date:?}\nlane = {lane:?}\nsuite = {suite:?}");
            let _ = writeln!(out, "cases = {cases:?}\nreason = {reason:?}");
        }
        for WithoutLimit { lane, suite, cases, reason } in &self.without {
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
    use proptest::prelude::*;

    use super::*;
    use crate::{
        compare::{comparisons, launches},
        record::{Record, Role},
    };

    fn cell(ratios: [f64; 9], limit: f64) -> GateCell {
        let ratio = Interval::of(ratios);
        let control = Interval { low: 0.995, median: 1.0, high: 1.005 };
        let (suite, case, peer) = ("s".into(), "c".into(), "p".into());
        GateCell { suite, case, peer, launches: 9, ratio, control, disturbed: 0.0, limit: Some(limit) }
    }

    const QUIET: [f64; 9] = [0.90, 0.99, 0.995, 1.0, 1.0, 1.0, 1.005, 1.01, 1.10];

    #[test]
    fn the_interval_decides() {
        assert_eq!(cell(QUIET, 1.01).verdict(), GateVerdict::Pass);
        assert_eq!(cell(QUIET, 1.009).verdict(), GateVerdict::Inconclusive);
        assert_eq!(cell(QUIET, 0.99).verdict(), GateVerdict::Inconclusive);
        assert_eq!(cell(QUIET, 0.989).verdict(), GateVerdict::Fail);
    }

    #[test]
    fn a_control_that_leaves_a_percent_makes_no_verdict() {
        let of = |low, high, limit| {
            GateCell { control: Interval { low, median: 1.0, high }, ..cell(QUIET, limit) }.verdict()
        };
        assert_eq!([of(0.9899, 1.0, 2.0), of(1.0, 1.0101, 0.5)], [GateVerdict::Unfit; 2]);
        assert_eq!([of(0.991, 1.009, 2.0), of(0.991, 1.009, 0.5)], [GateVerdict::Pass, GateVerdict::Fail]);
    }

    #[test]
    fn a_shared_core_makes_no_verdict() {
        let of = |disturbed, limit| GateCell { disturbed, ..cell(QUIET, limit) }.verdict();
        assert_eq!([of(0.26, 2.0), of(0.26, 0.5)], [GateVerdict::Unfit; 2]);
        assert_eq!([of(0.25, 2.0), of(0.25, 0.5)], [GateVerdict::Pass, GateVerdict::Fail]);
    }

    #[test]
    fn without_a_limit_there_is_no_verdict() {
        assert_eq!(GateCell { limit: None, ..cell(QUIET, 1.0) }.verdict(), GateVerdict::NoLimit);
    }

    /// Records have peer over ours, the gate has ours over peer, and the first peer's control also
    /// counts for the second.
    #[test]
    fn cells_come_from_records() {
        let mut records = launches("a", &[2.0; 9]);
        let second: Vec<_> = records.iter().filter(|record| record.role == Role::Peer).cloned().collect();
        records.extend(second.into_iter().map(|record| Record { implementation: "other".into(), ..record }));
        let cells =
            GateCell::all(&comparisons(&records).unwrap(), |_, peer, _| (peer == "blake3").then_some(0.51));
        let found: Vec<_> = cells.iter().map(|cell| (cell.peer.as_str(), cell.verdict())).collect();
        assert_eq!(found, [("blake3", GateVerdict::Pass), ("other", GateVerdict::NoLimit)]);
        assert!(cells.iter().all(|cell| (cell.ratio.median - 0.5).abs() < 1e-9 && cell.launches == 9));
        assert!(cells.iter().all(|cell| (cell.control.median - 1.0).abs() < 1e-9));
    }

    #[test]
    fn without_a_control_nothing_is_said() {
        let records: Vec<_> =
            launches("a", &[2.0; 9]).into_iter().filter(|r| r.role != Role::Control).collect();
        let cells = GateCell::all(&comparisons(&records).unwrap(), |_, _, _| Some(1.0));
        assert_eq!(cells[0].verdict(), GateVerdict::Unfit);
    }

    proptest! {
        /// With a limit two percent above the recorded value, noise of a percent, and one bad
        /// launch of nine, unchanged code passes, and code that takes 5 % longer fails.
        #[test]
        fn five_percent_fail_and_unchanged_passes(
            base in 0.1..3.0_f64,
            noise in prop::collection::vec(-0.01..0.01_f64, 8),
            wild in 0.5..2.0_f64,
        ) {
            let with = |slower: f64| {
                let mut ratios = [base * slower * wild; 9];
                for (ratio, noise) in ratios.iter_mut().zip(&noise) {
                    *ratio = base * slower * (1.0 + noise);
                }
                cell(ratios, base * 1.02).verdict()
            };
            prop_assert_eq!((with(1.0), with(1.05)), (GateVerdict::Pass, GateVerdict::Fail));
        }

        #[test]
        fn a_looser_limit_never_makes_it_worse(ratios in prop::array::uniform9(0.5..2.0_f64), limit in 0.5..2.0_f64, looser in 0.0..0.5_f64) {
            prop_assert!(cell(ratios, limit + looser).verdict() >= cell(ratios, limit).verdict());
        }
    }
}

#[cfg(test)]
mod limits_tests {
    use super::*;
    use crate::stats::Interval;

    fn cell(case: &str, median: f64) -> GateCell {
        let exactly = |median| Interval { low: median, median, high: median };
        let (suite, case, peer) = ("oneshot".into(), case.into(), "blake3".into());
        let (ratio, control) = (exactly(median), exactly(1.0));
        GateCell { suite, case, peer, launches: 9, ratio, control, disturbed: 0.0, limit: None }
    }

    fn limits(cells: &[GateCell]) -> Limits {
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
        let noisy = GateCell { control: Interval { low: 0.9, median: 1.0, high: 1.1 }, ..cell("a", 1.0) };
        let shared = GateCell { disturbed: 0.5, ..cell("b", 1.0) };
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
