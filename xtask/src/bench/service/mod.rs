//! `cargo xtask bench service`: requests a second of `bulla serve`, held to one processor, with the load from another.
//!
//! It compares no peers. The load is made by `wrk`, and for the latency at half load by `h2load`, which keeps to a rate.

mod cases;
mod load;
mod served;

use std::{collections::BTreeMap, process::ExitCode};

use anyhow::{Result, ensure};
use bulla_record::stats::median;

use self::{
    cases::{CASES, Case},
    load::Load,
    served::{Audit, Built, Served},
};
use crate::{
    context::Context,
    install::{self, DebianTool},
};

/// The name on the command line.
pub(crate) const NAME: &str = "service";

const WRK: DebianTool = DebianTool { program: "wrk", package: "wrk" };
const H2LOAD: DebianTool = DebianTool { program: "h2load", package: "nghttp2-client" };

/// What one case gave in all launches.
#[derive(Default)]
struct Figures {
    /// Items, signatures or verdicts, a second.
    rate: Vec<f64>,
    /// Milliseconds within which 99 of 100 requests are answered.
    p99: Vec<f64>,
}

/// Builds the command, and measures all cases as often as asked.
///
/// # Errors
/// The service does not start, or answers anything but success.
pub(crate) fn run(context: &Context, launches: u32) -> Result<ExitCode> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    ensure!(processors >= 2, "the service and the load need a processor each");
    install::debian(&WRK)?;
    install::debian(&H2LOAD)?;
    let built = Built::new(context)?;
    let mut figures: BTreeMap<(usize, &str), Figures> = BTreeMap::new();
    let mut memory = Vec::new();
    for launch in 1..=launches {
        eprintln!("xtask: launch {launch} of {launches}");
        for audit in [Audit::Off, Audit::AtCheckpoints, Audit::Grouped] {
            let served = Served::start(&built, audit)?;
            for (place, case) in
                CASES.iter().enumerate().filter(|(_, case)| audit == Audit::Off || case.is_audited)
            {
                let load = Load::of(case, &served)?;
                let measured = load.full()?;
                let figures = figures.entry((place, audit.name())).or_default();
                figures.rate.push(measured * case.items as f64);
                if case.has_latency && audit == Audit::Off {
                    figures.p99.push(load.p99_at(measured / 2.0)?);
                }
            }
            if audit == Audit::Off {
                memory.push(served.memory()?);
            }
        }
    }
    print!("{}", table(&figures));
    println!("\nmemory after the load: {:.0} MB", median(memory));
    Ok(ExitCode::SUCCESS)
}

fn table(figures: &BTreeMap<(usize, &str), Figures>) -> String {
    let mut text = "| case | audit log | items/s | p99 at half load |\n|---|---|--:|--:|\n".to_owned();
    for ((place, audit), Figures { rate, p99 }) in figures {
        let Case { name, .. } = CASES[*place];
        let rate = median(rate.iter().copied());
        let p99 =
            if p99.is_empty() { String::new() } else { format!("{:.2} ms", median(p99.iter().copied())) };
        text += &format!("| {name} | {audit} | {rate:.0} | {p99} |\n");
    }
    text
}
