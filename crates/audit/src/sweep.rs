//! Walks over code from start to end, as `objdump -d` does: it decodes every byte of a section with
//! code. Symbols say where to restart, and what is data.

use std::io;

use crate::{
    arch::{Decode, Token, aarch64, x86_64},
    source::Window,
};

/// A place in a region where decoding restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bytes from the start of the region.
    pub(crate) offset: u64,
    /// Whether data follows, which is not decoded.
    pub(crate) data: bool,
}

/// Runs of zeros at least this long are padding, in bytes; as in binutils, `objdump.c`,
/// `DEFAULT_SKIP_ZEROES`.
const MIN_PADDING_LEN: usize = 8;

/// At the end of a piece, shorter runs are padding too: `DEFAULT_SKIP_ZEROES_AT_END`.
const PADDING_AT_END: usize = 3;

/// Decodes x86-64 code from `start` to `end` of a region, whose bytes `window` provides, and passes
/// each token and its offset to `each`.
///
/// `cuts` are those in the range, sorted.
pub(crate) fn x86_64(
    window: &mut Window<'_>,
    range: (u64, u64),
    cuts: &[Cut],
    mut each: impl FnMut(u64, Token),
) -> io::Result<()> {
    let mut sweep = Sweep::new(range, cuts);
    while sweep.base < range.1 {
        let bytes = window.ahead(4 * x86_64::Run::MAX_INSTRUCTION_LEN)?;
        let done = sweep.bytes::<x86_64::Run<'_>>(bytes, &mut each);
        window.advance(done);
    }
    Ok(())
}

/// Decodes AArch64; see [`x86_64`].
pub(crate) fn aarch64(
    window: &mut Window<'_>,
    range: (u64, u64),
    cuts: &[Cut],
    mut each: impl FnMut(u64, Token),
) -> io::Result<()> {
    let mut sweep = Sweep::new(range, cuts);
    while sweep.base < range.1 {
        let bytes = window.ahead(8 * aarch64::Run::MAX_INSTRUCTION_LEN)?;
        let done = sweep.bytes::<aarch64::Run<'_>>(bytes, &mut each);
        window.advance(done);
    }
    Ok(())
}

/// The position of a walk.
struct Sweep<'c> {
    pieces: Pieces<'c>,
    /// The offset of the first byte that is not decoded yet.
    base: u64,
    end: u64,
    in_padding: bool,
}

impl<'c> Sweep<'c> {
    fn new((start, end): (u64, u64), cuts: &'c [Cut]) -> Self {
        Self { pieces: Pieces::new(start, end, cuts), base: start, end, in_padding: false }
    }

    /// Decodes from the start of `bytes`, which are at the base, and returns how many bytes it
    /// decoded.
    fn bytes<'b, D: Decode<'b>>(&mut self, bytes: &'b [u8], each: &mut impl FnMut(u64, Token)) -> usize {
        let bytes = &bytes[..bytes.len().min(usize::try_from(self.end - self.base).unwrap_or(usize::MAX))];
        let is_last = self.base + bytes.len() as u64 == self.end;
        // After this, an instruction might need bytes that are not here yet.
        let safe = if is_last { bytes.len() } else { bytes.len() - D::MAX_INSTRUCTION_LEN };
        let mut run = D::new(bytes);
        let mut at = 0;
        while at < safe {
            let piece = self.pieces.at(self.base + at as u64);
            let stop = usize::try_from(piece.end - self.base).unwrap_or(usize::MAX).min(bytes.len());
            if piece.data {
                at = stop;
                continue;
            }
            if bytes[at] == 0 {
                let is_end = self.base + stop as u64 == piece.end;
                let zeros = bytes[at..stop].iter().take_while(|byte| **byte == 0).count();
                let to_stop = at + zeros == stop;
                let skip = padding(zeros, to_stop, is_end, self.in_padding);
                if skip > 0 {
                    // A run that the window cuts off continues in the next window.
                    self.in_padding = to_stop && !is_end;
                    at += skip;
                    continue;
                }
            }
            self.in_padding = false;
            let token = run.decode(at, stop);
            each(self.base + at as u64, token);
            at += usize::from(token.len);
        }
        self.base += at as u64;
        at
    }
}

/// How many of `zeros` bytes are padding. `to_stop`: they reach the end of the known bytes;
/// `is_end`: that is the end of the piece.
fn padding(zeros: usize, to_stop: bool, is_end: bool, in_padding: bool) -> usize {
    let whole = zeros / 4 * 4;
    match (to_stop, is_end) {
        (true, true) if in_padding || !(PADDING_AT_END..MIN_PADDING_LEN).contains(&zeros) => zeros,
        (true, false) => whole,
        _ if zeros >= MIN_PADDING_LEN || in_padding => whole,
        _ => 0,
    }
}

/// The code or data between two cuts.
#[derive(Clone, Copy)]
struct Piece {
    end: u64,
    data: bool,
}

/// The pieces of a range, for requests inside it, in ascending order.
struct Pieces<'c> {
    cuts: &'c [Cut],
    current: Piece,
    last: u64,
}

impl<'c> Pieces<'c> {
    fn new(start: u64, end: u64, cuts: &'c [Cut]) -> Self {
        Self { cuts, current: Piece { end: start, data: false }, last: end }
    }

    fn at(&mut self, offset: u64) -> Piece {
        while self.current.end <= offset {
            let data = match self.cuts.split_first() {
                Some((cut, rest)) if cut.offset <= offset => {
                    self.cuts = rest;
                    cut.data
                }
                _ => self.current.data,
            };
            let end = self.cuts.first().map_or(self.last, |cut| cut.offset);
            self.current = Piece { end: end.min(self.last), data };
        }
        self.current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u8 = 0x90;

    /// The offsets and lengths of the tokens decoded from x86-64 code without symbols.
    fn decoded(code: &[u8]) -> Vec<(u64, u8)> {
        let mut found = Vec::new();
        let end = code.len() as u64;
        let mut window = Window::new(&code, 0..end);
        x86_64(&mut window, (0, end), &[], |at, token| found.push((at, token.len)))
            .expect("memory can be read");
        found
    }

    #[test]
    fn zeros_are_padding_as_binutils_has_it() {
        for (zeros, to_stop, is_end, in_padding, expected) in [
            // Between instructions: from 8 on, whole words of 4.
            (7, false, false, false, 0),
            (8, false, false, false, 8),
            (9, false, false, false, 8),
            (12, false, false, false, 12),
            // The rest of a run that began before the window.
            (3, false, false, true, 0),
            (4, false, false, true, 4),
            (7, false, false, true, 4),
            // The window ends, but the run may continue.
            (3, true, false, false, 0),
            (5, true, false, false, 4),
            // The end of a piece: fewer than 3, or 8 and more.
            (1, true, true, false, 1),
            (2, true, true, false, 2),
            (3, true, true, false, 0),
            (7, true, true, false, 0),
            (8, true, true, false, 8),
            (11, true, true, false, 11),
            (5, true, true, true, 5),
        ] {
            let found = padding(zeros, to_stop, is_end, in_padding);
            assert_eq!(found, expected, "{zeros} {to_stop} {is_end} {in_padding}");
        }
    }

    #[test]
    fn seven_zeros_are_code_and_eight_are_none() {
        // Two zeros are `add [rax], al`; an odd one takes the next byte as its operand.
        let code = |zeros: usize| [vec![NOP], vec![0; zeros], vec![NOP; 4]].concat();
        assert_eq!(decoded(&code(6)).len(), 1 + 3 + 4);
        assert_eq!(decoded(&code(8)), [(0, 1), (9, 1), (10, 1), (11, 1), (12, 1)]);
        assert_eq!(decoded(&code(12)).len(), 1 + 4);
    }

    /// The same with cuts, in windows of at most `most` bytes.
    fn in_windows(code: &[u8], cuts: &[Cut], most: usize) -> Vec<(u64, u8)> {
        let (mut found, mut sweep) = (Vec::new(), Sweep::new((0, code.len() as u64), cuts));
        let mut at = 0;
        while at < code.len() {
            let window = &code[at..code.len().min(at + most)];
            at += sweep.bytes::<x86_64::Run<'_>>(window, &mut |at, token| found.push((at, token.len)));
        }
        found
    }

    const fn cut(offset: u64, data: bool) -> Cut {
        Cut { offset, data }
    }

    #[test]
    fn zeros_at_the_end_are_padding_to_the_last() {
        assert_eq!(decoded(&[&[NOP], &[0; 9][..]].concat()), [(0, 1)]);
        assert_eq!(decoded(&[&[NOP], &[0; 2][..]].concat()), [(0, 1)]);
        assert_eq!(decoded(&[&[NOP], &[0; 4][..]].concat()), [(0, 1), (1, 2)], "two, and then two");
    }

    #[test]
    fn a_run_of_zeros_ends_where_a_piece_does() {
        let code = [&[NOP], &[0; 12][..], &[NOP]].concat();
        assert_eq!(in_windows(&code, &[], 100), [(0, 1), (13, 1)]);
        assert_eq!(in_windows(&code, &[cut(9, false)], 100), [(0, 1), (9, 2), (11, 2), (13, 1)]);
        assert_eq!(in_windows(&code, &[cut(9, false), cut(11, false)], 100), [(0, 1), (11, 2), (13, 1)]);
    }

    #[test]
    fn data_is_passed_over_up_to_the_next_code() {
        let code = [NOP; 40];
        let at = |offsets: Vec<u64>| offsets.into_iter().map(|offset| (offset, 1)).collect::<Vec<_>>();
        let cuts = [cut(3, true), cut(5, true), cut(8, false), cut(20, false), cut(37, true)];
        assert_eq!(in_windows(&code, &cuts, 100), at([0, 1, 2].into_iter().chain(8..37).collect()));
        assert_eq!(in_windows(&code, &[cut(0, true), cut(39, false)], 100), at(vec![39]));
    }

    /// Runs of zeros and pieces of all lengths, in windows that cut them anywhere.
    #[test]
    fn windows_change_nothing() {
        let (mut code, mut cuts) = (Vec::new(), Vec::new());
        for zeros in 0..40 {
            code.extend_from_slice(&[NOP; 3]);
            code.extend(std::iter::repeat_n(0, zeros));
            if zeros % 3 == 0 {
                let offset = code.len() as u64;
                cuts.extend([cut(offset, zeros % 2 == 0), cut(offset + 2 + zeros as u64 / 9, false)]);
            }
        }
        code.extend_from_slice(&[NOP; 4]);
        let whole = in_windows(&code, &cuts, code.len());
        for most in x86_64::Run::MAX_INSTRUCTION_LEN + 1..100 {
            assert_eq!(in_windows(&code, &cuts, most), whole, "{most} bytes at a time");
        }
    }

    #[test]
    fn aarch64_is_decoded_to_its_end_over_several_windows() {
        use crate::source::MAX_WINDOW_LEN;
        const NOP: [u8; 4] = [0x1f, 0x20, 0x03, 0xd5];
        let code = &NOP.repeat(MAX_WINDOW_LEN / 4 + 16)[..];
        let (end, mut count) = (code.len() as u64, 0);
        let mut window = Window::new(&code, 0..end);
        aarch64(&mut window, (0, end), &[], |at, token| {
            assert_eq!((at, token.len), (4 * count, 4));
            count += 1;
        })
        .expect("memory can be read");
        assert_eq!(count, end / 4);
    }

    /// The window has a megabyte at first: the run continues after it.
    #[test]
    fn a_run_of_zeros_that_the_window_cuts_is_padding_to_its_end() {
        use crate::source::MAX_WINDOW_LEN;
        for before in [4, 8, 16, 20, 64] {
            for behind in [0, 1, 2, 3, 4, 5, 7, 8, 12] {
                let code =
                    [vec![NOP; MAX_WINDOW_LEN - before], vec![0; before + behind], vec![NOP; 64]].concat();
                let shorter = [vec![NOP; 1000 - before], vec![0; before + behind], vec![NOP; 64]].concat();
                let (cut, whole) = (
                    decoded(&code).len() - (MAX_WINDOW_LEN - before),
                    decoded(&shorter).len() - (1000 - before),
                );
                assert_eq!(cut, whole, "{before} zeros before the end of the window, {behind} behind");
            }
        }
    }
}
