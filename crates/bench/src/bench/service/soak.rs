//! `cargo xtask bench service-soak`: what ten minutes at full load, ten thousand idle connections
//! and a hundred thousand keys cost.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::Context;
use serde_json::json;

use super::{
    cases::{Way, find},
    load::Load,
    prepare,
    served::{Built, Served},
};

/// The name on the command line.
pub(crate) const NAME: &str = "service-soak";

const LOADS: [&str; 4] = ["single-sign", "sign-256", "single-verify", "verify-256-of-64-keys"];
const TIME: Duration = Duration::from_secs(600);
const IDLE: usize = 10_000;
const KEYS: usize = 100_000;
/// How many callers make keys at the same time.
const MAKERS: usize = 8;

/// Builds the command, and prints the figures as they come.
///
/// # Errors
/// The service does not start, or answers anything but success; this process may not have enough
/// files open.
pub(crate) fn run(context: &Context) -> Result<ExitCode> {
    prepare()?;
    let built = Built::new(context)?;
    let mut served = Served::start(&built, Way::Plain)?;
    under_load(&served)?;
    idle(&served)?;
    many_keys(&built, &mut served)?;
    Ok(ExitCode::SUCCESS)
}

/// Loads in turns, and the memory after each round.
fn under_load(served: &Served) -> Result<()> {
    println!("| seconds at full load | million items answered | memory, MB |\n|--:|--:|--:|");
    let loads = LOADS.map(|name| {
        let (case, way) = find(name)?;
        Ok((Load::of(case, way, served)?, case.items))
    });
    let loads = loads.into_iter().collect::<Result<Vec<_>>>()?;
    let (start, mut answered) = (Instant::now(), 0.0);
    while start.elapsed() < TIME {
        for (load, items) in &loads {
            let begun = Instant::now();
            answered += load.full()? * *items as f64 * begun.elapsed().as_secs_f64();
        }
        let (seconds, millions) = (start.elapsed().as_secs(), answered / 1e6);
        println!("| {seconds} | {millions:.0} | {:.1} |", served.memory()?);
    }
    Ok(())
}

fn idle(served: &Served) -> Result<()> {
    let before = served.memory()?;
    let connect = |_| TcpStream::connect(&served.address);
    let connections = (0..IDLE).map(connect).collect::<io::Result<Vec<_>>>();
    let connections = connections.context("cannot open 10,000 connections: raise `ulimit -n`")?;
    for mut stream in &connections {
        stream.write_all(b"GET /api/v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
        let read = stream.read(&mut [0; 1000])?;
        ensure!(read > 0, "the service closed an idle connection");
    }
    println!(
        "\nmemory before {IDLE} idle connections: {before:.1} MB; with them: {:.1} MB",
        served.memory()?
    );
    Ok(())
}

fn many_keys(built: &Built, served: &mut Served) -> Result<()> {
    let made = AtomicUsize::new(0);
    thread::scope(|scope| {
        let make = || -> Result<()> {
            while made.fetch_add(1, Ordering::Relaxed) < KEYS {
                served.post("/api/v1/keys", &json!({}))?;
            }
            Ok(())
        };
        let makers: Vec<_> = (0..MAKERS).map(|_| scope.spawn(make)).collect();
        makers.into_iter().try_for_each(|maker| maker.join().ok().context("a caller panicked")?)
    })?;
    let start = served.restart(built)?;
    println!(
        "start to first answer with {KEYS} keys: {:.2} s, then {:.1} MB",
        start.as_secs_f64(),
        served.memory()?
    );
    Ok(())
}
