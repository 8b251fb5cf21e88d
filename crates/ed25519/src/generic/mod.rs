//! The mathematics, written once over [`Lanes`](crate::lanes::Lanes): `docs/ed25519-lanes.md`
//! explains it in prose, with the bounds.

pub(crate) mod alone;
mod chain;
pub(crate) mod comb;
mod divsteps;
mod euclid;
pub(crate) mod field;
pub(crate) mod halving;
pub(crate) mod msm;
mod naf;
pub(crate) mod one_by_one;
pub(crate) mod one_element;
mod one_point;
mod one_signature;
pub(crate) mod pair;
pub(crate) mod point;
pub(crate) mod power;
pub(crate) mod scalar;
pub(crate) mod sha512;
pub(crate) mod sign;
pub(crate) mod single;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod verify;
