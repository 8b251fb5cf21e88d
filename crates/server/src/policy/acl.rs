//! Which rule of some policies decides about a path: Vault's order of precedence.
//!
//! An exact path comes first. Of the other patterns that match, the one counts whose first wildcard
//! comes latest; of those, one that does not end with `*`, then the one with fewest `+`, then the
//! longest, then the last by its text. Rules of one pattern count together, and a denial among them
//! denies.

use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bulla_kms::Name;

use super::Policy;
use super::rule::{Capability, CapabilitySet, Permissions, Rule};

/// Some policies, which are asked together. It has none of their rules itself: the holder of a
/// token may name any set of a tenant's policies, and each set takes little memory.
#[derive(Debug, Default)]
pub(crate) struct Acl(Vec<(Name, Arc<Policy>)>);

/// The rules of a policy, by their patterns.
#[derive(Debug, Default)]
pub(super) struct RuleTable {
    exact: HashMap<String, PatternRules>,
    /// Patterns that end with `*`, without it.
    prefixes: BTreeMap<String, PatternRules>,
    /// Patterns with a part `+`, as they are written.
    segments: BTreeMap<String, PatternRules>,
}

/// What the rules of one pattern in one policy say together.
#[derive(Debug, Default)]
struct PatternRules {
    permissions: Permissions,
    /// The pattern as it is written.
    pattern: String,
    /// The lines of their statements.
    lines: Vec<usize>,
}

/// What the rules of one pattern say together, in all of the policies.
#[derive(Debug)]
pub(crate) struct Decision<'a> {
    pub(crate) permissions: Cow<'a, Permissions>,
    /// The pattern as it is written.
    pub(crate) pattern: &'a str,
    acl: &'a Acl,
}

impl Decision<'_> {
    /// The policies with the lines of their statements.
    pub(crate) fn sources(&self) -> Vec<(Name, usize)> {
        let of_policy = |(name, policy): &(Name, Arc<Policy>)| {
            let lines = policy.table.at(self.pattern).map_or(&[][..], |rules| &rules.lines);
            lines.iter().map(|line| (name.clone(), *line)).collect::<Vec<_>>()
        };
        self.acl.0.iter().flat_map(of_policy).collect()
    }
}

/// The form of a pattern.
enum PatternForm<'a> {
    Exact,
    /// Without the `*` at its end.
    Prefix(&'a str),
    Segments,
}

impl<'a> PatternForm<'a> {
    fn of(pattern: &'a str) -> Self {
        if pattern == "+" || pattern.starts_with("+/") || pattern.contains("/+") {
            Self::Segments
        } else {
            pattern.strip_suffix('*').map_or(Self::Exact, Self::Prefix)
        }
    }
}

impl RuleTable {
    pub(super) fn new(rules: &[Rule]) -> Self {
        let mut table = Self::default();
        for rule in rules {
            let path = &rule.path;
            let known = match PatternForm::of(path) {
                PatternForm::Exact => table.exact.entry(path.clone()).or_default(),
                PatternForm::Prefix(prefix) => table.prefixes.entry(prefix.to_owned()).or_default(),
                PatternForm::Segments => table.segments.entry(path.clone()).or_default(),
            };
            known.permissions.merge(&rule.permissions);
            known.pattern.clone_from(path);
            known.lines.push(rule.line);
        }
        table
    }

    /// The rules of a pattern as it is written.
    fn at(&self, pattern: &str) -> Option<&PatternRules> {
        match PatternForm::of(pattern) {
            PatternForm::Exact => self.exact.get(pattern),
            PatternForm::Prefix(prefix) => self.prefixes.get(prefix),
            PatternForm::Segments => self.segments.get(pattern),
        }
    }

    /// The pattern without wildcards that is a path.
    fn exact(&self, path: &str) -> Option<&str> {
        self.exact.get(path).map(|rules| rules.pattern.as_str())
    }

    /// The most specific pattern with wildcards that matches a path.
    fn by_pattern(&self, path: &str, parts: &[&str]) -> Option<(Rank<'_>, &str)> {
        let prefixes = self.prefixes.iter().filter(|(prefix, _)| path.starts_with(prefix.as_str()));
        let longest = prefixes.max_by_key(|(prefix, _)| prefix.len());
        let longest = longest.map(|(prefix, rules)| {
            let rank = Rank { first: prefix.len(), is_prefix: true, wildcards: 0, path: prefix };
            (rank, rules.pattern.as_str())
        });
        let matching = self.segments.keys().filter_map(|pattern| {
            let rank = Rank::of(pattern, parts)?;
            Some((rank, pattern.as_str()))
        });
        longest.into_iter().chain(matching).max_by(|(one, _), (other, _)| one.cmp(other))
    }

    fn all(&self) -> impl Iterator<Item = &PatternRules> {
        self.exact.values().chain(self.prefixes.values()).chain(self.segments.values())
    }
}

impl Acl {
    /// These policies together.
    pub(crate) fn new(policies: Vec<(Name, Arc<Policy>)>) -> Self {
        Self(policies)
    }

    fn tables(&self) -> impl Iterator<Item = &RuleTable> {
        self.0.iter().map(|(_, policy)| &policy.table)
    }

    /// The decision about a path without a slash at its begin. A path that ends with a slash, as
    /// those of lists do, is also found without it.
    pub(crate) fn decision(&self, path: &str) -> Option<Decision<'_>> {
        let without_slash = path.strip_suffix('/');
        let exact = |path: &str| self.tables().find_map(|table| table.exact(path));
        let pattern = exact(path)
            .or_else(|| exact(without_slash?))
            .or_else(|| self.by_pattern(path))
            .or_else(|| self.by_pattern(without_slash?))?;
        let mut rules = self.tables().filter_map(|table| table.at(pattern));
        let mut permissions = Cow::Borrowed(&rules.next()?.permissions);
        for more in rules {
            permissions.to_mut().merge(&more.permissions);
        }
        Some(Decision { permissions, pattern, acl: self })
    }

    fn by_pattern(&self, path: &str) -> Option<&str> {
        let parts: Vec<_> = path.split('/').collect();
        let found = self.tables().filter_map(|table| table.by_pattern(path, &parts));
        found.max_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, pattern)| pattern)
    }

    /// What is permitted at a path.
    pub(crate) fn capabilities(&self, path: &str) -> CapabilitySet {
        self.decision(path).map(|decision| decision.permissions.capabilities).unwrap_or_default()
    }

    /// Whether some rule may permit this.
    pub(crate) fn may_permit(&self, endpoint: &super::Endpoint, capability: Capability) -> bool {
        let denies = |pattern: &str| {
            let mut rules = self.tables().filter_map(|table| table.at(pattern));
            rules.any(|rules| rules.permissions.capabilities.denies())
        };
        self.tables().flat_map(RuleTable::all).any(|PatternRules { permissions, pattern, .. }| {
            permissions.capabilities.contains(capability) && endpoint.may_be_at(pattern) && !denies(pattern)
        })
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
