//! The keys that seal and open, as other programs and editors write their files.

use crate::support::{Done, Home, bulla};
use std::process::Command;

/// Makes an age identity in a file of this name, and returns its secret line and its recipient.
fn age_identity(home: &Home, name: &str) -> (String, String) {
    let recipient = home.run(["keygen", "--age", name]).exits(0).stdout.trim().to_owned();
    let text = String::from_utf8(home.read(name)).unwrap();
    (text.lines().last().unwrap().to_owned(), recipient)
}

#[test]
fn files_of_recipients_and_identities_have_comments_and_several_lines() {
    let home = Home::new();
    home.write("a", "content");
    let made = ["one", "two", "three"].map(|name| age_identity(&home, name));
    let recipients = format!("# our team\n{}\n\n  {}  \r\n# the third left\n", made[0].1, made[1].1);
    home.write("team", recipients);
    home.run(["encrypt", "a", "--recipient", "team"]).exits(0);
    home.write_secret("mine", format!("# old\n{}\n# new\n{}\n", made[2].0, made[1].0));
    home.run(["decrypt", "a.sealed", "--identity", "mine", "-o", "opened"]).exits(0);
    assert_eq!(home.read("opened"), b"content");
    home.run(["decrypt", "a.sealed", "--identity", "one", "-o", "again"]).exits(0);
    home.run(["decrypt", "a.sealed", "--identity", "three", "-o", "not"]).exits(2);

    // A keystore that one of several identities opens.
    home.run(["keystore", "init"]).exits(0);
    home.run(["keystore", "rekey", "--recipient", "team"]).exits(2).complains("team: contains 2 recipients");
    home.run(["keystore", "rekey", "--recipient", &made[2].1]).exits(0);
    home.run(["sign", "a", "--identity", "mine"]).exits(0);
    home.run(["sign", "a", "--identity", "one"]).exits(2);
}

#[test]
fn recipients_of_other_kinds_get_an_answer_that_helps() {
    let home = Home::new();
    home.write("a", "content");
    let (secret, recipient) = age_identity(&home, "me");
    let refused = |text: &str, why: &str| {
        let done = home.run(["encrypt", "a", "--recipient", text]).exits(2).complains(why);
        assert!(!done.stderr.contains(&secret[20..]), "{}", done.stderr);
    };
    let ssh = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHsKLqeplhpW+uObz5dvMgjz1OxfM/XXUB+VHtZ6isGN me@here";
    let plugin = "age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yysf5yw3rhl3t";
    for (text, why) in [
        (ssh, "a key of SSH"),
        ("ssh-rsa AAAAB3NzaC1yc2E= me@here", "a key of SSH"),
        (plugin, "a recipient age1yubikey1..., of an age plugin"),
        (&secret, "this is an identity, which is secret: give its recipient"),
        (&recipient[..recipient.len() - 1], "it is cut or has a typing error"),
    ] {
        refused(text, why);
        home.write("file", format!("# a comment\n{text}\n"));
        refused("file", why);
        refused("file", "file: line 2: ");
    }
    home.write("file", "# nothing\n");
    refused("file", "file: contains no recipient");
    home.run(["encrypt", "a", "--recipient", &recipient]).exits(0);
    for (text, why) in [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n", "a private key of SSH"),
        ("-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n", "a passphrase protects"),
        ("AGE-PLUGIN-YUBIKEY-1QGQQQQ\n", "an age plugin"),
    ] {
        home.write_secret("identity", text);
        home.run(["decrypt", "a.sealed", "-o", "out", "--identity", "identity"]).exits(2).complains(why);
    }
}

#[test]
fn the_help_says_how_to_make_a_key_file_and_so_does_the_error() {
    let home = Home::new();
    home.write("a", "content");
    let seal = ["encrypt", "a", "--new-key-file", "new.key"];
    let hint = home.run(seal).exits(2).stderr;
    let make = hint.split_once("make one with: ").unwrap().1.trim().to_owned();
    let help =
        Done::of(Command::new(bulla()).args(["encrypt", "--help"]).env("COLUMNS", "500")).exits(0).stdout;
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&help).contains(&words(&make)), "{make}: {help}");
    Done::of(home.program("sh").args(["-c", &make.replace("FILE", "new.key")])).exits(0);
    home.run(seal).exits(0);
    home.run(["decrypt", "a.sealed", "--key-file", "new.key", "-o", "opened"]).exits(0);
    home.write_secret("new.key", "32 bytes, perhaps");
    home.run(["encrypt", "a", "-o", "b", "--new-key-file", "new.key"]).exits(2).complains("make one with: ");
}

#[test]
fn a_passphrase_opens_however_an_editor_writes_it() {
    let home = Home::new();
    home.write("a", "a");
    home.write_secret("composed", "caf\u{e9}\n");
    home.write_secret("decomposed", "cafe\u{301}\r\n");
    home.write_secret("marked", "\u{feff}caf\u{e9}\r\n");
    home.write_secret("other", "cafe\n");
    home.write_secret("empty", "\u{feff}\n");
    home.run(["sign", "a", "--passphrase-file", "composed"]).exits(0);
    for file in ["composed", "decomposed", "marked"] {
        home.run(["sign", "a", "--passphrase-file", file]).exits(0);
    }
    home.run(["sign", "a", "--passphrase-file", "other"]).exits(2).complains("passphrase");
    home.run(["sign", "a", "--passphrase-file", "empty"]).exits(2).complains("is empty");
    home.run(["encrypt", "a", "--new-passphrase-file", "marked"]).exits(0);
    home.run(["decrypt", "a.sealed", "--passphrase-file", "decomposed", "-o", "opened"]).exits(0);
}
