//! `bulla kernels`, and the variable that forces a kernel.

use crate::support::{Done, Home};

const VARIABLE: &str = "BULLA_BLAKE3_FORCE_KERNEL";

#[test]
fn the_report_names_the_kernel_and_every_operation() {
    let home = Home::new();
    let report = home.run(["kernels"]).exits(0).says("This machine has ").stdout;
    for operation in ["one-shot", "keyed", "derive-key", "stream", "many", "xof", "parents"] {
        assert!(report.lines().any(|line| line.starts_with(operation)), "{operation}: {report}");
    }
}

#[test]
fn the_json_says_the_same() {
    let home = Home::new();
    let done = home.run(["kernels", "--json"]).exits(0);
    let report: serde_json::Value = serde_json::from_str(&done.stdout).expect("one JSON object");
    assert_eq!(report["forced"], false);
    assert_eq!(report["kernel"], report["available"][0]);
    let sizes = report["sizes"].as_array().expect("a list");
    assert!(sizes.iter().any(|size| size["operation"] == "xof" && size["to"].is_null()));
    assert!(sizes.iter().all(|size| size["from"].is_u64() && size["shape"].is_string()));
}

#[test]
fn a_forced_kernel_serves_everything() {
    let home = Home::new();
    let report = Done::of(home.command().arg("kernels").env(VARIABLE, "portable")).exits(0);
    let shapes = report.stdout.lines().filter(|line| line.contains(" bytes") || line.contains(" parents "));
    let mut lines = 0;
    for line in shapes {
        assert!(line.contains(" scalar"), "{line}");
        lines += 1;
    }
    assert!(lines >= 6 && report.stdout.starts_with("kernel portable (forced)"), "{}", report.stdout);
}

#[test]
fn a_kernel_that_there_is_not_is_an_error_of_every_command() {
    let home = Home::new();
    home.write("a", "x");
    for command in [&["kernels"][..], &["sum", "a"]] {
        Done::of(home.command().args(command).env(VARIABLE, "x86_64/mmx"))
            .exits(2)
            .complains(VARIABLE)
            .complains("it has ")
            .complains("portable")
            .complains("hint:");
    }
}
