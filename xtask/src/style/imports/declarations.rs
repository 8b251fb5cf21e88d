//! The declarations and names in one module's tokens, without code that is compiled only for tests.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// A path, its segments in order.
pub(super) type Path = Vec<String>;

/// One module: a file, or the content of `mod name { }`.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    pub(super) modules: Vec<Submodule>,
    /// Names of functions, types, traits, constants and macros.
    pub(super) items: BTreeSet<String>,
    /// Types and traits that are `pub`, with their lines.
    pub(super) public_types: Vec<(String, usize)>,
    /// The macros among the items.
    pub(super) macros: BTreeSet<String>,
    /// Macros that `#[macro_export]` puts at the crate's root.
    pub(super) exported: BTreeSet<String>,
    pub(super) uses: Vec<Use>,
    /// Paths of two segments or more in code, with their lines.
    pub(super) paths: Vec<(Path, usize)>,
    /// Every word, with its first line: the names that a glob may have imported.
    pub(super) words: BTreeMap<String, usize>,
    /// Macros that are called by one word.
    pub(super) calls: BTreeMap<String, usize>,
}

/// `mod name;` or `mod name { }`.
#[derive(Debug)]
pub(super) struct Submodule {
    pub(super) name: String,
    pub(super) body: Option<Declarations>,
}

/// One leaf of a `use`.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) path: Path,
    pub(super) as_name: Imported,
    pub(super) line: usize,
}

/// The name under which a `use` imports something.
#[derive(Debug)]
pub(super) enum Imported {
    Named(String),
    Unnamed,
    Glob,
}

/// The context of tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Module,
    /// Inside an item of a module.
    Inside,
    /// A macro's definition. In it, `self` and `super` are those of its callers.
    Macro,
}

impl Level {
    /// The level of the groups in it.
    fn inside(self) -> Self {
        if self == Level::Macro { Level::Macro } else { Level::Inside }
    }

    /// Whether the target of the path is known.
    fn knows(self, path: &[String]) -> bool {
        self != Level::Macro || !path.first().is_some_and(|first| first == "self" || first == "super")
    }
}

impl Declarations {
    pub(super) fn read(tokens: TokenStream) -> Self {
        let mut read = Self::default();
        read.walk(tokens, Level::Module);
        read
    }

    fn walk(&mut self, tokens: TokenStream, level: Level) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let (mut at, mut exported) = (0, false);
        while at < tokens.len() {
            if let Some((attribute, inner, after)) = attribute(&tokens, at) {
                if is_for_tests(&attribute) {
                    if inner {
                        return;
                    }
                    at = after_item(&tokens, after);
                    continue;
                }
                exported |= words(&attribute).first().is_some_and(|word| word == "macro_export");
                self.walk(attribute.stream(), level.inside());
                at = after;
                continue;
            }
            at = match &tokens[at] {
                TokenTree::Group(group) => {
                    self.walk(group.stream(), level.inside());
                    at + 1
                }
                TokenTree::Ident(_) => self.word(&tokens, at, level, &mut exported),
                _ => at + 1,
            };
        }
    }

    /// Takes the word at `at`, and the tokens that belong to it. Returns the position of the next
    /// token.
    fn word(&mut self, tokens: &[TokenTree], at: usize, level: Level, exported: &mut bool) -> usize {
        let rest = &tokens[at + 1..];
        let (word, line) = (ident(&tokens[at]).unwrap_or_default(), tokens[at].span().start().line);
        match (word.as_str(), rest) {
            ("use", [first, ..]) if !is_punct(first, '<') => {
                let end = rest.iter().position(|t| is_punct(t, ';')).unwrap_or(rest.len());
                let before = self.uses.len();
                self.leaves(&rest[..end], &Vec::new(), line);
                let known = self.uses.split_off(before).into_iter().filter(|one| level.knows(&one.path));
                self.uses.extend(known);
                return at + 1 + end;
            }
            ("mod", [name, TokenTree::Group(body), ..]) if level == Level::Module => {
                let body = Some(Self::read(body.stream()));
                self.modules.extend(ident(name).map(|name| Submodule { name, body }));
                return at + 3;
            }
            ("mod", [name, ..]) if level == Level::Module => {
                self.modules.extend(ident(name).map(|name| Submodule { name, body: None }));
                return at + 2;
            }
            ("macro_rules", [_, name, TokenTree::Group(body), ..]) => {
                let name = ident(name).unwrap_or_default();
                if std::mem::take(exported) {
                    self.exported.insert(name.clone());
                }
                self.macros.insert(name.clone());
                self.items.insert(name);
                self.walk(body.stream(), Level::Macro);
                return at + 4;
            }
            ("fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static", _)
                if level == Level::Module =>
            {
                let name = rest.iter().map_while(ident).find(|word| word != "mut");
                let is_type = !matches!(word.as_str(), "fn" | "const" | "static");
                if is_type && at > 0 && ident(&tokens[at - 1]).is_some_and(|before| before == "pub") {
                    self.public_types.extend(name.clone().map(|name| (name, line)));
                }
                self.items.extend(name.filter(|name| name != "fn"));
            }
            _ => {}
        }
        self.named(tokens, at, level, word, line)
    }

    /// A word of code: a path, a macro's name, or a word.
    fn named(&mut self, tokens: &[TokenTree], at: usize, level: Level, word: String, line: usize) -> usize {
        let goes_on = at > 0 && (is_punct(&tokens[at - 1], ':') && at > 1 && is_punct(&tokens[at - 2], ':'));
        let is_parameter = at > 0 && is_punct(&tokens[at - 1], '$') && word != "crate";
        let mut path = vec![word];
        let mut end = at + 1;
        while let [first, second, next, ..] = &tokens[end..]
            && is_punct(first, ':')
            && is_punct(second, ':')
            && let Some(next) = ident(next)
        {
            path.push(next);
            end += 3;
        }
        self.words.entry(path[0].clone()).or_insert(line);
        if goes_on || is_parameter || !level.knows(&path) {
            return end;
        }
        if path.len() > 1 {
            self.paths.push((path, line));
        } else if let [mark, TokenTree::Group(_), ..] = &tokens[end..]
            && is_punct(mark, '!')
        {
            self.calls.entry(path.remove(0)).or_insert(line);
        }
        end
    }

    /// The leaves between `use` and `;`.
    fn leaves(&mut self, tree: &[TokenTree], before: &Path, line: usize) {
        let mut path = before.clone();
        let mut tokens = tree.iter().peekable();
        if tokens.peek().is_some_and(|token| is_punct(token, ':')) {
            return; // The path of another crate.
        }
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => {
                    let tokens: Vec<_> = group.stream().into_iter().collect();
                    for leaf in tokens.split(|token| is_punct(token, ',')).filter(|leaf| !leaf.is_empty()) {
                        self.leaves(leaf, &path, leaf[0].span().start().line);
                    }
                    return;
                }
                token if is_punct(token, '*') => {
                    self.uses.push(Use { path, as_name: Imported::Glob, line });
                    return;
                }
                TokenTree::Ident(word) if word == "as" => {
                    let as_name = match tokens.next().and_then(ident) {
                        Some(name) if name != "_" => Imported::Named(name),
                        _ => Imported::Unnamed,
                    };
                    return self.uses.push(Use { path: without_self(path), as_name, line });
                }
                token => path.extend(ident(token)),
            }
        }
        let path = without_self(path);
        if let Some(last) = path.last().cloned() {
            self.uses.push(Use { path, as_name: Imported::Named(last), line });
        }
    }
}

/// `a::{self}` is `a`.
fn without_self(mut path: Path) -> Path {
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    path
}

fn ident(token: &TokenTree) -> Option<String> {
    let TokenTree::Ident(ident) = token else { return None };
    Some(ident.to_string().trim_start_matches("r#").to_owned())
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// The attribute at `at`, whether it is an inner attribute (`#!`), and the position of the next
/// token.
fn attribute(tokens: &[TokenTree], at: usize) -> Option<(Group, bool, usize)> {
    let inner = usize::from(tokens.get(at + 1).is_some_and(|token| is_punct(token, '!')));
    match (&tokens[at], tokens.get(at + 1 + inner)) {
        (mark, Some(TokenTree::Group(group)))
            if is_punct(mark, '#') && group.delimiter() == Delimiter::Bracket =>
        {
            Some((group.clone(), inner == 1, at + 2 + inner))
        }
        _ => None,
    }
}

fn words(group: &Group) -> Vec<String> {
    group.stream().into_iter().filter_map(|token| ident(&token)).collect()
}

/// Whether it is `#[test]`, or a `#[cfg]` that is true only in tests.
fn is_for_tests(attribute: &Group) -> bool {
    let tokens: Vec<_> = attribute.stream().into_iter().collect();
    match &tokens[..] {
        [only] => ident(only).is_some_and(|word| word == "test"),
        [cfg, TokenTree::Group(predicate)] if ident(cfg).is_some_and(|word| word == "cfg") => {
            without_tests(&predicate.stream().into_iter().collect::<Vec<_>>()) == Some(false)
        }
        _ => false,
    }
}

/// The value of a `cfg` predicate if `test` is not set; `None` if it depends on something else.
fn without_tests(predicate: &[TokenTree]) -> Option<bool> {
    let name = predicate.first().and_then(ident)?;
    let Some(TokenTree::Group(group)) = predicate.get(1) else {
        return (name == "test" && predicate.len() == 1).then_some(false);
    };
    let inner: Vec<_> = group.stream().into_iter().collect();
    let values: Vec<_> = inner
        .split(|token| is_punct(token, ','))
        .filter(|part| !part.is_empty())
        .map(without_tests)
        .collect();
    match name.as_str() {
        "not" => values.first().copied().flatten().map(|value| !value),
        "all" if values.contains(&Some(false)) => Some(false),
        "any" if values.iter().all(|value| *value == Some(false)) => Some(false),
        _ => None,
    }
}

/// The end of the item, statement, field or arm that begins at `at`.
fn after_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while let Some((_, _, after)) = attribute(tokens, at) {
        at = after;
    }
    let head: Vec<_> = tokens[at..].iter().filter_map(ident).take(4).collect();
    let is = |word: &str| head.iter().any(|other| other == word);
    let to_semicolon = ["use", "static", "type", "let"].into_iter().any(is) || is("const") && !is("fn");
    let is_item = ["fn", "struct", "enum", "union", "trait", "impl", "mod", "macro_rules", "extern"]
        .into_iter()
        .any(is);
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !to_semicolon,
        token => is_punct(token, ';') || is_punct(token, ',') && !to_semicolon && !is_item,
    };
    tokens[at..].iter().position(ends).map_or(tokens.len(), |end| at + end + 1)
}
