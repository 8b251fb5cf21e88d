//! Checkpoints that witnesses cosigned, and what a verifier says of a log beside one.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use base64ct::{Base64, Encoding as _};
use bulla_kms::audit_log::{
    self, CosignedReport, ProblemKind, WitnessAnswer, WitnessKey, WitnessReport, Witnesses,
};
use bulla_kms::{Code, KeyVersionId, Keystore, Result};
use sha2::{Digest as _, Sha256};

use crate::audit_log::{LogFixture, by_hand, new_key, place};

/// What the clocks of the witnesses show, in seconds.
const NOW: u64 = 1_800_000_000;

type Root = [u8; 32];

/// A witness as C2SP `tlog-witness` describes it, of one log.
struct Witness {
    name: &'static str,
    keystore: Keystore,
    id: KeyVersionId,
    seen: Mutex<(u64, Root)>,
}

impl Witness {
    fn new(name: &'static str) -> Arc<Self> {
        let keystore = Keystore::in_memory().unwrap();
        let id = keystore.create_key(new_key("witness")).unwrap();
        Arc::new(Self { name, keystore, id, seen: Mutex::new((0, [0; 32])) })
    }

    /// Its public key after the kind of its signatures.
    fn kind_and_key(&self) -> Vec<u8> {
        [b"\x04", self.keystore.public_key(&self.id).unwrap().as_bytes()].concat()
    }

    /// The first bytes of its cosignatures: they name the key.
    fn hash(&self) -> Vec<u8> {
        let text = [self.name.as_bytes(), b"\n", &self.kind_and_key()].concat();
        Sha256::digest(text)[..4].to_vec()
    }

    fn key(&self) -> WitnessKey {
        let hash: String = self.hash().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}+{hash}+{}", self.name, Base64::encode_string(&self.kind_and_key())).parse().unwrap()
    }

    /// The answer to `add-checkpoint`.
    fn answer(&self, request: &str) -> WitnessAnswer {
        let answer = |status, body: String| WitnessAnswer { status, body };
        let (proof, note) = request.split_once("\n\n").unwrap();
        let mut proof = proof.lines();
        let old: u64 = proof.next().unwrap().strip_prefix("old ").unwrap().parse().unwrap();
        let proof: Vec<Root> = proof.map(root_of).collect();
        let (head, _) = note.split_once("\n\n").unwrap();
        let lines: Vec<_> = head.lines().collect();
        let new = (lines[1].parse().unwrap(), root_of(lines[2]));
        let mut seen = self.seen.lock().unwrap();
        if old != seen.0 {
            return answer(409, format!("{}\n", seen.0));
        }
        if old > 0 && !extends(*seen, new, &proof) {
            return answer(422, String::new());
        }
        *seen = new;
        let text = format!("cosignature/v1\ntime {NOW}\n{head}\n");
        let signature = self.keystore.sign(&self.id, text.as_bytes()).unwrap().bytes;
        let signature = [&self.hash()[..], &NOW.to_be_bytes(), &signature].concat();
        answer(200, format!("\u{2014} {} {}\n", self.name, Base64::encode_string(&signature)))
    }
}

fn root_of(text: &str) -> Root {
    Base64::decode_vec(text).unwrap().try_into().unwrap()
}

fn node(left: &Root, right: &Root) -> Root {
    Sha256::digest([&[1], &left[..], &right[..]].concat()).into()
}

/// The check of RFC 9162, section 2.1.4.2, word for word.
fn extends((first, first_root): (u64, Root), (second, second_root): (u64, Root), proof: &[Root]) -> bool {
    if first == second {
        return proof.is_empty() && first_root == second_root;
    }
    let mut proof = proof.to_vec();
    if first.is_power_of_two() {
        proof.insert(0, first_root);
    }
    let (mut fnum, mut snum) = (first - 1, second - 1);
    while fnum & 1 == 1 {
        (fnum, snum) = (fnum >> 1, snum >> 1);
    }
    let Some(first) = proof.first() else { return false };
    let (mut fr, mut sr) = (*first, *first);
    for c in &proof[1..] {
        if snum == 0 {
            return false;
        }
        if fnum & 1 == 1 || fnum == snum {
            (fr, sr) = (node(c, &fr), node(c, &sr));
            while fnum & 1 == 0 && fnum != 0 {
                (fnum, snum) = (fnum >> 1, snum >> 1);
            }
        } else {
            sr = node(&sr, c);
        }
        (fnum, snum) = (fnum >> 1, snum >> 1);
    }
    fr == first_root && sr == second_root && snum == 0
}

/// A log of several files, its witness, and what the log's side remembers of it.
struct Watched {
    place: LogFixture,
    witness: Arc<Witness>,
    witnesses: Witnesses,
}

fn watched() -> Watched {
    let place = place(by_hand().max_file_bytes(1000));
    let witness = Witness::new("witness.example.org");
    let witnesses = asking(&witness);
    Watched { place, witness, witnesses }
}

fn asking(witness: &Arc<Witness>) -> Witnesses {
    let asked = Arc::clone(witness);
    Witnesses::new(vec![(witness.key(), Box::new(move |request| Ok(asked.answer(request))))], 1)
}

impl Watched {
    fn witness(&mut self) -> WitnessReport {
        let place = &self.place;
        let witnessed = self.witnesses.witness(&place.log, &place.keystore, place.key.key_id()).unwrap();
        assert!(witnessed.stored && witnessed.failed.is_empty(), "{:?}", witnessed.failed);
        witnessed
    }

    fn verify(&self, required: usize) -> Result<Option<CosignedReport>> {
        let keys = |id: &KeyVersionId| self.place.keystore.public_key(id).ok();
        audit_log::verify_cosigned(self.place.path(), &keys, &[self.witness.key()], required)
    }

    fn kinds(&self, required: usize) -> Vec<ProblemKind> {
        kinds(&self.verify(required).unwrap().unwrap())
    }

    /// The files of the entries, the oldest first, with the number of the first entry of each.
    fn parts(&self) -> Vec<(u64, PathBuf)> {
        let names = self.place.files().into_keys().filter(|name| name.ends_with(".jsonl"));
        names.map(|name| (name[..20].parse().unwrap(), self.place.path().join(name))).collect()
    }
}

fn kinds(cosigned: &CosignedReport) -> Vec<ProblemKind> {
    cosigned.problems.iter().map(|problem| problem.kind).collect()
}

/// A log with 13 entries in several files, of which a witness has seen 9.
fn seen_in_part() -> Watched {
    let mut watched = watched();
    watched.place.sign(8);
    watched.witness();
    watched.place.sign(4);
    assert!(watched.parts().len() > 3);
    watched
}

/// Wherever the entry before the checkpoint, the checkpoint and the next entry are: in one file, or
/// with a new file between two of them.
#[test]
fn every_checkpoint_that_a_witness_cosigned_is_verified_also_when_the_log_has_grown() {
    let mut watched = watched();
    for size in 1..=20 {
        let witnessed = watched.witness();
        assert_eq!(witnessed.checkpoint.size(), size);
        let whole = watched.verify(1).unwrap().unwrap();
        assert_eq!(whole.problems, []);
        assert_eq!(whole.size, size);
        let [(name, time)] = &whole.witnesses[..] else { panic!("{:?}", whole.witnesses) };
        assert_eq!((name.as_str(), time.unix_millis()), ("witness.example.org", NOW * 1000));
        watched.place.sign(1);
        assert_eq!(watched.verify(1).unwrap().unwrap(), whole);
        if size % 7 == 0 {
            // Another process knows nothing of what the witness has seen, and is told by it.
            watched.witnesses = asking(&watched.witness);
        }
    }
    let parts = watched.parts();
    assert!(parts.len() > 4, "{parts:?}");
}

#[test]
fn as_many_witnesses_as_are_required_must_have_cosigned() {
    let watched = seen_in_part();
    assert_eq!(watched.kinds(0), []);
    assert_eq!(watched.kinds(1), []);
    assert_eq!(watched.kinds(2), [ProblemKind::BadSignature]);
    // A witness with the same name and another key did not.
    let other = Witness::new("witness.example.org");
    let keys = |id: &KeyVersionId| watched.place.keystore.public_key(id).ok();
    let found = audit_log::verify_cosigned(watched.place.path(), &keys, &[other.key()], 1).unwrap().unwrap();
    assert_eq!((kinds(&found), found.witnesses), (vec![ProblemKind::BadSignature], vec![]));
}

#[test]
fn a_log_that_no_witness_has_seen_has_a_problem_only_if_one_is_required() {
    let watched = watched();
    assert_eq!(watched.verify(0).unwrap(), None);
    assert_eq!(watched.kinds(1), [ProblemKind::Removed]);
}

#[test]
fn what_is_no_checkpoint_for_witnesses_is_a_problem_and_what_cannot_be_read_an_error() {
    let watched = seen_in_part();
    let path = watched.place.path().join("cosigned");
    let text = fs::read_to_string(&path).unwrap();
    let signatures = text.find("\n\n").unwrap() + 2;
    let wrong = [
        String::new(),
        "no checkpoint".to_owned(),
        text.trim_end().to_owned(),
        text[..signatures].to_owned(),
        text.replacen("=\n\u{2014}", "=\r\n\u{2014}", 1),
        text.replacen("\n9\n", "\n09\n", 1),
        text.clone() + "\n",
    ];
    for wrong in wrong {
        assert_ne!(wrong, text);
        fs::write(&path, &wrong).unwrap();
        assert_eq!(watched.kinds(0), [ProblemKind::Malformed], "{wrong}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(watched.verify(0).unwrap_err().code, Code::Io);
}

#[test]
fn a_log_that_is_not_what_witnesses_saw_is_found() {
    let watched = seen_in_part();
    let parts = watched.parts();
    let texts: Vec<_> = parts.iter().map(|(_, path)| fs::read_to_string(path).unwrap()).collect();
    let in_first = |from: &str, to: &str| {
        let altered = texts[0].replacen(from, to, 1);
        assert_ne!(altered, texts[0]);
        fs::write(&parts[0].1, altered).unwrap();
        let kinds = watched.kinds(1);
        fs::write(&parts[0].1, &texts[0]).unwrap();
        kinds
    };
    assert_eq!(in_first("\"sign\"", "\"sing\""), [ProblemKind::Altered]);
    assert_eq!(in_first("{\"n\":1,", "{\"m\":1,"), [ProblemKind::Truncated]);
    // The entries are the same, but they are said to be those of another log.
    let log = audit_log::read_log_id(watched.place.path()).unwrap().to_string();
    assert_eq!(in_first(&log, &"0".repeat(log.len())), [ProblemKind::Altered]);
    // The newest of the entries that were seen is cut off, with the checkpoint that sealed it.
    let last = parts.iter().rposition(|(first, _)| *first < 9).unwrap();
    let entry = texts[last].find("{\"n\":8,").unwrap();
    fs::write(&parts[last].1, &texts[last][..entry]).unwrap();
    parts[last + 1..].iter().for_each(|(_, path)| fs::remove_file(path).unwrap());
    assert_eq!(watched.kinds(1), [ProblemKind::Truncated, ProblemKind::BadSignature]);
}

/// A line that is not text is never one of the wanted lines.
#[test]
fn bytes_that_are_not_text_are_a_missing_entry_and_no_error() {
    let watched = seen_in_part();
    let (_, path) = watched.parts().into_iter().rfind(|(first, _)| *first < 9).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(7).position(|text| text == b"{\"n\":8,").unwrap();
    bytes[at + 20] = 0xff;
    fs::write(&path, bytes).unwrap();
    assert_eq!(watched.kinds(1), [ProblemKind::Truncated]);
}

#[test]
fn files_that_cannot_be_read_are_an_error_and_no_problem() {
    let watched = seen_in_part();
    let parts = watched.parts();
    // The file after the checkpoint is searched for it, too, and the first one for entries.
    let after = parts.iter().position(|(first, _)| *first >= 9).unwrap();
    for (_, path) in [&parts[after], &parts[0]] {
        let text = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
        assert_eq!(watched.verify(1).unwrap_err().code, Code::Io);
        fs::remove_dir(path).unwrap();
        fs::write(path, text).unwrap();
    }
    assert_eq!(watched.kinds(1), []);
}

/// A checkpoint for witnesses must be signed by the key version that signed the log's own one of as
/// many entries.
#[test]
fn the_key_of_the_logs_own_checkpoint_signs_and_must_be_trusted() {
    let mut watched = seen_in_part();
    watched.place.keystore.rotate(watched.place.key.key_id()).unwrap();
    assert_eq!(watched.kinds(1), [], "it was signed by the older version");
    let trusted = |version: u32| {
        let keys = |id: &KeyVersionId| {
            let key = watched.place.keystore.public_key(id).ok();
            key.filter(|_| id.version() == version)
        };
        let witnesses = [watched.witness.key()];
        kinds(&audit_log::verify_cosigned(watched.place.path(), &keys, &witnesses, 1).unwrap().unwrap())
    };
    assert_eq!(trusted(1), []);
    assert_eq!(trusted(2), [ProblemKind::BadSignature]);
    let keystore = &watched.place.keystore;
    let newest =
        keystore.public_key(&keystore.latest_version_id(watched.place.key.key_id()).unwrap()).unwrap();
    let witnesses = [watched.witness.key()];
    let by_another =
        audit_log::verify_cosigned(watched.place.path(), &|_| Some(newest.clone()), &witnesses, 1);
    assert_eq!(kinds(&by_another.unwrap().unwrap()), [ProblemKind::BadSignature]);
    watched.witness();
    assert_eq!(watched.kinds(1), [], "and this one by the newer");
}
