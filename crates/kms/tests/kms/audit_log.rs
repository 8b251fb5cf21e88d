//! The audit log: what it records, and that whatever is done to it afterwards is found.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bulla_kms::audit_log::{
    self, Actor, AuditEvent, AuditLog, AuditLogOptions, AuditOperation, AuditSink, Checkpoint, Durability,
    ProblemKind, Report, Verifications,
};
#[cfg(feature = "soft-seal")]
use bulla_kms::encryption::{Identity, IdentityKind};
use bulla_kms::rollback::StoreGuard;
use bulla_kms::{
    Algorithm, Code, KeyChange, KeyVersionId, Keystore, KeystoreOptions, NewKey, Result, RotationPolicy,
    Unlock, Verdict,
};

pub(crate) const MESSAGE: &[u8] = b"a message that must not be told";

pub(crate) fn new_key(label: &str) -> NewKey {
    NewKey::new("local".parse().unwrap(), "test".parse().unwrap(), Algorithm::Ed25519)
        .label(label.parse().unwrap())
}

/// No checkpoints but those that a test asks for, and no waiting for a disk that does not matter.
pub(crate) fn by_hand() -> AuditLogOptions {
    AuditLogOptions::default().durability(Durability::AtCheckpoints)
}

/// A keystore in memory whose log lies in a folder.
pub(crate) struct LogFixture {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) log: Arc<AuditLog>,
    pub(crate) keystore: Keystore,
    pub(crate) key: KeyVersionId,
}

pub(crate) fn place(options: AuditLogOptions) -> LogFixture {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(AuditLog::create(folder.path(), options).unwrap());
    let keystore = KeystoreOptions::default().audit(log.clone()).in_memory().unwrap();
    let key = keystore.create_key(new_key("audit")).unwrap();
    LogFixture { folder, log, keystore, key }
}

impl LogFixture {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn sign(&self, times: usize) {
        for _ in 0..times {
            self.keystore.sign(&self.key, MESSAGE).unwrap();
        }
    }

    pub(crate) fn seal(&self) -> Checkpoint {
        self.log.checkpoint(&self.keystore, self.key.key_id()).unwrap()
    }

    pub(crate) fn verify_at(&self, folder: &Path) -> Report {
        audit_log::verify(folder, &|id| self.keystore.public_key(id).ok(), &[]).unwrap()
    }

    fn verify(&self) -> Report {
        self.verify_at(self.path())
    }

    /// The files of the log by their names, without its lock.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = fs::read_dir(self.path()).unwrap().map(|file| file.unwrap().path());
        files
            .filter(|path| path.file_name().unwrap() != "lock")
            .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
            .collect()
    }

    /// What is found of a log with these files.
    fn verify_files(&self, files: &BTreeMap<String, Vec<u8>>) -> Report {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
        self.verify_at(folder.path())
    }

    /// What is found when the lines of the first file are others.
    fn verify_lines(&self, change: impl FnOnce(&mut Vec<String>)) -> Report {
        let mut files = self.files();
        let file = files.get_mut(FIRST).unwrap();
        let mut lines: Vec<_> = std::str::from_utf8(file).unwrap().lines().map(str::to_owned).collect();
        change(&mut lines);
        *file = (lines.join("\n") + "\n").into_bytes();
        self.verify_files(&files)
    }
}

pub(crate) const FIRST: &str = "00000000000000000000.jsonl";

pub(crate) fn kinds(report: &Report) -> Vec<(ProblemKind, Option<u64>)> {
    report.problems.iter().map(|problem| (problem.kind, problem.entry)).collect()
}

#[test]
fn operations_are_recorded_with_who_what_which_and_how() {
    let place = place(by_hand().verifications(Verifications::Recorded));
    let alice: Actor = "alice".parse().unwrap();
    let signature = place.keystore.on_behalf_of(&alice).sign(&place.key, MESSAGE).unwrap();
    let key_id = place.key.key_id();
    assert!(!place.keystore.verify(&place.key, b"other", &signature.bytes).unwrap().is_valid());
    place.keystore.rotate(key_id).unwrap();
    assert_eq!(place.keystore.sign(&place.key, MESSAGE).unwrap_err().code, Code::NotLatestVersion);
    place.keystore.disable(key_id).unwrap();
    place.keystore.enable(key_id).unwrap();
    place.keystore.attest_signed(key_id).unwrap();
    let entries = place.log.entries().unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|entry| {
            let key = entry.key.as_ref().unwrap().to_string();
            let version = key.strip_prefix(&key_id.to_string()).unwrap().to_owned();
            (entry.actor.as_str(), entry.operation.as_str(), version, entry.result.as_str())
        })
        .collect();
    let expected = [
        ("-", "create", "/v1", "ok"),
        ("alice", "sign", "/v1", "ok"),
        ("-", "verify", "/v1", "invalid"),
        ("-", "rotate", "/v2", "ok"),
        ("-", "sign", "/v1", "not_latest_version"),
        ("-", "disable", "", "ok"),
        ("-", "enable", "", "ok"),
        ("-", "attest", "/v2", "ok"),
    ];
    assert_eq!(told, expected.map(|(who, what, version, how)| (who, what, version.to_owned(), how)));
    assert_eq!(entries[1].digest(), Some(blake3(MESSAGE)));
    assert_eq!(entries[3].digest(), None);
}

fn blake3(message: &[u8]) -> bulla_blake3::Hash {
    bulla_blake3::hash(message)
}

#[test]
fn what_is_done_with_the_store_as_a_whole_is_recorded_without_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(AuditLog::create(&folder.path().join("log"), by_hand()).unwrap());
    let options = KeystoreOptions::default().audit(log.clone());
    let (path, secret) = (folder.path().join("keystore"), |text: &str| Unlock::Passphrase(text.into()));
    let keystore = options.create(&path, &secret("one")).unwrap();
    assert_eq!(keystore.rekey(&secret("none"), &secret("two")).unwrap_err().code, Code::WrongPassphrase);
    keystore.rekey(&secret("one"), &secret("two")).unwrap();
    #[cfg(feature = "soft-seal")]
    {
        let identity = Identity::generate(IdentityKind::Age).unwrap();
        keystore.backup(&mut Vec::new(), &[&identity]).unwrap();
    }
    keystore.set_guard(&StoreGuard::default()).unwrap();
    let entries = log.entries().unwrap();
    assert!(entries.iter().all(|entry| entry.key.is_none() && entry.digest().is_none()));
    let told: Vec<_> =
        entries.iter().map(|entry| (entry.operation.as_str(), entry.result.as_str())).collect();
    let backup = cfg!(feature = "soft-seal").then_some(("backup", "ok"));
    let expected = [("reseal", "wrong_passphrase"), ("reseal", "ok")].into_iter().chain(backup);
    assert_eq!(told, expected.chain([("guard", "ok")]).collect::<Vec<_>>());
}

#[test]
fn a_rotation_that_a_policy_asks_for_is_recorded() {
    let place = place(by_hand());
    let rotation = RotationPolicy::default().max_uses(2.try_into().ok());
    let key = place.keystore.create_key(new_key("used").rotation(rotation)).unwrap();
    for _ in 0..3 {
        place.keystore.sign(key.key_id(), MESSAGE).unwrap();
    }
    let words: Vec<_> =
        place.log.entries().unwrap().iter().map(|entry| entry.operation.as_str().to_owned()).collect();
    assert_eq!(words, ["create", "create", "sign", "sign", "rotate", "sign"]);
}

#[test]
fn verifications_are_left_out_unless_they_are_wanted() {
    let place = place(by_hand());
    let signature = place.keystore.sign(&place.key, MESSAGE).unwrap();
    assert_eq!(place.keystore.verify(&place.key, MESSAGE, &signature.bytes).unwrap(), Verdict::Valid);
    assert_eq!(place.log.len(), 2);
}

#[test]
fn neither_messages_nor_private_keys_stand_in_the_log() {
    let place = place(by_hand().verifications(Verifications::Recorded));
    let signature = place.keystore.sign(&place.key, MESSAGE).unwrap();
    assert!(place.keystore.verify(&place.key, MESSAGE, &signature.bytes).unwrap().is_valid());
    place.seal();
    let text = place.files().into_values().map(|bytes| String::from_utf8(bytes).unwrap()).collect::<String>();
    assert!(text.contains("sign") && !text.contains("must not be told"));
    // What may stand in a line is a fixed set of fields.
    for line in text.lines().filter(|line| line.starts_with("{\"n\"")) {
        let fields: BTreeMap<String, serde_json::Value> = serde_json::from_str(line).unwrap();
        let known = ["n", "time", "who", "op", "key", "result", "digest", "chain"];
        assert!(fields.keys().all(|field| known.contains(&field.as_str())), "{line}");
    }
}

#[test]
fn a_log_that_nobody_touched_holds() {
    let place = place(by_hand());
    place.sign(20);
    let checkpoint = place.seal();
    place.sign(3);
    let report = place.verify();
    assert_eq!((report.entries, report.signed_entries, report.checkpoints), (24, 21, 1));
    assert_eq!((report.problems, report.checkpoint), (vec![], Some(checkpoint)));
}

/// Every bit of every file.
#[test]
fn any_bit_that_is_flipped_is_found() {
    let place = place(by_hand());
    place.sign(2);
    place.seal();
    place.sign(2);
    place.seal();
    let files = place.files();
    assert_eq!(kinds(&place.verify_files(&files)), []);
    let folder = tempfile::tempdir().unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
    for (name, bytes) in &files {
        // In place: a file that is written anew goes to the disk each time.
        let file = fs::File::options().write(true).open(folder.path().join(name)).unwrap();
        for bit in 0..bytes.len() * 8 {
            let at = bit / 8;
            file.write_all_at(&[bytes[at] ^ (1 << (bit % 8))], at as u64).unwrap();
            // A format that is newer than this program is an error.
            let keys = |id: &KeyVersionId| place.keystore.public_key(id).ok();
            match audit_log::verify(folder.path(), &keys, &[]) {
                Ok(report) => assert_ne!(kinds(&report), [], "bit {bit} of {name}"),
                Err(error) => assert_eq!(error.code, Code::AuditLogTooNew, "bit {bit} of {name}"),
            }
            file.write_all_at(&bytes[at..=at], at as u64).unwrap();
        }
    }
}

/// Line 1 is the header, so entry n is line n + 2.
#[test]
fn an_entry_that_is_altered_removed_moved_or_repeated_is_named() {
    let place = place(by_hand());
    place.sign(9);
    place.seal();
    let altered = place.verify_lines(|lines| lines[6] = lines[6].replace("\"ok\"", "\"not_latest_version\""));
    assert_eq!(kinds(&altered), [(ProblemKind::Altered, Some(5))]);
    let link = place.verify_lines(|lines| {
        let end = lines[6].len() - 3;
        let other = if lines[6].as_bytes()[end] == b'0' { "1" } else { "0" };
        lines[6].replace_range(end..=end, other);
    });
    assert_eq!(kinds(&link), [(ProblemKind::Altered, Some(5))]);
    let removed = place.verify_lines(|lines| drop(lines.remove(6)));
    assert_eq!(kinds(&removed), [(ProblemKind::Removed, Some(5))]);
    let removed = place.verify_lines(|lines| drop(lines.drain(4..7)));
    assert_eq!(kinds(&removed), [(ProblemKind::Removed, Some(3))]);
    assert!(removed.problems[0].message.contains("entries 3 to 5"), "{}", removed.problems[0].message);
    let swapped = place.verify_lines(|lines| lines.swap(6, 7));
    assert_eq!(kinds(&swapped), [(ProblemKind::Removed, Some(5)), (ProblemKind::OutOfPlace, Some(5))]);
    let repeated = place.verify_lines(|lines| lines.insert(8, lines[6].clone()));
    assert_eq!(kinds(&repeated), [(ProblemKind::OutOfPlace, Some(5))]);
    let garbage = place.verify_lines(|lines| lines.insert(6, "{}".to_owned()));
    assert_eq!(kinds(&garbage), [(ProblemKind::Malformed, Some(5))]);
}

#[test]
fn entries_that_were_made_anew_with_their_chain_are_found_by_the_checkpoint() {
    let (one, other) = (place(by_hand()), place(by_hand()));
    one.sign(4);
    one.seal();
    one.sign(4);
    one.seal();
    other.sign(8);
    // The attacker has the log's own number, and everything but the key that signs.
    let (mut forged, original) = (one.files(), one.files());
    let text = |files: &BTreeMap<String, Vec<u8>>| String::from_utf8(files[FIRST].clone()).unwrap();
    let checkpoints = text(&original);
    let checkpoints: Vec<_> =
        checkpoints.lines().filter(|line| line.starts_with("{\"checkpoint\"")).collect();
    assert_eq!(checkpoints.len(), 2);
    forged.insert(FIRST.to_owned(), other.files()[FIRST].clone());
    let report = one.verify_files(&forged);
    assert_ne!(kinds(&report), [], "the head beside the entries is of another log");
    forged.remove("head");
    let unsigned = one.verify_files(&forged);
    assert_eq!((unsigned.signed_entries, kinds(&unsigned)), (0, vec![]), "nothing but a checkpoint tells");
    let kept = audit_log::verify(
        one.path(),
        &|id| one.keystore.public_key(id).ok(),
        &[original["head"].clone()].map(|note| String::from_utf8(note).unwrap().parse().unwrap()),
    );
    assert_eq!(kinds(&kept.unwrap()), []);
}

#[test]
fn a_log_that_was_cut_is_found_as_far_as_a_checkpoint_is_known() {
    let place = place(by_hand());
    place.sign(9);
    let checkpoint = place.seal();
    for kept in 1..11 {
        let report = place.verify_lines(|lines| lines.truncate(kept));
        assert_eq!(kinds(&report), [(ProblemKind::Truncated, Some(kept as u64 - 1))], "{kept} lines");
    }
    let report = place.verify_lines(|lines| drop(lines.pop()));
    assert_eq!(kinds(&report), [(ProblemKind::Removed, None)], "the checkpoint alone is gone");
    // Who puts everything back to an older state is found by a checkpoint that was kept elsewhere.
    let before = place.files();
    place.sign(1);
    let kept = place.seal();
    assert_ne!(kept, checkpoint);
    assert_eq!(kinds(&place.verify_files(&before)), []);
    let folder = tempfile::tempdir().unwrap();
    before.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
    let report = audit_log::verify(folder.path(), &|id| place.keystore.public_key(id).ok(), &[kept]).unwrap();
    assert_eq!(kinds(&report), [(ProblemKind::Truncated, Some(10))]);
}

#[test]
fn checkpoints_by_unknown_or_other_keys_do_not_count() {
    let place = place(by_hand());
    place.sign(2);
    place.seal();
    let unknown = audit_log::verify(place.path(), &|_| None, &[]).unwrap();
    assert_eq!(kinds(&unknown), [(ProblemKind::UnknownKey, Some(3))]);
    let other = place.keystore.create_key(new_key("other")).unwrap();
    let other = place.keystore.public_key(&other).unwrap();
    let wrong = audit_log::verify(place.path(), &|_| Some(other.clone()), &[]).unwrap();
    assert_eq!(kinds(&wrong), [(ProblemKind::BadSignature, Some(3))]);
}

#[test]
fn a_keystore_signs_no_checkpoint_for_its_callers() {
    let place = place(by_hand());
    let text = place.seal().signed_text();
    assert_eq!(place.keystore.sign(&place.key, text.as_bytes()).unwrap_err().code, Code::ReservedMessage);
}

#[test]
fn checkpoints_are_made_when_they_are_due() {
    let signed = by_hand().signer("local".parse().unwrap(), "audit".parse().unwrap());
    let place = place(signed.clone().checkpoint_entries(5));
    place.sign(3);
    assert_eq!(place.verify().checkpoints, 0);
    place.sign(10);
    let report = place.verify();
    assert_eq!((report.entries, report.checkpoints, report.signed_entries), (14, 2, 10));
    assert_eq!(kinds(&report), []);
    let place = self::place(signed.checkpoint_interval(Duration::ZERO));
    place.sign(2);
    assert_eq!(place.verify().signed_entries, 3);
    // The key is disabled: that is told, and the next entry after it is enabled again makes up for
    // it.
    place.keystore.disable(place.key.key_id()).unwrap();
    assert_eq!(place.log.checkpoint_error().unwrap().code, Code::KeyDisabled);
    place.keystore.enable(place.key.key_id()).unwrap();
    assert!(place.log.checkpoint_error().is_none());
    assert_eq!(place.verify().signed_entries, 5);
}

#[test]
fn files_follow_one_another_and_none_can_go_missing() {
    let place = place(by_hand().max_file_bytes(1500));
    place.sign(10);
    place.seal();
    place.sign(10);
    let checkpoint = place.seal();
    let files = place.files();
    let parts: Vec<_> = files.keys().filter(|name| name.ends_with(".jsonl")).cloned().collect();
    assert!(parts.len() > 3, "{parts:?}");
    let report = place.verify();
    assert_eq!((report.entries, report.signed_entries, kinds(&report)), (21, 21, vec![]));
    for (gone, part) in parts.iter().enumerate() {
        let mut files = files.clone();
        files.remove(part);
        let report = place.verify_files(&files);
        let first: u64 = part[..20].parse().unwrap();
        let expected = if gone + 1 == parts.len() { ProblemKind::Truncated } else { ProblemKind::Removed };
        assert_eq!(report.problems[0].kind, expected, "{part}");
        assert_eq!(report.problems[0].entry, Some(first), "{part}");
    }
    // The log goes on where it was, also in a file without a checkpoint.
    let LogFixture { folder, log, keystore, key } = place;
    drop((log, keystore));
    let log = Arc::new(AuditLog::open(folder.path(), by_hand()).unwrap());
    assert_eq!((log.len(), log.recovered()), (21, None));
    let options = KeystoreOptions::default().audit(log.clone());
    let keystore = options.in_memory().unwrap();
    let other = keystore.create_key(new_key("audit")).unwrap();
    let newer = log.checkpoint(&keystore, &other).unwrap();
    assert_eq!(newer.size, 22);
    assert!(checkpoint.size < newer.size && key != other);
    assert_eq!(log.entries().unwrap().len(), 22);
}

#[test]
fn a_file_of_another_log_is_found() {
    let (one, other) = (place(by_hand()), place(by_hand()));
    one.sign(3);
    other.sign(3);
    one.seal();
    other.seal();
    let mut files = one.files();
    files.insert(FIRST.to_owned(), other.files()[FIRST].clone());
    assert_ne!(kinds(&one.verify_files(&files)), []);
}

#[test]
fn a_torn_line_is_recovered_with_word_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FIRST);
    {
        let log = Arc::new(AuditLog::create(folder.path(), by_hand()).unwrap());
        let keystore = KeystoreOptions::default().audit(log).in_memory().unwrap();
        keystore.create_key(new_key("audit")).unwrap();
        keystore.create_key(new_key("other")).unwrap();
    }
    let whole = fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last + 1..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let report = audit_log::verify(folder.path(), &|_| None, &[]).unwrap();
        assert_eq!(kinds(&report), [(ProblemKind::Torn, Some(1))], "{cut}");
        let log = AuditLog::open(folder.path(), by_hand()).unwrap();
        let recovered = log.recovered().unwrap();
        assert_eq!((recovered.bytes, &recovered.file), ((cut - last) as u64, &path));
        let entries = log.entries().unwrap();
        assert_eq!((entries.len(), entries[1].operation.as_str()), (2, "recover"));
        drop(log);
        assert_eq!(kinds(&audit_log::verify(folder.path(), &|_| None, &[]).unwrap()), []);
    }
}

#[test]
fn a_log_that_was_edited_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FIRST);
    {
        let log = Arc::new(AuditLog::create(folder.path(), by_hand()).unwrap());
        let keystore = KeystoreOptions::default().audit(log).in_memory().unwrap();
        keystore.create_key(new_key("audit")).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("create", "rotate")).unwrap();
    let error = AuditLog::open(folder.path(), by_hand()).unwrap_err();
    assert_eq!(error.code, Code::AuditLogCorrupt);
    assert!(error.message.contains("line 2"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text.replace("create", "rotate"), "it is left as it is");
}

#[test]
fn a_log_that_lacks_what_a_checkpoint_elsewhere_seals_is_not_opened() {
    let place = place(by_hand().max_file_bytes(1500));
    place.sign(4);
    let first = place.seal();
    let older = place.files();
    place.sign(20);
    let (second, whole) = (place.seal(), place.files());
    let another = self::place(by_hand()).seal();
    let open = |files: &BTreeMap<String, Vec<u8>>, known: &[&Checkpoint]| {
        let folder = tempfile::tempdir().unwrap();
        files.iter().for_each(|(name, bytes)| fs::write(folder.path().join(name), bytes).unwrap());
        let options = by_hand().known(known.iter().copied().cloned().collect());
        let opened = AuditLog::open(folder.path(), options).map(|log| log.len());
        let unchanged =
            files.iter().all(|(name, bytes)| fs::read(folder.path().join(name)).unwrap() == *bytes);
        assert!(unchanged);
        opened
    };
    assert_eq!(open(&older, &[]).unwrap(), first.size);
    assert_eq!(open(&older, &[&first, &another]).unwrap(), first.size);
    let error = open(&older, &[&first, &second]).unwrap_err();
    assert_eq!(error.code, Code::AuditLogCorrupt);
    assert!(error.message.contains("the log ends before entries 5 to 24"), "{error}");
    for known in [&[&first][..], &[&second], &[&second, &first], &[&another]] {
        assert_eq!(open(&whole, known).unwrap(), second.size);
    }
    // A checkpoint of as many entries, which this log does not have.
    let other: Checkpoint = first.to_string().replacen("\n5\n", "\n6\n", 1).parse().unwrap();
    assert_eq!(open(&whole, &[&other]).unwrap_err().code, Code::AuditLogCorrupt);
    assert_eq!(audit_log::read_log_id(place.path()).unwrap(), first.log);
}

#[test]
fn a_log_has_one_writer_and_can_be_verified_meanwhile() {
    let place = place(by_hand());
    place.sign(2);
    assert_eq!(AuditLog::open(place.path(), by_hand()).unwrap_err().code, Code::Locked);
    assert_eq!(AuditLog::create(place.path(), by_hand()).unwrap_err().code, Code::AlreadyExists);
    assert_eq!(kinds(&place.verify()), []);
    let nothing = tempfile::tempdir().unwrap();
    assert_eq!(AuditLog::open(nothing.path(), by_hand()).unwrap_err().code, Code::NotFound);
    assert_eq!(audit_log::verify(nothing.path(), &|_| None, &[]).unwrap_err().code, Code::NotFound);
}

#[test]
fn entries_of_many_threads_make_one_chain_and_are_durable_in_groups() {
    let place = place(AuditLogOptions::default().checkpoint_entries(7).max_file_bytes(5000));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| place.sign(10));
        }
    });
    place.seal();
    let report = place.verify();
    assert_eq!((report.entries, report.signed_entries, kinds(&report)), (81, 81, vec![]));
}

#[derive(Debug)]
struct Refusing;

impl AuditSink for Refusing {
    fn wants(&self, operation: AuditOperation) -> bool {
        [AuditOperation::Sign, AuditOperation::Verify, AuditOperation::Backup].contains(&operation)
    }

    fn record(&self, _events: &[AuditEvent<'_>]) -> Result<()> {
        // Any error will do.
        "not a name".parse::<bulla_kms::Name>().map(drop)
    }
}

#[test]
fn what_cannot_be_recorded_is_withheld() {
    let options = KeystoreOptions::default().audit(Arc::new(Refusing));
    let keystore = options.in_memory().unwrap();
    let key = keystore.create_key(new_key("audit")).unwrap();
    assert_eq!(keystore.sign(&key, MESSAGE).unwrap_err().code, Code::InvalidId);
    let item = bulla_kms::KeyMessage { key: (&key).into(), message: MESSAGE };
    assert!(keystore.sign_batch(&[item, item]).iter().all(Result::is_err));
    let item = bulla_kms::VerifyItem { key: &key, message: MESSAGE, signature: &[0; 64] };
    assert_eq!(keystore.verify_batch(&[item]), [Verdict::Unusable]);
    #[cfg(feature = "soft-seal")]
    {
        let identity = Identity::generate(IdentityKind::Age).unwrap();
        let error = keystore.backup(Vec::new(), &[&identity.recipient()]).unwrap_err();
        assert_eq!(error.code, Code::InvalidId, "a backup that is not recorded is an error");
    }
}

/// The roots in a file's first line are checked by the entries before it, whether or not a
/// checkpoint follows.
#[test]
fn a_first_line_that_has_other_roots_is_found() {
    let place = place(by_hand().max_file_bytes(1500));
    place.sign(12);
    let files = place.files();
    let parts: Vec<_> = files.keys().filter(|name| name.ends_with(".jsonl")).skip(1).cloned().collect();
    assert!(parts.len() > 1, "{parts:?}");
    for part in parts {
        let mut text = String::from_utf8(files[&part].clone()).unwrap();
        let root = text.find("\"peaks\":[\"").unwrap() + 10;
        let digit = if text.as_bytes()[root] == b'0' { "1" } else { "0" };
        text.replace_range(root..=root, digit);
        let mut files = files.clone();
        files.insert(part.clone(), text.into_bytes());
        let report = place.verify_files(&files);
        let first: u64 = part[..20].parse().unwrap();
        assert_eq!(kinds(&report).first(), Some(&(ProblemKind::Altered, Some(first))), "{part}: {report:?}");
    }
}

#[test]
fn names_of_actors_cannot_deceive() {
    for bad in ["", "a\nb", "a\u{202e}b", "a\u{1b}[2J", &"x".repeat(129)] {
        assert!(bad.parse::<Actor>().is_err(), "{bad:?}");
    }
    let place = place(by_hand());
    let alice = place.keystore.on_behalf_of(&"alice".parse().unwrap());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let bob = alice.on_behalf_of(&"bob".parse().unwrap());
        assert_eq!(bob.actor().as_str(), "bob");
        panic!("on purpose")
    }));
    assert!(panicked.is_err() && alice.actor().as_str() == "alice" && place.keystore.actor().as_str() == "-");
}

#[test]
fn a_log_in_memory_is_the_same_without_a_folder() {
    let log = Arc::new(AuditLog::in_memory(by_hand()).unwrap());
    let keystore = KeystoreOptions::default().audit(log.clone()).in_memory().unwrap();
    let key = keystore.create_key(new_key("audit")).unwrap();
    keystore.update(key.key_id(), None, &KeyChange::Label(None)).unwrap();
    log.checkpoint(&keystore, &key).unwrap();
    let report = log.verify(&|id| keystore.public_key(id).ok(), &[]).unwrap();
    assert_eq!((report.entries, report.signed_entries, kinds(&report)), (2, 2, vec![]));
    assert_eq!(log.entries().unwrap()[1].operation.as_str(), "label");
}
