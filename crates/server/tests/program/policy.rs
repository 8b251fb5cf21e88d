//! `bulla policy`: files with policies, and what their lines decide.

use crate::support::Home;
use bulla_kms::token::{Grant, GrantedKeys, TokenLimits, TokenOperation};
use bulla_kms::{Keystore, Timestamp};

const RELEASE: &str = "\
path \"transit/sign/*\" {
  capabilities = [\"update\"]
}

path \"transit/sign/root\" {
  capabilities = [\"deny\"]
}

path \"transit/keys/+\" {
  capabilities = [\"update\"]
  required_parameters = [\"type\"]
}
";

#[test]
fn a_policy_is_checked_with_the_line_of_each_mistake() {
    let home = Home::new();
    home.write("good.hcl", RELEASE);
    home.write(
        "bad.hcl",
        "path \"transit/sign/a\" {\n  capabilities = [\"update\"]\n  mfa_methods = []\n}\n",
    );
    home.write("other.json", "{\"path\": {\"secret/a\": {\"capabilities\": [\"read\"]}}}\n");
    assert_eq!(home.run(["policy", "check", "good.hcl"]).exits(0).stdout, "");
    let said = home.run(["policy", "check", "good.hcl", "bad.hcl", "other.json"]).exits(1).stderr;
    assert!(said.contains("bad.hcl:3: bulla cannot do what `mfa_methods` asks for"), "{said}");
    assert!(said.contains("other.json:1: bulla has nothing at \"secret/a\""), "{said}");
    assert!(!said.contains("good.hcl"), "{said}");
    home.run(["policy", "check", "nowhere.hcl"]).exits(2);
}

#[test]
fn a_path_is_explained_by_the_lines_that_decide() {
    let home = Home::new();
    home.write("release.hcl", RELEASE);
    let file = home.path("release.hcl").display().to_string();
    let table =
        |name: &str| format!("[[policy]]\nname = \"{name}\"\ntenant = \"local\"\nfile = \"{file}\"\n");
    home.write("serve.toml", table("release") + &table("other"));
    let asked = |path: &str, more: &[&str]| {
        home.run([&["policy", "explain", path, "--config", "serve.toml"][..], more].concat())
    };
    let by_name = ["--policy", "release"];
    let said = asked("transit/sign/root", &by_name).exits(1).stdout;
    assert_eq!(
        said,
        format!(
            "transit/sign/root: deny (policies release, default)\n  {file}:5: path \"transit/sign/root\"\n"
        )
    );
    let said = asked("/v1/transit/keys/a", &by_name).exits(0).stdout;
    assert!(
        said.contains("update (policies") && said.contains(":9: path") && said.contains("only with"),
        "{said}"
    );
    let said = asked("transit/decrypt/a", &by_name).exits(1).stdout;
    assert!(said.contains("no statement is about this path"), "{said}");
    // A child's token asks the policies of its parent, too.
    let keystore = Keystore::in_memory().unwrap();
    let tenant: bulla_kms::Name = "local".parse().unwrap();
    keystore.create_token_root(&tenant).unwrap();
    let end = Timestamp::from_unix_millis(Timestamp::now().unwrap().unix_millis() + 60_000).unwrap();
    let grant = Grant::new(tenant, GrantedKeys::All, vec![TokenOperation::Sign], end);
    let plain = keystore.mint_token(&grant).unwrap();
    let token = keystore.mint_token(&grant.policies(vec!["release".parse().unwrap()])).unwrap();
    let child = token.attenuate(&TokenLimits::default().policies(vec!["other".parse().unwrap()])).unwrap();
    home.write("token", child.expose());
    let said = asked("transit/sign/a", &["--token-file", "token"]).exits(0).stdout;
    assert_eq!(said.matches("transit/sign/a: update").count(), 2, "{said}");
    home.write("plain", plain.expose());
    let said = asked("transit/sign/a", &["--token-file", "plain"]).exits(2).stderr;
    assert!(said.contains("operations, and no policies"), "{said}");
    assert!(asked("transit/sign/a", &[]).exits(2).stderr.contains("--policy"));
    assert!(asked("transit/sign/a", &["--policy", "nobody"]).exits(2).stderr.contains("no policy nobody"));
}
