//! The suite of processors that the machine at hand is not, emulated by `qemu-user`.

use super::{go::go, runner::Runner};
use crate::install::{self, DebianTool};

pub(super) fn run(runner: &mut Runner<'_>) {
    for program in ["qemu-aarch64", "qemu-s390x", "qemu-x86_64"] {
        runner.need(program, |_| install::debian(&DebianTool { program, package: "qemu-user" }));
    }
    go_on_emulated_processors(runner);
    if cfg!(target_arch = "x86_64") {
        for (processor, kernel) in OLDER {
            rust_on_emulated_processor(runner, processor, kernel);
        }
    }
}

/// Processors without AVX-512, without AVX2, and without SSE4.1, and the kernel that each has. The emulator knows no AVX-512.
const OLDER: [(&str, &str); 3] =
    [("Haswell", "x86_64/avx2"), ("Nehalem", "x86_64/sse4.1"), ("Conroe", "portable")];

/// The Rust libraries choose the processor's kernel, and their tests pass where others are missing, and say which. All lengths are tested by the
/// processor at hand.
fn rust_on_emulated_processor(runner: &mut Runner<'_>, processor: &str, kernel: &str) {
    let emulator = format!("target.x86_64-unknown-linux-gnu.runner = ['qemu-x86_64', '-cpu', '{processor}']");
    let mut test = runner.context.cargo();
    test.args(["test", "--config", &emulator, "-p", "bulla-blake3", "-p", "bulla-blake2", "--all-features"]);
    test.args([
        "--test",
        "blake3",
        "--test",
        "blake2",
        "--",
        "interface",
        "kernel",
        "avx512",
        "counters",
        "digest",
    ]);
    test.env("BULLA_TEST_BEST_KERNEL", kernel);
    runner.libtest(&format!("kernels of {processor}, emulated"), &mut test);
}

/// The Go kernels on AArch64, on big-endian s390x and on older x86-64. Each test requires the kernel that its processor has.
fn go_on_emulated_processors(runner: &mut Runner<'_>) {
    let mut test = go(&runner.context.root.join("go"));
    test.args(["test", "-json", "-count=1", "-timeout=30m", "-tags=emulated", "./internal/emulated"]);
    runner.go_test("go test, emulated processors", &mut test);
}
