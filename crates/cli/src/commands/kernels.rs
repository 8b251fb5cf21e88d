//! `bulla kernels`: shows which kernel hashes which input size.

use crate::args::KernelsArgs;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::output::Out;
use bulla_blake3::kernel::{self, FORCE_VARIABLE, ReportLine};
use serde::Serialize;

/// The report in JSON.
#[derive(Serialize)]
struct Report {
    algorithm: &'static str,
    kernel: &'static str,
    /// Whether the environment chose it.
    forced: bool,
    /// The kernels that this machine can run, best first.
    available: Vec<&'static str>,
    sizes: Vec<Size>,
}

/// A range of sizes that an operation computes in the same way.
#[derive(Serialize)]
struct Size {
    operation: &'static str,
    unit: &'static str,
    from: usize,
    /// The last size; null if there is no limit.
    to: Option<usize>,
    shape: String,
    prefetch: bool,
}

impl From<ReportLine> for Size {
    fn from(line: ReportLine) -> Self {
        let ReportLine { operation, from, to, shape, prefetch } = line;
        let (operation, unit) = (operation.name(), operation.unit());
        Self { operation, unit, from, to, shape: shape.to_string(), prefetch }
    }
}

pub(crate) fn run(args: &KernelsArgs) -> Result<Exit> {
    let report = kernel::report();
    let available = kernel::available().map(kernel::Kernel::name);
    let mut out = Out::stdout();
    if args.json {
        out.json(&Report {
            algorithm: "blake3",
            kernel: report.kernel.name(),
            forced: check_forced()?,
            available: available.collect(),
            sizes: report.lines().map(Size::from).collect(),
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
