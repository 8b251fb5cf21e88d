//! `bulla sum --resume`: a list that is interrupted is whole in the end.

use crate::support::{Done, Home, Running, content, with_little_space};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::process::Stdio;
use std::time::Duration;

/// The names of a folder of files, in order.
fn tree(home: &Home, files: usize) -> Vec<String> {
    let names: Vec<_> = (0..files).map(|index| format!("tree/{index:03}")).collect();
    names.iter().enumerate().for_each(|(index, name)| home.write(name, content(index as u64, index)));
    names
}

fn list(home: &Home, name: &str) -> String {
    String::from_utf8(home.read(name)).unwrap()
}

#[test]
fn a_run_that_was_interrupted_goes_on() {
    let home = Home::new();
    tree(&home, 200);
    // Minutes of reading.
    fs::File::create(home.path("tree/long")).unwrap().set_len(1 << 40).unwrap();
    let mut command = home.interruptible();
    let mut child =
        Running::start(command.args(["sum", "-r", "tree", "--resume", "SUMS"]).stderr(Stdio::piped()));
    let is_long = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == home.path("tree/long")))
    };
    while !fs::read_dir(format!("/proc/{}/fd", child.id())).is_ok_and(|mut fds| fds.any(is_long)) {
        assert!(child.try_wait().unwrap().is_none(), "it is read for minutes");
        std::thread::yield_now();
    }
    // Nobody else may write to the list now.
    home.run(["sum", "tree/000", "--resume", "SUMS"]).exits(1).complains("another run is writing to it");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = child.end().exits(130);
    done.complains("files done; the same command goes on");

    let first = list(&home, "SUMS");
    home.write("tree/long", "short");
    let all = home.run(["sum", "-r", "tree"]).exits(0).stdout;
    assert!(!first.is_empty() && first.len() < all.len() && all.starts_with(&first), "{first}");
    let before = first.lines().count();
    let done = home.run(["sum", "-r", "tree", "--resume", "SUMS"]).exits(0);
    done.complains(&format!("SUMS: {before} were in it, {} added", 201 - before));
    assert_eq!(list(&home, "SUMS"), all);
    home.run(["sum", "-r", "tree", "--resume", "SUMS"]).exits(0).complains("201 were in it, 0 added");
    assert_eq!(list(&home, "SUMS"), all);
}

#[test]
fn a_run_that_was_killed_goes_on() {
    let home = Home::new();
    let names = tree(&home, 400);
    let mut command = home.command();
    command.args(["sum", "--files0-from", "-", "--resume", "SUMS"]).stdin(Stdio::piped());
    let mut child = Running::start(&mut command);
    let mut pipe = child.stdin.take().unwrap();
    let mut left = names.iter();
    while !fs::metadata(home.path("SUMS")).is_ok_and(|list| list.len() > 0) {
        let name = left.next().expect("the list is written before the names end");
        pipe.write_all(format!("{name}\0").as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // A write that the end of the process or of the power cut short.
    let mut torn = fs::File::options().append(true).open(home.path("SUMS")).unwrap();
    torn.write_all(b"0123456789abcdef").unwrap();
    home.write("names", names.iter().map(|name| format!("{name}\0")).collect::<String>());
    home.run(["sum", "--files0-from", "names", "--resume", "SUMS"]).exits(0);
    let all = home.run(["sum", "--files0-from", "names"]).exits(0).stdout;
    assert_eq!(list(&home, "SUMS"), all);
}

#[test]
fn a_full_disk_loses_nothing_that_was_written() {
    let home = Home::new();
    fs::create_dir(home.path("small")).unwrap();
    for index in 0..3000 {
        home.write(format!("tree/{index:0>100}"), "");
    }
    let script = "! \"$BULLA\" sum -r tree --resume $SMALL/SUMS && cat $SMALL/SUMS > SUMS";
    let done = with_little_space(&home, script).exits(0);
    done.complains("SUMS: cannot write: ");
    assert!(home.read("SUMS").len() > 100_000, "there was space for this");
    home.run(["sum", "-r", "tree", "--resume", "SUMS"]).exits(0);
    assert_eq!(list(&home, "SUMS"), home.run(["sum", "-r", "tree"]).exits(0).stdout);
}

#[test]
fn names_of_every_kind_are_found_again() {
    let home = Home::new();
    for name in
        [&b"new\nline"[..], b"back\\slash", b"not\xffutf8", b" ", b"a  b", b"a) = b", "\u{e9}".as_bytes()]
    {
        home.write(OsString::from_vec([b"tree/", name].concat()), name);
    }
    for (number, flags) in [&[][..], &["--tag"], &["-z"], &["-z", "--tag"], &["-a", "sha512"], &["-l", "5"]]
        .into_iter()
        .enumerate()
    {
        let list = format!("list{number}");
        let args = [&["sum", "-r", "tree", "--resume", &list], flags].concat();
        home.run(&args).exits(0);
        let first = home.read(&list);
        assert_eq!(first, home.run([&["sum", "-r", "tree"], flags].concat()).exits(0).output.stdout);
        home.run(&args).exits(0).complains("7 were in it, 0 added");
        assert_eq!(home.read(&list), first, "{flags:?}");
    }
}

#[test]
fn a_list_in_its_own_folder_is_not_one_of_its_files() {
    let home = Home::new();
    tree(&home, 3);
    home.run(["sum", "-r", ".", "--resume", "tree/SUMS"]).exits(0);
    let absolute = home.work();
    let all = list(&home, "tree/SUMS");
    assert_eq!((all.lines().count(), all.contains("SUMS")), (3, false), "{all}");
    home.run(["sum", "-r", absolute.to_str().unwrap(), "--resume", "tree/SUMS"]).exits(0);
    assert!(!list(&home, "tree/SUMS").contains("SUMS"));
}

#[test]
fn what_the_list_names_is_not_read_again_and_a_check_finds_it() {
    let home = Home::new();
    tree(&home, 2);
    home.run(["sum", "-r", "tree", "--resume", "SUMS"]).exits(0);
    let before = list(&home, "SUMS");
    home.write("tree/000", "changed");
    home.write("tree/002", "new");
    home.run(["sum", "-r", "tree", "--resume", "SUMS"]).exits(0).complains("2 were in it, 1 added");
    assert!(list(&home, "SUMS").starts_with(&before));
    home.run(["check", "SUMS"]).exits(1).says("tree/000: FAILED").says("tree/002: OK");
    home.run(["check", "--quiet", "--update", "SUMS"]).exits(0);
    home.run(["check", "SUMS"]).exits(0);
}

#[test]
fn other_files_are_refused_and_stay() {
    let home = Home::new();
    home.write("a", "a");
    let sum = home.run(["sum", "a"]).exits(0).stdout;
    let notes = format!("{sum}some notes\n");
    let tagged = home.run(["sum", "--tag", "a"]).exits(0).stdout;
    let short = home.run(["sum", "-l", "4", "a"]).exits(0).stdout;
    for other in [&notes, &tagged, &short, "words without an end", "\n"] {
        home.write("list", other);
        let done = home.run(["sum", "a", "--resume", "list"]).exits(1);
        done.complains("list: line ").complains("nothing was changed");
        assert_eq!(list(&home, "list"), other);
    }
    Done::of(home.program("mkfifo").arg("fifo")).exits(0);
    home.run(["sum", "a", "--resume", "fifo"]).exits(1).complains("fifo: is a fifo, not a list in a file");
    home.run(["sum", "a", "--resume", "."]).exits(1).complains(".: is a folder");
    for flag in ["--check", "--raw", "--json", "--no-names", "--tree"] {
        home.run(["sum", "a", "--resume", "list", flag]).exits(2);
    }
}
