//! `bulla serve` as a process: its settings, secrets, log and signals.

use crate::serving::{Serving, settings};
use crate::support::{Done, Home, bulla};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A home whose keystore a key file opens.
fn home() -> Home {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home
}

/// A home whose keystore opens with a passphrase, in the file `pass`.
fn home_with_passphrase() -> Home {
    let home = Home::new();
    home.write_secret("pass", "correct horse\nsecond line\n");
    home.run(["keystore", "init", "--passphrase-file", "pass"]).exits(0);
    home
}

fn sign(serving: &Serving<'_>) -> u16 {
    serving.post("/api/v1/keys/default/sign", &json!({ "message": "eA==" })).0
}

#[test]
fn sigterm_answers_what_was_asked_and_exits_0() {
    let home = home();
    settings(&home, "");
    let mut serving = Serving::start(&home);
    let mut idle = serving.connect();
    assert_eq!(idle.send("GET", "/api/v1/health", &[], &Value::Null).unwrap().0, 200);
    let mut asking = serving.connect();
    let (head, body) = ("POST /api/v1/keys/default/sign HTTP/1.1\r\nhost: a\r\n", r#"{"message":"eA=="}"#);
    let length = body.len();
    write!(asking.0.get_mut(), "{head}content-length: {length}\r\nexpect: 100-continue\r\n\r\n").unwrap();
    // The service asks for the body: it has begun with this request.
    assert_eq!(asking.answer().unwrap().0, 100);
    serving.signal(Signal::TERM);
    serving.wait_for("the service stops");
    asking.0.get_mut().write_all(body.as_bytes()).unwrap();
    let (status, answer) = asking.answer().unwrap();
    assert_eq!(status, 200, "{answer}");
    // Nobody asked on this connection, so it ends when its thread hears of the stop.
    while idle.send("GET", "/api/v1/health", &[], &Value::Null).is_ok() {}
    assert_eq!(serving.ends().code(), Some(0));
    serving.wait_for("the service was shut down");
    assert!(!home.path("socket").exists());
}

#[test]
fn sigterm_under_load_gives_whole_answers_or_none() {
    let home = home();
    settings(&home, "");
    let mut serving = Serving::start(&home);
    let answered = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let callers = (0..4).map(|_| serving.connect()).collect::<Vec<_>>();
        for mut connection in callers {
            let answered = &answered;
            scope.spawn(move || {
                let body = json!({ "message": "eA==" });
                while let Ok((status, body)) =
                    connection.send("POST", "/api/v1/keys/default/sign", &[], &body)
                {
                    assert_eq!(status, 200, "{body}");
                    assert!(body["signature"].is_string(), "{body}");
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let start = Instant::now();
        while answered.load(Ordering::SeqCst) < 100 {
            assert!(start.elapsed() < Duration::from_secs(60), "the service does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        serving.signal(Signal::TERM);
    });
    assert_eq!(serving.ends().code(), Some(0), "{}", serving.log());
}

#[test]
fn a_service_takes_as_many_connections_as_the_system_permits_and_not_only_as_many_as_usual() {
    let home = home();
    settings(&home, "");
    let mut command = home.program("prlimit");
    let serve = Serving::command(&home);
    command.arg("--nofile=40:400").arg(serve.get_program()).args(serve.get_args());
    let mut serving = Serving::run(&home, &mut command);
    let mut connections: Vec<_> = (0..100).map(|_| serving.connect()).collect();
    for connection in &mut connections {
        assert_eq!(connection.send("GET", "/api/v1/health", &[], &Value::Null).unwrap().0, 200);
    }
    serving.wait_for(
        "this process may have 400 files open, and `limits.max_connections_per_listener` of all listeners needs 20064",
    );
}

#[test]
fn connections_that_are_refused_do_not_fill_the_log() {
    let home = home();
    settings(&home, "[limits]\nmax_connections_per_listener = 1\n");
    let serving = Serving::start(&home);
    let health = || {
        let mut connection = serving.connect();
        let answer = connection.send("GET", "/api/v1/health", &[], &Value::Null);
        answer.map(|(status, _)| (status, connection))
    };
    let (status, _only) = health().unwrap();
    assert_eq!(status, 200);
    for _ in 0..200 {
        assert!(health().is_err());
    }
    let lines = serving.log().matches("a connection is refused").count();
    assert!((1..100).contains(&lines), "{lines}");
}

#[test]
fn sighup_reloads_and_a_bad_file_changes_nothing() {
    let home = home();
    settings(&home, "");
    let mut serving = Serving::start(&home);
    let mut open = serving.connect();
    let message = json!({ "message": "A".repeat(400) });
    let mut status = || open.send("POST", "/api/v1/keys/default/sign", &[], &message).unwrap().0;
    assert_eq!(status(), 200);
    settings(
        &home,
        "[limits]\nmax_body_bytes = 600\nmax_batch_items = 7\n[audit]\nrecord_verifications = true\n",
    );
    serving.signal(Signal::HUP);
    serving.wait_for("take effect only after a restart: audit");
    assert_eq!(status(), 200);
    settings(&home, "[limits]\nmax_body_bytes = 100");
    serving.signal(Signal::HUP);
    while serving.post("/api/v1/keys/default/sign", &message).0 != 413 {
        std::thread::yield_now();
    }
    home.write("serve.toml", "[limits]\nmax_body_bytes = 0\nhunter2 = 1");
    serving.signal(Signal::HUP);
    serving.wait_for("the new settings are refused");
    serving.signal(Signal::TERM);
    assert_eq!(serving.ends().code(), Some(0));
}

#[test]
fn a_passphrase_comes_from_a_descriptor_or_a_credential() {
    let home = home_with_passphrase();
    settings(&home, "[keystore]\npassphrase_fd = 7");
    let mut by_shell = home.program("bash");
    by_shell.args(["-c", &format!("exec {bulla} serve --config serve.toml 7<pass", bulla = bulla())]);
    assert_eq!(sign(&Serving::run(&home, &mut by_shell)), 200);
    let mut piped = home.program("bash");
    piped.args([
        "-c",
        &format!("exec {bulla} serve --config serve.toml 7< <(echo correct horse)", bulla = bulla()),
    ]);
    assert_eq!(sign(&Serving::run(&home, &mut piped)), 200);
    settings(&home, "[keystore]\ncredential = \"pass\"");
    let mut by_systemd = Serving::command(&home);
    by_systemd.env("CREDENTIALS_DIRECTORY", home.work());
    assert_eq!(sign(&Serving::run(&home, &mut by_systemd)), 200);
    home.run(["serve", "--config", "serve.toml"]).exits(2).complains("CREDENTIALS_DIRECTORY");
    settings(&home, "[keystore]\npassphrase_fd = 99");
    home.run(["serve", "--config", "serve.toml"]).exits(2).complains("file descriptor 99: cannot read");
    home.write_secret("pass", "wrong horse\n");
    settings(&home, "[keystore]\npassphrase_file = \"pass\"");
    let wrong = home.run(["serve", "--config", "serve.toml"]).exits(2);
    assert!(!wrong.stderr.contains("horse"), "{}", wrong.stderr);
}

#[test]
fn without_a_passphrase_the_service_is_sealed_and_says_so() {
    let home = home_with_passphrase();
    settings(&home, "");
    let mut serving = Serving::start(&home);
    serving.wait_for("the service is sealed until an operator gives it");
    let (status, error) = serving.post("/api/v1/keys/default/sign", &json!({ "message": "" }));
    assert_eq!((status, &error["code"]), (503, &json!("sealed")));
}

#[test]
fn a_sealed_service_reads_its_key_file_again() {
    let home = home();
    settings(&home, "");
    let mut serving = Serving::start(&home);
    let unseal = || serving.post("/api/v1/operator/unseal", &json!({}));
    assert_eq!(serving.post("/api/v1/operator/seal", &json!({})).0, 200);
    assert_eq!(sign(&serving), 503);
    let key_file = home.keystore().join("keystore.key");
    let away = key_file.with_extension("away");
    fs::rename(&key_file, &away).unwrap();
    let (status, error) = unseal();
    assert_eq!((status, &error["code"]), (404, &json!("not_found")));
    fs::rename(&away, &key_file).unwrap();
    assert_eq!(unseal().0, 200);
    assert_eq!(sign(&serving), 200);
    serving.wait_for("an operator unseals the service");
}

#[test]
fn the_log_has_one_json_object_a_line_and_never_a_secret() {
    let home = home();
    settings(&home, "[log]\naccess = true\nlevel = \"trace\"");
    let mut serving = Serving::start(&home);
    let secret = "hunter2hunter2";
    let bearer = format!("Bearer {secret}");
    let ask = |headers: &[(&str, &str)], path: &str, body: Value| {
        serving.connect().send("POST", path, headers, &body).unwrap().0
    };
    assert_eq!(ask(&[], "/api/v1/keys/default/sign?q=hunter2", json!({ "message": "eA==" })), 200);
    for headers in [[("authorization", bearer.as_str())], [("x-vault-token", secret)], [("cookie", secret)]] {
        ask(&headers, "/api/v1/keys/default/sign", json!({ "message": secret }));
        ask(&headers, "/api/v1/keys/default/sign", json!({ "message": 5, "hunter2": secret }));
        ask(&headers, "/api/v1/keys", json!({ "label": secret, "purpose": format!("{secret}!") }));
        ask(&headers, "/api/v1/nothing?token=hunter2", json!(secret));
    }
    serving.signal(Signal::TERM);
    assert_eq!(serving.ends().code(), Some(0));
    let log = serving.log();
    assert!(!log.contains("hunter2"), "{log}");
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let said = |text: &str| lines.iter().filter(|line| line["message"] == text).count();
    for once in
        ["the service is unsealed", "the service stops", "the service is sealed", "the service was shut down"]
    {
        assert_eq!(said(once), 1, "{once}: {log}");
    }
    assert_eq!(said("request"), 13, "{log}");
    let first = lines.iter().find(|line| line["message"] == "request").unwrap();
    assert_eq!(
        (&first["method"], &first["path"], &first["status"], &first["actor"]),
        (&json!("POST"), &json!("/api/v1/keys/default/sign"), &json!(200), &json!("me"))
    );
    assert!(first["microseconds"].is_u64() && first["request"].is_string(), "{first}");
}

#[test]
fn the_settings_are_printed_and_checked() {
    let home = home();
    home.write_secret("pass", "correct horse\n");
    settings(&home, "[keystore]\npassphrase_file = \"pass\"");
    let print = ["serve", "print-config", "--config", "serve.toml", "--log-level", "debug"];
    let printed = home.run(print).exits(0).says("max_body_bytes = 33554432").says("level = \"debug\"");
    assert!(!printed.stdout.contains("horse"), "{}", printed.stdout);
    // What is printed says the same again.
    home.write("printed.toml", &printed.stdout);
    let again = home.run(["serve", "print-config", "--config", "printed.toml"]).exits(0);
    assert_eq!(again.stdout, printed.stdout);
    let check = ["serve", "check-config", "--config", "serve.toml"];
    home.run(check).exits(0).complains("the settings are valid");
    let tls = "tls = { certificate = \"missing.pem\", key = \"missing.key\" }";
    settings(&home, &format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{tls}"));
    home.run(check).exits(2).complains("cannot read the certificate missing.pem");
}

#[test]
fn the_service_manager_learns_what_the_service_does() {
    let home = home();
    settings(&home, "");
    let manager = UnixDatagram::bind(home.path("notify")).unwrap();
    let mut command = Serving::command(&home);
    command.env("NOTIFY_SOCKET", home.path("notify"));
    let mut serving = Serving::run(&home, &mut command);
    let told = || {
        let mut text = [0; 256];
        let len = manager.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..len]).into_owned()
    };
    assert_eq!(told(), "READY=1\n");
    serving.signal(Signal::HUP);
    let reloading = told();
    assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    assert_eq!(told(), "READY=1\n");
    serving.signal(Signal::TERM);
    assert_eq!(told(), "STOPPING=1\n");
    assert_eq!(serving.ends().code(), Some(0));
}

#[test]
fn a_full_disk_is_an_error_of_the_request_and_the_service_goes_on() {
    let home = home();
    settings(&home, "");
    let size = fs::metadata(home.keystore().join("keystore.redb")).unwrap().len();
    let mut command = home.program("bash");
    // As large as the keystore is: no file grows.
    let script =
        format!("ulimit -f {}; exec {bulla} serve --config serve.toml 2>log", size / 1024, bulla = bulla());
    command.args(["-c", &script]);
    let serving = Serving::run(&home, &mut command);
    let mut connection = serving.connect();
    let mut new = |number: u32| {
        let body = json!({ "purpose": "files", "label": format!("key-{number}") });
        connection.send("POST", "/api/v1/keys", &[], &body).unwrap()
    };
    let full = (0..20_000).map(&mut new).find(|(status, _)| *status != 201 && *status != 200);
    let (status, error) = full.expect("the disk is full at last");
    assert_eq!((status, &error["code"]), (507, &json!("storage_full")), "{error}");
    assert_eq!(new(30_000).0, 507, "and it stays so");
    assert_eq!(sign(&serving), 200);
    assert_eq!(serving.connect().send("GET", "/api/v1/ready", &[], &Value::Null).unwrap().0, 200);
    drop(serving);
    Done::of(home.command().args(["keys", "list"])).exits(0).says("key-0");
}

/// A process that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn development_prints_an_address_and_a_token_for_clients_of_vault() {
    let home = Home::new();
    let log = fs::File::create(home.path("log")).unwrap();
    let mut command = home.program(bulla());
    command.args(["serve", "--dev", "--listen", "127.0.0.1:0"]);
    let mut service = Killed(command.stdout(Stdio::piped()).stderr(log).spawn().unwrap());
    let mut lines = BufReader::new(service.0.stdout.take().unwrap()).lines();
    let mut variable = |name: &str| {
        let line = lines.next().unwrap().unwrap();
        line.strip_prefix(&format!("export {name}=")).unwrap_or_else(|| panic!("{line}")).to_owned()
    };
    let (address, token) = (variable("VAULT_ADDR"), variable("VAULT_TOKEN"));
    let lookup = |token: &str| {
        let mut stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
        let host = "host: 127.0.0.1\r\nconnection: close";
        write!(stream, "GET /v1/auth/token/lookup-self HTTP/1.1\r\n{host}\r\nx-vault-token: {token}\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = lookup(&token);
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["data"]["id"], token);
    assert!(body["data"]["policies"].as_array().unwrap().contains(&json!("destroy")));
    assert!(lookup("another").starts_with("HTTP/1.1 403"));
    let logged = String::from_utf8(home.read("log")).unwrap();
    assert!(logged.contains("development") && !logged.contains(&token), "a log is kept");
}

/// A service whose audit log is on a file system of its own, as a small disk that is full at last.
/// If this user may not mount one, a limit on the size of files stands for it.
#[test]
fn with_a_full_disk_under_the_audit_log_no_change_is_made_that_the_log_lacks() {
    let home = home();
    home.run(["log", "init"]).exits(0);
    settings(&home, "");
    let mount = "mv \"$LOG\" \"$LOG.copy\" && mkdir \"$LOG\" && mount -t tmpfs -o size=128k tmpfs \"$LOG\" \
        && cp -p \"$LOG.copy/\"* \"$LOG\"";
    let log = home.keystore().join("audit-log");
    let mut command = home.program("unshare");
    let may_mount = Done::of(home.program("unshare").args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]));
    if may_mount.code != Some(0) {
        command = home.program("env");
    }
    let script = match may_mount.code {
        Some(0) => format!("{mount} && exec {bulla} serve --config serve.toml", bulla = bulla()),
        _ => format!("trap '' XFSZ; ulimit -f 128; exec {bulla} serve --config serve.toml", bulla = bulla()),
    };
    let args = if may_mount.code == Some(0) { vec!["-rm", "bash", "-c"] } else { vec!["bash", "-c"] };
    let serving = Serving::run(&home, command.args(args).arg(&script).env("LOG", &log));
    let mut connection = serving.connect();
    let mut rotate = |number: u32| {
        let key = number.to_string();
        let header = [("idempotency-key", key.as_str())];
        connection.send("POST", "/api/v1/keys/default/rotate", &header, &json!({})).unwrap()
    };
    let refused = (1..20_000).find(|number| rotate(*number).0 != 200).expect("the disk is full at last");
    for _ in 0..3 {
        let (status, error) = rotate(refused);
        assert_eq!(
            (status, &error["code"], &error["retryable"]),
            (507, &json!("storage_full"), &json!(true))
        );
    }
    let head = connection.send("GET", "/api/v1/keys/default", &[], &Value::Null).unwrap().1["head"].clone();
    assert_eq!(head, refused, "each rotation that was answered was made, and no other one");
    // The log has the creation of its key, and then exactly these rotations.
    let path = format!("/api/v1/audit-log/entries?after={}", refused - 2);
    let (_, page) = connection.send("GET", &path, &[], &Value::Null).unwrap();
    let entries = page["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["operation"]), (1, &json!("rotate")), "{page}");
}

#[test]
fn a_stop_seals_the_last_entries_of_the_audit_log() {
    let home = home();
    home.run(["log", "init"]).exits(0);
    settings(&home, "");
    let mut serving = Serving::start(&home);
    assert_eq!(serving.post("/api/v1/keys/default/rotate", &json!({})).0, 200);
    assert_eq!(sign(&serving), 200);
    serving.signal(Signal::TERM);
    assert_eq!(serving.ends().code(), Some(0));
    Done::of(home.command().args(["log", "verify"])).exits(0).says("OK (3 entries, 3 signed)");
}
