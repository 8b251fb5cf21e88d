//! Programs that have no kernel: nothing in them is lost.

use std::path::{Path, PathBuf};
use std::process::Command;

use bulla_audit::{Config, Report, Style, Verdict, check, render};
use tempfile::TempDir;

use crate::support::{audited, audited_file, output, stripped_elf};

/// The smallest program that prints, optimized, with these flags.
fn hello(folder: &TempDir, flags: &[&str]) -> PathBuf {
    let source = folder.path().join("hello.rs");
    std::fs::write(&source, "fn main() {\n    println!(\"hi\");\n}\n").expect("written");
    let program = folder.path().join("hello");
    output(
        Command::new("rustc").args(["-O", "--edition=2024"]).args(flags).arg("-o").arg(&program).arg(&source),
    );
    program
}

fn nothing_is_lost(report: &Report, path: &Path) {
    let findings = check(report, &Config::default());
    assert!(findings.is_empty(), "{}: {findings:?}", path.display());
}

#[test]
fn no_kernel_is_missed_in_a_program_of_the_standard_library_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    for flags in [&[][..], &["-Ctarget-cpu=x86-64-v3"], &["-Cstrip=symbols"]] {
        let program = hello(&folder, flags);
        let report = audited_file(&program);
        nothing_is_lost(&report, &program);
        assert!(
            report.rules.iter().all(|result| !result.verdict.is_there()),
            "{flags:?}: {:?}",
            report.rules
        );
    }
}

/// The standard library's own copy of the crate is what used to be taken for one that lost its
/// kernel.
#[test]
fn the_standard_library_has_a_memchr_that_is_none_of_the_crate() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = audited_file(&hello(&folder, &[]));
    assert!(report.crates.iter().any(|krate| krate.name == "memchr"), "{:?}", report.crates);
    let verdict = report.rules.iter().find(|result| result.rule == "memchr/avx2").expect("the rule").verdict;
    assert_eq!(verdict, Verdict::NotLinked);
}

#[test]
fn the_rules_themselves_as_data_show_nothing() {
    let rules = include_bytes!("../../rules/builtin.toml");
    let report = audited(&stripped_elf(b"\xc3", rules));
    nothing_is_lost(&report, Path::new("the rules"));
    for result in &report.rules {
        assert_eq!((result.verdict, result.evidence.len()), (Verdict::Unknown, 0), "{}", result.rule);
    }
}

#[test]
fn a_stripped_program_without_kernels_has_one_line_for_all_of_them() {
    let report = audited(&stripped_elf(b"\xc3", b""));
    let text = render(&report, None, &[], Style::Table, 10);
    assert!(!text.contains("unknown"), "{text}");
    let lines: Vec<_> = text.lines().filter(|line| line.contains("memchr/avx2")).collect();
    assert!(matches!(lines[..], [line] if line.contains("without symbols, nobody can know")), "{text}");
}
