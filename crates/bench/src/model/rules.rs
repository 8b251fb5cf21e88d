//! Rules for the machine code of kernels for machines that cannot be measured here: vectors
//! everywhere, and nothing in between.
//!
//! The compiler makes the vectors of some of these kernels out of loops over lanes
//! (`crates/simd/src/lanes.rs`). If it no longer finds them, the results are still right, and only
//! the code shows it. So do calls that were not inlined. `lab/kernels.toml` has the budgets for
//! x86-64.

use anyhow::{Result, ensure};
use bulla_devtools::Context;

use super::{
    Decoders, library,
    listing::{Counts, Listing},
};

/// The rules for one architecture.
struct Rules {
    target: &'static str,
    /// The instructions that rotate a general register. A function may have a few for its
    /// addresses.
    scalar_rotates: &'static [&'static str],
    /// The instructions that end the rotate of a vector: where there is no rotate, the second of
    /// two.
    vector_rotates: &'static [&'static str],
    /// By package.
    functions: &'static [(&'static str, &'static [Function])],
}

/// The rules for one function.
struct Function {
    /// Its name in the module `kernel`.
    name: &'static str,
    /// It has exactly as many rotates of vectors: four for each quarter round of each register, in
    /// each copy of the rounds.
    rotates: usize,
    /// It has at most as many instructions: the number at the last change and a tenth.
    instructions: usize,
    calls: Calls,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    None,
    /// To functions of its kernel, and to the one that aborts if a caller breaks the contract.
    Some,
}

const fn alone(name: &'static str, rotates: usize, instructions: usize) -> Function {
    Function { name, rotates, instructions, calls: Calls::None }
}

const fn calling(name: &'static str, rotates: usize, instructions: usize) -> Function {
    Function { name, rotates, instructions, calls: Calls::Some }
}

/// More rotates of general registers than any function has for addresses, and fewer than one copy
/// of one lane's rounds.
const SCALAR_ROTATES: usize = 8;

static RULES: [Rules; 3] = [
    Rules {
        target: "aarch64-unknown-linux-gnu",
        scalar_rotates: &["ror", "extr"],
        vector_rotates: &["usra", "sri", "rev32", "rev64", "tbl"],
        functions: &[
            (
                "bulla-blake3",
                &[
                    alone("aarch64::neon_wide::group", 448, 3160),
                    alone("aarch64::neon_wide::merge", 448, 3030),
                    alone("aarch64::neon_wide::output", 440, 2930),
                    calling("aarch64::neon_kernel::parents", 672, 4090),
                    calling("aarch64::neon_kernel::hash_lanes", 672, 5220),
                    calling("aarch64::neon_kernel::hash_equal_len", 672, 4840),
                ],
            ),
            (
                "bulla-blake2",
                &[calling("aarch64::lanes_2b", 1538, 10170), calling("aarch64::lanes_2s", 1920, 12610)],
            ),
        ],
    },
    Rules {
        target: "s390x-unknown-linux-gnu",
        scalar_rotates: &["rll", "rllg"],
        vector_rotates: &["verllf", "verllg"],
        functions: &[
            (
                "bulla-blake3",
                &[
                    alone("s390x::vector_wide::group", 224, 1250),
                    alone("s390x::vector_wide::merge", 224, 990),
                    alone("s390x::vector_wide::output", 224, 1360),
                    alone("s390x::vector_kernel::chunk", 112, 1000),
                    alone("s390x::vector_kernel::block", 56, 490),
                    alone("s390x::vector_kernel::chunk_prefix", 56, 540),
                    calling("s390x::vector_kernel::hash_lanes", 224, 2440),
                    calling("s390x::vector_kernel::hash_equal_len", 280, 2270),
                    calling("s390x::vector_kernel::parents", 280, 1730),
                ],
            ),
            (
                "bulla-blake2",
                &[
                    alone("s390x::compress_2s", 160, 1610),
                    calling("s390x::lanes_2b", 768, 4520),
                    calling("s390x::lanes_2s", 640, 3730),
                ],
            ),
        ],
    },
    Rules {
        target: "powerpc64le-unknown-linux-gnu",
        scalar_rotates: &["rotlwi", "rotldi", "rotlw", "rotld"],
        vector_rotates: &["vrlw", "vrld"],
        functions: &[
            (
                "bulla-blake3",
                &[
                    alone("powerpc64::vsx_wide::group", 224, 1850),
                    alone("powerpc64::vsx_wide::merge", 224, 1210),
                    alone("powerpc64::vsx_wide::output", 224, 1560),
                    calling("powerpc64::vsx_kernel::hash_lanes", 224, 2750),
                    calling("powerpc64::vsx_kernel::hash_equal_len", 224, 2320),
                    calling("powerpc64::vsx_kernel::parents", 224, 1520),
                ],
            ),
            (
                "bulla-blake2",
                &[calling("powerpc64::lanes_2b", 768, 5880), calling("powerpc64::lanes_2s", 640, 4350)],
            ),
        ],
    },
];

/// Compiles the kernels for each architecture, and checks their code.
pub(crate) fn check(context: &Context) -> Result<()> {
    let decoders = Decoders::get()?;
    let mut broken = Vec::new();
    for rules in &RULES {
        for (package, functions) in rules.functions {
            let listing = decoders.read(&library(context, package, rules.target)?, rules.target)?;
            let path = format!("{}::kernel", package.replace('-', "_"));
            for function in *functions {
                let counts = rules.count(&listing, &format!("{path}::{}", function.name))?;
                println!("{:<48} {counts:?}", function.name);
                broken.extend(function.broken(&counts));
            }
        }
    }
    ensure!(broken.is_empty(), "{}", broken.join("; "));
    Ok(())
}

impl Rules {
    fn count(&self, listing: &Listing, name: &str) -> Result<Counts> {
        listing.count(name, self.scalar_rotates, self.vector_rotates)
    }
}

impl Function {
    /// The rules that a function with these counts breaks.
    fn broken(&self, counts: &Counts) -> Vec<String> {
        let name = self.name;
        let mut broken = Vec::new();
        if counts.vector_rotates != self.rotates {
            broken
                .push(format!("{name}: {} rotates of vectors, not {}", counts.vector_rotates, self.rotates));
        }
        if counts.scalar_rotates > SCALAR_ROTATES {
            broken.push(format!("{name}: {} rotates of general registers", counts.scalar_rotates));
        }
        if counts.instructions > self.instructions {
            broken
                .push(format!("{name}: {} instructions, {} allowed", counts.instructions, self.instructions));
        }
        if self.calls == Calls::None && counts.calls > 0 {
            broken.push(format!("{name}: {} calls", counts.calls));
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_can_be_broken() {
        let good = Counts { instructions: 100, calls: 0, scalar_rotates: 2, vector_rotates: 56 };
        let rule = alone("f", 56, 110);
        assert!(rule.broken(&good).is_empty());
        for bad in [
            Counts { instructions: 111, ..good },
            Counts { calls: 1, ..good },
            Counts { scalar_rotates: 56, ..good },
            Counts { vector_rotates: 0, ..good },
        ] {
            assert_eq!(rule.broken(&bad).len(), 1, "{bad:?}");
        }
        assert!(calling("f", 56, 110).broken(&Counts { calls: 1, ..good }).is_empty());
    }
}
