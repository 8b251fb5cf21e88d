; uint64_t bulla_nasm_changed_registers(const void *job)
;
; Fills the registers that a function must keep with values of their own, calls bulla_nasm_avx2_8
; with the job, and compares them afterwards. Returns a bit for each register that has another
; value: bits 0 to 7 for rbx, rbp, r12 to r15, rdi, rsi; bits 8 to 17 for xmm6 to xmm15; bit 18 for
; rsp; bit 19 for a word of the caller's frame beyond the shadow space. System V keeps fewer: rdi,
; rsi and xmm6 to xmm15 count only on Windows. Bit 20 says that the upper half of a vector register
; was not zero, where XGETBV with ecx = 1 can tell.

default rel
%ifidn __OUTPUT_FORMAT__, win64
    %define WINDOWS 1
%else
    %define WINDOWS 0
%endif

extern bulla_nasm_avx2_8
global bulla_nasm_changed_registers

%define MARK 0x1234567800000000

%if WINDOWS
section .rdata rdata align=16
%else
section .rodata align=16
%endif
marks:
    %assign i 0
    %rep 16
        dq 0x1111111111111111 * i, 0x0123456789abcdef ^ i
        %assign i i + 1
    %endrep

section .bss
stack: resq 1

section .text
; If register %1 is not the mark of number %2, sets bit %2.
%macro EXPECT 2
    mov r11, MARK + %2
    xor r10d, r10d
    cmp %1, r11
    setne r10b
    shl r10, %2
    or rax, r10
%endmacro

bulla_nasm_changed_registers:
    push rbp
    push rbx
    push r12
    push r13
    push r14
    push r15
    push rdi
    push rsi
    ; The shadow space, the word beyond it, and room for the caller's vector registers: rsp is 0
    ; modulo 16 at the call.
    sub rsp, 32 + 16 + 160 + 8
%if WINDOWS
    %assign i 6
    %rep 10
        movups [rsp + 48 + 16 * (i - 6)], xmm %+ i
        movups xmm %+ i, [marks + 16 * i]
        %assign i i + 1
    %endrep
%endif
    mov r11, MARK + 19
    mov [rsp + 32], r11
    mov [stack], rsp
    mov rbx, MARK + 0
    mov rbp, MARK + 1
    mov r12, MARK + 2
    mov r13, MARK + 3
    mov r14, MARK + 4
    mov r15, MARK + 5
%if WINDOWS
    mov rdi, MARK + 6
    mov rsi, MARK + 7
%endif
    call bulla_nasm_avx2_8
    xor eax, eax
    EXPECT rbx, 0
    EXPECT rbp, 1
    EXPECT r12, 2
    EXPECT r13, 3
    EXPECT r14, 4
    EXPECT r15, 5
%if WINDOWS
    EXPECT rdi, 6
    EXPECT rsi, 7
    %assign i 6
    %rep 10
        movups xmm0, [marks + 16 * i]
        pcmpeqb xmm0, xmm %+ i
        pmovmskb r11d, xmm0
        xor r10d, r10d
        cmp r11d, 0xffff
        setne r10b
        shl r10, i + 2
        or rax, r10
        movups xmm %+ i, [rsp + 48 + 16 * (i - 6)]
        %assign i i + 1
    %endrep
%endif
    xor r10d, r10d
    cmp rsp, [stack]
    setne r10b
    shl r10, 18
    or rax, r10
    mov rsp, [stack]
    EXPECT [rsp + 32], 19
    mov r8, rax
    ; Leaf 13.1 of CPUID says whether XGETBV can tell which registers are in use.
    mov eax, 13
    mov ecx, 1
    cpuid
    test al, 4
    jz .done
    mov ecx, 1
    xgetbv
    shl eax, 18
    and eax, 1 << 20
    or r8, rax
.done:
    mov rax, r8
    add rsp, 32 + 16 + 160 + 8
    pop rsi
    pop rdi
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbx
    pop rbp
    ret

%if WINDOWS == 0
section .note.GNU-stack noalloc noexec nowrite progbits
%endif
