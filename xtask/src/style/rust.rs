//! Rules for Rust: where `unsafe` is allowed, that a comment says why it is sound, and how long a
//! function may be.
//!
//! Clippy checks the second rule too, but only in code that this machine compiles.

use std::str::FromStr as _;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::text::{Finding, is_generated};

/// The only folders in which `unsafe` is allowed.
const UNSAFE_ALLOWED: [&str; 11] = [
    "crates/simd/",
    "crates/blake3/",
    "crates/blake2/",
    "crates/ed25519/",
    "crates/mmap/",
    "crates/capi/",
    "crates/pkcs11/",
    "crates/wasm/",
    "c/bench/rust/",
    "js/bench/official-wasm/",
    "python/src/",
];

/// The most lines of a function, from `fn` to its closing brace.
const MAX_FUNCTION_LINES: usize = 70;

/// The maximum number of lines between the comment and its `unsafe`, for statements over several
/// lines.
const REACH: usize = 8;

pub(super) fn check(path: &str, source: &str) -> Vec<Finding> {
    let tokens = match TokenStream::from_str(source) {
        Ok(tokens) => tokens,
        Err(error) => return vec![Finding { line: 1, message: format!("this is not Rust: {error}") }],
    };
    let mut checker = Checker {
        lines: source.lines().collect(),
        unsafe_allowed: UNSAFE_ALLOWED.iter().any(|folder| path.starts_with(folder)),
        functions_bounded: !is_generated(source),
        findings: Vec::new(),
    };
    if !checker.unsafe_allowed && is_crate_root(path) && !source.contains("#![forbid(unsafe_code)]") {
        checker.report(1, "the crate does not say #![forbid(unsafe_code)]".to_owned());
    }
    checker.walk(tokens);
    checker.findings
}

fn is_crate_root(path: &str) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs")
}

struct Checker<'a> {
    lines: Vec<&'a str>,
    unsafe_allowed: bool,
    functions_bounded: bool,
    findings: Vec<Finding>,
}

impl Checker<'_> {
    fn report(&mut self, line: usize, message: String) {
        self.findings.push(Finding { line, message });
    }

    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            let rest = &tokens[index + 1..];
            match token {
                TokenTree::Ident(ident) if ident == "unsafe" => {
                    self.unsafe_at(ident.span().start().line, rest)
                }
                TokenTree::Ident(ident) if ident == "fn" => self.function_at(ident.span().start().line, rest),
                TokenTree::Group(group) => self.walk(group.stream()),
                _ => {}
            }
        }
    }

    fn unsafe_at(&mut self, line: usize, rest: &[TokenTree]) {
        if !self.unsafe_allowed {
            self.report(line, "unsafe outside the crates that may have it".to_owned());
        }
        let needs_reason = match rest.first() {
            Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Brace,
            Some(TokenTree::Ident(ident)) => ident == "impl",
            _ => false,
        };
        if needs_reason && !self.has_reason(line) {
            self.report(line, "unsafe without a SAFETY comment".to_owned());
        }
    }

    /// Whether there is a `SAFETY:` comment on the line, or above its statement.
    fn has_reason(&self, line: usize) -> bool {
        let is_reason = |text: &str| text.find("//").is_some_and(|at| text[at..].contains("SAFETY:"));
        if is_reason(self.lines[line - 1]) {
            return true;
        }
        let mut code_lines = 0;
        for text in self.lines[..line - 1].iter().rev().map(|text| text.trim()) {
            if is_reason(text) {
                return true;
            }
            if text.starts_with("//") || text.starts_with("#[") {
                continue;
            }
            code_lines += 1;
            if code_lines > REACH || text.is_empty() || text.ends_with([';', '{', '}']) {
                return false;
            }
        }
        false
    }

    fn function_at(&mut self, line: usize, rest: &[TokenTree]) {
        // A function pointer's type has no name.
        let Some(TokenTree::Ident(name)) = rest.first() else { return };
        let body = rest.iter().find_map(|token| match token {
            TokenTree::Punct(punct) if punct.as_char() == ';' => Some(None),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(Some(group)),
            _ => None,
        });
        let Some(Some(body)) = body else { return };
        let lines = body.span_close().end().line + 1 - line;
        if self.functions_bounded && lines > MAX_FUNCTION_LINES {
            self.report(line, format!("fn {name} has {lines} lines: at most {MAX_FUNCTION_LINES}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_devtools::Context;

    const ALLOWED: &str = "crates/simd/src/x.rs";

    fn count(path: &str, source: &str) -> usize {
        check(path, source).len()
    }

    #[test]
    fn unsafe_is_found_outside_its_crates() {
        let source = "fn f() {\n    // SAFETY: none\n    unsafe { g() }\n}\n";
        assert_eq!(count("crates/kms/src/x.rs", source), 1);
        assert_eq!(count(ALLOWED, source), 0);
    }

    #[test]
    fn the_word_in_comments_strings_and_names_is_no_finding() {
        assert_eq!(
            count("crates/kms/src/x.rs", "// unsafe {}\nconst A: &str = \"unsafe {}\";\nfn unsafe_x() {}\n"),
            0
        );
    }

    #[test]
    fn the_documents_name_the_folders_with_unsafe_code() {
        let root = Context::find().unwrap().root;
        for document in ["SECURITY.md", "CONTRIBUTING.md"] {
            let text = std::fs::read_to_string(root.join(document)).unwrap();
            for folder in UNSAFE_ALLOWED {
                let name = format!("`{}`", folder.trim_end_matches('/'));
                assert!(text.contains(&name), "{document} does not name {name}");
            }
        }
    }

    #[test]
    fn unsafe_needs_a_reason() {
        assert_eq!(count(ALLOWED, "fn f() {\n    unsafe { g() }\n}\n"), 1);
        assert_eq!(count(ALLOWED, "// why\nunsafe impl Send for A {}\n"), 1);
        assert_eq!(count(ALLOWED, "// SAFETY: it is\n#[cfg(x)]\nunsafe impl Send for A {}\n"), 0);
        assert_eq!(count(ALLOWED, "/// # Safety\nunsafe fn f() {}\n"), 0);
    }

    #[test]
    fn the_reason_belongs_to_the_statement() {
        assert_eq!(
            count(ALLOWED, "fn f() {\n    // SAFETY: a\n    // b\n    let x =\n        unsafe { g() };\n}\n"),
            0
        );
        assert_eq!(count(ALLOWED, "fn f() {\n    // SAFETY: a\n    let y = 1;\n    unsafe { g() }\n}\n"), 1);
    }

    #[test]
    fn unsafe_in_a_macro_is_seen() {
        assert_eq!(count(ALLOWED, "macro_rules! m { () => { unsafe { g() } } }\n"), 1);
    }

    #[test]
    fn crate_roots_forbid_unsafe() {
        assert_eq!(count("crates/kms/src/lib.rs", "//! Keys.\n"), 1);
        assert_eq!(count("crates/kms/src/lib.rs", "#![forbid(unsafe_code)]\n"), 0);
        assert_eq!(count("crates/simd/src/lib.rs", "//! Vectors.\n"), 0);
    }

    #[test]
    fn long_functions_are_found_unless_generated() {
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2));
        assert_eq!(count("xtask/src/x.rs", &function(MAX_FUNCTION_LINES)), 0);
        assert_eq!(count("xtask/src/x.rs", &function(MAX_FUNCTION_LINES + 1)), 1);
        let generated = format!("// Code generated by gen. DO NOT EDIT.\n{}", function(200));
        assert_eq!(count("xtask/src/x.rs", &generated), 0);
    }
}
