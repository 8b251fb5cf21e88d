//! The service against its description: schemathesis sends what `spec/openapi.json` permits, and
//! what it does not, and reads the answers by it.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use bulla_devtools::{Context, Echo, install, stream};

use super::{
    runner::Runner,
    serving::{Prepared, Serving},
};

/// How long it asks each of the two services, in seconds.
const SECONDS: &str = "30";

/// How many requests must have been made by then.
const MIN_REQUESTS: u32 = 300;

/// The operations that its token permits: all of them.
const OPERATIONS: [&str; 21] = [
    "sign",
    "verify",
    "decapsulate",
    "derive_shared_secret",
    "encrypt",
    "decrypt",
    "rewrap",
    "generate_data_key",
    "mac",
    "verify_mac",
    "create",
    "import",
    "export",
    "export_plaintext",
    "rotate",
    "update",
    "destroy",
    "restore",
    "read",
    "audit",
    "backup",
];

/// The algorithms of the keys that it uses and destroys.
const ALGORITHMS: [&str; 6] = ["ed25519", "ecdsa-p256", "x-wing", "ml-dsa-44", "aes-256-gcm", "hmac-sha256"];
/// How many keys of each there are.
const KEYS: usize = 4;

/// What it may not call: these end the service's work, or the token's.
const LEFT_OUT: &str = "/(operator/seal|sys/seal|tokens/revoke)$";

pub(super) fn run(runner: &mut Runner<'_>, bulla: &Path) {
    runner.check("schemathesis, with a token and an audit log", |context| {
        let prepared = Prepared::new(bulla, context.target.join("service-described"))?;
        prepared.run(&["log", "init"])?;
        for (algorithm, label) in keys() {
            prepared.run(&["keys", "create", &label, "--algorithm", algorithm, "--exportable"])?;
        }
        schemathesis(context, &prepared.serve(&OPERATIONS)?)
    });
    runner.check("schemathesis, in development", |context| {
        schemathesis(context, &Serving::development(bulla)?)
    });
}

/// The keys that it finds, with their labels.
fn keys() -> impl Iterator<Item = (&'static str, String)> {
    let of = |algorithm| (0..KEYS).map(move |number| (algorithm, format!("{algorithm}-{number}")));
    ALGORITHMS.into_iter().flat_map(of)
}

fn schemathesis(context: &Context, service: &Serving) -> Result<()> {
    let folder = context.root.join("crates/server/tests/described");
    let python = install::python_packages(context, "python-described", &folder.join("requirements.txt"))?;
    // It keeps what it learns beside its settings.
    let work = context.target.join("schemathesis");
    fs::create_dir_all(&work)?;
    for file in ["hooks.py", "schemathesis.toml"] {
        fs::copy(folder.join(file), work.join(file))?;
    }
    let labels: Vec<_> = keys().map(|(_, label)| label).collect();
    let mut command = Command::new(python.with_file_name("schemathesis"));
    command.args(["--config-file", "schemathesis.toml", "run"]).arg(context.root.join("spec/openapi.json"));
    command.args(["--url", &service.address, "--exclude-path-regex", LEFT_OUT]);
    command.args(["--phases", "examples,coverage,fuzzing", "--max-time", SECONDS, "--no-color"]);
    command.args(["--warnings", "off", "--suppress-health-check", "all"]);
    service.named_in(&mut command).env("BULLA_LABELS", labels.join(","));
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(work);
    let mut count = 0;
    let status = stream(&mut command, Echo::Show, |line| {
        if let Some((cases, _)) = line.trim().split_once(" generated, ") {
            count = cases.parse().unwrap_or(0);
        }
    });
    ensure!(status?.success(), "an answer is not what the description says");
    ensure!(count >= MIN_REQUESTS, "it asked only {count} times");
    Ok(())
}
