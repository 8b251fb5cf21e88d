//! `cargo xtask flame SUITE/CASE`: shows where the time of one case goes, by `perf`, as an
//! interactive picture. With `service/CASE` it is the time of requests to the key management
//! service.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use bulla_devtools::{
    Context,
    install::{self, CargoTool},
    quiet,
};
use bulla_record::LABORATORY;

use crate::bench::{harness, service};

/// The arguments of `cargo xtask flame`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask flame oneshot/hash/1024\n  cargo xtask flame ed25519/strict/64 --out strict.svg\n  \
    cargo xtask flame service/single-sign\n  cargo xtask flame service/sign-256/audited\n\n\
    Needs Linux, perf, and permission to use it. The picture of a suite shows ours and its peers, because they take turns. \
    That of a request to the service shows what the service does, not the program that makes the load."
)]
pub(crate) struct Args {
    /// The laboratory's suite and the case, by their names in `cargo xtask report`
    #[arg(value_name = "SUITE/CASE")]
    case: String,
    /// The picture to write
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The tool that converts stacks to a picture.
const INFERNO: CargoTool = CargoTool { name: "inferno", version: "0.12.8" };

/// Samples per second: not a divisor of the frequency of anything that the harness does regularly.
const RATE: &str = "1999";

/// Measures the case under `perf` and draws it.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Some((suite, case)) = args.case.split_once('/') else {
        bail!("{}: give a suite and a case, for example oneshot/hash/1024", args.case);
    };
    if suite == service::NAME {
        service::check(case)?;
    } else {
        ensure!(
            LABORATORY.contains(&suite),
            "no suite {suite}; there are: {}, {}",
            LABORATORY.join(", "),
            service::NAME
        );
    }
    let context = Context::find()?;
    let folder = context.target.join("flame");
    fs::create_dir_all(&folder)?;
    if let Err(why) = may_perf(&folder) {
        eprintln!("xtask: no flame graph here: {why:#}");
        return Ok(ExitCode::FAILURE);
    }
    let data = folder.join("perf.data");
    let mut perf = record(&data);
    if suite == service::NAME {
        let program = harness::build_with_symbols(&context, "bulla")?;
        service::under_load(&context, program, case, |process| {
            quiet(perf.args(["--pid", &process.to_string(), "--", "sleep", "4"])).map(drop)
        })?;
    } else {
        let program = harness::build_with_symbols(&context, "bulla-lab")?;
        perf.arg("--").arg(program).args(["measure", suite, "--cases", &format!("={case}")]);
        quiet(&mut perf)?;
    }
    let picture =
        args.out.clone().unwrap_or_else(|| folder.join(format!("{}.svg", args.case.replace('/', "-"))));
    draw(&context, &data, &picture, &args.case)?;
    println!("{}", picture.display());
    Ok(ExitCode::SUCCESS)
}

/// `perf record` by the clock: virtual machines often have no counter of cycles.
fn record(data: &Path) -> Command {
    let mut perf = Command::new("perf");
    perf.args(["record", "--quiet", "-e", "cpu-clock:u", "-F", RATE, "--call-graph", "dwarf,16384", "-o"])
        .arg(data);
    perf
}

/// Checks, by trying, that `perf` exists and may observe our processes.
fn may_perf(folder: &Path) -> Result<()> {
    ensure!(install::on_path("perf"), "there is no perf: on Debian it is in the package linux-perf");
    let tried = quiet(record(&folder.join("probe.data")).args(["--", "true"]));
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    tried.map(drop).with_context(|| match level.trim().parse::<i32>() {
        Ok(level) if level > 1 => format!(
            "perf may not record: kernel.perf_event_paranoid is {level}; with `sudo sysctl kernel.perf_event_paranoid=1` it may"
        ),
        _ => "perf cannot record on this machine".to_owned(),
    })
}

/// Converts stacks to lines, and lines to a picture.
fn draw(context: &Context, data: &Path, picture: &Path, title: &str) -> Result<()> {
    let bin = install::cargo_tool(context, &INFERNO)?;
    let folder = bin.parent().context("a tool in no folder")?;
    let part = picture.with_extension("new");
    let mut script = Command::new("perf")
        .args(["script", "--no-inline", "-i"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start perf script")?;
    let stacks = script.stdout.take().context("perf script has no output")?;
    let mut collapse = Command::new(folder.join("inferno-collapse-perf"))
        .arg("--skip-after=main")
        .stdin(stacks)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start inferno-collapse-perf")?;
    let lines = collapse.stdout.take().context("inferno-collapse-perf has no output")?;
    let drawn = Command::new(folder.join("inferno-flamegraph"))
        .args(["--title", title, "--hash"])
        .stdin(lines)
        .stdout(File::create(&part).with_context(|| format!("cannot write {}", part.display()))?)
        .status()
        .context("cannot start inferno-flamegraph")?;
    let ended = script.wait()?.success() && collapse.wait()?.success() && drawn.success();
    if !ended {
        let _ = fs::remove_file(&part);
        bail!("no picture: perf script, inferno-collapse-perf or inferno-flamegraph failed");
    }
    fs::rename(&part, picture).with_context(|| format!("cannot write {}", picture.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_case_of_the_laboratory_is_refused() {
        for case in ["oneshot", "sha1/64", "go/sum/64", "", "service/hash", "service/sign-64/nowhere"] {
            assert!(run(&Args { case: case.to_owned(), out: None }).is_err(), "{case}");
        }
    }

    /// Either `perf` records, or one line says why it cannot.
    #[test]
    fn whether_perf_may_record_is_tried() {
        let folder = std::env::temp_dir().join(format!("bulla-flame-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        match may_perf(&folder) {
            Ok(()) => assert!(folder.join("probe.data").is_file()),
            Err(why) => assert!(format!("{why:#}").contains("perf") && !format!("{why:#}").contains('\n')),
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
