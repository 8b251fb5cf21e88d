//! What the tests of several crates share: a home of its own for each test, a running service,
//! nodes of etcd, a proxy with faults, and the programs of others.
#![forbid(unsafe_code)]
#![cfg(unix)]
#![allow(missing_docs, reason = "only tests use it")]

pub mod etcd;
pub mod proxy;
pub mod serving;
pub mod strikes;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// The path of a program of ours, such as `bulla-serve`: all of them are in one folder.
///
/// # Panics
/// It was not built.
#[must_use]
pub fn program(name: &str) -> String {
    let path = programs_folder().join(name);
    assert!(
        path.exists(),
        "{} is missing: build it with `cargo build --workspace --bin {name}`",
        path.display()
    );
    path.into_os_string().into_string().expect("the build folder has a plain name")
}

/// The folder of our programs: the one that the test command keeps them in, or the build's, whose
/// folder `deps` has the tests.
fn programs_folder() -> PathBuf {
    if let Some(kept) = env::var_os("BULLA_TEST_PROGRAMS") {
        return kept.into();
    }
    let test = env::current_exe().expect("the test is a file");
    test.ancestors().nth(2).expect("a folder above `deps`").to_owned()
}

/// The command.
#[must_use]
pub fn bulla() -> &'static str {
    static BULLA: OnceLock<String> = OnceLock::new();
    BULLA.get_or_init(|| program("bulla"))
}

/// A folder to work in, with a home folder beside it.
pub struct Home {
    root: TempDir,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(root.path().join("work")).expect("a folder to work in");
        fs::create_dir(root.path().join("home")).expect("a home folder");
        Self { root }
    }

    /// The folder that commands run in.
    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The keystore's folder: the one in the user's data folder, which a command may create.
    pub fn keystore(&self) -> PathBuf {
        self.root.path().join("home/bulla")
    }

    pub fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.work().join(name.as_ref())
    }

    pub fn write(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        fs::write(path, content).expect("the file is written");
    }

    /// Waits until a file is so old that its time would be another one if it were written now. Only
    /// then does bulla trust its times.
    pub fn wait_until_settled(&self, name: impl AsRef<OsStr>) {
        let written =
            fs::metadata(self.path(name)).and_then(|file| file.modified()).expect("the file is there");
        let since_1970 = written.duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970");
        // Some file systems have whole seconds alone.
        let step = Duration::from_millis(if since_1970.subsec_nanos() == 0 { 2000 } else { 20 });
        while written.elapsed().is_ok_and(|age| age <= step) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Writes a file that only its owner may use, as files with secrets have to be.
    pub fn write_secret(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        self.write(name.as_ref(), content);
        self.chmod(name, 0o600);
    }

    pub fn chmod(&self, name: impl AsRef<OsStr>, mode: u32) {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(self.path(name), permissions).expect("the mode is changed");
    }

    pub fn read(&self, name: impl AsRef<OsStr>) -> Vec<u8> {
        fs::read(self.path(name)).expect("the file is read")
    }

    /// The command, in the working folder, with an environment of nothing but this home.
    pub fn command(&self) -> Command {
        self.program(bulla())
    }

    /// The command, which signals reach: a program that a shell starts in the background, or by
    /// `nohup`, ignores some, and so do its children.
    pub fn interruptible(&self) -> Command {
        let mut command = self.program("env");
        command.args(["--default-signal=HUP,INT,TERM", bulla()]);
        command
    }

    /// Any program in the same place.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path().join("home"))
            .env("XDG_DATA_HOME", self.root.path().join("home"))
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Done {
        Done::of(self.command().args(args))
    }

    /// Every name in the working folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.work()).expect("the working folder is read");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// A command that runs. If a test fails before the command ends, it is killed: it might run for
/// minutes, and hold the test's pipes.
pub struct Running(Option<Child>);

impl Running {
    pub fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().expect("the command runs")))
    }

    /// Waits until the command ends.
    pub fn end(mut self) -> Done {
        let child = self.0.take().expect("it runs");
        Done::from(child.wait_with_output().expect("the command ends"))
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect("it runs")
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("it runs")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_command_is_killed_when_its_test_fails() {
    let mut command = Command::new("sleep");
    let process = {
        let running = Running::start(command.arg("600"));
        rustix::process::Pid::from_child(&running)
    };
    let gone = rustix::process::test_kill_process(process);
    assert_eq!(gone, Err(rustix::io::Errno::SRCH));
}

/// A command that has ended.
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub output: Output,
}

impl Done {
    pub fn of(command: &mut Command) -> Self {
        Self::from(command.output().expect("the command runs"))
    }

    /// Runs with `input` on standard input.
    pub fn with_input(command: &mut Command, input: &[u8]) -> Self {
        use std::io::Write;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command may end before it has read everything.
        let _ = stdin.write_all(input);
        drop(stdin);
        Self::from(child.wait_with_output().expect("the command ends"))
    }

    /// Asserts the exit status; shows everything when it is another one.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that standard output has `text` in it.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(
            self.stdout.contains(text),
            "{text:?} is not in stdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Asserts that standard error has `text` in it.
    #[track_caller]
    pub fn complains(self, text: &str) -> Self {
        assert!(
            self.stderr.contains(text),
            "{text:?} is not in stderr:\n{}\nstdout:\n{}",
            self.stderr,
            self.stdout
        );
        self
    }

    /// Each line of standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Vec<serde_json::Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            output,
        }
    }
}

/// Runs `script` where the disk holds little: on a small file system of its own if this user may
/// mount one, else under a limit on the size of files. `$SMALL` is the folder.
pub fn with_little_space(home: &Home, script: &str) -> Done {
    let mount = "mount -t tmpfs -o size=256k tmpfs \"$SMALL\"";
    let may_mount =
        Done::of(home.program("unshare").args(["-rm", "sh", "-c", mount]).env("SMALL", home.path("small")));
    let mut command = if may_mount.code == Some(0) {
        let mut command = home.program("unshare");
        command.args(["-rm", "bash", "-c", &format!("{mount} && {script}")]);
        command
    } else {
        let mut command = home.program("bash");
        command.args(["-c", &format!("ulimit -f 256 && {script}")]);
        command
    };
    Done::of(command.env("SMALL", home.path("small")).env("BULLA", bulla()))
}

/// The real b3sum, built once from the registry into the user's cache, where the tools of `cargo
/// xtask` are; without a home folder, into the target folder.
pub fn b3sum() -> &'static Path {
    static B3SUM: OnceLock<PathBuf> = OnceLock::new();
    B3SUM.get_or_init(|| {
        let tmp = programs_folder().join("b3sum");
        let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
        let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache")));
        let root = cache.map_or(tmp.clone(), |cache| cache.join("bulla-xtask")).join("b3sum-1.8.7");
        let program = root.join("bin/b3sum");
        if !program.exists() {
            // Its build must be quick rather than its code: it hashes a few bytes. Cargo puts the
            // program in its place in one step.
            let status = Command::new(env!("CARGO"))
                .args(["install", "b3sum", "--version", "1.8.7", "--locked", "--quiet", "--root"])
                .arg(&root)
                .env("CARGO_TARGET_DIR", tmp.join("b3sum-build"))
                .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
                .env("CARGO_PROFILE_RELEASE_LTO", "off")
                .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "256")
                .env_remove("RUSTC_BOOTSTRAP")
                .status()
                .expect("cargo runs");
            assert!(status.success(), "b3sum 1.8.7 could not be installed from the registry");
        }
        program
    })
}

/// The real minisign.
pub fn minisign() -> &'static str {
    let found = Command::new("minisign").arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(found.is_ok(), "the program minisign is missing: install the Debian package `minisign`");
    "minisign"
}

/// The real signify, which Debian calls `signify-openbsd`.
pub fn signify() -> &'static str {
    let found = Command::new("signify-openbsd").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(found.is_ok(), "the program signify is missing: install the Debian package `signify-openbsd`");
    "signify-openbsd"
}

/// `len` bytes that look random and are the same each time.
pub fn content(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
