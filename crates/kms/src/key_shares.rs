//! Who has a private key together with others.

use serde::{Deserialize, Serialize};

use crate::id::Name;

/// Who has a private key together, when nobody has it whole.
///
/// ```
/// use bulla_kms::KeyShares;
///
/// let shares = KeyShares::new(2, vec!["node0".parse()?, "node1".parse()?, "node2".parse()?], 1);
/// assert_eq!((shares.threshold, shares.holders.len(), shares.epoch), (2, 3, 1));
/// # Ok::<(), bulla_kms::KmsError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyShares {
    /// How many of the holders sign together.
    pub threshold: u16,
    /// Who holds a share.
    pub holders: Vec<Name>,
    /// How often the shares were changed.
    pub epoch: u32,
}

impl KeyShares {
    /// `threshold` of these holders sign together.
    pub fn new(threshold: u16, holders: Vec<Name>, epoch: u32) -> Self {
        Self { threshold, holders, epoch }
    }
}
