//! The counts are those of `objdump -d`, to the instruction.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bulla_audit::{Arch, Report, Symbols};

use crate::support::{audited_file, output, width};

/// The lines of `objdump -d` that are instructions, those that name each kind of register, and
/// those that are no instruction.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lines {
    instructions: u64,
    widths: [u64; 3],
    bad: u64,
}

impl Lines {
    fn of(objdump: &str, arch: Arch, path: &Path) -> Self {
        let mut lines = Self::default();
        let text = output(Command::new(objdump).args(["-d", "--no-show-raw-insn"]).arg(path));
        for line in text.lines() {
            // `  401000:<tab>vpaddq %ymm0,%ymm1,%ymm2`; symbols in angle brackets may have any
            // name.
            let Some((address, instruction)) = line.split_once(":\t") else { continue };
            if address.trim().is_empty() || !address.trim().bytes().all(|byte| byte.is_ascii_hexdigit()) {
                continue;
            }
            let instruction = instruction.split(['<', '/', '#']).next().unwrap_or_default();
            lines.add(instruction, arch);
        }
        lines
    }

    fn add(&mut self, instruction: &str, arch: Arch) {
        let is_bad = [".byte", ".inst", "udf", "(bad)", ".short", ".word"]
            .iter()
            .any(|word| instruction.starts_with(word));
        // An instruction whose operands alone mean nothing has a mnemonic, and is one.
        if is_bad && !instruction.starts_with("udf") {
            self.bad += 1;
            return;
        }
        self.instructions += 1;
        let named: [bool; 3] = match arch {
            Arch::X86_64 => ["%xmm", "%ymm", "%zmm"].map(|register| instruction.contains(register)),
            Arch::Aarch64 => aarch64_registers(instruction),
        };
        self.widths.iter_mut().zip(named).for_each(|(count, named)| *count += u64::from(named));
    }

    fn ours(report: &Report) -> Self {
        let widths = report.arch.widths().map(|name| width(report, name));
        Self { instructions: report.total.instructions, widths, bad: report.total.bad }
    }
}

/// Which kinds of registers an AArch64 instruction names: scalar floating point, Advanced SIMD,
/// SVE.
fn aarch64_registers(instruction: &str) -> [bool; 3] {
    let operands = instruction.split_once('\t').map_or("", |(_, operands)| operands);
    let mut named = [false; 3];
    for word in operands.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_') {
        let Some((kind, number)) = word.split_at_checked(1) else { continue };
        // Addresses that are branched to look like registers of large numbers.
        let digits = number.split('.').next().unwrap_or_default();
        if digits.len() > 2 || !digits.parse::<u8>().is_ok_and(|number| number < 32) {
            continue;
        }
        match kind {
            "b" | "h" | "s" | "d" => named[0] = true,
            "v" | "q" => named[1] = true,
            "z" | "p" => named[2] = true,
            _ => {}
        }
    }
    named
}

fn agrees(path: &Path) {
    let report = audited_file(path);
    let lines = Lines::of("objdump", Arch::X86_64, path);
    assert_eq!(Lines::ours(&report), lines, "{}", path.display());
    assert!(lines.instructions > 1000, "{} has hardly any code", path.display());
}

/// A library that this process has loaded.
fn loaded(name: &str) -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").expect("the map of this process");
    let path =
        maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains(name));
    path.unwrap_or_else(|| panic!("no {name} is loaded")).into()
}

fn on_path(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    fs::canonicalize(found.unwrap_or_else(|| panic!("no {name} on the PATH"))).expect("a path")
}

#[test]
fn counts_agree_on_the_c_library_which_has_every_width() {
    let path = loaded("libc.so");
    agrees(&path);
    let report = audited_file(&path);
    assert!(report.arch.widths().iter().all(|name| width(&report, name) > 100), "{:?}", report.total);
}

#[test]
fn counts_agree_on_stripped_programs() {
    for name in ["objdump", "ld", "bash"] {
        let path = on_path(name);
        agrees(&path);
        assert_ne!(audited_file(&path).symbols, Symbols::All);
    }
}

#[test]
fn counts_agree_on_this_test_with_its_symbols_and_without() {
    let own = env::current_exe().expect("a path");
    agrees(&own);
    let folder = tempfile::tempdir().expect("a folder");
    let stripped = folder.path().join("stripped");
    output(Command::new("strip").arg("-o").arg(&stripped).arg(&own));
    agrees(&stripped);
    let (with, without) = (audited_file(&own), audited_file(&stripped));
    assert_eq!((with.symbols, without.symbols), (Symbols::All, Symbols::None));
    assert!(!without.notes.is_empty());
    // Where data stands among code, what is decoded depends on where symbols say to begin; this one
    // has none there.
    assert_eq!(with.total, without.total);
}

#[test]
fn counts_agree_on_aarch64() {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]));
    let folder = Path::new(sysroot.trim()).join("lib/rustlib/aarch64-unknown-linux-gnu/lib");
    let entries =
        fs::read_dir(&folder).expect("the Rust target aarch64-unknown-linux-gnu: rustup target add");
    let library = entries.flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libstd-") && name.ends_with(".so")
    });
    let library = library.expect("a library of the target");
    let report = audited_file(&library);
    assert_eq!(Lines::ours(&report), Lines::of("aarch64-linux-gnu-objdump", Arch::Aarch64, &library));
    assert!(width(&report, "neon") > 1000, "{:?}", report.total);
}
