//! Installs the tools and packages that the tests need and the machine lacks.

use std::{
    env::{self, consts::EXE_SUFFIX},
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};

use crate::{
    context::{self, Context},
    packages::missing,
    process::quiet,
};

/// A program from a Debian package.
pub struct DebianTool {
    /// The program's name.
    pub program: &'static str,
    /// The package that has it.
    pub package: &'static str,
}

/// A file from a Debian package that is not a program.
pub struct DebianFile {
    /// The file's absolute path.
    pub path: &'static str,
    /// The package that has it.
    pub package: &'static str,
}

/// A program that `cargo install` builds.
pub struct CargoTool {
    /// The crate's name, and the program's.
    pub name: &'static str,
    /// The crate's version.
    pub version: &'static str,
}

/// It checks licenses, bans, sources and advisories.
pub const CARGO_DENY: CargoTool = CargoTool { name: "cargo-deny", version: "0.20.2" };

/// A program that `go install` builds, from the module proxy.
pub struct GoTool {
    /// The last part of the package's path.
    pub name: &'static str,
    /// The package's path.
    pub package: &'static str,
    /// The module's version, without the `v`.
    pub version: &'static str,
}

/// A program from a Debian release that may be newer than this machine's. Where Debian's archive
/// cannot be reached, or no longer has this version, Go builds the program, which takes minutes.
pub struct DebianArchive {
    /// The package in the archive, and its SHA-256 digest, for each architecture by Rust's name.
    pub packages: [(&'static str, &'static str, &'static str); 2],
    /// What Go builds instead.
    pub instead: GoTool,
}

/// Holds until it is dropped that nobody else of ours installs anything: suites run beside each
/// other, and what installs does not bear that.
fn alone() -> Result<File> {
    locked(&context::cache().unwrap_or_else(env::temp_dir), "install")
}

/// Holds a lock of this name in `folder` until it is dropped.
fn locked(folder: &Path, name: &str) -> Result<File> {
    let path = folder.join(format!("{name}.lock"));
    let lock = || {
        fs::create_dir_all(folder)?;
        let file = File::create(&path)?;
        file.lock()?;
        Ok::<_, std::io::Error>(file)
    };
    lock().with_context(|| format!("cannot lock {}", path.display()))
}

/// Makes sure that `tool` is on the `PATH`.
pub fn debian(tool: &DebianTool) -> Result<()> {
    package(tool.program, tool.package, || on_path(tool.program))
}

/// Makes sure that `file` exists.
pub fn debian_file(file: &DebianFile) -> Result<()> {
    package(file.path, file.package, || Path::new(file.path).exists())
}

/// Installs a package, unless the wanted thing already exists. Only if it does not, this asks for
/// the rights of root.
fn package(wanted: &str, package: &str, is_there: impl Fn() -> bool) -> Result<()> {
    if is_there() {
        return Ok(());
    }
    let _alone = alone()?;
    if is_there() {
        return Ok(());
    }
    let hint = || missing(wanted, package);
    if !may_install() {
        return Err(anyhow!(hint()));
    }
    eprintln!("xtask: installing the Debian package {package}");
    let install = || quiet(apt()?.args(["install", "-y", "--no-install-recommends", package]));
    if install().is_err() {
        // The lists of packages may be old, or absent as in a fresh container.
        quiet(apt()?.arg("update")).with_context(hint)?;
        install().with_context(hint)?;
    }
    if is_there() { Ok(()) } else { Err(anyhow!(hint())) }
}

/// Fails with the reasons of both, so that all missing packages are named.
pub(crate) fn both(one: Result<()>, other: Result<()>) -> Result<()> {
    match (one, other) {
        (Err(one), Err(other)) => Err(anyhow!("{one:#}; {other:#}")),
        (one, other) => one.and(other),
    }
}

/// Whether this program may install Debian packages without asking for a password.
fn may_install() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| apt().is_ok_and(|mut apt| quiet(apt.arg("--version")).is_ok()))
}

/// Installs what the build of `bulla-kms` with the feature `etcd` needs: the protocol is compiled
/// from its definition.
pub fn protobuf() -> Result<()> {
    const DEFINITIONS: &str = "/usr/include/google/protobuf/descriptor.proto";
    both(
        debian(&DebianTool { program: "protoc", package: "protobuf-compiler" }),
        debian_file(&DebianFile { path: DEFINITIONS, package: "libprotobuf-dev" }),
    )
}

/// Makes sure that OpenSSL has the engine that loads modules of PKCS #11.
pub fn openssl_engine() -> Result<()> {
    let path = format!("/usr/lib/{}-linux-gnu/engines-3/pkcs11.so", env::consts::ARCH);
    package(&path, "libengine-pkcs11-openssl", || Path::new(&path).exists())
}

/// `apt-get`, through `sudo` if the user is not root.
fn apt() -> Result<Command> {
    as_root("apt-get")
}

/// `dpkg`, through `sudo` if the user is not root.
pub fn dpkg() -> Result<Command> {
    as_root("dpkg")
}

fn as_root(program: &str) -> Result<Command> {
    if !on_path(program) {
        bail!("this machine has no {program}");
    }
    let user = quiet(Command::new("id").arg("-u"))?;
    let mut command = if user.trim() == "0" {
        Command::new(program)
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", program]);
        sudo
    };
    command.env("DEBIAN_FRONTEND", "noninteractive");
    Ok(command)
}

/// Makes sure that the toolchain in use has `component`.
pub fn rust_component(component: &str) -> Result<()> {
    rustup("component", component, |installed| installed.starts_with(component))
}

/// Makes sure that the toolchain in use can compile for `target`.
pub fn rust_target(target: &str) -> Result<()> {
    rustup("target", target, |installed| installed == target)
}

fn rustup(kind: &str, name: &str, is_it: impl Fn(&str) -> bool) -> Result<()> {
    let hint = || format!("cannot get the Rust {kind} {name}");
    let _alone = alone()?;
    let installed = quiet(Command::new("rustup").args([kind, "list", "--installed"])).with_context(hint)?;
    if installed.lines().any(is_it) {
        return Ok(());
    }
    eprintln!("xtask: installing the Rust {kind} {name}");
    quiet(Command::new("rustup").args([kind, "add", name])).with_context(hint)?;
    Ok(())
}

/// Makes sure that there is a nightly toolchain, and that it has these components.
pub fn nightly(components: &[&str]) -> Result<()> {
    let hint = || format!("cannot get a nightly Rust toolchain with {}", components.join(", "));
    let _alone = alone()?;
    let toolchains = quiet(Command::new("rustup").args(["toolchain", "list"])).with_context(hint)?;
    if !toolchains.lines().any(|line| line.starts_with("nightly")) {
        eprintln!("xtask: installing a nightly toolchain");
        quiet(Command::new("rustup").args(["toolchain", "install", "nightly", "--profile", "minimal"]))
            .with_context(hint)?;
    }
    let list = ["component", "list", "--toolchain", "nightly", "--installed"];
    let installed = quiet(Command::new("rustup").args(list)).with_context(hint)?;
    for component in components {
        if !installed.lines().any(|line| line.starts_with(component)) {
            eprintln!("xtask: installing the component {component} of the nightly toolchain");
            let add = ["component", "add", "--toolchain", "nightly", component];
            quiet(Command::new("rustup").args(add)).with_context(hint)?;
        }
    }
    Ok(())
}

/// The oldest version of Node that the npm package runs on.
const NODE: u32 = 20;

/// Makes sure that Node is installed, and that `folder` has the packages of its lock file.
pub fn node_packages(folder: &Path) -> Result<()> {
    both(
        debian(&DebianTool { program: "node", package: "nodejs" }),
        debian(&DebianTool { program: "npm", package: "npm" }),
    )?;
    let version = quiet(Command::new("node").arg("--version"))?;
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|major| major.parse().ok());
    if major.is_none_or(|major: u32| major < NODE) {
        bail!("node is {}: install {NODE} or newer from https://nodejs.org/", version.trim());
    }
    let lock = folder.join("package-lock.json");
    // npm writes this file at the end; an interrupted or older installation is repeated.
    let installed = folder.join("node_modules/.package-lock.json");
    let age = |file: &Path| fs::metadata(file).and_then(|data| data.modified()).ok();
    if age(&installed).is_some_and(|done| age(&lock).is_some_and(|wanted| done >= wanted)) {
        return Ok(());
    }
    eprintln!("xtask: installing the npm packages of {}", folder.display());
    // No package of ours needs its install script, and a peer's would fetch a native addon.
    quiet(
        Command::new("npm").args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(folder),
    )?;
    Ok(())
}

/// Makes sure that there is a Python with exactly the packages of a `requirements.txt`, in a folder
/// of this name; returns the path of its program.
pub fn python_packages(context: &Context, name: &str, requirements: &Path) -> Result<PathBuf> {
    debian(&DebianTool { program: "python3", package: "python3" })?;
    let wanted = fs::read_to_string(requirements)?;
    let root = context.tools().join(name);
    let (python, stamp) = (root.join("bin/python"), root.join("requirements.txt"));
    if python.is_file() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    // Debian has the module for environments in a separate package.
    let has_venv = || quiet(Command::new("python3").args(["-c", "import ensurepip, venv"])).is_ok();
    package("venv of Python", "python3-venv", has_venv)?;
    let _alone = alone()?;
    eprintln!("xtask: installing the Python packages of {}", requirements.display());
    quiet(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&root))?;
    quiet(
        Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements),
    )?;
    fs::write(&stamp, wanted)?;
    Ok(python)
}

/// The sources of a Python package, which have its tests.
pub struct PythonSources {
    /// The package with its version, as pip takes it.
    pub package: &'static str,
    /// The name of the archive.
    pub file: &'static str,
    /// Its SHA-256.
    pub digest: &'static str,
}

/// Makes sure that the sources are in the tools folder. Returns the path of the archive. `python`
/// has pip.
pub fn python_sources(context: &Context, python: &Path, sources: &PythonSources) -> Result<PathBuf> {
    let PythonSources { package, file, digest } = sources;
    let archive = context.tools().join(file);
    let _alone = alone()?;
    if !archive.is_file() {
        eprintln!("xtask: downloading the sources of {package} (once)");
        let partial = context.tools().join("python-sources.partial");
        // What builds the package comes built: pip asks it for the package's metadata.
        let name = package.split("==").next().unwrap_or(package);
        let download = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name];
        quiet(Command::new(python).args(download).args([package, "--dest"]).arg(&partial))?;
        fs::rename(partial.join(file), &archive)?;
        fs::remove_dir_all(&partial)?;
    }
    let found = quiet(Command::new("sha256sum").arg(&archive))?;
    ensure!(found.starts_with(digest), "{file} is another file than the one that was tested");
    Ok(archive)
}

/// Makes sure that `tool` is in the tools folder, in exactly its version. Returns the path of its
/// program.
pub fn cargo_tool(context: &Context, tool: &CargoTool) -> Result<PathBuf> {
    let root = context.tools().join(format!("{}-{}", tool.name, tool.version));
    let program = root.join("bin").join(format!("{}{EXE_SUFFIX}", tool.name));
    if program.is_file() {
        return Ok(program);
    }
    // Other installations may go on meanwhile, because this one takes minutes.
    let _only = locked(&context.tools(), tool.name)?;
    if program.is_file() {
        return Ok(program);
    }
    eprintln!("xtask: building {} {} (once)", tool.name, tool.version);
    // Cargo installs the program atomically, so it is either complete or absent. The build folder
    // belongs to this clone.
    let build = context.target.join("tools-build");
    let status = context
        .cargo()
        .args(["install", "--quiet", "--locked", tool.name, "--version", tool.version])
        .arg("--root")
        .arg(&root)
        .arg("--target-dir")
        .arg(&build)
        .envs(QUICK_BUILD)
        .status()
        .context("cannot start cargo install")?;
    if !status.success() {
        bail!("cannot install {} {}: cargo install: {status}", tool.name, tool.version);
    }
    // Remove half a gigabyte that is not needed again.
    fs::remove_dir_all(&build)?;
    Ok(program)
}

/// Makes sure that `tool` is in the tools folder, in exactly its version. Returns the path of its
/// program.
pub fn go_tool(context: &Context, tool: &GoTool) -> Result<PathBuf> {
    let folder = context.tools().join(format!("{}-{}", tool.name, tool.version));
    let program = folder.join(format!("{}{EXE_SUFFIX}", tool.name));
    let _alone = alone()?;
    if !program.is_file() {
        eprintln!("xtask: building {} {} (once)", tool.name, tool.version);
        let package = format!("{}@v{}", tool.package, tool.version);
        quiet(Command::new("go").args(["install", &package]).env("GOBIN", &folder))
            .with_context(|| format!("cannot install {package} with Go"))?;
    }
    Ok(program)
}

/// Makes sure that `tool` is in the tools folder. Returns the path of its program.
pub fn debian_archive(context: &Context, tool: &DebianArchive) -> Result<PathBuf> {
    let packages = tool.packages.iter().filter(|(architecture, ..)| *architecture == env::consts::ARCH);
    for (_, package, digest) in packages {
        match unpacked(context, tool.instead.name, package, digest) {
            Ok(program) => return Ok(program),
            Err(error) => eprintln!("xtask: {package} cannot be had from Debian: {error:#}"),
        }
    }
    go_tool(context, &tool.instead)
}

/// The program `name` of a package in Debian's archive, without installing the package.
fn unpacked(context: &Context, name: &str, package: &str, digest: &str) -> Result<PathBuf> {
    let file = package.rsplit('/').next().unwrap_or_default();
    let folder = context.tools().join(file.trim_end_matches(".deb"));
    let program = folder.join("usr/bin").join(name);
    debian(&DebianTool { program: "curl", package: "curl" })?;
    let _alone = alone()?;
    if program.is_file() {
        return Ok(program);
    }
    eprintln!("xtask: downloading {file} (once)");
    let (archive, partial) = (context.tools().join(file), folder.with_extension("partial"));
    let url = format!("http://deb.debian.org/debian/{package}");
    quiet(
        Command::new("curl")
            .args(["--fail", "--silent", "--show-error", "--location", "--output"])
            .arg(&archive)
            .arg(url),
    )?;
    let found = quiet(Command::new("sha256sum").arg(&archive))?;
    ensure!(found.starts_with(digest), "{file} is another file than the one that was tested");
    quiet(Command::new("dpkg-deb").arg("--extract").args([&archive, &partial]))?;
    fs::remove_file(&archive)?;
    fs::rename(&partial, &folder)?;
    Ok(program)
}

/// A tool runs for seconds, and is built from scratch: its build must be fast, not its code.
const QUICK_BUILD: [(&str, &str); 4] = [
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256"),
    ("CARGO_PROFILE_RELEASE_DEBUG", "0"),
];

/// Whether the `PATH` has a file of this name.
pub fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(format!("{program}{EXE_SUFFIX}")).is_file())
}
