//! The files that released versions wrote, in `spec/released`: this version reads every one, and
//! goes on with the keystores. What it writes today passes the same test, so the script that writes
//! the files of the next release works.

use crate::support::{Done, Home, bulla};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder with one folder for each release.
fn released() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/released")
}

/// The folders of the releases.
fn releases() -> Vec<PathBuf> {
    let entries = fs::read_dir(released()).expect("the folder is read");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<_> = paths.filter(|path| path.is_dir()).collect();
    folders.sort();
    assert!(!folders.is_empty(), "spec/released has no release");
    folders
}

/// Every file below `folder`, relative to it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).expect("a folder is read") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).expect("it is below").to_owned());
            }
        }
    }
    found
}

/// A home with a copy of the files, which only their owner may use: version control does not keep
/// that.
fn copy(folder: &Path) -> Home {
    let home = Home::new();
    for file in files(folder) {
        home.write_secret(&file, fs::read(folder.join(&file)).expect("a file is read"));
    }
    home
}

/// Runs the command on the keystore with the passphrase, which must succeed.
#[track_caller]
fn run(home: &Home, line: &str) -> Done {
    let mut command = home.command();
    command.env("BULLA_KEYSTORE", "keystore").env("BULLA_PASSPHRASE_FILE", "passphrase");
    Done::of(command.args(line.split(' '))).exits(0)
}

/// Runs the command without a keystore and without a secret, which must succeed.
#[track_caller]
fn run_without_keys(home: &Home, line: &str) -> Done {
    home.run(line.split(' ')).exits(0)
}

fn signatures(home: &Home) {
    for path in ["note.txt", "photos"] {
        run_without_keys(home, &format!("verify {path} --public-key default-v1.pub")).says("OK");
        run(home, &format!("verify {path}")).says("OK");
    }
    run_without_keys(home, "verify later.txt --public-key default-v1.pub --succession default.succession")
        .says("OK");
    run_without_keys(home, "verify note.txt --public-key lasting.pub --signature lasting.bulla").says("OK");
    run(home, "verify note.txt --signature prehashed.bulla").says("OK");
    run(home, "verify note.txt --signature named.bulla").says("OK");
    assert!(home.read("named.bulla").starts_with(b"bulla signature v3\n"));
    home.write("old.txt", home.read("note.txt"));
    home.run(["verify", "old.txt", "--signature", "named.bulla", "--public-key", "default.pem"])
        .exits(1)
        .says("wrong name");
    run(home, "verify note.txt --format minisign").says("OK");
    for format in ["pem", "der", "openssh", "jwk", "minisign"] {
        run(home, &format!("keys import {format} default.{format} --public --format {format}"));
    }
    run(home, "keys import raw default.raw --public --format raw --algorithm ed25519");
    let imported = run(home, "keys export-public pem --format raw").output.stdout;
    assert_eq!(imported, home.read("default.raw"));
}

fn keystores(home: &Home) {
    run(home, "keys list").says("default").says("lasting").says("transport").says("moving").says("tokens");
    run(home, "sign note.txt --output today.bulla");
    run(home, "keys rotate");
    run(home, "verify note.txt --signature today.bulla").says("OK");
    run_without_keys(home, "keys list --keystore by-key-file").says("default");
    run_without_keys(home, "verify note.txt --keystore by-key-file --signature by-key-file.bulla").says("OK");
    run_without_keys(home, "sign later.txt --keystore by-key-file --output today.bulla");
    let restore = "keystore restore keystore.backup --keystore";
    run(home, &format!("{restore} restored --new-passphrase-file passphrase"));
    run(home, "verify photos --keystore restored").says("OK");
    let by_identity = format!("{restore} by-identity --identity x-wing.identity");
    run_without_keys(home, &by_identity);
    run_without_keys(home, "verify photos --keystore by-identity").says("OK");
}

fn tokens(home: &Home) {
    run_without_keys(home, "token inspect token").says("export");
    run_without_keys(home, "token inspect token.weaker").says("block 1");
    for token in ["token", "token.weaker"] {
        run(
            home,
            &format!("keys export moving --to transport.pub --token-file {token} --output {token}.wrapped"),
        );
    }
    run(home, "keys import moved moving.wrapped --format wrapped --unwrap-with transport");
    let public = |key: &str| run(home, &format!("keys export-public {key} --format raw")).output.stdout;
    assert_eq!(public("moved"), public("moving"));
}

fn audit_log(home: &Home) {
    run(home, "log verify --checkpoint checkpoint.note").says("OK");
    run_without_keys(home, "log verify --log keystore/audit-log --public-key audit-log.pub").says("OK");
    run_without_keys(home, "log verify --proof entry.json --public-key audit-log.pub").says("OK");
    run(home, "log show").says("rotate");
}

fn sealed_files(home: &Home) {
    let note = home.read("note.txt");
    let opens = |by: &str, with: &str| {
        let opened = format!("{by}.opened");
        let line = format!("open {by}.sealed --output {opened}{with}");
        match by {
            "passphrase" | "transport" => run(home, &line),
            _ => run_without_keys(home, &line),
        };
        assert_eq!(home.read(opened), note, "{by}");
    };
    opens("passphrase", "");
    opens("key-file", " --key-file by-key-file/keystore.key");
    opens("x-wing", " --identity x-wing.identity");
    opens("age", " --identity age.identity");
    opens("transport", "");
    run_without_keys(home, "seal later.txt --recipient x-wing.recipient --recipient age.recipient");
}

fn lists(home: &Home) {
    let algorithms = ["blake2b", "blake2s", "blake2bp", "blake2sp", "sha256", "sha512"];
    for list in ["blake3", "tagged", "json", "photos", "tree"].iter().chain(&algorithms) {
        run_without_keys(home, &format!("check list.{list}")).says("OK");
    }
    run_without_keys(home, "check --zero list.zero").says("OK");
}

/// What a test does with a copy of the files: a keystore that changed must not hide what another
/// test needs.
type Reads = fn(&Home);

fn in_every_release(reads: Reads) {
    for folder in releases() {
        reads(&copy(&folder));
    }
}

#[test]
fn signatures_and_public_keys_of_every_release_are_read() {
    in_every_release(signatures);
}

#[test]
fn keystores_and_backups_of_every_release_are_opened_and_go_on() {
    in_every_release(keystores);
}

#[test]
fn tokens_and_wrapped_keys_of_every_release_are_read() {
    in_every_release(tokens);
}

#[test]
fn audit_logs_checkpoints_and_proofs_of_every_release_are_read() {
    in_every_release(audit_log);
}

#[test]
fn sealed_files_and_identities_of_every_release_are_read() {
    in_every_release(sealed_files);
}

#[test]
fn lists_of_every_release_are_read() {
    in_every_release(lists);
}

#[test]
fn the_script_writes_what_the_newest_release_has_and_it_is_read() {
    let home = Home::new();
    let mut script = home.program("sh");
    script.arg(released().join("generate.sh")).arg("fresh").env("BULLA", bulla());
    Done::of(&mut script).exits(0);
    let fresh = home.path("fresh");
    let newest = releases().pop().expect("a release");
    let of_the_library = |file: &PathBuf| file.starts_with("blake3");
    let kept: BTreeSet<_> = files(&newest).into_iter().filter(|file| !of_the_library(file)).collect();
    assert_eq!(files(&fresh), kept);
    for reads in [signatures as Reads, keystores, tokens, audit_log, sealed_files, lists] {
        reads(&copy(&fresh));
    }
}
