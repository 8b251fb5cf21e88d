//! `bulla approvals`: two people with keystores of their own approve what a third one signs with a
//! key of a service.

use crate::both::serve;
use crate::support::{Done, Home};

const PEOPLE: [&str; 3] = ["ann", "bob", "carol"];

/// `bulla approvals` as a person, who has a keystore of the own name beside the service.
fn run(home: &Home, name: &str, args: &[&str]) -> Done {
    let mut command = home.command();
    command.env("BULLA_ADDR", "unix:socket").env("BULLA_KEYSTORE", home.path(name)).arg("approvals");
    Done::of(command.args(args))
}

/// A service's home with a key, and the public keys of three people, each with its flag.
fn prepared() -> (Home, Vec<String>) {
    let home = Home::new();
    home.run(["keystore", "init"]).exits(0);
    home.run(["keys", "create", "releases"]).exits(0);
    home.write("app.tar.gz", "content");
    home.write("other", "another content");
    let key_of = |name: &str| {
        Done::of(home.command().args(["keystore", "init", "--keystore", name])).exits(0);
        let show = ["keys", "show", "default", "--json", "--keystore", name];
        let key = Done::of(home.command().args(show)).exits(0).json().remove(0);
        format!("{name}={}", key["versions"][0]["public_key"].as_str().expect("a public key"))
    };
    let approvers = PEOPLE.iter().map(|name| key_of(name)).collect();
    (home, approvers)
}

fn require(home: &Home, approvers: &[String]) -> Done {
    let mut args = vec!["require", "releases", "--threshold", "2", "--within", "1h"];
    for approver in approvers {
        args.extend(["--approver", approver]);
    }
    run(home, "none", &args)
}

#[test]
fn two_people_compare_the_file_and_approve_it_and_it_is_signed_once() {
    let (home, approvers) = prepared();
    let _serving = serve(&home);
    require(&home, &approvers).exits(0).complains("used only when 2 of 3 people have approved it");
    require(&home, &approvers).exits(2).complains("approvals");

    let ask = ["sign", "app.tar.gz", "--key", "releases", "--reason", "release 1.2", "--json"];
    let asked = run(&home, "none", &ask).exits(0).complains("bulla approvals approve").json().remove(0);
    let id = asked["request"]["id"].as_str().expect("an id").to_owned();
    assert_eq!((&asked["state"], &asked["request"]["requester"]), (&"waiting".into(), &"me".into()));

    let approve = |name: &'static str, file: &'static str| {
        run(&home, name, &["approve", &id, "--name", name, "--file", file, "--yes"])
    };
    approve("ann", "other").exits(2).complains("is not what you are asked to approve");
    run(&home, "ann", &["approve", &id, "--name", "ann", "--yes"]).exits(2).complains("--file");
    run(&home, "ann", &["approve", &id, "--name", "bob", "--without-file", "--yes"]).exits(2);
    approve("ann", "app.tar.gz").exits(0).complains("release 1.2").complains("1 of 2 people have approved");
    approve("ann", "app.tar.gz").exits(2).complains("has decided");
    run(&home, "none", &["show", &id]).exits(0).says("the file app.tar.gz").says("1 of 2: ann");
    let sign = ["sign", "app.tar.gz", "--key", "releases", "--request", &id];
    run(&home, "none", &sign).exits(0).says("waiting");
    assert!(!home.path("app.tar.gz.bulla").exists());
    approve("bob", "app.tar.gz").exits(0).complains("the request is approved");
    run(&home, "none", &sign).exits(0).complains("wrote app.tar.gz.bulla");
    run(&home, "none", &sign).exits(2).complains("was used already");
    let listed = run(&home, "none", &["list", "--json"]).exits(0).json();
    assert_eq!(listed[0]["state"], "used");
    let verify = ["verify", "app.tar.gz"];
    Done::of(home.command().env("BULLA_ADDR", "unix:socket").args(verify)).exits(0);
    // Without a request, the key signs nothing.
    let other = ["sign", "--key", "releases", "other"];
    Done::of(home.command().env("BULLA_ADDR", "unix:socket").args(other)).exits(2).complains("approvers");
}

#[test]
fn a_request_that_people_reject_signs_nothing() {
    let (home, approvers) = prepared();
    let _serving = serve(&home);
    require(&home, &approvers).exits(0);
    let ask = ["sign", "app.tar.gz", "--key", "releases", "--reason", "release 1.2", "--json"];
    let asked = run(&home, "none", &ask).exits(0).json().remove(0);
    let id = asked["request"]["id"].as_str().expect("an id").to_owned();
    for (name, state) in [("ann", "waiting"), ("bob", "rejected")] {
        let rejected = run(&home, name, &["reject", &id, "--name", name, "--yes", "--json"]).exits(0);
        assert_eq!(rejected.json()[0]["state"], state);
    }
    let sign = ["sign", "app.tar.gz", "--key", "releases", "--request", &id, "--wait"];
    run(&home, "none", &sign).exits(2).complains("was rejected");
    run(&home, "none", &["show", "1"]).exits(2);
    let mut nowhere = home.command();
    Done::of(nowhere.args(["approvals", "list"])).exits(2).complains("--server URL");
}
