//! Files while they are written: nobody else reads them, and no death of the process leaves them.

use crate::support::{Home, bulla, content};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

/// An identity `me`, and sealed data for it.
fn sealed(home: &Home) -> Vec<u8> {
    let recipient = home.run(["keygen", "me"]).exits(0).stdout;
    home.write("a", content(1, 1_000_000));
    home.run(["encrypt", "a", "--recipient", recipient.trim()]).exits(0);
    let sealed = home.read("a.sealed");
    fs::remove_file(home.path("a.sealed")).unwrap();
    sealed
}

/// Starts to open sealed data that comes by a pipe, and waits until plaintext is in a file. Gives
/// the file as the process has it.
fn half_opened(home: &Home, mut command: Command, sealed: &[u8]) -> (Child, ChildStdin, PathBuf) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&sealed[..sealed.len() / 2]).unwrap();
    let work = home.work().canonicalize().unwrap();
    let files = format!("/proc/{}/fd", child.id());
    loop {
        assert!(child.try_wait().unwrap().is_none(), "it waits for the rest");
        let entries = fs::read_dir(&files).into_iter().flatten().flatten().map(|entry| entry.path());
        let ours = |path: &PathBuf| {
            fs::read_link(path).is_ok_and(|target| target.starts_with(&work) && target != work)
                && fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0)
        };
        if let Some(path) = entries.into_iter().find(ours) {
            return (child, stdin, path);
        }
        std::thread::yield_now();
    }
}

fn open(home: &Home) -> Command {
    let mut command = home.interruptible();
    command.args(["decrypt", "-", "--identity", "me", "--output", "out"]);
    command
}

#[test]
fn a_signal_leaves_no_plaintext() {
    let home = Home::new();
    let sealed = sealed(&home);
    for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
        let (mut child, stdin, _) = half_opened(&home, open(&home), &sealed);
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal.as_raw()));
        drop(stdin);
        assert_eq!(home.names(), ["a", "me"]);
    }
}

#[test]
fn a_kill_leaves_no_plaintext() {
    let home = Home::new();
    let sealed = sealed(&home);
    let (mut child, stdin, _) = half_opened(&home, open(&home), &sealed);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
    drop(stdin);
    if home.names() != ["a", "me"] {
        // A file system without files that have no name: then the next run removes it.
        home.write("b", "b");
        home.run(["sign", "b"]).exits(0);
        assert_eq!(home.names(), ["a", "b", "b.bulla", "me"]);
    }
}

#[test]
fn plaintext_is_for_its_owner_until_all_of_it_is_proven() {
    let home = Home::new();
    let sealed = sealed(&home);
    let (mut child, mut stdin, file) = half_opened(&home, open(&home), &sealed);
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o7777, 0o600);
    stdin.write_all(&sealed[sealed.len() / 2..]).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(home.read("out"), home.read("a"));
    // And then what the umask permits, as with any new file.
    home.write("plain", "");
    let mode = |name: &str| fs::metadata(home.path(name)).unwrap().mode() & 0o7777;
    assert_eq!(mode("out"), mode("plain"));
}

#[test]
fn a_hangup_that_is_ignored_is_ignored() {
    let home = Home::new();
    let sealed = sealed(&home);
    let mut command = home.program("sh");
    let script = format!("trap '' HUP; exec {bulla} open - --identity me --output out", bulla = bulla());
    command.args(["-c", &script]);
    let (mut child, mut stdin, _) = half_opened(&home, command, &sealed);
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    stdin.write_all(&sealed[sealed.len() / 2..]).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(home.read("out"), home.read("a"));
}

#[test]
fn leftovers_are_removed_by_the_next_run_and_what_is_in_use_is_not() {
    let home = Home::new();
    home.write("b", "b");
    for name in [".bulla-left01.tmp", ".bulla-held01.tmp", ".bulla-other.tmp", ".bulla-left01"] {
        home.write(name, "plaintext");
    }
    let held = File::open(home.path(".bulla-held01.tmp")).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    home.run(["sign", "b"]).exits(0);
    let kept = [".bulla-held01.tmp", ".bulla-left01", ".bulla-other.tmp", "b", "b.bulla"];
    assert_eq!(home.names(), kept);
    drop(held);
    home.run(["sign", "b"]).exits(0);
    assert_eq!(home.names(), kept[1..]);
}
