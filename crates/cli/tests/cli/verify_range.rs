//! A part of a signed file is verified by the file's tree of hashes, and nothing else of it is
//! read.

use crate::support::{Done, Home, content};
use bulla_blake3::bao::GroupSize;
use bulla_blake3::bao::encode::outboard_with_group_size;
use std::fs;

const MIB: usize = 1 << 20;

/// A signed file of 4 MiB and some bytes, and its tree.
fn signed() -> (Home, Vec<u8>) {
    let home = Home::new();
    let content = content(1, 4 * MIB + 12_345);
    home.write("disk", &content);
    home.run(["sign", "disk"]).exits(0);
    let done = home.run(["sum", "disk", "--outboard", "disk.obao"]).exits(0);
    assert_eq!(done.stdout, format!("{}  disk\n", blake3::hash(&content).to_hex()));
    (home, content)
}

/// Changes one byte of a file in place.
fn damage(home: &Home, name: &str, at: usize) {
    let mut bytes = home.read(name);
    bytes[at] ^= 1;
    home.write(name, bytes);
}

#[test]
fn the_tree_is_the_outboard_encoding_with_groups_of_16_kib() {
    let (home, content) = signed();
    let group = GroupSize::from_chunk_log(4).unwrap();
    assert_eq!(home.read("disk.obao"), outboard_with_group_size(&content, group).0);
    // A stream, and files of few bytes.
    for len in [0, 1, 1024, 16384, 16385] {
        let mut command = home.command();
        command.args(["sum", "--no-names", "--outboard", "tree", "-"]);
        let done = Done::with_input(&mut command, &content[..len]).exits(0);
        assert_eq!(done.stdout.trim(), blake3::hash(&content[..len]).to_hex().as_str());
        assert_eq!(home.read("tree"), outboard_with_group_size(&content[..len], group).0);
    }
}

#[test]
fn a_part_is_verified_and_the_rest_does_not_count() {
    let (home, content) = signed();
    for (range, shown) in [
        ("0..1", "bytes 0..1,".to_owned()),
        ("1M..2M", format!("bytes {MIB}..{},", 2 * MIB)),
        ("4M..", format!("bytes {}..{},", 4 * MIB, content.len())),
        ("..", format!("bytes 0..{},", content.len())),
    ] {
        home.run(["verify", "disk", "--range", range]).exits(0).says("disk: OK").says(&shown);
    }
    damage(&home, "disk", 2 * MIB + 5);
    home.run(["verify", "disk"]).exits(1).says("disk: changed");
    for range in ["..2M", "2112K..", "0..4K"] {
        home.run(["verify", "disk", "--range", range]).exits(0);
    }
    let done = home.run(["verify", "disk", "--range", "1M..3M"]).exits(1);
    done.says(&format!("disk: changed (what follows byte {} is not what was signed", 2 * MIB));
    let done = home.run(["verify", "disk", "--json", "--range", "0..1K"]).exits(0);
    assert_eq!(done.json()[0]["range"], serde_json::json!([0, 1024]));
    // A file of another length is not the signed one, whatever is in it.
    fs::File::options().write(true).open(home.path("disk")).unwrap().set_len(4 * MIB as u64).unwrap();
    home.run(["verify", "disk", "--range", "0..1K"]).exits(1).says("disk: changed (it has 4194304 bytes now");
}

#[test]
fn a_wrong_tree_verifies_nothing() {
    let (home, content) = signed();
    let tree = home.read("disk.obao");
    // The parents that lead to the first byte.
    for at in [8, 40, 72] {
        damage(&home, "disk.obao", at);
        let done = home.run(["verify", "disk", "--range", "0..1"]);
        assert!(matches!(done.code, Some(1 | 2)), "{at}: {} {}", done.stdout, done.stderr);
        home.write("disk.obao", &tree);
    }
    home.write("other", &content[1..]);
    home.run(["sum", "other", "--outboard", "other.obao"]).exits(0);
    let other = ["verify", "disk", "--range", "1M..2M", "--outboard", "other.obao"];
    home.run(other).exits(1).says("or other.obao is not its tree");
    home.write("cut", &tree[..100]);
    let cut = ["verify", "disk", "--range", "1M..2M", "--outboard", "cut"];
    home.run(cut).exits(2).complains("cut: ends too early");
    fs::remove_file(home.path("disk.obao")).unwrap();
    home.run(["verify", "disk", "--range", "0..1"])
        .exits(2)
        .complains("there is no tree of its hashes disk.obao");
}

#[test]
fn a_signature_is_verified_before_a_range() {
    let (home, _) = signed();
    let mut signature = String::from_utf8(home.read("disk.bulla")).unwrap();
    signature = signature.replace("size: 4", "size: 5");
    home.write("disk.bulla", signature);
    let done = home.run(["verify", "disk", "--range", "0..1"]).exits(1);
    assert!(done.stdout.contains("bad signature"), "{}", done.stdout);
}

#[test]
fn a_part_of_a_file_in_a_signed_folder_is_verified() {
    let home = Home::new();
    home.write("tree/sub/disk", content(1, 2 * MIB));
    home.write("tree/a", "a");
    home.run(["sign", "tree"]).exits(0);
    home.run(["sum", "tree/sub/disk", "--outboard", "disk.obao"]).exits(0);
    home.write("tree/a", "changed");
    damage(&home, "tree/sub/disk", MIB);
    let verify = |path, range| {
        home.run(["verify", "tree", "--only", path, "--range", range, "--outboard", "disk.obao"])
    };
    verify("sub/disk", "0..1M").exits(0).says("tree: OK (bytes 0..1048576, signed");
    verify("sub/disk", "0..1025K").exits(1).says("changed (what follows byte 1048576 ");
    verify("sub/other", "0..1").exits(2).complains("no file of this name was signed");
    home.run(["verify", "tree", "--range", "0..1"]).exits(2).complains("this is a signed folder");
}

#[test]
fn ranges_that_mean_nothing_are_refused() {
    let (home, _) = signed();
    for range in ["5", "2..1", "1..1", "a..b", "1M..5M", "5M.."] {
        home.run(["verify", "disk", "--range", range]).exits(2);
    }
    home.run(["verify", "disk", "--outboard", "disk.obao"]).exits(2);
    home.run(["verify", "disk", "disk", "--range", "0..1"]).exits(2).complains("only one PATH");
    home.run(["verify", "-", "--signature", "disk.bulla", "--range", "0..1"]).exits(2);
    home.run(["verify", "disk", "--format", "minisign", "--range", "0..1"]).exits(2).complains("minisign");
    home.run(["sum", "disk", "disk", "--outboard", "tree"]).exits(2).complains("only one FILE");
    home.run(["sum", "disk", "--keyed", "--outboard", "tree"]).exits(2);
    home.run(["sum", "missing", "--outboard", "tree"]).exits(1).complains("missing: cannot read");
    assert!(!home.path("tree").exists());
    // Only a tree is replaced.
    for other in ["disk", "disk.bulla"] {
        let before = home.read(other);
        home.run(["sum", "disk", "--outboard", other]).exits(1).complains("is not a tree of hashes");
        assert_eq!(home.read(other), before);
    }
    home.run(["sum", "disk.bulla", "--outboard", "disk.obao"]).exits(0);
    assert_eq!(home.read("disk.obao").len(), 8);
}
