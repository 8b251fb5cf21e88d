//! Rules: kernels, and how to find each in a binary, by name or by instructions.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::{Arch, Error, pattern::Patterns, text};

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
            if rule.strings.iter().any(|text| text::head(text).len() < MIN_STRING_LEN) {
                let what =
                    format!("a string that begins with less than {MIN_STRING_LEN} bytes is found anywhere");
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

const MIN_STRING_LEN: usize = 6;

/// A kernel, and how it is recognized.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The name in reports, for example `blake2b_simd/avx2`.
    pub name: String,
    /// The crate (or library) that contains the kernel: the first part of its symbols.
    #[serde(rename = "crate")]
    pub krate: String,
    /// The instruction set of its code.
    pub arch: Arch,
    /// Demangled names of the functions with the kernel's body, without the compiler's hash; `*`
    /// matches any text.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// Names of functions that show that the kernel should be there; `*` matches any text. If the
    /// list is empty, every function of the crate shows it.
    #[serde(default)]
    pub linked: Vec<String>,
    /// Text in the binary that shows that the crate is linked, for example the locations of its
    /// panics: `/hash-1.*.rs`, in which `*` matches any characters of a path.
    #[serde(default)]
    pub strings: Vec<String>,
    /// Ways in which the body can be recognized by its instructions.
    #[serde(default, rename = "pattern")]
    pub patterns: Vec<Pattern>,
    /// Whether the kernel is assembly, which no compiler inlines. Then its instructions in other
    /// functions belong to other kernels.
    #[serde(default)]
    pub assembly: bool,
    /// Rules of better kernels of the same function. If one of them is in the binary, the loss of
    /// this kernel does not count.
    #[serde(default)]
    pub superseded_by: Vec<String>,
}

/// A way in which a kernel can be recognized by its instructions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The maximum distance between the instructions, in instructions of the function.
    pub within: u32,
    /// The minimum number of instructions, by `MNEMONIC|... WIDTH|...`, for example
    /// `"vpshufb|vprorq ymm" = 8`. The width is that of the widest vector register that the
    /// instruction names.
    pub need: BTreeMap<String, u32>,
}

/// One of the needs of a pattern.
#[derive(Debug)]
pub(crate) struct Need<'p> {
    pub(crate) mnemonics: Vec<&'p str>,
    pub(crate) widths: Vec<&'p str>,
    pub(crate) at_least: u32,
}

impl Pattern {
    pub(crate) fn needs(&self) -> impl Iterator<Item = Result<Need<'_>, String>> {
        self.need.iter().map(|(text, at_least)| {
            let (mnemonics, widths) =
                text.split_once(' ').ok_or_else(|| format!("`{text}` is not `MNEMONIC|... WIDTH|...`"))?;
            if *at_least == 0 {
                return Err(format!("`{text}` needs none"));
            }
            Ok(Need {
                mnemonics: mnemonics.split('|').collect(),
                widths: widths.split('|').collect(),
                at_least: *at_least,
            })
        })
    }
}
