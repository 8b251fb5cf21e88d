//! The kernels for x86-64 in a compiled file, and the rules for their code.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use iced_x86::{CpuidFeature, Mnemonic};

use super::{
    count::Counts,
    image::{Function, Image},
    secrets,
};

/// The functions of a BLAKE3 kernel, as `Functions` in `crates/blake3/src/kernel/table.rs` has
/// them, that work on one input, or on any number.
const NARROW_FUNCTIONS: &[&str] = &["chunk", "block", "hash_lanes", "hash_equal_len", "parents"];

/// The functions that work only on as many inputs as the widest registers have lanes.
const WIDE_FUNCTIONS: &[&str] = &["group", "merge", "transpose_out", "output"];

/// The function for two groups of such inputs.
const TWO_GROUP_FUNCTIONS: &[&str] = &["two_groups"];

/// The functions of a BLAKE2 kernel that work on one input.
const ONE_INPUT_FUNCTIONS: &[&str] = &["compress_2b", "compress_2s"];

/// The functions that work on up to as many inputs as the registers have lanes.
const LANE_FUNCTIONS: &[&str] = &["lanes_2b", "lanes_2s"];

/// The steps of Ed25519 that both kernels have, as `steps!` in
/// `crates/ed25519/src/kernel/lane_steps.rs` lists them.
const STEP_FUNCTIONS: &[&str] = &[
    "compress",
    "take_scalars",
    "decode_one_point",
    "decode_two_points",
    "decode_four_points",
    "decode_two",
    "decode_four",
    "decode_key_and_r",
    "decode_halves",
    "multiply_halved",
    "compare_decoded",
    "invert",
    "compare",
    "base_point",
    "double_times",
    "addend",
    "key_point",
    "add",
    "fill_own_tables",
    "scatter_tables",
    "multiply_own",
    "multiply_prepared",
    "next_rows",
];

/// Those of eight lanes alone.
const STEPS_OF_EIGHT: &[&str] = &[
    "multiply_nonce",
    "encode",
    "affine_point",
    "set_apart",
    "double_pair",
    "multiply_one",
    "multiply_one_nonce",
    "encode_one",
    "finish",
    "require_canonical",
    "weigh",
    "compare_cofactored",
    "accumulate",
    "sum_buckets",
    "is_torsion",
    "root_powers",
    "fill_own_rows",
    "fill_base_rows",
    "is_neutral",
    "are_neutral",
];

/// That of four lanes alone.
const STEPS_OF_FOUR: &[&str] = &["decode_pair"];

/// The steps that only move words between memory and lanes: registers of any width do.
const MOVING_STEPS: &[&str] = &["decode_pair", "scatter_tables"];

/// Whether this is a step of Ed25519.
fn is_step(function: &str) -> bool {
    [STEP_FUNCTIONS, STEPS_OF_EIGHT, STEPS_OF_FOUR].iter().any(|steps| steps.contains(&function))
}

/// The functions that take any number of inputs. They may call another function of their kernel,
/// and abort if a caller breaks the contract. No other function calls anything.
const DISPATCHING_FUNCTIONS: [&str; 5] = ["hash_lanes", "hash_equal_len", "parents", "lanes_2b", "lanes_2s"];

/// A library with kernels.
#[derive(Debug)]
pub struct Library {
    /// The package.
    pub package: &'static str,
    /// The beginning of all its functions' names.
    crate_name: &'static str,
    /// The beginning of its kernels' names.
    module: &'static str,
    /// The beginnings of the names of other functions that run only after detection: only kernels,
    /// and code with their vectors, call them.
    after_detection: &'static [&'static str],
    /// The instruction sets, best first.
    pub sets: &'static [Set],
}

/// The libraries whose kernels are checked.
pub static LIBRARIES: [Library; 3] = [
    Library {
        package: "bulla-blake3",
        crate_name: "bulla_blake3::",
        module: "bulla_blake3::kernel::x86_64::",
        after_detection: &[],
        sets: &BLAKE3,
    },
    Library {
        package: "bulla-blake2",
        crate_name: "bulla_blake2::",
        module: "bulla_blake2::kernel::x86_64::",
        after_detection: &[],
        sets: &BLAKE2,
    },
    Library {
        package: "bulla-ed25519",
        crate_name: "bulla_ed25519::",
        module: "bulla_ed25519::kernel::lane_steps::",
        // Between the steps, vectors are stored to memory and loaded from it.
        after_detection: &["bulla_ed25519::wipe::vector_registers", "core::core_arch::x86::avx"],
        sets: &ED25519,
    },
];

/// An instruction set that has a kernel.
#[derive(Debug)]
pub struct Set {
    /// The kernel's public name.
    pub name: &'static str,
    /// The modules of its functions, with the functions of each.
    modules: &'static [(&'static str, &'static [&'static str])],
    /// Its widest registers.
    widest: Width,
    /// The CPU features that its instructions may need, in addition to [`BASELINE_FEATURES`].
    features: &'static [CpuidFeature],
}

#[derive(Clone, Copy, Debug)]
enum Width {
    Xmm,
    Ymm,
    Zmm,
}

/// The features of every x86-64 CPU, by the decoder's names.
const BASELINE_FEATURES: &[CpuidFeature] = {
    use CpuidFeature::*;
    &[
        INTEL8086,
        INTEL186,
        INTEL286,
        INTEL386,
        INTEL486,
        X64,
        CMOV,
        CX8,
        FPU,
        MMX,
        MULTIBYTENOP,
        PAUSE,
        SSE,
        SSE2,
    ]
};

// The features that detection asks for.
const AVX512: &[CpuidFeature] = {
    use CpuidFeature::*;
    &[SSE3, SSSE3, SSE4_1, SSE4_2, AVX, AVX2, BMI1, BMI2, AVX512F, AVX512VL, AVX512BW, AVX512DQ]
};
const AVX512_IFMA: &[CpuidFeature] = {
    use CpuidFeature::*;
    &[SSE3, SSSE3, SSE4_1, SSE4_2, AVX, AVX2, BMI1, BMI2, AVX512F, AVX512VL, AVX512BW, AVX512DQ, AVX512_IFMA]
};
const AVX2: &[CpuidFeature] = {
    use CpuidFeature::*;
    &[SSE3, SSSE3, SSE4_1, SSE4_2, AVX, AVX2, BMI1, BMI2]
};
const AVX2_FMA: &[CpuidFeature] = {
    use CpuidFeature::*;
    &[SSE3, SSSE3, SSE4_1, SSE4_2, AVX, AVX2, BMI1, BMI2, FMA]
};
const SSE41: &[CpuidFeature] = &[CpuidFeature::SSE3, CpuidFeature::SSSE3, CpuidFeature::SSE4_1];

static BLAKE3: [Set; 4] = [
    Set {
        name: "x86_64/avx512",
        modules: &[
            ("avx512_full_kernel", NARROW_FUNCTIONS),
            ("avx512_full_wide", WIDE_FUNCTIONS),
            ("avx512_two", TWO_GROUP_FUNCTIONS),
        ],
        widest: Width::Zmm,
        features: AVX512,
    },
    Set {
        name: "x86_64/avx512 half-width",
        modules: &[("avx512_half_kernel", NARROW_FUNCTIONS), ("avx512_half_wide", WIDE_FUNCTIONS)],
        widest: Width::Zmm,
        features: AVX512,
    },
    Set {
        name: "x86_64/avx2",
        modules: &[("avx2_kernel", NARROW_FUNCTIONS), ("avx2_wide", WIDE_FUNCTIONS)],
        widest: Width::Ymm,
        features: AVX2,
    },
    Set {
        name: "x86_64/sse4.1",
        modules: &[("sse41_kernel", NARROW_FUNCTIONS), ("sse41_wide", WIDE_FUNCTIONS)],
        widest: Width::Xmm,
        features: SSE41,
    },
];

static BLAKE2: [Set; 4] = [
    Set {
        name: "blake2 x86_64/avx512",
        modules: &[("avx512_fast_rotate", ONE_INPUT_FUNCTIONS), ("avx512_lanes", LANE_FUNCTIONS)],
        widest: Width::Zmm,
        features: AVX512,
    },
    // CPUs whose rotates take two cycles use the same functions for many inputs.
    Set {
        name: "blake2 x86_64/avx512 slow-rotate",
        modules: &[("avx512_slow_rotate", ONE_INPUT_FUNCTIONS)],
        widest: Width::Zmm,
        features: AVX512,
    },
    Set {
        name: "blake2 x86_64/avx2",
        modules: &[("avx2_kernel", ONE_INPUT_FUNCTIONS), ("avx2_lanes", LANE_FUNCTIONS)],
        widest: Width::Ymm,
        features: AVX2,
    },
    Set {
        name: "blake2 x86_64/sse4.1",
        modules: &[("sse41_kernel", ONE_INPUT_FUNCTIONS), ("sse41_lanes", LANE_FUNCTIONS)],
        widest: Width::Xmm,
        features: SSE41,
    },
];

static ED25519: [Set; 2] = [
    Set {
        name: "ed25519 x86_64/avx512ifma",
        modules: &[("ifma", STEP_FUNCTIONS), ("ifma", STEPS_OF_EIGHT)],
        widest: Width::Zmm,
        features: AVX512_IFMA,
    },
    Set {
        name: "ed25519 x86_64/avx2",
        modules: &[("avx2", STEP_FUNCTIONS), ("avx2", STEPS_OF_FOUR)],
        widest: Width::Ymm,
        features: AVX2_FMA,
    },
];

/// The code of one function of one kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The library.
    pub library: &'static Library,
    /// The instruction set.
    pub set: &'static Set,
    /// The module that it is in.
    pub module: &'static str,
    /// The function.
    pub function: &'static str,
    /// The counts of its instructions.
    pub counts: Counts,
}

/// Every function of every kernel in `image`, of each library with code in it.
///
/// # Errors
/// A function is missing, or there is no code of any library.
pub fn find(image: &Image) -> Result<Vec<Kernel>> {
    let has = |library: &&Library| {
        image.functions.iter().any(|function| function.name.starts_with(library.crate_name))
    };
    let mut libraries: Vec<_> = LIBRARIES.iter().filter(has).collect();
    if libraries.is_empty() {
        libraries.push(&LIBRARIES[0]);
    }
    let found: Result<Vec<_>> = libraries.into_iter().map(|library| library.find(image)).collect();
    Ok(found?.concat())
}

impl Library {
    /// Every function of every kernel of this library in `image`.
    fn find(&'static self, image: &Image) -> Result<Vec<Kernel>> {
        let mut kernels = Vec::new();
        for set in self.sets {
            let functions = |(module, functions): &(&'static str, &'static [&'static str])| {
                functions.iter().map(|function| (*module, *function)).collect::<Vec<_>>()
            };
            for (module, function) in set.modules.iter().flat_map(functions) {
                let name = format!("{}{module}::{function}", self.module);
                let code = image.functions.iter().find(|function| function.name == name);
                let code = code.with_context(|| format!("no function {name} in this file"))?;
                let counts = Counts::of(code, image);
                kernels.push(Kernel { library: self, set, module, function, counts });
            }
        }
        Ok(kernels)
    }
}

impl Kernel {
    /// The name in tables, such as `x86_64/avx2 group`.
    pub fn name(&self) -> String {
        format!("{} {}", self.set.name, self.function)
    }

    /// The forbidden calls.
    pub fn forbidden_calls(&self) -> Vec<&str> {
        let own = format!("{}{}::", self.library.module, self.module);
        let panics = |callee: &str| callee.starts_with("core::panicking::");
        let allowed = |callee: &&String| match self.function {
            function if DISPATCHING_FUNCTIONS.contains(&function) => {
                callee.starts_with(&own) || panics(callee)
            }
            // Steps call other steps of their kernel. Functions outside the library copy and clear
            // whole tables, and only these are called through pointers. Steps with secrets call
            // nothing.
            function if is_step(function) && !secrets::STEPS.contains(&function) => {
                callee.starts_with(&own)
                    || ["memcpy", "memset"].contains(&callee.as_str())
                    || ["a pointer: ", "core::slice::index::"].iter().any(|name| callee.starts_with(name))
                    || panics(callee)
            }
            _ => false,
        };
        self.counts.calls.iter().filter(|callee| !allowed(callee)).map(String::as_str).collect()
    }

    /// The instructions that a CPU with only this set does not have, each with the feature that it
    /// needs.
    pub fn foreign_instructions(&self) -> Vec<String> {
        foreign(&self.counts, self.set.features)
    }

    /// A problem with the widths of the registers, if there is one: a kernel that computes in
    /// narrow registers is useless.
    pub fn narrow(&self) -> Option<String> {
        let widest = match self.function {
            // Four elements take less time in registers of half the width.
            "root_powers" => Width::Ymm,
            _ => self.set.widest,
        };
        let (wide, register) = match widest {
            Width::Xmm => (self.counts.xmm, "xmm"),
            Width::Ymm => (self.counts.ymm, "ymm"),
            Width::Zmm => (self.counts.zmm, "zmm"),
        };
        // Wide functions use some narrow registers: to read blocks in pieces of 128 bits, and to
        // make counters.
        let least = match self.function {
            function if WIDE_FUNCTIONS.contains(&function) => self.counts.vector() * 3 / 4,
            // Some write rows of one lane each, in pairs of words.
            function if is_step(function) => self.counts.vector() * 2 / 3,
            _ => 1,
        };
        let is_wide = [WIDE_FUNCTIONS, &DISPATCHING_FUNCTIONS]
            .iter()
            .any(|functions| functions.contains(&self.function));
        let computes = is_step(self.function) && !MOVING_STEPS.contains(&self.function);
        ((is_wide || computes) && wide < least.max(1))
            .then(|| format!("{wide} of {} vector instructions use {register}", self.counts.vector()))
    }
}

/// The functions outside the kernels with instructions that not every x86-64 CPU has: they run
/// before, and without, detection.
pub fn foreign_outside(image: &Image) -> Vec<String> {
    let is_kernel = |function: &Function| {
        LIBRARIES.iter().any(|library| {
            let mut modules = library.sets.iter().flat_map(|set| set.modules);
            modules.any(|(module, _)| function.name.starts_with(&format!("{}{module}::", library.module)))
                || library.after_detection.iter().any(|name| function.name.starts_with(name))
        })
    };
    let mut found = Vec::new();
    for function in image.functions.iter().filter(|function| !is_kernel(function)) {
        let foreign = foreign(&Counts::of(function, image), &[]);
        if !foreign.is_empty() {
            found.push(format!("{}: {}", function.name, foreign.join(", ")));
        }
    }
    found
}

fn foreign(counts: &Counts, features: &[CpuidFeature]) -> Vec<String> {
    let is_known = |feature, mnemonic| {
        BASELINE_FEATURES.contains(&feature)
            || features.contains(&feature)
            // A CPU without it executes a `bsf`: the same for all values except zero, for which the
            // compiler emits other code.
            || mnemonic == Mnemonic::Tzcnt
    };
    let needs = counts.needs.iter().filter(|(feature, mnemonic)| !is_known(**feature, **mnemonic));
    let mut found: Vec<_> = needs.map(|(feature, mnemonic)| format!("{mnemonic:?} ({feature:?})")).collect();
    if counts.undecoded > 0 {
        found.push(format!("{} that the decoder does not know", counts.undecoded));
    }
    found
}

/// The table of all functions, and the sizes in total.
pub fn table(kernels: &[Kernel]) -> String {
    let mut out = format!(
        "{:<34} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>6} {:>6}  calls\n",
        "function", "instr", "bytes", "stores", "loads", "moves", "zmm", "ymm", "xmm"
    );
    for kernel in kernels {
        let Counts { instructions, bytes, stack_stores, stack_loads, moves, zmm, ymm, xmm, .. } =
            kernel.counts;
        let calls: Vec<_> = kernel
            .counts
            .calls
            .iter()
            .map(|name| name.trim_start_matches(kernel.library.crate_name))
            .collect();
        let row = format!(
            "{:<34} {instructions:>7} {bytes:>7} {stack_stores:>7} {stack_loads:>7} {moves:>6} {zmm:>6} {ymm:>6} {xmm:>6}  {}",
            kernel.name(),
            calls.join(", ")
        );
        let _ = writeln!(out, "{}", row.trim_end());
    }
    out.push('\n');
    for set in LIBRARIES.iter().flat_map(|library| library.sets) {
        let own = kernels.iter().filter(|kernel| kernel.set.name == set.name);
        let bytes = own.map(|kernel| kernel.counts.bytes).sum::<u64>();
        if bytes > 0 {
            let _ = writeln!(out, "{:<34} {bytes:>15} bytes", set.name);
        }
    }
    let _ = writeln!(
        out,
        "{:<34} {:>15} bytes",
        "all kernels",
        kernels.iter().map(|kernel| kernel.counts.bytes).sum::<u64>()
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(set: &str, function: &'static str, counts: Counts) -> Kernel {
        let library = &LIBRARIES[0];
        let set = library.sets.iter().find(|candidate| candidate.name == set).unwrap();
        let (module, _) = set.modules.iter().find(|(_, functions)| functions.contains(&function)).unwrap();
        Kernel { library, set, module, function, counts }
    }

    fn calling(function: &'static str, callee: &str) -> usize {
        let counts = Counts { calls: [callee.to_owned()].into(), ..Counts::default() };
        kernel("x86_64/avx2", function, counts).forbidden_calls().len()
    }

    #[test]
    fn only_dispatching_functions_call_and_only_their_own_kernel() {
        let own = "bulla_blake3::kernel::x86_64::avx2_kernel::chunk";
        assert_eq!(calling("hash_lanes", own), 0);
        assert_eq!(calling("hash_lanes", "core::panicking::panic_bounds_check"), 0);
        assert_eq!(calling("hash_lanes", "bulla_blake3::kernel::x86_64::avx512_full_kernel::chunk"), 1);
        assert_eq!(calling("hash_lanes", "memset"), 1);
        assert_eq!(calling("group", own), 1);
        assert_eq!(calling("group", "core::panicking::panic_bounds_check"), 1);
    }

    #[test]
    fn steps_of_ed25519_clear_memory_unless_secrets_are_in_them() {
        let calls = |function: &str, callee: &str| {
            let library = LIBRARIES.iter().find(|library| library.package == "bulla-ed25519").unwrap();
            let function =
                STEP_FUNCTIONS.iter().chain(STEPS_OF_EIGHT).find(|step| **step == function).unwrap();
            let counts = Counts { calls: [callee.to_owned()].into(), ..Counts::default() };
            let kernel = Kernel { library, set: &library.sets[0], module: "ifma", function, counts };
            kernel.forbidden_calls().len()
        };
        assert_eq!(calls("multiply_own", "memset"), 0);
        assert_eq!(calls("multiply_own", "bulla_ed25519::any"), 1);
        assert_eq!(calls("multiply_own", "bulla_ed25519::kernel::lane_steps::ifma::add"), 0);
        assert_eq!(calls("multiply_own", "bulla_ed25519::kernel::lane_steps::avx2::add"), 1);
        for callee in ["memset", "bulla_ed25519::kernel::lane_steps::ifma::add"] {
            assert!(secrets::STEPS.iter().all(|step| calls(step, callee) == 1), "{callee}");
        }
    }

    #[test]
    fn instructions_of_a_better_set_are_foreign() {
        let counts =
            || Counts { needs: [(CpuidFeature::AVX2, Mnemonic::Vpaddd)].into(), ..Counts::default() };
        let foreign = |set| kernel(set, "group", counts()).foreign_instructions();
        assert_eq!(foreign("x86_64/sse4.1"), ["Vpaddd (AVX2)"]);
        assert!(foreign("x86_64/avx2").is_empty() && foreign("x86_64/avx512").is_empty());
    }

    #[test]
    fn what_cannot_be_decoded_is_foreign() {
        let counts = Counts { undecoded: 1, ..Counts::default() };
        assert_eq!(kernel("x86_64/avx512", "group", counts).foreign_instructions().len(), 1);
    }

    #[test]
    fn wide_functions_use_wide_registers_mostly_and_others_somewhere() {
        let narrow = |function, zmm, ymm| {
            kernel("x86_64/avx512", function, Counts { zmm, ymm, ..Counts::default() }).narrow().is_some()
        };
        assert!(narrow("group", 74, 26) && !narrow("group", 75, 25) && narrow("group", 0, 0));
        assert!(narrow("parents", 0, 100) && !narrow("parents", 1, 99));
        assert!(!narrow("chunk", 0, 0));
    }

    #[test]
    fn vector_code_outside_the_kernels_is_found() {
        let code = b"\xc5\xfd\xfe\xc0".to_vec(); // vpaddd ymm0, ymm0, ymm0
        let named = |name: &str| Image {
            functions: vec![Function { name: name.to_owned(), code: code.clone(), ..Function::default() }],
            ..Image::default()
        };
        assert_eq!(foreign_outside(&named("bulla_blake3::hash")), ["bulla_blake3::hash: Vpaddd (AVX2)"]);
        assert!(foreign_outside(&named("bulla_blake3::kernel::x86_64::avx2_wide::group")).is_empty());
    }

    #[test]
    fn a_kernel_that_is_missing_is_named() {
        let error = find(&Image::default()).unwrap_err().to_string();
        assert!(error.contains("avx512_full_kernel::chunk"), "{error}");
    }
}
