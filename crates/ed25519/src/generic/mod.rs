//! The mathematics, written once over [`Lanes`](crate::lanes::Lanes): `docs/ed25519-lanes.md` has it in prose, with the bounds.

pub(crate) mod alone;
pub(crate) mod field;
pub(crate) mod msm;
pub(crate) mod narrow;
pub(crate) mod point;
pub(crate) mod power;
pub(crate) mod scalar;
pub(crate) mod sha512;
pub(crate) mod sign;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod verify;
