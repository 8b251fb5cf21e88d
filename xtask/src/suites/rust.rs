//! The suites that `cargo test` runs.

use std::{env::consts::DLL_SUFFIX, path::Path, process::Command};

use anyhow::{Result, ensure};
use bulla_devtools::{
    Context,
    install::{self, DebianArchive, DebianFile, DebianTool, GoTool, PythonSources},
    quiet, wine,
};

use super::{
    go::{formatted, go},
    programs,
    runner::Runner,
    server::{JAVA, passed_unittest},
    serving::{Prepared, Serving},
};
use crate::{
    documents::{self, Parsers},
    forward::BENCH,
    program::{FEATURES, QUICK},
};

/// The tests of signatures in the formats of other programs, and of the agent, use these programs.
const SIGNERS: [DebianTool; 3] = [
    DebianTool { program: "minisign", package: "minisign" },
    DebianTool { program: "signify-openbsd", package: "signify-openbsd" },
    DebianTool { program: "git", package: "git" },
];

/// The tests of the agent log in at it. It is not on the PATH of every user.
const SSHD: DebianFile = DebianFile { path: "/usr/sbin/sshd", package: "openssh-server" };

/// It writes and verifies bundles of Sigstore.
pub(super) const COSIGN: DebianArchive = DebianArchive {
    packages: [
        (
            "x86_64",
            "pool/main/c/cosign/cosign_2.5.0-2+b5_amd64.deb",
            "3b6eadd27f3c4c00bfa7eab5c2397a6a15a763630c7a1d40d06ff60d24799eef",
        ),
        (
            "aarch64",
            "pool/main/c/cosign/cosign_2.5.0-2+b5_arm64.deb",
            "158915eb65c7e024f596958972d76e7feef25355ffaa0dd57d27afb969103028",
        ),
    ],
    instead: GoTool { name: "cosign", package: "github.com/sigstore/cosign/v2/cmd/cosign", version: "2.5.0" },
};

/// The first age that encrypts to X-Wing itself. Debian has an older one.
const NEWER_AGE: GoTool = GoTool { name: "age", package: "filippo.io/age/cmd/...", version: "1.3.2" };

/// The packages that have a suite of their own.
const APART: [&str; 9] = [
    "bulla",
    "bulla-audit",
    "bulla-client",
    "bulla-etcd",
    "bulla-kms",
    "bulla-lab",
    "bulla-pkcs11",
    "bulla-remote",
    "bulla-server",
];

/// The crates whose functions see secrets of Ed25519.
const SEE_SECRETS: [&str; 7] =
    ["block-buffer", "bulla-blake3", "bulla-ed25519", "bulla-simd", "curve25519-dalek", "digest", "sha2"];

/// Every package of the workspace that has no suite of its own.
pub(super) fn libraries(runner: &mut Runner<'_>) {
    runner.programs(|package| !APART.contains(&package));
    runner.doc_tests();
    // In a build without optimization, kernels take more of the stack, and secrets are deeper in
    // it. The other crates are those of the tests.
    let unoptimized = SEE_SECRETS.map(|name| format!("--config=profile.test.package.{name}.opt-level=0"));
    let mut arguments: Vec<_> = unoptimized.iter().map(String::as_str).collect();
    arguments.extend(["-p", "bulla-ed25519", "-p", FEATURES, "--lib", "--"]);
    arguments.extend(["wipe", "a_small_stack_is_enough"]);
    runner.cargo_test(&arguments);
    // It is a workspace of its own: in ours, the tests would enable the standard library.
    let manifest = runner.context.root.join("crates/blake3/no-std/Cargo.toml").display().to_string();
    let target = runner.context.target.join("no-std").display().to_string();
    runner.cargo_test(&["--locked", "--manifest-path", &manifest, "--target-dir", &target]);
    // Crates of others, built with our crates under the names of the original ones. It is a
    // workspace of its own, because the patch applies to all of it.
    let manifest = runner.context.root.join("crates/blake3/dependents/Cargo.toml").display().to_string();
    let target = runner.context.target.join("dependents").display().to_string();
    runner.cargo_test(&["--locked", "--manifest-path", &manifest, "--target-dir", &target]);
}

/// The tests compare keys, signatures and age recipients with those of the real programs, and trace
/// the system calls of a keystore in memory. Shared keystores are on nodes of etcd that the tests
/// start.
pub(super) const PEERS: [DebianTool; 5] = [
    DebianTool { program: "openssl", package: "openssl" },
    DebianTool { program: "ssh-keygen", package: "openssh-client" },
    DebianTool { program: "age", package: "age" },
    DebianTool { program: "strace", package: "strace" },
    DebianTool { program: "etcd", package: "etcd-server" },
];

/// The tests of keys on a token create their tokens with it.
const SOFTHSM: DebianTool = DebianTool { program: "softhsm2-util", package: "softhsm2" };

pub(super) fn kms(runner: &mut Runner<'_>) {
    runner.need("protobuf", |_| install::protobuf());
    for tool in PEERS.iter().chain([&SOFTHSM]) {
        runner.need(tool.program, |_| install::debian(tool));
    }
    runner.programs(|package| ["bulla-etcd", "bulla-kms"].contains(&package));
    runner.check("the vectors are read in Python", read_vectors);
    // A build without the features must refuse their algorithms. The one feature, of a dependency,
    // makes the libraries the same as those of the shipped command.
    let package = ["-p", "bulla-kms", "-p", FEATURES, "--features", "bulla-blake3/bao"];
    runner.cargo_test(&[&QUICK[..], &package, &["--test", "algorithms"]].concat());
}

/// The example reader in another language, with implementations that share no code with ours.
fn read_vectors(context: &Context) -> Result<()> {
    let folder = context.root.join("spec/readers/python");
    let python = install::python_packages(context, "python", &folder.join("requirements.txt"))?;
    let mut run = Command::new(python);
    let said = quiet(run.arg(folder.join("read_vectors.py")).arg(context.root.join("spec/vectors")))?;
    print!("{said}");
    ensure!(said.lines().filter(|line| line.starts_with("ok ")).count() >= 15, "it read too few groups");
    Ok(())
}

/// Nodes of the service are behind haproxy, and the commands of the runbook need these.
pub(super) const CLUSTER: [DebianTool; 4] = [
    DebianTool { program: "haproxy", package: "haproxy" },
    DebianTool { program: "etcdctl", package: "etcd-client" },
    DebianTool { program: "socat", package: "socat" },
    DebianTool { program: "curl", package: "curl" },
];

pub(super) fn cli(runner: &mut Runner<'_>) {
    runner.need(SOFTHSM.program, |_| install::debian(&SOFTHSM));
    for tool in PEERS.iter().chain(&SIGNERS) {
        runner.need(tool.program, |_| install::debian(tool));
    }
    runner.need("sshd", |_| install::debian_file(&SSHD));
    runner.programs(|package| matches!(package, "bulla" | "bulla-remote"));
    let parsers = runner.parsers(Path::new("bulla"));
    runner.check("the commands of the documents exist", |context| {
        documents::check(context, &Parsers { bulla: &programs::built(context)?.command, ..parsers })
    });
    runner.check("signatures by in-toto, securesystemslib, cosign and model_signing", |context| {
        let folder = context.root.join("crates/cli/tests/peers");
        let python = install::python_packages(context, "python-peers", &folder.join("requirements.txt"))?;
        let mut command = Command::new(python);
        command.arg("-B").arg(folder.join("test_listed.py"));
        command.env("BULLA", &programs::built(context)?.command);
        passed_unittest(command.env("COSIGN", install::debian_archive(context, &COSIGN)?), 8)
    });
    runner.check("signatures by PyJWT and joserfc", |context| {
        let folder = context.root.join("crates/cli/tests/peers");
        let python = install::python_packages(context, "python-peers", &folder.join("requirements.txt"))?;
        let mut command = Command::new(python);
        command.arg("-B").arg(folder.join("test_jws.py"));
        passed_unittest(command.env("BULLA", &programs::built(context)?.command), 3)
    });
    runner.check("age 1.3 and keys of a keystore", |context| {
        let mut command = Command::new("python3");
        command.arg("-B").arg(context.root.join("crates/cli/tests/peers/test_age.py"));
        command.env("BULLA", &programs::built(context)?.command);
        passed_unittest(command.env("AGE", install::go_tool(context, &NEWER_AGE)?), 3)
    });
    runner.check("rage's library and keys of a keystore", |context| {
        let folder = context.root.join("crates/cli/tests/peers");
        let python = install::python_packages(context, "python-peers", &folder.join("requirements.txt"))?;
        let mut command = Command::new(python);
        command.arg("-B").arg(folder.join("test_rage.py"));
        passed_unittest(command.env("BULLA", &programs::built(context)?.command), 2)
    });
    runner.check("the tours of the documents", |context| {
        documents::check_tours(context, &programs::built(context)?.command)
    });
}

/// Programs that expect a token. The tests start them with our module.
const EXPECT_TOKENS: [DebianTool; 5] = [
    SOFTHSM,
    DebianTool { program: "pkcs11-tool", package: "opensc" },
    DebianTool { program: "p11tool", package: "gnutls-bin" },
    DebianTool { program: "osslsigncode", package: "osslsigncode" },
    DebianTool { program: "ssh", package: "openssh-client" },
];

pub(super) fn pkcs11(runner: &mut Runner<'_>) {
    for tool in EXPECT_TOKENS.iter().chain(&PEERS[..1]) {
        runner.need(tool.program, |_| install::debian(tool));
    }
    runner.need("sshd", |_| install::debian_file(&SSHD));
    runner.need("OpenSSL's engine for PKCS #11", |_| install::openssl_engine());
    // `keytool` and `jarsigner` come with the compiler.
    runner.need(JAVA[0].program, |_| install::debian(&JAVA[0]));
    runner.programs(|package| package == "bulla-pkcs11");
    let folder = runner.context.root.join("crates/pkcs11/tests/clients");
    runner.check("python-pkcs11", |context| {
        let folder = folder.join("python");
        let python = install::python_packages(context, "python-pkcs11", &folder.join("requirements.txt"))?;
        let mut command = Command::new(python);
        command.arg("-B").arg(folder.join("test_pkcs11.py"));
        passed_unittest(over_a_service(context, &mut command)?.named_in(&mut command), 4)
    });
    runner.check("python-pkcs11's own tests", |context| {
        let folder = folder.join("python");
        let python = install::python_packages(context, "python-pkcs11", &folder.join("requirements.txt"))?;
        let sources = install::python_sources(context, &python, &PYTHON_PKCS11)?;
        let mut command = Command::new(python);
        command.arg("-B").arg(folder.join("own_tests.py")).arg(sources);
        // The program knows how many must pass.
        let output = over_a_service(context, &mut command)?.named_in(&mut command).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        println!("{}", said.lines().last().unwrap_or_default());
        Ok(())
    });
    let folder = folder.join("go");
    runner.check("gofmt, crypto11", |_| formatted(&folder));
    runner.command("go vet, crypto11", go(&folder).args(["vet", "./..."]));
    let mut test = go(&folder);
    test.args(["test", "-json", "-count=1", "./..."]);
    match over_a_service(runner.context, &mut test) {
        Ok(service) => runner.go_test("go test, crypto11", service.named_in(&mut test)),
        Err(error) => runner.need("a service for crypto11", |_| Err(error)),
    }
}

/// The tests of python-pkcs11 are in its sources alone.
const PYTHON_PKCS11: PythonSources = PythonSources {
    package: "python-pkcs11==0.10.1",
    file: "python_pkcs11-0.10.1.tar.gz",
    digest: "e0d7ccede3b3145a678d7c8c59b3c64dcebeb77c9146ad3394a4b1309c4ab2a2",
};

/// Starts a service for a program that loads our module, and tells the program where the module is.
fn over_a_service(context: &Context, program: &mut Command) -> Result<Serving> {
    const OPERATIONS: [&str; 10] = [
        "sign",
        "verify",
        "read",
        "create",
        "destroy",
        "encrypt",
        "decrypt",
        "mac",
        "verify_mac",
        "derive_shared_secret",
    ];
    let bulla = &programs::built(context)?.command;
    let prepared = Prepared::new(bulla, context.target.join("pkcs11-clients"))?;
    program.env("BULLA_PKCS11_MODULE", bulla.with_file_name(format!("lib{}{DLL_SUFFIX}", programs::MODULE)));
    // No file of settings, so that the variables name the service.
    program.env("XDG_CONFIG_HOME", prepared.path("settings")).env_remove("BULLA_PKCS11_CONFIG");
    prepared.serve(&OPERATIONS)
}

/// The tests compare the audit's counts with those of these programs, and read archives made by
/// `ar`.
const BINUTILS: [DebianTool; 2] = [
    DebianTool { program: "objdump", package: "binutils" },
    DebianTool { program: "aarch64-linux-gnu-objdump", package: "binutils-aarch64-linux-gnu" },
];

pub(super) fn audit(runner: &mut Runner<'_>) {
    for tool in &BINUTILS {
        runner.need(tool.program, |_| install::debian(tool));
    }
    // Its standard library is the AArch64 code that the tests compare.
    runner.need("aarch64", |_| install::rust_target("aarch64-unknown-linux-gnu"));
    runner.programs(|package| package == "bulla-audit");
    match programs::built(runner.context) {
        Ok(programs) => runner.forward(
            "kernels of programs built in several ways",
            BENCH,
            &["check".as_ref(), "audited-builds".as_ref(), programs.command.as_ref()],
        ),
        Err(error) => runner.need("bulla", |_| Err(error)),
    }
}

pub(super) fn lab(runner: &mut Runner<'_>) {
    runner.programs(|package| package == "bulla-lab");
    for (name, check) in [
        ("every lane with a model can be modeled", "models"),
        ("the machine code of kernels for other machines", "code"),
        ("the table of the README is that of the newest run", "readme-table"),
    ] {
        runner.forward(name, BENCH, &["check".as_ref(), check.as_ref()]);
    }
}

/// Packages, and the tests of each that run in Miri: those that take seconds there.
const IN_MIRI: [(&str, &[&str]); 3] = [
    ("bulla-simd", &["dispatch", "cpu"]),
    ("bulla-blake2", &["kernel::arrays"]),
    ("bulla-blake3", &["kernel::arrays", "buffer"]),
];

/// The generic unsafe code under Miri. Miri is an interpreter: it finds invalid reads and writes,
/// reads of uninitialized memory, and data races.
///
/// Miri runs neither assembly nor most vector instructions. So the bodies that all kernels share
/// run over vectors that are arrays (`bulla_simd::arrays`), and so do the portable kernels.
pub(super) fn miri(runner: &mut Runner<'_>) {
    runner.need("a nightly compiler with Miri", |_| install::nightly(&["miri", "rust-src"]));
    let target = runner.context.target.join("miri");
    for (package, tests) in IN_MIRI {
        let mut command = Command::new("rustup");
        command
            .args(["run", "nightly", "cargo", "miri", "test", "--lib", "--package", package, "--target-dir"])
            .arg(&target)
            .arg("--")
            .args(tests)
            .current_dir(&runner.context.root)
            // The stable cargo that started this program has set it, and here the nightly one runs.
            .env_remove("CARGO");
        runner.libtest(&format!("{package} in Miri"), &mut command);
    }
}

const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// The libraries with kernels, and what their tests share.
const WITH_KERNELS: [&str; 5] =
    ["bulla-kernel-testing", "bulla-simd", "bulla-blake2", "bulla-blake3", "bulla-ed25519"];

/// The libraries as Windows programs, which Wine runs on this processor.
pub(super) fn windows(runner: &mut Runner<'_>) {
    let context = runner.context;
    runner.need("rust target", |_| install::rust_target(WINDOWS));
    let folder = match wine::prepare(context) {
        Ok(folder) => folder,
        Err(error) => return runner.need("wine", |_| Err(error)),
    };
    let launcher = format!("target.{WINDOWS}.runner = ['{}']", wine::WINE.path);
    let mut arguments = vec!["--config".to_owned(), launcher];
    for (name, value) in wine::environment(&folder) {
        arguments.extend(["--config".to_owned(), format!("env.{name} = '{value}'")]);
    }
    arguments.extend(["--target", WINDOWS].map(str::to_owned));
    arguments.extend(WITH_KERNELS.map(|library| format!("--package={library}")));
    runner.cargo_test(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
}
