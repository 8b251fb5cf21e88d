//! Any bytes as a binary give a report or an error, and every instruction is counted once.

#![no_main]

use std::sync::LazyLock;

use bulla_audit::{Limits, Options, Rules, audit};
use libfuzzer_sys::fuzz_target;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::built_in);

fuzz_target!(|bytes: &[u8]| {
    let options = Options { rules: &RULES, limits: Limits { tables: 16 << 20 }, progress: &|_| () };
    for report in audit(&bytes, "fuzz", &options).into_iter().flatten() {
        let total = &report.total;
        assert!(total.vector <= total.instructions);
        assert!(total.widths.values().all(|count| *count <= total.vector));
        let crates: u64 = report.crates.iter().map(|krate| krate.counts.instructions).sum();
        assert_eq!(crates, total.instructions);
    }
});
