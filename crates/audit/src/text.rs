//! Looks for text in the loaded parts of a file.

use std::{io, ops::Range};

use aho_corasick::AhoCorasick;
use rayon::prelude::*;

use crate::source::Source;

/// How much is searched at once, in bytes.
const PIECE: u64 = 1 << 20;

/// For each of `texts` the offset in `source` where it is first found in `parts`.
pub(crate) fn find(
    source: &dyn Source,
    parts: &[Range<u64>],
    texts: &[&str],
) -> io::Result<Vec<Option<u64>>> {
    let mut found = vec![None; texts.len()];
    let longest = texts.iter().map(|text| text.len() as u64).max().unwrap_or(0);
    if longest == 0 {
        return Ok(found);
    }
    let searcher = AhoCorasick::new(texts).map_err(io::Error::other)?;
    let pieces: Vec<Range<u64>> = parts.iter().flat_map(|part| pieces(part, longest)).collect();
    let hits: io::Result<Vec<Vec<(usize, u64)>>> = pieces
        .par_iter()
        .map_init(Vec::new, |buffer, piece| {
            buffer.resize((piece.end - piece.start) as usize, 0);
            source.read_exact_at(buffer, piece.start)?;
            let mut hits: Vec<(usize, u64)> = Vec::new();
            for hit in searcher.find_overlapping_iter(buffer.as_slice()) {
                let id = hit.pattern().as_usize();
                if !hits.iter().any(|(known, _)| *known == id) {
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

/// Cuts a part; pieces overlap, so that text across a cut is found.
fn pieces(part: &Range<u64>, longest: u64) -> impl Iterator<Item = Range<u64>> + use<> {
    let (start, end) = (part.start, part.end);
    (start..end).step_by(PIECE as usize).map(move |at| at..(at + PIECE + longest - 1).min(end))
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
}
