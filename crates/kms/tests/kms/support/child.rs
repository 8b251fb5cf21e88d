//! A test that starts its program again, as the process that comes to harm. A variable tells that process so.

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

/// Tells the parent something: in one write, at once.
pub(crate) fn tell(text: impl std::fmt::Display) {
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
