//! What the site contains: the pages that `docs/README.md` lists, and all decisions.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, ensure};

/// The start page, whose lists are the contents.
pub(super) const START: &str = "docs/README.md";
/// Each of these must be in the contents, so that no page is forgotten.
const LISTED: [&str; 3] = ["docs", "docs/tutorials", "spec"];
/// Its index is in the contents, and its pages are in the index.
const DECISIONS: &str = "docs/decisions";

/// A part of the contents: a heading and its pages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) pages: Vec<Entry>,
}

/// A page by its title and its source, relative to the root: `docs/audit.md`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) title: String,
    pub(super) source: String,
}

/// Everything that the site contains.
pub(super) struct Contents {
    pub(super) sections: Vec<Section>,
    /// Where each source goes, relative to the site: `docs/audit.html`.
    places: BTreeMap<String, String>,
}

impl Contents {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(START)).with_context(|| format!("cannot read {START}"))?;
        let sections = sections(&text)?;
        let listed = sections.iter().flat_map(|section| &section.pages).map(|entry| entry.source.clone());
        let mut sources: Vec<_> = [START.to_owned()].into_iter().chain(listed).collect();
        for folder in LISTED {
            for source in documents(root, folder)? {
                ensure!(sources.contains(&source), "{START} does not list {source}");
            }
        }
        let decisions = documents(root, DECISIONS)?;
        sources.extend(decisions);
        let mut places = BTreeMap::new();
        for source in sources {
            ensure!(root.join(&source).is_file(), "{START} lists {source}, and there is no such file");
            let place = place(&source);
            places.insert(source, place);
        }
        Ok(Self { sections, places })
    }

    /// The sources with their places.
    pub(super) fn places(&self) -> impl Iterator<Item = (&String, &String)> {
        self.places.iter()
    }

    /// Where the page of this source is; none if the site does not contain it.
    pub(super) fn place(&self, source: &str) -> Option<&str> {
        self.places.get(source).map(String::as_str)
    }
}

/// The Markdown files of a folder, without its folders.
fn documents(root: &Path, folder: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(folder)).with_context(|| format!("cannot read {folder}"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            found.push(format!("{folder}/{name}"));
        }
    }
    found.sort();
    Ok(found)
}

/// The headings of the second level, and the links that begin the items of their lists.
fn sections(text: &str) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            sections.push(Section { title: title.to_owned(), pages: Vec::new() });
        } else if let Some(rest) = line.strip_prefix("- [") {
            let (title, rest) = rest.split_once("](").with_context(|| line.to_owned())?;
            let (link, _) = rest.split_once(')').with_context(|| line.to_owned())?;
            let section = sections.last_mut().with_context(|| format!("no heading before {line}"))?;
            section.pages.push(Entry { title: title.to_owned(), source: resolve_link(START, link) });
        }
    }
    sections.retain(|section| !section.pages.is_empty());
    ensure!(!sections.is_empty(), "{START} lists no page");
    Ok(sections)
}

/// The path that a link in `source` means, relative to the root.
pub(super) fn resolve_link(source: &str, link: &str) -> String {
    let mut parts: Vec<&str> = source.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The start page is the index of the site, and a folder's `README.md` is the index of the folder.
fn place(source: &str) -> String {
    if source == START {
        return "index.html".to_owned();
    }
    match source.strip_suffix("README.md") {
        Some("") => "readme.html".to_owned(),
        Some(folder) => format!("{folder}index.html"),
        None => format!("{}.html", source.trim_end_matches(".md")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_the_lists_below_headings() {
        let text = "# Title\n\n## Nothing\n\nText.\n\n## Use\n\n- [Audit](audit.md): binaries.\n- [Security](../SECURITY.md)\n";
        let entry = |title: &str, source: &str| Entry { title: title.into(), source: source.into() };
        let pages = vec![entry("Audit", "docs/audit.md"), entry("Security", "SECURITY.md")];
        assert_eq!(sections(text).unwrap(), [Section { title: "Use".into(), pages }]);
        assert!(sections("# Title\n").is_err());
        assert!(sections("- [Audit](audit.md)\n").is_err());
    }

    #[test]
    fn every_source_has_a_place() {
        assert_eq!(place("docs/README.md"), "index.html");
        assert_eq!(place("README.md"), "readme.html");
        assert_eq!(place("docs/decisions/README.md"), "docs/decisions/index.html");
        assert_eq!(place("docs/audit.md"), "docs/audit.html");
    }

    #[test]
    fn links_are_relative_to_their_page() {
        assert_eq!(resolve_link("docs/audit.md", "../spec/tokens.md"), "spec/tokens.md");
        assert_eq!(resolve_link("README.md", "docs/./decisions/"), "docs/decisions");
    }
}
