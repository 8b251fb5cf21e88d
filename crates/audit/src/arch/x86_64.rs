//! x86-64, decoded by `iced-x86`, with the rules by which `objdump` walks over bytes.
//!
//! If bytes are not an instruction, each disassembler continues at another place, and decodes the
//! following bytes differently until they meet again. The counts match those of `objdump` only if
//! this module continues where `objdump` does.

use std::{collections::HashMap, sync::LazyLock};

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};

use super::{Decode, Token};

/// The length of the longest instruction in bytes.
const MAX_INSTRUCTION_LEN: usize = 15;

/// An assumption of `objdump`: a near branch with an operand-size prefix works as on AMD's CPUs.
const DECODER_OPTIONS: u32 = DecoderOptions::AMD;

/// Decodes one run of bytes.
pub(crate) struct Run<'b> {
    bytes: &'b [u8],
    decoder: Decoder<'b>,
    instruction: Instruction,
    at: usize,
    may_name: &'static [bool],
}

impl<'b> Decode<'b> for Run<'b> {
    const MAX_INSTRUCTION_LEN: usize = MAX_INSTRUCTION_LEN;

    fn new(bytes: &'b [u8]) -> Self {
        let decoder = Decoder::new(64, bytes, DECODER_OPTIONS);
        Self { bytes, decoder, instruction: Instruction::default(), at: 0, may_name: &MAY_NAME }
    }

    fn decode(&mut self, at: usize, stop: usize) -> Token {
        let first = self.bytes[at];
        if PREFIX[first as usize] != 0 {
            if let Some(token) = lone_prefixes(&self.bytes[at..stop]) {
                return token;
            }
            // `fwait` and the x87 instruction after it are one line, and one instruction.
            if PREFIX[first as usize] == WAIT && at + 1 < stop {
                let token = self.decode(at + 1, stop);
                return Token { len: token.len + 1, ..token };
            }
        }
        if self.at != at {
            // It fails only beyond the end.
            let _ = self.decoder.set_position(at);
        }
        self.decoder.decode_out(&mut self.instruction);
        let end = self.decoder.position();
        self.at = end;
        if end > stop {
            return cut_off(first);
        }
        if self.instruction.is_invalid() {
            let token = self.bad(at, stop);
            self.at = usize::MAX;
            return token;
        }
        if is_undocumented(self.instruction.code()) {
            return Token::bad((end - at) as u8);
        }
        let widths =
            if self.may_name[self.instruction.code() as usize] { registers(&self.instruction) } else { 0 };
        Token { len: (end - at) as u8, bad: false, widths, op: self.instruction.mnemonic() as u16 }
    }
}

impl Run<'_> {
    /// The length of the bytes at `at`, which are not an instruction.
    fn bad(&self, at: usize, stop: usize) -> Token {
        let bytes = &self.bytes[at..stop];
        if bytes.len() < MAX_INSTRUCTION_LEN
            && self.decoder.last_error() == iced_x86::DecoderError::NoMoreBytes
        {
            return cut_off(bytes[0]);
        }
        let prefixes = bytes
            .iter()
            .take(MAX_INSTRUCTION_LEN - 1)
            .take_while(|byte| PREFIX[**byte as usize] != 0)
            .count();
        let opcode = &bytes[prefixes..];
        // `objdump` shows `lock` where the CPU forbids it, and segment registers that do not exist.
        if !matches!(opcode.first(), Some(0x62 | 0x8f | 0xc4 | 0xc5)) {
            let mut lenient = Decoder::new(64, bytes, DECODER_OPTIONS | DecoderOptions::NO_INVALID_CHECK);
            if !lenient.decode().is_invalid() {
                return Token { len: lenient.position() as u8, bad: false, widths: 0, op: 0 };
            }
        }
        // REX before a vector prefix means nothing, and is shown separately.
        if prefixes == 1
            && PREFIX[bytes[0] as usize] == REX
            && matches!(opcode.first(), Some(0x62 | 0xc4 | 0xc5))
        {
            let rest = Run::new(opcode).decode(0, opcode.len());
            return Token { len: rest.len + 1, ..rest };
        }
        let len = prefixes + opcode_len(opcode);
        let bad = !matches!(opcode.first(), Some(0x8c | 0x8e));
        if len > bytes.len() { cut_off(bytes[0]) } else { Token { len: len as u8, bad, widths: 0, op: 0 } }
    }
}

/// If the end cuts off an instruction, only its first byte is shown: as bad, or as a prefix if it
/// is one.
fn cut_off(first: u8) -> Token {
    Token { bad: PREFIX[first as usize] == 0, ..Token::bad(1) }
}

/// The number of bytes that determine which instruction this would be. Intel SDM, volume 2, chapter
/// 2; AMD APM, volume 3, section 1.9 (XOP).
fn opcode_len(bytes: &[u8]) -> usize {
    let second = bytes.get(1).copied().unwrap_or(0);
    match bytes.first() {
        Some(0x0f) if matches!(second, 0x38 | 0x3a) => 3,
        Some(0x0f) if second != 0x0f => 2,
        Some(0xc5) => 3,
        // The byte after the first one of these gives the opcode's map.
        Some(0xc4) if matches!(second & 0x1f, 1..=3) => 4,
        Some(0x8f) if matches!(second & 0x1f, 8..=10) => 4,
        Some(0x62) if matches!(second & 0xf, 1 | 2 | 3 | 5 | 6) => {
            if bytes.get(2).is_some_and(|third| third & 4 != 0) { 5 } else { 2 }
        }
        Some(0x8c | 0x8e | 0xd8..=0xdf) => 1 + operand_len(&bytes[1..]),
        _ => 1,
    }
}

/// The length of a ModRM operand in bytes.
fn operand_len(bytes: &[u8]) -> usize {
    let Some(modrm) = bytes.first() else { return 1 };
    let sib = usize::from(modrm & 7 == 4);
    match modrm >> 6 {
        0 if modrm & 7 == 5 => 5,
        0 if sib == 1 && bytes.get(1).is_some_and(|sib| sib & 7 == 5) => 6,
        0 => 1 + sib,
        1 => 2 + sib,
        2 => 5 + sib,
        _ => 1,
    }
}

/// Whether it is a copy of an x87 instruction that CPUs have but manuals omit; `objdump` does not
/// know them.
fn is_undocumented(code: Code) -> bool {
    matches!(
        code,
        Code::Fstpnce_sti
            | Code::Fstp_sti_DFD0
            | Code::Fstp_sti_DFD8
            | Code::Fxch_st0_sti_DDC8
            | Code::Fxch_st0_sti_DFC8
            | Code::Fcom_st0_sti_DCD0
            | Code::Fcomp_st0_sti_DCD8
            | Code::Fcomp_st0_sti_DED0
    )
}

/// The value of `fwait` in [`PREFIX`].
const WAIT: u8 = 3;

/// The value of REX prefixes in [`PREFIX`].
const REX: u8 = 2;

/// 1 for legacy prefixes, [`REX`], or [`WAIT`].
static PREFIX: [u8; 256] = {
    let mut table = [0; 256];
    let legacy = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3];
    let mut i = 0;
    while i < legacy.len() {
        table[legacy[i]] = 1;
        i += 1;
    }
    let mut rex = 0x40;
    while rex < 0x50 {
        table[rex] = REX;
        rex += 1;
    }
    table[0x9b] = WAIT;
    table
};

/// Prefixes that are shown alone: REX has no effect if another prefix follows, and `fwait` combines
/// only with x87 instructions.
fn lone_prefixes(bytes: &[u8]) -> Option<Token> {
    let lone = |len: usize| Some(Token { len: len as u8, bad: false, widths: 0, op: 0 });
    let kind = |byte: &u8| PREFIX[*byte as usize];
    if kind(&bytes[0]) == WAIT {
        let opcode = bytes[1..].iter().find(|byte| kind(byte) == 0);
        let is_x87 = kind(bytes.get(1)?) != WAIT && opcode.is_some_and(|byte| (0xd8..=0xdf).contains(byte));
        return if is_x87 { None } else { lone(1) };
    }
    let prefixes = bytes.iter().take(MAX_INSTRUCTION_LEN).take_while(|byte| kind(byte) != 0).count();
    let void = (1..prefixes).find(|i| kind(&bytes[i - 1]) == REX || kind(&bytes[*i]) == WAIT)?;
    lone(void + usize::from(kind(&bytes[void - 1]) != REX))
}

/// The vector registers that the instruction names, as in [`Token::widths`].
fn registers(instruction: &Instruction) -> u8 {
    let mut widths = 0;
    for i in 0..instruction.op_count() {
        widths |= match instruction.op_kind(i) {
            OpKind::Register => width(instruction.op_register(i)),
            OpKind::Memory => width(instruction.memory_index()),
            _ => 0,
        };
    }
    widths
}

fn width(register: Register) -> u8 {
    let number = register as u32;
    if number.wrapping_sub(Register::XMM0 as u32) < 32 {
        1
    } else if number.wrapping_sub(Register::YMM0 as u32) < 32 {
        2
    } else if number.wrapping_sub(Register::ZMM0 as u32) < 32 {
        4
    } else {
        0
    }
}

/// The forms of instructions that may name a vector register: the decoder's names of forms list the
/// operands.
static MAY_NAME: LazyLock<Vec<bool>> = LazyLock::new(|| {
    let names_one = |code: Code| {
        let name = format!("{code:?}");
        ["xmm", "ymm", "zmm", "_vm32", "_vm64"].iter().any(|part| name.contains(part))
    };
    Code::values().map(names_one).collect()
});

/// The mnemonics of the forms in [`MAY_NAME`].
#[cfg(test)]
pub(super) fn vector_mnemonics() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<_> = Code::values()
        .filter(|code| MAY_NAME[*code as usize])
        .map(|code| mnemonic(code.mnemonic() as u16))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter()
}

static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| Mnemonic::values().map(|mnemonic| format!("{mnemonic:?}").to_lowercase()).collect());

static NUMBERS: LazyLock<HashMap<&'static str, u16>> =
    LazyLock::new(|| NAMES.iter().enumerate().map(|(i, name)| (name.as_str(), i as u16)).collect());

pub(super) fn mnemonic(op: u16) -> &'static str {
    &NAMES[op as usize]
}

pub(super) fn op(mnemonic: &str) -> Option<u16> {
    NUMBERS.get(mnemonic).copied()
}
