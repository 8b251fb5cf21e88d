//! The kernels that the tests of the Rust libraries must run on this processor, and those that they
//! could not run.

use std::collections::BTreeSet;

use anyhow::Result;
use bulla_record::lane::{self, Machine};

/// The variable that names the kernels without which a test fails, separated by commas, or
/// [`EVERY_KERNEL`]. A test reports every other kernel that the processor lacks in a line that
/// [`untested`] reads.
pub(super) const REQUIRE_KERNELS: &str = "BULLA_TEST_REQUIRE_KERNELS";

/// The value of [`REQUIRE_KERNELS`] for all kernels of the architecture.
pub(super) const EVERY_KERNEL: &str = "all";

/// The value of [`REQUIRE_KERNELS`] for the kernels of the machine's lane. `lab/lanes.toml` derives
/// them from the processor's features, independently of the libraries' detection.
pub(super) fn of_lane() -> Result<String> {
    Ok(lane::of(&Machine::this())?.kernels.join(","))
}

/// The kernel that a test did not run, if this line of its output says so.
pub(super) fn untested(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("not tested: the kernel ")?;
    Some(rest.split_once(',').map_or(rest, |(kernel, _)| kernel))
}

/// The name of the emulated processor on which the suite lanes tests a kernel, if there is one.
type Emulated = fn(&str) -> Option<&'static str>;

/// One line for each kernel that was not tested on this processor, with the place where it is
/// tested.
pub(super) fn report(kernels: &BTreeSet<String>, emulated: Emulated) -> String {
    let lines = kernels.iter().map(|kernel| format!("  {kernel}: {}\n", tested_elsewhere(kernel, emulated)));
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    format!("kernels that this processor cannot run (`--require-kernels` makes them failures):\n{lines}")
}

fn tested_elsewhere(kernel: &str, emulated: Emulated) -> String {
    if let Some(processor) = emulated(kernel) {
        return format!("the suite lanes tests it on an emulated {processor}");
    }
    let has = |lane: &lane::Lane| lane.kernels.iter().any(|one| one == kernel);
    let lanes: Vec<_> =
        lane::all().unwrap_or_default().into_iter().filter(has).map(|lane| lane.name).collect();
    match lanes.is_empty() {
        true => "no emulator has it; a processor that has it tests it".to_owned(),
        false => format!("no emulator has it; machines of these lanes test it: {}", lanes.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_names_the_kernel_that_it_did_not_run() {
        let line = "test x ... not tested: the kernel x86_64/avx512, which this processor cannot run";
        assert_eq!(untested(line), Some("x86_64/avx512"));
        assert_eq!(untested("test x ... ok"), None);
    }

    #[test]
    fn the_report_says_where_a_missing_kernel_is_tested() {
        let emulated: Emulated = |kernel| (kernel == "x86_64/avx2").then_some("Haswell");
        assert_eq!(report(&BTreeSet::new(), emulated), "");
        let text = report(&["x86_64/avx2", "x86_64/avx512"].map(str::to_owned).into(), emulated);
        assert!(text.contains("x86_64/avx2: the suite lanes tests it on an emulated Haswell\n"), "{text}");
        assert!(text.contains("x86_64/avx512: no emulator has it; machines of these lanes"), "{text}");
        assert!(text.contains("amd-zen4"), "{text}");
    }

    #[test]
    fn the_lane_requires_what_the_standard_library_detects() {
        let required = of_lane().unwrap();
        #[cfg(target_arch = "x86_64")]
        for (kernel, is_there) in [
            ("x86_64/sse4.1", is_x86_feature_detected!("sse4.1")),
            ("x86_64/avx2", is_x86_feature_detected!("avx2")),
            ("x86_64/avx512", is_x86_feature_detected!("avx512bw")),
        ] {
            assert_eq!(required.split(',').any(|name| name == kernel), is_there, "{kernel}: {required}");
        }
        assert!(required.ends_with("portable"), "{required}");
    }
}
