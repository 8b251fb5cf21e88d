//! The suites. Each suite is a table of cases, and each case is ours and its peers, which compute
//! the same result.

mod blake2;
mod blake3;
pub mod ed25519;
mod kms;
mod suite;

use anyhow::{Context as _, Result};
use bulla_record::LABORATORY;

pub use self::suite::{Active, Case, Filter, Make, Peer, Suite, THREAD_SCALING, THREADS, version_in};

/// Every suite, in the order of [`LABORATORY`].
pub fn all() -> Vec<Suite> {
    let suites = blake3::suites().into_iter().chain([blake2::suite()]);
    suites.chain(ed25519::suites()).chain(kms::suites()).collect()
}

/// The suite with this name.
///
/// # Errors
/// There is no such suite; the error lists the existing ones.
pub fn find(name: &str) -> Result<Suite> {
    let suite = all().into_iter().find(|suite| suite.name == name);
    suite.with_context(|| format!("no suite {name}; there are: {}", LABORATORY.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{HashMap, HashSet},
        time::Duration,
    };

    use bulla_record::{
        compare::comparisons,
        record::{Record, Role},
    };

    use super::{suite::locked_version, *};
    use crate::measure::Plan;

    #[test]
    fn the_suites_are_those_that_are_listed() {
        assert_eq!(all().iter().map(|suite| suite.name).collect::<Vec<_>>(), LABORATORY);
        assert!(find("no-such-suite").is_err());
    }

    #[test]
    fn case_names_are_unique_and_each_case_has_a_peer() {
        for suite in all() {
            let cases = (suite.cases)();
            let names: HashSet<_> = cases.iter().map(|case| &case.id).collect();
            assert_eq!(names.len(), cases.len(), "{}", suite.name);
            assert!(cases.iter().all(|case| !case.peers.is_empty()), "{}", suite.name);
        }
    }

    #[test]
    fn contenders_agree_in_every_case() {
        let plan = Plan { min_rounds: 1, max_rounds: 1, sample: Default::default(), ..Plan::default() };
        for suite in all() {
            let mut records = Vec::new();
            // A gigabyte is too long for a build with assertions.
            let names = (suite.cases)().into_iter().filter(|case| case.bytes < 1 << 30);
            let prefixes: Vec<_> = names.map(|case| format!("={}", case.id)).collect();
            let peers: usize =
                (suite.cases)().iter().filter(|case| case.bytes < 1 << 30).map(|case| case.peers.len()).sum();
            suite
                .run(1, &Filter { prefixes, ..Filter::default() }, &plan, |record| {
                    records.push(Record::parse(&record.line()?)?);
                    Ok(())
                })
                .unwrap();
            assert_eq!(comparisons(&records).unwrap().len(), peers, "{}", suite.name);
        }
    }

    #[test]
    fn filters_restrict() {
        let suite = find("oneshot").unwrap();
        let taken = |prefix: &str, sizes: &[usize]| -> Vec<String> {
            let filter =
                Filter { prefixes: vec![prefix.to_owned()], sizes: sizes.to_vec(), ..Filter::default() };
            let cases = (suite.cases)().into_iter().filter(|case| filter.takes(suite.name, case));
            cases.map(|case| case.id).collect()
        };
        assert_eq!(taken("hash/", &[64, 1024]), ["hash/64", "hash/1024"]);
        assert_eq!(taken("oneshot/keyed/", &[64]), ["keyed/64"]);
        assert_eq!(taken("=hash/64", &[]), ["hash/64"]);
        assert_eq!(taken("oneshot", &[]).len(), (suite.cases)().len());
    }

    /// By a factor of a hundred, for the fastest of five rounds: no disturbance by the machine
    /// looks like that.
    #[test]
    fn a_case_is_slowed_down_by_name() {
        let slowed = Some((10_000, vec!["hash/65536".to_owned()]));
        let prefixes = vec!["=hash/65536".to_owned(), "=hash/16384".to_owned()];
        let filter = Filter { prefixes, slowed, ..Filter::default() };
        let plan = Plan { min_rounds: 5, max_rounds: 5, patience: Duration::ZERO, ..Plan::default() };
        let mut quickest = HashMap::new();
        let emit = |record: &Record| {
            let ns = record.samples_ns.iter().copied().fold(f64::INFINITY, f64::min);
            quickest.insert((record.bytes, record.role == Role::Ours), ns);
            Ok(())
        };
        find("oneshot").unwrap().run(1, &filter, &plan, emit).unwrap();
        let slowed = |bytes| quickest[&(bytes, true)] > 10.0 * quickest[&(bytes, false)];
        assert!(slowed(65536) && !slowed(16384), "{quickest:?}");
    }

    #[test]
    fn a_filter_that_takes_nothing_is_an_error() {
        let filter = Filter { prefixes: vec!["no such".into()], ..Filter::default() };
        assert!(find("oneshot").unwrap().run(1, &filter, &Plan::default(), |_| Ok(())).is_err());
    }

    #[test]
    fn the_peer_is_named_with_its_version() {
        assert!(locked_version("blake3").starts_with("1."));
        assert_eq!(locked_version("no-such-package"), "of unknown version");
        let lock = "[[package]]\nname = \"peer\"\nversion = \"1.0.0\"\n[[package]]\nname = \"peer\"\nversion = \"2.0.0\"\n\
            [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\ndependencies = [\n \"peer 2.0.0\",\n]\n";
        assert_eq!(version_in(lock, "ours", "peer"), "2.0.0");
        assert_eq!(version_in(lock, "another", "peer"), "1.0.0");
    }
}
