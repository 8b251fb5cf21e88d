//! The rule that the modules of a crate import one way: no chain of imports leads from a folder to
//! another one and back to the same file. Files within one folder may import each other.
//!
//! An import is a path in code outside tests: `use crate::a::B`, `super::B`, `a::b()`. It leads
//! from its file to the file that defines the name. Re-exports are skipped, and so is a parent that
//! declares its child. The code that a macro generates is not seen. A name without a definition
//! counts as defined in its module's file.

mod declarations;
mod modules;

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr as _,
};

use proc_macro2::TokenStream;

use self::modules::{Crate, arrows};
use super::text::Finding;

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
    let all = Crate::read(root, &read);
    let arrows = arrows(&all);
    let mut findings = twice_named(root, &all);
    let between_folders = circles(&arrows).into_iter().filter(|circle| !is_in_one_folder(circle));
    for (number, circle) in between_folders.enumerate() {
        for arrow in &circle {
            findings.push((arrow.from.clone(), finding(arrow, number + 1, &circle)));
        }
    }
    findings
}

/// Crates in which modules have the same types on purpose: `simd` has a module for each instruction
/// set, `blake2` one for each hash function, and `pq` one for each standard.
const MODULES_ALIKE: [&str; 3] = ["crates/simd/", "crates/blake2/", "crates/pq/"];

/// The module with the blocking form of an async interface. It has the same names, as in other
/// crates that have both.
const BLOCKING: &str = "/blocking/";

/// Names that two public types of a crate still have.
const NOT_YET: [(&str, &str); 1] = [("crates/kms/", "Entry")];

/// The public types of a crate whose name an earlier one has.
fn twice_named(root: &str, all: &Crate) -> Vec<(String, Finding)> {
    if MODULES_ALIKE.iter().any(|folder| root.starts_with(folder)) {
        return Vec::new();
    }
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for (name, file, line) in all.public_types() {
        let is_known = NOT_YET.iter().any(|(folder, known)| root.starts_with(folder) && name == *known);
        if is_known || file.contains(BLOCKING) {
            continue;
        }
        match first.get(name) {
            Some(other) => {
                let message = format!("{other} has another public type of the name {name}");
                findings.push((file.to_owned(), Finding { line, message }));
            }
            None => drop(first.insert(name, file)),
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

/// An import: one file imports names of another.
#[derive(Debug, PartialEq, Eq)]
struct Arrow {
    from: String,
    to: String,
    /// The names as written, and the first line of each.
    names: BTreeMap<String, usize>,
}

/// The arrows of each circle. A circle is a set of files in which each file leads to all others.
fn circles(arrows: &[Arrow]) -> Vec<Vec<&Arrow>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for arrow in arrows {
        next.entry(&arrow.from).or_default().push(&arrow.to);
    }
    let led_to: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|file| (*file, all_after(file, &next))).collect();
    let leads = |from: &str, to: &str| led_to.get(from).is_some_and(|files| files.contains(to));

    let mut circles: Vec<Vec<&Arrow>> = Vec::new();
    for arrow in arrows.iter().filter(|arrow| leads(&arrow.to, &arrow.from)) {
        match circles
            .iter_mut()
            .find(|circle| leads(&circle[0].from, &arrow.from) && leads(&arrow.from, &circle[0].from))
        {
            Some(circle) => circle.push(arrow),
            None => circles.push(vec![arrow]),
        }
    }
    circles
}

/// All files that `file` leads to, by one or more arrows.
fn all_after<'a>(file: &str, next: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut after = BTreeSet::new();
    let mut ahead: Vec<&str> = next.get(file).into_iter().flatten().copied().collect();
    while let Some(file) = ahead.pop() {
        if after.insert(file) {
            ahead.extend(next.get(file).into_iter().flatten());
        }
    }
    after
}

#[cfg(test)]
mod tests;
