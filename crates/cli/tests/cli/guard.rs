//! Guards against older copies of the keystore: once one was chosen, every command asks it, and
//! none needs a flag for it.

use crate::support::Home;
use std::fs;
use std::path::PathBuf;

fn store(home: &Home) -> PathBuf {
    home.keystore().join("keystore.redb")
}

#[test]
fn yesterdays_copy_of_the_keystore_is_refused_by_every_command() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init", "--guard", "file:guard"]).exits(0);
    home.run(["sign", "a"]).exits(0);
    fs::copy(store(&home), home.path("yesterday")).expect("a copy");
    home.run(["keys", "rotate"]).exits(0).says("version 2");
    fs::copy(store(&home), home.path("today")).expect("a copy");

    fs::copy(home.path("yesterday"), store(&home)).expect("it is put back");
    let commands: [&[&str]; 6] = [
        &["sign", "a"],
        &["verify", "a"],
        &["keys", "list"],
        &["keys", "create", "b"],
        &["keystore", "rekey", "--generate-key-file"],
        &["keystore", "backup", "backup", "--new-key-file", "key"],
    ];
    home.write("key", fs::read(home.keystore().join("keystore.key")).expect("the key file"));
    fs::set_permissions(home.path("key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .expect("a mode");
    for command in commands {
        home.run(command).exits(2).complains("older copy");
    }
    fs::copy(home.path("today"), store(&home)).expect("it is put back");
    for command in commands {
        home.run(command).exits(0);
    }
}

#[test]
fn a_guard_is_shown_and_a_lost_one_replaced() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    home.run(["keystore", "guard"]).exits(0).says("no guard");
    home.run(["keystore", "guard", "file:first"]).exits(0).says(&home.path("first").display().to_string());
    home.run(["sign", "a"]).exits(0);
    fs::remove_file(home.path("first")).expect("it is lost");
    home.run(["sign", "a"]).exits(2).complains("rollback guard");
    home.run(["keystore", "guard", "file:second", "--json"]).exits(0).says("second\"");
    home.run(["sign", "a"]).exits(0);
    home.run(["keystore", "guard", "file:second"]).exits(2).complains("delete it");
    home.run(["keystore", "guard", "none"]).exits(0).says("no guard");
    fs::remove_file(home.path("second")).expect("it is not needed any more");
    home.run(["sign", "a"]).exits(0);
}

#[test]
fn a_guard_lies_elsewhere_and_is_named_in_one_of_two_forms() {
    let home = Home::new();
    let beside = format!("file:{}", home.keystore().join("guard").display());
    home.run(["keystore", "init", "--guard", &beside])
        .exits(2)
        .complains("would include an older copy of this guard");
    assert!(!store(&home).exists());
    for guard in ["guard", "file:", "tape:guard", "pkcs11:A B"] {
        home.run(["keystore", "init", "--guard", guard]).exits(2);
    }
    home.run(["keystore", "init", "--guard", "pkcs11:guard"]).exits(2).complains("--pkcs11");
    assert!(!store(&home).exists());
}
