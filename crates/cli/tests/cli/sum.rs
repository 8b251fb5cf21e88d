//! `bulla sum` prints what b3sum prints.

use crate::support::{Done, Home, b3sum, content};
use std::ffi::OsString;
use std::fs;
use std::process::Stdio;

/// Files of many sizes and with all the names that make trouble.
fn files(home: &Home) -> Vec<OsString> {
    let sizes = [0, 1, 63, 64, 65, 1023, 1024, 1025, 16_384, 100_000, 2 << 20, (2 << 20) + 1, 5_000_001];
    let mut names: Vec<OsString> = sizes.iter().map(|size| format!("{size}.bin").into()).collect();
    for (size, name) in sizes.iter().zip(&names) {
        home.write(name, content(*size as u64, *size));
    }
    let odd =
        ["two  words", "new\nline", "back\\slash", "carriage\rreturn", "x) = y", "\u{e9}\u{1f511}", " "];
    names.extend(odd.iter().map(OsString::from));
    #[cfg(target_os = "linux")]
    names.push(std::os::unix::ffi::OsStringExt::from_vec(b"not\xffutf8".to_vec()));
    for name in &names[sizes.len()..] {
        home.write(name, name.as_encoded_bytes());
    }
    names
}

#[test]
fn the_lines_are_those_of_the_official_crate() {
    let home = Home::new();
    let names = files(&home);
    let expected: String = names
        .iter()
        .map(|name| {
            let text = name.to_string_lossy();
            let escaped = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
            let mark = if escaped == text { "" } else { "\\" };
            format!("{mark}{}  {escaped}\n", blake3::hash(&home.read(name)).to_hex())
        })
        .collect();
    let done = home.run([OsString::from("sum")].iter().chain(&names)).exits(0);
    assert_eq!(done.stdout, expected);
}

#[test]
fn the_bytes_are_those_of_b3sum_with_every_flag() {
    let home = Home::new();
    let names = files(&home);
    let key = content(1, 32);
    let flags: [&[&str]; 12] = [
        &[],
        &["--length", "1000"],
        &["-l", "0"],
        &["--seek", "70", "--length", "5000"],
        &["--seek", "18446744073709551000", "-l", "10"],
        &["--keyed"],
        &["--derive-key", "bulla 2026-01-01 a context"],
        &["--no-names"],
        &["--tag"],
        &["--no-mmap"],
        &["--num-threads", "1"],
        &["--num-threads", "3", "--tag"],
    ];
    for flags in flags {
        let theirs = Done::with_input(home.program(b3sum()).args(flags).arg("--").args(&names), &key);
        let ours = Done::with_input(home.command().arg("sum").args(flags).arg("--").args(&names), &key);
        assert_eq!(ours.output.stdout, theirs.output.stdout, "{flags:?}");
        assert_eq!(ours.code, theirs.code, "{flags:?}");
    }
    let theirs = Done::of(home.program(b3sum()).args(["--raw", "-l", "9999", "100000.bin"]));
    let ours = home.run(["sum", "--raw", "-l", "9999", "100000.bin"]);
    assert_eq!(ours.output.stdout, theirs.output.stdout);
}

#[test]
fn standard_input_is_read_for_a_dash_and_for_no_file() {
    let home = Home::new();
    let hash = blake3::hash(b"abc").to_hex();
    for args in [&["sum"][..], &["sum", "-"]] {
        let done = Done::with_input(home.command().args(args), b"abc").exits(0);
        assert_eq!(done.stdout, format!("{hash}  -\n"));
    }
}

#[test]
fn a_file_that_fails_is_reported_and_the_rest_goes_on() {
    let home = Home::new();
    home.write("a", "a");
    fs::create_dir(home.path("folder")).unwrap();
    let done = home.run(["sum", "missing", "folder", "a"]).exits(1);
    assert_eq!(done.stdout, format!("{}  a\n", blake3::hash(b"a").to_hex()));
    done.complains("bulla: missing: cannot read: No such file")
        .complains("bulla: folder: cannot read: Is a directory");
}

#[test]
fn many_files_keep_their_order() {
    let home = Home::new();
    let names: Vec<String> = (0..6000).map(|index| format!("{index}")).collect();
    // Here and there one that all threads read together.
    let size = |index: u64| if index.is_multiple_of(1999) { 3 << 20 } else { (index % 3000) as usize };
    for (index, name) in (0..).zip(&names) {
        home.write(name, content(index, size(index)));
    }
    let expected: String = (0..)
        .zip(&names)
        .map(|(index, name)| format!("{}  {name}\n", blake3::hash(&content(index, size(index))).to_hex()))
        .collect();
    let done = home.run(["sum"].into_iter().chain(names.iter().map(String::as_str))).exits(0);
    assert_eq!(done.stdout, expected);
}

#[test]
fn a_keyed_sum_wants_exactly_32_bytes() {
    let home = Home::new();
    home.write("a", "a");
    for len in [0, 31, 33] {
        Done::with_input(home.command().args(["sum", "--keyed", "a"]), &content(0, len))
            .exits(1)
            .complains("expected a key of 32 bytes");
    }
    Done::with_input(home.command().args(["sum", "--keyed", "-"]), &content(0, 32))
        .exits(1)
        .complains("standard input contains the key");
}

#[test]
fn json_has_one_object_a_file() {
    let home = Home::new();
    home.write("a", "a");
    let lines = home.run(["sum", "--json", "a", "missing"]).exits(1).json();
    assert_eq!(lines[0], serde_json::json!({"path": "a", "digest": blake3::hash(b"a").to_hex().as_str()}));
    assert_eq!(lines[1]["path"], "missing");
    assert_eq!(lines[1]["error"]["code"], "not_found");
}

#[test]
fn a_sparse_file_of_5_gib_is_hashed() {
    let home = Home::new();
    fs::File::create(home.path("sparse")).unwrap().set_len(5 << 30).unwrap();
    // The digest of 5 GiB of zeros, by b3sum 1.8.7.
    home.run(["sum", "sparse"])
        .exits(0)
        .says("bcf27a182cee2a75728e2617d0ac5d90f902207f5332cf7190b345d96e9fd221  sparse");
}

#[cfg(unix)]
#[test]
fn a_file_that_shrinks_while_it_is_read_never_kills_the_process() {
    let home = Home::new();
    home.write("a", content(0, 1));
    let file = fs::File::options().write(true).open(home.path("a")).unwrap();
    for _ in 0..20 {
        file.set_len(64 << 20).unwrap();
        let mut sum = home.command();
        let mut child = sum.args(["sum", "a"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            file.set_len(1 << 20).unwrap();
            file.set_len(64 << 20).unwrap();
        }
        let code = child.wait().unwrap().code();
        assert!(code == Some(0) || code == Some(1), "{code:?}");
    }
}

#[test]
fn the_exit_status_is_that_of_b3sum() {
    let home = Home::new();
    home.write("a", "a");
    home.write("good", format!("{}  a\n", blake3::hash(b"a").to_hex()));
    home.write("noise", "noise\n");
    let key = content(1, 32);
    let cases: [(&[&str], &[u8]); 14] = [
        (&["--keyed", "a"], &key),
        (&["--keyed", "a"], &key[1..]),
        (&["--keyed", "a"], b""),
        (&["--keyed", "a"], &[7; 33]),
        (&["--keyed", "-"], &key),
        (&["--keyed"], &key),
        (&["--raw", "a", "a"], b""),
        (&["--check", "missing"], b""),
        (&["--check", "good", "missing"], b""),
        (&["--check", "good"], b""),
        (&["--check", "--seek", "3", "good"], b""),
        (&["--check", "noise"], b""),
        (&["--check", "--keyed", "good"], b""),
        (&["--length", "x", "a"], b""),
    ];
    for (args, input) in cases {
        let theirs = Done::with_input(home.program(b3sum()).args(args), input);
        let ours = Done::with_input(home.command().arg("sum").args(args), input);
        assert_eq!(ours.code, theirs.code, "{args:?}: {}", ours.stderr);
    }
    // The one difference that the help names: a list that was cut to nothing must not pass.
    home.write("empty", "");
    Done::of(home.program(b3sum()).args(["--check", "empty"])).exits(0);
    home.run(["sum", "--check", "empty"]).exits(1).complains("nothing was checked");
    let help = home.run(["sum", "--help"]).exits(0).stdout;
    let words: Vec<_> = help.split_whitespace().collect();
    assert!(words.join(" ").contains("With --check, an empty list is an error (b3sum: success)"), "{help}");
    home.run(["sum", "--version"]).exits(0).says(env!("CARGO_PKG_VERSION"));
}

/// Before it hashes a small file, the command starts no thread and reads no file of the system's
/// but what every program of Rust does.
#[cfg(target_os = "linux")]
#[test]
fn a_small_file_takes_fewer_system_calls_than_with_b3sum() {
    let home = Home::new();
    home.write("a", "a");
    let calls = |command: &mut std::process::Command| {
        let program = command.get_program().to_owned();
        let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let traced = ["-f", "-qq", "-o", "trace"].map(OsString::from);
        Done::of(home.program("strace").args(traced).arg(program).args(args)).exits(0);
        String::from_utf8(home.read("trace")).unwrap().lines().count()
    };
    let theirs = calls(home.program(b3sum()).arg("a"));
    let ours = calls(home.command().args(["sum", "a"]));
    assert!(ours <= theirs, "{ours} system calls, b3sum makes {theirs}");
}
