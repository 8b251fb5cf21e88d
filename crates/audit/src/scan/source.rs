//! One source file: conditions on the features of the target that come before detection at run time.

use std::{collections::BTreeSet, path::Path};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Meta, spanned::Spanned as _, visit::Visit};

use super::{SourceFinding, SourceKind};

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
pub(super) struct Found {
    line: u64,
    kind: SourceKind,
    text: String,
}

impl Found {
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

/// What is in a file of a package that is built with `features`.
///
/// # Errors
/// It is no Rust.
pub(super) fn findings(text: &str, features: &BTreeSet<String>) -> Result<Vec<Found>, String> {
    // Most files have neither, and parsing is what takes time.
    if !text.contains("target_feature") && !DETECTION.iter().any(|word| text.contains(word)) {
        return Ok(Vec::new());
    }
    let file =
        syn::parse_file(text).map_err(|error| format!("line {}: {error}", error.span().start().line))?;
    let mut visitor = Visitor { features, found: Vec::new(), functions: Vec::new() };
    visitor.visit_file(&file);
    visitor.compare_variants();
    visitor.found.sort_by_key(|found| (found.line, found.kind));
    visitor.found.dedup();
    Ok(visitor.found)
}

struct Visitor<'f> {
    features: &'f BTreeSet<String>,
    found: Vec<Found>,
    /// Functions that exist for some features of the target only, by name.
    functions: Vec<Variant>,
}

/// One of several functions of a name, of which the compiler takes one.
struct Variant {
    name: String,
    /// Its condition on features of the target, with its line.
    condition: Option<(u64, String)>,
    detects: bool,
}

impl Visitor<'_> {
    fn function(&mut self, name: String, attributes: &[Attribute], body: &syn::Block) {
        let mut inside = Inside {
            features: self.features,
            conditions: Vec::new(),
            detections: Vec::new(),
            off: Vec::new(),
        };
        inside.visit_block(body);
        if let Some(last) = inside.detections.iter().max() {
            for (line, text) in inside.conditions.into_iter().filter(|(line, _)| line <= last) {
                self.found.push(Found { line, kind: SourceKind::CompileTimeChoice, text });
            }
        }
        for (line, text) in inside.off {
            self.found.push(Found { line, kind: SourceKind::DetectionOff, text });
        }
        let condition = attributes.iter().find_map(target_condition);
        self.functions.push(Variant { name, condition, detects: !inside.detections.is_empty() });
    }

    /// Functions of which one detects, and another of the same name takes its place when the target has the feature.
    fn compare_variants(&mut self) {
        for variant in &self.functions {
            let Some((line, text)) = &variant.condition else { continue };
            let detects = |other: &&Variant| other.name == variant.name && other.detects;
            if !variant.detects && self.functions.iter().any(|other| detects(&other)) {
                self.found.push(Found {
                    line: *line,
                    kind: SourceKind::CompileTimeChoice,
                    text: text.clone(),
                });
            }
        }
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(item.sig.ident.to_string(), &item.attrs, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(item.sig.ident.to_string(), &item.attrs, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(item.sig.ident.to_string(), &item.attrs, body);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // What only tests build is in no binary.
        if !item.attrs.iter().any(|attribute| is_cfg(attribute) && tokens(attribute).contains("test")) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if !item.mac.path.is_ident("macro_rules") {
            return;
        }
        let mut conditions = Vec::new();
        attributes_in(item.mac.tokens.clone(), &mut conditions);
        for (line, text) in conditions {
            self.found.push(Found { line, kind: SourceKind::CompileTimeChoiceInMacro, text });
        }
    }
}

/// The body of one function.
struct Inside<'f> {
    features: &'f BTreeSet<String>,
    conditions: Vec<(u64, String)>,
    detections: Vec<u64>,
    /// Detection under a feature of the package that is not enabled.
    off: Vec<(u64, String)>,
}

impl<'ast> Visit<'ast> for Inside<'_> {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        self.conditions.extend(target_condition(attribute));
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let line = mac.span().start().line as u64;
        let name = mac.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if DETECTION.contains(&name.as_str()) {
            self.detections.push(line);
        }
        let text = mac.tokens.to_string();
        if name == "cfg" && is_on_target(&text) {
            self.conditions.push((line, format!("cfg!({text})")));
        }
        if DETECTION.iter().any(|word| text.contains(word)) {
            self.detections.push(line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.iter().any(|segment| DETECTION.iter().any(|word| segment.ident == word)) {
            self.detections.push(path.span().start().line as u64);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        for statement in &block.stmts {
            let off =
                attributes(statement).iter().find_map(|attribute| missing_feature(attribute, self.features));
            let before = self.detections.len();
            self.visit_stmt(statement);
            if let Some(feature) = off
                && let Some(line) = self.detections.get(before)
            {
                self.off.push((*line, format!("needs the feature `{feature}`")));
            }
        }
    }
}

fn attributes(statement: &syn::Stmt) -> &[Attribute] {
    match statement {
        syn::Stmt::Local(local) => &local.attrs,
        syn::Stmt::Macro(mac) => &mac.attrs,
        syn::Stmt::Expr(syn::Expr::Block(block), _) => &block.attrs,
        syn::Stmt::Expr(syn::Expr::If(condition), _) => &condition.attrs,
        syn::Stmt::Expr(syn::Expr::Return(back), _) => &back.attrs,
        _ => &[],
    }
}

/// The feature of the package that `#[cfg(feature = "...")]` asks for, if it is not enabled. Anything more involved is left alone.
fn missing_feature(attribute: &Attribute, features: &BTreeSet<String>) -> Option<String> {
    let text = tokens(attribute);
    let feature = text.strip_prefix("feature = \"")?.strip_suffix('"')?;
    (is_cfg(attribute) && !feature.contains('"') && !features.contains(feature)).then(|| feature.to_owned())
}

/// The condition of a `#[cfg(...)]` that holds when the target has some feature, with its line.
fn target_condition(attribute: &Attribute) -> Option<(u64, String)> {
    let text = tokens(attribute);
    (is_cfg(attribute) && is_on_target(&text))
        .then(|| (attribute.span().start().line as u64, format!("cfg({text})")))
}

fn is_cfg(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

fn tokens(attribute: &Attribute) -> String {
    match &attribute.meta {
        Meta::List(list) => list.tokens.to_string(),
        _ => String::new(),
    }
}

/// Whether a condition is about features of the target, and not about those that every target of the kind has.
fn is_on_target(condition: &str) -> bool {
    const BASELINE: [&str; 4] = ["\"sse\"", "\"sse2\"", "\"neon\"", "\"fp\""];
    // The other branch: what holds without the feature is where detection is.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, features: &[&str]) -> Vec<(u64, SourceKind)> {
        let features = features.iter().map(|feature| (*feature).to_owned()).collect();
        findings(source, &features).unwrap().into_iter().map(|found| (found.line, found.kind)).collect()
    }

    const RETURN_AHEAD: &str = r#"
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
        assert_eq!(found(RETURN_AHEAD, &["std"]), [(3, SourceKind::CompileTimeChoice)]);
    }

    #[test]
    fn detection_that_needs_a_feature_of_the_package_is_found_when_that_is_off() {
        assert_eq!(
            found(RETURN_AHEAD, &[]),
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
    fn what_is_no_rust_is_an_error_with_its_line() {
        let features = BTreeSet::new();
        assert!(findings("// target_feature\nfn {", &features).unwrap_err().starts_with("line 2"));
    }
}
