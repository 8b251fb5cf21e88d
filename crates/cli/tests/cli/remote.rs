//! The command with the keys of a service: it prints and ends as with a keystore of this machine
//! that has the same keys.

use crate::both::{Both, Normal, copied, copy, outcome, prepared, remote, serve};
use crate::serving::{Serving, settings};
use crate::sign::{hinted_lines, on_a_terminal};
use crate::support::{Done, Home, bulla};
use base64ct::{Base64UrlUnpadded, Encoding as _};
use bulla_kms::{Algorithm, Keystore, NewKey};
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn keys_are_managed_as_on_this_machine() {
    let here = prepared();
    let there = copied(&here);
    let _serving = serve(&there);
    let mut both = Both::new(&here, &there);
    both.same(&["keys", "list"], 0);
    both.same(&["keys", "list", "--json"], 0);
    both.same(&["keys", "show"], 0);
    both.same(&["keys", "show", "releases", "--json"], 0);
    let id = here.run(["keys", "show", "releases", "--json"]).json()[0]["key"].as_str().unwrap().to_owned();
    both.same(&["keys", "show", &id], 0);
    both.same(&["keys", "show", &format!("{id}/v1")], 0);
    both.same(&["keys", "show", "nothing"], 2);
    both.same(&["keys", "show", "Not A Name"], 2);
    both.same(&["keys", "show", "not/an/id"], 2);
    both.same(&["keys", "show", &id.replace("-7", "-8")], 2);
    both.same(&["keys", "create", "fresh"], 0);
    both.same(&["keys", "create", "fresh"], 2);
    both.same(&["keys", "create", "Bad"], 2);
    both.same(&["keys", "create", "lasting", "--algorithm", "ml-dsa-44", "--json"], 0);
    both.same(&["keys", "rotate", "releases"], 0);
    both.same(&["keys", "rotate", "transport", "--json"], 0);
    both.same(&["keys", "rotate", "nothing"], 2);
    // Only keys that nodes have together have shares.
    both.same(&["keys", "refresh", "releases"], 2);
    both.same(&["keys", "repair", "releases"], 2);
    both.same(&["keys", "succession", "releases"], 0);
    both.same(&["keys", "succession", "fresh"], 2);
    both.same(&["keys", "attest", "releases"], 0);
    both.same(&["keys", "attest", "transport"], 2);
    both.same(&["keys", "disable", "fresh"], 0);
    both.same(&["keys", "disable", "fresh", "--json"], 0);
    both.same(&["sign", "--key", "fresh", "a"], 2);
    both.same(&["keys", "enable", "fresh", "--quiet"], 0);
    both.same(&["keys", "policy", "releases"], 0);
    both.same(&["keys", "policy", "releases", "--max-age", "90d", "--max-uses", "5"], 0);
    both.same(&["keys", "policy", "releases", "--max-age", "none", "--json"], 0);
    both.same(&["keys", "policy", "releases", "--minimum-version", "9"], 2);
    both.same(&["keys", "policy", "releases", "--minimum-version", "2"], 0);
    both.same(&["keys", "destroy", "releases", "--version", "1"], 0);
    both.same(&["keys", "revoke", "releases", "1"], 0);
    both.same(&["keys", "destroy", "releases", "--version", "2"], 2);
    both.same(&["keys", "destroy", "fresh", "--after", "30d"], 0);
    both.same(&["keys", "destroy", "fresh", "--final"], 2);
    both.same(&["keys", "show", "fresh", "--json"], 0);
    both.same(&["keys", "cancel-destruction", "fresh"], 0);
    both.same(&["keys", "destroy", "fresh", "--after", "0s", "--quiet"], 0);
    both.same(&["keys", "destroy", "fresh", "--final"], 0);
    for format in ["bulla", "minisign", "pem", "der", "raw", "openssh", "jwk"] {
        // A key that is the same here and there.
        let done = both.same(&["keys", "export-public", "--format", format], 0);
        let here = here.run(["keys", "export-public", "--format", format]).exits(0);
        assert_eq!(done.output.stdout, here.output.stdout, "{format}");
    }
    both.same(&["keys", "export-public", &format!("{id}/v2")], 0);
    both.same(&["keys", "export-public", &format!("{id}/v9")], 2);
    both.same(&["keys", "export-public", "transport", "--format", "openssh"], 2);
    both.same(&["keys", "list"], 0);
}

/// Signs and verifies in the formats of other programs.
fn in_every_format(both: &mut Both<'_>) {
    both.same(&["sign", "--format", "minisign", "a"], 0);
    both.same(&["verify", "--format", "minisign", "a"], 0);
    both.same(&["sign", "--format", "minisign", "--key", "lasting", "a"], 2);
    for format in ["ssh", "signify"] {
        let signature = format!("a.{format}");
        both.same(&["sign", "--format", format, "--output", &signature, "a"], 0);
        both.same(&["verify", "--signature", &signature, "a"], 0);
        both.same(&["sign", "--format", format, "--output", &signature, "--key", "lasting", "a"], 2);
    }
    both.write("predicate.json", "{\"passed\": true}");
    let statement = ["--predicate", "predicate.json", "--predicate-type", "u:x"];
    for (format, path) in [("dsse", "a"), ("dsse", "photos"), ("sigstore", "a")] {
        both.same(&[&["sign", "--format", format, path], &statement[..]].concat(), 0);
        both.same(&["verify", "--format", format, path], 0);
    }
    for format in ["sigstore", "jws"] {
        both.same(&["sign", "--format", format, "a"], 0);
        both.same(&["verify", "--format", format, "a"], 0);
    }
    both.same(&["keys", "create", "models", "--algorithm", "ecdsa-p256"], 0);
    for (format, path) in [("oms", "photos"), ("jws", "a"), ("sigstore", "a"), ("ssh", "a")] {
        let signature = format!("{path}.of-{format}");
        both.same(&["sign", "--format", format, "--key", "models", "--output", &signature, path], 0);
        both.same(&["verify", "--format", format, "--signature", &signature, path], 0);
    }
}

#[test]
fn files_are_signed_and_verified_as_on_this_machine() {
    let here = prepared();
    let there = copied(&here);
    let _serving = serve(&there);
    let mut both = Both::new(&here, &there);
    both.same(&["keys", "create", "lasting", "--algorithm", "ml-dsa-65-ed25519"], 0);
    both.same(&["sign", "a"], 0);
    both.same(&["verify", "a"], 0);
    both.same(&["sign", "--key", "releases", "--comment", "release 1", "photos", "a", "--json"], 0);
    both.same(&["verify", "photos", "a"], 0);
    both.same(&["verify", "photos", "--json"], 0);
    both.same(&["sign", "missing", "a"], 2);
    both.same(&["sign", "--key", "nothing", "a"], 2);
    both.same(&["sign", "--key", "transport", "a"], 2);
    for prehash in ["blake3", "ed25519ph"] {
        both.same(&["sign", "--prehash", prehash, "a"], 0);
        both.same(&["verify", "a"], 0);
    }
    both.same(&["sign", "--key", "lasting", "--prehash", "blake3", "a"], 2);
    both.same(&["sign", "--key", "lasting", "a"], 0);
    both.same(&["verify", "a"], 0);
    in_every_format(&mut both);
    both.same_with(&["sign", "-", "--output", "piped.bulla"], b"piped", 0);
    both.same_with(&["verify", "-", "--signature", "piped.bulla"], b"piped", 0);
    both.same_with(&["verify", "-", "--signature", "piped.bulla"], b"another", 1);
    both.write("a", "another content");
    both.same(&["verify", "a"], 1);
    both.same(&["verify", "--format", "minisign", "a"], 1);
    both.write("a", "content");
    both.write("photos/3", "three");
    both.same(&["verify", "photos"], 1);
    // A key that neither of the two has, and a version that is revoked.
    let stranger = Home::new();
    stranger.write("a", "content");
    stranger.run(["sign", "a"]).exits(0);
    both.write("b.bulla", &String::from_utf8(stranger.read("a.bulla")).unwrap());
    both.write("b", "content");
    both.same(&["verify", "b"], 1);
    both.same(&["sign", "--key", "releases", "a"], 0);
    both.same(&["keys", "rotate", "releases"], 0);
    both.same(&["keys", "revoke", "releases", "1"], 0);
    both.same(&["verify", "a"], 1);
    both.same(&["verify", "nothing"], 2);
    // What a service signed verifies without it.
    there.run(["verify", "piped.bulla"]).exits(2);
    let public = Done::of(remote(&there).args(["keys", "export-public"])).exits(0).stdout;
    there.write("me.pub", public);
    Done::with_input(
        there.command().args(["verify", "-", "--signature", "piped.bulla", "--public-key", "me.pub"]),
        b"piped",
    )
    .exits(0);
}

#[test]
fn the_audit_log_is_read_and_verified_as_on_this_machine() {
    let here = prepared();
    let there = copied(&here);
    let _serving = serve(&there);
    let mut both = Both::new(&here, &there);
    let mut chained = |args: &[&str], code: i32| {
        // The digests and links differ, because the signed statements have times.
        let plain = |done: Done, normal: &mut Normal| {
            let (code, out, errors) = outcome(&done, normal);
            let words = out.split('"').map(|word| if word.len() == 64 { "DIGEST" } else { word });
            (code, words.collect::<Vec<_>>().join("\""), errors)
        };
        let expected = plain(Done::of(here.command().args(args)), &mut both.normal_here);
        let found = plain(Done::of(remote(&there).args(args)), &mut both.normal_there);
        assert_eq!(found, expected, "{args:?}");
        assert_eq!(expected.0, Some(code), "{args:?}\n{}{}", expected.1, expected.2);
    };
    chained(&["log", "checkpoint", "--output", "old.note"], 0);
    for args in [&["sign", "a"][..], &["keys", "rotate", "releases"], &["keys", "disable", "moving"]] {
        here.run(args).exits(0);
        Done::of(remote(&there).args(args)).exits(0);
    }
    chained(&["log", "checkpoint", "--output", "new.note"], 0);
    chained(&["log", "show"], 0);
    chained(&["log", "show", "--json"], 0);
    chained(&["log", "verify", "--quiet"], 0);
    chained(&["log", "verify", "--checkpoint", "old.note", "--checkpoint", "new.note"], 0);
    chained(&["log", "prove", "3", "--output", "entry.json"], 0);
    chained(&["log", "verify", "--proof", "entry.json"], 0);
    chained(&["log", "prove", "--since", "old.note", "--output", "growth.json"], 0);
    chained(&["log", "verify", "--proof", "growth.json"], 0);
    chained(&["log", "prove", "9999"], 2);
    chained(&["log", "prove", "--since", "missing.note"], 2);
    // A checkpoint of another log.
    for home in [&here, &there] {
        let other = prepared();
        other.run(["log", "checkpoint", "--output", "other.note"]).exits(0);
        home.write("other.note", other.read("other.note"));
    }
    let verify = ["log", "verify", "--checkpoint", "other.note"];
    here.run(verify).exits(1);
    Done::of(remote(&there).args(verify)).exits(1);
    // A copy of a log is verified here, with the key that the service tells.
    copy(&there.keystore().join("audit-log"), &there.path("copy"));
    let copied = ["log", "verify", "--log", "copy", "--checkpoint", "old.note"];
    Done::of(remote(&there).args(copied)).exits(0).says("copy: OK");
    // A key that is not the log's does not count, whatever the service says.
    let other = Done::of(remote(&there).args(["keys", "export-public", "releases"])).exits(0).stdout;
    there.write("other.pub", other);
    let wrong = ["log", "verify", "--public-key", "other.pub"];
    Done::of(remote(&there).args(wrong)).exits(1).says("unknown key");
}

#[test]
fn a_verification_asks_for_the_one_key_that_signed() {
    let home = prepared();
    settings(&home, "[log]\naccess = true");
    let serving = Serving::start(&home);
    let run = |args: &[&str], code| Done::of(remote(&home).args(args)).exits(code);
    run(&["sign", "--key", "releases", "a", "photos"], 0);
    run(&["sign", "--format", "minisign", "a"], 0);
    let key = run(&["keys", "show", "releases", "--json"], 0).json()[0]["key"].clone();
    run(&["verify", "a", "photos", "a"], 0);
    run(&["verify", "--format", "minisign", "a"], 0);
    run(&["keys", "rotate", "releases"], 0);
    let asked = || {
        let log = serving.log();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
        let paths = lines.filter_map(|line| line["path"].as_str().map(str::to_owned));
        paths.collect::<Vec<_>>()
    };
    let path = format!("/api/v1/keys/{}", key.as_str().expect("a name").replace('/', "%2F"));
    // The service may write the line of a request after its answer.
    while !asked().last().is_some_and(|path| path.ends_with("/rotate")) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let asked = asked();
    let shown = asked.iter().rposition(|path| path == "/api/v1/keys/releases").expect("`keys show`");
    assert_eq!(
        asked[shown + 1..],
        [path, "/api/v1/keys".to_owned(), "/api/v1/keys/releases/rotate".to_owned()]
    );
}

#[test]
fn tokens_exports_and_sealed_files_work_with_a_service() {
    let home = prepared();
    let _serving = serve(&home);
    let run = |args: &[&str]| Done::of(remote(&home).args(args));
    run(&["token", "new", "--operation", "sign", "--key", "releases", "--expires", "1h", "--output", "t"])
        .exits(0);
    home.run(["token", "inspect", "t"]).exits(0).says("block 0     grant");
    run(&["token", "new", "--operation", "sign", "--key", "nothing", "--expires", "1h"]).exits(2);
    // A token is what a caller is, whatever user it is.
    run(&["sign", "--key", "releases", "--token-file", "t", "a"]).exits(0);
    run(&["verify", "a"]).exits(0).says("by releases v1");
    run(&["sign", "--token-file", "t", "a"]).exits(2).complains("does not permit");
    run(&["keys", "list", "--token-file", "t"]).exits(2).complains("does not permit");

    let public = run(&["keys", "export-public", "transport"]).exits(0).stdout;
    home.write("transport.pub", public);
    run(&["encrypt", "a", "--recipient", "transport.pub"]).exits(0);
    run(&["decrypt", "a.sealed", "--output", "opened"]).exits(0);
    assert_eq!(home.read("opened"), b"content");
    let mut sealed = home.read("a.sealed");
    *sealed.last_mut().unwrap() ^= 1;
    home.write("damaged.sealed", sealed);
    run(&["decrypt", "damaged.sealed"]).exits(1);
    run(&["decrypt", "a.sealed", "--token-file", "t", "--output", "other"]).exits(2);

    let export = [
        "keys",
        "export",
        "moving",
        "--to",
        "transport.pub",
        "--token-file",
        "export.token",
        "--output",
        "wrapped",
    ];
    run(&export).exits(0);
    run(&["keys", "export", "moving", "--to", "transport.pub", "--token-file", "t"])
        .exits(2)
        .complains("does not permit");
    run(&[&export[..7], &["--revoked", "a"]].concat()).exits(2);
    home.write("revoked", "");
    run(&[&export[..7], &["--revoked", "revoked"]].concat()).exits(2).complains("leave out --revoked");
    assert!(String::from_utf8(home.read("wrapped")).unwrap().starts_with("bulla wrapped key"));
}

#[test]
fn what_needs_a_keystore_says_so() {
    let home = prepared();
    let _serving = serve(&home);
    let before = home.names();
    for args in [
        &["keystore", "init"][..],
        &["keystore", "guard"],
        &["keystore", "guard", "none"],
        &["keystore", "rekey", "--generate-key-file"],
        &["keystore", "restore", "a"],
        &["log", "init"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let done = Done::of(remote(&home).args(args)).exits(2);
        assert!(done.stderr.contains("needs a keystore on this machine"), "{args:?}: {}", done.stderr);
        assert!(done.stderr.contains("unset BULLA_ADDR"), "{args:?}: {}", done.stderr);
    }
    assert_eq!(home.names(), before);
    assert!(!home.path("none").exists());
}

#[test]
fn flags_count_more_than_variables() {
    let home = prepared();
    let serving = serve(&home);
    let other = Home::new();
    other.run(["keystore", "init"]).exits(0);
    let folder = other.keystore();
    let folder = folder.to_str().unwrap();
    let list = |set: &dyn Fn(&mut Command) -> &mut Command| {
        let mut command = home.command();
        command.args(["keys", "list"]);
        set(&mut command);
        Done::of(&mut command)
    };
    // If variables name both, the service counts. An empty variable names nothing.
    list(&|command| command.env("BULLA_ADDR", "unix:socket").env("BULLA_KEYSTORE", folder))
        .exits(0)
        .says("releases");
    let here = list(&|command| command.env("BULLA_ADDR", "").env("BULLA_KEYSTORE", folder)).exits(0);
    assert!(!here.stdout.contains("releases"), "{}", here.stdout);
    let here =
        list(&|command| command.env("BULLA_ADDR", "unix:socket").args(["--keystore", folder])).exits(0);
    assert!(!here.stdout.contains("releases"), "{}", here.stdout);
    list(&|command| command.env("BULLA_KEYSTORE", folder).args(["--server", "unix:socket"]))
        .exits(0)
        .says("releases");
    list(&|command| command.args(["--keystore", folder, "--server", "unix:socket"]))
        .exits(2)
        .complains("give only one of them");
    // The line that verifies names the service, unless the variable will be there again.
    let line = |script: &mut Command, flags: &str| {
        hinted_lines(&on_a_terminal(script, &format!("{} sign a {flags}", bulla())))[0].clone()
    };
    let by_flag = line(&mut home.program("script"), "--server unix:socket");
    assert!(by_flag.ends_with(" verify --server unix:socket a"), "{by_flag}");
    let by_variable =
        line(home.program("script").envs([("BULLA_ADDR", "unix:socket"), ("BULLA_KEYSTORE", "none")]), "");
    assert!(by_variable.ends_with(" verify a"), "{by_variable}");
    drop(serving);
    list(&|command| command.args(["--server", "unix:socket"])).exits(2).complains("cannot reach the service");
    list(&|command| command.args(["--server", "keys.example.org"])).exits(2).complains("--server");
}

#[test]
fn tokens_come_from_the_environment_or_a_file_and_are_never_shown() {
    let home = prepared();
    home.run([
        "token",
        "new",
        "--operation",
        "sign",
        "--operation",
        "read",
        "--expires",
        "1h",
        "--output",
        "t",
    ])
    .exits(0);
    let token = String::from_utf8(home.read("t")).unwrap().trim_end().to_owned();
    settings(&home, "[[listen]]\naddress = \"127.0.0.1:0\"");
    let serving = Serving::start(&home);
    let log = serving.log();
    let at = log.find("http://127.0.0.1:").unwrap();
    let url: String = log[at..].chars().take_while(|one| !one.is_whitespace() && *one != '"').collect();
    let sign = |set: &dyn Fn(&mut Command) -> &mut Command| {
        let mut command = home.command();
        command.args(["sign", "a", "--server", &url]);
        set(&mut command);
        let done = Done::of(&mut command);
        assert!(
            !done.stderr.contains(&token) && !done.stdout.contains(&token),
            "{}{}",
            done.stdout,
            done.stderr
        );
        done
    };
    sign(&|command| command).exits(2).complains("BULLA_TOKEN");
    sign(&|command| command.env("BULLA_TOKEN", &token)).exits(0);
    sign(&|command| command.args(["--token-file", "t"])).exits(0);
    // A file counts more.
    sign(&|command| command.args(["--token-file", "t"]).env("BULLA_TOKEN", "nonsense")).exits(0);
    let mut other = token.clone();
    other.replace_range(20..22, if &token[20..22] == "AA" { "AB" } else { "AA" });
    for wrong in [other.as_str(), "nonsense"] {
        let done = sign(&|command| command.env("BULLA_TOKEN", wrong)).exits(2);
        assert!(!done.stderr.contains(wrong), "{}", done.stderr);
    }
    sign(&|command| command.env("BULLA_TOKEN", "two words"))
        .exits(2)
        .complains("BULLA_TOKEN: this is not a token");
    home.chmod("t", 0o644);
    sign(&|command| command.args(["--token-file", "t"])).exits(2).complains("t: ");
    sign(&|command| command.args(["--token-file", "missing"]))
        .exits(2)
        .complains("missing: cannot read the token");
}

#[test]
fn a_jwt_of_a_platform_gives_a_token_for_some_minutes() {
    let home = prepared();
    let platform = Keystore::in_memory().unwrap();
    let [tenant, purpose] = ["local", "ci"].map(|name| name.parse().unwrap());
    let key = platform.create_key(NewKey::new(tenant, purpose, Algorithm::Ed25519)).unwrap();
    let encode = Base64UrlUnpadded::encode_string;
    let x = encode(platform.public_key(&key).unwrap().as_bytes());
    home.write("keys.json", json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x }] }).to_string());
    let jwt = |subject: &str| {
        let end = UNIX_EPOCH.elapsed().unwrap().as_secs() + 60;
        let claims = json!({ "iss": "https://ci.example.org", "aud": "bulla", "sub": subject, "exp": end });
        let signed = format!("{}.{}", encode(br#"{"alg":"EdDSA"}"#), encode(claims.to_string().as_bytes()));
        let signature = platform.sign(&key, signed.as_bytes()).unwrap().bytes;
        format!("{signed}.{}\n", encode(&signature))
    };
    settings(
        &home,
        "[[issuer]]\nname = \"ci\"\nissuer = \"https://ci.example.org\"\nkeys_file = \"keys.json\"\n\
         [[role]]\nname = \"release\"\nissuer = \"ci\"\naudiences = [\"bulla\"]\nsubjects = [\"job-*\"]\n\
         tenant = \"local\"\noperations = [\"sign\", \"read\"]\n[[listen]]\naddress = \"127.0.0.1:0\"",
    );
    home.run(["token", "new", "--operation", "read", "--expires", "1h"]).exits(0);
    let serving = Serving::start(&home);
    let log = serving.log();
    let at = log.find("http://127.0.0.1:").unwrap();
    let url: String = log[at..].chars().take_while(|one| !one.is_whitespace() && *one != '"').collect();
    home.write("jwt", jwt("job-7"));
    let login = |args: &[&str]| {
        let mut command = home.command();
        // The file that a login makes is named already, and is not there yet.
        command.env("BULLA_TOKEN_FILE", "token").args(["token", "login"]).args(args);
        Done::of(&mut command)
    };
    login(&["release", "jwt", "--server", &url, "--output", "token"])
        .exits(0)
        .complains("logged in as ci/job-7; the token is valid until 20");
    let sign = ["sign", "a", "--server", &url, "--token-file", "token"];
    home.run(sign).exits(0);
    // A second login replaces the token, and nothing else is replaced.
    login(&["release", "jwt", "--server", &url, "--output", "token"]).exits(0);
    login(&["release", "jwt", "--server", &url, "--output", "a"]).exits(2).complains("a: ");
    home.run(sign).exits(0);
    let printed = login(&["release", "jwt", "--server", "unix:socket"]).exits(0).stdout;
    home.write("printed", &printed);
    home.chmod("printed", 0o600);
    home.run(["sign", "a", "--server", &url, "--token-file", "printed"]).exits(0);
    home.write("jwt", jwt("somebody"));
    let refused = login(&["release", "jwt", "--server", &url]).exits(2);
    let refused = refused.complains("`sub`");
    assert!(
        !refused.stderr.contains(jwt("somebody").split('.').nth(2).unwrap().trim()),
        "{}",
        refused.stderr
    );
    login(&["nobody", "jwt", "--server", &url]).exits(2);
    login(&["release", "missing", "--server", &url]).exits(2).complains("missing: cannot read the JWT");
    login(&["release", "jwt"]).exits(2).complains("name one with --server URL");
    login(&["release", "jwt", "--server", "http://192.0.2.1:1"])
        .exits(2)
        .complains("the JWT would travel unencrypted");
}

#[test]
fn a_service_must_have_the_certificate_of_a_trusted_authority() {
    let home = prepared();
    for name in ["server", "other"] {
        let mut openssl = home.program("openssl");
        openssl.args([
            "req",
            "-x509",
            "-newkey",
            "ed25519",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=a service",
        ]);
        openssl.args([
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ]);
        openssl.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
        Done::of(&mut openssl).exits(0);
    }
    home.run(["token", "new", "--operation", "read", "--expires", "1h", "--output", "t"]).exits(0);
    let tls = "tls = { certificate = \"server.pem\", key = \"server.key\" }";
    settings(&home, &format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{tls}"));
    let serving = Serving::start(&home);
    let log = serving.log();
    let at = log.find("https://127.0.0.1:").unwrap();
    let url: String = log[at..].chars().take_while(|one| !one.is_whitespace() && *one != '"').collect();
    let list = |more: &[&str]| {
        let args = [&["keys", "list", "--server", &url, "--token-file", "t"], more].concat();
        home.run(args)
    };
    list(&["--server-ca", "server.pem"]).exits(0).says("releases");
    list(&["--server-ca", "other.pem"]).exits(2).complains("does not trust the service's certificate");
    list(&[]).exits(2);
    list(&["--server-ca", "a"]).exits(2).complains("a: there is no certificate in PEM");
    list(&["--server-ca", "server.pem", "--client-certificate", "other.pem"])
        .exits(2)
        .complains("--client-key");
    let both =
        ["--server-ca", "server.pem", "--client-certificate", "other.pem", "--client-key", "other.key"];
    list(&both).exits(0).says("releases");
}
