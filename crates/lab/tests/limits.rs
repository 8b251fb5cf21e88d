//! `lab/limits.toml` knows the suites: every case that is gated has a limit or a reason to have
//! none, and no limit is for a case that is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::LazyLock,
};

use bulla_lab::suites;
use bulla_record::{LABORATORY, gate::Limits, lane, record::Role};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn limits() -> Limits {
    Limits::read(&root().join("lab/limits.toml")).unwrap()
}

/// Peers and cases of a suite: of ours from their definition, of others, which only their harness
/// knows, from the kept runs.
fn cells(suite: &str) -> BTreeSet<(String, String)> {
    if LABORATORY.contains(&suite) {
        let cases = (suites::find(suite).unwrap().cases)();
        let of = |case: suites::Case| {
            case.peers
                .into_iter()
                .map(move |peer| (peer.name.to_owned(), case.id.clone()))
                .collect::<Vec<_>>()
        };
        return cases.into_iter().flat_map(of).collect();
    }
    KEPT.get(suite).cloned().unwrap_or_default()
}

/// Peers and cases of the kept runs, by suite.
static KEPT: LazyLock<BTreeMap<String, BTreeSet<(String, String)>>> = LazyLock::new(|| {
    let mut kept = BTreeMap::<_, BTreeSet<_>>::new();
    for entry in std::fs::read_dir(root().join("lab/runs")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let records = bulla_record::archive::read(&text).unwrap();
        for record in records.into_iter().filter(|record| record.role == Role::Peer) {
            kept.entry(record.suite).or_default().insert((record.implementation, record.case));
        }
    }
    kept
});

/// The kernels of another architecture cannot be listed here, so neither can the cases that are
/// named by them.
fn is_of_this_machine(lane: &str) -> bool {
    let lane = lane::named(lane).unwrap();
    lane.arch.is_none_or(|arch| arch == lane::Machine::this().arch)
}

/// `kernel-ab` names its cases by the kernel in use: a limit for another kernel of this
/// architecture is not a limit for an unknown case.
fn without_kernel(suite: &str, case: &str) -> String {
    match (suite, case.rsplit_once('/')) {
        ("kernel-ab", Some((_, size))) => size.to_owned(),
        _ => case.to_owned(),
    }
}

fn each_gated_suite(mut holds: impl FnMut(&str, &str, &Limits)) {
    let limits = limits();
    let mut suites = 0;
    for lane in limits.lanes().filter(|lane| is_of_this_machine(lane)) {
        for suite in limits.suites(lane) {
            holds(lane, suite, &limits);
            suites += 1;
        }
    }
    assert!(suites > 0 || limits.lanes().next().is_some(), "lab/limits.toml holds nothing");
}

#[test]
fn every_case_of_a_gated_suite_has_a_limit_or_says_why_not() {
    each_gated_suite(|lane, suite, limits| {
        let named = |(peer, case): &(String, String)| (peer.clone(), without_kernel(suite, case));
        let limited: BTreeSet<_> = limits.cells(lane, suite).iter().map(named).collect();
        let missing: Vec<_> = cells(suite)
            .into_iter()
            .filter(|cell| !limited.contains(&named(cell)) && !limits.is_without(lane, suite, &cell.1))
            .collect();
        assert!(
            missing.is_empty(),
            "{lane}: {suite}: no limit for {missing:?}: set it with `cargo xtask gate --suite {suite} --set-limits`, or say \
             why there is none under [[without]]"
        );
    });
}

#[test]
fn no_limit_is_for_an_unknown_case() {
    each_gated_suite(|lane, suite, limits| {
        let named = |(peer, case): &(String, String)| (peer.clone(), without_kernel(suite, case));
        let known: BTreeSet<_> = cells(suite).iter().map(named).collect();
        let unknown: Vec<_> =
            limits.cells(lane, suite).into_iter().filter(|cell| !known.contains(&named(cell))).collect();
        assert!(unknown.is_empty(), "{lane}: {suite}: limits for cases that there are not: {unknown:?}");
    });
}

#[test]
fn what_has_no_limit_on_purpose_is_a_case() {
    for entry in &limits().without {
        let known: BTreeSet<_> = cells(&entry.suite).into_iter().map(|(_, case)| case).collect();
        assert!(!known.is_empty(), "[[without]]: no suite {}", entry.suite);
        let unknown: Vec<_> = entry.cases.iter().filter(|case| !known.contains(*case)).collect();
        assert!(unknown.is_empty(), "[[without]]: {}: no cases {unknown:?}", entry.suite);
    }
}

#[test]
fn lanes_with_limits_are_lanes() {
    for lane in limits().lanes() {
        lane::named(lane).unwrap();
    }
}
