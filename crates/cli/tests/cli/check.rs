//! `bulla check` reads back what `bulla sum` and b3sum print.

use crate::support::{Done, Home, b3sum};
use std::fs;

fn hash(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

#[test]
fn sums_of_both_forms_and_of_odd_names_check() {
    let home = Home::new();
    let names = ["plain", "two  words", "new\nline", "back\\slash", "carriage\rreturn", "x) = y"];
    for name in names {
        home.write(name, name);
    }
    for flags in [&[][..], &["--tag"]] {
        let sums = home.run(["sum"].iter().chain(flags).chain(&names)).exits(0);
        home.write("SUMS", &sums.output.stdout);
        let done = home.run(["check", "SUMS"]).exits(0);
        let expected = "plain: OK\ntwo  words: OK\n\\new\\nline: OK\n\\back\\\\slash: OK\n\\carriage\\rreturn: OK\nx) = y: OK\n";
        assert_eq!(done.stdout, expected);
        assert_eq!(
            Done::with_input(home.command().arg("check"), &sums.output.stdout).exits(0).stdout,
            expected
        );
        assert_eq!(home.run(["sum", "-c", "SUMS"]).exits(0).stdout, expected);
        assert_eq!(home.run(["check", "--quiet", "SUMS"]).exits(0).stdout, "");
    }
}

#[test]
fn standard_input_has_the_name_that_other_programs_give_it() {
    let home = Home::new();
    let run = |args: &[&str], input: &[u8]| Done::with_input(home.command().args(args), input);
    for (flags, list) in [
        (&["check"][..], format!("{}  -\n", hash(b"content"))),
        (&["sum", "--check"], run(&["sum"], b"content").exits(0).stdout),
        (&["check"], run(&["sum", "--tag", "-a", "sha256"], b"content").exits(0).stdout),
        (&["check", "-a", "sha512"], run(&["sum", "-a", "sha512"], b"content").exits(0).stdout),
    ] {
        home.write("list", list);
        let args = [flags, &["list"]].concat();
        assert_eq!(run(&args, b"content").exits(0).stdout, "-: OK\n", "{flags:?}");
        assert_eq!(run(&args, b"another").exits(1).stdout, "-: FAILED\n", "{flags:?}");
    }
    // It is read once, so nothing is left for a second function: not even what has no bytes.
    let nothing = run(&["sum", "-a", "sha256"], b"").exits(0).stdout;
    home.write("list", &nothing);
    run(&["check", "list"], b"content").exits(1).says("-: FAILED\n").complains("--algorithm");
    // Nor can it be the list, too.
    run(&["check"], nothing.as_bytes()).exits(1).says("-: FAILED (No such file");
}

#[test]
fn what_does_not_match_is_named_as_b3sum_names_it() {
    let home = Home::new();
    home.write("good", "good");
    home.write("bad", "changed");
    fs::create_dir(home.path("folder")).unwrap();
    let good = hash(b"good");
    let lines = [
        format!("{good}  good"),
        format!("{good}  bad"),
        format!("{good}  missing"),
        format!("{good}  folder"),
        format!("{}  good", good.to_uppercase()),
        format!("{good} good"),
        format!("{}  good", &good[1..]),
        format!("\\{good}  go\\od"),
        format!("{good}  \u{fffd}"),
        format!("{good}  "),
        String::new(),
        format!("BLAKE3 (good) = {good}"),
    ];
    home.write("SUMS", lines.join("\n"));
    home.write("CRLF", lines.join("\r\n"));
    for list in ["SUMS", "CRLF"] {
        for flags in [&["--check"][..], &["--check", "--quiet"]] {
            let theirs = Done::of(home.program(b3sum()).args(flags).arg(list));
            let ours = home.run(["sum"].iter().chain(flags).chain(&[list])).exits(1);
            assert_eq!(ours.stdout, theirs.stdout);
            assert_eq!(ours.code, theirs.code);
            ours.complains("WARNING: 7 lines are improperly formatted")
                .complains("WARNING: 2 listed files could not be read")
                .complains("WARNING: 1 computed checksum did NOT match")
                .complains("SUMS: line 5: ".replace("SUMS", list).as_str());
        }
    }
}

#[test]
fn one_mismatch_is_singular() {
    let home = Home::new();
    home.write("a", "a");
    home.write("SUMS", format!("{}  a\n", hash(b"b")));
    home.run(["check", "SUMS"])
        .exits(1)
        .says("a: FAILED\n")
        .complains("WARNING: 1 computed checksum did NOT match");
    home.write("SUMS", format!("{}  missing\n", hash(b"b")));
    let done = home.run(["check", "SUMS"]).exits(1).complains("WARNING: 1 listed file could not be read");
    assert!(!done.stderr.contains("did NOT match"), "{}", done.stderr);
}

#[test]
fn a_list_of_another_program_is_named() {
    let home = Home::new();
    home.write("a", "a");
    let marked = format!("\u{feff}{}  a\n", hash(b"a"));
    for (list, why) in [
        ("0cc175b9c0f1b6a831c399e269772661  a\n", "MD5 is not supported"),
        ("MD5 (a) = 0cc175b9c0f1b6a831c399e269772661\n", "MD5 is not supported"),
        ("86f7e437faa5a7fce15d1ddcb9eaeaea377667b8  a\n", "SHA-1 is not supported"),
        ("; made by an SFV program\na e8b7be43\n", "CRC-32, which is not supported"),
        (&marked, "byte order mark"),
    ] {
        home.write("SUMS", list);
        home.run(["check", "SUMS"]).exits(1).complains(why);
    }
}

#[test]
fn a_list_that_cannot_be_read_or_is_empty_is_trouble_and_a_mismatch_wins() {
    let home = Home::new();
    home.write("a", "a");
    home.write("empty", "");
    home.write("good", format!("{}  a\n", hash(b"a")));
    home.write("bad", format!("{}  a\n", hash(b"b")));
    home.run(["check", "missing", "good"]).exits(2).says("a: OK").complains("missing: cannot read");
    home.run(["check", "empty"]).exits(2).complains("nothing was checked");
    home.run(["check", "missing", "bad"]).exits(1);
}

#[test]
fn a_list_that_is_no_text_is_malformed_and_read_in_bounded_memory() {
    let home = Home::new();
    home.write("a", "a");
    let mut list = vec![b'x'; 3 << 20];
    list.extend(b"\n\xff\xfe  a\n");
    list.extend(format!("{}  a\n", hash(b"a")).bytes());
    home.write("list", list);
    home.run(["check", "list"])
        .exits(1)
        .says("a: OK")
        .complains("line 1: ")
        .complains("line 2: the line is not UTF-8");
}

#[test]
fn json_has_one_object_a_line() {
    let home = Home::new();
    home.write("a", "a");
    home.write("SUMS", format!("{0}  a\n{1}  a\n{0}  missing\nnonsense\n", hash(b"a"), hash(b"b")));
    let lines = home.run(["check", "--json", "SUMS"]).exits(1).json();
    let statuses: Vec<_> = lines.iter().map(|line| line["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["ok", "failed", "unreadable", "malformed"]);
    assert_eq!(lines[2]["error"]["code"], "not_found");
    assert_eq!((lines[3]["path"].as_str(), lines[3]["line"].as_u64()), (Some("SUMS"), Some(4)));
}

#[test]
fn checksums_from_further_on_are_checked_with_the_same_seek() {
    let home = Home::new();
    home.write("a", "a");
    let sums = home.run(["sum", "--seek", "70", "a"]).exits(0).stdout;
    home.write("SUMS", sums);
    home.run(["check", "--seek", "70", "SUMS"]).exits(0).says("a: OK");
    home.run(["check", "SUMS"]).exits(1).says("a: FAILED");
    home.run(["sum", "--check", "--seek", "70", "SUMS"]).exits(0).says("a: OK");
}

#[test]
fn a_list_is_checked_if_its_signature_of_any_format_verifies() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "models", "--algorithm", "ecdsa-p256"]).exits(0);
    home.write("a", "a");
    let sums = home.run(["sum", "a"]).exits(0).stdout;
    // `signify.rs` and `attested.rs` have the others.
    for format in ["bulla", "minisign", "ssh", "sigstore", "jws"] {
        home.write("SUMS", &sums);
        home.run(["sign", "SUMS", "--format", format, "--output", format]).exits(0);
        let check = ["check", "SUMS", "--signature", format];
        home.run(check).exits(0).says("SUMS: OK").says("a: OK");
        home.write("SUMS", format!("{sums}\n"));
        let done = home.run(check).exits(1).says("SUMS: changed");
        assert!(!done.stdout.contains("a: OK"), "{format}: {}", done.stdout);
    }
    home.write("SUMS", &sums);
    home.run(["sign", "SUMS", "--format", "oms", "--key", "models", "--output", "oms"]).exits(0);
    home.run(["check", "SUMS", "--signature", "oms"]).exits(1).says("it signs a model, not one file");
}
