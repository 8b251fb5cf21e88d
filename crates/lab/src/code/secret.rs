//! Checks whether a secret could choose a branch or an address in the machine code of the Ed25519
//! steps that process secrets. This module selects the functions; [`super::flow`] checks them.

use anyhow::{Context as _, Result};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

use super::flow;
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
        faults: flow::faults(&instructions).into_iter().map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_is_missing_is_named() {
        assert!(find(&Image::default()).unwrap_err().to_string().contains("compress"));
    }
}
