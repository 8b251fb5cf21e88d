//! A disassembly: the instructions of a function, and those that run for one block.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// To the next instruction.
    Next,
    /// To an address, always.
    Jump(u64),
    /// To an address, or to the next instruction.
    Branch(u64),
    /// Elsewhere: a call, a return, a jump through a register.
    Away,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Instruction {
    address: u64,
    text: String,
    flow: Flow,
}

/// The functions of a file, by their names without the compiler's hash.
#[derive(Debug, Default)]
pub(super) struct Listing {
    functions: BTreeMap<String, Vec<Instruction>>,
}

/// The instructions that run repeatedly, once for each of a number of rounds or blocks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// The instructions as lines for an assembler, without branches.
    pub(super) lines: Vec<String>,
    pub(super) kind: Kind,
}

/// The kind of a [`Unit`]'s instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The body of the loop over blocks.
    Loop,
    /// A whole function that is called for each block.
    Function,
}

/// The instructions of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) instructions: usize,
    pub(super) calls: usize,
    pub(super) scalar_rotates: usize,
    pub(super) vector_rotates: usize,
}

/// The number of rounds of the compression. A loop with an exit in its middle runs over them.
const ROUNDS: usize = 7;

/// A loop over blocks has at least this many instructions: seven rounds of the narrowest form have
/// far more.
const MIN_INSTRUCTIONS: usize = 150;

impl Listing {
    /// Reads the output of `llvm-objdump --disassemble --demangle --no-show-raw-insn`.
    pub(super) fn parse(text: &str) -> Self {
        let mut listing = Self::default();
        let mut name = String::new();
        for line in text.lines() {
            if let Some(head) = function_head(line) {
                name = head;
                // If two functions have one name, as in two codegen units, the last one counts.
                listing.functions.insert(name.clone(), Vec::new());
            } else if let Some(found) = instruction(line)
                && let Some(function) = listing.functions.get_mut(&name)
            {
                function.push(found);
            }
        }
        listing
    }

    /// The instructions that run for one block in the function with this name: its longest
    /// innermost loop or, without a loop, the whole function.
    ///
    /// # Errors
    /// There is no such function, or nothing in it could be the work for a block.
    pub(super) fn unit(&self, name: &str) -> Result<Unit> {
        let function = self.functions.get(name).with_context(|| format!("no function {name}"))?;
        ensure!(function.len() >= MIN_INSTRUCTIONS / 3, "{name} has {} instructions only", function.len());
        let loops = loops(function);
        let longest = loops.iter().max_by_key(|range| range.1 - range.0).copied();
        let (lines, kind) = match longest {
            Some((start, end)) if end - start + 1 >= MIN_INSTRUCTIONS => {
                (run(function, start..end + 1), Kind::Loop)
            }
            // A loop over rounds has its exit in its middle.
            Some((start, end)) if matches!(function[end].flow, Flow::Jump(_)) => {
                (rounds(function, start, end), Kind::Function)
            }
            _ => (run(function, 0..function.len()), Kind::Function),
        };
        ensure!(lines.len() >= MIN_INSTRUCTIONS, "{name}: {} instructions cannot be a block", lines.len());
        Ok(Unit { lines, kind })
    }

    /// Counts the instructions of the function with this name, and those among them that have these
    /// mnemonics.
    ///
    /// # Errors
    /// There is no such function.
    pub(super) fn count(
        &self,
        name: &str,
        scalar_rotates: &[&str],
        vector_rotates: &[&str],
    ) -> Result<Counts> {
        let function = self.functions.get(name).with_context(|| format!("no function {name}"))?;
        let of = |words: &[&str]| {
            let mnemonics = function.iter().filter_map(|one| one.text.split_whitespace().next());
            mnemonics.filter(|word| words.contains(word)).count()
        };
        Ok(Counts {
            instructions: function.len(),
            calls: of(&CALLS),
            scalar_rotates: of(scalar_rotates),
            vector_rotates: of(vector_rotates),
        })
    }

    /// The names that contain `part`.
    pub(super) fn names(&self, part: &str) -> Vec<&str> {
        self.functions.keys().map(String::as_str).filter(|name| name.contains(part)).collect()
    }
}

/// Innermost loops: from the target of a backward branch to that branch, without another such
/// branch in between.
fn loops(function: &[Instruction]) -> Vec<(usize, usize)> {
    let place = |address: u64| function.iter().position(|one| one.address == address);
    let back = |(end, one): (usize, &Instruction)| match one.flow {
        Flow::Jump(target) | Flow::Branch(target) if target <= one.address => Some((place(target)?, end)),
        _ => None,
    };
    let all: Vec<_> = function.iter().enumerate().filter_map(back).collect();
    let is_inner = |range: &&(usize, usize)| {
        !all.iter().any(|other| other != *range && other.0 >= range.0 && other.1 < range.1)
    };
    all.iter().filter(is_inner).copied().collect()
}

fn run(function: &[Instruction], range: std::ops::Range<usize>) -> Vec<String> {
    let body = function[range].iter().filter(|one| one.flow == Flow::Next);
    body.map(|one| one.text.clone()).collect()
}

/// The instructions of a function whose loop runs over the rounds and has its exit in its middle.
fn rounds(function: &[Instruction], start: usize, end: usize) -> Vec<String> {
    let leaves =
        |one: &Instruction| matches!(one.flow, Flow::Branch(target) if target > function[end].address);
    let exit = (start..end).find(|index| leaves(&function[*index])).unwrap_or(end);
    let mut lines = run(function, 0..start);
    for _ in 1..ROUNDS {
        lines.extend(run(function, start..end + 1));
    }
    lines.extend(run(function, start..exit + 1));
    lines.extend(run(function, end + 1..function.len()));
    lines
}

/// `0000000000001234 <bulla_blake3::kernel::portable::chunk::h0123456789abcdef>:`
fn function_head(line: &str) -> Option<String> {
    let (address, rest) = line.split_once(" <")?;
    let is_address = address.len() >= 8 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = rest.strip_suffix(">:").filter(|_| is_address)?;
    let hash = name
        .rsplit_once("::h")
        .filter(|(_, hash)| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
    Some(hash.map_or(name, |(name, _)| name).to_owned())
}

/// `12ab: vpaddd %ymm1, %ymm2, %ymm3`, separated by tabs, and perhaps with a comment.
fn instruction(line: &str) -> Option<Instruction> {
    let (address, text) = line.split_once(':')?;
    let address = u64::from_str_radix(address.trim(), 16).ok()?;
    let text = text.trim();
    let text = [" # ", "\t# ", " // ", "\t// "]
        .into_iter()
        .fold(text, |text, mark| text.split(mark).next().unwrap_or(text))
        .trim();
    if text.is_empty() || text.starts_with('<') {
        return None;
    }
    let flow = flow(text);
    // The target's name after a reference is for people.
    let text = text.split(" <").next().unwrap_or(text).trim().to_owned();
    Some(Instruction { address, text, flow })
}

/// The flow, by the mnemonics of the four architectures, which do not conflict.
fn flow(text: &str) -> Flow {
    let mnemonic = text.split_whitespace().next().unwrap_or_default();
    let mnemonic = mnemonic.trim_end_matches(['+', '-']);
    let target = text.split(" <").next().and_then(|text| {
        let last = text.rsplit([' ', '\t', ',']).next()?;
        u64::from_str_radix(last.strip_prefix("0x")?, 16).ok()
    });
    match (mnemonic, target) {
        ("jmp" | "b" | "j" | "jg", Some(target)) => Flow::Jump(target),
        (word, Some(target)) if is_branch(word) => Flow::Branch(target),
        (word, _) if is_branch(word) || is_away(word) => Flow::Away,
        _ => Flow::Next,
    }
}

fn is_branch(word: &str) -> bool {
    const POWER: [&str; 10] = ["bdnz", "bdz", "beq", "bne", "blt", "bgt", "ble", "bge", "bc", "bf"];
    const S390X: [&str; 6] = ["cij", "cgij", "clij", "clgij", "crj", "cgrj"];
    word.starts_with('j')
        || word.starts_with("b.")
        || ["cbz", "cbnz", "tbz", "tbnz"].contains(&word)
        || POWER.contains(&word)
        || S390X.iter().any(|stem| word.starts_with(stem))
        || word.starts_with("clrj")
        || word.starts_with("clgrj")
        || word.starts_with("brct")
}

/// The calls of AArch64, POWER and s390x, whose mnemonics do not conflict.
const CALLS: [&str; 6] = ["bl", "bctrl", "brasl", "bras", "basr", "bcctrl"];

fn is_away(word: &str) -> bool {
    const WORDS: [&str; 17] = [
        "bl", "blr", "br", "bctr", "bctrl", "brasl", "bras", "basr", "ud2", "udf", "brk", "trap", "tw",
        "hlt", "int3", "b", "jmp",
    ];
    word.starts_with("call") || word.starts_with("ret") || WORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function: `head` instructions, a loop of `body` instructions that ends with `back`, and
    /// `tail` instructions.
    fn text(name: &str, head: usize, body: usize, back: &str, tail: usize) -> String {
        let mut out = format!("0000000000000000 <{name}::h0123456789abcdef>:\n");
        let mut address = 0;
        let mut add = |text: String| {
            out.push_str(&format!("    {address:x}:      \t{text}\n"));
            address += 4;
        };
        (0..head).for_each(|i| add(format!("vpaddd\t%ymm{}, %ymm1, %ymm2", i % 16)));
        let start = head * 4;
        (0..body).for_each(|_| add("vpxor\t(%rip), %ymm0, %ymm2    # 0x48 <name+0x48>".to_owned()));
        add(format!("{back}\t0x{start:x} <{name}+0x{start:x}>"));
        (0..tail).for_each(|_| add("vmovdqu\t%ymm0, (%rdi)".to_owned()));
        add("retq".to_owned());
        out
    }

    #[test]
    fn the_longest_innermost_loop_is_the_block() {
        let listing = Listing::parse(&text("a::chunk", 20, 400, "jne", 9));
        let unit = listing.unit("a::chunk").unwrap();
        assert_eq!((unit.lines.len(), unit.kind), (400, Kind::Loop));
        assert_eq!(unit.lines[0], "vpxor\t(%rip), %ymm0, %ymm2");
    }

    #[test]
    fn a_loop_that_jumps_back_runs_over_rounds() {
        let mut listing = text("a::compress", 30, 50, "jmp", 9);
        // The exit is after 40 of its 50 instructions.
        let exit = format!("    {:x}:      \tje\t0x{:x} <a::compress+0x1>\n", 30 * 4 + 39 * 4 + 2, 82 * 4);
        let at = listing.match_indices('\n').nth(30 + 40).unwrap().0 + 1;
        listing.insert_str(at, &exit);
        let unit = Listing::parse(&listing).unit("a::compress").unwrap();
        assert_eq!((unit.lines.len(), unit.kind), (30 + 6 * 50 + 40 + 9, Kind::Function));
    }

    #[test]
    fn straight_code_is_taken_whole() {
        let unit = Listing::parse(&text("a::compress", 700, 3, "jne", 9)).unit("a::compress").unwrap();
        assert_eq!((unit.lines.len(), unit.kind), (712, Kind::Function));
    }

    #[test]
    fn what_cannot_be_a_block_is_refused() {
        let listing = Listing::parse(&text("a::chunk", 60, 3, "jne", 9));
        assert!(listing.unit("a::chunk").is_err() && listing.unit("a::other").is_err());
        assert_eq!(listing.names("chunk"), ["a::chunk"]);
    }

    #[test]
    fn branches_of_each_architecture_are_known() {
        for (text, expected) in [
            ("jne\t0x100 <f+0x100>", Flow::Branch(0x100)),
            ("jmp\t0x64 <f+0x64>", Flow::Jump(0x64)),
            ("b.ne\t0x40 <f+0x40>", Flow::Branch(0x40)),
            ("cbnz\tx8, 0x40 <f+0x40>", Flow::Branch(0x40)),
            ("bdnz\t0x40 <f+0x40>", Flow::Branch(0x40)),
            ("jlh\t0x40 <f+0x40>", Flow::Branch(0x40)),
            ("brctg\t%r1, 0x40 <f+0x40>", Flow::Branch(0x40)),
            ("callq\t0x0 <memcpy>", Flow::Away),
            ("ret", Flow::Away),
            ("br\t%r14", Flow::Away),
            ("adrp\tx8, 0x0 <f>", Flow::Next),
            ("larl\t%r1, 0x0 <f>", Flow::Next),
            ("bic\tv0.16b, v1.16b, v2.16b", Flow::Next),
            ("brw\t3, 4", Flow::Next),
        ] {
            assert_eq!(flow(text), expected, "{text}");
        }
    }
}
