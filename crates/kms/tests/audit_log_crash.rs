//! An audit log whose process is killed, or whose disk is full.
//!
//! Each test starts this program again as the process that comes to harm; a variable tells it so.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bulla_kms::audit_log::{self, AuditLog, AuditLogOptions};
use bulla_kms::{Algorithm, Code, KeyId, Keystore, KeystoreOptions, NewKey};

const CHILD: &str = "BULLA_KMS_TEST_LOG";
const ROUNDS: u64 = 30;

/// In the process that comes to harm, the folder of its log.
fn child() -> Option<PathBuf> {
    std::env::var_os(CHILD).map(PathBuf::from)
}

/// Small files and many checkpoints, so that a kill meets every step.
fn options() -> AuditLogOptions {
    AuditLogOptions {
        signer: Some(("local".parse().unwrap(), "audit".parse().unwrap())),
        checkpoint_entries: 3,
        max_file_bytes: 2000,
        ..AuditLogOptions::default()
    }
}

fn keystore(log: AuditLog) -> (Keystore, KeyId) {
    let keystore = KeystoreOptions { audit: Some(Arc::new(log)), ..KeystoreOptions::default() }.in_memory();
    let new = NewKey::new("local".parse().unwrap(), "audit".parse().unwrap(), Algorithm::Ed25519);
    let key = keystore.create_key(new.label("audit".parse().unwrap())).unwrap();
    (keystore, key)
}

/// Runs `command` as the child of `test`, kills it after `delay` if there is one, and gives the lines it had written.
fn lines(mut command: Command, test: &str, folder: &Path, delay: Option<Duration>) -> Vec<String> {
    let mut process = command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if let Some(delay) = delay {
        std::thread::sleep(delay);
        process.kill().unwrap();
    }
    let output = process.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("panicked"), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(|line| line.strip_prefix("child: ")).map(str::to_owned).collect()
}

fn tell(text: impl std::fmt::Display) {
    std::io::stdout().write_all(format!("\nchild: {text}\n").as_bytes()).unwrap();
}

#[test]
fn no_entry_that_was_acknowledged_is_lost_when_the_process_is_killed() {
    if let Some(folder) = child() {
        let (keystore, key) = keystore(AuditLog::open(&folder, options()).unwrap());
        for number in 0_u64.. {
            // The digest in the entry is that of the number.
            let message = format!("{}-{number}", std::process::id());
            keystore.sign(&key, message.as_bytes()).unwrap();
            tell(message);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    drop(AuditLog::create(folder.path(), options()).unwrap());
    let test = "no_entry_that_was_acknowledged_is_lost_when_the_process_is_killed";
    let mut told = Vec::new();
    for round in 0..ROUNDS {
        let delay = Duration::from_millis(10 + round * 37 % 120);
        let command = Command::new(std::env::current_exe().unwrap());
        told.extend(lines(command, test, folder.path(), Some(delay)));
        // What was cut is taken off when the log is opened, and nothing else is ever wrong.
        let log = AuditLog::open(folder.path(), options()).unwrap();
        let entries = log.entries().unwrap();
        for message in &told {
            let digest = Some(bulla_blake3::hash(message.as_bytes()));
            assert!(entries.iter().any(|entry| entry.digest() == digest), "round {round}: {message} is lost");
        }
        drop(log);
        let report = audit_log::read(folder.path(), &mut |_, _| Ok(())).unwrap();
        assert_eq!(report.problems, [], "round {round}");
    }
    assert!(told.len() as u64 > ROUNDS, "the children signed: {}", told.len());
}

/// A limit on the size of files fails as a full disk does.
#[test]
fn a_full_disk_withholds_what_cannot_be_recorded_and_passes() {
    if let Some(folder) = child() {
        let options = AuditLogOptions { signer: None, ..AuditLogOptions::default() };
        let (keystore, key) = keystore(AuditLog::open(&folder, options).unwrap());
        // A line and a half.
        let length = std::fs::metadata(folder.join("00000000000000000000.jsonl")).unwrap().len();
        limit_file_size(&(length + 500).to_string());
        let mut signed = 0;
        let error = loop {
            match keystore.sign(&key, b"message") {
                Ok(_) => signed += 1,
                Err(error) => break error,
            }
        };
        assert!(error.retryable, "{error}");
        assert_eq!(keystore.sign(&key, b"message").unwrap_err().code, Code::StorageFull);
        limit_file_size("unlimited");
        keystore.sign(&key, b"message").unwrap();
        tell(format_args!("{} {}", error.code, signed + 1));
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().unwrap();
    drop(AuditLog::create(folder.path(), options()).unwrap());
    // The signal that a limit sends would end the process; a full disk sends none.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    let test = "a_full_disk_withholds_what_cannot_be_recorded_and_passes";
    let told = lines(command, test, folder.path(), None);
    let (code, signed) = told[0].split_once(' ').unwrap();
    assert_eq!(code, "storage_full");
    let mut entries = 0;
    let report = audit_log::read(folder.path(), &mut |_, _| {
        entries += 1;
        Ok(())
    });
    assert_eq!((report.unwrap().problems, entries), (vec![], 1 + signed.parse::<usize>().unwrap()));
}

/// Limits the size of the files that this process writes, in bytes.
fn limit_file_size(bytes: &str) {
    let status = Command::new("prlimit")
        .arg(format!("--pid={}", std::process::id()))
        .arg(format!("--fsize={bytes}:unlimited"))
        .status()
        .unwrap();
    assert!(status.success(), "prlimit is of the package util-linux");
}
