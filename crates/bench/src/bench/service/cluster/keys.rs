//! `cargo xtask bench service-cluster-keys`: a keystore with a hundred thousand keys in etcd, and
//! one with a million.
//!
//! An example of the keystore's library makes them, by restoring a backup: one request after
//! another would take hours. They stay in the build folder for the next time, and the changes of
//! the last time are in them too.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Instant,
};

use anyhow::{Result, ensure};
use bulla_devtools::{Context, build_program};
use bulla_record::stats::median;
use serde_json::{Value, json};

use super::{
    super::{cases::label, served::Built},
    etcd::Etcd,
    nodes::{BOTH, KEY_FILE, Nodes, PREFIX},
    signing,
    table::Table,
    tools,
};

/// The name on the command line.
pub(crate) const NAME: &str = "service-cluster-keys";

const KEYS: [usize; 2] = [100_000, 1_000_000];
/// The largest database that etcd advises.
const MAX_BYTES: f64 = (8_u64 << 30) as f64;

/// Builds the programs, makes the keystores unless they are there, and measures them.
///
/// # Errors
/// etcd or a node does not start, or answers anything but success.
pub(crate) fn run(context: &Context) -> Result<ExitCode> {
    let built = tools(context)?;
    let mut table = Table::new(
        "Nodes over many keys.",
        "keys",
        &[
            ("a node starts within, s", 2),
            ("memory of the node, MB", 0),
            ("most memory while it starts, MB", 0),
            ("memory of etcd, MB", 0),
            ("database, MB", 0),
            ("bytes a key", 0),
            ("millions of keys in 8 GiB", 1),
            ("a rotation, p50, ms", 2),
            ("first signature of a key, p50, ms", 2),
            ("single signatures/s", 0),
        ],
    );
    for keys in KEYS {
        let folder = built.folder.join(format!("{NAME}-{keys}"));
        if !folder.join(COMPLETE_MARKER).exists() {
            make(context, &folder, keys)?;
        }
        measure(&built, &folder, keys, &mut table)?;
        // The next keystore takes minutes.
        print!("{table}");
    }
    Ok(ExitCode::SUCCESS)
}

/// A file that says that the keystore in a folder is complete.
const COMPLETE_MARKER: &str = "made";

fn make(context: &Context, folder: &Path, keys: usize) -> Result<()> {
    eprintln!("xtask: making {keys} keys, which takes minutes");
    let mut build = context.cargo();
    build.args(["build", "--profile", "dist", "-p", "bulla-kms", "--example", "many_in_etcd"]);
    let program = build_program(build.args(["--features", "etcd,soft-seal"]))?;
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(first(folder))?;
    let etcd = Etcd::start(&folder.join("etcd"), 1)?;
    let mut make = Command::new(program);
    make.args([&keys.to_string(), &etcd.endpoint(), PREFIX]).arg(first(folder).join(KEY_FILE));
    let status = make.status()?;
    ensure!(status.success(), "the keys were not made: {status}");
    // What wrote the keys is history: it is no part of what a keystore needs.
    etcd.forget_history()?;
    fs::write(folder.join(COMPLETE_MARKER), "")?;
    Ok(())
}

/// The folder of the first node.
fn first(folder: &Path) -> PathBuf {
    folder.join("nodes/node0")
}

fn measure(built: &Built, folder: &Path, keys: usize, table: &mut Table) -> Result<()> {
    let etcd = Etcd::start(&folder.join("etcd"), 1)?;
    let size = etcd.done()?.database;
    // The first node makes the token: the second one is measured.
    let mut nodes = Nodes::open(built, &etcd, &folder.join("nodes"), BOTH)?;
    let start = nodes.add(BOTH)?;
    let node = &nodes.all[1];
    let (memory, most) = (node.memory()?, node.most_memory()?);
    let mut caller = nodes.caller(1)?;
    let mut times = |path: &str, body: &Value| -> Result<f64> {
        let mut all = Vec::new();
        for key in 0..200 {
            let start = Instant::now();
            caller.post(&format!("/api/v1/keys/{}/{path}", label(key)), body)?;
            all.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(median(all))
    };
    let signature = times("sign", &json!({ "message": "" }))?;
    let rotation = times("rotate", &json!({}))?;
    let (rate, _) = signing::load(&nodes, "single-sign", 1)?;
    table.add(
        keys,
        &[
            start.as_secs_f64(),
            memory,
            most,
            etcd.memory()?,
            size / 1e6,
            size / keys as f64,
            MAX_BYTES / (size / keys as f64) / 1e6,
            rotation,
            signature,
            rate,
        ],
    );
    Ok(())
}
