//! Lists of patterns, as `ssh_config` has them: `*` and `?` are wildcards, and `!` before a pattern
//! excludes what it matches.

use crate::error::FormatError;

/// The most bytes of a principal.
pub const MAX_PRINCIPAL_LEN: usize = 1024;

/// Patterns between commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PatternList {
    text: String,
}

impl PatternList {
    pub(super) fn parse(text: &str) -> Result<Self, FormatError> {
        if text.split(',').any(|pattern| pattern.trim_start_matches('!').is_empty()) {
            return Err(FormatError::new("a list of patterns has an empty one"));
        }
        if text.split(',').any(|pattern| pattern.len() > MAX_PRINCIPAL_LEN) {
            return Err(FormatError::new(format!("a pattern has more than {MAX_PRINCIPAL_LEN} bytes")));
        }
        Ok(Self { text: text.to_owned() })
    }

    /// Whether a pattern matches, and none that excludes.
    pub(super) fn matches(&self, name: &str) -> bool {
        let mut found = false;
        for pattern in self.text.split(',') {
            match pattern.strip_prefix('!') {
                Some(pattern) if matches_one(pattern.as_bytes(), name.as_bytes()) => return false,
                Some(_) => {}
                None => found |= matches_one(pattern.as_bytes(), name.as_bytes()),
            }
        }
        found
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

/// Whether a pattern matches all of a name. It goes back to the last `*` alone, so the time is at
/// most the product of the lengths.
fn matches_one(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    let mut last_star = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                last_star = Some((at, in_name));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match &mut last_star {
                Some((star, from)) => {
                    *from += 1;
                    (at, in_name) = (*star + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_ssh() {
        let matches = |patterns: &str, name: &str| PatternList::parse(patterns).unwrap().matches(name);
        for (patterns, name, expected) in [
            ("a@b", "a@b", true),
            ("a@b", "a@B", false),
            ("*@b", "a@b", true),
            ("*@b", "a@bc", false),
            ("*", "", true),
            ("?", "", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXbXb", false),
            ("x,*@b", "a@b", true),
            ("*@b,!a@b", "a@b", false),
            ("!a@b,*@b", "a@b", false),
            ("!a@b,*@b", "c@b", true),
            ("!a@b", "c@b", false),
        ] {
            assert_eq!(matches(patterns, name), expected, "{patterns} {name}");
        }
        assert!(PatternList::parse("a,,b").is_err() && PatternList::parse("!").is_err());
        // A list may be long, and none of its patterns.
        let long = "a".repeat(MAX_PRINCIPAL_LEN);
        assert!(matches(&format!("{long},{long},b"), "b"));
        assert!(PatternList::parse(&format!("b,{long}a")).is_err());
        // Many stars take no more than the product of the lengths.
        assert!(!matches(&"*a".repeat(500), &"a".repeat(499)));
    }
}
