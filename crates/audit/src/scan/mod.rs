//! Searches the sources of a project's dependencies for code that makes compilers lose kernels.
//!
//! The pattern: a library would choose its kernel at run time, but a `cfg(target_feature)` before
//! that chooses at compile time, if the whole build is for a CPU with that feature. The kernel is
//! then an ordinary function to the optimizer, which inlines and rewrites it. It does so most
//! freely with link-time optimization, and only if the kernel consists of intrinsics and not of
//! assembly.

mod project;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use rayon::prelude::*;
use serde::Serialize;

use self::project::{Metadata, Package};
pub use self::{
    project::{Setting, SettingKind},
    source::{SourceFinding, SourceKind},
};
use crate::Error;

/// The findings in a project's sources.
#[derive(Clone, Debug, Serialize)]
pub struct Scan {
    /// The `Cargo.toml` of the project's root.
    pub manifest: String,
    /// The number of packages that its builds use, including itself.
    pub packages: u64,
    /// Flags and profiles that make a difference.
    pub settings: Vec<Setting>,
    /// The packages that choose kernels by CPU features, and the findings in them.
    pub crates: Vec<CrateScan>,
    /// Files that could not be read as Rust, and other things that were left out.
    pub notes: Vec<String>,
}

/// The risk of a crate with CPU-specific code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// This build is for one kind of CPU, so the choice is made at compile time: kernels may be
    /// inlined or lost.
    Affected,
    /// As long as no `target-cpu` or `target-feature` is set, the choice is at run time.
    Latent,
}

impl Risk {
    /// The word in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Affected => "affected",
            Self::Latent => "latent",
        }
    }
}

/// The findings in one package.
#[derive(Clone, Debug, Serialize)]
pub struct CrateScan {
    /// The name of the package.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The risk in this build.
    pub risk: Risk,
    /// The kinds of code that its kernels consist of.
    pub kernels: Kernels,
    /// The places.
    pub findings: Vec<SourceFinding>,
    /// Advice on what to do.
    pub advice: String,
}

/// The kinds of CPU-specific code in a package.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Kernels {
    /// Files that use the intrinsics of `core::arch`: the optimizer may rewrite and inline their
    /// code.
    pub intrinsics: u64,
    /// Files of assembly, or with `global_asm!`: the optimizer does not change them.
    pub assembly: u64,
}

/// Scans the dependencies of the project of the `Cargo.toml` at `manifest`, or of the current
/// folder.
///
/// It runs `cargo metadata`, which fetches missing sources.
///
/// # Errors
/// `cargo` is missing, or reports that the project is broken.
pub fn scan(manifest: Option<&Path>, progress: &(dyn Fn(&str) + Sync)) -> Result<Scan, Error> {
    let metadata = project::read_metadata(manifest)?;
    let used = used(&metadata);
    let root = metadata.workspace_root.as_path();
    let settings = project::find_settings(root)?;
    let is_tuned = settings.iter().any(|setting| setting.kind == SettingKind::Target);
    let packages: Vec<&Package> =
        metadata.packages.iter().filter(|package| used.contains_key(&package.id)).collect();
    let scanned: Vec<(Option<CrateScan>, Vec<String>)> = packages
        .par_iter()
        .map(|package| {
            progress(package.name.as_str());
            scan_package(package, &used[&package.id], is_tuned)
        })
        .collect();
    let mut scan = Scan {
        manifest: root.join("Cargo.toml").display().to_string(),
        packages: packages.len() as u64,
        settings,
        crates: Vec::new(),
        notes: Vec::new(),
    };
    for (found, notes) in scanned {
        scan.crates.extend(found);
        scan.notes.extend(notes);
    }
    scan.crates.sort_by(|a, b| (a.risk, &a.name, &a.version).cmp(&(b.risk, &b.name, &b.version)));
    Ok(scan)
}

/// The packages that builds of the workspace use, each with its features. Packages that only tests
/// use are left out.
fn used(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    let mut used = BTreeMap::new();
    let Some(resolve) = &metadata.resolve else { return used };
    let mut waiting = metadata.workspace_members.clone();
    while let Some(id) = waiting.pop() {
        if used.contains_key(&id) {
            continue;
        }
        let Some(node) = resolve.nodes.iter().find(|node| node.id == id) else { continue };
        for dependency in &node.deps {
            // Normal dependencies have no kind.
            if dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()) {
                waiting.push(dependency.pkg.clone());
            }
        }
        used.insert(id, node.features.iter().cloned().collect());
    }
    used
}

fn scan_package(
    package: &Package,
    features: &BTreeSet<String>,
    is_tuned: bool,
) -> (Option<CrateScan>, Vec<String>) {
    let mut notes = Vec::new();
    let mut kernels = Kernels::default();
    let mut findings = Vec::new();
    let Some(root) = package.manifest_path.parent() else { return (None, notes) };
    for file in files(root) {
        if file.extension().is_some_and(|extension| extension != "rs") {
            kernels.assembly += 1;
            continue;
        }
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => {
                notes.push(format!("left out: {}: {error}", file.display()));
                continue;
            }
        };
        kernels.intrinsics += u64::from(source::has_intrinsics(&text));
        kernels.assembly += u64::from(text.contains("global_asm!"));
        match source::findings(&text, features) {
            Ok(found) => findings.extend(found.into_iter().map(|found| found.in_file(&file))),
            Err(error) => notes.push(format!("left out: {}: {error}", file.display())),
        }
    }
    if findings.is_empty() {
        return (None, notes);
    }
    findings.sort();
    let is_off = findings.iter().any(|finding| finding.kind == SourceKind::DetectionOff);
    let risk = if is_tuned || is_off { Risk::Affected } else { Risk::Latent };
    let found = CrateScan {
        name: package.name.clone(),
        version: package.version.clone(),
        risk,
        kernels,
        advice: advice(kernels, is_tuned, is_off),
        findings,
    };
    (Some(found), notes)
}

fn advice(kernels: Kernels, is_tuned: bool, is_off: bool) -> String {
    let mut advice = Vec::new();
    if is_off {
        advice.push(
            "enable the feature that detection needs (usually `std`); without it the crate never uses its kernels",
        );
    }
    match (is_tuned, kernels.intrinsics > 0) {
        (true, false) if kernels.assembly == 0 => advice.push(
            "it chooses for the crates that use it, and those call their kernels directly; compare the binary with one built without target-cpu and \
             target-feature: `bulla audit BINARY --baseline OTHER`",
        ),
        (true, true) => advice.push(
            "build without target-cpu and target-feature, so that the crate chooses the kernel at run time; or, if they must stay, compare the binary \
             with one built without them: `bulla audit BINARY --baseline OTHER`",
        ),
        (true, false) => advice.push("its kernels are assembly, which the optimizer does not change; it may drop other kernels of the crate"),
        (false, _) => advice.push("nothing, as long as you set neither target-cpu nor target-feature"),
    }
    advice.join("; ")
}

/// The sources and assembly of a package, without its tests, examples and benchmarks.
fn files(root: &Path) -> Vec<PathBuf> {
    const SKIPPED_FOLDERS: [&str; 6] = ["tests", "examples", "benches", "target", "fuzz", "vendor"];
    let mut found = Vec::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            // Look at the entry, not at a link's target: links may form circles.
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = entry.path();
            if kind.is_dir() {
                let is_other_package = path.join("Cargo.toml").exists();
                if !name.starts_with('.') && !SKIPPED_FOLDERS.contains(&name.as_ref()) && !is_other_package {
                    waiting.push(path);
                }
            } else if kind.is_file()
                && path.extension().is_some_and(|e| e == "rs" || e == "S" || e == "s" || e == "asm")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
