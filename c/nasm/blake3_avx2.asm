; BLAKE3 with AVX2: the chaining values of eight inputs at once. NASM syntax, for System V (`nasm -f
; elf64`) and Microsoft (`nasm -f win64`).
;
; C prototype, in blake3_nasm.c:
;
;     struct bulla_nasm_job {              offset
;         const uint8_t *inputs[8];          0     the eight inputs: `blocks` blocks of 64 bytes
;         const uint32_t *key;              64     eight words: the key or the IV
;         uint8_t *out;                     72     eight chaining values of 32 bytes
;         uint64_t blocks;                  80     how many blocks each input has, at least 1
;         uint32_t counter_low[8];          88     the counters of the inputs: their low halves
;         uint32_t counter_high[8];        120     and their high halves
;         uint32_t flags;                  152     on every block
;         uint32_t start;                  156     also on the first block
;         uint32_t end;                    160     also on the last block
;     };
;     void bulla_nasm_avx2_8(const struct bulla_nasm_job *job);
;
; Preconditions: the CPU has AVX2, and the operating system saves its registers. All inputs are
; readable for 64 * blocks bytes. `out` may be an input that has one block, because everything is
; read before it is written. The direction flag is clear, as both ABIs demand.
;
; System V: the argument is in rdi. It changes rax, rcx, rdx, r8 to r11, the flags, and ymm0 to
; ymm15, which are the caller's to save.
; Microsoft: the argument is in rcx. It also uses rbx, rbp, rdi, rsi, r12 to r15 and xmm6 to xmm15,
; which it saves and restores; their unwind information is in .pdata and .xdata. It calls nothing,
; so it leaves the shadow space alone, and needs none below it.
; Both: the upper halves of all vector registers are zero afterwards (vzeroupper), so that code with
; SSE is not slowed down.
;
; The time does not depend on the input: no branch and no address does. The stack keeps words of the
; message and of the state afterwards.
;
; The seven rounds are in avx2_rounds.inc, which `cargo run -p bulla-blake3-rounds` writes; the
; kernels in Rust have the same. While they run, integer units transpose the message of the next
; block.

default rel

%ifidn __OUTPUT_FORMAT__, win64
    %define WINDOWS 1
%else
    %define WINDOWS 0
%endif

; The job.
%define KEY 64
%define OUT 72
%define BLOCKS 80
%define COUNTER_LOW 88
%define COUNTER_HIGH 120
%define FLAGS 152
%define START 156
%define END 160

; The frame, aligned to 32 bytes: two words of the state, and two messages.
%define SPILL 0
%define MESSAGES 64
%define FRAME (64 + 2 * 512)

; The registers of the rounds, as avx2_rounds.inc calls them.
%define r_spill rsp
%define r_message rax
%define r_next rcx
%define r_pointers rdi
%define r_offset rdx
%define r_ahead 256 + rdx
%define r_lane0 r8
%define r_lane1 r9
%define r_lane2 r10
%define r_lane3 r11
%define r_words rbx
%define r_words32 ebx
%define r_shuffles r12

%if WINDOWS
section .rdata rdata align=32
%else
section .rodata align=32
%endif
shuffles:
    times 2 db 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13
    times 2 db 1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12
iv:
    times 8 dd 0x6A09E667
    times 8 dd 0xBB67AE85
    times 8 dd 0x3C6EF372
    times 8 dd 0xA54FF53A
length:
    times 8 dd 64

section .text

; Transposes the eight words of ymm0 to ymm7. The result is in ymm8 to ymm15, in order.
%macro TRANSPOSE 0
    vpunpckldq ymm8, ymm0, ymm1
    vpunpckhdq ymm9, ymm0, ymm1
    vpunpckldq ymm10, ymm2, ymm3
    vpunpckhdq ymm11, ymm2, ymm3
    vpunpckldq ymm12, ymm4, ymm5
    vpunpckhdq ymm13, ymm4, ymm5
    vpunpckldq ymm14, ymm6, ymm7
    vpunpckhdq ymm15, ymm6, ymm7
    vpunpcklqdq ymm0, ymm8, ymm10
    vpunpckhqdq ymm1, ymm8, ymm10
    vpunpcklqdq ymm2, ymm9, ymm11
    vpunpckhqdq ymm3, ymm9, ymm11
    vpunpcklqdq ymm4, ymm12, ymm14
    vpunpckhqdq ymm5, ymm12, ymm14
    vpunpcklqdq ymm6, ymm13, ymm15
    vpunpckhqdq ymm7, ymm13, ymm15
    vperm2i128 ymm8, ymm0, ymm4, 0x20
    vperm2i128 ymm9, ymm1, ymm5, 0x20
    vperm2i128 ymm10, ymm2, ymm6, 0x20
    vperm2i128 ymm11, ymm3, ymm7, 0x20
    vperm2i128 ymm12, ymm0, ymm4, 0x31
    vperm2i128 ymm13, ymm1, ymm5, 0x31
    vperm2i128 ymm14, ymm2, ymm6, 0x31
    vperm2i128 ymm15, ymm3, ymm7, 0x31
%endmacro

; Loads 32 bytes at offset %1 of the first block of each input, transposed, into the message at rax:
; half a message.
%macro LOAD_HALF 1
    %assign lane 0
    %rep 8
        mov r8, [rdi + 8 * lane]
        vmovdqu ymm %+ lane, [r8 + %1]
        %assign lane lane + 1
    %endrep
    TRANSPOSE
    %assign word 0
    %rep 8
        %assign from word + 8
        vmovdqa [rax + 16 * %1 / 2 + 32 * word], ymm %+ from
        %assign word word + 1
    %endrep
%endmacro

global bulla_nasm_avx2_8
%if WINDOWS
global bulla_nasm_avx2_8_end
%else
global bulla_nasm_avx2_8:function hidden
%endif

align 64
bulla_nasm_avx2_8:
    ; Prologue. The entry has rsp = 8 modulo 16.
    push rbp
.pushed_rbp:
    push rbx
.pushed_rbx:
    push r12
.pushed_r12:
    push r13
.pushed_r13:
    push r14
.pushed_r14:
    push r15
.pushed_r15:
%if WINDOWS
    push rdi
.pushed_rdi:
    push rsi
.pushed_rsi:
    sub rsp, 168
.allocated:
    %assign i 6
    %rep 10
        movaps [rsp + 16 * (i - 6)], xmm %+ i
.saved_%+i:
        %assign i i + 1
    %endrep
%endif
    mov rbp, rsp
.prologue_end:
%if WINDOWS
    mov rdi, rcx
%endif
    sub rsp, FRAME
    and rsp, -32

    ; The first message.
    lea rax, [rsp + MESSAGES]
    LOAD_HALF 0
    LOAD_HALF 32
    lea rcx, [rsp + MESSAGES + 512]
    lea r12, [shuffles]
    lea r15, [iv]

    ; The key is the first chaining value.
    mov r8, [rdi + KEY]
    %assign i 0
    %rep 8
        vpbroadcastd ymm %+ i, [r8 + 4 * i]
        %assign i i + 1
    %endrep

    mov r13, [rdi + BLOCKS]
    mov r14d, [rdi + FLAGS]
    or r14d, [rdi + START]
    xor edx, edx

align 32
.block:
    ; The last block has more flags, and no next one: the integer units then read it again. rdx is
    ; the offset of the next block.
    lea r9, [rdx + 64]
    cmp r13, 1
    mov r8d, [rdi + END]
    mov r10d, 0
    cmovne r8d, r10d
    cmovne rdx, r9
    or r14d, r8d
    vmovd xmm15, r14d
    vpbroadcastd ymm15, xmm15
    vmovdqa ymm8, [r15]
    vmovdqa ymm9, [r15 + 32]
    vmovdqa ymm10, [r15 + 64]
    vmovdqa ymm11, [r15 + 96]
    vmovdqu ymm12, [rdi + COUNTER_LOW]
    vmovdqu ymm13, [rdi + COUNTER_HIGH]
    vmovdqa ymm14, [r15 + 128]

%include "avx2_rounds.inc"

    vpxor ymm0, ymm0, ymm8
    vpxor ymm1, ymm1, ymm9
    vpxor ymm2, ymm2, ymm10
    vpxor ymm3, ymm3, ymm11
    vpxor ymm4, ymm4, ymm12
    vpxor ymm5, ymm5, ymm13
    vpxor ymm6, ymm6, ymm14
    vpxor ymm7, ymm7, ymm15
    xchg rax, rcx
    mov r14d, [rdi + FLAGS]
    dec r13
    jnz .block

    ; The chaining values, one input after the other.
    TRANSPOSE
    mov r8, [rdi + OUT]
    %assign i 0
    %rep 8
        %assign from i + 8
        vmovdqu [r8 + 32 * i], ymm %+ from
        %assign i i + 1
    %endrep
    vzeroupper

    ; Epilogue, in a form that Windows can undo.
%if WINDOWS
    %assign i 6
    %rep 10
        movaps xmm %+ i, [rbp + 16 * (i - 6)]
        %assign i i + 1
    %endrep
    lea rsp, [rbp + 168]
    pop rsi
    pop rdi
%else
    mov rsp, rbp
%endif
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbx
    pop rbp
    ret
%if WINDOWS
bulla_nasm_avx2_8_end:
%endif

%if WINDOWS
; What the prologue did, last step first: the offset after each step in the function, its operation,
; and its slots.
%macro SAVED 1
    db bulla_nasm_avx2_8.saved_%1 - bulla_nasm_avx2_8, (%1 << 4) | 8    ; UWOP_SAVE_XMM128
    dw %1 - 6                                                            ; in units of 16 bytes
%endmacro
%macro PUSHED 2
    db bulla_nasm_avx2_8.pushed_%1 - bulla_nasm_avx2_8, %2 << 4          ; UWOP_PUSH_NONVOL
%endmacro

section .xdata rdata align=8
unwind:
    db 1                                                    ; version 1, no handler
    db bulla_nasm_avx2_8.prologue_end - bulla_nasm_avx2_8
    db (unwind_codes_end - unwind_codes) / 2
    db 5                                                    ; the frame register is rbp, at offset 0
unwind_codes:
    db bulla_nasm_avx2_8.prologue_end - bulla_nasm_avx2_8, 3 ; UWOP_SET_FPREG
    SAVED 15
    SAVED 14
    SAVED 13
    SAVED 12
    SAVED 11
    SAVED 10
    SAVED 9
    SAVED 8
    SAVED 7
    SAVED 6
    db bulla_nasm_avx2_8.allocated - bulla_nasm_avx2_8, 1    ; UWOP_ALLOC_LARGE
    dw 168 / 8
    PUSHED rsi, 6
    PUSHED rdi, 7
    PUSHED r15, 15
    PUSHED r14, 14
    PUSHED r13, 13
    PUSHED r12, 12
    PUSHED rbx, 3
    PUSHED rbp, 5
unwind_codes_end:
    align 4, db 0

section .pdata rdata align=4
    dd bulla_nasm_avx2_8 wrt ..imagebase
    dd bulla_nasm_avx2_8_end wrt ..imagebase
    dd unwind wrt ..imagebase
%else
section .note.GNU-stack noalloc noexec nowrite progbits
%endif
