//! The suite for other processors, which `qemu-user` emulates.

use bulla_devtools::install::{self, DebianTool};

use super::{go::go, kernels::REQUIRE_KERNELS, lanes_rust, runner::Runner};

pub(super) fn run(runner: &mut Runner<'_>) {
    for program in ["qemu-aarch64", "qemu-s390x", "qemu-x86_64"] {
        runner.need(program, |_| install::debian(&DebianTool { program, package: "qemu-user" }));
    }
    go_on_emulated_processors(runner);
    if cfg!(target_arch = "x86_64") {
        for older in &OLDER {
            rust_on_emulated_processor(runner, older);
        }
    }
    lanes_rust::run(runner);
}

/// A processor that lacks kernels.
struct Older {
    processor: &'static str,
    /// The kernel that it must choose, for BLAKE2 as for BLAKE3.
    kernel: &'static str,
    /// The one for Ed25519.
    ed25519: &'static str,
    /// The tests of the kernels that it lacks. They report that they did not run.
    missing: &'static [&'static str],
}

/// The emulator has no AVX-512.
const OLDER: [Older; 3] = [
    Older { processor: "Haswell", kernel: "x86_64/avx2", ed25519: "x86_64/avx2", missing: &["avx512"] },
    Older {
        processor: "Nehalem",
        kernel: "x86_64/sse4.1",
        ed25519: "portable",
        missing: &["avx512", "avx2"],
    },
    Older {
        processor: "Conroe",
        kernel: "portable",
        ed25519: "portable",
        missing: &["avx512", "avx2", "sse41"],
    },
];

/// The processor on which this suite tests a kernel of x86-64.
pub(super) fn emulated_processor(kernel: &str) -> Option<&'static str> {
    OLDER.iter().find(|older| older.kernel == kernel).map(|older| older.processor)
}

/// The Rust libraries must choose the processor's kernel. Their tests pass without the other
/// kernels, and report which ones are missing. The real processor tests all lengths of its kernels.
fn rust_on_emulated_processor(runner: &mut Runner<'_>, older: &Older) {
    let programs = ["bulla-blake2, test blake2", "bulla-blake3, test blake3"];
    runner.emulated(&programs, &["qemu-x86_64", "-cpu", older.processor], |test| {
        test.args(["interface", "kernel", "counters", "digest"]).args(older.missing);
        test.env("BULLA_TEST_BEST_KERNEL", older.kernel).env(REQUIRE_KERNELS, older.kernel);
    });
    runner.emulated(&["bulla-ed25519, test ed25519"], &["qemu-x86_64", "-cpu", older.processor], |test| {
        test.args(["interface", "vectors"]);
        test.env("BULLA_TEST_BEST_KERNEL", older.ed25519);
    });
}

/// The Go kernels on AArch64, on big-endian s390x and on older x86-64. Each test requires the
/// kernel that its processor has.
fn go_on_emulated_processors(runner: &mut Runner<'_>) {
    let mut test = go(&runner.context.root.join("go"));
    test.args(["test", "-json", "-count=1", "-timeout=30m", "-tags=emulated", "./internal/emulated"]);
    runner.go_test("go test, emulated processors", &mut test);
}
