//! `bulla sum --algorithm` prints what b2sum prints, and `bulla check` reads it.

use crate::support::{Done, Home, content};
use std::ffi::OsString;

/// Files of many sizes and with all the names that make trouble.
fn files(home: &Home) -> Vec<OsString> {
    let mut names: Vec<OsString> = [0, 1, 127, 128, 129, 4096, 100_000, 3 << 20]
        .iter()
        .map(|size| format!("{size}.bin").into())
        .collect();
    let odd =
        ["two  words", "new\nline", "back\\slash", "carriage\rreturn", "x) = y", "\u{e9}\u{1f511}", " ", "*"];
    names.extend(odd.iter().map(OsString::from));
    #[cfg(target_os = "linux")]
    names.push(std::os::unix::ffi::OsStringExt::from_vec(b"not\xffutf8".to_vec()));
    for name in &names {
        let size = name.to_str().and_then(|name| name.strip_suffix(".bin")?.parse().ok()).unwrap_or(7);
        home.write(name, content(size as u64, size));
    }
    names
}

#[test]
fn the_bytes_are_those_of_b2sum_and_check_against_either() {
    let home = Home::new();
    let names = files(&home);
    let flags: [(&[&str], &[&str]); 5] = [
        (&[], &[]),
        (&["--tag"], &["--tag"]),
        (&["--length", "256"], &["--length", "32"]),
        (&["-l", "8", "--tag"], &["-l", "1", "--tag"]),
        (&["-l", "504"], &["-l", "63"]),
    ];
    for (theirs, ours) in flags {
        let theirs = Done::of(home.program("b2sum").args(theirs).arg("--").args(&names)).exits(0);
        let sum = ["sum", "--algorithm", "blake2b"].map(OsString::from);
        let ours =
            home.run(sum.iter().chain(&ours.iter().map(OsString::from).collect::<Vec<_>>()).chain(&names));
        assert_eq!(ours.output.stdout, theirs.output.stdout);

        home.write("SUMS", &theirs.output.stdout);
        let checked = home.run(["check", "--algorithm", "blake2b", "SUMS"]).exits(0);
        assert_eq!(checked.stdout.matches(": OK\n").count(), names.len());
        let binary = Done::of(home.program("b2sum").arg("--binary").args(&names)).exits(0);
        home.write("BINARY", binary.output.stdout);
        home.run(["check", "--quiet", "BINARY"]).exits(0);
        Done::of(home.program("b2sum").args(["--check", "--quiet", "SUMS"])).exits(0);
    }
}

#[test]
fn lines_say_what_they_are_of() {
    let home = Home::new();
    home.write("a", "a");
    for algorithm in ["blake3", "blake2b", "blake2s", "blake2bp", "blake2sp"] {
        let tagged = home.run(["sum", "--tag", "--algorithm", algorithm, "a"]).exits(0);
        home.write("TAGGED", &tagged.stdout);
        assert_eq!(home.run(["check", "TAGGED"]).exits(0).stdout, "a: OK\n");
        let plain = home.run(["sum", "-a", algorithm, "a"]).exits(0);
        home.write("PLAIN", &plain.stdout);
        assert_eq!(home.run(["sum", "--check", "-a", algorithm, "PLAIN"]).exits(0).stdout, "a: OK\n");
    }
    // Without a word, 64 digits are of BLAKE3 and 128 of BLAKE2b.
    for (algorithm, exit) in [("blake3", 0), ("blake2b", 0), ("blake2s", 1), ("blake2bp", 1)] {
        home.write("PLAIN", home.run(["sum", "-a", algorithm, "a"]).stdout);
        home.run(["check", "PLAIN"]).exits(exit);
    }
}

#[test]
fn the_parallel_modes_and_blake2s_are_those_of_the_peers() {
    let home = Home::new();
    let data = content(3, 100_000);
    home.write("a", &data);
    let digests = [
        ("blake2s", blake2s_simd::blake2s(&data).to_hex().to_string()),
        ("blake2bp", blake2b_simd::blake2bp::blake2bp(&data).to_hex().to_string()),
        ("blake2sp", blake2s_simd::blake2sp::blake2sp(&data).to_hex().to_string()),
    ];
    for (algorithm, digest) in digests {
        let done = Done::with_input(home.command().args(["sum", "--algorithm", algorithm, "a", "-"]), &data)
            .exits(0);
        assert_eq!(done.stdout, format!("{digest}  a\n{digest}  -\n"));
    }
}

#[test]
fn a_file_that_differs_is_found() {
    let home = Home::new();
    home.write("a", "a");
    home.write("SUMS", home.run(["sum", "-a", "blake2b", "a"]).stdout);
    home.write("a", "b");
    assert_eq!(home.run(["check", "SUMS"]).exits(1).stdout, "a: FAILED\n");
}

#[test]
fn what_blake2_does_not_have_is_refused() {
    let home = Home::new();
    home.write("a", "a");
    for (flags, reason) in [
        (&["--length", "65"][..], "blake2b has 1 to 64 output bytes, not 65"),
        (&["--length", "0"], "blake2b has 1 to 64 output bytes, not 0"),
        (&["--seek", "1"], "work only with blake3, not with blake2b"),
        (&["--keyed"], "work only with blake3, not with blake2b"),
        (&["--derive-key", "context"], "work only with blake3, not with blake2b"),
    ] {
        home.run(["sum", "--algorithm", "blake2b", "a"].iter().chain(flags)).exits(2).complains(reason);
    }
    home.write("SUMS", format!("{}  a\n", "0".repeat(130)));
    home.run(["check", "-a", "blake2b", "SUMS"]).exits(1).complains("the checksum is too long");
    home.write("SUMS", "abc  a\n");
    home.run(["check", "-a", "blake2b", "SUMS"]).exits(1).complains("an even number of hexadecimal digits");
}

#[test]
fn json_names_the_function() {
    let home = Home::new();
    home.write("a", "a");
    let lines = home.run(["sum", "--json", "-a", "blake2s", "a"]).exits(0).stdout;
    let line: serde_json::Value = serde_json::from_str(&lines).expect("one JSON line");
    let digest = blake2s_simd::blake2s(b"a").to_hex();
    assert_eq!(line, serde_json::json!({"path": "a", "algorithm": "blake2s", "digest": digest.as_str()}));
}
