//! The recorded counts of the kernels, `lab/kernels.toml`, and the allowed distance of the current
//! counts from them.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{
    image,
    kernels::{Kernel, LIBRARIES},
};

/// The command that records new counts.
pub const COMMAND: &str = "cargo run -p bulla-lab -- kernels-code --record";

/// The allowed distance of a count from the record: small edits elsewhere change a register or two.
const MARGIN_PERCENT: u64 = 3;

/// The recorded counts of one function.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    instructions: u64,
    stack_stores: u64,
    stack_loads: u64,
    moves: u64,
}

/// The recorded counts by instruction set and function.
pub type Budgets = BTreeMap<String, BTreeMap<String, Budget>>;

impl Budget {
    fn of(kernel: &Kernel) -> Self {
        let counts = &kernel.counts;
        Self {
            instructions: counts.instructions,
            stack_stores: counts.stack_stores,
            stack_loads: counts.stack_loads,
            moves: counts.moves,
        }
    }

    fn figures(self) -> [(&'static str, u64); 4] {
        [
            ("instructions", self.instructions),
            ("stack stores", self.stack_stores),
            ("stack loads", self.stack_loads),
            ("register moves", self.moves),
        ]
    }
}

/// The path of the record.
pub fn path() -> PathBuf {
    image::root().join("lab/kernels.toml")
}

/// Reads the record.
///
/// # Errors
/// It cannot be read, or is not a record.
pub fn read() -> Result<Budgets> {
    let path = path();
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// The text of the record of `kernels`.
pub fn text(kernels: &[Kernel]) -> String {
    let mut out = format!(
        "# What the kernels for {} consist of: the test `kernels` of crates/lab holds\n\
         # the build to within {MARGIN_PERCENT} %. Stores and loads are those of vector registers to and from the stack.\n\
         # Recorded by: {COMMAND}\n",
        image::TARGET
    );
    for set in LIBRARIES.iter().flat_map(|library| library.sets) {
        let own: Vec<_> = kernels.iter().filter(|kernel| kernel.set.name == set.name).collect();
        if !own.is_empty() {
            let _ = writeln!(out, "\n[\"{}\"]", set.name);
        }
        for kernel in own {
            let Budget { instructions, stack_stores, stack_loads, moves } = Budget::of(kernel);
            let _ = writeln!(
                out,
                "{} = {{ instructions = {instructions}, stack_stores = {stack_stores}, stack_loads = {stack_loads}, moves = {moves} }}",
                kernel.function
            );
        }
    }
    out
}

/// Replaces the record by that of `kernels`.
///
/// # Errors
/// It cannot be written; then the old one is unchanged.
pub fn record(kernels: &[Kernel]) -> Result<()> {
    let path = path();
    let fresh = path.with_extension("toml.new");
    let write = || {
        let mut file = File::create(&fresh)?;
        file.write_all(text(kernels).as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// The places where the kernels and the record differ by more than the margin. More is a
/// regression. Less is a gain that should be recorded, because a loose budget would let it be lost
/// again.
pub fn breaches(kernels: &[Kernel], budgets: &Budgets) -> Vec<String> {
    let mut found = Vec::new();
    for kernel in kernels {
        let name = kernel.name();
        let Some(budget) = budgets.get(kernel.set.name).and_then(|set| set.get(kernel.function)) else {
            found.push(format!("{name} is not recorded"));
            continue;
        };
        for ((what, now), (_, recorded)) in Budget::of(kernel).figures().into_iter().zip(budget.figures()) {
            if now.abs_diff(recorded) * 100 > recorded * MARGIN_PERCENT {
                let side = if now > recorded { "over its budget" } else { "below its record" };
                found.push(format!(
                    "{name}: {now} {what}, recorded {recorded}: {} {side}",
                    now.abs_diff(recorded)
                ));
            }
        }
    }
    let is_kernel = |set: &str, function: &str| {
        kernels.iter().any(|kernel| kernel.set.name == set && kernel.function == function)
    };
    for (set, functions) in budgets {
        for function in functions.keys().filter(|function| !is_kernel(set, function)) {
            found.push(format!("{set} {function} is recorded, but is no function of a kernel"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::count::Counts;

    fn group(instructions: u64, stack_stores: u64) -> Kernel {
        let counts = Counts { instructions, stack_stores, ..Counts::default() };
        let library = &LIBRARIES[0];
        Kernel { library, set: &library.sets[0], module: "avx512_full_wide", function: "group", counts }
    }

    fn recorded(kernel: &Kernel) -> Budgets {
        toml::from_str(&text(std::slice::from_ref(kernel))).unwrap()
    }

    #[test]
    fn what_was_recorded_has_no_breach() {
        let kernel = group(1000, 7);
        assert_eq!(breaches(std::slice::from_ref(&kernel), &recorded(&kernel)), [""; 0]);
    }

    #[test]
    fn the_margin_holds_on_both_sides() {
        let budgets = recorded(&group(1000, 0));
        for (instructions, expected) in [(1030, 0), (1031, 1), (970, 0), (969, 1)] {
            assert_eq!(breaches(&[group(instructions, 0)], &budgets).len(), expected, "{instructions}");
        }
    }

    #[test]
    fn a_breach_says_which_function_broke_which_budget_by_how_much() {
        let found = breaches(&[group(1000, 2)], &recorded(&group(1000, 0)));
        assert_eq!(found, ["x86_64/avx512 group: 2 stack stores, recorded 0: 2 over its budget"]);
    }

    #[test]
    fn functions_must_be_recorded_and_records_be_of_functions() {
        let kernel = group(1000, 0);
        assert_eq!(breaches(std::slice::from_ref(&kernel), &Budgets::new()).len(), 1);
        assert_eq!(breaches(&[], &recorded(&kernel)).len(), 1);
    }
}
