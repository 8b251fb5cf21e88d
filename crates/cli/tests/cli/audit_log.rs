//! `bulla log`.

use crate::support::Home;
use bulla_testing::strikes::strikes;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Stdio;

fn recorded() -> Home {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["log", "init"]).exits(0).says("started the audit log");
    home.write("a", "what nobody may read in the log");
    home.run(["sign", "a"]).exits(0);
    home.run(["keys", "rotate"]).exits(0);
    home.run(["sign", "a", "--key", "nobody"]).exits(2);
    home
}

/// Leaves the log as a command does that is killed before it seals its last entry.
fn remove_last_checkpoint(home: &Home) {
    let log = home.keystore().join("audit-log");
    let path = log.join("00000000000000000000.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let is_checkpoint = |line: &&&str| line.starts_with("{\"checkpoint\"");
    let mut lines: Vec<_> = text.lines().collect();
    let last = lines.pop().unwrap();
    assert!(is_checkpoint(&&last), "{last}");
    let before = lines.iter().rev().find(is_checkpoint).unwrap();
    let before: serde_json::Value = serde_json::from_str(before).unwrap();
    fs::write(path, lines.join("\n") + "\n").unwrap();
    fs::write(log.join("head"), before["checkpoint"].as_str().unwrap()).unwrap();
}

#[test]
fn what_a_killed_command_left_open_the_next_one_seals() {
    let home = recorded();
    remove_last_checkpoint(&home);
    home.run(["log", "verify"]).exits(0).says("OK (3 entries, 2 signed, 1 newer");
    home.run(["sign", "a", "--key", "nobody"]).exits(2);
    home.run(["sign", "a"]).exits(0);
    home.run(["log", "verify"]).exits(0).says("OK (4 entries, 4 signed)");
}

#[test]
fn what_commands_do_with_keys_is_recorded_once_a_log_was_begun() {
    let home = recorded();
    let entries = home.run(["log", "show", "--json"]).exits(0).json();
    let words: Vec<_> = entries.iter().map(|entry| entry["op"].as_str().unwrap()).collect();
    assert_eq!(words, ["create", "sign", "rotate"]);
    assert!(entries[1]["who"].as_str().unwrap().starts_with("uid:"), "{}", entries[1]);
    let shown = home.run(["log", "show"]).exits(0).stdout;
    assert!(shown.contains("sign") && !shown.contains("nobody may read"), "{shown}");
    home.run(["log", "init"]).exits(2).complains("exists already");
}

#[test]
fn every_command_seals_what_it_recorded() {
    let home = recorded();
    home.run(["log", "verify"]).exits(0).says("OK (3 entries, 3 signed)");
    home.run(["sign", "a"]).exits(0);
    home.run(["log", "verify"]).exits(0).says("OK (4 entries, 4 signed)");
}

#[test]
fn a_keystore_without_a_log_says_how_to_begin_one() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    for command in ["verify", "checkpoint"] {
        home.run(["log", command]).exits(2).complains("has no audit log").complains("bulla log init");
    }
    home.run(["log", "show"]).exits(2).complains("there is no audit log");
}

#[test]
fn a_log_that_was_changed_or_cut_is_found() {
    let home = recorded();
    let note = home.run(["log", "checkpoint"]).exits(0).stdout;
    home.write("head.note", &note);
    home.run(["log", "verify"]).exits(0).says("OK (3 entries, 3 signed)");
    home.run(["log", "verify", "--checkpoint", "head.note"]).exits(0);
    let path = home.keystore().join("audit-log/00000000000000000000.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"sign\"", "\"attest\"", 1)).unwrap();
    home.run(["log", "verify"]).exits(1).says("altered (entry 1 was altered");
    let found = home.run(["log", "verify", "--json"]).exits(1).json().remove(0);
    assert_eq!((&found["status"], &found["problems"][0]["entry"]), (&"failed".into(), &1.into()));
    home.run(["sign", "a"]).exits(2).complains("damaged or edited");
    // The log's head is put back, too. The kept checkpoint detects this.
    let kept: Vec<_> = text.lines().take(3).collect();
    fs::write(&path, kept.join("\n") + "\n").unwrap();
    fs::remove_file(home.keystore().join("audit-log/head")).unwrap();
    home.run(["log", "verify", "--checkpoint", "head.note"]).exits(1).says("truncated");
}

#[test]
fn a_log_that_is_gone_stops_what_would_be_recorded() {
    let home = recorded();
    fs::rename(home.keystore().join("audit-log"), home.path("elsewhere")).unwrap();
    home.run(["sign", "a"]).exits(2).complains("is missing").complains("bulla log init");
    home.run(["log", "verify", "--log", "elsewhere"]).exits(0);
}

#[test]
fn half_a_line_that_a_crash_left_is_told() {
    let home = recorded();
    remove_last_checkpoint(&home);
    let path = home.keystore().join("audit-log/00000000000000000000.jsonl");
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() - 5]).unwrap();
    home.run(["log", "verify"]).exits(1).says("torn");
    home.run(["sign", "a"]).exits(0).complains("an incomplete line");
    home.run(["log", "verify"]).exits(0);
}

#[test]
fn proofs_are_checked_with_the_public_key_alone() {
    let home = recorded();
    remove_last_checkpoint(&home);
    home.run(["log", "prove", "2"]).exits(2).complains("no checkpoint signs entry 2 yet");
    home.run(["log", "checkpoint", "-o", "old.note"]).exits(0);
    home.run(["sign", "a"]).exits(0);
    home.run(["log", "checkpoint", "--json"]).exits(0);
    home.run(["keys", "export-public", "audit-log", "-o", "audit.pub"]).exits(0);
    home.run(["log", "prove", "1", "-o", "entry.json"]).exits(0);
    home.run(["log", "prove", "--since", "old.note", "-o", "grew.json"]).exits(0);
    home.run(["keys", "export-public", "default", "-o", "other.pub"]).exits(0);
    for (proof, says) in
        [("entry.json", "entry 1 is one of the first 4"), ("grew.json", "begins with the 3 entries")]
    {
        let check = |key: &str| home.run(["log", "verify", "--proof", proof, "--public-key", key]);
        check("audit.pub").exits(0).says(says);
        check("other.pub").exits(1).says("proves nothing");
    }
    let text = String::from_utf8(home.read("entry.json")).unwrap();
    home.write("forged.json", text.replacen("uid:", "uid:1", 1));
    home.run(["log", "verify", "--proof", "forged.json", "--public-key", "audit.pub"]).exits(1);
    home.write("broken.json", "{}");
    home.run(["log", "verify", "--proof", "broken.json", "--public-key", "audit.pub"]).exits(2);
}

#[test]
fn a_log_whose_beginning_was_interrupted_is_completed_and_records_nothing_before() {
    // The state if `init` is interrupted after each of its steps: the number of lines in the log,
    // and whether the key exists.
    for (lines, has_key) in [(1, false), (2, false), (2, true)] {
        let home = Home::new();
        home.run(["keystore", "init"]).exits(0);
        home.write("a", "data");
        let store = home.keystore().join("keystore.redb");
        let before = fs::read(&store).unwrap();
        home.run(["log", "init"]).exits(0);
        let path = home.keystore().join("audit-log/00000000000000000000.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3, "the header, the key's creation, the checkpoint");
        let left: Vec<_> = text.lines().take(lines).collect();
        fs::write(&path, left.join("\n") + "\n").unwrap();
        fs::remove_file(home.keystore().join("audit-log/head")).unwrap();
        if !has_key {
            fs::write(&store, &before).unwrap();
            home.run(["sign", "a"]).exits(2).complains("was interrupted").complains("bulla log init");
            assert!(!home.path("a.bulla").exists(), "nothing is signed that is not recorded");
        }
        home.run(["log", "init"]).exits(0);
        home.run(["sign", "a"]).exits(0);
        home.run(["log", "verify"]).exits(0);
        let entries = home.run(["log", "show", "--json"]).exits(0).json();
        assert_eq!(entries.last().unwrap()["op"], "sign", "{lines} lines, key: {has_key}");
        home.run(["log", "init"]).exits(2).complains("exists already");
    }
}

#[test]
fn a_start_that_is_killed_at_any_point_is_completed_by_the_next() {
    strikes(40, |delay| {
        let home = Home::new();
        home.run(["keystore", "init"]).exits(0);
        home.write("a", "data");
        let mut command = home.command();
        command.args(["log", "init"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(delay);
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        let was_told = child.wait().unwrap().success();
        let again = home.run(["log", "init"]);
        if was_told {
            again.exits(2).complains("exists already");
        } else if again.code != Some(0) {
            // All of it was done before the kill.
            again.complains("exists already");
        }
        home.run(["sign", "a"]).exits(0);
        home.run(["log", "verify"]).exits(0);
        let entries = home.run(["log", "show", "--json"]).exits(0).json();
        assert_eq!(entries.last().unwrap()["op"], "sign");
        was_told
    });
}

#[test]
fn a_whole_log_beside_a_keystore_without_its_key_is_not_passed_over() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.write("a", "data");
    let store = home.keystore().join("keystore.redb");
    let before = fs::read(&store).unwrap();
    home.run(["log", "init"]).exits(0);
    fs::write(&store, before).unwrap();
    home.run(["sign", "a"]).exits(2).complains("no key that signs it").complains("move the log elsewhere");
    home.run(["log", "init"]).exits(2).complains("exists already");
    fs::rename(home.keystore().join("audit-log"), home.path("old-log")).unwrap();
    home.run(["sign", "a"]).exits(0);
}

#[test]
fn a_keystore_that_is_restored_from_a_backup_begins_another_log() {
    let home = recorded();
    let recipient = home.run(["keygen", "me.identity"]).exits(0).stdout;
    home.write("me.recipient", recipient);
    home.run(["keystore", "backup", "backup", "--recipient", "me.recipient"]).exits(0);
    let elsewhere = |args: &[&str]| home.run([args, &["--keystore", "elsewhere"]].concat());
    elsewhere(&["keystore", "restore", "backup", "--identity", "me.identity"])
        .exits(0)
        .complains("bulla started a new one");
    elsewhere(&["keys", "list"]).exits(0);
    home.write("b", "data");
    elsewhere(&["sign", "b"]).exits(0);
    elsewhere(&["log", "verify"]).exits(0);
    // If the log survived, it goes on.
    fs::remove_file(home.keystore().join("keystore.redb")).unwrap();
    home.run(["keystore", "restore", "backup", "--identity", "me.identity"]).exits(0);
    home.run(["sign", "b"]).exits(0);
    home.run(["log", "verify"]).exits(0);
}

#[test]
fn settings_name_witnesses_and_one_that_is_away_is_reported() {
    let home = recorded();
    let key = home.run(["log", "witness", "--print-key"]).exits(0).stdout;
    assert!(key.starts_with("bulla-audit-log-v1/") && key.lines().count() == 1, "{key}");
    home.run(["log", "witness"]).exits(2).complains("--config");
    home.write("none.toml", "");
    home.run(["log", "witness", "--config", "none.toml"]).exits(2).complains("name no witnesses");
    // Nobody listens on the port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let witness = "witness.example.org+ac94e85e+BNdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea";
    home.write("one.toml", format!("[[witness]]\nurl = \"http://127.0.0.1:{port}\"\nkey = \"{witness}\"\n"));
    let asked = home.run(["log", "witness", "--config", "one.toml"]).exits(2);
    asked.complains("witness.example.org").complains("cannot reach");
    home.run(["log", "verify"]).exits(0).says("OK");
    home.run(["log", "verify", "--config", "one.toml"])
        .exits(1)
        .says("no checkpoint that witnesses cosigned");
    home.run(["log", "verify", "--log", "a", "--log", "b"]).exits(2).complains("only --cluster");
    home.write(
        "away.toml",
        format!(
            "[audit]\ncosignature_quorum = 0\n[[witness]]\nurl = \"http://127.0.0.1:{port}\"\nkey = \"{witness}\"\n"
        ),
    );
    home.run(["log", "verify", "--config", "away.toml"]).exits(0);
}
