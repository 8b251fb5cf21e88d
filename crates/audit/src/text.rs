//! Looks for text in the loaded parts of a file, and matches names with patterns, in which `*`
//! matches any text.

use std::{io, ops::Range};

use aho_corasick::AhoCorasick;
use rayon::prelude::*;

use crate::source::Source;

/// The number of bytes that are searched at once.
const PIECE_LEN: u64 = 1 << 20;

/// The maximum distance in bytes between a text's start and its other parts.
const MAX_DISTANCE: u64 = 256;

/// The part of `text` before its first `*`, which is searched for.
pub(crate) fn head(text: &str) -> &str {
    text.split('*').next().unwrap_or_default()
}

/// For each of `texts`, the offset in `source` of its first occurrence in `parts`. In a text, `*`
/// matches any characters of a path. A `*` is not such a character itself, so a file that contains
/// the rules, such as this program, does not match them.
pub(crate) fn find(
    source: &dyn Source,
    parts: &[Range<u64>],
    texts: &[&str],
) -> io::Result<Vec<Option<u64>>> {
    let mut found = vec![None; texts.len()];
    let heads: Vec<&str> = texts.iter().map(|text| head(text)).collect();
    let longest = heads.iter().map(|head| head.len() as u64).max().unwrap_or(0);
    if longest == 0 {
        return Ok(found);
    }
    let searcher = AhoCorasick::new(&heads).map_err(io::Error::other)?;
    let pieces: Vec<Range<u64>> =
        parts.iter().flat_map(|part| pieces(part, longest + MAX_DISTANCE)).collect();
    let hits: io::Result<Vec<Vec<(usize, u64)>>> = pieces
        .par_iter()
        .map_init(Vec::new, |buffer, piece| {
            buffer.resize((piece.end - piece.start) as usize, 0);
            source.read_exact_at(buffer, piece.start)?;
            let mut hits: Vec<(usize, u64)> = Vec::new();
            for hit in searcher.find_overlapping_iter(buffer.as_slice()) {
                let id = hit.pattern().as_usize();
                let is_new = !hits.iter().any(|(known, _)| *known == id);
                if is_new && goes_on(&buffer[hit.end()..], &texts[id][heads[id].len()..]) {
                    hits.push((id, piece.start + hit.start() as u64));
                }
            }
            Ok(hits)
        })
        .collect();
    for (id, offset) in hits?.into_iter().flatten() {
        let first: &mut Option<u64> = &mut found[id];
        *first = Some(first.map_or(offset, |first| first.min(offset)));
    }
    Ok(found)
}

/// Whether `bytes` begin with `rest`, the part of a text from its first `*` on.
fn goes_on(bytes: &[u8], rest: &str) -> bool {
    let is_of_path = |byte: &&u8| byte.is_ascii_alphanumeric() || b"/._+-".contains(byte);
    let path: Vec<u8> = bytes.iter().take(MAX_DISTANCE as usize).take_while(is_of_path).copied().collect();
    rest.is_empty() || String::from_utf8(path).is_ok_and(|path| matches_glob(&format!("{rest}*"), &path))
}

/// Cuts a part; pieces overlap, so that text across a cut is found.
fn pieces(part: &Range<u64>, longest: u64) -> impl Iterator<Item = Range<u64>> + use<> {
    let (start, end) = (part.start, part.end);
    (start..end).step_by(PIECE_LEN as usize).map(move |at| at..(at + PIECE_LEN + longest - 1).min(end))
}

/// Whether `pattern` matches all of `name`.
pub(crate) fn matches_glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_across_pieces_and_only_in_the_parts() {
        let mut bytes = vec![b'.'; 3 << 20];
        bytes[(1 << 20) - 3..(1 << 20) + 3].copy_from_slice(b"needle");
        bytes[10..16].copy_from_slice(b"needle");
        let whole = 0..bytes.len() as u64;
        let found = |part: Range<u64>| find(&bytes.as_slice(), &[part], &["needle", "absent"]).unwrap();
        assert_eq!(found(whole.clone()), [Some(10), None]);
        assert_eq!(found(16..whole.end), [Some((1 << 20) - 3), None]);
        assert_eq!(found(16..(1 << 20)), [None, None]);
    }

    #[test]
    fn each_of_several_texts_has_its_first_place() {
        let bytes = b"second, first, second, first";
        let whole = 0..bytes.len() as u64;
        let found = find(&bytes.as_slice(), std::slice::from_ref(&whole), &["first", "second"]).unwrap();
        assert_eq!(found, [Some(8), Some(0)]);
    }

    #[test]
    fn a_star_stands_for_the_rest_of_a_path_and_a_list_of_rules_holds_none_of_its_texts() {
        let rule = "/hash-1.*/src/*.rs";
        let found = |bytes: &[u8]| {
            let whole = 0..bytes.len() as u64;
            find(&bytes, std::slice::from_ref(&whole), &[rule]).unwrap()[0]
        };
        assert_eq!(found(b"at /x/hash-1.2.3+b/src/a_b/lib.rs:1"), Some(5));
        // The first place belongs to another text, or is cut off.
        assert_eq!(found(b"/hash-1.2.3/lib.c /hash-1.2.3/src/lib.rs"), Some(18));
        assert_eq!(found(b"/hash-1.2.3/src/li\0.rs"), None);
        assert_eq!(found(format!("strings = [\"{rule}\"]").as_bytes()), None);
        let across = [vec![b'.'; (1 << 20) - 10], b" /hash-1.2.3/src/lib.rs".to_vec()].concat();
        assert_eq!(found(&across), Some((1 << 20) - 9));
    }

    #[test]
    fn a_star_stands_for_any_text_and_nothing_else_does() {
        for (pattern, name, expected) in [
            ("a::b", "a::b", true),
            ("a::b", "a::bc", false),
            ("a::*", "a::", true),
            ("a::*", "ba::", false),
            ("*::b", "a::b", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("a*a", "a", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches_glob(pattern, name), expected, "{pattern} {name}");
        }
    }
}
