//! Helpers that the tests share: binaries that are made on the spot, and audits of them.

use std::path::Path;
use std::process::Command;

use bulla_audit::{Error, Limits, Options, Report, Rules, audit, audit_file};
use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope};

/// `vpaddq ymm0, ymm0, ymm0`
pub(crate) const VPADDQ_YMM: &[u8] = b"\xc5\xfd\xd4\xc0";
/// `vpaddd zmm0, zmm0, zmm0`
pub(crate) const VPADDD_ZMM: &[u8] = b"\x62\xf1\x7d\x48\xfe\xc0";
/// `vprorq ymm0, ymm0, 24`
pub(crate) const VPRORQ_YMM: &[u8] = b"\x62\xf1\xfd\x28\x72\xc0\x18";
/// `paddd xmm0, xmm0`
pub(crate) const PADDD_XMM: &[u8] = b"\x66\x0f\xfe\xc0";
/// `vextracti128 xmm0, ymm1, 1`, which names both
pub(crate) const VEXTRACTI128: &[u8] = b"\xc4\xe3\x7d\x39\xc8\x01";
/// `ret`
pub(crate) const RET: &[u8] = b"\xc3";

/// `code`, `times` over.
pub(crate) fn repeat(code: &[u8], times: usize) -> Vec<u8> {
    code.repeat(times)
}

/// An object file of functions, by their names and code.
pub(crate) fn object_file(
    format: BinaryFormat,
    arch: Architecture,
    functions: &[(&str, Vec<u8>)],
) -> Vec<u8> {
    object_of(format, arch, functions, b"")
}

fn object_of(
    format: BinaryFormat,
    arch: Architecture,
    functions: &[(&str, Vec<u8>)],
    data: &[u8],
) -> Vec<u8> {
    let mut object = Object::new(format, arch, Endianness::Little);
    let text = object.section_id(object::write::StandardSection::Text);
    for (name, code) in functions {
        let offset = object.append_section_data(text, code, 16);
        object.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value: offset,
            size: code.len() as u64,
            kind: SymbolKind::Text,
            scope: SymbolScope::Linkage,
            weak: false,
            section: SymbolSection::Section(text),
            flags: SymbolFlags::None,
        });
    }
    if !data.is_empty() {
        let rodata = object.add_section(Vec::new(), b".rodata".to_vec(), SectionKind::ReadOnlyData);
        object.append_section_data(rodata, data, 1);
    }
    object.write().expect("an object file")
}

/// An ELF object file for x86-64 with `data` in a section that is loaded.
pub(crate) fn elf_with_data(functions: &[(&str, Vec<u8>)], data: &[u8]) -> Vec<u8> {
    object_of(BinaryFormat::Elf, Architecture::X86_64, functions, data)
}

/// An ELF object file for x86-64.
pub(crate) fn elf(functions: &[(&str, Vec<u8>)]) -> Vec<u8> {
    object_file(BinaryFormat::Elf, Architecture::X86_64, functions)
}

/// An executable without symbols, and with `data` in a section that is loaded.
pub(crate) fn stripped_elf(code: &[u8], data: &[u8]) -> Vec<u8> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let text = object.section_id(object::write::StandardSection::Text);
    object.append_section_data(text, code, 16);
    let rodata = object.add_section(Vec::new(), b".rodata".to_vec(), SectionKind::ReadOnlyData);
    object.append_section_data(rodata, data, 1);
    object.write().expect("an object file")
}

pub(crate) fn try_audit_with(bytes: &[u8], rules: &Rules) -> Result<Vec<Report>, Error> {
    audit(&bytes, "test", &Options { rules, limits: Limits::default(), progress: &|_| () })
}

pub(crate) fn try_audit(bytes: &[u8]) -> Result<Vec<Report>, Error> {
    try_audit_with(bytes, &Rules::built_in())
}

/// The only report on `bytes`.
pub(crate) fn audited(bytes: &[u8]) -> Report {
    only(try_audit(bytes).expect("an audit"))
}

/// The only report on the file at `path`.
pub(crate) fn audited_file(path: &Path) -> Report {
    let rules = Rules::built_in();
    let options = Options { rules: &rules, limits: Limits::default(), progress: &|_| () };
    only(audit_file(path, &options).expect("an audit"))
}

fn only(mut reports: Vec<Report>) -> Report {
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

pub(crate) fn width(report: &Report, name: &str) -> u64 {
    report.total.widths[name]
}

/// The output of a program. The program must be there: xtask installs it.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
