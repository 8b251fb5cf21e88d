//! `bulla threshold`: people with keystores of their own sign together. One folder stands for the
//! mail between them.

use crate::git::{repository, sh};
use crate::support::{Done, Home, Running, content, minisign};
use base64ct::{Base64UrlUnpadded, Encoding as _};
use serde_json::Value;
use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::{fs, path::Path};

const PEOPLE: [&str; 3] = ["ann", "bob", "carol"];
const FILE: &str = "releases.threshold";

/// `bulla threshold` as a person, who has a keystore of the own name.
fn person(home: &Home, name: &str) -> Command {
    let mut command = home.command();
    command.env("BULLA_KEYSTORE", home.path(name)).arg("threshold");
    command
}

fn run(home: &Home, name: &str, args: &[&str]) -> Done {
    Done::of(person(home, name).args(args))
}

fn make_cards(home: &Home) {
    for name in PEOPLE {
        Done::of(home.command().args(["keystore", "init", "--keystore", name])).exits(0);
        let card = run(home, name, &["card", name]).exits(0).complains("the fingerprint of this card is ");
        home.write(format!("{name}.card"), &card.stdout);
    }
}

fn start_group(home: &Home, size: &str) {
    make_cards(home);
    let new = ["new", size, "--name", "releases", "ann.card", "bob.card", "carol.card"];
    run(home, "ann", &new).exits(0).says("round 1 of 3 waits for bob, carol");
}

/// Makes the key of the group: the file goes round until everybody has a share.
fn make_group(home: &Home, size: &str) {
    start_group(home, size);
    let mut rounds = 0;
    let mut complete = HashSet::new();
    while complete.len() < PEOPLE.len() {
        rounds += 1;
        assert!(rounds <= 3, "the key is made in three rounds at most");
        for name in ["bob", "carol", "ann"] {
            let done = run(home, name, &["join", FILE, "--yes", "--json"]).exits(0);
            if done.json()[0]["complete"] == true {
                complete.insert(name);
            }
        }
    }
    run(home, "ann", &["export-public", "releases", "--output", "releases.pub"]).exits(0);
}

/// A command that waits for files.
struct Talk {
    running: Running,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Talk {
    fn start(home: &Home, name: &str, args: &[&str]) -> Self {
        let mut command = person(home, name);
        command.args(args).arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Running::start(&mut command);
        let (input, output) = (running.stdin.take(), running.stdout.take().expect("a pipe"));
        Self { running, input, output: BufReader::new(output) }
    }

    /// What it says next.
    #[track_caller]
    fn says(&mut self, status: &str) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it says something");
        let value: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it says {line:?}"));
        assert_eq!(value["status"], status, "{value}");
        value
    }

    fn type_line(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("a pipe"), "{line}").expect("it reads");
    }

    #[track_caller]
    fn ends(mut self) {
        drop(self.input.take());
        let status = self.running.wait().expect("it ends");
        assert!(status.success());
    }

    fn kill(mut self) {
        self.running.kill().expect("it runs");
        self.running.wait().expect("it ends");
    }
}

/// Ann and another one sign the file `app`, in formats with one step.
fn sign(home: &Home, other: &str, options: &[&str]) {
    let mut ann = Talk::start(home, "ann", &[&["sign", "app"], options].concat());
    ann.says("waiting");
    // The digest that is shown is the one that the signature covers.
    let is_own = options.contains(&"bulla");
    let function = if is_own { "blake3" } else { "sha512" };
    let sum = home.run(["sum", "--algorithm", function, "app"]).exits(0).stdout;
    let digest = sum.split(' ').next().unwrap_or_default();
    let asked = home.read("app.threshold");
    let approved = run(home, other, &["approve", "app.threshold", "--without-file", "--yes", "--json"])
        .exits(0)
        .complains("approved   ann")
        .complains(digest);
    assert_eq!(approved.stderr.contains("BLAKE3"), is_own, "{}", approved.stderr);
    assert_eq!(approved.json()[0]["digest"], digest);
    // The approval that is sent is another one.
    home.write("app.threshold", asked);
    run(home, other, &["approve", "app.threshold", "--yes"])
        .exits(0)
        .says("approved: send app.threshold to ann");
    ann.type_line("");
    let signed = ann.says("signed");
    assert_eq!(signed["approved"].as_array().map(Vec::len), Some(2));
    ann.ends();
}

#[test]
fn two_of_three_sign_for_bulla_openssh_and_minisign() {
    let home = Home::new();
    make_group(&home, "2-of-3");
    home.write("app", content(1, 300_000));
    run(&home, "carol", &["list"]).exits(0).says("releases: 2 of 3 sign (ann, bob, carol); you are carol");

    sign(&home, "bob", &["--format", "bulla"]);
    home.run(["verify", "app", "--public-key", "releases.pub"]).exits(0).says("app: OK");

    sign(&home, "carol", &["--format", "ssh"]);
    let key = run(&home, "bob", &["export-public", "releases", "--format", "openssh"]).exits(0).stdout;
    home.write("allowed", format!("releases {key}"));
    let verify = ["-Y", "verify", "-f", "allowed", "-I", "releases", "-n", "file", "-s", "app.sig"];
    Done::with_input(home.program("ssh-keygen").args(verify), &home.read("app")).exits(0);

    // minisign signs twice, so the file goes to bob twice.
    let mut ann =
        Talk::start(&home, "ann", &["sign", "app", "--format", "minisign", "--comment", "release 1.2"]);
    ann.says("waiting");
    let mut bob = Talk::start(&home, "bob", &["approve", "app.threshold", "--yes"]);
    bob.says("waiting");
    ann.type_line("app.threshold");
    ann.says("waiting");
    // A wrong name loses nothing.
    bob.type_line("no such file");
    bob.type_line("");
    bob.says("approved");
    bob.ends();
    ann.type_line("");
    ann.says("signed");
    ann.ends();
    run(&home, "ann", &["export-public", "releases", "--format", "minisign", "--output", "key.pub"]).exits(0);
    Done::of(home.program(minisign()).args(["-Vm", "app", "-p", "key.pub"]))
        .exits(0)
        .says("Trusted comment: release 1.2\n");
    for (format, signature) in [("minisign", "app.minisig"), ("ssh", "app.sig")] {
        let key = if format == "ssh" { "allowed" } else { "key.pub" };
        let flag = if format == "ssh" { "--allowed-signers" } else { "--public-key" };
        home.run(["verify", "app", "--signature", signature, flag, key]).exits(0).says("app: OK");
    }
    home.write("app", "tampered");
    home.run(["verify", "app", "--public-key", "releases.pub"]).exits(1);
}

#[test]
fn two_of_three_sign_a_tag_that_git_verifies() {
    let home = Home::new();
    make_group(&home, "2-of-3");
    let key = run(&home, "bob", &["export-public", "releases", "--format", "openssh"]).exits(0).stdout;
    home.write("allowed", format!("releases {key}"));
    repository(&home);
    sh(&home, "git commit -q --allow-empty -m one && git tag -a -m 1.0 v1 && git cat-file tag v1 > app")
        .exits(0);
    sign(&home, "carol", &["--format", "ssh", "--namespace", "git"]);
    sh(&home, "git update-ref refs/tags/v1 $(cat app app.sig | git hash-object -t tag -w --stdin)").exits(0);
    for program in ["ssh-keygen", "bulla"] {
        let verify =
            format!("git -c gpg.ssh.program={program} -c gpg.ssh.allowedSignersFile=allowed verify-tag v1");
        sh(&home, &verify).exits(0).complains("Good \"git\" signature for releases with ED25519 key SHA256:");
    }
    let other = "git update-ref refs/tags/v1 $(sed 's/^1.0$/2.0/' app | cat - app.sig | git hash-object -t tag -w --stdin)";
    sh(&home, other).exits(0);
    sh(&home, "git -c gpg.ssh.allowedSignersFile=allowed verify-tag v1").exits(1);
}

#[test]
fn three_of_three_wait_until_the_last_has_approved() {
    let home = Home::new();
    make_group(&home, "3-of-3");
    home.write("app", "content");
    let mut ann = Talk::start(&home, "ann", &["sign", "app"]);
    ann.says("waiting");
    let mut bob = Talk::start(&home, "bob", &["approve", "app.threshold", "--yes"]);
    bob.says("waiting");
    run(&home, "carol", &["approve", "app.threshold", "--yes"]).exits(0).complains("approved   ann, bob");
    bob.type_line("");
    bob.says("approved");
    bob.ends();
    ann.type_line("");
    ann.says("signed");
    ann.ends();
    home.run(["verify", "app", "--public-key", "releases.pub"]).exits(0).says("app: OK");
}

#[test]
fn a_person_approves_the_own_copy_of_the_file_and_nothing_else() {
    let home = Home::new();
    make_group(&home, "2-of-3");
    home.write("app", "content");
    let mut ann = Talk::start(&home, "ann", &["sign", "app"]);
    ann.says("waiting");
    let asked = home.read("app.threshold");
    home.write("other", "another content");
    let approve = |args: &[&str]| run(&home, "bob", &[&["approve", "app.threshold"], args].concat());
    approve(&["--file", "other", "--yes"]).exits(2).complains("is not what you are asked to approve");
    fs::rename(home.path("app"), home.path("moved")).unwrap();
    approve(&["--yes"]).exits(2).complains("you do not have the file").complains("--without-file");
    // Whoever does not type yes has approved nothing.
    let no = person(&home, "bob")
        .args(["approve", "app.threshold", "--file", "moved"])
        .stdin(Stdio::null())
        .output();
    let no = Done::from(no.unwrap()).exits(2);
    no.complains("ann asks releases to sign").complains("7 bytes").complains("Do you approve?");
    assert_eq!(home.read("app.threshold"), asked);
    approve(&["--without-file", "--yes"]).exits(0).complains("you did not compare the file");
    ann.type_line("");
    ann.says("signed");
    ann.ends();
    home.run(["verify", "moved", "--signature", "app.bulla", "--public-key", "releases.pub"]).exits(0);
}

/// All commitments to nonces in a file.
fn commitments(home: &Home, file: &str) -> Vec<String> {
    let text = String::from_utf8(home.read(file)).unwrap();
    let approvals = text.lines().filter_map(|line| line.strip_prefix("bulla-threshold-v1:approval:"));
    let bodies = approvals.map(|rest| {
        let body = rest.split(':').next().unwrap();
        serde_json::from_slice::<Value>(&Base64UrlUnpadded::decode_vec(body).unwrap()).unwrap()
    });
    let pairs = bodies.flat_map(|body| {
        let all = body["content"]["approval"]["commitments"].as_array().unwrap().clone();
        all.into_iter().flat_map(|pair| [pair["hiding"].to_string(), pair["binding"].to_string()])
    });
    pairs.collect()
}

fn copy_folder(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

#[test]
fn a_kill_or_a_restored_folder_repeats_no_nonce_and_loses_only_an_approval() {
    let home = Home::new();
    make_group(&home, "2-of-3");
    home.write("app", "content");
    for name in PEOPLE {
        copy_folder(&home.path(name), &home.path(format!("{name}.backup")));
    }
    let mut seen = HashSet::new();
    let mut record = |file: &str, new: usize| {
        let before = seen.len();
        seen.extend(commitments(&home, file));
        assert_eq!(seen.len(), before + new, "as many new commitments");
    };
    // Ann is killed after she has asked, and her folder is restored.
    for _ in 0..2 {
        let mut ann = Talk::start(&home, "ann", &["sign", "app"]);
        ann.says("waiting");
        record("app.threshold", 2);
        ann.kill();
        copy_folder(&home.path("ann.backup"), &home.path("ann"));
    }
    // Bob is killed after he has approved, in a format that wants him twice; his folder is
    // restored.
    let mut ann = Talk::start(&home, "ann", &["sign", "app", "--format", "minisign"]);
    ann.says("waiting");
    record("app.threshold", 4);
    fs::copy(home.path("app.threshold"), home.path("asked")).unwrap();
    let mut bob = Talk::start(&home, "bob", &["approve", "app.threshold", "--yes"]);
    bob.says("waiting");
    record("app.threshold", 4);
    bob.kill();
    copy_folder(&home.path("bob.backup"), &home.path("bob"));
    // Ann did not get that approval. Bob approves what he had got, again.
    fs::rename(home.path("asked"), home.path("app.threshold")).unwrap();
    let mut bob = Talk::start(&home, "bob", &["approve", "app.threshold", "--yes"]);
    bob.says("waiting");
    record("app.threshold", 4);
    ann.type_line("");
    ann.says("waiting");
    bob.type_line("");
    bob.says("approved");
    bob.ends();
    ann.type_line("");
    ann.says("signed");
    ann.ends();
    home.run(["verify", "app", "--signature", "app.minisig", "--public-key", "releases.pub"]).exits(0);
}

#[test]
fn making_a_key_continues_after_a_restored_folder_and_refuses_what_cannot_be_continued() {
    let home = Home::new();
    start_group(&home, "2-of-3");
    copy_folder(&home.path("bob"), &home.path("bob.before"));
    let join = |name: &str| run(&home, name, &["join", FILE, "--yes", "--json"]);
    join("bob").exits(0);
    copy_folder(&home.path("bob"), &home.path("bob.joined"));
    join("carol").exits(0);
    join("ann").exits(0);
    join("bob").exits(0);
    // Bob's own messages are in the file, so an older copy of what he kept goes on.
    copy_folder(&home.path("bob.joined"), &home.path("bob"));
    join("bob").exits(0);
    // From before he joined, nothing can go on.
    copy_folder(&home.path("bob.before"), &home.path("bob.lost"));
    run(&home, "bob.lost", &["join", FILE, "--yes"]).exits(2).complains("you have joined this group before");
    for name in ["carol", "ann", "bob", "carol", "ann", "bob"] {
        join(name).exits(0);
    }
    let key = |name: &str| run(&home, name, &["export-public", "releases"]).exits(0).stdout;
    assert_eq!(key("ann"), key("carol"));
    assert_eq!(key("ann"), key("bob"));
}

const REFRESH: &str = "releases.refresh.threshold";
const REPAIR: &str = "releases.repair.threshold";

/// A person joins what a file began: whether it is complete, for that person.
#[track_caller]
fn join(home: &Home, name: &str, file: &str) -> bool {
    run(home, name, &["join", file, "--yes", "--json"]).exits(0).json()[0]["complete"] == true
}

/// Two people sign `app`, one of whom has asked.
#[track_caller]
fn signs_together(home: &Home, requester: &str, other: &str) {
    let mut talk = Talk::start(home, requester, &["sign", "app"]);
    talk.says("waiting");
    run(home, other, &["approve", "app.threshold", "--yes"]).exits(0);
    talk.type_line("");
    talk.says("signed");
    talk.ends();
    home.run(["verify", "app", "--public-key", "releases.pub"]).exits(0).says("app: OK");
}

#[test]
fn a_refresh_moves_everybody_or_nobody_and_takes_a_share_from_the_one_left_out() {
    let home = Home::new();
    make_group(&home, "2-of-3");
    home.write("app", "content");
    run(&home, "ann", &["refresh", "releases", "--leave-out", "ann"])
        .exits(2)
        .complains("leave yourself out");
    run(&home, "ann", &["refresh", "releases", "--leave-out", "dave"])
        .exits(2)
        .complains("dave has no share");
    run(&home, "ann", &["refresh", "releases"]).exits(0).says("round 1 of 3 waits for bob, carol");
    run(&home, "ann", &["refresh", "releases"]).exits(2).complains("another refresh of this group has begun");
    run(&home, "ann", &["list"]).exits(0).says("a refresh has begun");
    assert!(!join(&home, "bob", REFRESH));
    assert!(!join(&home, "carol", REFRESH));
    assert!(!join(&home, "ann", REFRESH));
    // Everybody has joined, nobody has confirmed: the old shares sign.
    signs_together(&home, "ann", "bob");
    copy_folder(&home.path("bob"), &home.path("bob.before"));
    assert!(!join(&home, "bob", REFRESH));
    assert!(!join(&home, "carol", REFRESH));
    // Bob and carol have confirmed, so ann has all that she needs, and they have the file with her
    // confirmation before her old share is replaced.
    assert!(join(&home, "ann", REFRESH));
    run(&home, "ann", &["list"]).exits(0).says("epoch 1");
    let mut bob = Talk::start(&home, "bob", &["sign", "app"]);
    bob.says("waiting");
    run(&home, "ann", &["approve", "app.threshold", "--yes"])
        .exits(2)
        .complains("older or newer shares of this key")
        .complains("run `bulla threshold join` on the file of the refresh");
    bob.kill();
    // A folder from before the confirmation goes on, too.
    copy_folder(&home.path("bob.before"), &home.path("bob"));
    assert!(join(&home, "bob", REFRESH));
    assert!(join(&home, "bob", REFRESH), "it says so again");
    signs_together(&home, "bob", "ann");
    assert!(join(&home, "carol", REFRESH));
    signs_together(&home, "carol", "bob");

    // Carol leaves. Bob gives his part up first, and then the two agree.
    fs::remove_file(home.path(REFRESH)).unwrap();
    run(&home, "ann", &["refresh", "releases", "--leave-out", "carol"]).exits(0).says("waits for bob");
    run(&home, "carol", &["join", REFRESH, "--yes"])
        .exits(2)
        .complains("carol gets no share in this refresh");
    let no = person(&home, "bob").args(["join", REFRESH]).stdin(Stdio::null()).output();
    Done::from(no.unwrap()).exits(2).complains("no share       carol").complains("you did not type yes");
    let begun = home.read(REFRESH);
    assert!(!join(&home, "bob", REFRESH));
    run(&home, "bob", &["refresh", "releases", "--cancel"]).exits(0).complains("your share is as before");
    run(&home, "bob", &["refresh", "releases", "--cancel"]).exits(2).complains("no refresh of this group");
    run(&home, "bob", &["join", REFRESH, "--yes"]).exits(2).complains("your part of it is missing");
    // Nobody has seen that part of his.
    home.write(REFRESH, begun);
    for (name, complete) in [("bob", false), ("ann", false), ("bob", true), ("ann", true)] {
        assert_eq!(join(&home, name, REFRESH), complete, "{name}");
    }
    signs_together(&home, "ann", "bob");
    run(&home, "bob", &["list"]).exits(0).says("2 of 2 sign (ann, bob)").says("epoch 2");
    let mut ann = Talk::start(&home, "ann", &["sign", "app"]);
    ann.says("waiting");
    run(&home, "carol", &["approve", "app.threshold", "--yes"]).exits(2).complains("older or newer shares");
    ann.kill();
    run(&home, "ann", &["repair", "releases", "--for", "carol"]).exits(2).complains("carol has no share now");
}

#[test]
fn a_lost_share_is_repaired_by_the_others() {
    let home = Home::new();
    make_group(&home, "2-of-3");
    home.write("app", "content");
    fs::remove_file(home.path("carol/threshold/releases.share")).unwrap();
    run(&home, "carol", &["list"]).exits(0).complains("you have no share of any key");
    run(&home, "ann", &["repair", "releases", "--for", "ann"]).exits(2).complains("it is not lost");
    let few = ["repair", "releases", "--for", "carol", "--helper", "ann"];
    run(&home, "ann", &few).exits(2).complains("a share is repaired by at least 2 others");
    run(&home, "ann", &["repair", "releases", "--for", "carol"])
        .exits(0)
        .says("round 1 of 4 waits for carol");
    run(&home, "bob", &["join", REPAIR, "--yes"]).exits(2).complains("carol must ask for the repair first");
    let no = person(&home, "carol").args(["join", REPAIR]).stdin(Stdio::null()).output();
    Done::from(no.unwrap()).exits(2).complains("ann, bob help you").complains("you did not type yes");
    run(&home, "carol", &["join", REPAIR, "--yes"]).exits(0).says("round 2 of 4 waits for ann, bob");
    let asked = home.read(REPAIR);
    let no = person(&home, "ann").args(["join", REPAIR]).stdin(Stdio::null()).output();
    Done::from(no.unwrap()).exits(2).complains("Did carol tell you so");
    run(&home, "ann", &["join", REPAIR, "--yes"]).exits(0).says("round 3 of 4 waits for bob");
    // A file from before ann's answer comes back to her: she says the same again.
    let answer = |file: &[u8]| {
        let text = String::from_utf8(file.to_vec()).unwrap();
        text.lines().find(|line| line.starts_with("bulla-threshold-v1:repair-delta:")).map(str::to_owned)
    };
    let answered = answer(&home.read(REPAIR));
    assert!(answered.is_some());
    home.write(REPAIR, asked);
    run(&home, "ann", &["join", REPAIR]).exits(0).says("round 3 of 4 waits for bob");
    assert_eq!(answer(&home.read(REPAIR)), answered);
    run(&home, "bob", &["join", REPAIR, "--yes"]).exits(0).says("waits for ann");
    run(&home, "ann", &["join", REPAIR]).exits(0).says("round 4 of 4 waits for carol");
    let last = home.read(REPAIR);
    run(&home, "carol", &["join", REPAIR]).exits(0).says("you have your share of releases again");
    run(&home, "carol", &["join", REPAIR]).exits(0).says("you have your share of releases again");
    signs_together(&home, "carol", "bob");
    // What carol asked for is of no use to anybody else.
    home.write("for-bob", last);
    run(&home, "bob", &["join", "for-bob"]).exits(0).says("waits for carol");
}

#[test]
fn what_is_wrong_with_a_file_or_a_group_is_said() {
    let home = Home::new();
    run(&home, "ann", &["card", "ann"]).exits(2).complains("there is no keystore");
    make_cards(&home);
    run(&home, "ann", &["card", "anna"]).exits(2).complains("your name in groups is ann already");
    let new =
        |size: &str, cards: &[&str]| run(&home, "ann", &[&["new", size, "--name", "x"], cards].concat());
    new("2of3", &["ann.card"]).exits(2).complains("write for example 2-of-3");
    new("2-of-3", &["ann.card", "bob.card"]).exits(2).complains("2 cards were given for a group of 3");
    new("1-of-2", &["ann.card", "bob.card"]).exits(2).complains("at least 2 participants sign");
    new("2-of-2", &["carol.card", "bob.card"]).exits(2).complains("ann is not in the group");
    let card = String::from_utf8(home.read("bob.card")).unwrap();
    home.write("cut.card", &card[..card.len() / 2]);
    new("2-of-2", &["ann.card", "cut.card"]).exits(2).complains("cut.card: line 1: not a threshold message");
    run(&home, "ann", &["join", "bob.card"]).exits(2).complains("the file does not begin a group");
    run(&home, "ann", &["approve", "bob.card"]).exits(2).complains("does not ask for a signature");
    home.write("app", "content");
    run(&home, "ann", &["sign", "app"]).exits(2).complains("you have no share of any key");
    assert!(!home.path("x.threshold").exists());
}
