//! A log that was cut before what a checkpoint signs is not written to: the next entry would hide
//! the cut.

use std::fs;
use std::sync::Arc;

use bulla_kms::audit_log::AuditLog;
use bulla_kms::{Code, KeystoreOptions};

use crate::audit_log::{FIRST, LogFixture, by_hand, kinds, new_key, place};

/// What a writer finds of a log: lines of its only file, and what `head` says.
struct LogRemains {
    lines: Vec<String>,
    head: Option<Vec<u8>>,
}

impl LogRemains {
    fn written(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FIRST), self.lines.join("\n") + "\n").unwrap();
        if let Some(head) = &self.head {
            fs::write(folder.path().join("head"), head).unwrap();
        }
        folder
    }
}

/// Every cut, with each `head` that there could be beside it: what a checkpoint signs and is not
/// there keeps the log from being written, and nothing is changed by the attempt.
#[test]
fn a_log_that_was_cut_is_not_gone_on_with() {
    let (place, other) = (place(by_hand()), place(by_hand()));
    let head_of = |place: &LogFixture| place.files()["head"].clone();
    place.sign(4);
    place.seal();
    let old = head_of(&place);
    place.sign(4);
    place.seal();
    let new = head_of(&place);
    place.sign(2);
    other.seal();
    let text = fs::read_to_string(place.path().join(FIRST)).unwrap();
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let seals = |lines: &[String]| lines.iter().filter(|line| line.starts_with("{\"checkpoint\"")).count();
    // Each with how many of the checkpoints must be there.
    let heads = [(None, 0), (Some(old), 1), (Some(new), 2), (Some(head_of(&other)), usize::MAX)];
    for kept in 1..=lines.len() {
        for (head, wanted) in &heads {
            let found = LogRemains { lines: lines[..kept].to_vec(), head: head.clone() };
            let folder = found.written();
            let opened = AuditLog::open(folder.path(), by_hand());
            if seals(&found.lines) < *wanted {
                let error = opened.unwrap_err();
                assert_eq!(error.code, Code::AuditLogCorrupt, "{kept} lines: {error}");
                assert_eq!(
                    fs::read_to_string(folder.path().join(FIRST)).unwrap(),
                    found.lines.join("\n") + "\n"
                );
                assert_eq!(fs::read(folder.path().join("head")).ok(), found.head);
                continue;
            }
            let log = Arc::new(opened.unwrap());
            let before = log.len();
            let options = KeystoreOptions::default().audit(log.clone());
            options.in_memory().unwrap().create_key(new_key("audit")).unwrap();
            assert_eq!(log.len(), before + 1);
            assert_eq!(kinds(&place.verify_at(folder.path())), [], "{kept} lines");
        }
    }
}

/// A cut may also be inside a line, or take all of the file: whatever a checkpoint signs must be
/// there, up to its last byte.
#[test]
fn a_log_that_was_cut_at_any_byte_of_what_is_sealed_is_left_as_it_is() {
    let place = place(by_hand());
    place.sign(2);
    place.seal();
    let mut files = place.files();
    let whole = files[FIRST].clone();
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
    AuditLog::open(folder.path(), by_hand()).unwrap();
    for kept in 0..whole.len() {
        files.insert(FIRST.to_owned(), whole[..kept].to_vec());
        fs::write(folder.path().join(FIRST), &files[FIRST]).unwrap();
        let error = AuditLog::open(folder.path(), by_hand()).unwrap_err();
        assert_eq!(error.code, Code::AuditLogCorrupt, "{kept} bytes: {error}");
        for (name, bytes) in &files {
            assert_eq!(&fs::read(folder.path().join(name)).unwrap(), bytes, "{kept} bytes: {name}");
        }
    }
}

/// The newest checkpoint may be in an older file, whose end may have been cut with it.
#[test]
fn a_checkpoint_that_is_missing_from_an_older_file_is_noticed() {
    let place = place(by_hand().max_file_bytes(1500));
    place.sign(3);
    place.seal();
    place.sign(9);
    let files = place.files();
    let parts: Vec<_> = files.keys().filter(|name| name.ends_with(".jsonl")).cloned().collect();
    assert!(parts.len() > 2, "{parts:?}");
    let LogFixture { folder, log, keystore, .. } = place;
    drop((log, keystore));
    assert_eq!(AuditLog::open(folder.path(), by_hand()).unwrap().len(), 13);
    let sealed = parts.iter().find(|part| files[*part].windows(12).any(|w| w == b"\"checkpoint\""));
    let path = folder.path().join(sealed.unwrap());
    let text = fs::read_to_string(&path).unwrap();
    let without: Vec<_> = text.lines().filter(|line| !line.starts_with("{\"checkpoint\"")).collect();
    fs::write(&path, without.join("\n") + "\n").unwrap();
    assert_eq!(AuditLog::open(folder.path(), by_hand()).unwrap_err().code, Code::AuditLogCorrupt);
}
