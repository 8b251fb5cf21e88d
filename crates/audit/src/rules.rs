//! Kernel rules: how to find kernels in a binary, by name or by instructions.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::{Arch, Error, pattern::Patterns, rule::Rule, text};

/// A list of rules.
#[derive(Clone, Debug)]
pub struct Rules {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    rule: Vec<Rule>,
}

const BUILT_IN: &str = include_str!("../rules/builtin.toml");

impl Rules {
    /// The built-in rules.
    ///
    /// # Panics
    /// If the built-in rules are invalid, which a test rules out.
    #[must_use]
    pub fn built_in() -> Self {
        let mut rules = Self { rules: Vec::new() };
        rules.add(BUILT_IN).expect("the built-in rules are rules");
        rules
    }

    /// Adds the rules of a TOML document. A rule with the name of an earlier rule replaces it.
    ///
    /// # Errors
    /// The document is not TOML, or has an invalid rule.
    pub fn add(&mut self, toml: &str) -> Result<(), Error> {
        let config = |error: toml::de::Error| Error::Config(error.to_string().trim_end().to_owned());
        let document: Document = toml::from_str(toml).map_err(config)?;
        if document.rule.is_empty() {
            return Err(Error::Config("no [[rule]] in it".to_owned()));
        }
        for rule in document.rule {
            if rule.symbols.is_empty() && rule.patterns.is_empty() {
                return Err(Error::Config(format!("rule {}: neither symbols nor a pattern", rule.name)));
            }
            if rule.strings.iter().any(|text| text::head(text).len() < SHORTEST_STRING) {
                let what =
                    format!("a string that begins with less than {SHORTEST_STRING} bytes is found anywhere");
                return Err(Error::Config(format!("rule {}: {what}", rule.name)));
            }
            match self.rules.iter_mut().find(|known| known.name == rule.name) {
                Some(known) => *known = rule,
                None => self.rules.push(rule),
            }
        }
        let names: BTreeSet<_> = self.rules.iter().map(|rule| rule.name.as_str()).collect();
        for rule in &self.rules {
            if let Some(unknown) = rule.superseded_by.iter().find(|name| !names.contains(name.as_str())) {
                return Err(Error::Config(format!(
                    "rule {}: superseded by {unknown}, which is no rule",
                    rule.name
                )));
            }
        }
        [Arch::X86_64, Arch::Aarch64]
            .into_iter()
            .try_for_each(|arch| Patterns::new(&self.rules, arch).map(drop))
    }

    /// All rules.
    #[must_use]
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }
}

const SHORTEST_STRING: usize = 6;
