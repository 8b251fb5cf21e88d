//! `cargo xtask bench service`: requests a second of `bulla serve`, held to one processor, with the
//! load from another.
//!
//! It compares no peers. The load is made by `wrk`, and for the latency at half load by `h2load`,
//! which keeps to a rate.

mod cases;
pub(crate) mod cluster;
mod load;
mod served;
pub(crate) mod soak;
pub(crate) mod vault;

use std::{
    collections::BTreeMap, panic::resume_unwind, path::PathBuf, process::ExitCode, thread, time::Duration,
};

use anyhow::{Result, ensure};
use bulla_devtools::{
    Context,
    install::{self, DebianTool},
};
use bulla_record::stats::median;

use self::{
    cases::{CASES, Way, find},
    load::Load,
    served::{Built, Served},
};

/// The name on the command line.
pub(crate) const NAME: &str = "service";

/// The programs that make the load, and the certificate.
const TOOLS: &[DebianTool] = &[
    DebianTool { program: "wrk", package: "wrk" },
    DebianTool { program: "h2load", package: "nghttp2-client" },
    DebianTool { program: "openssl", package: "openssl" },
];

/// The figures of one case in all launches.
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
    prepare()?;
    let built = Built::new(context)?;
    let mut figures: BTreeMap<(usize, Way), Figures> = BTreeMap::new();
    let mut memory = Vec::new();
    for launch in 1..=launches {
        eprintln!("xtask: launch {launch} of {launches}");
        for way in Way::ALL {
            let served = Served::start(&built, way)?;
            for (place, case) in CASES.iter().enumerate().filter(|(_, case)| case.ways.contains(&way)) {
                let load = Load::of(case, way, &served)?;
                let measured = load.full()?;
                let figures = figures.entry((place, way)).or_default();
                figures.rate.push(measured * case.items as f64);
                if case.has_latency && way == Way::Plain {
                    figures.p99.push(load.p99_at(measured / 2.0)?);
                }
            }
            if way == Way::Plain {
                memory.push(served.memory()?);
            }
        }
    }
    print!("{}", table(&figures));
    println!("\nmemory after the load: {:.0} MB", median(memory));
    Ok(ExitCode::SUCCESS)
}

/// Serves one case at full load, `service/CASE` or `service/CASE/WAY`, and calls `observe` with the
/// process meanwhile.
///
/// # Errors
/// There is no such case; those of [`run`] and `observe`.
pub(crate) fn under_load(
    context: &Context,
    program: PathBuf,
    name: &str,
    observe: impl FnOnce(u32) -> Result<()> + Send,
) -> Result<()> {
    let (case, way) = find(name)?;
    prepare()?;
    let served = Served::start(&Built::of(context, program), way)?;
    let load = Load::of(case, way, &served)?;
    let process = served.process();
    thread::scope(|scope| {
        let observing = scope.spawn(move || {
            thread::sleep(Duration::from_millis(500));
            observe(process)
        });
        load.full()?;
        observing.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// # Errors
/// There is no such case.
pub(crate) fn check(name: &str) -> Result<()> {
    find(name).map(drop)
}

/// Installs what makes the load.
fn prepare() -> Result<()> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    ensure!(processors >= 2, "the service and the load need a processor each");
    TOOLS.iter().try_for_each(install::debian)
}

fn table(figures: &BTreeMap<(usize, Way), Figures>) -> String {
    let mut text = "| case | how | items/s | p99 at half load |\n|---|---|--:|--:|\n".to_owned();
    for ((place, way), Figures { rate, p99 }) in figures {
        let (name, how) = (CASES[*place].name, way.name());
        let rate = median(rate.iter().copied());
        let p99 =
            if p99.is_empty() { String::new() } else { format!("{:.2} ms", median(p99.iter().copied())) };
        text += &format!("| {name} | {how} | {rate:.0} | {p99} |\n");
    }
    text
}
