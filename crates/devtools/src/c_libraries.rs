//! `cargo xtask install-c`: builds and installs the C libraries of `crates/capi`, with headers, for
//! pkg-config and for CMake.
//!
//! `docs/decisions/0207-c-libraries.md` has the reasons for each step.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use crate::{
    Context,
    install::{self, CargoTool},
    quiet,
};
use anyhow::{Context as _, Result, ensure};

/// Writes the header `bulla.h` from the source.
const CBINDGEN: CargoTool = CargoTool { name: "cbindgen", version: "0.29.4" };

/// The system libraries that Rust's standard library needs. `rustc --print=native-static-libs`
/// names them.
const SYSTEM: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl";

/// What `cargo xtask install-c` takes.
#[derive(clap::Args)]
pub struct InstallArgs {
    /// The folder below which headers and libraries are installed, for example /usr/local
    #[arg(long, value_name = "FOLDER", required_unless_present = "header")]
    prefix: Option<PathBuf>,
    /// What to install: our own functions, or those of the official BLAKE3 library
    #[arg(long, value_enum, default_value = "bulla")]
    library: LibraryName,
    /// The profile of the build
    #[arg(long, default_value = "dist")]
    profile: String,
    /// Only write crates/capi/include/bulla.h again, from the source
    #[arg(long, conflicts_with = "prefix")]
    header: bool,
}

/// Which library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LibraryName {
    /// `libbulla`, with `bulla.h`
    Bulla,
    /// `libblake3`, with `blake3.h`: the names and the ABI of the official C library
    Blake3,
}

/// A library to install.
pub struct Library {
    /// Its name without `lib`.
    pub name: &'static str,
    feature: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The name for pkg-config.
    package: &'static str,
    /// The target for CMake.
    target: &'static str,
    description: &'static str,
}

impl LibraryName {
    /// What is installed under this name.
    pub const fn library(self) -> Library {
        match self {
            Self::Bulla => Library {
                name: "bulla",
                feature: "native",
                version: env!("CARGO_PKG_VERSION"),
                package: "bulla",
                target: "bulla::bulla",
                description: "BLAKE3, BLAKE2 and Ed25519",
            },
            Self::Blake3 => Library {
                name: "blake3",
                feature: "official",
                // That of the official library, for programs that ask pkg-config for one.
                version: "1.8.7",
                package: "libblake3",
                target: "BLAKE3::blake3",
                description: "BLAKE3 under the names of the official C library, from the project bulla",
            },
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A tool is missing, the library does not build, or a file cannot be written.
pub fn run(args: &InstallArgs) -> Result<ExitCode> {
    let context = Context::find()?;
    let Some(prefix) = &args.prefix else {
        let path = header_path(&context);
        fs::write(&path, header(&context)?).with_context(|| format!("cannot write {}", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    };
    let library = args.library.library();
    install(&context, args.library, &args.profile, &[], prefix)?;
    println!("installed lib{} {} below {}", library.name, library.version, prefix.display());
    Ok(ExitCode::SUCCESS)
}

/// The committed header.
pub fn header_path(context: &Context) -> PathBuf {
    folder(context).join("include/bulla.h")
}

/// The header that the source gives.
///
/// # Errors
/// `cbindgen` cannot be installed, or cannot read the source.
pub fn header(context: &Context) -> Result<String> {
    let program = install::cargo_tool(context, &CBINDGEN)?;
    let folder = folder(context);
    let mut command = Command::new(program);
    command.arg("--quiet").arg("--config").arg(folder.join("cbindgen.toml")).arg(&folder);
    // C has no section of that name.
    Ok(quiet(&mut command)?.replace(" * # Safety\n *\n * ", " * Preconditions: "))
}

/// The version script of a library: its exported symbols.
pub fn symbols_path(context: &Context, name: LibraryName) -> PathBuf {
    folder(context).join("packaging").join(format!("{}.map", name.library().name))
}

/// The names that a version script exports.
pub fn symbols(script: &str) -> Vec<&str> {
    let names = script.lines().filter_map(|line| line.trim().strip_suffix(';'));
    names.filter(|name| !name.contains(['}', '*', ' '])).collect()
}

fn folder(context: &Context) -> PathBuf {
    context.root.join("crates/capi")
}

/// Builds a library with this profile, and with these further arguments of cargo, and installs it
/// below `prefix`.
///
/// # Errors
/// It does not build, or a file cannot be written.
pub fn install(
    context: &Context,
    name: LibraryName,
    profile: &str,
    arguments: &[&str],
    prefix: &Path,
) -> Result<()> {
    ensure!(cfg!(target_os = "linux"), "only Linux has these steps: elsewhere, use `cargo build -p bulla-c`");
    let library = name.library();
    fs::create_dir_all(prefix).with_context(|| format!("cannot make {}", prefix.display()))?;
    let prefix = prefix.canonicalize()?;
    let (libraries, headers) = (prefix.join("lib"), prefix.join("include"));
    for folder in [&libraries.join("pkgconfig"), &libraries.join("cmake").join(library.name), &headers] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let archive = build(context, &library, profile, arguments)?;
    let script = symbols_path(context, name);
    link_shared(&library, &archive, &script, &libraries)?;
    link_static(&library, &archive, &script, &libraries)?;
    let header = format!("{}.h", library.name);
    fs::copy(folder(context).join("include").join(&header), headers.join(&header))?;
    describe(context, &library, &prefix)
}

/// Builds the archive, and keeps a copy, because the other library has the same name there.
fn build(context: &Context, library: &Library, profile: &str, arguments: &[&str]) -> Result<PathBuf> {
    let mut command = context.cargo();
    command.args(["rustc", "--quiet", "--package", "bulla-c", "--lib", "--crate-type", "staticlib"]);
    command
        .args(["--profile", profile, "--no-default-features", "--features", library.feature])
        .args(arguments);
    let status = command.status().context("cannot start cargo rustc")?;
    ensure!(status.success(), "cargo rustc: {status}");
    let folder = if profile == "dev" { "debug" } else { profile };
    let folder = context.target.join(folder);
    let copy = folder.join(format!("lib{}-c.a", library.name));
    fs::copy(folder.join("libbulla.a"), &copy).with_context(|| format!("cannot write {}", copy.display()))?;
    Ok(copy)
}

/// Links the shared library: only what the version script names is visible, and everything else
/// that is not used goes away.
fn link_shared(library: &Library, archive: &Path, script: &Path, to: &Path) -> Result<()> {
    let (base, version) = (format!("lib{}.so", library.name), library.version);
    let (name, file) = (format!("{base}.0"), format!("{base}.{version}"));
    let mut link = Command::new("cc");
    link.args(["-shared", "-o"]).arg(to.join(&file)).arg(format!("-Wl,-soname,{name}"));
    link.arg(format!("-Wl,--version-script={}", script.display()));
    link.args(["-Wl,--gc-sections", "-Wl,-z,relro,-z,now", "-Wl,-O1", "-Wl,--strip-debug"]);
    link.arg("-Wl,--whole-archive").arg(archive).arg("-Wl,--no-whole-archive").args(SYSTEM.split(' '));
    quiet(&mut link)?;
    for (from, link) in [(&file, &name), (&name, &base)] {
        let link = to.join(link);
        if link.is_symlink() {
            fs::remove_file(&link)?;
        }
        symlink(from, &link).with_context(|| format!("cannot make {}", link.display()))?;
    }
    Ok(())
}

/// Makes the static library one object in which only our functions are visible: two of them, and
/// other libraries in Rust, can be in one program.
fn link_static(library: &Library, archive: &Path, script: &Path, to: &Path) -> Result<()> {
    let script = fs::read_to_string(script)?;
    let names = symbols(&script);
    let object = archive.with_extension("o");
    let list = archive.with_extension("symbols");
    fs::write(&list, names.join("\n"))?;
    let mut link = Command::new("ld");
    link.args(["-r", "--gc-sections", "--strip-debug"]);
    for name in &names {
        link.args(["-u", name]);
    }
    quiet(link.arg("-o").arg(&object).arg(archive))?;
    let mut keep = Command::new("objcopy");
    keep.arg(format!("--keep-global-symbols={}", list.display()));
    // Rust's library brings its bitcode along. The plugins of other tools read it instead of the
    // code, and fail.
    quiet(keep.args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd"]).arg(&object))?;
    let file = to.join(format!("lib{}.a", library.name));
    if file.exists() {
        fs::remove_file(&file)?;
    }
    quiet(Command::new("ar").arg("rcsD").args([&file, &object]))?;
    Ok(())
}

/// Writes the files for pkg-config and CMake.
fn describe(context: &Context, library: &Library, prefix: &Path) -> Result<()> {
    let cmake = library.name;
    let files = [
        ("library.pc.in", format!("lib/pkgconfig/{}.pc", library.package)),
        ("config.cmake.in", format!("lib/cmake/{cmake}/{cmake}-config.cmake")),
        ("config-version.cmake.in", format!("lib/cmake/{cmake}/{cmake}-config-version.cmake")),
    ];
    for (template, file) in files {
        let template = folder(context).join("packaging").join(template);
        let mut text = fs::read_to_string(&template)?;
        for (place, value) in [
            ("@PREFIX@", prefix.display().to_string()),
            ("@NAME@", library.package.to_owned()),
            ("@DESCRIPTION@", library.description.to_owned()),
            ("@VERSION@", library.version.to_owned()),
            ("@LIBRARY@", library.name.to_owned()),
            ("@TARGET@", library.target.to_owned()),
            ("@PRIVATE@", SYSTEM.to_owned()),
        ] {
            text = text.replace(place, &value);
        }
        fs::write(prefix.join(&file), text).with_context(|| format!("cannot write {file}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_script_names_its_symbols() {
        let script = "BULLA_0.1 {\n  global:\n    one;\n    two;\n  local: *;\n};\n";
        assert_eq!(symbols(script), ["one", "two"]);
    }
}
