//! The hash functions and their digests, and how files are hashed: the function, its mode, and
//! which part of the output is wanted.

use bulla_blake2::{blake2b, blake2bp, blake2s, blake2sp};
use bulla_blake3::hazmat::{self, ContextKey, HasherExt, Mode};
use bulla_blake3::{Hash, Hasher, OutputReader, hash_many, keyed_hash_many};
use zeroize::Zeroizing;

/// A hash function.
///
/// ```
/// use bulla_sums::{Algorithm, HashParams};
///
/// let algorithm = Algorithm::by_tag("BLAKE2B").unwrap();
/// assert_eq!((algorithm.name().as_str(), algorithm.tag()), ("blake2b", "BLAKE2b"));
/// assert_eq!(algorithm.default_length(), 64);
/// assert!(algorithm.has_length(32) && !algorithm.has_length(65));
///
/// let params = HashParams::plain(algorithm, 32, 0).unwrap();
/// assert_eq!((params.tag().as_str(), params.length()), ("BLAKE2b-256", 32));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// As b3sum prints it.
    Blake3,
    /// As b2sum prints it.
    Blake2b,
    /// BLAKE2 for 32-bit machines.
    Blake2s,
    /// BLAKE2b with four leaves side by side.
    Blake2bp,
    /// BLAKE2s with eight leaves side by side.
    Blake2sp,
    /// As sha256sum prints it (FIPS 180-4).
    Sha256,
    /// As sha512sum prints it (FIPS 180-4).
    Sha512,
}

impl Algorithm {
    /// Every function.
    pub const ALL: [Self; 7] = [
        Self::Blake3,
        Self::Blake2b,
        Self::Blake2s,
        Self::Blake2bp,
        Self::Blake2sp,
        Self::Sha256,
        Self::Sha512,
    ];

    /// The name in lines of the form `NAME (FILE) = HASH`.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::Blake3 => "BLAKE3",
            Self::Blake2b => "BLAKE2b",
            Self::Blake2s => "BLAKE2s",
            Self::Blake2bp => "BLAKE2bp",
            Self::Blake2sp => "BLAKE2sp",
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
        }
    }

    /// The function with this tag. Upper and lower case are one: BSD writes `BLAKE2B`. OpenSSL 3
    /// writes `SHA2-256`.
    pub fn by_tag(tag: &str) -> Option<Self> {
        let tag = match tag {
            "SHA2-256" => "SHA256",
            "SHA2-512" => "SHA512",
            tag => tag,
        };
        Self::ALL.into_iter().find(|algorithm| algorithm.tag().eq_ignore_ascii_case(tag))
    }

    /// The name on the command line.
    pub fn name(self) -> String {
        self.tag().to_ascii_lowercase()
    }

    /// The default length of a digest in bytes. For functions other than BLAKE3, it is also the
    /// maximum.
    pub const fn default_length(self) -> usize {
        match self {
            Self::Blake2b | Self::Blake2bp => blake2b::OUTBYTES,
            Self::Sha512 => 64,
            Self::Blake3 | Self::Blake2s | Self::Blake2sp | Self::Sha256 => 32,
        }
    }

    /// Whether a digest may have `length` bytes.
    pub const fn has_length(self, length: u64) -> bool {
        match self {
            Self::Blake3 => true,
            Self::Sha256 | Self::Sha512 => length == self.default_length() as u64,
            _ => length >= 1 && length <= self.default_length() as u64,
        }
    }
}

/// A hasher of one of the functions other than BLAKE3.
pub(crate) enum OtherHasher {
    Blake2b(blake2b::State),
    Blake2s(blake2s::State),
    Blake2bp(Box<blake2bp::State>),
    Blake2sp(Box<blake2sp::State>),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
}

impl OtherHasher {
    /// A hasher with `length` bytes of output, which the function must have; `None` for BLAKE3.
    pub(crate) fn new(algorithm: Algorithm, length: usize) -> Option<Self> {
        use sha2::Digest as _;
        Some(match algorithm {
            Algorithm::Blake3 => return None,
            Algorithm::Blake2b => Self::Blake2b(blake2b::Params::new().hash_length(length).to_state()),
            Algorithm::Blake2s => Self::Blake2s(blake2s::Params::new().hash_length(length).to_state()),
            Algorithm::Blake2bp => {
                Self::Blake2bp(Box::new(blake2bp::Params::new().hash_length(length).to_state()))
            }
            Algorithm::Blake2sp => {
                Self::Blake2sp(Box::new(blake2sp::Params::new().hash_length(length).to_state()))
            }
            Algorithm::Sha256 => Self::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(sha2::Sha512::new()),
        })
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        use sha2::Digest as _;
        match self {
            Self::Blake2b(state) => drop(state.update(bytes)),
            Self::Blake2s(state) => drop(state.update(bytes)),
            Self::Blake2bp(state) => drop(state.update(bytes)),
            Self::Blake2sp(state) => drop(state.update(bytes)),
            Self::Sha256(state) => state.update(bytes),
            Self::Sha512(state) => state.update(bytes),
        }
    }

    pub(crate) fn finalize(self) -> Digest {
        use sha2::Digest as _;
        match self {
            Self::Blake2b(state) => Digest::new(state.finalize().as_bytes()),
            Self::Blake2s(state) => Digest::new(state.finalize().as_bytes()),
            Self::Blake2bp(state) => Digest::new(state.finalize().as_bytes()),
            Self::Blake2sp(state) => Digest::new(state.finalize().as_bytes()),
            Self::Sha256(state) => Digest::new(&state.finalize()),
            Self::Sha512(state) => Digest::new(&state.finalize()),
        }
    }
}

/// A digest of up to 64 bytes.
///
/// ```
/// use bulla_sums::Digest;
///
/// let digest = Digest::new(&[7; 20]);
/// assert_eq!(digest.as_bytes(), [7; 20]);
/// assert_ne!(digest, Digest::new(&[7; 32]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    bytes: [u8; 64],
    len: u8,
}

impl Digest {
    /// From the bytes of a digest.
    ///
    /// # Panics
    /// If there are more than 64.
    pub fn new(digest: &[u8]) -> Self {
        let mut bytes = [0; 64];
        bytes[..digest.len()].copy_from_slice(digest);
        Self { bytes, len: digest.len() as u8 }
    }

    /// The bytes of the digest.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Digest {}

/// The three modes of BLAKE3, with their parameters.
pub enum HashMode {
    /// The hash function.
    Plain,
    /// The keyed hash, with this key.
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

/// A hash function, its mode, and the part of its output that is wanted.
///
/// ```
/// use bulla_sums::{Algorithm, HashMode, HashParams};
///
/// let mode = HashMode::derive_key("example.com 2026-11-28 checksums");
/// let params = HashParams::blake3(mode, 64, 0);
/// assert_eq!((params.algorithm(), params.length()), (Algorithm::Blake3, 64));
/// ```
pub struct HashParams {
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
///
/// ```
/// use bulla_sums::{Digest, Output};
///
/// let digest = bulla_blake3::hash(b"one");
/// let output = Output::Digest(Digest::new(digest.as_bytes()));
/// assert!(output.is(digest.as_bytes()));
/// assert_eq!(output.hash(), digest);
///
/// // BLAKE3's output is a stream: it begins with shorter and longer digests.
/// let stream = bulla_blake3::Hasher::new().update(b"one").finalize_xof();
/// let output = Output::Stream(Box::new(stream));
/// assert!(output.is(&digest.as_bytes()[..16]) && !output.is(b"another"));
/// ```
#[derive(Clone, Debug)]
pub enum Output {
    /// All of the wanted output.
    Digest(Digest),
    /// BLAKE3's output from the wanted offset on.
    Stream(Box<OutputReader>),
}

impl Output {
    /// Whether the output begins with these bytes; of a function other than BLAKE3, whether it
    /// equals them.
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
pub(crate) enum FileHasher {
    Blake3(Box<Hasher>),
    Other(Box<OtherHasher>),
}

impl FileHasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Blake3(hasher) => drop(hasher.update(bytes)),
            Self::Other(state) => state.update(bytes),
        }
    }
}

impl HashParams {
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

    /// The hash function.
    pub fn algorithm(&self) -> Algorithm {
        match self.function {
            Function::Blake3 { .. } => Algorithm::Blake3,
            Function::Other(algorithm) => algorithm,
        }
    }

    /// The number of wanted output bytes.
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

    /// Whether [`HashParams::many`] does it.
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

    pub(crate) fn state(&self) -> FileHasher {
        match &self.function {
            Function::Blake3 { mode, .. } => FileHasher::Blake3(Box::new(mode.hasher())),
            Function::Other(algorithm) => {
                let state = OtherHasher::new(*algorithm, self.length as usize);
                FileHasher::Other(Box::new(state.expect("it is not BLAKE3")))
            }
        }
    }

    pub(crate) fn finish(&self, state: FileHasher) -> Output {
        match state {
            FileHasher::Blake3(hasher) => self.output(hasher.finalize_xof()),
            FileHasher::Other(state) => Output::Digest(state.finalize()),
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
