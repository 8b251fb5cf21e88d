//! A binary beside a baseline.

use bulla_audit::{Config, FindingKind, Report, compare};

use crate::support::{RET, VPADDD_ZMM, VPADDQ_YMM, audited, elf, repeat};

fn report(ymm: usize, zmm: usize) -> Report {
    audited(&elf(&[
        ("_ZN1a4main17h0123456789abcdefE", [repeat(VPADDQ_YMM, ymm), RET.to_vec()].concat()),
        ("_ZN1b4main17h0123456789abcdefE", [repeat(VPADDD_ZMM, zmm), RET.to_vec()].concat()),
    ]))
}

fn kinds(now: &Report, before: &Report, config: &Config) -> Vec<FindingKind> {
    compare(now, before, config).expect("a comparison").findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn five_times_the_vectors_are_bloat_and_less_is_not() {
    let config = Config::default();
    let before = report(1000, 10);
    assert_eq!(kinds(&report(5000, 10), &before, &config), []);
    assert_eq!(kinds(&report(5001, 10), &before, &config), [FindingKind::Bloated]);
    let strict = Config::parse("[thresholds]\nbloat = 1.5").expect("a configuration");
    assert_eq!(kinds(&report(1600, 10), &before, &strict), [FindingKind::Bloated]);
}

#[test]
fn ratios_of_small_numbers_are_no_bloat() {
    let config = Config::default();
    assert_eq!(kinds(&report(900, 0), &report(1, 0), &config), []);
    let strict = Config::parse("[thresholds]\nbloat-floor = 100").expect("a configuration");
    assert_eq!(kinds(&report(900, 0), &report(1, 0), &strict), [FindingKind::Bloated]);
}

#[test]
fn wide_vectors_outside_known_kernels_are_found_by_what_they_are_more_than_before() {
    let config = Config::parse("[thresholds]\nbloat = 1000\nwide-outside = 50").expect("a configuration");
    assert_eq!(kinds(&report(0, 150), &report(0, 100), &config), []);
    assert_eq!(
        kinds(&report(0, 151), &report(0, 100), &config),
        [FindingKind::WideVectorsOutsideKnownKernels]
    );
}

#[test]
fn the_functions_that_changed_are_named() {
    let compared = compare(&report(20, 1), &report(5, 4), &Config::default()).expect("a comparison");
    let named = |changes: &[bulla_audit::FunctionChange]| {
        changes.iter().map(|change| (change.name.clone(), change.before, change.after)).collect::<Vec<_>>()
    };
    assert_eq!(named(&compared.gained), [("a::main".to_owned(), 5, 20)]);
    assert_eq!(named(&compared.lost), [("b::main".to_owned(), 4, 1)]);
    assert_eq!(compared.widths["ymm"].ratio, Some(4.0));
}

#[test]
fn a_kernel_that_the_baseline_has_or_the_configuration_requires_is_lost_without_it() {
    let wide = (
        "blake3_hash_many_avx512",
        [repeat(VPADDD_ZMM, 300), repeat(b"\x62\xf1\x7d\x48\x72\xc0\x08", 200), RET.to_vec()].concat(),
    );
    let hasher = ("_ZN6blake34hash17h0123456789abcdefE", RET.to_vec());
    let before = audited(&elf(&[hasher.clone(), wide]));
    let none = audited(&elf(&[("main", RET.to_vec())]));
    assert_eq!(kinds(&none, &before, &Config::default()), [FindingKind::KernelLost]);
    assert_eq!(kinds(&none, &none, &Config::default()), []);
    let config = Config::parse("require = [\"blake3/avx512\"]").expect("a configuration");
    assert_eq!(kinds(&none, &none, &config), [FindingKind::KernelLost]);
    // Linked and not there: no baseline is needed to see that.
    let lost = audited(&elf(&[hasher]));
    assert!(
        bulla_audit::check(&lost, &Config::default())
            .iter()
            .any(|finding| finding.detail.starts_with("blake3/avx512"))
    );
}

#[test]
fn a_report_survives_being_printed_and_read() {
    let report = report(5, 4);
    let text = serde_json::to_string(&report).expect("JSON");
    assert_eq!(serde_json::from_str::<Report>(&text).expect("a report"), report);
}

#[test]
fn configurations_that_cannot_be_are_refused() {
    for text in
        ["[thresholds]\nbloat = 0.5", "[thresholds]\nblot = 5", "require = 1", "[thresholds]\nbloat = nan"]
    {
        assert!(Config::parse(text).is_err(), "{text}");
    }
}
