//! Policies in Vault's language: which paths below `/v1` a token reaches, and for what.
//!
//! - [`Policy`] is the text of one, and what it says.
//! - [`Acl`] are some of them together, with Vault's order of precedence.
//! - [`Endpoint`] says which operations a path needs. A token with policies never has others.
//!
//! `docs/policies.md` says what of the language there is.

mod acl;
mod endpoints;
mod rule;
mod syntax;

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use bulla_kms::{Code, KmsError, Name};

use self::acl::RuleTable;
pub(crate) use self::acl::{Acl, Decision};
pub(crate) use self::endpoints::{Demand, Endpoint};
pub(crate) use self::rule::{Capability, CapabilitySet, Permissions, Rule, read_rules};
pub(crate) use self::syntax::PolicyError;

/// The policy that every token with policies also has, unless the settings have another one of
/// this name: what its holder may do with the token itself.
pub(crate) const DEFAULT: &str = "default";

const DEFAULT_TEXT: &str = r#"path "auth/token/lookup-self" {
  capabilities = ["read"]
}

path "auth/token/renew-self" {
  capabilities = ["update"]
}

path "auth/token/revoke-self" {
  capabilities = ["update"]
}

path "sys/capabilities-self" {
  capabilities = ["update"]
}

path "sys/wrapping/wrap" {
  capabilities = ["update"]
}

path "sys/wrapping/lookup" {
  capabilities = ["update"]
}

path "sys/wrapping/unwrap" {
  capabilities = ["update"]
}
"#;

/// A policy: its text, and what it says.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) text: String,
    pub(crate) rules: Vec<Rule>,
    table: RuleTable,
}

impl Policy {
    /// # Errors
    /// The text is no policy, or says what bulla cannot do.
    pub(crate) fn read(text: &str) -> Result<Self, PolicyError> {
        let rules = read_rules(text)?;
        let table = RuleTable::new(&rules);
        Ok(Self { text: text.to_owned(), rules, table })
    }
}

/// The policy [`DEFAULT`], if the settings have none.
pub(crate) fn default_policy() -> Arc<Policy> {
    static POLICY: LazyLock<Arc<Policy>> =
        LazyLock::new(|| Arc::new(Policy::read(DEFAULT_TEXT).expect("the text is a policy")));
    Arc::clone(&POLICY)
}

/// These policies and [`DEFAULT`], which comes first.
pub(crate) fn with_default(mut names: Vec<Name>) -> Vec<Name> {
    if !names.iter().any(|name| name.as_str() == DEFAULT)
        && let Ok(default) = DEFAULT.parse()
    {
        names.insert(0, default);
    }
    names
}

/// Reads the policy in a file.
///
/// # Errors
/// [`Code::NotFound`], [`Code::Io`]; [`Code::InvalidArgument`] with the line for a text that is no
/// policy or says what bulla cannot do.
pub(crate) fn read_file(file: &Path) -> bulla_kms::Result<Policy> {
    let text = fs::read(file).map_err(|error| {
        let code = if error.kind() == std::io::ErrorKind::NotFound { Code::NotFound } else { Code::Io };
        KmsError::new(code, format!("cannot read the policy {}: {error}", file.display()))
    })?;
    let text = String::from_utf8(text).map_err(|_| PolicyError::new(1, "the policy is not text (UTF-8)"));
    text.and_then(|text| Policy::read(&text)).map_err(|error| {
        let message = format!("{}:{}: {}", file.display(), error.line, error.message);
        KmsError::new(Code::InvalidArgument, message)
    })
}

/// A truth value in the words of Go. An empty text is false.
pub(crate) fn flag_of(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A number of seconds: digits, or numbers with the units `s`, `m`, `h` and `d`.
pub(crate) fn seconds_of(text: &str) -> Option<u64> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let (mut rest, mut sum) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0)?;
        let (number, unit) = rest.split_at(digits);
        let seconds = match unit.as_bytes()[0] {
            b'd' => 86_400,
            b'h' => 3_600,
            b'm' => 60,
            b's' => 1,
            _ => return None,
        };
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(seconds)?)?;
        rest = &unit[1..];
    }
    Some(sum).filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acl(texts: &[&str]) -> Acl {
        let name: Name = "a".parse().unwrap();
        let policy = |text: &&str| (name.clone(), Arc::new(Policy::read(text).unwrap()));
        Acl::new(texts.iter().map(policy).collect())
    }

    fn rule(path: &str, capabilities: &str) -> String {
        format!("path \"{path}\" {{\n  capabilities = [{capabilities}]\n}}\n")
    }

    #[test]
    fn the_most_specific_pattern_decides_as_in_openbao() {
        let update = "\"update\"";
        let deny = "\"deny\"";
        // What a running OpenBao said of each.
        for (rules, path, permitted) in [
            (vec![("transit/sign/*", update), ("transit/sign/a", deny)], "transit/sign/a", false),
            (vec![("transit/sign/*", deny), ("transit/sign/a", update)], "transit/sign/a", true),
            (vec![("transit/sign/a", deny), ("transit/sign/a", update)], "transit/sign/a", false),
            (vec![("transit/+/a", deny), ("transit/sign/*", update)], "transit/sign/a", true),
            (vec![("transit/sign/+", update), ("transit/sign/*", deny)], "transit/sign/a", true),
            (vec![("transit/+/a", update), ("transit/+/*", deny)], "transit/sign/a", true),
            (vec![("transit/+/+", deny), ("transit/+/a", update)], "transit/sign/a", true),
            (vec![("transit/sign/+", update)], "transit/sign/a/sha2-256", false),
            (vec![("transit/sign/+/*", update)], "transit/sign/a", false),
            (vec![("transit/sign/+/*", update)], "transit/sign/a/sha2-256", true),
            (vec![("transit/sign/a*", update)], "transit/sign/abc/sha2-256", true),
            (vec![("*", update), ("transit/*", deny)], "transit/sign/a", false),
            (vec![("+/sign/a", update)], "transit/sign/a", true),
            (vec![("transit/sign/A*", update)], "transit/sign/a", false),
            // Of a path with a slash at its end, all patterns are asked with it first.
            (vec![("transit/+", update)], "transit/keys/", true),
            (vec![("transit/+", deny), ("*", update)], "transit/keys/", true),
            (vec![("transit/+", update), ("transit/keys", deny)], "transit/keys/", false),
        ] {
            let texts: Vec<_> = rules.iter().map(|(path, capabilities)| rule(path, capabilities)).collect();
            let together = acl(&[&texts.concat()]);
            let apart = acl(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            for acl in [together, apart] {
                assert_eq!(
                    acl.capabilities(path).contains(Capability::Update),
                    permitted,
                    "{rules:?} {path}"
                );
            }
        }
    }

    #[test]
    fn what_bulla_cannot_do_is_an_error_with_its_line() {
        let with =
            |more: &str| format!("path \"transit/keys/a\" {{\n  capabilities = [\"update\"]\n  {more}\n}}\n");
        for (text, line, words) in [
            (rule("secret/data/a", "\"read\""), 1, "bulla has nothing at"),
            (rule("auth/approle/role/a/secret-id", "\"update\""), 1, "bulla has nothing at"),
            (rule("transit/sign/a", "\"read\", \"list\""), 1, "takes the capabilities update"),
            (rule("transit/sign/a", ""), 1, "has no `capabilities`"),
            (rule("transit/sign/a", "\"fly\""), 2, "the capability \"fly\" is unknown"),
            (rule("transit/sign/+*", "\"update\""), 1, "`+*`"),
            (rule("transit/sign/{{identity.entity.name}}", "\"update\""), 1, "bulla has no entities"),
            (with("control_group = {}"), 3, "`control_group`"),
            (with("mfa_methods = [\"a\"]"), 3, "`mfa_methods`"),
            (with("pagination_limit = 3"), 3, "`pagination_limit`"),
            (with("expiration = \"2030-01-01T00:00:00Z\""), 3, "`expiration`"),
            (with("color = 1"), 3, "`color` is unknown"),
            (with("allowed_parameters = { type = [1] }"), 3, "values that are texts"),
            (with("allowed_parameters = { type = \"a\" }"), 3, "a list of values"),
            (with("required_parameters = \"a\""), 3, "a list of texts"),
            (with("min_wrapping_ttl = \"x\""), 3, "is a time"),
            (with("min_wrapping_ttl = 9\n  max_wrapping_ttl = 8"), 1, "less than"),
            (with("allowed_parameters = { type = [\"${a}\"] }"), 3, "bulla computes nothing"),
            ("name = \"a\"\n".to_owned() + &with(""), 1, "remove `name`"),
            (with("") + "color = 1", 5, "`color` is unknown"),
            ("path \"a\" {".to_owned(), 1, "cannot be read"),
            ("tra/b {\n  c>a/{\n".repeat(9), 7, "nested more than 6"),
            ("{\"path\":\n".to_owned() + &"[".repeat(8), 2, "nested more than 6"),
            ("/*/ { */".to_owned() + "/ /* *// " + &"[".repeat(8), 1, "nested more than 6"),
            ("a = ".to_owned() + &"a//**/{ b = ".repeat(8), 1, "put a space before `*`"),
            (with("required_parameters = <<A\n{{\nA"), 3, "no heredoc"),
            (String::new(), 1, "no statement"),
            ("{\"path\": {\n\"transit/sign/a\":\n{\"capabilities\": [\"fly\"]}}}".to_owned(), 3, "\"fly\""),
            ("{\"path\": {\"transit/si\ngn/a\": {}}}".to_owned(), 1, "a line breaks in a text"),
            ("{\n\"path\"\n:\n{}\n, \"a\": 1 }".to_owned(), 5, "`a` is unknown"),
            ("{\"path\": 1}".to_owned(), 1, "is an object"),
            ("{\"role\": {}}".to_owned(), 1, "`role` is unknown"),
        ] {
            let error = Policy::read(&text).unwrap_err();
            assert!(error.line == line && error.message.contains(words), "{text}\n{error}");
        }
        // Brackets in comments and in texts are not nested.
        let brackets = "# [[[[[[[[[\n// {{{{{{{{{\n/* (((((((((\n((( */\n";
        let named = rule("transit/keys/\\\"[[[[[[[[[", "\"update\"");
        assert_eq!(Policy::read(&(brackets.to_owned() + &named)).unwrap().rules.len(), 1);
        // A denial of what is not there changes nothing.
        Policy::read(&rule("secret/*", "\"deny\"")).unwrap();
    }

    #[test]
    fn json_says_what_hcl_says() {
        let hcl = acl(&[
            "path \"transit/sign/a\" {\n  capabilities = [\"update\"]\n  allowed_parameters = {\n    \"input\" = []\n  }\n}\n",
        ]);
        for text in [
            r#"{"path": {"transit\/sign\/a": {"capabilities": ["update"], "allowed_parameters": {"input": []}}}}"#,
            r#"{"path": [{"transit/sign/a": {"capabilities": ["update"], "allowed_parameters": {"input": []}}}]}"#,
        ] {
            let json = acl(&[text]);
            let of = |acl: &Acl| acl.decision("transit/sign/a").unwrap().permissions.into_owned();
            assert_eq!(of(&json), of(&hcl), "{text}");
        }
    }

    #[test]
    fn the_built_in_policy_is_a_policy() {
        assert!(!default_policy().rules.is_empty());
    }
}
