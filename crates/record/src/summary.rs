//! The summary at the top of the page: the fastest implementation of a case and its lead, our
//! results on a machine, and the worst loss of each suite.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compare::{Comparison, EVEN_MARGIN, Outcome, by_case};

/// The fastest implementation of a case.
#[derive(Clone, Debug, PartialEq)]
pub struct Fastest<'a> {
    /// The label of a peer; ours has none.
    pub peer: Option<&'a str>,
    /// The speed relative to the next one.
    pub lead: f64,
    /// The others that are even with it; `None` is ours.
    pub even: Vec<Option<&'a str>>,
}

/// The fastest among ours and the peers of one case.
///
/// A peer's speed relative to ours is 1 / [`Comparison::ratio`], and [`Comparison::outcome`] says
/// whether the two are even. Two peers were not compared with each other: they are even if their
/// speeds relative to ours differ by at most [`EVEN_MARGIN`].
pub fn fastest<'a>(cells: &[&'a Comparison]) -> Fastest<'a> {
    let mut speeds: Vec<(Option<&str>, f64)> = vec![(None, 1.0)];
    speeds.extend(cells.iter().map(|cell| (Some(cell.peer.as_str()), 1.0 / cell.ratio())));
    // The sort is stable: ours comes before a peer of the same speed.
    speeds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (peer, best) = speeds[0];
    let with_ours =
        |label: &str| cells.iter().any(|cell| cell.peer == label && cell.outcome() == Outcome::Even);
    let is_even = |(other, speed): &(Option<&str>, f64)| match (peer, *other) {
        (Some(label), None) | (None, Some(label)) => with_ours(label),
        _ => speed / best >= 1.0 - EVEN_MARGIN,
    };
    let even = speeds[1..].iter().filter(|other| is_even(other)).map(|other| other.0).collect();
    Fastest { peer, lead: speeds.get(1).map_or(1.0, |next| best / next.1), even }
}

/// The outcome of a case for ours, compared with the best peer.
pub fn case_outcome(cells: &[&Comparison]) -> Outcome {
    cells.iter().map(|cell| cell.outcome()).min().unwrap_or(Outcome::Even)
}

/// The speed of ours relative to the case's best peer: above 1, ours is faster.
fn over_best(cells: &[&Comparison]) -> f64 {
    cells.iter().map(|cell| cell.ratio()).fold(f64::INFINITY, f64::min)
}

/// The newest run of a lane, a suite and a forced kernel.
pub struct NewestRun {
    /// The run's index among the page's runs.
    pub run: usize,
    /// All comparisons of the run.
    pub found: Vec<Comparison>,
}

/// The number of cases in which ours is the fastest, even with the fastest, or slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutcomeCounts {
    fastest: usize,
    even: usize,
    slower: usize,
}

impl OutcomeCounts {
    fn of<'a>(cases: impl IntoIterator<Item = &'a Vec<&'a Comparison>>) -> Self {
        let mut count = Self::default();
        for cells in cases {
            *match case_outcome(cells) {
                Outcome::Won => &mut count.fastest,
                Outcome::Even => &mut count.even,
                Outcome::Lost => &mut count.slower,
            } += 1;
        }
        count
    }
}

/// Our results on a machine, over the newest run of every suite there.
#[derive(Debug, Serialize)]
pub struct MachineSummary {
    lane: String,
    /// The processors' own names.
    cpus: Vec<String>,
    suites: usize,
    count: OutcomeCounts,
    main: MainGroup,
}

/// The results by size for the operation that most readers look for.
#[derive(Debug, Serialize)]
struct MainGroup {
    run: usize,
    group: String,
    count: OutcomeCounts,
    /// The lowest and the highest speed of ours relative to the best peer.
    least: CaseRatio,
    most: CaseRatio,
}

#[derive(Debug, Serialize)]
struct CaseRatio {
    case: String,
    ratio: f64,
}

/// The worst comparison of a run in which ours loses at least one.
#[derive(Debug)]
pub struct WorstLoss {
    /// The run's index among the page's runs.
    pub run: usize,
    /// The case.
    pub case: String,
    /// The peer's label.
    pub peer: String,
    /// The number of the run's comparisons that ours loses.
    pub lost: usize,
    /// The number of comparisons in the run.
    pub of: usize,
}

/// The suite that most readers look for.
const MAIN_SUITE: &str = "oneshot";

/// All machines: the one with the most cases first, those without a lane last.
pub fn machines(newest: &[NewestRun]) -> Vec<MachineSummary> {
    let mut lanes: BTreeMap<&str, Vec<&NewestRun>> = BTreeMap::new();
    for run in newest {
        lanes.entry(&run.found[0].ours.lane).or_default().push(run);
    }
    let mut machines: Vec<_> =
        lanes.into_iter().map(|(lane, runs)| MachineSummary::new(lane, &runs)).collect();
    let cases = |machine: &MachineSummary| machine.count.fastest + machine.count.even + machine.count.slower;
    machines.sort_by_key(|machine| (machine.lane.is_empty(), std::cmp::Reverse(cases(machine))));
    machines
}

impl MachineSummary {
    fn new(lane: &str, runs: &[&NewestRun]) -> Self {
        let rows: Vec<Vec<&Comparison>> = runs.iter().map(|run| run.found.iter().collect()).collect();
        let cases: Vec<_> = rows.iter().flat_map(|rows| by_case(rows)).collect();
        let mut cpus: Vec<String> = runs.iter().map(|run| run.found[0].ours.cpu.clone()).collect();
        cpus.sort();
        cpus.dedup();
        let mut suites: Vec<&str> = runs.iter().map(|run| run.found[0].ours.suite.as_str()).collect();
        suites.sort_unstable();
        suites.dedup();
        Self {
            lane: lane.to_owned(),
            cpus,
            suites: suites.len(),
            count: OutcomeCounts::of(&cases),
            main: MainGroup::new(runs),
        }
    }
}

impl MainGroup {
    /// The largest group of the main suite or, if the machine does not have that, of the run with
    /// the most cases.
    fn new(runs: &[&NewestRun]) -> Self {
        let is_main = |run: &NewestRun| run.found[0].ours.suite == MAIN_SUITE && !run.found[0].ours.forced;
        let main = runs.iter().max_by_key(|run| (is_main(run), run.found.len())).unwrap_or(&runs[0]);
        let rows: Vec<&Comparison> = main.found.iter().collect();
        let mut groups: Vec<(&str, Vec<Vec<&Comparison>>)> = Vec::new();
        for cells in by_case(&rows) {
            let group = group_of(&cells[0].ours.case);
            match groups.iter_mut().find(|known| known.0 == group) {
                Some(known) => known.1.push(cells),
                None => groups.push((group, vec![cells])),
            }
        }
        // If two groups have one size, the first.
        let (group, cases) =
            groups.into_iter().rev().max_by_key(|(_, cases)| cases.len()).unwrap_or_default();
        let at = |better: fn(&f64, &f64) -> std::cmp::Ordering| {
            let cells = cases.iter().max_by(|a, b| better(&over_best(a), &over_best(b)));
            cells.map_or_else(
                || CaseRatio { case: String::new(), ratio: 1.0 },
                |cells| CaseRatio { case: cells[0].ours.case.clone(), ratio: over_best(cells) },
            )
        };
        Self {
            run: main.run,
            count: OutcomeCounts::of(&cases),
            least: at(|a, b| b.total_cmp(a)),
            most: at(f64::total_cmp),
            group: group.to_owned(),
        }
    }
}

/// The group of a case: the part before its last slash.
fn group_of(case: &str) -> &str {
    case.rsplit_once('/').map_or(case, |(group, _)| group)
}

/// The worst loss of every run that has one, the greatest first.
pub fn losses(newest: &[NewestRun]) -> Vec<WorstLoss> {
    let mut worst: Vec<(f64, WorstLoss)> = Vec::new();
    for NewestRun { run, found } in newest {
        let lost: Vec<_> = found.iter().filter(|row| row.outcome() == Outcome::Lost).collect();
        let Some(row) = lost.iter().min_by(|a, b| a.ratio().total_cmp(&b.ratio())) else { continue };
        let (case, peer) = (row.ours.case.clone(), row.peer.clone());
        worst.push((row.ratio(), WorstLoss { run: *run, case, peer, lost: lost.len(), of: found.len() }));
    }
    worst.sort_by(|a, b| a.0.total_cmp(&b.0));
    worst.into_iter().map(|(_, loss)| loss).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::{comparisons, launches},
        record::{Record, Role},
    };

    /// A case whose peers have these ratios.
    fn case(name: &str, ratios: &[f64]) -> Vec<Record> {
        let mut records = launches(name, &[1.0]);
        let peer = records[1].clone();
        records.truncate(1);
        for (index, ratio) in ratios.iter().enumerate() {
            let implementation = format!("peer{index}");
            records.push(Record { implementation, samples_ns: vec![100.0 * ratio; 3], ..peer.clone() });
        }
        assert_eq!(peer.role, Role::Peer);
        records
    }

    fn newest(run: usize, records: Vec<Record>) -> NewestRun {
        NewestRun { run, found: comparisons(&records).unwrap() }
    }

    /// The fastest, its lead, and those even with it: `None` is ours.
    fn answer(ratios: &[f64]) -> (Option<String>, f64, Vec<Option<String>>) {
        let found = comparisons(&case("hash/64", ratios)).unwrap();
        let cells: Vec<_> = found.iter().collect();
        let Fastest { peer, lead, even } = fastest(&cells);
        let owned = |label: Option<&str>| label.map(|label| label.split(' ').next().unwrap().to_owned());
        (owned(peer), (lead * 1000.0).round() / 1000.0, even.into_iter().map(owned).collect())
    }

    #[test]
    fn the_fastest_leads_the_next_and_equals_are_named() {
        let peer = |index: usize| Some(format!("peer{index}"));
        assert_eq!(answer(&[1.25, 1.5]), (None, 1.25, vec![]));
        assert_eq!(answer(&[1.5, 0.8]), (peer(1), 1.25, vec![]));
        assert_eq!(answer(&[0.5, 0.4]), (peer(1), 1.25, vec![]), "a peer that beats a peer that beats ours");
        assert_eq!(answer(&[1.005, 1.5]), (None, 1.005, vec![peer(0)]));
        assert_eq!(answer(&[0.995, 1.5]), (peer(0), 1.005, vec![None]));
        assert_eq!(answer(&[0.5, 0.502]), (peer(0), 1.004, vec![peer(1)]), "two peers that are even");
        assert_eq!(answer(&[1.0]), (None, 1.0, vec![peer(0)]), "ours first among equals");
    }

    #[test]
    fn a_case_stands_as_beside_its_best_peer() {
        let stands = |ratios: &[f64]| {
            let found = comparisons(&case("a", ratios)).unwrap();
            case_outcome(&found.iter().collect::<Vec<_>>())
        };
        assert_eq!(stands(&[1.5, 0.9]), Outcome::Lost);
        assert_eq!(stands(&[1.5, 1.001]), Outcome::Even);
        assert_eq!(stands(&[1.5, 1.2]), Outcome::Won);
    }

    #[test]
    fn a_machine_is_counted_by_cases_and_its_main_group_has_the_most() {
        let mut records = case("keyed/64", &[0.5]);
        for (size, ratio) in [(64, 1.25), (128, 1.5), (256, 1.0), (512, 0.8)] {
            records.extend(case(&format!("hash/{size}"), &[ratio, 2.0]));
        }
        let other = |record| Record { suite: "xof".into(), ..record };
        let more: Vec<_> =
            (0..9).flat_map(|index| case(&format!("output/{index}"), &[1.3])).map(other).collect();
        let found = machines(&[newest(4, records), newest(5, more)]);
        assert_eq!((found.len(), found[0].suites), (1, 2));
        assert_eq!(found[0].count, OutcomeCounts { fastest: 11, even: 1, slower: 2 });
        let MainGroup { run, group, count, least, most } = &found[0].main;
        assert_eq!((*run, group.as_str()), (4, "hash"), "the main suite, though another has more cases");
        assert_eq!(*count, OutcomeCounts { fastest: 2, even: 1, slower: 1 });
        assert_eq!((least.case.as_str(), most.case.as_str()), ("hash/512", "hash/128"));
        assert!((least.ratio - 0.8).abs() < 1e-9 && (most.ratio - 1.5).abs() < 1e-9);
    }

    #[test]
    fn machines_without_a_lane_come_last() {
        let of_lane = |lane: &str, cases: usize| {
            let records = (0..cases).flat_map(|index| case(&format!("hash/{index}"), &[1.3]));
            newest(0, records.map(|record| Record { lane: lane.into(), ..record }).collect())
        };
        let found = machines(&[of_lane("", 3), of_lane("few", 1), of_lane("many", 2)]);
        assert_eq!(
            found.iter().map(|machine| machine.lane.as_str()).collect::<Vec<_>>(),
            ["many", "few", ""]
        );
    }

    #[test]
    fn each_run_with_a_loss_has_its_worst_and_the_greatest_comes_first() {
        let mut records = case("hash/64", &[0.9, 1.2]);
        records.extend(case("hash/128", &[0.95, 0.8]));
        let found =
            losses(&[newest(0, case("a", &[1.5, 0.995])), newest(1, records), newest(2, case("b", &[0.5]))]);
        let short: Vec<_> = found
            .iter()
            .map(|loss| (loss.run, loss.case.as_str(), loss.peer.as_str(), loss.lost, loss.of))
            .collect();
        let version = comparisons(&case("a", &[1.0])).unwrap()[0].ours.version.clone();
        let (first, second) = (format!("peer0 {version}"), format!("peer1 {version}"));
        assert_eq!(short, [(2, "b", first.as_str(), 1, 1), (1, "hash/128", second.as_str(), 3, 4)]);
    }
}
