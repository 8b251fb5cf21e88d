//! The timed operations of the two crates with one API: ours and the official one.

use std::{hint::black_box, rc::Rc};

use bulla_blake3::kernel;

use super::files::{Access, TestFile};
use crate::measure::{Input, Op, Subject};

pub(super) type Boxed = Box<dyn Subject>;

pub(super) const KEY: [u8; 32] = *b"0123456789abcdefghijklmnopqrstuv";
pub(super) const CONTEXT: &str = "bulla 2026-01-01 benchmark of derive_key";

/// The number of inputs that are hashed side by side.
pub(super) const MANY: usize = 64;

/// The modes of BLAKE3.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    Hash,
    Keyed,
    DeriveKey,
}

impl Mode {
    pub(super) const ALL: [Self; 3] = [Self::Hash, Self::Keyed, Self::DeriveKey];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Hash => "hash",
            Self::Keyed => "keyed",
            Self::DeriveKey => "derive_key",
        }
    }
}

/// An operation that leaves a digest.
pub(super) fn digest(run: impl FnMut(&Input<'_>, &mut [u8; 32]) + 'static) -> Boxed {
    Box::new(Op { result: [0; 32], run, bytes: |out: &[u8; 32]| out.to_vec() })
}

/// An operation without a result to compare. `run` keeps it from being optimized away.
pub(super) fn effect(mut run: impl FnMut(&Input<'_>) + 'static) -> Boxed {
    Box::new(Op {
        result: (),
        run: move |input: &Input<'_>, (): &mut ()| run(input),
        bytes: |_: &()| Vec::new(),
    })
}

/// Ours, by the kernel in use, which is named instead of looked up at each call.
pub(super) fn direct() -> Boxed {
    let kernel = kernel::active();
    digest(move |input, out| *out = *kernel.hash(input.whole).as_bytes())
}

/// Key derivation with a context that is already hashed.
pub(super) fn derive_reused_ours() -> Boxed {
    let context = bulla_blake3::DeriveKey::new(CONTEXT);
    digest(move |input, out| *out = context.derive(input.whole))
}

/// The official crate's equivalent: a hasher for a context key.
pub(super) fn derive_reused_official() -> Boxed {
    use blake3::hazmat::{HasherExt as _, hash_derive_key_context};
    let key = hash_derive_key_context(CONTEXT);
    digest(move |input, out| {
        let mut hasher = blake3::Hasher::new_from_context_key(&key);
        *out = *hasher.update(input.whole).finalize().as_bytes();
    })
}

/// One call for all inputs.
pub(super) fn many_ours() -> Boxed {
    Box::new(Op {
        result: vec![bulla_blake3::Hash::from_bytes([0; 32]); MANY],
        run: |input: &Input<'_>, out: &mut Vec<bulla_blake3::Hash>| {
            bulla_blake3::hash_many(&input.parts, out)
        },
        bytes: |out: &Vec<bulla_blake3::Hash>| out.iter().flat_map(|hash| *hash.as_bytes()).collect(),
    })
}

/// The official crate has no such call: one call for each input.
pub(super) fn many_official() -> Boxed {
    Box::new(Op {
        result: vec![blake3::Hash::from_bytes([0; 32]); MANY],
        run: |input: &Input<'_>, out: &mut Vec<blake3::Hash>| {
            for (part, hash) in input.parts.iter().zip(out) {
                *hash = blake3::hash(part);
            }
        },
        bytes: |out: &Vec<blake3::Hash>| out.iter().flat_map(|hash| *hash.as_bytes()).collect(),
    })
}

/// Memory for long output. Its alignment within a cache line is worth 2 %, so it is the same for
/// all contenders.
pub(super) struct PageAligned {
    memory: Vec<u8>,
    range: std::ops::Range<usize>,
}

impl PageAligned {
    const PAGE: usize = 4096;

    pub(super) fn new(length: usize) -> Self {
        let memory = vec![0; length + Self::PAGE];
        let start = memory.as_ptr().align_offset(Self::PAGE);
        Self { memory, range: start..start + length }
    }

    pub(super) fn get(&mut self) -> &mut [u8] {
        &mut self.memory[self.range.clone()]
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        self.memory[self.range.clone()].to_vec()
    }
}

/// The operations, written once for the two crates, which have the same names, so that both get the
/// same treatment.
macro_rules! operations {
    ($name:ident, $library:ident) => {
        pub(super) mod $name {
            use $library::{Hasher, hazmat};

            use super::*;

            pub(in super::super) fn oneshot(mode: Mode) -> Boxed {
                match mode {
                    Mode::Hash => digest(|input, out| *out = *$library::hash(input.whole).as_bytes()),
                    Mode::Keyed => {
                        digest(|input, out| *out = *$library::keyed_hash(&KEY, input.whole).as_bytes())
                    }
                    Mode::DeriveKey => digest(|input, out| *out = $library::derive_key(CONTEXT, input.whole)),
                }
            }

            /// Of pieces of `update` bytes.
            pub(in super::super) fn stream(mode: Mode, update: usize) -> Boxed {
                // An update of usize::MAX is a single update with everything; an empty input is one
                // empty update.
                fn feed(hasher: &mut Hasher, input: &Input<'_>, update: usize, out: &mut [u8; 32]) {
                    for piece in input.whole.chunks(update) {
                        hasher.update(piece);
                    }
                    *out = *hasher.finalize().as_bytes();
                }
                match mode {
                    Mode::Hash => digest(move |input, out| feed(&mut Hasher::new(), input, update, out)),
                    Mode::Keyed => {
                        digest(move |input, out| feed(&mut Hasher::new_keyed(&KEY), input, update, out))
                    }
                    Mode::DeriveKey => digest(move |input, out| {
                        feed(&mut Hasher::new_derive_key(CONTEXT), input, update, out)
                    }),
                }
            }

            pub(in super::super) fn new() -> Boxed {
                effect(|_| {
                    black_box(&Hasher::new());
                })
            }

            pub(in super::super) fn new_keyed() -> Boxed {
                effect(|_| {
                    black_box(&Hasher::new_keyed(black_box(&KEY)));
                })
            }

            pub(in super::super) fn new_derive_key() -> Boxed {
                effect(|_| {
                    black_box(&Hasher::new_derive_key(black_box(CONTEXT)));
                })
            }

            /// A new hasher and one update, without the end.
            pub(in super::super) fn update() -> Boxed {
                effect(|input| {
                    black_box(Hasher::new().update(input.whole));
                })
            }

            /// Only the end, of a hasher that has taken `bytes`.
            pub(in super::super) fn finalize(bytes: usize) -> Boxed {
                let mut hasher = Hasher::new();
                hasher.update(&vec![7; bytes]);
                digest(move |_, out| *out = *black_box(&hasher).finalize().as_bytes())
            }

            fn halves<'a>(input: &'a Input<'_>) -> (&'a [u8; 32], &'a [u8; 32]) {
                let [left, right] = input.whole.as_chunks::<32>().0 else { panic!("two chaining values") };
                (left, right)
            }

            pub(in super::super) fn merge_parent() -> Boxed {
                digest(|input, out| {
                    let (left, right) = halves(input);
                    *out = hazmat::merge_subtrees_non_root(left, right, hazmat::Mode::Hash);
                })
            }

            pub(in super::super) fn merge_root() -> Boxed {
                digest(|input, out| {
                    let (left, right) = halves(input);
                    *out = *hazmat::merge_subtrees_root(left, right, hazmat::Mode::Hash).as_bytes();
                })
            }

            pub(in super::super) fn xof(bytes: usize) -> Boxed {
                Box::new(Op {
                    result: PageAligned::new(bytes),
                    run: |input: &Input<'_>, out: &mut PageAligned| {
                        Hasher::new().update(input.whole).finalize_xof().fill(out.get());
                    },
                    bytes: PageAligned::to_vec,
                })
            }

            /// In the pool of the process.
            pub(in super::super) fn threads() -> Boxed {
                digest(|input, out| {
                    *out = *Hasher::new().update_rayon(input.whole).finalize().as_bytes();
                })
            }

            pub(in super::super) fn file(access: Access, file: &Rc<TestFile>) -> Boxed {
                let file = Rc::clone(file);
                let hash = move || {
                    let (path, mut hasher) = (file.path(), Hasher::new());
                    let hashed = match access {
                        Access::Read => hasher.update_reader(std::fs::File::open(path)?)?,
                        Access::Mapped => hasher.update_mmap(path)?,
                        Access::MappedByThreads => hasher.update_mmap_rayon(path)?,
                    };
                    std::io::Result::Ok(*hashed.finalize().as_bytes())
                };
                digest(move |_, out| *out = hash().expect("the file of the benchmark is there"))
            }
        }
    };
}

operations!(ours, bulla_blake3);
operations!(official, blake3);
