//! The files that a folder had when it was last signed, and no longer has.

use bulla_kms::signature::manifest::ManifestPath;

/// How many paths are kept, to be named.
const NAMED: usize = 10;

/// The paths that an older list has and the new one has not.
#[derive(Default)]
pub(crate) struct Gone {
    pub(crate) count: u64,
    /// The first of them.
    pub(crate) first: Vec<ManifestPath>,
}

/// An older list, compared with a new one while that is made. Both are sorted, so neither is kept.
pub(crate) struct Earlier {
    paths: Box<dyn Iterator<Item = ManifestPath> + Send>,
    next: Option<ManifestPath>,
    gone: Gone,
}

impl Earlier {
    /// The paths of the older list, sorted.
    pub(crate) fn new(paths: impl Iterator<Item = ManifestPath> + Send + 'static) -> Self {
        let mut earlier = Self { paths: Box::new(paths), next: None, gone: Gone::default() };
        earlier.next = earlier.paths.next();
        earlier
    }

    /// No older list.
    pub(crate) fn nothing() -> Self {
        Self::new(std::iter::empty())
    }

    /// Compares as far as the next entry of the new list.
    pub(super) fn compare(&mut self, entry: &ManifestPath) {
        self.lose_while(|earlier| earlier < entry);
        if self.next.as_ref() == Some(entry) {
            self.next = self.paths.next();
        }
    }

    /// Ends the comparison at the end of the new list.
    pub(super) fn finish(mut self) -> Gone {
        self.lose_while(|_| true);
        self.gone
    }

    fn lose_while(&mut self, is_gone: impl Fn(&ManifestPath) -> bool) {
        while let Some(path) = self.next.take_if(|path| is_gone(path)) {
            self.gone.count += 1;
            if self.gone.first.len() < NAMED {
                self.gone.first.push(path);
            }
            self.next = self.paths.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> ManifestPath {
        ManifestPath::from_bytes(name.as_bytes()).unwrap()
    }

    #[test]
    fn what_only_the_older_list_has_is_gone() {
        let gone = |older: &[&str], newer: &[&str]| {
            let older: Vec<_> = older.iter().map(|name| path(name)).collect();
            let mut earlier = Earlier::new(older.into_iter());
            newer.iter().for_each(|name| earlier.compare(&path(name)));
            let Gone { count, first } = earlier.finish();
            assert_eq!(count, first.len() as u64);
            first.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(gone(&["a", "b", "c"], &["a", "b", "c"]), [""; 0]);
        assert_eq!(gone(&["a", "b", "c"], &[]), ["a", "b", "c"]);
        assert_eq!(gone(&["a", "b", "c"], &["b"]), ["a", "c"]);
        assert_eq!(gone(&["b", "d"], &["a", "c", "d", "e"]), ["b"]);
        assert_eq!(gone(&[], &["a"]), [""; 0]);
    }

    #[test]
    fn all_are_counted_and_the_first_are_named() {
        let older: Vec<_> = (100..200).map(|number| path(&number.to_string())).collect();
        let Gone { count, first } = Earlier::new(older.into_iter()).finish();
        assert_eq!((count, first.len(), first[0].to_string()), (100, NAMED, "100".into()));
    }
}
