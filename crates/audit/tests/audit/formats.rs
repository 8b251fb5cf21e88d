//! Every format of object file, and what is counted in it.

use bulla_audit::{Arch, NO_CRATE, Symbols};
use object::{Architecture, BinaryFormat};

use crate::support::{
    PADDD_XMM, RET, VEXTRACTI128, VPADDD_ZMM, VPADDQ_YMM, audited, elf, object_file, repeat, stripped_elf,
    try_audit, width,
};

/// A function with one instruction of each kind and one that names two.
fn mixed() -> Vec<u8> {
    [PADDD_XMM, VPADDQ_YMM, VPADDD_ZMM, VEXTRACTI128, RET].concat()
}

#[test]
fn each_format_gives_the_same_counts() {
    for (format, name) in
        [(BinaryFormat::Elf, "ELF"), (BinaryFormat::MachO, "Mach-O"), (BinaryFormat::Coff, "COFF")]
    {
        let report = audited(&object_file(format, Architecture::X86_64, &[("mixed", mixed())]));
        assert_eq!((report.format.as_str(), report.arch), (name, Arch::X86_64));
        assert_eq!((report.total.instructions, report.total.vector, report.total.bad), (5, 4, 0), "{name}");
        assert_eq!(["xmm", "ymm", "zmm"].map(|kind| width(&report, kind)), [2, 2, 1], "{name}");
        assert_eq!(report.symbols, Symbols::All);
        assert_eq!(report.functions.len(), 1, "{name}");
    }
}

#[test]
fn both_instruction_sets_of_a_fat_file_have_a_report() {
    // `add v0.4s, v0.4s, v0.4s` and `ret`
    let arm = object_file(
        BinaryFormat::MachO,
        Architecture::Aarch64,
        &[("f", b"\x00\x84\xa0\x4e\xc0\x03\x5f\xd6".to_vec())],
    );
    let intel = object_file(BinaryFormat::MachO, Architecture::X86_64, &[("f", mixed())]);
    let reports = try_audit(&fat(&[(0x0100_000c, &arm), (0x0100_0007, &intel)])).expect("two reports");
    let found: Vec<_> = reports.iter().map(|report| (report.arch, report.total.instructions)).collect();
    assert_eq!(found, [(Arch::X86_64, 5), (Arch::Aarch64, 2)]);
    assert_eq!(width(&reports[1], "neon"), 1);
}

/// A fat Mach-O: magic, count, then for each slice CPU type, subtype, offset, size, alignment, all
/// big-endian.
fn fat(slices: &[(u32, &Vec<u8>)]) -> Vec<u8> {
    let mut file = [0xcafe_babe_u32.to_be_bytes(), (slices.len() as u32).to_be_bytes()].concat();
    let mut offset = 4096_u32;
    for (cpu, slice) in slices {
        for field in [*cpu, 0, offset, slice.len() as u32, 12] {
            file.extend(field.to_be_bytes());
        }
        offset += (slice.len() as u32).next_multiple_of(4096);
    }
    for (_, slice) in slices {
        file.resize(file.len().next_multiple_of(4096), 0);
        file.extend(slice.iter());
    }
    file
}

#[test]
fn code_belongs_to_functions_and_crates() {
    let report = audited(&elf(&[
        ("_ZN5first4main17h0123456789abcdefE", [repeat(VPADDQ_YMM, 3), RET.to_vec()].concat()),
        ("_ZN6second4main17h0123456789abcdefE", [repeat(VPADDD_ZMM, 2), RET.to_vec()].concat()),
        ("memcpy", [PADDD_XMM, RET].concat()),
    ]));
    let names: Vec<_> = report.functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["second::main", "first::main"]);
    let krate =
        |name: &str| report.crates.iter().find(|krate| krate.name == name).expect("a crate").counts.clone();
    assert_eq!(krate("first").widths["ymm"], 3);
    assert_eq!(krate("second").widths["zmm"], 2);
    assert_eq!(krate(NO_CRATE).widths["xmm"], 1);
    let sum: u64 = report.crates.iter().map(|krate| krate.counts.instructions).sum();
    assert_eq!(sum, report.total.instructions);
}

#[test]
fn a_file_without_symbols_says_what_cannot_be_known() {
    let report = audited(&stripped_elf(&mixed(), b""));
    assert_eq!((report.symbols, report.total.instructions), (Symbols::None, 5));
    assert!(report.notes.iter().any(|note| note.contains("cannot be known")), "{:?}", report.notes);
    assert!(report.functions.is_empty());
}

#[test]
fn code_is_counted_the_same_wherever_it_is_cut() {
    // Longer than a window and than a task, of instructions of an odd length, with zeros between.
    let mut code = Vec::new();
    let mut instructions = 0;
    while code.len() < 5 << 20 {
        code.extend(repeat(VPADDD_ZMM, 1001));
        code.extend(RET);
        instructions += 1002;
        code.resize(code.len() + 37 + code.len() % 64, 0);
        let rest = code.len() % 4;
        code.extend(repeat(b"\x90", 4 - rest));
        instructions += 4 - rest as u64;
    }
    let whole = audited(&stripped_elf(&code, b""));
    assert_eq!(width(&whole, "zmm") / 1001 * 1001, width(&whole, "zmm"));
    assert!(whole.total.instructions >= instructions, "{} {instructions}", whole.total.instructions);
}
