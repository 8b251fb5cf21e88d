//! Constants of the BLAKE3 specification, section 2.

/// Eight words: a chaining value, a key, or the initialisation vector.
pub(crate) type Words = [u32; 8];

/// Initialisation vector (table 1).
pub(crate) const IV: Words =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// Flags (table 3).
pub(crate) const CHUNK_START: u32 = 1;
pub(crate) const CHUNK_END: u32 = 1 << 1;
pub(crate) const PARENT: u32 = 1 << 2;
pub(crate) const ROOT: u32 = 1 << 3;
pub(crate) const KEYED_HASH: u32 = 1 << 4;
pub(crate) const DERIVE_KEY_CONTEXT: u32 = 1 << 5;
pub(crate) const DERIVE_KEY_MATERIAL: u32 = 1 << 6;

/// Message permutation between rounds (table 2).
const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];

/// `SCHEDULE[r][i]`: the message word that round r uses at place i; places 2j and 2j + 1 belong to the j-th of
/// the round's eight quarter rounds.
pub(crate) const SCHEDULE: [[usize; 16]; 7] = {
    let mut schedule = [[0; 16]; 7];
    let mut round = 0;
    while round < 7 {
        let mut i = 0;
        while i < 16 {
            schedule[round][i] = if round == 0 { i } else { schedule[round - 1][PERMUTATION[i]] };
            i += 1;
        }
        round += 1;
    }
    schedule
};
