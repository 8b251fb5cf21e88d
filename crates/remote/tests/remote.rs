//! The program `bulla-remote`, as `bulla` starts it and as its users meet it.
#![cfg(unix)]

use bulla_testing::{Done, Home, program};

#[test]
fn it_has_all_commands_of_bulla() {
    let home = Home::new();
    home.write("a", "content");
    let remote = |args: &[&str]| Done::of(home.program(program("bulla-remote")).args(args));
    assert_eq!(remote(&["sum", "a"]).exits(0).stdout, home.run(["sum", "a"]).exits(0).stdout);
    let help = remote(&["--help"]).exits(0).stdout.replace("Usage: bulla-remote", "Usage: bulla");
    assert_eq!(help, home.run(["--help"]).exits(0).stdout);
    remote(&["token"]).exits(2).complains("Usage: bulla token");
    remote(&["help", "token"]).exits(0).says("Usage: bulla token");
}

#[test]
fn an_address_that_is_none_is_refused_and_not_repeated() {
    let home = Home::new();
    home.write("a", "content");
    for address in ["ftp://user:secret@keys.example.org", "keys.example.org:8200", "unix:"] {
        let flag = home.run(["keys", "list", "--server", address]).exits(2);
        let variable = Done::of(home.command().args(["sign", "a"]).env("BULLA_ADDR", address)).exits(2);
        for done in [flag, variable] {
            assert!(!done.stderr.contains("secret"), "{}", done.stderr);
            done.complains("this is not the address of a service").complains("--server or BULLA_ADDR");
        }
    }
}

#[test]
fn wrong_flags_and_help_of_tokens_name_the_command_that_a_user_typed() {
    let home = Home::new();
    home.run(["token", "new"]).exits(2).complains("Usage: bulla token new --operation <NAME>");
    home.run(["--color", "never", "token", "inspect", "--wrong"])
        .exits(2)
        .complains("bulla: unexpected argument");
    home.run(["help", "token", "attenuate"]).exits(0).says("Usage: bulla token attenuate");
    home.run(["token", "inspect", "missing"]).exits(2).complains("missing: cannot read the token");
}
