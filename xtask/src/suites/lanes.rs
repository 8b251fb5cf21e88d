//! The suite of processors that the machine at hand is not, emulated by `qemu-user`.

use super::{go::go, runner::Runner};
use crate::install::{self, DebianTool};

pub(super) fn run(runner: &mut Runner<'_>) {
    for program in ["qemu-aarch64", "qemu-s390x", "qemu-x86_64"] {
        runner.need(program, |_| install::debian(&DebianTool { program, package: "qemu-user" }));
    }
    go_on_emulated_processors(runner);
}

/// The Go kernels on AArch64, on big-endian s390x and on older x86-64. Each test requires the kernel that its processor has.
fn go_on_emulated_processors(runner: &mut Runner<'_>) {
    let mut test = go(&runner.context.root.join("go"));
    test.args(["test", "-json", "-count=1", "-timeout=30m", "-tags=emulated", "./internal/emulated"]);
    runner.go_test("go test, emulated processors", &mut test);
}
