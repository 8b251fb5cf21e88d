//! Audits any bytes as the code of an object file, with symbols at places that the bytes choose.

#![no_main]

use std::sync::LazyLock;

use bulla_audit::{Limits, Options, Rules, audit};
use libfuzzer_sys::fuzz_target;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::built_in);

/// An ELF object file: header, code, names, symbols, headers of sections.
fn elf(machine: u16, code: &[u8], symbols: &[[u8; 3]]) -> Vec<u8> {
    let mut names = b"\0".to_vec();
    let mut table = vec![0; 24];
    for (i, [kind, at, size]) in symbols.iter().enumerate() {
        let name = names.len() as u32;
        names.extend(format!("_ZN4hash{i}E\0").bytes());
        table.extend(name.to_le_bytes());
        table.extend([kind % 4, 0, 1, 0]);
        table.extend((u64::from(*at) * code.len() as u64 / 256).to_le_bytes());
        table.extend(u64::from(*size).to_le_bytes());
    }
    let (code_at, names_at) = (64, 64 + code.len());
    let (table_at, headers_at) = (names_at + names.len(), names_at + names.len() + table.len());
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([1_u16.to_le_bytes(), machine.to_le_bytes()].concat());
    file.extend(1_u32.to_le_bytes());
    file.extend([0; 16]);
    file.extend((headers_at as u64).to_le_bytes());
    file.extend([0; 4]);
    for field in [64_u16, 0, 0, 64, 4, 2] {
        file.extend(field.to_le_bytes());
    }
    file.extend(code);
    file.extend(&names);
    file.extend(&table);
    let sections = [
        [0, 0, 0, 0, 0, 0, 0],
        [1, 6, code_at, code.len(), 0, 0, 0],
        [3, 0, names_at, names.len(), 0, 0, 0],
        [2, 0, table_at, table.len(), 2, 1, 24],
    ];
    for [kind, flags, at, size, link, info, entry] in sections {
        file.extend(0_u32.to_le_bytes());
        file.extend((kind as u32).to_le_bytes());
        for field in [flags, 0, at, size] {
            file.extend((field as u64).to_le_bytes());
        }
        file.extend([(link as u32).to_le_bytes(), (info as u32).to_le_bytes()].concat());
        file.extend(1_u64.to_le_bytes());
        file.extend((entry as u64).to_le_bytes());
    }
    file
}

fuzz_target!(|bytes: &[u8]| {
    let Some(([machine, count], rest)) = bytes.split_first_chunk() else { return };
    let machine = if machine % 2 == 0 { 62 } else { 183 };
    let Some((symbols, code)) = rest.split_at_checked(usize::from(count % 16) * 3) else { return };
    let symbols: Vec<[u8; 3]> = symbols.chunks_exact(3).map(|chunk| [chunk[0], chunk[1], chunk[2]]).collect();
    let options = Options { rules: &RULES, limits: Limits { tables: 16 << 20 }, progress: &|_| () };
    let reports = audit(&elf(machine, code, &symbols).as_slice(), "fuzz", &options);
    if code.is_empty() {
        return;
    }
    let report = &reports.expect("an object file")[0];
    assert!(report.total.instructions + report.total.bad <= code.len() as u64);
});
