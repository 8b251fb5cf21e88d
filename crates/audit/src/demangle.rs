//! Turns symbols into the names of the source.

/// A symbol's name in the source, without the compiler's hash.
pub(crate) fn demangle(symbol: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        return format!("{rust:#}");
    }
    let itanium = symbol.strip_prefix('_').filter(|rest| rest.starts_with("_Z")).unwrap_or(symbol);
    if itanium.starts_with("_Z")
        && itanium.len() <= LONGEST_CPP
        && let Ok(parsed) = cpp_demangle::Symbol::new(itanium)
        && let Ok(name) = parsed.demangle()
    {
        return name;
    }
    symbol.to_owned()
}

/// Longer C++ symbols are not demangled: the name may be exponentially longer than its symbol.
const LONGEST_CPP: usize = 1 << 10;

/// The crate, or the outermost C++ namespace, of a demangled name; none for a C function.
pub(crate) fn crate_of(name: &str) -> Option<&str> {
    // `<&mut foo::Bar as core::fmt::Debug>::fmt` belongs to `foo`, whose code it is.
    let mut rest = name.trim_start_matches(['<', '&', '*', '(', '[', ' ']);
    loop {
        let before = rest;
        for word in ["mut ", "const ", "dyn ", "impl "] {
            rest = rest.strip_prefix(word).unwrap_or(rest);
        }
        rest = rest.trim_start_matches(['<', '&', '*', '(', '[', ' ']);
        if rest == before {
            break;
        }
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0 && rest[end..].starts_with("::")).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_rust_names_and_cpp_names_are_demangled() {
        assert_eq!(demangle("_ZN5memch4arch3all17h0123456789abcdefE"), "memch::arch::all");
        assert_eq!(demangle("_RNvCs15kBYyAo9fc_7mycrate7example"), "mycrate::example");
        assert_eq!(demangle("_ZN4llvm5Value7getTypeEv"), "llvm::Value::getType()");
        assert_eq!(demangle("blake3_hash_many_avx512"), "blake3_hash_many_avx512");
    }

    #[test]
    fn the_crate_is_that_of_the_type_that_is_implemented_for() {
        for (name, expected) in [
            ("memchr::arch::find", Some("memchr")),
            ("<sha2::Sha256 as digest::Digest>::new", Some("sha2")),
            ("<&mut foo::Bar as core::fmt::Debug>::fmt", Some("foo")),
            ("<dyn foo::Bar>::baz", Some("foo")),
            ("main", None),
            ("memcpy", None),
            ("", None),
        ] {
            assert_eq!(crate_of(name), expected, "{name}");
        }
    }
}
