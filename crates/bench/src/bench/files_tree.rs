//! `cargo xtask bench files-tree`: `bulla sum` beside b3sum and sha256sum, as processes on files in
//! the page cache.
//!
//! The contenders of a case run in turns, each time in a new order of turns, and the table has the
//! ratios of the medians of their wall times. All of them get the same names in the same order, and
//! write to a null device. `bulla sum -r` finds the names itself.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, build_program, quiet};
use bulla_record::stats::median;

use super::harness::Selection;

/// The name on the command line.
pub(crate) const NAME: &str = "files-tree";

/// How often each contender of a case runs.
pub(crate) const LAUNCHES: u32 = 11;

/// The version of b3sum.
const B3SUM: &str = "1.8.7";

/// A set of files of random bytes, and how they are read.
struct Files {
    /// The name for `--cases`.
    case: &'static str,
    name: &'static str,
    count: usize,
    /// The sizes in bytes, from and to.
    sizes: (usize, usize),
    /// The programs beside `bulla sum`, which is the first contender.
    peers: &'static [&'static str],
    /// The process is too short for a clock that is read once: each run is this many processes.
    repeated: u32,
    cache: Cache,
}

/// Where the content of the files is before each run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cache {
    /// In memory.
    Warm,
    /// On the disk: `dd` tells the system to drop it, by posix_fadvise.
    Cold,
}

const SETS: [Files; 5] = [
    Files {
        case: "small",
        name: "100,000 files of 1 to 4 KiB",
        count: 100_000,
        sizes: (1 << 10, 4 << 10),
        peers: &[WALK_CONTENDER, "b3sum", "sha256sum"],
        repeated: 1,
        cache: Cache::Warm,
    },
    Files {
        case: "medium",
        name: "10,000 files of 64 KiB",
        count: 10_000,
        sizes: (64 << 10, 64 << 10),
        peers: &[WALK_CONTENDER, "b3sum"],
        repeated: 1,
        cache: Cache::Warm,
    },
    Files {
        case: "large",
        name: "one file of 4 GiB",
        count: 1,
        sizes: (4 << 30, 4 << 30),
        peers: &["b3sum"],
        repeated: 1,
        cache: Cache::Warm,
    },
    Files {
        case: "cold",
        name: "one file of 4 GiB, not in the page cache",
        count: 1,
        sizes: (4 << 30, 4 << 30),
        peers: &["b3sum"],
        repeated: 1,
        cache: Cache::Cold,
    },
    Files {
        case: "start",
        name: "one file of 11 bytes",
        count: 1,
        sizes: (11, 11),
        peers: &["b3sum", "sha256sum"],
        repeated: 200,
        cache: Cache::Warm,
    },
];

/// The contender that gets a folder instead of names.
const WALK_CONTENDER: &str = "bulla sum -r";

/// The case that signs a folder.
const SIGN_CASE: &str = "sign";

/// The number of files in the folder that is signed again.
const SIGNED_FILES: usize = 200_000;

/// A program with its arguments.
struct Contender {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
}

/// Measures the selected sets, and signing a folder again; prints the table.
///
/// # Errors
/// No case has a selected name; a program cannot be built or fails; the disk is full.
pub(crate) fn run(context: &Context, launches: u32, cases: &[String]) -> Result<ExitCode> {
    let selection = Selection { sizes: vec![], cases: cases.to_vec() };
    let is_wanted = |case: &str| selection.takes(NAME, case, 0);
    let sets: Vec<_> = SETS.iter().filter(|set| is_wanted(set.case)).collect();
    ensure!(!sets.is_empty() || is_wanted(SIGN_CASE), "{NAME} has no case of this name");
    let mut build = context.cargo();
    build.args(["build", "--quiet", "--profile=dist", "-p", "bulla"]);
    let bulla = build_program(&mut build)?;
    let b3sum = b3sum(context)?;
    let root = context.target.join("bench-files");
    println!("{}\n", quiet(Command::new(&b3sum).arg("--version"))?.trim());
    if !sets.is_empty() {
        println!("| files | bulla sum, ms | other | other, ms | other / bulla sum |\n|---|--:|---|--:|--:|");
    }
    for set in sets {
        let names = make(&root, set)?;
        let contenders: Vec<_> = ["bulla sum"]
            .iter()
            .chain(set.peers)
            .map(|name| Contender::new(name, &names, &bulla, &b3sum))
            .collect();
        let medians = measure(&set.folder(&root), &contenders, set, launches)?;
        for (contender, other) in contenders.iter().zip(&medians).skip(1) {
            let (name, ours, ratio) = (set.name, medians[0], other / medians[0]);
            println!("| {name} | {ours:.2} | {} | {other:.2} | {ratio:.2} |", contender.name);
        }
    }
    if is_wanted(SIGN_CASE) {
        sign_again(&root, &bulla)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// b3sum as its authors build it. The b3sum of the tests is built quickly, and is slow.
fn b3sum(context: &Context) -> Result<PathBuf> {
    let root = context.tools().join(format!("b3sum-{B3SUM}-optimized"));
    let program = root.join("bin/b3sum");
    if !program.is_file() {
        eprintln!("xtask: building b3sum {B3SUM} (once)");
        let mut install = context.cargo();
        install.args(["install", "--quiet", "--locked", "b3sum", "--version", B3SUM, "--root"]).arg(&root);
        quiet(install.arg("--target-dir").arg(context.target.join("tools-build")))?;
    }
    Ok(program)
}

impl Contender {
    fn new(name: &str, names: &[String], bulla: &Path, b3sum: &Path) -> Self {
        let (program, arguments) = match name {
            "bulla sum" => (bulla.to_owned(), with(&["sum"], names)),
            WALK_CONTENDER => (bulla.to_owned(), with(&["sum", "-r"], &[".".to_owned()])),
            "b3sum" => (b3sum.to_owned(), names.to_vec()),
            other => (PathBuf::from(other), names.to_vec()),
        };
        Self { name: name.to_owned(), program, arguments }
    }
}

impl Files {
    fn folder(&self, root: &Path) -> PathBuf {
        root.join(self.count.to_string()).join(self.sizes.0.to_string())
    }
}

fn with(command: &[&str], names: &[String]) -> Vec<String> {
    command.iter().map(|word| (*word).to_owned()).chain(names.iter().cloned()).collect()
}

/// Makes the files, unless an earlier run did, and returns their names in the set's folder.
fn make(root: &Path, set: &Files) -> Result<Vec<String>> {
    let folder = set.folder(root);
    // Short names, in folders of a thousand: all of them fit on one command line.
    let names: Vec<String> =
        (0..set.count).map(|index| format!("{:02}/{:03}", index / 1000, index % 1000)).collect();
    // Beside the folder: a walk must find nothing else in it.
    let complete = folder.with_extension("complete");
    if complete.is_file() {
        return Ok(names);
    }
    let mut noise = Noise(1);
    for (index, name) in names.iter().enumerate() {
        let path = folder.join(name);
        if index % 1000 == 0 {
            fs::create_dir_all(path.parent().context("a folder")?)?;
        }
        let (from, to) = set.sizes;
        let len = from + noise.next() as usize % (to - from + 1);
        noise.write(&path, len)?;
    }
    fs::write(complete, "")?;
    Ok(names)
}

/// Bytes that look random (xorshift64, G. Marsaglia, 2003).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn write(&mut self, path: &Path, mut size: usize) -> Result<()> {
        let mut file = fs::File::create(path)?;
        while size > 0 {
            let piece: Vec<u8> =
                (0..size.min(1 << 20).div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
            let len = piece.len().min(size);
            file.write_all(&piece[..len])?;
            size -= len;
        }
        Ok(())
    }
}

/// The median wall time of each contender in milliseconds.
fn measure(folder: &Path, contenders: &[Contender], set: &Files, launches: u32) -> Result<Vec<f64>> {
    let mut times = vec![Vec::new(); contenders.len()];
    // The first turn reads the files into the page cache, and does not count.
    let first = if set.cache == Cache::Warm { 0 } else { 1 };
    for turn in first..=launches as usize {
        for place in 0..contenders.len() {
            let index = (turn + place) % contenders.len();
            if set.cache == Cache::Cold {
                drop_cache(folder)?;
            }
            let time = time(folder, &contenders[index], set.repeated)?;
            if turn > 0 {
                times[index].push(time);
            }
        }
    }
    Ok(times.iter().map(|times| median(times.iter().copied())).collect())
}

/// Removes the only file of a folder from the page cache.
fn drop_cache(folder: &Path) -> Result<()> {
    let file = folder.join("00/000");
    quiet(Command::new("sync").arg(&file))?;
    let argument = format!("if={}", file.display());
    quiet(Command::new("dd").args([&argument, "iflag=nocache", "count=0"]))?;
    Ok(())
}

fn time(folder: &Path, contender: &Contender, repeated: u32) -> Result<f64> {
    let mut command = Command::new(&contender.program);
    command.args(&contender.arguments).current_dir(folder).stdout(Stdio::null());
    let start = Instant::now();
    for _ in 0..repeated {
        let status = command.status().with_context(|| format!("cannot run {}", contender.name))?;
        ensure!(status.success(), "{} failed: {status}", contender.name);
    }
    Ok(start.elapsed().as_secs_f64() * 1000.0 / f64::from(repeated))
}

/// Signs a folder of unchanged files again, and prints how long that takes beside signing it the
/// first time.
fn sign_again(root: &Path, bulla: &Path) -> Result<()> {
    let set = Files {
        case: SIGN_CASE,
        name: "",
        count: SIGNED_FILES,
        sizes: (100, 1000),
        peers: &[],
        repeated: 1,
        cache: Cache::Warm,
    };
    make(root, &set)?;
    let parent = root.join(SIGNED_FILES.to_string());
    let keystore = root.join("keystore");
    if !keystore.exists() {
        quiet(Command::new(bulla).args(["keystore", "init"]).env("BULLA_KEYSTORE", &keystore))?;
    }
    let sign = |arguments: &[&str]| {
        let mut command = Command::new(bulla);
        command.args(["sign", "--quiet"]).args(arguments).arg("100").current_dir(&parent);
        command.env("BULLA_KEYSTORE", &keystore).env("XDG_CACHE_HOME", root.join("cache"));
        let start = Instant::now();
        quiet(&mut command)?;
        Ok::<_, anyhow::Error>(start.elapsed().as_secs_f64() * 1000.0)
    };
    sign(&["--full"])?;
    let full: Vec<f64> = (0..3).map(|_| sign(&["--full"])).collect::<Result<_>>()?;
    let again: Vec<f64> = (0..5).map(|_| sign(&[])).collect::<Result<_>>()?;
    println!(
        "\nSigning a folder of {SIGNED_FILES} unchanged files again: {:.0} ms",
        median(again.iter().copied())
    );
    println!("Signing it with --full: {:.0} ms", median(full.iter().copied()));
    Ok(())
}
