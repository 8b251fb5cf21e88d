//! Makes verdicts on kernels from the findings.

use std::{collections::BTreeSet, ops::Range};

use crate::{
    Arch,
    count::Counts,
    functions::crate_of,
    pattern::MAX_PLACES,
    report::{Evidence, EvidenceKind, RuleResult, Symbols, Verdict},
    rules::Rule,
    text::matches_glob,
};

/// A function that is relevant to a rule.
#[derive(Clone, Debug)]
pub(crate) struct FoundFunction {
    pub(crate) name: String,
    pub(crate) range: Range<u64>,
    pub(crate) counts: Counts,
}

/// Instructions of a pattern.
#[derive(Clone, Debug)]
struct Hit {
    function: Option<String>,
    range: Range<u64>,
    instructions: u32,
}

impl Hit {
    /// Whether it is inside a function without a name, or with a name that neither a C function nor
    /// assembly has.
    fn is_of_a_crate(&self) -> bool {
        self.function.as_deref().is_none_or(|name| crate_of(name).is_some())
    }
}

/// The findings for one rule.
#[derive(Clone, Debug, Default)]
struct RuleFacts {
    /// Functions with the name of the kernel.
    functions: Vec<FoundFunction>,
    /// A function whose name shows that the crate is linked, and how many there are.
    linked: Option<FoundFunction>,
    linked_count: u64,
    /// Whether any function of the crate was found, even one that does not show that this kernel
    /// should be present.
    crate_seen: bool,
    text: Option<(String, u64)>,
    /// Instructions of the pattern in functions with the name of the kernel.
    own_hits: Vec<Hit>,
    /// Instructions of the pattern in other functions. They are kept separately, so that they do
    /// not crowd out the kernel's own.
    hits: Vec<Hit>,
}

/// The findings for all rules, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    rules: Vec<RuleFacts>,
}

/// The most functions of one rule that are kept as evidence.
const MAX_KEPT_FUNCTIONS: usize = 64;

impl Facts {
    pub(crate) fn new(rules: usize) -> Self {
        Self { rules: vec![RuleFacts::default(); rules] }
    }

    /// Adds a function. `own` are the rules whose kernel has its name.
    pub(crate) fn add_function(
        &mut self,
        rules: &[Rule],
        arch: Arch,
        name: &str,
        own: &[usize],
        function: impl Fn() -> FoundFunction,
    ) {
        let krate = crate_of(name);
        for (i, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.arch == arch) {
            let facts = &mut self.rules[i];
            if own.contains(&i) && facts.functions.len() < MAX_KEPT_FUNCTIONS {
                facts.functions.push(function());
            }
            facts.crate_seen |= krate == Some(rule.krate.as_str());
            let is_linked = match rule.linked.as_slice() {
                [] => krate == Some(rule.krate.as_str()),
                names => names.iter().any(|wanted| matches_glob(wanted, name)),
            };
            if is_linked {
                facts.linked_count += 1;
                facts.linked.get_or_insert_with(&function);
            }
        }
    }

    pub(crate) fn add_match(
        &mut self,
        rules: &[Rule],
        rule: usize,
        function: Option<String>,
        range: Range<u64>,
        instructions: u32,
    ) {
        let facts = &mut self.rules[rule];
        let is_own = function.as_deref().is_some_and(|name| is_any(&rules[rule].symbols, name));
        let hits = if is_own { &mut facts.own_hits } else { &mut facts.hits };
        if hits.len() < MAX_KEPT_FUNCTIONS * MAX_PLACES {
            hits.push(Hit { function, range, instructions });
        }
    }

    pub(crate) fn add_text(&mut self, rules: &[Rule], arch: Arch, text: &str, offset: u64) {
        for (i, rule) in rules.iter().enumerate() {
            if rule.arch == arch && rule.strings.iter().any(|wanted| wanted == text) {
                self.rules[i].text.get_or_insert_with(|| (text.to_owned(), offset));
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (known, more) in self.rules.iter_mut().zip(other.rules) {
            known.functions.extend(more.functions);
            known.functions.truncate(MAX_KEPT_FUNCTIONS);
            known.linked = known.linked.take().or(more.linked);
            known.linked_count += more.linked_count;
            known.crate_seen |= more.crate_seen;
            known.text = known.text.take().or(more.text);
            known.own_hits.extend(more.own_hits);
            known.own_hits.truncate(MAX_KEPT_FUNCTIONS * MAX_PLACES);
            known.hits.extend(more.hits);
            known.hits.truncate(MAX_KEPT_FUNCTIONS * MAX_PLACES);
        }
    }

    /// The verdicts on the rules for `arch`.
    pub(crate) fn verdicts(&self, rules: &[Rule], arch: Arch, symbols: Symbols) -> Vec<RuleResult> {
        let mut results: Vec<RuleResult> = Vec::new();
        for (rule, facts) in rules.iter().zip(&self.rules).filter(|(rule, _)| rule.arch == arch) {
            results.push(facts.verdict(rule, arch, symbols, rules));
        }
        let there: BTreeSet<String> = results
            .iter()
            .filter(|result| result.verdict.is_there())
            .map(|result| result.rule.clone())
            .collect();
        for result in &mut results {
            let rule = rules.iter().find(|rule| rule.name == result.rule && rule.arch == arch);
            let better =
                rule.and_then(|rule| rule.superseded_by.iter().find(|better| there.contains(*better)));
            result.superseded_by = better.filter(|_| !result.verdict.is_there()).cloned();
        }
        results
    }
}

impl RuleFacts {
    fn verdict(&self, rule: &Rule, arch: Arch, symbols: Symbols, rules: &[Rule]) -> RuleResult {
        let result = |verdict, evidence| RuleResult {
            rule: rule.name.clone(),
            krate: rule.krate.clone(),
            verdict,
            superseded_by: None,
            evidence,
        };
        let whole: Vec<_> = self.functions.iter().filter(|function| self.has_body(rule, function)).collect();
        if !whole.is_empty() {
            return result(
                Verdict::Present,
                whole.iter().take(MAX_EVIDENCE).map(|function| self.symbol(function, arch)).collect(),
            );
        }
        let is_linked = self.linked.is_some() || !self.functions.is_empty();
        let is_named = is_linked || self.text.is_some();
        let may_be = |hit: &&Hit| is_free(hit, rule, symbols, rules) && (is_named || hit.is_of_a_crate());
        let elsewhere: Vec<_> = self.own_hits.iter().chain(&self.hits).filter(may_be).collect();
        let mut evidence: Vec<_> = elsewhere.iter().take(MAX_EVIDENCE).map(|hit| pattern(hit)).collect();
        evidence.extend(self.linkage());
        match symbols {
            // If the whole kernel is inlined, all names that would show it may be gone.
            Symbols::All if !elsewhere.is_empty() && (is_named || self.crate_seen) => {
                result(Verdict::Inlined, evidence)
            }
            // A function without a name may be the kernel itself.
            _ if !elsewhere.is_empty() && is_named => result(Verdict::Present, evidence),
            // If every function has its name, text alone does not prove that there is code that
            // lost a kernel.
            _ if is_linked || (is_named && symbols != Symbols::All) => {
                let own = self.functions.iter().take(MAX_EVIDENCE);
                evidence.splice(0..0, own.map(|function| symbol(function, arch, "not the kernel's body")));
                result(Verdict::Lost, evidence)
            }
            Symbols::All if !is_named => result(Verdict::NotLinked, Vec::new()),
            _ => result(Verdict::Unknown, evidence),
        }
    }

    /// Whether the function has the instructions of a pattern, if there is one.
    fn has_body(&self, rule: &Rule, function: &FoundFunction) -> bool {
        rule.patterns.is_empty() || self.own_hits.iter().any(|hit| function.range.contains(&hit.range.start))
    }

    fn symbol(&self, function: &FoundFunction, arch: Arch) -> Evidence {
        let hit = self.own_hits.iter().find(|hit| function.range.contains(&hit.range.start));
        let note = hit.map_or(String::new(), |hit| {
            format!("{} instructions of the pattern at {:#x}", hit.instructions, hit.range.start)
        });
        symbol(function, arch, &note)
    }

    /// The evidence that the crate is linked.
    fn linkage(&self) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        if let Some(function) = &self.linked {
            let detail = match self.linked_count {
                1 => "the only function of the crate".to_owned(),
                count => format!("one of {count} functions of the crate"),
            };
            evidence.push(Evidence {
                kind: EvidenceKind::Crate,
                name: function.name.clone(),
                address: function.range.start,
                detail,
            });
        }
        if let Some((text, offset)) = &self.text {
            let detail = format!("text at offset {offset:#x} of the file");
            evidence.push(Evidence {
                kind: EvidenceKind::Text,
                name: text.clone(),
                address: *offset,
                detail,
            });
        }
        evidence
    }
}

/// The most pieces of evidence of one kind in a report.
const MAX_EVIDENCE: usize = 4;

/// Whether the instructions may belong to this rule: they do not belong to another kernel, and are
/// not inside a function of another known crate.
fn is_free(hit: &Hit, rule: &Rule, symbols: Symbols, rules: &[Rule]) -> bool {
    let Some(name) = hit.function.as_deref() else { return !rule.assembly || symbols != Symbols::All };
    if rules.iter().any(|other| other.name != rule.name && is_any(&other.symbols, name)) {
        return false;
    }
    let krate = crate_of(name);
    if krate == Some(rule.krate.as_str()) || is_any(&rule.linked, name) {
        return true;
    }
    !rule.assembly && krate.is_none_or(|krate| rules.iter().all(|other| other.krate != krate))
}

fn is_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| matches_glob(pattern, name))
}

fn symbol(function: &FoundFunction, arch: Arch, note: &str) -> Evidence {
    let widths = arch.widths().into_iter().zip(function.counts.widths).filter(|(_, count)| *count > 0);
    let widths: Vec<_> = widths.map(|(width, count)| format!("{count} {width}")).collect();
    let mut detail = format!("{} instructions", function.counts.instructions);
    for more in [widths.join(", "), note.to_owned()].into_iter().filter(|more| !more.is_empty()) {
        detail.push_str(", ");
        detail.push_str(&more);
    }
    Evidence {
        kind: EvidenceKind::Symbol,
        name: function.name.clone(),
        address: function.range.start,
        detail,
    }
}

fn pattern(hit: &Hit) -> Evidence {
    let name = hit.function.clone().unwrap_or_else(|| "(no name)".to_owned());
    let detail = format!("{} instructions of the pattern up to {:#x}", hit.instructions, hit.range.end);
    Evidence { kind: EvidenceKind::Pattern, name, address: hit.range.start, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "hash::wide::compress";

    fn rule(arch: Arch) -> Rule {
        Rule {
            name: "hash/wide".to_owned(),
            krate: "hash".to_owned(),
            arch,
            symbols: vec![KERNEL.to_owned()],
            linked: Vec::new(),
            strings: vec!["/hash-1.*.rs".to_owned()],
            patterns: Vec::new(),
            assembly: false,
            superseded_by: Vec::new(),
        }
    }

    fn found_function(name: &str, start: u64) -> FoundFunction {
        FoundFunction { name: name.to_owned(), range: start..start + 1, counts: Counts::default() }
    }

    /// Facts of one rule, of functions with these names.
    fn facts(names: &[&str]) -> Facts {
        let (rules, mut facts) = ([rule(Arch::X86_64)], Facts::new(1));
        for (start, name) in (0..).zip(names) {
            let own: &[usize] = if *name == KERNEL { &[0] } else { &[] };
            facts.add_function(&rules, Arch::X86_64, name, own, || found_function(name, start));
        }
        facts
    }

    #[test]
    fn only_so_much_is_kept_of_one_part_and_of_all_parts() {
        let rules = [rule(Arch::X86_64)];
        let many = || {
            let mut facts = facts(&[KERNEL; 100]);
            for start in 0..1100 {
                facts.add_match(&rules, 0, Some(KERNEL.to_owned()), start..start + 1, 1);
                facts.add_match(&rules, 0, None, start..start + 1, 1);
            }
            facts
        };
        let kept = |facts: &Facts| {
            let of = &facts.rules[0];
            (of.functions.len(), of.own_hits.len(), of.hits.len())
        };
        let mut all = many();
        assert_eq!(kept(&all), (64, 1024, 1024));
        all.merge(many());
        assert_eq!(kept(&all), (64, 1024, 1024));
    }

    #[test]
    fn what_parts_show_adds_up() {
        let rules = [rule(Arch::X86_64)];
        let mut with_text = facts(&["hash::update", "hash::finish"]);
        with_text.add_text(&rules, Arch::X86_64, "/hash-1.*.rs", 7);
        let mut all = facts(&["program::main"]);
        assert!(!all.rules[0].crate_seen);
        for part in [facts(&["hash::new"]), with_text, facts(&["program::main"])] {
            all.merge(part);
        }
        let all = &all.rules[0];
        assert_eq!((all.linked_count, all.crate_seen), (3, true));
        assert_eq!(all.linked.as_ref().map(|function| function.name.as_str()), Some("hash::new"));
        assert_eq!(all.text, Some(("/hash-1.*.rs".to_owned(), 7)));
    }

    #[test]
    fn text_shows_the_crates_whose_rules_name_it_for_this_architecture() {
        let rules = [rule(Arch::X86_64), rule(Arch::Aarch64)];
        let mut facts = Facts::new(2);
        facts.add_text(&rules, Arch::X86_64, "/other-1.*.rs", 3);
        facts.add_text(&rules, Arch::X86_64, "/hash-1.*.rs", 7);
        assert_eq!(facts.rules[0].text, Some(("/hash-1.*.rs".to_owned(), 7)));
        assert_eq!(facts.rules[1].text, None);
    }

    #[test]
    fn instructions_are_a_rules_own_unless_another_has_a_better_claim() {
        let named = |rule_name: &str, krate: &str, symbol: &str| Rule {
            name: rule_name.to_owned(),
            krate: krate.to_owned(),
            symbols: vec![symbol.to_owned()],
            ..rule(Arch::X86_64)
        };
        let is_free = |function: Option<&str>, assembly: bool, symbols: Symbols| {
            let rules = [
                Rule { assembly, ..rule(Arch::X86_64) },
                named("hash/narrow", "hash", "hash::narrow::compress"),
                named("other/wide", "other", "other::wide"),
            ];
            let hit = Hit { function: function.map(str::to_owned), range: 0..1, instructions: 1 };
            is_free(&hit, &rules[0], symbols, &rules)
        };
        // Assembly has its name wherever functions have names. A compiler may put other kernels
        // anywhere.
        for symbols in [Symbols::None, Symbols::Dynamic, Symbols::All] {
            assert!(is_free(None, false, symbols));
            assert_eq!(is_free(None, true, symbols), symbols != Symbols::All);
        }
        for (name, inlined, assembly) in [
            (KERNEL, true, true),
            ("hash::update", true, true),
            ("hash::narrow::compress", false, false),
            ("program::main", true, false),
            ("c_function", true, false),
            ("other::update", false, false),
        ] {
            assert_eq!(is_free(Some(name), false, Symbols::All), inlined, "{name}");
            assert_eq!(is_free(Some(name), true, Symbols::All), assembly, "{name} and assembly");
        }
    }
}
