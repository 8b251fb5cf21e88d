//! Files with secrets that others may use, and keystores that others may change, are refused.

use crate::support::{Done, Home};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};

/// Modes by which others may use a file.
const OPEN: [u32; 6] = [0o644, 0o640, 0o604, 0o620, 0o601, 0o666];

#[test]
fn a_passphrase_file_that_others_may_use_is_refused() {
    let home = Home::new();
    home.write_secret("pass", "correct horse\n");
    home.run(["keystore", "init", "--passphrase", "--passphrase-file", "pass"]).exits(0);
    let list = ["keys", "list", "--passphrase-file", "pass"];
    for mode in OPEN {
        home.chmod("pass", mode);
        home.run(list)
            .exits(2)
            .complains(&format!(
                "pass: contains a secret, but its mode ({mode:04o}) allows other users to use it"
            ))
            .complains("chmod 600 pass");
    }
    for mode in [0o600, 0o400, 0o700] {
        home.chmod("pass", mode);
        home.run(list).exits(0);
    }
    home.chmod("pass", 0o644);
    home.write("a", "a");
    home.run(["encrypt", "a", "--new-passphrase-file", "pass"]).exits(2).complains("chmod 600 pass");
    home.run(["keystore", "init", "--passphrase", "--passphrase-file", "pass", "--keystore", "new"])
        .exits(2)
        .complains("chmod 600 pass");
    assert_eq!(home.names(), ["a", "pass"]);
}

#[test]
fn a_passphrase_comes_from_a_pipe_and_through_a_link() {
    let home = Home::new();
    home.write_secret("pass", "correct horse\n");
    home.run(["keystore", "init", "--passphrase", "--passphrase-file", "pass"]).exits(0);
    let script = format!("{} keys list --passphrase-file <(cat pass)", crate::support::bulla());
    Done::of(home.program("bash").args(["-c", &script])).exits(0);
    std::os::unix::fs::symlink("pass", home.path("link")).unwrap();
    home.run(["keys", "list", "--passphrase-file", "link"]).exits(0);
    home.chmod("pass", 0o644);
    home.run(["keys", "list", "--passphrase-file", "link"]).exits(2).complains("chmod 600 link");
}

#[test]
fn a_secret_of_another_user_is_refused() {
    let home = Home::new();
    home.write_secret("pass", "correct horse\n");
    home.run(["keystore", "init", "--passphrase", "--passphrase-file", "pass"]).exits(0);
    // Only root can give a file away; anyone else finds that nothing changed.
    let given = chown(home.path("pass"), Some(65_534), None).is_ok();
    let done = home.run(["keys", "list", "--passphrase-file", "pass"]);
    if given {
        done.exits(2).complains("belongs to another user (uid 65534)");
    } else {
        done.exits(0);
    }
}

#[test]
fn tokens_wrapping_keys_and_private_keys_that_others_may_use_are_refused() {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["token", "new", "--operation", "sign", "--expires", "1h", "-o", "token"]).exits(0);
    home.run(["token", "inspect", "token"]).exits(0);
    home.chmod("token", 0o644);
    home.run(["token", "inspect", "token"]).exits(2).complains("chmod 600 token");

    home.write("kek", [7; 32]);
    home.write("wrapped", [7; 40]);
    let import = ["keys", "import", "x", "wrapped", "--format", "aes-kwp", "--wrapping-key", "kek"];
    home.run(import).exits(2).complains("chmod 600 kek");

    home.write("seed", [7; 32]);
    let import = ["keys", "import", "x", "seed", "--format", "raw", "--algorithm", "ed25519"];
    home.run(import).exits(2).complains("chmod 600 seed");
    assert_eq!(home.run(["keys", "list", "--json"]).exits(0).json().len(), 2);
    home.chmod("seed", 0o600);
    home.run(import).exits(0);
    // A public key may lie anywhere.
    home.run(["keys", "export-public", "--format", "pem", "-o", "pem"]).exits(0);
    assert_eq!(fs::metadata(home.path("pem")).unwrap().permissions().mode() & 0o7777, 0o644);
    home.run(["keys", "import", "y", "pem", "--public"]).exits(0);
}

#[test]
fn a_keystore_that_others_may_change_is_refused() {
    let home = Home::new();
    home.write("a", "a");
    home.run(["sign", "a"]).exits(0);
    let (folder, store) = (home.keystore(), home.keystore().join("keystore.redb"));
    for (path, good, bad) in
        [(&folder, 0o755, [0o777, 0o775, 0o702, 0o1777]), (&store, 0o600, [0o666, 0o620, 0o602, 0o660])]
    {
        for mode in bad {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            for args in [&["sign", "a"][..], &["verify", "a"], &["keys", "list"], &["keys", "rotate"]] {
                home.run(args)
                    .exits(2)
                    .complains(&format!("its mode ({mode:04o}) allows other users to change it"))
                    .complains(&format!("chmod go-w {}", path.display()));
            }
        }
        fs::set_permissions(path, fs::Permissions::from_mode(good)).unwrap();
        home.run(["verify", "a"]).exits(0);
    }
    home.run(["keys", "show"]).exits(0).says("v1 ");
}

#[test]
fn no_keystore_is_made_where_others_may_exchange_it() {
    let home = Home::new();
    fs::create_dir(home.path("open")).unwrap();
    home.chmod("open", 0o777);
    home.run(["keystore", "init", "--keystore", "open"]).exits(2).complains("chmod go-w open");
    assert_eq!(fs::read_dir(home.path("open")).unwrap().count(), 0);
}

#[test]
fn an_error_about_the_command_line_shows_no_secret_that_was_pasted_there() {
    let home = Home::new();
    let line = "MC4CAQAwBQYDK2VwBCIEIHcHbQpzGKV9PBbBclGyZkXf";
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{line}\nTC06x6sxkGal\n-----END PRIVATE KEY-----\n");
    for args in [
        &["verify", &pem][..],
        &["sum", &format!("--algorithm={pem}")],
        &["keys", "create", "--algorithm", line],
        &["token", "new", &pem],
        &["serve", &pem],
        &["audit", &pem],
        &[line],
    ] {
        let done = home.run(args).exits(2).complains("[argument not shown]");
        assert!(!done.stderr.contains(line) && !done.stderr.contains("TC06x6sxkGal"), "{}", done.stderr);
    }
    let by_variable =
        Done::of(home.command().env("BULLA_PKCS11", "pkcs11:x?pin-value=1234").arg("sign").arg("a"));
    assert!(!by_variable.exits(2).stderr.contains("1234"));
    home.run(["verify", "--algoritm"]).exits(2).complains("'--algoritm'");
}
