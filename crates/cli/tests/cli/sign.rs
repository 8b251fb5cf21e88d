//! `bulla sign` and `bulla verify` on single files.

use crate::support::{Done, Home, bulla, content};
use std::fs;
use std::process::Command;

#[test]
fn the_first_use_needs_nothing_and_a_flipped_byte_is_found() {
    let home = Home::new();
    home.write("README.md", "what bulla is\n");
    let done = on_a_terminal(&mut home.program("script"), &format!("{} sign README.md", bulla()));
    assert!(done.stdout.contains("created the keystore"), "{}", done.stdout);
    let line = &hinted_lines(&done)[0];
    assert_eq!(*line, format!("{bulla} verify README.md", bulla = bulla()));
    // The printed line works when it is pasted.
    Done::of(home.program("sh").args(["-c", line])).exits(0).says("README.md: OK");

    home.write("README.md", "What bulla is\n");
    home.run(["verify", "README.md"]).exits(1).says("README.md: changed");
    home.write("README.md", "what bulla is\n");
    home.run(["verify", "README.md"]).exits(0);
    let second = home.run(["sign", "README.md"]).exits(0);
    assert_eq!(second.stderr, "", "nothing is created, and no program is told what a person is");
}

/// Runs a command line on a terminal of its own, by the program `script` of util-linux.
pub(crate) fn on_a_terminal(script: &mut Command, line: &str) -> Done {
    Done::of(script.args(["-qec", line, "/dev/null"])).exits(0)
}

/// The command lines that `bulla sign` hints at on a terminal.
pub(crate) fn hinted_lines(done: &Done) -> Vec<String> {
    let hint = |line: &str| Some(line.split_once(" with: ")?.1.trim_end().to_owned());
    done.stdout.lines().filter_map(hint).collect()
}

#[test]
fn every_flipped_bit_of_a_signature_file_is_found() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "--comment", "a comment", "a"]).exits(0);
    home.run(["keys", "export-public", "-o", "key"]).exits(0);
    let signature = home.read("a.bulla");
    let (mut malformed, mut bad) = (0, 0);
    for index in 0..signature.len() {
        let mut edited = signature.clone();
        edited[index] ^= 1 << (index % 8);
        home.write("a.bulla", &edited);
        let done = home.run(["verify", "--public-key", "key", "a"]);
        match done.stdout.split(['(', ':']).nth(1).unwrap_or_default().trim() {
            "malformed signature" => malformed += 1,
            "bad signature" => bad += 1,
            // A later version of the format is not known to be wrong.
            _ if done.stderr.contains("is of format v") => continue,
            other => panic!("byte {index}: {other:?} {}", done.stderr),
        }
        assert_eq!(done.code, Some(1), "byte {index}");
    }
    assert!(malformed > 0 && bad > 0, "{malformed} malformed, {bad} bad");
}

#[test]
fn a_truncated_signature_file_is_malformed() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    let signature = home.read("a.bulla");
    for len in 0..signature.len() {
        home.write("a.bulla", &signature[..len]);
        home.run(["verify", "a"]).exits(1).says("a: malformed signature");
    }
}

#[test]
fn the_signature_of_another_file_does_not_verify() {
    let home = Home::new();
    home.write("a", "a");
    home.write("b", "b");
    home.write("long", "longer");
    home.run(["sign", "a"]).exits(0);
    home.run(["verify", "b", "--signature", "a.bulla"]).exits(1).says("b: changed (same size");
    home.run(["verify", "long", "-s", "a.bulla"])
        .exits(1)
        .says("long: changed (it has 6 bytes now, and had 1 when it was signed)");
}

#[test]
fn a_signature_covers_the_name_of_the_file() {
    let home = Home::new();
    home.write("app-1.0", "content");
    home.run(["sign", "app-1.0"]).exits(0);
    let found = home.run(["verify", "app-1.0", "--json"]).exits(0).json();
    assert_eq!(found[0]["name"], "app-1.0");
    home.write("app-2.0", "content");
    let verify = ["verify", "app-2.0", "--signature", "app-1.0.bulla"];
    home.run(verify)
        .exits(1)
        .says("app-2.0: wrong name (it was signed under the name app-1.0; if you renamed");
    home.run(verify.iter().chain(&["--any-name"])).exits(0).says("signed name: app-1.0");
    // Standard input has no name, and so has a signature that leaves it out.
    let input = ["verify", "-", "--signature", "app-1.0.bulla"];
    Done::with_input(home.command().args(input), b"content").exits(0).says("signed name: app-1.0");
    home.run(["sign", "app-1.0", "--no-name"]).exits(0);
    assert!(home.read("app-1.0.bulla").starts_with(b"bulla signature v1\n"));
    home.run(verify).exits(0);
    // A list whose signature is verified first.
    home.write("SUMS", home.run(["sum", "app-1.0"]).exits(0).stdout);
    home.run(["sign", "SUMS"]).exits(0);
    home.run(["check", "SUMS", "--signature", "SUMS.bulla"]).exits(0);
    fs::copy(home.path("SUMS"), home.path("OLD")).unwrap();
    let check = ["check", "OLD", "--signature", "SUMS.bulla"];
    home.run(check).exits(1).says("wrong name (it was signed under the name SUMS");
    home.run(check.iter().chain(&["--any-name"])).exits(0);
    home.run(["sign", "app-1.0", "--no-name", "--format", "ssh"]).exits(2).complains("--no-name works only");
}

#[test]
fn a_missing_file_is_missing_and_a_missing_signature_is_trouble() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    home.run(["verify", "a"]).exits(2).complains("a: there is no signature file a.bulla").complains("hint: ");
    home.run(["sign", "a"]).exits(0);
    fs::remove_file(home.path("a")).unwrap();
    home.run(["verify", "a"]).exits(1).says("a: missing");
    fs::create_dir(home.path("a")).unwrap();
    home.run(["verify", "a"]).exits(1).says("a: changed (it was a file, now it is a folder)");
}

#[test]
fn a_failure_wins_over_trouble_and_all_are_counted() {
    let home = Home::new();
    for name in ["good", "changed", "unsigned"] {
        home.write(name, name);
    }
    home.run(["sign", "good", "changed"]).exits(0);
    home.write("changed", "CHANGED");
    home.run(["verify", "good", "changed", "unsigned"]).exits(1).says("1 verified, 1 failed, 1 not checked");
    home.run(["verify", "good", "unsigned"]).exits(2);
    let quiet = home.run(["verify", "--quiet", "good"]).exits(0);
    assert_eq!(quiet.stdout, "");
}

#[test]
fn a_verifier_needs_the_public_key_only() {
    let signer = Home::new();
    signer.write("a", "a");
    signer.run(["sign", "a"]).exits(0);
    let key = signer.run(["keys", "export-public"]).exits(0).stdout;
    let base64 = key.lines().nth(1).unwrap();

    let verifier = Home::new();
    verifier.write("a", "a");
    verifier.write("a.bulla", signer.read("a.bulla"));
    verifier.write("key", &key);
    verifier.run(["verify", "a", "--public-key", "key"]).exits(0).says("a: OK");
    verifier.run(["verify", "a", "--public-key", base64]).exits(0).says("a: OK");
    verifier.run(["verify", "a"]).exits(2).complains("there is no keystore").complains("--public-key");
    assert!(!verifier.keystore().exists(), "verifying must not make a keystore");

    verifier.write("b", "b");
    verifier.run(["sign", "b"]).exits(0);
    verifier.run(["verify", "a"]).exits(1).says("a: unknown key");
    let other = verifier.run(["keys", "export-public"]).exits(0).stdout;
    verifier.write("other", &other);
    verifier.run(["verify", "a", "-p", "other"]).exits(1).says("a: wrong key");
    verifier
        .run(["verify", "a", "-p", "nonsense"])
        .exits(2)
        .complains("nonsense: is neither a file nor a public key");
    // A private key that somebody gives by mistake is not repeated.
    for (secret, part) in [
        (
            format!("untrusted comment: minisign encrypted secret key\nRWQAAEIy{}\n", "c2Vj".repeat(51)),
            "c2Vj",
        ),
        (format!("RWQAAEIy{}", "c2Vj".repeat(51)), "c2Vj"),
        (r#"{"kty":"OKP","crv":"Ed25519","d":"c2Vj"}"#.to_owned(), "c2Vj"),
    ] {
        let done = verifier.run(["verify", "a", "-p", &secret]).exits(2);
        assert!(!done.stderr.contains(part), "{}", done.stderr);
    }
    verifier.run(["verify", "a", "-p", "a"]).exits(2).complains("a: it is neither a public key");
}

#[test]
fn a_version_that_the_keystore_does_not_have_is_unknown() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["keystore", "init"]).exits(0);
    let copy = home.path("copy");
    Done::of(Command::new("cp").arg("-rp").arg(home.keystore()).arg(&copy)).exits(0);
    home.run(["keys", "rotate"]).exits(0);
    home.run(["sign", "a"]).exits(0);
    home.run(["verify", "a"]).exits(0);
    home.run(["verify", "a", "--keystore", "copy"]).exits(1).says("a: unknown version");
}

#[test]
fn a_signature_that_names_a_trusted_key_and_carries_another_is_by_the_wrong_key() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    let id = home
        .run(["keys", "export-public"])
        .stdout
        .lines()
        .next()
        .unwrap()
        .rsplit_once(' ')
        .unwrap()
        .1
        .to_owned();
    home.run(["verify", "a", "-p", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="])
        .exits(2)
        .complains("small order");
    let stranger = Home::new();
    let key = stranger.run(["keystore", "init"]).exits(0);
    assert!(key.stdout.is_empty());
    let public = stranger.run(["keys", "export-public"]).stdout;
    let renamed = format!("bulla public key v1: {id}\n{}\n", public.lines().nth(1).unwrap());
    home.write("renamed", renamed);
    home.run(["verify", "a", "-p", "renamed"]).exits(1).says("a: wrong key");
}

#[test]
fn a_key_that_comes_with_a_name_signs_only_under_that_name() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    let public = home.run(["keys", "export-public"]).stdout;
    home.write("key", &public);
    home.run(["verify", "a", "-p", "key"]).exits(0);
    // The same key, said to be version 2 of the other's key.
    let (name, _) = public.lines().next().unwrap().rsplit_once('/').unwrap();
    let other = format!("{name}/v2\n{}\n", public.lines().nth(1).unwrap());
    home.write("other", &other);
    home.run(["verify", "a", "-p", "other"])
        .exits(1)
        .says("a: wrong key (it is signed as local/files/ed25519/");
}

#[test]
fn an_older_signature_is_replaced_and_anything_else_is_kept() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    home.write("a", "b");
    home.run(["sign", "a"]).exits(0);
    home.run(["verify", "a"]).exits(0);
    home.write("a.bulla", "my notes");
    home.run(["sign", "a"])
        .exits(2)
        .complains("a.bulla: is not a signature file; bulla does not overwrite it")
        .complains("hint: ");
    assert_eq!(home.read("a.bulla"), b"my notes");
    fs::remove_file(home.path("a.bulla")).unwrap();
    fs::create_dir(home.path("a.bulla")).unwrap();
    home.run(["sign", "a"]).exits(2).complains("a.bulla: is a folder");
    assert_eq!(home.names(), ["a", "a.bulla"]);
}

#[test]
fn standard_input_is_signed_and_verified() {
    let home = Home::new();
    let input = content(1, 300_000);
    let done = Done::with_input(home.command().args(["sign", "-"]), &input).exits(0);
    assert!(done.stdout.starts_with("bulla signature v1\n"), "{}", done.stdout);
    home.write("sig", &done.stdout);
    let verify = ["verify", "-", "--signature", "sig"];
    Done::with_input(home.command().args(verify), &input).exits(0).says("-: OK");
    Done::with_input(home.command().args(verify), &input[1..]).exits(1).says("-: changed");
    home.run(["verify", "-"]).exits(2).complains("--signature FILE");
    home.write("in", &input);
    let sign = format!("{} sign - --output out < in", bulla());
    let line = &hinted_lines(&on_a_terminal(&mut home.program("script"), &sign))[0];
    assert!(line.ends_with("verify --signature out -"), "{line}");
    fs::remove_file(home.path("in")).unwrap();
    Done::with_input(home.command().args(["verify", "-", "-s", "out"]), &input).exits(0);
    assert_eq!(home.names(), ["out", "sig"]);
}

#[test]
fn the_comment_is_signed_and_shown() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "--comment", "release 1.2", "a"]).exits(0);
    home.run(["verify", "a"]).exits(0).says("comment: release 1.2");
    let edited = String::from_utf8(home.read("a.bulla")).unwrap().replace("release 1.2", "release 1.3");
    home.write("a.bulla", edited);
    home.run(["verify", "a"]).exits(1).says("a: bad signature");
    home.run(["sign", "--comment", "two\nlines", "a"]).exits(2).complains("comment");
}

#[test]
fn the_line_that_verifies_names_what_is_needed_and_works_for_odd_names() {
    let home = Home::new();
    for name in ["two words", "it's", "new\nline", "$HOME"] {
        home.write(name, name);
        if !home.path("my keys").exists() {
            home.run(["keystore", "init", "--keystore", "my keys"]).exits(0);
        }
        let quoted = format!("'{}'", name.replace('\'', "'\\''"));
        let sign = format!("{} sign --keystore 'my keys' -- {quoted}", bulla());
        let done = on_a_terminal(&mut home.program("script"), &sign);
        let line = &hinted_lines(&done)[0];
        let verified = Done::of(home.program("bash").args(["-c", line])).exits(0);
        assert!(verified.stdout.contains(": OK"), "{line}: {}", verified.stdout);
    }
    home.write("-dash", "-dash");
    let done = on_a_terminal(&mut home.program("script"), &format!("{} sign -- -dash", bulla()));
    let line = &hinted_lines(&done)[0];
    Done::of(home.program("sh").args(["-c", line])).exits(0).says("-dash: OK");
}

#[test]
fn many_files_are_signed_at_once_and_one_that_fails_does_not_stop_the_rest() {
    let home = Home::new();
    let names: Vec<String> = (0..40).map(|index| format!("{index}")).collect();
    for (index, name) in (0..).zip(&names) {
        home.write(name, content(index, 1000));
    }
    let paths = || ["missing"].into_iter().chain(names.iter().map(String::as_str));
    home.run(["sign"].into_iter().chain(paths())).exits(2).complains("missing: cannot read");
    home.run(["verify"].into_iter().chain(names.iter().map(String::as_str)))
        .exits(0)
        .says("40 verified, 0 failed");
    assert!(!home.path("missing.bulla").exists());
}

#[test]
fn a_path_that_is_a_link_is_followed() {
    let home = Home::new();
    home.write("a", "a");
    std::os::unix::fs::symlink("a", home.path("link")).unwrap();
    home.run(["sign", "link"]).exits(0);
    assert_eq!(home.names(), ["a", "link", "link.bulla"]);
    home.run(["verify", "link"]).exits(0);
    home.write("a", "b");
    home.run(["verify", "link"]).exits(1).says("link: changed");
}

#[test]
fn json_says_what_was_signed_and_what_was_found() {
    let home = Home::new();
    home.write("a", "a");
    let signed = home.run(["sign", "--json", "--comment", "c", "a", "missing"]).exits(2).json();
    assert_eq!(signed[0]["path"], "a");
    assert_eq!(signed[0]["signature"], "a.bulla");
    assert_eq!(signed[0]["kind"], "file");
    assert_eq!(signed[0]["digest"], blake3::hash(b"a").to_hex().as_str());
    assert_eq!(signed[1]["error"]["code"], "not_found");
    let found = home.run(["verify", "--json", "a", "missing"]).exits(2).json();
    assert_eq!((found[0]["status"].as_str(), found[0]["comment"].as_str()), (Some("ok"), Some("c")));
    assert_eq!(found[0]["key"], signed[0]["key"]);
    assert_eq!(
        (found[1]["status"].as_str(), found[1]["error"]["code"].as_str()),
        (Some("unchecked"), Some("no_signature"))
    );
    home.write("a", "b");
    assert_eq!(home.run(["verify", "--json", "a"]).exits(1).json()[0]["status"], "changed");
}
