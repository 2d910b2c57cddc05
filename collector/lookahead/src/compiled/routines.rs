//! What compiled blocks have in common, so that they are short: routines that are copied before them.
//!
//! `rbx` has the registers of the context; what else blocks look at is before these, as near. The address of an operand is in `rsi`, its place
//! is returned in `rdi`, and `eax` says what is asked of the interpreter where a routine cannot help
//! ([`Asked`](crate::compiled::step::Asked)). Nothing here refers to where it is.

use std::mem::offset_of;

use crate::compiled::exit_code::ExitCode;
use crate::compiled::step::Data;
use crate::compiled::targets::Targets;
use crate::context::{Context, Hot};
use crate::line_tables::{FOLDED, KNOWN, READS, STACK_READS, STACK_WRITES, WRITES};
use crate::lines::{DataLines, Stored};

/// A routine, by its place in the list with which they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Routine(usize);

impl Routine {
    /// `extern "sysv64" fn(*mut Context, code) -> u32`: runs a block, and those that follow.
    pub(crate) const START: Self = Self(0);
    /// The interpreter executes an operation.
    pub(super) const ASK: Self = Self(1);
    /// A block begins: `eax` has its number, and in the highest byte how many instructions it has.
    pub(super) const ENTER: Self = Self(2);
    /// A branch was taken: to `rdx`, from as far from there as `ecx` says, of the kind in `eax`.
    pub(super) const TAKE: Self = Self(3);
    /// The same, from `rcx`; goes on to the block there, and does not come back.
    pub(super) const TAKE_TO: Self = Self(4);
    /// No block is known to follow, at `rdx`. After the call stands how far before it is what would lead there.
    pub(super) const UNLINKED: Self = Self(5);

    /// The one that finds an operand.
    pub(super) fn find(data: Data, size: usize, elsewhere: bool) -> Self {
        let by_size = size.trailing_zeros() as usize + if elsewhere { 4 } else { 0 };
        Self(match data {
            Data::Read => 6 + by_size,
            Data::Stored => 14 + by_size,
            Data::Written => 22 + by_size,
            Data::Popped => 30,
            Data::Pushed => 31,
        })
    }

    /// Where it is, from the first byte of all.
    pub(crate) fn offset(self) -> usize {
        let bytes = crate::native::routines();
        let entry = bytes.get(4 * self.0..).and_then(|list| list.first_chunk());
        entry.map_or(0, |entry| u32::from_le_bytes(*entry) as usize)
    }
}

std::arch::global_asm!(
    ".pushsection .rodata.hbbp_lookahead_routines, \"a\"",
    ".balign 16",
    ".globl hbbp_lookahead_routines",
    ".hidden hbbp_lookahead_routines",
    ".globl hbbp_lookahead_routines_end",
    ".hidden hbbp_lookahead_routines_end",
    "hbbp_lookahead_routines:",
    ".irp routine, start, ask, enter, take, take_to, unlinked",
    ".long .Lhbbp_\\routine - hbbp_lookahead_routines",
    ".endr",
    ".irp data, read, stored, written",
    ".irp kind, 1, 2, 4, 8, 1_elsewhere, 2_elsewhere, 4_elsewhere, 8_elsewhere",
    ".long .Lhbbp_\\data\\()_\\kind - hbbp_lookahead_routines",
    ".endr",
    ".endr",
    ".long .Lhbbp_popped - hbbp_lookahead_routines",
    ".long .Lhbbp_pushed - hbbp_lookahead_routines",
    // Looks a line up; `mode`: 1 a load, 2 a store of which it is to be noted what came before, 3 both.
    ".macro hbbp_find first, places, folded, size, mode",
    "mov r8, rsi",
    "shr r8, 6",
    "mov r9, r8",
    ".if \\folded",
    "shr r9, {folded}",
    "xor r9d, r8d",
    ".endif",
    "and r9d, \\places - 1",
    "shl r9d, 4",
    "add r9, qword ptr [rbx + {tables}]",
    "or r8, qword ptr [rbx + {tag}]",
    "cmp r8, qword ptr [r9 + \\first * 16]",
    "jne .Lhbbp_slow",
    ".if \\size > 1",
    "mov r10d, esi",
    "and r10d, 63",
    "cmp r10d, 64 - \\size",
    "ja .Lhbbp_slow",
    ".endif",
    "mov rdi, qword ptr [r9 + \\first * 16 + 8]",
    "add rdi, rsi",
    ".if \\mode",
    "mov r8, rsi",
    "shr r8, {stored_folded}",
    "xor r8d, esi",
    "and r8d, {stored_places} - 1",
    "shl r8d, 4",
    "add r8, qword ptr [rbx + {stored}]",
    // The number of the instruction.
    "mov r9d, eax",
    "shr r9d, 8",
    "movzx r9d, r9b",
    "mov r10d, dword ptr [rbx + {end}]",
    "sub r10d, dword ptr [rbx + {left}]",
    "sub r10d, r9d",
    ".if \\mode & 1",
    "cmp qword ptr [r8 + {stored_address}], rsi",
    "jne 2f",
    "mov r11d, r10d",
    "sub r11d, dword ptr [r8 + {stored_instruction}]",
    "dec r11d",
    "cmp r11d, {farthest} - 1",
    "jbe .Lhbbp_slow",
    "2:",
    ".endif",
    ".if \\mode & 2",
    "mov qword ptr [r8 + {stored_address}], rsi",
    "mov dword ptr [r8 + {stored_instruction}], r10d",
    ".endif",
    ".endif",
    "ret",
    ".endm",
    // Writes a taken branch down, and goes to `leave` if the burst's loop must look at it.
    ".macro hbbp_record leave",
    "mov r8, qword ptr [rbx + {next_branch}]",
    "mov qword ptr [r8], rcx",
    "mov qword ptr [r8 + 8], rdx",
    "mov qword ptr [r8 + 16], rax",
    "add r8, 24",
    "mov qword ptr [rbx + {next_branch}], r8",
    "sub dword ptr [rbx + {until}], 1",
    "je \\leave",
    "cmp rdx, qword ptr [rbx + {spin_target}]",
    "jne 2f",
    "cmp byte ptr [rbx + {changed}], 0",
    "jne 2f",
    "mov r8d, dword ptr [rbx + {witness}]",
    "mov r8, qword ptr [rbx + r8 * 8]",
    "cmp r8, qword ptr [rbx + {witness_value}]",
    "je \\leave",
    "2:",
    ".endm",
    ".macro hbbp_ask",
    "push rax",
    "mov esi, eax",
    "mov rdi, qword ptr [rbx + {frame}]",
    "call qword ptr [rbx + {step}]",
    "pop rcx",
    "test eax, eax",
    "jne .Lhbbp_leave_call",
    ".endm",
    ".balign 16",
    ".Lhbbp_start:",
    "push rbx",
    "lea rbx, [rdi + {registers}]",
    "jmp rsi",
    ".Lhbbp_ask:",
    "hbbp_ask",
    "ret",
    ".Lhbbp_slow:",
    "hbbp_ask",
    "pop rdx",
    // On after the instruction.
    "shr ecx, 24",
    "add rdx, rcx",
    "movzx eax, word ptr [rbx + {status}]",
    "add al, 0x7f",
    "sahf",
    "jmp rdx",
    ".Lhbbp_taken_call:",
    "mov qword ptr [rbx + {target}], rdx",
    "mov eax, {exit_taken}",
    ".Lhbbp_leave_call:",
    "add rsp, 8",
    ".Lhbbp_leave:",
    "pop rbx",
    "ret",
    ".Lhbbp_enter:",
    "mov ecx, eax",
    "and ecx, 0xffffff",
    "mov r8, qword ptr [rbx + {seen}]",
    "mov r9d, dword ptr [rbx + {burst}]",
    "mov dword ptr [rbx + {current}], ecx",
    "cmp dword ptr [r8 + rcx * 4], r9d",
    "jne 3f",
    "shr eax, 24",
    "mov r9d, dword ptr [rbx + {left}]",
    "sub r9d, eax",
    "jb 3f",
    "mov dword ptr [rbx + {left}], r9d",
    "ret",
    "3:",
    "mov eax, {exit_not_entered}",
    "jmp .Lhbbp_leave_call",
    ".Lhbbp_take:",
    "movsxd rcx, ecx",
    "add rcx, rdx",
    "hbbp_record .Lhbbp_taken_call",
    "ret",
    ".Lhbbp_take_to:",
    "hbbp_record .Lhbbp_taken",
    "mov r8, rdx",
    "shr r8, {targets_folded}",
    "xor r8d, edx",
    "and r8d, {targets_places} - 1",
    "shl r8d, 4",
    "add r8, qword ptr [rbx + {targets}]",
    "cmp rdx, qword ptr [r8]",
    "jne 3f",
    "jmp qword ptr [r8 + 8]",
    "3:",
    "mov qword ptr [rbx + {target}], rdx",
    "mov eax, {exit_passed}",
    "jmp .Lhbbp_leave",
    ".Lhbbp_taken:",
    "mov qword ptr [rbx + {target}], rdx",
    "mov eax, {exit_taken}",
    "jmp .Lhbbp_leave",
    ".Lhbbp_unlinked:",
    "pop rax",
    "mov qword ptr [rbx + {site}], rax",
    "mov qword ptr [rbx + {target}], rdx",
    "mov eax, {exit_unlinked}",
    "jmp .Lhbbp_leave",
    ".irp size, 1, 2, 4, 8",
    ".Lhbbp_read_\\size:",
    "hbbp_find {reads}, {reads_places}, 1, \\size, 0",
    ".Lhbbp_read_\\size\\()_elsewhere:",
    "hbbp_find {reads}, {reads_places}, 1, \\size, 1",
    ".Lhbbp_stored_\\size:",
    "hbbp_find {writes}, {writes_places}, 1, \\size, 0",
    ".Lhbbp_stored_\\size\\()_elsewhere:",
    "hbbp_find {writes}, {writes_places}, 1, \\size, 2",
    ".Lhbbp_written_\\size:",
    "hbbp_find {writes}, {writes_places}, 1, \\size, 0",
    ".Lhbbp_written_\\size\\()_elsewhere:",
    "hbbp_find {writes}, {writes_places}, 1, \\size, 3",
    ".endr",
    ".Lhbbp_popped:",
    "hbbp_find {stack_reads}, {stack_places}, 0, 8, 0",
    ".Lhbbp_pushed:",
    "hbbp_find {stack_writes}, {stack_places}, 0, 8, 0",
    "hbbp_lookahead_routines_end:",
    ".purgem hbbp_find",
    ".purgem hbbp_record",
    ".purgem hbbp_ask",
    ".popsection",
    folded = const FOLDED,
    stored_folded = const DataLines::STORED_FOLDED,
    stored_places = const DataLines::STORED,
    farthest = const DataLines::FARTHEST,
    stored_address = const offset_of!(Stored, address),
    stored_instruction = const offset_of!(Stored, instruction),
    targets_folded = const Targets::FOLDED,
    targets_places = const Targets::PLACES,
    reads = const READS.first,
    reads_places = const KNOWN,
    writes = const WRITES.first,
    writes_places = const WRITES.places,
    stack_reads = const STACK_READS.first,
    stack_writes = const STACK_WRITES.first,
    stack_places = const STACK_READS.places,
    exit_taken = const ExitCode::TAKEN.0,
    exit_passed = const ExitCode::PASSED.0,
    exit_not_entered = const ExitCode::NOT_ENTERED.0,
    exit_unlinked = const ExitCode::UNLINKED.0,
    registers = const offset_of!(Context, registers),
    tables = const at(offset_of!(Hot, tables)),
    tag = const at(offset_of!(Hot, tag)),
    stored = const at(offset_of!(Hot, stored)),
    targets = const at(offset_of!(Hot, targets)),
    seen = const at(offset_of!(Hot, seen)),
    next_branch = const at(offset_of!(Hot, next_branch)),
    target = const at(offset_of!(Hot, target)),
    site = const at(offset_of!(Hot, site)),
    step = const at(offset_of!(Hot, step)),
    frame = const at(offset_of!(Hot, frame)),
    spin_target = const at(offset_of!(Hot, spin_target)),
    witness = const at(offset_of!(Hot, witness)),
    witness_value = const at(offset_of!(Hot, witness_value)),
    burst = const at(offset_of!(Hot, burst)),
    left = const at(offset_of!(Hot, left)),
    end = const at(offset_of!(Hot, end)),
    until = const at(offset_of!(Hot, until)),
    current = const at(offset_of!(Hot, current)),
    status = const at(offset_of!(Hot, status)),
    changed = const at(offset_of!(Hot, changed)),
);

/// From the registers, which `rbx` has, to a part of what is before them.
pub(super) const fn at(offset: usize) -> i32 {
    (offset_of!(Context, hot) + offset) as i32 - offset_of!(Context, registers) as i32
}
