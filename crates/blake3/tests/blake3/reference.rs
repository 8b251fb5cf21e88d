//! BLAKE3 as the specification reads: whole input, recursion, no optimization. Slow and obvious.

const IV: [u32; 8] =
    [0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19];
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
const CHUNK_START: u32 = 1;
const CHUNK_END: u32 = 2;
const PARENT: u32 = 4;
const ROOT: u32 = 8;
const KEYED_HASH: u32 = 16;
const DERIVE_KEY_CONTEXT: u32 = 32;
const DERIVE_KEY_MATERIAL: u32 = 64;

fn quarter_round(v: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize, x: u32, y: u32) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(12);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(8);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(7);
}

/// Section 2.2: sixteen words out.
fn compress(h: &[u32; 8], block: &[u8], counter: u64, flags: u32) -> [u32; 16] {
    let mut bytes = [0; 64];
    bytes[..block.len()].copy_from_slice(block);
    let mut m: [u32; 16] =
        std::array::from_fn(|i| u32::from_le_bytes(bytes[4 * i..][..4].try_into().unwrap()));
    let mut v = [0; 16];
    v[..8].copy_from_slice(h);
    v[8..12].copy_from_slice(&IV[..4]);
    v[12..].copy_from_slice(&[counter as u32, (counter >> 32) as u32, block.len() as u32, flags]);
    for _ in 0..7 {
        for i in 0..4 {
            quarter_round(&mut v, i, 4 + i, 8 + i, 12 + i, m[2 * i], m[2 * i + 1]);
        }
        for i in 0..4 {
            let (b, c, d) = (4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
            quarter_round(&mut v, i, b, c, d, m[8 + 2 * i], m[9 + 2 * i]);
        }
        m = PERMUTATION.map(|p| m[p]);
    }
    std::array::from_fn(|i| if i < 8 { v[i] ^ v[i + 8] } else { v[i] ^ h[i - 8] })
}

/// The last compression of a subtree, not yet done.
struct Node {
    value: [u32; 8],
    block: Vec<u8>,
    counter: u64,
    flags: u32,
}

impl Node {
    fn chaining_value(&self) -> [u32; 8] {
        compress(&self.value, &self.block, self.counter, self.flags)[..8].try_into().unwrap()
    }
}

/// Sections 2.1 and 2.4 to 2.5. `counter` is that of the first chunk.
fn node(key: &[u32; 8], input: &[u8], counter: u64, flags: u32) -> Node {
    if input.len() > 1024 {
        let left = (1024..).find(|n: &usize| n.is_power_of_two() && 2 * n >= input.len()).unwrap();
        let children = [
            node(key, &input[..left], counter, flags),
            node(key, &input[left..], counter + left as u64 / 1024, flags),
        ];
        let block = children.iter().flat_map(Node::chaining_value).flat_map(u32::to_le_bytes).collect();
        return Node { value: *key, block, counter: 0, flags: flags | PARENT };
    }
    let mut value = *key;
    let blocks: Vec<&[u8]> = if input.is_empty() { vec![input] } else { input.chunks(64).collect() };
    for (i, block) in blocks.iter().enumerate() {
        let start = if i == 0 { CHUNK_START } else { 0 };
        if i + 1 == blocks.len() {
            let flags = flags | start | CHUNK_END;
            return Node { value, block: block.to_vec(), counter, flags };
        }
        value = compress(&value, block, counter, flags | start)[..8].try_into().unwrap();
    }
    unreachable!("an input has at least one block")
}

fn root(key: &[u32; 8], input: &[u8], flags: u32, len: usize) -> Vec<u8> {
    let root = node(key, input, 0, flags);
    (0..)
        .flat_map(|i| compress(&root.value, &root.block, i, root.flags | ROOT))
        .flat_map(u32::to_le_bytes)
        .take(len)
        .collect()
}

fn words(key: &[u8]) -> [u32; 8] {
    std::array::from_fn(|i| u32::from_le_bytes(key[4 * i..][..4].try_into().unwrap()))
}

/// `len` bytes of output in one of the modes `hash`, `keyed`, `derive`.
pub(crate) fn output(mode: &str, input: &[u8], len: usize) -> Vec<u8> {
    match mode {
        "hash" => root(&IV, input, 0, len),
        "keyed" => root(&words(&crate::support::KEY), input, KEYED_HASH, len),
        _ => {
            let key = root(&IV, crate::support::CONTEXT.as_bytes(), DERIVE_KEY_CONTEXT, 32);
            root(&words(&key), input, DERIVE_KEY_MATERIAL, len)
        }
    }
}
