//! The parts in which a long range of keys is read.
//!
//! etcd looks at every key of the range that a request names, even if the request wants only the
//! first thousand. So pages that all name the end of the whole range take a time that grows with
//! the square of the number of keys. Here a page names a nearer end: the first key that differs
//! from the page's begin in its first few bytes. How many bytes these are follows from the pages
//! before.

/// The number of rows that one request reads; fewer if they are large.
const PAGE: usize = 1024;
/// A page with fewer rows than this is followed by one with a farther end.
const FEW: usize = PAGE / 8;

/// A range of keys that is being read.
pub(super) struct Pages {
    from: Vec<u8>,
    end: Vec<u8>,
    /// How many of the first bytes all keys of the next page have; 0 for a page that may go on to
    /// the end.
    same: usize,
    rows: usize,
}

/// What one request asks for: rows from a key to before another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) from: Vec<u8>,
    pub(super) to: Vec<u8>,
    pub(super) most: i64,
}

impl Pages {
    /// The keys from `from` to before `end`.
    pub(super) fn new(from: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Self {
        Self { from: from.into(), end: end.into(), same: 0, rows: PAGE }
    }

    /// The next page; `None` after the last one.
    pub(super) fn next(&self) -> Option<Page> {
        let most = i64::try_from(self.rows).unwrap_or(i64::MAX);
        (self.from < self.end).then(|| Page { from: self.from.clone(), to: self.to(), most })
    }

    fn to(&self) -> Vec<u8> {
        let mut to = self.from.clone();
        to.resize(self.same, 0);
        // The first key after all that begin with these bytes.
        while to.pop_if(|last| *last == u8::MAX).is_some() {}
        let Some(last) = to.last_mut() else { return self.end.clone() };
        *last += 1;
        to.min(self.end.clone())
    }

    /// The answer to a page did not fit into a message. Returns whether a smaller page is possible.
    pub(super) fn shrink(&mut self) -> bool {
        self.rows = (self.rows / 2).max(1);
        self.rows > 1
    }

    /// Goes on after a page that has these keys, in their order. `more` says that the page left
    /// some out.
    pub(super) fn read<'a>(&mut self, keys: impl IntoIterator<Item = &'a [u8]>, more: bool) {
        let mut keys = keys.into_iter();
        let first = keys.next();
        let (mut rows, mut last) = (usize::from(first.is_some()), first);
        for key in keys {
            (rows, last) = (rows + 1, Some(key));
        }
        match first.zip(last) {
            Some((first, last)) if more => {
                // The next page ends with the keys that have the same byte where this one has
                // different ones.
                self.same = first.iter().zip(last).take_while(|(a, b)| a == b).count() + 1;
                // The smallest key after the last one.
                self.from = [last, &[0]].concat();
            }
            _ => {
                self.from = self.to();
                self.same = self.same.saturating_sub(usize::from(rows < FEW));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// What a store does with these keys: the keys that were read, how many pages there were, and
    /// how many keys the store looked at.
    fn read(keys: &BTreeSet<Vec<u8>>, from: &str, end: &str) -> (Vec<Vec<u8>>, usize, usize) {
        let mut pages = Pages::new(from, end);
        let (mut found, mut requests, mut looked_at) = (Vec::new(), 0, 0);
        while let Some(page) = pages.next() {
            let in_range = keys.range(page.from.clone()..page.to).count();
            let most = usize::try_from(page.most).unwrap();
            let taken: Vec<_> = keys.range(page.from..).take(in_range.min(most)).cloned().collect();
            pages.read(taken.iter().map(Vec::as_slice), in_range > most);
            (requests, looked_at) = (requests + 1, looked_at + in_range);
            found.extend(taken);
            assert!(requests < 10_000, "it ends");
        }
        (found, requests, looked_at)
    }

    /// Keys as a keystore has them: times in hexadecimal digits, and chance.
    fn keys(tenants: usize, each: usize) -> BTreeSet<Vec<u8>> {
        let key = |number: usize| {
            let chance = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            let (time, tenant) = (0x0197_a5c0_4c1e + number / 16, number % tenants);
            format!("p:records/tenant-{tenant}/files/ed25519/{time:012x}-7{chance:012x}")
        };
        (0..tenants * each).map(|number| key(number).into_bytes()).collect()
    }

    #[test]
    fn a_store_looks_at_few_keys_more_than_it_gives() {
        for (tenants, each) in [(1, 100_000), (7, 20_000), (500, 100)] {
            let keys = keys(tenants, each);
            let (found, requests, looked_at) = read(&keys, "p:", "p:records0");
            assert_eq!(found, keys.iter().cloned().collect::<Vec<_>>());
            let pages = keys.len().div_ceil(PAGE);
            assert!(requests < 3 * pages + 100, "{requests} requests for {pages} pages, {tenants} tenants");
            // Page after page to the end would be a look at pages / 2 times as many keys.
            assert!(looked_at < 12 * keys.len(), "{looked_at} of {} keys, {tenants} tenants", keys.len());
        }
    }

    #[test]
    fn an_empty_range_is_one_page_and_nothing_before_or_after_it_is_read() {
        let keys = BTreeSet::from([b"a".to_vec(), b"p:".to_vec(), b"p:records/x".to_vec(), b"q".to_vec()]);
        assert_eq!(read(&BTreeSet::new(), "p:", "p:records0"), (vec![], 1, 0));
        let (found, requests, _) = read(&keys, "p:", "p:records0");
        assert_eq!((found, requests), (vec![b"p:".to_vec(), b"p:records/x".to_vec()], 1));
        assert_eq!(Pages::new("b", "b").next(), None);
    }

    #[test]
    fn pages_shrink_to_one_row() {
        let mut pages = Pages::new("a", "b");
        let mut sizes = vec![pages.next().unwrap().most];
        while pages.shrink() {
            sizes.push(pages.next().unwrap().most);
        }
        assert_eq!(sizes, [1024, 512, 256, 128, 64, 32, 16, 8, 4, 2]);
    }

    proptest! {
        /// Whatever the keys are, each is read once and in order.
        #[test]
        fn every_key_is_read_once(
            keys in prop::collection::btree_set(prop::collection::vec(prop_oneof![Just(0), Just(255), 96..100_u8], 1..9), 0..5000)
        ) {
            let wanted: Vec<_> = keys.range(b"a".to_vec()..b"c".to_vec()).cloned().collect();
            prop_assert_eq!(read(&keys, "a", "c").0, wanted);
        }
    }
}
