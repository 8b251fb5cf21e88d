//! `--format dsse`, `sigstore` and `oms` without the real programs: flags, names and hostile files.
//! `tests/peers` has the real programs.

use crate::support::{Done, Home};

const TYPE: [&str; 4] = ["--predicate", "predicate.json", "--predicate-type", "https://example.org/x/v1"];

/// A home with a keystore, a file and a predicate.
fn home() -> Home {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.write("predicate.json", "{\"passed\": true}\n");
    home.write("app-1.0", "content");
    home
}

fn sign(home: &Home, path: &str, format: &str, more: &[&str]) -> Done {
    home.run(["sign", path, "--format", format].iter().chain(more))
}

#[test]
fn a_statement_covers_the_names_of_its_files() {
    let home = home();
    home.write("dist/a", "a");
    home.write("dist/b/c", "c");
    sign(&home, "app-1.0", "dsse", &TYPE).exits(0).says("wrote app-1.0.intoto.jsonl");
    let found = home.run(["verify", "app-1.0", "--json"]).exits(0).json();
    assert_eq!((&found[0]["format"], &found[0]["predicate_type"]), (&"dsse".into(), &TYPE[3].into()));
    home.write("app-2.0", "content");
    let other = ["verify", "app-2.0", "--signature", "app-1.0.intoto.jsonl"];
    home.run(other).exits(1).says("app-2.0: wrong name (it was signed under the name app-1.0)");
    home.write("app-2.0", "other");
    home.run(other).exits(1).says("app-2.0: unexpected");
    // A name that is not UTF-8 is another name.
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt as _;
        let name = std::ffi::OsStr::from_bytes(b"app-\xff");
        std::fs::copy(home.path("app-1.0"), home.path(name)).unwrap();
        let mut verify = home.command();
        verify.arg("verify").arg(name).args(["--signature", "app-1.0.intoto.jsonl"]);
        Done::of(&mut verify).exits(1).says("wrong name (it was signed under the name app-1.0)");
        Done::of(verify.arg("--any-name")).exits(0);
    }
    let input = ["verify", "-", "--signature", "app-1.0.intoto.jsonl"];
    Done::with_input(home.command().args(input), b"content").exits(0);
    Done::with_input(home.command().args(input), b"other").exits(1).says("changed");

    sign(&home, "dist", "dsse", &TYPE).exits(0);
    home.run(["verify", "dist"]).exits(0).says("dist: OK (2 files, dsse signature by default v1");
    home.write("dist/a", "A");
    home.write("dist/new", "");
    std::fs::remove_file(home.path("dist/b/c")).unwrap();
    let done = home.run(["verify", "dist"]).exits(1);
    for line in ["dist/a: changed", "dist/b/c: missing", "dist/new: unexpected"] {
        assert!(done.stdout.contains(line), "{line}: {}", done.stdout);
    }
    // A list of checksums can have such a signature.
    home.write("SUMS", home.run(["sum", "app-1.0"]).exits(0).stdout);
    sign(&home, "SUMS", "dsse", &TYPE).exits(0);
    let check = ["check", "SUMS", "--signature", "SUMS.intoto.jsonl"];
    home.run(check).exits(0);
    home.write("SUMS-2", home.read("SUMS"));
    let renamed = ["check", "SUMS-2", "--signature", "SUMS.intoto.jsonl"];
    home.run(renamed).exits(1).says("SUMS-2: wrong name (it was signed under the name SUMS)");
    home.run(renamed.iter().chain(&["--any-name"])).exits(0);
    home.write("SUMS", "");
    home.run(check).exits(1);
}

#[test]
fn a_model_of_one_file_has_the_name_that_was_signed() {
    let home = home();
    home.run(["keys", "create", "models", "--algorithm", "ecdsa-p256"]).exits(0);
    sign(&home, "app-1.0", "oms", &["--key", "models"]).exits(0);
    home.run(["verify", "app-1.0"]).exits(0);
    home.write("app-2.0", "content");
    let renamed = ["verify", "app-2.0", "--signature", "app-1.0.sig"];
    home.run(renamed).exits(1).says("app-2.0: wrong name (it was signed under the name app-1.0)");
    home.run(renamed.iter().chain(&["--any-name"])).exits(0).says("app-2.0: OK");
    home.write("app-2.0", "changed");
    home.run(renamed).exits(1).says("app-2.0: changed");
}

#[test]
fn what_cannot_be_listed_hides_no_damage() {
    use std::os::unix::ffi::OsStrExt as _;
    let home = home();
    home.run(["keys", "create", "models", "--algorithm", "ecdsa-p256"]).exits(0);
    let flags = ["--key", "models", "--follow-links"];
    home.write("model/a", "content");
    sign(&home, "model", "oms", &flags).exits(0);
    home.write("model/a", "changed");
    let link = home.path("model/link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    let done = home.run(["verify", "model"]).exits(1).says("model/link: unexpected (it is a link)");
    done.says("model/a: changed");
    sign(&home, "model", "oms", &flags).exits(2).complains("model/link: is a link, and this format lists");
    std::fs::remove_file(link).unwrap();
    // Not every file system has such names.
    if std::fs::write(home.path("model").join(std::ffi::OsStr::from_bytes(b"b\xff")), "").is_ok() {
        let done = home.run(["verify", "model"]).exits(1).says("(it is a name that is not UTF-8)");
        done.says("model/a: changed");
        sign(&home, "model", "oms", &flags).exits(2).complains("is a name that is not UTF-8");
        home.run(["verify", "model", "--exclude", "b*"]).exits(1).says("model/a: changed");
    }
}

#[test]
fn a_file_that_grew_without_bound_is_changed_and_takes_no_memory() {
    let home = home();
    home.run(["keys", "create", "models", "--algorithm", "ecdsa-p256"]).exits(0);
    home.write("model/a", "content");
    let shards = ["--key", "models", "--shard-size", "16"];
    sign(&home, "model", "oms", &shards).exits(0);
    home.run(["verify", "model"]).exits(0);
    let grow = |name: &str| {
        let file = std::fs::File::options().write(true).create(true).truncate(false).open(home.path(name));
        file.unwrap().set_len(1 << 43).unwrap();
    };
    grow("model/b");
    home.run(["verify", "model"]).exits(1).says("model/b: unexpected");
    std::fs::remove_file(home.path("model/b")).unwrap();
    grow("model/a");
    home.run(["verify", "model"]).exits(1).says("model/a: changed");
    sign(&home, "model", "oms", &shards).exits(2).complains("too many files or shards");
}

#[test]
fn flags_that_do_not_belong_together_are_refused() {
    let home = home();
    sign(&home, "app-1.0", "dsse", &[]).exits(2).complains("--format dsse needs --predicate FILE");
    sign(&home, "app-1.0", "dsse", &TYPE[..2]).exits(2).complains("belong together");
    sign(&home, "app-1.0", "minisign", &TYPE).exits(2).complains("--predicate works only with");
    sign(&home, "app-1.0", "sigstore", &["--shard-size", "1M"]).exits(2).complains("only with --format oms");
    sign(&home, "app-1.0", "oms", &[]).exits(2).complains("models have only ECDSA signatures");
    sign(&home, "app-1.0", "oms", &["--exclude", "*.tmp"]).exits(2).complains("not a pattern");
    sign(&home, "-", "dsse", &TYPE).exits(2).complains("standard input has none");
    let bad = ["--predicate", "predicate.json", "--predicate-type", "passed"];
    sign(&home, "app-1.0", "dsse", &bad).exits(2).complains("is not a URI");
    for predicate in ["[]", "{}", "{", "{\"a\":1,\"a\":2}"] {
        home.write("predicate.json", predicate);
        sign(&home, "app-1.0", "dsse", &TYPE).exits(2).complains("predicate.json: the predicate is");
    }
    assert!(!home.path("app-1.0.intoto.jsonl").exists());
    home.write("app-1.0.sigstore.json", "{\"my\": \"file\"}");
    sign(&home, "app-1.0", "sigstore", &[]).exits(2).complains("does not overwrite it");
    // Its signature would be one of a statement of in-toto.
    home.write("app-1.0", "DSSEv1 28 application/vnd.in-toto+json 2 {}");
    std::fs::remove_file(home.path("app-1.0.sigstore.json")).unwrap();
    sign(&home, "app-1.0", "sigstore", &[]).exits(2).complains("begins like the messages");
}

#[test]
fn hostile_files_are_malformed_and_nothing_else() {
    let home = home();
    sign(&home, "app-1.0", "dsse", &TYPE).exits(0);
    let whole = String::from_utf8(home.read("app-1.0.intoto.jsonl")).unwrap();
    let member = "\"payloadType\":\"application/vnd.in-toto+json\"";
    let nested = format!("{{{member},\"payload\":{}", "[".repeat(1 << 20));
    let huge = format!("{{{member},\"x\":\"{}\"}}", "x".repeat(65 << 20));
    let twice = whole.replacen(member, &format!("{member},{member}"), 1);
    let second = format!("{whole}{whole}");
    for text in [&nested, &huge, &twice, &second, &whole[..whole.len() / 2]] {
        home.write("app-1.0.intoto.jsonl", text);
        home.run(["verify", "app-1.0"]).exits(1).says("app-1.0: malformed signature");
    }
    home.write("app-1.0.intoto.jsonl", whole.replacen("vnd.in-toto+json", "vnd.in-toto+jsom", 1));
    home.run(["verify", "app-1.0"]).exits(1).says("app-1.0: unknown key");
    home.write("app-1.0.intoto.jsonl", &whole);
    home.run(["verify", "app-1.0", "--format", "ssh", "-s", "app-1.0.intoto.jsonl"])
        .exits(1)
        .says("--format wants one of ssh");
    home.run(["verify", "app-1.0", "--only", "a"]).exits(2).complains("--only works only for");
    home.run(["keys", "rotate", "default"]).exits(0);
    home.run(["keys", "revoke", "default", "1"]).exits(0);
    home.run(["verify", "app-1.0"]).exits(1).says("which was revoked");
}

/// What `verify --quick` says of a model: its exit status, and how many files it did not read.
fn quick(home: &Home) -> (Option<i32>, u64) {
    let done = home.run(["verify", "model", "--quick", "--json"]);
    (done.code, done.json()[0]["kept"].as_u64().unwrap_or(0))
}

/// A signed model with four files that were written long enough ago that their times can be
/// trusted.
fn model(more: &[&str]) -> Home {
    let home = home();
    home.run(["keys", "create", "models", "--algorithm", "ecdsa-p256"]).exits(0);
    for name in ["config.json", "weights/1", "weights/2", "weights/3"] {
        home.write(format!("model/{name}"), name.repeat(1000));
    }
    home.wait_until_settled("model/weights/3");
    let flags = [&["--key", "models"], more].concat();
    sign(&home, "model", "oms", &flags).exits(0);
    home
}

#[test]
fn a_model_is_verified_again_by_reading_what_changed() {
    for shards in [&[][..], &["--shard-size", "1024"]] {
        let home = model(shards);
        assert_eq!(quick(&home), (Some(0), 0), "nothing is known before all was read");
        assert_eq!(quick(&home), (Some(0), 4));
        home.run(["verify", "model", "--quick"]).exits(0).says("model: OK (4 files, 4 not read, ");
        let done = home.run(["verify", "model", "--json"]).exits(0);
        assert_eq!(done.json()[0].get("kept"), None, "without the flag, all is read");
        // A file with its old size and time is read, because nobody can choose the time of change.
        let path = home.path("model/weights/2");
        let modified = path.metadata().unwrap().modified().unwrap();
        let write = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        };
        let good = home.read("model/weights/2");
        write(&vec![1; good.len()]);
        assert_eq!(quick(&home), (Some(1), 3));
        home.run(["verify", "model", "--quick"]).exits(1).says("model/weights/2: changed");
        write(&good);
        assert_eq!(quick(&home), (Some(0), 3));
        // New and missing files are found in any case.
        home.write("model/new", "");
        std::fs::remove_file(home.path("model/config.json")).unwrap();
        let done = home.run(["verify", "model", "--quick"]).exits(1);
        let is_listed = shards.is_empty();
        assert_eq!(done.stdout.contains("model/new: unexpected"), is_listed, "{}", done.stdout);
        done.says("model/config.json: missing");
    }
}

#[test]
fn what_is_remembered_of_a_model_is_only_for_its_list_and_its_whole() {
    let home = model(&[]);
    home.run(["verify", "model"]).exits(0);
    assert_eq!(quick(&home), (Some(0), 4));
    let folder = home.path("../home/.cache/bulla/stamps");
    let stamps = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let good = std::fs::read(&stamps).unwrap();
    let end = good.len() - 1;
    for bad in [&good[..end], b"", &[&good[..100], &[good[100] ^ 1], &good[101..]].concat()] {
        std::fs::write(&stamps, bad).unwrap();
        assert_eq!(quick(&home), (Some(0), 0));
        assert_eq!(quick(&home), (Some(0), 4));
    }
    // Another list of the same files.
    sign(&home, "model", "oms", &["--key", "models", "--model-digest", "blake3"]).exits(0);
    assert_eq!(quick(&home), (Some(0), 0));
    // A part of it is no reason to forget or to remember.
    home.write("model/weights/2", "changed");
    home.run(["verify", "model", "--quick", "--exclude", "weights/2"]).exits(0);
    home.run(["verify", "model", "--quick"]).exits(1).says("model/weights/2: changed");
}
