//! The gate checks, with several launches and a limit, that ours is fast enough.
//!
//! The unit is a launch of a process, because the luck of addresses does not average out over
//! rounds within one process. Each launch gives one figure, the median of log(ours/peer). The gate
//! uses the median of nine launches, with the second and the eighth as its interval.

use std::fmt;

use crate::{
    compare::Comparison,
    stats::{Interval, median},
};

/// The maximum distance of the control's interval from 1. Beyond that, this machine currently
/// cannot distinguish equal programs from unequal ones.
pub const CONTROL: f64 = 0.01;

/// The maximum share of disturbed rounds, as the median over launches. Below one half, the median
/// round is a quiet one.
pub const DISTURBED: f64 = 0.25;

/// The gate's verdict on one comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The whole interval is above the limit.
    Fail,
    /// The control's interval leaves 1 by more than [`CONTROL`], or more than [`DISTURBED`] of the
    /// rounds shared their core: there is no result.
    Unfit,
    /// The limit is within the interval.
    Inconclusive,
    /// There is no limit.
    NoLimit,
    /// The whole interval is at or below the limit.
    Pass,
}

impl fmt::Display for Verdict {
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
pub struct Cell {
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

impl Cell {
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
        control.is_within(CONTROL) && self.disturbed <= DISTURBED
    }

    /// The gate's verdict.
    pub fn verdict(&self) -> Verdict {
        let Some(limit) = self.limit else { return Verdict::NoLimit };
        if !self.is_fit() {
            Verdict::Unfit
        } else if self.ratio.low > limit {
            Verdict::Fail
        } else if self.ratio.high > limit {
            Verdict::Inconclusive
        } else {
            Verdict::Pass
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        compare::{comparisons, launches},
        record::{Record, Role},
    };

    fn cell(ratios: [f64; 9], limit: f64) -> Cell {
        let ratio = Interval::of(ratios);
        let control = Interval { low: 0.995, median: 1.0, high: 1.005 };
        let (suite, case, peer) = ("s".into(), "c".into(), "p".into());
        Cell { suite, case, peer, launches: 9, ratio, control, disturbed: 0.0, limit: Some(limit) }
    }

    const QUIET: [f64; 9] = [0.90, 0.99, 0.995, 1.0, 1.0, 1.0, 1.005, 1.01, 1.10];

    #[test]
    fn the_interval_decides() {
        assert_eq!(cell(QUIET, 1.01).verdict(), Verdict::Pass);
        assert_eq!(cell(QUIET, 1.009).verdict(), Verdict::Inconclusive);
        assert_eq!(cell(QUIET, 0.99).verdict(), Verdict::Inconclusive);
        assert_eq!(cell(QUIET, 0.989).verdict(), Verdict::Fail);
    }

    #[test]
    fn a_control_that_leaves_a_percent_makes_no_verdict() {
        let of = |low, high, limit| {
            Cell { control: Interval { low, median: 1.0, high }, ..cell(QUIET, limit) }.verdict()
        };
        assert_eq!([of(0.9899, 1.0, 2.0), of(1.0, 1.0101, 0.5)], [Verdict::Unfit; 2]);
        assert_eq!([of(0.991, 1.009, 2.0), of(0.991, 1.009, 0.5)], [Verdict::Pass, Verdict::Fail]);
    }

    #[test]
    fn a_shared_core_makes_no_verdict() {
        let of = |disturbed, limit| Cell { disturbed, ..cell(QUIET, limit) }.verdict();
        assert_eq!([of(0.26, 2.0), of(0.26, 0.5)], [Verdict::Unfit; 2]);
        assert_eq!([of(0.25, 2.0), of(0.25, 0.5)], [Verdict::Pass, Verdict::Fail]);
    }

    #[test]
    fn without_a_limit_there_is_no_verdict() {
        assert_eq!(Cell { limit: None, ..cell(QUIET, 1.0) }.verdict(), Verdict::NoLimit);
    }

    /// Records have peer over ours, the gate has ours over peer, and the first peer's control also
    /// counts for the second.
    #[test]
    fn cells_come_from_records() {
        let mut records = launches("a", &[2.0; 9]);
        let second: Vec<_> = records.iter().filter(|record| record.role == Role::Peer).cloned().collect();
        records.extend(second.into_iter().map(|record| Record { implementation: "other".into(), ..record }));
        let cells =
            Cell::all(&comparisons(&records).unwrap(), |_, peer, _| (peer == "blake3").then_some(0.51));
        let found: Vec<_> = cells.iter().map(|cell| (cell.peer.as_str(), cell.verdict())).collect();
        assert_eq!(found, [("blake3", Verdict::Pass), ("other", Verdict::NoLimit)]);
        assert!(cells.iter().all(|cell| (cell.ratio.median - 0.5).abs() < 1e-9 && cell.launches == 9));
        assert!(cells.iter().all(|cell| (cell.control.median - 1.0).abs() < 1e-9));
    }

    #[test]
    fn without_a_control_nothing_is_said() {
        let records: Vec<_> =
            launches("a", &[2.0; 9]).into_iter().filter(|r| r.role != Role::Control).collect();
        let cells = Cell::all(&comparisons(&records).unwrap(), |_, _, _| Some(1.0));
        assert_eq!(cells[0].verdict(), Verdict::Unfit);
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
            prop_assert_eq!((with(1.0), with(1.05)), (Verdict::Pass, Verdict::Fail));
        }

        #[test]
        fn a_looser_limit_never_makes_it_worse(ratios in prop::array::uniform9(0.5..2.0_f64), limit in 0.5..2.0_f64, looser in 0.0..0.5_f64) {
            prop_assert!(cell(ratios, limit + looser).verdict() >= cell(ratios, limit).verdict());
        }
    }
}
