//! The cost of nodes that do nothing, and of nodes that follow another node's changes.

use std::{thread, time::Duration};

use anyhow::Result;

use super::{
    nodes::{BOTH, Nodes},
    spread::{self, within},
    table::{Column, Table},
};

/// How many nodes run, in turn.
const COUNTS: [usize; 5] = [1, 2, 4, 8, 16];
/// A multiple of the interval at which a node says that it is there.
const TIME: Duration = Duration::from_secs(4);
const CHANGES: usize = 100;
const INTERVAL: Duration = Duration::from_millis(40);

pub(super) const COLUMNS: &[Column] = &[
    ("idle: reads/s of etcd", 1),
    ("idle: CPU of etcd, ms/s", 2),
    ("idle: CPU of a node, ms/s", 2),
    ("a change: CPU of etcd, ms", 2),
    ("a change: reads of etcd", 1),
    ("a change: CPU of a node that follows, ms", 2),
    ("use elsewhere, p50, ms", 2),
    ("p99, ms", 2),
    ("memory of a node, MB", 1),
];

/// The columns from which the model takes its points.
pub(super) const IDLE: usize = 1;
pub(super) const CHANGE: usize = 3;
pub(super) const FOLLOWING: usize = 5;
pub(super) const MEDIAN: usize = 6;

/// Starts ever more nodes. They are idle for a time, and then the first one makes changes, which
/// the last one is watched to use.
pub(super) fn measure(nodes: &mut Nodes<'_>, table: &mut Table) -> Result<()> {
    for count in COUNTS {
        nodes.keep(count);
        while nodes.all.len() < count {
            nodes.add(BOTH)?;
        }
        let ((), idle) = nodes.measure(|| {
            thread::sleep(TIME);
            Ok(())
        })?;
        let watched: &[usize] = if count > 1 { &[count - 1] } else { &[] };
        let (times, busy) = nodes.measure(|| spread::measure(nodes, watched, CHANGES, INTERVAL))?;
        // The first node makes the changes, and the last one signs.
        let followers = count.saturating_sub(2);
        let following = |used: &[f64]| used.iter().skip(1).take(followers).sum::<f64>() / followers as f64;
        let for_change = |busy_total: f64, idle_rate: f64| (busy_total - idle_rate) / CHANGES as f64;
        let rate = |total: f64| total / idle.seconds * busy.seconds;
        table.add(
            count,
            &[
                idle.etcd.reads / idle.seconds,
                idle.etcd.computed / idle.seconds * 1000.0,
                idle.nodes.iter().sum::<f64>() / count as f64 / idle.seconds * 1000.0,
                for_change(busy.etcd.computed, rate(idle.etcd.computed)) * 1000.0,
                for_change(busy.etcd.reads, rate(idle.etcd.reads)),
                for_change(following(&busy.nodes), rate(following(&idle.nodes))) * 1000.0,
                within(&times.use_elsewhere, 50),
                within(&times.use_elsewhere, 99),
                nodes.all[count - 1].memory()?,
            ],
        );
    }
    Ok(())
}
