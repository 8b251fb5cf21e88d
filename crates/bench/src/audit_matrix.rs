//! `cargo xtask audit-matrix`: builds the same small program in many ways, and shows the result of
//! `bulla audit` for its kernel in each.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, ensure};
use bulla_devtools::{Context, build_program};
use serde_json::Value;

use crate::bench::builds::{Variant, build_variant};

/// The arguments of `cargo xtask audit-matrix`.
#[derive(clap::Args)]
#[command(
    after_help = "Builds two programs that hash with BLAKE2b, one on blake2b_simd and one on bulla-blake2, for each set of flags, \
    without and with link-time optimization, and prints the verdicts of `bulla audit` as Markdown.\n\
    Also audits the release build of bulla.\n\n\
    Exit status: 0 neither bulla nor any build with bulla-blake2 has lost a kernel, 1 one has."
)]
pub(crate) struct Args {}

/// The programs, each with the rules for its kernels.
const PROGRAMS: [(&str, &str); 2] =
    [("with-blake2b-simd", "blake2b_simd/avx2"), ("with-bulla-blake2", "bulla-blake2/avx2")];

const VARIANTS: [Variant; 7] = [
    Variant { name: "no flags", rustflags: "", features: &[] },
    Variant { name: "native", rustflags: "-Ctarget-cpu=native", features: &[] },
    Variant {
        name: "native -avx512vl",
        rustflags: "-Ctarget-cpu=native -Ctarget-feature=-avx512vl",
        features: &[],
    },
    Variant {
        name: "native -avx512f",
        rustflags: "-Ctarget-cpu=native -Ctarget-feature=-avx512f",
        features: &[],
    },
    Variant { name: "x86-64-v3", rustflags: "-Ctarget-cpu=x86-64-v3", features: &[] },
    Variant { name: "no_std", rustflags: "", features: &["--no-default-features"] },
    Variant {
        name: "no_std, native",
        rustflags: "-Ctarget-cpu=native",
        features: &["--no-default-features"],
    },
];

pub(crate) fn run(_: &Args) -> Result<ExitCode> {
    let context = Context::find()?;
    let bulla =
        build_program(context.cargo().args(["build", "--release", "-p", "bulla", "-p", "bulla-audit"]))?;
    println!(
        "| build | LTO | program | xmm | ymm | zmm | kernel | verdict | where |\n|---|---|---|--:|--:|--:|---|---|---|"
    );
    let mut lost = !audit_of_itself(&bulla)?;
    for variant in &VARIANTS {
        for lto in ["off", "fat"] {
            for (program, rule) in PROGRAMS {
                let binary = build(&context, variant, lto, program)?;
                let report = audit(&bulla, &binary)?;
                let (verdict, row) = row(&report, rule)?;
                println!("| {} | {lto} | {program} | {row} |", variant.name);
                lost |= program == "with-bulla-blake2" && verdict == "lost";
            }
        }
    }
    Ok(if lost { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn build(context: &Context, variant: &Variant, lto: &str, program: &str) -> Result<PathBuf> {
    build_variant(context, variant, lto, Path::new("crates/audit/matrix"), program)
}

fn audit(bulla: &Path, binary: &Path) -> Result<Value> {
    // It exits with 1 for a lost kernel, which is a result here.
    let mut command = std::process::Command::new(bulla);
    let output = command.arg("audit").arg("--json").arg(binary).output().context("cannot start bulla")?;
    ensure!(output.status.code() != Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("bulla audit --json")
}

/// Whether `bulla` finds no problem in itself, and finds all our kernels. Problems are printed.
fn audit_of_itself(bulla: &Path) -> Result<bool> {
    let report = audit(bulla, bulla)?;
    let faults = faults(&report)?;
    faults.iter().for_each(|fault| eprintln!("bulla itself: {fault}"));
    Ok(faults.is_empty())
}

/// The problems of one of our programs, for any rule: findings, and missing kernels of its crates.
fn faults(report: &Value) -> Result<Vec<String>> {
    let findings = report["findings"].as_array().context("the report has no findings")?;
    let mut faults: Vec<String> = findings.iter().map(Value::to_string).collect();
    let rules = report["rules"].as_array().context("the report has no rules")?;
    let own =
        rules.iter().filter(|rule| rule["crate"].as_str().is_some_and(|name| name.starts_with("bulla_")));
    for rule in own {
        let is_there = ["present", "not_linked"].iter().any(|verdict| rule["verdict"] == *verdict);
        if !is_there && rule["superseded_by"].is_null() {
            faults.push(format!("{} is {}", rule["rule"], rule["verdict"]));
        }
    }
    Ok(faults)
}

/// The verdict on `rule`, and the columns of a row from the widths on.
fn row(report: &Value, rule: &str) -> Result<(String, String)> {
    let widths = &report["total"]["widths"];
    let rules = report["rules"].as_array().context("the report has no rules")?;
    let found =
        rules.iter().find(|result| result["rule"] == rule).with_context(|| format!("no rule {rule}"))?;
    let verdict = match found["superseded_by"].as_str() {
        Some(better) => format!("superseded by {better}"),
        None => found["verdict"].as_str().unwrap_or_default().replace('_', " "),
    };
    let place = found["evidence"][0]["name"].as_str().unwrap_or("-");
    let columns =
        format!("{} | {} | {} | {rule} | {verdict} | `{place}`", widths["xmm"], widths["ymm"], widths["zmm"]);
    Ok((verdict, columns))
}

/// Checks what the suite of the audit holds of the table, by the command `bulla`: two of its
/// builds, one as it should be and one that inlines.
pub(crate) fn check(context: &Context, bulla: &Path) -> Result<()> {
    let v4 = Variant { name: "x86-64-v4", rustflags: "-Ctarget-cpu=x86-64-v4", features: &[] };
    for (variant, lto, expected) in [(&VARIANTS[0], "off", "present"), (&v4, "fat", "inlined")] {
        for ((program, rule), expected) in PROGRAMS.into_iter().zip([expected, "present"]) {
            let report = audit(bulla, &build(context, variant, lto, program)?)?;
            let (verdict, row) = row(&report, rule)?;
            ensure!(
                verdict == expected,
                "{program}, {}, LTO {lto}: {row}, expected {expected}",
                variant.name
            );
            if program == "with-bulla-blake2" {
                let faults = faults(&report)?;
                ensure!(faults.is_empty(), "{program}, {}, LTO {lto}: {}", variant.name, faults.join("; "));
            }
        }
    }
    Ok(())
}
