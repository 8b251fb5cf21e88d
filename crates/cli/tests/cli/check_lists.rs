//! `bulla check` on lists of every program, hostile lists, audits and updates.

use crate::support::{Done, Home, content, with_little_space};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

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
    home.run(["check", "--audit", "tree", "SUMS"]).exits(0);
    home.write("tree/b", "changed");
    fs::rename(home.path("tree/sub/c"), home.path("tree/moved")).unwrap();
    fs::remove_file(home.path("tree/sub/d")).unwrap();
    home.write("tree/new", "new");
    let done = home.run(["check", "--quiet", "--audit", "./tree//", "SUMS"]).exits(1);
    let expected = "tree/b: FAILED\n\
        tree/sub/c: FAILED (No such file or directory (os error 2))\n\
        tree/sub/d: FAILED (No such file or directory (os error 2))\n\
        ./tree//moved: MOVED (from tree/sub/c)\n\
        ./tree//new: NEW\n";
    assert_eq!(done.stdout, expected);
    done.complains("1 OK, 1 changed, 2 missing, 1 moved, 1 new");
    let json = home.run(["check", "--json", "--audit", "tree", "SUMS"]).exits(1).json();
    let moved = json.iter().find(|line| line["status"] == "moved").expect("a moved file");
    assert_eq!((moved["path"].as_str(), moved["from"].as_str()), (Some("tree/moved"), Some("tree/sub/c")));
    // New files alone make an audit fail, and a check not.
    listed(&home);
    home.write("tree/extra", "extra");
    home.run(["check", "--quiet", "SUMS"]).exits(0);
    home.run(["check", "--quiet", "--audit", "tree", "SUMS"]).exits(1).says("tree/extra: NEW");
    home.run(["check", "--audit", "missing", "SUMS"]).exits(1);
}

#[test]
fn an_update_writes_what_changed_and_nothing_else() {
    let home = Home::new();
    listed(&home);
    home.chmod("SUMS", 0o640);
    let before = String::from_utf8(home.read("SUMS")).unwrap();
    home.run(["check", "--quiet", "--update", "--audit", "tree", "SUMS"]).exits(0);
    assert_eq!(home.read("SUMS"), before.as_bytes());
    home.write("tree/b", "changed");
    fs::remove_file(home.path("tree/sub/d")).unwrap();
    home.write("tree/new\nline", "new");
    let done = home.run(["check", "--quiet", "--update", "--audit", "tree", "SUMS"]).exits(0);
    done.complains("SUMS: wrote 1 changed, 1 missing and 1 new");
    let expected = before
        .lines()
        .filter(|line| !line.ends_with("tree/sub/d"))
        .map(|line| line.replace(&hash(b"two"), &hash(b"changed")) + "\n")
        .chain([format!("\\{}  tree/new\\nline\n", hash(b"new"))])
        .collect::<String>();
    assert_eq!(String::from_utf8(home.read("SUMS")).unwrap(), expected);
    assert_eq!(fs::metadata(home.path("SUMS")).unwrap().permissions().mode() & 0o777, 0o640);
    home.run(["check", "--audit", "tree", "SUMS"]).exits(0);
    assert_eq!(home.names(), ["SUMS", "tree"]);
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
    home.run(["check", "--quiet", "--update", "--audit", "tree", "list"]).exits(0);
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
