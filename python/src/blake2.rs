//! The classes `blake2b`, `blake2s`, `blake2bp` and `blake2sp`, with the interface of hashlib's.

use crate::buffer::{Input, compute, truth};
use bulla_blake2::parallel::{Params as ParallelParams, State as ParallelState};
use bulla_blake2::{Blake2b, Blake2s, Hash, Params, State, Variant, blake2b, blake2s};
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::{PyBytes, PyString};
use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zeroize::Zeroize;

/// The longest first piece that is kept by reference: to keep a long one would keep its memory.
const MAX_REFERENCED_LEN: usize = 16 * 1024;

/// The state of one of the four functions.
trait Hasher: Clone + Send {
    type Variant: Variant;
    /// With the default parameters.
    fn new() -> Self;
    fn add(&mut self, input: &[u8]);
    fn digest(&self) -> Hash<Self::Variant>;
    /// The digest of a whole input with the default parameters, without a state.
    fn digest_of(input: &[u8]) -> Hash<Self::Variant>;
    /// Clears a key, and input that may be secret.
    fn wipe(&mut self);
}

/// The digests of a whole input: by the sequential function, and by the parallel one.
trait OneCall: Variant {
    const SEQUENTIAL: fn(&[u8]) -> Hash<Self>;
    const PARALLEL: fn(&[u8]) -> Hash<Self>;
}

impl OneCall for Blake2b {
    const SEQUENTIAL: fn(&[u8]) -> Hash<Self> = blake2b;
    const PARALLEL: fn(&[u8]) -> Hash<Self> = blake2b::blake2bp::blake2bp;
}

impl OneCall for Blake2s {
    const SEQUENTIAL: fn(&[u8]) -> Hash<Self> = blake2s;
    const PARALLEL: fn(&[u8]) -> Hash<Self> = blake2s::blake2sp::blake2sp;
}

impl<V: OneCall<Word: Zeroize>> Hasher for State<V>
where
    Self: Send,
{
    type Variant = V;

    fn new() -> Self {
        Self::new()
    }

    fn add(&mut self, input: &[u8]) {
        self.update(input);
    }

    fn digest(&self) -> Hash<V> {
        self.finalize()
    }

    fn digest_of(input: &[u8]) -> Hash<V> {
        V::SEQUENTIAL(input)
    }

    fn wipe(&mut self) {
        self.zeroize();
    }
}

impl<V: OneCall> Hasher for ParallelState<V>
where
    Self: Send,
{
    type Variant = V;

    fn new() -> Self {
        Self::new()
    }

    fn add(&mut self, input: &[u8]) {
        self.update(input);
    }

    fn digest(&self) -> Hash<V> {
        self.finalize()
    }

    fn digest_of(input: &[u8]) -> Hash<V> {
        V::PARALLEL(input)
    }

    fn wipe(&mut self) {
        overwrite(self, Self::new());
    }
}

/// Overwrites a value that has no memory elsewhere. A compiler may leave out a write that nobody
/// reads, but not this one.
fn overwrite<T>(value: &mut T, by: T) {
    *value = by;
    black_box(value);
}

/// The input so far.
enum HashInput<S> {
    /// Nothing, or one object that never changes, without parameters: the digest takes one call.
    Whole(Option<Py<PyBytes>>),
    /// Anything else. It is not in Python's object: to make and to move an object of that size
    /// costs more than a short hash.
    Hasher(Box<S>),
}

impl<S: Hasher> HashInput<S> {
    fn add(&mut self, py: Python<'_>, data: &Input<'_, '_>) {
        let input = data.as_slice();
        if let (Self::Whole(None), Input::Bytes(bytes)) = (&*self, data)
            && input.len() <= MAX_REFERENCED_LEN
        {
            *self = Self::Whole(Some(Bound::clone(bytes).unbind()));
            return;
        }
        let hasher = self.hasher(py);
        compute(py, input.len(), || hasher.add(input));
    }

    /// The hasher. It is created if it does not exist yet.
    fn hasher(&mut self, py: Python<'_>) -> &mut S {
        if let Self::Whole(kept) = self {
            let mut hasher = Box::new(S::new());
            if let Some(kept) = kept {
                hasher.add(kept.as_bytes(py));
            }
            *self = Self::Hasher(hasher);
        }
        match self {
            Self::Hasher(hasher) => hasher,
            Self::Whole(_) => unreachable!("it was just made"),
        }
    }

    fn digest(&self, py: Python<'_>) -> Hash<S::Variant>
    where
        Hash<S::Variant>: Send,
    {
        match self {
            Self::Whole(kept) => {
                let input = kept.as_ref().map_or(&[][..], |kept| kept.as_bytes(py));
                compute(py, input.len(), || S::digest_of(input))
            }
            Self::Hasher(hasher) => hasher.digest(),
        }
    }

    fn copy(&self, py: Python<'_>) -> Self {
        match self {
            Self::Whole(kept) => Self::Whole(kept.as_ref().map(|kept| kept.clone_ref(py))),
            Self::Hasher(hasher) => Self::Hasher(hasher.clone()),
        }
    }
}

/// What all four classes share.
struct Shared<S: Hasher> {
    content: Mutex<HashInput<S>>,
    digest_size: usize,
    key: Key,
}

/// Whether there is a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    None,
    Some,
}

impl<S: Hasher> Shared<S>
where
    Hash<S::Variant>: Send,
{
    #[inline]
    fn new(
        py: Python<'_>,
        mut content: HashInput<S>,
        digest_size: usize,
        key: Key,
        data: Option<&Input<'_, '_>>,
    ) -> Self {
        if let Some(data) = data {
            content.add(py, data);
        }
        Self { content: Mutex::new(content), digest_size, key }
    }

    /// The content, for this thread alone.
    fn content(&self, py: Python<'_>) -> MutexGuard<'_, HashInput<S>> {
        self.content.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, py: Python<'_>, data: &Input<'_, '_>) {
        self.content(py).add(py, data);
    }

    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.content(py).digest(py).as_bytes())
    }

    fn hexdigest<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digest = self.content(py).digest(py);
        let mut hex = [[0; 2]; 64];
        for (digits, byte) in hex.iter_mut().zip(digest.as_bytes()) {
            *digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
        }
        let hex = &hex.as_flattened()[..2 * digest.as_bytes().len()];
        PyString::new(py, str::from_utf8(hex).expect("digits are ASCII"))
    }

    fn copy(&self, py: Python<'_>) -> Self {
        let content = self.content(py).copy(py);
        Self { content: Mutex::new(content), digest_size: self.digest_size, key: self.key }
    }
}

impl<S: Hasher> Drop for Shared<S> {
    fn drop(&mut self) {
        let content = self.content.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Key::Some, HashInput::Hasher(hasher)) = (self.key, content) {
            hasher.wipe();
        }
    }
}

/// A number between two limits, or hashlib's `ValueError`.
fn within(value: i32, (least, most): (i32, i32), name: &str) -> PyResult<i32> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(PyValueError::new_err(format!("{name} must be between {least} and {most}, here it is {value}")))
}

/// A parameter of at most so many bytes, or hashlib's `ValueError`.
fn at_most<'a>(bytes: Option<&'a Input<'_, '_>>, most: usize, name: &str) -> PyResult<&'a [u8]> {
    let bytes = bytes.map_or(&[][..], Input::as_slice);
    if bytes.len() <= most {
        return Ok(bytes);
    }
    Err(PyValueError::new_err(format!("maximum {name} length is {most} bytes, here it is {}", bytes.len())))
}

/// An unsigned number of at most `most`, or one of hashlib's errors: `ValueError` below 0,
/// `OverflowError` above.
fn unsigned(value: Option<&Bound<'_, PyAny>>, most: u64, name: &str) -> PyResult<u64> {
    let Some(value) = value else { return Ok(0) };
    let too_large = || PyOverflowError::new_err(format!("{name} is too large: at most {most}"));
    match value.extract::<u64>() {
        Ok(number) if number <= most => Ok(number),
        Ok(_) => Err(too_large()),
        Err(error) if !error.is_instance_of::<PyOverflowError>(value.py()) => Err(error),
        Err(_) if value.lt(0)? => Err(PyValueError::new_err(format!("{name} must not be negative"))),
        Err(_) => Err(too_large()),
    }
}

/// The parameters that only the sequential functions have.
struct Tree<'a, 'py> {
    fanout: i32,
    depth: i32,
    leaf_size: Option<&'a Bound<'py, PyAny>>,
    node_offset: Option<&'a Bound<'py, PyAny>>,
    node_depth: i32,
    inner_size: i32,
    last_node: bool,
}

impl Tree<'_, '_> {
    /// Whether all of them are the defaults.
    fn is_plain(&self) -> bool {
        let Self { fanout, depth, leaf_size, node_offset, node_depth, inner_size, last_node } = self;
        let numbers = (*fanout, *depth, *node_depth, *inner_size) == (1, 1, 0, 0);
        numbers && leaf_size.is_none() && node_offset.is_none() && !last_node
    }

    fn apply<V: Variant>(&self, params: &mut Params<V>, sizes: Sizes) -> PyResult<()> {
        let byte = |value: i32, limits, name| within(value, limits, name).map(|value| value as u8);
        params.fanout(byte(self.fanout, (0, 255), "fanout")?);
        params.max_depth(byte(self.depth, (1, 255), "depth")?);
        params.max_leaf_length(unsigned(self.leaf_size, u64::from(u32::MAX), "leaf_size")? as u32);
        params.node_offset(unsigned(self.node_offset, sizes.most_node_offset, "node_offset")?);
        params.node_depth(byte(self.node_depth, (0, 255), "node_depth")?);
        params.inner_hash_length(
            within(self.inner_size, (0, sizes.digest as i32), "inner_size")?.unsigned_abs() as usize,
        );
        params.last_node(self.last_node);
        Ok(())
    }
}

/// The limits of a function.
#[derive(Clone, Copy)]
struct Sizes {
    digest: usize,
    block: usize,
    salt: usize,
    most_node_offset: u64,
}

const B: Sizes = Sizes { digest: 64, block: 128, salt: 16, most_node_offset: u64::MAX };
const S: Sizes = Sizes { digest: 32, block: 64, salt: 8, most_node_offset: (1 << 48) - 1 };

/// The length of a digest.
fn digest_size(wanted: Option<i32>, sizes: Sizes) -> PyResult<usize> {
    let most = sizes.digest as i32;
    Ok(within(wanted.unwrap_or(most), (1, most), "digest_size")?.unsigned_abs() as usize)
}

fn key_of(key: &[u8]) -> Key {
    if key.is_empty() { Key::None } else { Key::Some }
}

fn sequential<V: OneCall<Word: Zeroize>>(
    py: Python<'_>,
    data: Option<&Input<'_, '_>>,
    wanted: Option<i32>,
    [key, salt, person]: [Option<Input<'_, '_>>; 3],
    tree: &Tree<'_, '_>,
    sizes: Sizes,
) -> PyResult<Shared<State<V>>>
where
    State<V>: Send,
    Hash<V>: Send,
{
    if wanted.is_none() && key.is_none() && salt.is_none() && person.is_none() && tree.is_plain() {
        return Ok(Shared::new(py, HashInput::Whole(None), sizes.digest, Key::None, data));
    }
    let digest_size = digest_size(wanted, sizes)?;
    let key = at_most(key.as_ref(), sizes.digest, "key")?;
    let mut params = Params::<V>::new();
    params.hash_length(digest_size).key(key);
    params.salt(at_most(salt.as_ref(), sizes.salt, "salt")?);
    params.personal(at_most(person.as_ref(), sizes.salt, "person")?);
    let applied = tree.apply(&mut params, sizes);
    let shared = applied.map(|()| {
        Shared::new(py, HashInput::Hasher(Box::new(params.to_state())), digest_size, key_of(key), data)
    });
    params.zeroize();
    shared
}

fn parallel<V: OneCall>(
    py: Python<'_>,
    data: Option<&Input<'_, '_>>,
    wanted: Option<i32>,
    key: Option<Input<'_, '_>>,
    sizes: Sizes,
) -> PyResult<Shared<ParallelState<V>>>
where
    ParallelState<V>: Send,
    Hash<V>: Send,
{
    if wanted.is_none() && key.is_none() {
        return Ok(Shared::new(py, HashInput::Whole(None), sizes.digest, Key::None, data));
    }
    let digest_size = digest_size(wanted, sizes)?;
    let key = at_most(key.as_ref(), sizes.digest, "key")?;
    let mut params = ParallelParams::<V>::new();
    params.hash_length(digest_size).key(key);
    let content = HashInput::Hasher(Box::new(params.to_state()));
    let shared = Shared::new(py, content, digest_size, key_of(key), data);
    overwrite(&mut params, ParallelParams::new());
    Ok(shared)
}

/// The methods and the constants of a class, and its constructor.
macro_rules! class {
    ($class:ident, $name:literal, $state:ty, $sizes:expr, $doc:literal, { $($constant:ident = $value:expr;)* }, $($new:tt)*) => {
        #[doc = $doc]
        #[pyclass(name = $name, module = "bulla_hash", frozen)]
        pub(crate) struct $class(Shared<$state>);

        #[pymethods]
        impl $class {
            /// The name of the hash function.
            #[classattr]
            #[allow(non_upper_case_globals, reason = "the name of hashlib")]
            const name: &'static str = $name;

            /// The length of a block in bytes.
            #[classattr]
            #[allow(non_upper_case_globals, reason = "the name of hashlib")]
            const block_size: usize = $sizes.block;

            /// The most bytes of a key.
            #[classattr]
            const MAX_KEY_SIZE: usize = $sizes.digest;

            /// The most bytes of a digest.
            #[classattr]
            const MAX_DIGEST_SIZE: usize = $sizes.digest;

            $(
                /// The most bytes of this parameter.
                #[classattr]
                const $constant: usize = $value;
            )*

            $($new)*

            /// The length of this hasher's digest in bytes.
            #[getter]
            fn digest_size(&self) -> usize {
                self.0.digest_size
            }

            /// Hashes more input.
            #[pyo3(signature = (data, /))]
            fn update(&self, py: Python<'_>, data: Input<'_, '_>) {
                self.0.update(py, &data);
            }

            /// The digest of the input so far. More input may follow.
            #[pyo3(signature = ())]
            fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                self.0.digest(py)
            }

            /// Like `digest`, in hexadecimal digits.
            #[pyo3(signature = ())]
            fn hexdigest<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
                self.0.hexdigest(py)
            }

            /// An independent copy.
            #[pyo3(signature = ())]
            fn copy(&self, py: Python<'_>) -> Self {
                Self(self.0.copy(py))
            }
        }
    };
}

macro_rules! sequential_class {
    ($class:ident, $name:literal, $variant:ty, $sizes:expr, $doc:literal) => {
        class! {
            $class, $name, State<$variant>, $sizes, $doc,
            { SALT_SIZE = $sizes.salt; PERSON_SIZE = $sizes.salt; },
            #[new]
            #[allow(clippy::too_many_arguments, reason = "hashlib's")]
            #[pyo3(
                signature = (
                    data = None, /, *, digest_size = None, key = None, salt = None, person = None, fanout = 1, depth = 1,
                    leaf_size = None, node_offset = None, node_depth = 0, inner_size = 0, last_node = false,
                    usedforsecurity = true
                ),
            )]
            fn new(
                py: Python<'_>,
                data: Option<Input<'_, '_>>,
                digest_size: Option<i32>,
                key: Option<Input<'_, '_>>,
                salt: Option<Input<'_, '_>>,
                person: Option<Input<'_, '_>>,
                fanout: i32,
                depth: i32,
                leaf_size: Option<&Bound<'_, PyAny>>,
                node_offset: Option<&Bound<'_, PyAny>>,
                node_depth: i32,
                inner_size: i32,
                #[pyo3(from_py_with = truth)] last_node: bool,
                #[pyo3(from_py_with = truth)] usedforsecurity: bool,
            ) -> PyResult<Self> {
                let _ = usedforsecurity;
                let tree = Tree { fanout, depth, leaf_size, node_offset, node_depth, inner_size, last_node };
                sequential(py, data.as_ref(), digest_size, [key, salt, person], &tree, $sizes).map(Self)
            }
        }
    };
}

macro_rules! parallel_class {
    ($class:ident, $name:literal, $variant:ty, $sizes:expr, $doc:literal) => {
        class! {
            $class, $name, ParallelState<$variant>, $sizes, $doc, {},
            #[new]
            #[pyo3(signature = (data = None, /, *, digest_size = None, key = None, usedforsecurity = true))]
            fn new(
                py: Python<'_>,
                data: Option<Input<'_, '_>>,
                digest_size: Option<i32>,
                key: Option<Input<'_, '_>>,
                #[pyo3(from_py_with = truth)] usedforsecurity: bool,
            ) -> PyResult<Self> {
                let _ = usedforsecurity;
                parallel(py, data.as_ref(), digest_size, key, $sizes).map(Self)
            }
        }
    };
}

sequential_class!(Blake2bClass, "blake2b", Blake2b, B, "A BLAKE2b hasher, like hashlib's.");
sequential_class!(Blake2sClass, "blake2s", Blake2s, S, "A BLAKE2s hasher, like hashlib's.");
parallel_class!(
    Blake2bpClass,
    "blake2bp",
    Blake2b,
    B,
    "A BLAKE2bp hasher: four leaves of BLAKE2b side by side."
);
parallel_class!(
    Blake2spClass,
    "blake2sp",
    Blake2s,
    S,
    "A BLAKE2sp hasher: eight leaves of BLAKE2s side by side."
);
