//! `cargo xtask lanes --model`: cycles per block by `llvm-mca`, for lanes that cannot be measured
//! here. Ours and the official crate are compiled for the lane's target as users compile them. The
//! model of the lane's processor gets the instructions that run for one block.
//!
//! A model knows no caches and no branches, and no memory traffic except that of these
//! instructions. Its result ranks code, but is not a measurement.

mod listing;
pub(crate) mod rules;

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{
    Context,
    install::{self, DebianTool},
    quiet,
};
use bulla_record::lane::{self, Lane};

use self::listing::{Kind, Listing, Unit};

/// Debian's version of LLVM that knows the processors of our lanes.
const OBJDUMP: &str = "llvm-objdump-19";
const MCA: &str = "llvm-mca-19";
const PACKAGE: &str = "llvm-19";

/// The official crate compiles C for AArch64. The package for C++ depends on the C headers; the
/// package for C only recommends them.
const CROSS: DebianTool = DebianTool { program: "aarch64-linux-gnu-g++", package: "g++-aarch64-linux-gnu" };

/// One comparison: the functions of both sides, and how many blocks each computes at once.
#[derive(Debug)]
struct Pair {
    what: &'static str,
    ours: String,
    ours_blocks: u32,
    official: &'static str,
    official_blocks: u32,
}

/// The table of the lanes with a model. `here` is this machine's lane, which may be one of them.
pub(crate) fn table(context: &Context, here: &str) -> Result<String> {
    let decoders = Decoders::get()?;
    let mut text = format!(
        "MODELED, not measured: cycles a block by {MCA}, without caches, branches and waiting for memory. Need in percent; positive: ours is behind.\n\n\
         {:<16} {:<32} {:>8} {:<34} {:>8} {:>8}\n",
        "lane", "ours", "cycles", "official", "cycles", "need"
    );
    let mut built: Vec<(String, Code)> = Vec::new();
    for lane in lane::all()?.into_iter().filter(|lane| lane.model.is_some()) {
        let Some(target) = lane.arch.as_deref().and_then(target) else { continue };
        if !built.iter().any(|(name, _)| name == target) {
            built.push((target.to_owned(), Code::build(context, &decoders, target)?));
        }
        let code = built.iter().find(|(name, _)| name == target).map(|(_, code)| code);
        let code = code.context("a target that was not built")?;
        let own = if lane.name == here { "  (this machine: measure it)" } else { "" };
        for pair in pairs(&lane) {
            text.push_str(&format!("{}{own}\n", line(&lane, target, code, &pair)?));
        }
    }
    Ok(text)
}

/// Checks that every lane with a model can be modeled: kernels are found by their names, and the
/// model knows their instructions.
pub(crate) fn check(context: &Context) -> Result<()> {
    let text = table(context, "")?;
    for lane in lane::all()?.into_iter().filter(|lane| lane.model.is_some()) {
        let is_its = |line: &&str| line.starts_with(&format!("{} ", lane.name)) && line.contains("modeled");
        let lines = text.lines().filter(is_its).count();
        ensure!(lines == pairs(&lane).len() && lines > 0, "{}: {lines} comparisons", lane.name);
    }
    Ok(())
}

/// The Rust target that the lane's users run.
fn target(arch: &str) -> Option<&'static str> {
    match arch {
        "x86_64" => Some("x86_64-unknown-linux-gnu"),
        "aarch64" => Some("aarch64-unknown-linux-gnu"),
        "powerpc64" => Some("powerpc64le-unknown-linux-gnu"),
        "s390x" => Some("s390x-unknown-linux-gnu"),
        _ => None,
    }
}

/// The comparisons of a lane: for one chunk and for many, with the kernels that it must have.
fn pairs(lane: &Lane) -> Vec<Pair> {
    const PORTABLE: &str = "blake3::portable::compress_in_place";
    let ours = |module: &str, function: &str| format!("bulla_blake3::kernel::{module}::{function}");
    let one = |module: &str, official| Pair {
        what: "one chunk",
        ours: ours(module, "chunk"),
        ours_blocks: 1,
        official,
        official_blocks: 1,
    };
    let many = |module: &str, lanes, official| Pair {
        what: "many chunks",
        ours: ours(module, "group"),
        ours_blocks: lanes,
        official,
        official_blocks: lanes,
    };
    // If 512-bit operations run as two halves, another function of the kernel hashes one chunk.
    let is_half = lane.oneshot.iter().any(|line| line.contains("2*256"));
    let (rows, columns) = if is_half {
        ("x86_64::avx512_half_kernel", "x86_64::avx512_half_wide")
    } else {
        ("x86_64::avx512_full_kernel", "x86_64::avx512_full_wide")
    };
    let of_kernel = |kernel: &String| match kernel.as_str() {
        "x86_64/avx512" => {
            vec![one(rows, "blake3_compress_in_place_avx512"), many(columns, 16, "blake3_hash_many_avx512")]
        }
        "x86_64/avx2" => vec![many("x86_64::avx2_wide", 8, "blake3_hash_many_avx2")],
        "x86_64/sse4.1" => vec![
            one("x86_64::sse41_kernel", "blake3_compress_in_place_sse41"),
            many("x86_64::sse41_wide", 4, "blake3_hash_many_sse41"),
        ],
        "aarch64/neon" => {
            vec![
                one("portable", PORTABLE),
                Pair { ours_blocks: 8, ..many("aarch64::neon_wide", 4, "blake3_hash_many_neon") },
            ]
        }
        "powerpc64/vsx" => vec![
            one("portable", PORTABLE),
            Pair { official_blocks: 1, ..many("powerpc64::vsx_wide", 4, PORTABLE) },
        ],
        "s390x/vector" => vec![
            one("s390x::vector_kernel", PORTABLE),
            Pair { official_blocks: 1, ..many("s390x::vector_wide", 4, PORTABLE) },
        ],
        "portable" if lane.kernels.len() == 1 && lane.arch.as_deref() == Some("aarch64") => vec![
            one("portable", PORTABLE),
            Pair { what: "many chunks", official_blocks: 4, ..one("portable", "blake3_hash_many_neon") },
        ],
        "portable" if lane.kernels.len() == 1 => vec![one("portable", PORTABLE)],
        _ => Vec::new(),
    };
    lane.kernels.iter().flat_map(of_kernel).collect()
}

/// The compiled code of one target.
struct Code {
    ours: Listing,
    official: Listing,
}

impl Code {
    fn build(context: &Context, decoders: &Decoders, target: &str) -> Result<Self> {
        if target.starts_with("aarch64") && !cfg!(target_arch = "aarch64") {
            install::debian(&CROSS)?;
        }
        let listing = |package: &str| decoders.read(&library(context, package, target)?, target);
        Ok(Self { ours: listing("bulla-blake3")?, official: listing("blake3")? })
    }
}

/// The programs of LLVM are there.
struct Decoders;

impl Decoders {
    fn get() -> Result<Self> {
        for program in [OBJDUMP, MCA] {
            install::debian(&DebianTool { program, package: PACKAGE })?;
        }
        Ok(Self)
    }

    /// The disassembly of a library for `target`.
    fn read(&self, library: &Path, target: &str) -> Result<Listing> {
        let mut command = Command::new(OBJDUMP);
        command.args(["--disassemble", "--demangle", "--no-show-raw-insn"]);
        // By default, it knows only the oldest processors of this architecture, which have no
        // vectors.
        if target.starts_with("s390x") {
            command.arg("--mcpu=z16");
        }
        Ok(Listing::parse(&quiet(command.arg(library))?))
    }
}

/// The profile of one unit of code that the laboratory's gate on machine code has
/// (`crates/lab/src/code/build.rs`): of the same name and content, so that what both want is built
/// once.
const PROFILE: &str = "kernels-one-unit";

/// Builds a package as a user's release build does, without link-time optimization: then the
/// library holds machine code.
fn library(context: &Context, package: &str, target: &str) -> Result<PathBuf> {
    install::rust_target(target)?;
    let mut command = context.cargo();
    command
        .args(["build", "--quiet", "-p", package, "--target", target, "--profile", PROFILE])
        .args(["--config", &format!("profile.{PROFILE}.inherits=\"release\"")])
        .args(["--config", &format!("profile.{PROFILE}.codegen-units=1")])
        .args(["--config", &format!("profile.{PROFILE}.lto=false")])
        .arg("--message-format=json-render-diagnostics")
        // Present but empty: no flags of the environment or of a configuration, such as another
        // `target-cpu`.
        .env("CARGO_ENCODED_RUSTFLAGS", "")
        .stderr(Stdio::inherit());
    let output = command.output().context("cannot start cargo build")?;
    ensure!(output.status.success(), "cannot build {package} for {target}: {}", output.status);
    let name = package.replace('-', "_");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name.as_str())
        .find_map(|message| message["filenames"].as_array()?.iter().find_map(rlib))
        .with_context(|| format!("cargo build names no library of {package}"))
}

fn rlib(path: &serde_json::Value) -> Option<PathBuf> {
    path.as_str().filter(|path| path.ends_with(".rlib")).map(PathBuf::from)
}

fn line(lane: &Lane, target: &str, code: &Code, pair: &Pair) -> Result<String> {
    let cycles = |listing: &Listing, name: &str, blocks: u32| -> Result<f64> {
        let unit = listing
            .unit(name)
            .with_context(|| format!("{target}: there are {:?}", listing.names("kernel::")))?;
        Ok(model(lane, target, &unit)? / f64::from(blocks))
    };
    let ours = cycles(&code.ours, &pair.ours, pair.ours_blocks)?;
    let official = cycles(&code.official, pair.official, pair.official_blocks)?;
    let name = |name: &str| name.trim_start_matches("bulla_blake3::kernel::").to_owned();
    Ok(format!(
        "{:<16} {:<32} {ours:>8.1} {:<34} {official:>8.1} {:>+8.1}  modeled, {}",
        lane.name,
        name(&pair.ours),
        pair.official,
        (ours / official - 1.0) * 100.0,
        pair.what,
    ))
}

/// How often the model runs the instructions.
const ITERATIONS: u32 = 40;

/// Cycles of the model for one run of the instructions, in the middle of many.
fn model(lane: &Lane, target: &str, unit: &Unit) -> Result<f64> {
    let cpu = lane.model.as_deref().context("a lane without a model")?;
    let mut command = Command::new(MCA);
    command.args([
        &format!("-mtriple={target}"),
        &format!("-mcpu={cpu}"),
        &format!("-iterations={ITERATIONS}"),
    ]);
    command.args([
        "-instruction-info=false",
        "-resource-pressure=false",
        "-skip-unsupported-instructions=any",
    ]);
    if unit.kind == Kind::Function && target.starts_with("x86_64") {
        // A function leaves its result in memory, and the next call waits for it.
        command.arg("-noalias=false");
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {MCA}"))?;
    // It reads everything before it prints.
    child.stdin.take().context("no standard input")?.write_all(unit.lines.join("\n").as_bytes())?;
    let output = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{MCA} for {cpu}: {}", errors.lines().next().unwrap_or_default());
    let skipped = errors.lines().filter(|line| line.contains("warning")).count();
    ensure!(
        skipped * 50 <= unit.lines.len(),
        "{MCA} for {cpu} knows {skipped} of {} instructions not",
        unit.lines.len()
    );
    total_cycles(&String::from_utf8_lossy(&output.stdout))
        .with_context(|| format!("{MCA} for {cpu} gives no cycles"))
}

/// `Total Cycles:      3210`, for all iterations.
fn total_cycles(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Total Cycles:"))?;
    Some(line.trim().parse::<f64>().ok()? / f64::from(ITERATIONS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_with_a_model_have_something_to_compare() {
        for lane in lane::all().unwrap().iter().filter(|lane| lane.model.is_some()) {
            assert!(lane.arch.as_deref().and_then(target).is_some(), "{}", lane.name);
            assert!(!pairs(lane).is_empty(), "{}", lane.name);
        }
    }

    #[test]
    fn cycles_are_those_of_one_iteration() {
        assert_eq!(total_cycles("Iterations:        40\nTotal Cycles:      4000\n"), Some(100.0));
        assert_eq!(total_cycles("nothing"), None);
    }

    #[test]
    fn halves_have_another_entry_for_one_chunk() {
        let ours = |name: &str| pairs(&lane::named(name).unwrap())[0].ours.clone();
        assert!(ours("amd-zen4").contains("half") && ours("amd-zen5").contains("full"));
    }
}
