//! This machine has what its lane must have, and the dispatch chooses what `lab/lanes.toml` lays
//! down.

use bulla_blake3::kernel::{self, Kernel, Operation};
use bulla_record::lane::{self, Lane, Machine};

/// `FROM SHAPE` for each run of sizes of one input that are served alike.
fn oneshot(kernel: Kernel) -> Vec<String> {
    let report = kernel.report();
    let lines = report.lines().filter(|line| line.operation == Operation::OneShot && !line.prefetch);
    lines.map(|line| format!("{} {}", line.from, line.shape)).collect()
}

#[test]
fn this_machine_has_the_kernels_of_its_lane_and_chooses_the_first() {
    let lane = lane::of(&Machine::this()).unwrap();
    let kernels: Vec<_> = kernel::available().map(|kernel| kernel.to_string()).collect();
    assert_eq!(kernels, lane.kernels, "{}", lane.name);
    if !matches!(kernel::forced(), Ok(Some(_))) {
        assert_eq!(kernel::active().name(), lane.kernels[0], "{}", lane.name);
    }
}

#[test]
fn the_dispatch_of_this_machine_is_that_of_its_lane() {
    let lane = lane::of(&Machine::this()).unwrap();
    if !lane.oneshot.is_empty() {
        let best = kernel::available().next().unwrap();
        assert_eq!(oneshot(best), lane.oneshot, "{}", lane.name);
    }
}

/// Kernels for other processors of this architecture run here too, and so their dispatch can be
/// seen.
#[test]
fn the_dispatch_of_each_lane_is_that_of_a_kernel() {
    let laid_down =
        |lane: &Lane| lane.arch.as_deref() == Some(std::env::consts::ARCH) && !lane.oneshot.is_empty();
    let runnable: Vec<_> = kernel::runnable().map(|kernel| (kernel.to_string(), oneshot(kernel))).collect();
    for lane in lane::all().unwrap().into_iter().filter(laid_down) {
        let runs_here = runnable.iter().any(|(name, _)| *name == lane.kernels[0]);
        let found = runnable.iter().any(|(name, shapes)| *name == lane.kernels[0] && *shapes == lane.oneshot);
        assert!(found || !runs_here, "{}: no kernel here dispatches so: {runnable:#?}", lane.name);
    }
}
