//! Checks whether a secret could choose a branch or an address in the machine code of the Ed25519
//! steps that process secrets. It follows secrets through the general registers, the flags and the
//! stack of one function.
//!
//! Values from a vector, a mask, or memory that is not constant are secret, and so is everything
//! computed from them. These are faults: a branch on secret flags; an address from a secret
//! register, as in gathers and scatters; a store under a mask and a division of a secret, whose
//! times may depend on it; and any call, because the called function would have to be checked too.
//! The function's arguments in registers are addresses, and public.
//!
//! Memory is secret, except bytes of the stack to which a public value was stored through the stack
//! pointer, and which cannot have been overwritten since. If a secret is stored through another
//! pointer that points, or may point, into the stack, nothing there remains public.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register, UsedMemory,
};

use super::image::{Function, Image};

/// The steps that process nonces, prefixes and private scalars.
/// `crates/ed25519/src/kernel/signing.rs` calls no others.
pub const STEPS: [&str; 6] =
    ["compress", "multiply_nonce", "encode", "multiply_one_nonce", "encode_one", "finish"];

const MODULE: &str = "bulla_ed25519::kernel::lane_steps::ifma::";

/// The findings in one step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name.
    pub name: &'static str,
    /// The number of instructions.
    pub instructions: usize,
    /// The number of branches on flags.
    pub branches: usize,
    /// The places where a secret could choose a branch or an address, one line each.
    pub faults: Vec<String>,
}

/// Checks every step in `image`.
///
/// # Errors
/// A step is missing.
pub fn find(image: &Image) -> Result<Vec<Step>> {
    let read = |name: &&'static str| {
        let full = format!("{MODULE}{name}");
        let function = image.functions.iter().find(|function| function.name == full);
        Ok(read(name, function.with_context(|| format!("no function {full} in this file"))?))
    };
    STEPS.iter().map(read).collect()
}

fn read(name: &'static str, function: &Function) -> Step {
    let mut decoder = Decoder::with_ip(64, &function.code, function.address, DecoderOptions::NONE);
    let instructions: Vec<Instruction> = decoder.iter().collect();
    let is_branch = |instruction: &&Instruction| instruction.flow_control() == FlowControl::ConditionalBranch;
    let line = |(address, fault): (u64, &str)| format!("{name}+{:#x} {fault}", address - function.address);
    Step {
        name,
        instructions: instructions.len(),
        branches: instructions.iter().filter(is_branch).count(),
        faults: faults(&instructions).into_iter().map(line).collect(),
    }
}

/// The secrets before an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SecretFlow {
    /// General registers, whole ones.
    registers: BTreeSet<Register>,
    /// Bits of the flags.
    flags: u32,
    /// The public bytes of the stack, by their distance from the stack pointer's initial value. All
    /// others are secret.
    public: BTreeSet<i64>,
    /// The distance of the stack pointer from its initial value.
    stack: i64,
    /// Registers that may point into the stack.
    pointers: BTreeSet<Register>,
    /// Whether one of them was stored, so that any load may return it.
    stored_pointer: bool,
}

impl SecretFlow {
    /// The union of the secrets on both paths.
    fn joined(&self, other: &Self) -> Self {
        Self {
            registers: self.registers.union(&other.registers).copied().collect(),
            flags: self.flags | other.flags,
            public: self.public.intersection(&other.public).copied().collect(),
            stack: self.stack,
            pointers: self.pointers.union(&other.pointers).copied().collect(),
            stored_pointer: self.stored_pointer || other.stored_pointer,
        }
    }

    /// The accessed bytes of the stack, if the memory is on the stack.
    fn bytes(&self, memory: &UsedMemory) -> Option<std::ops::Range<i64>> {
        let known = memory.base() == Register::RSP && memory.index() == Register::None;
        let from = self.stack.wrapping_add(memory.displacement() as i64);
        known.then(|| from..from + memory.memory_size().size() as i64)
    }

    fn reads_secret(&self, instruction: &Instruction, info: &InstructionInfo) -> bool {
        let of_register = |register: Register| {
            register.is_vector_register()
                || register.is_k()
                || self.registers.contains(&register.full_register())
        };
        let of_memory = |memory: &UsedMemory| match self.bytes(memory) {
            Some(mut bytes) => bytes.any(|byte| !self.public.contains(&byte)),
            None => memory.base() != Register::RIP,
        };
        let zeroes = matches!(instruction.mnemonic(), Mnemonic::Xor | Mnemonic::Sub)
            && instruction.op1_kind() == OpKind::Register
            && instruction.op0_register() == instruction.op1_register();
        !zeroes
            && (info
                .used_registers()
                .iter()
                .any(|used| is_read(used.access()) && of_register(used.register()))
                || info.used_memory().iter().any(|used| is_read(used.access()) && of_memory(used))
                || instruction.rflags_read() & self.flags != 0)
    }

    /// The reason why the instruction reveals a secret, if it does.
    fn fault(&self, instruction: &Instruction, info: &InstructionInfo) -> Option<&'static str> {
        let is_address = |register: Register| self.registers.contains(&register.full_register());
        let by_secret = |memory: &UsedMemory| {
            is_address(memory.base()) || is_address(memory.index()) || memory.index().is_vector_register()
        };
        match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => Some("calls a function"),
            FlowControl::IndirectBranch => Some("jumps to an address from a register"),
            FlowControl::ConditionalBranch if self.reads_secret(instruction, info) => {
                Some("branches on a secret")
            }
            _ if instruction.mnemonic() == Mnemonic::INVALID => Some("is unknown to the decoder"),
            _ if info.used_memory().iter().any(by_secret) => Some("has a secret as address"),
            _ if instruction.has_op_mask()
                && info.used_memory().iter().any(|used| is_written(used.access())) =>
            {
                Some("stores under a mask")
            }
            _ if matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv)
                && self.reads_secret(instruction, info) =>
            {
                Some("divides a secret")
            }
            _ => None,
        }
    }

    fn is_pointer(&self, register: Register) -> bool {
        register == Register::RSP || self.pointers.contains(&register.full_register())
    }

    /// Whether the value that the instruction writes to a register may point into the stack.
    fn makes_pointer(&self, instruction: &Instruction, info: &InstructionInfo) -> bool {
        let operands = (0..instruction.op_count()).filter(|&n| instruction.op_kind(n) == OpKind::Register);
        // The first operand does not matter if it is only written.
        let is_read_as_well = |n: u32| n > 0 || is_read(info.op0_access());
        let of_register =
            operands.into_iter().any(|n| is_read_as_well(n) && self.is_pointer(instruction.op_register(n)));
        let of_address = instruction.mnemonic() == Mnemonic::Lea
            && (self.is_pointer(instruction.memory_base()) || self.is_pointer(instruction.memory_index()));
        let of_memory = self.stored_pointer && info.used_memory().iter().any(|used| is_read(used.access()));
        of_register || of_address || of_memory
    }

    /// Applies the effect of a store.
    fn store(&mut self, instruction: &Instruction, info: &InstructionInfo, secret: bool) {
        let written = info.used_memory().iter().filter(|used| is_written(used.access()));
        for memory in written {
            let of_pointer =
                |n| instruction.op_kind(n) == OpKind::Register && self.is_pointer(instruction.op_register(n));
            self.stored_pointer |= (0..instruction.op_count()).any(of_pointer);
            match self.bytes(memory) {
                Some(bytes) if secret => bytes.for_each(|byte| _ = self.public.remove(&byte)),
                Some(bytes) => self.public.extend(bytes),
                None if secret && (self.is_pointer(memory.base()) || self.is_pointer(memory.index())) => {
                    self.public.clear();
                }
                None => {}
            }
        }
    }

    /// The secrets after the instruction.
    fn after(&self, instruction: &Instruction, info: &InstructionInfo) -> Self {
        let secret = self.reads_secret(instruction, info);
        let mut after = self.clone();
        for used in info.used_registers().iter().filter(|used| is_written(used.access())) {
            let (register, whole) = (used.register(), used.register().full_register());
            if !register.is_gpr() || whole == Register::RSP {
                continue;
            }
            if self.makes_pointer(instruction, info) {
                after.pointers.insert(whole);
            } else if used.access() == OpAccess::Write {
                after.pointers.remove(&whole);
            }
            if secret {
                after.registers.insert(whole);
            } else if register.size() >= 4 && used.access() == OpAccess::Write {
                // The upper half of a register is cleared with the lower one.
                after.registers.remove(&whole);
            }
        }
        after.store(instruction, info, secret);
        let modified = instruction.rflags_modified();
        after.flags = if secret { self.flags | modified } else { self.flags & !modified };
        after.stack += match instruction.mnemonic() {
            Mnemonic::Add if instruction.op0_register() == Register::RSP => instruction.immediate(1) as i64,
            Mnemonic::Sub if instruction.op0_register() == Register::RSP => {
                -(instruction.immediate(1) as i64)
            }
            _ => i64::from(instruction.stack_pointer_increment()),
        };
        after
    }
}

/// One entry for each instruction that reveals a secret: its position and the reason.
fn faults(instructions: &[Instruction]) -> Vec<(u64, &'static str)> {
    let at: BTreeMap<u64, usize> = instructions.iter().map(Instruction::ip).zip(0..).collect();
    let mut before: Vec<Option<SecretFlow>> = vec![None; instructions.len()];
    let mut factory = InstructionInfoFactory::new();
    let mut found = BTreeMap::new();
    let mut waiting = Vec::new();
    if !instructions.is_empty() {
        before[0] = Some(SecretFlow::default());
        waiting.push(0);
    }
    while let Some(n) = waiting.pop() {
        let (instruction, Some(state)) = (&instructions[n], before[n].clone()) else { continue };
        let info = factory.info(instruction);
        if let Some(fault) = state.fault(instruction, info) {
            found.insert(instruction.ip(), fault);
        }
        let after = state.after(instruction, info);
        let falls = matches!(
            instruction.flow_control(),
            FlowControl::Next
                | FlowControl::ConditionalBranch
                | FlowControl::Call
                | FlowControl::IndirectCall
        );
        let jumps = matches!(
            instruction.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        let target = jumps.then(|| at.get(&instruction.near_branch_target())).flatten();
        if jumps && target.is_none() {
            found.insert(instruction.ip(), "jumps out of the function");
        }
        let next = [falls.then_some(n + 1), target.copied()];
        for next in next.into_iter().flatten().filter(|next| *next < instructions.len()) {
            let joined = before[next].as_ref().map_or_else(|| after.clone(), |known| known.joined(&after));
            if before[next].as_ref() != Some(&joined) {
                before[next] = Some(joined);
                waiting.push(next);
            }
        }
    }
    found.into_iter().collect()
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
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn a_step_that_is_missing_is_named() {
        assert!(find(&Image::default()).unwrap_err().to_string().contains("compress"));
    }

    /// The faults in a function of these instructions.
    fn found(code: &[&[u8]]) -> Vec<&'static str> {
        let code = code.concat();
        let instructions: Vec<_> = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE).iter().collect();
        faults(&instructions).into_iter().map(|(_, fault)| fault).collect()
    }

    const SECRET: &[u8] = b"\xc4\xe1\xf9\x7e\xc0"; // vmovq rax, xmm0
    const RETURN: &[u8] = b"\xc3";
    /// rax and rcx: are they 0?
    const TEST_A: &[u8] = b"\x48\x85\xc0\x75\x00\xc3"; // test rax, rax; jne; ret
    const TEST_C: &[u8] = b"\x48\x85\xc9\x75\x00\xc3"; // test rcx, rcx; jne; ret

    #[test]
    fn a_branch_on_a_secret_is_found_wherever_the_secret_was() {
        for (code, what) in [
            (SECRET, "vmovq rax, xmm0"),
            (b"\xc5\xfb\x93\xc1", "kmovd eax, k1"),
            (b"\x48\x8b\x07", "mov rax, [rdi]"),
            (b"\x48\x8b\x44\x24\x08", "mov rax, [rsp+8], which nobody stored"),
        ] {
            assert_eq!(found(&[code, TEST_A]), ["branches on a secret"], "{what}");
        }
        for (code, what) in [
            (&b"\xc5\xf8\x98\xc9\x75\x00"[..], "kortestw k1, k1; jne"),
            (b"\xc4\xe2\x7d\x17\xc0\x75\x00", "vptest ymm0, ymm0; jne"),
            (b"\x80\x3f\x00\x75\x00", "cmp byte [rdi], 0; jne"),
        ] {
            assert_eq!(found(&[code, RETURN]), ["branches on a secret"], "{what}");
        }
    }

    #[test]
    fn addresses_divisions_masked_stores_and_ways_out_of_the_function_are_found() {
        for (code, fault) in [
            (&b"\x48\x8b\x08"[..], "has a secret as address"), // mov rcx, [rax]
            (b"\x62\xf2\xfd\x49\x91\x04\xcf", "has a secret as address"), // vpgatherqq zmm0{k1}, [rdi+zmm1*8]
            (b"\x48\xf7\xf1", "divides a secret"),             // div rcx
            (b"\x62\xf1\xfd\x49\x7f\x07", "stores under a mask"), // vmovdqa64 [rdi]{k1}, zmm0
            (b"\xe8\x00\x00\x00\x00", "calls a function"),
            (b"\xff\xe0", "jumps to an address from a register"), // jmp rax
            (b"\xeb\x70", "jumps out of the function"),
            (b"\x06", "is unknown to the decoder"),
        ] {
            assert_eq!(found(&[SECRET, code, RETURN]), [fault]);
        }
    }

    #[test]
    fn a_secret_is_followed_through_arithmetic_flags_and_the_stack() {
        let copied: &[u8] = b"\x48\x89\xc1\x48\xff\xc1"; // mov rcx, rax; inc rcx
        assert_eq!(found(&[SECRET, copied, TEST_C]).len(), 1);
        let carry: &[u8] = b"\x48\x01\xc0\x48\x19\xc9"; // add rax, rax; sbb rcx, rcx
        assert_eq!(found(&[SECRET, carry, TEST_C]).len(), 1);
        // mov [rsp-8], rax; mov rcx, [rsp-8]
        let spilled: &[u8] = b"\x48\x89\x44\x24\xf8\x48\x8b\x4c\x24\xf8";
        assert_eq!(found(&[SECRET, spilled, TEST_C]).len(), 1);
        assert_eq!(found(&[b"\x31\xc0", spilled, TEST_C]), [""; 0], "zero is no secret");
        // An increment does not change this flag: add rax, rax; inc rdx; jc
        assert_eq!(found(&[SECRET, b"\x48\x01\xc0\x48\xff\xc2\x72\x00\xc3"]).len(), 1);
    }

    #[test]
    fn what_a_secret_may_have_overwritten_is_secret() {
        let (load, store) = (&b"\x48\x8b\x4c\x24\xf8"[..], &b"\x48\x89\x7c\x24\xf8"[..]); // rcx, rdi and [rsp-8]
        assert_eq!(found(&[store, load, TEST_C]), [""; 0]);
        for (overwrite, what) in [
            (&b"\xc5\xf9\x7f\x44\x24\xf0"[..], "vmovdqa [rsp-16], xmm0"),
            (b"\x48\x8d\x54\x24\xf0\xc5\xf9\x7f\x02", "lea rdx, [rsp-16]; vmovdqa [rdx], xmm0"),
            (b"\x48\x89\xe2\xc5\xf9\x7f\x02", "mov rdx, rsp; vmovdqa [rdx], xmm0"),
        ] {
            assert_eq!(found(&[store, overwrite, load, TEST_C]), ["branches on a secret"], "{what}");
        }
        // A store through a caller's pointer does not write to this function's stack: vmovdqa
        // [rsi], xmm0.
        assert_eq!(found(&[store, b"\xc5\xf9\x7f\x06", load, TEST_C]), [""; 0]);
    }

    #[test]
    fn a_secret_comes_around_a_loop() {
        // test rcx, rcx; jne to the next; mov rcx, rax; dec rdx; jne to the beginning
        let around: &[u8] = b"\x48\x85\xc9\x75\x00\x48\x89\xc1\x48\xff\xca\x75\xf3";
        assert_eq!(found(&[SECRET, around, RETURN]), ["branches on a secret"]);
    }

    #[test]
    fn counted_loops_over_secrets_are_allowed() {
        // mov ecx, 5; vmovq rax, xmm0; add rax, rax; adc rax, rdx; dec ecx; jne to the addition
        let counted: [&[u8]; 5] =
            [b"\xb9\x05\x00\x00\x00", SECRET, b"\x48\x01\xc0\x48\x11\xd0", b"\xff\xc9\x75\xf6", RETURN];
        assert_eq!(found(&counted), [""; 0]);
    }
}
