//! The suites that `cargo test` runs.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::runner::Runner;
use crate::{
    audit_matrix,
    context::Context,
    documents,
    install::{self, DebianTool},
    model,
    process::quiet,
    report,
};

/// The tests of signatures in minisign's format ask the real minisign.
const MINISIGN: DebianTool = DebianTool { program: "minisign", package: "minisign" };

/// The packages that have a suite of their own.
const APART: [&str; 5] = ["bulla", "bulla-audit", "bulla-kms", "bulla-lab", "bulla-server"];

/// Every package of the workspace that has no suite of its own.
pub(super) fn libraries(runner: &mut Runner<'_>) {
    runner.programs(|package| !APART.contains(&package));
    runner.doc_tests();
    // A workspace of its own: inside ours the tests would switch the standard library on.
    let manifest = runner.context.root.join("crates/blake3/no-std/Cargo.toml").display().to_string();
    let target = runner.context.target.join("no-std").display().to_string();
    runner.cargo_test(&["--locked", "--manifest-path", &manifest, "--target-dir", &target]);
    // Crates of others that name ours by the names of the crates that they were written for. A workspace of its own: the patch is for all of it.
    let manifest = runner.context.root.join("crates/blake3/dependents/Cargo.toml").display().to_string();
    let target = runner.context.target.join("dependents").display().to_string();
    runner.cargo_test(&["--locked", "--manifest-path", &manifest, "--target-dir", &target]);
    runner.check("the vectors in spec/ are what their generator writes", vectors);
}

/// Runs the generator, a workspace of its own, and compares.
fn vectors(context: &Context) -> Result<()> {
    let folder = context.root.join("spec/vectors");
    let fresh = context.target.join("vectors");
    fs::create_dir_all(&fresh)?;
    let mut run = context.cargo();
    run.args(["run", "--quiet", "--release", "--locked", "--target-dir"])
        .arg(context.target.join("vectors-build"))
        .arg("--manifest-path")
        .arg(folder.join("generator/Cargo.toml"))
        .arg("--")
        .arg(&fresh);
    quiet(&mut run)?;
    let mut compared = 0;
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_name().unwrap_or_default();
        let written = fs::read(fresh.join(name)).with_context(|| format!("no {}", name.display()))?;
        ensure!(written == fs::read(&path)?, "{} is not what the generator writes", name.display());
        compared += 1;
    }
    ensure!(compared > 0, "spec/vectors has no vectors");
    Ok(())
}

/// Keys and signatures are compared with those of the real programs, recipients of age too; and what a keystore in memory
/// asks of the system is traced. Shared keystores lie on nodes of etcd that the tests start.
const PEERS: [DebianTool; 5] = [
    DebianTool { program: "openssl", package: "openssl" },
    DebianTool { program: "ssh-keygen", package: "openssh-client" },
    DebianTool { program: "age", package: "age" },
    DebianTool { program: "strace", package: "strace" },
    DebianTool { program: "etcd", package: "etcd-server" },
];

/// The tests of keys on a token make theirs with it.
const SOFTHSM: DebianTool = DebianTool { program: "softhsm2-util", package: "softhsm2" };

pub(super) fn kms(runner: &mut Runner<'_>) {
    runner.need("protobuf", |_| install::protobuf());
    for tool in PEERS.iter().chain([&SOFTHSM]) {
        runner.need(tool.program, |_| install::debian(tool));
    }
    runner.programs(|package| package == "bulla-kms");
    runner.check("the vectors are read in Python", read_vectors);
    // And what a build without them says of algorithms that it does not serve.
    runner.cargo_test(&["-p", "bulla-kms", "--test", "algorithms"]);
}

/// The example reader of another language, with implementations that share no code with ours.
fn read_vectors(context: &Context) -> Result<()> {
    let folder = context.root.join("spec/readers/python");
    let python = install::python_packages(context, &folder.join("requirements.txt"))?;
    let mut run = Command::new(python);
    let said = quiet(run.arg(folder.join("read_vectors.py")).arg(context.root.join("spec/vectors")))?;
    print!("{said}");
    ensure!(said.lines().filter(|line| line.starts_with("ok ")).count() >= 11, "it read too few groups");
    Ok(())
}

pub(super) fn cli(runner: &mut Runner<'_>) {
    runner.need(SOFTHSM.program, |_| install::debian(&SOFTHSM));
    runner.need("minisign", |_| install::debian(&MINISIGN));
    for tool in &PEERS {
        runner.need(tool.program, |_| install::debian(tool));
    }
    runner.programs(|package| package == "bulla");
    let command_line = runner.command_line;
    runner.check("the commands of the documents exist", |context| documents::check(context, command_line));
    runner.check("the tour of the README", documents::check_tour);
}

pub(super) fn server(runner: &mut Runner<'_>) {
    runner.programs(|package| package == "bulla-server");
}

/// The counts of the audit are compared with those of these, and archives made by `ar` are read.
const BINUTILS: [DebianTool; 2] = [
    DebianTool { program: "objdump", package: "binutils" },
    DebianTool { program: "aarch64-linux-gnu-objdump", package: "binutils-aarch64-linux-gnu" },
];

pub(super) fn audit(runner: &mut Runner<'_>) {
    for tool in &BINUTILS {
        runner.need(tool.program, |_| install::debian(tool));
    }
    // Its standard library is the AArch64 code that is compared.
    runner.need("aarch64", |_| install::rust_target("aarch64-unknown-linux-gnu"));
    runner.programs(|package| package == "bulla-audit");
    runner.check("kernels of programs built in several ways", audit_matrix::check);
}

pub(super) fn lab(runner: &mut Runner<'_>) {
    runner.programs(|package| package == "bulla-lab");
    runner.check("every lane with a model can be modelled", model::check);
    runner.check("the table of the README is that of the newest run", report::check_readme);
}
