//! The kinds of work that vector instructions do, by their mnemonics.

use serde::{Deserialize, Serialize};

use super::Arch;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Copies, loads and stores, broadcasts included.
    Move,
    /// Integer addition, subtraction, multiplication, minimum, maximum, average.
    Integer,
    /// Floating point.
    Float,
    /// And, or, exclusive or, ternary logic, counts of bits.
    Logic,
    /// Shifts and rotates.
    Shift,
    /// Shuffles, permutations, packing, interleaving, inserts and extracts.
    Shuffle,
    /// Comparisons and tests, and the masks of signs.
    Compare,
    /// Conversions between types and widths.
    Convert,
    /// AES, SHA, carry-less multiplication and Galois fields.
    Crypto,
    /// Gathers and scatters.
    Gather,
    /// All other instructions.
    Other,
}

impl Class {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Move => "move",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Logic => "logic",
            Self::Shift => "shift",
            Self::Shuffle => "shuffle",
            Self::Compare => "compare",
            Self::Convert => "convert",
            Self::Crypto => "crypto",
            Self::Gather => "gather",
            Self::Other => "other",
        }
    }

    /// The class of `mnemonic`, in lower case.
    pub(crate) fn of(arch: Arch, mnemonic: &str) -> Self {
        match arch {
            Arch::X86_64 => longest(X86_64, mnemonic.strip_prefix('v').unwrap_or(mnemonic)),
            Arch::Aarch64 => longest(AARCH64, mnemonic),
        }
        .unwrap_or(Self::Other)
    }
}

/// The class of the longest prefix of `mnemonic` in the rows.
fn longest(rows: &[(Class, &[&str])], mnemonic: &str) -> Option<Class> {
    let known =
        rows.iter().flat_map(|(class, prefixes)| prefixes.iter().map(move |prefix| (*class, *prefix)));
    let fits = known.filter(|(_, prefix)| mnemonic.starts_with(prefix));
    fits.max_by_key(|(_, prefix)| prefix.len()).map(|(class, _)| class)
}

/// Prefixes of mnemonics, without the `v` of the newer encodings. The longest one that matches
/// decides, so the order of the rows does not matter.
#[rustfmt::skip]
const X86_64: &[(Class, &[&str])] = &[
    (Class::Crypto, &["aes", "sha1", "sha256", "sha512", "pclmul", "gf2p8", "sm3", "sm4", "loadiwkey"]),
    (Class::Gather, &["gather", "pgather", "scatter", "pscatter"]),
    (Class::Convert, &[
        "cvt", "bcst", "pmovsx", "pmovzx", "pmovs", "pmovus", "pmovw", "pmovq", "pmovd", "pmovm2",
    ]),
    (Class::Shuffle, &[
        "pshuf", "shuf", "perm", "pperm", "unpck", "punpck", "pack", "palign", "align", "insert", "pinsr", "extract",
        "extrq", "pextr", "blend", "pblend", "expand", "pexpand", "compress", "pcompress", "movsldup", "movshdup",
        "movddup", "movhl", "movlh", "pmultishift",
    ]),
    // Instructions that gather signs into a mask compare with zero.
    (Class::Compare, &[
        "pcmp", "pcom", "cmp", "comi", "ucomi", "ptest", "test", "movmsk", "pmovmsk", "pmovb2m", "pmovw2m", "pmovd2m",
        "pmovq2m", "fpclass", "p2intersect",
    ]),
    (Class::Logic, &[
        "pand", "por", "pxor", "and", "or", "xor", "ptern", "pcmov", "popcnt", "pconflict", "plzcnt",
    ]),
    (Class::Shift, &["psll", "psrl", "psra", "prol", "pror", "pshl", "pshr", "prot", "psha"]),
    (Class::Move, &[
        "mov", "lddqu", "maskmov", "pmaskmov", "broadcast", "pbroadcast", "zero", "packstore", "loadunpack",
    ]),
    (Class::Integer, &[
        "padd", "padc", "psub", "psbb", "pmul", "pmad", "pmac", "pmin", "pmax", "pavg", "psad", "mpsad", "dbpsad", "pabs",
        "psign", "phadd", "phsub", "phmin", "pdp", "p4dp",
    ]),
    (Class::Float, &[
        "add", "sub", "mul", "div", "sqrt", "rsqrt", "rcp", "min", "max", "gmin", "gmax", "fm", "fnm", "fcm", "4fm", "4fnm",
        "frcz", "hadd", "hsub", "dp", "round", "rnd", "range", "reduce", "getexp", "getmant", "scale", "fixup", "exp2",
        "log2",
    ]),
];

/// Like [`X86_64`]. Gathers share the mnemonics of loads, and count as moves.
#[rustfmt::skip]
const AARCH64: &[(Class, &[&str])] = &[
    (Class::Crypto, &[
        "aes", "sha1", "sha256", "sha512", "sm3", "sm4", "pmul", "pmlal", "eor3", "bcax", "rax1", "xar",
    ]),
    (Class::Convert, &[
        "fcvt", "fjcvt", "f1cvt", "f2cvt", "bfcvt", "bf1cvt", "bf2cvt", "scvtf", "ucvtf", "xtn", "sxt", "uxt", "sqxt",
        "uqxt", "sqcvt", "uqcvt", "sshll", "ushll", "sunpk", "uunpk",
    ]),
    (Class::Move, &[
        "ld", "st", "prf", "mov", "dup", "cpy", "fmov", "fcpy", "fdup", "fcsel", "mvn", "pmov", "pext", "ptrue", "pfalse",
        "rdffr", "wrffr", "zero",
    ]),
    (Class::Shuffle, &[
        "tbl", "tbx", "luti", "zip", "uzp", "trn", "ext", "rev", "rbit", "ins", "splice", "compact", "expand", "sel", "psel",
        "umov", "smov", "last", "clast", "punpk", "bdep", "bext", "bgrp",
    ]),
    (Class::Compare, &[
        "cm", "fcm", "fac", "fccmp", "ptest", "pnext", "firstp", "lastp", "match", "nmatch", "while",
    ]),
    (Class::Logic, &[
        "and", "orr", "orn", "orv", "orq", "nor", "nand", "eor", "bic", "bif", "bit", "bsl", "nbsl", "not", "cnot", "cnt", "clz",
        "cls", "brk", "bmop",
    ]),
    (Class::Shift, &[
        "shl", "ushr", "sshr", "usra", "ssra", "sli", "sri", "lsl", "lsr", "asr", "sshl", "ushl", "shrn", "rshrn", "srsh",
        "ursh", "srsra", "ursra", "sqsh", "uqsh", "sqrsh", "uqrsh",
    ]),
    (Class::Float, &["f", "bf", "fcmla"]),
    (Class::Integer, &[
        "add", "adc", "adr", "sbc", "sub", "mul", "mad", "mla", "mls", "msb", "cadd", "cmla", "cdot", "index", "hist", "sab",
        "uab", "sad", "uad", "sma", "uma", "smi", "umi", "sml", "uml", "smu", "umu", "smm", "umm", "usmm", "smop", "umop",
        "usmop", "sumop", "stmop", "utmop", "ustmop", "sutmop", "sumlal", "usmlal", "sqadd", "uqadd", "suqadd", "usqadd",
        "sqsub", "uqsub", "ssub", "usub", "sqd", "sqr", "sqinc", "uqinc", "uqd", "sqcadd", "sqabs", "sqneg", "abs",
        "neg", "sdiv", "udiv", "sdot", "udot", "usdot", "sudot", "svdot", "uvdot", "usvdot", "suvdot", "shadd", "uhadd",
        "srhadd", "urhadd", "shsub", "uhsub", "raddhn", "rsubhn", "sclamp", "uclamp", "inc", "dec", "cntp", "urecpe",
        "ursqrte",
    ]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Decode as _;
    use crate::arch::{aarch64, x86_64};

    #[test]
    fn mnemonics_that_begin_alike_have_the_class_of_their_own_work() {
        for (mnemonic, class) in [
            ("movss", Class::Move),
            ("vmovsd", Class::Move),
            ("vmovsh", Class::Move),
            ("movshdup", Class::Shuffle),
            ("movsldup", Class::Shuffle),
            ("vmovddup", Class::Shuffle),
            ("movhlps", Class::Shuffle),
            ("movhps", Class::Move),
            ("pmovmskb", Class::Compare),
            ("vmovmskpd", Class::Compare),
            ("vpmovb2m", Class::Compare),
            ("vpmovd2m", Class::Compare),
            ("vpmovm2w", Class::Convert),
            ("vpmovqd", Class::Convert),
            ("vpmovzxbw", Class::Convert),
            ("vpcomub", Class::Compare),
            ("vpcompressd", Class::Shuffle),
            ("vpmacssdd", Class::Integer),
            ("vpmadd52luq", Class::Integer),
            ("vfcmaddcph", Class::Float),
            ("vdpbf16ps", Class::Float),
            ("vpdpbusd", Class::Integer),
            ("vpackusdw", Class::Shuffle),
            ("vpandnq", Class::Logic),
            ("vandps", Class::Logic),
            ("vaddps", Class::Float),
            ("vpsllq", Class::Shift),
            ("insertq", Class::Shuffle),
        ] {
            assert_eq!(Class::of(Arch::X86_64, mnemonic), class, "{mnemonic}");
        }
        for (mnemonic, class) in [
            ("cmeq", Class::Compare),
            ("cmla", Class::Integer),
            ("fcmla", Class::Float),
            ("fcmge", Class::Compare),
            ("fdup", Class::Move),
            ("stmopa", Class::Integer),
            ("st1", Class::Move),
            ("smov", Class::Shuffle),
            ("smopa", Class::Integer),
            ("f1cvtl", Class::Convert),
            ("sqrshrn", Class::Shift),
            ("sqrdmlah", Class::Integer),
            ("sqshl", Class::Shift),
            ("whilelo", Class::Compare),
            ("pmull", Class::Crypto),
            ("cnt", Class::Logic),
            ("cntp", Class::Integer),
            ("rbit", Class::Shuffle),
        ] {
            assert_eq!(Class::of(Arch::Aarch64, mnemonic), class, "{mnemonic}");
        }
    }

    /// Every mnemonic that the decoders can return with a vector register.
    #[test]
    fn every_vector_instruction_has_a_class() {
        let unknown: Vec<_> = x86_64::vector_mnemonics()
            .filter(|mnemonic| Class::of(Arch::X86_64, mnemonic) == Class::Other)
            .collect();
        assert_eq!(unknown, ["undoc"], "{unknown:?}");
        // A prime step through all words reaches every instruction with a few free bits.
        let mut unknown = std::collections::BTreeSet::new();
        for word in (0..=u32::MAX).step_by(4093) {
            let token = aarch64::Run::new(&word.to_le_bytes()).decode(0, 4);
            let mnemonic = aarch64::mnemonic(token.op);
            if token.widths != 0 && Class::of(Arch::Aarch64, &mnemonic) == Class::Other {
                unknown.insert(mnemonic);
            }
        }
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn a_prefix_stands_in_one_row() {
        for rows in [X86_64, AARCH64] {
            let mut all: Vec<_> = rows.iter().flat_map(|(_, prefixes)| prefixes.iter()).collect();
            all.sort_unstable();
            assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
        }
    }
}
