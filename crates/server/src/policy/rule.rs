//! What a statement of a policy permits at the paths of its pattern.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::endpoints::{Demand, Endpoint};
use super::syntax::{Field, PathStatement, PolicyError, Result, read};
use super::{flag_of, seconds_of};

/// What a request does at a path, in Vault's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capability {
    Create,
    Delete,
    List,
    Patch,
    Read,
    Scan,
    Sudo,
    Update,
}

impl Capability {
    /// All of them, in the order of their names.
    pub(crate) const ALL: [Self; 8] = [
        Self::Create,
        Self::Delete,
        Self::List,
        Self::Patch,
        Self::Read,
        Self::Scan,
        Self::Sudo,
        Self::Update,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Read => "read",
            Self::Scan => "scan",
            Self::Sudo => "sudo",
            Self::Update => "update",
        }
    }
}

/// A set of capabilities, or an explicit denial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CapabilitySet(u16);

impl CapabilitySet {
    pub(super) const DENY: Self = Self(1 << 15);

    pub(crate) fn contains(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u16 != 0
    }

    pub(super) fn denies(self) -> bool {
        self == Self::DENY
    }

    fn add(&mut self, capability: Capability) {
        self.0 |= 1 << capability as u16;
    }

    fn unite(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// What is in both.
    pub(crate) fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// In Vault's words: `deny` if there are none.
    pub(crate) fn words(self) -> Vec<&'static str> {
        let words = Capability::ALL.into_iter().filter(|one| self.contains(*one)).map(Capability::as_str);
        let words: Vec<_> = words.collect();
        if words.is_empty() { vec!["deny"] } else { words }
    }
}

/// The values of each parameter, by its name in lower case. No values stand for all.
type Parameters = BTreeMap<String, Vec<Value>>;

/// What is permitted at the paths of a pattern.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Permissions {
    pub(crate) capabilities: CapabilitySet,
    allowed: Parameters,
    denied: Parameters,
    required: Vec<String>,
    min_wrapping_seconds: Option<u64>,
    max_wrapping_seconds: Option<u64>,
}

impl Permissions {
    /// Adds what another statement says of the same pattern. A denial takes precedence.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.capabilities.denies() {
            return;
        }
        if other.capabilities.denies() {
            *self = Self { capabilities: CapabilitySet::DENY, ..Self::default() };
            return;
        }
        self.capabilities.unite(other.capabilities);
        let less = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        self.min_wrapping_seconds = less(self.min_wrapping_seconds, other.min_wrapping_seconds);
        self.max_wrapping_seconds = less(self.max_wrapping_seconds, other.max_wrapping_seconds);
        merge_parameters(&mut self.allowed, &other.allowed);
        merge_parameters(&mut self.denied, &other.denied);
        for name in &other.required {
            if !self.required.contains(name) {
                self.required.push(name.clone());
            }
        }
    }

    /// Whether an answer may be wrapped for so many seconds; none is an answer that is not wrapped.
    pub(crate) fn permits_wrapping(&self, seconds: Option<u64>) -> bool {
        let (min, max) = (self.min_wrapping_seconds, self.max_wrapping_seconds);
        min.is_none_or(|min| seconds.is_some_and(|seconds| seconds >= min))
            && max.is_none_or(|max| seconds.is_some_and(|seconds| seconds <= max))
            && min.zip(max).is_none_or(|(min, max)| min <= max)
    }

    /// Whether parameters or the time of wrapped answers matter.
    pub(crate) fn has_conditions(&self) -> bool {
        self.is_about_parameters() || self.min_wrapping_seconds.or(self.max_wrapping_seconds).is_some()
    }

    /// Whether anything is said about parameters.
    pub(crate) fn is_about_parameters(&self) -> bool {
        !(self.allowed.is_empty() && self.denied.is_empty() && self.required.is_empty())
    }

    /// Whether the value of a parameter matters, and not only that it is there.
    pub(crate) fn compares(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        [&self.allowed, &self.denied]
            .iter()
            .any(|rules| rules.get(&name).is_some_and(|list| !list.is_empty()))
    }

    /// Whether a request may have these parameters.
    pub(crate) fn permits_parameters(&self, parameters: &Map<String, Value>) -> bool {
        if !self.required.iter().all(|name| parameters.contains_key(name)) {
            return false;
        }
        if parameters.is_empty() {
            return true;
        }
        if self.denied.contains_key("*") {
            return false;
        }
        let denies = |(name, value): (&String, &Value)| {
            self.denied.get(&name.to_lowercase()).is_some_and(|values| is_denied(value, values))
        };
        if parameters.iter().any(denies) {
            return false;
        }
        let others = self.allowed.is_empty() || self.allowed.contains_key("*");
        // `*` alone permits all, whatever values stand beside it.
        if others && self.allowed.len() <= 1 {
            return true;
        }
        let allows = |(name, value): (&String, &Value)| {
            self.allowed.get(&name.to_lowercase()).map_or(others, |values| is_listed(value, values))
        };
        parameters.iter().all(allows)
    }
}

fn merge_parameters(all: &mut Parameters, more: &Parameters) {
    for (name, values) in more {
        match all.get_mut(name) {
            // No values stand for all.
            Some(known) if known.is_empty() || values.is_empty() => known.clear(),
            Some(known) => known.extend(values.iter().cloned()),
            None => drop(all.insert(name.clone(), values.clone())),
        }
    }
}

/// Whether a value is one of the list, or the list is empty. A `*` at the begin or the end of a
/// text stands for any text.
fn is_listed(value: &Value, list: &[Value]) -> bool {
    let matches = |listed: &Value| match (listed, value) {
        (Value::String(pattern), Value::String(text)) => matches_glob(pattern, text),
        _ => listed == value,
    };
    list.is_empty() || list.iter().any(matches)
}

/// Whether a list denies a value. Handlers take `"true"` and 1 for `true`, 86400 for `"24h"`, and
/// some a list of texts, or a text with commas, for several: what is denied in one of these forms
/// is denied in all. OpenBao compares only values of one type.
fn is_denied(value: &Value, denied: &[Value]) -> bool {
    let number = number_of(value);
    if is_listed(value, denied) || (number.is_some() && denied.iter().any(|one| number_of(one) == number)) {
        return true;
    }
    match value {
        Value::Array(values) => values.iter().any(|one| is_denied(one, denied)),
        Value::Bool(_) | Value::Number(_) => is_listed(&Value::from(value.to_string()), denied),
        Value::String(text) if text.contains(',') => {
            text.split(',').any(|one| is_denied(&Value::from(one.trim()), denied))
        }
        _ => false,
    }
}

/// The number for which a handler may take a value: 0 or 1 for a truth value, seconds for a time.
fn number_of(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(flag) => Some((*flag).into()),
        Value::Number(number) => number.as_i64(),
        Value::String(text) => {
            let seconds = || seconds_of(text).and_then(|seconds| seconds.try_into().ok());
            flag_of(text).map(i64::from).or_else(|| text.parse().ok()).or_else(seconds)
        }
        _ => None,
    }
}

fn matches_glob(pattern: &str, text: &str) -> bool {
    // As in Vault: a single `*` is itself.
    let is_glob = pattern.len() > 1;
    let (before, after) = (is_glob && pattern.starts_with('*'), is_glob && pattern.ends_with('*'));
    let inner = &pattern[usize::from(before)..pattern.len() - usize::from(after)];
    match (before, after) {
        (false, false) => text == inner,
        (true, true) => text.contains(inner),
        (true, false) => text.ends_with(inner),
        (false, true) => text.starts_with(inner),
    }
}

/// A statement of a policy.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    /// As Vault counts it: without the slash at its begin.
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) permissions: Permissions,
}

/// The rules of a policy's text.
///
/// # Errors
/// The text is no policy, or says what bulla cannot do.
pub(crate) fn read_rules(text: &str) -> Result<Vec<Rule>> {
    let rules: Vec<_> = read(text)?.into_iter().map(rule).collect::<Result<_>>()?;
    if rules.is_empty() {
        return Err(PolicyError::new(1, "the policy has no statement: write `path \"PATH\" { ... }`"));
    }
    Ok(rules)
}

fn rule(statement: PathStatement) -> Result<Rule> {
    let PathStatement { path, line, fields } = statement;
    let path = path.strip_prefix('/').unwrap_or(&path).to_owned();
    let wrong = |message: String| Err(PolicyError::new(line, message));
    if path.contains("+*") {
        return wrong(format!(
            "{path:?} has `+*`: put the `*` at the end, after a slash or a part of a name"
        ));
    }
    if path.contains("{{") {
        return wrong(format!("{path:?} has `{{{{`: bulla has no entities, whose names could stand there"));
    }
    let mut permissions = Permissions::default();
    let mut names = std::collections::HashSet::new();
    for field in &fields {
        if !names.insert(&field.name) {
            return Err(PolicyError::new(field.line, format!("`{}` is there twice", field.name)));
        }
        apply(&mut permissions, field)?;
    }
    if permissions
        .min_wrapping_seconds
        .zip(permissions.max_wrapping_seconds)
        .is_some_and(|(min, max)| max < min)
    {
        return wrong("`max_wrapping_ttl` is less than `min_wrapping_ttl`".to_owned());
    }
    let rule = Rule { path, line, permissions };
    rule.check()?;
    Ok(rule)
}

impl Rule {
    /// The path or pattern.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The mount beside `transit/` at which the rule permits something, and the line.
    pub(crate) fn mount(&self) -> Option<(&str, usize)> {
        let (mount, _) = self.path.split_once('/')?;
        let is_other = !["+", "auth", "sys", "transit"].contains(&mount);
        (is_other && !self.permissions.capabilities.denies()).then_some((mount, self.line))
    }

    /// # Errors
    /// The rule permits what nothing of bulla does.
    fn check(&self) -> Result<()> {
        let Self { path, line, permissions } = self;
        let wrong = |message: String| Err(PolicyError::new(*line, message));
        // What is denied is denied here as well: also what does not exist.
        if permissions.capabilities.denies() {
            return Ok(());
        }
        if permissions.capabilities == CapabilitySet::default() {
            return wrong(format!("{path:?} has no `capabilities`: name some, or `deny`"));
        }
        let mut endpoints = Endpoint::ALL.iter().filter(|endpoint| endpoint.may_be_at(path)).peekable();
        if endpoints.peek().is_none() {
            return wrong(format!(
                "bulla has nothing at {path:?} that a token may do: remove this statement"
            ));
        }
        let mut taken = Vec::new();
        for Demand { capability, .. } in endpoints.flat_map(|endpoint| endpoint.demands) {
            if permissions.capabilities.contains(*capability) {
                return Ok(());
            }
            if !taken.contains(&capability.as_str()) {
                taken.push(capability.as_str());
            }
        }
        let taken = taken.join(", ");
        wrong(format!("{path:?} permits nothing: what is there takes the capabilities {taken}"))
    }
}

fn apply(permissions: &mut Permissions, field: &Field) -> Result<()> {
    let wrong = |message: String| Err(PolicyError::new(field.line, message));
    match field.name.as_str() {
        "capabilities" => permissions.capabilities.unite(capabilities(field)?),
        "policy" => {
            let message = "`policy` is Vault's old form: write `capabilities = [...]`";
            return wrong(message.to_owned());
        }
        "comment" if field.value.is_string() => {}
        "allowed_parameters" => permissions.allowed = parameters(field)?,
        "denied_parameters" => permissions.denied = parameters(field)?,
        "required_parameters" => {
            permissions.required = texts(field)?.into_iter().map(str::to_lowercase).collect();
        }
        "min_wrapping_ttl" => permissions.min_wrapping_seconds = wrapping_seconds(field)?,
        "max_wrapping_ttl" => permissions.max_wrapping_seconds = wrapping_seconds(field)?,
        name @ ("control_group"
        | "mfa_methods"
        | "pagination_limit"
        | "expiration"
        | "list_scan_response_keys_filter_path"
        | "response_keys_filter_path"
        | "subscribe_event_types") => {
            return wrong(format!(
                "bulla cannot do what `{name}` asks for: remove it only if you need it not"
            ));
        }
        name => return wrong(format!("`{name}` is unknown here")),
    }
    Ok(())
}

fn texts(field: &Field) -> Result<Vec<&str>> {
    let wrong = || PolicyError::new(field.line, format!("`{}` is a list of texts", field.name));
    let list = field.value.as_array().ok_or_else(wrong)?;
    list.iter().map(|one| one.as_str().ok_or_else(wrong)).collect()
}

fn capabilities(field: &Field) -> Result<CapabilitySet> {
    let (mut set, mut denies) = (CapabilitySet::default(), false);
    for name in texts(field)? {
        match Capability::ALL.into_iter().find(|capability| capability.as_str() == name) {
            Some(capability) => set.add(capability),
            None if name == "deny" => denies = true,
            None => {
                let known = Capability::ALL.map(Capability::as_str).join(", ");
                let message = format!("the capability {name:?} is unknown; known are: {known}, deny");
                return Err(PolicyError::new(field.line, message));
            }
        }
    }
    Ok(if denies { CapabilitySet::DENY } else { set })
}

fn parameters(field: &Field) -> Result<Parameters> {
    let wrong = |message: &str| PolicyError::new(field.line, format!("`{}` {message}", field.name));
    let object =
        field.value.as_object().ok_or_else(|| wrong("is an object: each name has a list of values"))?;
    let parameter = |(name, values): (&String, &Value)| {
        let values = values.as_array().ok_or_else(|| wrong("has a list of values for each name"))?;
        // OpenBao never finds a number of a request equal to one of a policy.
        if !values.iter().all(|value| value.is_string() || value.is_boolean()) {
            return Err(wrong("has values that are texts, `true` or `false`"));
        }
        Ok((name.to_lowercase(), values.clone()))
    };
    object.iter().map(parameter).collect()
}

fn wrapping_seconds(field: &Field) -> Result<Option<u64>> {
    let seconds = match &field.value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => seconds_of(text),
        _ => None,
    };
    let wrong = || PolicyError::new(field.line, format!("`{}` is a time, such as \"90s\" or 90", field.name));
    Ok(Some(seconds.ok_or_else(wrong)?).filter(|seconds| *seconds > 0))
}
