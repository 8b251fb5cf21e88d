//! A full standard output: what is said of it is true, and nobody is told to repeat what was done.

use crate::support::{Done, Home, bulla};
use std::fs::File;

/// Runs the command with a standard output that takes nothing.
fn run(home: &Home, args: &[&str]) -> Done {
    let full = File::options().write(true).open("/dev/full").expect("a full device");
    let mut command = home.command();
    command.args(args).stdout(full).stderr(std::process::Stdio::piped());
    let done = Done::from(command.spawn().unwrap().wait_with_output().unwrap()).exits(2);
    assert!(!done.stderr.contains("nothing was"), "{}", done.stderr);
    done.complains("standard output: cannot write: No space left on device")
}

#[test]
fn what_was_done_is_said_and_is_done() {
    let home = Home::new();
    home.write("a", "a");
    home.write_secret("pass", "correct horse\n");
    let changed = |args: &[&str], what: &str| {
        run(&home, args).complains(what).complains("do not run the command again for it");
    };
    changed(&["keystore", "init", "--json"], "the keystore was created");
    changed(&["sign", "a"], "the signature files were written");
    home.run(["verify", "a"]).exits(0);
    changed(&["keys", "rotate"], "default was rotated to version 2");
    home.run(["keys", "show"]).exits(0).says("v2 ");
    changed(&["keys", "create", "k"], "the key was created");
    changed(&["keys", "disable", "k"], "k was changed");
    changed(&["keys", "enable", "k", "--json"], "k was changed");
    changed(&["keys", "policy", "k", "--max-uses", "5"], "the policy was changed");
    changed(&["keys", "destroy", "k"], "k was changed");
    changed(&["keys", "cancel-destruction", "k"], "k was changed");
    changed(&["keystore", "guard", "none"], "the guard was changed");
    changed(&["encrypt", "a", "--new-passphrase-file", "pass"], "a.sealed was written");
    changed(&["decrypt", "a.sealed", "-o", "b", "--passphrase-file", "pass"], "b was written");
    assert_eq!(home.read("b"), b"a");
    changed(&["keygen", "me"], "me was written");
    let reseal = ["rekey", "a.sealed", "--passphrase-file", "pass", "--new-passphrase-file", "pass"];
    changed(&reseal, "the keys of a.sealed were changed");
    home.run(["keys", "export-public", "--format", "pem", "-o", "pem"]).exits(0);
    changed(&["keys", "import", "i", "pem", "--public"], "the key was imported");
    home.run(["keys", "show", "i"]).exits(0);
    changed(&["log", "init"], "the audit log was started");
    changed(&["log", "checkpoint"], "the checkpoint was made");
    changed(&["log", "checkpoint", "--json"], "the checkpoint was made");
    changed(
        &["keystore", "backup", "backup", "--new-passphrase-file", "pass"],
        "the keys were written to backup",
    );
    let elsewhere = ["--keystore", "elsewhere", "--passphrase-file", "pass"];
    changed(
        &[&["keystore", "restore", "backup"], &elsewhere[..]].concat(),
        "the keys were restored to elsewhere",
    );
    let new = ["keystore", "rekey", "--new-passphrase-file", "pass"];
    changed(&new, "the new secret opens the keystore");
}

#[test]
fn commands_that_change_nothing_say_nothing_of_a_change() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    for args in [
        &["verify", "a"][..],
        &["keys", "list"],
        &["keys", "show"],
        &["keys", "policy"],
        &["keystore", "guard"],
        &["keys", "export-public"],
        &["kernels"],
        &["--help"],
        &["--version"],
        &["sum", "--help"],
    ] {
        let done = run(&home, args).complains("free some space where standard output goes");
        assert!(!done.stderr.contains("repeat"), "{}", done.stderr);
    }
}

/// Runs a script of the shell, in which `$BULLA` is the command.
fn shell(home: &Home, script: &str) -> Done {
    Done::of(home.program("sh").args(["-c", script]).env("BULLA", bulla()))
}

#[test]
fn a_closed_standard_input_is_an_error_and_not_an_empty_one() {
    let home = Home::new();
    home.write("a", "a");
    for script in [
        "\"$BULLA\" sum <&-",
        "\"$BULLA\" sum a - <&-",
        "\"$BULLA\" sum -a sha256 - <&-",
        "\"$BULLA\" sum --files0-from - <&-",
        "\"$BULLA\" sum --outboard tree - <&-",
        "\"$BULLA\" sum --keyed a <&-",
        "\"$BULLA\" check <&-",
        "\"$BULLA\" sign -o sig - <&-",
        "\"$BULLA\" seal --new-passphrase-file pass - -o sealed <&-",
        "\"$BULLA\" open --passphrase-file pass - <&-",
        "\"$BULLA\" audit - <&-",
    ] {
        home.write_secret("pass", "correct horse\n");
        let done = shell(&home, script);
        assert!(done.code == Some(1) || done.code == Some(2), "{script}: {:?}", done.output);
        assert!(!done.stdout.contains("  -\n"), "{script}: {}", done.stdout);
        assert!(!home.path("sig").exists() && !home.path("sealed").exists(), "{script}");
    }
    shell(&home, "\"$BULLA\" sum - <&-").exits(1).complains("-: cannot read: Bad file descriptor");
    // A stream that is empty, and was opened like one that Rust opens.
    shell(&home, "\"$BULLA\" sum <> /dev/null").exits(0).says("  -\n");
}

#[test]
fn a_closed_standard_output_is_an_error_where_something_is_printed() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sum", "a"]).exits(0);
    home.run(["sign", "a"]).exits(0);
    home.write("SUMS", home.run(["sum", "a"]).output.stdout);
    for args in [
        "sum a",
        "sum --raw a",
        "sum --tree .",
        "check SUMS",
        "verify a",
        "sign a",
        "keys list",
        "kernels",
        "completions bash",
        "man",
        "--help",
        "-V",
        "help keys",
        "sum --help",
        "sum --version",
        "seal a -o - --new-passphrase-file pass",
    ] {
        home.write_secret("pass", "correct horse\n");
        let done = shell(&home, &format!("\"$BULLA\" {args} >&-"));
        assert!(done.code == Some(1) || done.code == Some(2), "{args}: {:?}", done.output);
        done.complains("Bad file descriptor");
    }
    // A command that prints nothing does not need the stream, and /dev/null is an open stream.
    shell(&home, "\"$BULLA\" check --quiet SUMS >&-").exits(0);
    shell(&home, "\"$BULLA\" sum a 1<> /dev/null").exits(0);
}
