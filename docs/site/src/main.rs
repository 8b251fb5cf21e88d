//! `cargo xtask site`: builds the documents of the repository as one folder of pages, without
//! scripts (decision 0229).
#![forbid(unsafe_code)]

mod contents;
mod render;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use bulla_devtools::Context;
use clap::Parser;

use self::{
    contents::{Contents, START},
    render::{Rendered, render, up},
};

/// The style of all pages, below the root.
const STYLE: &str = "docs/site/page.css";

/// The pictures of the README, at the same place below the site.
const PICTURES: &str = "docs/pictures";

/// Builds the documents as one folder of pages.
#[derive(Parser)]
#[command(
    name = "cargo xtask site",
    bin_name = "cargo xtask site",
    after_help = "Examples:\n  cargo xtask site\n  cargo xtask site --out pages\n\n\
    The site is a folder that needs no server: open its index.html, or copy it to any static host. docs/README.md lists its pages.\n\n\
    Exit status: 0 built, 2 a link leads nowhere, or a page is missing."
)]
struct Args {
    /// The folder to write [default: site in the build folder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Builds the site, and prints its path.
fn run(args: &Args) -> Result<()> {
    let context = Context::find()?;
    let folder = match &args.out {
        Some(folder) => std::path::absolute(folder)?,
        None => context.target.join("site"),
    };
    build(&context.root, &folder)?;
    println!("{}", folder.join("index.html").display());
    Ok(())
}

/// Writes the site to `folder`.
///
/// # Errors
/// A link leads nowhere. Nothing is written then.
fn build(root: &Path, folder: &Path) -> Result<()> {
    let contents = Contents::read(root)?;
    let mut pages = BTreeMap::new();
    for (source, _) in contents.places() {
        let text = fs::read_to_string(root.join(source)).with_context(|| format!("cannot read {source}"))?;
        pages.insert(source.clone(), render(root, &contents, source, &text)?);
    }
    check_links(&pages)?;
    for (source, place) in contents.places() {
        let path = folder.join(place);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(&path, framed(&contents, source, place, &pages[source]))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    fs::copy(root.join(STYLE), folder.join("page.css")).with_context(|| format!("cannot copy {STYLE}"))?;
    copy_pictures(root, folder)?;
    println!("{} pages", pages.len());
    Ok(())
}

/// Checks that each place that a link names is in its page, and that each page is reached from the
/// start.
fn check_links(pages: &BTreeMap<String, Rendered>) -> Result<()> {
    let mut wrong = Vec::new();
    for (source, page) in pages {
        for (target, place) in &page.links {
            if !place.is_empty() && !pages[target].anchors.contains(place) {
                wrong.push(format!("{source}: {target} has no place #{place}"));
            }
        }
    }
    let mut reached = vec![START];
    let mut next = 0;
    while let Some(source) = reached.get(next) {
        for (target, _) in &pages[*source].links {
            if !reached.contains(&target.as_str()) {
                reached.push(target);
            }
        }
        next += 1;
    }
    let lost = pages.keys().filter(|source| !reached.contains(&source.as_str()));
    wrong.extend(lost.map(|source| format!("no link leads to {source}")));
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

fn copy_pictures(root: &Path, folder: &Path) -> Result<()> {
    let target = folder.join(PICTURES);
    fs::create_dir_all(&target).with_context(|| format!("cannot make {}", target.display()))?;
    for entry in fs::read_dir(root.join(PICTURES)).with_context(|| format!("cannot list {PICTURES}"))? {
        let name = entry?.file_name();
        fs::copy(root.join(PICTURES).join(&name), target.join(&name))
            .with_context(|| format!("cannot copy {}", name.display()))?;
    }
    Ok(())
}

/// The whole page: what all pages have around the text.
fn framed(contents: &Contents, source: &str, place: &str, page: &Rendered) -> String {
    let (up, title) = (up(place), escaped(&page.title));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
        <title>{title} · bulla</title>\n<link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"{up}page.css\">\n</head>\n\
        <body>\n<a class=\"skip\" href=\"#text\">Skip to the text</a>\n\
        <header><a href=\"{up}index.html\">bulla</a> <a class=\"to-contents\" href=\"#contents\">Contents</a></header>\n\
        <div class=\"frame\">\n<main id=\"text\">\n{}<footer>From <code>{}</code>, version {}.</footer>\n</main>\n\
        <nav id=\"contents\" aria-label=\"Contents\">\n{}</nav>\n</div>\n</body>\n</html>\n",
        page.html,
        escaped(source),
        env!("CARGO_PKG_VERSION"),
        navigation(contents, source, &up),
    )
}

/// The contents, with the page at hand marked.
fn navigation(contents: &Contents, source: &str, up: &str) -> String {
    let mut list = String::new();
    for section in &contents.sections {
        let _ = writeln!(list, "<h2>{}</h2>\n<ul>", escaped(&section.title));
        for entry in &section.pages {
            let place = contents.place(&entry.source).unwrap_or_default();
            let here = if entry.source == source { " aria-current=\"page\"" } else { "" };
            let title = escaped(&entry.title);
            let _ = writeln!(list, "<li><a href=\"{up}{place}\"{here}>{title}</a></li>");
        }
        list.push_str("</ul>\n");
    }
    list
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(anchors: &[&str], links: &[(&str, &str)]) -> Rendered {
        let links = links.iter().map(|(page, place)| (page.to_string(), place.to_string())).collect();
        let anchors = anchors.iter().map(ToString::to_string).collect();
        Rendered { title: "T".into(), html: String::new(), anchors, links }
    }

    #[test]
    fn a_place_that_is_missing_and_a_page_that_is_not_reached_are_faults() {
        let check = |links: &[(&str, &str)]| {
            check_links(&BTreeMap::from([
                (START.to_owned(), page(&[], links)),
                ("a.md".to_owned(), page(&["part"], &[])),
            ]))
        };
        assert!(check(&[("a.md", "part")]).is_ok());
        assert!(check(&[("a.md", "another")]).is_err());
        assert!(check(&[]).is_err());
    }

    #[test]
    fn text_is_no_markup() {
        assert_eq!(escaped("a < b & \"c\""), "a &lt; b &amp; &quot;c&quot;");
    }
}
