//! `bulla sum` on folders: rules, order, lists of files, one digest of a folder.

use crate::bad_input::stop_while_it_reads;
use crate::support::{Done, Home, Running, bulla, content};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::process::Stdio;

fn hash(content: &[u8]) -> String {
    blake3::hash(content).to_hex().to_string()
}

/// A folder of a few hundred files, with the names that make trouble.
fn tree(home: &Home) {
    for index in 0..400 {
        home.write(format!("tree/{:02}/{index:03}", index / 20), content(index, (index * 37) as usize));
    }
    home.write("tree/large", content(1000, 5 << 20));
    home.write("tree/00.first", "sorts before the folder 00/");
    home.write("tree/new\nline", "escaped");
    home.write("tree/-r", "looks like a flag");
    home.write(OsString::from_vec(b"tree/not\xffutf8".to_vec()), "no text");
}

/// The names in the lines of a list.
fn names(list: &str) -> Vec<&str> {
    list.lines().map(|line| line.split_once("  ").expect("a line has a name").1).collect()
}

#[test]
fn a_folder_is_hashed_in_the_order_of_paths_and_checks() {
    let home = Home::new();
    tree(&home);
    let sums = home.run(["sum", "-r", "tree"]).exits(0);
    assert_eq!(sums.stdout.lines().count(), 405);
    // In the list, a name that is not UTF-8 has another form, and so may have another place.
    let plain: Vec<_> = names(&sums.stdout).into_iter().filter(|name| !name.contains('\u{fffd}')).collect();
    let mut sorted = plain.clone();
    sorted.sort();
    assert_eq!(plain, sorted);
    for threads in ["1", "2", "7"] {
        assert_eq!(home.run(["sum", "-r", "--jobs", threads, "tree"]).exits(0).stdout, sums.stdout);
    }
    assert_eq!(home.run(["sum", "-r", "--no-mmap", "tree/"]).exits(0).stdout, sums.stdout);
    let listed: Vec<_> = sums.stdout.lines().filter(|line| !line.contains('\u{fffd}')).collect();
    home.write("SUMS", listed.join("\n") + "\n");
    let checked = home.run(["check", "SUMS"]).exits(0);
    assert_eq!(checked.stdout.matches(": OK\n").count(), 404);
    // With a zero byte at the end of a line, every name is itself.
    let zero = home.run(["sum", "-rz", "tree"]).exits(0);
    home.write("ZERO", &zero.output.stdout);
    let checked = home.run(["check", "--zero", "ZERO"]).exits(0);
    assert_eq!(checked.stdout.matches(": OK\n").count(), 405);
}

#[test]
fn without_recursive_a_folder_is_an_error_and_with_it_files_are_hashed_too() {
    let home = Home::new();
    home.write("folder/a", "a");
    home.write("b", "b");
    home.run(["sum", "folder", "b"]).exits(1).says("  b\n").complains("folder: cannot read: Is a directory");
    let done = home.run(["sum", "-r", "b", "folder", "missing"]).exits(1);
    assert_eq!(done.stdout, format!("{}  b\n{}  folder/a\n", hash(b"b"), hash(b"a")));
    done.complains("missing: cannot read: No such file");
    home.run(["sum", "--glob", "*.rs", "folder"]).exits(2).complains("--recursive");
}

#[test]
fn rules_say_which_files_count() {
    let home = Home::new();
    for name in ["a.rs", "b.py", ".hidden", ".git/config", "sub/c.rs", "sub/d.log", "target/e.rs"] {
        home.write(format!("tree/{name}"), name);
    }
    home.write("tree/large.bin", content(1, 3000));
    home.write("tree/.gitignore", "*.log\ntarget/\n");
    symlink("a.rs", home.path("tree/link")).unwrap();
    symlink("..", home.path("tree/sub/up")).unwrap();
    let with = |flags: &[&str]| {
        let done = home.run(["sum", "-r", "tree"].iter().chain(flags)).exits(0);
        names(&done.stdout).into_iter().map(|name| name.replace("tree/", "")).collect::<Vec<_>>().join(" ")
    };
    let all = ".git/config .gitignore .hidden a.rs b.py large.bin sub/c.rs sub/d.log target/e.rs";
    assert_eq!(with(&[]), all);
    assert_eq!(with(&["--no-hidden"]), "a.rs b.py large.bin sub/c.rs sub/d.log target/e.rs");
    assert_eq!(with(&["--gitignore"]), ".gitignore .hidden a.rs b.py large.bin sub/c.rs");
    assert_eq!(with(&["-g", "*.rs", "-g", "!target"]), "a.rs sub/c.rs");
    assert_eq!(with(&["--type", "py"]), "b.py");
    assert_eq!(with(&["--min-size", "1K", "--max-size", "3000"]), "large.bin");
    assert_eq!(with(&["-x"]), all);
    // The link that leads back is an error, and the other one counts.
    let done = home.run(["sum", "-r", "--follow", "tree"]).exits(1);
    assert!(names(&done.stdout).contains(&"tree/link"));
    done.complains("tree/sub/up: ").complains("leads back");
    home.run(["sum", "-r", "--type", "nonsense", "tree"]).exits(2).complains("--type");
    home.run(["sum", "-r", "--glob", "[", "tree"]).exits(2).complains("--glob");
    home.run(["sum", "-r", "--min-size", "1X", "tree"]).exits(2).complains("is not a size");
}

#[test]
fn fifos_and_sockets_in_a_folder_are_left_out() {
    let home = Home::new();
    home.write("tree/a", "a");
    Done::of(home.program("mkfifo").arg(home.path("tree/fifo"))).exits(0);
    let _socket = std::os::unix::net::UnixListener::bind(home.path("tree/socket")).unwrap();
    assert_eq!(home.run(["sum", "-r", "tree"]).exits(0).stdout, format!("{}  tree/a\n", hash(b"a")));
    home.run(["sum", "-r", "/proc"]).exits(1).complains("a view of the running system");
}

#[test]
fn files_are_named_by_a_list_with_zero_bytes() {
    let home = Home::new();
    home.write("a", "a");
    home.write("new\nline", "b");
    home.write("first", "c");
    home.write("list", "a\0new\nline\0");
    let expected = format!("{}  first\n{}  a\n\\{}  new\\nline\n", hash(b"c"), hash(b"a"), hash(b"b"));
    assert_eq!(home.run(["sum", "--files0-from", "list", "first"]).exits(0).stdout, expected);
    let input = b"first\0a\0new\nline";
    let done = Done::with_input(home.command().args(["sum", "--files0-from", "-"]), input).exits(0);
    assert_eq!(done.stdout, expected);
    // What was named before a mistake is hashed.
    let run =
        |input: &[u8]| Done::with_input(home.command().args(["sum", "--files0-from=-"]), input).exits(1);
    run(b"a\0\0first\0").says("  a\n").complains("name 2 is empty");
    run(b"a\0-\0").complains("standard input has the names");
    run(&[b'x'; 3 << 20]).complains("longer than a path can be");
    run(b"missing\0a\0").says("  a\n").complains("missing: cannot read");
    home.run(["sum", "--files0-from", "missing"]).exits(1).complains("missing: cannot read");
    assert_eq!(Done::with_input(home.command().args(["sum", "--files0-from", "-"]), b"").exits(0).stdout, "");
}

#[test]
fn sha_2_is_that_of_the_coreutils() {
    let home = Home::new();
    for (index, size) in [0, 1, 55, 56, 111, 112, 4096, 300_000].into_iter().enumerate() {
        home.write(format!("{index}"), content(index as u64, size));
    }
    home.write("back\\slash", "x");
    let names: Vec<String> = (0..8).map(|index| index.to_string()).chain(["back\\slash".into()]).collect();
    for (program, algorithm) in [("sha256sum", "sha256"), ("sha512sum", "sha512")] {
        for flags in [&[][..], &["--tag"], &["-z"]] {
            let theirs = Done::of(home.program(program).args(flags).args(&names)).exits(0);
            let ours = home.run(
                ["sum", "-a", algorithm].iter().chain(flags).copied().chain(names.iter().map(String::as_str)),
            );
            assert_eq!(ours.exits(0).output.stdout, theirs.output.stdout, "{program} {flags:?}");
            let list = format!("{algorithm}{}", flags.concat());
            home.write(&list, &theirs.output.stdout);
            let zero = if flags == ["-z"] { &["-z"][..] } else { &[] };
            home.run(["check", "--quiet", &list].iter().chain(zero)).exits(0);
        }
    }
    home.run(["sum", "-a", "sha256", "-l", "31", "0"])
        .exits(2)
        .complains("sha256 has 32 output bytes, not 31");
    home.run(["sum", "-a", "sha512", "--keyed", "0"]).exits(2).complains("work only with blake3");
}

/// The digest of a folder by the rule in `spec/manifest.md`.
fn tree_digest(folder: &std::path::Path) -> blake3::Hash {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().as_encoded_bytes().to_vec();
        let kind = path.symlink_metadata().unwrap();
        let (byte, key, digest) = if kind.is_dir() {
            (b'd', [&name[..], b"/"].concat(), tree_digest(&path))
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            (b'l', name.clone(), blake3::hash(target.as_os_str().as_encoded_bytes()))
        } else {
            use std::os::unix::fs::PermissionsExt as _;
            let byte = if kind.permissions().mode() & 0o100 == 0 { b'f' } else { b'x' };
            (byte, name.clone(), blake3::hash(&fs::read(&path).unwrap()))
        };
        entries.push((key, byte, name, digest));
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let mut hasher = blake3::Hasher::new_derive_key("bulla 2026-11-24 tree v1: the content of a folder");
    for (_, byte, name, digest) in entries {
        hasher
            .update(&[byte])
            .update(&(name.len() as u64).to_le_bytes())
            .update(&name)
            .update(digest.as_bytes());
    }
    hasher.finalize()
}

#[test]
fn a_folder_has_one_digest_by_the_rule_of_the_specification() {
    let home = Home::new();
    tree(&home);
    fs::create_dir(home.path("tree/empty")).unwrap();
    symlink("nowhere", home.path("tree/link")).unwrap();
    home.chmod("tree/large", 0o755);
    let digest = tree_digest(&home.path("tree")).to_hex().to_string();
    let line = format!("BLAKE3-tree-v1 (tree) = {digest}\n");
    assert_eq!(home.run(["sum", "--tree", "tree"]).exits(0).stdout, line);
    assert_eq!(home.run(["sum", "--tree", "--no-names", "tree"]).exits(0).stdout, format!("{digest}\n"));
    let json = home.run(["sum", "--tree", "--json", "tree"]).exits(0).json();
    assert_eq!((json[0]["digest"].as_str(), json[0]["entries"].as_u64()), (Some(&digest[..]), Some(406)));
    // The list of both, and of JSON, checks.
    home.write("SUMS", &line);
    home.write("JSON", home.run(["sum", "--tree", "--json", "tree"]).stdout);
    assert_eq!(home.run(["check", "SUMS", "JSON"]).exits(0).stdout, "tree: OK\ntree: OK\n");
    // No other program, and no older version, takes it for the digest of a file.
    Done::of(home.program("b2sum").args(["--check", "SUMS"])).exits(1);
    home.write("tree/empty/new", "");
    assert_eq!(home.run(["check", "SUMS"]).exits(1).stdout, "tree: FAILED\n");
    fs::remove_file(home.path("tree/empty/new")).unwrap();
    home.run(["check", "SUMS"]).exits(0);
    let _socket = std::os::unix::net::UnixListener::bind(home.path("tree/socket")).unwrap();
    home.run(["sum", "--tree", "tree"]).exits(1).complains("tree/socket: is a socket, not a file");
    home.run(["check", "SUMS"]).exits(1).says("tree: FAILED (cannot read the folder)");
    home.run(["sum", "--tree", "SUMS"]).exits(1).complains("SUMS: cannot read the folder: Not a directory");
    home.run(["sum", "--tree", "-a", "sha256", "tree"]).exits(2).complains("--algorithm");
}

#[test]
fn a_folder_that_takes_the_output_has_no_digest() {
    let home = Home::new();
    home.write("tree/sub/a", "a");
    let sum = |output: &str| {
        let script = format!("\"$BULLA\" sum --tree tree >> {output}");
        Done::of(home.program("sh").args(["-c", &script]).env("BULLA", bulla()))
    };
    let done = sum("tree/sub/SUMS").exits(1).complains("tree/sub/SUMS: takes the output");
    done.complains("hint: write the output to a file outside of the folder");
    assert_eq!(home.read("tree/sub/SUMS"), b"");
    sum("SUMS").exits(0);
    home.run(["check", "SUMS"]).exits(0);
}

#[test]
fn a_file_in_a_folder_may_have_the_name_of_standard_input() {
    let home = Home::new();
    home.write("tree/-", "content");
    let sum = |args: &[&str]| Done::with_input(home.command().args(args), &[7; 32]).exits(0).stdout;
    assert_eq!(sum(&["sum", "-r", "tree"]), format!("{}  tree/-\n", hash(b"content")));
    let keyed = blake3::keyed_hash(&[7; 32], b"content").to_hex();
    assert_eq!(sum(&["sum", "-r", "--keyed", "tree"]), format!("{keyed}  tree/-\n"));
}

#[test]
fn what_replaces_a_file_of_a_folder_is_neither_followed_nor_waited_for() {
    let home = Home::new();
    home.write("secret", "secret");
    home.write("tree/last", "last");
    home.write("tree/link", "link");
    home.write("tree/fifo", "fifo");
    fs::File::create(home.path("tree/a")).unwrap().set_len(1 << 30).unwrap();
    let mut command = home.command();
    command.args(["sum", "-r", "-j", "1", "tree"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = Running::start(&mut command);
    // The folder is listed when its first file is read.
    stop_while_it_reads(&child, &home.path("tree/a"));
    for name in ["tree/link", "tree/fifo"] {
        fs::remove_file(home.path(name)).unwrap();
    }
    symlink(home.path("secret"), home.path("tree/link")).unwrap();
    Done::of(home.program("mkfifo").arg(home.path("tree/fifo"))).exits(0);
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    let done = child.end().exits(1);
    assert_eq!(names(&done.stdout), ["tree/a", "tree/last"]);
    done.complains("tree/fifo: ").complains("a fifo").complains("tree/link: ");
}

#[test]
fn an_interrupt_shows_what_was_done() {
    let home = Home::new();
    let names: Vec<String> = (0..200).map(|index| format!("{index:03}")).collect();
    for name in &names {
        home.write(name, name);
    }
    // Minutes of reading.
    fs::File::create(home.path("long")).unwrap().set_len(1 << 40).unwrap();
    let mut command = home.interruptible();
    command.arg("sum").args(&names).arg("long").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Running::start(&mut command);
    // The files before it are done when the long one is open.
    let is_long = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == home.path("long")))
    };
    while !fs::read_dir(format!("/proc/{}/fd", child.id())).is_ok_and(|mut fds| fds.any(is_long)) {
        assert!(child.try_wait().unwrap().is_none(), "it is read for minutes");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = child.end().exits(130);
    let lines = &done.stdout;
    let expected: String = names.iter().map(|name| format!("{}  {name}\n", hash(name.as_bytes()))).collect();
    assert!(expected.starts_with(lines.as_str()), "{lines}");
    done.complains("interrupted: ").complains(" files done");
}

#[test]
fn progress_is_json_for_programs_and_nothing_without_a_terminal() {
    let home = Home::new();
    home.write("a", content(1, 100_000));
    assert_eq!(home.run(["sum", "a"]).exits(0).stderr, "");
    assert_eq!(home.run(["sum", "--progress", "never", "a"]).exits(0).stderr, "");
    let done = home.run(["sum", "--progress", "json", "a"]).exits(0);
    let last = done.stderr.lines().last().expect("a line at the end");
    let progress: serde_json::Value = serde_json::from_str(last).expect("it is JSON");
    let progress = &progress["progress"];
    for (name, value) in [("bytes", 100_000), ("total_bytes", 100_000), ("files", 1), ("total_files", 1)] {
        assert_eq!(progress[name].as_u64(), Some(value), "{last}");
    }
    assert_eq!((progress["path"].as_str(), progress["done"].as_bool()), (Some("a"), Some(true)));
    // On a terminal there is a line for people, which says nothing for short work.
    let script = format!("{bulla} sum a", bulla = bulla());
    let done = Done::of(home.program("script").args(["-qec", &script, "/dev/null"])).exits(0);
    assert_eq!(done.stdout.trim(), format!("{}  a", hash(&content(1, 100_000))));
}

#[test]
fn a_million_names_are_not_held_as_results() {
    let home = Home::new();
    // The same small files again and again: the memory must not grow with their number.
    for index in 0..100 {
        home.write(format!("{index:02}"), "x");
    }
    let list: String = (0..300_000).map(|index| format!("{:02}\0", index % 100)).collect();
    home.write("list", list);
    let script =
        format!("ulimit -v 1200000; exec {bulla} sum --jobs 4 --files0-from list | tail -1", bulla = bulla());
    Done::of(home.program("bash").args(["-o", "pipefail", "-c", &script])).exits(0).says("  99\n");
}

/// The scheduler's policies of a process's threads: field 41 of /proc/PID/task/TID/stat.
#[cfg(target_os = "linux")]
fn policies(process: u32) -> Vec<u32> {
    let policy = |entry: std::io::Result<fs::DirEntry>| {
        let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        fields.split(' ').nth(38)?.parse().ok()
    };
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    tasks.filter_map(policy).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_run_lets_others_go_first() {
    /// SCHED_IDLE of sched(7).
    const IDLE: u32 = 5;
    let home = Home::new();
    // Minutes of reading, by all threads.
    fs::create_dir(home.path("folder")).unwrap();
    for name in ["long", "folder/long"] {
        fs::File::create(home.path(name)).unwrap().set_len(1 << 40).unwrap();
    }
    home.write("SUMS", format!("{}  long\n", hash(b"")));
    for (args, is_idle) in [
        (&["sum", "-j2", "--idle", "long"][..], true),
        (&["check", "-j2", "--idle", "SUMS"], true),
        (&["sign", "-j2", "--idle", "long"], true),
        (&["sign", "-j2", "--idle", "folder"], true),
        (&["sum", "-j2", "long"], false),
    ] {
        let mut command = home.command();
        let mut child = Running::start(command.args(args).stdout(Stdio::null()).stderr(Stdio::null()));
        // Of a thread that starts just now, nothing is known yet.
        while policies(child.id()).len() < 2 {
            assert!(child.try_wait().unwrap().is_none(), "it is read for minutes");
            std::thread::yield_now();
        }
        let found = policies(child.id());
        assert!(found.iter().all(|policy| (*policy == IDLE) == is_idle), "{args:?}: {found:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
