//! Reading files: what is known of them before, and the order in which results come.

use crate::error::{Error, Result};
use crate::progress::{Progress, ShowProgress, Total};
use bulla_sums::{Feed, JobOutcome, PoolOptions};
pub(crate) use bulla_sums::{
    HashMode, Links, MIN_SHARED_LEN, ReadError, ReadMode, Source, StreamError, Threads,
};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Whether all threads should work on this at once: large files and folders.
pub(crate) fn is_large(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_dir() || (metadata.is_file() && metadata.len() >= MIN_SHARED_LEN))
}

/// What there is to do, if progress is shown and every path is a file.
pub(crate) fn total_of(paths: &[PathBuf], show: ShowProgress) -> Total {
    if show == ShowProgress::Never || (show == ShowProgress::Auto && !Progress::is_wanted()) {
        return Total::default();
    }
    let size =
        |path: &PathBuf| path.metadata().ok().filter(|metadata| metadata.is_file()).map(|file| file.len());
    // Sparse files may say that they have more bytes than there are numbers for.
    let bytes = paths.iter().try_fold(0, |bytes: u64, path| Some(bytes.saturating_add(size(path)?)));
    Total { bytes, files: bytes.and(Some(paths.len() as u64)) }
}

/// For fewer items, starting threads costs more than it gains.
const MIN_ITEMS_FOR_THREADS: usize = 16;

/// The numbers of the items, one after another.
struct IndexFeed(Range<usize>);

impl Feed<usize> for IndexFeed {
    fn next(&mut self) -> Option<usize> {
        self.0.next()
    }

    fn has_more(&self) -> bool {
        !self.0.is_empty()
    }
}

/// Runs `work` on every item, and calls `each` with each item and its result, in the order of the
/// items.
///
/// A large item gets all threads; small ones are processed side by side. `each` runs on one thread
/// at a time. Its first error ends everything.
pub(crate) fn in_order<T: Sync, R: Send>(
    items: &[T],
    threads: Threads,
    is_large: impl Fn(&T) -> bool + Sync,
    work: impl Fn(&T, ReadMode) -> R + Sync,
    mut each: impl FnMut(&T, R) -> Result<()> + Send,
) -> Result<()> {
    if !threads.may_be_many() || items.len() < MIN_ITEMS_FOR_THREADS {
        let read_mode =
            if threads == Threads::One { ReadMode::Sequential } else { ReadMode::Parallel(threads) };
        return items.iter().try_for_each(|item| each(item, work(item, read_mode)));
    }
    let progress = Progress::hidden();
    let plan = PoolOptions { threads, meter: &progress, on_large: &|| {} };
    // Two large items at once would have twice the threads.
    let large = Mutex::new(());
    let work = |index: usize, _: &dyn bulla_sums::Helpers| {
        let item = &items[index];
        let result = if is_large(item) {
            let _alone = large.lock().unwrap_or_else(PoisonError::into_inner);
            work(item, ReadMode::Parallel(threads))
        } else {
            work(item, ReadMode::Sequential)
        };
        JobOutcome::from((index, result))
    };
    let each = |(index, result): (usize, R)| -> Result<(), Error> { each(&items[index], result) };
    bulla_sums::run_in_order(&plan, Box::new(IndexFeed(0..items.len())), work, each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..10_000).collect();
        let mut results = Vec::new();
        let is_large = |item: &usize| item.is_multiple_of(7);
        let work = |_: &usize, read_mode: ReadMode| read_mode != ReadMode::Sequential;
        let each = |item: &usize, result| {
            results.push((*item, result));
            Ok(())
        };
        in_order(&items, Threads::AtMost(0), is_large, work, each).unwrap();
        let expected: Vec<_> = items.iter().map(|item| (*item, is_large(item))).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn an_error_of_the_receiver_ends_the_work() {
        let items: Vec<usize> = (0..100_000).collect();
        let each = |item: &usize, ()| if *item == 5 { Err(Error::new("test", "enough")) } else { Ok(()) };
        let error = in_order(&items, Threads::AtMost(0), |_| false, |_, _| (), each).unwrap_err();
        assert_eq!(error.message(), "enough");
    }
}
