//! Imports and backups with the keys of a service.

use crate::both::{Both, copied, prepared, remote, serve};
use crate::support::Done;

#[test]
fn keys_are_imported_as_on_this_machine() {
    let here = prepared();
    here.write_secret("seed", [7; 32]);
    here.write_secret("next", [8; 32]);
    let keygen = ["-q", "-t", "ed25519", "-N", "correct horse", "-f", "id"];
    Done::of(here.program("ssh-keygen").args(keygen)).exits(0);
    here.write_secret("pass", "correct horse\n");
    // A running OpenBao exported it.
    let vault = "/+lxJZJgQ6WMz40Q+k5Y/rJSmHDWDSysXTdTclWULfRdGrNMRoMo21FVLaexl5+irzi8b9++/xkRaA57cntEiQ==\n";
    here.write_secret("vault", vault);
    let public = here.run(["keys", "export-public", "transport"]).exits(0).stdout;
    here.write("transport.pub", public);
    let export = ["--to", "transport.pub", "--token-file", "export.token", "--output", "wrapped"];
    here.run([&["keys", "export", "moving"][..], &export].concat()).exits(0);
    let there = copied(&here);
    let _serving = serve(&there);
    let mut both = Both::new(&here, &there);
    let mut import = |args: &[&str], code| both.same(&[&["keys", "import"][..], args].concat(), code);
    let raw = ["--format", "raw", "--algorithm", "ed25519"];
    import(&[&["seeded", "seed", "--exportable"][..], &raw].concat(), 0);
    import(&[&["seeded", "next", "--new-version", "--json"][..], &raw].concat(), 0);
    import(&[&["seeded", "next"][..], &raw].concat(), 2);
    import(&[&["nothing", "next", "--new-version"][..], &raw].concat(), 2);
    import(&["laptop", "id", "--format", "openssh", "--key-passphrase-file", "pass", "--purpose", "ssh"], 0);
    import(&["vaulted", "vault", "--format", "vault"], 0);
    import(&["another", "vault", "--format", "vault", "--public"], 2);
    import(&["theirs", "transport.pub", "--public"], 2);
    import(&["theirs", "id.pub", "--public", "--format", "openssh", "--json"], 0);
    import(&["theirs", "a"], 2);
    import(&["moved", "wrapped", "--format", "wrapped", "--unwrap-with", "default"], 2);
    import(&["moved", "wrapped", "--format", "wrapped", "--unwrap-with", "transport"], 0);
    for name in ["seeded", "laptop", "vaulted", "theirs", "moved"] {
        let done = both.same(&["keys", "export-public", name, "--format", "raw"], 0);
        let here = here.run(["keys", "export-public", name, "--format", "raw"]).exits(0);
        assert_eq!(done.output.stdout, here.output.stdout, "{name}");
    }
    both.same(&["sign", "--key", "seeded", "a"], 0);
    // Nobody listens there: the key must not be sent at all.
    let exposed = ["keys", "import", "x", "seed", "--format", "raw", "--algorithm", "ed25519"];
    let sent = Done::of(there.command().args(exposed).args(["--server", "http://192.0.2.1:8200"]));
    sent.exits(2).complains("would travel unencrypted");
}

#[test]
fn backups_are_made_as_on_this_machine() {
    let here = prepared();
    let recipient = here.run(["keygen", "me.identity"]).exits(0).stdout;
    here.write("me.recipient", recipient);
    let public = here.run(["keys", "export-public", "transport"]).exits(0).stdout;
    here.write("transport.pub", public);
    here.write_secret("pass", "correct horse\n");
    let there = copied(&here);
    let serving = serve(&there);
    let mut both = Both::new(&here, &there);
    let to = ["--recipient", "me.recipient", "--recipient", "transport.pub"];
    both.same(&[&["keystore", "backup", "one"][..], &to].concat(), 0);
    both.same(&[&["keystore", "backup", "two", "--json"][..], &to].concat(), 0);
    both.same(&[&["keystore", "backup", "two"][..], &to].concat(), 2);
    both.same(&["keystore", "backup", "three", "--recipient", "a"], 2);
    let by_passphrase = ["keystore", "backup", "three", "--new-passphrase-file", "pass"];
    Done::of(remote(&there).args(by_passphrase)).exits(2).complains("recipients alone");
    assert!(!there.path("three").exists());
    drop(serving);
    let restored = there.path("restored");
    let restored = restored.to_str().expect("a path");
    let restore = ["keystore", "restore", "one", "--identity", "me.identity", "--keystore", restored];
    there.run(restore).exits(0);
    let public = |args: &[&str]| there.run([&["keys", "export-public"][..], args].concat()).exits(0).stdout;
    assert_eq!(public(&["releases", "--keystore", restored]), public(&["releases"]));
}
