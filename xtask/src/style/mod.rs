//! The rules of our style that rustfmt and clippy do not check.

mod finding;
mod imports;
mod rust;
mod text;

use std::{collections::BTreeMap, fs, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use ignore::WalkBuilder;

use self::finding::Finding;

/// `cargo xtask style`.
pub(crate) fn run() -> Result<ExitCode> {
    bulla_devtools::Context::find().and_then(|context| check(&context.root))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks every file that git would not ignore under `root`.
///
/// # Errors
/// Files break a rule: each one is printed as `path:line: rule`. Or there is nothing to check.
pub(crate) fn check(root: &Path) -> Result<()> {
    let (mut files, mut found) = (0, 0);
    let mut rust_files = BTreeMap::new();
    // Hidden folders such as .ci count; git's own and the ignored ones do not. A checkout without
    // git works too.
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .filter_entry(|e| e.file_name() != ".git")
        .build();
    for entry in walk {
        let entry = entry?;
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path().strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {path}"))?;
        let Ok(source) = String::from_utf8(bytes) else { continue };
        if source.contains('\0') {
            continue;
        }
        files += 1;
        for finding in check_file(&path, &source) {
            println!("{path}:{}: {}", finding.line, finding.message);
            found += 1;
        }
        if path.ends_with(".rs") {
            rust_files.insert(path, source);
        }
    }
    for (path, finding) in imports::check(&rust_files) {
        println!("{path}:{}: {}", finding.line, finding.message);
        found += 1;
    }
    if files == 0 {
        bail!("no file found under {}", root.display());
    }
    if found > 0 {
        bail!("{found} findings in {files} files");
    }
    Ok(())
}

/// All rules that apply to the file at `path`, relative to the root.
fn check_file(path: &str, source: &str) -> Vec<Finding> {
    let mut findings = text::check(path, source);
    if path.ends_with(".rs") {
        findings.extend(rust::check(path, source));
    }
    findings
}
