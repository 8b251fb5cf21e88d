//! American spelling in texts and names. To add a word: put it in its list, in halves, so that this
//! file passes its own rule.

use super::text::Finding;

/// British words, and American ones.
const WORDS: [(&str, &str); 15] = [
    (concat!("col", "our"), "color"),
    (concat!("behavi", "our"), "behavior"),
    (concat!("hon", "our"), "honor"),
    (concat!("fav", "our"), "favor"),
    (concat!("lab", "our"), "labor"),
    (concat!("neighb", "our"), "neighbor"),
    (concat!("licen", "ce"), "license"),
    (concat!("defen", "ce"), "defense"),
    (concat!("cent", "re"), "center"),
    (concat!("cata", "logue"), "catalog"),
    (concat!("arte", "fact"), "artifact"),
    (concat!("cancel", "led"), "canceled"),
    (concat!("model", "led"), "modeled"),
    (concat!("label", "led"), "labeled"),
    (concat!("signal", "led"), "signaled"),
];

/// The beginnings of verbs that end in `ize`.
const VERBS: [&str; 16] = [
    "author",
    "canonical",
    "final",
    "general",
    "initial",
    "maxim",
    "minim",
    "normal",
    "optim",
    "organ",
    "parallel",
    "random",
    "recogn",
    "serial",
    "summar",
    "synchron",
];

/// What we do not write: history, the words of others, and files of released versions.
const NOT_OURS: [&str; 4] = ["docs/decisions/", "lab/runs/", "spec/released/", "spec/vectors/"];

pub(super) fn check(path: &str, source: &str) -> Vec<Finding> {
    let is_of_others = [".lock", "go.sum", "package-lock.json", "LICENSE", "LICENSE-APACHE"]
        .iter()
        .any(|end| path.ends_with(end));
    if is_of_others || NOT_OURS.iter().any(|beginning| path.starts_with(beginning)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, line) in source.lines().enumerate() {
        // The number and the name of a decision.
        if line.contains("docs/decisions/") || line.contains("../decisions/") {
            continue;
        }
        let lower = line.to_ascii_lowercase();
        for (british, american) in WORDS {
            // An attribute of HTML and an error of Python end so, and a method may be that of a
            // library.
            let is_ours = |at: usize| {
                let after = &lower[at + british.len()..];
                let is_method = lower[..at].ends_with('.') && after.starts_with('(');
                !(is_method || ["by", "error"].iter().any(|end| after.starts_with(end)))
            };
            if lower.match_indices(british).any(|(at, _)| is_ours(at)) {
                findings.push(Finding { line: index + 1, message: format!("{british}: write {american}") });
            }
        }
        for verb in VERBS {
            let british = [verb, "is"].concat();
            if lower.match_indices(&british).any(|(at, _)| is_ending(&lower[at + british.len()..])) {
                let message = format!("{british}e: write {verb}ize");
                findings.push(Finding { line: index + 1, message });
            }
        }
    }
    findings
}

/// Whether the text goes on as a verb that ends in `ise` does.
fn is_ending(rest: &str) -> bool {
    ["e", "ing", "ation", "able"].iter().any(|ending| rest.starts_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, source: &str) -> Vec<usize> {
        check(path, source).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn british_words_are_found_in_texts_and_names() {
        let (word, verb) = (WORDS[0].0, ["optim", "ise"].concat());
        assert_eq!(lines("a.md", &format!("one\nThe {word}s.\nfn un{verb}d() {{}}\n")), [2, 3]);
        assert_eq!(lines("a.md", "The colors are optimized, and the optimism is general.\n"), [0; 0]);
        assert_eq!(lines("a.py", &format!("assert task.{}()\n", WORDS[11].0)), [0; 0]);
        assert_eq!(lines("a.html", "<p aria-labelledby=\"a\">\n"), [0; 0]);
    }

    #[test]
    fn history_keeps_its_words() {
        let word = WORDS[0].0;
        assert_eq!(lines("docs/decisions/0001-a.md", word), [0; 0]);
        assert_eq!(lines("a.md", &format!("see docs/decisions/0001-{word}.md")), [0; 0]);
    }
}
