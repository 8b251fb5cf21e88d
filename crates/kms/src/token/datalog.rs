//! The Datalog of tokens: how grants, restrictions and requests are written, and the only form of
//! tokens that is accepted.
//!
//! A Biscuit may contain any Datalog, and the library checks its limits only between rounds: one
//! rule that joins a few hundred facts four times would fill the memory within the first round. So
//! a token has only the statements that this module writes. They are parsed from the printed
//! source, then written and built again, and compared: names in a token may be any text, and could
//! make one block print like another. Names of keys and holders, and ids have no character that
//! needs escaping.

use std::fmt::{Display, Write as _};

use biscuit_auth::builder::{BiscuitBuilder, BlockBuilder, Fact, Term};
use biscuit_auth::{KeyPair, UnverifiedBiscuit};

use super::grant::TokenRequest;
use super::grant::{Grant, GrantedKeys, TokenLimits, TokenOperation};
use crate::error::{Code, KmsError, Result};
use crate::id::{KeyId, Name};
use crate::time::Timestamp;

/// A time as Datalog writes it: RFC 3339, to the second.
fn date(time: Timestamp) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// The first block.
pub(super) fn write_grant(grant: &Grant) -> String {
    let mut code = String::new();
    for (name, value) in grant_facts(grant) {
        let _ = match value {
            FactValue::Text(text) => writeln!(code, "{name}(\"{text}\");"),
            FactValue::True => writeln!(code, "{name}(true);"),
        };
    }
    for check in grant_checks(grant) {
        let _ = writeln!(code, "{check};");
    }
    code
}

/// The token whose first block is that of [`write_grant`], to be built. Its facts are not written
/// and parsed: that takes longer than the token's signature.
pub(super) fn build_grant(grant: &Grant) -> Result<BiscuitBuilder, biscuit_auth::error::Token> {
    let mut builder = BiscuitBuilder::new();
    for (name, value) in grant_facts(grant) {
        let term = match value {
            FactValue::Text(text) => Term::Str(text),
            FactValue::True => Term::Bool(true),
        };
        builder = builder.fact(Fact::new(name.to_owned(), vec![term]))?;
    }
    grant_checks(grant).iter().try_fold(builder, |builder, check| builder.check(check.as_str()))
}

/// What a fact of a grant says.
enum FactValue {
    Text(String),
    True,
}

/// The facts of the first block, with their names.
fn grant_facts(grant: &Grant) -> Vec<(&'static str, FactValue)> {
    let text = |name, text: &dyn Display| (name, FactValue::Text(text.to_string()));
    let mut facts = vec![text("tenant", &grant.tenant)];
    facts.extend(grant.holder.iter().map(|holder| text("holder", holder)));
    facts.extend(grant.operations.iter().map(|operation| text("operation", operation)));
    match &grant.keys {
        GrantedKeys::All => facts.push(("all_keys", FactValue::True)),
        GrantedKeys::These(keys) => facts.extend(keys.iter().map(|key| text("key", key))),
    }
    facts
}

/// The checks of the first block.
fn grant_checks(grant: &Grant) -> Vec<String> {
    let policies = (!grant.policies.is_empty()).then(|| policies(&grant.policies));
    policies.into_iter().chain([expiry(grant.expires)]).collect()
}

/// The check that the time is not later.
fn expiry(expires: Timestamp) -> String {
    format!("check if time($now), $now <= {}", date(expires))
}

/// A block that restricts a token.
pub(super) fn write_limits(limits: &TokenLimits) -> Result<String> {
    let mut code = String::new();
    if let Some(operations) = &limits.operations {
        code.push_str(&any_of(
            "request_operation",
            operations.iter().map(|operation: &TokenOperation| operation.as_str()),
        )?);
    }
    if let Some(keys) = &limits.keys {
        let names: Vec<_> = keys.iter().map(KeyId::to_string).collect();
        code.push_str(&any_of("request_key", names.iter().map(String::as_str))?);
    }
    if let Some(names) = &limits.policies {
        if names.is_empty() {
            return Err(permits_nothing());
        }
        let _ = writeln!(code, "{};", policies(names));
    }
    if let Some(expires) = limits.expires {
        let _ = writeln!(code, "{};", expiry(expires));
    }
    if code.is_empty() {
        let message = "the new token would not be weaker: name operations, keys, policies or an expiry time";
        return Err(KmsError::new(Code::InvalidArgument, message));
    }
    Ok(code)
}

fn any_of<'a>(predicate: &str, values: impl Iterator<Item = &'a str>) -> Result<String> {
    let queries: Vec<_> = values.map(|value| format!("{predicate}(\"{value}\")")).collect();
    if queries.is_empty() {
        return Err(permits_nothing());
    }
    Ok(format!("check if {};\n", queries.join(" or ")))
}

fn permits_nothing() -> KmsError {
    let message = "a token must permit something: name at least one operation, one key and one policy";
    KmsError::new(Code::InvalidArgument, message)
}

/// The check that these policies together permit a request. Policies may forbid what others of them
/// permit, so all names are one term. Only a service that has the policies states that fact.
fn policies(names: &[Name]) -> String {
    let names: Vec<_> = names.iter().map(Name::as_str).collect();
    format!("check if request_policies(\"{}\")", names.join(","))
}

fn parse_policies(line: &str) -> Option<Vec<Name>> {
    let names = line.strip_prefix("check if request_policies(\"")?.strip_suffix("\");")?;
    names.split(',').map(|name| name.parse().ok()).collect()
}

/// The facts of a request.
pub(super) fn write_request(request: &TokenRequest<'_>) -> String {
    let mut code = format!(
        "time({});\nrequest_operation(\"{}\");\nrequest_tenant(\"{}\");\n",
        date(request.now),
        request.operation,
        request.tenant,
    );
    if let Some(key) = request.key {
        let _ = writeln!(code, "request_key(\"{key}\");");
    }
    code.push_str(
        "allow if request_operation($o), operation($o), request_tenant($t), tenant($t), all_keys(true);\n\
         allow if request_operation($o), operation($o), request_tenant($t), tenant($t), request_key($k), key($k);\n",
    );
    code
}

/// What the blocks of a token contain. The form of the token is not checked again: [`is_accepted`]
/// did that when the token was read.
pub(super) fn read_blocks(token: &UnverifiedBiscuit) -> Option<(Grant, Vec<TokenLimits>)> {
    let source = |index| token.print_block_source(index).ok();
    let limits =
        (1..token.block_count()).map(|index| parse_limits(&source(index)?)).collect::<Option<_>>()?;
    Some((parse_grant(&source(0)?)?, limits))
}

/// Whether the token consists of a grant and limits, in exactly the bytes that we would write.
pub(super) fn is_accepted(token: &UnverifiedBiscuit) -> bool {
    let sources: Option<Vec<_>> =
        (0..token.block_count()).map(|index| token.print_block_source(index).ok()).collect();
    let Some(sources) = sources else { return false };
    let is_written = |(index, source): (usize, &String)| match index {
        0 => parse_grant(source).is_some_and(|grant| write_grant(&grant) == *source),
        _ => parse_limits(source)
            .and_then(|limits| write_limits(&limits).ok())
            .is_some_and(|code| code == *source),
    };
    sources.iter().enumerate().all(is_written) && has_payloads_of(token, &sources).unwrap_or(false)
}

fn has_payloads_of(token: &UnverifiedBiscuit, sources: &[String]) -> Option<bool> {
    let (first, rest) = sources.split_first()?;
    let root = KeyPair::new();
    let mut again = BiscuitBuilder::new().code(first).ok()?.build(&root).ok()?;
    for source in rest {
        again = again.append(BlockBuilder::new().code(source).ok()?).ok()?;
    }
    let (theirs, ours) = (token.to_vec().ok()?, again.to_vec().ok()?);
    Some(payloads(&theirs)? == payloads(&ours)?)
}

/// A statement without its `NAME("` and `");`.
fn argument<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.strip_prefix(name)?.strip_prefix("(\"")?.strip_suffix("\");")
}

fn parse_grant(source: &str) -> Option<Grant> {
    let mut lines = source.lines();
    let tenant: Name = argument(lines.next()?, "tenant")?.parse().ok()?;
    let (mut operations, mut keys, mut all, mut holder) = (Vec::new(), Vec::new(), false, None);
    let mut policies = Vec::new();
    for line in lines {
        if let Some(expires) = parse_expiry(line) {
            let keys = if all { GrantedKeys::All } else { GrantedKeys::These(keys) };
            return Some(Grant { tenant, keys, operations, policies, expires, holder });
        }
        if let Some(operation) = argument(line, "operation") {
            operations.push(operation.parse().ok()?);
        } else if let Some(key) = argument(line, "key") {
            keys.push(key.parse::<KeyId>().ok()?);
        } else if line == "all_keys(true);" {
            all = true;
        } else if let Some(name) = argument(line, "holder") {
            holder = Some(name.parse().ok()?);
        } else if let Some(names) = parse_policies(line) {
            policies = names;
        } else {
            return None;
        }
    }
    None
}

fn parse_limits(source: &str) -> Option<TokenLimits> {
    let mut limits = TokenLimits::default();
    for line in source.lines() {
        if let Some(expires) = parse_expiry(line) {
            limits.expires = Some(expires);
            continue;
        }
        if let Some(policies) = parse_policies(line) {
            limits.policies = Some(policies);
            continue;
        }
        let queries: Vec<_> = line
            .strip_prefix("check if ")?
            .strip_suffix(';')?
            .split(" or ")
            .map(|query| format!("{query};"))
            .collect();
        let arguments = |name| queries.iter().map(|query| argument(query, name)).collect::<Option<Vec<_>>>();
        if let Some(operations) = arguments("request_operation") {
            limits.operations = Some(operations.into_iter().map(str::parse).collect::<Result<_, _>>().ok()?);
        } else {
            let keys = arguments("request_key")?;
            limits.keys = Some(keys.into_iter().map(str::parse).collect::<Result<_, _>>().ok()?);
        }
    }
    Some(limits)
}

fn parse_expiry(line: &str) -> Option<Timestamp> {
    let date = line.strip_prefix("check if time($now), $now <= ")?.strip_suffix("Z;")?;
    format!("{date}.000Z").parse().ok()
}

/// The contents of a token's blocks, which are the signed bytes: field 1 of its fields 2 and 3
/// (`schema.proto` of Biscuit).
fn payloads(token: &[u8]) -> Option<Vec<&[u8]>> {
    let blocks = fields(token)?.into_iter().filter(|(number, _)| matches!(number, 2 | 3));
    blocks
        .map(|(_, block)| fields(block)?.into_iter().find(|(number, _)| *number == 1).map(|(_, bytes)| bytes))
        .collect()
}

/// A message's byte fields, with their field numbers; integer fields are skipped.
fn fields(mut message: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        match tag & 7 {
            0 => drop(varint(&mut message)?),
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                found.push((tag >> 3, bytes));
                message = rest;
            }
            _ => return None,
        }
    }
    Some(found)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_to_the_second() {
        let time = Timestamp::from_unix_millis(951_782_400_999).unwrap();
        assert_eq!(date(time), "2000-02-29T00:00:00Z");
    }
}
