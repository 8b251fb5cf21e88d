//! `cargo xtask gate`: checks that ours is as fast as `lab/limits.toml` demands, with nine launches
//! per suite.

mod report;

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, Echo};
use bulla_record::{
    compare::comparisons,
    gate::{GateCell, GateVerdict, Limits},
    lane::{self, Lane, Machine},
    record::Record,
};

use crate::bench::{
    harness::{self, Harness, Kernel, Language, Selection},
    run::{self, Run},
    suites::{self, Suite},
};

/// The arguments of `cargo xtask gate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask gate\n  cargo xtask gate --suite oneshot\n  \
    cargo xtask gate --suite oneshot --slow-down 5 --slow-cases hash/1024\n  \
    cargo xtask gate --suite oneshot --set-limits\n  cargo xtask gate --set-limits --record\n\n\
    The gate launches each suite nine times; ours, its peers and a copy of the first peer take turns. A cell passes if the second to eighth \
    of its nine ratios are within its limit. It fails if they are above the limit twice. An inconclusive cell is measured again with \
    twice as many launches, at most twice.\n\n\
    Exit status: 0 pass (also with warnings of inconclusive cells), 1 fail, 2 the gate could not run, 3 machine unfit: \
    two equal contenders now differ by more than 1 %, or others share the core.")]
pub(crate) struct Args {
    /// Only this suite [default: all suites with limits for the lane]
    #[arg(long, value_name = "SUITE", value_parser = suites::names())]
    suite: Option<String>,
    /// The lane whose limits to check: a lane of lab/lanes.toml, or `auto` for this machine's lane
    #[arg(long, value_name = "LANE|auto", default_value = "auto")]
    lane: String,
    /// Only cases whose names begin with PREFIX; with an equals sign before it, only the case of
    /// exactly that name
    #[arg(long, value_delimiter = ',', value_name = "PREFIX,...")]
    cases: Vec<String>,
    /// Print JSON Lines, one object per cell, instead of the table
    #[arg(long)]
    json: bool,
    /// Keep the records of the first nine launches in lab/runs
    #[arg(long)]
    record: bool,
    /// Make ours PERCENT slower in the cases of --slow-cases, to check that the gate fails
    #[arg(long, value_name = "PERCENT", requires = "slow_cases", value_parser = clap::value_parser!(u64).range(1..=100))]
    slow_down: Option<u64>,
    /// The cases to slow down, by their full names
    #[arg(long, value_delimiter = ',', value_name = "CASE,...", requires = "slow_down")]
    slow_cases: Vec<String>,
    /// Set the suite's limits to the present measurement plus the margin; loosens no limit without
    /// --reason. Without --suite: sets the limits of all suites, one after another
    #[arg(long, conflicts_with_all = ["slow_down", "lane"])]
    set_limits: bool,
    /// The reason why limits may become looser
    #[arg(long, value_name = "TEXT", requires = "set_limits")]
    reason: Option<String>,
}

/// The number of launches of a suite's first measurement.
const LAUNCHES: u32 = 9;

/// How often inconclusive cells are measured again, each time with twice as many launches.
const MAX_REPEATS: u32 = 2;

/// How long launches may wait in total until the core is ours alone, each time that cells are
/// measured again.
const WAIT_SECONDS: u64 = 120;

/// The most seconds that one case of one launch may wait.
const MAX_SECONDS: u64 = 5;

/// Measures and judges.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let context = Context::find()?;
    let lane = if args.lane == "auto" { lane::of(&Machine::this())? } else { lane::named(&args.lane)? };
    let gate = Gate { limits: Limits::read(&limits_path(&context))?, lane, context, args };
    if args.set_limits {
        return gate.set_limits();
    }
    let mut cells = Vec::new();
    for suite in gate.suites()? {
        cells.extend(gate.judge(&suite)?);
    }
    let text = if args.json { report::json(&cells)? } else { report::table(&gate.lane.name, &cells) };
    print!("{text}");
    Ok(report::status(&cells))
}

/// The path of the limits.
pub(crate) fn limits_path(context: &Context) -> PathBuf {
    context.root.join("lab/limits.toml")
}

struct Gate<'a> {
    context: Context,
    args: &'a Args,
    lane: Lane,
    limits: Limits,
}

impl Gate<'_> {
    /// The name of the lane whose limits a suite has: for one thread, the number of processors does
    /// not count.
    fn lane_of(&self, suite: &str) -> &str {
        let is_on_one_thread = !harness::THREADED_SUITES.contains(&suite);
        let same = self.lane.one_thread.as_deref().filter(|_| is_on_one_thread);
        same.unwrap_or(&self.lane.name)
    }

    /// The requested suite, or all suites with limits.
    fn suites(&self) -> Result<Vec<Suite>> {
        let found = self.args.suite.as_ref().map_or_else(suites::every, |name| suites::find(name));
        let is_limited = |suite: &Suite| self.limits.suites(self.lane_of(suite.name)).contains(suite.name);
        ensure!(
            found.iter().any(is_limited),
            "lab/limits.toml has no limits for the lane {}: set them with `cargo xtask gate --suite SUITE --set-limits`",
            self.lane.name
        );
        Ok(found.into_iter().filter(is_limited).collect())
    }

    /// Measures a suite. It measures cells that failed, are inconclusive or had no fit machine
    /// again, with more launches.
    fn judge(&self, suite: &Suite) -> Result<Vec<GateCell>> {
        let mut harness = self.harness(suite)?;
        let told = harness.arguments.clone();
        let selection = Selection { sizes: Vec::new(), cases: self.args.cases.clone() };
        let mut cells = self.measure(&harness, &selection, LAUNCHES, true)?;
        for round in 1..=MAX_REPEATS {
            let open: BTreeSet<_> =
                cells.iter().filter(|cell| is_open(cell)).map(|cell| cell.case.clone()).collect();
            if open.is_empty() {
                break;
            }
            let launches = LAUNCHES << round;
            if harness.language == Language::Laboratory {
                let patience = patience(u64::from(launches), open.len() as u64);
                harness.arguments = [&told[..], &[format!("--patience={patience}")]].concat();
            }
            let selection =
                Selection { sizes: Vec::new(), cases: open.iter().map(|case| format!("={case}")).collect() };
            let again = self.measure(&harness, &selection, launches, false)?;
            for cell in cells.iter_mut().filter(|cell| is_open(cell)) {
                let same = |other: &&GateCell| (&other.case, &other.peer) == (&cell.case, &cell.peer);
                cell.clone_from(again.iter().find(same).context("a cell was not measured again")?);
            }
        }
        Ok(cells)
    }

    fn harness(&self, suite: &Suite) -> Result<Harness> {
        let mut harness = suite.prepare(&self.context, &Kernel::Default)?;
        if let Some(percent) = self.args.slow_down {
            ensure!(harness.language == Language::Laboratory, "{} cannot be slowed down", suite.name);
            let cases = self.args.slow_cases.join(",");
            harness.arguments.extend([format!("--slow-down={percent}"), format!("--slow-cases={cases}")]);
        }
        Ok(harness)
    }

    fn measure(
        &self,
        harness: &Harness,
        selection: &Selection,
        launches: u32,
        is_first: bool,
    ) -> Result<Vec<GateCell>> {
        let records = self.launch(harness, selection, launches)?;
        let cells = self.cells(&records)?;
        if is_first && self.args.record {
            let path = run::keep(&self.context, harness.suite, records)?;
            eprintln!("xtask: recorded in {}", path.display());
        }
        Ok(cells)
    }

    fn launch(&self, harness: &Harness, selection: &Selection, launches: u32) -> Result<Vec<Record>> {
        let run = Run::begin(&self.context)?;
        let mut records = Vec::new();
        for launch in 1..=launches {
            let progress = format!("{}: launch {launch} of {launches}", harness.suite);
            records.extend(run.launch(harness, selection, launch, &progress, Echo::Hide)?);
        }
        Ok(records)
    }

    fn cells(&self, records: &[Record]) -> Result<Vec<GateCell>> {
        let limit =
            |suite: &str, peer: &str, case: &str| self.limits.get(self.lane_of(suite), suite, peer, case);
        let mut cells = GateCell::all(&comparisons(records)?, limit);
        cells.retain(|cell| !self.limits.is_without(self.lane_of(&cell.suite), &cell.suite, &cell.case));
        Ok(cells)
    }

    /// Sets each suite's limits from nine launches. They are written suite by suite, so that an
    /// interruption loses little.
    fn set_limits(mut self) -> Result<ExitCode> {
        let suites = match &self.args.suite {
            Some(name) => suites::find(name),
            None => suites::every(),
        };
        let path = limits_path(&self.context);
        let mut failed = 0;
        for suite in suites {
            let begun = Instant::now();
            match self.set_limits_of(&suite) {
                Ok(kept) => {
                    kept.iter().for_each(|cell| println!("{cell}"));
                    replace(&path, &self.limits.text())?;
                    let took = begun.elapsed().as_secs();
                    println!(
                        "{}: limits on {}, {} min {:02} s",
                        suite.name,
                        self.lane_of(suite.name),
                        took / 60,
                        took % 60
                    );
                }
                // Continue with the other suites: one needs Go, another Node.
                Err(error) if self.args.suite.is_none() => {
                    eprintln!("xtask: {}: {error:#}", suite.name);
                    failed += 1;
                }
                Err(error) => return Err(error),
            }
        }
        ensure!(failed == 0, "{failed} suites could not be measured; the others have their limits");
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the cells whose limits did not change.
    fn set_limits_of(&mut self, suite: &Suite) -> Result<Vec<String>> {
        let lane = self.lane_of(suite.name).to_owned();
        refuse_without(&self.limits, &lane, suite.name, &self.args.cases)?;
        let harness = suite.prepare(&self.context, &Kernel::Default)?;
        let selection = Selection { sizes: Vec::new(), cases: self.args.cases.clone() };
        let cells = self.measure(&harness, &selection, LAUNCHES, true)?;
        let now = bulla_record::record::utc_now();
        let (date, _) = now.split_once('T').expect("a date and a time");
        let reason = self.args.reason.as_deref().map(|reason| (date, reason));
        self.limits.set(&lane, &cells, reason)
    }
}

/// Fails if one of the cases, named as a whole by `=CASE`, has no limit on purpose.
fn refuse_without(limits: &Limits, lane: &str, suite: &str, cases: &[String]) -> Result<()> {
    for case in cases.iter().filter_map(|case| case.strip_prefix('=')) {
        ensure!(
            !limits.is_without(lane, suite, case),
            "{case} has no limit on purpose: to set one, first take it out of [[without]] in lab/limits.toml"
        );
    }
    Ok(())
}

/// Replaces a file, all or nothing.
pub(crate) fn replace(path: &Path, text: &str) -> Result<()> {
    let fresh = path.with_extension("new");
    let write = || {
        let mut file = File::create(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// The seconds that a case may wait when `cases` are measured again: the fewer cases, the longer.
fn patience(launches: u64, cases: u64) -> u64 {
    (WAIT_SECONDS / (launches * cases).max(1)).clamp(1, MAX_SECONDS)
}

/// Whether more launches could change the verdict. A failure counts when it is found twice.
fn is_open(cell: &GateCell) -> bool {
    match cell.verdict() {
        GateVerdict::Fail => cell.launches <= LAUNCHES as usize,
        GateVerdict::Inconclusive | GateVerdict::Unfit => true,
        GateVerdict::NoLimit | GateVerdict::Pass => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_without_a_limit_on_purpose_is_refused_by_its_name() {
        let without =
            "[[without]]\nlane = 'zen-4'\nsuite = 'files'\ncases = ['read/1024']\nreason = 'the disk'\n";
        let limits = Limits::parse(without).unwrap();
        let refused = |lane, suite, case: &str| refuse_without(&limits, lane, suite, &[case.to_owned()]);
        let error = refused("zen-4", "files", "=read/1024").unwrap_err().to_string();
        assert!(
            error.starts_with("read/1024 has no limit on purpose") && error.contains("[[without]]"),
            "{error}"
        );
        // Another lane, suite or case, and a pattern, which may match cases with limits too.
        for (lane, suite, case) in [
            ("emerald-rapids", "files", "=read/1024"),
            ("zen-4", "oneshot", "=read/1024"),
            ("zen-4", "files", "=read/2048"),
            ("zen-4", "files", "read/1024"),
        ] {
            refused(lane, suite, case).unwrap();
        }
    }

    #[test]
    fn few_cases_may_wait_longer() {
        assert_eq!(patience(18, 1), 5);
        assert_eq!(patience(36, 1), 3);
        assert_eq!(patience(18, 60), 1);
    }
}
