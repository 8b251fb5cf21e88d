//! Signatures a second, and for each second that the nodes compute.

use std::{panic::resume_unwind, thread};

use anyhow::Result;

use super::{
    super::{
        cases::find,
        load::{Load, to_sign_by_one_key},
        served::{LOAD, SERVICE},
    },
    nodes::{BOTH, Nodes},
    table::{Column, Table},
};

const CASES: [&str; 3] = ["single-sign", "sign-64", "sign-256"];
const SECONDS: u32 = 3;
/// How many nodes sign at the same time. Only one has a processor of its own.
const MAX_NODES: usize = 3;

pub(super) const COLUMNS: &[Column] = &[("signatures/s", 0), ("for each second of the nodes' CPU", 0)];

/// Loads one, two and three nodes, which run on the first, the second and both processors.
pub(super) fn measure(nodes: &Nodes<'_>, table: &mut Table) -> Result<()> {
    for case in CASES {
        for count in 1..=MAX_NODES {
            let (rate, for_a_second) = load(nodes, case, count)?;
            let row = format!("{case}, {count} node{}", if count == 1 { "" } else { "s" });
            table.add(row, &[rate, for_a_second]);
        }
    }
    Ok(())
}

/// The processors of a node.
pub(super) fn processors(node: usize) -> &'static str {
    [SERVICE, LOAD].get(node).copied().unwrap_or(BOTH)
}

/// The signatures a second of this many nodes, and those for each second that they compute.
pub(super) fn load(nodes: &Nodes<'_>, case: &str, count: usize) -> Result<(f64, f64)> {
    let (case, _) = find(case)?;
    let (path, body) = to_sign_by_one_key(case)?;
    let from = if count == 1 { LOAD } else { BOTH };
    let one = |node: usize| -> Result<f64> {
        let node = &nodes.all[node];
        let load = Load {
            url: format!("http://{}{path}", node.address),
            body: body.to_string(),
            connections: case.connections,
            token: &nodes.token,
            folder: &node.folder,
        };
        Ok(load.full_from(from, SECONDS)? * case.items as f64)
    };
    let (rate, used) = nodes.measure(|| {
        thread::scope(|scope| {
            let loads: Vec<_> = (0..count).map(|node| scope.spawn(move || one(node))).collect();
            let rates =
                loads.into_iter().map(|load| load.join().unwrap_or_else(|panic| resume_unwind(panic)));
            rates.sum::<Result<f64>>()
        })
    })?;
    let computed: f64 = used.nodes.iter().take(count).sum();
    Ok((rate, rate * f64::from(SECONDS) / computed))
}
