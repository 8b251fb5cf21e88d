//! What a reader says of files that are not a log from its first line to its last.

use std::collections::BTreeMap;
use std::fs;

use bulla_kms::audit_log::{self, ProblemKind, Report};
use bulla_kms::{Code, Result};

use crate::audit_log::{FIRST, by_hand, kinds, place};

type Files = BTreeMap<String, Vec<u8>>;

fn read(files: &Files) -> Result<Report> {
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
    audit_log::for_each_entry(folder.path(), &mut |_, _| Ok(()))
}

/// The first file with another text.
fn replaced(files: &Files, from: &str, to: &str) -> Files {
    let text = String::from_utf8(files[FIRST].clone()).unwrap();
    assert!(text.contains(from), "{from}");
    BTreeMap::from([(FIRST.to_owned(), text.replacen(from, to, 1).into_bytes())])
}

#[test]
fn a_newer_format_is_an_error_and_any_other_first_line_is_malformed() {
    let place = place(by_hand());
    let files = place.files();
    let format = |format: &str| format!("\"bulla-audit-log\":{format}");
    let error = read(&replaced(&files, &format("1"), &format("2"))).unwrap_err();
    assert_eq!(error.code, Code::AuditLogTooNew);
    for (from, to) in [
        (format("1"), format("0")),
        (format("1"), format(" 1")),
        ("\"first\":0".into(), "\"first\":1".into()),
    ] {
        let report = read(&replaced(&files, &from, &to)).unwrap();
        assert_eq!(report.problems[0].kind, ProblemKind::Malformed, "{to}");
    }
}

#[test]
fn a_log_without_entries_has_the_first_line_of_its_number() {
    let place = place(by_hand());
    let text = String::from_utf8(place.files()[FIRST].clone()).unwrap();
    let header = text.lines().next().unwrap().to_owned() + "\n";
    let files = |header: &str| BTreeMap::from([(FIRST.to_owned(), header.as_bytes().to_vec())]);
    assert_eq!(kinds(&read(&files(&header)).unwrap()), []);
    let digit = header.find("\"chain\":\"").unwrap() + 9;
    let mut other = header.clone();
    other.replace_range(digit..=digit, if &header[digit..=digit] == "0" { "1" } else { "0" });
    assert_eq!(kinds(&read(&files(&other)).unwrap()), [(ProblemKind::Altered, Some(0))]);
}

#[test]
fn a_file_of_another_log_and_a_file_that_is_there_twice_are_out_of_place() {
    let options = || by_hand().max_file_bytes(1500);
    let (one, other) = (place(options()), place(options()));
    one.sign(12);
    other.sign(12);
    let (one, other) = (one.files(), other.files());
    let second = other.keys().nth(1).unwrap();
    let first: u64 = second[..20].parse().unwrap();
    let mixed =
        BTreeMap::from([(FIRST.to_owned(), one[FIRST].clone()), (second.clone(), other[second].clone())]);
    assert_eq!(kinds(&read(&mixed).unwrap())[0], (ProblemKind::OutOfPlace, Some(first)));
    let again = format!("{:020}.jsonl", 1);
    let twice = BTreeMap::from([(FIRST.to_owned(), one[FIRST].clone()), (again, one[FIRST].clone())]);
    assert_eq!(kinds(&read(&twice).unwrap())[0], (ProblemKind::OutOfPlace, Some(0)));
}

#[test]
fn a_last_line_is_torn_up_to_the_longest_that_there_are() {
    let place = place(by_hand());
    let longest = 128 << 10;
    for (length, kind) in
        [(1, ProblemKind::Torn), (longest - 1, ProblemKind::Torn), (longest, ProblemKind::Malformed)]
    {
        let mut files = place.files();
        files.get_mut(FIRST).unwrap().extend(vec![b'x'; length]);
        let found: Vec<_> = read(&files).unwrap().problems.into_iter().map(|problem| problem.kind).collect();
        assert_eq!(found, [kind], "{length}");
    }
}

#[test]
fn a_thousand_problems_are_listed() {
    let place = place(by_hand());
    for (lines, listed) in [(999, 999), (1000, 1000), (1500, 1000)] {
        let mut files = place.files();
        files.get_mut(FIRST).unwrap().extend("x\n".repeat(lines).bytes());
        assert_eq!(read(&files).unwrap().problems.len(), listed);
    }
}

#[test]
fn what_is_missing_is_named_by_its_numbers() {
    let place = place(by_hand());
    place.sign(4);
    place.seal();
    let text = String::from_utf8(place.files()[FIRST].clone()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    // The first line is the header, and the last one is the checkpoint.
    let without = |gone: std::ops::Range<usize>| {
        let kept = lines.iter().enumerate().filter(|(line, _)| !gone.contains(line));
        let text: String = kept.map(|(_, line)| format!("{line}\n")).collect();
        let mut files = place.files();
        files.insert(FIRST.to_owned(), text.into_bytes());
        read(&files).unwrap().problems[0].message.clone()
    };
    assert_eq!(without(3..4), "entry 2 is missing");
    assert_eq!(without(2..4), "entries 1 to 2 are missing");
    assert_eq!(without(5..7), "the log ends before entry 4, which a checkpoint signs");
    assert_eq!(without(4..7), "the log ends before entries 3 to 4, which a checkpoint signs");
}

#[test]
fn a_first_line_that_follows_another_line_is_altered() {
    let place = place(by_hand().max_file_bytes(1500));
    place.sign(12);
    let mut files = place.files();
    let second = files.keys().filter(|name| name.ends_with(".jsonl")).nth(1).unwrap().clone();
    let mut text = String::from_utf8(files[&second].clone()).unwrap();
    let digit = text.find("\"chain\":\"").unwrap() + 9;
    let other = if text.as_bytes()[digit] == b'0' { "1" } else { "0" };
    text.replace_range(digit..=digit, other);
    files.insert(second, text.into_bytes());
    let report = read(&files).unwrap();
    assert!(report.problems[0].message.starts_with("the end of the previous file, or the first line"));
}
