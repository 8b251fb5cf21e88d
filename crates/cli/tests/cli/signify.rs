//! `--format signify`, with the real signify on the other side, and lists of checksums that are
//! signed and checked in one step.

use crate::support::{Done, Home, content, signify};

/// Makes a key of signify: `their.pub` and `their.sec`.
fn their_key(home: &Home) {
    let generate = ["-G", "-n", "-p", "their.pub", "-s", "their.sec"];
    Done::of(home.program(signify()).args(generate)).exits(0);
}

/// Runs the real signify.
fn them(home: &Home, args: &[&str]) -> Done {
    Done::of(home.program(signify()).args(args))
}

#[test]
fn signify_verifies_what_bulla_signs() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "export-public", "--format", "signify", "-o", "ours.pub"]).exits(0);
    let verify = ["-V", "-p", "ours.pub", "-m", "file", "-x", "file.sig"];
    for (index, size) in [0, 1, 100_000].into_iter().enumerate() {
        home.write("file", content(index as u64, size));
        home.run(["sign", "file", "--format", "signify"]).exits(0);
        them(&home, &verify).exits(0).says("Signature Verified");
        home.run(["verify", "file"]).exits(0).says("file: OK (signify signature by the key ");
        home.run(["verify", "file", "-p", "ours.pub"]).exits(0);
    }
    let signature = home.read("file.sig");
    let second_line = signature.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for index in second_line..signature.len() - 1 {
        let mut damaged = signature.clone();
        damaged[index] = if damaged[index] == b'A' { b'B' } else { b'A' };
        home.write("file.sig", &damaged);
        // The last character has bits that belong to no byte.
        assert_ne!(them(&home, &verify).code, Some(0), "byte {index}");
        home.run(["verify", "file", "-p", "ours.pub"]).exits(1);
    }
    home.write("file.sig", &signature);
    home.write("file", "changed");
    them(&home, &verify).exits(1);
    home.run(["verify", "file"]).exits(1).says("file: changed");
    their_key(&home);
    them(&home, &["-V", "-p", "their.pub", "-m", "file", "-x", "file.sig"]).exits(1);
    home.run(["verify", "file", "-p", "their.pub"]).exits(1).says("file: wrong key");
}

#[test]
fn bulla_verifies_what_signify_signs() {
    let home = Home::new();
    home.write("file", content(1, 200_000));
    their_key(&home);
    for embed in [&[][..], &["-e"]] {
        let sign = ["-S", "-s", "their.sec", "-m", "file", "-x", "file.sig"];
        them(&home, &[&sign[..], embed].concat()).exits(0);
        let verify = ["verify", "file", "-p", "their.pub"];
        home.run(verify).exits(0).says("file: OK (signify signature by the key ");
        home.write("file", content(2, 200_000));
        home.run(verify).exits(1).says("file: changed");
        home.write("file", content(1, 200_000));
    }
    home.run(["keystore", "init"]).exits(0);
    home.run(["verify", "file"]).exits(1).says("file: unknown key");
    home.run(["keys", "export-public", "-o", "ours.pub"]).exits(0);
    home.run(["verify", "file", "-p", "ours.pub"]).exits(1).says("file: wrong key");
    them(&home, &["-S", "-s", "their.sec", "-m", "file", "-x", "file.sig"]).exits(0);
    let signature = String::from_utf8(home.read("file.sig")).unwrap();
    for len in (0..signature.len() - 1).step_by(7) {
        home.write("file.sig", &signature[..len]);
        home.run(["verify", "file", "-p", "their.pub"]).exits(1).says("malformed signature");
    }
}

#[test]
fn a_file_that_begins_like_a_message_of_another_format_is_not_signed_whole() {
    let home = Home::new();
    for begin in ["SSHSIG", "DSSEv1 ", "bulla signature\0"] {
        home.write("file", format!("{begin}..."));
        home.run(["sign", "file", "--format", "signify"]).exits(2);
        assert_eq!(home.names(), ["file"]);
    }
}

#[test]
fn a_file_that_does_not_fit_into_memory_is_refused_before_it_is_read() {
    let home = Home::new();
    std::fs::File::create(home.path("sparse")).unwrap().set_len((1 << 30) + 1).unwrap();
    let sign = ["sign", "sparse", "--format", "signify"];
    home.run(sign).exits(2).complains("at most 1 GiB").complains("hint: sign a list of checksums");
    home.write("small", "small");
    their_key(&home);
    them(&home, &["-S", "-s", "their.sec", "-m", "small", "-x", "sparse.sig"]).exits(0);
    home.run(["verify", "sparse", "-p", "their.pub"]).exits(2).complains("up to 1 GiB");
}

#[test]
fn lists_of_signify_go_both_ways() {
    let home = Home::new();
    home.write("one", "one");
    home.write("two", "two");
    let sums = home.run(["sum", "--algorithm", "sha256", "--tag", "one", "two"]).exits(0).stdout;
    assert!(sums.starts_with("SHA256 (one) = "), "{sums}");
    home.write("SHA256", sums);
    home.run(["sign", "--format", "signify", "--embed", "SHA256", "--output", "SHA256.sig"]).exits(0);
    home.run(["keys", "export-public", "--format", "signify", "-o", "ours.pub"]).exits(0);
    them(&home, &["-C", "-p", "ours.pub", "-x", "SHA256.sig"]).exits(0).says("one: OK");
    home.run(["check", "--signature", "SHA256.sig"]).exits(0).says("SHA256.sig: OK (signify").says("two: OK");

    their_key(&home);
    them(&home, &["-S", "-e", "-s", "their.sec", "-m", "SHA256", "-x", "SHA256.sig"]).exits(0);
    let check = ["check", "--signature", "SHA256.sig", "-p", "their.pub"];
    home.run(check).exits(0).says("one: OK");
    home.write("two", "three");
    them(&home, &["-C", "-p", "their.pub", "-x", "SHA256.sig"]).exits(1);
    home.run(check).exits(1).says("two: FAILED");
    home.write("two", "two");
    // A list that nobody signed is not looked at.
    let list = String::from_utf8(home.read("SHA256.sig")).unwrap();
    home.write("SHA256.sig", list.replace("(one)", "(two)"));
    them(&home, &["-C", "-p", "their.pub", "-x", "SHA256.sig"]).exits(1);
    let done = home.run(check).exits(1).says("SHA256.sig: changed");
    assert!(!done.stdout.contains("two: "), "{}", done.stdout);
}

#[test]
fn a_list_is_verified_and_checked_in_one_step_for_every_format() {
    let home = Home::new();
    home.write("one", "one");
    home.write("SUMS", home.run(["sum", "one"]).exits(0).stdout);
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "export-public", "-o", "ours.pub"]).exits(0);
    home.run(["keys", "create", "other"]).exits(0);
    home.run(["keys", "export-public", "other", "-o", "other.pub"]).exits(0);
    for format in ["bulla", "minisign", "ssh", "signify"] {
        home.run(["sign", "SUMS", "--format", format, "--output", "sig"]).exits(0);
        let check = ["check", "--signature", "sig"];
        home.run(check.iter().chain(&["SUMS"])).exits(0).says("SUMS: OK (").says("one: OK");
        let given = ["SUMS", "-p", "ours.pub", "--json"];
        let lines = home.run(check.iter().chain(&given)).exits(0).json();
        assert_eq!((&lines[0]["format"], lines.len()), (&format.into(), 2));
        let quiet = home.run(check.iter().chain(&["SUMS", "--quiet"])).exits(0);
        assert_eq!(quiet.stdout, "");
        let piped = Done::with_input(home.command().args(check), &home.read("SUMS")).exits(0);
        piped.says("one: OK");
        let wrong = home.run(check.iter().chain(&["SUMS", "-p", "other.pub"])).exits(1);
        assert!(!wrong.says("SUMS: wrong key").stdout.contains("one: "));
        home.write("more", [home.read("SUMS"), home.read("SUMS")].concat());
        let changed = home.run(check.iter().chain(&["more"])).exits(1);
        assert!(!changed.says("more: changed").stdout.contains("one: "));
        home.write("one", "two");
        home.run(check.iter().chain(&["SUMS"])).exits(1).says("SUMS: OK (").says("one: FAILED");
        home.write("one", "one");
        std::fs::remove_file(home.path("sig")).unwrap();
    }
    home.run(["check", "--signature", "missing", "SUMS"]).exits(2).complains("missing");
    home.run(["check", "--signature", "sig", "SUMS", "more"]).exits(2).complains("name one FILE");
    home.run(["check", "--signature", "sig", "--update", "SUMS"]).exits(2);
}
