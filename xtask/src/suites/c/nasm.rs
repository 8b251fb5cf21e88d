//! The freestanding BLAKE3 in `c/nasm`: for this system, and for Windows in Wine.

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use bulla_devtools::{
    install::{self, DebianTool},
    quiet,
    wine::{self, GCC as MINGW},
};

use super::Folders;
use crate::suites::runner::Runner;

const NASM: DebianTool = DebianTool { program: "nasm", package: "nasm" };

/// How the program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    /// With the kernel.
    Kernel,
    /// With the kernel, and the C under the sanitizers of addresses and of undefined behavior.
    Sanitized,
    /// Without the kernel.
    Portable,
    /// With the kernel, as a program for Windows.
    Windows,
}

pub(super) fn run(runner: &mut Runner<'_>, folders: &Folders) {
    runner.need(NASM.program, |_| install::debian(&NASM));
    let wine = match wine::prepare(runner.context) {
        Ok(folder) => wine::environment(&folder),
        Err(error) => return runner.need("wine", |_| Err(error)),
    };
    for build in [Build::Kernel, Build::Sanitized, Build::Portable, Build::Windows] {
        let title = format!("c/nasm, {build:?}");
        match compile(folders, build) {
            Ok(program) => runner.libtest(&title, &mut started(folders, program, build, &wine)),
            Err(error) => runner.check(&title, |_| Err(error)),
        }
    }
}

fn compile(folders: &Folders, build: Build) -> Result<PathBuf> {
    let (sources, program) =
        (folders.sources.join("nasm"), folders.build.join(format!("nasm-{build:?}.exe")));
    let mut command = Command::new(if build == Build::Windows { MINGW.program } else { "gcc" });
    command.args(["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Wconversion", "-Werror"]);
    match build {
        Build::Sanitized => drop(command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"])),
        Build::Portable => drop(command.arg("-DBULLA_NASM_PORTABLE")),
        Build::Kernel | Build::Windows => {}
    }
    command
        .arg("-I")
        .arg(&sources)
        .arg(folders.sources.join("tests/nasm.c"))
        .arg(sources.join("blake3_nasm.c"));
    if build != Build::Portable {
        let format = if build == Build::Windows { "win64" } else { "elf64" };
        for source in ["nasm/blake3_avx2", "tests/registers"] {
            let source = folders.sources.join(source).with_extension("asm");
            let object = folders
                .build
                .join(format!("{}-{build:?}.o", source.file_stem().unwrap_or_default().display()));
            let mut assemble = Command::new(NASM.program);
            assemble
                .args(["-Wall", "-Werror", "-f", format, "-I"])
                .arg(&sources)
                .arg("-o")
                .arg(&object)
                .arg(source);
            quiet(&mut assemble)?;
            command.arg(object);
        }
    }
    quiet(command.arg("-o").arg(&program))?;
    Ok(program)
}

fn started(folders: &Folders, program: PathBuf, build: Build, wine: &[(&str, String)]) -> Command {
    let vectors = folders.build.join("vectors.txt");
    let kernel = if build == Build::Portable { "portable" } else { "avx2" };
    let mut command = Command::new(&program);
    if build == Build::Windows {
        command = Command::new(wine::WINE.path);
        command.arg(&program).envs(wine.iter().map(|(name, value)| (name, value)));
        // Wine's name for the root folder of this machine is the drive Z.
        command.env("BULLA_TEST_VECTORS", format!("Z:{}", vectors.display()));
    } else {
        command.env("BULLA_TEST_VECTORS", vectors);
    }
    command.env("BULLA_TEST_NASM_KERNEL", kernel);
    command
}
