//! The suite `c`: the C libraries as a user installs them, their headers in C and C++, and the NASM
//! kernel.

mod abi;
mod nasm;
mod programs;
mod vectors;

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{
    Context,
    c_libraries::{self, LibraryName},
    install::{self, DebianTool},
};

use super::runner::Runner;

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
    let folders = match Folders::make(context) {
        Ok(folders) => folders,
        Err(error) => return runner.need("folders", |_| Err(error)),
    };
    runner.need("vectors", |context| vectors::write(context, &folders.build.join("vectors.txt")));
    runner.check("bulla.h is what cbindgen writes", |context| {
        let (is, should) =
            (fs::read_to_string(c_libraries::header_path(context))?, c_libraries::header(context)?);
        ensure!(is == should, "run `cargo xtask install-c --header`");
        Ok(())
    });
    for name in [LibraryName::Bulla, LibraryName::Blake3] {
        let title = format!("install lib{}", name.library().name);
        runner.build_check(&title, |context| {
            c_libraries::install(context, name, PROFILE, &QUICK, &folders.prefix)
        });
        abi::check(runner, &folders, name);
    }
    programs::run(runner, &folders);
    if cfg!(target_arch = "x86_64") {
        nasm::run(runner, &folders);
    }
}

/// The folders of this suite.
struct Folders {
    /// The sources of the tests.
    sources: PathBuf,
    /// Where programs and results go.
    build: PathBuf,
    /// Where the libraries are installed.
    prefix: PathBuf,
    /// The official library, built from the sources in its crate.
    official: PathBuf,
}

impl Folders {
    /// Empty folders.
    fn make(context: &Context) -> Result<Self> {
        let build = context.target.join("c");
        if build.exists() {
            fs::remove_dir_all(&build)?;
        }
        let (prefix, official) = (build.join("prefix"), build.join("official"));
        fs::create_dir_all(&official).with_context(|| format!("cannot make {}", official.display()))?;
        Ok(Self { sources: context.root.join("c"), build, prefix, official })
    }
}
