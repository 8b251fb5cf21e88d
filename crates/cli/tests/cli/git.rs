//! git signs and verifies through bulla: the real git, which starts bulla as its `gpg.ssh.program`.

use crate::serving::{Serving, settings};
use crate::support::{Done, Home, bulla};
use std::fs;
use std::process::Command;

/// A home with a keystore, and with a repository for which bulla is set up with the key `work`.
fn set_up() -> Home {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "work"]).exits(0);
    repository(&home);
    sh(&home, "bulla git setup --key work").exits(0);
    home
}

/// A repository, and a user with an address.
pub(crate) fn repository(home: &Home) {
    sh(home, "git config --global user.name me && git config --global user.email me@example.org").exits(0);
    sh(home, "git init -q -b main .").exits(0);
}

/// Runs a shell in the repository, with bulla on the PATH and a configuration of git for this home.
fn shell(home: &Home, script: &str) -> Command {
    let mut command = home.program("sh");
    let folder = std::path::Path::new(bulla()).parent().unwrap().display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    command.args(["-e", "-c", script]).env("PATH", path).env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

pub(crate) fn sh(home: &Home, script: &str) -> Done {
    Done::of(&mut shell(home, script))
}

/// Makes a commit.
fn commit(home: &Home, message: &str) -> Done {
    sh(home, &format!("echo {message} >> file && git add file && git commit -q -m {message}"))
}

const GOOD: &str = "Good \"git\" signature for me@example.org with ED25519 key SHA256:";

#[test]
fn git_signs_commits_tags_and_pushes_and_verifies_them() {
    let home = set_up();
    commit(&home, "one").exits(0);
    sh(&home, "git tag -s -m tag v1 && git verify-tag v1").exits(0).complains(GOOD);
    sh(&home, "git verify-commit --raw HEAD").exits(0).complains(GOOD);
    sh(&home, "git log --show-signature").exits(0).says(GOOD);
    let format = "git log -1 --format='%G? %GS %GF'";
    sh(&home, format).exits(0).says("G me@example.org SHA256:");
    // ssh-keygen says the same of it.
    sh(&home, &format!("git -c gpg.ssh.program=ssh-keygen {}", &format[4..]))
        .exits(0)
        .says("G me@example.org");
    // Of a changed commit, neither accepts the signature.
    let changed = "git cat-file commit HEAD | sed s/one/two/ | git hash-object -t commit -w --stdin > id";
    sh(&home, changed).exits(0);
    sh(&home, "git verify-commit $(cat id)").exits(1).complains("the content is not what was signed");
    // A server that wants signed pushes verifies them by bulla, too.
    let push = "git init -q --bare server && cp .git/allowed_signers . && cd server \
        && git config gpg.ssh.program bulla && git config receive.certNonceSeed seed \
        && git config gpg.ssh.allowedSignersFile \"$PWD/../allowed_signers\" \
        && printf '#!/bin/sh\\necho $GIT_PUSH_CERT_STATUS $GIT_PUSH_CERT_SIGNER > pushed\\n' > hooks/post-receive \
        && chmod +x hooks/post-receive && cd .. && git push -q --signed=yes server main && cat server/pushed";
    sh(&home, push).exits(0).says("G me@example.org");
    sh(&home, "git -c user.signingkey=\"$PWD/none.pub\" commit -q --allow-empty -m no")
        .exits(128)
        .complains("none.pub");
}

#[test]
fn a_rebase_signs_each_commit_by_one_agent() {
    let home = Home::new();
    home.write_secret("passphrase", "correct horse\n");
    let init = ["keystore", "init", "--passphrase", "--passphrase-file", "passphrase"];
    home.run(init).exits(0);
    repository(&home);
    sh(&home, "bulla git setup --passphrase-file passphrase").exits(0);
    for message in ["one", "two", "three"] {
        commit(&home, message).exits(0);
    }
    // Without the passphrase, only the agent can sign: it has the keystore open.
    let secret = fs::read(home.path("passphrase")).unwrap();
    let agent = "bulla agent --passphrase-file passphrase -- sh -c 'rm passphrase; git rebase -q --force-rebase --root'";
    sh(&home, agent).exits(0);
    sh(&home, "git rebase -q --force-rebase --root").exits(1).complains("passphrase");
    sh(&home, "git rebase --abort").exits(0);
    home.write_secret("passphrase", secret);
    sh(&home, "git rebase -q --force-rebase --root").exits(0);
    assert_eq!(sh(&home, "git log --format=%G?").exits(0).stdout, "G\nG\nG\n");
}

#[test]
fn signatures_by_other_revoked_and_expired_keys_are_not_accepted() {
    let home = set_up();
    commit(&home, "one").exits(0);
    let verdict = |settings: &str| {
        let done = sh(&home, &format!("git {settings} log -1 --format='%G?%n%GG'")).exits(0);
        let theirs = format!("git -c gpg.ssh.program=ssh-keygen {settings} log -1 --format=%G?");
        let (ours, text) = done.stdout.split_once('\n').unwrap();
        assert_eq!(format!("{ours}\n"), sh(&home, &theirs).exits(0).stdout, "{settings}: {text}");
        (ours.to_owned(), text.to_owned())
    };
    let said = |settings: &str, letter: &str, text: &str| {
        let (found, said) = verdict(settings);
        assert!(found == letter && said.contains(text), "{settings}: {found} {said}");
    };
    said("", "G", GOOD);
    let line = String::from_utf8(fs::read(home.path(".git/allowed_signers")).unwrap()).unwrap();
    let (address, key) = line.trim_end().split_once(" namespaces=\"git\" ").unwrap();
    home.run(["keys", "export-public", "work", "--format", "openssh", "-o", "work.pub"]).exits(0);
    said("-c gpg.ssh.revocationFile=work.pub", "B", "is revoked");
    let with = |name: &str, line: String| {
        home.write(name, line);
        format!("-c gpg.ssh.allowedSignersFile={name}")
    };
    // What the key must have been at the time of the commit.
    let expired = with("expired", format!("{address} valid-before=\"20200101Z\" {key}\n"));
    said(&expired, "U", "No principal matched");
    let later = with("later", format!("{address} valid-after=\"29990101Z\" {key}\n"));
    said(&later, "U", "No principal matched");
    let other = with("other", format!("{address} namespaces=\"file\" {key}\n"));
    said(&other, "B", "do not have its key for this namespace");
    home.run(["keys", "create", "other"]).exits(0);
    home.run(["keys", "export-public", "other", "--format", "openssh", "-o", "other.pub"]).exits(0);
    let public = String::from_utf8(fs::read(home.path("other.pub")).unwrap()).unwrap();
    let unknown = with("unknown", format!("{address} {public}"));
    said(&unknown, "U", "Good \"git\" signature with ED25519 key SHA256:");
    sh(&home, &format!("git {unknown} verify-commit HEAD")).exits(1);
    // A signature file is never replaced.
    let sign = ["-Y", "sign", "-n", "file", "-f", "work.pub", "file"];
    home.run(sign).exits(0);
    home.run(sign).exits(255).complains("file.sig: exists already");
    // Two principals of one key, and a pattern.
    let two = with("two", format!("you@example.net,*@example.org {key}\n"));
    said(&two, "G", "Good \"git\" signature for you@example.net with ED25519 key");
}

#[test]
fn principals_are_matched_as_ssh_keygen_matches_them() {
    let home = set_up();
    let line = String::from_utf8(fs::read(home.path(".git/allowed_signers")).unwrap()).unwrap();
    let (_, key) = line.trim_end().split_once(" namespaces=\"git\" ").unwrap();
    let lines = ["a@b,*@c.org", "*@c.org,!a@* namespaces=\"git\"", "a@b valid-before=\"20200101Z\""];
    home.write("allowed", lines.map(|line| format!("{line} {key}\n")).concat());
    for (name, expected) in [
        ("a@b", "a@b,*@c.org\na@b\n"),
        ("d@c.org", "a@b,*@c.org\n*@c.org,!a@*\n"),
        ("a@c.org", "a@b,*@c.org\n"),
        ("d@b", ""),
    ] {
        let args = ["-Y", "match-principals", "-f", "allowed", "-I", name];
        let theirs = Done::of(home.program("ssh-keygen").args(args));
        let ours = home.run(args);
        assert_eq!((&*ours.stdout, &*theirs.stdout), (expected, expected), "{name}: {}", theirs.stderr);
        ours.exits(if expected.is_empty() { 255 } else { 0 });
    }
    home.run(["-Y", "match-principals", "-f", "allowed"]).exits(2);
}

#[test]
fn setup_says_what_it_set_and_how_to_undo_it() {
    let home = Home::new();
    repository(&home);
    sh(&home, "git config gpg.format openpgp").exits(0);
    let config = || fs::read(home.path(".git/config")).unwrap();
    let before = config();
    let done = sh(&home, "bulla git setup --json").exits(0);
    let set = &done.json()[0];
    assert!(done.stderr.contains("created the keystore"), "{}", done.stderr);
    assert_eq!((&set["scope"], &set["is_added"]), (&"local".into(), &true.into()));
    let value = |name: &str| sh(&home, &format!("git config {name}")).exits(0).stdout.trim_end().to_owned();
    assert_eq!(value("gpg.ssh.program"), bulla());
    assert_eq!(value("commit.gpgsign"), "true");
    commit(&home, "one").exits(0);
    // Again, there is nothing to set.
    let again = sh(&home, "bulla git setup --json").exits(0);
    assert_eq!(again.json()[0]["settings"].as_array().unwrap().len(), 0);
    assert_eq!(again.json()[0]["is_added"], false);
    for command in set["undo"].as_array().unwrap() {
        sh(&home, command.as_str().unwrap()).exits(0);
    }
    let left = String::from_utf8(config()).unwrap();
    let settings = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('[')).map(str::to_owned).collect()
    };
    assert_eq!(settings(&left), settings(&String::from_utf8(before).unwrap()));

    sh(&home, "git config --unset gpg.format").exits(0);
    // For all repositories, with a list that is there already, behind a link.
    home.write("list", "# mine\nyou@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPJnjBqXlYtNvrsXqBrFThGFuoHYj6B1fTCJKTXv0Yr");
    std::os::unix::fs::symlink("list", home.path("link")).unwrap();
    sh(&home, "git config --global gpg.ssh.allowedSignersFile \"$PWD/link\"").exits(0);
    sh(&home, "bulla git setup --global")
        .exits(0)
        .says("to undo this:\n  git config --global --unset gpg.format\n");
    let list = String::from_utf8(fs::read(home.path("list")).unwrap()).unwrap();
    assert_eq!(list.lines().count(), 3, "{list}");
    assert!(fs::symlink_metadata(home.path("link")).unwrap().is_symlink());
    assert_eq!(commit(&home, "two").exits(0).code, Some(0));
    sh(&home, "git verify-commit HEAD").exits(0).complains(GOOD);

    sh(&home, "git config --global user.email 'me, too'").exits(0);
    sh(&home, "bulla git setup --global").exits(2).complains("no list of signers can have");
    sh(&home, "git config --global --unset user.email").exits(0);
    sh(&home, "bulla git setup --global").exits(2).complains("git config --global user.email ADDRESS");
    sh(&home, "git config --global user.email me@example.org").exits(0);
    sh(&home, "cd / && bulla git setup").exits(2).complains("--global");
    sh(&home, "git config bulla.unknown x && git commit -q --allow-empty -m x")
        .exits(128)
        .complains("bulla.unknown is no setting of bulla");
}

#[test]
fn a_rotated_key_says_what_to_do() {
    let home = set_up();
    commit(&home, "one").exits(0);
    home.run(["keys", "rotate", "work"]).exits(0);
    commit(&home, "two").exits(128).complains("run `bulla git setup --key work`");
    sh(&home, "bulla git setup --key work").exits(0);
    commit(&home, "two").exits(0);
    assert_eq!(sh(&home, "git log --format=%G?").exits(0).stdout, "G\nG\n");
    home.run(["keys", "disable", "work"]).exits(0);
    commit(&home, "three").exits(128).complains("is disabled");
}

#[test]
fn git_signs_by_a_certificate_and_by_a_key_of_another_agent() {
    let home = set_up();
    home.run(["keys", "export-public", "work", "--format", "openssh", "-o", "work.pub"]).exits(0);
    sh(&home, "ssh-keygen -q -t ed25519 -N '' -f ca && ssh-keygen -q -s ca -I me -n me@example.org work.pub")
        .exits(0);
    sh(&home, "git config user.signingkey \"$PWD/work-cert.pub\"").exits(0);
    sh(&home, "(printf 'me@example.org cert-authority '; cat ca.pub) > .git/allowed_signers").exits(0);
    commit(&home, "one").exits(0);
    let certified = "Good \"git\" signature for me@example.org with ED25519-CERT key SHA256:";
    sh(&home, "git verify-commit HEAD").exits(0).complains(certified);
    sh(&home, "git -c gpg.ssh.program=ssh-keygen verify-commit HEAD").exits(0).complains(certified);
    // ssh-keygen's own agent, with keys that bulla does not have.
    for kind in ["rsa", "ecdsa"] {
        let script = format!(
            "ssh-keygen -q -t {kind} -N '' -f {kind} && ssh-add -q {kind} && rm {kind} \
             && git -c user.signingkey=\"$PWD/{kind}\" commit -q --allow-empty -m {kind} \
             && (printf 'you@example.org '; cat {kind}.pub) > list \
             && git -c gpg.ssh.allowedSignersFile=list verify-commit HEAD \
             && git -c gpg.ssh.allowedSignersFile=list -c gpg.ssh.program=ssh-keygen verify-commit HEAD"
        );
        home.write("script", format!("set -e\n{script}\n"));
        let done = sh(&home, "ssh-agent sh script").exits(0);
        assert_eq!(
            done.stderr.matches("Good \"git\" signature for you@example.org").count(),
            2,
            "{}",
            done.stderr
        );
    }
}

#[test]
fn git_signs_with_a_key_of_a_service() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "work"]).exits(0);
    repository(&home);
    settings(&home, "");
    let serving = Serving::start(&home);
    sh(&home, "bulla git setup --server unix:socket --key work").exits(0).says("bulla.server = unix:");
    sh(&home, "git config bulla.server").exits(0).says(&home.work().display().to_string());
    sh(&home, "mkdir folder && cd folder && echo one > file && git add file && git commit -q -m one")
        .exits(0);
    sh(&home, "git verify-commit HEAD").exits(0).complains(GOOD);
    drop(serving);
    commit(&home, "two").exits(128).complains("socket");
    // A variable says that the keys are elsewhere.
    let mut command = shell(&home, "git commit -q --allow-empty -m two");
    Done::of(command.env("BULLA_KEYSTORE", home.keystore())).exits(0);
}
