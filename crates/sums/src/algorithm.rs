//! The hash functions, and how much of their output is wanted.

use bulla_blake2::{blake2b, blake2bp, blake2s, blake2sp};

/// A hash function.
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
pub(crate) enum Other {
    Blake2b(blake2b::State),
    Blake2s(blake2s::State),
    Blake2bp(Box<blake2bp::State>),
    Blake2sp(Box<blake2sp::State>),
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
}

impl Other {
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

    /// The bytes.
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
