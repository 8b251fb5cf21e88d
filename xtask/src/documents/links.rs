//! Checks that every link from our documents to a file has a target.

use std::{fs, path::Path};

use anyhow::{Result, bail, ensure};
use bulla_devtools::Context;
use ignore::WalkBuilder;

/// Checks the relative links of every Markdown file.
pub(crate) fn check(context: &Context) -> Result<()> {
    let (mut checked, mut broken) = (0, Vec::new());
    for entry in WalkBuilder::new(&context.root).require_git(false).build() {
        let path = entry?.into_path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for link in targets(&fs::read_to_string(&path)?) {
            checked += 1;
            if !folder.join(&link).exists() {
                broken.push(format!("{}: no file {link}", path.strip_prefix(&context.root)?.display()));
            }
        }
    }
    ensure!(checked > 0, "no document has a link");
    if !broken.is_empty() {
        bail!("{} of {checked} links lead nowhere\n{}", broken.len(), broken.join("\n"));
    }
    Ok(())
}

/// The targets of inline links that are files, without the place within the file.
fn targets(text: &str) -> Vec<String> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains(":") && !target.contains(char::is_whitespace))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_are_found() {
        let text = "[a](docs/a.md#part) and [b](https://example.org/b), [c](#here); f[x](y z)\n[d](../d)";
        assert_eq!(targets(text), ["docs/a.md", "../d"]);
    }
}
