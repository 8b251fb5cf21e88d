//! The rule that the modules of a crate import one way: no chain of imports leads from a folder to
//! another one and back to the same file. Files within one folder may import each other.
//!
//! An import is a path in code outside tests: `use crate::a::B`, `super::B`, `a::b()`. It leads
//! from its file to the file that defines the name. Re-exports are skipped, and so is a parent that
//! declares its child. The code that a macro generates is not seen. A name without a definition
//! counts as defined in its module's file.

mod circles;
mod declarations;
mod modules;

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr as _,
};

use proc_macro2::TokenStream;

use self::{
    circles::{Arrow, circles},
    modules::{Crate, arrows},
};
use super::finding::Finding;

/// Checks every crate among the Rust files in `sources`, given by their paths. A finding names its
/// file.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<(String, Finding)> {
    sources.keys().filter(|path| is_root(path)).flat_map(|root| check_crate(sources, root)).collect()
}

/// Whether this file is the root of a crate.
fn is_root(path: &str) -> bool {
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    match folder.rsplit('/').next() {
        Some("src") => matches!(name, "lib.rs" | "main.rs"),
        Some("bin") => folder.ends_with("src/bin") && name.ends_with(".rs"),
        _ => false,
    }
}

fn check_crate(sources: &BTreeMap<String, String>, root: &str) -> Vec<(String, Finding)> {
    // Another rule reports files that are not Rust.
    let read = |path: &str| TokenStream::from_str(sources.get(path)?).ok();
    let arrows = arrows(&Crate::read(root, &read));
    let mut findings = Vec::new();
    let between_folders = circles(&arrows).into_iter().filter(|circle| !is_in_one_folder(circle));
    for (number, circle) in between_folders.enumerate() {
        for arrow in &circle {
            findings.push((arrow.from.clone(), finding(arrow, number + 1, &circle)));
        }
    }
    findings
}

/// Whether the files of one module folder make the whole circle. `a.rs` belongs to the folder `a/`,
/// as `a/mod.rs` does, and to the folder that it is in.
fn is_in_one_folder(circle: &[&Arrow]) -> bool {
    let folder = |file: &str| file.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
    let files: BTreeSet<&str> = circle.iter().map(|arrow| arrow.from.as_str()).collect();
    let folders: BTreeSet<_> = files.iter().map(|file| folder(file)).collect();
    folders.iter().any(|of| {
        let face = format!("{of}.rs");
        files.iter().all(|file| folder(file) == *of || **file == face)
    })
}

fn finding(arrow: &Arrow, number: usize, circle: &[&Arrow]) -> Finding {
    let files: BTreeSet<_> = circle.iter().map(|arrow| &arrow.from).collect();
    // Not `Kind::Leaf` beside `Kind`.
    let is_within = |name: &str| name.split_once("::").is_some_and(|(of, _)| arrow.names.contains_key(of));
    let names: Vec<_> = arrow.names.keys().map(String::as_str).filter(|name| !is_within(name)).collect();
    let message = format!(
        "imports {} of {}, which leads back here (circle {number}, {} files)",
        names.join(", "),
        arrow.to,
        files.len()
    );
    Finding { line: arrow.names.values().min().copied().unwrap_or(1), message }
}

#[cfg(test)]
mod tests;
