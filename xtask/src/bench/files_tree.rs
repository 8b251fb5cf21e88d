//! `cargo xtask bench files-tree`: `bulla sum` beside b3sum and sha256sum, as processes on files in the page cache.
//!
//! The contenders of a case run in turns, each time in a new order of turns, and the table has the ratios of the medians of their wall
//! times. All of them get the same names in the same order, and write to a null device.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use bulla_record::stats::median;

use crate::{
    context::{Context, build_program},
    install::{CargoTool, cargo_tool},
    process::quiet,
};

/// The name on the command line.
pub(crate) const NAME: &str = "files-tree";

/// How often each contender of a case runs.
pub(crate) const LAUNCHES: u32 = 11;

const B3SUM: CargoTool = CargoTool { name: "b3sum", version: "1.8.7" };

/// A set of files of random bytes.
struct Files {
    name: &'static str,
    count: usize,
    /// The sizes in bytes, from and to.
    sizes: (usize, usize),
    peers: &'static [&'static str],
    /// The process is too short for a clock that is read once: each run is this many processes.
    repeated: u32,
}

const SETS: [Files; 4] = [
    Files {
        name: "100,000 files of 1 to 4 KiB",
        count: 100_000,
        sizes: (1 << 10, 4 << 10),
        peers: &["b3sum", "sha256sum"],
        repeated: 1,
    },
    Files {
        name: "10,000 files of 64 KiB",
        count: 10_000,
        sizes: (64 << 10, 64 << 10),
        peers: &["b3sum"],
        repeated: 1,
    },
    Files { name: "one file of 4 GiB", count: 1, sizes: (4 << 30, 4 << 30), peers: &["b3sum"], repeated: 1 },
    Files {
        name: "one file of 11 bytes",
        count: 1,
        sizes: (11, 11),
        peers: &["b3sum", "sha256sum"],
        repeated: 200,
    },
];

/// The number of files in the folder that is signed again.
const SIGNED: usize = 200_000;

/// A program with its arguments.
struct Contender {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
}

/// Measures all sets, and signing a folder again; prints the table.
///
/// # Errors
/// A program cannot be built or fails; the disk is full.
pub(crate) fn run(context: &Context, launches: u32) -> Result<ExitCode> {
    let mut build = context.cargo();
    build.args(["build", "--quiet", "--profile=dist", "-p", "bulla"]);
    let bulla = build_program(&mut build)?;
    let b3sum = cargo_tool(context, &B3SUM)?;
    let root = context.target.join("bench-files");
    println!("{}\n", quiet(Command::new(&b3sum).arg("--version"))?.trim());
    println!("| files | bulla, ms | peer | peer, ms | peer / bulla |\n|---|--:|---|--:|--:|");
    for set in &SETS {
        let names = make(&root, set)?;
        let folder = root.join(set.count.to_string()).join(set.sizes.0.to_string());
        let mut contenders = vec![Contender {
            name: "bulla sum".into(),
            program: bulla.clone(),
            arguments: with("sum", &names),
        }];
        for peer in set.peers {
            let program = if *peer == "b3sum" { b3sum.clone() } else { PathBuf::from(peer) };
            contenders.push(Contender { name: (*peer).into(), program, arguments: names.clone() });
        }
        let medians = measure(&folder, &contenders, set.repeated, launches)?;
        for (contender, peer) in contenders.iter().zip(&medians).skip(1) {
            println!(
                "| {} | {:.2} | {} | {peer:.2} | {:.2} |",
                set.name,
                medians[0],
                contender.name,
                peer / medians[0]
            );
        }
    }
    sign_again(&root, &bulla)?;
    Ok(ExitCode::SUCCESS)
}

fn with(command: &str, names: &[String]) -> Vec<String> {
    [command.to_owned()].into_iter().chain(names.iter().cloned()).collect()
}

/// Makes the files, unless an earlier run did, and returns their names in the set's folder.
fn make(root: &Path, set: &Files) -> Result<Vec<String>> {
    let folder = root.join(set.count.to_string()).join(set.sizes.0.to_string());
    // Short names, in folders of a thousand: all of them fit on one command line.
    let names: Vec<String> =
        (0..set.count).map(|index| format!("{:02}/{:03}", index / 1000, index % 1000)).collect();
    if folder.join("complete").is_file() {
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
    fs::write(folder.join("complete"), "")?;
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
fn measure(folder: &Path, contenders: &[Contender], repeated: u32, launches: u32) -> Result<Vec<f64>> {
    let mut times = vec![Vec::new(); contenders.len()];
    // The first turn reads the files into the page cache, and does not count.
    for turn in 0..=launches as usize {
        for place in 0..contenders.len() {
            let index = (turn + place) % contenders.len();
            let time = time(folder, &contenders[index], repeated)?;
            if turn > 0 {
                times[index].push(time);
            }
        }
    }
    Ok(times.iter().map(|times| median(times.iter().copied())).collect())
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

/// Signs a folder of unchanged files again, and prints how long that takes beside signing it the first time.
fn sign_again(root: &Path, bulla: &Path) -> Result<()> {
    let set = Files { name: "", count: SIGNED, sizes: (100, 1000), peers: &[], repeated: 1 };
    make(root, &set)?;
    let parent = root.join(SIGNED.to_string());
    let sign = |arguments: &[&str]| {
        let mut command = Command::new(bulla);
        command.args(["sign", "--quiet"]).args(arguments).arg("100").current_dir(&parent);
        command.env("BULLA_KEYSTORE", root.join("keystore")).env("XDG_CACHE_HOME", root.join("cache"));
        let start = Instant::now();
        quiet(&mut command)?;
        Ok::<_, anyhow::Error>(start.elapsed().as_secs_f64() * 1000.0)
    };
    sign(&["--full"])?;
    let full: Vec<f64> = (0..3).map(|_| sign(&["--full"])).collect::<Result<_>>()?;
    let again: Vec<f64> = (0..5).map(|_| sign(&[])).collect::<Result<_>>()?;
    println!("\nSigning a folder of {SIGNED} unchanged files again: {:.0} ms", median(again.iter().copied()));
    println!("Signing it with --full: {:.0} ms", median(full.iter().copied()));
    Ok(())
}
