//! The suite `c`: the C libraries as a user installs them, their headers in C and C++, and the NASM
//! kernel.

mod abi;
mod nasm;
mod places;
mod programs;
mod vectors;

use std::fs;

use bulla_devtools::install::{self, DebianTool};

use self::places::Places;
use super::runner::Runner;
use crate::install_c::{self, Name};

/// What builds and checks programs in C.
const TOOLS: [DebianTool; 5] = [
    DebianTool { program: "gcc", package: "gcc" },
    DebianTool { program: "g++", package: "g++" },
    DebianTool { program: "valgrind", package: "valgrind" },
    DebianTool { program: "cmake", package: "cmake" },
    DebianTool { program: "pkg-config", package: "pkg-config" },
];

/// The libraries are those that are shipped, but they build in half the time without optimization
/// across crates.
const PROFILE: &str = "release";

/// Half of what remains is the kernels of Ed25519, whose optimized code other suites test.
const QUICK: [&str; 1] = ["--config=profile.release.package.bulla-ed25519.opt-level=0"];

pub(super) fn run(runner: &mut Runner<'_>) {
    let context = runner.context;
    for tool in &TOOLS {
        runner.need(tool.program, |_| install::debian(tool));
    }
    let places = match Places::make(context) {
        Ok(places) => places,
        Err(error) => return runner.need("folders", |_| Err(error)),
    };
    runner.need("vectors", |context| vectors::write(context, &places.build.join("vectors.txt")));
    runner.check("bulla.h is what cbindgen writes", |context| {
        let (is, should) =
            (fs::read_to_string(install_c::header_path(context))?, install_c::header(context)?);
        anyhow::ensure!(is == should, "run `cargo xtask install-c --header`");
        Ok(())
    });
    for name in [Name::Bulla, Name::Blake3] {
        let title = format!("install lib{}", name.library().name);
        runner.build_check(&title, |context| {
            install_c::install(context, name, PROFILE, &QUICK, &places.prefix)
        });
        abi::check(runner, &places, name);
    }
    programs::run(runner, &places);
    nasm::run(runner, &places);
}
