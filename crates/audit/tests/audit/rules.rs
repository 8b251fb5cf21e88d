//! Verdicts on kernels.

use bulla_audit::{EvidenceKind, Report, RuleResult, Rules, Verdict};

use crate::support::{
    PADDD_XMM, RET, VPADDQ_YMM, VPRORQ_YMM, elf, elf_with_data, repeat, stripped_elf, try_audit_with,
};

const RULES: &str = r#"
[[rule]]
name = "hash/wide"
crate = "hash"
arch = "x86-64"
symbols = ["hash::wide::compress"]
strings = ["/hash-1.*.rs"]
[[rule.pattern]]
within = 50
need = { "vpaddq ymm" = 20, "vprorq|vpshufb ymm" = 10 }

[[rule]]
name = "hash/narrow"
crate = "hash"
arch = "x86-64"
symbols = ["hash::narrow::compress"]
superseded_by = ["hash/wide"]

[[rule]]
name = "hash/chosen"
crate = "hash"
arch = "x86-64"
symbols = ["hash::chosen::compress"]
linked = ["hash::dispatch::*"]
[[rule.pattern]]
within = 50
need = { "vpaddq ymm" = 20, "vprorq|vpshufb ymm" = 10 }
"#;

/// The instructions of the kernel, in no more room than the pattern allows.
fn kernel() -> Vec<u8> {
    [repeat(VPADDQ_YMM, 22), repeat(VPRORQ_YMM, 12), RET.to_vec()].concat()
}

fn scalar() -> Vec<u8> {
    [repeat(PADDD_XMM, 40), RET.to_vec()].concat()
}

fn results(bytes: &[u8]) -> Report {
    let mut rules = Rules::built_in();
    rules.add(RULES).expect("rules");
    try_audit_with(bytes, &rules).expect("an audit").remove(0)
}

fn result(bytes: &[u8], rule: &str) -> RuleResult {
    results(bytes).rules.into_iter().find(|result| result.rule == rule).expect("the rule")
}

const WIDE: &str = "_ZN4hash4wide8compress17h0123456789abcdefE";
const OTHER: &str = "_ZN4hash6update17h0123456789abcdefE";
const FINISH: &str = "_ZN4hash6finish17h0123456789abcdefE";
const MAIN: &str = "_ZN7program4main17h0123456789abcdefE";

#[test]
fn a_kernel_with_its_name_and_its_body_is_present() {
    let result = result(&elf(&[(MAIN, scalar()), (WIDE, kernel())]), "hash/wide");
    assert_eq!(result.verdict, Verdict::Present);
    let evidence = &result.evidence[0];
    assert_eq!((evidence.kind, evidence.name.as_str()), (EvidenceKind::Symbol, "hash::wide::compress"));
    assert!(evidence.detail.starts_with("35 instructions, 34 ymm, "), "{}", evidence.detail);
}

#[test]
fn a_body_belongs_to_the_function_that_it_begins_in_and_to_no_neighbor() {
    const SAME_NAME: &str = "_ZN4hash4wide8compress17hfedcba9876543210E";
    // A whole number of alignments, so that one ends where the other begins.
    let empty = repeat(PADDD_XMM, 40);
    for functions in
        [[(WIDE, empty.clone()), (SAME_NAME, kernel())], [(SAME_NAME, kernel()), (WIDE, empty.clone())]]
    {
        let place =
            functions.iter().position(|(name, _)| *name == SAME_NAME).expect("it is there") * empty.len();
        let result = result(&elf(&functions), "hash/wide");
        let evidence: Vec<_> = result.evidence.iter().map(|evidence| evidence.address).collect();
        assert_eq!((result.verdict, evidence), (Verdict::Present, vec![place as u64]));
    }
}

#[test]
fn a_kernel_inside_another_function_is_inlined_and_the_evidence_says_where() {
    let body = [scalar(), kernel()].concat();
    let result = result(&elf(&[(OTHER, body)]), "hash/wide");
    assert_eq!(result.verdict, Verdict::Inlined);
    let evidence = &result.evidence[0];
    assert_eq!((evidence.kind, evidence.name.as_str()), (EvidenceKind::Pattern, "hash::update"));
    assert_eq!(evidence.address, scalar().len() as u64);
}

#[test]
fn a_kernel_whose_body_became_something_else_is_lost() {
    let with_name = result(&elf(&[(WIDE, scalar())]), "hash/wide");
    assert_eq!(with_name.verdict, Verdict::Lost);
    assert!(with_name.evidence[0].detail.contains("not the kernel's body"));
    let without = result(&elf(&[(OTHER, scalar())]), "hash/wide");
    assert_eq!(without.verdict, Verdict::Lost);
    let of_crate = &without.evidence[0];
    assert_eq!((of_crate.kind, &*of_crate.detail), (EvidenceKind::Crate, "the only function of the crate"));
    let two = result(&elf(&[(OTHER, scalar()), (FINISH, scalar())]), "hash/wide");
    assert_eq!(two.evidence[0].detail, "one of 2 functions of the crate");
}

#[test]
fn the_same_instructions_far_apart_are_no_kernel() {
    let sparse =
        [repeat(VPADDQ_YMM, 15), repeat(PADDD_XMM, 30), repeat(VPADDQ_YMM, 15), repeat(VPRORQ_YMM, 12)]
            .concat();
    assert_eq!(result(&elf(&[(OTHER, sparse)]), "hash/wide").verdict, Verdict::Lost);
}

#[test]
fn a_crate_that_nothing_shows_is_not_linked_and_the_instructions_of_another_crate_are_not_its_own() {
    assert_eq!(result(&elf(&[(MAIN, scalar())]), "hash/wide").verdict, Verdict::NotLinked);
    let other = "_ZN12blake2b_simd4more17h0123456789abcdefE";
    let both = elf(&[(other, kernel()), (OTHER, scalar())]);
    assert_eq!(result(&both, "hash/wide").verdict, Verdict::Lost);
}

#[test]
fn without_symbols_text_shows_the_crate_and_instructions_the_kernel() {
    let location = b"/registry/hash-1.2.3/src/lib.rs";
    for (code, data, expected) in [
        (kernel(), location.as_slice(), Verdict::Present),
        (scalar(), location.as_slice(), Verdict::Lost),
        (scalar(), b"".as_slice(), Verdict::Unknown),
        (kernel(), b"".as_slice(), Verdict::Unknown),
    ] {
        assert_eq!(result(&stripped_elf(&code, data), "hash/wide").verdict, expected);
    }
}

#[test]
fn text_beside_symbols_of_other_crates_alone_is_no_evidence_of_a_loss() {
    let location = b"/registry/hash-1.2.3/src/lib.rs";
    let shown = result(&elf_with_data(&[(MAIN, scalar())], location), "hash/wide");
    assert_eq!(shown.verdict, Verdict::Unknown);
    assert_eq!(shown.evidence[0].kind, EvidenceKind::Text);
    let inlined = result(&elf_with_data(&[(MAIN, kernel())], location), "hash/wide");
    assert_eq!(inlined.verdict, Verdict::Inlined);
}

#[test]
fn a_type_of_the_crate_does_not_show_that_its_kernel_should_be_there() {
    let chosen = |functions: &[(&str, Vec<u8>)]| result(&elf(functions), "hash/chosen").verdict;
    let dispatch = "_ZN4hash8dispatch6choose17h0123456789abcdefE";
    assert_eq!(chosen(&[(OTHER, scalar())]), Verdict::NotLinked);
    assert_eq!(chosen(&[(dispatch, scalar())]), Verdict::Lost);
    assert_eq!(chosen(&[(OTHER, scalar()), (MAIN, kernel())]), Verdict::Inlined);
    assert_eq!(chosen(&[(MAIN, kernel())]), Verdict::NotLinked);
    // Assembly of a C library with the same instructions.
    assert_eq!(chosen(&[(OTHER, scalar()), ("c_library_compress", kernel())]), Verdict::NotLinked);
    assert_eq!(chosen(&[(dispatch, scalar()), ("main", kernel())]), Verdict::Inlined);
}

#[test]
fn the_same_instructions_a_thousand_times_elsewhere_do_not_hide_the_kernel() {
    let often = repeat(&kernel(), 16);
    let names: Vec<_> = (10..80).map(|i| format!("_ZN5other5fun{i}17h0123456789abcdefE")).collect();
    let mut functions: Vec<_> = names.iter().map(|name| (name.as_str(), often.clone())).collect();
    functions.push((WIDE, kernel()));
    assert_eq!(result(&elf(&functions), "hash/wide").verdict, Verdict::Present);
}

#[test]
fn a_kernel_that_a_better_one_replaces_is_no_loss() {
    let narrow = |bytes: &[u8]| result(bytes, "hash/narrow");
    let replaced = narrow(&elf(&[(WIDE, kernel())]));
    assert_eq!((replaced.verdict, replaced.superseded_by.as_deref()), (Verdict::Lost, Some("hash/wide")));
    assert!(!replaced.is_loss());
    assert!(narrow(&elf(&[(OTHER, scalar())])).is_loss());
}

#[test]
fn rules_that_cannot_be_are_refused_with_their_name() {
    let rule = |rest: &str| format!("[[rule]]\nname = \"x\"\ncrate = \"x\"\narch = \"x86-64\"\n{rest}");
    for (text, expected) in [
        ("", "no [[rule]]".to_owned()),
        (rule("").as_str(), "neither symbols nor a pattern".to_owned()),
        (rule("symbols = [\"x\"]\nstrings = [\"abc\"]").as_str(), "found anywhere".to_owned()),
        (rule("symbols = [\"x\"]\nsuperseded_by = [\"y\"]").as_str(), "superseded by y".to_owned()),
        (
            rule("[[rule.pattern]]\nwithin = 9\nneed = { \"vpaddqq ymm\" = 1 }").as_str(),
            "no instruction `vpaddqq`".to_owned(),
        ),
        (rule("[[rule.pattern]]\nwithin = 9\nneed = { \"vpaddq\" = 1 }").as_str(), "MNEMONIC".to_owned()),
        (
            rule("[[rule.pattern]]\nwithin = 9\nneed = { \"vpaddq neon\" = 1 }").as_str(),
            "not one of xmm".to_owned(),
        ),
        (
            rule("[[rule.pattern]]\nwithin = 9\nneed = { \"vpaddq ymm\" = 0 }").as_str(),
            "needs none".to_owned(),
        ),
        (rule("color = 1").as_str(), "unknown field".to_owned()),
    ] {
        let error = Rules::built_in().add(text).expect_err(text).to_string();
        assert!(error.contains(&expected), "{error}");
    }
}
