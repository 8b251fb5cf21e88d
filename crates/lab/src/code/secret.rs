//! Whether the machine code of the Ed25519 steps that see secrets could let a secret choose a branch or an address.
//!
//! Secrets are in vectors only: in their registers, in masks, and in memory that vectors are stored to. So it is enough that nothing goes from
//! there to the general registers and the flags, from which all addresses and branches are made: no move, no comparison that sets flags, no load but
//! of what a general register itself had left on the stack, and no gather or scatter, whose addresses are vectors. A called function would have to be
//! read as well, and a store under a mask may take another time: neither is allowed.
//!
//! One step takes its secret into general registers on purpose, for an inversion of one number. There the secret is followed: [`super::flow`].

use anyhow::{Context as _, Result};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
    UsedMemory,
};

use super::flow;
use super::image::{Function, Image};

/// The steps that see nonces, prefixes and private scalars. `crates/ed25519/src/kernel/signing.rs` calls no others.
pub const STEPS: [&str; 6] =
    ["compress", "multiply_nonce", "encode", "multiply_nonce_alone", "encode_alone", "finish"];

/// The steps that take a secret into general registers.
const NARROW: [&str; 1] = ["encode_alone"];

const MODULE: &str = "bulla_ed25519::kernel::machine::ifma::";

/// What was found in one step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// How many instructions were read.
    pub instructions: usize,
    /// How many of them branch on flags.
    pub branches: usize,
    /// Where a secret could choose a branch or an address: one line each.
    pub faults: Vec<String>,
}

/// Reads every step in `image`.
///
/// # Errors
/// One is not there.
pub fn find(image: &Image) -> Result<Vec<Step>> {
    let read = |name: &&'static str| {
        let full = format!("{MODULE}{name}");
        let function = image.functions.iter().find(|function| function.name == full);
        Ok(read(name, function.with_context(|| format!("no function {full} in this file"))?))
    };
    STEPS.iter().map(read).collect()
}

/// A piece of the stack: the register that it is addressed by, where it begins, and its end.
type Slot = (Register, u64, u64);

fn read(name: &'static str, function: &Function) -> Step {
    let mut decoder = Decoder::with_ip(64, &function.code, function.address, DecoderOptions::NONE);
    let instructions: Vec<Instruction> = decoder.iter().collect();
    if NARROW.contains(&name) {
        return followed(name, function.address, &instructions);
    }
    let (general, vector) = stores(&instructions);
    let mut step = Step { name, instructions: instructions.len(), branches: 0, faults: Vec::new() };
    let mut info = InstructionInfoFactory::new();
    for instruction in &instructions {
        step.branches += usize::from(instruction.flow_control() == FlowControl::ConditionalBranch);
        let used = info.info(instruction);
        let from_vectors =
            used.used_registers().iter().any(|used| is_read(used.access()) && is_secret(used.register()));
        let to_general = used.used_registers().iter().any(|used| {
            is_written(used.access())
                && used.register().is_gpr()
                && used.register().full_register() != Register::RSP
        });
        let to_flags = instruction.rflags_modified() != 0;
        let fault = match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => Some("calls a function"),
            FlowControl::IndirectBranch => Some("jumps to an address from a register"),
            _ if instruction.mnemonic() == Mnemonic::INVALID => Some("is unknown to the decoder"),
            _ if is_indexed_by_vector(instruction) => Some("has vectors as addresses"),
            _ if from_vectors && to_general => Some("moves a vector or a mask to a general register"),
            _ if from_vectors && to_flags => Some("sets flags by a vector or a mask"),
            _ if instruction.has_op_mask()
                && used.used_memory().iter().any(|used| is_written(used.access())) =>
            {
                Some("stores under a mask")
            }
            _ if (to_general || to_flags)
                && !is_pop(instruction)
                && used
                    .used_memory()
                    .iter()
                    .any(|used| is_read(used.access()) && !is_own(used, &general, &vector)) =>
            {
                Some("brings memory that may be secret to a general register or to the flags")
            }
            _ => None,
        };
        if let Some(fault) = fault {
            let place = instruction.ip() - function.address;
            step.faults.push(format!("{name}+{place:#x} {:?} {fault}", instruction.mnemonic()));
        }
    }
    step
}

/// A step whose secrets are followed.
fn followed(name: &'static str, address: u64, instructions: &[Instruction]) -> Step {
    let is_branch = |instruction: &&Instruction| instruction.flow_control() == FlowControl::ConditionalBranch;
    let line = |(ip, fault): (u64, &str)| format!("{name}+{:#x} {fault}", ip - address);
    Step {
        name,
        instructions: instructions.len(),
        branches: instructions.iter().filter(is_branch).count(),
        faults: flow::faults(instructions).into_iter().map(line).collect(),
    }
}

/// The pieces of the stack that general registers are stored to, and those that vectors are.
fn stores(instructions: &[Instruction]) -> (Vec<Slot>, Vec<Slot>) {
    let mut info = InstructionInfoFactory::new();
    let (mut general, mut vector) = (Vec::new(), Vec::new());
    for instruction in instructions {
        let used = info.info(instruction);
        let secret =
            used.used_registers().iter().any(|used| is_read(used.access()) && is_secret(used.register()));
        for memory in used.used_memory().iter().filter(|memory| is_written(memory.access())) {
            if let Some(slot) = slot(memory) {
                if secret { &mut vector } else { &mut general }.push(slot);
            }
        }
    }
    (general, vector)
}

/// The piece of the stack that is meant, if its place is known.
fn slot(memory: &UsedMemory) -> Option<Slot> {
    let on_stack = matches!(memory.base(), Register::RSP | Register::RBP) && memory.index() == Register::None;
    let size = memory.memory_size().size() as u64;
    on_stack.then(|| (memory.base(), memory.displacement(), memory.displacement().wrapping_add(size)))
}

/// Whether it is a constant, or what a general register was stored to and no vector.
fn is_own(memory: &UsedMemory, general: &[Slot], vector: &[Slot]) -> bool {
    if memory.base() == Register::RIP || (memory.base() == Register::None && memory.index() == Register::None)
    {
        return true;
    }
    let Some(slot) = slot(memory) else { return false };
    let overlaps = |other: &Slot| {
        other.0 == slot.0 && (other.1 as i64) < slot.2 as i64 && (slot.1 as i64) < other.2 as i64
    };
    general.contains(&slot) && !vector.iter().any(overlaps)
}

fn is_pop(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Pop | Mnemonic::Ret | Mnemonic::Leave)
}

fn is_secret(register: Register) -> bool {
    register.is_vector_register() || register.is_k()
}

fn is_indexed_by_vector(instruction: &Instruction) -> bool {
    instruction.memory_index().is_vector_register()
}

fn is_read(access: OpAccess) -> bool {
    use OpAccess::*;
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite)
}

fn is_written(access: OpAccess) -> bool {
    use OpAccess::*;
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The faults of a function of these instructions.
    fn faults(code: &[&[u8]]) -> Vec<String> {
        read("step", &Function { code: code.concat(), ..Function::default() }).faults
    }

    #[test]
    fn vectors_and_masks_that_reach_general_registers_and_flags_are_found() {
        for (code, what) in [
            (&b"\xc4\xe1\xf9\x7e\xc0"[..], "vmovq rax, xmm0"),
            (b"\xc5\xfb\x93\xc1", "kmovd eax, k1"),
            (b"\xc5\xf8\x98\xc9", "kortestw k1, k1"),
            (b"\xc4\xe2\x7d\x17\xc0", "vptest ymm0, ymm0"),
            (b"\x62\xf2\xfd\x49\x91\x04\xc0", "vpgatherqq zmm0{k1}, [rax+zmm0*8]"),
            (b"\x62\xf1\xfd\x49\x7f\x00", "vmovdqa64 [rax]{k1}, zmm0"),
            (b"\xe8\x00\x00\x00\x00", "call"),
            (b"\xff\xe0", "jmp rax"),
            (b"\x06", "no instruction"),
        ] {
            assert_eq!(faults(&[code]).len(), 1, "{what}: {:?}", faults(&[code]));
        }
    }

    #[test]
    fn memory_that_a_vector_may_have_written_is_found() {
        let (load, store) = (b"\x48\x8b\x44\x24\x08", b"\x48\x89\x44\x24\x08"); // rax and [rsp+8]
        let vector = b"\xc5\xf9\x7f\x04\x24"; // vmovdqa [rsp], xmm0
        assert_eq!(faults(&[b"\x48\x8b\x07"]).len(), 1, "mov rax, [rdi]");
        assert_eq!(faults(&[b"\x80\x3f\x00"]).len(), 1, "cmp byte [rdi], 0");
        assert_eq!(faults(&[load]).len(), 1, "nobody stored it");
        assert!(faults(&[store, load]).is_empty());
        assert_eq!(faults(&[store, vector, load]).len(), 1, "a vector overlaps");
    }

    #[test]
    fn loops_constants_and_arithmetic_on_vectors_are_allowed() {
        let code: [&[u8]; 6] = [
            b"\x48\xff\xc8",                 // dec rax
            b"\x75\xfb",                     // jnz
            b"\x48\x8b\x05\x00\x00\x00\x00", // mov rax, [rip]
            b"\xc5\xf9\xd4\xc1",             // vpaddq xmm0, xmm0, xmm1
            b"\xc5\xfb\x92\xc8",             // kmovd k1, eax
            b"\x5b\xc3",                     // pop rbx; ret
        ];
        assert_eq!(faults(&code), [""; 0]);
    }

    #[test]
    fn a_step_that_is_missing_is_named() {
        assert!(find(&Image::default()).unwrap_err().to_string().contains("compress"));
    }
}
