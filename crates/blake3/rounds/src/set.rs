//! The instruction sets, and their instructions for a quarter round.

/// How many lanes of the message take turns.
const LANES: usize = 4;

/// An instruction set.
pub(super) struct Set {
    /// The beginning of its files' names.
    pub(super) name: &'static str,
    /// The registers' names, without their numbers.
    register: &'static str,
    /// The bytes of a register.
    bytes: usize,
    kind: Kind,
    /// How many groups of lanes go side by side, each with its own registers.
    pub(super) groups: usize,
    /// How many steps each of the four streams of quarter rounds runs behind the first one. While
    /// some streams rotate, others add: the units that rotate and those that add are always busy.
    pub(super) lag: [usize; 4],
}

#[derive(PartialEq)]
enum Kind {
    /// AVX-512: a rotate instruction, and 32 registers.
    Rotates,
    /// AVX2: sixteen registers, and no rotate.
    ThreeOperands,
    /// SSE4.1: the same, and the result replaces an operand.
    TwoOperands,
}

pub(super) static SETS: &[Set] = &[
    Set { name: "avx512", register: "zmm", bytes: 64, kind: Kind::Rotates, groups: 1, lag: [0, 0, 2, 3] },
    Set { name: "avx512_two", register: "zmm", bytes: 64, kind: Kind::Rotates, groups: 2, lag: [0, 0, 0, 0] },
    Set { name: "avx2", register: "ymm", bytes: 32, kind: Kind::ThreeOperands, groups: 1, lag: [0, 0, 3, 3] },
    Set { name: "sse41", register: "xmm", bytes: 16, kind: Kind::TwoOperands, groups: 1, lag: [0, 0, 3, 3] },
];

/// A quarter round: the words `[a, b, c, d]` of the state, and the two words of the message.
pub(super) struct Quarter {
    /// The number of the group.
    pub(super) group: usize,
    pub(super) words: [usize; 4],
    pub(super) message: [usize; 2],
    pub(super) c: C,
    /// The word whose register is spare while this quarter round rotates, if registers are few.
    pub(super) spare: usize,
}

/// Where the word c of a quarter round is, if registers are few.
#[derive(Clone, Copy)]
pub(super) enum C {
    /// In its register.
    Register,
    /// In memory before, in its register from then on.
    Back,
    /// In its register before, in memory from then on.
    Away,
}

/// The word c of the first stream in its columns and in its diagonals.
pub(super) const SPARE: [usize; 2] = [8, 10];

impl Set {
    /// Whether the state takes all registers, so that one word must be in memory.
    pub(super) fn has_few_registers(&self) -> bool {
        self.kind != Kind::Rotates
    }

    /// The fourteen steps of a quarter round. Steps of several quarter rounds may follow each other
    /// in any order that respects the words of the state, as long as no stream is more than five
    /// steps behind the first one.
    ///
    /// With few registers, the word c of the first stream is in memory: it is idle while rotates
    /// run, which need its register.
    pub(super) fn quarter(&self, quarter: &Quarter) -> [Vec<String>; 14] {
        let [a, b, c, d] = quarter.words.map(|word| self.name(16 * quarter.group + word));
        let [x, y] = quarter.message.map(|word| self.message_word(16 * quarter.group + word));
        let spare = self.name(quarter.spare);
        let rotate = |word: &str, by| self.rotate(word, by, &spare);
        let [add_d, add_d_again] = self.add_d(quarter, &c, &d);
        let xor_c = || {
            let mut step = vec![self.xor(&b, &c)];
            if self.has_few_registers() && matches!(quarter.c, C::Away) {
                step.push(self.store(quarter.words[2]));
            }
            step
        };
        [
            vec![self.add(&a, &x)],
            vec![self.add(&a, &b)],
            vec![self.xor(&d, &a)],
            rotate(&d, 16),
            add_d,
            xor_c(),
            rotate(&b, 12),
            vec![self.add(&a, &y)],
            vec![self.add(&a, &b)],
            vec![self.xor(&d, &a)],
            rotate(&d, 8),
            add_d_again,
            xor_c(),
            rotate(&b, 7),
        ]
    }

    /// The two sums of c and d in a quarter round.
    fn add_d(&self, quarter: &Quarter, c: &str, d: &str) -> [Vec<String>; 2] {
        let word = quarter.words[2];
        let in_register = vec![self.add(c, d)];
        let from_memory = match self.kind {
            Kind::TwoOperands => vec![self.load(word), self.add(c, d)],
            _ => vec![format!("vpaddd {c}, {d}, {}", self.spilled(word))],
        };
        match quarter.c {
            _ if !self.has_few_registers() => [in_register.clone(), in_register],
            C::Register => [in_register.clone(), in_register],
            C::Back => [from_memory, in_register],
            C::Away => [in_register, from_memory],
        }
    }

    /// What comes after the rounds: the last word that is in memory comes back.
    pub(super) fn after(&self, last: usize) -> Vec<String> {
        if self.has_few_registers() { vec![self.load(last)] } else { vec![] }
    }

    /// The instructions that transpose the message of the next block, in pieces: 8 bytes of a lane
    /// are loaded and stored as two words. Integer units do this, which are idle otherwise. Four
    /// lanes take turns, so that a vector of words is complete soon.
    pub(super) fn message(&self) -> Vec<Vec<String>> {
        let mut pieces = Vec::new();
        let lanes = self.bytes / 4;
        for first in (0..self.groups * lanes).step_by(LANES) {
            for pair in 0..8 {
                for i in 0..LANES {
                    let (lane, mut piece) = (first + i, vec![]);
                    if pair == 0 {
                        piece.push(format!("mov {{lane{i}}}, qword ptr [{{pointers}} + {}]", 8 * lane));
                        piece.push(format!("prefetcht0 byte ptr [{{lane{i}}} + {{ahead}}]"));
                    }
                    let store = |word: usize| {
                        let vector = 16 * (lane / lanes) + word;
                        let at = self.bytes * vector + 4 * (lane % lanes);
                        format!("mov dword ptr [{{next}} + {at}], {{words:e}}")
                    };
                    piece.push(format!("mov {{words}}, qword ptr [{{lane{i}}} + {{offset}} + {}]", 8 * pair));
                    piece.push(store(2 * pair));
                    piece.push("shr {words}, 32".to_owned());
                    piece.push(store(2 * pair + 1));
                    pieces.push(piece);
                }
            }
        }
        pieces
    }

    fn name(&self, register: usize) -> String {
        format!("{}{register}", self.register)
    }

    fn memory(&self, base: &str, at: usize) -> String {
        format!("{}word ptr [{{{base}}} + {at}]", self.register)
    }

    fn message_word(&self, word: usize) -> String {
        self.memory("message", self.bytes * word)
    }

    fn add(&self, to: &str, value: &str) -> String {
        self.replace("paddd", to, value)
    }

    fn xor(&self, to: &str, value: &str) -> String {
        self.replace(if self.kind == Kind::Rotates { "pxord" } else { "pxor" }, to, value)
    }

    /// An instruction whose result replaces its first operand.
    fn replace(&self, name: &str, to: &str, value: &str) -> String {
        match self.kind {
            Kind::TwoOperands => format!("{name} {to}, {value}"),
            _ => format!("v{name} {to}, {to}, {value}"),
        }
    }

    /// Rotates right. The register `spare` is spare if there is no instruction for it.
    fn rotate(&self, word: &str, by: usize, spare: &str) -> Vec<String> {
        match (&self.kind, by) {
            (Kind::Rotates, _) => vec![format!("vprord {word}, {word}, {by}")],
            (_, 16) => vec![self.replace("pshufb", word, &self.memory("shuffles", 0))],
            (_, 8) => vec![self.replace("pshufb", word, &self.memory("shuffles", 32))],
            (Kind::ThreeOperands, _) => vec![
                format!("vpsrld {spare}, {word}, {by}"),
                format!("vpslld {word}, {word}, {}", 32 - by),
                self.replace("por", word, spare),
            ],
            (Kind::TwoOperands, _) => vec![
                format!("movdqa {spare}, {word}"),
                format!("psrld {spare}, {by}"),
                format!("pslld {word}, {}", 32 - by),
                self.replace("por", word, spare),
            ],
        }
    }

    fn load(&self, word: usize) -> String {
        format!("{} {}, {}", self.copy(), self.name(word), self.spilled(word))
    }

    fn store(&self, word: usize) -> String {
        format!("{} {}, {}", self.copy(), self.spilled(word), self.name(word))
    }

    /// The memory of a word c: there is room for two, one of a column and one of a diagonal.
    fn spilled(&self, word: usize) -> String {
        self.memory("spill", if word == SPARE[0] { 0 } else { self.bytes })
    }

    fn copy(&self) -> &'static str {
        if self.kind == Kind::TwoOperands { "movdqa" } else { "vmovdqa" }
    }
}
