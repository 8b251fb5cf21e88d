//! How files are hashed: the function, its mode, and which part of the output is wanted.

use crate::algorithm::{Algorithm, Digest, Other};
use bulla_blake3::hazmat::{self, ContextKey, HasherExt, Mode};
use bulla_blake3::{Hash, Hasher, OutputReader, hash_many, keyed_hash_many};
use zeroize::Zeroizing;

/// The three modes of BLAKE3, with their parameters.
pub enum HashMode {
    /// The hash function.
    Plain,
    /// With this key.
    Keyed(Zeroizing<[u8; bulla_blake3::KEY_LEN]>),
    /// Key derivation in a context.
    DeriveKey(ContextKey),
}

impl HashMode {
    /// The mode that derives keys in `context`.
    pub fn derive_key(context: &str) -> Self {
        Self::DeriveKey(hazmat::hash_derive_key_context(context))
    }

    pub(crate) fn hasher(&self) -> Hasher {
        match self {
            Self::Plain => Hasher::new(),
            Self::Keyed(key) => Hasher::new_keyed(key),
            Self::DeriveKey(context_key) => Hasher::new_from_context_key(context_key),
        }
    }

    pub(crate) fn tree(&self) -> Mode<'_> {
        match self {
            Self::Plain => Mode::Hash,
            Self::Keyed(key) => Mode::KeyedHash(key),
            Self::DeriveKey(context_key) => Mode::DeriveKeyMaterial(context_key),
        }
    }
}

/// The function and the part of its output that is wanted.
pub struct Hashing {
    function: Function,
    length: u64,
}

enum Function {
    Blake3 {
        mode: HashMode,
        /// The offset of the first output byte.
        seek: u64,
    },
    Other(Algorithm),
}

/// Output of a hash function.
#[derive(Clone, Debug)]
pub enum Output {
    /// All of it.
    Digest(Digest),
    /// BLAKE3's output from the wanted offset on.
    Stream(Box<OutputReader>),
}

impl Output {
    /// Whether it begins with these bytes; of a function other than BLAKE3, whether it equals them.
    pub fn is(&self, expected: &[u8]) -> bool {
        match self {
            Self::Digest(digest) => digest.as_bytes() == expected,
            Self::Stream(output) => {
                let mut bytes = vec![0; expected.len()];
                output.clone().fill(&mut bytes);
                bytes == expected
            }
        }
    }

    /// The 32 bytes that are BLAKE3's default output.
    pub fn hash(&self) -> Hash {
        let mut bytes = [0; bulla_blake3::OUT_LEN];
        match self {
            Self::Digest(digest) => bytes.copy_from_slice(&digest.as_bytes()[..bulla_blake3::OUT_LEN]),
            Self::Stream(output) => output.clone().fill(&mut bytes),
        }
        bytes.into()
    }
}

/// A hasher of one file.
pub(crate) enum State {
    Blake3(Box<Hasher>),
    Other(Box<Other>),
}

impl State {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(hasher) => drop(hasher.update(bytes)),
            Self::Other(state) => state.update(bytes),
        }
    }
}

impl Hashing {
    /// BLAKE3 in a mode, with `length` bytes of output from `seek` on.
    pub fn blake3(mode: HashMode, length: u64, seek: u64) -> Self {
        Self { function: Function::Blake3 { mode, seek }, length }
    }

    /// BLAKE3's hash function with its 32 bytes.
    pub fn plain_blake3() -> Self {
        Self::blake3(HashMode::Plain, bulla_blake3::OUT_LEN as u64, 0)
    }

    /// A function without a key, with `length` bytes of output from `seek` on; `None` if it has no
    /// such output.
    pub fn plain(algorithm: Algorithm, length: u64, seek: u64) -> Option<Self> {
        if algorithm == Algorithm::Blake3 {
            return Some(Self::blake3(HashMode::Plain, length, seek));
        }
        let has = algorithm.has_length(length) && seek == 0;
        has.then_some(Self { function: Function::Other(algorithm), length })
    }

    /// The function.
    pub fn algorithm(&self) -> Algorithm {
        match self.function {
            Function::Blake3 { .. } => Algorithm::Blake3,
            Function::Other(algorithm) => algorithm,
        }
    }

    /// The number of output bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The tag. For a shortened digest of BLAKE2, it has the number of bits, as in b2sum.
    pub fn tag(&self) -> String {
        let algorithm = self.algorithm();
        match algorithm {
            Algorithm::Blake3 => algorithm.tag().to_owned(),
            _ if self.length == algorithm.default_length() as u64 => algorithm.tag().to_owned(),
            _ => format!("{}-{}", algorithm.tag(), 8 * self.length),
        }
    }

    /// The mode, if blocks of a file can be hashed apart.
    pub(crate) fn by_blocks(&self) -> Option<&HashMode> {
        match &self.function {
            Function::Blake3 { mode, .. } => Some(mode),
            Function::Other(_) => None,
        }
    }

    /// Whether [`Hashing::many`] does it.
    pub(crate) fn has_many(&self) -> bool {
        let is_whole = self.length == bulla_blake3::OUT_LEN as u64;
        matches!(&self.function, Function::Blake3 { mode: HashMode::Plain | HashMode::Keyed(_), seek: 0 } if is_whole)
    }

    /// Hashes many inputs side by side.
    pub(crate) fn many(&self, inputs: &[&[u8]], out: &mut [Hash]) {
        match &self.function {
            Function::Blake3 { mode: HashMode::Keyed(key), .. } => keyed_hash_many(key, inputs, out),
            _ => hash_many(inputs, out),
        }
    }

    pub(crate) fn state(&self) -> State {
        match &self.function {
            Function::Blake3 { mode, .. } => State::Blake3(Box::new(mode.hasher())),
            Function::Other(algorithm) => {
                let state = Other::new(*algorithm, self.length as usize);
                State::Other(Box::new(state.expect("it is not BLAKE3")))
            }
        }
    }

    pub(crate) fn finish(&self, state: State) -> Output {
        match state {
            State::Blake3(hasher) => self.output(hasher.finalize_xof()),
            State::Other(state) => Output::Digest(state.finalize()),
        }
    }

    /// The wanted part of BLAKE3's output.
    pub(crate) fn output(&self, mut reader: OutputReader) -> Output {
        if let Function::Blake3 { seek, .. } = self.function {
            reader.set_position(seek);
        }
        if self.length > 64 {
            return Output::Stream(Box::new(reader));
        }
        let mut bytes = [0; 64];
        let wanted = &mut bytes[..self.length as usize];
        reader.fill(wanted);
        Output::Digest(Digest::new(wanted))
    }
}
