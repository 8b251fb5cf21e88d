//! Functions in a compiled file: an ELF executable, an object file, or a library of them.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, bail, ensure};
use object::{
    Architecture, File, FileKind, Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _,
    RelocationTarget, SymbolKind, read::archive::ArchiveFile,
};

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
