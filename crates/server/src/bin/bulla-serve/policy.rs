//! `bulla policy`: policies in files, before the service reads them.

use std::path::{Path, PathBuf};

use bulla_command::color::ColorWhen;
use bulla_command::diagnostics::note_line;
use bulla_command::error::{Error, Result};
use bulla_command::exit::Exit;
use bulla_command::output::Out;
use bulla_files::escape_path;
use bulla_kms::Name;
use bulla_kms::token::Token;
use bulla_server::{PolicyDecision, check_policy, explain_policies};
use clap::{Args, Parser, Subcommand};

/// Check policies of the service, and explain what they permit
///
/// A policy says in Vault's language which paths below /v1 a token reaches. The settings of the
/// service name the files. docs/policies.md explains them.
#[derive(Parser)]
#[command(name = "bulla-serve", bin_name = "bulla policy", version, max_term_width = 100)]
#[command(after_help = "\
Examples:
  bulla policy check release.hcl
  bulla policy explain transit/sign/release --policy release --config serve.toml

Exit status: 0 done, 1 a policy is not valid or the path is denied, 2 not done.")]
pub(crate) struct PolicyCli {
    /// When to use color
    ///
    /// The variables NO_COLOR, CLICOLOR and CLICOLOR_FORCE are respected.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,

    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

#[derive(Subcommand)]
pub(crate) enum PolicyCommand {
    Check(CheckArgs),
    Explain(ExplainArgs),
}

/// Check files with policies
///
/// What bulla cannot do is an error, with its line: nothing in a policy is ignored.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla policy check release.hcl
  bulla policy check policies/*.hcl

Exit status: 0 all are policies, 1 one is not, 2 one cannot be read.")]
pub(crate) struct CheckArgs {
    /// The files, HCL or JSON
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// Show which statement of which policy decides about a path
///
/// The policies are those that a token names, or those of --policy. The token's signature is not
/// checked. A child's token also has the policies of its parent: all of them must permit a request.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulla policy explain transit/sign/release --policy release --config serve.toml
  bulla policy explain transit/sign/release --token-file token --config serve.toml

Exit status: 0 something is permitted, 1 everything is denied, 2 it cannot be explained.")]
pub(crate) struct ExplainArgs {
    /// The path, below /v1/
    #[arg(value_name = "PATH")]
    path: String,

    /// Read the token from FILE
    #[arg(long, value_name = "FILE", env = "BULLA_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,

    /// Ask this policy, together with `default`; may be given several times
    #[arg(long = "policy", value_name = "NAME", conflicts_with = "token_file")]
    policies: Vec<Name>,

    /// The tenant of the policies of --policy [default: the operators' tenant]
    #[arg(long, value_name = "NAME", requires = "policies")]
    tenant: Option<Name>,

    /// Read the settings, which name the files of policies, from FILE (TOML)
    #[arg(long, value_name = "FILE", env = "BULLA_SERVE_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
}

pub(crate) fn run(cli: PolicyCli) -> Result<Exit> {
    match cli.command {
        PolicyCommand::Check(args) => check(&args),
        PolicyCommand::Explain(args) => explain(&args),
    }
}

fn check(args: &CheckArgs) -> Result<Exit> {
    let mut exit = Exit::Ok;
    for file in &args.files {
        match check_policy(file) {
            Ok(()) => {}
            Err(error) if error.code == bulla_kms::Code::InvalidArgument => {
                note_line(&error.message);
                exit = Exit::Mismatch;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(exit)
}

fn explain(args: &ExplainArgs) -> Result<Exit> {
    let config = crate::load(args.config.as_deref())?;
    let (tenant, sets) = match &args.token_file {
        Some(file) => stated(file)?,
        None if args.policies.is_empty() => {
            return Err(Error::new("invalid_argument", "there is nothing to ask")
                .hint("name a policy with --policy, or a token with --token-file"));
        }
        None => {
            let mut names = args.policies.clone();
            names.extend("default".parse::<Name>().ok().filter(|name| !args.policies.contains(name)));
            let tenant = args.tenant.clone().unwrap_or_else(|| config.service.operator_tenant.clone());
            (tenant, vec![names])
        }
    };
    let decisions = explain_policies(&config, &tenant, &sets, &args.path)?;
    let file_of = |name: &Name| {
        let mut policies = config.policy.iter();
        let found = policies.find(|policy| policy.tenant == tenant && policy.name == *name);
        found.map_or_else(|| format!("the built-in policy {name}"), |policy| escape_path(&policy.file))
    };
    let mut out = Out::stdout();
    for decision in &decisions {
        out.bytes(text(decision, &args.path, file_of).as_bytes())?;
    }
    out.flush()?;
    let is_denied = decisions.iter().any(|decision| decision.capabilities == ["deny"]);
    Ok(if is_denied { Exit::Mismatch } else { Exit::Ok })
}

/// The tenant and the sets of policies that a token names.
fn stated(file: &Path) -> Result<(Name, Vec<Vec<Name>>)> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Error::io("cannot be read", &error).about(escape_path(file)))?;
    let token: Token = text.trim().parse()?;
    let (tenant, sets) = token.stated_policies().ok_or_else(|| {
        Error::new("invalid_token", "the token is not one of bulla").about(escape_path(file))
    })?;
    if sets.is_empty() {
        return Err(Error::new("invalid_argument", "the token has operations, and no policies")
            .about(escape_path(file))
            .hint("`bulla token inspect` shows them"));
    }
    Ok((tenant, sets))
}

fn text(decision: &PolicyDecision, path: &str, file_of: impl Fn(&Name) -> String) -> String {
    let names: Vec<_> = decision.policies.iter().map(Name::as_str).collect();
    let mut text = format!("{path}: {} (policies {})\n", decision.capabilities.join(", "), names.join(", "));
    match &decision.pattern {
        None => text.push_str("  no statement is about this path\n"),
        Some(pattern) => {
            for (policy, line) in &decision.sources {
                text.push_str(&format!("  {}:{line}: path {pattern:?}\n", file_of(policy)));
            }
        }
    }
    if decision.has_conditions {
        text.push_str("  only with the parameters and times of wrapping that these lines permit\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulla_command::tree::CommandTree;
    use clap::CommandFactory;

    #[test]
    fn the_help_of_every_command_has_examples_and_exit_statuses() {
        let missing = CommandTree::of(&PolicyCli::command()).missing_help("bulla policy");
        assert!(missing.is_empty(), "{missing:?}");
    }
}
