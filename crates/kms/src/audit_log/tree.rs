//! The Merkle trees over the entries: the shapes, proofs and checks of RFC 9162, section 2.1.
//!
//! The log's own tree has BLAKE3 as its hash. RFC 9162 distinguishes leaves from nodes by a first
//! byte; there, each has its own `derive_key` context. Witnesses know only the tree of RFC 6962,
//! with SHA-256.

use std::marker::PhantomData;
use std::sync::LazyLock;

use bulla_blake3::{DeriveKey, Hash};
use sha2::Digest as _;

/// The hash of a tree. A [`Hash`] is 32 bytes here, whichever function made them.
pub(super) trait TreeHash {
    /// The root of a tree without leaves.
    fn empty() -> Hash;
    /// A leaf: the hash of an entry's whole line, without the line feed.
    fn leaf(line: &[u8]) -> Hash;
    fn node(left: &Hash, right: &Hash) -> Hash;
    /// The nodes over pairs of neighbors.
    fn nodes(pairs: &[[Hash; 2]]) -> Vec<Hash> {
        pairs.iter().map(|[left, right]| Self::node(left, right)).collect()
    }
}

/// The log's own tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Blake3;

impl TreeHash for Blake3 {
    fn empty() -> Hash {
        empty()
    }

    fn leaf(line: &[u8]) -> Hash {
        leaf(line)
    }

    fn node(left: &Hash, right: &Hash) -> Hash {
        node(left, right)
    }

    fn nodes(pairs: &[[Hash; 2]]) -> Vec<Hash> {
        let pairs: Vec<_> = pairs.iter().map(|[left, right]| both(left, right)).collect();
        let pairs: Vec<_> = pairs.iter().map(<[u8; 64]>::as_slice).collect();
        many(&NODE, &pairs)
    }
}

/// The tree that witnesses know: RFC 6962, section 2.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sha256;

impl TreeHash for Sha256 {
    fn empty() -> Hash {
        <[u8; 32]>::from(sha2::Sha256::digest(b"")).into()
    }

    fn leaf(line: &[u8]) -> Hash {
        <[u8; 32]>::from(sha2::Sha256::new_with_prefix([0]).chain_update(line).finalize()).into()
    }

    fn node(left: &Hash, right: &Hash) -> Hash {
        <[u8; 32]>::from(sha2::Sha256::new_with_prefix([1]).chain_update(both(left, right)).finalize()).into()
    }
}

static LEAF: LazyLock<DeriveKey> = LazyLock::new(|| DeriveKey::new("bulla audit log v1 leaf"));
static NODE: LazyLock<DeriveKey> = LazyLock::new(|| DeriveKey::new("bulla audit log v1 node"));
static BODY: LazyLock<DeriveKey> = LazyLock::new(|| DeriveKey::new("bulla audit log v1 body"));
static CHAIN: LazyLock<DeriveKey> = LazyLock::new(|| DeriveKey::new("bulla audit log v1 chain"));

/// An entry's leaf: the hash of its whole line, without the line feed.
pub(super) fn leaf(line: &[u8]) -> Hash {
    LEAF.derive(line).into()
}

/// The leaves of many entries, hashed side by side.
pub(super) fn leaves(lines: &[&[u8]]) -> Vec<Hash> {
    many(&LEAF, lines)
}

fn many(key: &DeriveKey, texts: &[&[u8]]) -> Vec<Hash> {
    let mut hashes = vec![Hash::from_bytes([0; 32]); texts.len()];
    key.derive_many(texts, &mut hashes);
    hashes
}

fn node(left: &Hash, right: &Hash) -> Hash {
    NODE.derive(&both(left, right)).into()
}

/// The root of a tree without entries.
fn empty() -> Hash {
    DeriveKey::new("bulla audit log v1 empty tree").derive(b"").into()
}

/// The hash of a line without its link.
pub(super) fn body(body: &[u8]) -> Hash {
    BODY.derive(body).into()
}

/// Hashes the bodies of many lines, side by side.
pub(super) fn bodies(bodies: &[&[u8]]) -> Vec<Hash> {
    many(&BODY, bodies)
}

/// The link of a line: a hash of the link before it and of the hash of its body. Each link needs
/// the one before it, so as little as possible is hashed here.
pub(super) fn link(chain: &Hash, body: &Hash) -> Hash {
    CHAIN.derive(&both(chain, body)).into()
}

fn both(left: &Hash, right: &Hash) -> [u8; 64] {
    let mut both = [0; 64];
    both[..32].copy_from_slice(left.as_bytes());
    both[32..].copy_from_slice(right.as_bytes());
    both
}

/// The part of a tree that appending needs: the roots of its complete subtrees, the largest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frontier<T = Blake3> {
    size: u64,
    peaks: Vec<Hash>,
    hash: PhantomData<T>,
}

impl<T: TreeHash> Frontier<T> {
    /// The frontier of a saved tree; `None` if a tree of that size has another number of complete
    /// subtrees.
    pub(super) fn from_parts(size: u64, peaks: Vec<Hash>) -> Option<Self> {
        let fits = u32::try_from(peaks.len()) == Ok(size.count_ones());
        fits.then_some(Self { size, peaks, hash: PhantomData })
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
            root = T::node(&left, &root);
        }
        self.peaks.push(root);
        self.size += 1;
    }

    /// Appends leaves. The nodes of each level are hashed side by side.
    pub(super) fn extend(&mut self, leaves: Vec<Hash>) {
        let mut level = leaves;
        // Where the level's first node will be among all nodes of that level.
        let mut first = self.size;
        self.size += level.len() as u64;
        let mut added = Vec::new();
        while !level.is_empty() {
            if first % 2 == 1 {
                let left =
                    self.peaks.pop().expect("there is a complete subtree for each one bit of the size");
                level.insert(0, left);
            }
            let (pairs, rest) = level.as_chunks::<2>();
            added.extend(rest.first().copied());
            level = T::nodes(pairs);
            first /= 2;
        }
        self.peaks.extend(added.into_iter().rev());
    }

    pub(super) fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else { return T::empty() };
        peaks.fold(*last, |right, left| T::node(left, &right))
    }

    /// The root of the complete subtree that begins with this leaf.
    fn peak_at(&self, leaf: u64) -> Hash {
        let mut begin = 0_u64;
        let mut sizes = (0..u64::BITS).rev().map(|bit| 1_u64 << bit).filter(|size| self.size & size != 0);
        let place = sizes.position(|size| {
            let found = begin == leaf;
            begin += size;
            found
        });
        self.peaks[place.expect("each subtree of a proof that the old tree has is complete")]
    }
}

fn frontier<T: TreeHash + Default>(leaves: &[Hash]) -> Frontier<T> {
    let mut frontier = Frontier::<T>::from_parts(0, Vec::new()).expect("an empty tree has no subtrees");
    frontier.extend(leaves.to_vec());
    frontier
}

fn root_of<T: TreeHash + Default>(leaves: &[Hash]) -> Hash {
    frontier::<T>(leaves).root()
}

fn root(leaves: &[Hash]) -> Hash {
    root_of::<Blake3>(leaves)
}

/// The leaves of the left subtree: the largest power of two below `size`, which is at least 2.
fn left(size: usize) -> usize {
    size.next_power_of_two() / 2
}

/// The siblings on the way from leaf `index` to the root, the lowest first (RFC 9162, section
/// 2.1.3.1).
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

/// The proof that a tree of `old` and then the leaves `new` begins with `old` (RFC 9162, section
/// 2.1.4.1). It needs no other leaves: each subtree of the proof is a complete one of `old`, or has
/// only new leaves.
pub(super) fn consistency<T: TreeHash + Default>(old: &Frontier<T>, new: &[Hash]) -> Vec<Hash> {
    let growth = Growth { old, new };
    if old.size == 0 { Vec::new() } else { growth.proof(0, old.size + new.len() as u64, KnownRoot::Yes) }
}

/// Whether the verifier already has the subtree's root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownRoot {
    Yes,
    No,
}

struct Growth<'a, T> {
    old: &'a Frontier<T>,
    new: &'a [Hash],
}

impl<T: TreeHash + Default> Growth<'_, T> {
    /// `SUBPROOF` for the subtree of `size` leaves from `begin` on.
    fn proof(&self, begin: u64, size: u64, known: KnownRoot) -> Vec<Hash> {
        if self.old.size == begin + size {
            return if known == KnownRoot::Yes { Vec::new() } else { vec![self.root(begin, size)] };
        }
        let left = size.next_power_of_two() / 2;
        let (mut path, sibling) = if self.old.size <= begin + left {
            (self.proof(begin, left, known), self.root(begin + left, size - left))
        } else {
            (self.proof(begin + left, size - left, KnownRoot::No), self.root(begin, left))
        };
        path.push(sibling);
        path
    }

    fn root(&self, begin: u64, size: u64) -> Hash {
        match begin.checked_sub(self.old.size) {
            None => self.old.peak_at(begin),
            Some(begin) => {
                let place = |at: u64| usize::try_from(at).expect("the leaves are in memory");
                root_of::<T>(&self.new[place(begin)..place(begin + size)])
            }
        }
    }
}

/// The position of a proof's check: the place of a subtree in its level, and the last place of that
/// level.
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
            // A last subtree without a sibling is its own parent on the levels above. The place is
            // not 0 here.
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

/// Whether the path leads from a leaf to the root of a tree of `size` leaves (RFC 9162, section
/// 2.1.3.2).
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

/// Whether the path leads from the older root to the newer one (RFC 9162, section 2.1.4.2). Trees
/// are sizes and roots.
pub(super) fn extends(old: (u64, &Hash), new: (u64, &Hash), path: &[Hash]) -> bool {
    let ((old, old_root), (new, new_root)) = (old, new);
    if old == 0 || old >= new {
        let same = old == new && old_root == new_root;
        return path.is_empty() && (same || (old == 0 && new > 0 && *old_root == empty()));
    }
    // A complete older tree is a subtree of the newer one. The path then begins with its root,
    // which the proof omits.
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

    fn consistency(leaves: &[Hash], old: usize) -> Vec<Hash> {
        super::consistency(&frontier::<Blake3>(&leaves[..old]), &leaves[old..])
    }

    /// The values of the tests of Certificate Transparency: no leaves, the empty leaf, and that one
    /// with the leaf 0x00.
    #[test]
    fn the_tree_for_witnesses_is_that_of_rfc_6962() {
        let hex = |hash: Hash| hash.to_hex().to_string();
        assert_eq!(hex(Sha256::empty()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(
            hex(Sha256::leaf(b"")),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
        );
        let leaves = [Sha256::leaf(b""), Sha256::leaf(&[0])];
        assert_eq!(
            hex(root_of::<Sha256>(&leaves)),
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"
        );
    }

    /// The definition of RFC 9162, section 2.1.4.1, word for word.
    fn defined_proof(leaves: &[Hash], old: usize, complete: bool) -> Vec<Hash> {
        if old == leaves.len() {
            return if complete { Vec::new() } else { vec![root_of::<Sha256>(leaves)] };
        }
        let k = left(leaves.len());
        let (mut path, sibling) = if old <= k {
            (defined_proof(&leaves[..k], old, complete), root_of::<Sha256>(&leaves[k..]))
        } else {
            (defined_proof(&leaves[k..], old - k, false), root_of::<Sha256>(&leaves[..k]))
        };
        path.push(sibling);
        path
    }

    #[test]
    fn the_proof_of_growth_needs_only_the_old_frontier_and_the_new_leaves() {
        let leaves: Vec<_> = (0_u8..70).map(|number| Sha256::leaf(&[number])).collect();
        for new in 1..=leaves.len() {
            for old in 1..=new {
                let proof = super::consistency(&frontier::<Sha256>(&leaves[..old]), &leaves[old..new]);
                assert_eq!(proof, defined_proof(&leaves[..new], old, true), "{old} of {new}");
            }
        }
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

    #[test]
    fn many_leaves_are_appended_like_one_after_another() {
        let leaves = leaves(70);
        for begin in 0..leaves.len() {
            let mut one_by_one: Frontier = frontier(&leaves[..begin]);
            for end in begin..=leaves.len() {
                let mut at_once: Frontier = frontier(&leaves[..begin]);
                at_once.extend(leaves[begin..end].to_vec());
                assert_eq!(at_once, one_by_one, "{begin}..{end}");
                leaves.get(end).into_iter().for_each(|leaf| one_by_one.push(*leaf));
            }
        }
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
        assert_ne!(leaf(&bytes), link(&a, &b));
        assert_ne!(node(&a, &b), link(&a, &b));
        assert_ne!(leaf(&bytes), body(&bytes));
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
            let saved: Frontier = frontier(&leaves[..at]);
            let mut again: Frontier = Frontier::from_parts(saved.size(), saved.peaks().to_vec()).unwrap();
            assert_eq!(again, saved);
            leaves[at..].iter().for_each(|leaf| again.push(*leaf));
            assert_eq!(again.root(), root(&leaves));
        }
        assert_eq!(Frontier::<Blake3>::from_parts(3, leaves[..1].to_vec()), None);
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
