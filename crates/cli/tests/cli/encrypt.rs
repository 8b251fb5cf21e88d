//! `bulla encrypt`, `decrypt`, `rekey` and `keygen`, and the keystore as a whole: `keystore rekey`,
//! `backup`, `restore`.

use crate::support::{Done, Home, content};
use bulla_testing::strikes::strikes;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;

/// A home with an identity `me.identity`, its recipient `me.recipient`, and a file `a` of a few
/// chunks.
fn home() -> Home {
    let home = Home::new();
    identity(&home, "me");
    home.write("a", content(1, 200_001));
    home
}

fn identity(home: &Home, name: &str) {
    let made = home.run(["keygen", &format!("{name}.identity")]).exits(0);
    home.write(format!("{name}.recipient"), made.stdout);
}

#[test]
fn a_sealed_file_opens_for_its_recipient_and_nothing_is_replaced() {
    let home = home();
    home.run(["encrypt", "a", "--recipient", "me.recipient"]).exits(0).says("a: encrypted to a.sealed");
    home.run(["encrypt", "a", "--recipient", "me.recipient"]).exits(2).complains("a.sealed: exists already");
    home.run(["decrypt", "a.sealed", "--identity", "me.identity"]).exits(2).complains("a: exists already");
    home.run(["decrypt", "a.sealed", "--identity", "me.identity", "-o", "b"]).exits(0).says("decrypted to b");
    assert_eq!(home.read("b"), home.read("a"));
    fs::remove_file(home.path("a")).unwrap();
    home.run(["decrypt", "a.sealed", "--identity", "me.identity"]).exits(0).says("a.sealed: decrypted to a");
    assert_eq!(home.read("a"), home.read("b"));

    identity(&home, "other");
    let refused = home.run(["decrypt", "a.sealed", "--identity", "other.identity", "-o", "c"]).exits(2);
    refused.complains("it opens with x-wing");
    home.run(["decrypt", "a.sealed", "-o", "c"]).exits(2).complains("no such key was given");
    home.run(["decrypt", "b", "--identity", "me.identity", "-o", "c"])
        .exits(2)
        .complains("not an encrypted file");
    home.run(["decrypt", "b", "--identity", "me.identity"]).exits(2).complains("--output");
    assert!(!home.path("c").exists());
    assert_eq!(fs::metadata(home.path("me.identity")).unwrap().mode() & 0o7777, 0o600);
    home.run(["keygen", "me.identity"]).exits(2).complains("exists already");
}

#[test]
fn passphrases_key_files_age_and_keys_of_the_keystore_open_too() {
    let home = home();
    home.write_secret("passphrase", "correct horse\n");
    home.write_secret("wrong", "wrong horse\n");
    home.run(["encrypt", "a", "-o", "p", "--new-passphrase-file", "passphrase"]).exits(0);
    home.run(["decrypt", "p", "-o", "p.out", "--passphrase-file", "passphrase"]).exits(0);
    assert_eq!(home.read("p.out"), home.read("a"));
    home.run(["decrypt", "p", "-o", "x", "--passphrase-file", "wrong"]).exits(2).complains("passphrase");
    home.run(["decrypt", "p", "-o", "x"]).exits(2).complains("no terminal");
    home.run(["encrypt", "a", "-o", "x", "--passphrase"]).exits(2).complains("no terminal");

    home.run(["keystore", "init"]).exits(0);
    let key_file = home.keystore().join("keystore.key");
    let key_file = key_file.to_str().unwrap();
    home.run(["encrypt", "a", "-o", "k", "--new-key-file", key_file]).exits(0);
    home.run(["decrypt", "k", "-o", "k.out", "--key-file", key_file]).exits(0);
    assert_eq!(home.read("k.out"), home.read("a"));

    let age = home.run(["keygen", "--age", "age.identity"]).exits(0).stdout;
    assert!(age.starts_with("age1") && age.trim().len() == 62, "{age}");
    home.run(["encrypt", "a", "-o", "g", "--recipient", age.trim(), "--recipient", "me.recipient"]).exits(0);
    for (name, identity) in [("g.1", "age.identity"), ("g.2", "me.identity")] {
        home.run(["decrypt", "g", "-o", name, "--identity", identity]).exits(0);
        assert_eq!(home.read(name), home.read("a"));
    }
    home.run(["encrypt", "a", "-o", "x"]).exits(2).complains("--recipient");
    home.run(["encrypt", "a", "-o", "x", "--recipient", "a"]).exits(2).complains("a: ");
    home.run(["keys", "export-public", "-o", "signer.pub"]).exits(0);
    home.run(["encrypt", "a", "-o", "x", "--recipient", "signer.pub"]).exits(2).complains("signs");
    assert!(!home.path("x").exists());
}

#[test]
fn a_damaged_file_is_a_failure_and_leaves_nothing() {
    let home = home();
    home.run(["encrypt", "a", "--recipient", "me.recipient"]).exits(0);
    let sealed = home.read("a.sealed");
    let before = home.names();
    for at in [sealed.len() - 1, sealed.len() / 2, sealed.len() - 100_000] {
        let mut damaged = sealed.clone();
        damaged[at] ^= 1;
        home.write("damaged.sealed", damaged);
        home.run(["decrypt", "damaged.sealed", "--identity", "me.identity"])
            .exits(1)
            .complains("damaged or edited");
        home.write("damaged.sealed", &sealed[..at]);
        home.run(["decrypt", "damaged.sealed", "--identity", "me.identity"])
            .exits(1)
            .complains("damaged or edited");
        fs::remove_file(home.path("damaged.sealed")).unwrap();
        assert_eq!(home.names(), before, "no file is left");
    }
    let mut newer = sealed;
    newer[4] = 9;
    home.write("newer.sealed", newer);
    home.run(["decrypt", "newer.sealed", "--identity", "me.identity"]).exits(2).complains("newer version");
}

#[test]
fn standard_input_is_sealed_and_opened_in_a_pipe() {
    let home = home();
    // Less than a pipe holds: the test writes all of it before it reads.
    let bytes = content(3, 30_000);
    let sealed =
        Done::with_input(home.command().args(["encrypt", "-", "--recipient", "me.recipient"]), &bytes)
            .exits(0);
    let opened = Done::with_input(
        home.command().args(["decrypt", "-", "--identity", "me.identity"]),
        &sealed.output.stdout,
    );
    assert_eq!(opened.exits(0).output.stdout, bytes);
    let cut = &sealed.output.stdout[..sealed.output.stdout.len() - 1];
    Done::with_input(home.command().args(["decrypt", "-", "--identity", "me.identity"]), cut).exits(1);
}

#[test]
fn a_full_disk_ends_sealing_at_once_however_much_is_to_come() {
    let home = home();
    let mut command = home.command();
    command.args(["encrypt", "-", "--recipient", "me.recipient"]);
    command.stdin(fs::File::open("/dev/zero").unwrap());
    command.stdout(fs::File::create("/dev/full").unwrap()).stderr(Stdio::piped());
    let ended = command.spawn().unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn a_file_is_sealed_to_new_keys_in_one_step() {
    let home = home();
    identity(&home, "new");
    home.run(["encrypt", "a", "-o", "s", "--recipient", "me.recipient"]).exits(0);
    let open = |identity: &str| {
        let _ = fs::remove_file(home.path("out"));
        home.run(["decrypt", "s", "-o", "out", "--identity", identity]).code
    };
    let add = ["rekey", "s", "--keep", "--identity", "me.identity", "--recipient", "new.recipient"];
    home.run(add).exits(0).says("keys changed");
    assert_eq!((open("me.identity"), open("new.identity")), (Some(0), Some(0)));
    home.run(["rekey", "s", "--identity", "new.identity", "--recipient", "new.recipient"]).exits(0);
    assert_eq!((open("me.identity"), open("new.identity")), (Some(2), Some(0)));
    let before = home.read("s");
    home.run(["rekey", "s", "--identity", "me.identity", "--recipient", "me.recipient"]).exits(2);
    assert_eq!(home.read("s"), before);
}

#[test]
fn an_interrupted_command_leaves_the_whole_file_or_none() {
    let home = home();
    home.write("large", content(2, 8 << 20));
    let before = home.names();
    strikes(10, |delay| {
        let mut command = home.interruptible();
        command.args(["encrypt", "large", "--recipient", "me.recipient"]).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(delay);
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        let was_told = child.wait().unwrap().success();
        // The signal may fall between the last step and the end.
        let is_sealed = home.path("large.sealed").exists();
        assert!(is_sealed || !was_told);
        if is_sealed {
            home.run(["decrypt", "large.sealed", "-o", "opened", "--identity", "me.identity"]).exits(0);
            assert!(home.read("opened") == home.read("large"));
            fs::remove_file(home.path("opened")).unwrap();
            fs::remove_file(home.path("large.sealed")).unwrap();
        }
        assert_eq!(home.names(), before);
        is_sealed
    });
}

#[test]
fn the_secret_of_the_keystore_is_changed() {
    let home = home();
    home.write_secret("one", "one\n");
    home.run(["sign", "a"]).exits(0);
    home.run(["keystore", "rekey", "--new-passphrase-file", "one"]).exits(0).says("the old secret does not");
    home.run(["keys", "list"]).exits(2).complains("passphrase");
    home.run(["keys", "list", "--passphrase-file", "one"]).exits(0).says("default");

    let to = ["keystore", "rekey", "--recipient", "me.recipient", "--passphrase-file", "one"];
    home.run(to).exits(0);
    home.run(["keys", "list", "--passphrase-file", "one"]).exits(2).complains("--identity");
    home.run(["keys", "list", "--identity", "me.identity"]).exits(0).says("default");

    let old = fs::read(home.keystore().join("keystore.key")).unwrap();
    home.run(["keystore", "rekey", "--generate-key-file", "--identity", "me.identity"]).exits(0);
    let new = fs::read(home.keystore().join("keystore.key")).unwrap();
    assert_ne!(old, new);
    home.run(["verify", "a"]).exits(0);
    home.run(["keystore", "rekey", "--generate-key-file"]).exits(0);
    assert_ne!(fs::read(home.keystore().join("keystore.key")).unwrap(), new);
    assert!(!home.keystore().join("keystore.key.new").exists());
    home.run(["verify", "a"]).exits(0);
}

#[test]
fn a_change_of_the_key_file_that_is_killed_at_any_point_locks_nobody_out() {
    let home = home();
    home.run(["sign", "a"]).exits(0);
    let key = || fs::read(home.keystore().join("keystore.key")).unwrap();
    let mut before = key();
    strikes(60, |delay| {
        let mut command = home.command();
        command.args(["keystore", "rekey", "--generate-key-file"]).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(delay);
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        let was_told = child.wait().unwrap().success();
        home.run(["verify", "a"]).exits(0);
        // The kill may fall between the change and the word of it.
        assert!(!was_told || key() != before);
        before = key();
        was_told
    });
}

#[test]
fn all_keys_are_backed_up_and_restored_elsewhere() {
    let home = home();
    home.run(["keys", "create", "releases"]).exits(0);
    home.run(["keys", "rotate", "releases"]).exits(0);
    home.run(["sign", "a", "--key", "releases"]).exits(0);
    home.run(["keystore", "backup", "backup", "--recipient", "me.recipient"])
        .exits(0)
        .says("2 keys written to backup");
    home.run(["keystore", "backup", "backup", "--recipient", "me.recipient"])
        .exits(2)
        .complains("exists already");

    let restore = ["keystore", "restore", "backup", "--identity", "me.identity"];
    home.run(restore).exits(2).complains("a keystore exists already");
    let elsewhere = |args: &[&str]| home.run([args, &["--keystore", "elsewhere"]].concat());
    identity(&home, "other");
    elsewhere(&["keystore", "restore", "backup", "--identity", "other.identity"]).exits(2);
    let mut damaged = home.read("backup");
    let at = damaged.len() / 2;
    damaged[at] ^= 1;
    home.write("damaged", damaged);
    elsewhere(&["keystore", "restore", "damaged", "--identity", "me.identity"]).exits(2);
    assert!(!home.path("elsewhere").exists(), "nothing is made of a backup that does not open");

    elsewhere(&restore).exits(0).says("2 keys restored to elsewhere");
    elsewhere(&["verify", "a"]).exits(0);
    let show = |args: &[&str]| {
        home.run([&["keys", "show", "releases", "--json"][..], args].concat()).exits(0).stdout
    };
    assert_eq!(show(&[]), show(&["--keystore", "elsewhere"]));
    // A sealed file is no backup, and a backup no sealed file.
    home.run(["decrypt", "backup", "-o", "x", "--identity", "me.identity"]).exits(1);
}
