//! Assigns code to functions, and names functions: demangled, with their crates.

use crate::{
    Arch,
    image::{Image, Named, Symbol},
    sweep::Cut,
};

/// A function, as its symbols describe it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// The index of its region.
    pub(crate) region: u32,
    /// The index of its symbol.
    pub(crate) symbol: u32,
    /// Bytes from the start of the region.
    pub(crate) start: u64,
    /// Its end, also in bytes from the start of the region.
    pub(crate) end: u64,
}

/// The functions of `image`, sorted, without overlaps. If several names have one place, the first
/// is used.
pub(crate) fn functions(image: &Image<'_>) -> Vec<Function> {
    let mut functions: Vec<Function> = Vec::new();
    for (index, symbol) in image.symbols.iter().enumerate() {
        let last = functions.last_mut().filter(|last| last.region == symbol.region);
        if !is_function(image.arch, symbol) {
            continue;
        }
        if let Some(last) = last {
            let inside = symbol.offset < last.end && image.symbols[last.symbol as usize].size > 0;
            // Assembly has names for places inside its functions.
            if symbol.offset == last.start || (inside && symbol.named == Named::Label) {
                continue;
            }
            last.end = last.end.min(symbol.offset);
        }
        let region = &image.code[symbol.region as usize].range;
        let size = region.end - region.start;
        let end = if symbol.size == 0 { size } else { symbol.offset.saturating_add(symbol.size).min(size) };
        functions.push(Function { region: symbol.region, symbol: index as u32, start: symbol.offset, end });
    }
    functions
}

fn is_function(arch: Arch, symbol: &Symbol<'_>) -> bool {
    match symbol.named {
        Named::Function => true,
        Named::Data => false,
        Named::Label => !is_local(symbol.name) && mapping(arch, symbol).is_none(),
    }
}

/// Labels that assemblers make for themselves.
fn is_local(name: &str) -> bool {
    name.starts_with(".L") || name.starts_with("L.") || name.starts_with("ltmp") || name.starts_with('$')
}

/// The sorted places in `region` where decoding restarts.
pub(crate) fn cuts(image: &Image<'_>, region: u32) -> Vec<Cut> {
    let start = image.symbols.partition_point(|symbol| symbol.region < region);
    let end = image.symbols.partition_point(|symbol| symbol.region <= region);
    let mut cuts: Vec<Cut> = Vec::new();
    let mut mapped = false;
    for symbol in &image.symbols[start..end] {
        if let Some(data) = mapping(image.arch, symbol) {
            mapped = data;
        }
        // If several symbols have one place, the first decides, in the order of `Named`, as in
        // binutils.
        let data = match image.arch {
            Arch::X86_64 => symbol.named == Named::Data,
            Arch::Aarch64 => mapped,
        };
        if image.arch == Arch::Aarch64
            && let Some(cut) = cuts.last_mut().filter(|cut| cut.offset == symbol.offset)
        {
            cut.data = data;
        }
        if cuts.last().is_none_or(|cut| cut.offset != symbol.offset) {
            cuts.push(Cut { offset: symbol.offset, data });
        }
    }
    cuts
}

/// Whether the symbol says that data (or else code) begins here: ELF for the Arm 64-bit
/// architecture, section 5.5.
fn mapping(arch: Arch, symbol: &Symbol<'_>) -> Option<bool> {
    if arch != Arch::Aarch64 || symbol.named != Named::Label {
        return None;
    }
    let is = |kind: &str| {
        symbol.name.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if is("$d") { Some(true) } else { is("$x").then_some(false) }
}

/// A symbol's name in the source, without the compiler's hash.
pub(crate) fn demangle(symbol: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        return format!("{rust:#}");
    }
    let itanium = symbol.strip_prefix('_').filter(|rest| rest.starts_with("_Z")).unwrap_or(symbol);
    if itanium.starts_with("_Z")
        && itanium.len() <= MAX_CPP_SYMBOL_LEN
        && let Ok(parsed) = cpp_demangle::Symbol::new(itanium)
        && let Ok(name) = parsed.demangle()
    {
        return name;
    }
    symbol.to_owned()
}

/// Longer C++ symbols are not demangled: the name may be exponentially longer than its symbol.
const MAX_CPP_SYMBOL_LEN: usize = 1 << 10;

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
