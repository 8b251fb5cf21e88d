//! The types of suites: cases, each with ours and its peers.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use bulla_record::{
    lane::{self, Machine},
    record::{Record, Role, SCHEMA},
};

use crate::{
    core_probe::{self, Quiet},
    measure::{Data, Plan, Slowed, Subject, measure},
};

/// Other cases with threads than those of `thread-scaling` use this many: what the smallest machine
/// of ours has.
pub const THREADS: usize = 2;

/// The suite whose cases differ in the number of threads.
pub const THREAD_SCALING: &str = "thread-scaling";

/// A set of cases about one subject.
pub struct Suite {
    /// The name on the command line.
    pub name: &'static str,
    /// All cases, in the order of the table.
    pub cases: fn() -> Vec<Case>,
    /// Our kernel in use; an error if the environment forces one that this machine lacks.
    pub active_kernel: fn() -> Result<Active>,
    /// Our kernels that this machine can run.
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

/// Makes a new implementation of a case for a launch.
pub type Make = Box<dyn Fn() -> Box<dyn Subject>>;

/// One case of a suite: ours and one or more peers.
pub struct Case {
    /// The name within the suite, such as `hash/64`: a group, and what varies within it.
    pub id: String,
    /// The number of bytes that one operation reads or, for extendable output, writes.
    pub bytes: usize,
    /// The length of the random input.
    pub input: usize,
    /// The length of each input, for cases with many inputs.
    pub part: Option<usize>,
    /// The threads that the operation may use.
    pub threads: usize,
    /// Ours.
    pub ours: Make,
    /// The peers, at least one. The first one also runs as the control.
    pub peers: Vec<Peer>,
}

/// The numbers of threads that this machine can run side by side: the powers of two, and all.
pub(super) fn thread_counts() -> Vec<usize> {
    counts_up_to(lane::cores() as usize)
}

fn counts_up_to(cores: usize) -> Vec<usize> {
    let all = std::iter::once(cores).filter(|cores| !cores.is_power_of_two());
    (0..usize::BITS).map(|power| 1 << power).take_while(|count| *count <= cores).chain(all).collect()
}

/// An implementation with which ours is compared.
pub struct Peer {
    /// Its name; for a crate, the package's name.
    pub name: &'static str,
    /// Its version.
    pub version: String,
    /// The instruction set to which it was restricted, such as `avx2`, or empty.
    pub isa_limit: &'static str,
    /// Makes it.
    pub make: Make,
}

impl Peer {
    /// A crate of the lock file, which may use everything that the machine has.
    pub fn of_package(name: &'static str, make: impl Fn() -> Box<dyn Subject> + 'static) -> Self {
        Self { name, version: locked_version(name).to_owned(), isa_limit: "", make: Box::new(make) }
    }
}

/// The version of a package that the laboratory depends on, from the workspace's lock file: the
/// version in this build.
pub(crate) fn locked_version(package: &str) -> &'static str {
    version_in(include_str!("../../../../Cargo.lock"), "bulla-lab", package)
}

/// The version of `package` that `dependent` depends on, from a lock file. If there are several
/// versions, the list of dependencies decides.
pub fn version_in<'a>(lock: &'a str, dependent: &str, package: &str) -> &'a str {
    let entry = |name: &str| {
        lock.split("[[package]]").find(|entry| entry.contains(&format!("\nname = \"{name}\"\n")))
    };
    let among = |dependent: &'a str| dependent.split_once(&format!("\n \"{package} "))?.1.split_once('"');
    let only = |package: &'a str| package.split_once("\nversion = \"")?.1.split_once('"');
    let version = entry(dependent).and_then(among).or_else(|| entry(package).and_then(only));
    version.map_or("of unknown version", |(version, _)| version)
}

/// The cases of a suite to run. An empty list means no restriction.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Beginnings of the names of cases, with or without the suite before them: `oneshot/hash/64`,
    /// `hash/64`. With an equals sign, the whole name: `=hash/64`.
    pub prefixes: Vec<String>,
    /// Values of [`Case::bytes`].
    pub sizes: Vec<usize>,
    /// The number of threads; none means any.
    pub threads: Option<usize>,
    /// The cases in which ours is made slower on purpose, and by how many percent.
    pub slowed: Option<(u32, Vec<String>)>,
}

impl Filter {
    pub(super) fn takes(&self, suite: &str, case: &Case) -> bool {
        let full = format!("{suite}/{}", case.id);
        let begins = |prefix: &String| match prefix.strip_prefix('=') {
            Some(name) => case.id == name || full == name,
            None => case.id.starts_with(prefix.as_str()) || full.starts_with(prefix.as_str()),
        };
        (self.prefixes.is_empty() || self.prefixes.iter().any(begins))
            && (self.sizes.is_empty() || self.sizes.contains(&case.bytes))
            && self.threads.is_none_or(|threads| threads == case.threads)
    }

    /// By how many percent to slow down ours in a case.
    fn slowed(&self, case: &Case) -> Option<u32> {
        self.slowed.as_ref().filter(|(_, cases)| cases.contains(&case.id)).map(|(percent, _)| *percent)
    }
}

impl Suite {
    /// The numbers of threads of the cases that `filter` selects, each once.
    pub fn thread_counts(&self, filter: &Filter) -> BTreeSet<usize> {
        let cases = (self.cases)().into_iter().filter(|case| filter.takes(self.name, case));
        cases.map(|case| case.threads).collect()
    }

    /// Measures the cases that `filter` selects, and passes each record to `emit` immediately.
    ///
    /// It leaves the fields of the run, the lane, the toolchain and the commit empty: `cargo xtask
    /// bench` fills them in.
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
        let mut quiet = Quiet::new(lane::of(&Machine::this())?.additions);
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

    /// The common fields of a launch's records.
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
            isa_limit: String::new(),
            lane: String::new(),
            cpu: lane::cpu_name(),
            features: lane::cpu_features(),
            ghz: 0.0,
            toolchain: String::new(),
            flags: String::new(),
            commit: String::new(),
            dirty: false,
            launch,
            iterations: 0,
            samples_ns: Vec::new(),
            load: 0.0,
            threads: 0,
            cores: lane::cores(),
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
    let before = core_probe::gigahertz();
    let samples = measure(&mut contenders, &data, plan, random, quiet)?;
    let common = Record {
        time: bulla_record::record::utc_now(),
        case: case.id.clone(),
        bytes: case.bytes as u64,
        ghz: f64::midpoint(before, core_probe::gigahertz()),
        iterations: samples.iterations,
        load: lane::load_average(),
        threads: u32::try_from(case.threads)?,
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
        isa_limit: peer.isa_limit.to_owned(),
        ..common.clone()
    };
    let records = [ours].into_iter().chain(case.peers.iter().chain([control]).enumerate().map(peer));
    Ok(records.zip(samples.ns).map(|(record, samples_ns)| Record { samples_ns, ..record }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_doubled_up_to_the_number_of_processors() {
        assert_eq!(counts_up_to(1), [1]);
        assert_eq!(counts_up_to(16), [1, 2, 4, 8, 16]);
        assert_eq!(counts_up_to(12), [1, 2, 4, 8, 12]);
    }
}
