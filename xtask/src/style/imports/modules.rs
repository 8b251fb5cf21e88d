//! The modules of a crate, and the files that define the names of paths.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;

use super::{
    Arrow,
    declarations::{Declarations, Imported, Path, Submodule, Use},
};

/// All modules of one crate. The first is its root.
#[derive(Debug, Default)]
pub(super) struct Crate {
    modules: Vec<Module>,
}

#[derive(Debug)]
struct Module {
    /// The file that contains it.
    file: String,
    parent: Option<usize>,
    names: BTreeMap<String, Vec<Name>>,
    globs: Vec<Path>,
    declarations: Declarations,
}

/// The meaning of a name.
#[derive(Clone, Debug)]
enum Name {
    Here(Target),
    Import(Path),
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// Something that the module defines.
    In(usize),
}

/// The names that are being looked up, so that mutual imports do not recurse forever.
type Asked = BTreeSet<(usize, String)>;

impl Crate {
    /// Reads the crate with the root file `root`. `read` returns the tokens of a file, if it
    /// exists.
    pub(super) fn read(root: &str, read: &dyn Fn(&str) -> Option<TokenStream>) -> Self {
        let mut all = Self::default();
        if let Some(tokens) = read(root) {
            let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
            all.add(root, folder, None, Declarations::read(tokens), read);
        }
        all
    }

    /// Adds a module of `file`. The files of its child modules are in `folder`.
    fn add(
        &mut self,
        file: &str,
        folder: &str,
        parent: Option<usize>,
        mut declarations: Declarations,
        read: &dyn Fn(&str) -> Option<TokenStream>,
    ) -> usize {
        let this = self.modules.len();
        let submodules = std::mem::take(&mut declarations.modules);
        let (names, globs) = names(this, &declarations);
        let exported = declarations.exported.clone();
        self.modules.push(Module { file: file.to_owned(), parent, names, globs, declarations });
        for name in exported {
            self.modules[0].names.entry(name).or_default().push(Name::Here(Target::In(this)));
        }
        for Submodule { name, body } in submodules {
            let below = format!("{folder}/{name}");
            let child = match body {
                Some(body) => Some((file.to_owned(), body)),
                None => [format!("{below}.rs"), format!("{below}/mod.rs")]
                    .into_iter()
                    .find_map(|path| Some((path.clone(), Declarations::read(read(&path)?)))),
            };
            if let Some((path, body)) = child {
                let child = self.add(&path, &below, Some(this), body, read);
                self.modules[this].names.entry(name).or_default().push(Name::Here(Target::Module(child)));
            }
        }
        this
    }

    /// The public types of all modules: the name, the file, the line.
    pub(super) fn public_types(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.modules.iter().flat_map(|module| {
            let types = module.declarations.public_types.iter();
            types.map(|(name, line)| (name.as_str(), module.file.as_str(), *line))
        })
    }

    /// The targets of `path` in `module`. There are none if it leads out of the crate.
    fn targets(&self, module: usize, path: &[String], asked: &mut Asked) -> Vec<Target> {
        let Some((first, mut rest)) = path.split_first() else { return Vec::new() };
        let mut targets = match first.as_str() {
            "crate" => vec![Target::Module(0)],
            "self" => vec![Target::Module(module)],
            "super" => vec![Target::Module(self.modules[module].parent.unwrap_or(0))],
            name => self.look_up(module, name, rest.is_empty(), asked).unwrap_or_default(),
        };
        while let Some((name, after)) = rest.split_first() {
            rest = after;
            let step = |target: &Target| match *target {
                Target::Module(module) if name == "super" => {
                    vec![Target::Module(self.modules[module].parent.unwrap_or(0))]
                }
                Target::Module(module) => self
                    .look_up(module, name, rest.is_empty(), asked)
                    .unwrap_or_else(|| vec![Target::In(module)]),
                item => vec![item],
            };
            targets = targets.iter().flat_map(step).collect();
        }
        targets
    }

    /// The meaning of `name` in `module`: `None` if there is no such name, and no targets if it
    /// belongs to another crate.
    fn look_up(&self, module: usize, name: &str, last: bool, asked: &mut Asked) -> Option<Vec<Target>> {
        if !asked.insert((module, name.to_owned())) {
            return None;
        }
        let found = self.look_up_new(module, name, last, asked);
        asked.remove(&(module, name.to_owned()));
        found
    }

    fn look_up_new(&self, module: usize, name: &str, last: bool, asked: &mut Asked) -> Option<Vec<Target>> {
        let names = self.modules[module].names.get(name).map_or(&[][..], Vec::as_slice);
        // A module and a function may share a name: in the middle of a path it means the module, at
        // the end the function.
        let is_wanted = |name: &&Name| matches!(name, Name::Here(Target::Module(_))) != last;
        let wanted: Vec<_> = names.iter().filter(is_wanted).collect();
        let names = if wanted.is_empty() { names.iter().collect() } else { wanted };
        if names.is_empty() {
            return self.look_up_in_globs(module, name, last, asked);
        }
        let mut targets = Vec::new();
        for name in names {
            match name {
                Name::Here(target) => targets.push(*target),
                Name::Import(path) => targets.extend(self.targets(module, path, asked)),
            }
        }
        Some(targets)
    }

    fn look_up_in_globs(
        &self,
        module: usize,
        name: &str,
        last: bool,
        asked: &mut Asked,
    ) -> Option<Vec<Target>> {
        for glob in &self.modules[module].globs {
            for target in self.targets(module, glob, asked) {
                if let Target::Module(other) = target
                    && let Some(targets) = self.look_up(other, name, last, asked)
                {
                    return Some(targets);
                }
            }
        }
        None
    }

    /// All imports of a module: the name as written, its line, and the modules that define it.
    fn imports(&self, module: usize) -> Vec<(String, usize, Vec<Target>)> {
        let read = &self.modules[module].declarations;
        let mut imports = Vec::new();
        let named = |path: &Path, line: usize| {
            let words = path.iter().filter(|word| !matches!(word.as_str(), "crate" | "self" | "super"));
            let name: Vec<_> = words.map(String::as_str).collect();
            (name.join("::"), line, self.targets(module, path, &mut Asked::new()))
        };
        for one in &read.uses {
            match one.as_name {
                Imported::Glob => imports.extend(self.globbed(module, one)),
                _ => {
                    let (name, line, targets) = named(&one.path, one.line);
                    imports.push((name.rsplit("::").next().unwrap_or_default().to_owned(), line, targets));
                }
            }
        }
        imports.extend(read.paths.iter().map(|(path, line)| named(path, *line)));
        for (name, line) in &read.calls {
            if !self.modules[module].names.contains_key(name) {
                let from = self.textual(module, name).map(Target::In);
                imports.push((format!("{name}!"), *line, from.into_iter().collect()));
            }
        }
        imports
    }

    /// The module's words that a glob imports; the glob as a whole if there are none.
    fn globbed(&self, module: usize, glob: &Use) -> Vec<(String, usize, Vec<Target>)> {
        let mut brought = Vec::new();
        let targets = self.targets(module, &glob.path, &mut Asked::new());
        for target in &targets {
            let Target::Module(other) = *target else { continue };
            for (word, line) in &self.modules[module].declarations.words {
                let own = self.modules[module].names.contains_key(word);
                let found = self.look_up(other, word, true, &mut Asked::new());
                brought.extend(found.filter(|_| !own).map(|targets| (word.clone(), *line, targets)));
            }
        }
        if brought.is_empty() {
            let whole = targets.into_iter().map(|target| match target {
                Target::Module(module) | Target::In(module) => Target::In(module),
            });
            brought.push(("*".to_owned(), glob.line, whole.collect()));
        }
        brought
    }

    /// The module above `module` whose macro `name` is visible in it by textual scope.
    fn textual(&self, module: usize, name: &str) -> Option<usize> {
        let parent = self.modules[module].parent?;
        match self.modules[parent].declarations.macros.contains(name) {
            true => Some(parent),
            false => self.textual(parent, name),
        }
    }
}

/// The names of a module without its submodules, and its globs.
fn names(this: usize, read: &Declarations) -> (BTreeMap<String, Vec<Name>>, Vec<Path>) {
    let mut names: BTreeMap<String, Vec<Name>> = BTreeMap::new();
    for item in &read.items {
        names.entry(item.clone()).or_default().push(Name::Here(Target::In(this)));
    }
    let mut globs = Vec::new();
    for one in &read.uses {
        match &one.as_name {
            Imported::Named(name) => {
                names.entry(name.clone()).or_default().push(Name::Import(one.path.clone()));
            }
            Imported::Glob => globs.push(one.path.clone()),
            Imported::Unnamed => {}
        }
    }
    (names, globs)
}

/// The arrows between the files of a crate.
pub(super) fn arrows(all: &Crate) -> Vec<Arrow> {
    let mut arrows: BTreeMap<(String, String), BTreeMap<String, usize>> = BTreeMap::new();
    for (index, module) in all.modules.iter().enumerate() {
        for (name, line, targets) in all.imports(index) {
            for target in targets {
                let Target::In(other) = target else { continue };
                let to = &all.modules[other].file;
                if *to != module.file {
                    let names = arrows.entry((module.file.clone(), to.clone())).or_default();
                    names.entry(name.clone()).or_insert(line);
                }
            }
        }
    }
    arrows.into_iter().map(|((from, to), names)| Arrow { from, to, names }).collect()
}
