//! `--format minisign`, with the real minisign on the other side.

use crate::sign::{hinted_lines, on_a_terminal};
use crate::support::{Done, Home, bulla, content, minisign};
use std::fs;

#[test]
fn the_real_minisign_verifies_what_bulla_signs() {
    let home = Home::new();
    for (index, size) in [0, 1, 100_000, 5 << 20].into_iter().enumerate() {
        home.write("file", content(index as u64, size));
        let line = format!("{} sign file --format minisign", bulla());
        let done = on_a_terminal(&mut home.program("script"), &line);
        home.run(["keys", "export-public", "--format", "minisign", "-o", "key.pub"]).exits(0);
        Done::of(home.program(minisign()).args(["-Vm", "file", "-p", "key.pub"]))
            .exits(0)
            .says("file:file\thashed");
        // Both lines that it prints work.
        let lines = hinted_lines(&done);
        Done::of(home.program("sh").args(["-c", &lines[0]])).exits(0).says("file: OK");
        Done::of(home.program("sh").args(["-c", &lines[1]])).exits(0);
    }
    home.write("file", "tampered");
    Done::of(home.program(minisign()).args(["-Vm", "file", "-p", "key.pub"])).exits(1);
    home.run(["verify", "file", "--format", "minisign", "-p", "key.pub"]).exits(1).says("file: changed");
}

#[test]
fn each_of_many_files_has_its_own_name_in_its_signature() {
    let home = Home::new();
    for name in ["one", "two"] {
        home.write(name, name);
    }
    home.run(["sign", "one", "two", "--format", "minisign"]).exits(0);
    let verify = ["verify", "--format", "minisign"];
    assert_eq!(home.run(verify.iter().chain(&["one", "two"])).exits(0).stderr, "");
    // A signature of a file that has another name now, as whoever serves an old version would do
    // it.
    home.write("newest", "one");
    home.run(verify.iter().chain(&["newest", "-s", "one.minisig"]))
        .exits(0)
        .says("newest: OK")
        .complains("newest: its signature was made for a file with the name one");
    let quiet = home.run(verify.iter().chain(&["newest", "-s", "one.minisig", "--quiet"])).exits(0);
    assert_eq!(quiet.stderr, "");
    for name in ["one", "two"] {
        let signature = String::from_utf8(home.read(format!("{name}.minisig"))).unwrap();
        assert!(signature.contains(&format!("\tfile:{name}\thashed\n")), "{signature}");
    }
}

#[test]
fn a_comment_of_ones_own_is_the_trusted_one() {
    let home = Home::new();
    home.write("file", "content");
    home.run(["sign", "file", "--format", "minisign", "--comment", "release 1.2", "-o", "sig"]).exits(0);
    home.run(["keys", "export-public", "--format", "minisign", "-o", "key.pub"]).exits(0);
    Done::of(home.program(minisign()).args(["-Vm", "file", "-x", "sig", "-p", "key.pub"]))
        .exits(0)
        .says("Trusted comment: release 1.2\n");
    let edited = String::from_utf8(home.read("sig")).unwrap().replace("release 1.2", "release 1.3");
    home.write("sig", edited);
    Done::of(home.program(minisign()).args(["-Vm", "file", "-x", "sig", "-p", "key.pub"])).exits(1);
    home.run(["verify", "file", "--format", "minisign", "-s", "sig"]).exits(1).says("file: bad signature");
}

/// Signs `file` by the real minisign, with a key pair of its own.
fn signed_by_minisign(home: &Home, flags: &[&str]) {
    if !home.path("their.pub").exists() {
        Done::of(home.program(minisign()).args(["-GW", "-p", "their.pub", "-s", "their.key"])).exits(0);
    }
    let sign = ["-Sm", "file", "-s", "their.key", "-t", "made by minisign"];
    Done::of(home.program(minisign()).args(sign).args(flags)).exits(0);
}

#[test]
fn bulla_verifies_what_the_real_minisign_signs() {
    let home = Home::new();
    home.write("file", content(1, 200_000));
    // `-l` signs the file itself, `-H` its digest.
    for (flag, algorithm) in [("-l", "RW"), ("-H", "RU")] {
        signed_by_minisign(&home, &[flag]);
        let signature = String::from_utf8(home.read("file.minisig")).unwrap();
        assert!(signature.lines().nth(1).unwrap().starts_with(algorithm), "{signature}");
        let verify = ["verify", "--format", "minisign", "file", "--public-key"];
        home.run(verify.iter().chain(&["their.pub"])).exits(0).says("comment: made by minisign");
        let key = String::from_utf8(home.read("their.pub")).unwrap();
        home.run(verify.iter().chain(&[key.lines().nth(1).unwrap()])).exits(0);

        home.write("file", content(2, 200_000));
        home.run(verify.iter().chain(&["their.pub"])).exits(1).says("file: changed");
        home.write("file", content(1, 200_000));
        home.write("file.minisig", signature.replace("made by", "made By"));
        home.run(verify.iter().chain(&["their.pub"])).exits(1).says("file: bad signature");
        for len in (0..signature.len() - 1).step_by(7) {
            home.write("file.minisig", &signature[..len]);
            let done = home.run(verify.iter().chain(&["their.pub"])).exits(1);
            assert!(done.stdout.contains("malformed signature") || done.stdout.contains("bad signature"));
        }
        fs::remove_file(home.path("file.minisig")).unwrap();
        home.run(verify.iter().chain(&["their.pub"])).exits(2).complains("there is no signature");
    }
}

#[test]
fn the_keys_of_others_are_unknown_or_wrong() {
    let home = Home::new();
    home.write("file", "content");
    signed_by_minisign(&home, &[]);
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "export-public", "-o", "ours"]).exits(0);
    home.run(["verify", "file", "--format", "minisign"]).exits(1).says("file: unknown key");
    home.run(["verify", "file", "--format", "minisign", "-p", "ours"]).exits(1).says("file: wrong key");
    home.run(["verify", "file"]).exits(1).says("file: unknown key");
}

#[test]
fn the_keystore_knows_the_minisign_keys_of_all_its_versions() {
    let home = Home::new();
    home.write("file", "content");
    home.run(["sign", "file", "--format", "minisign"]).exits(0);
    home.run(["keys", "rotate"]).exits(0);
    home.run(["verify", "file", "--format", "minisign"]).exits(0);
}

#[test]
fn both_signatures_of_a_file_are_by_one_version_however_often_it_may_sign() {
    let home = Home::new();
    home.write("file", "content");
    home.run(["keystore", "init"]).exits(0);
    // The first file leaves one use of version 1, which is not enough for the second file.
    home.run(["keys", "policy", "default", "--max-uses", "3"]).exits(0);
    let said = [(); 2].map(|()| {
        home.run(["sign", "file", "--format", "minisign"]).exits(0);
        home.run(["verify", "file"]).exits(0).stdout
    });
    let key = |said: &str| said.split("by the key ").nth(1).map(|rest| rest[..16].to_owned()).unwrap();
    assert_ne!(key(&said[0]), key(&said[1]));
    home.run(["keys", "policy", "default", "--max-uses", "1"]).exits(0);
    let before = home.read("file.minisig");
    let refused = home.run(["sign", "file", "--format", "minisign"]).exits(2);
    refused.complains("two signatures by one version").complains("--max-uses 2");
    assert_eq!(home.read("file.minisig"), before);
}

#[test]
fn minisign_signs_no_folders() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.run(["sign", "tree", "--format", "minisign"]).exits(2).complains("minisign signs only files");
    assert_eq!(home.names(), ["tree"]);
}

#[test]
fn keys_that_minisign_does_not_have_are_refused_before_anything_is_written() {
    let home = Home::new();
    home.write("file", "content");
    for algorithm in ["ecdsa-p256", "ml-dsa-44", "slh-dsa-sha2-128f"] {
        home.run(["keys", "create", algorithm, "--algorithm", algorithm]).exits(0);
        let done = home.run(["sign", "file", "--format", "minisign", "--key", algorithm]).exits(2);
        assert_eq!(home.names(), ["file"]);
        let hint = done.complains("minisign has only Ed25519 signatures").stderr;
        let hint = hint.split("hint: ").nth(1).expect("a hint");
        let help = home.run(["sign", "--help"]).exits(0).stdout;
        let flags: Vec<_> = hint
            .split(|c: char| c != '-' && !c.is_ascii_alphanumeric())
            .filter(|word| word.starts_with("--"))
            .collect();
        assert_eq!(flags.len(), 2, "{hint}");
        assert!(flags.iter().all(|flag| help.contains(flag)), "{hint}");
    }
}

#[test]
fn a_signature_by_a_key_that_minisign_does_not_have_is_by_a_wrong_key() {
    let home = Home::new();
    home.write("file", "content");
    home.run(["sign", "file", "--format", "minisign"]).exits(0);
    home.run(["keys", "create", "p", "--algorithm", "ecdsa-p256"]).exits(0);
    home.run(["keys", "export-public", "p", "-o", "p.pub"]).exits(0);
    let verify = ["verify", "--format", "minisign", "file"];
    home.run([&verify[..], &["-p", "p.pub"]].concat()).exits(1).says("file: wrong key");
}
