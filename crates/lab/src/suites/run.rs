//! Measures the cases of a suite.

use anyhow::{Context as _, Result, ensure};
use bulla_record::{
    lane::{self, Machine},
    record::{Record, Role, SCHEMA},
};

use super::suite::{Active, Case, Peer, Suite};
use crate::{
    clock,
    measure::{Data, Plan, Slowed, measure},
    quiet::Quiet,
};

/// The cases of a suite to run. An empty list means no restriction.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Beginnings of the names of cases, with or without the suite before them: `oneshot/hash/64`,
    /// `hash/64`. With an equals sign, the whole name: `=hash/64`.
    pub prefixes: Vec<String>,
    /// Values of [`Case::bytes`].
    pub sizes: Vec<usize>,
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
    }

    /// By how many percent to slow down ours in a case.
    fn slowed(&self, case: &Case) -> Option<u32> {
        self.slowed.as_ref().filter(|(_, cases)| cases.contains(&case.id)).map(|(percent, _)| *percent)
    }
}

impl Suite {
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
        time: bulla_record::record::utc_now(),
        case: case.id.clone(),
        bytes: case.bytes as u64,
        ghz: f64::midpoint(before, clock::gigahertz()),
        iterations: samples.iterations,
        load: lane::load_average(),
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
