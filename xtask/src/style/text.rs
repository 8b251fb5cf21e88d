//! Rules for any text file.

/// One problem, at a line counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) line: usize,
    pub(super) message: String,
}

/// The most lines of a source file that a person wrote.
const MAX_LINES: usize = 800;

/// The endings of source files. The length of these files is limited.
const SOURCE: [&str; 12] = [".rs", ".go", ".s", ".S", ".asm", ".c", ".h", ".ts", ".js", ".mjs", ".py", ".sh"];

/// The last column of a comment.
const MAX_COMMENT_COLUMN: usize = 100;

/// Files that tools write. We do not control their lines.
const TOOL_WRITTEN: [&str; 4] = ["Cargo.lock", "go.sum", "package-lock.json", "LICENSE-APACHE"];

/// Words for work that was left undone. Written in halves, so that this file passes its own rule.
const UNFINISHED: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Folders of one machine, which do not exist on another.
const MACHINE_PATHS: [&str; 5] = [
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/t", "mp/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
];

pub(super) fn check(path: &str, source: &str) -> Vec<Finding> {
    if TOOL_WRITTEN.iter().any(|name| path.rsplit('/').next() == Some(name)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut report = |line: usize, message: String| findings.push(Finding { line, message });
    for (index, line) in source.split('\n').enumerate() {
        let number = index + 1;
        if line.ends_with([' ', '\t']) {
            report(number, "spaces at the end of the line".to_owned());
        }
        if line.ends_with('\r') {
            report(number, "the line ends in CR LF".to_owned());
        }
        for word in UNFINISHED {
            if has_word(line, word) {
                report(number, format!("{word}: finish it, or leave it out"));
            }
        }
        for folder in MACHINE_PATHS {
            if starts_path(line, folder) {
                report(number, format!("{folder} is a path that exists only on one machine"));
            }
        }
    }
    for line in long_comments(path, source) {
        report(line, format!("the comment passes column {MAX_COMMENT_COLUMN}"));
    }
    let lines = source.lines().count();
    if !source.is_empty() && !source.ends_with('\n') {
        report(lines, "no newline at the end of the file".to_owned());
    }
    let is_source = SOURCE.iter().any(|ending| path.ends_with(ending));
    if is_source && lines > MAX_LINES && !is_generated(source) {
        report(MAX_LINES + 1, format!("{lines} lines: at most {MAX_LINES}; split the file"));
    }
    findings
}

/// The lines of comments that pass the last column. A URL, a row of a table and a block of code
/// may.
fn long_comments(path: &str, source: &str) -> Vec<usize> {
    let marks: &[&str] = match path.rsplit('.').next() {
        Some("rs" | "go" | "c" | "h" | "ts" | "js" | "mjs" | "css") => &["//", "/*", "* "],
        Some("py" | "sh" | "toml" | "yml") => &["# "],
        Some("s" | "S") => &["// ", "# "],
        Some("asm" | "inc") => &["; "],
        _ => return Vec::new(),
    };
    if is_generated(source) {
        return Vec::new();
    }
    let (mut in_code, mut in_block) = (false, false);
    let mut long = Vec::new();
    for (index, line) in source.lines().enumerate() {
        let text = line.trim_start();
        let mark = marks.iter().find(|mark| text.starts_with(**mark) && (in_block || **mark != "* "));
        in_block = (in_block || text.starts_with("/*")) && !text.contains("*/");
        let Some(mark) = mark else {
            in_code = false;
            continue;
        };
        let words = text[mark.len()..].trim_start_matches(['/', '!', '*', ' ']);
        in_code ^= words.starts_with("```");
        // `/* @__PURE__ */ code` is code.
        let is_code = text.split_once("*/").is_some_and(|(_, after)| !after.trim().is_empty());
        let is_word = !words.contains(' ');
        let may = in_code || is_code || is_word || words.starts_with('|') || words.contains("://");
        if line.chars().count() > MAX_COMMENT_COLUMN && !may {
            long.push(index + 1);
        }
    }
    long
}

/// Whether a generator wrote the file and says so near its top, in the form that Go's tools look
/// for.
pub(super) fn is_generated(source: &str) -> bool {
    source.lines().take(5).any(|line| line.contains("Code generated ") && line.contains("DO NOT EDIT"))
}

/// Whether `line` contains `word` as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(is_part) && !line[at + word.len()..].starts_with(is_part))
}

/// Whether `folder` is the beginning of a path in `line`, and not in the middle of another path.
fn starts_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/*)}".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, source: &str) -> Vec<(usize, String)> {
        check(path, source).into_iter().map(|f| (f.line, f.message)).collect()
    }

    #[test]
    fn clean_text_passes() {
        assert_eq!(messages("a.rs", "fn main() {}\n"), []);
        assert_eq!(messages("a.rs", ""), []);
    }

    #[test]
    fn ends_of_lines_and_files() {
        let found = messages("a.md", "one \ntwo\r\nthree");
        let lines: Vec<_> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 3], "{found:?}");
    }

    #[test]
    fn unfinished_work_is_found_as_a_word() {
        let word = UNFINISHED[0];
        assert_eq!(messages("a.go", &format!("// {word}: later\n")).len(), 1);
        assert_eq!(messages("a.go", &format!("x{word}S\n")), []);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let folder = MACHINE_PATHS[1];
        assert_eq!(messages("a.md", &format!("see {folder}x\n")).len(), 1);
        assert_eq!(messages("a.md", &format!("see net{folder}x\n")), []);
    }

    #[test]
    fn comments_end_at_their_last_column() {
        let words = ["x"; MAX_COMMENT_COLUMN / 2].join(" ");
        for (path, comment) in [
            ("a.rs", format!("    /// {words}")),
            ("a.py", format!("# {words}")),
            ("a.c", format!("/*\n * {words} */")),
        ] {
            assert_eq!(messages(path, &format!("{comment}\n")).len(), 1, "{path}");
        }
        let accepted = [
            format!("// {}", &words[2..]),
            format!("let a = \"{words}\";"),
            format!("// https://{words}"),
            format!("/// | {words} |"),
            format!("//! ```\n//! {words}\n//! ```"),
            format!("* {words}"),
            format!("/// {}", "x".repeat(MAX_COMMENT_COLUMN)),
            format!("/* @__PURE__ */ {words}"),
        ];
        for line in accepted {
            assert_eq!(messages("a.rs", &format!("{line}\n")), [], "{line}");
        }
    }

    #[test]
    fn long_source_is_found_unless_generated() {
        let long = "x\n".repeat(MAX_LINES + 1);
        assert_eq!(messages("a.go", &long).len(), 1);
        assert_eq!(messages("a.md", &long), []);
        assert_eq!(messages("a.go", &format!("// Code generated by gen. DO NOT EDIT.\n{long}")), []);
        assert_eq!(messages("a.go", &"x\n".repeat(MAX_LINES)), []);
    }
}
