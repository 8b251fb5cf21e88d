use super::*;

/// The arrows of the circles of the crate `x`, as `from -> to: names`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    let sources = sources("x", files);
    let read = |path: &str| TokenStream::from_str(sources.get(path)?).ok();
    let arrows = arrows(&Crate::read("x/src/lib.rs", &read));
    let name = |path: &str| path.trim_start_matches("x/src/").trim_end_matches(".rs").to_owned();
    circles(&arrows)
        .into_iter()
        .flatten()
        .map(|arrow| {
            let names: Vec<_> = arrow.names.keys().map(String::as_str).collect();
            format!("{} -> {}: {}", name(&arrow.from), name(&arrow.to), names.join(", "))
        })
        .collect()
}

fn sources(folder: &str, files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(path, text)| (format!("{folder}/src/{path}"), (*text).to_owned())).collect()
}

const FACE: (&str, &str) = ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;");

#[test]
fn a_circle_of_two_is_found_however_it_is_written() {
    let both = ["a -> b: B", "b -> a: A"];
    for to_a in ["use crate::a::A;", "use super::a::A;", "use crate::{a::{A as C}};", "use crate::A;"] {
        for to_b in ["use crate::b::{self, B};", "pub(crate) use super::b::B;", "fn f() { use crate::B; }"] {
            let a = format!("{to_b} pub struct A;");
            let b = format!("{to_a} pub struct B;");
            assert_eq!(found(&[FACE, ("a.rs", &a), ("b.rs", &b)]), both, "{to_a} {to_b}");
        }
    }
}

#[test]
fn paths_in_code_are_imports() {
    let a = "pub struct A; fn f() -> u8 { crate::b::B::make() }";
    let b = "use super::a; pub struct B; fn f(x: &a::A) {}";
    assert_eq!(found(&[FACE, ("a.rs", a), ("b.rs", b)]), ["a -> b: b::B::make", "b -> a: a::A"]);
}

#[test]
fn paths_in_macros_and_attributes_are_imports() {
    let a = "pub struct A; macro_rules! m { ($x:expr) => { $crate::b::B::<$x>::f() } }";
    let b = "pub struct B; #[form(by = crate::a::A)] struct C;";
    assert_eq!(found(&[FACE, ("a.rs", a), ("b.rs", b)]), ["a -> b: b::B", "b -> a: a::A"]);
}

#[test]
fn self_and_super_in_a_macro_are_those_of_its_callers() {
    let a = "macro_rules! m { () => { mod x { use super::*; use super::B; use super::super::b::B; fn f() { self::b::g() } } } } \
             pub(crate) use m; pub struct A;";
    let lib = ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B; pub const C: u8 = 0;");
    assert_eq!(found(&[lib, ("a.rs", a), ("b.rs", "use crate::a::m; m!(); pub struct B;")]), [""; 0]);
}

#[test]
fn one_way_is_no_circle() {
    assert_eq!(
        found(&[FACE, ("a.rs", "use crate::b::B; pub struct A;"), ("b.rs", "pub struct B;")]),
        [""; 0]
    );
}

#[test]
fn a_face_is_passed_over() {
    // `lib.rs` imports both, and both take each other's names from it: no arrow leads to `lib.rs`.
    assert_eq!(found(&[FACE, ("a.rs", "use crate::B; pub struct A;"), ("b.rs", "pub struct B;")]), [""; 0]);
    let faces = [
        ("lib.rs", "mod a; mod c; pub use c::B;"),
        ("a.rs", "use crate::c::B; pub struct A;"),
        ("c/mod.rs", "mod b; pub use b::B;"),
        ("c/b.rs", "use crate::a::A; pub struct B;"),
    ];
    assert_eq!(found(&faces), ["a -> c/b: B", "c/b -> a: A"]);
}

#[test]
fn a_parent_that_defines_what_its_child_takes_must_not_use_the_child() {
    let child = ("a.rs", "use super::ROUNDS; pub fn f() -> u8 { ROUNDS }");
    assert_eq!(found(&[("lib.rs", "mod a; pub const ROUNDS: u8 = 7;"), child]), [""; 0]);
    assert_eq!(
        found(&[("lib.rs", "mod a; pub use a::f; pub const ROUNDS: u8 = 7;"), child]),
        ["a -> lib: ROUNDS", "lib -> a: f"]
    );
}

#[test]
fn a_glob_brings_the_words_that_are_used() {
    let b = "use crate::a::*; pub struct B(A);";
    assert_eq!(
        found(&[FACE, ("a.rs", "use crate::b::B; pub struct A; pub struct C;"), ("b.rs", b)]),
        ["a -> b: B", "b -> a: A"]
    );
    // The code that a macro generates is not seen. Then the glob as a whole is the import.
    assert_eq!(found(&[FACE, ("a.rs", "use crate::b::B; make!{}"), ("b.rs", b)]), ["a -> b: B", "b -> a: *"]);
}

#[test]
fn macros_are_imported_by_path_and_by_their_place_in_the_text() {
    let by_place =
        [("lib.rs", "macro_rules! m { () => {} } mod a; use a::A;"), ("a.rs", "m!(); pub struct A;")];
    assert_eq!(found(&by_place), ["a -> lib: m!", "lib -> a: A"]);
    let by_path = "use crate::b::B; macro_rules! m { () => {} } pub(crate) use m; pub struct A;";
    assert_eq!(
        found(&[FACE, ("a.rs", by_path), ("b.rs", "crate::a::m!(); pub struct B;")]),
        ["a -> b: B", "b -> a: a::m"]
    );
    let exported = "use crate::b::B; #[macro_export] macro_rules! m { () => {} } pub struct A;";
    assert_eq!(
        found(&[FACE, ("a.rs", exported), ("b.rs", "crate::m!(); pub struct B;")]),
        ["a -> b: B", "b -> a: m"]
    );
}

#[test]
fn a_module_and_a_function_may_share_a_name() {
    let lib = "mod hash; mod tree; pub use hash::hash;";
    let tree = "pub fn join() { crate::hash::LEN }";
    let hash = "use crate::tree; pub const LEN: u8 = 0; pub fn hash() { tree::join() }";
    assert_eq!(
        found(&[("lib.rs", lib), ("hash.rs", hash), ("tree.rs", tree)]),
        ["hash -> tree: tree::join", "tree -> hash: hash::LEN"]
    );
}

#[test]
fn modules_in_braces_belong_to_their_file() {
    let a = "pub struct A; mod inner { use super::super::b::B; use super::A; }";
    assert_eq!(
        found(&[FACE, ("a.rs", a), ("b.rs", "use crate::a::A; pub struct B;")]),
        ["a -> b: B", "b -> a: A"]
    );
}

#[test]
fn code_of_tests_is_none_of_it() {
    let b = ("b.rs", "pub struct B;");
    let with = |of_tests: &str| format!("use crate::b::B; pub struct A; {of_tests}");
    for of_tests in ["#[cfg(test)] mod tests;", "#[cfg(all(test, unix))] mod tests { use crate::c::C; }"] {
        let c = ("a/tests.rs", "use crate::b::B;");
        assert_eq!(found(&[FACE, ("a.rs", &with(of_tests)), c, b]), [""; 0], "{of_tests}");
    }
    let marks = [
        "#[cfg(test)]",
        "#[cfg(all(test, unix))]",
        "#[cfg(any(test, test))]",
        "#[test]",
        "#[cfg(test)] #[inline]",
    ];
    for mark in marks {
        for item in
            ["use crate::a::A;", "fn f<A, B>(b: B) { crate::a::A }", "impl A { const C: A = crate::a::A; }"]
        {
            let b = format!("pub struct B; {mark} {item}");
            assert_eq!(found(&[FACE, ("a.rs", &with("")), ("b.rs", &b)]), [""; 0], "{mark} {item}");
        }
        let b = format!("pub struct B {{ {mark} a: crate::a::A, b: u8 }}");
        assert_eq!(found(&[FACE, ("a.rs", &with("")), ("b.rs", &b)]), [""; 0], "{mark}");
    }
    // These are not only for tests, and the item ends at its own end.
    for code in ["#[cfg(not(test))]", "#[cfg(any(test, unix))]", "#[cfg(unix)]", "#[cfg(test)] use x::{y}; "]
    {
        let b = format!("pub struct B; {code} use crate::a::A;");
        assert_eq!(found(&[FACE, ("a.rs", &with("")), ("b.rs", &b)]).len(), 2, "{code}");
    }
}

#[test]
fn other_crates_and_comments_are_no_imports() {
    let b = "//! [`crate::a::A`]\n use ::a::A as C; use std::fmt; /* crate::a::A */ pub struct B(\"crate::a::A\"); \
             fn f(x: &impl fmt::Debug) -> impl Sized + use<'_> { V::a() }";
    assert_eq!(found(&[FACE, ("a.rs", "use crate::b::B; pub struct A;"), ("b.rs", b)]), [""; 0]);
}

#[test]
fn names_that_import_each_other_end() {
    let a = "pub use crate::b::*; pub use crate::b::X; pub struct A;";
    assert_eq!(found(&[FACE, ("a.rs", a), ("b.rs", "pub use crate::a::*; pub use crate::a::X;")]).len(), 2);
}

#[test]
fn every_arrow_of_each_circle_is_named_with_its_line() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nmod e;"),
        ("a.rs", "\nuse crate::b::B;\npub struct A;"),
        ("b/mod.rs", "use crate::c::C;\npub struct B;"),
        ("c.rs", "pub struct C(crate::a::A,\ncrate::d::D);"),
        ("d/mod.rs", "pub struct D;\nuse crate::e::E;"),
        ("e.rs", "pub struct E;\nuse crate::d::D;"),
    ];
    assert_eq!(
        findings(&files),
        [
            "a.rs:2: imports B of crates/x/src/b/mod.rs, which leads back here (circle 1, 3 files)",
            "b/mod.rs:1: imports C of crates/x/src/c.rs, which leads back here (circle 1, 3 files)",
            "c.rs:1: imports a::A of crates/x/src/a.rs, which leads back here (circle 1, 3 files)",
            "d/mod.rs:2: imports E of crates/x/src/e.rs, which leads back here (circle 2, 2 files)",
            "e.rs:2: imports D of crates/x/src/d/mod.rs, which leads back here (circle 2, 2 files)",
        ]
    );
}

#[test]
fn files_of_one_folder_may_import_each_other() {
    let (a, b) = ("use crate::B; pub struct A;", "use crate::A; pub struct B;");
    assert_eq!(findings(&[FACE, ("a.rs", a), ("b.rs", b)]), [""; 0]);
    let lib = ("lib.rs", "mod m; pub use m::{A, B};");
    let face = "mod a; mod b; pub use self::{a::A, b::B}; pub fn f(x: A) {}";
    let child = "use super::f; pub struct A;";
    for parent in ["m.rs", "m/mod.rs"] {
        assert_eq!(findings(&[lib, (parent, face), ("m/a.rs", child), ("m/b.rs", b)]), [""; 0]);
        let below = ("m/b/mod.rs", b);
        let a = "use super::b::B; pub struct A;";
        assert_eq!(findings(&[lib, (parent, face), ("m/a.rs", a), below]).len(), 2, "{parent}");
    }
}

#[test]
fn a_name_has_one_public_type_in_a_crate() {
    let lib =
        ("lib.rs", "mod a; pub struct A; mod c { pub enum B {} } #[cfg(test)] mod tests { pub struct B; }");
    let a = "pub trait A {} struct B; pub(crate) struct C; impl B { pub const D: u8 = 0; }";
    assert_eq!(
        findings(&[lib, ("a.rs", a)]),
        ["a.rs:1: crates/x/src/lib.rs has another public type of the name A"]
    );
    let alike = [lib, ("a.rs", a)];
    assert_eq!(check(&sources("crates/simd", &alike)), []);
    let lib = ("lib.rs", "pub mod blocking; pub struct A;");
    assert_eq!(findings(&[lib, ("blocking/mod.rs", "pub struct A;")]), [""; 0]);
}

/// The findings in the crate `crates/x`, as `path:line: message`.
fn findings(files: &[(&str, &str)]) -> Vec<String> {
    check(&sources("crates/x", files))
        .into_iter()
        .map(|(path, finding)| {
            format!("{}:{}: {}", path.trim_start_matches("crates/x/src/"), finding.line, finding.message)
        })
        .collect()
}
