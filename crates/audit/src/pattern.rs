//! Patterns of instructions, which identify a kernel without a name.

use std::ops::Range;

use crate::{
    Arch, Error,
    arch::{Token, WIDTHS, widest},
    rules::{Need, Rule},
};

/// The patterns of all rules for one instruction set, prepared for counting.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    /// For each mnemonic and width, the index in `sets`; 0 is the empty set.
    table: Vec<u16>,
    /// The needs to which an instruction adds.
    sets: Vec<Vec<u16>>,
    /// The minimum number of instructions of each need.
    needs: Vec<u32>,
    patterns: Vec<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    rule: usize,
    within: u32,
    needs: Range<usize>,
}

/// An instruction that some pattern counts.
#[derive(Clone, Copy, Debug)]
struct Hit {
    /// The number of instructions of the function before it.
    index: u32,
    offset: u64,
    set: u16,
}

/// A place with the instructions of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// The index of the rule.
    pub(crate) rule: usize,
    /// From the first instruction of the pattern to the last, in bytes from the start of the
    /// region.
    pub(crate) range: Range<u64>,
    /// The number of these instructions.
    pub(crate) instructions: u32,
}

impl Patterns {
    /// The patterns of the rules for `arch`.
    ///
    /// # Errors
    /// A rule names a mnemonic or a width that does not exist.
    pub(crate) fn new(rules: &[Rule], arch: Arch) -> Result<Self, Error> {
        let mut patterns = Self { sets: vec![Vec::new()], ..Self::default() };
        for (rule, wanted) in rules.iter().enumerate().filter(|(_, rule)| rule.arch == arch) {
            for pattern in &wanted.patterns {
                let start = patterns.needs.len();
                for need in pattern.needs() {
                    let need = need.map_err(|what| Error::Config(format!("rule {}: {what}", wanted.name)))?;
                    patterns
                        .add(arch, &need)
                        .map_err(|what| Error::Config(format!("rule {}: {what}", wanted.name)))?;
                }
                let needs = start..patterns.needs.len();
                patterns.patterns.push(Compiled { rule, within: pattern.within, needs });
            }
        }
        Ok(patterns)
    }

    fn add(&mut self, arch: Arch, need: &Need<'_>) -> Result<(), String> {
        let id = self.needs.len() as u16;
        self.needs.push(need.at_least);
        for mnemonic in &need.mnemonics {
            let op = arch
                .op(mnemonic)
                .ok_or_else(|| format!("{} has no instruction `{mnemonic}`", arch.name()))?;
            for width in &need.widths {
                let bit = arch.width_bit(width);
                let bit =
                    bit.ok_or_else(|| format!("`{width}` is not one of {}", arch.widths().join(", ")))?;
                self.count_too(usize::from(op) * WIDTHS + widest(bit), id);
            }
        }
        Ok(())
    }

    /// From now on, instructions of the row `row` add to the need `id`.
    fn count_too(&mut self, row: usize, id: u16) {
        self.table.resize(self.table.len().max(row + 1), 0);
        let mut set = self.sets[usize::from(self.table[row])].clone();
        set.push(id);
        let known = self.sets.iter().position(|other| *other == set);
        self.table[row] = known.unwrap_or(self.sets.len()) as u16;
        if known.is_none() {
            self.sets.push(set);
        }
    }

    fn set(&self, token: Token) -> u16 {
        self.table.get(usize::from(token.op) * WIDTHS + widest(token.widths)).copied().unwrap_or(0)
    }
}

/// Looks for the patterns in one function after the other.
pub(crate) struct Finder<'p> {
    patterns: &'p Patterns,
    hits: Vec<Hit>,
    pub(crate) found: Vec<Match>,
}

/// The most hits of a function that are kept before they are examined: code without symbols is one
/// function of any length.
const MAX_HITS: usize = 1 << 16;

/// The most places of one pattern in one function that are reported.
pub(crate) const MAX_PLACES: usize = 16;

impl<'p> Finder<'p> {
    pub(crate) fn new(patterns: &'p Patterns) -> Self {
        Self { patterns, hits: Vec::new(), found: Vec::new() }
    }

    /// Takes an instruction with a vector register; `index` instructions of the function come
    /// before it.
    pub(crate) fn add(&mut self, index: u64, offset: u64, token: Token) {
        let set = self.patterns.set(token);
        if set != 0 {
            self.hits.push(Hit { index: index as u32, offset, set });
            if self.hits.len() >= MAX_HITS {
                self.look();
            }
        }
    }

    /// Examines the hits since the last call. A function ends here.
    pub(crate) fn look(&mut self) {
        if self.hits.is_empty() {
            return;
        }
        for pattern in &self.patterns.patterns {
            let place = |window: &[Hit]| Match {
                rule: pattern.rule,
                range: window[0].offset..window[window.len() - 1].offset,
                instructions: window.len() as u32,
            };
            self.found.extend(windows(self.patterns, pattern, &self.hits).iter().map(|hits| place(hits)));
        }
        self.hits.clear();
    }
}

/// Runs of hits, without overlaps, that satisfy all needs of `pattern`. Each ends as soon as it
/// does.
fn windows(patterns: &Patterns, pattern: &Compiled, hits: &[Hit]) -> Vec<Vec<Hit>> {
    let own = |hit: &Hit| {
        patterns.sets[usize::from(hit.set)].iter().any(|id| pattern.needs.contains(&usize::from(*id)))
    };
    let hits: Vec<Hit> = hits.iter().filter(|hit| own(hit)).copied().collect();
    let mut counts = vec![0_u32; pattern.needs.len()];
    let mut missing = counts.len();
    let mut found = Vec::new();
    let mut start = 0;
    for end in 0..hits.len() {
        each_need(patterns, pattern, hits[end], |need, at_least| {
            counts[need] += 1;
            missing -= usize::from(counts[need] == at_least);
        });
        while hits[end].index.wrapping_sub(hits[start].index) >= pattern.within {
            each_need(patterns, pattern, hits[start], |need, at_least| {
                missing += usize::from(counts[need] == at_least);
                counts[need] -= 1;
            });
            start += 1;
        }
        if missing == 0 {
            found.push(hits[start..=end].to_vec());
            if found.len() == MAX_PLACES {
                break;
            }
            counts.fill(0);
            missing = counts.len();
            start = end + 1;
        }
    }
    found
}

fn each_need(patterns: &Patterns, pattern: &Compiled, hit: Hit, mut each: impl FnMut(usize, u32)) {
    for id in &patterns.sets[usize::from(hit.set)] {
        if pattern.needs.contains(&usize::from(*id)) {
            each(usize::from(*id) - pattern.needs.start, patterns.needs[usize::from(*id)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a pattern of two A and one B within five instructions is, in hits at these places.
    fn places(hits: &[(u32, char)]) -> Vec<(u64, u64)> {
        // The need before the two is another pattern's.
        let patterns =
            Patterns { sets: vec![vec![], vec![1], vec![2]], needs: vec![9, 2, 1], ..Patterns::default() };
        let pattern = Compiled { rule: 0, within: 5, needs: 1..3 };
        let hits: Vec<_> = hits
            .iter()
            .map(|(index, kind)| Hit {
                index: *index,
                offset: u64::from(*index),
                set: if *kind == 'A' { 1 } else { 2 },
            })
            .collect();
        let ends = |hits: &Vec<Hit>| (hits[0].offset, hits[hits.len() - 1].offset);
        windows(&patterns, &pattern, &hits).iter().map(ends).collect()
    }

    #[test]
    fn a_place_has_all_that_is_needed_and_is_no_longer_than_the_pattern() {
        assert_eq!(places(&[(0, 'A'), (1, 'A'), (4, 'B')]), [(0, 4)]);
        assert_eq!(places(&[(0, 'A'), (1, 'A'), (5, 'B')]), []);
        assert_eq!(places(&[(0, 'A'), (1, 'A'), (2, 'A'), (5, 'B')]), [(1, 5)]);
        assert_eq!(places(&[(0, 'B'), (1, 'B'), (2, 'A'), (6, 'A'), (7, 'B')]), []);
    }

    #[test]
    fn places_do_not_overlap_and_sixteen_are_enough() {
        assert_eq!(places(&[(0, 'A'), (1, 'A'), (2, 'B'), (3, 'A'), (4, 'B')]), [(0, 2)]);
        let often: Vec<_> =
            (0..20).flat_map(|n| [(20 * n, 'A'), (20 * n + 1, 'A'), (20 * n + 2, 'B')]).collect();
        let expected: Vec<_> = (0..16).map(|n| (20 * n, 20 * n + 2)).collect();
        assert_eq!(places(&often), expected);
    }
}
