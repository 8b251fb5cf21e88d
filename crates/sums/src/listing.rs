//! What is in a folder: names and kinds, sorted, in one piece of memory.

use crate::folder::Folder;
use crate::kind::Kind;
use crate::source::Links;
use std::cmp::Ordering;
use std::io;

/// The content of a folder, in the order of whole paths: a folder sorts as if its name ended with a
/// `/`.
#[derive(Debug, Default)]
pub struct Listing {
    names: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: usize,
    len: u16,
    kind: Kind,
}

impl Listing {
    /// Reads a folder. `.` and `..` are left out.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn read(folder: &Folder) -> io::Result<Self> {
        let mut listing = Self::default();
        listing.fill(folder)?;
        Ok(listing)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The name of an entry.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn name(&self, index: usize) -> &[u8] {
        self.name_of(&self.entries[index])
    }

    /// The kind of an entry.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn kind(&self, index: usize) -> Kind {
        self.entries[index].kind
    }

    /// Keeps the entries that `keep` wants; it may change a kind.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &mut Kind) -> bool) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.retain_mut(|entry| {
            let name = &self.names[entry.start..entry.start + usize::from(entry.len)];
            keep(name, &mut entry.kind)
        });
        self.entries = entries;
    }

    /// Sorts the entries.
    pub fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| compare((self.name_of(a), a.kind), (self.name_of(b), b.kind)));
        self.entries = entries;
    }

    fn name_of(&self, entry: &Entry) -> &[u8] {
        &self.names[entry.start..entry.start + usize::from(entry.len)]
    }

    fn push(&mut self, name: &[u8], kind: Kind) {
        let entry = Entry { start: self.names.len(), len: name.len() as u16, kind };
        self.names.extend_from_slice(name);
        self.entries.push(entry);
    }

    #[cfg(target_os = "linux")]
    fn fill(&mut self, folder: &Folder) -> io::Result<()> {
        use rustix::fs::{FileType, RawDir};
        let Some(handle) = folder.handle() else { return Ok(()) };
        let mut buffer = Vec::with_capacity(64 << 10);
        let mut entries = RawDir::new(handle, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not tell.
                FileType::Unknown => folder.stamp(name, Links::Refuse)?.kind(),
                kind => Kind::of(kind),
            };
            self.push(name, kind);
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn fill(&mut self, folder: &Folder) -> io::Result<()> {
        let _ = Links::Refuse;
        for entry in std::fs::read_dir(crate::folder::path_from(folder.prefix()))? {
            let entry = entry?;
            self.push(entry.file_name().as_encoded_bytes(), entry.file_type()?.into());
        }
        Ok(())
    }
}

/// The order of two names in one folder: that of the paths below it.
fn compare(a: (&[u8], Kind), b: (&[u8], Kind)) -> Ordering {
    let common = a.0.len().min(b.0.len());
    let next = |(name, kind): (&[u8], Kind)| match name.get(common) {
        Some(byte) => Some(*byte),
        None => (kind == Kind::Folder).then_some(b'/'),
    };
    a.0[..common].cmp(&b.0[..common]).then_with(|| next(a).cmp(&next(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_the_paths_below_them() {
        let mut listing = Listing::default();
        let names: [(&[u8], Kind); 6] = [
            (b"a0", Kind::File),
            (b"a", Kind::Folder),
            (b"a.txt", Kind::File),
            (b"", Kind::File),
            (b"\xff", Kind::Link),
            (b"a-", Kind::Folder),
        ];
        names.into_iter().for_each(|(name, kind)| listing.push(name, kind));
        listing.sort();
        let sorted: Vec<_> = (0..listing.len()).map(|index| listing.name(index)).collect();
        assert_eq!(sorted, [&b""[..], b"a-", b"a.txt", b"a", b"a0", b"\xff"]);
    }
}
