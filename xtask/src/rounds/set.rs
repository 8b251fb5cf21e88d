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
    /// How many steps each of the four streams of quarter rounds runs behind the first one. While some streams rotate, others add: the units that
    /// rotate and those that add are always busy.
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
    Set { name: "avx512", register: "zmm", bytes: 64, kind: Kind::Rotates, lag: [0, 0, 2, 3] },
    Set { name: "avx2", register: "ymm", bytes: 32, kind: Kind::ThreeOperands, lag: [0, 0, 3, 3] },
    Set { name: "sse41", register: "xmm", bytes: 16, kind: Kind::TwoOperands, lag: [0, 0, 3, 3] },
];

/// A quarter round: the words `[a, b, c, d]` of the state, and the two words of the message.
pub(super) struct Quarter {
    pub(super) words: [usize; 4],
    pub(super) message: [usize; 2],
    /// If a is v0: the word of the message that is added to it next.
    pub(super) next_of_v0: Option<usize>,
    /// Whether a is v0 before it has been in memory.
    pub(super) begins: bool,
}

impl Set {
    /// Whether the state takes all registers, so that one word must be in memory.
    pub(super) fn has_few_registers(&self) -> bool {
        self.kind != Kind::Rotates
    }

    /// The fourteen steps of a quarter round. Steps of several quarter rounds may follow each other in any order that respects the words of the state.
    ///
    /// With few registers, v0 is in memory: it is idle while rotates run, which need its register. In memory, the next word of the message is already
    /// added to it, so that nothing waits for the store.
    pub(super) fn quarter(&self, quarter: &Quarter) -> [Vec<String>; 14] {
        let [a, b, c, d] = quarter.words.map(|word| self.name(word));
        let [x, y] = quarter.message.map(|word| self.message_word(word));
        let rotate = |word: &str, by| self.rotate(word, by);
        let [mut add_x, mut add_b, mut xor_d] =
            [self.add(&a, &x), self.add(&a, &b), self.xor(&d, &a)].map(|step| vec![step]);
        let [mut add_y, mut add_b_again, mut xor_d_again] =
            [self.add(&a, &y), self.add(&a, &b), self.xor(&d, &a)].map(|step| vec![step]);
        if self.has_few_registers() && quarter.words[0] == 0 {
            [add_x, add_y] = [vec![], vec![]];
            [xor_d, xor_d_again] = [vec![], vec![]];
            let take = if quarter.begins { vec![self.add(&self.name(0), &b)] } else { self.take_v0(&b) };
            add_b = self.with_v0(take, &d, Some(&y));
            let next = quarter.next_of_v0.map(|word| self.message_word(word));
            add_b_again = self.with_v0(self.take_v0(&b), &d, next.as_deref());
        }
        let add_d = || vec![self.add(&c, &d)];
        let xor_c = || vec![self.xor(&b, &c)];
        [
            add_x,
            add_b,
            xor_d,
            rotate(&d, 16),
            add_d(),
            xor_c(),
            rotate(&b, 12),
            add_y,
            add_b_again,
            xor_d_again,
            rotate(&d, 8),
            add_d(),
            xor_c(),
            rotate(&b, 7),
        ]
    }

    /// What comes before the rounds: the first word of the message is added to v0.
    pub(super) fn before(&self) -> Vec<String> {
        if !self.has_few_registers() {
            return vec![];
        }
        vec![self.add(&self.name(0), &self.message_word(0))]
    }

    /// What comes after the rounds.
    pub(super) fn after(&self) -> Vec<String> {
        if !self.has_few_registers() {
            return vec![];
        }
        vec![self.load_v0()]
    }

    /// The instructions that transpose the message of the next block, in pieces: 8 bytes of a lane are loaded and stored as two words. Integer units
    /// do this, which are idle otherwise. Four lanes take turns, so that a vector of words is complete soon.
    pub(super) fn message(&self) -> Vec<Vec<String>> {
        let mut pieces = Vec::new();
        for first in (0..self.bytes / 4).step_by(LANES) {
            for pair in 0..8 {
                for i in 0..LANES {
                    let (lane, mut piece) = (first + i, vec![]);
                    if pair == 0 {
                        piece.push(format!("mov {{lane{i}}}, qword ptr [{{pointers}} + {}]", 8 * lane));
                        piece.push(format!("prefetcht0 byte ptr [{{lane{i}}} + {{ahead}}]"));
                    }
                    let store = |word: usize| {
                        format!("mov dword ptr [{{next}} + {}], {{words:e}}", self.bytes * word + 4 * lane)
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

    /// Rotates right. Register 0 is spare if there is no instruction for it.
    fn rotate(&self, word: &str, by: usize) -> Vec<String> {
        let spare = self.name(0);
        match (&self.kind, by) {
            (Kind::Rotates, _) => vec![format!("vprord {word}, {word}, {by}")],
            (_, 16) => vec![self.replace("pshufb", word, &self.memory("shuffles", 0))],
            (_, 8) => vec![self.replace("pshufb", word, &self.memory("shuffles", 32))],
            (Kind::ThreeOperands, _) => vec![
                format!("vpsrld {spare}, {word}, {by}"),
                format!("vpslld {word}, {word}, {}", 32 - by),
                self.replace("por", word, &spare),
            ],
            (Kind::TwoOperands, _) => vec![
                format!("movdqa {spare}, {word}"),
                format!("psrld {spare}, {by}"),
                format!("pslld {word}, {}", 32 - by),
                self.replace("por", word, &spare),
            ],
        }
    }

    /// The sum of v0 and b, into the register of v0.
    fn take_v0(&self, b: &str) -> Vec<String> {
        match self.kind {
            Kind::TwoOperands => vec![self.load_v0(), self.add(&self.name(0), b)],
            _ => vec![format!("vpaddd {}, {b}, {}", self.name(0), self.memory("spill", 0))],
        }
    }

    /// Takes v0, changes d by it, and leaves it in memory, plus its next word of the message.
    fn with_v0(&self, take: Vec<String>, d: &str, message: Option<&str>) -> Vec<String> {
        let v0 = self.name(0);
        let mut step = take;
        step.push(self.xor(d, &v0));
        step.extend(message.map(|word| self.add(&v0, word)));
        step.push(self.store_v0());
        step
    }

    fn load_v0(&self) -> String {
        format!("{} {}, {}", self.copy(), self.name(0), self.memory("spill", 0))
    }

    fn store_v0(&self) -> String {
        format!("{} {}, {}", self.copy(), self.memory("spill", 0), self.name(0))
    }

    fn copy(&self) -> &'static str {
        if self.kind == Kind::TwoOperands { "movdqa" } else { "vmovdqa" }
    }
}
