//! Files that are broken, hostile, or no binaries: an error that says so, and never a panic or
//! memory without bound.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};

use bulla_audit::{Error, Limits, Options, Rules, audit, audit_file};
use object::{Architecture, BinaryFormat};

use crate::support::{RET, VPADDQ_YMM, elf, object_file, repeat, try_audit};

fn sample() -> Vec<u8> {
    elf(&[("f", [repeat(VPADDQ_YMM, 30), RET.to_vec()].concat()), ("g", RET.to_vec())])
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_a_report_and_no_panic() {
    let whole = sample();
    for len in 0..whole.len() {
        let result = try_audit(&whole[..len]);
        assert!(len > 64 || result.is_err(), "{len} bytes");
    }
}

#[test]
fn any_byte_may_be_wrong() {
    let whole = sample();
    for at in 0..whole.len() {
        for value in [0, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let _ = try_audit(&bytes);
        }
    }
}

#[test]
fn what_is_no_binary_is_named() {
    for bytes in [b"".as_slice(), b"#!/bin/sh\necho", b"BC\xc0\xde", b"{\"json\": 1}", &[0; 100]] {
        assert!(matches!(try_audit(bytes), Err(Error::Format(_))), "{bytes:?}");
    }
    assert!(try_audit(b"BC\xc0\xde....").unwrap_err().to_string().contains("bitcode"));
}

#[test]
fn web_assembly_is_named() {
    let error = try_audit(b"\0asm\x01\0\0\0").expect_err("no machine code");
    assert!(matches!(error, Error::Architecture(_)), "{error}");
    assert!(error.to_string().contains("WebAssembly"), "{error}");
}

#[test]
fn other_machines_are_named() {
    for arch in [Architecture::Riscv64, Architecture::I386, Architecture::PowerPc64] {
        let bytes = object_file(BinaryFormat::Elf, arch, &[("f", vec![0; 16])]);
        let error = try_audit(&bytes).expect_err("another machine");
        assert!(matches!(error, Error::Architecture(_)), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("AArch64")));
    }
}

#[test]
fn tables_beyond_the_limit_are_an_error() {
    let rules = Rules::built_in();
    let options = Options { rules: &rules, limits: Limits { tables: 100 }, progress: &|_| () };
    assert!(matches!(audit(&sample().as_slice(), "test", &options), Err(Error::Limit(_))));
}

/// The offset of the size in the section header whose type is `kind`. ELF-64: headers of 64 bytes
/// at the offset in byte 40 of the file.
fn size_field(elf: &[u8], kind: u32) -> usize {
    let headers = u64::from_le_bytes(elf[40..48].try_into().expect("8 bytes")) as usize;
    let is_kind = |at: &usize| elf[at + 4..at + 8] == kind.to_le_bytes();
    (headers..elf.len()).step_by(64).find(is_kind).expect("a section") + 32
}

#[test]
fn a_file_of_four_gigabytes_is_read_in_little_memory_and_a_table_of_that_size_is_refused() {
    const SYMBOLS: u32 = 2;
    let mut bytes = sample();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("large");
    let write = |bytes: &[u8]| {
        let mut file = File::create(&path).expect("a file");
        file.write_all(bytes).expect("written");
        file.seek(SeekFrom::Start((5 << 30) - 1)).expect("a hole");
        file.write_all(&[0]).expect("written");
    };
    let rules = Rules::built_in();
    let options = Options { rules: &rules, limits: Limits::default(), progress: &|_| () };
    write(&bytes);
    assert_eq!(audit_file(&path, &options).expect("a report")[0].file_bytes, 5 << 30);
    let at = size_field(&bytes, SYMBOLS);
    bytes[at..at + 8].copy_from_slice(&(24_u64 << 27).to_le_bytes());
    write(&bytes);
    assert!(matches!(audit_file(&path, &options), Err(Error::Limit(_))));
}

#[test]
fn folders_and_files_that_are_not_there_are_errors_of_the_system() {
    let rules = Rules::built_in();
    let options = Options { rules: &rules, limits: Limits::default(), progress: &|_| () };
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("sub")).expect("a folder");
    for name in ["sub", "absent"] {
        assert!(matches!(audit_file(&folder.path().join(name), &options), Err(Error::Io(_))), "{name}");
    }
}
