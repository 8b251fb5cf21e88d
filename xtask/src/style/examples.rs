//! The rule that each public function of a library has an example, which the tests run.
//!
//! An example shows a function if it calls it by name. It may stand in the documentation of the
//! function, of its type, of its module or of the crate, or be a program in `examples/`: what
//! several functions do together is best said once. Functions in code that a macro generates, and
//! hidden ones, are not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::text::Finding;

/// The libraries.
const LIBRARIES: [&str; 8] = [
    "crates/blake2",
    "crates/blake3",
    "crates/client",
    "crates/ed25519",
    "crates/files",
    "crates/keystore",
    "crates/kms",
    "crates/sums",
];

/// A public function without an example.
#[derive(Debug, PartialEq, Eq)]
struct Unshown<'a> {
    path: &'a str,
    line: usize,
    name: &'a str,
}

/// Checks the libraries among the Rust files in `sources`, given by their paths.
pub(super) fn check(sources: &BTreeMap<String, String>) -> Vec<(String, Finding)> {
    let mut findings = Vec::new();
    for folder in LIBRARIES {
        if sources.contains_key(&format!("{folder}/src/lib.rs")) {
            let finding = |one: Unshown<'_>| {
                let message = format!("the public function {} has no example", one.name);
                (one.path.to_owned(), Finding { line: one.line, message })
            };
            findings.extend(functions_without_examples(sources, folder).into_iter().map(finding));
        }
    }
    findings
}

fn functions_without_examples<'a>(sources: &'a BTreeMap<String, String>, folder: &str) -> Vec<Unshown<'a>> {
    let (root, files) = (format!("{folder}/src/lib.rs"), format!("{folder}/src/"));
    let programs = format!("{folder}/examples/");
    let of_crate = examples(&sources[&root]);
    let mut shared = calls(&of_crate);
    for (_, program) in sources.iter().filter(|(path, _)| path.starts_with(&programs)) {
        shared.extend(calls(program));
    }
    let in_files = sources.iter().filter(|(path, _)| path.starts_with(&files));
    let hidden: Vec<_> = in_files.flat_map(|(path, source)| hidden_modules(path, source)).collect();
    let mut by_module: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let texts: BTreeMap<_, _> = sources
        .iter()
        .filter(|(path, _)| path.starts_with(&files) && !hidden.iter().any(|name| path.starts_with(name)))
        .map(|(path, source)| (path.as_str(), examples(source)))
        .collect();
    for (path, text) in &texts {
        by_module.entry(module_of(path, &files)).or_default().extend(calls(text));
    }
    let mut unshown = Vec::new();
    for path in texts.keys() {
        let module = &by_module[module_of(path, &files)];
        for (line, name) in public_functions(&sources[*path]) {
            if !shared.contains(name) && !module.contains(name) {
                unshown.push(Unshown { path, line, name });
            }
        }
    }
    unshown
}

/// The folder of a file, or the file itself if it is in no folder below `files`.
fn module_of<'a>(path: &'a str, files: &str) -> &'a str {
    match path.rsplit_once('/') {
        Some((folder, _)) if folder.len() >= files.len() => folder,
        _ => path,
    }
}

/// How the paths of the modules begin that this file hides.
fn hidden_modules(path: &str, source: &str) -> Vec<String> {
    let file = path.strip_suffix(".rs").unwrap_or(path);
    let folder = match file.rsplit_once('/') {
        Some((folder, "lib" | "mod")) => folder,
        _ => file,
    };
    let lines = source.lines().zip(source.lines().skip(1));
    lines
        .filter(|(attribute, _)| *attribute == "#[doc(hidden)]")
        .filter_map(|(_, declaration)| declaration.strip_prefix("pub mod ")?.strip_suffix(';'))
        .flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/")])
        .collect()
}

/// The lines of all examples in the documentation.
fn examples(source: &str) -> String {
    let mut text = String::new();
    let mut fence = None;
    for line in source.lines().map(str::trim_start) {
        let Some(line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            fence = None;
            continue;
        };
        let line = line.strip_prefix(' ').unwrap_or(line);
        match (line.strip_prefix("```"), fence) {
            (Some(language), None) => {
                fence = Some(language.is_empty() || language.starts_with("no_run"));
            }
            (Some(_), Some(_)) => fence = None,
            (None, Some(true)) => text.extend([line, "\n"]),
            (None, _) => {}
        }
    }
    text
}

/// The names before an opening parenthesis.
fn calls(text: &str) -> BTreeSet<&str> {
    let is_separator = |c: char| !c.is_alphanumeric() && c != '_';
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices('(') {
        let mut before = &text[..at];
        // A turbofish.
        if before.ends_with('>') {
            before = before.rfind("::<").map_or(before, |start| &before[..start]);
        }
        names.extend(before.rsplit(is_separator).next());
    }
    names
}

/// The public functions outside tests and hidden items: their lines and names.
fn public_functions(source: &str) -> Vec<(usize, &str)> {
    let mut functions = Vec::new();
    let mut is_hidden = false;
    let mut hidden_until: Option<String> = None;
    let lines: Vec<_> = source.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        if let Some(end) = &hidden_until {
            if line == end {
                hidden_until = None;
            }
            continue;
        }
        if code == "#[cfg(test)]" && lines.get(index + 1).is_some_and(|next| next.starts_with("mod ")) {
            break;
        }
        if code == "#[doc(hidden)]" {
            is_hidden = true;
        } else if !code.starts_with("#[") {
            if is_hidden && code.ends_with('{') {
                hidden_until = Some(format!("{indent}}}"));
            } else if let Some(name) = function_name(code).filter(|_| !is_hidden) {
                functions.push((index + 1, name));
            }
            is_hidden = false;
        }
    }
    functions
}

/// The name of the public function that this line declares.
fn function_name(code: &str) -> Option<&str> {
    let mut rest = code.strip_prefix("pub ")?;
    for word in ["const ", "async ", "unsafe "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("fn ")?;
    Some(&rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_')?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unshown(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, text)| (format!("a/{path}"), (*text).to_owned())).collect();
        functions_without_examples(&sources, "a").iter().map(|one| one.name.to_owned()).collect()
    }

    const CALL: &str = "//! ```\n//! a::shown::<u8>(1);\n//! ```\n";

    #[test]
    fn an_example_shows_the_functions_that_it_calls() {
        let functions = "pub const fn shown() {}\n    pub async fn bare(&self) {}\nfn private() {}\n";
        let file = format!("{CALL}{functions}");
        assert_eq!(unshown(&[("src/lib.rs", &file)]), ["bare"]);
        assert_eq!(unshown(&[("src/lib.rs", CALL), ("src/b.rs", functions)]), ["bare"]);
        assert_eq!(unshown(&[("src/lib.rs", functions), ("examples/e.rs", "x.bare(); shown()")]), [""; 0]);
    }

    #[test]
    fn an_example_shows_functions_of_its_module_and_of_no_other() {
        let (root, function) = ("mod b;", "pub fn shown() {}\n");
        assert_eq!(
            unshown(&[("src/lib.rs", root), ("src/b/mod.rs", CALL), ("src/b/c.rs", function)]),
            [""; 0]
        );
        assert_eq!(unshown(&[("src/lib.rs", root), ("src/b.rs", CALL), ("src/c.rs", function)]), ["shown"]);
        let text = "/// ```text\n/// shown()\n/// ```\npub fn shown() {}\n";
        assert_eq!(unshown(&[("src/lib.rs", text)]), ["shown"]);
    }

    #[test]
    fn hidden_functions_and_tests_need_none() {
        let hidden = "#[doc(hidden)]\npub fn a() {}\n#[doc(hidden)]\npub mod b {\n    pub fn c() {}\n}\n#[cfg(test)]\nmod tests { pub fn d() {} }\n";
        assert_eq!(unshown(&[("src/lib.rs", hidden)]), [""; 0]);
        let (root, function) = ("#[doc(hidden)]\npub mod b;\n", "pub fn a() {}\n");
        assert_eq!(unshown(&[("src/lib.rs", root), ("src/b.rs", function)]), [""; 0]);
        assert_eq!(unshown(&[("src/lib.rs", ""), ("src/c/mod.rs", root), ("src/c/b.rs", function)]), [""; 0]);
        assert_eq!(unshown(&[("src/lib.rs", root), ("src/bc.rs", function)]), ["a"]);
    }

    #[test]
    fn a_library_has_an_example_for_each_function() {
        let root = format!("{}/src/lib.rs", LIBRARIES[0]);
        let check = |source: &str| check(&BTreeMap::from([(root.clone(), source.to_owned())]));
        assert_eq!(check("pub fn f() {}\npub fn g() {}\n").len(), 2);
        assert!(check("").is_empty());
        assert!(super::check(&BTreeMap::new()).is_empty());
    }
}
