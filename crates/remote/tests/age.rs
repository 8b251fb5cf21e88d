//! The plugin for age, with the real age: it encrypts to keys of a keystore and of a service.
#![cfg(unix)]

use bulla_testing::serving::{Serving, settings};
use bulla_testing::{Done, Home, program};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// age, which finds the plugin. It knows no keystore and no service.
fn age(home: &Home) -> Command {
    let mut path = OsString::from(Path::new(&program("age-plugin-bulla")).parent().expect("a folder"));
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = home.program("age");
    command.env("PATH", path).env("BULLA_KEYSTORE", home.path("none"));
    command
}

/// Prints a key's recipient and identity, and writes the identity to the file `identity`.
fn prints(home: &Home, source: &[&str]) -> Value {
    let args = [&["age-plugin", "backups"], source].concat();
    let text = home.run(&args).exits(0).stdout;
    let printed = home.run([&args[..], &["--json"]].concat()).exits(0).json().remove(0);
    for (line, field) in [("# key", "key"), ("# recipient", "recipient")] {
        let shown = format!("{line}: {}\n", printed[field].as_str().expect("a text"));
        assert!(text.contains(&shown), "{text}");
    }
    assert!(text.ends_with(&format!("\n{}\n", printed["identity"].as_str().expect("a text"))), "{text}");
    home.write("identity", text);
    printed
}

/// Encrypts the text, where no key can be reached.
fn encrypt(home: &Home, recipient: &Value, file: &str) {
    let recipient = recipient.as_str().expect("a recipient");
    Done::with_input(age(home).args(["-r", recipient, "-o", file]), b"the content").exits(0);
}

fn decrypt(home: &Home, file: &str, variables: &[(&str, &str)]) -> Done {
    Done::of(age(home).args(["-d", "-i", "identity", file]).envs(variables.iter().copied()))
}

#[test]
fn age_encrypts_without_the_keystore_which_decrypts_with_every_version_that_is_not_revoked() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "backups", "--algorithm", "x-wing"]).exits(0);
    let keystore = home.keystore().display().to_string();
    let here = [("BULLA_KEYSTORE", &*keystore)];
    let first = prints(&home, &[]);
    encrypt(&home, &first["recipient"], "first");
    home.run(["keys", "rotate", "backups"]).exits(0);
    let second = prints(&home, &[]);
    assert_eq!(first["identity"], second["identity"]);
    encrypt(&home, &second["recipient"], "second");
    for file in ["first", "second"] {
        assert_eq!(decrypt(&home, file, &here).exits(0).stdout, "the content", "{file}");
    }
    // An identity encrypts, too: the keystore has its public key.
    let by_identity =
        Done::with_input(age(&home).args(["-e", "-i", "identity"]).envs(here), b"more").exits(0);
    home.write("third", &by_identity.output.stdout);
    assert_eq!(decrypt(&home, "third", &here).exits(0).stdout, "more");
    home.run(["keys", "revoke", "backups", "1"]).exits(0);
    let revoked = decrypt(&home, "first", &here).exits(1);
    revoked.complains("the versions 1 of local/").complains("no identity matched");
    assert_eq!(decrypt(&home, "second", &here).exits(0).stdout, "the content");
    home.run(["keys", "disable", "backups"]).exits(0);
    decrypt(&home, "second", &here).exits(1).complains("is disabled");
    home.run(["age-plugin", "backups"]).exits(2).complains("is disabled");
}

#[test]
fn the_identity_of_another_person_and_an_altered_file_open_nothing() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "others", "--algorithm", "x-wing"]).exits(0);
    home.run(["keys", "create", "backups", "--algorithm", "x-wing"]).exits(0);
    let keystore = home.keystore().display().to_string();
    let here = [("BULLA_KEYSTORE", &*keystore)];
    let printed = prints(&home, &[]);
    encrypt(&home, &printed["recipient"], "file");
    let other = home.run(["age-plugin", "others"]).exits(0).stdout;
    home.write("other", other);
    Done::of(age(&home).args(["-d", "-i", "other", "file"]).envs(here))
        .exits(1)
        .complains("no identity matched");
    let file = home.read("file");
    let stanza = file.windows(3).position(|bytes| bytes == b"-> ").expect("a stanza");
    let argument = stanza + b"-> mlkem768x25519 ".len();
    let flip = |at: usize| {
        let mut altered = file.clone();
        altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
        home.write("altered", altered);
        decrypt(&home, "altered", &here).exits(1)
    };
    // In the ciphertext of X-Wing, in the wrapped file key, and in the content.
    flip(argument + 100).complains("no identity matched");
    let body = argument + file[argument..].iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    flip(body + 5).complains("no identity matched");
    let last = decrypt_bytes_altered(&home, &file, &here);
    assert!(!last.stdout.contains("the content"), "{}", last.stdout);
    let mut short = file.clone();
    short.drain(argument..argument + 4);
    home.write("altered", short);
    decrypt(&home, "altered", &here).exits(1).complains("not a ciphertext of X-Wing");
    let mut many = file.clone();
    let line = file[stanza..body + 44].to_vec();
    for _ in 0..300 {
        many.splice(stanza..stanza, line.iter().copied());
    }
    home.write("altered", many);
    decrypt(&home, "altered", &here).exits(1).complains("too many to try");
}

/// Alters the last byte of a file.
fn decrypt_bytes_altered(home: &Home, file: &[u8], variables: &[(&str, &str)]) -> Done {
    let mut altered = file.to_vec();
    *altered.last_mut().expect("bytes") ^= 1;
    home.write("altered", altered);
    decrypt(home, "altered", variables).exits(1)
}

#[test]
fn a_service_decrypts_for_a_token_that_permits_it_and_the_errors_say_why_not() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "backups", "--algorithm", "x-wing"]).exits(0);
    home.run(["keys", "create", "signs"]).exits(0);
    let mint = |file: &str, args: &[&str]| {
        home.run([&["token", "new", "--expires", "1h", "--output", file], args].concat()).exits(0);
    };
    let permits = ["--operation", "decapsulate", "--operation", "read", "--key"];
    mint("right", &[&permits[..], &["backups"]].concat());
    mint("wrong-key", &[&permits[..], &["signs"]].concat());
    mint("reads", &["--operation", "read"]);
    settings(&home, "");
    let _serving = Serving::start(&home);
    let server = format!("unix:{}", home.path("socket").display());
    let printed = prints(&home, &["--server", "unix:socket"]);
    encrypt(&home, &printed["recipient"], "file");
    let with = |token: &str| {
        let token = home.path(token).display().to_string();
        decrypt(&home, "file", &[("BULLA_ADDR", &server), ("BULLA_TOKEN_FILE", &token)])
    };
    assert_eq!(with("right").exits(0).stdout, "the content");
    with("wrong-key").exits(1).complains("does not permit this");
    with("reads").exits(1).complains("does not permit this");
    home.write_secret("garbage", "no token\n");
    with("garbage").exits(1).complains("garbage");
    with("missing").exits(1).complains("cannot read the token");
    decrypt(&home, "file", &[("BULLA_KEYSTORE", "")]).exits(1).complains("check the variables BULLA_");
    decrypt(&home, "file", &[("BULLA_ADDR", "unix:socket")]).exits(1).complains("relative path socket");
    let nowhere = decrypt(&home, "file", &[("BULLA_ADDR", "http://keys.example.org"), ("BULLA_TOKEN", "x")]);
    nowhere.exits(1).complains("would travel unencrypted");
    // A file for others alone: nobody is asked.
    home.run(["keygen", "--age", "me"]).exits(0);
    let recipient = String::from_utf8(home.read("me")).expect("text");
    let recipient =
        recipient.lines().find_map(|line| line.strip_prefix("# recipient: ")).expect("a recipient");
    Done::with_input(age(&home).args(["-r", recipient, "-o", "file"]), b"for me").exits(0);
    decrypt(&home, "file", &[("BULLA_ADDR", "unix:/nowhere")]).exits(1).complains("no identity matched");
    let signs = home.run(["age-plugin", "signs", "--server", "unix:socket"]);
    signs.exits(2).complains("age encrypts to keys of x-wing");
}
