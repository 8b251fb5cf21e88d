//! `bulla keys csr` and `bulla x509`: OpenSSL reads what they write, and writes what they read.

use crate::serving::{Serving, settings};
use crate::support::{Done, Home};
use std::fs;

/// A home with the authority `ca` and its certificate `ca.pem`, and the key `web`.
fn with_authority(algorithm: &str) -> Home {
    let home = Home::new();
    for args in [
        &["keystore", "init"][..],
        &["log", "init"],
        &["keys", "create", "ca", "--algorithm", algorithm],
        &["keys", "create", "web", "--algorithm", algorithm],
    ] {
        home.run(args).exits(0);
    }
    let names = ["--dns", "*.example.org", "--ip", "10.0.0.0/8", "--subject", "O=Example"];
    let policy = ["x509", "policy", "ca", "--usage", "server-auth", "--max-life", "90d"];
    home.run(policy.iter().chain(&names)).exits(0).says("longest life      90d");
    let subject = ["--subject", "CN=Example CA,O=Example", "-o", "ca.pem"];
    home.run(["x509", "ca", "ca"].iter().chain(&subject))
        .exits(0)
        .says("ca.pem: certificate of the authority");
    home
}

fn openssl(home: &Home, args: &[&str]) -> Done {
    Done::of(home.program("openssl").args(args))
}

/// Requests a certificate for the key `web`.
fn request(home: &Home, names: &[&str]) -> Done {
    home.run(["keys", "csr", "web", "-o", "web.csr"].iter().chain(names))
}

/// Signs the certificate that `web.csr` asks for.
fn certify(home: &Home, flags: &[&str]) -> Done {
    let _ = fs::remove_file(home.path("web.pem"));
    let args = ["x509", "sign", "web.csr", "--ca", "ca", "--ca-certificate", "ca.pem", "-o", "web.pem"];
    let usage = ["--usage", "server-auth"];
    let usage = if flags.contains(&"--usage") || flags.contains(&"--authority") { &[][..] } else { &usage };
    home.run(args.iter().chain(usage).chain(flags))
}

const NAMES: [&str; 8] = [
    "--subject",
    "CN=www.example.org,O=Example",
    "--dns",
    "www.example.org",
    "--dns",
    "*.web.example.org",
    "--ip",
    "10.1.2.3",
];

#[test]
fn openssl_verifies_requests_and_certificates() {
    for algorithm in ["ed25519", "ecdsa-p256"] {
        let home = with_authority(algorithm);
        request(&home, &NAMES).exits(0).says("web.csr: request for a certificate of web");
        let shown = openssl(&home, &["req", "-in", "web.csr", "-verify", "-noout", "-text"]).exits(0);
        assert!(shown.stdout.contains("DNS:www.example.org, DNS:*.web.example.org, IP Address:10.1.2.3"));
        certify(&home, &["--valid-for", "89d"]).exits(0).says("for CN=www.example.org,O=Example, DNS:www");
        let chain = ["verify", "-x509_strict", "-CAfile", "ca.pem", "-purpose", "sslserver"];
        for (name, is_valid) in [
            (["-verify_hostname", "www.example.org"], true),
            (["-verify_hostname", "a.web.example.org"], true),
            (["-verify_ip", "10.1.2.3"], true),
            (["-verify_hostname", "other.example.org"], false),
            (["-verify_ip", "10.1.2.4"], false),
        ] {
            let verified = openssl(&home, &[&chain[..], &name, &["web.pem"]].concat());
            assert_eq!(verified.code == Some(0), is_valid, "{name:?}: {}", verified.stderr);
        }
        // What it is not for, and whom nobody trusts.
        let client = ["verify", "-CAfile", "ca.pem", "-purpose", "sslclient", "web.pem"];
        assert_ne!(openssl(&home, &client).code, Some(0));
        assert_ne!(openssl(&home, &["verify", "web.pem"]).code, Some(0));
        let text = openssl(&home, &["x509", "-in", "web.pem", "-noout", "-text"]).exits(0).stdout;
        for part in [
            "Issuer: O = Example, CN = Example CA",
            "Subject: O = Example, CN = www.example.org",
            "CA:FALSE",
            "Digital Signature",
            "TLS Web Server Authentication",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let own = openssl(&home, &["x509", "-in", "ca.pem", "-noout", "-text"]).exits(0).stdout;
        assert!(own.contains("CA:TRUE, pathlen:0") && own.contains("Certificate Sign, CRL Sign"), "{own}");
    }
}

#[test]
fn requests_of_openssl_are_read_if_their_key_signed_them() {
    let home = with_authority("ecdsa-p256");
    let keys: [&[&str]; 7] = [
        &["rsa:2048"],
        &["rsa:3072", "-sha512"],
        &["ed25519"],
        &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
        &["ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
        // With SHA-256, which is shorter than half of the curve.
        &["ec", "-pkeyopt", "ec_paramgen_curve:P-521"],
        &["ec", "-pkeyopt", "ec_paramgen_curve:P-521", "-sha512"],
    ];
    for key in keys {
        let new = ["req", "-new", "-nodes", "-keyout", "key.pem", "-out", "web.csr", "-newkey"];
        let names = ["-subj", "/O=Example/CN=a.example.org", "-addext", "subjectAltName=DNS:a.example.org"];
        openssl(&home, &[&new[..], key, &names].concat()).exits(0);
        certify(&home, &[]).exits(0);
        let verify = ["verify", "-CAfile", "ca.pem", "-verify_hostname", "a.example.org", "web.pem"];
        openssl(&home, &verify).exits(0);
        // In DER, and changed.
        openssl(&home, &["req", "-in", "web.csr", "-outform", "DER", "-out", "web.der"]).exits(0);
        let mut der = home.read("web.der");
        let sign = ["x509", "sign", "web.der", "--ca", "ca", "--ca-certificate", "ca.pem"];
        let sign = || home.run(sign.iter().chain(&["--usage", "server-auth"]));
        sign().exits(0).says("BEGIN CERTIFICATE");
        let at = der.windows(13).position(|part| part == b"a.example.org").unwrap();
        der[at] = b'b';
        home.write("web.der", &der);
        sign().exits(2).complains("its key did not sign the request");
    }
    let old = ["req", "-new", "-nodes", "-keyout", "key.pem", "-out", "web.csr", "-newkey", "rsa:1024"];
    openssl(&home, &[&old[..], &["-subj", "/CN=a.example.org"]].concat()).exits(0);
    certify(&home, &[]).exits(2).complains("RSA of 2048 bits or more");
    home.write("web.csr", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n");
    certify(&home, &[]).exits(2).complains("web.csr: the request for a certificate is malformed");
    home.write("web.csr", "nothing");
    certify(&home, &[]).exits(2).complains("neither DER nor PEM of certificate request");
}

#[test]
fn the_keystore_and_the_service_refuse_what_the_policy_does_not_permit() {
    let home = with_authority("ed25519");
    let refused = |done: Done, why: &str| {
        done.exits(2).complains(why);
        assert!(!home.path("web.pem").exists());
    };
    for (names, why) in [
        (&["--dns", "www.example.com"][..], "does not permit the name \"www.example.com\""),
        (&["--dns", "example.org"], "does not permit the name \"example.org\""),
        (&["--dns", "*.org"], "does not permit the name \"*.org\""),
        (&["--ip", "192.168.0.1"], "does not permit the name \"192.168.0.1\""),
        (&["--email", "ann@example.org"], "does not permit the name \"ann@example.org\""),
        (&["--uri", "spiffe://example.org/web"], "does not permit the name \"spiffe:"),
        (&["--subject", "CN=www.example.org"], "does not permit the subject \"CN=www.example.org\""),
        (&["--subject", "O=Other", "--dns", "www.example.org"], "the subject \"O=Other\""),
    ] {
        request(&home, names).exits(0);
        refused(certify(&home, &[]), why);
    }
    request(&home, &NAMES).exits(0);
    for (flags, why) in [
        (&["--valid-for", "91d"][..], "at most 7776000 seconds"),
        (&["--valid-for", "0s"], "it must be longer than 0s"),
        (&["--usage", "client-auth"], "does not permit the usage ClientAuth"),
        (&["--usage", "server-auth", "--usage", "code-signing"], "the usage CodeSigning"),
        (&["--authority"], "of the kind Authority"),
        (&["--valid-for", "20y"], "end after that of its authority"),
    ] {
        refused(certify(&home, flags), why);
    }
    // Nothing else gets a signature of an authority.
    home.write("file", "content");
    for format in ["ssh", "minisign", "bulla"] {
        let signed = home.run(["sign", "file", "--key", "ca", "--format", format]);
        assert_eq!(signed.code == Some(0), format == "bulla", "{format}: {}", signed.stderr);
    }
    let ssh = ["ssh-cert", "policy", "ca", "--user", "--principal", "*", "--max-life", "1d"];
    home.run(ssh).exits(2).complains("of OpenSSH or of X.509, and not of both");
    // A key without a policy is no authority.
    let sign = ["x509", "sign", "web.csr", "--ca", "web", "--ca-certificate", "ca.pem"];
    let sign = || home.run(sign.iter().chain(&["--usage", "server-auth"]));
    sign().exits(2).complains("ca.pem: is not the certificate of the key");
    home.run(["x509", "ca", "web", "--subject", "CN=web"]).exits(2).complains("has no policy");
    home.run(["x509", "policy", "web"]).exits(0).says("no authority");
    for flags in
        [&["--max-life", "1d"][..], &["--usage", "server-auth"], &["--max-life", "0s", "--authority"]]
    {
        home.run(["x509", "policy", "web"].iter().chain(flags)).exits(2);
    }

    settings(&home, "");
    let serving = Serving::start(&home);
    let server = ["--server", "unix:socket"];
    let policy = home.run(["x509", "policy", "ca", "--remove"].iter().chain(&server));
    policy.exits(2).complains("this command needs a keystore on this machine");
    refused(certify(&home, &[&["--valid-for", "91d"][..], &server].concat()), "at most 7776000 seconds");
    certify(&home, &server).exits(0);
    openssl(&home, &["verify", "-CAfile", "ca.pem", "web.pem"]).exits(0);
    drop(serving);
    home.run(["x509", "policy", "ca", "--remove"]).exits(0);
    refused(certify(&home, &[]), "has no policy");
}

#[test]
fn keys_of_every_algorithm_of_a_service_are_authorities() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    settings(&home, "");
    let algorithms = ["rsa-2048", "ecdsa-p384", "ecdsa-p521"];
    let server = ["--server", "unix:socket"];
    let serving = Serving::start(&home);
    for algorithm in algorithms {
        home.run(["keys", "create", algorithm, "--algorithm", algorithm].iter().chain(&server)).exits(0);
    }
    drop(serving);
    // The policies are those of the keystore, in which these keys are.
    let policy = ["--usage", "client-auth", "--max-life", "30d", "--subject", "CN=*"];
    for algorithm in algorithms {
        home.run(["x509", "policy", algorithm].iter().chain(&policy)).exits(0);
    }
    let serving = Serving::start(&home);
    for algorithm in algorithms {
        let own = ["x509", "ca", algorithm, "--subject", "CN=Example CA", "-o", "ca.pem"];
        home.run(own.iter().chain(&server)).exits(0);
        let csr = ["keys", "csr", algorithm, "--subject", "CN=below", "-o", "web.csr"];
        home.run(csr.iter().chain(&server)).exits(0);
        openssl(&home, &["req", "-in", "web.csr", "-verify", "-noout"]).exits(0);
        let sign = ["x509", "sign", "web.csr", "--ca", algorithm, "--ca-certificate", "ca.pem"];
        let flags = ["--usage", "client-auth", "--valid-for", "1d", "-o", "web.pem"];
        home.run(sign.iter().chain(&flags).chain(&server)).exits(0);
        openssl(&home, &["verify", "-x509_strict", "-CAfile", "ca.pem", "web.pem"]).exits(0);
        let digest = home.run(["x509", "ca", algorithm, "--subject", "CN=Example CA"].iter().chain(&server));
        digest.exits(0).says("BEGIN CERTIFICATE");
    }
    drop(serving);
}

#[test]
fn an_authority_signs_for_an_authority_and_the_audit_log_names_certificates() {
    let home = with_authority("ecdsa-p256");
    home.run(["keys", "create", "root", "--algorithm", "ecdsa-p256"]).exits(0);
    let policy = ["--authority", "--subject", "CN=Issuing *", "--subject", "O=Example", "--max-life", "5y"];
    home.run(["x509", "policy", "root"].iter().chain(&policy)).exits(0).says("certificates for  authorities");
    let own = ["x509", "ca", "root", "--subject", "CN=Root", "--path-length", "1", "-o", "root.pem"];
    home.run(own).exits(0);
    // A request for the key of an authority is signed, although it signs only certificates.
    let csr = ["keys", "csr", "ca", "--subject", "CN=Issuing 1,O=Example", "-o", "ca.csr"];
    home.run(csr).exits(0);
    let sign = ["x509", "sign", "ca.csr", "--ca", "root", "--ca-certificate", "root.pem", "--authority"];
    let flags = ["--valid-for", "4y", "-o", "ca.pem"];
    home.run(sign.iter().chain(&flags)).exits(0);
    request(&home, &NAMES).exits(0);
    let signed = certify(&home, &["--json"]).exits(0).json();
    assert_eq!(signed[0]["names"][0], "DNS:www.example.org");
    let chain = ["verify", "-x509_strict", "-CAfile", "root.pem", "-untrusted", "ca.pem", "web.pem"];
    openssl(&home, &chain).exits(0);
    let serial = openssl(&home, &["x509", "-in", "web.pem", "-noout", "-serial"]).exits(0).stdout;
    let serial = serial.trim_end().strip_prefix("serial=").unwrap().to_lowercase();
    certify(&home, &["--valid-for", "1y"]).exits(2);

    let log = home.run(["log", "show", "--json"]).exits(0).json();
    let of_certificates: Vec<_> = log.iter().filter(|entry| entry["certificate"].is_object()).collect();
    let results: Vec<_> = of_certificates.iter().map(|entry| entry["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["ok", "ok", "ok", "ok", "key_usage_mismatch"]);
    let leaf = &of_certificates[3]["certificate"];
    assert_eq!((&leaf["serial"], &signed[0]["serial"]), (&serial.clone().into(), &serial.into()));
    assert_eq!(leaf["kind"], "leaf");
    assert_eq!(leaf["subject"], serde_json::json!(["O=Example", "CN=www.example.org"]));
    let names = serde_json::json!(["DNS:www.example.org", "DNS:*.web.example.org", "IP:10.1.2.3"]);
    assert_eq!((&leaf["names"], &leaf["not_after"]), (&names, &signed[0]["not_after"]));
    assert!(log.iter().any(|entry| entry["op"] == "certificate_authority"));
    home.run(["log", "verify"]).exits(0);
}

#[test]
fn files_are_replaced_by_their_own_kind_only() {
    let home = with_authority("ed25519");
    for _ in 0..2 {
        request(&home, &NAMES).exits(0);
        home.run(["x509", "ca", "ca", "--subject", "CN=Example CA", "-o", "ca.pem"]).exits(0);
    }
    let own = ["x509", "ca", "ca", "--subject", "CN=Example CA", "-o", "web.csr"];
    home.run(own).exits(2).complains("web.csr: is not a certificate");
    home.run(["keys", "csr", "web", "--subject", "CN=a", "-o", "ca.pem"])
        .exits(2)
        .complains("ca.pem: is not");
    for args in [
        &["keys", "csr", "web", "--subject", "CN=a", "--json"][..],
        &["keys", "csr", "web"],
        &["keys", "csr", "web", "--subject", "a"],
        &["keys", "csr", "nothing", "--subject", "CN=a"],
    ] {
        home.run(args).exits(2);
    }
    home.run(["keys", "create", "post", "--algorithm", "ml-dsa-44"]).exits(0);
    home.run(["keys", "csr", "post", "--subject", "CN=a"]).exits(2).complains("Ed25519, ECDSA and RSA keys");
}
