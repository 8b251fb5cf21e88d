//! Signing folders: the command names every changed, removed and added file.

use crate::support::{Done, Home, content};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// A folder `tree` of a few hundred files in subfolders.
fn tree(home: &Home) {
    for index in 0..300 {
        home.write(format!("tree/{:02}/{index:03}", index / 20), content(index, (index * 37) as usize));
    }
    home.write("tree/large", content(1000, 5 << 20));
    home.write("tree/empty", "");
}

#[test]
fn changed_missing_and_unexpected_files_are_all_named() {
    let home = Home::new();
    tree(&home);
    home.run(["sign", "tree"]).exits(0);
    assert_eq!(home.names(), ["tree", "tree.bulla"]);
    home.run(["verify", "tree"]).exits(0).says("tree: OK (302 files, signed ");

    home.write("tree/03/077", "changed");
    let mut large = content(1000, 5 << 20);
    large[4 << 20] ^= 1;
    home.write("tree/large", large);
    fs::remove_file(home.path("tree/00/002")).unwrap();
    fs::remove_dir_all(home.path("tree/14")).unwrap();
    home.write("tree/new", "new");
    home.write("tree/folder/new", "new too");
    let done = home.run(["verify", "tree"]).exits(1);
    for line in [
        "tree/03/077: changed (it has 7 bytes now, and had 2849 when it was signed)",
        "tree/large: changed (same size, different content)",
        "tree/00/002: missing",
        "tree/14/280: missing",
        "tree/14/299: missing",
        "tree/new: unexpected",
        "tree/folder/new: unexpected",
        "tree: changed (2 changed, 21 missing, 2 unexpected, 279 unchanged)",
    ] {
        assert!(done.stdout.lines().any(|found| found == line), "{line} is not in\n{}", done.stdout);
    }
    assert_eq!(done.stdout.lines().count(), 26);
}

#[test]
fn a_file_that_was_moved_is_named_in_both_places() {
    let home = Home::new();
    tree(&home);
    home.run(["sign", "tree"]).exits(0);
    fs::rename(home.path("tree/05/100"), home.path("tree/moved")).unwrap();
    home.run(["verify", "tree"])
        .exits(1)
        .says("tree/05/100: missing (its content is now in tree/moved)\n")
        .says("tree/moved: unexpected (it was signed as tree/05/100)\n");
}

#[test]
fn a_name_in_another_unicode_form_is_called_that() {
    let home = Home::new();
    home.write("tree/caf\u{e9}", "coffee");
    home.run(["sign", "tree"]).exits(0);
    fs::rename(home.path("tree/caf\u{e9}"), home.path("tree/cafe\u{301}")).unwrap();
    let reason = "(the names differ only in their Unicode form (NFC, NFD))";
    let done = home.run(["verify", "tree"]).exits(1);
    assert_eq!(done.stdout.matches(reason).count(), 2, "{}", done.stdout);
}

#[test]
fn json_lists_the_entries() {
    let home = Home::new();
    tree(&home);
    let signed = home.run(["sign", "--json", "tree"]).exits(0).json();
    assert_eq!((signed[0]["kind"].as_str(), signed[0]["entries"].as_u64()), (Some("manifest"), Some(302)));
    home.write("tree/empty", "no more");
    let found = home.run(["verify", "--json", "tree"]).exits(1).json();
    assert_eq!((found[0]["status"].as_str(), found[0]["intact"].as_u64()), (Some("changed"), Some(301)));
    let entries = found[0]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0]["path"].as_str(), entries[0]["status"].as_str()),
        (Some("empty"), Some("changed"))
    );
}

#[test]
fn names_that_are_not_utf_8_or_that_could_fake_a_line_are_signed_and_escaped() {
    use std::os::unix::ffi::OsStringExt;
    let home = Home::new();
    for name in
        [&b"tree/not\xffutf8"[..], b"tree/a\nb", b"tree/back\\slash", b"tree/esc\x1b[31m", b"tree/a > b"]
    {
        home.write(std::ffi::OsString::from_vec(name.to_vec()), name);
    }
    home.run(["sign", "tree"]).exits(0);
    home.run(["verify", "tree"]).exits(0).says("5 files");
    for name in fs::read_dir(home.path("tree")).unwrap() {
        fs::write(name.unwrap().path(), "changed").unwrap();
    }
    let done = home.run(["verify", "tree"]).exits(1);
    for line in [
        "tree/not\\xffutf8: ch",
        "tree/a\\nb: ch",
        "tree/back\\\\slash: ch",
        "tree/esc\\x1b[31m: ch",
        "tree/a > b: ch",
    ] {
        assert!(done.stdout.contains(line), "{line} is not in\n{}", done.stdout);
    }
    let json = home.run(["verify", "--json", "tree"]).exits(1).json();
    let entries = json[0]["entries"].as_array().unwrap();
    let odd: Vec<_> = entries.iter().filter_map(|entry| entry["path_base64"].as_str()).collect();
    assert_eq!(odd, ["bm90/3V0Zjg="]);
}

#[test]
fn links_in_a_folder_are_recorded_and_not_followed() {
    let home = Home::new();
    home.write("outside", "outside");
    home.write("tree/inside", "inside");
    symlink("../outside", home.path("tree/out")).unwrap();
    symlink("inside", home.path("tree/in")).unwrap();
    symlink("nowhere", home.path("tree/broken")).unwrap();
    symlink("..", home.path("tree/loop")).unwrap();
    home.run(["sign", "tree"]).exits(0);
    home.write("outside", "changed, and no part of the folder");
    home.run(["verify", "tree"]).exits(0).says("5 files");

    fs::remove_file(home.path("tree/out")).unwrap();
    symlink("../elsewhere", home.path("tree/out")).unwrap();
    fs::remove_file(home.path("tree/in")).unwrap();
    home.write("tree/in", "inside");
    fs::rename(home.path("tree/inside"), home.path("kept")).unwrap();
    symlink("../kept", home.path("tree/inside")).unwrap();
    home.run(["verify", "tree"])
        .exits(1)
        .says("tree/out: changed (it now points to ../elsewhere; it pointed to ../outside)")
        .says("tree/in: changed (it was a link, now it is a file)")
        .says("tree/inside: changed (it was a file, now it is a link)");
}

#[test]
fn special_files_are_refused_by_name_and_never_waited_for() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.run(["sign", "tree"]).exits(0);
    fs::remove_file(home.path("tree.bulla")).unwrap();
    let pipe = home.path("tree/pipe");
    Done::of(Command::new("mkfifo").arg(&pipe)).exits(0);
    let _socket = std::os::unix::net::UnixListener::bind(home.path("tree/socket")).unwrap();
    home.run(["sign", "tree"])
        .exits(2)
        .complains("tree/pipe: is a fifo: bulla signs only files, folders and links")
        .complains("tree/socket: is a socket")
        .complains("tree: not signed");
    assert_eq!(home.names(), ["tree"]);
    home.run(["sign", "tree/pipe"])
        .exits(2)
        .complains("tree/pipe: is a fifo, not a file")
        .complains("bulla sign -");
}

#[test]
fn a_fifo_as_signature_file_is_refused_and_not_waited_for() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    for name in ["a.bulla", "a.minisig"] {
        Done::of(Command::new("mkfifo").arg(home.path(name))).exits(0);
    }
    for args in [
        &["verify", "a"][..],
        &["verify", "a", "--format", "minisign"],
        &["verify", "a", "--signature", "a.minisig"],
    ] {
        home.run(args).exits(2).complains("is a fifo, not a file");
    }
    home.run(["sign", "a"]).exits(2).complains("a.bulla: is a fifo");
}

/// Some files of /proc end after days, some never.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_the_kernel_makes_up_is_refused_and_not_waited_for() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.run(["sign", "tree"]).exits(0);
    for folder in ["/proc/self", "/proc/self/task", "/proc"] {
        home.run(["sign", folder, "-o", "s"]).exits(2).complains("is a view of the running system");
        home.run(["verify", folder, "--signature", "tree.bulla"])
            .exits(1)
            .complains("is a view of the running system");
    }
    assert!(!home.path("s").exists());
}

#[test]
fn a_special_file_in_place_of_a_signed_one_is_a_change() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.write("b", "b");
    home.run(["sign", "tree", "b"]).exits(0);
    for name in ["tree/a", "b", "tree/new"] {
        let _ = fs::remove_file(home.path(name));
        Done::of(Command::new("mkfifo").arg(home.path(name))).exits(0);
    }
    home.run(["verify", "tree"])
        .exits(1)
        .says("tree/a: changed (it was a file, now it is a fifo)")
        .says("tree/new: unexpected (a fifo)");
    home.run(["verify", "b"]).exits(1).says("b: changed (it was a file, now it is a fifo)");
}

#[test]
fn a_folder_that_holds_its_signature_or_the_keystore_is_refused() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.run(["sign", "tree", "--output", "tree/sig"])
        .exits(2)
        .complains("tree: contains the signature file");
    home.run(["keystore", "init", "--keystore", "tree/keys"]).exits(0);
    home.run(["sign", "tree", "--keystore", "tree/keys"]).exits(2).complains("tree: contains the keystore");
    assert!(!home.path("tree/sig").exists() && !home.path("tree.bulla").exists());
}

#[test]
fn the_folder_that_one_stands_in_is_signed_beside_itself() {
    let home = Home::new();
    home.write("tree/a", "a");
    Done::of(home.command().current_dir(home.path("tree")).args(["sign", "."])).exits(0);
    assert_eq!(home.names(), ["tree", "tree.bulla"]);
    Done::of(home.command().current_dir(home.path("tree")).args(["verify", "."])).exits(0).says(".: OK");
    home.run(["verify", "tree/"]).exits(0);
}

#[test]
fn an_empty_folder_and_a_gone_one() {
    let home = Home::new();
    fs::create_dir(home.path("tree")).unwrap();
    home.run(["sign", "tree"]).exits(0);
    home.run(["verify", "tree"]).exits(0).says("tree: OK (0 files");
    fs::remove_dir(home.path("tree")).unwrap();
    home.run(["verify", "tree"]).exits(1).says("tree: missing (the signature is of a folder)");
    home.write("tree", "a file");
    home.run(["verify", "tree"]).exits(1).says("tree: changed (it was a folder, now it is a file)");
}

#[test]
fn a_folder_of_which_everything_is_left_out_is_neither_signed_nor_verified() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.write("all", "*\n");
    home.run(["sign", "tree"]).exits(0);
    for leave_out in [["--exclude", "*"], ["--ignore-file", "all"]] {
        let verify = [&["verify", "tree", "--json"], &leave_out[..]].concat();
        let found = home.run(verify).exits(2).complains("tree: nothing was verified: without *, ").json();
        assert_eq!(found[0]["error"]["code"], "nothing_verified");
        let sign = [&["sign", "tree", "-o", "new.bulla"], &leave_out[..]].concat();
        home.run(sign).exits(2).complains("not signed: all of it is left out").complains("--allow-empty");
        assert!(!home.path("new.bulla").exists());
    }
    // Nor does a signature say so by itself, which covers any content.
    home.run(["sign", "tree", "-o", "new.bulla", "--exclude", "*", "--allow-empty"]).exits(0);
    home.run(["verify", "tree", "-s", "new.bulla"]).exits(2).complains("nothing was verified");

    home.write("predicate", r#"{"a":1}"#);
    home.run(["keys", "create", "--algorithm", "ecdsa-p256", "model"]).exits(0);
    let said = ["--predicate", "predicate", "--predicate-type", "https://example.org/none"];
    home.run([&["sign", "tree", "--format", "dsse"], &said[..]].concat()).exits(0);
    home.run(["sign", "tree", "--format", "oms", "--key", "model"]).exits(0);
    for signature in ["tree.intoto.jsonl", "tree.sig"] {
        home.run(["verify", "tree", "-s", signature]).exits(0);
        let verify = ["verify", "tree", "-s", signature, "--exclude", "*"];
        home.run(verify).exits(2).complains("nothing was verified: without ");
    }
}

/// The signature of a folder whose body is `body`, signed by a test that has the private key.
fn signed_manifest(home: &Home, body: &str) {
    use bulla_kms::{Keystore, SignatureFile, Statement, StatementKind, Unlock};
    home.run(["keys", "list"]).exits(0);
    let keystore = Keystore::open(
        &home.keystore().join("keystore.redb"),
        &Unlock::KeyFile(home.keystore().join("keystore.key")),
    )
    .unwrap();
    let key = keystore.list().unwrap().remove(0).key;
    let statement =
        Statement::new(StatementKind::Manifest, bulla_blake3::hash(body.as_bytes()), body.len() as u64)
            .comment(Default::default());
    let file = SignatureFile::sign(&keystore, &key, statement).unwrap();
    home.write("tree.bulla", format!("{file}{body}"));
}

#[test]
fn a_manifest_that_leads_out_of_the_folder_is_refused_even_when_it_is_signed() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.run(["keystore", "init"]).exits(0);
    let digest = blake3::hash(b"a").to_hex();
    signed_manifest(&home, &format!("{digest}  1  a\n"));
    home.run(["verify", "tree"]).exits(0);
    for path in ["../tree/a", "/etc/passwd", "x/../a", "./a", "x//a", ""] {
        signed_manifest(&home, &format!("{digest}  1  {path}\n"));
        home.run(["verify", "tree"]).exits(1).says("tree: malformed signature").says("line 1 of its body");
    }
    signed_manifest(&home, &format!("{digest}  1  a\n{digest}  1  a\n"));
    home.run(["verify", "tree"]).exits(1).says("tree: malformed signature").says("line 2 of its body");
}

#[test]
fn an_edited_or_truncated_manifest_is_found() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.write("tree/b", "b");
    home.run(["sign", "tree"]).exits(0);
    let file = String::from_utf8(home.read("tree.bulla")).unwrap();
    let a = blake3::hash(b"a").to_hex();
    for edited in [
        file.replace(a.as_str(), blake3::hash(b"x").to_hex().as_str()),
        file.lines().take(file.lines().count() - 1).map(|line| format!("{line}\n")).collect(),
        format!("{file}{a}  1  c\n"),
    ] {
        assert_ne!(edited, file);
        home.write("tree.bulla", edited);
        home.run(["verify", "tree"]).exits(1).says("tree: bad signature (somebody edited the list of files");
    }
    home.write("tree.bulla", &file[..file.len() - 1]);
    home.run(["verify", "tree"]).exits(1).says("tree: malformed signature");
}

#[test]
fn the_signature_of_a_file_is_none_of_a_folder() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.write("a", "a");
    home.run(["sign", "a", "tree"]).exits(0);
    home.run(["verify", "tree", "-s", "a.bulla"])
        .exits(1)
        .says("tree: changed (it was a file, now it is a folder)");
    home.run(["verify", "a", "-s", "tree.bulla"])
        .exits(1)
        .says("a: changed (it was a folder, now it is a file)");
    assert!(Path::new(&home.path("tree.bulla")).exists());
}

#[test]
fn what_is_left_out_of_a_signature_is_in_it_and_left_out_again() {
    let home = Home::new();
    for name in ["a", "sub/b", "a.tmp", "sub/.DS_Store", "cache/x", "cache/y/z", "sub/cache/kept", "#x#"] {
        home.write(format!("tree/{name}"), name);
    }
    home.write("ignored", "\u{feff}# what nobody signs\n*.tmp\r\n\n/cache/\n");
    let flags = ["--ignore-file", "ignored", "--exclude", ".DS_Store", "--exclude", "#*#"];
    let json = home.run(["sign", "--json", "tree"].iter().chain(&flags)).exits(0).json();
    assert_eq!(json[0]["entries"], 3);
    let text = String::from_utf8(home.read("tree.bulla")).unwrap();
    let (_, list) = text.split_once("\n\n").unwrap();
    assert!(
        list.starts_with("exclude  *.tmp\nexclude  /cache/\nexclude  .DS_Store\nexclude  \\\\#*#\n"),
        "{list}"
    );
    let verified = "tree: OK (3 files, without *.tmp /cache/ .DS_Store \\\\#*#, signed ";
    home.run(["verify", "tree"]).exits(0).says(verified);
    let json = home.run(["verify", "--json", "tree/"]).exits(0).json();
    assert_eq!(json[0]["left_out"].as_array().unwrap().len(), 4);

    // What matches may change and come; everything else may not.
    home.write("tree/new.tmp", "new");
    home.write("tree/cache/x", "changed");
    home.run(["verify", "tree"]).exits(0);
    home.write("tree/sub/cache/new", "new");
    home.run(["verify", "tree"]).exits(1).says("tree/sub/cache/new: unexpected");
    home.write("tree/a", "changed");
    home.run(["verify", "tree", "--exclude", "new"]).exits(1).says("tree/a: changed");
    // A verifier leaves out more only by name.
    home.run(["verify", "tree", "--exclude", "new", "--exclude", "/a"]).exits(0).says("2 files");
    home.run(["verify", "tree", "--only", "sub", "--exclude", "new"]).exits(0).says("2 files");
    // The patterns are signed.
    home.write("tree.bulla", text.replace("*.tmp", "*"));
    home.run(["verify", "tree"]).exits(1).says("bad signature");

    home.write("tree.bulla", &text);
    fs::remove_file(home.path("tree/sub/b")).unwrap();
    let gone = home.run(["sign", "tree", "--exclude", "/a"]).exits(0);
    assert_eq!(gone.stderr, "bulla: tree: 1 entry of the last signature is gone: sub/b\n");
    home.run(["sign", "tree", "--exclude", "[z-a]"]).exits(2).complains("a pattern of what to leave out");
    home.run(["sign", "tree", "--exclude", ""]).exits(2).complains("--exclude");
    home.run(["sign", "tree", "--ignore-file", "missing"])
        .exits(2)
        .complains("missing: cannot read the patterns");
    home.run(["sign", "tree", "--exclude", "*"]).exits(2).complains("not signed: all of it is left out");
}
