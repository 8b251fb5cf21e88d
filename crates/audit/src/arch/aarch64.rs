//! AArch64, decoded by `disarm64`.

use std::{
    collections::HashMap,
    sync::{LazyLock, RwLock},
};

use disarm64::{InsnOpcode as _, Opcode, decoder};
use disarm64_defn::InsnOperandClass;

use super::{Decode, Token};

/// Every instruction has this many bytes.
const INSTRUCTION_LEN: usize = 4;

/// Decodes one run of bytes. It remembers the numbers of mnemonics, so that threads need not wait
/// for each other.
pub(crate) struct Run<'b> {
    bytes: &'b [u8],
    numbers: HashMap<u16, u16>,
}

impl<'b> Decode<'b> for Run<'b> {
    const MAX_INSTRUCTION_LEN: usize = INSTRUCTION_LEN;

    fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, numbers: HashMap::new() }
    }

    fn decode(&mut self, at: usize, stop: usize) -> Token {
        let bytes = &self.bytes[at..stop.min(at + INSTRUCTION_LEN)];
        let word = bytes.try_into().ok().map(u32::from_le_bytes);
        let Some(opcode) = word.and_then(decoder::decode) else { return Token::bad(bytes.len() as u8) };
        let widths = registers(&opcode);
        let op = if widths == 0 { 0 } else { self.number(&opcode) };
        Token { len: INSTRUCTION_LEN as u8, bad: false, widths, op }
    }
}

impl Run<'_> {
    fn number(&mut self, opcode: &Opcode) -> u16 {
        *self.numbers.entry(opcode.id() as u16).or_insert_with(|| intern(opcode.definition().mnemonic))
    }
}

const FP: u8 = 1;
const NEON: u8 = 2;
const SVE: u8 = 4;

/// The vector registers that the instruction names, as in [`Token::widths`].
fn registers(opcode: &Opcode) -> u8 {
    let mut widths = 0;
    for operand in opcode.definition().operands {
        widths |= match operand.class {
            InsnOperandClass::SIMD_REG | InsnOperandClass::SIMD_ELEMENT | InsnOperandClass::SIMD_REGLIST => {
                NEON
            }
            InsnOperandClass::SVE_REG
            | InsnOperandClass::SVE_REGLIST
            | InsnOperandClass::PRED_REG
            | InsnOperandClass::ZA_ACCESS => SVE,
            InsnOperandClass::FP_REG | InsnOperandClass::SISD_REG => {
                if is_quad(opcode.bits()) {
                    NEON
                } else {
                    FP
                }
            }
            _ => 0,
        };
    }
    widths
}

/// Whether a load or store of one floating-point register has all 128 bits. Arm ARM, C4.1: loads
/// and stores. Everything else with a scalar register has at most 64 bits, except for the
/// instructions of the cryptographic extension, which say `q` and mean vectors.
fn is_quad(bits: u32) -> bool {
    let size = bits >> 30;
    let opc = (bits >> 22) & 3;
    match (bits >> 24) & 0b11_1111 {
        // Literals and pairs have `opc` where others have the size.
        0b01_1100 => size == 2,
        0b10_1100 | 0b10_1101 => size == 2,
        // One register, by any way of addressing.
        0b11_1100 | 0b11_1101 => size == 0 && opc >= 2,
        0b01_1110 => (bits >> 21) & 1 == 0 && is_crypto(bits),
        _ => false,
    }
}

/// Three-register SHA: `sha1c q, s, v` and the like. Arm ARM, C4.1: Cryptographic three-register
/// SHA.
fn is_crypto(bits: u32) -> bool {
    bits & 0xff20_8c00 == 0x5e00_0000
}

/// Mnemonics by their numbers, and the other way round.
#[derive(Default)]
struct Numbers {
    of: HashMap<String, u16>,
    names: Vec<String>,
}

static NUMBERS: LazyLock<RwLock<Numbers>> = LazyLock::new(RwLock::default);

/// The number of a mnemonic. A new mnemonic gets a new number.
pub(super) fn intern(mnemonic: &str) -> u16 {
    let mut numbers = NUMBERS.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(number) = numbers.of.get(mnemonic) {
        return *number;
    }
    let number = numbers.names.len() as u16;
    numbers.names.push(mnemonic.to_owned());
    numbers.of.insert(mnemonic.to_owned(), number);
    number
}

pub(super) fn mnemonic(number: u16) -> String {
    let numbers = NUMBERS.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    numbers.names.get(usize::from(number)).cloned().unwrap_or_default()
}
