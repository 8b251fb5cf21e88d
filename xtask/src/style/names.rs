//! Words that our names do not have (`GLOSSARY.md`). To add one: put it in its list.

use std::str::FromStr as _;

use proc_macro2::{TokenStream, TokenTree};

use super::text::Finding;

/// Types whose name says nothing: it needs a noun, as in `StampFile`.
const TYPES: [&str; 9] = ["Place", "State", "Form", "Content", "Found", "Known", "Software", "What", "Made"];

/// First or only words of constants: `MAX_...`, `MIN_...` and `..._TIMEOUT` say what is meant.
const CONSTANTS: [&str; 9] = ["MOST", "LEAST", "PATIENCE", "FEW", "ENOUGH", "AHEAD", "AGAIN", "ROOM", "HOT"];

/// Adverbs, and verbs without their object.
const FUNCTIONS: [&str; 4] = ["aside", "beside", "hand_on", "tell"];

/// Files that are not named after what they compute.
const FILES: [&str; 5] = ["alone", "beside", "fours", "halves", "single"];

/// Names that a folder has for a reason.
const ACCEPTED: [(&str, &str); 1] = [
    // `State` is the hash function's state in the crates `blake2b_simd` and `blake2s_simd`, whose
    // interface this crate has.
    ("crates/blake2/", "State"),
];

/// Checks the file's name, and the names that it declares.
pub(super) fn check(path: &str, source: &str) -> Vec<Finding> {
    if !path.ends_with(".rs") {
        return Vec::new();
    }
    let accepted = ACCEPTED.iter().filter(|(folder, _)| path.starts_with(folder)).map(|(_, name)| *name);
    let accepted: Vec<_> = accepted.collect();
    let mut findings = Vec::new();
    let name = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
    if FILES.contains(&name) {
        findings
            .push(Finding { line: 1, message: format!("a file's name says what it computes, not {name}") });
    }
    // Another rule reports files that are not Rust.
    if let Ok(tokens) = TokenStream::from_str(source) {
        walk(tokens, &accepted, &mut findings);
    }
    findings
}

fn walk(tokens: TokenStream, accepted: &[&str], findings: &mut Vec<Finding>) {
    let mut before = String::new();
    for token in tokens {
        match token {
            TokenTree::Ident(word) => {
                let name = word.to_string();
                if refused(&before, &name).is_some_and(|word| !accepted.contains(&word)) {
                    let line = word.span().start().line;
                    let message = format!("{before} {name}: GLOSSARY.md says how such a name is made");
                    findings.push(Finding { line, message });
                }
                before = name;
            }
            TokenTree::Group(group) => {
                walk(group.stream(), accepted, findings);
                before.clear();
            }
            _ => before.clear(),
        }
    }
}

/// The word in a name that nothing may have, if there is one. `declared_by` is what stands before
/// it.
fn refused<'a>(declared_by: &str, name: &'a str) -> Option<&'a str> {
    let (word, words): (_, &[&str]) = match declared_by {
        "struct" | "enum" | "union" | "trait" => (name, &TYPES),
        "const" | "static" => (name.split('_').next()?, &CONSTANTS),
        "fn" => (name, &FUNCTIONS),
        _ => return None,
    };
    words.contains(&word).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_nothing_are_found_where_they_are_declared() {
        let lines = |source: &str| check("a.rs", source).into_iter().map(|f| f.line).collect::<Vec<_>>();
        let refused = "struct Place;\nmod m {\n    const MOST_KEYS: u8 = 0;\n    impl A {\n        fn tell() {}\n    }\n}\n";
        assert_eq!(lines(refused), [1, 3, 5]);
        let accepted =
            "use x::Place;\nstruct PlaceFile;\nconst ALMOST: u8 = 0;\nfn tell_all(State(x): State<u8>) {}\n";
        assert_eq!(lines(accepted), [0; 0]);
    }

    #[test]
    fn a_folder_has_the_names_that_are_accepted_there_and_no_others() {
        assert_eq!(check("crates/blake2/src/a.rs", "struct State;\n").len(), 0);
        assert_eq!(check("crates/blake2/src/a.rs", "struct Known;\n").len(), 1);
        assert_eq!(check("crates/blake3/src/a.rs", "struct State;\n").len(), 1);
    }

    #[test]
    fn a_file_has_the_name_of_what_it_computes() {
        assert_eq!(check("crates/x/src/halves.rs", "").len(), 1);
        assert_eq!(check("crates/x/src/halving.rs", "").len(), 0);
        assert_eq!(check("docs/halves.md", "").len(), 0);
    }
}
