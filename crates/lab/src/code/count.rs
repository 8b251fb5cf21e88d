//! Counts the instructions of a function of x86-64 machine code.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register, UsedMemory,
};

use super::image::{Function, Image};

/// Counts of a function's instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of instructions, without padding.
    pub instructions: u64,
    /// Bytes of machine code, padding included.
    pub bytes: u64,
    /// Vector instructions that write the stack, through the stack pointer or a frame pointer.
    pub stack_stores: u64,
    /// Vector instructions that read the stack, including operands folded into arithmetic.
    pub stack_loads: u64,
    /// Copies of whole vector registers.
    pub moves: u64,
    /// Instructions with a register of 512 bits.
    pub zmm: u64,
    /// Instructions whose widest register has 256 bits.
    pub ymm: u64,
    /// Instructions whose widest vector register has 128 bits.
    pub xmm: u64,
    /// The names of called functions, including targets of jumps out of the function.
    pub calls: BTreeSet<String>,
    /// The CPU features that it needs, each with an instruction that needs it.
    pub needs: BTreeMap<CpuidFeature, Mnemonic>,
    /// Instructions that the decoder does not know. If there are any, the counts are meaningless.
    pub undecoded: u64,
}

impl Counts {
    /// Counts the instructions of `function`, a function of `image`.
    pub fn of(function: &Function, image: &Image) -> Self {
        let mut counts = Self { bytes: function.code.len() as u64, ..Self::default() };
        let mut decoder = Decoder::with_ip(64, &function.code, function.address, DecoderOptions::NONE);
        let mut info = InstructionInfoFactory::new();
        let mut instruction = Instruction::default();
        let mut has_frame_pointer = false;
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            match instruction.mnemonic() {
                Mnemonic::INVALID => counts.undecoded += 1,
                Mnemonic::Nop => continue,
                _ => {}
            }
            counts.instructions += 1;
            for feature in instruction.cpuid_features() {
                counts.needs.entry(*feature).or_insert(instruction.mnemonic());
            }
            has_frame_pointer |= sets_frame_pointer(&instruction);
            let memory = info.info(&instruction).used_memory();
            counts.add_vector(&instruction, memory, has_frame_pointer);
            let constants = decoder.get_constant_offsets(&instruction);
            let fields = [constants.immediate_offset(), constants.displacement_offset()];
            let reference =
                fields.iter().find_map(|at| function.references.get(&(instruction.ip() + *at as u64)));
            counts.calls.extend(callee(&instruction, reference, function, image));
        }
        counts
    }

    fn add_vector(&mut self, instruction: &Instruction, memory: &[UsedMemory], has_frame_pointer: bool) {
        let registers = registers(instruction);
        match () {
            () if registers.iter().any(|register| register.is_zmm()) => self.zmm += 1,
            () if registers.iter().any(|register| register.is_ymm()) => self.ymm += 1,
            () if registers.iter().any(|register| register.is_xmm()) => self.xmm += 1,
            () => return,
        }
        self.moves += u64::from(is_copy(instruction));
        let on_stack = |used: &&UsedMemory| {
            used.base() == Register::RSP || (has_frame_pointer && used.base() == Register::RBP)
        };
        for used in memory.iter().filter(on_stack) {
            match used.access() {
                OpAccess::Read | OpAccess::CondRead => self.stack_loads += 1,
                OpAccess::Write | OpAccess::CondWrite => self.stack_stores += 1,
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                    self.stack_loads += 1;
                    self.stack_stores += 1;
                }
                OpAccess::None | OpAccess::NoMemAccess => {}
            }
        }
    }

    /// Instructions with vector registers of any width.
    pub fn vector(&self) -> u64 {
        self.zmm + self.ymm + self.xmm
    }
}

fn registers(instruction: &Instruction) -> Vec<Register> {
    let operands = 0..instruction.op_count();
    operands
        .filter(|i| instruction.op_kind(*i) == OpKind::Register)
        .map(|i| instruction.op_register(i))
        .collect()
}

/// Whether the frame pointer register is a frame pointer from here on, rather than an ordinary
/// register.
fn sets_frame_pointer(instruction: &Instruction) -> bool {
    let from_stack_pointer = match instruction.mnemonic() {
        Mnemonic::Mov => instruction.op1_register() == Register::RSP,
        Mnemonic::Lea => instruction.memory_base() == Register::RSP,
        _ => false,
    };
    from_stack_pointer && instruction.op0_register() == Register::RBP
}

/// Whether the instruction only copies one vector register to another. With a mask it would select.
fn is_copy(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    let moves = matches!(
        instruction.mnemonic(),
        Movdqa
            | Movdqu
            | Movaps
            | Movups
            | Movapd
            | Movupd
            | Vmovdqa
            | Vmovdqu
            | Vmovaps
            | Vmovups
            | Vmovapd
            | Vmovupd
            | Vmovdqa32
            | Vmovdqa64
            | Vmovdqu8
            | Vmovdqu16
            | Vmovdqu32
            | Vmovdqu64
    );
    moves && !instruction.has_op_mask() && registers(instruction).len() == 2
}

/// The name of the function that the instruction calls, if it leaves this function. `reference` is
/// the name that the linker will fill in.
///
/// A jump through a register, or through memory with an index, uses a table of the function itself:
/// nothing else makes such a jump.
fn callee(
    instruction: &Instruction,
    reference: Option<&String>,
    function: &Function,
    image: &Image,
) -> Option<String> {
    let end = function.address + function.code.len() as u64;
    let indirect = || Some(reference.cloned().unwrap_or_else(|| format!("a pointer: {}", show(instruction))));
    match instruction.flow_control() {
        FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            let target = instruction.near_branch_target();
            let within = (function.address..end).contains(&target);
            let is_call = instruction.flow_control() == FlowControl::Call;
            match reference {
                Some(name) => Some(name.clone()),
                None if within && !is_call => None,
                None => Some(image.names.get(&target).cloned().unwrap_or_else(|| format!("{target:#x}"))),
            }
        }
        FlowControl::IndirectCall => indirect(),
        FlowControl::IndirectBranch if is_fixed_pointer(instruction) => indirect(),
        _ => None,
    }
}

fn is_fixed_pointer(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Memory && instruction.memory_index() == Register::None
}

fn show(instruction: &Instruction) -> String {
    format!("{:?} at {:#x}", instruction.mnemonic(), instruction.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x1000;

    /// Counts the instructions of a function at [`AT`] that refers to `memset` at the byte
    /// `reference`.
    fn count(code: &[&[u8]], reference: Option<u64>) -> Counts {
        let references = reference.into_iter().map(|at| (AT + at, "memset".to_owned())).collect();
        let function = Function { name: "f".to_owned(), address: AT, code: code.concat(), references };
        Counts::of(&function, &Image::default())
    }

    fn calls(code: &[u8], reference: Option<u64>) -> Vec<String> {
        count(&[code], reference).calls.into_iter().collect()
    }

    const STORE_TO_RSP: &[u8] = b"\xc5\xfd\x7f\x44\x24\x20"; // vmovdqa [rsp + 32], ymm0
    const ADD_FROM_RSP: &[u8] = b"\xc5\xfd\xfe\x44\x24\x20"; // vpaddd ymm0, ymm0, [rsp + 32]
    const STORE_TO_RBP: &[u8] = b"\xc5\xfd\x7f\x45\x00"; // vmovdqa [rbp], ymm0
    const STORE_TO_RDI: &[u8] = b"\xc5\xfd\x7f\x07"; // vmovdqa [rdi], ymm0
    const FRAME: &[u8] = b"\x48\x89\xe5"; // mov rbp, rsp

    #[test]
    fn stores_to_the_stack_are_counted() {
        let counts = count(&[STORE_TO_RSP, STORE_TO_RDI], None);
        assert_eq!((counts.stack_stores, counts.stack_loads), (1, 0));
    }

    #[test]
    fn loads_folded_into_arithmetic_are_counted() {
        let counts = count(&[ADD_FROM_RSP], None);
        assert_eq!((counts.stack_stores, counts.stack_loads), (0, 1));
    }

    #[test]
    fn the_frame_pointer_points_to_the_stack_once_it_is_one() {
        assert_eq!(count(&[STORE_TO_RBP], None).stack_stores, 0);
        assert_eq!(count(&[FRAME, STORE_TO_RBP], None).stack_stores, 1);
    }

    #[test]
    fn copies_of_registers_are_counted() {
        let copy: &[u8] = b"\xc5\xfd\x6f\xc8"; // vmovdqa ymm1, ymm0
        let select: &[u8] = b"\x62\xf1\x7d\x49\x6f\xc8"; // vmovdqa32 zmm1{k1}, zmm0
        assert_eq!(count(&[copy, select, STORE_TO_RDI], None).moves, 1);
    }

    #[test]
    fn instructions_count_by_their_widest_register() {
        let zmm: &[u8] = b"\x62\xf1\x7d\x48\xfe\xc0"; // vpaddd zmm0, zmm0, zmm0
        let extract: &[u8] = b"\xc4\xe3\x7d\x39\xc0\x01"; // vextracti128 xmm0, ymm0, 1
        let xmm: &[u8] = b"\x66\x0f\xfe\xc1"; // paddd xmm0, xmm1
        let counts = count(&[zmm, extract, xmm, FRAME], None);
        assert_eq!((counts.zmm, counts.ymm, counts.xmm, counts.instructions), (1, 1, 1, 4));
        assert!(
            counts.needs.contains_key(&CpuidFeature::AVX512F)
                && counts.needs.contains_key(&CpuidFeature::AVX2)
        );
    }

    #[test]
    fn padding_is_no_instruction() {
        let counts = count(&[b"\x90", b"\x0f\x1f\x40\x00", b"\xc3"], None);
        assert_eq!((counts.instructions, counts.bytes), (1, 6));
    }

    #[test]
    fn calls_and_jumps_out_are_calls() {
        assert_eq!(calls(b"\xe8\x00\x00\x00\x00", Some(1)), ["memset"], "call memset");
        assert_eq!(calls(b"\xff\x15\x00\x00\x00\x00", Some(2)), ["memset"], "call [rip]");
        assert_eq!(calls(b"\xe9\x00\x00\x00\x00", Some(1)), ["memset"], "jmp memset");
        assert_eq!(calls(b"\x0f\x84\x00\x00\x00\x00", Some(2)), ["memset"], "je memset");
        assert_eq!(calls(b"\xeb\x10", None), ["0x1012"], "jmp over the end");
        assert_eq!(calls(b"\xff\xd0", None).len(), 1, "call rax");
        assert_eq!(calls(b"\xff\x25\x00\x00\x00\x00", None).len(), 1, "jmp [rip]");
    }

    #[test]
    fn jumps_within_the_function_are_none() {
        assert_eq!(calls(b"\xeb\xfe", None), [""; 0], "jmp to itself");
        assert_eq!(calls(b"\xff\xe0", None), [""; 0], "jmp rax");
    }

    #[test]
    fn what_cannot_be_decoded_is_told() {
        assert_eq!(count(&[b"\x06"], None).undecoded, 1);
    }
}
