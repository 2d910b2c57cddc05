//! A program of calls, whose counts are known by hand.

/// `_start` calls `twice` and `once`, and `twice` calls `once`; 14 instructions once around.
pub const CALLS: &str = "
.globl _start
.type _start, @function
_start:
    call twice
    call once
    jmp _start
.size _start, .-_start
.type twice, @function
twice:
    nop
    call once
    ret
.size twice, .-twice
.type once, @function
once:
    nop; nop; nop
    ret
.size once, .-once
.section .note.GNU-stack,\"\",@progbits
";
/// Where `_start` is,
pub const START: u64 = 0x40_1000;
/// `twice`,
pub const TWICE: u64 = START + 12;
/// and `once`.
pub const ONCE: u64 = TWICE + 7;
/// Once around, from `_start` on.
pub const AROUND: [(u64, u64); 7] = [
    (START, TWICE),
    (TWICE + 1, ONCE),
    (ONCE + 3, TWICE + 6),
    (TWICE + 6, START + 5),
    (START + 5, ONCE),
    (ONCE + 3, START + 10),
    (START + 10, START),
];
