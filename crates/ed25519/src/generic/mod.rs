//! The mathematics, written once over [`Lanes`](crate::lanes::Lanes): `docs/ed25519-lanes.md`
//! explains it in prose, with the bounds.

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
