//! SHA-512 (FIPS 180-4, section 6.4) of eight messages at once, and the framing of messages.

use crate::lanes::{LANES, Lanes, Mask};

/// The length of a block in bytes.
pub(crate) const BLOCK_LEN: usize = 128;

/// A block as words in memory order.
pub(crate) type Block = [[u64; 2]; BLOCK_LEN / 16];

/// The state before the first block: the first 64 bits of the fractional parts of the square roots
/// of the first eight primes.
pub(crate) const INITIAL_STATE: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

/// The constants of the rounds: the first 64 bits of the fractional parts of the cube roots of the
/// first eighty primes.
const ROUND_CONSTANTS: [u64; 80] = [
    0x428a_2f98_d728_ae22,
    0x7137_4491_23ef_65cd,
    0xb5c0_fbcf_ec4d_3b2f,
    0xe9b5_dba5_8189_dbbc,
    0x3956_c25b_f348_b538,
    0x59f1_11f1_b605_d019,
    0x923f_82a4_af19_4f9b,
    0xab1c_5ed5_da6d_8118,
    0xd807_aa98_a303_0242,
    0x1283_5b01_4570_6fbe,
    0x2431_85be_4ee4_b28c,
    0x550c_7dc3_d5ff_b4e2,
    0x72be_5d74_f27b_896f,
    0x80de_b1fe_3b16_96b1,
    0x9bdc_06a7_25c7_1235,
    0xc19b_f174_cf69_2694,
    0xe49b_69c1_9ef1_4ad2,
    0xefbe_4786_384f_25e3,
    0x0fc1_9dc6_8b8c_d5b5,
    0x240c_a1cc_77ac_9c65,
    0x2de9_2c6f_592b_0275,
    0x4a74_84aa_6ea6_e483,
    0x5cb0_a9dc_bd41_fbd4,
    0x76f9_88da_8311_53b5,
    0x983e_5152_ee66_dfab,
    0xa831_c66d_2db4_3210,
    0xb003_27c8_98fb_213f,
    0xbf59_7fc7_beef_0ee4,
    0xc6e0_0bf3_3da8_8fc2,
    0xd5a7_9147_930a_a725,
    0x06ca_6351_e003_826f,
    0x1429_2967_0a0e_6e70,
    0x27b7_0a85_46d2_2ffc,
    0x2e1b_2138_5c26_c926,
    0x4d2c_6dfc_5ac4_2aed,
    0x5338_0d13_9d95_b3df,
    0x650a_7354_8baf_63de,
    0x766a_0abb_3c77_b2a8,
    0x81c2_c92e_47ed_aee6,
    0x9272_2c85_1482_353b,
    0xa2bf_e8a1_4cf1_0364,
    0xa81a_664b_bc42_3001,
    0xc24b_8b70_d0f8_9791,
    0xc76c_51a3_0654_be30,
    0xd192_e819_d6ef_5218,
    0xd699_0624_5565_a910,
    0xf40e_3585_5771_202a,
    0x106a_a070_32bb_d1b8,
    0x19a4_c116_b8d2_d0c8,
    0x1e37_6c08_5141_ab53,
    0x2748_774c_df8e_eb99,
    0x34b0_bcb5_e19b_48a8,
    0x391c_0cb3_c5c9_5a63,
    0x4ed8_aa4a_e341_8acb,
    0x5b9c_ca4f_7763_e373,
    0x682e_6ff3_d6b2_b8a3,
    0x748f_82ee_5def_b2fc,
    0x78a5_636f_4317_2f60,
    0x84c8_7814_a1f0_ab72,
    0x8cc7_0208_1a64_39ec,
    0x90be_fffa_2363_1e28,
    0xa450_6ceb_de82_bde9,
    0xbef9_a3f7_b2c6_7915,
    0xc671_78f2_e372_532b,
    0xca27_3ece_ea26_619c,
    0xd186_b8c7_21c0_c207,
    0xeada_7dd6_cde0_eb1e,
    0xf57d_4f7f_ee6e_d178,
    0x06f0_67aa_7217_6fba,
    0x0a63_7dc5_a2c8_98a6,
    0x113f_9804_bef9_0dae,
    0x1b71_0b35_131c_471b,
    0x28db_77f5_2304_7d84,
    0x32ca_ab7b_40c7_2493,
    0x3c9e_be0a_15c9_bebc,
    0x431d_67c4_9c10_0d4c,
    0x4cc5_d4be_cb3e_42b6,
    0x597f_299c_fc65_7e2a,
    0x5fcb_6fab_3ad6_faec,
    0x6c44_198c_4a47_5817,
];

/// Compresses one block into the states of the lanes in `live`; the others do not change. The words
/// of blocks are in memory order.
#[inline(always)]
pub(crate) fn compress<V: Lanes>(state: &mut [V; 8], blocks: &[Block; LANES], live: Mask) {
    let like = state[0];
    let mut w = [like; 16];
    for n in 0..8 {
        let b = blocks;
        let pair =
            like.gather([&b[0][n], &b[1][n], &b[2][n], &b[3][n], &b[4][n], &b[5][n], &b[6][n], &b[7][n]]);
        (w[2 * n], w[2 * n + 1]) = (pair[0].swap_bytes(), pair[1].swap_bytes());
    }
    let mut working = *state;
    sixteen_rounds(&mut working, &w, &ROUND_CONSTANTS, 0);
    let mut round = 16;
    while round < 80 {
        for i in 0..16 {
            w[i] = schedule(&w, i);
        }
        sixteen_rounds(&mut working, &w, &ROUND_CONSTANTS, round);
        round += 16;
    }
    for k in 0..8 {
        state[k] = V::select(live, state[k].add(working[k]), state[k]);
    }
}

/// Replaces word `i` of the message schedule by the word sixteen places later.
#[inline(always)]
fn schedule<V: Lanes>(w: &[V; 16], i: usize) -> V {
    let (early, late) = (w[(i + 1) % 16], w[(i + 14) % 16]);
    let s0 = early.rotr::<1>().xor3(early.rotr::<8>(), early.shr::<7>());
    let s1 = late.rotr::<19>().xor3(late.rotr::<61>(), late.shr::<6>());
    w[i].add(s0).add(w[(i + 9) % 16].add(s1))
}

#[inline(always)]
fn sixteen_rounds<V: Lanes>(state: &mut [V; 8], w: &[V; 16], constants: &[u64; 80], from: usize) {
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    for i in 0..16 {
        let s1 = e.rotr::<14>().xor3(e.rotr::<18>(), e.rotr::<41>());
        let t1 = h.add(w[i].add(w[i].like(constants[from + i]))).add(e.choose(f, g)).add(s1);
        let s0 = a.rotr::<28>().xor3(a.rotr::<34>(), a.rotr::<39>());
        let t2 = s0.add(a.majority(b, c));
        (h, g, f, e, d, c, b, a) = (g, f, e, d.add(t1), c, b, a, t1.add(t2));
    }
    *state = [a, b, c, d, e, f, g, h];
}

/// The rest of a message of four parts that is not hashed yet.
#[derive(Clone, Copy)]
pub(crate) struct FramedMessage<'a> {
    parts: [&'a [u8]; 4],
    /// The length of the whole message in bytes.
    total: u64,
    /// The state of the padding.
    padding: Padding,
}

/// The part of the padding that is still missing (FIPS 180-4, section 5.1.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Padding {
    /// The bit that ends it, and its length.
    Whole,
    /// Only the length.
    Length,
    /// No part is missing.
    Done,
}

impl<'a> FramedMessage<'a> {
    /// The message that consists of these parts, one after the other.
    pub(crate) fn new(parts: [&'a [u8]; 4]) -> Self {
        let total = parts.iter().map(|part| part.len() as u64).sum();
        Self { parts, total, padding: Padding::Whole }
    }

    /// Writes the next block, and returns whether there was one.
    pub(crate) fn next_block(&mut self, block: &mut Block) -> bool {
        if self.padding == Padding::Done {
            return false;
        }
        let mut bytes = [0; BLOCK_LEN];
        let mut filled = 0;
        for part in &mut self.parts {
            let (now, later) = part.split_at(part.len().min(BLOCK_LEN - filled));
            bytes[filled..filled + now.len()].copy_from_slice(now);
            filled += now.len();
            *part = later;
        }
        if filled < BLOCK_LEN && self.padding == Padding::Whole {
            bytes[filled] = 0x80;
            filled += 1;
            self.padding = Padding::Length;
        }
        if filled <= BLOCK_LEN - 16 && self.padding == Padding::Length {
            bytes[BLOCK_LEN - 16..].copy_from_slice(&(u128::from(self.total) * 8).to_be_bytes());
            self.padding = Padding::Done;
        }
        for (pair, bytes) in block.iter_mut().zip(bytes.as_chunks::<16>().0) {
            let word = u128::from_le_bytes(*bytes);
            *pair = [word as u64, (word >> 64) as u64];
        }
        true
    }
}
