//! Compiled files: builds the libraries with kernels as a user does, and reads the functions of an
//! ELF executable, an object file, or a library of them.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use object::{
    Architecture, File, FileKind, Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _,
    RelocationTarget, SymbolKind, read::archive::ArchiveFile,
};
use serde_json::Value;

use super::kernels::LIBRARIES;

/// A function of a compiled file.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// The name in the source, without the compiler's hash.
    pub name: String,
    /// Its start: in its section for an object file, in memory for an executable.
    pub address: u64,
    /// Its machine code.
    pub code: Vec<u8>,
    /// The references that the linker will fill in: the names of their targets, by the address of
    /// the field.
    pub references: BTreeMap<u64, String>,
}

/// The functions of a compiled file.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// All functions with a name and code.
    pub functions: Vec<Function>,
    /// Their names by their addresses, if they are linked. In object files, addresses mean nothing.
    pub names: BTreeMap<u64, String>,
}

impl Image {
    /// Reads a file for x86-64.
    ///
    /// # Errors
    /// It cannot be read, is of another kind or for another machine, or has no function with a
    /// name.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let image = Self::parse(&bytes).with_context(|| path.display().to_string())?;
        ensure!(!image.functions.is_empty(), "{}: no functions; are its symbols stripped?", path.display());
        Ok(image)
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut image = Self::default();
        match FileKind::parse(bytes)? {
            FileKind::Archive => {
                for member in ArchiveFile::parse(bytes)?.members() {
                    let bytes = member?.data(bytes)?;
                    // A library contains the compiler's metadata too.
                    if matches!(FileKind::parse(bytes), Ok(FileKind::Elf64)) {
                        image.add(&File::parse(bytes)?)?;
                    }
                }
            }
            FileKind::Elf64 => image.add(&File::parse(bytes)?)?,
            kind => bail!("neither an ELF file nor a library of them, but {kind:?}"),
        }
        Ok(image)
    }

    fn add(&mut self, file: &File<'_>) -> Result<()> {
        ensure!(file.architecture() == Architecture::X86_64, "made for {:?}", file.architecture());
        for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0) {
            let section =
                file.section_by_index(symbol.section_index().context("a function in no section")?)?;
            let (address, size) = (symbol.address(), symbol.size());
            let code = section.data_range(address, size)?.context("a function outside its section")?.to_vec();
            let references = section
                .relocations()
                .filter(|(at, _)| (address..address + size).contains(at))
                .filter_map(|(at, relocation)| Some((at, target(file, relocation.target())?)))
                .collect();
            let name = demangle(symbol.name()?);
            if file.kind() != ObjectKind::Relocatable {
                self.names.insert(address, name.clone());
            }
            self.functions.push(Function { name, address, code, references });
        }
        Ok(())
    }
}

/// The target of a relocation. References within an object file lead to the section of a function,
/// which has the function's name.
fn target(file: &File<'_>, target: RelocationTarget) -> Option<String> {
    let RelocationTarget::Symbol(index) = target else { return None };
    let symbol = file.symbol_by_index(index).ok()?;
    let name = match symbol.kind() {
        SymbolKind::Section => file.section_by_index(symbol.section_index()?).ok()?.name().ok()?,
        _ => symbol.name().ok()?,
    };
    Some(demangle(name.strip_prefix(".text.").unwrap_or(name)))
}

fn demangle(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

/// The target whose code has budgets. Other targets pass arguments or save registers differently,
/// so their counts differ.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Ways in which users build a library. The compiler inlines differently in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// Cargo's own release profile: sixteen codegen units, which import small functions from each
    /// other. Linked programs with link-time optimization have the same code in all but a few
    /// places.
    Default,
    /// One codegen unit, for users who want the fastest code.
    One,
}

impl Units {
    /// A separate profile, so that two simultaneous builds do not replace each other's library.
    fn profile(self) -> (&'static str, u32) {
        match self {
            Self::Default => ("kernels", 16),
            Self::One => ("kernels-one-unit", 1),
        }
    }
}

/// Builds every library with kernels like a user's release build, for [`TARGET`] on any machine,
/// and returns their paths in the order of [`LIBRARIES`].
///
/// # Errors
/// A library does not build; on another kind of machine, perhaps because rustup has not installed
/// the target.
pub fn libraries(units: Units) -> Result<Vec<PathBuf>> {
    let (profile, count) = units.profile();
    // The cargo that started this program, so that the toolchain is the one of
    // `rust-toolchain.toml`.
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--target", TARGET, "--profile", profile])
        // All in one build, so that none waits for the last function of another.
        .args(LIBRARIES.iter().flat_map(|library| ["-p", library.package]))
        // The code that a feature enables is checked too.
        .args(["--features", "bulla-ed25519/lane-signing"])
        .args(["--config", &format!("profile.{profile}.inherits=\"release\"")])
        .args(["--config", &format!("profile.{profile}.codegen-units={count}")])
        // Cargo's default. With more, the library may contain LLVM's own form instead of machine
        // code.
        .args(["--config", &format!("profile.{profile}.lto=false")])
        .arg("--message-format=json-render-diagnostics")
        // Set, but empty: this overrides flags from the environment or a configuration, such as
        // another `target-cpu`.
        .env("CARGO_ENCODED_RUSTFLAGS", "")
        // A test runner that prints times sets it.
        .env_remove("RUSTC_BOOTSTRAP")
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo build")?;
    ensure!(
        output.status.success(),
        "cannot build the libraries for {TARGET} ({}); if the target is missing: rustup target add {TARGET}",
        output.status
    );
    let messages = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    LIBRARIES.iter().map(|library| built(library.package, &messages)).collect()
}

/// Builds all libraries like [`libraries`], and returns the path of one package's library.
///
/// # Errors
/// The errors of [`libraries`]; there is no such package among them.
pub fn library(package: &str, units: Units) -> Result<PathBuf> {
    let place = LIBRARIES.iter().position(|library| library.package == package);
    let place = place.with_context(|| format!("{package} has no kernels"))?;
    Ok(libraries(units)?.swap_remove(place))
}

/// The library of a package, from cargo's messages about its build.
fn built(package: &str, messages: &[Value]) -> Result<PathBuf> {
    messages
        .iter()
        .filter(|message| message["target"]["name"] == package.replace('-', "_"))
        .find_map(|message| message["filenames"].as_array()?.iter().find_map(rlib))
        .with_context(|| format!("cargo build names no library of {package}"))
}

fn rlib(path: &Value) -> Option<PathBuf> {
    path.as_str().filter(|path| path.ends_with(".rlib")).map(PathBuf::from)
}
