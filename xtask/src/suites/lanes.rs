//! The suite for other processors, which `qemu-user` emulates.

use std::{env, process::Command};

use anyhow::Result;
use bulla_devtools::{
    Context,
    install::{self, DebianFile, DebianTool},
};

use super::{
    go::go,
    kernels::{EVERY_KERNEL, REQUIRE_KERNELS},
    programs::{self, Foreign},
    runner::Runner,
};
use crate::program::Program;

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
    other_architectures(runner);
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

/// Names the kernel that the tests require to be in use.
const BEST_KERNEL: &str = "BULLA_TEST_BEST_KERNEL";

/// A kind of machine that Rust programs are built for.
struct Machine {
    target: &'static str,
    linker: DebianTool,
    emulator: &'static str,
    /// The machine's C library, on which the linker's package does not depend, and the folder above
    /// it.
    library: DebianFile,
    system: &'static str,
    processors: &'static [Processor],
}

/// A processor of the emulator.
struct Processor {
    name: &'static str,
    /// The kernel that it must choose, for BLAKE2 as for BLAKE3.
    kernel: &'static str,
    tests: Tests,
}

/// What runs on a processor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tests {
    /// Everything that is quick enough in an emulator, by the processor's own kernel and by the
    /// portable one.
    Kernels,
    /// The choice of the kernel, and the vectors that all languages share.
    Choice,
}

/// Debian's emulator knows these.
const MACHINES: [Machine; 4] = [
    Machine {
        target: "aarch64-unknown-linux-gnu",
        linker: DebianTool { program: "aarch64-linux-gnu-gcc", package: "gcc-aarch64-linux-gnu" },
        emulator: "qemu-aarch64",
        library: DebianFile { path: "/usr/aarch64-linux-gnu/lib/crt1.o", package: "libc6-dev-arm64-cross" },
        system: "/usr/aarch64-linux-gnu",
        processors: &[Processor { name: "cortex-a57", kernel: "aarch64/neon", tests: Tests::Kernels }],
    },
    // Big-endian.
    Machine {
        target: "s390x-unknown-linux-gnu",
        linker: DebianTool { program: "s390x-linux-gnu-gcc", package: "gcc-s390x-linux-gnu" },
        emulator: "qemu-s390x",
        library: DebianFile { path: "/usr/s390x-linux-gnu/lib/crt1.o", package: "libc6-dev-s390x-cross" },
        system: "/usr/s390x-linux-gnu",
        processors: &[
            Processor { name: "max", kernel: "s390x/vector", tests: Tests::Kernels },
            // Without the vector facility. The emulator runs no model of a processor that lacks it.
            Processor { name: "max,vx=off,vxeh=off", kernel: "portable", tests: Tests::Choice },
        ],
    },
    Machine {
        target: "powerpc64le-unknown-linux-gnu",
        linker: DebianTool { program: "powerpc64le-linux-gnu-gcc", package: "gcc-powerpc64le-linux-gnu" },
        emulator: "qemu-ppc64le",
        library: DebianFile {
            path: "/usr/powerpc64le-linux-gnu/lib/crt1.o",
            package: "libc6-dev-ppc64el-cross",
        },
        system: "/usr/powerpc64le-linux-gnu",
        processors: &[
            Processor { name: "power8", kernel: "powerpc64/vsx", tests: Tests::Choice },
            Processor { name: "power9", kernel: "powerpc64/vsx", tests: Tests::Kernels },
            Processor { name: "power10", kernel: "powerpc64/vsx", tests: Tests::Choice },
        ],
    },
    Machine {
        target: "riscv64gc-unknown-linux-gnu",
        linker: DebianTool { program: "riscv64-linux-gnu-gcc", package: "gcc-riscv64-linux-gnu" },
        emulator: "qemu-riscv64",
        library: DebianFile { path: "/usr/riscv64-linux-gnu/lib/crt1.o", package: "libc6-dev-riscv64-cross" },
        system: "/usr/riscv64-linux-gnu",
        processors: &[Processor { name: "rv64", kernel: "portable", tests: Tests::Choice }],
    },
];

/// The Rust libraries on other architectures: their test programs are built for each target, and
/// `qemu-user` runs them.
fn other_architectures(runner: &mut Runner<'_>) {
    // This machine's own kernels are tested by the suite of the libraries.
    let machines: Vec<_> =
        MACHINES.iter().filter(|machine| !machine.target.starts_with(env::consts::ARCH)).collect();
    let mut foreign = Vec::new();
    for machine in &machines {
        let Machine { target, linker, library, emulator, .. } = machine;
        runner.need(target, |_| install::rust_target(target));
        runner.need(linker.program, |_| install::debian(linker));
        runner.need(library.package, |_| install::debian_file(library));
        runner.need(emulator, |_| install::debian(&DebianTool { program: emulator, package: "qemu-user" }));
        foreign.push(Foreign { target, linker: linker.program });
    }
    let built = runner.build(|context| build(context, &machines, &foreign));
    for machine in machines {
        for processor in machine.processors {
            let programs = built.iter().filter(|program| program.is_for(machine.target));
            let tests = programs.filter_map(|program| Some((program, processor.tests.of(&program.name)?)));
            for (program, arguments) in tests {
                on(runner, machine, processor, program, arguments);
            }
        }
    }
}

/// Builds the programs that [`Tests::of`] runs, and no others: the unit tests of Ed25519 alone take
/// two minutes for four targets.
fn build(context: &Context, machines: &[&Machine], foreign: &[Foreign]) -> Result<Vec<Program>> {
    const BLAKE: [&str; 2] = ["--package=bulla-blake2", "--package=bulla-blake3"];
    const BLAKE_TESTS: [&str; 2] = ["--test=blake2", "--test=blake3"];
    let (kernels, choice): (Vec<_>, Vec<_>) =
        machines.iter().zip(foreign).partition(|(machine, _)| machine.runs(Tests::Kernels));
    let targets =
        |machines: Vec<(_, _)>| machines.into_iter().map(|(_, foreign)| foreign).collect::<Vec<_>>();
    let (kernels, choice) = (targets(kernels), targets(choice));
    let simd = ["--package=bulla-simd", "--lib"];
    let mut built =
        programs::build_foreign(context, &kernels, &[&BLAKE[..], &BLAKE_TESTS, &simd].concat(), 5)?;
    // With all packages, so that the libraries have the same features.
    let ed25519 = ["--package=bulla-simd", "--package=bulla-ed25519", "--test=ed25519"];
    built.extend(programs::build_foreign(context, &kernels, &[&BLAKE[..], &ed25519].concat(), 1)?);
    built.extend(programs::build_foreign(context, &choice, &[BLAKE, BLAKE_TESTS].concat(), 2)?);
    Ok(built)
}

/// Runs a test program on a processor.
fn on(
    runner: &mut Runner<'_>,
    machine: &Machine,
    processor: &Processor,
    program: &Program,
    arguments: &[&str],
) {
    let emulator = [machine.emulator, "-L", machine.system, "-cpu", processor.name];
    runner.emulated_program(program, &emulator, |test: &mut Command| {
        test.args(arguments).env(BEST_KERNEL, processor.kernel);
        if processor.tests == Tests::Kernels {
            test.env(REQUIRE_KERNELS, EVERY_KERNEL);
        }
    });
}

impl Machine {
    /// Whether one of its processors runs these.
    fn runs(&self, tests: Tests) -> bool {
        self.processors.iter().any(|processor| processor.tests == tests)
    }
}

impl Tests {
    /// The arguments for a test program, or nothing if it does not run.
    ///
    /// Left out are tests of sizes by the thousand that concern no kernel, and tests that start
    /// this program again: the machine has no loader for it.
    fn of(self, program: &str) -> Option<&'static [&'static str]> {
        match (self, program) {
            (Self::Kernels, "bulla-simd, lib bulla_simd") => Some(&[]),
            (Self::Kernels, "bulla-blake2, lib bulla_blake2" | "bulla-blake3, lib bulla_blake3") => Some(&[]),
            (Self::Kernels, "bulla-blake2, test blake2") => Some(&["--skip=the_variable_forces_a_kernel"]),
            (Self::Kernels, "bulla-blake3, test blake3") => Some(&[
                "--skip=far",
                "--skip=bao::corrupt::every",
                "--skip=at_every_length_to_20_chunks",
                "--skip=by_every_kernel",
                "--skip=of_the_naive_encoder",
                "--skip=nothing_behind_an_input_of_any_length",
                "--skip=vectors_of_every_length",
                "--skip=random_cuts",
                "--skip=every_pool_hashes_alike",
            ]),
            (Self::Kernels, "bulla-ed25519, test ed25519") => Some(&["interface", "vectors"]),
            (Self::Choice, "bulla-blake2, test blake2" | "bulla-blake3, test blake3") => {
                Some(&["the_best_kernel", "vectors", "--skip=vectors_of_every_length"])
            }
            _ => None,
        }
    }
}
