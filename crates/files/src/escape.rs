//! File names as text: for people, and for a shell.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

/// Returns a path for people. Backslashes, control characters, marks that reorder text, and bytes
/// that are not UTF-8 are escaped, so that no name can fake a line of output or control a terminal.
///
/// ```
/// use std::path::Path;
///
/// assert_eq!(bulla_files::escape_path(Path::new("a\nb")), "a\\nb");
/// assert_eq!(bulla_files::escape_path(Path::new("\u{1b}[2J")), "\\x1b[2J");
/// ```
pub fn escape_path(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.push_str("\\n"),
                '\\' if cfg!(unix) => text.push_str("\\\\"),
                c if is_deceptive(c) => push_bytes(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => text.push(c),
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

/// Escapes what could control a terminal or reorder other text. Backslashes stay: names in lists
/// have escapes already.
///
/// ```
/// assert_eq!(bulla_files::escape_text("a\tb"), "a\\x09b");
/// assert_eq!(bulla_files::escape_text("a\\b"), "a\\b");
/// ```
pub fn escape_text(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::new();
    for c in text.chars() {
        match is_deceptive(c) {
            true => push_bytes(&mut visible, c.encode_utf8(&mut [0; 4]).as_bytes()),
            false => visible.push(c),
        }
    }
    Cow::Owned(visible)
}

/// Whether a character can mislead a reader: control characters, line separators, and marks that
/// reorder the text around them (Unicode Standard Annex #9).
///
/// ```
/// assert!(bulla_files::is_deceptive('\u{202e}')); // the text after it runs from right to left
/// assert!(!bulla_files::is_deceptive('é'));
/// ```
pub fn is_deceptive(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "\\x{byte:02x}").expect("a string takes any text");
    }
}

/// Returns a word that a POSIX shell reads back as `word`. A name with control characters takes the
/// form `$'...'` of bash, zsh and ksh.
///
/// ```
/// use bulla_files::quote_for_shell;
///
/// assert_eq!(quote_for_shell("a-file.txt".as_ref()), "a-file.txt");
/// assert_eq!(quote_for_shell("two words".as_ref()), "'two words'");
/// ```
pub fn quote_for_shell(word: &OsStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if !text.chars().any(is_deceptive) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let mut quoted = String::from("$'");
            for byte in word.as_encoded_bytes() {
                match byte {
                    b'\'' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
                    b' '..=b'~' => quoted.push(char::from(*byte)),
                    byte => push_bytes(&mut quoted, &[*byte]),
                }
            }
            quoted.push('\'');
            quoted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn names_for_people_are_one_line_and_harmless() {
        for (name, text) in [
            ("plain é.txt", "plain é.txt"),
            ("a\nb", "a\\nb"),
            ("back\\slash", "back\\\\slash"),
            ("\x1b[31mred", "\\x1b[31mred"),
            ("\u{202e}txt.exe", "\\xe2\\x80\\xaetxt.exe"),
        ] {
            assert_eq!(escape_path(Path::new(name)), text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_back_every_name() {
        use std::os::unix::ffi::OsStrExt;
        for name in
            [&b"plain.txt"[..], b"two words", b"it's", b"$HOME `id` \"x\"", b"a\nb\t\\'", b"\xff\xfe", b"~"]
        {
            let script = format!("printf %s {}", quote_for_shell(OsStr::from_bytes(name)));
            let output = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
            assert_eq!(output.stdout, name, "{script}");
        }
    }
}
