//! A test that starts its program again, as the process that comes to harm. A variable tells that
//! process so.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const FOLDER: &str = "BULLA_KMS_TEST_FOLDER";

/// What a process comes to.
#[derive(Clone, Copy)]
pub(crate) enum Harm {
    /// It is killed after this time.
    Kill(Duration),
    /// Its files cannot grow when it says so: see [`limit_file_size`].
    FullDisk,
    /// Its folder is a file system of its own, of 256 KiB, if this user may mount one: see
    /// [`Filler`].
    SmallDisk,
}

/// In the process that comes to harm, its folder.
pub(crate) fn child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// The arguments with which this program runs one test, by its whole name, and no other.
pub(crate) fn alone(test: &str) -> [&str; 4] {
    [test, "--exact", "--nocapture", "--test-threads=1"]
}

/// This program once more, with one test.
pub(crate) fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(alone(test));
    command
}

/// Runs `test` as the child with this folder, and gives the lines that it told. It must not panic.
pub(crate) fn lines(test: &str, folder: &Path, harm: Harm) -> Vec<String> {
    let mut command = match harm {
        Harm::Kill(_) => again(test),
        Harm::FullDisk => {
            // The signal that a limit sends would end the process; a full disk sends none.
            let mut shell = Command::new("sh");
            shell
                .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
                .arg(std::env::current_exe().unwrap())
                .args(alone(test));
            shell
        }
        Harm::SmallDisk => {
            let script = r#"
                trap '' XFSZ
                mount='mount -t tmpfs -o size=256k tmpfs "$BULLA_KMS_TEST_FOLDER"'
                unshare -rm sh -c "$mount" && exec unshare -rm sh -c "$mount"' && exec "$0" "$@"' "$0" "$@"
                exec "$0" "$@""#;
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).arg(std::env::current_exe().unwrap()).args(alone(test));
            shell
        }
    };
    let mut process =
        command.env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if let Harm::Kill(delay) = harm {
        std::thread::sleep(delay);
        process.kill().unwrap();
    }
    let output = process.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!errors.contains("panicked"), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // What was cut in the middle of a line was not acknowledged.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().filter_map(|line| line.strip_prefix("child: ")).map(str::to_owned).collect()
}

/// What takes all room of a folder's file system, so that the file `log` in it cannot grow.
pub(crate) enum Filler {
    File(PathBuf),
    /// The folder is no file system of its own. A limit on the size of files stands for a full
    /// disk.
    Limit,
}

impl Filler {
    pub(crate) fn new(folder: &Path, log: &Path) -> Self {
        let path = folder.join("everything else");
        let mut file = std::fs::File::create(&path).unwrap();
        for _ in 0..256 {
            if let Err(error) = file.write_all(&[7; 4096]) {
                assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
                return Self::File(path);
            }
        }
        // What the file has on the disk it may use.
        let blocks = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(log).unwrap());
        limit_file_size(&(blocks * 512).to_string());
        Self::Limit
    }

    /// Gives the room back.
    pub(crate) fn empty(self) {
        match self {
            Self::File(path) => std::fs::remove_file(path).unwrap(),
            Self::Limit => limit_file_size("unlimited"),
        }
    }
}

/// Tells the parent something: in one write, at once.
pub(crate) fn tell_parent(text: impl std::fmt::Display) {
    std::io::stdout().write_all(format!("\nchild: {text}\n").as_bytes()).unwrap();
}

/// Limits the size of the files that this process writes, in bytes.
pub(crate) fn limit_file_size(bytes: &str) {
    let status = Command::new("prlimit")
        .arg(format!("--pid={}", std::process::id()))
        .arg(format!("--fsize={bytes}:unlimited"))
        .status()
        .unwrap();
    assert!(status.success(), "prlimit is of the package util-linux");
}
