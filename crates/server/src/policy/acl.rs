//! Which rule of some policies decides about a path: Vault's order of precedence.
//!
//! An exact path comes first. Of the other patterns that match, the one counts whose first wildcard
//! comes latest; of those, one that does not end with `*`, then the one with fewest `+`, then the
//! longest, then the last by its text. Rules of one pattern count together, and a denial among them
//! denies.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};

use bulla_kms::Name;

use super::rule::{Capability, CapabilitySet, Permissions, Rule};

/// The rules of some policies, by their patterns.
#[derive(Debug, Default)]
pub(crate) struct Acl {
    exact: HashMap<String, Decision>,
    /// Patterns that end with `*`, without it.
    prefixes: BTreeMap<String, Decision>,
    /// Patterns with a part `+`, as they are written.
    segments: BTreeMap<String, Decision>,
}

/// What the rules of one pattern say together, and where they are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decision {
    pub(crate) permissions: Permissions,
    /// The pattern as it is written.
    pub(crate) pattern: String,
    /// The policies with the lines of their statements.
    pub(crate) sources: Vec<(Name, usize)>,
}

impl Acl {
    /// The rules of these policies together.
    pub(crate) fn new<'a>(policies: impl Iterator<Item = (&'a Name, &'a [Rule])>) -> Self {
        let mut acl = Self::default();
        for (name, rules) in policies {
            for rule in rules {
                acl.add(name, rule);
            }
        }
        acl
    }

    fn add(&mut self, policy: &Name, rule: &Rule) {
        let path = &rule.path;
        let decision = if path == "+" || path.starts_with("+/") || path.contains("/+") {
            self.segments.entry(path.clone()).or_default()
        } else if let Some(prefix) = path.strip_suffix('*') {
            self.prefixes.entry(prefix.to_owned()).or_default()
        } else {
            self.exact.entry(path.clone()).or_default()
        };
        decision.permissions.merge(&rule.permissions);
        decision.pattern.clone_from(path);
        decision.sources.push((policy.clone(), rule.line));
    }

    /// The decision about a path without a slash at its begin. A path that ends with a slash, as
    /// those of lists do, is also found without it.
    pub(crate) fn decision(&self, path: &str) -> Option<&Decision> {
        let without_slash = path.strip_suffix('/');
        let exact = self.exact.get(path).or_else(|| self.exact.get(without_slash?));
        exact.or_else(|| self.by_pattern(path)).or_else(|| self.by_pattern(without_slash?))
    }

    fn by_pattern(&self, path: &str) -> Option<&Decision> {
        let prefixes = self.prefixes.iter().filter(|(prefix, _)| path.starts_with(prefix.as_str()));
        let longest = prefixes.max_by_key(|(prefix, _)| prefix.len());
        let longest = longest.map(|(prefix, decision)| {
            let rank = Rank { first: prefix.len(), is_prefix: true, wildcards: 0, path: prefix };
            (rank, decision)
        });
        let parts: Vec<_> = path.split('/').collect();
        let matching = self.segments.iter().filter_map(|(pattern, decision)| {
            let rank = Rank::of(pattern, &parts)?;
            Some((rank, decision))
        });
        longest
            .into_iter()
            .chain(matching)
            .max_by(|(one, _), (other, _)| one.cmp(other))
            .map(|(_, found)| found)
    }

    /// What is permitted at a path.
    pub(crate) fn capabilities(&self, path: &str) -> CapabilitySet {
        self.decision(path).map(|decision| decision.permissions.capabilities).unwrap_or_default()
    }

    /// Whether some rule may permit this.
    pub(crate) fn may_permit(&self, endpoint: &super::Endpoint, capability: Capability) -> bool {
        let all = self.exact.values().chain(self.prefixes.values()).chain(self.segments.values());
        let permits = |decision: &Decision| {
            decision.permissions.capabilities.contains(capability) && endpoint.may_be_at(&decision.pattern)
        };
        all.into_iter().any(permits)
    }
}

/// How specific a pattern is that matches: the greatest counts.
#[derive(Debug, PartialEq, Eq)]
struct Rank<'a> {
    /// Where its first wildcard is.
    first: usize,
    is_prefix: bool,
    wildcards: usize,
    /// Without a `*` at its end.
    path: &'a str,
}

impl<'a> Rank<'a> {
    /// None if the pattern does not match.
    fn of(pattern: &'a str, parts: &[&str]) -> Option<Self> {
        let (path, is_prefix) = match pattern.strip_suffix('*') {
            Some(path) => (path, true),
            None => (pattern, false),
        };
        let wanted: Vec<_> = path.split('/').collect();
        if parts.len() < wanted.len() || (!is_prefix && parts.len() != wanted.len()) {
            return None;
        }
        let mut wildcards = 0;
        for (index, (want, part)) in wanted.iter().zip(parts).enumerate() {
            let is_last = index + 1 == wanted.len();
            if *want == "+" {
                wildcards += 1;
            } else if want != part && !(is_prefix && is_last && part.starts_with(want)) {
                return None;
            }
        }
        Some(Self { first: pattern.find('+').unwrap_or(pattern.len()), is_prefix, wildcards, path })
    }
}

impl Ord for Rank<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |rank: &Self| (rank.first, !rank.is_prefix, Reverse(rank.wildcards), rank.path.len());
        key(self).cmp(&key(other)).then_with(|| self.path.cmp(other.path))
    }
}

impl PartialOrd for Rank<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
