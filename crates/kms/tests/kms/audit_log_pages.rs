//! Pages of a log: any range of its entries, from the files that have it.

use std::fs;
use std::path::{Path, PathBuf};

use bulla_kms::Code;
use bulla_kms::audit_log::{self};

use crate::audit_log::{LogFixture, by_hand, place};

/// A log in several files, with a checkpoint among its entries.
fn in_files() -> LogFixture {
    let place = place(by_hand().max_file_bytes(1000));
    place.sign(5);
    place.seal();
    place.sign(5);
    place
}

/// The files of the entries, the oldest first.
fn parts(place: &LogFixture) -> Vec<PathBuf> {
    let names = place.files().into_keys().filter(|name| name.ends_with(".jsonl"));
    let parts: Vec<_> = names.map(|name| place.path().join(name)).collect();
    assert!(parts.len() > 2, "{parts:?}");
    parts
}

/// The number of the first entry of a file is its name.
fn first_of(part: &Path) -> u64 {
    part.file_stem().unwrap().to_str().unwrap().parse().unwrap()
}

fn numbers(place: &LogFixture, from: u64, limit: usize) -> Vec<u64> {
    let page = audit_log::read_entry_page(place.path(), from, limit).unwrap();
    page.iter().map(|(entry, _)| entry.number).collect()
}

#[test]
fn every_page_has_the_entries_and_lines_that_were_written() {
    let place = in_files();
    parts(&place);
    let mut all = Vec::new();
    audit_log::for_each_entry(place.path(), &mut |entry, line| {
        all.push((entry.clone(), line.to_owned()));
        Ok(())
    })
    .unwrap();
    assert_eq!(all.len(), 11);
    for from in 0..=all.len() + 1 {
        for limit in 0..=all.len() + 1 {
            let page = audit_log::read_entry_page(place.path(), from as u64, limit).unwrap();
            let expected: Vec<_> = all.iter().skip(from).take(limit).cloned().collect();
            assert_eq!(page, expected, "{limit} from {from}");
        }
    }
    // What is written at the moment is no entry yet.
    let newest = parts(&place).pop().unwrap();
    let text = fs::read(&newest).unwrap();
    fs::write(&newest, &text[..text.len() - 1]).unwrap();
    assert_eq!(numbers(&place, 8, 9), [8, 9]);
}

#[test]
fn a_page_reads_only_the_files_that_it_needs() {
    let place = in_files();
    let parts = parts(&place);
    let (second, third) = (first_of(&parts[1]), first_of(&parts[2]));
    for part in [&parts[0], &parts[2]] {
        fs::write(part, "no log").unwrap();
    }
    let within: Vec<_> = (second..third).collect();
    assert_eq!(numbers(&place, second, within.len()), within);
    assert_eq!(numbers(&place, third - 1, 1), [third - 1]);
}

#[test]
fn a_page_of_a_damaged_file_is_an_error_that_names_the_file() {
    let place = in_files();
    let parts = parts(&place);
    let second = first_of(&parts[1]);
    let text = fs::read_to_string(&parts[1]).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let damaged = [
        lines[1..].join("\n") + "\n",
        text.replacen("\"n\"", "\"m\"", 1),
        text.replacen(&format!("{{\"n\":{},", second + 1), &format!("{{\"n\":{},", second + 2), 1),
    ];
    let name = parts[1].file_name().unwrap().to_str().unwrap();
    for damaged in damaged {
        assert_ne!(damaged, text);
        fs::write(&parts[1], &damaged).unwrap();
        for from in [0, second] {
            let error = audit_log::read_entry_page(place.path(), from, 100).unwrap_err();
            assert_eq!(error.code, Code::AuditLogCorrupt, "{from}: {error}");
            assert!(error.message.contains(name), "{error}");
        }
    }
    fs::write(&parts[1], b"\xff\n").unwrap();
    assert_eq!(audit_log::read_entry_page(place.path(), second, 1).unwrap_err().code, Code::AuditLogCorrupt);
    fs::write(&parts[1], text.replacen("\"bulla-audit-log\":1", "\"bulla-audit-log\":2", 1)).unwrap();
    assert_eq!(audit_log::read_entry_page(place.path(), second, 1).unwrap_err().code, Code::AuditLogTooNew);
}

/// Also if it is the first or the last of its file, or the first of the page.
#[test]
fn a_page_without_one_of_its_entries_is_an_error() {
    let place = in_files();
    for part in parts(&place) {
        let text = fs::read_to_string(&part).unwrap();
        for line in text.lines().filter(|line| line.starts_with("{\"n\":")) {
            let number: u64 = line["{\"n\":".len()..].split(',').next().unwrap().parse().unwrap();
            fs::write(&part, text.replacen(&format!("{line}\n"), "", 1)).unwrap();
            // Nothing follows the last one, so a page cannot tell.
            for from in (0..=number).filter(|_| number < 10) {
                let error = audit_log::read_entry_page(place.path(), from, 100).unwrap_err();
                assert_eq!(error.code, Code::AuditLogCorrupt, "without {number}, from {from}: {error}");
            }
            assert_eq!(numbers(&place, number + 1, 100), (number + 1..11).collect::<Vec<_>>());
        }
        fs::write(&part, text).unwrap();
    }
}

/// Old files may be kept elsewhere: the pages begin where the log does.
#[test]
fn a_log_without_its_oldest_files_has_pages_of_the_others() {
    let place = in_files();
    let parts = parts(&place);
    fs::remove_file(&parts[0]).unwrap();
    let begin = first_of(&parts[1]);
    let rest: Vec<_> = (begin..11).collect();
    assert_eq!(numbers(&place, 0, 100), rest);
    assert_eq!(numbers(&place, begin, 100), rest);
}
