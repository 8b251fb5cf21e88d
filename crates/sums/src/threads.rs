//! The number of threads.

/// How many threads read files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One file after the other, each from start to end.
    One,
    /// At most this many; 0 leaves the number to the environment and the machine.
    AtMost(usize),
}

impl Threads {
    /// The number: for `AtMost(0)`, that in the variable `RAYON_NUM_THREADS`, or else the number of
    /// processors.
    pub fn number(self) -> usize {
        match self {
            Self::One => 1,
            Self::AtMost(0) => {
                let named = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
                named.filter(|number| *number > 0).unwrap_or_else(|| {
                    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
                })
            }
            Self::AtMost(threads) => threads,
        }
    }

    /// Whether there may be more than one.
    pub fn may_be_many(self) -> bool {
        !matches!(self, Self::One | Self::AtMost(1))
    }
}
