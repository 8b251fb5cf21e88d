//! What a BLAKE3 hasher has taken so far.

use crate::buffer::{Input, compute};
use bulla_blake3::{DeriveKey, Hasher, KEY_LEN, OUT_LEN, OutputReader, hash, keyed_hash};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zeroize::{Zeroize, Zeroizing};

/// So much input is kept as it is, and hashed only when somebody asks for the digest. A hasher
/// takes 3 KiB, which a short input is not worth.
const MAX_BUFFERED_LEN: usize = 256;

/// The longest first piece that is kept by reference. A hasher takes as much memory.
const MAX_REFERENCED_LEN: usize = 16 * 1024;

/// What is computed.
#[derive(Clone)]
pub(crate) enum Mode {
    Hash,
    Keyed(Zeroizing<[u8; KEY_LEN]>),
    DeriveKey(Box<DeriveKey>),
}

impl Mode {
    /// A message authentication code.
    ///
    /// # Errors
    ///
    /// `ValueError` if the key has not 32 bytes.
    pub(crate) fn keyed(bytes: &[u8]) -> PyResult<Self> {
        key(bytes).map(Self::Keyed)
    }

    pub(crate) fn derive_key(context: &str) -> Self {
        Self::DeriveKey(Box::new(DeriveKey::new(context)))
    }

    /// A hasher in its final place: it takes 3 KiB, which are not worth a copy.
    fn hasher(&self) -> Box<Hasher> {
        match self {
            Self::Hash => Box::new(Hasher::new()),
            Self::Keyed(key) => Box::new(Hasher::new_keyed(key)),
            Self::DeriveKey(context) => Box::new(context.hasher()),
        }
    }

    /// Whether what is hashed may be secret.
    pub(crate) fn is_secret(&self) -> bool {
        !matches!(self, Self::Hash)
    }

    /// The digest of a whole input.
    #[inline]
    fn digest(&self, input: &[u8]) -> [u8; OUT_LEN] {
        match self {
            Self::Hash => *hash(input).as_bytes(),
            Self::Keyed(key) => *keyed_hash(key, input).as_bytes(),
            Self::DeriveKey(context) => context.derive(input),
        }
    }
}

/// A copy of a key that is cleared when it is dropped.
///
/// # Errors
///
/// `ValueError` if it has not 32 bytes.
pub(crate) fn key(bytes: &[u8]) -> PyResult<Zeroizing<[u8; KEY_LEN]>> {
    let key = bytes.try_into().map_err(|_| {
        PyValueError::new_err(format!("a key has {KEY_LEN} bytes, and this one has {}", bytes.len()))
    })?;
    Ok(Zeroizing::new(key))
}

/// The input so far.
#[allow(
    clippy::large_enum_variant,
    reason = "it is in Python's object, where a box would cost an allocation"
)]
pub(crate) enum BufferedInput {
    /// A few pieces.
    Short { len: usize, bytes: [u8; MAX_BUFFERED_LEN] },
    /// One object that never changes. Its digest takes one call, without a hasher.
    Whole(Py<PyBytes>),
    /// Anything else.
    Long(Box<Hasher>),
}

impl BufferedInput {
    #[inline]
    pub(crate) const fn new() -> Self {
        Self::Short { len: 0, bytes: [0; MAX_BUFFERED_LEN] }
    }

    /// The state of a hasher whose first piece is `input`, if there is one, and if it needs no
    /// hasher.
    #[inline]
    pub(crate) fn whole(input: Option<&Input<'_, '_>>) -> Option<Self> {
        match input? {
            Input::Bytes(bytes) if bytes.as_bytes().len() <= MAX_REFERENCED_LEN => {
                Some(Self::Whole(Bound::clone(bytes).unbind()))
            }
            _ => None,
        }
    }

    /// Takes the input, if all of it is short. Otherwise it takes nothing.
    #[inline]
    pub(crate) fn take_short(&mut self, input: &[u8]) -> bool {
        let Self::Short { len, bytes } = self else { return false };
        let Some(place) = bytes[*len..].get_mut(..input.len()) else { return false };
        place.copy_from_slice(input);
        *len += input.len();
        true
    }

    /// The input, if there is no hasher yet.
    #[inline]
    fn kept<'a>(&'a self, py: Python<'a>) -> Result<&'a [u8], &'a Hasher> {
        match self {
            Self::Short { len, bytes } => Ok(&bytes[..*len]),
            Self::Whole(bytes) => Ok(bytes.as_bytes(py)),
            Self::Long(hasher) => Err(hasher),
        }
    }

    /// The hasher. It is created if it does not exist yet.
    pub(crate) fn hasher(&mut self, py: Python<'_>, mode: &Mode) -> &mut Hasher {
        if let Ok(kept) = self.kept(py) {
            let mut hasher = mode.hasher();
            hasher.update(kept);
            *self = Self::Long(hasher);
        }
        match self {
            Self::Long(hasher) => hasher,
            Self::Short { .. } | Self::Whole(_) => unreachable!("it was just made"),
        }
    }

    #[inline]
    pub(crate) fn digest(&self, py: Python<'_>, mode: &Mode) -> [u8; OUT_LEN] {
        match self.kept(py) {
            Ok(kept) => compute(py, kept.len(), || mode.digest(kept)),
            Err(hasher) => *hasher.finalize().as_bytes(),
        }
    }

    /// Output of any length.
    pub(crate) fn reader(&self, py: Python<'_>, mode: &Mode) -> OutputReader {
        match self.kept(py) {
            Ok(kept) => mode.hasher().update(kept).finalize_xof(),
            Err(hasher) => hasher.finalize_xof(),
        }
    }

    pub(crate) fn copy(&self, py: Python<'_>) -> Self {
        match self {
            Self::Short { len, bytes } => Self::Short { len: *len, bytes: *bytes },
            Self::Whole(bytes) => Self::Whole(bytes.clone_ref(py)),
            Self::Long(hasher) => Self::Long(hasher.clone()),
        }
    }

    pub(crate) fn reset(&mut self) {
        match self {
            Self::Short { .. } | Self::Whole(_) => *self = Self::new(),
            Self::Long(hasher) => drop(hasher.reset()),
        }
    }

    /// Clears what it has taken, except an object of the caller.
    pub(crate) fn wipe(&mut self) {
        match self {
            Self::Short { bytes, .. } => bytes.zeroize(),
            Self::Whole(_) => {}
            Self::Long(hasher) => hasher.zeroize(),
        }
    }
}
