//! The mathematics, written once over [`Lanes`](crate::lanes::Lanes): `docs/ed25519-lanes.md`
//! explains it in prose, with the bounds.
//!
//! Each line uses those below it. Files with `64` compute in general registers, for one signature;
//! the others compute in lanes.
//!
//! | files | compute |
//! |---|---|
//! | [`verify`], [`sign`] | the steps of a group: one signature in each lane |
//! | [`pair_sums`] | one or two signatures with all lanes |
//! | [`msm`] | one sum with random coefficients, for the cofactored predicate |
//! | [`table`] | tables of multiples, and sums of their rows |
//! | [`point`], [`pair`], [`point64`] | points: one in each lane, two side by side, one alone |
//! | [`halving`], `euclid` | factors of half the length, for a few signatures |
//! | [`scalar`], [`sha512`] | numbers modulo the order of the base point, and the hash of a message |
//! | [`field`], [`field64`], `divsteps` | elements of the field, and their inverses |

mod divsteps;
mod euclid;
pub(crate) mod field;
pub(crate) mod field64;
pub(crate) mod halving;
pub(crate) mod msm;
pub(crate) mod pair;
pub(crate) mod pair_sums;
pub(crate) mod point;
pub(crate) mod point64;
pub(crate) mod scalar;
pub(crate) mod sha512;
pub(crate) mod sign;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod verify;
