//! What kinds of work vector instructions do, by their mnemonics.

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
    /// And, or, exclusive or, ternary logic.
    Logic,
    /// Shifts and rotates.
    Shift,
    /// Shuffles, permutations, packing, interleaving, inserts and extracts.
    Shuffle,
    /// Comparisons and tests.
    Compare,
    /// Conversions between types and widths.
    Convert,
    /// AES, SHA, carry-less multiplication and Galois fields.
    Crypto,
    /// Gathers and scatters.
    Gather,
    /// What is none of these.
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
            Arch::X86_64 => first(X86_64, mnemonic.strip_prefix('v').unwrap_or(mnemonic))
                .or_else(|| first(X86_64, mnemonic)),
            Arch::Aarch64 => first(AARCH64, mnemonic),
        }
        .unwrap_or(Self::Other)
    }
}

/// The class of the first row that has a prefix of `mnemonic`.
fn first(rows: &[(Class, &[&str])], mnemonic: &str) -> Option<Class> {
    let matches =
        |(_, prefixes): &&(Class, &[&str])| prefixes.iter().any(|prefix| mnemonic.starts_with(prefix));
    rows.iter().find(matches).map(|(class, _)| *class)
}

/// Prefixes of mnemonics without the `v` of the newer encodings; the first row that fits decides.
const X86_64: &[(Class, &[&str])] = &[
    (Class::Crypto, &["aes", "sha1", "sha256", "sha512", "pclmul", "gf2p8", "sm3", "sm4"]),
    (Class::Gather, &["gather", "pgather", "scatter", "pscatter"]),
    (Class::Convert, &["cvt", "pmovsx", "pmovzx", "pmovs", "pmovus", "pmovw", "pmovq", "pmovd"]),
    (
        Class::Shuffle,
        &[
            "pshuf",
            "shuf",
            "perm",
            "pperm",
            "unpck",
            "punpck",
            "pack",
            "palign",
            "align",
            "insert",
            "pinsr",
            "extract",
            "pextr",
            "blend",
            "pblend",
            "expand",
            "pexpand",
            "compress",
            "pcompress",
            "movs",
            "movhl",
            "movlh",
            "pmultishift",
            "pmov",
        ],
    ),
    (
        Class::Compare,
        &["pcmp", "cmp", "comi", "ucomi", "ptest", "test", "pmovmsk", "movmsk", "fpclass", "p2intersect"],
    ),
    (Class::Logic, &["pand", "por", "pxor", "and", "or", "xor", "ptern", "popcnt", "pconflict", "plzcnt"]),
    (Class::Shift, &["psll", "psrl", "psra", "prol", "pror", "pshl", "pshr", "prot", "psha"]),
    (Class::Move, &["mov", "lddqu", "maskmov", "pmaskmov", "broadcast", "pbroadcast", "zero"]),
    (
        Class::Integer,
        &[
            "padd", "psub", "pmul", "pmadd", "pmin", "pmax", "pavg", "psad", "mpsad", "dbpsad", "pabs",
            "psign", "phadd", "phsub", "phmin", "pdp",
        ],
    ),
    (
        Class::Float,
        &[
            "add", "sub", "mul", "div", "sqrt", "rsqrt", "rcp", "min", "max", "fm", "fnm", "hadd", "hsub",
            "dp", "round", "rnd", "range", "reduce", "getexp", "getmant", "scalef", "fixup", "exp2",
        ],
    ),
];

const AARCH64: &[(Class, &[&str])] = &[
    (
        Class::Crypto,
        &["aes", "sha1", "sha256", "sha512", "sm3", "sm4", "pmull", "eor3", "bcax", "rax1", "xar"],
    ),
    (
        Class::Convert,
        &["fcvt", "scvtf", "ucvtf", "xtn", "sxtl", "uxtl", "sqxt", "uqxt", "sshll", "ushll", "bfcvt"],
    ),
    (Class::Gather, &["ld1_g", "st1_s"]),
    (Class::Move, &["ld", "st", "mov", "dup", "fmov", "mvn", "ptrue", "pfalse", "whilel", "rdffr"]),
    (
        Class::Shuffle,
        &["tbl", "tbx", "zip", "uzp", "trn", "ext", "rev", "ins", "splice", "compact", "sel", "umov", "smov"],
    ),
    (Class::Compare, &["cm", "fcm", "fac", "fccmp"]),
    (Class::Logic, &["and", "orr", "orn", "eor", "bic", "bif", "bit", "bsl", "not", "cnt", "clz"]),
    (
        Class::Shift,
        &[
            "shl", "ushr", "sshr", "usra", "ssra", "sli", "sri", "lsl", "lsr", "asr", "sshl", "ushl", "shrn",
            "rshrn", "srshr", "urshr",
        ],
    ),
    (Class::Float, &["f", "bf"]),
    (
        Class::Integer,
        &[
            "add", "sub", "mul", "mla", "mls", "sab", "uab", "sad", "uad", "sma", "uma", "smi", "umi", "sml",
            "uml", "smu", "umu", "sqadd", "uqadd", "sqsub", "uqsub", "sqd", "sqr", "abs", "neg", "sdot",
            "udot", "usdot", "shadd", "uhadd", "urhadd", "incb", "cnt",
        ],
    ),
];
