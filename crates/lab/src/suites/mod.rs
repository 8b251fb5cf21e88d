//! What is measured: each suite is a table of cases, each case a set of contenders that compute the same.

mod blake3;

use std::fs;

use anyhow::{Result, ensure};

use crate::{
    clock,
    measure::{Data, Plan, Subject, measure},
    record::{Record, SCHEMA},
};

/// A set of cases about one subject.
pub struct Suite {
    /// The name on the command line.
    pub name: &'static str,
    /// All cases, in the order of the table.
    pub cases: fn() -> Vec<Case>,
    /// The kernel of ours that is in use; an error if the environment forces one that this machine lacks.
    pub active_kernel: fn() -> Result<Active>,
    /// The kernels of ours that this machine can run.
    pub kernels: fn() -> Vec<String>,
    /// The peer with its version and what this build holds it back from.
    pub peer: fn() -> String,
}

/// The kernel in use.
#[derive(Clone, Debug)]
pub struct Active {
    /// Its name, such as `x86_64/avx512`.
    pub name: String,
    /// Whether the environment forced it, rather than detection choosing it.
    pub forced: bool,
}

/// One case of a suite.
pub struct Case {
    /// The name, such as `oneshot/64`: a group, and what varies within it.
    pub id: String,
    /// How many bytes one operation reads, or for extendable output, writes.
    pub bytes: usize,
    /// The length of the random input.
    pub input: usize,
    /// The length of each input, for cases of many.
    pub part: Option<usize>,
    /// Makes the contenders, fresh for this case.
    pub contenders: Box<dyn Fn() -> Contenders>,
}

/// Ours, and the peer twice: the second one is the control, since two equals show how far noise goes.
pub struct Contenders {
    /// Ours.
    pub ours: Box<dyn Subject>,
    /// The peer.
    pub peer: Box<dyn Subject>,
    /// The peer again.
    pub control: Box<dyn Subject>,
}

/// Every suite.
pub fn all() -> [Suite; 1] {
    [blake3::suite()]
}

/// Which cases of a suite to run. An empty list means no restriction.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Beginnings of case names.
    pub prefixes: Vec<String>,
    /// Values of [`Case::bytes`].
    pub sizes: Vec<usize>,
}

impl Filter {
    fn takes(&self, case: &Case) -> bool {
        (self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| case.id.starts_with(prefix.as_str())))
            && (self.sizes.is_empty() || self.sizes.contains(&case.bytes))
    }
}

impl Suite {
    /// Measures the cases that `filter` takes and hands each record to `emit` as it comes.
    ///
    /// # Errors
    /// No case is left, contenders disagree, or `emit` fails.
    pub fn run(
        &self,
        launch: u32,
        filter: &Filter,
        plan: &Plan,
        mut emit: impl FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        let cases: Vec<_> = (self.cases)().into_iter().filter(|case| filter.takes(case)).collect();
        ensure!(!cases.is_empty(), "no case of the suite {} fits the filter", self.name);
        let mut random = fastrand::Rng::new();
        let kernel = (self.active_kernel)()?;
        let cpu = cpu_name();
        for case in cases {
            emit(&self.run_case(&case, launch, plan, &kernel, &cpu, &mut random)?)?;
        }
        Ok(())
    }

    fn run_case(
        &self,
        case: &Case,
        launch: u32,
        plan: &Plan,
        kernel: &Active,
        cpu: &str,
        random: &mut fastrand::Rng,
    ) -> Result<Record> {
        const OURS: usize = 0;
        const PEER: usize = 1;
        const CONTROL: usize = 2;
        let Contenders { ours, peer, control } = (case.contenders)();
        let data = Data::random(case.input, case.part, random);
        let before = clock::gigahertz();
        let samples = measure(&mut [ours, peer, control], &data, plan, random)
            .map_err(|error| error.context(format!("{}: {}", self.name, case.id)))?;
        let after = clock::gigahertz();
        Ok(Record {
            schema: SCHEMA,
            suite: self.name.to_owned(),
            case: case.id.clone(),
            bytes: case.bytes as u64,
            kernel: kernel.name.clone(),
            forced: kernel.forced,
            peer: (self.peer)(),
            launch,
            rounds: samples.ns[OURS].len() as u32,
            iterations: samples.iterations,
            ours_ns: samples.median_ns(OURS),
            peer_ns: samples.median_ns(PEER),
            ratio: samples.median_ratio(PEER, OURS),
            control: samples.median_ratio(PEER, CONTROL),
            ghz: f64::midpoint(before, after),
            cpu: cpu.to_owned(),
        })
    }
}

/// What the processor calls itself, where Linux tells.
fn cpu_name() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// The version of a package in the workspace's lock file: the one that this build has.
fn locked_version(package: &str) -> &'static str {
    const LOCK: &str = include_str!("../../../../Cargo.lock");
    let entry = LOCK.split("[[package]]").find(|entry| entry.contains(&format!("\nname = \"{package}\"\n")));
    let version = entry.and_then(|entry| entry.split_once("\nversion = \"")?.1.split_once('"'));
    version.map_or("of unknown version", |(version, _)| version)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn case_names_are_unique() {
        for suite in all() {
            let cases = (suite.cases)();
            let names: HashSet<_> = cases.iter().map(|case| &case.id).collect();
            assert_eq!(names.len(), cases.len(), "{}", suite.name);
        }
    }

    #[test]
    fn contenders_agree_in_every_case() {
        let plan =
            Plan { min_rounds: 1, max_rounds: 1, sample: Default::default(), budget: Default::default() };
        for suite in all() {
            let mut seen = 0;
            suite
                .run(1, &Filter::default(), &plan, |record| {
                    seen += 1;
                    anyhow::ensure!(record.ratio.is_finite() && record.ratio > 0.0, "{}", record.case);
                    Ok(())
                })
                .unwrap();
            assert_eq!(seen, (suite.cases)().len());
        }
    }

    #[test]
    fn filters_restrict() {
        let filter = Filter { prefixes: vec!["oneshot/".into()], sizes: vec![64, 1024] };
        let cases = (blake3::suite().cases)();
        let taken: Vec<_> =
            cases.iter().filter(|case| filter.takes(case)).map(|case| case.id.as_str()).collect();
        assert_eq!(taken, ["oneshot/64", "oneshot/1024"]);
        assert!(cases.iter().all(|case| Filter::default().takes(case)));
    }

    #[test]
    fn a_filter_that_takes_nothing_is_an_error() {
        let filter = Filter { prefixes: vec!["no such".into()], sizes: vec![] };
        assert!(blake3::suite().run(1, &filter, &Plan::default(), |_| Ok(())).is_err());
    }

    #[test]
    fn the_peer_is_named_with_its_version() {
        assert!(locked_version("blake3").starts_with("1."));
        assert_eq!(locked_version("no-such-package"), "of unknown version");
    }
}
