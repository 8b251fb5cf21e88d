//! The rules for our own kernels are held to the tables in the sources of their crates.

use std::fs;
use std::path::Path;

use bulla_audit::Rules;
use proc_macro2::{TokenStream, TokenTree};

/// The modules of functions that each table of kernels in `file` names, one list for each call of a
/// macro in `macros`.
fn tables(file: &str, macros: &[&str]) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let tokens: TokenStream = text.parse().expect("Rust");
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let calls = tokens.windows(3).filter_map(|call| match call {
        [TokenTree::Ident(name), TokenTree::Punct(punct), TokenTree::Group(arguments)]
            if punct.as_char() == '!' && macros.iter().any(|own| name == own) =>
        {
            Some(arguments.stream())
        }
        _ => None,
    });
    calls.map(modules).collect()
}

/// Module names are the words in small letters before the features, which are text.
fn modules(tokens: TokenStream) -> Vec<String> {
    tokens
        .into_iter()
        .take_while(|token| !matches!(token, TokenTree::Literal(_)))
        .filter_map(|token| match token {
            TokenTree::Ident(ident) => Some(ident.to_string()),
            _ => None,
        })
        .filter(|word| word.contains('_') && !word.contains(char::is_uppercase))
        .collect()
}

#[test]
fn every_kernel_in_the_tables_has_a_rule() {
    let rules = Rules::built_in();
    for (prefix, file, macros) in [
        ("bulla_blake3::kernel::x86_64", "blake3/src/kernel/x86_64.rs", &["kernel", "wide"][..]),
        ("bulla_blake2::kernel::x86_64", "blake2/src/kernel/x86_64.rs", &["kernel", "lanes"]),
    ] {
        let tables = tables(file, macros);
        assert!(tables.len() >= 7, "{file}: {tables:?}");
        for modules in tables {
            let is_named = rules.all().iter().flat_map(|rule| &rule.symbols).any(|symbol| {
                modules.iter().any(|module| symbol.starts_with(&format!("{prefix}::{module}::")))
            });
            assert!(is_named, "{file}: no rule of crates/audit/rules/builtin.toml names {modules:?}");
        }
    }
}

#[test]
fn every_function_that_a_rule_names_is_in_the_sources() {
    for (krate, files) in [
        ("blake3", &["x86_64.rs", "define.rs"][..]),
        ("blake2", &["x86_64.rs"]),
        ("ed25519", &["lane_steps.rs"]),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate).join("src/kernel");
        let read = |file: &&str| fs::read_to_string(folder.join(file)).expect("a source");
        let text: String = files.iter().map(read).collect();
        let rules = Rules::built_in();
        let own: Vec<_> = rules.all().iter().filter(|rule| rule.krate == format!("bulla_{krate}")).collect();
        assert!(!own.is_empty(), "no rule for {krate}");
        for symbol in own.iter().flat_map(|rule| &rule.symbols) {
            let mut path: Vec<_> = symbol.rsplit("::").take(2).collect();
            path.dedup();
            assert!(text.contains(&format!("fn {}(", path[0])), "{symbol}: no such function");
            let is_module = [format!("{},", path[1]), format!("mod {} {{", path[1])]
                .iter()
                .any(|name| text.contains(name));
            assert!(is_module, "{symbol}: no such module");
        }
        // Text that shows the crate in a stripped program is of files that are there.
        for place in own.iter().flat_map(|rule| &rule.strings).filter(|text| text.starts_with("crates/")) {
            assert_eq!(place, &format!("crates/{krate}/src/kernel/*.rs"));
        }
    }
}
