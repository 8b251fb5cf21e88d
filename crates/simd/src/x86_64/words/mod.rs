//! The word traits on x86-64: vectors of 64-bit words, and the 32-bit vectors of the sibling
//! modules under the same traits.

mod avx2;
mod avx512;
mod methods;
mod sse41;

pub use avx2::{U32x4 as U32x4Avx2, U64x4};
pub use avx512::{U64x4 as U64x4Avx512, U64x8};
pub use sse41::{U64x2, U64x4 as U64x4Sse41};
