//! `cargo xtask bench blake2-builds`: makes the same measurement in programs that are built in many
//! ways. No flag may cost speed.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, build_program, quiet};
use bulla_record::stats::median;

/// The name on the command line.
pub(crate) const NAME: &str = "blake2-builds";

const VARIANTS: [Variant; 5] = [
    Variant { name: "default", rustflags: "", features: &[] },
    Variant { name: "native", rustflags: "-Ctarget-cpu=native", features: &[] },
    Variant {
        name: "native -avx512f",
        rustflags: "-Ctarget-cpu=native -Ctarget-feature=-avx512f",
        features: &[],
    },
    Variant { name: "x86-64-v3", rustflags: "-Ctarget-cpu=x86-64-v3", features: &[] },
    Variant { name: "no_std", rustflags: "", features: &["--no-default-features"] },
];

const LTO: [&str; 2] = ["thin", "fat"];

/// How often each program is launched: each takes a tenth of a second.
pub(crate) const LAUNCHES: u32 = 41;

/// How much slower than the best build any build may be. Within this limit, builds count as equal
/// on a shared machine.
const MARGIN: f64 = 1.02;

/// One build, and the times of its launches by case.
struct Build {
    name: String,
    program: PathBuf,
    ns: BTreeMap<String, Vec<f64>>,
}

/// Builds all programs, launches them in turns, `launches` times each, and prints the matrix.
///
/// # Errors
/// A program does not build, or fails.
pub(crate) fn run(context: &Context, launches: u32) -> Result<ExitCode> {
    let mut builds = Vec::new();
    for variant in &VARIANTS {
        for lto in LTO {
            let program =
                build_variant(context, variant, lto, Path::new("crates/blake2/builds"), "blake2-builds")?;
            builds.push(Build { name: format!("{}, {lto}", variant.name), program, ns: BTreeMap::new() });
        }
    }
    for launch in 0..launches as usize {
        // Begin with another build each time.
        let first = launch % builds.len();
        builds.rotate_left(first);
        for build in &mut builds {
            build.launch()?;
        }
        builds.rotate_right(first);
    }
    let matrix = Matrix::of(&builds)?;
    print!("{}", matrix.table());
    Ok(if matrix.worst() <= MARGIN { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Build {
    fn launch(&mut self) -> Result<()> {
        let printed = quiet(&mut Command::new(&self.program)).with_context(|| self.name.clone())?;
        for (case, ns) in parse(&printed)? {
            self.ns.entry(case).or_default().push(ns);
        }
        Ok(())
    }
}

/// The cases and times that a program prints, one per line, after a line with the kernel.
fn parse(printed: &str) -> Result<Vec<(String, f64)>> {
    let cases = printed.lines().filter(|line| !line.starts_with("kernel ")).map(|line| {
        let (case, ns) = line.split_once(' ').with_context(|| format!("no case and time: {line}"))?;
        Ok((case.to_owned(), ns.parse().with_context(|| format!("no time: {line}"))?))
    });
    let cases: Vec<_> = cases.collect::<Result<_>>()?;
    ensure!(!cases.is_empty(), "the program measured nothing");
    Ok(cases)
}

/// The comparison of the builds, by case.
struct Matrix {
    builds: Vec<String>,
    rows: Vec<Row>,
}

struct Row {
    case: String,
    /// Nanoseconds of the best build: the median of its launches.
    best_ns: f64,
    /// Each build relative to the best.
    ratios: Vec<f64>,
}

impl Matrix {
    fn of(builds: &[Build]) -> Result<Self> {
        let cases = builds.first().context("no build")?.ns.keys();
        let rows = cases.map(|case| Row::of(case, builds)).collect::<Result<_>>()?;
        Ok(Self { builds: builds.iter().map(|build| build.name.clone()).collect(), rows })
    }

    /// How much slower the slowest cell is than the best build of its case.
    fn worst(&self) -> f64 {
        self.rows.iter().flat_map(|row| &row.ratios).copied().fold(1.0, f64::max)
    }

    /// As Markdown: a row for each case, the time of the best build, and each build's time relative
    /// to it.
    fn table(&self) -> String {
        let mut out = format!("| case | best, ns | {} |\n", self.builds.join(" | "));
        out += &format!("|---|--:|{}\n", "--:|".repeat(self.builds.len()));
        for Row { case, best_ns, ratios } in &self.rows {
            let cells = ratios
                .iter()
                .map(|ratio| if *ratio > MARGIN { format!("**{ratio:.3}**") } else { format!("{ratio:.3}") });
            out += &format!("| {case} | {best_ns:.1} | {} |\n", cells.collect::<Vec<_>>().join(" | "));
        }
        out + &format!(
            "\nThe slowest is {:.1} % slower than the best build of its case.\n",
            (self.worst() - 1.0) * 100.0
        )
    }
}

impl Row {
    /// A build's figure is the median, over the launches, of its time relative to the middle build
    /// of the same turn: on a shared machine, the clock drifts by more than the differences in
    /// question.
    fn of(case: &str, builds: &[Build]) -> Result<Self> {
        let times = builds.iter().map(|build| {
            build.ns.get(case).with_context(|| format!("{} did not measure {case}", build.name))
        });
        let times: Vec<_> = times.collect::<Result<_>>()?;
        let launches = times.iter().map(|ns| ns.len()).min().unwrap_or(0);
        let middle: Vec<_> = (0..launches).map(|turn| median(times.iter().map(|ns| ns[turn]))).collect();
        let relative = |ns: &Vec<f64>| median(ns.iter().zip(&middle).map(|(ns, middle)| ns / middle));
        let relative: Vec<_> = times.iter().map(|ns| relative(ns)).collect();
        let best = relative.iter().copied().fold(f64::INFINITY, f64::min);
        let fastest = times.iter().zip(&relative).find(|(_, relative)| **relative == best);
        let best_ns = fastest.map_or(f64::NAN, |(ns, _)| median(ns.iter().copied()));
        Ok(Self { case: case.to_owned(), best_ns, ratios: relative.iter().map(|own| own / best).collect() })
    }
}

/// One way to build it.
#[derive(Debug)]
pub(crate) struct Variant {
    /// Its name in tables.
    pub(crate) name: &'static str,
    /// The compiler's flags, separated by blanks.
    pub(crate) rustflags: &'static str,
    /// Arguments for cargo that choose features.
    pub(crate) features: &'static [&'static str],
}

/// The target of the build. It is given explicitly, so that flags do not apply to build scripts.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds the program `name` of the workspace in `folder`, below the root, and copies it to a place
/// where the next build does not replace it. `lto` is a profile's value.
///
/// # Errors
/// It does not build, or cannot be copied.
pub(crate) fn build_variant(
    context: &Context,
    variant: &Variant,
    lto: &str,
    folder: &Path,
    name: &str,
) -> Result<PathBuf> {
    let kept = context.target.join("variants").join(folder.file_name().unwrap_or_default());
    let file_name = variant.name.replace([' ', ','], "-");
    let mut command = context.cargo();
    command
        .args(["build", "--quiet", "--release", "--locked", "--target", TARGET, "--bin", name])
        .arg("--manifest-path")
        .arg(context.root.join(folder).join("Cargo.toml"))
        // One folder for each variant: in a shared one, cargo would rebuild everything whenever the
        // flags change.
        .arg("--target-dir")
        .arg(kept.join(&file_name))
        .args(variant.features)
        .env("CARGO_PROFILE_RELEASE_LTO", lto)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            variant.rustflags.split_whitespace().collect::<Vec<_>>().join("\u{1f}"),
        );
    let built = build_program(&mut command)?;
    let program = kept.join(format!("{name}-{file_name}-{lto}"));
    fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(name: &str, printed: &[&str]) -> Build {
        let mut build = Build { name: name.to_owned(), program: PathBuf::new(), ns: BTreeMap::new() };
        for (case, ns) in printed.iter().flat_map(|printed| parse(printed).unwrap()) {
            build.ns.entry(case).or_default().push(ns);
        }
        build
    }

    /// The machine is half as fast in the second turn.
    #[test]
    fn a_build_is_compared_with_the_best_of_the_same_turn() {
        let fast = build("fast", &["kernel portable\na 100\nb 10", "a 200\nb 20", "a 100\nb 10"]);
        let slow = build("slow", &["a 103\nb 10", "a 206\nb 20", "a 300\nb 10"]);
        let matrix = Matrix::of(&[fast, slow]).unwrap();
        assert!((matrix.worst() - 1.03).abs() < 1e-9);
        let table = matrix.table();
        assert!(table.contains("| a | 100.0 | 1.000 | **1.030** |"), "{table}");
        assert!(table.contains("| b | 10.0 | 1.000 | 1.000 |"), "{table}");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for printed in ["", "kernel portable", "a", "a b"] {
            assert!(parse(printed).is_err(), "{printed:?}");
        }
    }

    #[test]
    fn a_case_that_one_build_lacks_is_an_error() {
        let builds = [build("one", &["a 1\nb 2"]), build("other", &["a 1"])];
        assert!(Matrix::of(&builds).is_err());
    }
}
