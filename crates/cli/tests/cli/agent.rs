//! `bulla agent`, with the real programs of OpenSSH and git as its clients.

use crate::both::remote;
use crate::serving::{Serving, settings};
use crate::support::{Done, Home, Running};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};

/// A home with the keys `default` and `work` of Ed25519 and `curve` of P-256, and with keys that
/// OpenSSH cannot use.
fn with_keys() -> Home {
    let home = Home::new();
    for args in [
        &["keystore", "init"][..],
        &["log", "init"],
        &["keys", "create", "work"],
        &["keys", "create", "curve", "--algorithm", "ecdsa-p256"],
        &["keys", "create", "lasting", "--algorithm", "ml-dsa-44"],
        &["keys", "create", "transport", "--algorithm", "x-wing"],
        &["keys", "create", "old"],
        &["keys", "disable", "old"],
        &["token", "new", "--operation", "sign", "--expires", "1h", "--output", "token"],
    ] {
        home.run(args).exits(0);
    }
    home
}

/// Runs a program of OpenSSH below the agent with these flags.
fn under(home: &Home, flags: &[&str], program: &[&str]) -> Done {
    Done::of(home.command().arg("agent").args(flags).arg("--").args(program))
}

/// An agent in the background. It is killed when it is dropped.
struct Background {
    agent: Running,
    line: String,
}

fn background(command: &mut Command) -> Background {
    let mut agent = Running::start(command.stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Background { agent, line }
}

/// The labels that `ssh-add -L` prints, sorted.
fn labels(done: &Done) -> Vec<&str> {
    let mut labels: Vec<_> = done.stdout.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    labels.sort_unstable();
    labels
}

#[test]
fn ssh_add_lists_the_keys_that_sign() {
    let home = with_keys();
    let listed = under(&home, &[], &["ssh-add", "-L"]).exits(0);
    assert_eq!(labels(&listed), ["curve", "default", "work"]);
    let public = home.run(["keys", "export-public", "work", "--format", "openssh"]).exits(0).stdout;
    assert!(listed.stdout.contains(&format!("{} work\n", public.trim_end())), "{}", listed.stdout);
    // A key that rotates is offered with its new version, by an agent that runs already.
    let agent = background(home.command().args(["agent", "--socket", "socket"]));
    home.run(["keys", "rotate", "work"]).exits(0);
    let rotated = Done::of(home.program("ssh-add").arg("-L").env("SSH_AUTH_SOCK", "socket")).exits(0);
    assert_eq!(labels(&rotated), ["curve", "default", "work"]);
    assert!(!rotated.stdout.contains(public.trim_end()));
    drop(agent);

    let one = under(&home, &["--key", "curve", "--key", "work"], &["ssh-add", "-L"]).exits(0);
    assert_eq!(labels(&one), ["curve", "work"]);
    for (name, problem) in [
        ("nothing", "there is no key with the label"),
        ("lasting", "OpenSSH gets Ed25519, ECDSA and RSA keys"),
        ("transport", "does not sign"),
        ("old", "is disabled"),
    ] {
        under(&home, &["--key", name], &["true"]).exits(2).complains(problem);
    }
}

#[test]
fn ssh_keygen_signs_with_each_kind_of_key() {
    let home = with_keys();
    home.write("file", "content");
    let keys = under(&home, &[], &["ssh-add", "-L"]).exits(0).stdout;
    for line in keys.lines() {
        home.write("key.pub", line);
        home.write("allowed", format!("me@example.org {line}\n"));
        let sign = ["ssh-keygen", "-Y", "sign", "-n", "file", "-f", "key.pub", "file"];
        under(&home, &[], &sign).exits(0);
        let verify = "ssh-keygen -Y verify -f allowed -I me@example.org -n file -s file.sig < file";
        Done::of(home.program("sh").args(["-c", verify])).exits(0).says("Good \"file\" signature");
        fs::remove_file(home.path("file.sig")).unwrap();
    }
    // The audit log has the signatures.
    let log = home.run(["log", "show", "--json"]).exits(0);
    let log = log.json();
    let of_files = log.iter().filter(|entry| entry["op"] == "sign" && entry["digest"].is_string());
    assert_eq!(of_files.count(), 3, "{log:?}");
    // What no program of OpenSSH signs: a digest as minisign has it, and a statement of bulla.
    let agent = background(home.command().args(["agent", "--socket", "socket"]));
    let key = blob_of(keys.lines().find(|line| line.ends_with(" work")).unwrap());
    for data in [&[7; 64][..], b"bulla signature\0v1", b"", b"SSHSIG of a file"] {
        assert_eq!(ask(&home, &sign_request(&key, data)), [5]);
    }
    assert_eq!(ask(&home, &sign_request(&key, &content()))[0], 14);
    drop(agent);
}

/// Asks for a signature.
fn sign_request(key: &[u8], data: &[u8]) -> Vec<u8> {
    [&[13][..], &field(key), &field(data), &[0; 4]].concat()
}

/// The bytes in the second word of a line.
fn blob_of(line: &str) -> Vec<u8> {
    use base64ct::Encoding as _;
    base64ct::Base64::decode_vec(line.split_whitespace().nth(1).unwrap()).unwrap()
}

fn field(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// The bytes that `ssh-keygen -Y sign` signs for a file.
fn content() -> Vec<u8> {
    let fields = [field(b"file"), field(b""), field(b"sha512"), field(&[7; 64])];
    [b"SSHSIG", &fields.concat()[..]].concat()
}

/// A connection to the agent at `socket`.
fn connect(home: &Home) -> UnixStream {
    UnixStream::connect(home.path("socket")).unwrap()
}

/// Sends a message to the agent at `socket`, and returns its answer.
fn ask(home: &Home, message: &[u8]) -> Vec<u8> {
    ask_on(&mut connect(home), message)
}

fn ask_on(stream: &mut UnixStream, message: &[u8]) -> Vec<u8> {
    stream.write_all(&field(message)).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut answer).unwrap();
    answer
}

#[test]
fn git_signs_commits_and_tags() {
    let home = with_keys();
    let key = under(&home, &["--key", "work"], &["ssh-add", "-L"]).exits(0).stdout;
    home.write("allowed", format!("me@example.org {key}"));
    home.write("file", "content");
    let script = format!(
        "set -e
        git init -q repository && cd repository
        git config user.name me && git config user.email me@example.org
        git config gpg.format ssh && git config user.signingKey 'key::{}'
        git config gpg.ssh.allowedSignersFile ../allowed
        cp ../file . && git add file
        git commit -q -S -m 'a commit' && git tag -s -m 'a tag' v1
        git verify-commit HEAD && git verify-tag v1",
        key.trim_end()
    );
    let done = under(&home, &[], &["sh", "-c", &script]).exits(0);
    assert_eq!(
        done.stderr.matches("Good \"git\" signature for me@example.org").count(),
        2,
        "{}",
        done.stderr
    );
}

/// Logs in at a real server of OpenSSH, which these settings complete, and says so there.
fn log_in(home: &Home, settings: &str, flags: &[&str]) -> Done {
    let ssh = ssh(home, settings, &[flags, &["server.test", "echo", "logged", "in"]].concat());
    under(home, &[], &ssh.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The command that logs in at a real server of OpenSSH, which these settings complete.
pub(crate) fn ssh(home: &Home, settings: &str, arguments: &[&str]) -> Vec<String> {
    let work = home.work().display().to_string();
    let settings = format!(
        "HostKey {work}/host\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPidFile none\n{settings}\n"
    );
    home.write("sshd_config", settings);
    // The server talks to standard input and output: no port is guessed, and nobody else connects.
    let server = format!("ProxyCommand=/usr/sbin/sshd -i -e -f {work}/sshd_config 2>> {work}/sshd.log");
    let mut ssh =
        vec!["ssh", "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=known"];
    ssh.extend(["-o", "BatchMode=yes", "-o", &server]);
    ssh.extend(arguments);
    ssh.into_iter().map(str::to_owned).collect()
}

/// The keys of a server that lets `key` in; its settings.
pub(crate) fn server_for(home: &Home, key: &str) -> String {
    Done::of(home.program("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", "host"])).exits(0);
    // A server that root starts asks for this folder, which its service makes.
    let _ = fs::create_dir_all("/run/sshd");
    home.write_secret("authorized", key);
    format!("AuthorizedKeysFile {}/authorized", home.work().display())
}

#[test]
fn a_server_signs_no_file_by_a_forwarded_agent_unless_that_is_confirmed() {
    let home = with_keys();
    let key = under(&home, &["--key", "work"], &["ssh-add", "-L"]).exits(0).stdout;
    let settings = server_for(&home, &key);
    home.write("key.pub", &key);
    home.write("file", "content");
    home.write("askpass", "#!/bin/sh\necho \"$1\" >> asked\n");
    home.chmod("askpass", 0o700);
    let there = format!(
        "cd {} && ssh-add -L | cut -d ' ' -f 3 && ssh-keygen -q -Y sign -n file -f key.pub file",
        home.work().display()
    );
    let ssh = ssh(&home, &settings, &["-A", "server.test", &there]);
    let log_in = |flags: &[&str]| {
        let mut command = home.command();
        command.args(["agent", "--key", "work"]).args(flags).arg("--").args(&ssh);
        Done::of(command.env("SSH_ASKPASS", home.path("askpass")))
    };
    let done = log_in(&[]);
    assert_ne!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.stdout, "work\n", "{}", done.stderr);
    done.complains("a server to which the agent is forwarded asked the key work to sign a file or a commit");
    assert!(!home.path("file.sig").exists() && !home.path("asked").exists());
    log_in(&["--confirm"]).exits(0);
    assert!(home.path("file.sig").exists());
    let asked = String::from_utf8(home.read("asked")).unwrap();
    let (login, file) = asked.split_once("Allow the use of the key work by a server").unwrap();
    assert!(login.starts_with("Allow the use of the key work?") && !file.contains("Allow"), "{asked}");
    // Nothing on the connection takes back that it is forwarded.
    let agent = background(home.command().args(["agent", "--socket", "socket"]));
    let bind = |last: u8| {
        [&[27][..], &field(b"session-bind@openssh.com"), &field(b""), &field(b""), &field(b""), &[last]]
            .concat()
    };
    let sign = sign_request(&blob_of(&key), &content());
    let mut stream = connect(&home);
    assert_eq!(ask_on(&mut stream, &sign)[0], 14);
    for (request, expected) in [(bind(0), 6), (sign.clone(), 14), (bind(1), 6), (bind(0), 6), (sign, 5)] {
        assert_eq!(ask_on(&mut stream, &request)[0], expected);
    }
    drop(agent);
}

#[test]
fn ssh_logs_in() {
    let home = with_keys();
    let keygen = |args: &[&str]| Done::of(home.program("ssh-keygen").arg("-q").args(args)).exits(0);
    keygen(&["-t", "ed25519", "-N", "", "-f", "authority"]);
    let authorized = server_for(&home, "");
    let listed = under(&home, &["--key", "work", "--key", "curve"], &["ssh-add", "-L"]).exits(0).stdout;
    for key in listed.lines() {
        home.write_secret("authorized", format!("{key}\n"));
        let done = log_in(&home, &authorized, &[]);
        let log = String::from_utf8_lossy(&home.read("sshd.log")).into_owned();
        assert_eq!((done.code, &*done.stdout), (Some(0), "logged in\n"), "{key}: {}{log}", done.stderr);
    }
    // By a certificate for a key of the agent.
    home.write("key.pub", listed.lines().next().unwrap());
    let user = Done::of(home.program("id").arg("-un")).exits(0).stdout;
    keygen(&["-s", "authority", "-I", "me", "-n", user.trim_end(), "key.pub"]);
    let trusted =
        format!("AuthorizedKeysFile none\nTrustedUserCAKeys {}/authority.pub", home.work().display());
    log_in(&home, &trusted, &["-o", "CertificateFile=key-cert.pub"]).exits(0).says("logged in");
    log_in(&home, &trusted, &[]).exits(255).complains("Permission denied");
}

#[test]
fn keys_of_rsa_and_of_every_curve_log_in_and_sign_by_a_service() {
    let home = with_keys();
    settings(&home, "[[listen]]\naddress = \"127.0.0.1:0\"\n");
    let serving = Serving::start(&home);
    let server = ["--server", "unix:socket"];
    let algorithms = ["rsa-2048", "rsa-3072", "ecdsa-p384", "ecdsa-p521"];
    for algorithm in algorithms {
        home.run(["keys", "create", algorithm, "--algorithm", algorithm].iter().chain(&server)).exits(0);
    }
    let listed = under(&home, &server, &["ssh-add", "-L"]).exits(0);
    assert!(algorithms.iter().all(|name| labels(&listed).contains(name)), "{}", listed.stdout);
    let authorized = server_for(&home, "");
    home.write("file", "content");
    let of_test = |line: &&str| algorithms.iter().any(|name| line.ends_with(&format!(" {name}")));
    for key in listed.stdout.lines().filter(of_test) {
        home.write_secret("authorized", format!("{key}\n"));
        // A key of RSA signs by each hash function that a server may ask for.
        let accepted: &[&str] =
            if key.starts_with("ssh-rsa") { &["rsa-sha2-256", "rsa-sha2-512"] } else { &["*"] };
        for name in accepted {
            let settings = format!("{authorized}\nPubkeyAcceptedAlgorithms {name}");
            let asked = format!("PubkeyAcceptedAlgorithms={name}");
            let words = ssh(&home, &settings, &["-o", &asked, "server.test", "echo", "logged", "in"]);
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let label = key.rsplit(' ').next().unwrap();
            let done = under(&home, &[&server[..], &["--key", label]].concat(), &words);
            let log = String::from_utf8_lossy(&home.read("sshd.log")).into_owned();
            assert_eq!((done.code, &*done.stdout), (Some(0), "logged in\n"), "{key}: {}{log}", done.stderr);
        }
        // Signatures of files: by ssh-keygen with the agent, and as git asks bulla for them.
        home.write("key.pub", key);
        home.write("allowed", format!("me@example.org {key}\n"));
        let verify = "ssh-keygen -Y verify -f allowed -I me@example.org -n file -s file.sig < file";
        let verified = || {
            Done::of(home.program("sh").args(["-c", verify])).exits(0).says("Good \"file\" signature");
            fs::remove_file(home.path("file.sig")).unwrap();
        };
        let sign = ["-Y", "sign", "-n", "file", "-f", "key.pub", "file"];
        under(&home, &server, &[&["ssh-keygen"][..], &sign].concat()).exits(0);
        verified();
        Done::of(home.command().env("BULLA_ADDR", "unix:socket").args(sign)).exits(0);
        verified();
    }
    // A signature by SHA-1.
    let mut command = home.command();
    let agent = background(command.args(["agent", "--socket", "agent"]).args(server));
    let key = blob_of(listed.stdout.lines().find(|line| line.ends_with(" rsa-2048")).unwrap());
    let mut stream = UnixStream::connect(home.path("agent")).unwrap();
    assert_eq!(ask_on(&mut stream, &sign_request(&key, &content())), [5]);
    drop((agent, serving));
}

#[test]
fn an_agent_is_locked_and_unlocked() {
    let home = with_keys();
    let agent = background(home.command().args(["agent", "--socket", "socket"]));
    let ssh_add = |flag: &str, passphrase: &str| {
        home.write("askpass", format!("#!/bin/sh\necho {passphrase}\n"));
        home.chmod("askpass", 0o700);
        let mut command = home.program("ssh-add");
        command.arg(flag).env("SSH_AUTH_SOCK", "socket").env("SSH_ASKPASS", home.path("askpass"));
        Done::of(command.env("SSH_ASKPASS_REQUIRE", "force").env("DISPLAY", ":0"))
    };
    ssh_add("-x", "one").exits(0);
    ssh_add("-L", "").exits(1).says("The agent has no identities.");
    let key = home.run(["keys", "export-public", "work", "--format", "openssh"]).exits(0).stdout;
    let request = sign_request(&blob_of(&key), &content());
    assert_eq!(ask(&home, &request), [5]);
    ssh_add("-X", "two").exits(1);
    ssh_add("-X", "one").exits(0);
    assert_eq!(labels(&ssh_add("-L", "").exits(0)).len(), 3);
    assert_eq!(ask(&home, &request)[0], 14);
    drop(agent);
}

#[test]
fn a_signature_waits_for_a_confirmation() {
    let home = with_keys();
    home.write("file", "content");
    home.write("key.pub", under(&home, &["--key", "work"], &["ssh-add", "-L"]).exits(0).stdout);
    let sign = ["ssh-keygen", "-Y", "sign", "-n", "file", "-f", "key.pub", "file"];
    let signs = |askpass: &str, code: i32| {
        home.write("askpass", format!("#!/bin/sh\necho \"$SSH_ASKPASS_PROMPT: $1\" >> asked\n{askpass}\n"));
        home.chmod("askpass", 0o700);
        let mut command = home.command();
        command.args(["agent", "--confirm", "--"]).args(sign).env("SSH_ASKPASS", home.path("askpass"));
        let done = Done::of(&mut command).exits(code);
        assert_eq!(home.path("file.sig").exists(), code == 0, "{}", done.stderr);
        let _ = fs::remove_file(home.path("file.sig"));
        done
    };
    signs("true", 0);
    signs("echo yes", 0);
    signs("false", 255).complains("nobody confirmed a signature with the key work");
    signs("echo no", 255);
    let asked = String::from_utf8(home.read("asked")).unwrap();
    assert_eq!(asked.matches("confirm: Allow the use of the key work?").count(), 4, "{asked}");
    let mut command = home.command();
    command.args(["agent", "--confirm", "--"]).args(sign).env("SSH_ASKPASS", "/nonexistent");
    Done::of(&mut command).exits(255).complains("SSH_ASKPASS");
}

#[test]
fn the_socket_is_the_users_alone_and_goes_with_the_agent() {
    let home = with_keys();
    let socket = home.path("folder/it's here");
    let path = socket.display().to_string();
    let mut command = home.interruptible();
    let background = background(command.args(["agent", "--socket", &path]));
    let listed = format!("{} ssh-add -L", background.line);
    Done::of(home.program("sh").args(["-c", &listed])).exits(0).says(" work\n");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&socket), mode(socket.parent().unwrap())), (0o600, 0o700));
    let second = home.run(["agent", "--socket", &path]).exits(2);
    second.complains("use what is there, or name another socket");
    kill_process(Pid::from_child(&background.agent), Signal::TERM).unwrap();
    background.agent.end().exits(0);
    assert!(!socket.exists());
    // A closed terminal ends it, too.
    let another = self::background(home.interruptible().args(["agent", "--socket", &path]));
    kill_process(Pid::from_child(&another.agent), Signal::HUP).unwrap();
    another.agent.end().exits(0);
    assert!(!socket.exists());

    // One that a killed agent left is replaced, and nothing else is.
    drop(UnixListener::bind(&socket).unwrap());
    home.run(["agent", "--socket", &path, "true"]).exits(0);
    assert!(!socket.exists());
    home.write("file", "content");
    home.run(["agent", "--socket", "file", "true"])
        .exits(2)
        .complains("use what is there, or name another socket");
    assert_eq!(home.read("file"), b"content");
    // Without the flag it is in the runtime folder, or for a command in one of its own.
    let mut command = home.command();
    command.env("XDG_RUNTIME_DIR", home.work()).args(["agent", "--lifetime", "0s"]);
    Done::of(&mut command)
        .exits(0)
        .says(&format!("SSH_AUTH_SOCK={}/bulla/agent; export", home.work().display()));
}

/// systemd passes a socket that listens as descriptor 3, and leaves the file to itself.
#[test]
fn a_socket_of_systemd_is_used_and_left() {
    let home = with_keys();
    let listener = UnixListener::bind(home.path("socket")).unwrap();
    let start = "exec 3<&0 < /dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\"";
    let interruptible = home.interruptible();
    let mut command = home.program("sh");
    command.args(["-c", start, "sh"]).arg(interruptible.get_program()).args(interruptible.get_args());
    command.args(["agent", "--key", "work"]).stdin(OwnedFd::from(listener));
    let background = background(&mut command);
    assert!(background.line.starts_with(&format!("SSH_AUTH_SOCK={}", home.path("socket").display())));
    Done::of(home.program("ssh-add").arg("-L").env("SSH_AUTH_SOCK", "socket")).exits(0).says(" work\n");
    kill_process(Pid::from_child(&background.agent), Signal::TERM).unwrap();
    background.agent.end().exits(0);
    assert!(home.path("socket").exists());
}

#[test]
fn an_agent_ends_as_its_command_does() {
    let home = with_keys();
    under(&home, &[], &["sh", "-c", "exit 7"]).exits(7);
    under(&home, &[], &["sh", "-c", "kill -9 $$"]).exits(137);
    under(&home, &[], &["/nonexistent"]).exits(2).complains("cannot be run");
    let socket = under(&home, &[], &["sh", "-c", "test -S $SSH_AUTH_SOCK && echo $SSH_AUTH_SOCK"]).exits(0);
    assert!(!std::path::Path::new(socket.stdout.trim_end()).exists());
}

#[test]
fn what_is_no_request_is_refused_and_the_agent_goes_on() {
    let home = with_keys();
    let agent = background(home.command().args(["agent", "--socket", "socket"]));
    // To add and to remove keys, an extension, another number, nothing, and cut requests.
    for message in
        [&[17][..], &[18], &[19], &[25], &[27, 0, 0, 0, 1, b'x'], &[0], &[255], &[], &[13], &[22, 0, 0, 9, 9]]
    {
        assert_eq!(ask(&home, message), [5], "{message:?}");
    }
    // A message that is longer than any.
    let mut stream = UnixStream::connect(home.path("socket")).unwrap();
    stream.write_all(&[0xff; 4]).unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    // Connections that say nothing keep nobody out.
    let _silent: Vec<_> = (0..32).map(|_| UnixStream::connect(home.path("socket")).unwrap()).collect();
    assert_eq!(ask(&home, &[11])[0], 12);
    drop(agent);
}

#[test]
fn a_token_for_one_key_offers_one_key() {
    let home = with_keys();
    home.run([
        "token",
        "new",
        "--operation",
        "sign",
        "--operation",
        "read",
        "--key",
        "work",
        "--expires",
        "1h",
        "--output",
        "one",
    ])
    .exits(0);
    settings(&home, "[[listen]]\naddress = \"127.0.0.1:0\"\n");
    let serving = Serving::start(&home);
    let listed = Done::of(remote(&home).args(["agent", "--", "ssh-add", "-L"])).exits(0);
    assert_eq!(labels(&listed), ["curve", "default", "work"]);
    home.write("file", "content");
    let mut command = remote(&home);
    command.args(["agent", "--token-file", "one", "--", "sh", "-c"]);
    let script = "ssh-add -L > key.pub; ssh-keygen -Y sign -n file -f key.pub file; cat key.pub";
    let done = Done::of(command.arg(script)).exits(0);
    assert_eq!(labels(&done), ["work"]);
    assert!(home.path("file.sig").exists(), "{}", done.stderr);
    drop(serving);
}
