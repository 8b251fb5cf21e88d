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
    home.write("SUMS", "");
    home.run(check).exits(1);
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
