//! Names of kernels, and the variable that forces one.

use bulla_blake2::blake2b;
use bulla_blake2::kernel::{self, Kernel};

#[test]
fn kernels_have_names() {
    assert!(kernel::available().any(|kernel| kernel.name() == "portable"));
    assert_eq!(Kernel::by_name("portable").expect("always there").to_string(), "portable");
    let unknown = Kernel::by_name("x86_64/avx1024").expect_err("nobody has it").to_string();
    for kernel in kernel::available() {
        assert!(unknown.contains(kernel.name()), "{unknown}");
    }
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
