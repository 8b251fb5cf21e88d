//! The laboratory's program, as `cargo xtask bench` uses it.

use std::process::{Command, Output};

use bulla_record::{compare::comparisons, record::Record};

const FORCE: &str = "BULLA_BLAKE3_FORCE_KERNEL";

fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bulla-lab")).args(arguments).env_remove(FORCE).output().unwrap()
}

#[test]
fn records_of_a_launch_can_be_compared() {
    let measured = lab(&["measure", "oneshot", "--launch", "3", "--cases", "hash/", "--sizes", "64,1024"]);
    let records = Record::parse_all(&String::from_utf8(measured.stdout).unwrap()).unwrap();
    assert!(records.iter().all(|r| r.launch == 3 && r.samples_ns.len() >= 51 && r.ghz > 0.0));
    let found = comparisons(&records).unwrap();
    let names: Vec<_> = found.iter().map(|c| (c.ours.case.as_str(), c.peer_name.as_str())).collect();
    assert_eq!(
        names,
        [("hash/64", "blake3"), ("hash/64", "rscrypto"), ("hash/1024", "blake3"), ("hash/1024", "rscrypto")]
    );
}

#[test]
fn the_kernels_are_listed() {
    let listed = lab(&["kernels", "oneshot"]);
    assert!(listed.status.success() && !listed.stdout.is_empty());
}

#[test]
fn a_forced_kernel_is_the_one_measured() {
    let listed = String::from_utf8(lab(&["kernels", "oneshot"]).stdout).unwrap();
    for kernel in listed.lines() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bulla-lab"));
        let measured =
            command.args(["measure", "oneshot", "--cases", "keyed/64"]).env(FORCE, kernel).output().unwrap();
        let records = Record::parse_all(&String::from_utf8(measured.stdout).unwrap()).unwrap();
        assert_eq!((records[0].kernel.as_str(), records[0].forced), (kernel, true));
    }
}

#[test]
fn an_unknown_kernel_is_refused_with_a_list() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bulla-lab"));
    let refused = command.args(["measure", "oneshot"]).env(FORCE, "no/such").output().unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("portable"));
}

#[test]
fn bad_requests_are_refused() {
    for arguments in [&["measure", "sha1"][..], &["measure", "oneshot", "--sizes", "7"], &["kernels", "sha1"]]
    {
        let refused = lab(arguments);
        assert!(!refused.status.success() && refused.stdout.is_empty(), "{arguments:?}");
    }
}
