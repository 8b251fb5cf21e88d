//! Commands that only look at keys: they write nothing to the keystore, and need no right to.

use crate::support::{Done, Home, bulla};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Commands that only look, each with what it prints.
const READERS: [(&[&str], &str); 9] = [
    (&["verify", "a"], "a: OK"),
    (&["keys", "list"], "default"),
    (&["keys", "show"], "v2 "),
    (&["keys", "policy"], "minimum version"),
    (&["keystore", "guard"], "no guard"),
    (&["keys", "export-public"], "local/files/ed25519/"),
    (&["keys", "export-public", "--format", "pem"], "BEGIN PUBLIC KEY"),
    (&["log", "verify"], "OK ("),
    (&["log", "show"], "rotate"),
];

fn home() -> Home {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    home.run(["log", "init"]).exits(0);
    home.run(["sign", "a"]).exits(0);
    home.run(["keys", "rotate"]).exits(0);
    home
}

/// The system calls of a command that change a file, or open one so that it could be, or wait for a
/// disk.
#[cfg(target_os = "linux")]
fn writes(home: &Home, args: &[&str]) -> Vec<String> {
    let mut command = home.program("strace");
    command.args(["-f", "-qq", "-o", "trace"].map(OsString::from)).arg(bulla()).args(args);
    Done::of(&mut command).exits(0);
    let trace = String::from_utf8(home.read("trace")).expect("a trace is text");
    let changes = |line: &&str| {
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let Some((name, arguments)) = call.split_once('(') else { return false };
        match name {
            "open" | "openat" | "openat2" => ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TMPFILE"]
                .iter()
                .any(|flag| arguments.contains(flag) && !arguments.contains("\"/dev/")),
            "fsync" | "fdatasync" | "sync_file_range" | "ftruncate" | "fallocate" | "pwrite64"
            | "pwritev" | "rename" | "renameat" | "renameat2" | "link" | "linkat" | "unlink" | "unlinkat"
            | "mkdir" | "mkdirat" | "chmod" | "fchmod" | "fchmodat" | "utimensat" => true,
            _ => false,
        }
    };
    trace.lines().filter(changes).map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn readers_write_nothing_sync_nothing_and_open_nothing_for_writing() {
    let home = home();
    for (args, says) in READERS {
        home.run(args).exits(0).says(says);
        assert_eq!(writes(&home, args), Vec::<String>::new(), "{args:?}");
    }
    // And a write would have been seen.
    let seen = writes(&home, &["keys", "rotate"]);
    for call in ["fdatasync(", "pwrite64(", "O_RDWR"] {
        assert!(seen.iter().any(|line| line.contains(call)), "{call}: {seen:?}");
    }
}

/// A disk that is busy with other work takes tens of milliseconds for each.
#[cfg(target_os = "linux")]
#[test]
fn a_signature_waits_for_the_disk_twice_and_leaves_the_keystore_as_it_is() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    let seen = writes(&home, &["sign", "a"]);
    let syncs = |seen: &[String]| seen.iter().filter(|line| line.contains("sync(")).count();
    assert_eq!(syncs(&seen), 2, "the signature file and its folder: {seen:?}");
    assert!(!seen.iter().any(|line| line.contains("keystore")), "{seen:?}");
    // With a policy, the keystore counts the signature.
    home.run(["keys", "policy", "default", "--max-uses", "2"]).exits(0);
    let seen = writes(&home, &["sign", "a"]);
    assert!(syncs(&seen) > 2 && seen.iter().any(|line| line.contains("keystore.redb")), "{seen:?}");
}

#[test]
fn a_signature_needs_no_right_to_write_to_the_keystore() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    let owner = rustix::process::geteuid().is_root().then_some(NOBODY);
    let program = home.path("bulla");
    Done::of(home.program("cp").arg(bulla()).arg(&program)).exits(0);
    let root = home.keystore().ancestors().nth(2).expect("the home's folder").to_owned();
    take_right_to_write(&root, owner);
    let allow = |folders: &[&Path]| {
        for folder in folders {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("the mode is changed");
        }
    };
    allow(&[&home.work()]);
    let run = |args: &[&str]| {
        let mut command = home.program(&program);
        if let Some(uid) = owner {
            std::os::unix::process::CommandExt::uid(&mut command, uid);
        }
        Done::of(command.args(args))
    };
    run(&["sign", "a"]).exits(0);
    run(&["sign", "a", "--format", "minisign"]).exits(0);
    run(&["verify", "a"]).exits(0);
    run(&["keys", "policy", "default", "--max-uses", "9"]).exits(2).complains("Permission denied");
    allow(&[&root, &root.join("home"), &home.keystore()]);
}

/// Somebody who is not root, and so is held to the modes of files.
const NOBODY: u32 = 65534;

/// Takes the right to write to everything below `path`, and gives all of it to `owner`.
fn take_right_to_write(path: &Path, owner: Option<u32>) {
    let metadata = path.symlink_metadata().expect("it is there");
    if metadata.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            take_right_to_write(&entry.expect("an entry").path(), owner);
        }
    }
    let mode = metadata.permissions().mode() & 0o500;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode is changed");
    std::os::unix::fs::chown(path, owner, None).expect("the owner is changed");
}

#[test]
fn readers_need_no_right_to_write() {
    let home = home();
    let is_root = rustix::process::geteuid().is_root();
    let owner = is_root.then_some(NOBODY);
    // Where the build is may be closed to others. A process of its own copies: a file that
    // this one writes stays open in what other tests start meanwhile, and cannot be run.
    let program = home.path("bulla");
    Done::of(home.program("cp").arg(bulla()).arg(&program)).exits(0);
    let root = home.keystore().ancestors().nth(2).expect("the home's folder").to_owned();
    take_right_to_write(&root, owner);
    let run = |args: &[&str]| {
        let mut command = home.program(&program);
        if let Some(uid) = owner {
            std::os::unix::process::CommandExt::uid(&mut command, uid);
        }
        Done::of(command.args(args))
    };
    for (args, says) in READERS {
        run(args).exits(0).says(says);
    }
    run(&["keys", "rotate"]).exits(2).complains("Permission denied");
    // So that the folder can be removed again.
    for folder in [root.clone(), root.join("work"), root.join("home"), home.keystore()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("the mode is changed");
    }
    fs::set_permissions(home.keystore().join("audit-log"), fs::Permissions::from_mode(0o700))
        .expect("a mode");
}

#[test]
fn who_cannot_give_the_passphrase_verifies_with_an_exported_key() {
    let home = Home::new();
    home.write("a", "a");
    home.write_secret("pass", "correct horse\n");
    home.run(["sign", "a", "--passphrase-file", "pass"]).exits(0);
    home.run(["keys", "export-public", "-o", "me.pub", "--passphrase-file", "pass"]).exits(0);
    home.run(["verify", "a"]).exits(2).complains("--passphrase-file").complains("--public-key FILE");
    home.run(["verify", "a", "--public-key", "me.pub"]).exits(0);
}
