//! One page: Markdown to HTML, with links to other pages of the site, and with anchors as GitHub
//! gives them.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::contents::{Contents, resolve_link};

/// Where sources are that are no pages.
const REPOSITORY: &str = "https://github.com/bulla-dev/bulla/blob/main";

/// A page that is almost done: its frame is missing.
pub(super) struct Rendered {
    pub(super) title: String,
    pub(super) html: String,
    /// The places in it that a link can name.
    pub(super) anchors: BTreeSet<String>,
    /// The links to pages of the site: the source, and the place in it.
    pub(super) links: Vec<(String, String)>,
}

/// Renders the text of `source`.
///
/// # Errors
/// A link leads nowhere, or the page has no title.
pub(super) fn render(root: &Path, contents: &Contents, source: &str, text: &str) -> Result<Rendered> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, options).collect();
    let (title, anchors) = name_headings(&mut events);
    let mut links = Vec::new();
    for event in &mut events {
        if let Event::Start(Tag::Link { dest_url, .. }) = event {
            let resolved = resolve(root, contents, source, dest_url, &mut links);
            *dest_url = resolved.with_context(|| format!("{source}: {dest_url}"))?.into();
        }
    }
    let mut page = String::new();
    html::push_html(&mut page, events.into_iter().flat_map(in_box));
    let title = title.with_context(|| format!("{source} has no title"))?;
    Ok(Rendered { title, html: page, anchors, links })
}

/// Gives each heading its anchor. Returns the first heading's text, and all anchors.
fn name_headings(events: &mut [Event<'_>]) -> (Option<String>, BTreeSet<String>) {
    let (mut first, mut anchors) = (None, BTreeSet::new());
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for start in 0..events.len() {
        if !matches!(events[start], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let inside =
            events[start..].iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let text: String = inside
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        let name = anchor(&text);
        let number = times.entry(name.clone()).or_default();
        let name = if *number == 0 { name } else { format!("{name}-{number}") };
        *number += 1;
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
            *id = Some(CowStr::from(name.clone()));
        }
        anchors.insert(name);
        first.get_or_insert(text);
    }
    (first, anchors)
}

/// The anchor that GitHub gives a heading, so that the same link works in both places.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// What a link of `source` is on the site. A link to a page is added to `links`.
fn resolve(
    root: &Path,
    contents: &Contents,
    source: &str,
    link: &str,
    links: &mut Vec<(String, String)>,
) -> Result<String> {
    if link.contains(':') {
        return Ok(link.to_owned());
    }
    let (path, place) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { source.to_owned() } else { resolve_link(source, path) };
    let index = format!("{target}/README.md");
    let page = [target.as_str(), index.as_str()].into_iter().find(|page| contents.place(page).is_some());
    let (Some(page), Some(from)) = (page, contents.place(source)) else {
        if !root.join(&target).exists() {
            bail!("there is no {target}");
        }
        return Ok(format!("{REPOSITORY}/{target}"));
    };
    links.push((page.to_owned(), place.to_owned()));
    let hash = if place.is_empty() { String::new() } else { format!("#{place}") };
    Ok(match contents.place(page) {
        Some(_) if path.is_empty() => hash,
        Some(to) => format!("{}{to}{hash}", up(from)),
        None => bail!("{page} has no place"),
    })
}

/// The way from a page to the root of the site.
pub(super) fn up(place: &str) -> String {
    "../".repeat(place.matches('/').count())
}

/// A table in a box of its own, which scrolls if the table is wider than the page.
fn in_box(event: Event<'_>) -> Vec<Event<'_>> {
    match event {
        Event::Start(Tag::Table(_)) => vec![Event::Html("<div class=\"wide\">".into()), event],
        Event::End(TagEnd::Table) => vec![event, Event::Html("</div>\n".into())],
        event => vec![event],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github() {
        assert_eq!(anchor("Rust: blake3"), "rust-blake3");
        assert_eq!(anchor("C and C++: libblake3"), "c-and-c-libblake3");
        assert_eq!(anchor("Verdicts on kernels"), "verdicts-on-kernels");
    }

    #[test]
    fn the_same_heading_twice_has_two_anchors() {
        let mut events: Vec<_> = Parser::new("# A `b`\n\n## C\n\n## C\n").collect();
        let (first, anchors) = name_headings(&mut events);
        assert_eq!(first.as_deref(), Some("A b"));
        assert_eq!(anchors, ["a-b", "c", "c-1"].map(str::to_owned).into());
    }

    #[test]
    fn pages_lead_up_to_the_root() {
        assert_eq!(up("index.html"), "");
        assert_eq!(up("docs/decisions/index.html"), "../../");
    }
}
