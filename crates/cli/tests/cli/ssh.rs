//! `--format ssh`, with the real OpenSSH and git on the other side.

use crate::support::{Done, Home, bulla, content};
use std::fs;

/// Makes a key of OpenSSH: `NAME` and `NAME.pub`.
fn their_key(home: &Home, name: &str, algorithm: &[&str]) {
    let generate = ["-q", "-N", "", "-C", "them@example.org", "-f", name, "-t"];
    Done::of(home.program("ssh-keygen").args(generate).args(algorithm)).exits(0);
}

/// Signs `file` by the real ssh-keygen; the signature is `file.sig`.
fn signed_by_them(home: &Home, key: &str, namespace: &str) {
    let _ = fs::remove_file(home.path("file.sig"));
    let sign = ["-Y", "sign", "-q", "-n", namespace, "-f", key, "file"];
    Done::of(home.program("ssh-keygen").args(sign)).exits(0);
}

/// What the real ssh-keygen says about `file` and its signature.
fn they_verify(home: &Home, principal: &str, namespace: &str) -> Done {
    let verify = ["-Y", "verify", "-f", "allowed", "-I", principal, "-n", namespace, "-s", "file.sig"];
    Done::with_input(home.program("ssh-keygen").args(verify), &home.read("file"))
}

/// Writes the list of allowed signers: a line before each of these public keys.
fn allow(home: &Home, lines: &[(&str, &str)]) {
    let line = |(before, key): &(&str, &str)| {
        format!("{before} {}\n", String::from_utf8(home.read(key)).unwrap().trim_end())
    };
    home.write("allowed", lines.iter().map(line).collect::<String>());
}

#[test]
fn ssh_keygen_verifies_what_bulla_signs() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "curve", "--algorithm", "ecdsa-p256"]).exits(0);
    for key in ["default", "curve"] {
        home.run(["keys", "export-public", key, "--format", "openssh", "-o", "ours.pub"]).exits(0);
        allow(&home, &[("me@example.org", "ours.pub")]);
        for (index, size) in [0, 1, 100_000].into_iter().enumerate() {
            home.write("file", content(index as u64, size));
            let signed =
                home.run(["sign", "file", "--format", "ssh", "--key", key, "--json"]).exits(0).json();
            assert_eq!((&signed[0]["format"], &signed[0]["signature"]), (&"ssh".into(), &"file.sig".into()));
            they_verify(&home, "me@example.org", "file").exits(0).says("Good \"file\" signature");
            home.run(["verify", "file"]).exits(0).says(&format!("file: OK (ssh signature by {key} v1)"));
            home.run(["verify", "file", "-p", "ours.pub"]).exits(0).says("ssh signature by the key SHA256:");
            they_verify(&home, "me@example.org", "git").exits(255);
            they_verify(&home, "you@example.org", "file").exits(255);
        }
        let signature = home.read("file.sig");
        for index in (60..signature.len() - 40).step_by(11) {
            let mut damaged = signature.clone();
            damaged[index] = if damaged[index] == b'A' { b'B' } else { b'A' };
            home.write("file.sig", &damaged);
            assert_ne!(they_verify(&home, "me@example.org", "file").code, Some(0), "byte {index}");
            home.run(["verify", "file", "--allowed-signers", "allowed"]).exits(1);
        }
        home.write("file.sig", signature);
        home.write("file", "changed");
        they_verify(&home, "me@example.org", "file").exits(255);
        home.run(["verify", "file", "--allowed-signers", "allowed"]).exits(1).says("file: changed");
    }
    home.run(["sign", "file", "--format", "ssh", "--namespace", "app@example.org"]).exits(0);
    home.run(["keys", "export-public", "--format", "openssh", "-o", "ours.pub"]).exits(0);
    allow(&home, &[("me@example.org namespaces=\"app@*\"", "ours.pub")]);
    they_verify(&home, "me@example.org", "app@example.org").exits(0);
}

#[test]
fn bulla_verifies_what_ssh_keygen_signs() {
    let home = Home::new();
    home.write("file", content(1, 100_000));
    let keys: [(&str, &[&str]); 5] = [
        ("ed", &["ed25519"]),
        ("p256", &["ecdsa", "-b", "256"]),
        ("p384", &["ecdsa", "-b", "384"]),
        ("p521", &["ecdsa", "-b", "521"]),
        ("rsa", &["rsa", "-b", "2048"]),
    ];
    their_key(&home, "other", &["ed25519"]);
    for (name, algorithm) in keys {
        their_key(&home, name, algorithm);
        let public = format!("{name}.pub");
        let verify = ["verify", "file", "--public-key"];
        // The s of ECDSA is high in every second signature.
        for _ in 0..4 {
            signed_by_them(&home, name, "file");
            home.run(verify.iter().chain(&[&*public]))
                .exits(0)
                .says("file: OK (ssh signature by the key SHA256:");
        }
        home.run(verify.iter().chain(&["other.pub"])).exits(1).says("file: wrong key");
        allow(&home, &[("them@example.org", &public)]);
        let allowed = ["verify", "file", "--allowed-signers", "allowed"];
        let found = home.run(allowed.iter().chain(&["--json"])).exits(0).json();
        assert_eq!(found[0]["principal"], "them@example.org");
        assert_eq!(found[0]["format"], "ssh");
        home.write("file", content(2, 100_000));
        home.run(allowed).exits(1).says("file: changed");
        home.write("file", content(1, 100_000));
        let signature = String::from_utf8(home.read("file.sig")).unwrap();
        for len in (0..signature.len() - 1).step_by(53) {
            home.write("file.sig", &signature[..len]);
            home.run(allowed).exits(1).says("malformed signature");
        }
    }
    home.write("file.sig", format!("-----BEGIN SSH SIGNATURE-----\n{}", "A".repeat(1 << 20)));
    home.run(["verify", "file", "-p", "ed.pub"]).exits(1).says("it is longer than");
}

/// One line of a list of allowed signers, and what both programs say of a signature by its key.
struct Case {
    line: &'static str,
    principal: &'static str,
    namespace: &'static str,
    /// What bulla says; none if both accept it.
    problem: Option<&'static str>,
}

const fn case(
    line: &'static str,
    principal: &'static str,
    namespace: &'static str,
    problem: Option<&'static str>,
) -> Case {
    Case { line, principal, namespace, problem }
}

const CASES: [Case; 16] = [
    case("a@b", "a@b", "file", None),
    case("a@b", "c@b", "file", Some("wrong key")),
    case("*@b,!c@b", "a@b", "file", None),
    case("*@b,!c@b", "c@b", "file", Some("wrong key")),
    case("\"a@b\"", "a@b", "file", None),
    case("a@b namespaces=\"file,git\"", "a@b", "git", None),
    case("a@b namespaces=\"git\"", "a@b", "file", Some("wrong namespace")),
    case("a@b valid-before=\"20200101\"", "a@b", "file", Some("expired")),
    case("a@b valid-before=\"20200101Z\"", "a@b", "file", Some("expired")),
    case("a@b valid-before=\"29990101\"", "a@b", "file", None),
    case("a@b valid-before=\"99991231\"", "a@b", "file", None),
    case("a@b valid-after=\"29990101\"", "a@b", "file", Some("expired")),
    case("a@b valid-after=\"202001011530\",valid-before=\"29990101153000\"", "a@b", "file", None),
    case("a@b NAMESPACES=\"file\",valid-after=\"20200101\"", "a@b", "file", None),
    // A key is no authority of itself.
    case("a@b cert-authority", "a@b", "file", Some("wrong key")),
    case("# a comment\n\na@b", "a@b", "file", None),
];

#[test]
fn both_read_a_list_of_allowed_signers_alike() {
    let home = Home::new();
    home.write("file", "content");
    their_key(&home, "key", &["ed25519"]);
    for Case { line, principal, namespace, problem } in CASES {
        signed_by_them(&home, "key", namespace);
        allow(&home, &[(line, "key.pub")]);
        let theirs = they_verify(&home, principal, namespace);
        assert_eq!(theirs.code == Some(0), problem.is_none(), "{line}: {}", theirs.stderr);
        let flags = ["--allowed-signers", "allowed", "--principal", principal, "--namespace", namespace];
        let ours = home.run(["verify", "file"].iter().chain(&flags));
        match problem {
            None => ours.exits(0).says(&format!("ssh signature by {principal})")),
            Some(problem) => ours.exits(1).says(&format!("file: {problem}")),
        };
    }
    // Somebody else's key beside a principal would make the principal mean nothing.
    let both = ["--allowed-signers", "allowed", "--principal", "a@b", "--public-key", "key.pub"];
    home.run(["verify", "file"].iter().chain(&both)).exits(2).complains("cannot be used with");
    // A list of many principals.
    let many: Vec<_> = (0..500).map(|number| format!("{number}@b")).collect();
    let line = format!("{},a@b", many.join(","));
    allow(&home, &[(&*line, "key.pub")]);
    signed_by_them(&home, "key", "file");
    they_verify(&home, "a@b", "file").exits(0);
    home.run(["verify", "file", "--allowed-signers", "allowed", "--principal", "a@b"]).exits(0);
    // The namespace of the signature is not the one that is expected.
    signed_by_them(&home, "key", "git");
    allow(&home, &[("a@b", "key.pub")]);
    they_verify(&home, "a@b", "file").exits(255);
    home.run(["verify", "file", "--allowed-signers", "allowed"]).exits(1).says("file: wrong namespace");
    home.write("allowed", "a@b no-such-option ssh-ed25519 AAAA\n");
    home.run(["verify", "file", "--allowed-signers", "allowed"]).exits(2).complains("line 1: ");
}

#[test]
fn certificates_count_if_their_authority_is_allowed() {
    let home = Home::new();
    home.write("file", "content");
    for name in ["ca", "key", "other"] {
        their_key(&home, name, &["ed25519"]);
    }
    // What ssh-keygen puts into the certificate, and what both then say of its signature.
    let certificates: [(&[&str], Option<&str>); 5] = [
        (&["-n", "a@b,c@b"], None),
        (&["-n", "other@b"], Some("wrong key")),
        (&["-n", "a@b", "-V", "20200101:20200102"], Some("expired")),
        (&["-n", "a@b", "-V", "29990101:29990102"], Some("expired")),
        (&["-n", "a@b", "-h"], Some("wrong key")),
    ];
    for (flags, problem) in certificates {
        let sign = ["-q", "-s", "ca", "-I", "id"];
        Done::of(home.program("ssh-keygen").args(sign).args(flags).arg("key.pub")).exits(0);
        signed_by_them(&home, "key-cert.pub", "file");
        allow(&home, &[("*@b cert-authority", "ca.pub")]);
        let theirs = they_verify(&home, "a@b", "file");
        assert_eq!(theirs.code == Some(0), problem.is_none(), "{flags:?}: {}", theirs.stderr);
        let verify = ["verify", "file", "--allowed-signers", "allowed", "--principal", "a@b"];
        match problem {
            None => home.run(verify).exits(0).says("ssh signature by a@b)"),
            Some(problem) => home.run(verify).exits(1).says(&format!("file: {problem}")),
        };
    }
    Done::of(home.program("ssh-keygen").args(["-q", "-s", "ca", "-I", "id", "-n", "a@b", "key.pub"]))
        .exits(0);
    signed_by_them(&home, "key-cert.pub", "file");
    let verify = ["verify", "file", "--allowed-signers", "allowed"];
    home.run(verify).exits(0);
    for revoked in ["ca.pub", "key.pub"] {
        home.run(verify.iter().chain(&["--revoked", revoked])).exits(1).says("file: wrong key");
    }
    home.run(verify.iter().chain(&["--revoked", "other.pub"])).exits(0);
    // Another authority; and the authority's key without the word.
    for line in [("*@b cert-authority", "other.pub"), ("*@b", "ca.pub")] {
        allow(&home, &[line]);
        they_verify(&home, "a@b", "file").exits(255);
        home.run(verify).exits(1).says("file: wrong key");
    }
    // The key alone is no word of the authority.
    home.run(["verify", "file", "-p", "key.pub"]).exits(1).says("file: wrong key").says("--allowed-signers");
    // An authority that signs by SHA-1.
    their_key(&home, "old", &["rsa"]);
    let by_sha1 = ["-q", "-s", "old", "-t", "ssh-rsa", "-I", "id", "-n", "a@b", "key.pub"];
    Done::of(home.program("ssh-keygen").args(by_sha1)).exits(0);
    signed_by_them(&home, "key-cert.pub", "file");
    allow(&home, &[("*@b cert-authority", "old.pub")]);
    let why = "signed the certificate by SHA-1 (ssh-rsa), which is broken";
    home.run(verify).exits(1).says("file: malformed signature").says(why);
}

#[test]
fn revoked_keys_are_refused() {
    let home = Home::new();
    home.write("file", "content");
    their_key(&home, "key", &["ed25519"]);
    signed_by_them(&home, "key", "file");
    let verify = ["verify", "file", "-p", "key.pub", "--revoked"];
    home.write("none", "# none\n");
    home.run(verify.iter().chain(&["none"])).exits(0);
    home.run(verify.iter().chain(&["key.pub"])).exits(1).says("is revoked");
    home.write("none", "nothing\n");
    home.run(verify.iter().chain(&["none"])).exits(2).complains("none: line 1: ");
}

/// Makes a key revocation list of these lines (ssh-keygen(1), `KEY REVOCATION LISTS`).
fn revoke(home: &Home, flags: &[&str], lines: &str) {
    home.write("lines", lines);
    Done::of(home.program("ssh-keygen").args(["-q", "-k", "-f", "krl"]).args(flags).arg("lines")).exits(0);
}

#[test]
fn key_revocation_lists_of_ssh_keygen_are_read() {
    let home = Home::new();
    home.write("file", "content");
    for name in ["ca", "key", "other"] {
        their_key(&home, name, &["ed25519"]);
    }
    let sign = ["-q", "-s", "ca", "-I", "ann's laptop", "-z", "1000", "-n", "a@b", "key.pub"];
    Done::of(home.program("ssh-keygen").args(sign)).exits(0);
    allow(&home, &[("*@b cert-authority", "ca.pub"), ("a@b", "key.pub")]);
    let line = |name: &str| String::from_utf8(home.read(format!("{name}.pub"))).unwrap();
    let print = |name: &str, kind: &str| {
        let listed =
            home.program("ssh-keygen").args(["-l", "-E", kind, "-f", &format!("{name}.pub")]).output();
        let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
        listed.split(' ').nth(1).unwrap().to_owned()
    };
    let many: String = (0..400).map(|number| format!("serial: {}\n", 3 * number + 1)).collect();
    let (by_ca, by_any, by_other): (&[&str], &[&str], &[&str]) =
        (&["-s", "ca.pub"], &["-s", "none"], &["-s", "other.pub"]);
    // What the list has, and whether it revokes the certificate and the key in it.
    for (flags, lines, of_certificate, of_key) in [
        (&[][..], line("other"), false, false),
        (&[], line("key"), true, true),
        (&[], line("ca"), true, false),
        (&[], format!("sha256: {}\n", line("key")), true, true),
        (&[], format!("hash: {}\n", print("key", "sha256")), true, true),
        (&[], format!("hash: {}\n", print("other", "sha256")), false, false),
        (&[], format!("sha1: {}\n", line("key")), true, true),
        (&[], format!("sha1: {}\n", line("ca")), true, false),
        (&[], format!("sha1: {}\n", line("other")), false, false),
        (by_ca, "serial: 1000\n".to_owned(), true, false),
        (by_any, "serial: 1000\n".to_owned(), true, false),
        (by_other, "serial: 1000\n".to_owned(), false, false),
        (by_ca, "serial: 999\nserial: 1001\n".to_owned(), false, false),
        (by_ca, "serial: 900-1000\n".to_owned(), true, false),
        (by_ca, "serial: 900-999\n".to_owned(), false, false),
        // Every third number: 1000 is one of them. OpenSSH writes them as a bitmap.
        (by_ca, many.clone(), true, false),
        (by_ca, many.replace("serial: 1000\n", ""), false, false),
        (by_ca, "id: ann's laptop\n".to_owned(), true, false),
        (by_any, "id: ann's laptop\n".to_owned(), true, false),
        (by_ca, "id: ann\n".to_owned(), false, false),
    ] {
        revoke(&home, flags, &lines);
        for (name, is_revoked) in [("key-cert.pub", of_certificate), ("key", of_key)] {
            let about = format!("{flags:?} {} {name}", lines.get(..60).unwrap_or(&lines));
            signed_by_them(&home, name, "file");
            let theirs = "ssh-keygen -Y verify -f allowed -I a@b -n file -r krl -s file.sig < file";
            let theirs = Done::of(home.program("sh").args(["-c", theirs]));
            assert_eq!(theirs.code == Some(0), !is_revoked, "{about}: {}", theirs.stderr);
            let ours = home.run(["verify", "file", "--allowed-signers", "allowed", "--revoked", "krl"]);
            assert_eq!(ours.code, Some(is_revoked.into()), "{about}: {}{}", ours.stdout, ours.stderr);
            assert_eq!(ours.stdout.contains("is revoked"), is_revoked, "{about}: {}", ours.stdout);
        }
    }
    let whole = home.read("krl");
    home.write("krl", &whole[..whole.len() - 1]);
    let verify = ["verify", "file", "--allowed-signers", "allowed", "--revoked", "krl"];
    home.run(verify).exits(2).complains("krl: ").complains("in the key revocation list is malformed");
}

/// Runs git in `repository`, signing by ssh-keygen and verifying by the file `allowed`.
fn git(home: &Home, args: &[&str]) -> Done {
    let settings = [
        "gpg.format=ssh".to_owned(),
        "user.name=me".to_owned(),
        "user.email=a@b".to_owned(),
        format!("user.signingkey={}", home.path("key").display()),
        format!("gpg.ssh.allowedSignersFile={}", home.path("allowed").display()),
    ];
    let mut git = home.program("git");
    git.args(["-C", "repository"]);
    for setting in settings {
        git.args(["-c", &setting]);
    }
    Done::of(git.args(args))
}

/// The signed text of an object of git, and its signature.
fn split_commit(object: &str) -> (String, String) {
    let (mut text, mut signature, mut is_in) = (String::new(), String::new(), false);
    for line in object.split_inclusive('\n') {
        match line.strip_prefix("gpgsig ") {
            Some(first) => {
                is_in = true;
                signature.push_str(first);
            }
            None if is_in && line.starts_with(' ') => signature.push_str(&line[1..]),
            None => {
                is_in = false;
                text.push_str(line);
            }
        }
    }
    (text, signature)
}

#[test]
fn git_and_bulla_verify_the_commits_and_tags_of_each_other() {
    let home = Home::new();
    their_key(&home, "key", &["ed25519"]);
    home.write("repository/a", "a");
    git(&home, &["init", "-q"]).exits(0);
    git(&home, &["add", "a"]).exits(0);
    git(&home, &["commit", "-q", "-S", "-m", "a"]).exits(0);
    git(&home, &["tag", "-s", "-m", "one", "v1"]).exits(0);

    let commit = git(&home, &["cat-file", "commit", "HEAD"]).exits(0).stdout;
    let (text, signature) = split_commit(&commit);
    home.write("commit", &text);
    home.write("commit.sig", signature);
    let verify = ["--public-key", "key.pub", "--namespace", "git"];
    home.run(["verify", "commit"].iter().chain(&verify)).exits(0).says("commit: OK (ssh signature");
    home.run(["verify", "commit", "-p", "key.pub"]).exits(1).says("commit: wrong namespace");
    let tag = git(&home, &["cat-file", "tag", "v1"]).exits(0).stdout;
    let at = tag.find("-----BEGIN").unwrap();
    home.write("tag", &tag[..at]);
    home.write("tag.sig", &tag[at..]);
    home.run(["verify", "tag"].iter().chain(&verify)).exits(0).says("tag: OK (ssh signature");
    home.write("commit", text.replace("\na\n", "\nb\n"));
    home.run(["verify", "commit"].iter().chain(&verify)).exits(1).says("commit: changed");

    // Our signature of the same commit.
    home.write("commit", &text);
    fs::remove_file(home.path("commit.sig")).unwrap();
    home.run(["sign", "commit", "--format", "ssh", "--namespace", "git"]).exits(0);
    home.run(["keys", "export-public", "--format", "openssh", "-o", "ours.pub"]).exits(0);
    allow(&home, &[("a@b", "ours.pub")]);
    let signature = String::from_utf8(home.read("commit.sig")).unwrap();
    let (head, message) = text.split_once("\n\n").unwrap();
    let field = signature.trim_end().replace('\n', "\n ");
    home.write("object", format!("{head}\ngpgsig {field}\n\n{message}"));
    let object = ["hash-object", "-t", "commit", "-w", "../object"];
    let id = git(&home, &object).exits(0).stdout;
    git(&home, &["verify-commit", id.trim()]).exits(0).complains("Good \"git\" signature for a@b");
    allow(&home, &[("a@b", "key.pub")]);
    git(&home, &["verify-commit", id.trim()]).exits(1);
}

#[test]
fn flags_that_a_format_does_not_have_are_refused() {
    let home = Home::new();
    home.write("file", "content");
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "post", "--algorithm", "ml-dsa-44"]).exits(0);
    for (format, flags) in [
        ("ssh", &["--comment", "a"][..]),
        ("ssh", &["--embed"]),
        ("ssh", &["--namespace", ""]),
        ("ssh", &["--prehash", "blake3"]),
        ("ssh", &["--key", "post"]),
        ("signify", &["--comment", "a"]),
        ("signify", &["--namespace", "file"]),
        ("signify", &["--key", "post"]),
        ("minisign", &["--embed"]),
        ("bulla", &["--namespace", "file"]),
    ] {
        home.run(["sign", "file", "--format", format].iter().chain(flags)).exits(2);
        assert_eq!(home.names(), ["file"], "{format} {flags:?}");
    }
}

#[test]
fn the_signature_file_says_its_format_and_a_flag_may_ask_for_one() {
    let home = Home::new();
    home.write("file", "content");
    for (format, extension) in
        [("bulla", "bulla"), ("minisign", "minisig"), ("ssh", "sig"), ("signify", "sig")]
    {
        home.run(["sign", "file", "--format", format]).exits(0);
        let found = home.run(["verify", "file", "--json"]).exits(0).json();
        assert_eq!(found[0]["format"], format);
        home.run(["verify", "file", "--format", format]).exits(0);
        // Any name will do, and the file is moved out of the way of the next one.
        fs::rename(home.path(format!("file.{extension}")), home.path(format)).unwrap();
        let found = home.run(["verify", "file", "--json", "-s", format]).exits(0).json();
        assert_eq!(found[0]["format"], format);
        for other in ["bulla", "minisign", "ssh", "signify"] {
            let code = i32::from(other != format);
            home.run(["verify", "file", "-s", format, "--format", other]).exits(code);
        }
    }
    // Signatures of OpenSSH and signify have one name, and none replaces the other.
    home.run(["sign", "file", "--format", "ssh"]).exits(0);
    home.run(["sign", "file", "--format", "signify"])
        .exits(2)
        .complains("is not a signature file of signify");
    let hints = home.run(["verify", "file", "--format", "bulla"]).exits(2);
    hints.complains("there is no signature file file.bulla");
    // A line that is pasted works.
    let done = crate::sign::on_a_terminal(
        &mut home.program("script"),
        &format!("{} sign file --format ssh --namespace other", bulla()),
    );
    let line = &crate::sign::hinted_lines(&done)[0];
    Done::of(home.program("sh").args(["-c", line])).exits(0).says("file: OK (ssh signature by default v1)");
}
