//! What an audit log has the disk write before it goes on. A process that is killed loses nothing
//! that the system has, so these tests look at the system calls.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bulla_kms::audit_log::{AuditLog, AuditLogOptions, Durability};
use bulla_kms::{KeystoreOptions, Timestamp};

use crate::audit_log::{by_hand, new_key};
use crate::support::child::{alone, child, tell_parent};

/// What the log asked the system for.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    /// A write to a file of entries, by its name.
    Write(String),
    /// `fdatasync` or `fsync` of a file.
    Sync(String),
    /// `fsync` of the folder.
    SyncFolder,
    /// A file got its name.
    Named(String),
    /// The test did something and says so.
    Told(String),
}

/// The name of a file of the log that a call is about, if it is about one.
fn name(call: &str, log: &Path) -> Option<String> {
    let (_, rest) = call.split_once(&format!("{}/", log.display()))?;
    Some(rest.split(['>', '"']).next()?.to_owned())
}

impl Call {
    fn read(line: &str, log: &Path) -> Option<Self> {
        // The number of the process comes first.
        let call = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let (what, arguments) = call.split_once('(')?;
        let succeeded = !call.contains(" = -1 ");
        assert!(succeeded || what != "fdatasync", "{call}");
        match what {
            "write" if arguments.contains("child: ") => {
                let (_, told) = arguments.split_once("child: ")?;
                Some(Self::Told(told.split("\\n").next()?.to_owned()))
            }
            "write" => name(arguments, log).filter(|name| name.ends_with(".jsonl")).map(Self::Write),
            "fdatasync" | "fsync" if arguments.contains(&format!("<{}>", log.display())) => {
                Some(Self::SyncFolder)
            }
            "fdatasync" | "fsync" => name(arguments, log).map(Self::Sync),
            // The last path is the new name. An entry without a name has no quotation marks there.
            "linkat" | "rename" | "renameat" | "renameat2" if succeeded => {
                let (_, new) = arguments.rsplit_once(", \"").or_else(|| arguments.rsplit_once('"'))?;
                let new = new.split('"').next()?;
                Some(Self::Named(Path::new(new).file_name()?.to_string_lossy().into_owned()))
            }
            _ => None,
        }
    }
}

/// What this test does in a process of its own, which is traced.
fn calls(test: &str) -> Vec<Call> {
    let folder = tempfile::tempdir().unwrap();
    let (log, trace) = (folder.path().join("log"), folder.path().join("trace"));
    let mut command = Command::new("strace");
    let traced = "trace=write,fsync,fdatasync,linkat,rename,renameat,renameat2";
    command.args(["-f", "-y", "-s", "64", "-e", traced, "-o"]).arg(&trace);
    command.arg(std::env::current_exe().unwrap()).args(alone(test)).env("BULLA_KMS_TEST_FOLDER", &log);
    let output = command.output().expect("the Debian package strace is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = std::fs::read_to_string(trace).unwrap();
    let calls: Vec<_> = trace.lines().filter_map(|line| Call::read(line, &log)).collect();
    assert!(calls.iter().any(|call| matches!(call, Call::Told(_))), "{trace}");
    calls
}

/// The files of entries that have lines which are not on the disk yet, before each call.
fn unsynced(calls: &[Call]) -> Vec<(BTreeSet<&str>, &Call)> {
    let mut open = BTreeSet::new();
    let mut each = Vec::new();
    for call in calls {
        each.push((open.clone(), call));
        match call {
            Call::Write(name) => drop(open.insert(name.as_str())),
            Call::Sync(name) => drop(open.remove(name.as_str())),
            _ => {}
        }
    }
    each
}

/// Whether the folder was synced between each new name and what was told next.
fn assert_names_are_synced(calls: &[Call]) {
    let mut open: Vec<&str> = Vec::new();
    for call in calls {
        match call {
            Call::Named(name) => open.push(name),
            Call::SyncFolder => open.clear(),
            Call::Told(what) => assert!(open.is_empty(), "{open:?} may have no name at {what:?}: {calls:?}"),
            _ => {}
        }
    }
}

fn log(folder: PathBuf, options: AuditLogOptions) -> Arc<AuditLog> {
    Arc::new(AuditLog::create(&folder, options).unwrap())
}

#[test]
fn an_entry_is_on_the_disk_before_its_operation_returns() {
    let test = "audit_log_syncs::an_entry_is_on_the_disk_before_its_operation_returns";
    if let Some(folder) = child() {
        let log = log(folder, by_hand().durability(Durability::Grouped));
        let keystore = KeystoreOptions::default().audit(log).in_memory().unwrap();
        let key = keystore.create_key(new_key("a")).unwrap();
        tell_parent("created");
        keystore.sign(&key, b"m").unwrap();
        tell_parent("signed");
        std::process::exit(0);
    }
    let calls = calls(test);
    let told: Vec<_> = unsynced(&calls)
        .into_iter()
        .filter_map(|(open, call)| matches!(call, Call::Told(_)).then_some(open.len()))
        .collect();
    assert_eq!(told, [0, 0], "{calls:?}");
    assert_eq!(calls.iter().filter(|call| matches!(call, Call::Write(_))).count(), 2, "{calls:?}");
    assert_names_are_synced(&calls);
}

#[test]
fn what_a_checkpoint_or_a_new_file_stands_on_is_on_the_disk_first() {
    let test = "audit_log_syncs::what_a_checkpoint_or_a_new_file_stands_on_is_on_the_disk_first";
    if let Some(folder) = child() {
        let log = log(folder, by_hand().max_file_bytes(2000));
        let keystore = KeystoreOptions::default().audit(log.clone()).in_memory().unwrap();
        let key = keystore.create_key(new_key("a")).unwrap();
        for _ in 0..3 {
            (0..4).for_each(|_| drop(keystore.sign(&key, b"m").unwrap()));
            let made = log.checkpoint(&keystore, &key).unwrap();
            assert!(made.time <= Timestamp::now().unwrap());
            tell_parent("sealed");
        }
        std::process::exit(0);
    }
    let calls = calls(test);
    let (mut heads, mut files) = (0, 0);
    for (open, call) in unsynced(&calls) {
        match call {
            Call::Named(name) if name == "head" => heads += 1,
            Call::Named(name) if name.ends_with(".jsonl") => files += 1,
            _ => continue,
        }
        assert!(open.is_empty(), "{call:?} while {open:?} may be lost: {calls:?}");
    }
    assert!(heads == 3 && files >= 2, "{heads} and {files}: {calls:?}");
    assert_names_are_synced(&calls);
}
