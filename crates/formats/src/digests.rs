//! Digests of a file, by the names that in-toto gives them.

use bulla_blake2::blake2b;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DigestAlgorithm {
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// BLAKE2b with 64 bytes.
    Blake2b,
    /// BLAKE3 with 32 bytes.
    Blake3,
}

impl DigestAlgorithm {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Sha256, Self::Sha384, Self::Sha512, Self::Blake2b, Self::Blake3];

    /// Its name in a `DigestSet` of in-toto.
    ///
    /// ```
    /// use bulla_formats::DigestAlgorithm;
    ///
    /// for algorithm in DigestAlgorithm::ALL {
    ///     assert_eq!(DigestAlgorithm::from_name(algorithm.name()), Some(algorithm));
    /// }
    /// assert_eq!(DigestAlgorithm::from_name("sha1"), None);
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
            Self::Blake2b => "blake2b",
            Self::Blake3 => "blake3",
        }
    }

    /// The hash function of a name in a `DigestSet`. None for names that are not known here, and
    /// for hash functions that are broken.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// The number of bytes of a digest.
    ///
    /// ```
    /// assert_eq!(bulla_formats::DigestAlgorithm::Blake3.output_length(), 32);
    /// ```
    pub fn output_length(self) -> usize {
        match self {
            Self::Sha256 | Self::Blake3 => 32,
            Self::Sha384 => 48,
            Self::Sha512 | Self::Blake2b => 64,
        }
    }
}

/// Computes several digests in one pass.
///
/// ```
/// use bulla_formats::{DigestAlgorithm, MultiHasher};
///
/// let mut hasher = MultiHasher::new(&[DigestAlgorithm::Sha256, DigestAlgorithm::Blake3]);
/// hasher.update(b"a file");
/// let digests = hasher.finish();
/// assert_eq!(digests[1].1, bulla_blake3::hash(b"a file").as_bytes());
/// ```
pub struct MultiHasher(Vec<(DigestAlgorithm, OneHasher)>);

enum OneHasher {
    Sha256(Sha256),
    Sha384(Box<Sha384>),
    Sha512(Box<Sha512>),
    Blake2b(Box<blake2b::State>),
    Blake3(Box<bulla_blake3::Hasher>),
}

impl MultiHasher {
    /// Starts with an empty file. The digests will be in the order of `algorithms`.
    pub fn new(algorithms: &[DigestAlgorithm]) -> Self {
        let start = |algorithm: &DigestAlgorithm| {
            let hasher = match algorithm {
                DigestAlgorithm::Sha256 => OneHasher::Sha256(Sha256::new()),
                DigestAlgorithm::Sha384 => OneHasher::Sha384(Box::default()),
                DigestAlgorithm::Sha512 => OneHasher::Sha512(Box::default()),
                DigestAlgorithm::Blake2b => OneHasher::Blake2b(Box::new(blake2b::State::new())),
                DigestAlgorithm::Blake3 => OneHasher::Blake3(Box::new(bulla_blake3::Hasher::new())),
            };
            (*algorithm, hasher)
        };
        Self(algorithms.iter().map(start).collect())
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        for (_, hasher) in &mut self.0 {
            match hasher {
                OneHasher::Sha256(hasher) => hasher.update(bytes),
                OneHasher::Sha384(hasher) => hasher.update(bytes),
                OneHasher::Sha512(hasher) => hasher.update(bytes),
                OneHasher::Blake2b(hasher) => {
                    hasher.update(bytes);
                }
                OneHasher::Blake3(hasher) => {
                    hasher.update(bytes);
                }
            }
        }
    }

    /// The digests.
    pub fn finish(self) -> Vec<(DigestAlgorithm, Vec<u8>)> {
        let finish = |(algorithm, hasher)| {
            let digest = match hasher {
                OneHasher::Sha256(hasher) => hasher.finalize().to_vec(),
                OneHasher::Sha384(hasher) => hasher.finalize().to_vec(),
                OneHasher::Sha512(hasher) => hasher.finalize().to_vec(),
                OneHasher::Blake2b(hasher) => blake2b::State::finalize(&hasher).as_bytes().to_vec(),
                OneHasher::Blake3(hasher) => bulla_blake3::Hasher::finalize(&hasher).as_bytes().to_vec(),
            };
            (algorithm, digest)
        };
        self.0.into_iter().map(finish).collect()
    }
}

/// Bytes as lowercase hexadecimal.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(bytes)
}

/// A digest from lowercase or uppercase hexadecimal. None if it has another length.
pub(crate) fn digest_from_hex(algorithm: DigestAlgorithm, text: &str) -> Option<Vec<u8>> {
    let digest = base16ct::mixed::decode_vec(text).ok()?;
    (digest.len() == algorithm.output_length()).then_some(digest)
}
