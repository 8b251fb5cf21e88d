//! A keystore in memory never writes to a disk: what the process asks of the system is traced.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;

use bulla_kms::{Algorithm, Keystore, NewKey};

use crate::support::child::alone;

const CHILD: &str = "BULLA_KMS_TEST_IN_MEMORY";
const TEST: &str =
    "memory_mode::a_keystore_in_memory_asks_the_system_for_no_write_but_to_the_standard_streams";

/// Everything that a keystore in memory does.
fn work() {
    let keystore = Keystore::in_memory().unwrap();
    let new = NewKey::new("local".parse().unwrap(), "files".parse().unwrap(), Algorithm::Ed25519);
    let key = keystore.create_key(new).unwrap();
    let signature = keystore.sign(key.key_id(), b"message").unwrap();
    assert!(keystore.verify(&key, b"message", &signature.bytes).unwrap().is_valid());
    keystore.rotate(key.key_id()).unwrap();
    keystore.attest_signed(key.key_id()).unwrap();
    keystore.disable(key.key_id()).unwrap();
    keystore.enable(key.key_id()).unwrap();
    keystore.refresh().unwrap();
    #[cfg(feature = "soft-seal")]
    {
        use bulla_kms::backend::Backends;
        use bulla_kms::encrypted_file;
        use bulla_kms::encryption::{Identity, IdentityKind};
        let identity = Identity::generate(IdentityKind::XWing).unwrap();
        let sealed = encrypted_file::encrypt(&[7; 100_000], &[&identity], b"").unwrap();
        assert_eq!(encrypted_file::decrypt(&sealed, &[&identity], b"").unwrap().len(), 100_000);
        let mut backup = Vec::new();
        keystore.backup(&mut backup, &[&identity]).unwrap();
        bulla_kms::Backup::read(&backup[..], &[&identity], Backends::software()).unwrap();
    }
}

/// The calls in a trace that could put something on a disk or hand it to another process:
/// `NAME(ARGUMENTS) = RESULT`.
fn writes(trace: &str) -> Vec<&str> {
    let is_write = |call: &&str| {
        let Some((name, arguments)) = call.split_once('(') else { return false };
        let to_streams = ["1", "2"].contains(&arguments.split([',', ')']).next().unwrap_or_default().trim());
        match name {
            "open" | "openat" | "openat2" | "creat" => {
                let opens_to_write = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TMPFILE", "O_TRUNC", "O_APPEND"];
                name == "creat" || opens_to_write.iter().any(|flag| arguments.contains(flag))
            }
            "mmap" => arguments.contains("MAP_SHARED") && arguments.contains("PROT_WRITE"),
            "write" | "writev" | "pwrite64" | "pwritev" | "pwritev2" | "sendfile" | "splice" | "vmsplice"
            | "copy_file_range" | "sendto" | "sendmsg" | "sendmmsg" | "fallocate" | "ftruncate" => {
                !to_streams
            }
            "connect" | "truncate" | "mkdir" | "mkdirat" | "mknod" | "mknodat" | "rename" | "renameat"
            | "renameat2" | "link" | "linkat" | "symlink" | "symlinkat" | "unlink" | "unlinkat"
            | "memfd_create" | "io_uring_setup" | "io_submit" | "mq_open" | "shmget" | "shm_open" => true,
            _ => false,
        }
    };
    trace.lines().map(without_process).filter(is_write).collect()
}

/// A line of the trace without the number of the process before it.
fn without_process(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start()
}

/// What the system was asked for by this process, doing `what`.
fn trace(what: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-s", "64", "-o"]).arg(&log).arg(std::env::current_exe().unwrap()).args(alone(TEST));
    let output = command
        .env(CHILD, what)
        .env("BULLA_KMS_TEST_FILE", folder.path().join("file"))
        .output()
        .expect("the Debian package strace is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(log).unwrap()
}

#[test]
fn a_keystore_in_memory_asks_the_system_for_no_write_but_to_the_standard_streams() {
    if let Some(what) = std::env::var_os(CHILD) {
        match what.to_str() {
            Some("work") => work(),
            _ => fs::write(std::env::var_os("BULLA_KMS_TEST_FILE").unwrap(), "a write").unwrap(),
        }
        return;
    }
    let traced = trace("work");
    assert!(traced.contains("execve(") && traced.contains("getrandom("), "the trace has the process in it");
    assert_eq!(writes(&traced), Vec::<&str>::new());
    // And a write would have been seen.
    let seen = trace("write");
    let seen = writes(&seen);
    assert!(seen.iter().any(|call| call.starts_with("openat(")), "{seen:?}");
    assert!(seen.iter().any(|call| call.starts_with("write(")), "{seen:?}");
}
