//! Signed entries, in little memory.

use bulla_blake3::Hash;
use bulla_kms::signature::manifest::{Content, Entry};

/// The entries of a manifest without an allocation for each. A million of them with paths of 45
/// bytes take 100 MB.
#[derive(Default)]
pub(crate) struct Packed {
    /// All paths, one after another.
    paths: Vec<u8>,
    /// Where each path ends.
    ends: Vec<usize>,
    /// The digest and the size of each file. Links have none.
    files: Vec<Option<(Hash, u64)>>,
}

impl Packed {
    pub(crate) fn push(&mut self, entry: &Entry) {
        self.paths.extend_from_slice(entry.path.as_bytes());
        self.ends.push(self.paths.len());
        self.files.push(file_of(entry));
    }

    fn path(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.paths[start..self.ends[index]]
    }

    /// The place of a path; its neighbors are sorted.
    fn find(&self, path: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.path(middle).cmp(path) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// The entries of a manifest, sorted by path.
pub(crate) enum Entries<'a> {
    /// Those that somebody needs as they are.
    Whole(&'a [Entry]),
    /// Those that are only looked up.
    Packed(Packed),
}

impl Entries<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Whole(entries) => entries.len(),
            Self::Packed(packed) => packed.ends.len(),
        }
    }

    /// The place, the digest and the size of a file.
    pub(super) fn file(&self, path: &[u8]) -> Option<(usize, Hash, u64)> {
        let (index, file) = match self {
            Self::Whole(entries) => {
                let index = entries.binary_search_by(|entry| entry.path.as_bytes().cmp(path)).ok()?;
                (index, file_of(&entries[index]))
            }
            Self::Packed(packed) => packed.find(path).map(|index| (index, packed.files[index]))?,
        };
        file.map(|(digest, size)| (index, digest, size))
    }
}

fn file_of(entry: &Entry) -> Option<(Hash, u64)> {
    match entry.content {
        Content::File { digest, size } => Some((digest, size)),
        Content::Link { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_kms::signature::manifest::{LinkTarget, ManifestPath};

    #[test]
    fn packed_entries_are_found_like_whole_ones() {
        let path = |text: &str| ManifestPath::from_bytes(text.as_bytes()).unwrap();
        let names = ["a", "a/b", "a0", "aa", "b", "link", "z/y/x"];
        let entry = |(index, name): (usize, &&str)| {
            let content = match *name {
                "link" => Content::Link { target: LinkTarget::from_bytes(b"a".as_slice()).unwrap() },
                _ => Content::File { digest: bulla_blake3::hash(name.as_bytes()), size: index as u64 },
            };
            Entry { path: path(name), content }
        };
        for count in 0..=names.len() {
            let entries: Vec<Entry> = names[..count].iter().enumerate().map(entry).collect();
            let mut packed = Packed::default();
            entries.iter().for_each(|entry| packed.push(entry));
            let (whole, packed) = (Entries::Whole(&entries), Entries::Packed(packed));
            assert_eq!((whole.len(), packed.len()), (count, count));
            for name in names.iter().chain(&["", "0", "a/", "az", "zz"]) {
                let found = packed.file(name.as_bytes());
                assert_eq!(found, whole.file(name.as_bytes()), "{name}");
                let index = names[..count].iter().position(|other| other == name && *name != "link");
                assert_eq!(found.map(|(index, ..)| index), index, "{name}");
            }
        }
    }
}
