//! The vector registers, xmm6 to xmm15, that a call must keep by Microsoft's calling convention for
//! x86-64.

use std::arch::asm;

/// The first register that a call keeps.
const FIRST: usize = 6;

/// The values of xmm6 to xmm15.
type Registers = [[u64; 2]; 10];

/// The numbers of the registers that `call` changes and does not restore.
pub fn changed(mut call: impl FnMut()) -> Vec<usize> {
    let before: Registers = std::array::from_fn(|i| [0x0123_4567_89ab_cdef + i as u64, !(i as u64)]);
    let mut after = Registers::default();
    enter(&mut call, &before, &mut after);
    (0..before.len()).filter(|&i| before[i] != after[i]).map(|i| FIRST + i).collect()
}

/// Makes the call with `before` in the registers. `after` is what they hold then.
fn enter<F: FnMut()>(call: &mut F, before: &Registers, after: &mut Registers) {
    extern "C" fn run<F: FnMut()>(call: &mut F) {
        call();
    }
    // SAFETY: reads `before` and writes `after`, which have room for ten registers. The stack is as
    // it was at the end, and has been aligned and has the 32 bytes that the convention gives to the
    // function that is called. rsi, rdi and r12 are kept by that function.
    unsafe {
        asm!(
            "mov r12, rsp",
            "and rsp, -16",
            "sub rsp, 32",
            "movups xmm6, [rsi]",
            "movups xmm7, [rsi + 16]",
            "movups xmm8, [rsi + 32]",
            "movups xmm9, [rsi + 48]",
            "movups xmm10, [rsi + 64]",
            "movups xmm11, [rsi + 80]",
            "movups xmm12, [rsi + 96]",
            "movups xmm13, [rsi + 112]",
            "movups xmm14, [rsi + 128]",
            "movups xmm15, [rsi + 144]",
            "call {run}",
            "movups [rdi], xmm6",
            "movups [rdi + 16], xmm7",
            "movups [rdi + 32], xmm8",
            "movups [rdi + 48], xmm9",
            "movups [rdi + 64], xmm10",
            "movups [rdi + 80], xmm11",
            "movups [rdi + 96], xmm12",
            "movups [rdi + 112], xmm13",
            "movups [rdi + 128], xmm14",
            "movups [rdi + 144], xmm15",
            "mov rsp, r12",
            run = sym run::<F>,
            inout("rcx") call => _,
            in("rsi") before,
            in("rdi") after,
            out("r12") _,
            out("xmm6") _,
            out("xmm7") _,
            out("xmm8") _,
            out("xmm9") _,
            out("xmm10") _,
            out("xmm11") _,
            out("xmm12") _,
            out("xmm13") _,
            out("xmm14") _,
            out("xmm15") _,
            clobber_abi("C"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::changed;
    use std::arch::global_asm;

    // A function that breaks the convention.
    global_asm!("changes_xmm9:", "pxor xmm9, xmm9", "ret");

    unsafe extern "C" {
        fn changes_xmm9();
    }

    #[test]
    fn a_call_that_changes_a_register_is_found() {
        // SAFETY: it changes a register that nothing here has in use.
        assert_eq!(changed(|| unsafe { changes_xmm9() }), [9]);
        assert_eq!(changed(|| ()), [0; 0]);
    }
}
