//! The rules of our style that rustfmt and clippy do not check.

mod examples;
mod imports;
mod names;
mod rust;
mod spelling;
mod text;

use std::{collections::BTreeMap, fs, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, bail};
use ignore::WalkBuilder;

use self::text::Finding;

/// `cargo xtask style`.
pub(crate) fn run() -> Result<ExitCode> {
    bulla_devtools::Context::find().and_then(|context| check(&context.root))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks every file that git would not ignore under `root`.
///
/// # Errors
/// Files break a rule: the error has a line `path:line: rule` for each. Or there is nothing to
/// check.
pub(crate) fn check(root: &Path) -> Result<()> {
    let (mut files, mut found) = (0, Vec::new());
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
            found.push(format!("{path}:{}: {}", finding.line, finding.message));
        }
        if path.ends_with(".rs") {
            rust_files.insert(path, source);
        }
    }
    for (path, finding) in imports::check(&rust_files).into_iter().chain(examples::check(&rust_files)) {
        found.push(format!("{path}:{}: {}", finding.line, finding.message));
    }
    if files == 0 {
        bail!("no file found under {}", root.display());
    }
    if !found.is_empty() {
        bail!("{} findings in {files} files\n{}", found.len(), found.join("\n"));
    }
    Ok(())
}

/// All rules that apply to the file at `path`, relative to the root.
fn check_file(path: &str, source: &str) -> Vec<Finding> {
    let mut findings = text::check(path, source);
    findings.extend(spelling::check(path, source));
    findings.extend(names::check(path, source));
    if path.ends_with(".rs") {
        findings.extend(rust::check(path, source));
    }
    findings
}
