//! `bulla keys`.

use crate::support::{Done, Home};
use bulla_testing::strikes::strikes;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

#[test]
fn a_keystore_is_made_once_and_for_its_owner_only() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0).complains("created the keystore");
    let mode = |name: &str| fs::metadata(home.keystore().join(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode(""), mode("keystore.redb"), mode("keystore.key")), (0o700, 0o600, 0o600));
    let before = fs::read(home.keystore().join("keystore.key")).unwrap();
    home.run(["keystore", "init"]).exits(2).complains("already");
    assert_eq!(fs::read(home.keystore().join("keystore.key")).unwrap(), before);
}

#[test]
fn the_keystore_is_in_the_data_folder_unless_named() {
    let home = Home::new();
    let data = home.path("data");
    let mut command = home.command();
    command.env("XDG_DATA_HOME", &data).args(["keystore", "init"]);
    Done::of(&mut command).exits(0);
    assert!(data.join("bulla/keystore.redb").exists());
    let mut command = home.command();
    command.args(["keystore", "init", "--keystore", "named"]);
    Done::of(&mut command).exits(0);
    assert!(home.path("named/keystore.redb").exists());
}

#[test]
fn commands_on_keys_make_no_keystore() {
    let home = Home::new();
    for command in ["list", "show", "rotate", "refresh", "repair", "disable", "enable", "export-public"] {
        home.run(["keys", command])
            .exits(2)
            .complains("there is no keystore in")
            .complains("bulla keystore init");
    }
    assert!(!home.keystore().exists());
}

#[test]
fn keys_are_made_listed_shown_and_chosen() {
    let home = Home::new();
    home.run(["keys", "create", "releases", "--purpose", "software"])
        .exits(0)
        .says("created releases: local/software/ed25519/");
    home.run(["keys", "create", "releases"]).exits(2).complains("releases");
    home.run(["keys", "create", "No Label"]).exits(2).complains("No Label");
    let list = home.run(["keys", "list"]).exits(0).stdout;
    let labels: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(labels, ["LABEL", "default", "releases"]);
    let key = home.run(["keys", "show", "releases", "--json"]).exits(0).json().remove(0);
    let id = key["key"].as_str().unwrap();
    home.run(["keys", "show", id]).exits(0).says(id).says("label      releases");

    home.write("a", "a");
    home.run(["sign", "a", "--key", "releases"]).exits(0);
    home.run(["verify", "a"]).exits(0).says("by releases v1");
    home.run(["sign", "a", "--key", id]).exits(0);
    home.run(["sign", "a", "--key", "nobody"])
        .exits(2)
        .complains("no key with the label")
        .complains("keys list");
    home.run(["sign", "a", "--key", "no/id"]).exits(2).complains("is not a key id");
}

#[test]
fn after_a_rotation_the_new_version_signs_and_the_old_ones_verify() {
    let home = Home::new();
    home.write("old", "old");
    home.write("new", "new");
    home.run(["sign", "old"]).exits(0);
    home.run(["keys", "export-public", "-o", "v1"]).exits(0);
    home.run(["keys", "rotate"]).exits(0).says("version 2");
    home.run(["sign", "new"]).exits(0);
    home.run(["verify", "old", "new"]).exits(0).says("by default v1").says("by default v2");
    let key = home.run(["keys", "show", "--json"]).exits(0).json().remove(0);
    assert_eq!(key["head"], 2);
    assert_eq!(key["versions"].as_array().unwrap().len(), 2);
    assert!(key["versions"][0]["retired"].is_string() && key["versions"][1]["retired"].is_null());

    home.run(["verify", "new", "-p", "v1"]).exits(1).says("new: wrong key");
    let first = format!("{}/v1", key["key"].as_str().unwrap());
    let exported = home.run(["keys", "export-public", &first]).exits(0).stdout;
    assert_eq!(exported.as_bytes(), home.read("v1"));
    home.run(["sign", "new", "--key", &first]).exits(2).complains("older version");
    let third = format!("{}/v3", key["key"].as_str().unwrap());
    home.run(["keys", "export-public", &third]).exits(2).complains("no version 3");
}

#[test]
fn a_disabled_key_does_not_sign_until_it_is_enabled() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    home.run(["keys", "disable"]).exits(0);
    home.run(["sign", "a"]).exits(2).complains("disabled").complains("bulla keys enable default");
    home.run(["verify", "a"]).exits(0);
    home.run(["keys", "list"]).exits(0).says("disabled");
    home.run(["keys", "enable"]).exits(0);
    home.run(["sign", "a"]).exits(0);
}

#[test]
fn a_passphrase_comes_from_a_file_and_a_wrong_one_is_told() {
    let home = Home::new();
    home.write_secret("pass", "correct horse\nsecond line\n");
    home.write_secret("wrong", "battery staple\n");
    home.write_secret("empty", "\n");
    home.write("a", "a");
    home.run(["sign", "a", "--passphrase-file", "pass"]).exits(0).complains("your passphrase opens it");
    assert!(!home.keystore().join("keystore.key").exists());
    home.run(["verify", "a", "--passphrase-file", "pass"]).exits(0);
    home.run(["sign", "a", "--passphrase-file", "wrong"]).exits(2).complains("passphrase");
    home.run(["sign", "a", "--passphrase-file", "empty"])
        .exits(2)
        .complains("empty: its first line, the passphrase");
    home.run(["sign", "a", "--passphrase-file", "gone"])
        .exits(2)
        .complains("gone: cannot read the passphrase");
    home.run(["sign", "a"]).exits(2).complains("no terminal on which to ask").complains("--passphrase-file");
    Done::of(home.command().env("BULLA_PASSPHRASE_FILE", "pass").args(["keys", "list"])).exits(0);
    home.run(["keystore", "init", "--passphrase", "--keystore", "new"])
        .exits(2)
        .complains("no terminal on which to ask");
    assert!(!home.path("new").exists());
}

#[test]
fn an_interrupted_creation_is_finished_by_the_next_command() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    let [store, key, next] =
        ["keystore.redb", "keystore.key", "keystore.key.new"].map(|name| home.keystore().join(name));
    let secret = fs::read(&key).unwrap();
    // As if the process had been stopped after it made the key file, and after it made the
    // keystore.
    for made_keystore in [false, true] {
        fs::rename(&key, &next).unwrap();
        if !made_keystore {
            fs::remove_file(&store).unwrap();
        }
        home.run(["sign", "a"]).exits(0);
        home.run(["verify", "a"]).exits(0);
        assert!(!next.exists());
        assert_eq!(fs::read(&key).unwrap(), secret);
    }
}

#[test]
fn a_first_command_that_is_killed_at_any_point_is_finished_by_the_next() {
    strikes(60, |delay| {
        let home = Home::new();
        home.write("a", "a");
        let mut command = home.command();
        command.args(["sign", "a"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(delay);
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        let was_told = child.wait().unwrap().success();
        home.run(["sign", "a"]).exits(0);
        home.run(["verify", "a"]).exits(0);
        assert!(!home.keystore().join("keystore.key.new").exists());
        was_told
    });
}

#[test]
fn first_commands_at_the_same_moment_share_one_keystore() {
    for _ in 0..5 {
        let home = Home::new();
        let names = ["a", "b", "c", "d"];
        names.iter().for_each(|name| home.write(name, name));
        let start = |name: &&str| home.command().args(["sign", name]).stderr(Stdio::piped()).spawn().unwrap();
        let children: Vec<_> = names.iter().map(start).collect();
        for child in children {
            Done::from(child.wait_with_output().unwrap()).exits(0);
        }
        home.run(["verify", "a", "b", "c", "d"]).exits(0);
        assert_eq!(home.run(["keys", "list", "--json"]).exits(0).json().len(), 1);
    }
}

#[test]
fn a_lost_keystore_is_told_and_not_replaced_by_a_new_one() {
    let home = Home::new();
    home.write("a", "a");
    home.write_secret("pass", "correct horse\n");
    home.run(["sign", "a"]).exits(0);
    home.run(["keystore", "backup", "backup", "--new-passphrase-file", "pass"]).exits(0);
    let [store, key] = ["keystore.redb", "keystore.key"].map(|name| home.keystore().join(name));
    fs::rename(&store, home.path("copy")).unwrap();
    let before = fs::read(&key).unwrap();
    let commands: [&[&str]; 7] = [
        &["sign", "a"],
        &["verify", "a"],
        &["keystore", "init"],
        &["keystore", "init", "--passphrase", "--passphrase-file", "pass"],
        &["keys", "create", "b"],
        &["keys", "list"],
        &["log", "verify"],
    ];
    for command in commands {
        home.run(command).exits(2).complains("keystore.redb is missing").complains("bulla keystore restore");
        assert!(!store.exists());
        assert_eq!(fs::read(&key).unwrap(), before);
    }
    // Each way that the hint names helps.
    fs::rename(home.path("copy"), &store).unwrap();
    home.run(["verify", "a"]).exits(0);
    fs::remove_file(&store).unwrap();
    home.run(["keystore", "restore", "backup", "--passphrase-file", "pass"]).exits(0);
    home.run(["verify", "a"]).exits(0);
    assert_eq!(fs::read(&key).unwrap(), before);
    fs::remove_file(&store).unwrap();
    fs::rename(&key, home.path("elsewhere")).unwrap();
    home.run(["verify", "a"]).exits(2).complains("there is no keystore");
    home.run(["sign", "a"]).exits(0).complains("created the keystore");
}

#[test]
fn a_key_file_that_others_may_read_is_refused() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    let key_file = home.keystore().join("keystore.key");
    fs::set_permissions(&key_file, fs::Permissions::from_mode(0o644)).unwrap();
    for args in [["sign", "a"], ["verify", "a"], ["keys", "list"]] {
        home.run(args).exits(2).complains("keystore.key (mode 0644)").complains("chmod 600");
    }
    fs::remove_file(&key_file).unwrap();
    home.run(["sign", "a"]).exits(2).complains("keystore.key");
    assert!(!key_file.exists(), "a lost key file must not be replaced by another");
}

#[test]
fn a_damaged_or_newer_keystore_is_refused_and_left_as_it_is() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    let signature = home.read("a.bulla");
    let store = home.keystore().join("keystore.redb");
    let good = fs::read(&store).unwrap();
    for damaged in
        [b"this is no keystore".to_vec(), good[..good.len() / 2].to_vec(), vec![0; good.len()], Vec::new()]
    {
        fs::write(&store, &damaged).unwrap();
        home.run(["sign", "a"]).exits(2).complains("hint: ");
        assert_eq!(fs::read(&store).unwrap(), damaged);
    }
    fs::write(&store, &good).unwrap();
    {
        let database = redb::Database::open(&store).unwrap();
        let write = database.begin_write().unwrap();
        let meta = redb::TableDefinition::<&[u8], &[u8]>::new("meta");
        write
            .open_table(meta)
            .unwrap()
            .insert(b"format".as_slice(), 99_u32.to_be_bytes().as_slice())
            .unwrap();
        write.commit().unwrap();
    }
    let newer = fs::read(&store).unwrap();
    home.run(["sign", "a"]).exits(2).complains("install a newer version of bulla");
    assert_eq!(fs::read(&store).unwrap(), newer);
    assert_eq!(home.read("a.bulla"), signature);
}

#[test]
fn many_processes_may_sign_at_once() {
    let home = Home::new();
    let names: Vec<String> = (0..12).map(|index| format!("{index}")).collect();
    names.iter().for_each(|name| home.write(name, name));
    let children: Vec<_> = names
        .iter()
        .map(|name| home.command().args(["sign", "--quiet", name]).spawn().expect("the command runs"))
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    home.run(["verify"].into_iter().chain(names.iter().map(String::as_str))).exits(0).says("12 verified");
    assert_eq!(home.run(["keys", "list", "--json"]).exits(0).json().len(), 1);
}
