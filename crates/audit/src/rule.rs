//! One rule: a kernel, and how it is recognized.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Arch;

/// A kernel, and how it is recognized.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The name in reports, for example `blake2b_simd/avx2`.
    pub name: String,
    /// The crate (or library) that contains the kernel: the first part of its symbols.
    #[serde(rename = "crate")]
    pub krate: String,
    /// The instruction set of its code.
    pub arch: Arch,
    /// Demangled names of the functions with the kernel's body, without the compiler's hash; `*`
    /// matches any text.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// Names of functions that show that the kernel should be there; `*` matches any text. If the
    /// list is empty, every function of the crate shows it.
    #[serde(default)]
    pub linked: Vec<String>,
    /// Text in the binary that shows that the crate is linked, for example the locations of its
    /// panics: `/hash-1.*.rs`, in which `*` matches any characters of a path.
    #[serde(default)]
    pub strings: Vec<String>,
    /// Ways in which the body can be recognized by its instructions.
    #[serde(default, rename = "pattern")]
    pub patterns: Vec<Pattern>,
    /// Whether the kernel is assembly, which no compiler inlines. Then its instructions in other
    /// functions belong to other kernels.
    #[serde(default)]
    pub assembly: bool,
    /// Rules of better kernels of the same function. If one of them is in the binary, the loss of
    /// this kernel does not count.
    #[serde(default)]
    pub superseded_by: Vec<String>,
}

/// A way in which a kernel can be recognized by its instructions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The maximum distance between the instructions, in instructions of the function.
    pub within: u32,
    /// The minimum number of instructions, by `MNEMONIC|... WIDTH|...`, for example
    /// `"vpshufb|vprorq ymm" = 8`. The width is that of the widest vector register that the
    /// instruction names.
    pub need: BTreeMap<String, u32>,
}

/// One of the needs of a pattern.
#[derive(Debug)]
pub(crate) struct Need<'p> {
    pub(crate) mnemonics: Vec<&'p str>,
    pub(crate) widths: Vec<&'p str>,
    pub(crate) at_least: u32,
}

impl Pattern {
    pub(crate) fn needs(&self) -> impl Iterator<Item = Result<Need<'_>, String>> {
        self.need.iter().map(|(text, at_least)| {
            let (mnemonics, widths) =
                text.split_once(' ').ok_or_else(|| format!("`{text}` is not `MNEMONIC|... WIDTH|...`"))?;
            if *at_least == 0 {
                return Err(format!("`{text}` needs none"));
            }
            Ok(Need {
                mnemonics: mnemonics.split('|').collect(),
                widths: widths.split('|').collect(),
                at_least: *at_least,
            })
        })
    }
}
