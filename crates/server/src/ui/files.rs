//! The files of the page.

use std::sync::LazyLock;

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A file, as browsers get it.
pub(super) struct File {
    name: &'static str,
    pub(super) kind: &'static str,
    pub(super) content: &'static str,
    /// The digest of the content, as an `ETag` has it.
    pub(super) tag: String,
}

impl File {
    fn new((name, kind, content): (&'static str, &'static str, &'static str)) -> Self {
        let digest = bulla_blake3::hash(content.as_bytes()).to_hex();
        Self { name, kind, content, tag: format!("\"{}\"", &digest[..32]) }
    }
}

macro_rules! files {
    ($($name:literal $kind:expr;)*) => { [$(($name, $kind, include_str!(concat!("assets/", $name)))),*] };
}

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let files = files! {
        "actions.js" SCRIPT;
        "activity.js" SCRIPT;
        "api.js" SCRIPT;
        "app.js" SCRIPT;
        "audit.js" SCRIPT;
        "charts.js" SCRIPT;
        "dialog.js" SCRIPT;
        "dom.js" SCRIPT;
        "format.js" SCRIPT;
        "icon.svg" "image/svg+xml";
        "key.js" SCRIPT;
        "keys.js" SCRIPT;
        "metrics.js" SCRIPT;
        "session.js" SCRIPT;
        "signin.js" SCRIPT;
        "style.css" "text/css; charset=utf-8";
    };
    files.map(File::new).into()
});

const PAGE: &str = include_str!("assets/index.html");
const HTML: &str = "text/html; charset=utf-8";

/// The page itself. Its root element says whether the service is for development, so that the page
/// can warn.
static PAGES: LazyLock<[File; 2]> = LazyLock::new(|| {
    let development = PAGE.replace("data-mode=\"production\"", "data-mode=\"development\"").leak();
    [PAGE, development].map(|content| File::new(("index.html", HTML, content)))
});

pub(super) fn page(development: bool) -> &'static File {
    &PAGES[usize::from(development)]
}

pub(super) fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/ui/assets");
        let files =
            std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut served: BTreeSet<_> = FILES.iter().map(|file| file.name.to_owned()).collect();
        served.insert("index.html".to_owned());
        assert_eq!(served, files.collect());
    }

    #[test]
    fn only_the_page_of_development_says_so() {
        let [production, development] = PAGES.each_ref();
        assert!(production.content.contains("data-mode=\"production\""));
        assert!(development.content.contains("data-mode=\"development\""));
        assert!(!development.content.contains("data-mode=\"production\""));
        assert_ne!(production.tag, development.tag);
    }

    #[test]
    fn nothing_in_the_page_is_code_within_markup_or_comes_from_elsewhere() {
        let all = FILES.iter().chain(PAGES.iter());
        for file in all {
            let own = file.content.replace("http://www.w3.org/2000/svg", "");
            for never in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "localStorage",
                "sessionStorage",
                "cookie =",
                "://",
                "style=\"",
                "onclick=\"",
            ] {
                assert!(!own.contains(never), "{} has {never}", file.name);
            }
        }
    }
}
