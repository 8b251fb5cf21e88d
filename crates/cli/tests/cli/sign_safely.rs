//! What signing must not do by mistake: make a key, replace a file, sign nothing, rotate a key
//! unseen.

use crate::support::{Done, Home, minisign};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

#[test]
fn what_is_gone_is_named_and_an_empty_folder_is_not_signed_over_a_full_one() {
    let home = Home::new();
    for number in 0..13 {
        home.write(format!("tree/{number:02}"), "content");
    }
    home.run(["sign", "tree"]).exits(0);
    fs::remove_file(home.path("tree/03")).unwrap();
    fs::rename(home.path("tree/04"), home.path("tree/new\nname")).unwrap();
    let done = home.run(["sign", "--json", "tree"]).exits(0);
    let gone = "bulla: tree: 2 entries of the last signature are gone: 03, 04\n";
    assert_eq!((done.json()[0]["removed"].as_u64(), &*done.stderr), (Some(2), gone));
    assert_eq!(home.run(["sign", "tree"]).exits(0).stderr, "");

    // As if its disk was not mounted.
    fs::rename(home.path("tree"), home.path("mounted")).unwrap();
    fs::create_dir(home.path("tree")).unwrap();
    let before = home.read("tree.bulla");
    home.run(["sign", "tree"])
        .exits(2)
        .complains("tree: not signed: the folder is empty, and its last signature lists 12 entries")
        .complains("--allow-empty");
    let json = home.run(["sign", "--json", "--full", "tree"]).exits(2).json();
    assert_eq!(json[0]["error"]["code"], "folder_empty");
    assert_eq!(home.read("tree.bulla"), before);
    home.run(["sign", "--allow-empty", "tree"])
        .exits(0)
        .complains("tree: 12 entries of the last signature are gone: 00, 01, 02, 05,")
        .complains(" and 2 more\n");
    home.run(["sign", "--quiet", "tree"]).exits(0);
    home.run(["verify", "tree"]).exits(0).says("0 files");
}

/// Texts that begin as signature files do, and are not.
const SECRETS: [(&str, &str); 2] = [
    (
        "signify.sec",
        "untrusted comment: signify secret key\nRWRCSwAAAADTtIyUcGNA6rGk1RJ2e2eDa1QbQO0pbSaWxqPNrT0=\n",
    ),
    ("notes", "untrusted comment: do not trust this\nnotes\n"),
];

#[test]
fn a_signature_replaces_only_a_signature_of_its_format() {
    let home = Home::new();
    home.write("a", "a");
    Done::of(home.program(minisign()).args(["-GW", "-p", "their.pub", "-s", "their.key"])).exits(0);
    SECRETS.iter().for_each(|(name, text)| home.write(name, text));
    home.run(["sign", "a"]).exits(0);
    home.run(["sign", "a", "--format", "minisign"]).exits(0);
    let refused = |name: &str, format: &str| {
        let before = home.read(name);
        home.run(["sign", "a", "--format", format, "--output", name])
            .exits(2)
            .complains(&format!("{name}: is not a signature file"))
            .complains("hint: ");
        assert_eq!(home.read(name), before, "{name}");
    };
    for name in ["their.key", "their.pub", "signify.sec", "notes"] {
        refused(name, "minisign");
        refused(name, "bulla");
    }
    refused("a.bulla", "minisign");
    refused("a.minisig", "bulla");
    home.write("empty", "");
    for (name, format) in [("a.bulla", "bulla"), ("a.minisig", "minisign"), ("empty", "minisign")] {
        home.run(["sign", "a", "--format", format, "--output", name]).exits(0);
    }
}

#[test]
fn no_output_of_a_command_replaces_a_file_of_another_kind() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["log", "init"]).exits(0);
    home.run(["keys", "rotate"]).exits(0);
    home.run(["keys", "create", "moving", "--exportable"]).exits(0);
    home.run(["keys", "create", "transport", "--algorithm", "x-wing"]).exits(0);
    home.run(["keys", "export-public", "transport", "--output", "transport.pub"]).exits(0);
    let token = ["token", "new", "--operation", "export", "--expires", "1h"];
    home.run(token.iter().chain(&["--output", "token"])).exits(0);
    let wrapped = ["keys", "export", "moving", "--to", "transport.pub", "--token-file", "token"];
    let commands: [&[&str]; 11] = [
        &["keys", "export-public"],
        &["keys", "export-public", "--format", "pem"],
        &["keys", "export-public", "--format", "minisign"],
        &["keys", "export-public", "--format", "raw"],
        &["keys", "succession"],
        &["keys", "attest"],
        &token,
        &["token", "attenuate", "token", "--expires", "1m"],
        &wrapped,
        &["log", "checkpoint"],
        &["log", "prove", "0"],
    ];
    home.write("precious", "a private key");
    for command in commands {
        home.run(command.iter().chain(&["--output", "precious"])).exits(2).complains("precious: is not a");
        assert_eq!(home.read("precious"), b"a private key", "{command:?}");
        // But what it wrote itself, it writes again.
        for _ in 0..2 {
            home.run(command.iter().chain(&["--output", "new"])).exits(0);
        }
        fs::remove_file(home.path("new")).unwrap();
    }
    symlink("precious", home.path("link")).unwrap();
    home.run(["keys", "export-public", "--output", "link"]).exits(2).complains("link: is a link");
}

#[test]
fn a_mistake_makes_no_key() {
    let home = Home::new();
    home.write("a", "a");
    home.write("key.pem", "-----BEGIN PRIVATE KEY-----\n");
    let none = |done: Done, why: &str| {
        done.exits(2).complains(why);
        assert_eq!(home.names(), ["a", "key.pem"]);
        assert!(!home.keystore().exists());
    };
    let typo = "there is no keystore in typo";
    for args in [&["sign", "a"][..], &["keys", "create", "releases"], &["sign", "a", "--no-create"]] {
        none(home.run(args.iter().chain(&["--keystore", "typo"])), typo);
        none(Done::of(home.command().env("BULLA_KEYSTORE", "typo").args(args)), typo);
    }
    none(home.run(["sign", "a", "--key", "releases"]), "there is no keystore in ");
    none(home.run(["sign", "a", "--no-create"]), "create one with `bulla keystore init`");
    none(home.run(["sign", "missing"]), "missing: cannot read");
    none(home.run(["keys", "import", "laptop", "key.pem"]), "key.pem: ");
    let relative =
        home.command().env_remove("XDG_DATA_HOME").env("HOME", "here").args(["sign", "a"]).output();
    none(Done::from(relative.unwrap()), "(the variable HOME) does not begin with /");

    home.run(["keystore", "init", "--keystore", "named"]).exits(0);
    home.run(["sign", "a", "--keystore", "named", "--no-create"]).exits(0);
    home.run(["sign", "a"]).exits(0).complains("created the keystore");
}

#[test]
fn a_rotation_by_a_policy_is_told_with_what_to_do() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "policy", "default", "--max-uses", "2"]).exits(0);
    for _ in 0..2 {
        assert_eq!(home.run(["sign", "a"]).exits(0).stderr, "");
    }
    home.run(["sign", "a", "--quiet"])
        .exits(0)
        .complains("the policy of default rotated it: version 2 signs from now on")
        .complains("a version makes at most 2 signatures")
        .complains("bulla keys export-public default > FILE")
        .complains("bulla keys succession default > FILE");
    // An attestation is no use.
    home.run(["keys", "attest", "-o", "attestation"]).exits(0);
    assert_eq!(home.run(["sign", "a"]).exits(0).stderr, "");
    home.run(["keys", "attest", "-o", "attestation"]).exits(0);
    let attestation = String::from_utf8(home.read("attestation")).expect("it is text");
    assert!(attestation.contains("\"head\":2"), "{attestation}");
    home.run(["sign", "a"]).exits(0).complains("version 3 signs from now on");
}

#[test]
fn a_rotation_by_age_is_told_with_the_times() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "policy", "default", "--max-age", "1s"]).exits(0);
    let rotated = loop {
        let done = home.run(["sign", "a"]).exits(0);
        if !done.stderr.is_empty() {
            break done;
        }
    };
    rotated
        .complains("the policy of default rotated it: version 2 signs from now on")
        .complains("a version signs for 1s; version 1 was made at ")
        .complains(", and the clock says ");
}

#[test]
fn what_cannot_be_written_is_told_before_anything_is_read() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    let long = "x".repeat(300);
    for output in [&*long, "missing/out", "/proc/out", "/dev/null", "key.pem"] {
        home.write("key.pem", "-----BEGIN PRIVATE KEY-----\n");
        let mut command = home.command();
        command.args(["sign", "-", "--output", output]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // As long as this is open, standard input does not end, and reading it neither.
        let stdin = child.stdin.take();
        let output = child.stderr.take().map(std::io::read_to_string).unwrap().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{output}");
        drop(stdin);
    }
}

#[test]
fn a_path_that_cannot_be_signed_loses_no_signature_of_the_others() {
    let home = Home::new();
    let long = "x".repeat(252);
    for name in ["first", "tree/a", "last", &long, "special/a"] {
        home.write(name, "content");
    }
    symlink("loop", home.path("loop")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        home.path("special/fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    home.write("kept.bulla", "notes");
    home.write("kept", "content");
    let paths = ["first", "loop", "missing", "tree", &long, "special", "kept", "/proc/version", "last"];
    let done = home.run(["sign"].iter().chain(&paths)).exits(2);
    for failed in ["loop: cannot read", "missing: cannot read", "special: not signed", "kept.bulla: is not"] {
        assert!(done.stderr.contains(failed), "{failed}: {}", done.stderr);
    }
    assert!(done.stderr.contains(&format!("{long}.bulla: cannot write")), "{}", done.stderr);
    assert!(done.stderr.contains("/proc/version.bulla: cannot write"), "{}", done.stderr);
    // Nobody knows a temporary file by its name.
    assert!(!done.stderr.contains("/.bulla-"), "{}", done.stderr);
    home.run(["verify", "first", "tree", "last"]).exits(0).says("3 verified");
}

#[test]
fn the_advice_about_a_key_that_does_not_sign_works() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    home.run(["keys", "destroy", "default", "--after", "30d"]).exits(0);
    home.run(["sign", "a"])
        .exits(2)
        .complains("the key default does not sign: it can be destroyed after ")
        .complains("run `bulla keys cancel-destruction default` and then `bulla keys enable default`");
    home.run(["keys", "cancel-destruction", "default"]).exits(0);
    home.run(["keys", "enable", "default"]).exits(0);
    home.run(["sign", "a"]).exits(0);

    home.run(["keys", "destroy", "default", "--after", "0s"]).exits(0);
    home.run(["keys", "destroy", "default", "--final"]).exits(0);
    home.run(["sign", "a"])
        .exits(2)
        .complains("the key default was destroyed")
        .complains("name another key with --key; `bulla keys create LABEL` makes one");
    home.run(["keys", "create", "other"]).exits(0);
    home.run(["sign", "a", "--key", "other"]).exits(0);

    // What else does not sign is told before anything is read.
    home.run(["keys", "create", "transport", "--algorithm", "x-wing"]).exits(0);
    home.run(["keys", "export-public", "other", "--format", "pem", "-o", "other.pem"]).exits(0);
    home.run(["keys", "import", "public", "other.pem", "--public"]).exits(0);
    for (key, why) in [("transport", "its algorithm is x-wing"), ("public", "it only verifies")] {
        home.run(["sign", "missing", "a", "--key", key]).exits(2).complains(why);
    }
}
