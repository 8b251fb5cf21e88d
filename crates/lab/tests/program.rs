//! The laboratory's program, as `cargo xtask bench` uses it.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use bulla_lab::record::Record;

const FORCE: &str = "BULLA_BLAKE3_FORCE_KERNEL";

fn lab(arguments: &[&str], input: &str) -> Output {
    run(Command::new(env!("CARGO_BIN_EXE_bulla-lab")).args(arguments).env_remove(FORCE), input)
}

fn run(command: &mut Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A program that takes no input may end first.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn records_of_a_launch_become_a_table() {
    let measured =
        lab(&["measure", "blake3", "--launch", "3", "--cases", "oneshot", "--sizes", "64,1024"], "");
    let lines = String::from_utf8(measured.stdout).unwrap();
    let records: Vec<_> = lines.lines().map(|line| Record::parse(line).unwrap()).collect();
    assert_eq!(records.iter().map(|r| r.case.as_str()).collect::<Vec<_>>(), ["oneshot/64", "oneshot/1024"]);
    assert!(records.iter().all(|r| r.launch == 3 && r.rounds >= 51 && r.peer.starts_with("blake3 1.")));

    let table = lab(&["table"], &lines);
    let text = String::from_utf8(table.stdout).unwrap();
    assert!(text.contains("oneshot/1024") && text.contains("2 cases:"), "{text}");
}

#[test]
fn the_kernels_are_listed() {
    let listed = lab(&["kernels", "blake3"], "");
    assert!(listed.status.success() && !listed.stdout.is_empty());
}

#[test]
fn a_forced_kernel_is_the_one_measured() {
    let listed = String::from_utf8(lab(&["kernels", "blake3"], "").stdout).unwrap();
    for kernel in listed.lines() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bulla-lab"));
        let measured = run(command.args(["measure", "blake3", "--cases", "keyed/64"]).env(FORCE, kernel), "");
        let record = Record::parse(String::from_utf8(measured.stdout).unwrap().trim()).unwrap();
        assert_eq!((record.kernel.as_str(), record.forced), (kernel, true));
    }
}

#[test]
fn an_unknown_kernel_is_refused_with_a_list() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulla-lab"));
    let refused = run(command.args(["measure", "blake3"]).env(FORCE, "no/such"), "");
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("portable"));
}

#[test]
fn bad_requests_are_refused() {
    for arguments in [&["measure", "sha1"][..], &["measure", "blake3", "--sizes", "7"], &["kernels", "sha1"]]
    {
        let refused = lab(arguments, "");
        assert!(!refused.status.success() && refused.stdout.is_empty(), "{arguments:?}");
    }
    let refused = lab(&["table"], "not a record\n");
    assert!(!refused.status.success());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("line 1"));
}
