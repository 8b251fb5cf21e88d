//! The Merkle tree over the entries: the shapes, proofs and checks of RFC 9162, section 2.1, with BLAKE3 as the hash.
//!
//! RFC 9162 distinguishes leaves from nodes by a first byte; here, each has its own `derive_key` context.

use std::sync::LazyLock;

use bulla_blake3::{DeriveKey, Hash};

static LEAF: LazyLock<DeriveKey> = LazyLock::new(|| DeriveKey::new("bulla audit log v1 leaf"));
static NODE: LazyLock<DeriveKey> = LazyLock::new(|| DeriveKey::new("bulla audit log v1 node"));
static CHAIN: LazyLock<DeriveKey> = LazyLock::new(|| DeriveKey::new("bulla audit log v1 chain"));

/// An entry's leaf: the hash of its whole line, without the line feed.
pub(super) fn leaf(line: &[u8]) -> Hash {
    LEAF.derive(line).into()
}

/// The leaves of many entries, hashed side by side.
pub(super) fn leaves(lines: &[&[u8]]) -> Vec<Hash> {
    let mut leaves = vec![Hash::from_bytes([0; 32]); lines.len()];
    LEAF.derive_many(lines, &mut leaves);
    leaves
}

fn node(left: &Hash, right: &Hash) -> Hash {
    let mut both = [0; 64];
    both[..32].copy_from_slice(left.as_bytes());
    both[32..].copy_from_slice(right.as_bytes());
    NODE.derive(&both).into()
}

/// The root of a tree without entries.
fn empty() -> Hash {
    DeriveKey::new("bulla audit log v1 empty tree").derive(b"").into()
}

/// What a line adds to the chain of lines: a hash of the chain so far and, after it, of the line without its own link.
pub(super) fn link(chain: &Hash, body: &[u8]) -> Hash {
    link_of(&[chain.as_bytes(), body].concat())
}

/// The same of the two put together.
pub(super) fn link_of(linked: &[u8]) -> Hash {
    CHAIN.derive(linked).into()
}

/// The part of a tree that appending needs: the roots of its complete subtrees, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frontier {
    size: u64,
    peaks: Vec<Hash>,
}

impl Frontier {
    /// The frontier of a saved tree; `None` if a tree of that size has another number of complete subtrees.
    pub(super) fn from_parts(size: u64, peaks: Vec<Hash>) -> Option<Self> {
        (u32::try_from(peaks.len()) == Ok(size.count_ones())).then_some(Self { size, peaks })
    }

    /// How many leaves the tree has.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The roots of the complete subtrees.
    pub(super) fn peaks(&self) -> &[Hash] {
        &self.peaks
    }

    pub(super) fn push(&mut self, leaf: Hash) {
        let mut root = leaf;
        for _ in 0..self.size.trailing_ones() {
            let left = self.peaks.pop().expect("there is a complete subtree for each one bit of the size");
            root = node(&left, &root);
        }
        self.peaks.push(root);
        self.size += 1;
    }

    pub(super) fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else { return empty() };
        peaks.fold(*last, |right, left| node(left, &right))
    }
}

impl FromIterator<Hash> for Frontier {
    fn from_iter<T: IntoIterator<Item = Hash>>(leaves: T) -> Self {
        let mut frontier = Self::default();
        leaves.into_iter().for_each(|leaf| frontier.push(leaf));
        frontier
    }
}

fn root(leaves: &[Hash]) -> Hash {
    leaves.iter().copied().collect::<Frontier>().root()
}

/// The leaves of the left subtree: the largest power of two below `size`, which is at least 2.
fn left(size: usize) -> usize {
    size.next_power_of_two() / 2
}

/// The siblings on the way from leaf `index` to the root, the lowest first (RFC 9162, section 2.1.3.1).
///
/// # Panics
/// If there is no such leaf.
pub(super) fn inclusion(leaves: &[Hash], index: usize) -> Vec<Hash> {
    assert!(index < leaves.len(), "no such leaf");
    if leaves.len() == 1 {
        return Vec::new();
    }
    let (left, right) = leaves.split_at(left(leaves.len()));
    let (mut path, sibling) = if index < left.len() {
        (inclusion(left, index), root(right))
    } else {
        (inclusion(right, index - left.len()), root(left))
    };
    path.push(sibling);
    path
}

/// The proof that this tree begins with the tree of the first `old` leaves (RFC 9162, section 2.1.4.1).
///
/// # Panics
/// If the tree has fewer leaves.
pub(super) fn consistency(leaves: &[Hash], old: usize) -> Vec<Hash> {
    assert!(old <= leaves.len(), "the older tree is the larger one");
    if old == 0 { Vec::new() } else { subproof(leaves, old, Known::Yes) }
}

/// Whether the verifier already has the subtree's root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Yes,
    No,
}

fn subproof(leaves: &[Hash], old: usize, known: Known) -> Vec<Hash> {
    if old == leaves.len() {
        return if known == Known::Yes { Vec::new() } else { vec![root(leaves)] };
    }
    let (left, right) = leaves.split_at(left(leaves.len()));
    let (mut path, sibling) = if old <= left.len() {
        (subproof(left, old, known), root(right))
    } else {
        (subproof(right, old - left.len(), Known::No), root(left))
    };
    path.push(sibling);
    path
}

/// The position of a proof's check: the place of a subtree in its level, and the last place of that level.
struct Climb {
    place: u64,
    last: u64,
}

/// The side of the current node on which the next sibling is.
enum Side {
    Left,
    Right,
}

impl Climb {
    /// Goes one level up; `None` at the root.
    fn step(&mut self) -> Option<Side> {
        if self.last == 0 {
            return None;
        }
        let side = if self.place & 1 == 1 || self.place == self.last {
            // A last subtree without a sibling is its own parent on the levels above. The place is not 0 here.
            self.up(self.place.trailing_zeros());
            Side::Left
        } else {
            Side::Right
        };
        self.up(1);
        Some(side)
    }

    fn up(&mut self, levels: u32) {
        self.place >>= levels;
        self.last >>= levels;
    }
}

/// Whether the path leads from a leaf to the root of a tree of `size` leaves (RFC 9162, section 2.1.3.2).
pub(super) fn includes(leaf: &Hash, index: u64, size: u64, path: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let mut climb = Climb { place: index, last: size - 1 };
    let mut hash = *leaf;
    for sibling in path {
        hash = match climb.step() {
            Some(Side::Left) => node(sibling, &hash),
            Some(Side::Right) => node(&hash, sibling),
            None => return false,
        };
    }
    climb.last == 0 && hash == *root
}

/// Whether the path leads from the older root to the newer one (RFC 9162, section 2.1.4.2). Trees are sizes and roots.
pub(super) fn extends(old: (u64, &Hash), new: (u64, &Hash), path: &[Hash]) -> bool {
    let ((old, old_root), (new, new_root)) = (old, new);
    if old == 0 || old >= new {
        let same = old == new && old_root == new_root;
        return path.is_empty() && (same || (old == 0 && new > 0 && *old_root == empty()));
    }
    // A complete older tree is a subtree of the newer one. The path then begins with its root, which the proof omits.
    let mut path = old.is_power_of_two().then_some(old_root).into_iter().chain(path);
    let Some(first) = path.next() else { return false };
    let mut climb = Climb { place: old - 1, last: new - 1 };
    climb.up(climb.place.trailing_ones());
    let (mut older, mut newer) = (*first, *first);
    for sibling in path {
        match climb.step() {
            Some(Side::Left) => {
                older = node(sibling, &older);
                newer = node(sibling, &newer);
            }
            Some(Side::Right) => newer = node(&newer, sibling),
            None => return false,
        }
    }
    climb.last == 0 && older == *old_root && newer == *new_root
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaves(count: usize) -> Vec<Hash> {
        (0..count).map(|number| leaf(&number.to_be_bytes())).collect()
    }

    #[test]
    fn a_tree_extends_itself_the_empty_one_and_none_that_is_larger() {
        let (one, other) = (root(&leaves(5)), root(&leaves(6)));
        assert!(extends((5, &one), (5, &one), &[]));
        assert!(!extends((5, &one), (5, &other), &[]), "other entries, and as many");
        assert!(!extends((5, &one), (5, &one), &[one]), "a path too many");
        assert!(!extends((6, &one), (5, &one), &[]));
        assert!(extends((0, &empty()), (5, &one), &[]));
        assert!(!extends((0, &other), (5, &one), &[]), "the empty tree has one root");
        assert!(!extends((0, &empty()), (5, &one), &[one]));
        assert!(!extends((0, &empty()), (0, &one), &[]));
    }

    /// The definition of RFC 9162, section 2.1.1, word for word.
    fn definition(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => empty(),
            [leaf] => *leaf,
            _ => {
                let mut k = 1;
                while k * 2 < leaves.len() {
                    k *= 2;
                }
                node(&definition(&leaves[..k]), &definition(&leaves[k..]))
            }
        }
    }

    #[test]
    fn the_root_is_that_of_the_definition_at_every_size() {
        let leaves = leaves(130);
        for size in 0..=leaves.len() {
            assert_eq!(root(&leaves[..size]), definition(&leaves[..size]), "{size}");
        }
    }

    #[test]
    fn leaves_nodes_and_links_of_the_same_bytes_differ() {
        let (a, b) = (leaf(b"a"), leaf(b"b"));
        let bytes = [*a.as_bytes(), *b.as_bytes()].concat();
        assert_ne!(leaf(&bytes), node(&a, &b));
        assert_ne!(leaf(&bytes), link(&a, b.as_bytes()));
        assert_ne!(node(&a, &b), link(&a, b.as_bytes()));
    }

    #[test]
    fn every_leaf_of_every_small_tree_has_a_proof_and_no_other_place_has_it() {
        let leaves = leaves(33);
        for size in 1..=leaves.len() {
            let root = root(&leaves[..size]);
            for index in 0..size {
                let path = inclusion(&leaves[..size], index);
                for place in 0..=size {
                    let holds = includes(&leaves[index], place as u64, size as u64, &path, &root);
                    assert_eq!(holds, place == index, "{index} of {size} at {place}");
                }
            }
        }
    }

    #[test]
    fn every_beginning_of_every_small_tree_has_a_proof() {
        let leaves = leaves(33);
        for new in 0..=leaves.len() {
            for old in 0..=new {
                let path = consistency(&leaves[..new], old);
                let (older, newer) = (root(&leaves[..old]), root(&leaves[..new]));
                assert!(extends((old as u64, &older), (new as u64, &newer), &path), "{old} of {new}");
                if old < new {
                    let other = leaf(b"other");
                    assert!(!extends((old as u64, &other), (new as u64, &newer), &path));
                    assert!(!extends((old as u64, &older), (new as u64, &other), &path) || old == 0);
                }
            }
        }
    }

    #[test]
    fn a_frontier_is_saved_and_goes_on() {
        let leaves = leaves(40);
        for at in 0..leaves.len() {
            let saved: Frontier = leaves[..at].iter().copied().collect();
            let mut again = Frontier::from_parts(saved.size(), saved.peaks().to_vec()).unwrap();
            assert_eq!(again, saved);
            leaves[at..].iter().for_each(|leaf| again.push(*leaf));
            assert_eq!(again.root(), root(&leaves));
        }
        assert_eq!(Frontier::from_parts(3, leaves[..1].to_vec()), None);
    }

    proptest! {
        #[test]
        fn a_proof_that_was_changed_anywhere_proves_nothing(
            size in 1_usize..300, index: prop::sample::Index, bit in 0_usize..256, which: prop::sample::Index,
        ) {
            let leaves = leaves(size);
            let index = index.index(size);
            let path = inclusion(&leaves, index);
            let root = root(&leaves);
            let holds = |leaf: &Hash, path: &[Hash]| includes(leaf, index as u64, size as u64, path, &root);
            prop_assert!(holds(&leaves[index], &path));
            prop_assert!(!holds(&flipped(&leaves[index], bit), &path));
            let longer = [&path[..], &[root]].concat();
            prop_assert!(!holds(&leaves[index], &longer));
            if !path.is_empty() {
                let mut other = path.clone();
                let which = which.index(path.len());
                other[which] = flipped(&other[which], bit);
                prop_assert!(!holds(&leaves[index], &other));
                prop_assert!(!holds(&leaves[index], &path[1..]));
            }
        }

        #[test]
        fn a_tree_that_does_not_begin_with_another_has_no_proof_of_it(
            new in 2_usize..300, old: prop::sample::Index, changed: prop::sample::Index,
        ) {
            let old = 1 + old.index(new - 1);
            let leaves = leaves(new);
            let older = root(&leaves[..old]);
            let mut others = leaves.clone();
            others[changed.index(old)] = leaf(b"another");
            let path = consistency(&others, old);
            prop_assert!(!extends((old as u64, &older), (new as u64, &root(&others)), &path));
            prop_assert!(extends((old as u64, &older), (new as u64, &root(&leaves)), &consistency(&leaves, old)));
        }
    }

    fn flipped(hash: &Hash, bit: usize) -> Hash {
        let mut bytes = *hash.as_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes.into()
    }
}
