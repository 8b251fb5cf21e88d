//! The programs in `c/`: built and run in several ways.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, quiet};

use super::Folders;
use crate::suites::runner::Runner;

/// The environment variables that force a kernel.
const FORCE: [&str; 3] =
    ["BULLA_BLAKE3_FORCE_KERNEL", "BULLA_BLAKE2_FORCE_KERNEL", "BULLA_ED25519_FORCE_KERNEL"];

/// Every warning that both compilers agree on is an error.
const WARNINGS: [&str; 7] = ["-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"];

/// A test in C or C++.
struct Test {
    source: &'static str,
    /// The libraries that it uses.
    libraries: &'static [&'static str],
}

const TESTS: [Test; 7] = [
    Test { source: "blake3.c", libraries: &["bulla"] },
    Test { source: "blake2.c", libraries: &["bulla"] },
    Test { source: "ed25519.c", libraries: &["bulla"] },
    Test { source: "official.c", libraries: &["blake3"] },
    Test { source: "threads.c", libraries: &["blake3"] },
    Test { source: "fork.c", libraries: &["blake3", "bulla"] },
    Test { source: "header.cpp", libraries: &["blake3", "bulla"] },
];

/// How a test is built and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// With the shared libraries.
    Shared,
    /// With the static libraries, under the sanitizers of addresses and of undefined behavior.
    Sanitized,
    /// With the shared libraries and the portable kernels, in valgrind.
    Valgrind,
}

pub(super) fn run(runner: &mut Runner<'_>, folders: &Folders) {
    for way in [Way::Shared, Way::Sanitized, Way::Valgrind] {
        for test in &TESTS {
            let title = format!("{} {way:?}", test.source);
            match build(folders, test, way) {
                Ok(program) => runner.libtest(&title, &mut started(folders, &program, way)),
                Err(error) => runner.check(&title, |_| Err(error)),
            }
        }
    }
    runner.check("a kernel that is not there is an error, never an abort", |_| no_kernel(folders));
    replaced(runner, folders);
    runner.check("the examples, by pkg-config", |_| examples(folders));
    runner.check("a project, by CMake", |_| cmake(folders));
}

fn build(folders: &Folders, test: &Test, way: Way) -> Result<PathBuf> {
    let is_cpp = test.source.ends_with(".cpp");
    let program = folders.build.join(format!("{}-{way:?}", test.source));
    let mut command = Command::new(if is_cpp { "g++" } else { "gcc" });
    command.arg(if is_cpp { "-std=c++17" } else { "-std=c11" }).args(WARNINGS);
    command.arg("-I").arg(folders.prefix.join("include"));
    command.arg(folders.sources.join("tests").join(test.source));
    if way == Way::Sanitized {
        command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        command.args(test.libraries.iter().map(|name| folders.prefix.join(format!("lib/lib{name}.a"))));
        command.args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]);
    } else {
        command.arg("-L").arg(folders.prefix.join("lib"));
        command.args(test.libraries.iter().map(|name| format!("-l{name}")));
    }
    quiet(command.arg("-o").arg(&program))?;
    Ok(program)
}

fn started(folders: &Folders, program: &Path, way: Way) -> Command {
    let mut command = match way {
        Way::Valgrind => {
            let mut command = Command::new("valgrind");
            command.args([
                "--quiet",
                "--error-exitcode=9",
                "--leak-check=full",
                "--errors-for-leak-kinds=definite",
                "--show-leak-kinds=definite",
            ]);
            command.arg(program).envs(FORCE.map(|variable| (variable, "portable")));
            command
        }
        Way::Shared | Way::Sanitized => Command::new(program),
    };
    command.current_dir(&folders.build).env("BULLA_TEST_VECTORS", folders.build.join("vectors.txt"));
    command.env("LD_LIBRARY_PATH", folders.prefix.join("lib"));
    command
}

/// Under a variable that names no kernel, the functions of `libbulla` say so, and `libblake3`,
/// which cannot, uses its best one.
fn no_kernel(folders: &Folders) -> Result<()> {
    let test = Test { source: "no_kernel.c", libraries: &["bulla", "blake3"] };
    let mut command = started(folders, &build(folders, &test, Way::Shared)?, Way::Shared);
    quiet(command.envs(FORCE.map(|variable| (variable, "abacus"))))?;
    Ok(())
}

/// A program that was linked with the official library runs with ours, which the loader finds
/// first.
fn replaced(runner: &mut Runner<'_>, folders: &Folders) {
    let program = folders.build.join("official-linked");
    let built = official(runner.context, folders).and_then(|headers| {
        let mut command = Command::new("gcc");
        command.args(["-std=c11", "-O1", "-I"]).arg(headers).arg(folders.sources.join("tests/official.c"));
        command.arg("-L").arg(&folders.official).args(["-lblake3", "-o"]).arg(&program);
        quiet(&mut command)
    });
    if let Err(error) = built {
        return runner.check("a program of the official library", |_| Err(error));
    }
    for folder in [&folders.official, &folders.prefix.join("lib")] {
        let mut command = started(folders, &program, Way::Shared);
        command.env("LD_LIBRARY_PATH", folder);
        runner
            .libtest(&format!("a program of the official library, with {}", folder.display()), &mut command);
        runner.check("the loader took that library", |_| {
            let found = quiet(Command::new("ldd").arg(&program).env("LD_LIBRARY_PATH", folder))?;
            let wanted = folder.join("libblake3.so.0").display().to_string();
            ensure!(found.contains(&wanted), "it found {found}");
            Ok(())
        });
    }
}

/// Builds the official shared library, with its assembly, from the sources in its crate. Returns
/// the folder of its header.
fn official(context: &Context, folders: &Folders) -> Result<PathBuf> {
    let metadata = quiet(context.cargo().args(["metadata", "--format-version=1", "--locked"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let package = packages.iter().find(|package| package["name"] == "blake3").context("no crate blake3")?;
    let manifest = package["manifest_path"].as_str().context("no manifest")?;
    let sources = Path::new(manifest).with_file_name("c");
    let mut command = Command::new("gcc");
    command.args(["-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libblake3.so.0", "-o"]);
    command.arg(folders.official.join("libblake3.so.0"));
    let c = ["blake3.c", "blake3_dispatch.c", "blake3_portable.c"];
    let assembly = ["sse2", "sse41", "avx2", "avx512"].map(|set| format!("blake3_{set}_x86-64_unix.S"));
    command.args(c.iter().map(|name| sources.join(name))).args(assembly.map(|name| sources.join(name)));
    quiet(&mut command)?;
    let link = folders.official.join("libblake3.so");
    std::os::unix::fs::symlink("libblake3.so.0", &link)
        .with_context(|| format!("cannot make {}", link.display()))?;
    Ok(sources)
}

/// Builds both examples as their comments say, and compares what they print.
fn examples(folders: &Folders) -> Result<()> {
    let mut printed = Vec::new();
    let input = folders.sources.join("examples/moved.c");
    for (name, package) in [("hash_file", "bulla"), ("moved", "libblake3")] {
        let mut ask = Command::new("pkg-config");
        ask.args(["--cflags", "--libs", package])
            .env("PKG_CONFIG_PATH", folders.prefix.join("lib/pkgconfig"));
        let options = quiet(&mut ask)?;
        let program = folders.build.join(name);
        let mut command = Command::new("gcc");
        command.arg(folders.sources.join(format!("examples/{name}.c"))).args(options.split_whitespace());
        quiet(command.arg("-o").arg(&program))?;
        let mut run = Command::new(&program);
        run.env("LD_LIBRARY_PATH", folders.prefix.join("lib"));
        let output = if name == "moved" {
            run.stdin(fs::File::open(&input)?).output()?
        } else {
            run.arg(&input).output()?
        };
        ensure!(output.status.success(), "{name}: {}", output.status);
        printed
            .push(String::from_utf8(output.stdout)?.split_whitespace().next().unwrap_or_default().to_owned());
    }
    ensure!(printed[0].len() == 64 && printed[0] == printed[1], "they print {printed:?}");
    Ok(())
}

/// Builds a project that finds both packages, and runs its program.
fn cmake(folders: &Folders) -> Result<()> {
    let build = folders.build.join("cmake");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(folders.sources.join("tests/cmake")).arg("-B").arg(&build);
    quiet(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", folders.prefix.display())))?;
    quiet(Command::new("cmake").arg("--build").arg(&build))?;
    for program in ["shared", "static"] {
        quiet(&mut started(folders, &build.join(program), Way::Shared))?;
    }
    Ok(())
}
