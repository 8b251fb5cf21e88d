//! `bulla ssh-cert`: certificates for the real programs of OpenSSH.

use crate::agent::{server_for, ssh};
use crate::serving::{Serving, settings};
use crate::support::{Done, Home};
use std::fs;

/// A home with authorities: `ca` for users and `hosts` for servers. Their public keys are in
/// `ca.pub` and `hosts.pub`.
fn with_authorities() -> Home {
    let home = Home::new();
    for args in [
        &["keystore", "init"][..],
        &["log", "init"],
        &["keys", "create", "ca", "--algorithm", "ecdsa-p256"],
        &["keys", "create", "hosts"],
        &["keys", "export-public", "ca", "--format", "openssh", "-o", "ca.pub"],
        &["keys", "export-public", "hosts", "--format", "openssh", "-o", "hosts.pub"],
    ] {
        home.run(args).exits(0);
    }
    let users = ["ssh-cert", "policy", "ca", "--user", "--principal", "*", "--max-life", "8h"];
    let allowed = ["--extension", "permit-pty", "--option", "force-command"];
    home.run(users.iter().chain(&allowed)).exits(0).says("longest life      8h");
    let hosts = ["ssh-cert", "policy", "hosts", "--host", "--principal", "*.test", "--max-life", "90d"];
    home.run(hosts).exits(0);
    keygen(&home, &["-t", "ed25519", "-N", "", "-f", "user"]).exits(0);
    home
}

fn keygen(home: &Home, args: &[&str]) -> Done {
    Done::of(home.program("ssh-keygen").arg("-q").args(args))
}

/// Signs a certificate for `user.pub`, in place of the one that is there.
fn certify(home: &Home, flags: &[&str]) -> Done {
    let _ = fs::remove_file(home.path("user-cert.pub"));
    let args = ["ssh-cert", "sign", "user.pub", "--ca", "ca", "--id", "ann's laptop"];
    let life = if flags.contains(&"--valid-for") { &[][..] } else { &["--valid-for", "1h"] };
    home.run(args.iter().chain(life).chain(flags))
}

#[test]
fn sshd_lets_a_user_in_by_a_certificate_and_ssh_knows_a_server_by_one() {
    let home = with_authorities();
    server_for(&home, "");
    let work = home.work().display().to_string();
    let trusted = format!("AuthorizedKeysFile none\nTrustedUserCAKeys {work}/ca.pub");
    let user = Done::of(home.program("id").arg("-un")).exits(0).stdout.trim_end().to_owned();
    let log_in = |settings: &str, checking: &str| {
        let command = ["-i", "user", "server.test", "echo", "logged", "in"];
        let words = ssh(&home, settings, &command).into_iter();
        let words = words.map(|word| word.replace("StrictHostKeyChecking=no", checking));
        let words: Vec<_> = words.collect();
        Done::of(home.program(&words[0]).args(&words[1..]))
    };
    let any = "StrictHostKeyChecking=no";
    log_in(&trusted, any).exits(255).complains("Permission denied");
    certify(&home, &["--principal", &user]).exits(0).says("user-cert.pub: certificate ");
    log_in(&trusted, any).exits(0).says("logged in");
    // Of another user, and one that has ended.
    certify(&home, &["--principal", "somebody"]).exits(0);
    log_in(&trusted, any).exits(255).complains("Permission denied");
    certify(&home, &["--principal", &user, "--valid-for", "1s"]).exits(0);
    while log_in(&trusted, any).code == Some(0) {}
    log_in(&trusted, any).exits(255).complains("Permission denied");
    certify(&home, &["--principal", &user, "--option", "force-command=echo forced"]).exits(0);
    log_in(&trusted, any).exits(0).says("forced\n");

    // The server.
    let authority = String::from_utf8(home.read("hosts.pub")).unwrap();
    home.write("known", format!("@cert-authority *.test {authority}"));
    let trusted = format!("{trusted}\nHostCertificate {work}/host-cert.pub");
    for (name, is_known) in [("server.test", true), ("other.test", false)] {
        let _ = fs::remove_file(home.path("host-cert.pub"));
        let args = ["ssh-cert", "sign", "host.pub", "--host", "--ca", "hosts", "--id", "server"];
        home.run(args.iter().chain(&["--principal", name])).exits(0);
        let done = log_in(&trusted, "StrictHostKeyChecking=yes");
        match is_known {
            true => done.exits(0).says("forced\n"),
            false => done.exits(255).complains("Host key verification failed"),
        };
    }
}

#[test]
fn a_certificate_has_what_was_asked_for_and_the_audit_log_names_it() {
    let home = with_authorities();
    let flags = ["--principal", "ann", "--principal", "root", "--serial", "18446744073709551615"];
    let more = ["--extension", "permit-pty", "--option", "force-command=/bin/true", "--json"];
    let signed = certify(&home, &[&flags[..], &more].concat()).exits(0).json();
    assert_eq!(signed[0]["serial"], "18446744073709551615");
    let listed = keygen(&home, &["-L", "-f", "user-cert.pub"]).exits(0).stdout;
    for text in [
        "Type: ssh-ed25519-cert-v01@openssh.com user certificate",
        "Signing CA: ECDSA SHA256:",
        "Key ID: \"ann's laptop\"",
        "Serial: 18446744073709551615",
        "Principals: \n                ann\n                root\n",
        "Critical Options: \n                force-command /bin/true\n",
        "Extensions: \n                permit-pty\n",
    ] {
        assert!(listed.contains(text), "{text}: {listed}");
    }
    certify(&home, &["--principal", "ann", "--extension", "permit-user-rc"]).exits(2);
    let log = home.run(["log", "show", "--json"]).exits(0).json();
    let of_certificates: Vec<_> = log.iter().filter(|entry| entry["certificate"].is_object()).collect();
    let expected = serde_json::json!({
        "kind": "user", "serial": "18446744073709551615", "key_id": "ann's laptop", "principals": ["ann", "root"],
    });
    assert_eq!(of_certificates.len(), 2, "{log:?}");
    assert_eq!(
        (&of_certificates[0]["result"], &of_certificates[0]["certificate"]),
        (&"ok".into(), &expected)
    );
    assert_eq!(of_certificates[1]["result"], "key_usage_mismatch");
    assert!(log.iter().any(|entry| entry["op"] == "ssh_authority"));
    home.run(["log", "verify"]).exits(0);
    // Keys of other kinds get certificates, too.
    for kind in ["rsa", "ecdsa"] {
        keygen(&home, &["-t", kind, "-N", "", "-f", kind]).exits(0);
        let public = format!("{kind}.pub");
        let args =
            ["ssh-cert", "sign", &public, "--ca", "ca", "--id", "a", "--principal", "b", "--valid-for", "1h"];
        home.run(args).exits(0);
        keygen(&home, &["-L", "-f", &format!("{kind}-cert.pub")]).exits(0).says("Key ID: \"a\"");
        home.run(args).exits(2).complains("exists already");
    }
}

#[test]
fn the_keystore_and_the_service_refuse_what_the_policy_does_not_permit() {
    let home = with_authorities();
    let ann = ["--principal", "ann"];
    let refused = |done: Done, why: &str| {
        done.exits(2).complains(why);
        assert!(!home.path("user-cert.pub").exists());
    };
    for (flags, why) in [
        (&["--valid-for", "9h"][..], "at most 28800 seconds"),
        (&["--valid-for", "0s"], "it must be longer than 0s"),
        (&["--serial", "0"], "the number 0, which no list can revoke"),
        (&["--host"][..], "of the kind Host"),
        (&["--extension", "permit-user-rc"][..], "extension \"permit-user-rc\""),
        (&["--option", "source-address=::1"][..], "critical option \"source-address\""),
    ] {
        refused(certify(&home, &[&ann[..], flags].concat()), why);
    }
    let host = ["ssh-cert", "sign", "user.pub", "--host", "--ca", "hosts", "--id", "a", "--principal"];
    refused(home.run(host.iter().chain(&["server.example.org"])), "principal \"server.example.org\"");
    // A time that is no time leaves no certificate behind, whatever the policy permits.
    let any_life = ["ssh-cert", "policy", "hosts", "--host", "--principal", "*.test", "--max-life", "20000y"];
    home.run(any_life).exits(0);
    refused(home.run(host.iter().chain(&["a.test", "--valid-for", "10000y"])), "after the year 9998");
    // Nothing else gets a signature of an authority: neither a file nor a login.
    home.write("file", "content");
    for format in ["ssh", "bulla"] {
        let signed = home.run(["sign", "file", "--key", "hosts", "--format", format]);
        assert_eq!(signed.code == Some(0), format == "bulla", "{}", signed.stderr);
    }
    let sign = ["agent", "--", "ssh-keygen", "-Y", "sign", "-n", "file", "-f", "ca.pub", "file"];
    home.run(sign).exits(255).complains("signs certificates of OpenSSH, and nothing else");
    // A key without a policy is no authority.
    home.run(["keys", "create", "work"]).exits(0);
    refused(
        home.run(["ssh-cert", "sign", "user.pub", "--ca", "work", "--id", "a", "--principal", "b"]),
        "has no policy",
    );
    home.run(["ssh-cert", "policy", "work", "--user"]).exits(2);
    home.run(["ssh-cert", "policy", "work"]).exits(0).says("no authority");

    settings(&home, "");
    let serving = Serving::start(&home);
    let server = ["--server", "unix:socket"];
    let policy = home.run(["ssh-cert", "policy", "ca", "--remove"].iter().chain(&server));
    policy.exits(2).complains("this command needs a keystore on this machine");
    refused(certify(&home, &[&ann[..], &server, &["--valid-for", "9h"]].concat()), "at most 28800 seconds");
    certify(&home, &[&ann[..], &server].concat()).exits(0);
    keygen(&home, &["-L", "-f", "user-cert.pub"]).exits(0).says("Key ID: \"ann's laptop\"");
    drop(serving);
    home.run(["ssh-cert", "policy", "ca", "--remove"]).exits(0);
    refused(certify(&home, &ann), "has no policy");
}
