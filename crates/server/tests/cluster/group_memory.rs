//! What nodes that have a key together have in memory and on disks: their own shares, and nothing
//! of the whole key or of the others' shares.

use crate::group::{Group, KEY};
use crate::node::Node;
use base64_simd::{STANDARD, URL_SAFE_NO_PAD};
use bulla_kms::encrypted_file::decrypt;
use bulla_kms::encryption::KeyFileProvider;
use bulla_threshold::{KeyShare, reconstruct};
use memchr::memmem;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// How much is read at once. The reads overlap, so that nothing hides between two.
const CHUNK_LEN: usize = 4 << 20;
const OVERLAP: usize = 64;

/// The forms in which a program could have a number of 32 bytes: its first half is enough.
struct Forms(Vec<memmem::Finder<'static>>);

impl Forms {
    fn of(little_endian: &[u8; 32]) -> Self {
        let mut big_endian = *little_endian;
        big_endian.reverse();
        let mut forms = Vec::new();
        for bytes in [little_endian, &big_endian] {
            forms.push(bytes[..16].to_vec());
            forms
                .extend([hex::encode(&bytes[..16]), hex::encode_upper(&bytes[..16])].map(String::into_bytes));
            // In a longer text, with any number of bytes before it.
            for before in 0..3 {
                let text = [&[0; 2][..before], &bytes[..15 + (3 - before) % 3]].concat();
                let own = (8 * before).div_ceil(6);
                forms.extend(
                    [STANDARD.encode_to_string(&text), URL_SAFE_NO_PAD.encode_to_string(&text)]
                        .map(|text| text.as_bytes()[own..].to_vec()),
                );
            }
        }
        forms.sort_unstable();
        forms.dedup();
        Self(forms.iter().map(|form| memmem::Finder::new(form).into_owned()).collect())
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|form| form.find(bytes).is_some())
    }
}

/// Shows all memory of a process that it could have a secret in, piece by piece.
fn each_piece_of_memory(process: u32, mut show: impl FnMut(&[u8])) {
    let memory = File::open(format!("/proc/{process}/mem")).expect("the process is ours");
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).expect("the process is ours");
    let mut buffer = vec![0; CHUNK_LEN];
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (range, rights) = (words.next().expect("a range"), words.next().expect("rights"));
        let file = words.nth(3).unwrap_or_default();
        // What a file has, and nobody can write, is no secret. Pages of the system cannot be read.
        if !rights.starts_with('r') || file == "[vvar]" || (file.starts_with('/') && !rights.contains('w')) {
            continue;
        }
        let (start, end) = range.split_once('-').expect("two addresses");
        let address = |text| u64::from_str_radix(text, 16).expect("an address");
        let (mut at, end) = (address(start), address(end));
        while at < end {
            let length = CHUNK_LEN.min((end - at) as usize);
            // The map may have changed meanwhile.
            let read = memory.read_at(&mut buffer[..length], at).unwrap_or(0);
            show(&buffer[..read]);
            if read < length || at + length as u64 == end {
                break;
            }
            at += (length - OVERLAP) as u64;
        }
    }
}

fn each_file(folder: &Path, show: &mut impl FnMut(&[u8])) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            each_file(&entry.path(), show);
        } else if kind.is_file() {
            // Programs that run remove files.
            show(&fs::read(entry.path()).unwrap_or_default());
        }
    }
}

/// Which of the numbers are in a node's memory.
fn in_memory<const N: usize>(node: &Node, forms: &[Forms; N]) -> [bool; N] {
    let mut found = [false; N];
    each_piece_of_memory(node.process_id(), |piece| {
        for (found, forms) in found.iter_mut().zip(forms) {
            *found = *found || forms.is_in(piece);
        }
    });
    found
}

fn share_files(node: &Node) -> Vec<PathBuf> {
    let entries = fs::read_dir(node.folder().join("group")).expect("a folder");
    let files = entries.map(|entry| entry.expect("an entry").path());
    files.filter(|file| file.extension().is_some_and(|end| end == "share")).collect()
}

/// A node's share, as somebody reads it who has the node's folder.
fn share(node: &Node) -> KeyShare {
    let [file] = <[_; 1]>::try_from(share_files(node)).expect("there is one key");
    let key = KeyFileProvider::new(&node.folder().join("group").join("node.key"));
    let context =
        format!("bulla group v1 file\0{}", file.file_name().and_then(|name| name.to_str()).unwrap());
    let bytes =
        decrypt(&fs::read(&file).expect("a share"), &[&key], context.as_bytes()).expect("its key file");
    KeyShare::from_secret_bytes(&bytes).expect("a share")
}

/// The share's number: what the node signs with.
fn scalar(share: &KeyShare) -> [u8; 32] {
    let content: Value = serde_json::from_slice(&share.to_secret_bytes()).expect("JSON");
    let text = content["key"]["signing_share"].as_str().expect("a number");
    hex::decode(text).expect("in hexadecimal").try_into().expect("32 bytes")
}

#[test]
fn no_node_has_the_key_or_the_share_of_another_one_in_memory_or_on_a_disk() {
    let mut group = Group::start();
    let change = |group: &Group, node: usize, what: &str| {
        let path = format!("/api/v1/keys/{KEY}/{what}");
        let changed = group.node(node).client().post(&path, &json!({}));
        assert!(changed.as_ref().is_ok_and(|answer| answer.is_ok()), "{changed:?}");
    };
    let numbers = |group: &Group| [0, 1, 2].map(|node| scalar(&share(group.node(node))));
    let before = numbers(&group);
    change(&group, 0, "refresh-shares");
    for node in 0..3 {
        group.sign(node, "eA==");
    }
    // One loses its share, and the others give it back.
    group.stop_node(1);
    share_files(group.node(1)).iter().for_each(|file| fs::remove_file(file).expect("it was there"));
    group.start_node(1);
    change(&group, 1, "repair-shares");
    for node in 0..3 {
        group.sign(node, "eA==");
    }

    let shares = [0, 1, 2].map(|node| share(group.node(node)));
    let key = reconstruct(&[&shares[0], &shares[1]]).expect("two are enough");
    assert_eq!(reconstruct(&[&shares[1], &shares[2]]).expect("two are enough"), key);
    let now = numbers(&group);
    assert!((0..3).all(|node| now[node] != before[node]));
    let public_key: [u8; 32] = shares[0].public_key().as_bytes().try_into().expect("32 bytes");

    let forms =
        [&public_key, &key, &now[0], &now[1], &now[2], &before[0], &before[1], &before[2]].map(Forms::of);
    for node in 0..3 {
        let [public, key, found @ ..] = in_memory(group.node(node), &forms);
        let (now, before) = found.split_at(3);
        assert!(public && now[node], "the search finds what is there, the node's own share");
        assert!(!key, "node{node} has the key");
        for other in (0..3).filter(|other| *other != node) {
            assert!(!now[other] && !before[other], "node{node} has the share of node{other}");
        }
    }
    let settings = memmem::Finder::new("bulla/tests");
    let folders = [0, 1, 2].map(|node| group.node(node).folder().to_owned());
    for folder in folders.iter().map(PathBuf::as_path).chain([group.etcd_folder()]) {
        let mut is_read = false;
        each_file(folder, &mut |bytes| {
            is_read |= settings.find(bytes).is_some();
            assert!(!forms[1..].iter().any(|forms| forms.is_in(bytes)), "{}", folder.display());
        });
        assert!(is_read, "the search finds what is there");
    }
}
