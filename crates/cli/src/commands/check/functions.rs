//! The hash functions of lines that name none: two have digests of the same length.

use bulla_sums::{Algorithm, ChecksumLine};

/// The functions that a line may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Functions {
    pub(super) likely: Algorithm,
    /// `None` if the line or the user names the function.
    pub(super) other: Option<Algorithm>,
}

impl Functions {
    pub(super) fn of(line: &ChecksumLine) -> Self {
        Self { likely: line.algorithm, other: line.alternative }
    }

    pub(super) fn has(self, algorithm: Algorithm) -> bool {
        self.likely == algorithm || self.other == Some(algorithm)
    }
}

/// The functions that lines without one have matched by.
#[derive(Clone, Debug, Default)]
pub(super) struct Matched(Vec<Algorithm>);

impl Matched {
    pub(super) fn add(&mut self, algorithm: Algorithm) {
        if !self.0.contains(&algorithm) {
            self.0.push(algorithm);
        }
    }

    pub(super) fn extend(&mut self, other: &Self) {
        other.0.iter().for_each(|algorithm| self.add(*algorithm));
    }

    /// The function of a line: its own, or the one of the two by which other lines of the list
    /// match. If none does, the list's name decides. `None` if nothing does.
    pub(super) fn function_of(&self, functions: Functions, named: Option<Algorithm>) -> Option<Algorithm> {
        let Functions { likely, other: Some(other) } = functions else { return Some(functions.likely) };
        match (self.0.contains(&likely), self.0.contains(&other)) {
            (true, false) => Some(likely),
            (false, true) => Some(other),
            (false, false) => named.filter(|named| functions.has(*named)),
            (true, true) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Algorithm::{Blake3, Sha256, Sha512};

    #[test]
    fn the_lines_that_match_tell_the_function_of_the_others() {
        let of = |matched: &[Algorithm], other, named| {
            let mut all = Matched::default();
            all.extend(&Matched(matched.to_vec()));
            all.function_of(Functions { likely: Blake3, other }, named)
        };
        assert_eq!(of(&[], None, Some(Sha256)), Some(Blake3));
        assert_eq!(of(&[], Some(Sha256), None), None);
        assert_eq!(of(&[], Some(Sha256), Some(Sha256)), Some(Sha256));
        assert_eq!(of(&[], Some(Sha256), Some(Sha512)), None);
        assert_eq!(of(&[Blake3, Sha512], Some(Sha256), Some(Sha256)), Some(Blake3));
        assert_eq!(of(&[Sha256], Some(Sha256), None), Some(Sha256));
        assert_eq!(of(&[Blake3, Sha256], Some(Sha256), Some(Sha256)), None);
    }
}
