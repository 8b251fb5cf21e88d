//! One source file: conditions on the target's features that precede detection at run time.

use std::{collections::BTreeSet, iter::Peekable, path::Path};

use proc_macro2::{Delimiter, Group, Ident, LexError, TokenStream, TokenTree, token_stream::IntoIter};
use serde::Serialize;

/// Words by which code asks the CPU at run time.
const DETECTION: [&str; 7] = [
    "is_x86_feature_detected",
    "is_aarch64_feature_detected",
    "is_arm_feature_detected",
    "__cpuid",
    "__cpuid_count",
    "getauxval",
    "cpufeatures",
];

/// A finding before its file is known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceMatch {
    line: u64,
    kind: SourceKind,
    text: String,
}

impl SourceMatch {
    pub(super) fn in_file(self, file: &Path) -> SourceFinding {
        SourceFinding { file: file.display().to_string(), line: self.line, kind: self.kind, text: self.text }
    }
}

/// Whether the file uses vector intrinsics.
pub(super) fn has_intrinsics(text: &str) -> bool {
    ["core::arch::", "std::arch::", "arch::x86_64::", "arch::aarch64::"]
        .iter()
        .any(|path| text.contains(path))
        && text.contains("_mm")
        || text.contains("arch::aarch64::*")
}

/// The findings in a file of a package that is built with `features`.
///
/// # Errors
/// The text is not Rust.
pub(super) fn findings(text: &str, features: &BTreeSet<String>) -> Result<Vec<SourceMatch>, String> {
    // Most files have neither, and parsing takes most of the time.
    if !text.contains("target_feature") && !DETECTION.iter().any(|word| text.contains(word)) {
        return Ok(Vec::new());
    }
    let tokens: TokenStream =
        text.parse().map_err(|error: LexError| format!("line {}: {error}", error.span().start().line))?;
    let mut items = Items { features, found: Vec::new(), functions: Vec::new() };
    items.read(tokens);
    items.compare_variants();
    items.found.sort_by_key(|found| (found.line, found.kind));
    items.found.dedup();
    Ok(items.found)
}

/// The items of a file, also in modules, `impl` blocks and traits. Tokens are enough to find them,
/// without parsing expressions.
struct Items<'f> {
    features: &'f BTreeSet<String>,
    found: Vec<SourceMatch>,
    /// Functions that exist only for some features of the target, by name.
    functions: Vec<Variant>,
}

/// One of several functions with the same name, from which the compiler takes one.
struct Variant {
    name: String,
    /// Its condition on features of the target, with its line.
    condition: Option<(u64, String)>,
    detects: bool,
}

impl Items<'_> {
    fn read(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        let mut attributes = Vec::new();
        // The function or macro whose braces come next.
        let mut function = None;
        let mut before = None;
        while let Some(tree) = tokens.next() {
            match &tree {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    attributes.extend(Attribute::after_hash(&mut tokens));
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => {
                    attributes.clear();
                    function = None;
                }
                TokenTree::Ident(ident) if *ident == "fn" => {
                    function = tokens.peek().map(ToString::to_string);
                }
                TokenTree::Ident(ident) if *ident == "macro_rules" => {
                    if let Some(TokenTree::Group(rules)) = tokens.by_ref().nth(2) {
                        self.macro_rules(rules.stream());
                    }
                    attributes.clear();
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    if let Some(name) = function.take() {
                        self.function(name, &attributes, group.stream());
                    } else if !is_punct(before.as_ref(), '!') && !attributes.iter().any(Attribute::is_test) {
                        self.read(group.stream());
                    }
                    attributes.clear();
                }
                _ => {}
            }
            before = Some(tree);
        }
    }

    fn macro_rules(&mut self, rules: TokenStream) {
        let mut conditions = Vec::new();
        attributes_in(rules, &mut conditions);
        for (line, text) in conditions {
            self.found.push(SourceMatch { line, kind: SourceKind::CompileTimeChoiceInMacro, text });
        }
    }

    fn function(&mut self, name: String, attributes: &[Attribute], body: TokenStream) {
        let mut inside =
            Body { features: self.features, conditions: Vec::new(), detections: Vec::new(), off: Vec::new() };
        inside.read(body);
        if let Some(last) = inside.detections.iter().max() {
            for (line, text) in inside.conditions.into_iter().filter(|(line, _)| line <= last) {
                self.found.push(SourceMatch { line, kind: SourceKind::CompileTimeChoice, text });
            }
        }
        for (line, text) in inside.off {
            self.found.push(SourceMatch { line, kind: SourceKind::DetectionOff, text });
        }
        let condition = attributes.iter().find_map(Attribute::target_condition);
        self.functions.push(Variant { name, condition, detects: !inside.detections.is_empty() });
    }

    /// Finds functions that detect at run time and are replaced by another function of the same
    /// name if the target has the feature.
    fn compare_variants(&mut self) {
        for variant in &self.functions {
            let Some((line, text)) = &variant.condition else { continue };
            let detects = |other: &&Variant| other.name == variant.name && other.detects;
            if !variant.detects && self.functions.iter().any(|other| detects(&other)) {
                self.found.push(SourceMatch {
                    line: *line,
                    kind: SourceKind::CompileTimeChoice,
                    text: text.clone(),
                });
            }
        }
    }
}

/// The body of one function.
struct Body<'f> {
    features: &'f BTreeSet<String>,
    conditions: Vec<(u64, String)>,
    detections: Vec<u64>,
    /// Detection under a feature of the package that is not enabled.
    off: Vec<(u64, String)>,
}

impl Body<'_> {
    fn read(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        let mut statement = Statement::default();
        while let Some(tree) = tokens.next() {
            let mut is_end = false;
            match &tree {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(attribute) = Attribute::after_hash(&mut tokens) {
                        self.conditions.extend(attribute.target_condition());
                        statement.missing = statement.missing.or(attribute.missing_feature(self.features));
                        statement.detections = self.detections.len();
                    }
                    continue;
                }
                TokenTree::Punct(punct) => {
                    is_end = punct.as_char() == ';' || punct.as_char() == ',' && !statement.is_binding;
                }
                TokenTree::Ident(ident) => {
                    statement.begin(ident);
                    if let Some(arguments) = macro_arguments(ident, &mut tokens) {
                        self.macro_call(ident, &arguments);
                        is_end = arguments.delimiter() == Delimiter::Brace && !statement.is_binding;
                    } else if DETECTION.iter().any(|word| ident == word) {
                        self.detections.push(line(ident));
                    }
                }
                TokenTree::Group(group) => {
                    self.read(group.stream());
                    let has_else = matches!(tokens.peek(), Some(TokenTree::Ident(next)) if *next == "else");
                    is_end = group.delimiter() == Delimiter::Brace && !statement.is_binding && !has_else;
                }
                TokenTree::Literal(_) => {}
            }
            if is_end {
                self.end(std::mem::take(&mut statement));
            }
        }
        self.end(statement);
    }

    fn macro_call(&mut self, name: &Ident, arguments: &Group) {
        let text = arguments.stream().to_string();
        if *name == "cfg" && is_on_target(&text) {
            self.conditions.push((line(name), format!("cfg!({text})")));
        }
        if DETECTION.iter().any(|word| name == word || text.contains(word)) {
            self.detections.push(line(name));
        }
    }

    /// Ends a statement. Its detection is off if the feature of the package that it needs is not
    /// enabled.
    fn end(&mut self, statement: Statement) {
        if let Some(feature) = statement.missing
            && !statement.is_item
            && let Some(line) = self.detections.get(statement.detections)
        {
            self.off.push((*line, format!("needs the feature `{feature}`")));
        }
    }
}

/// The state of a statement while its tokens are read.
#[derive(Default)]
struct Statement {
    /// The feature of the package that it needs and that is not enabled.
    missing: Option<String>,
    /// The number of detections before it.
    detections: usize,
    has_begun: bool,
    is_binding: bool,
    is_item: bool,
}

impl Statement {
    fn begin(&mut self, first: &Ident) {
        const ITEMS: [&str; 9] = ["fn", "use", "mod", "static", "struct", "enum", "impl", "trait", "pub"];
        if !std::mem::replace(&mut self.has_begun, true) {
            self.is_binding = *first == "let";
            self.is_item = ITEMS.iter().any(|word| first == word);
        }
    }
}

/// The arguments of a macro, if `name` is followed by `!` and a group. The `!` and the group are
/// taken from `tokens`.
fn macro_arguments(name: &Ident, tokens: &mut Peekable<IntoIter>) -> Option<Group> {
    const NO_MACROS: [&str; 7] = ["return", "in", "if", "while", "match", "else", "break"];
    if NO_MACROS.iter().any(|word| name == word) || !is_punct(tokens.peek(), '!') {
        return None;
    }
    let mut ahead = tokens.clone();
    ahead.next();
    let Some(TokenTree::Group(arguments)) = ahead.next() else { return None };
    *tokens = ahead;
    Some(arguments)
}

/// An attribute such as `#[cfg(...)]`.
struct Attribute {
    line: u64,
    name: String,
    arguments: String,
}

impl Attribute {
    /// The attribute whose `#` was just read.
    fn after_hash(tokens: &mut Peekable<IntoIter>) -> Option<Self> {
        if is_punct(tokens.peek(), '!') {
            tokens.next();
        }
        let Some(TokenTree::Group(group)) = tokens.peek() else { return None };
        let mut inside = group.stream().into_iter();
        let attribute = Self {
            line: group.span().start().line as u64,
            name: inside.next()?.to_string(),
            arguments: match inside.next() {
                Some(TokenTree::Group(arguments)) => arguments.stream().to_string(),
                _ => String::new(),
            },
        };
        tokens.next();
        Some(attribute)
    }

    fn is_cfg(&self) -> bool {
        self.name == "cfg"
    }

    /// Whether it is for tests: code that only tests build is not in the binary.
    fn is_test(&self) -> bool {
        self.is_cfg() && self.arguments.contains("test")
    }

    /// The feature of the package that `#[cfg(feature = "...")]` asks for, if it is not enabled.
    /// More complicated conditions are ignored.
    fn missing_feature(&self, features: &BTreeSet<String>) -> Option<String> {
        let feature = self.arguments.strip_prefix("feature = \"")?.strip_suffix('"')?;
        (self.is_cfg() && !feature.contains('"') && !features.contains(feature)).then(|| feature.to_owned())
    }

    /// The condition of a `#[cfg(...)]` that is true if the target has some feature, with its line.
    fn target_condition(&self) -> Option<(u64, String)> {
        let text = &self.arguments;
        (self.is_cfg() && is_on_target(text)).then(|| (self.line, format!("cfg({text})")))
    }
}

fn is_punct(tree: Option<&TokenTree>, character: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

fn line(ident: &Ident) -> u64 {
    ident.span().start().line as u64
}

/// Whether a condition is about features of the target, other than those that every target of its
/// kind has.
fn is_on_target(condition: &str) -> bool {
    const BASELINE: [&str; 4] = ["\"sse\"", "\"sse2\"", "\"neon\"", "\"fp\""];
    // This is the other branch: detection is where the feature is missing.
    if condition.trim_start().starts_with("not") {
        return false;
    }
    let features = condition.split("target_feature =").skip(1);
    features.clone().count() > 0
        && features.map(str::trim_start).any(|rest| !BASELINE.iter().any(|name| rest.starts_with(name)))
}

/// Attributes on the features of the target anywhere in the tokens of a macro.
fn attributes_in(tokens: TokenStream, found: &mut Vec<(u64, String)>) {
    let mut previous = None;
    for tree in tokens {
        if let TokenTree::Group(group) = &tree {
            let text = group.stream().to_string();
            let is_cfg = matches!(&previous, Some(TokenTree::Ident(ident)) if *ident == "cfg");
            if is_cfg && is_on_target(&text) {
                found.push((group.span().start().line as u64, format!("cfg({text})")));
            } else {
                attributes_in(group.stream(), found);
            }
        }
        previous = Some(tree);
    }
}

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SourceFinding {
    /// The path of the file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The kind of finding.
    pub kind: SourceKind,
    /// The condition or call, as it is written.
    pub text: String,
}

/// A kind of finding in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A condition on the target's features that comes before detection at run time.
    CompileTimeChoice,
    /// Such a condition in a macro, which other crates use.
    CompileTimeChoiceInMacro,
    /// Detection at run time that needs a feature of the package that this build does not enable:
    /// the kernel is never chosen.
    DetectionOff,
}

impl SourceKind {
    /// The words in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CompileTimeChoice => "compile-time choice before detection",
            Self::CompileTimeChoiceInMacro => "compile-time choice in a macro",
            Self::DetectionOff => "detection is switched off",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, features: &[&str]) -> Vec<(u64, SourceKind)> {
        let features = features.iter().map(|feature| (*feature).to_owned()).collect();
        findings(source, &features).unwrap().into_iter().map(|found| (found.line, found.kind)).collect()
    }

    const EARLY_RETURN: &str = r#"
pub fn detect() -> bool {
    #[cfg(target_feature = "avx2")]
    {
        return true;
    }
    #[cfg(feature = "std")]
    {
        if is_x86_feature_detected!("avx2") {
            return true;
        }
    }
    false
}
"#;

    #[test]
    fn a_return_at_compile_time_ahead_of_detection_is_found_with_its_line() {
        assert_eq!(found(EARLY_RETURN, &["std"]), [(3, SourceKind::CompileTimeChoice)]);
    }

    #[test]
    fn detection_that_needs_a_feature_of_the_package_is_found_when_that_is_off() {
        assert_eq!(
            found(EARLY_RETURN, &[]),
            [(3, SourceKind::CompileTimeChoice), (9, SourceKind::DetectionOff)]
        );
    }

    #[test]
    fn conditions_behind_detection_without_it_or_on_what_every_cpu_has_are_none() {
        let alone = "fn f() { #[cfg(target_feature = \"avx2\")] { return; } }";
        let baseline =
            "fn f() { #[cfg(target_feature = \"sse2\")] { if is_x86_feature_detected!(\"avx2\") {} } }";
        let runtime = "fn f() -> bool { is_x86_feature_detected!(\"avx2\") }";
        for source in [alone, baseline, runtime] {
            assert_eq!(found(source, &[]), [], "{source}");
        }
    }

    #[test]
    fn the_macro_form_and_functions_that_stand_in_for_each_other_are_found() {
        let call = "fn f() -> bool {\n if cfg!(target_feature = \"avx2\") { return true; }\n std::is_x86_feature_detected!(\"avx2\")\n}";
        assert_eq!(found(call, &[]), [(2, SourceKind::CompileTimeChoice)]);
        let pair = "#[cfg(target_feature = \"avx2\")]\nfn f() -> bool { true }\n#[cfg(not(any()))]\nfn f() -> bool { is_x86_feature_detected!(\"avx2\") }";
        assert_eq!(found(pair, &[]), [(1, SourceKind::CompileTimeChoice)]);
    }

    #[test]
    fn macros_and_nested_blocks_are_searched() {
        let nested = "fn f() -> bool {\n #[cfg(target_feature = \"sse2\")]\n {\n  #[cfg(target_feature = \"avx2\")]\n  { true }\n  #[cfg(not(any()))]\n  { std::is_x86_feature_detected!(\"avx2\") }\n }\n}";
        assert_eq!(found(nested, &[]), [(4, SourceKind::CompileTimeChoice)]);
        let rules =
            "macro_rules! m {\n ($f:tt) => {{\n  #[cfg(all(target_feature = $f))]\n  { true }\n }};\n}";
        assert_eq!(found(rules, &[]), [(3, SourceKind::CompileTimeChoiceInMacro)]);
    }

    #[test]
    fn functions_are_found_wherever_items_are_and_not_in_tests() {
        let body = "fn f() -> bool {\n if cfg!(target_feature = \"avx2\") { return true; }\n is_x86_feature_detected!(\"avx2\")\n}";
        for (before, after) in [
            ("mod m { ", "}"),
            ("impl<const N: usize> T for S<{ N }> where S<N>: U { ", "}"),
            ("trait T { fn g(&self) -> [u8; { 1 }]; ", "}"),
            ("const C: () = { ", "};"),
            ("#[inline] pub unsafe extern \"C\" ", ""),
        ] {
            let source = format!("{before}{body}{after}");
            assert_eq!(found(&source, &[]), [(2, SourceKind::CompileTimeChoice)], "{source}");
        }
        for before in ["#[cfg(test)] mod tests { ", "some_macro! { "] {
            let source = format!("{before}{body}}}");
            assert_eq!(found(&source, &[]), [], "{source}");
        }
    }

    #[test]
    fn an_attribute_reaches_to_the_end_of_its_statement() {
        const OFF: SourceKind = SourceKind::DetectionOff;
        let detect = "is_x86_feature_detected!(\"avx2\")";
        for (statement, expected) in [
            (
                format!("#[cfg(feature = \"std\")] let x: M<A, B> = if a {{ 1 }} else {{ {detect} }};"),
                &[(1, OFF)][..],
            ),
            (format!("#[cfg(feature = \"std\")] if !(a) {{ 1 }} else {{ {detect} }}"), &[(1, OFF)]),
            (format!("#[cfg(feature = \"std\")] return !({detect});"), &[(1, OFF)]),
            (format!("#[cfg(feature = \"std\")] {{ a }} {detect}"), &[]),
            (format!("#[cfg(feature = \"std\")] let x = a; {detect}"), &[]),
            (format!("#[cfg(feature = \"std\")] use a::b; {detect}"), &[]),
            (format!("#[cfg(feature = \"std\")] fn g() {{ {detect} }}"), &[]),
        ] {
            let source = format!("fn f() {{ {statement} }}");
            assert_eq!(found(&source, &[]), expected, "{source}");
            assert_eq!(found(&source, &["std"]), [], "{source}");
        }
    }

    #[test]
    fn what_is_no_rust_is_an_error_with_its_line() {
        let features = BTreeSet::new();
        assert!(findings("// target_feature\nfn {", &features).unwrap_err().starts_with("line 2"));
    }
}
