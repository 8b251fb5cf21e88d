//! What is measured: each suite is a table of cases, each case ours and its peers, which compute the same.

mod blake2;
mod blake3;
pub mod ed25519;
mod kms;

use anyhow::{Context as _, Result, ensure};
use bulla_record::{
    LABORATORY, lane,
    machine::{self, Machine},
    record::{Record, Role, SCHEMA},
};

use crate::{
    clock,
    measure::{Data, Plan, Slowed, Subject, measure},
    quiet::Quiet,
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
}

/// The kernel in use.
#[derive(Clone, Debug)]
pub struct Active {
    /// Its name, such as `x86_64/avx512`.
    pub name: String,
    /// Whether the environment forced it, rather than detection choosing it.
    pub forced: bool,
}

/// Makes an implementation of a case, fresh for a launch.
pub type Make = Box<dyn Fn() -> Box<dyn Subject>>;

/// One case of a suite: ours beside one peer or several.
pub struct Case {
    /// The name within the suite, such as `hash/64`: a group, and what varies within it.
    pub id: String,
    /// How many bytes one operation reads, or for extendable output, writes.
    pub bytes: usize,
    /// The length of the random input.
    pub input: usize,
    /// The length of each input, for cases of many.
    pub part: Option<usize>,
    /// Ours.
    pub ours: Make,
    /// The peers, at least one. The first one also runs as the control.
    pub peers: Vec<Peer>,
}

/// What ours is compared with.
pub struct Peer {
    /// Its name, for a crate that of the package.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// The instruction set that it was held back to, such as `avx2`, or empty.
    pub held_to: &'static str,
    /// Makes it.
    pub make: Make,
}

impl Peer {
    /// A crate of the lock file, free to use all that the machine has.
    pub fn of_package(name: &'static str, make: impl Fn() -> Box<dyn Subject> + 'static) -> Self {
        Self { name, version: locked_version(name).to_owned(), held_to: "", make: Box::new(make) }
    }
}

/// Every suite, in the order of [`LABORATORY`].
pub fn all() -> Vec<Suite> {
    let suites = blake3::suites().into_iter().chain([blake2::suite()]);
    suites.chain(ed25519::suites()).chain(kms::suites()).collect()
}

/// The suite of that name.
///
/// # Errors
/// There is none; the error lists those that there are.
pub fn find(name: &str) -> Result<Suite> {
    let suite = all().into_iter().find(|suite| suite.name == name);
    suite.with_context(|| format!("no suite {name}; there are: {}", LABORATORY.join(", ")))
}

/// Which cases of a suite to run. An empty list means no restriction.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Beginnings of the names of cases, with the suite before them or without: `oneshot/hash/64`, `hash/64`. After an equals sign the
    /// whole name: `=hash/64`.
    pub prefixes: Vec<String>,
    /// Values of [`Case::bytes`].
    pub sizes: Vec<usize>,
    /// Cases in which ours is made slower on purpose, by so many percent.
    pub slowed: Option<(u32, Vec<String>)>,
}

impl Filter {
    fn takes(&self, suite: &str, case: &Case) -> bool {
        let full = format!("{suite}/{}", case.id);
        let begins = |prefix: &String| match prefix.strip_prefix('=') {
            Some(name) => case.id == name || full == name,
            None => case.id.starts_with(prefix.as_str()) || full.starts_with(prefix.as_str()),
        };
        (self.prefixes.is_empty() || self.prefixes.iter().any(begins))
            && (self.sizes.is_empty() || self.sizes.contains(&case.bytes))
    }

    /// By how many percent ours is to be slowed down in a case.
    fn slowed(&self, case: &Case) -> Option<u32> {
        self.slowed.as_ref().filter(|(_, cases)| cases.contains(&case.id)).map(|(percent, _)| *percent)
    }
}

impl Suite {
    /// Measures the cases that `filter` takes and hands each record to `emit` as it comes.
    ///
    /// The fields of the run, the lane, the toolchain and the commit are left empty: `cargo xtask bench` fills them in.
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
        let kernel = (self.active_kernel)()?;
        let cases: Vec<_> = (self.cases)().into_iter().filter(|case| filter.takes(self.name, case)).collect();
        ensure!(!cases.is_empty(), "no case of the suite {} fits the filter", self.name);
        let mut random = fastrand::Rng::new();
        let mut quiet = Quiet::new(lane::of(&Machine::this())?.adders);
        let template = self.template(launch);
        for mut case in cases {
            if let Some(percent) = filter.slowed(&case) {
                let make = case.ours;
                case.ours = Box::new(move || Box::new(Slowed { subject: make(), percent }));
            }
            let records = run_case(&case, &kernel, &template, plan, &mut random, &mut quiet)
                .with_context(|| format!("{}: {}", self.name, case.id))?;
            records.iter().try_for_each(&mut emit)?;
        }
        Ok(())
    }

    /// What all records of a launch have in common.
    fn template(&self, launch: u32) -> Record {
        Record {
            schema: SCHEMA,
            run: String::new(),
            time: String::new(),
            suite: self.name.to_owned(),
            case: String::new(),
            bytes: 0,
            implementation: String::new(),
            version: String::new(),
            role: Role::Peer,
            kernel: String::new(),
            forced: false,
            held_to: String::new(),
            lane: String::new(),
            cpu: machine::cpu(),
            features: machine::features(),
            ghz: 0.0,
            toolchain: String::new(),
            flags: String::new(),
            commit: String::new(),
            dirty: false,
            launch,
            iterations: 0,
            samples_ns: Vec::new(),
            load: 0.0,
            disturbed: 0.0,
            summary: None,
        }
    }
}

/// One record for ours, one for each peer, one for the control.
fn run_case(
    case: &Case,
    kernel: &Active,
    template: &Record,
    plan: &Plan,
    random: &mut fastrand::Rng,
    quiet: &mut Quiet,
) -> Result<Vec<Record>> {
    let control = case.peers.first().context("a case without a peer")?;
    let contenders = case.peers.iter().chain([control]).map(|peer| &peer.make);
    let mut contenders: Vec<_> = [&case.ours].into_iter().chain(contenders).map(|make| make()).collect();
    let data = Data::random(case.input, case.part, random);
    let before = clock::gigahertz();
    let samples = measure(&mut contenders, &data, plan, random, quiet)?;
    let common = Record {
        time: bulla_record::record::now(),
        case: case.id.clone(),
        bytes: case.bytes as u64,
        ghz: f64::midpoint(before, clock::gigahertz()),
        iterations: samples.iterations,
        load: machine::load(),
        disturbed: samples.disturbed,
        ..template.clone()
    };
    let ours = Record {
        role: Role::Ours,
        implementation: "bulla".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: kernel.name.clone(),
        forced: kernel.forced,
        ..common.clone()
    };
    let peer = |(index, peer): (usize, &Peer)| Record {
        role: if index < case.peers.len() { Role::Peer } else { Role::Control },
        implementation: peer.name.to_owned(),
        version: peer.version.clone(),
        held_to: peer.held_to.to_owned(),
        ..common.clone()
    };
    let records = [ours].into_iter().chain(case.peers.iter().chain([control]).enumerate().map(peer));
    Ok(records.zip(samples.ns).map(|(record, samples_ns)| Record { samples_ns, ..record }).collect())
}

/// The version of a package that the laboratory depends on, by the workspace's lock file: the one that this build has.
pub(crate) fn locked_version(package: &str) -> &'static str {
    version_in(include_str!("../../../../Cargo.lock"), "bulla-lab", package)
}

/// The version of `package` that `dependent` depends on, by a lock file. Where there are several, the list of dependencies says which.
pub fn version_in<'a>(lock: &'a str, dependent: &str, package: &str) -> &'a str {
    let entry = |name: &str| {
        lock.split("[[package]]").find(|entry| entry.contains(&format!("\nname = \"{name}\"\n")))
    };
    let among = |dependent: &'a str| dependent.split_once(&format!("\n \"{package} "))?.1.split_once('"');
    let only = |package: &'a str| package.split_once("\nversion = \"")?.1.split_once('"');
    let version = entry(dependent).and_then(among).or_else(|| entry(package).and_then(only));
    version.map_or("of unknown version", |(version, _)| version)
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{HashMap, HashSet},
        time::Duration,
    };

    use bulla_record::compare::comparisons;

    use super::*;

    #[test]
    fn the_suites_are_those_that_are_listed() {
        assert_eq!(all().iter().map(|suite| suite.name).collect::<Vec<_>>(), LABORATORY);
        assert!(find("no-such-suite").is_err());
    }

    #[test]
    fn case_names_are_unique_and_each_case_has_a_peer() {
        for suite in all() {
            let cases = (suite.cases)();
            let names: HashSet<_> = cases.iter().map(|case| &case.id).collect();
            assert_eq!(names.len(), cases.len(), "{}", suite.name);
            assert!(cases.iter().all(|case| !case.peers.is_empty()), "{}", suite.name);
        }
    }

    #[test]
    fn contenders_agree_in_every_case() {
        let plan = Plan { min_rounds: 1, max_rounds: 1, sample: Default::default(), ..Plan::default() };
        for suite in all() {
            let mut records = Vec::new();
            suite
                .run(1, &Filter::default(), &plan, |record| {
                    records.push(Record::parse(&record.line()?)?);
                    Ok(())
                })
                .unwrap();
            let peers: usize = (suite.cases)().iter().map(|case| case.peers.len()).sum();
            assert_eq!(comparisons(&records).unwrap().len(), peers, "{}", suite.name);
        }
    }

    #[test]
    fn filters_restrict() {
        let suite = find("oneshot").unwrap();
        let taken = |prefix: &str, sizes: &[usize]| -> Vec<String> {
            let filter = Filter { prefixes: vec![prefix.to_owned()], sizes: sizes.to_vec(), slowed: None };
            let cases = (suite.cases)().into_iter().filter(|case| filter.takes(suite.name, case));
            cases.map(|case| case.id).collect()
        };
        assert_eq!(taken("hash/", &[64, 1024]), ["hash/64", "hash/1024"]);
        assert_eq!(taken("oneshot/keyed/", &[64]), ["keyed/64"]);
        assert_eq!(taken("=hash/64", &[]), ["hash/64"]);
        assert_eq!(taken("oneshot", &[]).len(), (suite.cases)().len());
    }

    /// By a factor of a hundred, of the quickest of five rounds: nothing that the machine does looks like that.
    #[test]
    fn a_case_is_slowed_down_by_name() {
        let slowed = Some((10_000, vec!["hash/65536".to_owned()]));
        let prefixes = vec!["=hash/65536".to_owned(), "=hash/16384".to_owned()];
        let filter = Filter { prefixes, slowed, ..Filter::default() };
        let plan = Plan { min_rounds: 5, max_rounds: 5, patience: Duration::ZERO, ..Plan::default() };
        let mut quickest = HashMap::new();
        let emit = |record: &Record| {
            let ns = record.samples_ns.iter().copied().fold(f64::INFINITY, f64::min);
            quickest.insert((record.bytes, record.role == Role::Ours), ns);
            Ok(())
        };
        find("oneshot").unwrap().run(1, &filter, &plan, emit).unwrap();
        let slowed = |bytes| quickest[&(bytes, true)] > 10.0 * quickest[&(bytes, false)];
        assert!(slowed(65536) && !slowed(16384), "{quickest:?}");
    }

    #[test]
    fn a_filter_that_takes_nothing_is_an_error() {
        let filter = Filter { prefixes: vec!["no such".into()], sizes: vec![], slowed: None };
        assert!(find("oneshot").unwrap().run(1, &filter, &Plan::default(), |_| Ok(())).is_err());
    }

    #[test]
    fn the_peer_is_named_with_its_version() {
        assert!(locked_version("blake3").starts_with("1."));
        assert_eq!(locked_version("no-such-package"), "of unknown version");
        let lock = "[[package]]\nname = \"peer\"\nversion = \"1.0.0\"\n[[package]]\nname = \"peer\"\nversion = \"2.0.0\"\n\
            [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\ndependencies = [\n \"peer 2.0.0\",\n]\n";
        assert_eq!(version_in(lock, "ours", "peer"), "2.0.0");
        assert_eq!(version_in(lock, "another", "peer"), "1.0.0");
    }
}
