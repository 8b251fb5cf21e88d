//! The texts of policies: HCL, or JSON. Both give the same statements, with their lines.

use std::collections::HashSet;
use std::fmt;

use hcl_edit::Span;
use hcl_edit::expr::{Expression, Object, ObjectKey};
use hcl_edit::structure::{Attribute, Block, Body, Structure};
use serde_json::Value;

/// The longest text of a policy.
pub(super) const MAX_POLICY_LEN: usize = 256 << 10;

/// How deep brackets may be nested: as deep as in a policy in JSON.
const MAX_NESTING: usize = 6;

/// Why a policy is refused, and at which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyError {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl PolicyError {
    pub(super) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

pub(super) type Result<T> = std::result::Result<T, PolicyError>;

/// `path "PATH" { ... }`.
#[derive(Debug)]
pub(super) struct PathStatement {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) fields: Vec<Field>,
}

/// `NAME = VALUE`.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) value: Value,
}

/// The statements of a policy. A text that begins with `{` is JSON.
///
/// # Errors
/// The text is neither HCL nor JSON, or has something else in it than paths.
pub(super) fn read(text: &str) -> Result<Vec<PathStatement>> {
    if text.len() > MAX_POLICY_LEN {
        return Err(PolicyError::new(1, format!("a policy has at most {MAX_POLICY_LEN} bytes")));
    }
    check_nesting(text)?;
    if text.trim_start().starts_with('{') { read_json(text) } else { read_hcl(text) }
}

/// Refuses texts that take the parser too long. At each bracket it tries several readings, and each
/// of these again at the next bracket: 548 bytes with many open ones took 48 seconds.
fn check_nesting(text: &str) -> Result<()> {
    let (mut depth, mut place) = (0_usize, 0);
    let refused = |place: usize, message: String| {
        let breaks = text[..place].bytes().filter(|byte| *byte == b'\n').count();
        Err(PolicyError::new(1 + breaks, message))
    };
    while let Some(byte) = text.as_bytes().get(place) {
        let rest = &text.as_bytes()[place..];
        match byte {
            b'{' | b'[' | b'(' if depth == MAX_NESTING => {
                return refused(place, format!("brackets are nested more than {MAX_NESTING} deep"));
            }
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            // In these, brackets could count again, or not count.
            b'<' if rest.starts_with(b"<<") => {
                return refused(place, "a text is in quotes: bulla reads no heredoc".to_owned());
            }
            b'"' => match quoted_len(rest) {
                Some(len) => place += len - 1,
                None => return refused(place, "bulla computes nothing: remove `${` and `%{`".to_owned()),
            },
            b'#' => place += len_before(rest, b"\n"),
            b'/' if rest.starts_with(b"//*") => {
                let message = "`//*` is a comment, or a division and a comment: put a space before `*`";
                return refused(place, message.to_owned());
            }
            b'/' if rest.starts_with(b"//") => place += len_before(rest, b"\n"),
            b'/' if rest.starts_with(b"/*") => place += 3 + len_before(&rest[2..], b"*/"),
            _ => {}
        }
        place += 1;
    }
    Ok(())
}

/// How many bytes come before `end`: all, if it is missing.
fn len_before(text: &[u8], end: &[u8]) -> usize {
    text.windows(end.len()).position(|window| window == end).unwrap_or(text.len())
}

/// The length of the text in quotes that is at the beginning, with its quotes. None if an
/// expression is in it.
fn quoted_len(text: &[u8]) -> Option<usize> {
    let mut place = 1;
    while let Some(byte) = text.get(place) {
        match byte {
            b'"' => return Some(place + 1),
            b'$' | b'%' if text.get(place + 1) == Some(&b'{') => return None,
            b'\\' => place += 2,
            _ => place += 1,
        }
    }
    Some(text.len())
}

/// Where values are in the text.
struct Lines {
    /// The places of the line breaks, in the text that is parsed.
    breaks: Vec<usize>,
}

impl Lines {
    fn of(&self, value: &impl Span) -> usize {
        self.at(value.span().map_or(0, |span| span.start))
    }

    fn at(&self, place: usize) -> usize {
        1 + self.breaks.partition_point(|found| *found <= place)
    }

    fn unreadable(&self, error: &hcl_edit::parser::Error) -> PolicyError {
        let line = self.at(error.location().offset());
        PolicyError::new(line, format!("it cannot be read: {}", error.message()))
    }
}

fn read_hcl(text: &str) -> Result<Vec<PathStatement>> {
    // A value begins after the break of the line before it.
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(place, _)| place + 1);
    let lines = Lines { breaks: breaks.collect() };
    let body: Body = hcl_edit::parser::parse_body(text).map_err(|error| lines.unreadable(&error))?;
    let statement = |structure: &Structure| match structure {
        Structure::Block(block) if block.has_ident("path") => path_block(&lines, block),
        Structure::Block(block) => Err(unknown(lines.of(block), block.ident.as_str())),
        Structure::Attribute(attribute) => Err(unknown(lines.of(attribute), attribute.key.as_str())),
    };
    body.iter().map(statement).collect()
}

fn unknown(line: usize, name: &str) -> PolicyError {
    let message = match name {
        "name" => "the settings name the policy: remove `name`".to_owned(),
        _ => format!("`{name}` is unknown here: a policy has statements `path \"PATH\" {{ ... }}`"),
    };
    PolicyError::new(line, message)
}

fn path_block(lines: &Lines, block: &Block) -> Result<PathStatement> {
    let line = lines.of(block);
    let [path] = block.labels.as_slice() else {
        return Err(PolicyError::new(line, "`path` has one path, in quotes"));
    };
    let field = |structure: &Structure| match structure {
        Structure::Attribute(attribute) => attribute_field(lines, attribute),
        // `allowed_parameters { ... }` without `=`.
        Structure::Block(block) if block.labels.is_empty() => {
            let inner = block.body.iter().map(|inner| match inner {
                Structure::Attribute(attribute) => attribute_field(lines, attribute),
                Structure::Block(block) => {
                    Err(PolicyError::new(lines.of(block), "there is a block too many"))
                }
            });
            let object = inner.map(|field| field.map(|field| (field.name, field.value)));
            let value = Value::Object(object.collect::<Result<_>>()?);
            Ok(Field { name: block.ident.as_str().to_owned(), line: lines.of(block), value })
        }
        Structure::Block(block) => Err(PolicyError::new(lines.of(block), "this block has a name too many")),
    };
    let fields = block.body.iter().map(field).collect::<Result<_>>()?;
    Ok(PathStatement { path: path.as_str().to_owned(), line, fields })
}

fn attribute_field(lines: &Lines, attribute: &Attribute) -> Result<Field> {
    let name = attribute.key.as_str().to_owned();
    Ok(Field { name, line: lines.of(attribute), value: value(lines, &attribute.value)? })
}

/// JSON is read as an expression of HCL, which knows the lines of values.
fn read_json(text: &str) -> Result<Vec<PathStatement>> {
    let (text, lines) = on_one_line(text)?;
    let expression = hcl_edit::parser::parse_expr(text.trim()).map_err(|error| lines.unreadable(&error))?;
    let Expression::Object(root) = &expression else {
        return Err(PolicyError::new(1, "the policy is not an object"));
    };
    let mut statements = Vec::new();
    for (name, paths) in entries(&lines, root)? {
        if name != "path" {
            return Err(unknown(lines.of(paths), &name));
        }
        let objects = match paths {
            Expression::Array(list) => list.iter().collect(),
            other => vec![other],
        };
        for paths in objects {
            let Expression::Object(paths) = paths else {
                return Err(PolicyError::new(lines.of(paths), "`path` is an object: its names are paths"));
            };
            for (path, fields) in entries(&lines, paths)? {
                statements.push(json_statement(&lines, path, fields)?);
            }
        }
    }
    Ok(statements)
}

fn json_statement(lines: &Lines, path: String, fields: &Expression) -> Result<PathStatement> {
    let line = lines.of(fields);
    let Expression::Object(fields) = fields else {
        return Err(PolicyError::new(line, format!("the path {path:?} is not followed by an object")));
    };
    let field = |(name, expression): (String, &Expression)| {
        Ok(Field { name, line: lines.of(expression), value: value(lines, expression)? })
    };
    Ok(PathStatement {
        path,
        line,
        fields: entries(lines, fields)?.into_iter().map(field).collect::<Result<_>>()?,
    })
}

/// JSON as HCL reads it: `\/` is a slash, and a line may break anywhere outside of texts.
///
/// # Errors
/// A line breaks in a text.
fn on_one_line(text: &str) -> Result<(String, Lines)> {
    let (mut plain, mut lines) = (String::with_capacity(text.len()), Lines { breaks: Vec::new() });
    let (mut is_in_text, mut characters) = (false, text.chars());
    while let Some(character) = characters.next() {
        match character {
            '\n' if is_in_text => {
                return Err(PolicyError::new(1 + lines.breaks.len(), "a line breaks in a text"));
            }
            '\n' => lines.breaks.push(plain.len()),
            // Before the object, where nothing is read.
            ' ' | '\t' | '\r' if plain.is_empty() => {}
            '\\' => match characters.next() {
                Some('/') => plain.push('/'),
                Some('\n') => {
                    return Err(PolicyError::new(1 + lines.breaks.len(), "a line breaks in a text"));
                }
                next => {
                    plain.push('\\');
                    plain.extend(next);
                }
            },
            _ => {
                is_in_text ^= character == '"';
                plain.push(character);
            }
        }
    }
    Ok((plain, lines))
}

fn entries<'a>(lines: &Lines, object: &'a Object) -> Result<Vec<(String, &'a Expression)>> {
    let mut names = HashSet::new();
    let entry = |(key, entry): (&'a ObjectKey, &'a hcl_edit::expr::ObjectValue)| {
        let expression = entry.expr();
        let name = match key {
            ObjectKey::Ident(name) => name.as_str(),
            ObjectKey::Expression(Expression::String(name)) => name.as_str(),
            ObjectKey::Expression(Expression::Variable(name)) => name.as_str(),
            ObjectKey::Expression(_) => {
                return Err(PolicyError::new(lines.of(expression), "a name is a text in quotes"));
            }
        };
        if !names.insert(name) {
            return Err(PolicyError::new(lines.of(expression), format!("`{name}` is there twice")));
        }
        Ok((name.to_owned(), expression))
    };
    object.iter().map(entry).collect()
}

fn value(lines: &Lines, expression: &Expression) -> Result<Value> {
    Ok(match expression {
        Expression::Null(_) => Value::Null,
        Expression::Bool(bool) => Value::Bool(**bool),
        Expression::String(text) => Value::String(text.as_str().to_owned()),
        Expression::Number(number) => match number.value().as_i64() {
            Some(number) => Value::from(number),
            None => return Err(PolicyError::new(lines.of(expression), "a number is a whole one")),
        },
        Expression::Array(list) => {
            Value::Array(list.iter().map(|one| value(lines, one)).collect::<Result<_>>()?)
        }
        Expression::Object(object) => {
            let entry = |(name, inner)| Ok((name, value(lines, inner)?));
            Value::Object(entries(lines, object)?.into_iter().map(entry).collect::<Result<_>>()?)
        }
        _ => {
            let message =
                "a value is a text, a number, `true`, `false`, a list or an object: bulla computes nothing";
            return Err(PolicyError::new(lines.of(expression), message));
        }
    })
}
