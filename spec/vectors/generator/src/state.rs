//! Saved states of a hasher, built from `blake3-state.md` and the chaining values of the official
//! crate.
use crate::input::{CONTEXT, KEY, pattern};
use crate::json::{Value, json};
use blake3::hazmat::{HasherExt, hash_derive_key_context};
use blake3::{CHUNK_LEN, Hasher};

const IV: [u32; 8] =
    [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19];
const COUNTS: [usize; 23] = [
    0, 1, 64, 1023, 1024, 1025, 2048, 2049, 3072, 3073, 4096, 5120, 8192, 16384, 16385, 17408, 32768, 40000,
    65536, 113664, 262144, 524288, 1049600,
];
/// Byte counts in the subtree that begins at [`SUBTREE`]. The last one is the whole subtree.
const SUBTREE_COUNTS: [usize; 5] = [1024, 2048, 9216, 9221, 16384];
/// The start of that subtree in bytes.
const SUBTREE: usize = 16 * CHUNK_LEN;

fn modes() -> [(&'static str, u8, Hasher, [u8; 32]); 3] {
    let mut iv = [0; 32];
    for (bytes, word) in iv.chunks_exact_mut(4).zip(IV) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    [
        ("hash", 0, Hasher::new(), iv),
        ("keyed_hash", 1, Hasher::new_keyed(KEY), *KEY),
        ("derive_key", 2, Hasher::new_derive_key(CONTEXT), hash_derive_key_context(CONTEXT)),
    ]
}

/// States after inputs of many lengths in each mode, and of one subtree.
pub(crate) fn cases() -> Value {
    let mut cases = Vec::new();
    for (name, mode, hasher, key) in modes() {
        for count in COUNTS {
            cases.push(case(name, mode, &hasher, &key, 0, count));
        }
        for count in SUBTREE_COUNTS {
            cases.push(case(name, mode, &hasher, &key, SUBTREE, count));
        }
    }
    json!({ "source": "blake3-state.md with chaining values of crate blake3 1.8.7; inputs as in blake3.json", "cases": cases })
}

/// The lengths in bytes of the subtrees that are finished after `count` bytes.
fn subtrees(count: usize) -> Vec<usize> {
    if count <= CHUNK_LEN {
        return Vec::new();
    }
    let chunks = count / CHUNK_LEN;
    let mut subtrees: Vec<usize> =
        (0..usize::BITS).rev().map(|bit| chunks & 1 << bit).filter(|&chunks| chunks > 0).collect();
    if count.is_multiple_of(CHUNK_LEN) && chunks.is_multiple_of(2) {
        let last = subtrees.pop().expect("there are two chunks or more");
        subtrees.extend([last / 2; 2]);
    }
    subtrees.into_iter().map(|chunks| chunks * CHUNK_LEN).collect()
}

fn case(name: &str, mode: u8, hasher: &Hasher, key: &[u8; 32], offset: usize, count: usize) -> Value {
    let input = pattern(count);
    let mut body = Vec::new();
    let mut at = 0;
    for len in subtrees(count) {
        let mut subtree = hasher.clone();
        subtree.set_input_offset((offset + at) as u64).update(&input[at..at + len]);
        body.extend_from_slice(&subtree.finalize_non_root());
        at += len;
    }
    body.extend_from_slice(&input[at..]);
    let mut state = b"bullab3s".to_vec();
    state.extend_from_slice(&[1, mode, 0, 0]);
    state.extend_from_slice(&(64 + body.len() as u32).to_le_bytes());
    state.extend_from_slice(&(offset as u64).to_le_bytes());
    state.extend_from_slice(&(count as u64).to_le_bytes());
    state.extend_from_slice(key);
    state.extend_from_slice(&body);
    json!({
        "mode": name, "offset": offset, "count": count, "len": state.len(),
        "head": hex::encode(&state[..64]), "hash": blake3::hash(&state).to_hex().as_str(),
    })
}
