//! `bulla check` on lists of every program, hostile lists, audits and updates.

use crate::bad_input::stop_while_it_reads;
use crate::support::{Done, Home, Running, bulla, content, with_little_space};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

fn hash(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

#[test]
fn lists_of_many_programs_comments_and_both_line_ends_check() {
    let home = Home::new();
    home.write("a", "a");
    home.write("b c", "b");
    let tools: [(&str, &[&str]); 5] = [
        ("sha256sum", &[]),
        ("sha256sum", &["--tag"]),
        ("sha512sum", &["--binary"]),
        ("b2sum", &["--tag", "-l", "256"]),
        ("b2sum", &[]),
    ];
    for (program, flags) in tools {
        let list = Done::of(home.program(program).args(flags).args(["a", "b c"])).exits(0).stdout;
        let name = format!("{program}.txt");
        home.write(&name, format!("# made by {program}\n\n{list}   \n# end\n"));
        assert_eq!(home.run(["check", &name]).exits(0).stdout, "a: OK\nb c: OK\n", "{program} {flags:?}");
        home.write(&name, format!("# windows\r\n\r\n{}", list.replace('\n', "\r\n")));
        assert_eq!(home.run(["check", &name]).exits(0).stdout, "a: OK\nb c: OK\n", "{program} {flags:?}");
    }
    // The two forms of BSD, and upper case.
    let bsd = format!("BLAKE3 (a) = {}\n{} b c\n{}  a\n", hash(b"a"), hash(b"b"), hash(b"a").to_uppercase());
    home.write("bsd", bsd);
    assert_eq!(home.run(["check", "bsd"]).exits(0).stdout, "a: OK\nb c: OK\na: OK\n");
    // Ours in JSON, also with a name that is no text.
    use std::os::unix::ffi::OsStringExt as _;
    let odd = std::ffi::OsString::from_vec(b"not\xffutf8".to_vec());
    home.write(&odd, "odd");
    let args = [odd, "a".into(), "b c".into()];
    let sum = ["sum", "--json"].map(std::ffi::OsString::from);
    home.write("json", home.run(sum.iter().chain(&args)).exits(0).stdout);
    assert_eq!(home.run(["check", "json"]).exits(0).stdout, "not\\xffutf8: OK\na: OK\nb c: OK\n");
}

#[test]
fn a_comment_alone_is_no_checksum() {
    let home = Home::new();
    home.write("list", "# nothing\n\n");
    home.run(["check", "list"]).exits(2).complains("nothing was checked");
}

#[test]
fn hostile_lists_end_and_fail() {
    let home = Home::new();
    home.write("a", "a");
    Done::of(home.program("mkfifo").arg(home.path("fifo"))).exits(0);
    symlink("/dev/zero", home.path("endless")).unwrap();
    let good = hash(b"a");
    let lines = [
        format!("{good}  fifo"),
        format!("{good}  /dev/zero"),
        format!("{good}  endless"),
        format!("{good}  /dev/tty"),
        format!("{good}  ../work/a"),
        format!("{good}  a"),
        format!("{good}  a"),
        format!("{good}  {}", "x".repeat(100_000)),
        format!("{good}  a\0b"),
        format!("{good}  {}", "../".repeat(3000)),
    ];
    home.write("list", lines.join("\n"));
    let done = home.run(["check", "list"]).exits(1);
    for line in [
        "fifo: FAILED (is a fifo, not a file)",
        "/dev/zero: FAILED (is a character device, not a file)",
        "endless: FAILED (is a character device, not a file)",
        "../work/a: OK",
        "a: OK",
    ] {
        assert!(done.stdout.lines().any(|found| found == line), "{line} is not in\n{}", done.stdout);
    }
    assert_eq!(done.stdout.matches(": OK\n").count(), 3);
    done.complains("list: line 9: the name contains a null character");
}

#[test]
fn a_huge_list_needs_little_memory_and_names_its_last_line() {
    let home = Home::new();
    home.write("a", "a");
    let mut list = format!("{}  a\n", hash(b"a")).repeat(200_000);
    list.push_str(&format!("{}  a\n", hash(b"b")));
    home.write("list", list);
    let done = home.run(["check", "--quiet", "list"]).exits(1);
    assert_eq!(done.stdout, "a: FAILED\n");
    done.complains("200000 OK, 1 changed");
}

#[test]
fn status_prints_nothing_and_strict_and_warn_are_accepted() {
    let home = Home::new();
    home.write("a", "a");
    home.write("good", format!("{}  a\n", hash(b"a")));
    home.write("bad", format!("{}  a\nnonsense\n", hash(b"b")));
    for flags in [&["--status"][..], &["--status", "--strict", "--warn"]] {
        let done = home.run(["check", "good"].iter().chain(flags)).exits(0);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
        let done = home.run(["check", "bad"].iter().chain(flags)).exits(1);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
    }
    home.run(["check", "-w", "--strict", "bad"]).exits(1).says("a: FAILED").complains("bad: line 2");
}

#[test]
fn missing_files_can_be_ignored_unless_nothing_was_verified() {
    let home = Home::new();
    home.write("a", "a");
    let missing = format!("{}  missing\n", hash(b"x"));
    home.write("some", format!("{}  a\n{missing}", hash(b"a")));
    home.write("none", &missing);
    home.run(["check", "some"]).exits(1).complains("1 OK, 1 missing");
    let done = home.run(["check", "--ignore-missing", "some"]).exits(0);
    assert_eq!(done.stdout, "a: OK\n");
    home.run(["check", "--ignore-missing", "none"]).exits(1).complains("none: no file was verified");
    home.run(["check", "--ignore-missing", "some", "none"]).exits(1).complains("none: no file was verified");
}

/// A folder with a list of its files.
fn listed(home: &Home) {
    for (name, text) in [("a", "one"), ("b", "two"), ("sub/c", "three"), ("sub/d", "four")] {
        home.write(format!("tree/{name}"), text);
    }
    let sums = home.run(["sum", "-r", "tree"]).exits(0).stdout;
    home.write("SUMS", format!("# photos\n{sums}"));
}

#[test]
fn an_audit_finds_what_is_new_missing_moved_and_changed() {
    let home = Home::new();
    listed(&home);
    home.run(["check", "--compare", "tree", "SUMS"]).exits(0);
    home.write("tree/b", "changed");
    fs::rename(home.path("tree/sub/c"), home.path("tree/moved")).unwrap();
    fs::remove_file(home.path("tree/sub/d")).unwrap();
    home.write("tree/new", "new");
    let done = home.run(["check", "--quiet", "--compare", "./tree//", "SUMS"]).exits(1);
    let expected = "tree/b: FAILED\n\
        tree/sub/c: FAILED (No such file or directory (os error 2))\n\
        tree/sub/d: FAILED (No such file or directory (os error 2))\n\
        ./tree//moved: MOVED (from tree/sub/c)\n\
        ./tree//new: NEW\n";
    assert_eq!(done.stdout, expected);
    done.complains("1 OK, 1 changed, 2 missing, 1 moved, 1 new");
    let json = home.run(["check", "--json", "--compare", "tree", "SUMS"]).exits(1).json();
    let moved = json.iter().find(|line| line["status"] == "moved").expect("a moved file");
    assert_eq!((moved["path"].as_str(), moved["from"].as_str()), (Some("tree/moved"), Some("tree/sub/c")));
    // New files alone make an audit fail, and a check not.
    listed(&home);
    home.write("tree/extra", "extra");
    home.run(["check", "--quiet", "SUMS"]).exits(0);
    home.run(["check", "--quiet", "--compare", "tree", "SUMS"]).exits(1).says("tree/extra: NEW");
    let done = home.run(["check", "--compare", "missing", "SUMS"]).exits(2);
    assert_eq!(done.complains("missing: cannot read the folder: No such file").stdout, "");
}

#[test]
fn an_update_writes_what_changed_and_nothing_else() {
    let home = Home::new();
    listed(&home);
    home.chmod("SUMS", 0o640);
    let before = String::from_utf8(home.read("SUMS")).unwrap();
    home.run(["check", "--quiet", "--update", "--compare", "tree", "SUMS"]).exits(0);
    assert_eq!(home.read("SUMS"), before.as_bytes());
    home.write("tree/b", "changed");
    fs::remove_file(home.path("tree/sub/d")).unwrap();
    home.write("tree/new\nline", "new");
    let update = ["check", "--quiet", "--update", "--compare", "tree", "SUMS"];
    let done = home.run(update).exits(1);
    done.complains("SUMS: wrote 1 changed, 0 moved, 1 new, 0 removed")
        .complains("1 missing file keeps its line")
        .complains("--remove-missing");
    assert!(String::from_utf8(home.read("SUMS")).unwrap().contains("  tree/sub/d\n"));
    let done = home.run(update.iter().chain(&["--remove-missing"])).exits(0);
    done.complains("SUMS: wrote 0 changed, 0 moved, 0 new, 1 removed");
    let expected = before
        .lines()
        .filter(|line| !line.ends_with("tree/sub/d"))
        .map(|line| line.replace(&hash(b"two"), &hash(b"changed")) + "\n")
        .chain([format!("\\{}  tree/new\\nline\n", hash(b"new"))])
        .collect::<String>();
    assert_eq!(String::from_utf8(home.read("SUMS")).unwrap(), expected);
    assert_eq!(fs::metadata(home.path("SUMS")).unwrap().permissions().mode() & 0o777, 0o640);
    home.run(["check", "--compare", "tree", "SUMS"]).exits(0);
    assert_eq!(home.names(), ["SUMS", "tree"]);
}

#[test]
fn an_update_changes_the_digest_of_a_file_that_has_it_as_its_name_and_of_no_other_line() {
    let home = Home::new();
    let (name, changed) = (hash(b"one"), hash(b"two"));
    home.write(&name, "one");
    home.write("list", home.run(["sum", "--json", &name]).exits(0).stdout);
    home.write(&name, "two");
    home.run(["check", "--update", "list"]).exits(0);
    let expected = format!("{{\"path\":\"{name}\",\"digest\":\"{changed}\"}}\n");
    assert_eq!(String::from_utf8(home.read("list")).unwrap(), expected);

    // A comment that is longer than a line may be would count as two.
    home.write("a", "a");
    home.write("b", "changed");
    let list = format!("# {}\n{}  a\n{}  b\n", "x".repeat(3 << 20), hash(b"a"), hash(b"b"));
    home.write("list", &list);
    home.run(["check", "--algorithm", "blake3", "--update", "list"]).exits(2).complains("list: has a line");
    assert_eq!(home.read("list"), list.as_bytes());
}

#[test]
fn an_update_writes_no_list_that_changed_while_its_files_were_checked() {
    let home = Home::new();
    fs::File::create(home.path("long")).unwrap().set_len(1 << 30).unwrap();
    let long = home.run(["sum", "long"]).exits(0).stdout;
    home.write("a", "a");
    home.write("list", format!("{}  b\n{}  a\n{long}", hash(b"b"), hash(b"before")));
    let turned = format!("{}  a\n{}  b\n{long}", hash(b"before"), hash(b"b"));
    home.write("b", "b");
    let args = ["check", "--update", "list"];
    let child = Running::start(home.command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()));
    stop_while_it_reads(&child, &home.path("long"));
    home.write("list", &turned);
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    child.end().exits(2).complains("list: changed while its files were checked");
    assert_eq!(home.read("list"), turned.as_bytes());
}

#[test]
fn an_update_where_the_files_are_not_there_keeps_the_list() {
    let home = Home::new();
    listed(&home);
    let before = home.read("SUMS");
    fs::create_dir(home.path("elsewhere")).unwrap();
    fs::create_dir(home.path("mount")).unwrap();
    home.write("other/file", "other");
    for flags in [&[][..], &["--remove-missing"]] {
        let update = |audit: &[&'static str]| {
            let args = ["check", "--quiet", "--update", "../SUMS"].iter().chain(flags).chain(audit);
            Done::of(home.command().args(args).current_dir(home.path("elsewhere")))
        };
        update(&[]).exits(1).complains("../SUMS: none of its files exists; it stays as it is");
        update(&["--compare", "../other"]).exits(1).complains("none of its files exists");
        update(&["--compare", "../mount"]).exits(2).complains("../mount: is empty: the list stays as it is");
        update(&["--compare", "../gone"]).exits(2).complains("../gone: cannot read the folder");
        assert_eq!(home.read("SUMS"), before);
    }
    home.run(["check", "--remove-missing", "SUMS"]).exits(2).complains("--update");
    // Files that are all found elsewhere are not lost.
    fs::rename(home.path("tree"), home.path("new")).unwrap();
    let update = ["check", "--quiet", "--update", "--compare", "new", "SUMS"];
    home.run(update).exits(0).complains("wrote 0 changed, 4 moved, 0 new, 0 removed");
    home.run(["check", "--compare", "new", "SUMS"]).exits(0);
}

#[test]
fn the_digest_of_an_empty_folder_does_not_replace_that_of_a_full_one() {
    let home = Home::new();
    home.write("a", "a");
    home.write("mount/b", "b");
    let tree = home.run(["sum", "--tree", "mount"]).exits(0).stdout;
    let list = format!("{}  a\n{tree}", hash(b"a"));
    home.write("SUMS", &list);
    fs::remove_file(home.path("mount/b")).unwrap();
    let done = home.run(["check", "--update", "SUMS"]).exits(1);
    done.says("mount: FAILED (no file is in the folder)").complains("SUMS: mount has no files any more");
    assert_eq!(home.read("SUMS"), list.as_bytes());
    home.write("mount/b", "changed");
    home.run(["check", "--quiet", "--update", "SUMS"]).exits(0);
    home.run(["check", "SUMS"]).exits(0);
}

#[test]
fn a_list_of_sha_2_of_any_name_checks_and_is_updated_as_what_it_is() {
    let home = Home::new();
    for name in ["a", "b", "c"] {
        home.write(name, name);
    }
    home.write("large", content(1, 3 << 20));
    let names = ["a", "b", "c", "large"];
    let all = "a: OK\nb: OK\nc: OK\nlarge: OK\n";
    for algorithm in ["sha256", "sha512", "blake3", "blake2b"] {
        let sum =
            |names: &[&'static str]| home.run(["sum", "-a", algorithm].iter().chain(names)).exits(0).stdout;
        let list = sum(&names);
        // Also a name that tells another function.
        for name in ["x_checksums.txt", "SHA256SUMS", "sha512", "b3sums"] {
            home.write(name, &list);
            assert_eq!(home.run(["check", name]).exits(0).stdout, all, "{algorithm} {name}");
        }
        assert_eq!(Done::with_input(home.command().arg("check"), list.as_bytes()).exits(0).stdout, all);
        // What matches tells the function of what does not.
        home.write("b", "changed");
        home.write("new/d", "d");
        home.run(["check", "--quiet", "x_checksums.txt"]).exits(1).says("b: FAILED\n");
        home.run(["check", "--quiet", "--update", "--compare", "new", "x_checksums.txt"]).exits(0);
        let now = sum(&["a", "b", "c", "large", "new/d"]);
        assert_eq!(String::from_utf8(home.read("x_checksums.txt")).unwrap(), now, "{algorithm}");
        home.write("b", "b");
    }
}

#[test]
fn an_update_writes_nothing_under_a_guess() {
    let home = Home::new();
    home.write("a", "a");
    home.write("new/b", "b");
    let list = home.run(["sum", "-a", "sha256", "a"]).exits(0).stdout;
    home.write("a", "changed");
    home.write("SUMS", &list);
    let done = home.run(["check", "SUMS"]).exits(1);
    done.says("a: FAILED\n")
        .complains("nothing matches as BLAKE3, BLAKE2b or SHA-2")
        .complains("--algorithm");
    let done = home.run(["check", "--update", "SUMS"]).exits(1);
    done.complains("SUMS: nothing tells the hash function").complains("--algorithm sha256");
    assert_eq!(home.read("SUMS"), list.as_bytes());
    // Nor a new line, after one of a file that is missing.
    home.write("one", format!("{list}{} (a) = {}\n{}  c\n", "BLAKE3", hash(b"changed"), &list[..64]));
    home.run(["check", "--update", "--compare", "new", "one"])
        .exits(1)
        .complains("nothing tells the hash function");
    // The name of the list tells it, or the user.
    home.write("a.sha256", &list);
    home.run(["check", "--quiet", "--update", "a.sha256"]).exits(0);
    home.run(["check", "--quiet", "--update", "-a", "sha256", "SUMS"]).exits(0);
    let now = home.run(["sum", "-a", "sha256", "a"]).exits(0).output.stdout;
    assert_eq!((home.read("SUMS"), home.read("a.sha256")), (now.clone(), now));
    // With both functions in one list, no line tells that of another.
    home.write("c", "c");
    let both = [home.run(["sum", "c"]).stdout, home.run(["sum", "-a", "sha256", "c"]).stdout].concat();
    home.write("both", &both);
    assert_eq!(home.run(["check", "both"]).exits(0).stdout, "c: OK\nc: OK\n");
    home.write("both", both + &list);
    home.run(["check", "--update", "both"]).exits(1).complains("nothing tells the hash function");
    // As strict as b3sum, and with a hint.
    home.run(["sum", "--check", "a.sha256"])
        .exits(1)
        .says("a: FAILED\n")
        .complains("for SHA-256 add `--algorithm sha256`");
}

/// Lists in forms that the coreutils accept, and the names in them that match.
fn foreign_lists(hash: &str) -> [(String, &'static str); 6] {
    [
        (format!("  {hash}  a\n\t {hash} *a\n"), "a: OK\na: OK\n"),
        (format!("{hash}\t a\n"), "a: OK\n"),
        (format!("SHA256(a)= {hash}\n"), "a: OK\n"),
        (format!(" SHA256 (a) = {hash}\n"), "a: OK\n"),
        (format!("; made by a program\n{hash}  a\n"), "a: OK\n"),
        (
            format!(
                "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n{hash}  a\n-----BEGIN PGP SIGNATURE-----\n\n\
                 iHUEARYKAB0WIQQ=\n=abcd\n-----END PGP SIGNATURE-----\n"
            ),
            "a: OK\n",
        ),
    ]
}

#[test]
fn forms_that_the_coreutils_accept_check() {
    let home = Home::new();
    home.write("a", "a");
    let sum = Done::of(home.program("sha256sum").arg("a")).exits(0).stdout;
    for (list, expected) in foreign_lists(&sum[..64]) {
        home.write("list", &list);
        let theirs = Done::of(home.program("sha256sum").args(["--check", "list"])).exits(0);
        assert_eq!(theirs.stdout, expected, "{list}");
        assert_eq!(home.run(["check", "list"]).exits(0).stdout, expected, "{list}");
    }
    // As OpenSSL 3 writes it.
    home.write("list", format!("SHA2-256(a)= {}\n", &sum[..64]));
    home.run(["check", "list"]).exits(0).says("a: OK");
}

#[test]
fn what_a_check_passes_over_is_said() {
    let home = Home::new();
    home.write("a", "a");
    let sum = home.run(["sum", "a"]).stdout;
    home.write("list", format!("; one\n# not said\n{sum};two\n"));
    home.run(["check", "list"]).exits(0).complains("list: ignored 2 comments after `;`");
    let signed = foreign_lists(sum[..64].trim()).last().unwrap().0.clone();
    home.write("list", &signed);
    let said = "list: ignored an OpenPGP signature, which bulla does not verify";
    home.run(["check", "list"]).exits(0).complains(said);
    // What the signature does not cover does not count.
    home.write("list", format!("{signed}{sum}"));
    let done = home.run(["check", "list"]).exits(1);
    done.says("a: OK\n").complains("list: line 10: the line is outside the signed part");
    // Nor does a list whose end is missing.
    let cut = signed.split("-----BEGIN PGP SIGNATURE").next().unwrap();
    home.write("list", cut);
    home.run(["check", "list"]).exits(2).complains("list: the list was cut");
    // A change would break the signature.
    home.write("list", &signed);
    home.write("a", "changed");
    home.run(["check", "--update", "list"]).exits(1).complains("list: has an OpenPGP signature");
    assert_eq!(home.read("list"), signed.as_bytes());
}

#[test]
fn an_update_keeps_the_form_of_the_lines() {
    let home = Home::new();
    home.write("a", "a");
    home.write("b", "b");
    let tagged = home.run(["sum", "--tag", "-a", "sha256", "a"]).exits(0).stdout.replace('\n', "\r\n");
    home.write("list", format!("# list\r\n{tagged}"));
    home.write("a", "changed");
    fs::create_dir(home.path("tree")).unwrap();
    fs::rename(home.path("b"), home.path("tree/b")).unwrap();
    home.run(["check", "--quiet", "--update", "--compare", "tree", "list"]).exits(0);
    let expected = home.run(["sum", "--tag", "-a", "sha256", "a"]).stdout.replace('\n', "\r\n");
    let text = String::from_utf8(home.read("list")).unwrap();
    assert!(text.starts_with(&format!("# list\r\n{expected}")), "{text}");
    home.run(["check", "list"]).exits(0);
    // JSON Lines are changed in place.
    home.write("json", home.run(["sum", "--json", "a"]).exits(0).stdout);
    home.write("a", "again");
    home.run(["check", "--quiet", "--update", "json"]).exits(0);
    assert_eq!(home.read("json"), home.run(["sum", "--json", "a"]).output.stdout);
}

#[test]
fn a_list_stays_if_not_everything_could_be_read() {
    let home = Home::new();
    home.write("a", "changed");
    fs::create_dir(home.path("folder")).unwrap();
    for other in [format!("{}  folder", hash(b"x")), "nonsense".into()] {
        let list = format!("{}  a\n{other}\n", hash(b"a"));
        home.write("list", &list);
        home.run(["check", "--quiet", "--update", "list"]).exits(1).complains("the list stays as it is");
        assert_eq!(home.read("list"), list.as_bytes());
    }
    // A full disk.
    fs::create_dir(home.path("small")).unwrap();
    for index in 0..1200 {
        home.write(format!("tree/{index:0>100}"), "");
    }
    let script = "\"$BULLA\" sum -r tree > $SMALL/SUMS && cp $SMALL/SUMS before && echo changed > tree/$(ls tree | tail -n 1) \
        && ! \"$BULLA\" check --quiet --update $SMALL/SUMS && cmp before $SMALL/SUMS && ls -A $SMALL";
    let done = with_little_space(&home, script).exits(0).complains("SUMS: cannot write: ");
    assert!(done.stdout.ends_with("SUMS\n") && !done.stdout.contains(".bulla-"), "{}", done.stdout);
    home.run(["check", "--update"]).exits(2).complains("standard input cannot be rewritten");
    home.run(["check", "--update", "missing"]).exits(2).complains("missing: cannot read");
}

#[test]
fn large_and_small_files_of_one_list_check_in_order() {
    let home = Home::new();
    let sizes = [10, 3 << 20, 100, 1 << 20, 200_000, 5 << 20, 0];
    let names: Vec<String> = (0..140).map(|index| format!("{index:03}")).collect();
    for (index, name) in names.iter().enumerate() {
        home.write(
            name,
            content(index as u64, sizes[index % sizes.len()] / if index > 20 { 100 } else { 1 }),
        );
    }
    let sums = home.run(["sum"].into_iter().chain(names.iter().map(String::as_str))).exits(0).stdout;
    home.write("SUMS", &sums);
    home.write(
        "b2",
        home.run(["sum", "-a", "blake2b"].into_iter().chain(names.iter().map(String::as_str))).stdout,
    );
    let expected: String = names.iter().map(|name| format!("{name}: OK\n")).collect();
    for list in ["SUMS", "b2"] {
        for threads in ["1", "2", "5"] {
            assert_eq!(home.run(["check", "-j", threads, list]).exits(0).stdout, expected);
        }
    }
}

#[test]
fn names_cannot_control_a_terminal() {
    let home = Home::new();
    let name = "a\x1b[8mhidden\u{9b}8m\u{202e}txt";
    home.write(format!("tree/{name}"), "a");
    home.write(format!("tree/new{name}"), "b");
    let line = format!("{}  tree/{name}\n", hash(b"a"));
    let safe = "a\\x1b[8mhidden\\xc2\\x9b8m\\xe2\\x80\\xaetxt";
    // A list keeps the name as it is.
    assert_eq!(home.run(["sum", &format!("tree/{name}")]).exits(0).stdout, line);
    let missing = format!("{}  gone{name}\nnonsense {name}\n", hash(b"a"));
    home.write("SUMS", format!("{line}{missing}"));
    let done = home.run(["check", "--compare", "tree", "SUMS"]).exits(1);
    let expected = format!(
        "tree/{safe}: OK\ngone{safe}: FAILED (No such file or directory (os error 2))\ntree/new{safe}: NEW\n"
    );
    assert_eq!(done.stdout, expected);
    home.run(["sum", "--check", "SUMS"]).exits(1).says(&format!("tree/{safe}: OK\n"));
    let is_safe = |text: &str| !text.contains(['\x1b', '\u{9b}', '\u{202e}']);
    for args in [
        &["check", "--compare", "tree", "SUMS"][..],
        &["check", "--json", "--compare", "tree", "SUMS"],
        &["sum", "-r", "--json", "tree"],
        &["sum", "--progress", "json", &format!("tree/{name}"), "--no-names"],
        &["sum", "--check", &format!("no{name}")],
    ] {
        let done = home.run(args);
        assert!(is_safe(&done.stdout) && is_safe(&done.stderr), "{}{}", done.stdout, done.stderr);
    }
    let json = home.run(["sum", "-r", "--json", "tree"]).exits(0).json();
    assert_eq!(json[0]["path"].as_str(), Some(&format!("tree/{name}")[..]));
    // On a terminal a list is for people.
    for args in ["sum -r tree", "sum -r --tag tree"] {
        let script = format!("{bulla} {args}", bulla = bulla());
        let done = Done::of(home.program("script").args(["-qec", &script, "/dev/null"])).exits(0);
        assert!(is_safe(&done.stdout) && done.stdout.contains(safe), "{}", done.stdout);
    }
    fs::rename(home.path("tree"), home.path(name)).unwrap();
    home.run(["sum", "--tree", name]).exits(0).says(name);
    let script = format!("{bulla} sum --tree a*", bulla = bulla());
    let done = Done::of(home.program("script").args(["-qec", &script, "/dev/null"])).exits(0);
    assert!(is_safe(&done.stdout) && done.stdout.contains(safe), "{}", done.stdout);
}

#[test]
fn a_list_in_its_own_folder_is_not_one_of_its_files() {
    let home = Home::new();
    // More than is written at once, so that the list changes while it is read.
    for index in 0..2000 {
        home.write(format!("sub/{index:0>40}"), "");
    }
    home.write("a", "a");
    home.write("z", "z");
    for list in ["SUMS", "sub/5", "zz"] {
        let script = format!("exec \"{bulla}\" sum -r . > {list}", bulla = bulla());
        let done = Done::of(home.program("sh").args(["-c", &script])).exits(0);
        assert_eq!(done.stderr, "");
        let text = String::from_utf8(home.read(list)).unwrap();
        assert_eq!(text.lines().count(), 2002);
        assert!(!text.contains(&format!("./{list}\n")), "{list}");
        let here = home.work();
        for folder in [".", here.to_str().unwrap()] {
            // By another name, and from standard input.
            let script =
                format!("exec \"{bulla}\" check --quiet --compare {folder} ../work/{list}", bulla = bulla());
            let done = Done::of(home.program("sh").args(["-c", &script]));
            assert!(!done.stdout.contains(&format!("/{list}: NEW")), "{}", done.stdout);
            let script = format!("exec \"{bulla}\" check --quiet --compare . < {list}", bulla = bulla());
            assert_eq!(Done::of(home.program("sh").args(["-c", &script])).exits(0).stdout, "");
        }
        fs::remove_file(home.path(list)).unwrap();
    }
}

#[test]
fn an_audit_takes_the_filters_of_sum() {
    let home = Home::new();
    listed(&home);
    for name in [".DS_Store", "sub/.DS_Store", "sub/Thumbs.db", "x.log"] {
        home.write(format!("tree/{name}"), name);
    }
    home.write("tree/.gitignore", ".DS_Store\nThumbs.db\n*.log\n.gitignore\n");
    let audit = |flags: &[&str]| {
        home.run(["check", "--quiet", "--compare", "tree", "SUMS"].iter().chain(flags)).stdout
    };
    assert_eq!(audit(&[]).lines().count(), 5);
    assert_eq!(audit(&["--gitignore"]), "");
    assert_eq!(audit(&["--no-hidden", "-g", "!Thumbs.db"]), "tree/x.log: NEW\n");
    assert_eq!(
        audit(&["--glob", "!.DS_Store", "--glob", "!.gitignore", "--max-size", "8"]),
        "tree/x.log: NEW\n"
    );
    home.run(["check", "--glob", "*", "SUMS"])
        .exits(2)
        .complains("--glob chooses files of a folder: it needs --compare");
}
