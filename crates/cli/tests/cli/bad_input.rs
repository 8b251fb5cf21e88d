//! Bad input and bad surroundings: a clear error, nothing lost, no partial file.

use crate::support::{Done, Home, Running, bulla, content, with_little_space};
use bulla_testing::strikes::strikes;
use rustix::process::{Pid, Signal, getuid, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// A command that file modes bind: root, whom they do not, runs it as another user.
fn bound_by_modes(home: &Home) -> Command {
    if !getuid().is_root() {
        return home.command();
    }
    let program = home.path("../bulla");
    if !program.exists() {
        // By another process: a copy that this one still had open for writing, in a child of
        // another test, could not run.
        Done::of(Command::new("cp").arg(bulla()).arg(&program)).exits(0);
        for folder in ["..", "../home", "."] {
            let path = home.path(folder);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
    let mut command = home.program(program.canonicalize().unwrap());
    command.uid(NOBODY).gid(NOBODY);
    command
}

fn forbid(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
}

#[test]
fn an_unreadable_file_is_named_and_the_rest_goes_on() {
    let home = Home::new();
    home.write("secret", "secret");
    home.write("open", "open");
    forbid(&home.path("secret"));
    let run = |args: &[&str]| Done::of(bound_by_modes(&home).args(args));
    run(&["sum", "secret", "open"])
        .exits(1)
        .says("  open")
        .complains("secret: cannot read: Permission denied (os error 13)");
    run(&["sign", "secret", "open"])
        .exits(2)
        .says("open: signed")
        .complains("secret: cannot read: Permission denied");
    assert!(home.path("open.bulla").exists() && !home.path("secret.bulla").exists());
    home.write("SUMS", format!("{}  secret\n", blake3::hash(b"secret").to_hex()));
    run(&["check", "SUMS"]).exits(1).says("secret: FAILED (Permission denied (os error 13))");
}

/// Holds a file by a lease, as servers of NFS and SMB do, until the system asks for it.
#[cfg(target_os = "linux")]
const LEASE: &str = r#"
    $| = 1;
    open(FILE, "+<", $ARGV[0]) or die;
    my ($set, $write, $none) = (1024, 1, 2);
    $SIG{IO} = sub { fcntl(FILE, $set, $none) };
    fcntl(FILE, $set, $write) or die "the file system has no leases: $!";
    print "held\n";
    while (1) { sleep 60 }
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_file_on_which_another_process_has_a_lease_is_waited_for() {
    use std::io::{BufRead as _, BufReader};
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.write("tree/a", "content");
    home.write("SUMS", home.run(["sum", "tree/a"]).exits(0).stdout);
    home.run(["sign", "tree/a"]).exits(0);
    home.run(["sign", "tree"]).exits(0);
    for args in [&["check", "SUMS"][..], &["sum", "-r", "tree"], &["verify", "tree/a"], &["verify", "tree"]] {
        let mut command = home.program("perl");
        let mut holder = Running::start(command.args(["-e", LEASE, "tree/a"]).stdout(Stdio::piped()));
        let mut said = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "held\n");
        home.run(args).exits(0);
    }
}

/// A command that can start no thread: the system has no room for the stack of one.
fn alone(home: &Home, args: &[&str]) -> Done {
    Done::of(home.command().env("RUST_MIN_STACK", (1_u64 << 46).to_string()).args(args))
}

#[test]
fn where_the_system_has_no_room_for_threads_one_does_all_the_work() {
    let home = Home::new();
    for number in 0..100 {
        home.write(format!("tree/{number}"), content(number, 10));
    }
    home.write("tree/large", content(1, 9 << 20));
    let sums = home.run(["sum", "-r", "tree"]).exits(0).stdout;
    home.write("SUMS", &sums);
    home.run(["keys", "create", "--algorithm", "ecdsa-p256", "model"]).exits(0);
    let run = |args: &[&str]| alone(&home, args).exits(0);
    assert_eq!(run(&["sum", "-r", "-j", "8", "tree"]).stdout, sums);
    run(&["sum", "-r", "--progress", "json", "tree"]);
    run(&["check", "-j", "8", "SUMS"]);
    run(&["sum", "--tree", "-j", "8", "tree"]);
    run(&["sum", "--outboard", "out", "tree/large"]);
    run(&["sign", "-j", "8", "tree"]);
    run(&["verify", "-j", "8", "tree"]).says("tree: OK (101 files");
    run(&["sign", "-j", "8", "--format", "oms", "--key", "model", "tree"]);
    run(&["verify", "-j", "8", "--signature", "tree.sig", "tree"]);
    run(&["sign", "-j", "8", "tree/large", "tree/1", "tree/2"]);
    run(&["verify", "-j", "8", "tree/large", "tree/1", "tree/2"]);
}

#[test]
fn what_cannot_be_looked_at_in_a_folder_is_unchecked_and_not_missing() {
    let home = Home::new();
    home.write("tree/a", "a");
    home.write("tree/closed/b", "b");
    home.write("tree/c", "c");
    let run = |args: &[&str]| Done::of(bound_by_modes(&home).args(args));
    run(&["sign", "tree"]).exits(0);
    forbid(&home.path("tree/closed"));
    forbid(&home.path("tree/c"));
    let done = run(&["verify", "tree"]).exits(2);
    assert!(!done.stdout.contains("missing"), "{}", done.stdout);
    done.complains("tree/closed: cannot read the folder: Permission denied")
        .complains("tree/closed/b: cannot read its metadata: Permission denied")
        .complains("tree/c: cannot read: Permission denied")
        .complains("1 unchanged");
    fs::remove_file(home.path("tree.bulla")).unwrap();
    run(&["sign", "tree"])
        .exits(2)
        .complains("tree/closed: cannot read the folder")
        .complains("tree: not signed");
    assert!(!home.path("tree.bulla").exists());
    fs::set_permissions(home.path("tree/closed"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_folder_that_cannot_be_written_to_keeps_what_it_has() {
    let home = Home::new();
    home.write("tree/a", "a");
    let run = |args: &[&str]| Done::of(bound_by_modes(&home).args(args));
    run(&["keystore", "init"]).exits(0);
    fs::set_permissions(home.path("tree"), fs::Permissions::from_mode(0o555)).unwrap();
    let error = "tree/a.bulla: cannot write: Permission denied (os error 13)\n";
    run(&["sign", "tree/a"]).exits(2).complains(error);
    fs::set_permissions(home.path("tree"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::read_dir(home.path("tree")).unwrap().count(), 1);
}

#[test]
fn a_file_that_is_written_to_all_the_time_is_not_signed() {
    use std::io::Write;
    let home = Home::new();
    // Long enough that somebody writes meanwhile, also on a busy machine.
    fs::File::create(home.path("log")).unwrap().set_len(1 << 30).unwrap();
    home.run(["keystore", "init"]).exits(0);
    let mut log = fs::File::options().append(true).open(home.path("log")).unwrap();
    let mut child = Running::start(home.command().args(["sign", "log"]).stderr(Stdio::piped()));
    while child.try_wait().unwrap().is_none() {
        log.write_all(b"line\n").unwrap();
    }
    child.end().exits(2).complains("log: changed while it was read").complains("hint: ");
    assert_eq!(home.names(), ["log"]);
}

#[test]
fn a_full_disk_is_reported_and_the_old_signature_stays() {
    let home = Home::new();
    fs::create_dir(home.path("small")).unwrap();
    home.run(["keystore", "init"]).exits(0);
    home.write("tree/a", "a");
    home.run(["sign", "tree", "-o", "old"]).exits(0);
    // The list of these files is larger than the space.
    for index in 0..3000 {
        home.write(format!("tree/{index:0>100}"), "");
    }
    let script = "cp old $SMALL/tree.bulla && ! \"$BULLA\" sign tree -o $SMALL/tree.bulla && ls -A $SMALL && cmp old $SMALL/tree.bulla";
    let done = with_little_space(&home, script).exits(0).complains("tree.bulla: cannot write: ");
    assert_eq!(done.stdout, "tree.bulla\n");
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_no_death() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    for index in 0..3000 {
        home.write(format!("tree/{index:0>100}"), "");
    }
    let script = format!("ulimit -f 256; exec {bulla} sign tree", bulla = bulla());
    Done::of(home.program("bash").args(["-c", &script]))
        .exits(2)
        .complains("tree.bulla: cannot write: File too large");
    assert_eq!(home.names(), ["tree"]);
}

/// Whether a process has a file open, or mapped.
fn has_open(child: &Child, file: &Path) -> bool {
    let of = |what: &str| format!("/proc/{}/{what}", child.id());
    let opened = fs::read_dir(of("fd")).is_ok_and(|mut entries| {
        entries
            .any(|entry| entry.is_ok_and(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == file)))
    });
    opened || fs::read_to_string(of("maps")).is_ok_and(|maps| maps.contains(&file.display().to_string()))
}

/// Has a process stand still while it reads a file, until SIGCONT.
pub(crate) fn stop_while_it_reads(child: &Child, file: &Path) {
    let send = |signal| kill_process(Pid::from_child(child), signal).unwrap();
    loop {
        let status = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
        assert!(!status.contains(") Z "), "it ended before it was stopped");
        if has_open(child, file) {
            send(Signal::STOP);
            if has_open(child, file) {
                return;
            }
            send(Signal::CONT);
        }
        std::thread::yield_now();
    }
}

#[test]
fn an_interrupt_during_a_long_read_leaves_nothing() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    fs::File::create(home.path("long")).unwrap().set_len(1 << 40).unwrap();
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = Running::start(home.interruptible().args(["sign", "long"]));
        while !has_open(&child, &home.path("long")) {
            assert!(child.try_wait().unwrap().is_none(), "it is read for minutes");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(128 + signal.as_raw()));
        assert_eq!(home.names(), ["long"]);
    }
}

#[test]
fn an_interrupt_at_any_point_leaves_the_whole_signature_or_none() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    for index in 0..1000 {
        home.write(format!("tree/{index}"), "");
    }
    strikes(30, |delay| {
        let _ = fs::remove_file(home.path("tree.bulla"));
        let mut child = home.interruptible().args(["sign", "--quiet", "tree"]).spawn().unwrap();
        std::thread::sleep(delay);
        // It may have ended by now.
        let _ = kill_process(Pid::from_child(&child), Signal::INT);
        let status = child.wait().unwrap();
        let names = home.names();
        let is_signed = names != ["tree"];
        if is_signed {
            assert_eq!(names, ["tree", "tree.bulla"]);
            home.run(["verify", "--quiet", "tree"]).exits(0);
        } else {
            assert!(status.code() == Some(130) || status.signal().is_some(), "{status}");
        }
        is_signed
    });
}

#[test]
fn a_sparse_file_of_5_gib_is_signed() {
    let home = Home::new();
    fs::File::create(home.path("sparse")).unwrap().set_len(5 << 30).unwrap();
    let signed = home.run(["sign", "--json", "sparse"]).exits(0).json();
    // The digest of 5 GiB of zeros, by b3sum 1.8.7.
    assert_eq!(signed[0]["digest"], "bcf27a182cee2a75728e2617d0ac5d90f902207f5332cf7190b345d96e9fd221");
}

#[test]
fn random_bytes_as_any_input_file_are_an_error_and_no_panic() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    for seed in 0..50 {
        home.write("noise", content(seed, (seed * 13) as usize));
        home.run(["verify", "a", "-s", "noise"]).exits(1).says("a: malformed signature");
        home.run(["verify", "a", "-s", "noise", "--format", "minisign"])
            .exits(1)
            .says("a: malformed signature");
        home.run(["verify", "a", "-p", "noise"]).exits(2).complains("noise: ");
        let checked = home.run(["check", "noise"]);
        assert!(checked.code == Some(1) || (checked.code == Some(2) && seed == 0), "{:?}", checked.code);
    }
}
