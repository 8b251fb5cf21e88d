//! One object file: the places of its code, and its symbols.

use std::ops::Range;

use object::{
    Architecture, BinaryFormat, File, Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _,
    SectionFlags, SectionKind, SymbolKind, elf,
};

use crate::{
    Arch, Error,
    container::{limited, too_much},
    source::Tables,
};

/// An object file as it is audited. Names borrow from its tables.
pub(crate) struct Image<'t> {
    pub(crate) arch: Arch,
    pub(crate) format: &'static str,
    /// The parts with code, in the order of the file.
    pub(crate) code: Vec<Region>,
    /// The other loaded parts, with text and constants.
    pub(crate) data: Vec<Range<u64>>,
    /// The symbols of places in the code, sorted by region and offset.
    pub(crate) symbols: Vec<Symbol<'t>>,
    /// The kind of symbol table that is left.
    pub(crate) names: Names,
}

/// The symbols that a file still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Names {
    /// No symbols that name code.
    None,
    /// Only symbols for dynamic linking: a function that only its own library calls has no name.
    Dynamic,
    /// The full table.
    All,
}

/// A part with code, most often a section.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// The address of its first byte when loaded; 0 in an object file.
    pub(crate) address: u64,
    /// The position of its bytes in the source.
    pub(crate) range: Range<u64>,
}

/// The kind of thing that a symbol names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Named {
    /// A function.
    Function,
    /// Data between code; it must not be decoded.
    Data,
    /// A place: assembly does not say whether a name is a function or a table.
    Label,
}

/// A name of a place in the code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'t> {
    /// The index of its region.
    pub(crate) region: u32,
    /// The kind of thing that it names.
    pub(crate) named: Named,
    /// Bytes from the start of the region.
    pub(crate) offset: u64,
    /// Its size in bytes; 0 if the file does not state it.
    pub(crate) size: u64,
    /// The name as in the file.
    pub(crate) name: &'t str,
}

impl<'t> Image<'t> {
    /// Reads the headers and symbols of the object file in `tables`, which is at `part` of the
    /// source.
    pub(crate) fn read(tables: &'t Tables<'_>, part: &Range<u64>) -> Result<Self, Error> {
        let file = File::parse(tables).map_err(|error| limited(tables, &error))?;
        let arch = match file.architecture() {
            Architecture::X86_64 => Arch::X86_64,
            Architecture::Aarch64 if file.is_little_endian() => Arch::Aarch64,
            other => return Err(Error::Architecture(format!("{other:?}"))),
        };
        let mut image = Self {
            arch,
            format: format_name(file.format()),
            code: Vec::new(),
            data: Vec::new(),
            symbols: Vec::new(),
            names: Names::None,
        };
        let regions = image.add_sections(&file, part)?;
        if image.code.is_empty() {
            image.add_segments(&file, part);
        }
        image.add_symbols(&file, tables, &regions)?;
        Ok(image)
    }

    /// Adds the sections, and returns the region of each section with code.
    fn add_sections(
        &mut self,
        file: &File<'t, &'t Tables<'_>>,
        part: &Range<u64>,
    ) -> Result<Vec<Option<u32>>, Error> {
        let mut regions = Vec::new();
        for section in file.sections() {
            let Some((offset, size)) = section.file_range() else { continue };
            let range = file_range(part, offset, size)?;
            if range.is_empty() {
                continue;
            }
            if is_code(section.flags(), section.kind()) {
                let index = section.index().0;
                regions.resize(regions.len().max(index + 1), None);
                regions[index] = Some(self.code.len() as u32);
                self.code.push(Region { address: section.address(), range });
            } else if is_loaded(section.kind()) {
                self.data.push(range);
            }
        }
        Ok(regions)
    }

    /// Adds the segments, which the system loads: a linked file may have lost its sections.
    fn add_segments(&mut self, file: &File<'t, &'t Tables<'_>>, part: &Range<u64>) {
        for segment in file.segments() {
            let (offset, size) = segment.file_range();
            let Ok(range) = file_range(part, offset, size) else { continue };
            if segment.permissions().executable() && !range.is_empty() {
                self.code.push(Region { address: segment.address(), range });
            }
        }
    }

    fn add_symbols(
        &mut self,
        file: &File<'t, &'t Tables<'_>>,
        tables: &Tables<'_>,
        regions: &[Option<u32>],
    ) -> Result<(), Error> {
        file.symbols().for_each(|symbol| self.add_symbol(&symbol, regions));
        self.names = Names::All;
        if self.symbols.is_empty() {
            file.dynamic_symbols().for_each(|symbol| self.add_symbol(&symbol, regions));
            self.names = if self.symbols.is_empty() { Names::None } else { Names::Dynamic };
        }
        if tables.exceeded() {
            return Err(too_much());
        }
        // If a place has several names, one with a leading underscore is most often the platform's
        // form of another.
        let is_form =
            |name: &str| name.starts_with('_') && !name.starts_with("_Z") && !name.starts_with("_R");
        let key = |symbol: &Symbol<'_>| (symbol.region, symbol.offset, symbol.named, is_form(symbol.name));
        self.symbols.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.name.cmp(b.name)));
        Ok(())
    }

    fn add_symbol(&mut self, symbol: &object::Symbol<'t, '_, &'t Tables<'_>>, regions: &[Option<u32>]) {
        let named = match symbol.kind() {
            SymbolKind::Text => Named::Function,
            SymbolKind::Data => Named::Data,
            SymbolKind::Label | SymbolKind::Unknown => Named::Label,
            _ => return,
        };
        let region = symbol.section_index().and_then(|index| *regions.get(index.0)?);
        let (Some(region), Ok(name)) = (region, symbol.name()) else { return };
        let place = &self.code[region as usize];
        let Some(offset) = symbol.address().checked_sub(place.address) else { return };
        if !name.is_empty() && offset < place.range.end - place.range.start {
            self.symbols.push(Symbol { region, named, offset, size: symbol.size(), name });
        }
    }
}

fn is_code(flags: SectionFlags, kind: SectionKind) -> bool {
    match flags {
        // As in disassemblers, the flag decides, not the section's name.
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(elf::SHF_EXECINSTR),
        _ => kind == SectionKind::Text,
    }
}

fn is_loaded(kind: SectionKind) -> bool {
    matches!(
        kind,
        SectionKind::Data
            | SectionKind::ReadOnlyData
            | SectionKind::ReadOnlyDataWithRel
            | SectionKind::ReadOnlyString
    )
}

fn file_range(part: &Range<u64>, offset: u64, size: u64) -> Result<Range<u64>, Error> {
    let from = part.start.checked_add(offset);
    let to = from.and_then(|from| from.checked_add(size));
    match (from, to) {
        (Some(from), Some(to)) if to <= part.end => Ok(from..to),
        _ => Err(Error::Malformed("a section lies beyond the end of the file".to_owned())),
    }
}

fn format_name(format: BinaryFormat) -> &'static str {
    match format {
        BinaryFormat::Elf => "ELF",
        BinaryFormat::MachO => "Mach-O",
        BinaryFormat::Pe => "PE",
        BinaryFormat::Coff => "COFF",
        _ => "other",
    }
}
