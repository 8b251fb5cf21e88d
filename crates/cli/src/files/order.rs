//! Works on many files at once, and returns the results in the order of the files.

use crate::error::Result;
use crate::files::read::Pace;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

/// For fewer items, starting threads costs more than it gains.
const FEW: usize = 16;

/// The number of items that the threads get at a time: enough to keep them busy, and few enough to hold in memory.
const GROUP: usize = 4096;

/// How many threads read files.
#[derive(Clone, Copy)]
pub(crate) enum Threads {
    /// One file after the other, each from start to end.
    One,
    /// At most this many; 0 leaves the number to the environment and the machine.
    AtMost(usize),
}

impl Threads {
    /// How to read a file that has all threads for itself.
    pub(crate) fn pace(self) -> Pace {
        match self {
            Threads::One | Threads::AtMost(1) => Pace::InOrder,
            Threads::AtMost(0) => Pace::Parallel,
            Threads::AtMost(threads) => {
                // Only the first call has an effect, and every call asks for the same.
                let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
                Pace::Parallel
            }
        }
    }
}

/// Runs `work` on every item, and calls `each` with each item and its result, in the order of the items.
///
/// A large item gets all threads; small ones are processed side by side. `each` runs on the calling thread. Its first
/// error ends everything.
pub(crate) fn in_order<T: Sync, R: Send>(
    items: &[T],
    threads: Threads,
    is_large: impl Fn(&T) -> bool + Sync,
    work: impl Fn(&T, Pace) -> R + Sync,
    mut each: impl FnMut(&T, R) -> Result<()>,
) -> Result<()> {
    let pace = threads.pace();
    if pace == Pace::InOrder || items.len() < FEW {
        return items.iter().try_for_each(|item| each(item, work(item, pace)));
    }
    items.chunks(GROUP).try_for_each(|group| group_in_order(group, &is_large, &work, &mut each))
}

/// A thread's report about an item.
enum Report<R> {
    Done(usize, R),
    /// The item is left for the calling thread, which lets all threads work on it.
    Large(usize),
}

fn group_in_order<T: Sync, R: Send>(
    items: &[T],
    is_large: &(impl Fn(&T) -> bool + Sync),
    work: &(impl Fn(&T, Pace) -> R + Sync),
    each: &mut impl FnMut(&T, R) -> Result<()>,
) -> Result<()> {
    let stop = AtomicBool::new(false);
    let (sender, reports) = channel();
    rayon::in_place_scope_fifo(|scope| {
        for (index, item) in items.iter().enumerate() {
            let (sender, stop) = (sender.clone(), &stop);
            scope.spawn_fifo(move |_| {
                if !stop.load(Ordering::Relaxed) {
                    let report = match is_large(item) {
                        true => Report::Large(index),
                        false => Report::Done(index, work(item, Pace::InOrder)),
                    };
                    // The receiver is gone only when the work was stopped.
                    let _ = sender.send(report);
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for report in reports {
            let (index, result) = match report {
                Report::Done(index, result) => (index, result),
                Report::Large(index) => (index, work(&items[index], Pace::Parallel)),
            };
            waiting.insert(index, result);
            while let Some(result) = waiting.remove(&next) {
                each(&items[next], result).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                next += 1;
            }
        }
        Ok(())
    })
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
        let work = |_: &usize, pace: Pace| pace == Pace::Parallel;
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
