//! Whether the blocks of a file are mapped or read: measured while they are hashed.
//!
//! A read copies the bytes out of the page cache; a map costs the entries of a page table instead.
//! Which of them is quicker depends on the processor, the file system, the number of threads, and
//! on whether the file is in the page cache. So both take turns at first. Then the quicker one
//! hashes the file, and the other one takes a block now and then, in case this changes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most blocks of the trial: half of them for each way.
const MAX_TRIAL_BLOCKS: u64 = 32;

/// The trial is one part of the file of so many.
const FILE_PER_TRIAL: u64 = 8;

/// After the trial, the slower way has one block of so many.
const BLOCKS_PER_RETRY: u64 = 128;

/// An average moves towards a new value by one part of so many.
const AVERAGE_OVER: u64 = 4;

/// A way to the bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Copied into a buffer.
    Read,
    /// In the pages of the page cache.
    Map,
}

/// The time that a block takes in each way, in nanoseconds: a moving average, 0 for none yet.
pub(crate) struct Trial {
    /// The number of blocks of the trial.
    blocks: u64,
    /// With more threads, every block is read.
    max_map_threads: usize,
    read_time: AtomicU64,
    map_time: AtomicU64,
}

impl Trial {
    /// The trial of a file with `file_blocks` blocks, which more than `max_map_threads` threads
    /// read without a trial.
    pub(crate) fn new(file_blocks: u64, max_map_threads: usize) -> Self {
        let blocks = (file_blocks / FILE_PER_TRIAL).clamp(2, MAX_TRIAL_BLOCKS);
        Self { blocks, max_map_threads, read_time: AtomicU64::new(0), map_time: AtomicU64::new(0) }
    }

    /// The way for block number `block`, while so many threads take blocks.
    pub(crate) fn way_of(&self, block: u64, threads: usize) -> Way {
        if threads > self.max_map_threads {
            return Way::Read;
        }
        let [read, map] = [&self.read_time, &self.map_time].map(|time| time.load(Ordering::Relaxed));
        if map == u64::MAX {
            return Way::Read;
        }
        // With many threads, blocks after the trial are taken before its own are done.
        if block < self.blocks || read == 0 || map == 0 {
            return if block.is_multiple_of(2) { Way::Map } else { Way::Read };
        }
        let is_map_quicker = map <= read;
        let is_retry = block.is_multiple_of(BLOCKS_PER_RETRY);
        if is_map_quicker != is_retry { Way::Map } else { Way::Read }
    }

    /// Counts a block that took `time`.
    pub(crate) fn record(&self, way: Way, time: Duration) {
        let average = match way {
            Way::Read => &self.read_time,
            Way::Map => &self.map_time,
        };
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX - 1);
        let before = average.load(Ordering::Relaxed);
        if before == u64::MAX {
            return;
        }
        let after = if before == 0 { time } else { before - before / AVERAGE_OVER + time / AVERAGE_OVER };
        // Of two threads that count at once, one may win: an average needs no more.
        average.store(after, Ordering::Relaxed);
    }

    /// From now on, every block is read.
    pub(crate) fn give_up_map(&self) {
        self.map_time.store(u64::MAX, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Duration = Duration::from_micros(100);
    const SLOW: Duration = Duration::from_micros(130);

    /// How many of a file's blocks are mapped if each way takes this time.
    fn mapped_blocks(trial: &Trial, blocks: u64, read: Duration, map: Duration) -> usize {
        let count = |block: &u64| {
            let way = trial.way_of(*block, 1);
            trial.record(way, if way == Way::Read { read } else { map });
            way == Way::Map
        };
        (0..blocks).filter(count).count()
    }

    #[test]
    fn the_quicker_way_hashes_the_file() {
        // The trial has 16, and each 128th block is one of the slower way.
        assert_eq!(mapped_blocks(&Trial::new(1024, usize::MAX), 1024, SLOW, FAST), 1024 - 16 - 7);
        assert_eq!(mapped_blocks(&Trial::new(1024, usize::MAX), 1024, FAST, SLOW), 16 + 7);
    }

    #[test]
    fn the_trial_of_a_small_file_is_short() {
        assert_eq!(mapped_blocks(&Trial::new(16, usize::MAX), 16, SLOW, FAST), 15);
        assert_eq!(mapped_blocks(&Trial::new(16, usize::MAX), 16, FAST, SLOW), 1);
    }

    #[test]
    fn a_way_without_a_time_is_neither_slow_nor_quick() {
        let trial = Trial::new(16, usize::MAX);
        trial.record(Way::Map, FAST);
        assert_eq!(
            [2, 3, 4, 5].map(|block| trial.way_of(block, 1)),
            [Way::Map, Way::Read, Way::Map, Way::Read]
        );
    }

    #[test]
    fn a_way_that_becomes_quicker_is_taken() {
        let trial = Trial::new(4096, usize::MAX);
        mapped_blocks(&trial, 1024, FAST, SLOW);
        let later = (1024..4096).filter(|block| {
            let way = trial.way_of(*block, 1);
            trial.record(way, if way == Way::Read { 4 * SLOW } else { FAST });
            way == Way::Map
        });
        assert!(later.count() > 2900);
    }

    #[test]
    fn a_map_that_failed_is_not_tried_again() {
        let trial = Trial::new(4096, usize::MAX);
        trial.give_up_map();
        trial.record(Way::Map, FAST);
        assert!((0..1000).all(|block| trial.way_of(block, 1) == Way::Read));
    }

    #[test]
    fn more_threads_than_may_map_read() {
        let trial = Trial::new(1024, 7);
        mapped_blocks(&trial, 1024, SLOW, FAST);
        assert_eq!([1, 7, 8].map(|threads| trial.way_of(1001, threads)), [Way::Map, Way::Map, Way::Read]);
    }
}
