//! Compares ours with each peer: round by round within a launch, launch by launch within a run.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};

use crate::{
    record::{Record, Role},
    stats::median,
};

/// The comparison of ours with one peer in one case, over all launches of a run.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Our record in the first launch: it has the suite, the case, the kernel and the machine.
    pub ours: Record,
    /// The peer as tables show it: [`Record::label`].
    pub peer: String,
    /// Only the peer's name.
    pub peer_name: String,
    /// The results of the launches, in their order.
    pub launches: Vec<Launch>,
}

/// The result of one launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Launch {
    /// Our median time in nanoseconds.
    pub ours_ns: f64,
    /// The median time of the peer.
    pub peer_ns: f64,
    /// The median over the rounds of log(ours/peer): below 0, ours is faster.
    pub log_ratio: f64,
    /// The ratio of the control to the first peer, if there is a control.
    pub log_control: Option<f64>,
    /// The share of rounds in which something else used the core.
    pub disturbed: f64,
}

/// The result of a comparison for a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Ours is slower.
    Lost,
    /// Within [`EVEN_MARGIN`].
    Even,
    /// Ours is faster.
    Won,
}

/// Ratios this close to 1 are called even: on a shared machine, two equal programs differ as much.
pub const EVEN_MARGIN: f64 = 0.01;

impl Comparison {
    /// The ratio peer/ours, the median over the launches: above 1, ours is faster.
    pub fn ratio(&self) -> f64 {
        (-median(self.launches.iter().map(|launch| launch.log_ratio))).exp()
    }

    /// The smallest and the largest [`Self::ratio`] of a launch.
    pub fn spread(&self) -> (f64, f64) {
        let ratios = self.launches.iter().map(|launch| (-launch.log_ratio).exp());
        ratios.fold((f64::INFINITY, 0.0), |(low, high), ratio| (low.min(ratio), high.max(ratio)))
    }

    /// The control over the peer that it equals, the median over the launches.
    pub fn control(&self) -> Option<f64> {
        let controls: Option<Vec<_>> = self.launches.iter().map(|launch| launch.log_control).collect();
        controls.map(|controls| median(controls).exp())
    }

    /// Our nanoseconds, the median over the launches.
    pub fn ours_ns(&self) -> f64 {
        median(self.launches.iter().map(|launch| launch.ours_ns))
    }

    /// Nanoseconds of the peer, the median over the launches.
    pub fn peer_ns(&self) -> f64 {
        median(self.launches.iter().map(|launch| launch.peer_ns))
    }

    /// How many percent more time ours takes than the peer. If it is positive, ours is slower.
    pub fn need_percent(&self) -> f64 {
        (1.0 / self.ratio() - 1.0) * 100.0
    }

    /// The standing, by [`Self::ratio`].
    pub fn outcome(&self) -> Outcome {
        match self.ratio() {
            ratio if ratio < 1.0 - EVEN_MARGIN => Outcome::Lost,
            ratio if ratio > 1.0 + EVEN_MARGIN => Outcome::Won,
            _ => Outcome::Even,
        }
    }
}

/// Compares ours with each peer in every case of `records`, in the order of their first occurrence.
///
/// # Errors
/// In a launch, a case has none or more than one of our records, no peer, a peer twice, or
/// different numbers of rounds.
pub fn comparisons(records: &[Record]) -> Result<Vec<Comparison>> {
    type Key<'a> = (&'a str, &'a str, &'a str, u32);
    let mut places: BTreeMap<Key<'_>, usize> = BTreeMap::new();
    let mut launches: Vec<Vec<&Record>> = Vec::new();
    for record in records {
        let place =
            places.entry((&record.run, &record.suite, &record.case, record.launch)).or_insert(launches.len());
        if *place == launches.len() {
            launches.push(Vec::new());
        }
        launches[*place].push(record);
    }
    let mut found: Vec<Comparison> = Vec::new();
    let mut places: BTreeMap<(&str, &str, &str, String), usize> = BTreeMap::new();
    for launch in &launches {
        let (ours, control) = check(launch)?;
        let peers = launch.iter().filter(|record| record.role == Role::Peer);
        for (index, peer) in peers.enumerate() {
            let key = (ours.run.as_str(), ours.suite.as_str(), ours.case.as_str(), peer.label());
            let place = *places.entry(key).or_insert(found.len());
            if place == found.len() {
                let (ours, peer_name) = ((*ours).clone(), peer.implementation.clone());
                found.push(Comparison { ours, peer: peer.label(), peer_name, launches: Vec::new() });
            }
            let control = control.filter(|_| index == 0);
            found[place].launches.push(Launch {
                ours_ns: ours.median_ns(),
                peer_ns: peer.median_ns(),
                log_ratio: kept_or(peer, || log_ratio(ours, peer)),
                log_control: control.map(|control| kept_or(control, || log_ratio(control, peer))),
                disturbed: ours.disturbed,
            });
        }
    }
    Ok(found)
}

/// Finds our record and the control's among the records of one case and launch.
fn check<'a>(launch: &[&'a Record]) -> Result<(&'a Record, Option<&'a Record>)> {
    let Record { suite, case, launch: number, .. } = launch[0];
    let id = format!("{suite}: {case}: launch {number}");
    let of = |role| launch.iter().filter(move |record| record.role == role).copied();
    let [ours] = of(Role::Ours).collect::<Vec<_>>()[..] else {
        bail!("{id}: {} records of ours; there must be one", of(Role::Ours).count());
    };
    let control = match of(Role::Control).collect::<Vec<_>>()[..] {
        [] => None,
        [control] => Some(control),
        _ => bail!("{id}: more than one control"),
    };
    let labels: Vec<_> = of(Role::Peer).map(Record::label).collect();
    ensure!(!labels.is_empty(), "{id}: no peer");
    let twice = labels.iter().enumerate().find(|(index, label)| labels[..*index].contains(label));
    ensure!(twice.is_none(), "{id}: a peer twice: {}", labels[0]);
    ensure!(
        control.is_none_or(|control| control.label() == labels[0]),
        "{id}: the control is not the first peer"
    );
    let rounds = |record: &&Record| record.rounds() == launch[0].rounds();
    ensure!(launch.iter().all(rounds), "{id}: the numbers of rounds differ");
    Ok((ours, control))
}

/// The value from the kept run's summary, or computed from the samples.
fn kept_or(record: &Record, of_samples: impl FnOnce() -> f64) -> f64 {
    record.summary.as_ref().map_or_else(of_samples, |summary| summary.log_ratio)
}

/// The median over the rounds of the logarithm of `a` over `b`: not the logarithm of the medians,
/// because a disturbance of a whole round cancels out within it.
pub(crate) fn log_ratio(a: &Record, b: &Record) -> f64 {
    median(a.samples_ns.iter().zip(&b.samples_ns).map(|(a, b)| (a / b).ln()))
}

/// The comparisons of each case, in the order of their first occurrence.
pub(crate) fn by_case<'a>(rows: &[&'a Comparison]) -> Vec<Vec<&'a Comparison>> {
    let mut cases: Vec<Vec<&Comparison>> = Vec::new();
    for row in rows {
        match cases.iter_mut().find(|cells| cells[0].ours.case == row.ours.case) {
            Some(cells) => cells.push(row),
            None => cases.push(vec![row]),
        }
    }
    cases
}

#[cfg(test)]
pub(crate) fn launches(case: &str, ratios: &[f64]) -> Vec<Record> {
    let mut records = Vec::new();
    for (index, ratio) in ratios.iter().enumerate() {
        let launch = index as u32 + 1;
        let base =
            Record { case: case.into(), launch, samples_ns: vec![100.0; 3], ..crate::record::example() };
        let peer = Record {
            role: Role::Peer,
            implementation: "blake3".into(),
            kernel: String::new(),
            samples_ns: vec![100.0 * ratio; 3],
            ..base.clone()
        };
        let control = Record { role: Role::Control, ..peer.clone() };
        records.extend([base, peer, control]);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_ratio_is_the_median_and_the_spread_its_extremes() {
        let found = comparisons(&launches("a", &[1.5, 1.1, 1.2])).unwrap();
        assert_eq!(found.len(), 1);
        let (low, high) = found[0].spread();
        assert!(close(found[0].ratio(), 1.2) && close(low, 1.1) && close(high, 1.5), "{found:?}");
        assert!(close(found[0].control().unwrap(), 1.0));
        assert!(close(found[0].need_percent(), 100.0 / 1.2 - 100.0));
    }

    #[test]
    fn the_ratio_is_taken_within_the_round() {
        let mut records = launches("a", &[1.0]);
        records[0].samples_ns = vec![2.0, 20.0, 40.0];
        records[1].samples_ns = vec![1.0, 10.0, 80.0];
        assert!(close(comparisons(&records).unwrap()[0].ratio(), 0.5));
    }

    #[test]
    fn each_peer_is_compared_and_only_the_first_has_the_control() {
        let mut records = launches("a", &[1.5]);
        let other =
            Record { implementation: "rscrypto".into(), samples_ns: vec![80.0; 3], ..records[1].clone() };
        records.insert(2, other);
        let found = comparisons(&records).unwrap();
        assert_eq!(found.iter().map(|c| c.peer_name.as_str()).collect::<Vec<_>>(), ["blake3", "rscrypto"]);
        assert!(close(found[1].ratio(), 0.8) && found[1].outcome() == Outcome::Lost);
        assert!(found[0].control().is_some() && found[1].control().is_none());
    }

    #[test]
    fn runs_and_cases_stay_apart() {
        let mut records = launches("a", &[1.0, 1.0]);
        records.extend(launches("b", &[1.0]));
        let other = launches("a", &[1.0]).into_iter().map(|record| Record { run: "later".into(), ..record });
        records.extend(other);
        let counts: Vec<_> = comparisons(&records).unwrap().iter().map(|c| c.launches.len()).collect();
        assert_eq!(counts, [2, 1, 1]);
    }

    #[test]
    fn records_that_do_not_fit_together_are_refused() {
        let bad: [fn(&mut Vec<Record>); 5] = [
            |records| drop(records.remove(0)),
            |records| drop(records.drain(1..)),
            |records| records[0].samples_ns.push(1.0),
            |records| records.push(records[1].clone()),
            |records| records[2].implementation = "another".into(),
        ];
        for (index, spoil) in bad.iter().enumerate() {
            let mut records = launches("a", &[1.0]);
            spoil(&mut records);
            assert!(comparisons(&records).is_err(), "{index}");
        }
    }

    #[test]
    fn within_a_percent_is_even() {
        let standing = |ratio| comparisons(&launches("a", &[ratio])).unwrap()[0].outcome();
        assert_eq!(
            [0.98, 0.995, 1.005, 1.02].map(standing),
            [Outcome::Lost, Outcome::Even, Outcome::Even, Outcome::Won]
        );
    }
}
