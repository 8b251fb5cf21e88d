//! The keystore after a process was killed in the middle of its work.

use crate::support::Home;
use bulla_testing::strikes::strikes;
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::Duration;

/// How many rotations are killed; `BULLA_CRASH_RUNS` asks for another number.
const RUNS: u32 = 200;

#[test]
fn a_rotation_that_is_killed_at_any_point_loses_no_acknowledged_version() {
    let runs = std::env::var("BULLA_CRASH_RUNS").map_or(RUNS, |runs| runs.parse().expect("a number of runs"));
    let home = Home::new();
    home.write("first", "signed by version 1");
    home.run(["sign", "first"]).exits(0);

    let (mut acknowledged, mut run) = (1, 0_u32);
    strikes(runs, |delay| {
        let (head, was_killed) = rotate_and_kill(&home, delay);
        acknowledged = acknowledged.max(head.unwrap_or(0));
        let key = home.run(["keys", "show", "--json"]).exits(0).json().remove(0);
        let head = key["head"].as_u64().expect("a version");
        assert!(head >= acknowledged, "version {acknowledged} was acknowledged, the newest is {head}");
        assert_eq!(key["versions"].as_array().map(Vec::len), Some(head as usize));
        acknowledged = head;
        if run.is_multiple_of(20) {
            let name = format!("v{head}");
            home.write(&name, &name);
            home.run(["sign", &name]).exits(0);
        }
        run += 1;
        !was_killed
    });
    let names = home.names().into_iter().filter(|name| !name.ends_with(".bulla"));
    home.run(["verify".to_owned()].into_iter().chain(names)).exits(0).says(" 0 failed, 0 not checked");
}

/// Rotates, kills the process after `delay`, and tells which version was acknowledged, if any was.
fn rotate_and_kill(home: &Home, delay: Duration) -> (Option<u64>, bool) {
    let mut rotate = home.command();
    rotate.args(["keys", "rotate", "--json"]).stdout(Stdio::piped());
    let child = rotate.spawn().expect("the command runs");
    std::thread::sleep(delay);
    // It may have ended by now.
    let _ = kill_process(Pid::from_child(&child), Signal::KILL);
    let output = child.wait_with_output().expect("the command ends");
    let key: Option<serde_json::Value> = serde_json::from_slice(&output.stdout).ok();
    (key.and_then(|key| key["head"].as_u64()), !output.status.success())
}
