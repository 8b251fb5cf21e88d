//! The rule that the files of a crate import one way: no chain of imports leads back to the same
//! file.
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

/// Crates for which the rule does not hold yet.
const NOT_YET: [&str; 0] = [];

/// Checks every crate among the Rust files in `sources`, given by their paths. A finding names its
/// file.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<(String, Finding)> {
    check_but(sources, &NOT_YET)
}

/// Like [`check`]. A folder in `not_yet` may, and must, have circles: one without circles must
/// leave the list.
fn check_but(sources: &BTreeMap<String, String>, not_yet: &[&str]) -> Vec<(String, Finding)> {
    let mut findings = Vec::new();
    let mut with_circles = BTreeSet::new();
    for root in sources.keys().filter(|path| is_root(path)) {
        let found = check_crate(sources, root);
        match not_yet.iter().find(|folder| of_package(root, folder)) {
            Some(folder) if !found.is_empty() => drop(with_circles.insert(*folder)),
            _ => findings.extend(found),
        }
    }
    for folder in not_yet {
        let here = sources.keys().find(|root| is_root(root) && of_package(root, folder));
        if let Some(root) = here.filter(|_| !with_circles.contains(folder)) {
            let message = format!("{folder} imports one way: strike it from the list of those not held");
            findings.push((root.clone(), Finding { line: 1, message }));
        }
    }
    findings
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

/// Whether the crate's root belongs to the package in `folder`, and not to one in a folder below.
fn of_package(root: &str, folder: &str) -> bool {
    root.strip_prefix(folder).is_some_and(|rest| rest.starts_with("/src/"))
}

fn check_crate(sources: &BTreeMap<String, String>, root: &str) -> Vec<(String, Finding)> {
    // Another rule reports files that are not Rust.
    let read = |path: &str| TokenStream::from_str(sources.get(path)?).ok();
    let arrows = arrows(&Crate::read(root, &read));
    let mut findings = Vec::new();
    for (number, circle) in circles(&arrows).iter().enumerate() {
        for arrow in circle {
            findings.push((arrow.from.clone(), finding(arrow, number + 1, circle)));
        }
    }
    findings
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
