//! The timed operations of rscrypto, which has other names.

use std::hint::black_box;

use rscrypto::{Blake3, Digest as _, Xof as _};

use super::operations::{Boxed, CONTEXT, KEY, MANY, Mode, PageAligned, digest, effect};
use crate::measure::{Input, Op};

pub(super) fn oneshot(mode: Mode) -> Boxed {
    match mode {
        Mode::Hash => digest(|input, out| *out = Blake3::digest(input.whole)),
        Mode::Keyed => digest(|input, out| *out = Blake3::keyed_digest(&KEY, input.whole).to_bytes()),
        Mode::DeriveKey => digest(|input, out| *out = Blake3::derive_key(CONTEXT, input.whole)),
    }
}

/// Of pieces of `update` bytes.
pub(super) fn stream(mode: Mode, update: usize) -> Boxed {
    fn feed(mut hasher: Blake3, input: &Input<'_>, update: usize, out: &mut [u8; 32]) {
        for piece in input.whole.chunks(update) {
            hasher.update(piece);
        }
        *out = hasher.finalize();
    }
    match mode {
        Mode::Hash => digest(move |input, out| feed(Blake3::new(), input, update, out)),
        Mode::Keyed => digest(move |input, out| feed(Blake3::new_keyed(&KEY), input, update, out)),
        Mode::DeriveKey => {
            digest(move |input, out| feed(Blake3::new_derive_key(CONTEXT), input, update, out))
        }
    }
}

pub(super) fn new() -> Boxed {
    effect(|_| {
        black_box(&Blake3::new());
    })
}

pub(super) fn new_keyed() -> Boxed {
    effect(|_| {
        black_box(&Blake3::new_keyed(black_box(&KEY)));
    })
}

pub(super) fn new_derive_key() -> Boxed {
    effect(|_| {
        black_box(&Blake3::new_derive_key(black_box(CONTEXT)));
    })
}

/// A new hasher and one update, without the end.
pub(super) fn update() -> Boxed {
    effect(|input| {
        let mut hasher = Blake3::new();
        hasher.update(input.whole);
        black_box(&mut hasher);
    })
}

/// Only the end, of a hasher that has taken `bytes`.
pub(super) fn finalize(bytes: usize) -> Boxed {
    let mut hasher = Blake3::new();
    hasher.update(&vec![7; bytes]);
    digest(move |_, out| *out = black_box(&hasher).finalize())
}

pub(super) fn many() -> Boxed {
    Box::new(Op {
        result: vec![[0_u8; 32]; MANY],
        run: |input: &Input<'_>, out: &mut Vec<[u8; 32]>| {
            for (part, hash) in input.parts.iter().zip(out) {
                *hash = Blake3::digest(part);
            }
        },
        bytes: |out: &Vec<[u8; 32]>| out.concat(),
    })
}

pub(super) fn xof(bytes: usize) -> Boxed {
    Box::new(Op {
        result: PageAligned::new(bytes),
        run: |input: &Input<'_>, out: &mut PageAligned| Blake3::xof(input.whole).squeeze(out.get()),
        bytes: PageAligned::to_vec,
    })
}
