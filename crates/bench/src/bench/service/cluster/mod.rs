//! `cargo xtask bench service-cluster`: what nodes over one etcd do together, what a change costs
//! each of them, and a model of many nodes.
//!
//! Everything runs on this machine: the nodes, the members of etcd and the load. So the figures to
//! compare are seconds of CPU. The times hold for as many nodes as the machine has processors to
//! spare.

mod etcd;
mod followers;
pub(crate) mod keys;
mod model;
mod nodes;
mod rotations;
mod signing;
mod spread;
mod table;

use std::{fs, process::ExitCode, time::Duration};

use anyhow::Result;
use bulla_devtools::{
    Context,
    install::{self, DebianTool},
};

use self::{
    etcd::{Etcd, sync_times},
    nodes::{BOTH, KEYS, Nodes},
    spread::within,
    table::Table,
};
use super::{prepare, served::Built};

/// The name on the command line.
pub(crate) const NAME: &str = "service-cluster";

const TOOLS: [DebianTool; 2] = [
    DebianTool { program: "etcd", package: "etcd-server" },
    DebianTool { program: "etcdctl", package: "etcd-client" },
];

/// How many changes are watched until the other two of three nodes use them, and how often one is
/// made.
const WATCHED: usize = 1000;
const INTERVAL: Duration = Duration::from_millis(15);

/// The tables of all launches.
struct Figures {
    disk: Table,
    signing: Table,
    rotations: Table,
    spread: Table,
    followers: Table,
}

/// Builds the command, and measures all of it as often as asked.
///
/// # Errors
/// etcd or a node does not start, or answers anything but success.
pub(crate) fn run(context: &Context, launches: u32) -> Result<ExitCode> {
    let built = tools(context)?;
    let mut figures = Figures {
        disk: Table::new("The disk: 2 KiB written and synced.", "", &[("p50, ms", 2), ("p99, ms", 2)]),
        signing: Table::new("Signatures.", "case", signing::COLUMNS),
        rotations: Table::new("Rotations, and what each costs.", "etcd", rotations::COLUMNS),
        spread: Table::new(
            "From the answer to a rotation until the other two of three nodes sign with the new version.",
            "",
            &[("p50, ms", 2), ("p99, ms", 2), ("longest, ms", 1), ("a rotation, p50, ms", 2), ("p99, ms", 2)],
        ),
        followers: Table::new(
            "Nodes that do nothing, and nodes that follow 25 changes a second.",
            "nodes",
            followers::COLUMNS,
        ),
    };
    for launch in 1..=launches {
        eprintln!("xtask: launch {launch} of {launches}");
        launch_once(&built, &mut figures)?;
    }
    let Figures { disk, signing, rotations, spread, followers } = &figures;
    print!("{disk}{signing}{rotations}{spread}{followers}");
    print!("{}", model::print(signing, rotations, followers).unwrap_or_default());
    Ok(ExitCode::SUCCESS)
}

/// The command with etcd, and the programs that it is measured with.
fn tools(context: &Context) -> Result<Built> {
    prepare()?;
    TOOLS.iter().try_for_each(install::debian)?;
    install::protobuf()?;
    Built::with_etcd(context)
}

fn launch_once(built: &Built, figures: &mut Figures) -> Result<()> {
    let folder = built.folder.join(NAME);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let (median, longest) = sync_times(&folder)?;
    figures.disk.add("", &[median, longest]);

    let etcd = Etcd::start(&folder.join("etcd"), 1)?;
    let mut nodes = Nodes::create(built, &etcd, &folder.join("nodes"), signing::processors(0))?;
    nodes.add(signing::processors(1))?;
    nodes.add(signing::processors(2))?;
    nodes.make_keys(KEYS)?;
    signing::measure(&nodes, &mut figures.signing)?;
    drop(nodes);

    // From here on, the system decides who computes where.
    let mut nodes = Nodes::open(built, &etcd, &folder.join("nodes"), BOTH)?;
    nodes.add(BOTH)?;
    nodes.add(BOTH)?;
    rotations::measure(&nodes, "one member", &mut figures.rotations)?;
    let times = spread::measure(&nodes, &[1, 2], WATCHED, INTERVAL)?;
    let (used, rotation) = (&times.use_elsewhere, &times.rotation);
    figures.spread.add(
        "",
        &[within(used, 50), within(used, 99), within(used, 100), within(rotation, 50), within(rotation, 99)],
    );
    followers::measure(&mut nodes, &mut figures.followers)?;
    drop(nodes);
    drop(etcd);

    let etcd = Etcd::start(&folder.join("etcd3"), 3)?;
    let mut nodes = Nodes::create(built, &etcd, &folder.join("nodes3"), BOTH)?;
    nodes.add(BOTH)?;
    nodes.add(BOTH)?;
    nodes.make_keys(KEYS)?;
    rotations::measure(&nodes, "three members", &mut figures.rotations)
}
