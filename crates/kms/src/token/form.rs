//! The only accepted form of tokens.
//!
//! A Biscuit may contain any Datalog, and the library checks its limits only between rounds: one
//! rule that joins a few hundred facts four times would fill the memory within the first round. So
//! a token has only the statements that [`super::datalog`] writes. They are parsed from the printed
//! source, then written and built again, and compared: names in a token may be any text, and could
//! make one block print like another.

use biscuit_auth::builder::{BiscuitBuilder, BlockBuilder};
use biscuit_auth::{KeyPair, UnverifiedBiscuit};

use super::datalog;
use super::grant::{Grant, GrantedKeys, TokenLimits};
use crate::id::{KeyId, Name};
use crate::time::Timestamp;

/// What the blocks of a token contain. The form of the token is not checked again: [`is_known`] did
/// that when the token was read.
pub(super) fn read(token: &UnverifiedBiscuit) -> Option<(Grant, Vec<TokenLimits>)> {
    let source = |index| token.print_block_source(index).ok();
    let limits = (1..token.block_count()).map(|index| limits(&source(index)?)).collect::<Option<_>>()?;
    Some((grant(&source(0)?)?, limits))
}

/// Whether the token consists of a grant and limits, in exactly the bytes that we would write.
pub(super) fn is_known(token: &UnverifiedBiscuit) -> bool {
    let sources: Option<Vec<_>> =
        (0..token.block_count()).map(|index| token.print_block_source(index).ok()).collect();
    let Some(sources) = sources else { return false };
    let is_written = |(index, source): (usize, &String)| match index {
        0 => grant(source).is_some_and(|grant| datalog::grant(&grant) == *source),
        _ => limits(source)
            .and_then(|limits| datalog::limits(&limits).ok())
            .is_some_and(|code| code == *source),
    };
    sources.iter().enumerate().all(is_written) && is_built_of(token, &sources).unwrap_or(false)
}

fn is_built_of(token: &UnverifiedBiscuit, sources: &[String]) -> Option<bool> {
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

fn grant(source: &str) -> Option<Grant> {
    let mut lines = source.lines();
    let tenant: Name = argument(lines.next()?, "tenant")?.parse().ok()?;
    let (mut operations, mut keys, mut all) = (Vec::new(), Vec::new(), false);
    for line in lines {
        if let Some(expires) = expires(line) {
            let keys = if all { GrantedKeys::All } else { GrantedKeys::These(keys) };
            return Some(Grant { tenant, keys, operations, expires });
        }
        if let Some(operation) = argument(line, "operation") {
            operations.push(operation.parse().ok()?);
        } else if let Some(key) = argument(line, "key") {
            keys.push(key.parse::<KeyId>().ok()?);
        } else if line == "all_keys(true);" {
            all = true;
        } else {
            return None;
        }
    }
    None
}

fn limits(source: &str) -> Option<TokenLimits> {
    let mut limits = TokenLimits::default();
    for line in source.lines() {
        if let Some(expires) = expires(line) {
            limits.expires = Some(expires);
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

fn expires(line: &str) -> Option<Timestamp> {
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
