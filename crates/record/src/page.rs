//! The data of the laboratory's page (`lab/dashboard`): every kept run, each case with its figures.
//! The page does not compute figures; it only converts a time to the case's unit.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::{
    compare::{Comparison, EVEN_MARGIN, by_case, comparisons},
    gate::{GateCell, Limits},
    lane,
    record::{Record, Role},
    report::{RunSubject, subject},
    scaling::{MODELED, ScalingModel},
    stats::{Interval, median},
    suite::{self, SuiteDescription, Work},
    summary::{self, MachineSummary, NewestRun},
};

/// The version of the page's data. The page refuses any other.
pub const VERSION: u32 = 3;

/// All data of the page.
#[derive(Debug, Serialize)]
pub struct Page {
    version: u32,
    /// [`EVEN_MARGIN`].
    even: f64,
    lanes: Vec<LaneDescription>,
    suites: [SuiteDescription; suite::ALL_SUITES.len()],
    machines: Vec<MachineSummary>,
    losses: Vec<Loss>,
    runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
struct LaneDescription {
    name: String,
    about: String,
}

/// [`summary::WorstLoss`], with indices instead of names.
#[derive(Debug, Serialize)]
struct Loss {
    run: usize,
    case: String,
    /// The place in the peers of the run.
    peer: usize,
    lost: usize,
    of: usize,
}

/// One run of one suite, with one kernel.
#[derive(Debug, Serialize)]
struct Run {
    run: String,
    suite: String,
    lane: String,
    /// Empty if no kernel was forced.
    forced: String,
    kernel: String,
    implementation: String,
    version: String,
    cpu: String,
    /// The processors that the process could use; 0 if unknown.
    cores: u32,
    features: Vec<String>,
    /// The median over the records.
    ghz: f64,
    toolchain: String,
    flags: String,
    commit: String,
    dirty: bool,
    launches: u32,
    /// The highest of the records.
    load: f64,
    /// The median over the launches and cases.
    disturbed: f64,
    /// Labels, in the order in which they occur.
    peers: Vec<String>,
    cases: Vec<Case>,
    modeled: Vec<ModeledCurve>,
}

/// What a model says about more threads than were measured: one implementation, in one group whose
/// cases differ in the number of threads.
#[derive(Debug, Serialize)]
struct ModeledCurve {
    group: String,
    /// The index in the run's peers; ours has none.
    peer: Option<usize>,
    /// Pairs of a number of threads and nanoseconds.
    times: Vec<(u32, f64)>,
    /// The greatest distance of the model from a measured time, as a share of it.
    error: f64,
}

#[derive(Debug, Serialize)]
struct Case {
    case: String,
    bytes: u64,
    /// The threads that the operation may use; 0 if unknown.
    threads: u32,
    /// The unit of work, and how many units one operation does: [`Work`].
    unit: &'static str,
    count: f64,
    /// The median over the launches; 0 if unknown.
    ghz: f64,
    /// Nanoseconds of one operation of ours, the median over the launches.
    ns: f64,
    fastest: Fastest,
    /// The control over its equal, as an interval; `None` if the harness has no control.
    control: Option<[f64; 3]>,
    /// The control over its equal, launch by launch.
    controls: Vec<f64>,
    disturbed: f64,
    against: Vec<Against>,
}

/// [`summary::Fastest`]. The numbers are indices in the run's peers; ours has none.
#[derive(Debug, Serialize)]
struct Fastest {
    peer: Option<usize>,
    lead: f64,
    even: Vec<Option<usize>>,
}

/// One peer in one case.
#[derive(Debug, Serialize)]
struct Against {
    /// The place in the peers of the run.
    peer: usize,
    ns: f64,
    /// Peer over ours: low, median, high. Above 1, ours is faster.
    ratio: [f64; 3],
    /// Peer over ours, launch by launch.
    launches: Vec<f64>,
    /// The minimum of `ratio`: 1 / the gate's limit.
    limit: Option<f64>,
    /// The gate's verdict on these launches.
    verdict: String,
}

impl Page {
    /// The page's data from all kept records, in any order.
    ///
    /// # Errors
    /// Records do not fit together, or `lab/lanes.toml` is malformed.
    pub fn new(records: &[Record], limits: &Limits) -> Result<Self> {
        // A run's name begins with its time: the oldest comes first.
        let mut groups: BTreeMap<(&str, &str), Vec<Record>> = BTreeMap::new();
        for record in records {
            groups.entry((&record.run, &record.suite)).or_default().push(record.clone());
        }
        let mut runs = Vec::new();
        let mut newest: BTreeMap<RunSubject, NewestRun> = BTreeMap::new();
        for records in groups.into_values() {
            let found = comparisons(&records)?;
            let ours = found.first().context("a run without a case")?;
            let subject = subject(ours);
            runs.push(Run::new(&records, &found, limits));
            newest.insert(subject, NewestRun { run: runs.len() - 1, found });
        }
        let newest: Vec<NewestRun> = newest.into_values().collect();
        Ok(Self {
            version: VERSION,
            even: EVEN_MARGIN,
            lanes: lane::all()?
                .into_iter()
                .map(|lane| LaneDescription { name: lane.name, about: lane.about })
                .collect(),
            suites: suite::ALL_SUITES,
            machines: summary::machines(&newest),
            losses: summary::losses(&newest).into_iter().map(|loss| Loss::new(loss, &runs)).collect(),
            runs,
        })
    }

    /// The script that passes the data to the page: a page from the file system may load scripts,
    /// but not data.
    ///
    /// # Errors
    /// None that a page can cause.
    pub fn script(&self) -> Result<String> {
        let json = serde_json::to_string(self)?;
        Ok(format!(
            "// Code generated by `cargo xtask dashboard`. DO NOT EDIT.\nglobalThis.bullaLab = {json};\n"
        ))
    }
}

impl Loss {
    fn new(summary::WorstLoss { run, case, peer, lost, of }: summary::WorstLoss, runs: &[Run]) -> Self {
        Self { run, case, peer: place(&runs[run].peers, &peer).unwrap_or(0), lost, of }
    }
}

impl Run {
    fn new(records: &[Record], found: &[Comparison], limits: &Limits) -> Self {
        let ours = found[0].ours.clone();
        let limit = |suite: &str, peer: &str, case: &str| limits.get(&ours.lane, suite, peer, case);
        let cells = GateCell::all(found, limit);
        let mut peers: Vec<String> = Vec::new();
        for comparison in found {
            if !peers.contains(&comparison.peer) {
                peers.push(comparison.peer.clone());
            }
        }
        let of_ours = || records.iter().filter(|record| record.role == Role::Ours);
        let rows: Vec<&Comparison> = found.iter().collect();
        let new = |of_case: Vec<&Comparison>| {
            let ghz = clock(of_ours().filter(|record| record.case == of_case[0].ours.case));
            Case::new(&of_case, &peers, ghz)
        };
        let mut cases: Vec<Case> = by_case(&rows).into_iter().map(new).collect();
        for (comparison, cell) in found.iter().zip(&cells) {
            let peer = place(&peers, &comparison.peer).unwrap_or(0);
            if let Some(case) = cases.iter_mut().find(|case| case.case == comparison.ours.case) {
                case.add(comparison, cell, peer);
            }
        }
        Self {
            forced: if ours.forced { ours.kernel.clone() } else { String::new() },
            ghz: clock(of_ours()),
            launches: records.iter().map(|record| record.launch).max().unwrap_or(0),
            load: records.iter().map(|record| record.load).fold(0.0, f64::max),
            disturbed: short(median(of_ours().map(|record| record.disturbed))),
            run: ours.run,
            suite: ours.suite,
            lane: ours.lane,
            kernel: ours.kernel,
            implementation: ours.implementation,
            version: ours.version,
            cpu: ours.cpu,
            cores: ours.cores,
            features: ours.features,
            toolchain: ours.toolchain,
            flags: ours.flags,
            commit: ours.commit,
            dirty: ours.dirty,
            modeled: modeled(&cases, peers.len()),
            peers,
            cases,
        }
    }
}

/// The modeled curves of all groups whose cases differ in the number of threads.
fn modeled(cases: &[Case], peers: usize) -> Vec<ModeledCurve> {
    let group_of = |case: &Case| case.case.rsplit_once('/').map(|(group, _)| group.to_owned());
    let by_threads = |case: &&Case| case.threads > 0 && case.case.ends_with(&format!("/{}", case.threads));
    let mut groups: BTreeMap<String, Vec<&Case>> = BTreeMap::new();
    for case in cases.iter().filter(by_threads) {
        groups.entry(group_of(case).unwrap_or_default()).or_default().push(case);
    }
    let curve = |group: &str, cases: &[&Case], peer: Option<usize>| {
        let ns = |case: &Case| match peer {
            None => Some(case.ns),
            Some(peer) => case.against.iter().find(|against| against.peer == peer).map(|against| against.ns),
        };
        let measured: Vec<_> = cases.iter().filter_map(|case| Some((case.threads, ns(case)?))).collect();
        let model = ScalingModel::fit(&measured)?;
        let most = measured.iter().map(|(threads, _)| *threads).max()?;
        let times = MODELED.into_iter().filter(|threads| *threads > most);
        let times = times.map(|threads| (threads, short(model.ns(threads)))).collect();
        Some(ModeledCurve { group: group.to_owned(), peer, times, error: short(model.error) })
    };
    let of_group = |(group, cases): (&String, &Vec<&Case>)| {
        let all = [None].into_iter().chain((0..peers).map(Some));
        all.filter_map(|peer| curve(group, cases, peer)).collect::<Vec<_>>()
    };
    groups.iter().flat_map(of_group).collect()
}

/// The median clock of the records that have one.
fn clock<'a>(records: impl Iterator<Item = &'a Record>) -> f64 {
    let clocks: Vec<f64> = records.map(|record| record.ghz).filter(|ghz| *ghz > 0.0).collect();
    if clocks.is_empty() { 0.0 } else { short(median(clocks)) }
}

fn place(peers: &[String], label: &str) -> Option<usize> {
    peers.iter().position(|peer| peer == label)
}

impl Fastest {
    fn new(found: &summary::Fastest<'_>, peers: &[String]) -> Self {
        let place = |label: Option<&str>| label.and_then(|label| place(peers, label));
        Self {
            peer: place(found.peer),
            lead: rounded(found.lead, 8),
            even: found.even.iter().map(|label| place(*label)).collect(),
        }
    }
}

impl Case {
    /// A case, without the comparisons.
    fn new(of_case: &[&Comparison], peers: &[String], ghz: f64) -> Self {
        let comparison = of_case[0];
        let disturbed = median(comparison.launches.iter().map(|launch| launch.disturbed));
        let work = Work::of(&comparison.ours);
        Self {
            case: comparison.ours.case.clone(),
            bytes: comparison.ours.bytes,
            threads: comparison.ours.threads,
            unit: work.unit(),
            count: work.count(),
            ghz,
            ns: short(comparison.ours_ns()),
            fastest: Fastest::new(&summary::fastest(of_case), peers),
            control: None,
            controls: Vec::new(),
            disturbed: short(disturbed),
            against: Vec::new(),
        }
    }

    fn add(&mut self, comparison: &Comparison, cell: &GateCell, peer: usize) {
        let controls: Option<Vec<f64>> =
            comparison.launches.iter().map(|launch| launch.log_control).collect();
        if let Some(controls) = controls {
            self.control = Some(ends(cell.control));
            self.controls = controls.into_iter().map(|log| short(log.exp())).collect();
        }
        let Interval { low, median, high } = cell.ratio;
        self.against.push(Against {
            peer,
            ns: short(comparison.peer_ns()),
            ratio: [1.0 / high, 1.0 / median, 1.0 / low].map(|ratio| rounded(ratio, 8)),
            launches: comparison.launches.iter().map(|launch| short((-launch.log_ratio).exp())).collect(),
            limit: cell.limit.map(|limit| short(1.0 / limit)),
            verdict: cell.verdict().to_string(),
        });
    }
}

fn ends(interval: Interval) -> [f64; 3] {
    [interval.low, interval.median, interval.high].map(short)
}

/// Rounded to five digits: more are noise, and the page is loaded as a whole.
fn short(value: f64) -> f64 {
    rounded(value, 5)
}

/// Rounded to so many digits. What the page rounds again, and what it compares with a limit, has
/// eight: with five, 11.334694 would be shown as 11.34, and 1.01002 would not be above 1.01.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::launches;

    fn page(records: &[Record], limits: &str) -> serde_json::Value {
        serde_json::to_value(Page::new(records, &Limits::parse(limits).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn figures_are_those_of_the_comparison_and_the_gate() {
        let records = launches("hash/64", &[1.5, 1.1, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.3]);
        let page = page(&records, "[lane.amd-zen4.oneshot.blake3]\n\"hash/64\" = 0.8");
        let run = &page["runs"][0];
        assert_eq!(
            (&run["lane"], &run["launches"], &run["forced"]),
            (&"amd-zen4".into(), &9.into(), &"".into())
        );
        let case = &run["cases"][0];
        assert_eq!((&case["ns"], &case["control"][1]), (&100.0.into(), &1.0.into()));
        assert_eq!((&case["unit"], &case["count"]), (&"byte".into(), &64.0.into()));
        assert_eq!(case["fastest"], serde_json::json!({ "peer": null, "lead": 1.2, "even": [] }));
        let against = &case["against"][0];
        assert_eq!(against["ratio"], serde_json::json!([1.2, 1.2, 1.3]));
        assert_eq!(against["launches"].as_array().unwrap().len(), 9);
        assert_eq!((&against["limit"], &against["verdict"]), (&1.25.into(), &"inconclusive".into()));
    }

    #[test]
    fn runs_and_suites_stay_apart_and_the_oldest_comes_first() {
        let mut records = launches("a", &[1.0]);
        records.extend(launches("a", &[1.0]).into_iter().map(|r| Record { suite: "other".into(), ..r }));
        let earlier =
            launches("a", &[1.0]).into_iter().map(|r| Record { run: "2026-01-01".into(), forced: true, ..r });
        records.extend(earlier);
        let page = page(&records, "");
        let runs: Vec<_> =
            page["runs"].as_array().unwrap().iter().map(|r| (&r["suite"], &r["forced"])).collect();
        let text = |word: &str| serde_json::Value::from(word);
        let (oneshot, other, portable, none) = (text("oneshot"), text("other"), text("portable"), text(""));
        assert_eq!(runs, [(&oneshot, &portable), (&oneshot, &none), (&other, &none)]);
    }

    #[test]
    fn the_newest_run_of_each_suite_answers_and_losses_name_places() {
        let earlier =
            launches("hash/64", &[0.5]).into_iter().map(|r| Record { run: "2026-01-01".into(), ..r });
        let mut records: Vec<Record> = earlier.collect();
        records.extend(launches("hash/64", &[0.8]));
        let page = page(&records, "");
        assert_eq!(
            page["losses"],
            serde_json::json!([{ "run": 1, "case": "hash/64", "peer": 0, "lost": 1, "of": 1 }])
        );
        let machine = &page["machines"][0];
        assert_eq!((&machine["lane"], &machine["suites"]), (&"amd-zen4".into(), &1.into()));
        assert_eq!(machine["count"], serde_json::json!({ "fastest": 0, "even": 0, "slower": 1 }));
        assert_eq!(machine["main"]["run"], 1);
        assert_eq!(page["runs"][1]["cases"][0]["fastest"]["peer"], 0);
    }

    #[test]
    fn no_record_makes_a_page_without_runs() {
        let page = page(&[], "");
        assert_eq!(page["runs"].as_array().map(Vec::len), Some(0));
        assert!(page["lanes"].as_array().unwrap().len() > 5);
    }

    #[test]
    fn more_threads_than_were_measured_are_modeled() {
        let with = |threads: u32| {
            let of = move |record: Record| {
                let ns = 160.0 / f64::from(threads);
                let ns = if record.role == Role::Ours { ns } else { 2.0 * ns };
                Record { threads, cores: 16, samples_ns: vec![ns; 3], ..record }
            };
            launches(&format!("1M-threads/{threads}"), &[2.0]).into_iter().map(of)
        };
        let records: Vec<Record> = [1, 2, 4, 8, 16].into_iter().flat_map(with).collect();
        let page = page(&records, "");
        let run = &page["runs"][0];
        assert_eq!((&run["cores"], &run["cases"][0]["threads"]), (&16.into(), &1.into()));
        let modeled = run["modeled"].as_array().unwrap();
        assert_eq!((modeled.len(), &modeled[0]["group"]), (2, &"1M-threads".into()));
        assert_eq!(modeled[0]["times"], serde_json::json!([[32, 5.0], [64, 2.5], [128, 1.25]]));
        assert_eq!(modeled[1]["times"], serde_json::json!([[32, 10.0], [64, 5.0], [128, 2.5]]));
        // Cases that do not differ in their threads have no such curve.
        assert_eq!(self::page(&launches("hash/64", &[1.2]), "")["runs"][0]["modeled"], serde_json::json!([]));
    }

    #[test]
    fn the_script_is_one_statement_after_its_heading() {
        let script = Page::new(&launches("a", &[1.0]), &Limits::default()).unwrap().script().unwrap();
        let lines: Vec<_> = script.lines().collect();
        assert!(
            lines[0].contains("DO NOT EDIT")
                && lines[1].starts_with("globalThis.bullaLab = {")
                && lines.len() == 2
        );
    }

    #[test]
    fn figures_keep_five_digits() {
        assert_eq!([short(123_456.789), short(0.001_234_567), short(0.0)], [123_460.0, 0.001_234_6, 0.0]);
    }
}
