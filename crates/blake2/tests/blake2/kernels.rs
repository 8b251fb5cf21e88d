//! Names of kernels, and the variable that forces one.

use bulla_blake2::blake2b;
use bulla_blake2::kernel::{self, Kernel};
use bulla_kernel_testing::{expected_best_kernel, report_untested};

#[test]
fn kernels_have_names() {
    assert!(kernel::available().any(|kernel| kernel.name() == "portable"));
    assert_eq!(Kernel::by_name("portable").expect("always there").to_string(), "portable");
    let unknown = Kernel::by_name("x86_64/avx1024").expect_err("nobody has it").to_string();
    for kernel in kernel::available() {
        assert!(unknown.contains(kernel.name()), "{unknown}");
    }
}

/// The kernels of this architecture, besides the portable one.
const KERNELS: &[&str] = if cfg!(target_arch = "x86_64") {
    &["x86_64/avx512", "x86_64/avx2", "x86_64/sse4.1"]
} else if cfg!(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")) {
    &["aarch64/neon"]
} else if cfg!(all(target_arch = "powerpc64", target_endian = "little")) {
    &["powerpc64/vsx"]
} else if cfg!(all(target_arch = "wasm32", target_feature = "simd128")) {
    &["wasm32/simd128"]
} else if cfg!(target_arch = "s390x") {
    &["s390x/vector"]
} else {
    &[]
};

/// All other tests go through the kernels that can run here; this one says which cannot.
#[test]
fn kernels_that_were_not_tested_are_named() {
    for name in KERNELS {
        if !kernel::runnable().any(|kernel| kernel.name() == *name) {
            report_untested(name);
        }
    }
}

#[test]
fn the_best_kernel_is_in_use() {
    if let Some(best) = expected_best_kernel() {
        assert_eq!(kernel::active().name(), best);
    }
    let forced = kernel::forced().expect("a kernel of this machine");
    let best = forced.or_else(|| kernel::available().next()).expect("there is always one");
    assert_eq!(kernel::active(), best);
}

#[test]
fn the_variable_forces_a_kernel_or_names_those_there_are() {
    if let Ok(expected) = std::env::var("BULLA_TEST_EXPECT_KERNEL") {
        // The child: see below.
        assert_eq!(kernel::active().name(), expected);
        blake2b(b"by the forced kernel");
        return;
    }
    let run = |force: &str, expect: &str| {
        std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "kernels::the_variable_forces_a_kernel_or_names_those_there_are"])
            .env(kernel::FORCE_VARIABLE, force)
            .env("BULLA_TEST_EXPECT_KERNEL", expect)
            .output()
            .expect("this program runs")
    };
    for kernel in kernel::available() {
        assert!(run(kernel.name(), kernel.name()).status.success(), "{kernel}");
    }
    let refused = run("x86_64/mmx", "x86_64/mmx");
    assert!(!refused.status.success());
    let said =
        String::from_utf8_lossy(&refused.stdout).into_owned() + &String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("it has") && said.contains("portable"), "{said}");
}
