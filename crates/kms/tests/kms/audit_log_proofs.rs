//! Proofs that an entry is in a log, and that a log begins with an older one.

use std::fs;
use std::io::Write as _;

use bulla_kms::audit_log::{self, AuditLog, Checkpoint, ConsistencyProof, InclusionProof, ProblemKind};
use bulla_kms::{Code, Verdict};

use crate::audit_log::{FIRST, LogFixture, by_hand, new_key, place};

#[test]
fn one_entry_is_proven_to_who_has_only_the_public_key() {
    let place = place(by_hand());
    let none = audit_log::prove_inclusion(place.path(), 0).unwrap_err();
    assert_eq!(none.code, Code::InvalidArgument);
    place.sign(12);
    place.seal();
    place.sign(1);
    let public_key = place.keystore.public_key(&place.key).unwrap();
    for number in 0..13 {
        let proof = audit_log::prove_inclusion(place.path(), number).unwrap();
        let text = serde_json::to_string(&proof).unwrap();
        let proof: InclusionProof = serde_json::from_str(&text).unwrap();
        assert_eq!(proof.verify(&public_key).unwrap(), Verdict::Valid);
        assert_eq!(proof.entry().unwrap().number, number);
        for (from, to) in
            [("\\\"ok\\\"", "\\\"not_latest_version\\\""), ("\\\"op\\\":\\\"", "\\\"op\\\":\\\"x")]
        {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            let changed: InclusionProof = serde_json::from_str(&changed).unwrap();
            assert_ne!(changed.verify(&public_key).unwrap(), Verdict::Valid);
        }
    }
    assert_eq!(audit_log::prove_inclusion(place.path(), 13).unwrap_err().code, Code::InvalidArgument);
    let other = place.keystore.create_key(new_key("other")).unwrap();
    let other = place.keystore.public_key(&other).unwrap();
    let proof = audit_log::prove_inclusion(place.path(), 3).unwrap();
    assert_eq!(proof.verify(&other).unwrap(), Verdict::Invalid);
}

#[test]
fn a_newer_log_is_proven_to_begin_with_an_older_one() {
    let place = place(by_hand());
    let mut checkpoints = Vec::new();
    for times in [1, 2, 5, 7] {
        place.sign(times);
        checkpoints.push(place.seal());
    }
    let key = place.keystore.public_key(&place.key).unwrap();
    for old in &checkpoints {
        let proof = audit_log::prove_consistency(place.path(), old).unwrap();
        assert_eq!(proof.verify(&key, &key), Verdict::Valid);
        let mut other = proof.clone();
        other.old = checkpoints[0].clone();
        assert_eq!(other.verify(&key, &key).is_valid(), *old == checkpoints[0]);
    }
    let stranger = self::place(by_hand());
    stranger.sign(1);
    let strange = stranger.seal();
    assert_eq!(audit_log::prove_consistency(place.path(), &strange).unwrap_err().code, Code::InvalidArgument);
}

/// Two logs without entries have the same tree, and only their numbers differ.
#[test]
fn a_log_is_not_proven_to_begin_with_another_log() {
    let place = place(by_hand());
    let empty = || AuditLog::in_memory(by_hand()).unwrap().checkpoint(&place.keystore, &place.key).unwrap();
    let (old, new) = (empty(), empty());
    let proof = |old: &Checkpoint, new: &Checkpoint| -> ConsistencyProof {
        let json = serde_json::json!({ "old": old, "new": new, "path": [] });
        serde_json::from_value(json).unwrap()
    };
    let key = place.keystore.public_key(&place.key).unwrap();
    assert_eq!(proof(&old, &old).verify(&key, &key), Verdict::Valid);
    assert_eq!(proof(&old, &new).verify(&key, &key), Verdict::Invalid);
    let other = place.keystore.create_key(new_key("other")).unwrap();
    let other = place.keystore.public_key(&other).unwrap();
    assert_eq!(
        proof(&old, &old).verify(&other, &key),
        Verdict::Invalid,
        "the old one is signed by another key"
    );
    assert_eq!(proof(&old, &old).verify(&key, &other), Verdict::Invalid, "the new one is");
}

/// A copy of the log's files, without its lock.
fn copy(place: &LogFixture) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    place.files().iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
    folder
}

fn kinds(report: &audit_log::Report) -> Vec<ProblemKind> {
    report.problems.iter().map(|problem| problem.kind).collect()
}

#[test]
fn nothing_is_proven_of_a_log_that_was_edited_and_a_torn_line_is_no_edit() {
    let place = place(by_hand());
    place.sign(4);
    let old = place.seal();
    place.sign(1);
    let edited = |edit: fn(String) -> String| {
        let folder = copy(&place);
        let path = folder.path().join(FIRST);
        fs::write(&path, edit(fs::read_to_string(&path).unwrap())).unwrap();
        folder
    };
    let torn = edited(|text| text + "{\"n\":6");
    assert_eq!(kinds(&place.verify_at(torn.path())), [ProblemKind::Torn]);
    assert!(audit_log::prove_inclusion(torn.path(), 2).is_ok());
    assert!(audit_log::prove_consistency(torn.path(), &old).is_ok());
    let altered = edited(|text| text.replacen("\"ok\"", "\"not_latest_version\"", 1));
    assert_eq!(audit_log::prove_inclusion(altered.path(), 2).unwrap_err().code, Code::AuditLogCorrupt);
    assert_eq!(audit_log::prove_consistency(altered.path(), &old).unwrap_err().code, Code::AuditLogCorrupt);
}

#[test]
fn the_newest_checkpoint_is_missed_when_its_file_is_gone_or_is_none() {
    let place = place(by_hand());
    let found = |change: &dyn Fn(&std::path::Path)| {
        let folder = copy(&place);
        change(&folder.path().join("head"));
        audit_log::for_each_entry(folder.path(), &mut |_, _| Ok(()))
    };
    assert_eq!(kinds(&found(&|_| ()).unwrap()), [], "there is none yet");
    place.sign(2);
    place.seal();
    assert_eq!(kinds(&found(&|_| ()).unwrap()), []);
    assert_eq!(kinds(&found(&|head| fs::remove_file(head).unwrap()).unwrap()), [ProblemKind::Removed]);
    let report = found(&|head| fs::write(head, "nothing\n").unwrap()).unwrap();
    assert_eq!((kinds(&report), report.problems[0].file.as_str()), (vec![ProblemKind::Altered], "head"));
    // What cannot be read says nothing of the log.
    let unreadable = found(&|head| {
        fs::remove_file(head).unwrap();
        fs::create_dir(head).unwrap();
    });
    assert_ne!(unreadable.unwrap_err().code, Code::AuditLogCorrupt);
}

/// The writer of a log may be in the middle of a line.
#[test]
fn a_line_without_an_end_is_torn_only_when_nobody_writes() {
    let place = place(by_hand());
    place.sign(2);
    let mut file = fs::File::options().append(true).open(place.path().join(FIRST)).unwrap();
    file.write_all(b"{\"n\":3").unwrap();
    assert_eq!(kinds(&place.verify_at(place.path())), []);
    let LogFixture { folder, log, keystore, .. } = place;
    drop((log, keystore));
    let report = audit_log::for_each_entry(folder.path(), &mut |_, _| Ok(())).unwrap();
    assert_eq!((kinds(&report), report.entries), (vec![ProblemKind::Torn], 3));
}

#[test]
fn problems_have_the_same_words_for_people_and_programs() {
    use ProblemKind::{Altered, BadSignature, Malformed, OutOfPlace, Removed, Torn, Truncated, UnknownKey};
    for kind in [Altered, Removed, OutOfPlace, Malformed, Torn, Truncated, BadSignature, UnknownKey] {
        let json = serde_json::to_string(&kind).unwrap();
        assert_eq!(format!("\"{}\"", kind.as_str().replace(' ', "_")), json);
    }
}
