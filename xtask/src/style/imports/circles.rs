//! Finds circles among imports.

use std::collections::{BTreeMap, BTreeSet};

/// An import: one file imports names of another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: String,
    pub(super) to: String,
    /// The names as written, and the first line of each.
    pub(super) names: BTreeMap<String, usize>,
}

/// The arrows of each circle. A circle is a set of files in which each file leads to all others.
pub(super) fn circles(arrows: &[Arrow]) -> Vec<Vec<&Arrow>> {
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
