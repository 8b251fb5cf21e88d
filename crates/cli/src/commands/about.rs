//! What bulla says about itself: its version, completions, manual pages and kernels.

use crate::args::{Cli, CompletionsArgs, KernelsArgs, ManArgs, VersionArgs};
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Out;
use bulla_blake3::kernel::{self, FORCE_VARIABLE, ReportLine};
use serde::Serialize;

/// The features of `bulla-kms` that this program is built with.
const FEATURES: &str = "mldsa, mlkem, pkcs11, slhdsa, soft-seal, transfer";

/// The output of `--json`.
#[derive(Serialize)]
struct Build {
    version: &'static str,
    /// The commit that a release was built from.
    commit: Option<&'static str>,
    features: Vec<&'static str>,
    /// The kernel of BLAKE3 on this machine.
    kernel: &'static str,
}

pub(crate) fn print_version(args: &VersionArgs) -> Result<Exit> {
    let build = Build {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("BULLA_COMMIT"),
        features: FEATURES.split(", ").collect(),
        kernel: kernel::active().name(),
    };
    let mut out = Out::stdout();
    if args.json {
        out.json(&build)?;
        out.flush()?;
        return Ok(Exit::Ok);
    }
    out.line(format_args!("bulla {}", build.version))?;
    if args.verbose {
        out.line(format_args!("commit    {}", build.commit.unwrap_or("unknown")))?;
        out.line(format_args!("features  {FEATURES}"))?;
        out.line(format_args!("kernel    {}", build.kernel))?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

pub(crate) fn print_completions(args: &CompletionsArgs) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::with_programs(), "bulla", &mut script);
    let mut out = Out::stdout();
    out.bytes(&script)?;
    out.flush()?;
    Ok(Exit::Ok)
}

pub(crate) fn print_manual_page(args: &ManArgs) -> Result<Exit> {
    let mut root = Cli::with_programs();
    // Gives each command its full name and the global flags.
    root.build();
    let mut command = &root;
    for name in &args.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            Error::new("no_such_command", format!("there is no command `{}`", args.command.join(" ")))
                .hint("`bulla --help` lists the commands")
        })?;
    }
    let mut page = Vec::new();
    let page_name = command.get_bin_name().unwrap_or("bulla").replace(' ', "-");
    let title = page_name.to_uppercase();
    clap_mangen::Man::new(command.clone().name(page_name).display_name(title.to_lowercase()))
        .title(title)
        .render(&mut page)
        .map_err(|error| Error::io("cannot write the page", &error))?;
    let mut out = Out::stdout();
    out.bytes(&left_aligned(&page))?;
    out.flush()?;
    Ok(Exit::Ok)
}

/// The page with even spaces between words: it has long names and addresses, and a line before one
/// of them cannot be spread to its full width.
fn left_aligned(page: &[u8]) -> Vec<u8> {
    const SECTION: &[u8] = b".SH";
    let at = page.windows(SECTION.len()).position(|bytes| bytes == SECTION).unwrap_or(page.len());
    [&page[..at], b".ad l\n", &page[at..]].concat()
}

/// The report in JSON, for `bulla kernels`.
#[derive(Serialize)]
struct KernelReport {
    algorithm: &'static str,
    kernel: &'static str,
    /// Whether the environment chose it.
    forced: bool,
    /// The kernels that this machine can run, best first.
    available: Vec<&'static str>,
    sizes: Vec<SizeRange>,
}

/// A range of sizes that an operation computes in the same way.
#[derive(Serialize)]
struct SizeRange {
    operation: &'static str,
    unit: &'static str,
    from: usize,
    /// The last size; null if there is no limit.
    to: Option<usize>,
    shape: String,
    prefetch: bool,
}

impl From<ReportLine> for SizeRange {
    fn from(line: ReportLine) -> Self {
        let ReportLine { operation, from, to, shape, prefetch } = line;
        let (operation, unit) = (operation.name(), operation.unit());
        Self { operation, unit, from, to, shape: shape.to_string(), prefetch }
    }
}

pub(crate) fn print_kernels(args: &KernelsArgs) -> Result<Exit> {
    let report = kernel::report();
    let available = kernel::available().map(kernel::Kernel::name);
    let mut out = Out::stdout();
    if args.json {
        out.json(&KernelReport {
            algorithm: "blake3",
            kernel: report.kernel.name(),
            forced: check_forced()?,
            available: available.collect(),
            sizes: report.lines().map(SizeRange::from).collect(),
        })?;
    } else {
        out.line(report)?;
        out.line(format_args!("This machine has {}.", available.collect::<Vec<_>>().join(", ")))?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Whether the environment forces a kernel. An error if it names a kernel that this machine does
/// not have: otherwise, the first hash would panic.
pub(crate) fn check_forced() -> Result<bool> {
    match kernel::forced() {
        Ok(forced) => Ok(forced.is_some()),
        Err(unknown) => Err(Error::new("unknown_kernel", format!("{FORCE_VARIABLE}: {unknown}"))
            .hint(format!("set it to one of these, or unset {FORCE_VARIABLE}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::FEATURES;

    #[test]
    fn the_features_are_those_of_the_manifest() {
        let manifest = include_str!("../../Cargo.toml");
        let kms = manifest.lines().find(|line| line.starts_with("bulla-kms = ")).unwrap();
        let list = kms.split_once("features = [").unwrap().1.split(']').next().unwrap();
        assert_eq!(list.replace('"', ""), FEATURES);
    }
}
