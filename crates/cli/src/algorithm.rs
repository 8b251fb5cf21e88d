//! The hash functions of `bulla sum` and `bulla check`.

use bulla_blake2::{blake2b, blake2bp, blake2s, blake2sp};
use clap::ValueEnum;

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Algorithm {
    /// As b3sum prints it
    Blake3,
    /// As b2sum prints it
    Blake2b,
    /// BLAKE2 for 32-bit machines
    Blake2s,
    /// BLAKE2b with four leaves side by side
    Blake2bp,
    /// BLAKE2s with eight leaves side by side
    Blake2sp,
}

impl Algorithm {
    const ALL: [Self; 5] = [Self::Blake3, Self::Blake2b, Self::Blake2s, Self::Blake2bp, Self::Blake2sp];

    /// The name in lines of the form `NAME (FILE) = HASH`.
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::Blake3 => "BLAKE3",
            Self::Blake2b => "BLAKE2b",
            Self::Blake2s => "BLAKE2s",
            Self::Blake2bp => "BLAKE2bp",
            Self::Blake2sp => "BLAKE2sp",
        }
    }

    /// The function with this tag.
    pub(crate) fn by_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.tag() == tag)
    }

    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        self.tag().to_ascii_lowercase()
    }

    /// The default length of a digest in bytes. For BLAKE2, it is also the maximum.
    pub(crate) const fn default_length(self) -> usize {
        match self {
            Self::Blake2b | Self::Blake2bp => blake2b::OUTBYTES,
            Self::Blake3 | Self::Blake2s | Self::Blake2sp => 32,
        }
    }
}

/// A BLAKE2 function with a number of output bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blake2 {
    function: Function,
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    B,
    S,
    Bp,
    Sp,
}

impl Blake2 {
    /// A BLAKE2 function; `None` for BLAKE3, and for a length that the function does not have.
    pub(crate) fn new(algorithm: Algorithm, length: usize) -> Option<Self> {
        let function = match algorithm {
            Algorithm::Blake3 => return None,
            Algorithm::Blake2b => Function::B,
            Algorithm::Blake2s => Function::S,
            Algorithm::Blake2bp => Function::Bp,
            Algorithm::Blake2sp => Function::Sp,
        };
        (1..=algorithm.default_length()).contains(&length).then_some(Self { function, length })
    }

    pub(crate) fn state(self) -> State {
        let length = self.length;
        match self.function {
            Function::B => State::B(blake2b::Params::new().hash_length(length).to_state()),
            Function::S => State::S(blake2s::Params::new().hash_length(length).to_state()),
            Function::Bp => State::Bp(Box::new(blake2bp::Params::new().hash_length(length).to_state())),
            Function::Sp => State::Sp(Box::new(blake2sp::Params::new().hash_length(length).to_state())),
        }
    }
}

/// A BLAKE2 hasher.
pub(crate) enum State {
    B(blake2b::State),
    S(blake2s::State),
    Bp(Box<blake2bp::State>),
    Sp(Box<blake2sp::State>),
}

impl State {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::B(state) => {
                state.update(bytes);
            }
            Self::S(state) => {
                state.update(bytes);
            }
            Self::Bp(state) => {
                state.update(bytes);
            }
            Self::Sp(state) => {
                state.update(bytes);
            }
        }
    }

    pub(crate) fn finalize(&self) -> Vec<u8> {
        match self {
            Self::B(state) => state.finalize().as_bytes().to_vec(),
            Self::S(state) => state.finalize().as_bytes().to_vec(),
            Self::Bp(state) => state.finalize().as_bytes().to_vec(),
            Self::Sp(state) => state.finalize().as_bytes().to_vec(),
        }
    }
}
