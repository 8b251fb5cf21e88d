//! After a rotation: how people who have the old public key come to the new one, and several
//! trusted keys.

use crate::support::{Done, Home, bulla, minisign};
use std::fs;

/// A key rotated so often. For each version N: its public key `N.pub`, a file `N`, and its
/// signature `N.bulla`.
fn rotated(home: &Home, rotations: u32) {
    for version in 1..=rotations + 1 {
        let name = version.to_string();
        home.write(&name, &name);
        home.run(["sign", &name]).exits(0);
        home.run(["keys", "export-public", "-o", &format!("{name}.pub")]).exits(0);
        if version <= rotations {
            home.run(["keys", "rotate", "--quiet"]).exits(0);
        }
    }
    home.run(["keys", "succession", "-o", "chain"]).exits(0);
}

/// Verifies without a keystore.
fn verify(home: &Home, args: &[&str]) -> Done {
    home.run([&["verify", "--keystore", "none"], args].concat())
}

#[test]
fn the_old_key_leads_to_the_new_one_when_asked_to() {
    for rotations in [1, 3] {
        let home = Home::new();
        rotated(&home, rotations);
        let newest = (rotations + 1).to_string();
        verify(&home, &[&newest, "-p", "1.pub"])
            .exits(1)
            .says("wrong key")
            .says("pass the owner's `bulla keys succession` with --succession");
        for version in 1..=rotations + 1 {
            let key = format!("{version}.pub");
            for signed in 1..=rotations + 1 {
                let done = verify(&home, &[&signed.to_string(), "-p", &key, "--succession", "chain"]);
                // Never back: what an older version signed is another matter.
                done.exits(i32::from(signed < version));
            }
        }
    }
}

#[test]
fn a_rotation_says_that_and_the_commands_it_prints_work() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "export-public", "-o", "OLD.pub"]).exits(0);
    let said = home.run(["keys", "rotate"]).exits(0).says("\"wrong key\"").stdout;
    home.run(["sign", "a"]).exits(0);
    let commands: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("  bulla ")).collect();
    assert_eq!(commands.len(), 2, "{said}");
    for (command, file) in commands.iter().zip(["NEW.pub", "CHAIN"]) {
        let script = format!("{bulla} {}", command.replace("FILE", file), bulla = bulla());
        Done::of(home.program("sh").args(["-c", &script])).exits(0);
    }
    verify(&home, &["a", "--public-key", "NEW.pub"]).exits(0);
    verify(&home, &["a", "--public-key", "OLD.pub"]).exits(1);
    verify(&home, &["a", "--public-key", "OLD.pub", "--succession", "CHAIN"]).exits(0);
}

#[test]
fn statements_in_any_order_and_files_lead_and_gaps_do_not() {
    let home = Home::new();
    rotated(&home, 3);
    let chain = String::from_utf8(home.read("chain")).unwrap();
    let lines: Vec<_> = chain.split_inclusive('\n').collect();
    let statements: Vec<String> = lines.chunks(7).map(<[&str]>::concat).collect();
    assert_eq!(statements.len(), 3);
    for (number, statement) in statements.iter().enumerate() {
        home.write(format!("s{}", number + 1), statement);
    }
    let [one, two, three] = ["s1", "s2", "s3"].map(|name| ["--succession", name]);
    let signed = ["4", "-p", "1.pub"];
    verify(&home, &[&signed[..], &three, &one, &two].concat()).exits(0);
    verify(&home, &[&signed[..], &one, &three].concat()).exits(1).says("wrong key");
    home.write("backwards", statements.iter().rev().map(String::as_str).collect::<String>());
    verify(&home, &[&signed[..], &["--succession", "backwards"]].concat()).exits(0);
}

#[test]
fn statements_that_do_not_hold_are_refused_and_those_of_others_lead_nowhere() {
    let home = Home::new();
    rotated(&home, 1);
    let other = Home::new();
    rotated(&other, 1);
    home.write("others", other.read("chain"));
    let signed = ["2", "-p", "1.pub", "--succession"];
    let run = |file: &str| verify(&home, &[&signed[..], &[file]].concat());
    run("others").exits(1).says("wrong key");

    let chain = String::from_utf8(home.read("chain")).unwrap();
    let theirs = String::from_utf8(other.read("chain")).unwrap();
    let line = |text: &str, number: usize| text.lines().nth(number).unwrap().to_owned();
    // Another new key; another signature; another time; and their new key under their signature.
    for (number, from) in [(4, &theirs), (6, &theirs)] {
        home.write("forged", chain.replace(&line(&chain, number), &line(from, number)));
        run("forged")
            .exits(2)
            .complains("forged: somebody edited statement 1, or another key than the named one made it");
    }
    home.write("forged", chain.replace(&line(&chain, 5), "time: 2026-01-01T00:00:00.000Z"));
    run("forged").exits(2).complains("somebody edited statement 1");
    home.write("forged", chain.replace(&line(&chain, 2), &line(&theirs, 2)));
    run("forged").exits(2).complains("somebody edited statement 1");
    for len in (0..chain.len()).step_by(11) {
        home.write("cut", &chain[..len]);
        run("cut").exits(2).complains("cut: not a statement of succession: line ");
    }
    run("missing").exits(2).complains("missing: cannot read the statements");
    home.run(["verify", "1", "--succession", "chain"]).exits(2).complains("--public-key");
}

#[test]
fn a_revoked_version_vouches_for_nothing_and_its_signatures_are_refused() {
    let home = Home::new();
    rotated(&home, 2);
    home.run(["keys", "revoke", "default", "1"]).exits(0);
    let chain = home.run(["keys", "succession"]).exits(0).stdout;
    assert_eq!(chain.lines().count(), 7);
    home.write("chain", chain);
    verify(&home, &["3", "-p", "1.pub", "--succession", "chain"]).exits(1).says("wrong key");
    verify(&home, &["3", "-p", "2.pub", "--succession", "chain"]).exits(0);
    home.run(["verify", "1"]).exits(1).says("1: wrong key").says("which was revoked");
    home.run(["verify", "2"]).exits(0);
    home.run(["keys", "policy", "--minimum-version", "3"]).exits(0);
    home.run(["verify", "2"]).exits(1).says("2: wrong key").says("minimum version");
    home.run(["verify", "3"]).exits(0);
    home.run(["keys", "succession"]).exits(2).complains("no older version").complains("export-public");
}

#[test]
fn minisign_signatures_of_a_revoked_version_are_refused_too() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a", "--format", "minisign"]).exits(0);
    home.run(["keys", "rotate"]).exits(0);
    home.run(["verify", "a", "--format", "minisign"]).exits(0);
    home.run(["keys", "revoke", "default", "1"]).exits(0);
    home.run(["verify", "a", "--format", "minisign"]).exits(1).says("which was revoked");
}

#[test]
fn minisign_signatures_follow_too() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "export-public", "-o", "old"]).exits(0);
    home.run(["keys", "rotate"]).exits(0);
    home.run(["keys", "succession", "-o", "chain"]).exits(0);
    home.run(["sign", "a", "--format", "minisign"]).exits(0);
    let args = ["a", "--format", "minisign", "-p", "old"];
    verify(&home, &args).exits(1).says("wrong key");
    verify(&home, &[&args[..], &["--succession", "chain"]].concat()).exits(0);
}

#[test]
fn several_keys_are_trusted_from_one_file_and_by_several_flags() {
    let home = Home::new();
    rotated(&home, 2);
    let all = ["1", "2", "3", "--quiet"];
    verify(&home, &[&all[..], &["-p", "1.pub", "-p", "2.pub"]].concat())
        .exits(1)
        .says("3: wrong key")
        .says("and none of the 2 given keys matches");
    verify(&home, &[&all[..], &["-p", "1.pub", "-p", "2.pub", "-p", "3.pub"]].concat()).exits(0);

    // One of another key in each form, and then ours.
    let other = Home::new();
    other.run(["keystore", "init"]).exits(0);
    let mut list = Vec::new();
    for format in ["bulla", "minisign", "pem", "openssh"] {
        list.extend(other.run(["keys", "export-public", "--format", format]).exits(0).output.stdout);
        list.extend(b"\n");
    }
    let bare = String::from_utf8(home.read("1.pub")).unwrap().lines().nth(1).unwrap().to_owned();
    list.extend(format!("{bare}\n").bytes());
    list.extend(home.read("2.pub"));
    list.extend(home.run(["keys", "export-public", "--format", "pem"]).exits(0).output.stdout);
    home.write("list", &list);
    verify(&home, &[&all[..], &["-p", "list"]].concat()).exits(0);
    home.write("list", [&list[..], b"not a key\n"].concat());
    verify(&home, &["1", "-p", "list"]).exits(2).complains("list: ");
    // Where one key is wanted, one of several is not guessed.
    home.write("list", [home.read("1.pub"), home.read("2.pub")].concat());
    home.run(["log", "verify", "-p", "list"]).exits(2);
    // A file of the real minisign is still one key.
    let generate = ["-GW", "-p", "m.pub", "-s", "m.key"];
    Done::of(home.program(minisign()).args(generate)).exits(0);
    verify(&home, &["1", "-p", "m.pub"]).exits(1).says("1: wrong key");
    fs::remove_file(home.path("m.key")).unwrap();
}
