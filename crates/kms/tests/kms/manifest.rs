//! Manifests: each tree has one text, and each text is of one tree.

use std::collections::BTreeMap;

use bulla_kms::Code;
use bulla_kms::signature::manifest::{
    EntryContent, Exclusion, LinkTarget, ManifestEntry, ManifestPath, ManifestReader, ManifestSummary,
    ManifestWriter,
};
use proptest::prelude::*;

fn path(bytes: &[u8]) -> ManifestPath {
    ManifestPath::from_bytes(bytes).unwrap()
}

fn file(bytes: &[u8], size: u64) -> ManifestEntry {
    ManifestEntry { path: path(bytes), content: EntryContent::File { digest: bulla_blake3::hash(b""), size } }
}

fn link(bytes: &[u8], target: &[u8]) -> ManifestEntry {
    ManifestEntry {
        path: path(bytes),
        content: EntryContent::Link { target: LinkTarget::from_bytes(target).unwrap() },
    }
}

fn write(entries: &[ManifestEntry]) -> bulla_kms::Result<(Vec<u8>, ManifestSummary)> {
    let mut writer = ManifestWriter::new(Vec::new());
    entries.iter().try_for_each(|entry| writer.push(entry))?;
    Ok(writer.finish())
}

fn read(text: &[u8]) -> bulla_kms::Result<Vec<ManifestEntry>> {
    ManifestReader::new(text).collect()
}

const EMPTY: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

#[test]
fn the_text_is_that_of_the_specification() {
    let entries = [
        file(b"a b -", 0),
        file(b"back\\slash", 1),
        file(b"dir/\xc3\xbc", 2),
        link(b"latest", b"../dir > x"),
        file(b"new\nline\t\x7f", 18_446_744_073_709_551_615),
        file(b"not \xff utf-8", 3),
    ];
    let (text, summary) = write(&entries).unwrap();
    let expected = format!(
        "{EMPTY}  0  a b -\n\
         {EMPTY}  1  back\\\\slash\n\
         {EMPTY}  2  dir/ü\n\
         link  latest -> ../dir \\x3e x\n\
         {EMPTY}  18446744073709551615  new\\nline\\x09\\x7f\n\
         {EMPTY}  3  not \\xff utf-8\n"
    );
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    assert_eq!(
        (summary.digest, summary.size, summary.entries),
        (bulla_blake3::hash(expected.as_bytes()), expected.len() as u64, 6)
    );
    assert_eq!(read(expected.as_bytes()).unwrap(), entries);
}

#[test]
fn what_is_left_out_comes_first_and_is_part_of_the_text() {
    let mut writer = ManifestWriter::new(Vec::new());
    for pattern in ["*.tmp", "/cache/", "back\\ slash", " > ", "!keep"] {
        writer.exclude(&Exclusion::new(pattern).unwrap()).unwrap();
    }
    writer.push(&file(b"exclude  a", 0)).unwrap();
    assert_eq!(writer.exclude(&Exclusion::new("late").unwrap()).unwrap_err().code, Code::MalformedManifest);
    let (text, summary) = writer.finish();
    let expected = format!(
        "exclude  *.tmp\nexclude  /cache/\nexclude  back\\\\ slash\nexclude   \\x3e \nexclude  !keep\n\
         {EMPTY}  0  exclude  a\n"
    );
    assert_eq!(String::from_utf8(text.clone()).unwrap(), expected);
    assert_eq!((summary.size, summary.entries), (expected.len() as u64, 1));
    let mut reader = ManifestReader::new(&text[..]);
    assert_eq!(reader.by_ref().count(), 1);
    let patterns: Vec<_> = reader.exclusions().iter().map(Exclusion::as_str).collect();
    assert_eq!(patterns, ["*.tmp", "/cache/", "back\\ slash", " > ", "!keep"]);
    assert_eq!(reader.summary(), summary);
    for wrong in [
        "exclude  \n".to_owned(),
        "exclude *.tmp\n".to_owned(),
        "exclude  a>b\n".to_owned(),
        "exclude  \\xff\n".to_owned(),
        format!("{EMPTY}  0  a\nexclude  b\n"),
        "exclude  a\n".repeat(1001),
    ] {
        assert_eq!(read(wrong.as_bytes()).unwrap_err().code, Code::MalformedManifest, "{wrong}");
    }
}

#[test]
fn a_reader_hashes_what_it_reads() {
    let (text, summary) = write(&[file(b"a", 1), file(b"b", 2)]).unwrap();
    let mut reader = ManifestReader::new(&text[..]);
    assert_eq!(reader.by_ref().count(), 2);
    assert_eq!(reader.summary(), summary);
    let (empty, summary) = write(&[]).unwrap();
    assert_eq!((empty.len(), summary.size, summary.entries), (0, 0, 0));
    assert_eq!(summary.digest, bulla_blake3::hash(b""));
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    for bytes in [
        &b""[..],
        b"/",
        b"/etc/passwd",
        b"..",
        b"../a",
        b"a/..",
        b"a/../b",
        b".",
        b"./a",
        b"a/.",
        b"a/./b",
        b"a//b",
        b"a/",
        b"a\0b",
        b"C:",
        b"c:/windows",
        b"C:\\windows",
    ] {
        let error = ManifestPath::from_bytes(bytes).expect_err(&String::from_utf8_lossy(bytes));
        assert_eq!(error.code, Code::MalformedManifest);
    }
    for bytes in [&b"..."[..], b"..a", b"a..", b".a", b"a:b", b"C:file", b"ab:/c", b"-", b" ", b"~", b"*"] {
        assert!(ManifestPath::from_bytes(bytes).is_ok(), "{}", String::from_utf8_lossy(bytes));
    }
    assert!(LinkTarget::from_bytes(b"").is_err());
    assert!(LinkTarget::from_bytes(b"a\0").is_err());
    assert!(LinkTarget::from_bytes(b"/../anything//at/all/").is_ok());
}

#[test]
fn the_parser_refuses_the_same_paths() {
    for text in ["", "/a", "../a", "a/../b", "./a", "a//b", "a/", "a\\x00b", "C:\\\\windows", "\\x2e\\x2e/a"]
    {
        let line = format!("{EMPTY}  0  {text}\n");
        assert_eq!(read(line.as_bytes()).expect_err(text).code, Code::MalformedManifest);
    }
}

#[test]
fn lines_that_are_not_in_their_one_form_are_refused() {
    for line in [
        "\n".to_owned(),
        format!("{EMPTY}  0  a"),
        format!("{EMPTY}  0  a\r\n"),
        format!("{EMPTY} 0  a\n"),
        format!("{EMPTY}  0 a\n"),
        format!("{EMPTY}  00  a\n"),
        format!("{EMPTY}  +1  a\n"),
        format!("{EMPTY}  -1  a\n"),
        format!("{EMPTY}    a\n"),
        format!("{EMPTY}  18446744073709551616  a\n"),
        format!("{}  0  a\n", EMPTY.to_uppercase()),
        format!("{}  0  a\n", &EMPTY[1..]),
        format!("0{EMPTY}  0  a\n"),
        format!("{EMPTY}  a\n"),
        format!("{EMPTY}  0  a\tb\n"),
        format!("{EMPTY}  0  a>b\n"),
        format!("{EMPTY}  0  a\\\n"),
        format!("{EMPTY}  0  a\\t\n"),
        format!("{EMPTY}  0  a\\x6\n"),
        format!("{EMPTY}  0  a\\x61\n"),
        format!("{EMPTY}  0  a\\xFF\n"),
        format!("{EMPTY}  0  a\\x0a\n"),
        format!("{EMPTY}  0  a\\x5c\n"),
        format!("{EMPTY}  0  a\\xc3\\xbc\n"),
        format!("{EMPTY}  0  a\\x\u{e9}\n"),
        format!("{EMPTY}  0  a\u{202e}b\n"),
        "link  a\n".to_owned(),
        "link  a -> \n".to_owned(),
        "link   -> a\n".to_owned(),
        "link a -> b\n".to_owned(),
        "link  a -> b -> c\n".to_owned(),
        format!("link  0  {EMPTY}\n"),
        "directory  a\n".to_owned(),
    ] {
        let error = read(line.as_bytes()).expect_err(&line);
        assert_eq!(error.code, Code::MalformedManifest, "{line:?}");
        assert!(error.message.contains("line 1 "), "{error}");
    }
    assert!(read(&[EMPTY.as_bytes(), b"  0  \xff\n"].concat()).is_err());
}

#[test]
fn order_and_uniqueness_are_held_by_both_sides() {
    let lines = |names: [&str; 2]| names.map(|name| format!("{EMPTY}  0  {name}\n")).concat();
    for (names, word) in [(["b", "a"], "sorted"), (["a", "a"], "twice"), (["a/b", "a-b"], "sorted")] {
        let error = read(lines(names).as_bytes()).unwrap_err();
        assert!(error.message.contains("line 2 ") && error.message.contains(word), "{error}");
        let error = write(&names.map(|name| file(name.as_bytes(), 0))).unwrap_err();
        assert_eq!(error.code, Code::MalformedManifest);
        assert!(error.message.contains(word), "{error}");
    }
    // By bytes, not by letters or by components.
    for names in [["A", "a"], ["a-b", "a/b"], ["a.txt", "a/b"], ["z", "ü"], ["a", "a "]] {
        assert_eq!(read(lines(names).as_bytes()).unwrap().len(), 2);
    }
    // A link and a file of the same name are one path too.
    assert!(write(&[file(b"a", 0), link(b"a", b"b")]).is_err());
}

#[test]
fn a_reader_stops_after_an_error() {
    let text = format!("{EMPTY}  0  a\nnonsense\n{EMPTY}  0  b\n");
    let results: Vec<_> = ManifestReader::new(text.as_bytes()).map(|entry| entry.is_ok()).collect();
    assert_eq!(results, [true, false]);
}

#[test]
fn an_endless_line_is_not_read_to_its_end() {
    let error =
        ManifestReader::new(std::io::BufReader::new(std::io::repeat(b'a'))).next().unwrap().unwrap_err();
    assert_eq!(error.code, Code::MalformedManifest);
    assert!(error.message.contains("longer than"), "{error}");
    let long = [b'a'; 70_000];
    assert!(write(&[file(&long, 0)]).is_err(), "what would not be read is not written");
    // The longest path of Linux, with every byte escaped, as a link to itself.
    let longest = [0xff; 4095];
    let (text, _) = write(&[link(&longest, &longest)]).unwrap();
    assert_eq!(read(&text).unwrap().len(), 1);
}

#[test]
fn a_million_entries_pass_through() {
    const ENTRIES: u64 = 1_000_000;
    let name = |number: u64| format!("folder-{:03}/file-{number:07}.txt", number / 1000).into_bytes();
    let mut writer = ManifestWriter::new(Vec::new());
    for number in 0..ENTRIES {
        writer.push(&file(&name(number), number)).unwrap();
    }
    let (text, written) = writer.finish();
    let mut reader = ManifestReader::new(&text[..]);
    for number in 0..ENTRIES {
        let entry = reader.next().unwrap().unwrap();
        assert_eq!(entry.path.as_bytes(), name(number));
    }
    assert!(reader.next().is_none());
    assert_eq!(reader.summary(), written);
    assert_eq!((written.entries, written.size), (ENTRIES, text.len() as u64));
}

fn contents() -> impl Strategy<Value = EntryContent> {
    prop_oneof![
        (any::<[u8; 32]>(), any::<u64>()).prop_map(|(digest, size)| EntryContent::File {
            digest: bulla_blake3::Hash::from_bytes(digest),
            size
        }),
        proptest::collection::vec(1..=255_u8, 1..40)
            .prop_map(|target| EntryContent::Link { target: LinkTarget::from_bytes(target).unwrap() }),
    ]
}

/// Names of any bytes, and of text with all that needs care.
fn paths() -> impl Strategy<Value = ManifestPath> {
    let odd = prop_oneof![
        Just("\\"),
        Just("\n"),
        Just(" -> "),
        Just("  "),
        Just("\u{202e}"),
        Just("/"),
        Just("link  ")
    ];
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..40),
        proptest::collection::vec(prop_oneof![odd.prop_map(str::to_owned), ".{1,8}"], 1..8)
            .prop_map(|parts| parts.concat().into_bytes()),
    ]
    .prop_filter_map("a path", |bytes| ManifestPath::from_bytes(bytes).ok())
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(tree in proptest::collection::btree_map(paths(), contents(), 0..20)) {
        let tree: BTreeMap<ManifestPath, EntryContent> = tree;
        let entries: Vec<_> = tree.into_iter().map(|(path, content)| ManifestEntry { path, content }).collect();
        let (text, written) = write(&entries).unwrap();
        prop_assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), entries.len());
        prop_assert!(!text.iter().any(|byte| byte.is_ascii_control() && *byte != b'\n'));
        let mut reader = ManifestReader::new(&text[..]);
        let read = reader.by_ref().collect::<bulla_kms::Result<Vec<_>>>().unwrap();
        prop_assert_eq!(read, entries);
        prop_assert_eq!(reader.summary(), written);
    }

    #[test]
    fn what_is_read_is_written_the_same(lines in proptest::collection::vec(("[0-9a-f]{64}|link", "[0-9]{1,3}", "[a-c\\\\xn0-9/. >-]{1,8}"), 1..4)) {
        let text: String = lines.into_iter().map(|(first, size, rest)| match first.as_str() {
            "link" => format!("link  {rest} -> {rest}\n"),
            digest => format!("{digest}  {size}  {rest}\n"),
        }).collect();
        if let Ok(entries) = read(text.as_bytes()) {
            let (written, _) = write(&entries).unwrap();
            prop_assert_eq!(String::from_utf8(written).unwrap(), text);
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
        let _ = ManifestReader::new(&bytes[..]).count();
    }
}
