//! Folders that stay signed: signing again, verifying a part, duplicates, damage.

use crate::support::{Home, content};
use std::fs;
use std::os::unix::fs::symlink;

/// A folder whose files were written long enough ago that their times can be trusted.
fn signed(home: &Home) {
    for index in 0..300 {
        home.write(format!("tree/{:02}/{index:03}", index / 20), content(index, (index * 37) as usize));
    }
    home.write("tree/large", content(1000, 5 << 20));
    symlink("large", home.path("tree/link")).unwrap();
    home.wait_until_settled("tree/large");
    home.run(["sign", "tree"]).exits(0).says("tree: signed, wrote tree.bulla\n");
}

fn reading(home: &Home, args: &[&str]) -> (String, u64, u64) {
    let json = home.run(["sign", "--json", "tree"].iter().chain(args)).exits(0).json().remove(0);
    let number = |name: &str| json[name].as_u64().expect("a number");
    (json["mode"].as_str().expect("a mode").to_owned(), number("read"), number("kept"))
}

#[test]
fn signing_again_reads_only_what_changed_and_says_so() {
    let home = Home::new();
    signed(&home);
    assert_eq!(reading(&home, &[]), ("quick".into(), 0, 301));
    home.write("tree/03/061", "changed");
    home.write("tree/new", "new");
    fs::remove_file(home.path("tree/04/080")).unwrap();
    assert_eq!(reading(&home, &[]), ("quick".into(), 2, 299));
    home.run(["verify", "tree"]).exits(0).says("tree: OK (302 files");
    assert_eq!(reading(&home, &["--full"]), ("full".into(), 301, 0));
    home.run(["sign", "tree"]).exits(0).says("new or changed files; ").says("--full reads them too)");
    home.run(["verify", "tree"]).exits(0);
}

#[test]
fn signing_and_verifying_have_one_progress_and_as_many_threads_as_one_wants() {
    let home = Home::new();
    signed(&home);
    home.write("other/file", content(1, 1000));
    home.write("file", content(1, 1000));
    for threads in ["1", "2", "7"] {
        let work = ["--idle", "--jobs", threads, "--progress", "json"];
        let last = |command: &[&str]| {
            let done = home.run(command.iter().chain(&work)).exits(0);
            let lines: Vec<serde_json::Value> =
                done.stderr.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
            assert_eq!(lines.iter().filter(|line| line["progress"]["done"] == true).count(), 1);
            lines.last().expect("a line at the end")["progress"].clone()
        };
        let size = (0..300).map(|index| index * 37).sum::<u64>() + (5 << 20);
        let progress = last(&["sign", "--full", "tree"]);
        assert_eq!([&progress["bytes"], &progress["files"]], [size, 301]);
        let progress = last(&["verify", "tree"]);
        assert_eq!(
            [&progress["bytes"], &progress["total_bytes"], &progress["files"], &progress["total_files"]],
            [size, size, 301, 301]
        );
        let progress = last(&["sign", "--full", "tree", "other", "file"]);
        assert_eq!([&progress["bytes"], &progress["files"]], [size + 2000, 303]);
        let progress = last(&["verify", "tree", "other"]);
        assert_eq!(
            (&progress["bytes"], &progress["total_bytes"]),
            (&(size + 1000).into(), &serde_json::Value::Null)
        );
    }
}

#[test]
fn a_file_with_its_old_size_and_time_but_other_identity_is_read() {
    let home = Home::new();
    signed(&home);
    let path = home.path("tree/05/100");
    let modified = path.metadata().unwrap().modified().unwrap();
    // Another file of the same size takes its place, and pretends to be as old.
    home.write("other", vec![0; path.metadata().unwrap().len() as usize]);
    fs::File::options().write(true).open(home.path("other")).unwrap().set_modified(modified).unwrap();
    fs::rename(home.path("other"), &path).unwrap();
    assert_eq!(reading(&home, &[]), ("quick".into(), 1, 300));
    home.run(["verify", "tree"]).exits(0);
    // So is one that was written in place and had its time put back: nobody can put the time of
    // change back.
    fs::write(&path, vec![1; path.metadata().unwrap().len() as usize]).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert_eq!(reading(&home, &[]).1, 1);
    home.run(["verify", "tree"]).exits(0);
}

#[test]
fn verifying_a_signed_folder_again_reads_what_changed_if_one_wants() {
    let home = Home::new();
    signed(&home);
    let verify = ["verify", "tree", "--quick"];
    home.run(verify).exits(0).says("tree: OK (302 files, 301 not read, signed");
    home.run(["verify", "tree"]).exits(0).says("tree: OK (302 files, signed");
    let path = home.path("tree/05/100");
    let modified = path.metadata().unwrap().modified().unwrap();
    fs::write(&path, vec![1; path.metadata().unwrap().len() as usize]).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    home.run(verify).exits(1).says("tree/05/100: changed (same size, different content)");
    // Without stamps, all is read.
    fs::remove_dir_all(home.path("../home/.cache/bulla/stamps")).unwrap();
    let report = home.run(["verify", "tree", "--quick", "--json"]).exits(1).json().remove(0);
    assert_eq!((report.get("kept"), &report["intact"]), (None, &301.into()));
}

#[test]
fn a_list_that_the_user_did_not_sign_is_not_believed() {
    let home = Home::new();
    signed(&home);
    // Somebody else's signature of the same list.
    let other = Home::new();
    other.write("x", "x");
    other.run(["sign", "x"]).exits(0);
    let text = String::from_utf8(home.read("tree.bulla")).unwrap();
    let forged = text.replacen("comment:", "comment: forged", 1);
    home.write("tree.bulla", forged);
    assert_eq!(reading(&home, &[]).0, "full");
    // A revoked version's signature counts no more.
    home.run(["keys", "rotate"]).exits(0);
    assert_eq!(reading(&home, &[]).0, "quick");
}

#[test]
fn stamps_that_are_lost_damaged_or_of_another_list_are_ignored() {
    let home = Home::new();
    signed(&home);
    let folder = home.path("../home/.cache/bulla/stamps");
    let stamps = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let good = fs::read(&stamps).unwrap();
    for bad in [&good[..good.len() - 1], b"", &[&good[..100], &[good[100] ^ 1], &good[101..]].concat()[..]] {
        fs::write(&stamps, bad).unwrap();
        assert_eq!(reading(&home, &[]).0, "full");
    }
    assert_eq!(reading(&home, &[]).0, "quick");
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(reading(&home, &[]).0, "full");
    home.run(["verify", "tree"]).exits(0);
}

#[test]
fn a_part_of_a_signed_folder_is_verified_without_the_rest() {
    let home = Home::new();
    signed(&home);
    // The rest could not be verified.
    home.write("tree/large", "changed");
    home.write("tree/07/new", "unexpected");
    home.run(["verify", "tree"]).exits(1);
    let only = |parts: &[&str]| {
        let args = parts.iter().flat_map(|part| ["--only", part]);
        home.run(["verify", "tree"].into_iter().chain(args))
    };
    only(&["05/100"]).exits(0).says("tree: OK (1 file, signed ");
    only(&["./05/", "06", "05/100", "link"]).exits(0).says("tree: OK (41 files, signed ");
    only(&["07"]).exits(1).says("tree/07/new: unexpected");
    only(&["large"]).exits(1).says("tree/large: changed (it has 7 bytes now");
    fs::remove_file(home.path("tree/05/101")).unwrap();
    only(&["05"]).exits(1).says("tree/05/101: missing").says("1 missing, 0 unexpected, 19 unchanged");
    only(&["05/101"]).exits(1).says("tree/05/101: missing");
    only(&["nothing"]).exits(2).complains("nothing was signed with a path of --only");
    only(&["../tree"]).exits(2).complains("--only");
    only(&["/etc"]).exits(2).complains("--only");
    // A link in the place of a folder is not followed.
    fs::rename(home.path("tree/08"), home.path("elsewhere")).unwrap();
    symlink("../elsewhere", home.path("tree/08")).unwrap();
    only(&["08"]).exits(1);
    only(&["08/160"]).exits(2).complains("tree/08: is a link now");
    home.run(["verify", "tree", "--only", "a", "--format", "minisign"]).exits(2).complains("--only");
}

#[test]
fn files_with_the_same_content_are_listed() {
    let home = Home::new();
    for (name, text) in [("a", "same"), ("sub/b", "same"), ("c", "other"), ("d", "pair!"), ("e", "pair!")] {
        home.write(format!("tree/{name}"), text);
    }
    home.write("tree/empty1", "");
    home.write("tree/empty2", "");
    home.run(["sign", "tree"]).exits(0);
    let done = home.run(["verify", "--duplicates", "tree"]).exits(0);
    let groups = "tree: 2 files with the same 5 bytes:\n  tree/d\n  tree/e\n\
        tree: 2 files with the same 4 bytes:\n  tree/a\n  tree/sub/b\n";
    assert!(done.stdout.starts_with(groups), "{}", done.stdout);
    let json = home.run(["verify", "--duplicates", "--json", "tree"]).exits(0).json();
    assert_eq!(json[0]["duplicates"][1]["files"][1]["path"], "sub/b");
    assert_eq!(json[0]["duplicates"].as_array().unwrap().len(), 2);
}

/// Gives the stamp of a file in `tree` the times that it has now, as if nobody had written to it
/// since the folder was signed. A disk that damages a file leaves this state; no program can.
fn forget_that_it_was_written(home: &Home, name: &str) {
    use std::os::unix::fs::MetadataExt as _;
    let folder = home.path("../home/.cache/bulla/stamps");
    let path = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let signature = String::from_utf8(home.read("tree.bulla")).unwrap();
    let (_, list) = signature.split_once("\n\n").unwrap();
    let place = list.lines().position(|line| line.ends_with(&format!("  {name}"))).unwrap();
    let mut stamps = fs::read(&path).unwrap();
    stamps.truncate(stamps.len() - 32);
    let file = home.path(format!("tree/{name}")).metadata().unwrap();
    let time = |seconds: i64, nanoseconds: i64| (seconds * 1_000_000_000 + nanoseconds) as u64;
    let changed = time(file.ctime(), file.ctime_nsec());
    let numbers = [file.dev(), file.ino(), time(file.mtime(), file.mtime_nsec()), changed];
    let record: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    // A line of text, and the digest of the list.
    let start = 16 + 32 + 32 * place;
    stamps[start..start + 32].copy_from_slice(&record);
    let check = blake3::hash(&stamps);
    stamps.extend_from_slice(check.as_bytes());
    fs::write(&path, stamps).unwrap();
}

#[test]
fn damage_is_told_from_change() {
    let home = Home::new();
    signed(&home);
    let path = home.path("tree/05/100");
    let good = fs::read(&path).unwrap();
    let mut rotten = good.clone();
    rotten[10] ^= 1;
    fs::write(&path, &rotten).unwrap();
    home.wait_until_settled("tree/large");
    home.run(["verify", "tree"]).exits(1).says("tree/05/100: changed (same size, different content)");
    forget_that_it_was_written(&home, "05/100");
    let damaged = "tree/05/100: changed (same size and times, different content: it is damaged, no program wrote to it)";
    home.run(["verify", "tree"]).exits(1).says(damaged);
    // Signing again keeps the digest of the good content.
    assert_eq!(reading(&home, &[]), ("quick".into(), 0, 301));
    home.run(["verify", "tree"]).exits(1).says(damaged);
    // With every file read, it refuses to sign what nobody wrote.
    home.run(["sign", "--full", "tree"])
        .exits(2)
        .complains("not signed: 1 file is damaged")
        .complains("tree/05/100")
        .complains("restore it from a copy");
    fs::write(&path, &good).unwrap();
    home.run(["sign", "--full", "tree"]).exits(0);
    home.run(["verify", "tree"]).exits(0);
}

#[test]
fn a_part_of_a_folder_is_not_what_only_begins_with_its_name() {
    let home = Home::new();
    for name in ["a/x", "ab", "a.b", "abc/x"] {
        home.write(format!("tree/{name}"), name);
    }
    home.run(["sign", "tree"]).exits(0);
    fs::remove_file(home.path("tree/ab")).unwrap();
    fs::remove_dir_all(home.path("tree/abc")).unwrap();
    home.run(["verify", "--only", "a", "tree"]).exits(0).says("tree: OK (1 file, ");
    home.run(["verify", "--only", "ab", "tree"]).exits(1).says("1 missing");
}
