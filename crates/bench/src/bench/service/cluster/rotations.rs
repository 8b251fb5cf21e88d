//! Rotations as fast as nodes make them, and what each costs the nodes and etcd.

use std::{
    panic::resume_unwind,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::{
    super::cases::label,
    nodes::{KEYS, Nodes},
    table::{Column, Table},
};

const TIME: Duration = Duration::from_secs(4);

pub(super) const COLUMNS: &[Column] = &[
    ("rotations/s", 0),
    ("refused as busy", 0),
    ("CPU of the nodes that rotate, ms", 2),
    ("CPU of another node, ms", 2),
    ("CPU of etcd, ms", 2),
    ("reads", 2),
    ("transactions", 2),
    ("syncs", 2),
    ("a sync, ms", 2),
    ("bytes to the disk", 0),
    ("growth of the database, bytes", 0),
];

/// Rotates through the first node and through two, by one caller and by many. The last node only
/// follows.
pub(super) fn measure(nodes: &Nodes<'_>, members: &str, table: &mut Table) -> Result<()> {
    for (makers, callers) in [(1, 1), (1, 8), (2, 8)] {
        let rotated = AtomicU64::new(0);
        let (busy, used) = nodes.measure(|| rotate(nodes, makers, callers, &rotated))?;
        let rotated = rotated.load(Ordering::Relaxed) as f64;
        let (each, etcd) = (|number: f64| number / rotated, used.etcd);
        let making: f64 = used.nodes[..makers].iter().sum();
        let following = used.nodes.last().copied().unwrap_or_default();
        table.add(
            format!("{members}, {makers} node{}, {callers} caller{}", plural(makers), plural(callers)),
            &[
                rotated / used.seconds,
                busy as f64,
                each(making) * 1000.0,
                each(following) * 1000.0,
                each(etcd.computed) * 1000.0,
                each(etcd.reads),
                each(etcd.writes),
                each(etcd.syncs),
                etcd.syncing / etcd.syncs * 1000.0,
                each(etcd.written),
                each(etcd.database),
            ],
        );
    }
    Ok(())
}

fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// Returns how many requests were refused as busy.
fn rotate(nodes: &Nodes<'_>, makers: usize, callers: usize, rotated: &AtomicU64) -> Result<u64> {
    let (next, end) = (AtomicUsize::new(0), Instant::now() + TIME);
    let one = |caller: usize| -> Result<u64> {
        let (mut busy, mut node) = (0, nodes.caller(caller % makers)?);
        while Instant::now() < end {
            // All keys in turn, so that no record gets long.
            let key = label(next.fetch_add(1, Ordering::Relaxed) % KEYS);
            let (status, answer) = node.ask("POST", &format!("/api/v1/keys/{key}/rotate"), "{}")?;
            if status == 200 {
                rotated.fetch_add(1, Ordering::Relaxed);
            } else {
                ensure!(answer.contains("\"busy\""), "{status} {answer}");
                busy += 1;
            }
        }
        Ok(busy)
    };
    thread::scope(|scope| {
        let callers: Vec<_> = (0..callers).map(|caller| scope.spawn(move || one(caller))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap_or_else(|panic| resume_unwind(panic))).sum()
    })
}
