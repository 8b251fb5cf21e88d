//! The content of a file: one object file, the slices of a fat Mach-O, or the members of an
//! archive.

use std::ops::Range;

use object::{
    FileKind,
    read::{
        archive::ArchiveFile,
        macho::{FatArch as _, MachOFatFile32, MachOFatFile64},
    },
};

use crate::{
    Error,
    source::{Source, Tables},
};

/// Archives inside archives are opened this deep.
const MAX_DEPTH: usize = 4;

/// The most members of an archive. An archive that claims more is an attack.
const MAX_MEMBERS: usize = 1 << 20;

/// An object file inside a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The names of the archive members that contain it; empty if the file itself is the object
    /// file.
    pub(crate) name: String,
    /// Its position in the file, in bytes.
    pub(crate) range: Range<u64>,
}

/// The content of a file.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) parts: Vec<Part>,
    /// Archive members that are not object files, with the reason.
    pub(crate) skipped: Vec<String>,
}

/// Finds the object files in `source`.
///
/// # Errors
/// It cannot be read, or is not a file of a known kind.
pub(crate) fn open(source: &dyn Source, limit: u64) -> Result<Contents, Error> {
    if source.is_empty() {
        return Err(Error::Format("the file is empty".to_owned()));
    }
    let mut contents = Contents::default();
    let whole = Part { name: String::new(), range: 0..source.len() };
    add(source, whole, limit, 0, &mut contents)?;
    Ok(contents)
}

fn add(source: &dyn Source, part: Part, limit: u64, depth: usize, into: &mut Contents) -> Result<(), Error> {
    let tables = Tables::new(source, part.range.clone(), limit);
    let wrap = |error: object::read::Error| limited(&tables, &error);
    match kind(source, &part.range)? {
        Kind::Archive if depth == MAX_DEPTH => {
            Err(Error::Malformed(format!("archives nest deeper than {MAX_DEPTH}")))
        }
        Kind::Archive => {
            let archive = ArchiveFile::parse(&tables).map_err(wrap)?;
            if archive.is_thin() {
                let what = "a thin archive: its members are files of their own, so name those";
                return Err(Error::Format(what.to_owned()));
            }
            for member in archive.members() {
                let member = member.map_err(wrap)?;
                add_member(source, &part, &member, limit, depth, into)?;
            }
            Ok(())
        }
        Kind::Fat32 => {
            let fat = MachOFatFile32::parse(&tables).map_err(wrap)?;
            fat.arches()
                .iter()
                .try_for_each(|arch| add_slice(source, &part, arch.file_range(), limit, depth, into))
        }
        Kind::Fat64 => {
            let fat = MachOFatFile64::parse(&tables).map_err(wrap)?;
            fat.arches()
                .iter()
                .try_for_each(|arch| add_slice(source, &part, arch.file_range(), limit, depth, into))
        }
        Kind::Object => {
            into.parts.push(part);
            Ok(())
        }
        Kind::Other(what) => Err(Error::Format(what)),
        Kind::WebAssembly => {
            Err(Error::Architecture("WebAssembly: the engine that runs it makes the machine code".to_owned()))
        }
    }
}

fn add_member(
    source: &dyn Source,
    archive: &Part,
    member: &object::read::archive::ArchiveMember<'_>,
    limit: u64,
    depth: usize,
    into: &mut Contents,
) -> Result<(), Error> {
    let own = String::from_utf8_lossy(member.name());
    let name = if archive.name.is_empty() { own.into_owned() } else { format!("{}/{own}", archive.name) };
    if into.parts.len() + into.skipped.len() >= MAX_MEMBERS {
        return Err(Error::Malformed(format!("an archive of more than {MAX_MEMBERS} members")));
    }
    let part = Part { range: within(&archive.range, member.file_range())?, name: name.clone() };
    match add(source, part, limit, depth + 1, into) {
        // An archive may contain other files too, such as the compiler's metadata.
        Err(Error::Format(what) | Error::Architecture(what)) => {
            into.skipped.push(format!("{name}: {what}"));
            Ok(())
        }
        other => other,
    }
}

fn add_slice(
    source: &dyn Source,
    fat: &Part,
    slice: (u64, u64),
    limit: u64,
    depth: usize,
    into: &mut Contents,
) -> Result<(), Error> {
    if depth == MAX_DEPTH {
        return Err(Error::Malformed(format!("fat files nest deeper than {MAX_DEPTH}")));
    }
    let part = Part { name: fat.name.clone(), range: within(&fat.range, slice)? };
    add(source, part, limit, depth + 1, into)
}

/// The range of `(offset, size)` inside `outer`.
fn within(outer: &Range<u64>, (offset, size): (u64, u64)) -> Result<Range<u64>, Error> {
    let start = outer.start.checked_add(offset);
    let end = start.and_then(|start| start.checked_add(size));
    match (start, end) {
        (Some(start), Some(end)) if end <= outer.end => Ok(start..end),
        _ => Err(Error::Malformed("a part of it lies beyond its end".to_owned())),
    }
}

enum Kind {
    Object,
    Archive,
    Fat32,
    Fat64,
    WebAssembly,
    Other(String),
}

/// The kind, by the first bytes. Compilers' intermediate forms get their own kind: to users, they
/// look like a broken build.
fn kind(source: &dyn Source, range: &Range<u64>) -> Result<Kind, Error> {
    let mut head = vec![0; (range.end - range.start).min(64) as usize];
    source.read_exact_at(&mut head, range.start)?;
    if head.starts_with(b"BC\xc0\xde") || head.starts_with(b"\xde\xc0\x17\x0b") {
        return Ok(Kind::Other("LLVM bitcode: machine code is made when it is linked".to_owned()));
    }
    if head.starts_with(b"\0asm") {
        return Ok(Kind::WebAssembly);
    }
    let tables = Tables::new(source, range.clone(), 1 << 20);
    Ok(match FileKind::parse(&tables) {
        Ok(FileKind::Archive) => Kind::Archive,
        Ok(FileKind::MachOFat32) => Kind::Fat32,
        Ok(FileKind::MachOFat64) => Kind::Fat64,
        Ok(FileKind::CoffImport) => Kind::Other("a COFF import: it has no code".to_owned()),
        Ok(FileKind::DyldCache) => Kind::Other("a dyld shared cache: extract the libraries first".to_owned()),
        Ok(_) => Kind::Object,
        Err(_) => Kind::Other("its first bytes are those of no format that is read here".to_owned()),
    })
}

/// The reader's error, or the error of the limit that caused it.
pub(crate) fn limited(tables: &Tables<'_>, error: &object::read::Error) -> Error {
    if tables.exceeded() { too_much() } else { Error::Malformed(error.to_string()) }
}

/// The error for tables that need too much memory.
pub(crate) fn too_much() -> Error {
    Error::Limit("its tables of headers, symbols and names need more memory than is granted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1 << 20;

    /// An archive with one member of even length.
    fn archive(member: &[u8]) -> Vec<u8> {
        let length = member.len();
        let header = format!("!<arch>\n{:<16}{:<12}{:<6}{:<6}{:<8}{length:<10}`\n", "m/", 0, 0, 0, 644);
        [header.as_bytes(), member].concat()
    }

    /// A fat file with one slice at `(offset, size)`, and nothing behind its header.
    fn fat(offset: u32, size: u32) -> Vec<u8> {
        [0xcafe_babe, 1, 7, 3, offset, size, 0].into_iter().flat_map(u32::to_be_bytes).collect()
    }

    fn malformed(bytes: &[u8]) -> String {
        match open(&bytes, LIMIT) {
            Err(Error::Malformed(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn archives_nest_four_deep_and_no_deeper() {
        let four = (0..4).fold(b"no object file".to_vec(), |inner, _| archive(&inner));
        let contents = open(&&four[..], LIMIT).expect("four archives");
        assert!(contents.skipped[0].starts_with("m/m/m/m: "), "{contents:?}");
        assert_eq!(malformed(&archive(&four)), "archives nest deeper than 4");
    }

    #[test]
    fn a_fat_file_that_is_its_own_slice_is_malformed() {
        assert_eq!(malformed(&fat(0, 28)), "fat files nest deeper than 4");
    }

    #[test]
    fn a_slice_beyond_the_end_is_malformed() {
        for (offset, size) in [(0, 29), (28, 1), (29, 0), (u32::MAX, u32::MAX)] {
            assert_eq!(malformed(&fat(offset, size)), "a part of it lies beyond its end");
        }
    }

    #[test]
    fn members_are_counted_together_whether_they_are_object_files_or_not() {
        let bytes = &archive(b"no object file")[..];
        let whole = Part { name: String::new(), range: 0..bytes.len() as u64 };
        let mut contents = Contents { parts: vec![whole.clone(); MAX_MEMBERS - 1], skipped: Vec::new() };
        add(&bytes, whole.clone(), LIMIT, 0, &mut contents).expect("the last member that there may be");
        assert_eq!((contents.parts.len(), contents.skipped.len()), (MAX_MEMBERS - 1, 1));
        assert!(matches!(add(&bytes, whole, LIMIT, 0, &mut contents), Err(Error::Malformed(_))));
    }
}
