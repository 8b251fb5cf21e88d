//! `cargo xtask bench`: builds the laboratory, launches it several times, and prints the table.

use std::{
    fs,
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    context::{Context, build_program},
    process::{Echo, quiet, stream},
};

/// What `cargo xtask bench` takes.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  cargo xtask bench blake3\n  \
    cargo xtask bench blake3 --cases oneshot,stream/64 --launches 9\n  \
    cargo xtask bench blake3 --kernel x86_64/avx2 --sizes 64,1024\n  \
    cargo xtask bench blake3 --all-kernels --json > run.jsonl\n\n\
    A forced kernel meets a peer that is held to the same instruction set. Ratios are official/ours:\n\
    above 1, ours is faster. Measure on an otherwise idle machine.")]
pub(crate) struct Args {
    /// The suite to measure
    #[arg(value_parser = ["blake3"])]
    suite: String,
    /// Force one of our kernels, such as x86_64/avx2; `all` takes the default and each one after the other
    #[arg(long, value_name = "NAME|all")]
    kernel: Option<String>,
    /// The same as --kernel all
    #[arg(long, conflicts_with = "kernel")]
    all_kernels: bool,
    /// Only cases of these many bytes
    #[arg(long, value_delimiter = ',', value_name = "BYTES,...")]
    sizes: Vec<u64>,
    /// Only cases whose names begin so
    #[arg(long, value_delimiter = ',', value_name = "PREFIX,...")]
    cases: Vec<String>,
    /// How often the laboratory's process is launched
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    launches: u32,
    /// Print the records, one JSON object a line, instead of the tables
    #[arg(long)]
    json: bool,
}

/// The variable that forces a kernel of ours for a whole process.
const FORCE: &str = "BULLA_BLAKE3_FORCE_KERNEL";

/// Builds, launches, prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let context = Context::find()?;
    let mut records = String::new();
    for kernel in kernels(&context, args)? {
        let lab = build(&context, peer_features(kernel.as_deref())?)?;
        for launch in 1..=args.launches {
            measure(&lab, args, kernel.as_deref(), launch, &mut records)?;
        }
        if !args.json {
            // A table for each kernel as soon as it is known: the next one takes minutes.
            table(&lab, &records)?;
            records.clear();
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The kernels to measure; `None` is the one that detection chooses.
fn kernels(context: &Context, args: &Args) -> Result<Vec<Option<String>>> {
    let all = args.all_kernels || args.kernel.as_deref() == Some("all");
    if !all {
        return Ok(vec![args.kernel.clone()]);
    }
    let names = quiet(Command::new(build(context, &[])?).args(["kernels", &args.suite]))?;
    Ok(std::iter::once(None).chain(names.lines().map(|name| Some(name.to_owned()))).collect())
}

/// The features of the laboratory that hold the peer to the instruction set of our kernel.
fn peer_features(kernel: Option<&str>) -> Result<&'static [&'static str]> {
    const X86: [&str; 4] = ["peer-no-avx512", "peer-no-avx2", "peer-no-sse41", "peer-no-sse2"];
    Ok(match kernel {
        None | Some("x86_64/avx512" | "aarch64/neon" | "wasm32/simd128") => &[],
        Some("x86_64/avx2") => X86.split_at(1).0,
        Some("x86_64/sse4.1") => X86.split_at(2).0,
        Some("portable") if cfg!(target_arch = "aarch64") => &["peer-no-neon"],
        // The peer has no vector code for any other machine.
        Some("portable") if !cfg!(target_arch = "x86_64") => &[],
        Some("portable") => &X86,
        Some("powerpc64/vsx" | "s390x/vector") => &[],
        Some(name) => bail!("no kernel {name}: see `cargo xtask bench --help`"),
    })
}

/// Builds the laboratory with `features` and keeps the program under a name of its own.
fn build(context: &Context, features: &[&str]) -> Result<PathBuf> {
    let mut command = context.cargo();
    command.args(["build", "--quiet", "--release", "-p", "bulla-lab", "--features", &features.join(",")]);
    let built = build_program(&mut command)?;
    // The next build, for another peer, replaces cargo's own copy.
    let folder = context.target.join("lab");
    fs::create_dir_all(&folder)?;
    let name = if features.is_empty() {
        "bulla-lab".to_owned()
    } else {
        format!("bulla-lab-{}", features.join("-"))
    };
    let kept = folder.join(name);
    fs::copy(&built, &kept).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(kept)
}

/// One launch; its records are added to `records`.
fn measure(lab: &Path, args: &Args, kernel: Option<&str>, launch: u32, records: &mut String) -> Result<()> {
    let mut command = Command::new(lab);
    command.args(["measure", &args.suite, "--launch", &launch.to_string()]);
    if !args.sizes.is_empty() {
        command.args(["--sizes", &args.sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(",")]);
    }
    if !args.cases.is_empty() {
        command.args(["--cases", &args.cases.join(",")]);
    }
    match kernel {
        Some(kernel) => command.env(FORCE, kernel),
        // A variable that is left from before must not decide what "the default" is.
        None => command.env_remove(FORCE),
    };
    let terminal = std::io::stderr().is_terminal();
    let mut cases = 0;
    let status = stream(&mut command, if args.json { Echo::Show } else { Echo::Hide }, |line| {
        records.push_str(line);
        records.push('\n');
        cases += 1;
        if terminal {
            let kernel = kernel.unwrap_or("default kernel");
            eprint!("\r\x1b[K{kernel}: launch {launch} of {}, {cases} cases", args.launches);
        }
    })?;
    if terminal {
        eprint!("\r\x1b[K");
    }
    ensure!(status.success(), "the laboratory failed: {status}");
    Ok(())
}

/// Hands the records to the laboratory, which makes the tables from them.
fn table(lab: &Path, records: &str) -> Result<()> {
    let mut child = Command::new(lab)
        .arg("table")
        .stdin(Stdio::piped())
        .spawn()
        .context("cannot start the laboratory")?;
    child.stdin.take().context("the laboratory has no standard input")?.write_all(records.as_bytes())?;
    ensure!(child.wait()?.success(), "the laboratory cannot read its own records");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_is_held_to_the_kernels_instruction_set() {
        let features = |kernel| peer_features(Some(kernel)).unwrap().to_vec();
        assert_eq!(peer_features(None).unwrap(), &[] as &[&str]);
        assert!(features("x86_64/avx512").is_empty());
        assert_eq!(features("x86_64/avx2"), ["peer-no-avx512"]);
        assert_eq!(features("x86_64/sse4.1"), ["peer-no-avx512", "peer-no-avx2"]);
        assert!(peer_features(Some("x86_64/avx3")).is_err());
    }
}
