//! A copy of a path: the instructions that a burst says a thread executes next, one after the other, as code that the thread can execute in
//! place of its own.
//!
//! ```text
//! the path                     its copy
//! add rax, [rip + 8]           rdx saved; mov rdx, address; add rax, [rdx + 8]; rdx back
//! jne 1f      (taken)          je EXITS + 0
//! call 2f                      the return address is pushed
//! ret         (to 3)           if the address on the stack is not 3: EXITS + 1; add 8 to rsp, without flags
//! ...                          int3
//! ```
//!
//! Every other instruction is copied as it is. The thread works on its own registers and memory, at full speed, and what it leaves there is what
//! its own code would have left. Where it does not go the way of the burst, it comes to a breakpoint of its own for each branch.

use addresses::Avma;
use iced_x86::{
    Code, ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register, RflagsBits,
};
use lookahead::{Branch, LONGEST_INSTRUCTION, undefined_flags};

/// Where registers are kept while an instruction uses them for addresses: the register that stands for the instruction pointer or takes a
/// target; rcx; the target that was found. Then comes the stack of the signal at the end.
const SAVED: usize = 0;
const SAVED_RCX: usize = 8;
const FOUND: usize = 16;
/// The stack of signals.
pub(crate) const STACK: usize = 4096;
pub(crate) const STACK_BYTES: usize = 0xc000;
/// Where the code begins.
pub(crate) const START: usize = STACK + STACK_BYTES;
/// Breakpoints of branches at most; they are at the end of the area.
const MOST_EXITS: usize = 32_768;
/// More than what one instruction becomes.
const LONGEST: usize = 128;
/// Instructions from an atomic one to a branch that is decided by it.
const SOON: u64 = 8;
const BREAKPOINT: u8 = 0xcc;
const JMP: u8 = 0xe9;

const RCX: u8 = 1;
/// Registers that may stand for another one: those without a prefix, a SIB byte or a meaning of their own as a base.
const SCRATCH: [u8; 5] = [0, 2, 3, 6, 7];
const NONE: u8 = u8::MAX;

/// What is to be copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    pub(crate) start: u64,
    pub(crate) instructions: u64,
    /// Taken branches, in the order of execution.
    pub(crate) branches: &'a [Branch],
}

/// A part of an instruction's copy.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where its code begins in the area.
    offset: u32,
    /// Instructions before it on the path.
    before: u32,
    /// The address of the instruction.
    rip: u64,
    /// The register whose value is saved meanwhile, or [`NONE`].
    saved: u8,
}

/// A branch that can leave the path.
#[derive(Clone, Copy, Debug)]
struct Exit {
    /// Address of the branch, and instructions and taken branches before it.
    rip: u64,
    before: u32,
    branches: u32,
    /// Where the path goes.
    expected: u64,
    /// Where it does not go; `None`: anywhere, and the branch is not executed yet.
    other: Option<u64>,
    /// It comes soon after an atomic instruction.
    is_after_atomic: bool,
}

/// Where a thread has stopped in the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It has come to the end of the path.
    End,
    /// A branch has led elsewhere.
    Left {
        /// Where the branch is,
        from: u64,
        /// where the path goes on,
        expected: u64,
        /// and where the thread went.
        found: u64,
        /// Where the thread is to go on: where it went, or again at the branch.
        rip: u64,
        /// Instructions and taken branches before it.
        instructions: u64,
        branches: u64,
        /// It comes soon after an instruction that reads and writes memory at once: what that found there is seen no more.
        is_after_atomic: bool,
    },
    /// An instruction did not get done.
    Inside {
        /// Its address.
        rip: u64,
        /// A register that has to have a value again, in encoding order.
        saved: Option<(u8, u64)>,
        /// Instructions before it.
        instructions: u64,
    },
}

/// Why there is no copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no room for it.
    TooLong,
    /// An instruction that means something else where the copy is.
    Instruction,
    /// The code is not what the burst says.
    OtherCode,
}

/// A copy, and what is needed to tell where in it a thread stands. Its code is in the area it was made in.
pub(crate) struct PathCopy {
    places: Vec<Place>,
    exits: Vec<Exit>,
    /// Where the breakpoint at the end is.
    end: usize,
    /// Status flags that the manuals leave undefined after the path.
    pub(crate) undefined: u64,
    /// Instructions and taken branches before the first that does not give the same each time: it reads a clock, say.
    pub(crate) unsteady: Option<(u64, u64)>,
    /// Instructions before the last atomic one.
    atomic: Option<u64>,
    info: InstructionInfoFactory,
}

/// The area that is written to.
struct Writer<'a> {
    area: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.area[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// The distance to a place of the area from four bytes on from here.
    fn distance(&mut self, to: usize) {
        let distance = to as i64 - (self.at as i64 + 4);
        self.bytes(&(distance as i32).to_le_bytes());
    }

    /// Stores a register, and loads it again.
    fn save(&mut self, register: u8, at: usize) {
        self.bytes(&[0x48, 0x89, register << 3 | 5]);
        self.distance(at);
    }

    fn load(&mut self, register: u8, at: usize) {
        self.bytes(&[0x48, 0x8b, register << 3 | 5]);
        self.distance(at);
    }

    fn set(&mut self, register: u8, value: u64) {
        self.bytes(&[0x48, 0xb8 + register]);
        self.bytes(&value.to_le_bytes());
    }

    /// Adds to the stack pointer; flags stay as they are.
    fn move_stack(&mut self, bytes: i32) {
        self.bytes(&[0x48, 0x8d, 0xa4, 0x24]); // lea rsp, [rsp + bytes]
        self.bytes(&bytes.to_le_bytes());
    }

    /// Pushes a return address. The stack pointer comes last: a fault before leaves everything as it was.
    fn push(&mut self, address: u64) {
        self.bytes(&[0xc7, 0x44, 0x24, 0xf8]); // mov dword ptr [rsp - 8], low half
        self.bytes(&(address as u32).to_le_bytes());
        self.bytes(&[0xc7, 0x44, 0x24, 0xfc]); // mov dword ptr [rsp - 4], high half
        self.bytes(&((address >> 32) as u32).to_le_bytes());
        self.move_stack(-8);
    }

    fn jump(&mut self, to: usize) {
        self.bytes(&[JMP]);
        self.distance(to);
    }

    /// To an exit if `register`, which is saved, is not `expected`. Both it and rcx are what they were then.
    fn compare(&mut self, register: u8, expected: u64, exit: usize) {
        self.save(RCX, SAVED_RCX);
        self.set(RCX, expected.wrapping_neg());
        self.bytes(&[0x48, 0x8d, 0x0c, register << 3 | RCX]); // lea rcx, [rcx + register]
        self.bytes(&[0xe3, 26]); // jrcxz
        let from = self.at;
        self.save(register, FOUND);
        self.load(register, SAVED);
        self.load(RCX, SAVED_RCX);
        self.jump(exit);
        debug_assert_eq!(self.at - from, 26);
        self.load(register, SAVED);
        self.load(RCX, SAVED_RCX);
    }
}

impl PathCopy {
    pub(crate) fn new() -> Self {
        let (places, exits) = (Vec::with_capacity(1 << 14), Vec::with_capacity(1 << 13));
        Self { places, exits, end: 0, undefined: 0, unsteady: None, atomic: None, info: InstructionInfoFactory::new() }
    }

    /// Writes a copy of `path` to `area`, which works wherever the area is. `fetch` reads code: how many bytes there are from an address on.
    pub(crate) fn write(
        &mut self,
        path: Path<'_>,
        area: &mut [u8],
        mut fetch: impl FnMut(u64, &mut [u8; LONGEST_INSTRUCTION]) -> usize,
    ) -> Result<(), Refusal> {
        self.places.clear();
        self.exits.clear();
        self.undefined = 0;
        (self.unsteady, self.atomic) = (None, None);
        let exits = area.len() - MOST_EXITS;
        if area[exits] != BREAKPOINT {
            area[exits..].fill(BREAKPOINT);
        }
        let mut writer = Writer { area, at: START };
        let (mut rip, mut next) = (path.start, 0);
        for before in 0..path.instructions {
            if writer.at + LONGEST > exits || self.exits.len() == MOST_EXITS {
                return Err(Refusal::TooLong);
            }
            let mut bytes = [0; LONGEST_INSTRUCTION];
            let length = fetch(rip, &mut bytes);
            let mut decoder = Decoder::with_ip(64, &bytes[..length], rip, DecoderOptions::NONE);
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                return Err(Refusal::OtherCode);
            }
            let bytes = &bytes[..instruction.len()];
            let taken = path.branches.get(next).filter(|branch| branch.from.0 == rip).map(|branch| branch.to);
            self.place(&writer, before, rip, NONE);
            if is_atomic(&instruction) {
                self.atomic = Some(before);
            }
            if self.unsteady.is_none() && is_unsteady(instruction.mnemonic()) {
                self.unsteady = Some((before, next as u64));
            }
            if instruction.flow_control() == FlowControl::Next {
                let displacement = decoder.get_constant_offsets(&instruction).displacement_offset();
                self.plain(&instruction, bytes, displacement, before, &mut writer)?;
                rip = instruction.next_ip();
            } else {
                let position = (before, next);
                rip = self.branch(&instruction, bytes, taken, position, &mut writer)?;
                next += usize::from(taken.is_some());
            }
            self.flags_after(&instruction, bytes);
        }
        if next != path.branches.len() {
            return Err(Refusal::OtherCode);
        }
        self.end = writer.at;
        writer.bytes(&[BREAKPOINT]);
        Ok(())
    }

    fn place(&mut self, writer: &Writer<'_>, before: u64, rip: u64, saved: u8) {
        self.places.push(Place { offset: writer.at as u32, before: before as u32, rip, saved });
    }

    fn flags_after(&mut self, instruction: &Instruction, bytes: &[u8]) {
        if instruction.rflags_modified() == RflagsBits::NONE {
            return;
        }
        let undefined = instruction.rflags_undefined() != RflagsBits::NONE;
        // A count of zero, which is in a register, leaves flags as they are.
        let always = !matches!(instruction.op1_register(), Register::CL) && !instruction.has_rep_prefix();
        let defined = if always { status(instruction.rflags_modified() & !instruction.rflags_undefined()) } else { 0 };
        self.undefined = self.undefined & !defined | if undefined { undefined_flags(bytes) } else { 0 };
    }

    /// An instruction that is followed by the next one. `displacement`: where that of its memory operand is in its bytes.
    fn plain(
        &mut self,
        instruction: &Instruction,
        bytes: &[u8],
        displacement: usize,
        before: u64,
        writer: &mut Writer<'_>,
    ) -> Result<(), Refusal> {
        if !instruction.is_ip_rel_memory_operand() {
            writer.bytes(bytes);
            return Ok(());
        }
        let scratch = self.scratch(instruction)?;
        let patched = relative_to(scratch, instruction, bytes, displacement)?;
        writer.save(scratch, SAVED);
        writer.set(scratch, instruction.next_ip());
        self.place(writer, before, instruction.ip(), scratch);
        writer.bytes(&patched[..bytes.len()]);
        writer.load(scratch, SAVED);
        Ok(())
    }

    /// A branch; where the path goes on. `position`: instructions and taken branches before it.
    fn branch(
        &mut self,
        instruction: &Instruction,
        bytes: &[u8],
        taken: Option<Avma>,
        position: (u64, usize),
        writer: &mut Writer<'_>,
    ) -> Result<u64, Refusal> {
        let (next, target) = (instruction.next_ip(), instruction.near_branch_target());
        let exits = writer.area.len() - MOST_EXITS;
        let number = exits + self.exits.len();
        let mut exit = Exit {
            rip: instruction.ip(),
            before: position.0 as u32,
            branches: position.1 as u32,
            expected: taken.map_or(next, |to| to.0),
            other: None,
            is_after_atomic: self.atomic.is_some_and(|atomic| position.0 - atomic <= SOON),
        };
        let is_to_target = taken == Some(Avma(target));
        match instruction.flow_control() {
            FlowControl::ConditionalBranch if taken.is_none() || is_to_target => {
                exit.other = Some(if is_to_target { next } else { target });
                conditional(instruction, bytes, is_to_target, number, writer)?;
                self.exits.push(exit);
            }
            FlowControl::UnconditionalBranch if is_to_target => {}
            FlowControl::Call if is_to_target => writer.push(next),
            FlowControl::IndirectBranch | FlowControl::IndirectCall if taken.is_some() => {
                let scratch = self.scratch(instruction)?;
                let load = load_of_target(scratch, instruction, bytes)?;
                writer.save(scratch, SAVED);
                if instruction.is_ip_rel_memory_operand() {
                    writer.set(scratch, next);
                }
                self.place(writer, position.0, instruction.ip(), scratch);
                writer.bytes(&load.bytes[..load.length]);
                writer.compare(scratch, exit.expected, number);
                self.exits.push(exit);
                if instruction.flow_control() == FlowControl::IndirectCall {
                    self.place(writer, position.0, instruction.ip(), NONE);
                    writer.push(next);
                }
            }
            FlowControl::Return if taken.is_some() => {
                let more = match instruction.code() {
                    Code::Retnq => 0,
                    Code::Retnq_imm16 => i32::from(instruction.immediate16()),
                    _ => return Err(Refusal::Instruction),
                };
                let scratch = SCRATCH[0];
                writer.save(scratch, SAVED);
                self.place(writer, position.0, instruction.ip(), scratch);
                writer.bytes(&[0x48, 0x8b, scratch << 3 | 4, 0x24]); // mov scratch, [rsp]
                writer.compare(scratch, exit.expected, number);
                self.exits.push(exit);
                writer.move_stack(8 + more);
            }
            FlowControl::Interrupt | FlowControl::Exception | FlowControl::XbeginXabortXend => {
                return Err(Refusal::Instruction);
            }
            _ => return Err(Refusal::OtherCode),
        }
        Ok(exit.expected)
    }

    /// A register that an instruction does not use.
    fn scratch(&mut self, instruction: &Instruction) -> Result<u8, Refusal> {
        let mut used = 0_u32;
        for register in self.info.info(instruction).used_registers() {
            let full = register.register().full_register();
            used |= if full.is_gpr() { 1 << full.number() } else { 0 };
        }
        SCRATCH.into_iter().find(|&register| used & 1 << register == 0).ok_or(Refusal::Instruction)
    }

    /// Where a thread stands whose instruction pointer is in the copy: at a breakpoint, or where it has faulted.
    pub(crate) fn stop(&self, area: &[u8], address: u64, rip: u64) -> Stop {
        let at = rip.wrapping_sub(address) as usize;
        let word = |at: usize| u64::from_le_bytes(area[at..at + 8].try_into().unwrap_or_default());
        if at == self.end {
            return Stop::End;
        }
        let exit = at.checked_sub(area.len() - MOST_EXITS).and_then(|number| self.exits.get(number));
        if let Some(&Exit { rip, before, branches, expected, other, is_after_atomic }) = exit {
            let found = other.unwrap_or_else(|| word(FOUND));
            let (instructions, branches) = (u64::from(before), u64::from(branches));
            let goes_on_at = other.unwrap_or(rip);
            return Stop::Left { from: rip, expected, found, rip: goes_on_at, instructions, branches, is_after_atomic };
        }
        let after = self.places.partition_point(|place| place.offset as usize <= at);
        let Place { rip, before, saved, .. } = self.places[after.saturating_sub(1)];
        Stop::Inside { rip, saved: (saved != NONE).then(|| (saved, word(SAVED))), instructions: u64::from(before) }
    }

    /// The address of the last instruction of the path that writes to a register.
    pub(crate) fn last_writer(
        &mut self,
        register: Register,
        mut fetch: impl FnMut(u64, &mut [u8; LONGEST_INSTRUCTION]) -> usize,
    ) -> Option<u64> {
        let Self { places, info, .. } = self;
        let mut rips = places.iter().rev().map(|place| place.rip);
        rips.find(|&rip| {
            let mut bytes = [0; LONGEST_INSTRUCTION];
            let length = fetch(rip, &mut bytes);
            let instruction = Decoder::with_ip(64, &bytes[..length], rip, DecoderOptions::NONE).decode();
            info.info(&instruction).used_registers().iter().any(|used| {
                let writes = !matches!(
                    used.access(),
                    OpAccess::None | OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
                );
                writes && used.register().full_register() == register
            })
        })
    }
}

/// Whether an instruction reads memory and writes to it at once.
fn is_atomic(instruction: &Instruction) -> bool {
    let of_memory = instruction.op_kinds().any(|kind| kind == OpKind::Memory);
    of_memory && (instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg)
}

/// Whether the instruction with these bytes repeats itself.
pub(crate) fn is_repeated(bytes: &[u8]) -> bool {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// Whether an instruction may give something else the next time: of clocks, of chance, of the CPU it runs on.
fn is_unsteady(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::Rdtsc | M::Rdtscp | M::Rdpid | M::Rdrand | M::Rdseed | M::Rdpru | M::Cpuid | M::Lsl)
}

/// Flags of `iced-x86` as bits of rflags.
fn status(flags: u32) -> u64 {
    let all = [
        (RflagsBits::CF, 0),
        (RflagsBits::PF, 2),
        (RflagsBits::AF, 4),
        (RflagsBits::ZF, 6),
        (RflagsBits::SF, 7),
        (RflagsBits::OF, 11),
    ];
    all.iter().filter(|(flag, _)| flags & flag != 0).map(|(_, bit)| 1 << bit).sum()
}

/// A conditional branch that leads to an exit if it does not go as expected.
fn conditional(
    instruction: &Instruction,
    bytes: &[u8],
    is_taken: bool,
    exit: usize,
    writer: &mut Writer<'_>,
) -> Result<(), Refusal> {
    if instruction.condition_code() != ConditionCode::None && !instruction.is_loopcc() {
        // In the order of the encoding. The lowest bit turns the condition around.
        let condition = instruction.condition_code() as u8 - 1;
        writer.bytes(&[0x0f, 0x80 | condition ^ u8::from(is_taken)]);
        writer.distance(exit);
        return Ok(());
    }
    // `loop` and `jrcxz` have eight bits for the distance.
    let [first @ .., _] = bytes else { return Err(Refusal::Instruction) };
    if !matches!(first.last(), Some(0xe0..=0xe3)) {
        return Err(Refusal::Instruction);
    }
    writer.bytes(first);
    if is_taken {
        writer.bytes(&[5]);
    } else {
        writer.bytes(&[2, 0xeb, 5]);
    }
    writer.jump(exit);
    Ok(())
}

/// The bytes of an instruction whose memory operand is relative to the next instruction, with a register in the place of that.
fn relative_to(
    register: u8,
    instruction: &Instruction,
    bytes: &[u8],
    displacement: usize,
) -> Result<[u8; LONGEST_INSTRUCTION], Refusal> {
    let mut patched = [0; LONGEST_INSTRUCTION];
    patched[..bytes.len()].copy_from_slice(bytes);
    let modrm = displacement.checked_sub(1).and_then(|at| patched.get_mut(at)).ok_or(Refusal::Instruction)?;
    if *modrm & 0xc7 != 0x05 {
        return Err(Refusal::Instruction);
    }
    *modrm = *modrm & 0x38 | 0x80 | register;
    let again = Decoder::with_ip(64, &patched[..bytes.len()], 0, DecoderOptions::NONE).decode();
    let is_same = again.code() == instruction.code()
        && again.len() == instruction.len()
        && again.memory_base().is_gpr64()
        && again.memory_base().number() == usize::from(register)
        && instruction.next_ip().wrapping_add(again.memory_displacement64()) == instruction.ip_rel_memory_address();
    if is_same { Ok(patched) } else { Err(Refusal::Instruction) }
}

struct Load {
    bytes: [u8; LONGEST_INSTRUCTION],
    length: usize,
}

/// Loads the target of an indirect branch into a register; the register has the address of the next instruction if the operand is relative to
/// that.
fn load_of_target(register: u8, instruction: &Instruction, bytes: &[u8]) -> Result<Load, Refusal> {
    let is_near = matches!(instruction.code(), Code::Jmp_rm64 | Code::Call_rm64);
    let opcode = bytes.iter().position(|&byte| byte == 0xff).filter(|&at| is_near && at + 1 < bytes.len());
    let opcode = opcode.ok_or(Refusal::Instruction)?;
    let (mut load, mut rex) = (Load { bytes: [0; LONGEST_INSTRUCTION], length: 0 }, 0x48);
    let mut add = |byte: u8| {
        if let Some(place) = load.bytes.get_mut(load.length) {
            *place = byte;
        }
        load.length += 1;
    };
    for &prefix in &bytes[..opcode] {
        match prefix {
            // Without its bit for the register field, which is part of the opcode.
            0x40..=0x4f => rex |= prefix & 3,
            // Segments, and addresses of 32 bits. Others mean nothing here, or are hints.
            0x64 | 0x65 | 0x67 => add(prefix),
            _ => {}
        }
    }
    let mut modrm = bytes[opcode + 1] & 0xc7 | register << 3;
    if instruction.is_ip_rel_memory_operand() {
        modrm = modrm & 0x38 | 0x80 | register;
    }
    [rex, 0x8b, modrm].into_iter().for_each(&mut add);
    bytes[opcode + 2..].iter().copied().for_each(&mut add);
    if load.length > LONGEST_INSTRUCTION { Err(Refusal::Instruction) } else { Ok(load) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use lookahead::BranchKind;

    /// Code of a program, at this address.
    const CODE: u64 = 0x7000_1000;

    /// An area that is executable, with the copy of a path in it.
    struct Executable {
        area: &'static mut [u8],
        copy: PathCopy,
    }

    impl Drop for Executable {
        fn drop(&mut self) {
            // SAFETY: what `write` has mapped; nothing else refers to it.
            unsafe { libc::munmap(self.area.as_mut_ptr().cast(), self.area.len()) };
        }
    }

    fn branch(from: u64, to: u64) -> Branch {
        Branch { from: Avma(CODE + from), to: Avma(CODE + to), kind: BranchKind::Conditional }
    }

    fn write(code: &[u8], branches: &[Branch], instructions: u64) -> Result<Executable, Refusal> {
        let bytes = 1 << 20;
        // SAFETY: a new mapping changes no memory that is in use.
        let area = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            std::slice::from_raw_parts_mut(start.cast::<u8>(), bytes)
        };
        let mut executable = Executable { area, copy: PathCopy::new() };
        let fetch = |address: u64, bytes: &mut [u8; LONGEST_INSTRUCTION]| {
            let left = &code[((address - CODE) as usize).min(code.len())..];
            let length = left.len().min(bytes.len());
            bytes[..length].copy_from_slice(&left[..length]);
            length
        };
        let path = Path { start: CODE, instructions, branches };
        let Executable { area, copy } = &mut executable;
        copy.write(path, area, fetch).map(|()| executable)
    }

    impl Executable {
        /// Runs it with rax, rcx and rdx; these registers then, and where it stopped: at its end or at this exit.
        fn run(&mut self, [rax, rcx, rdx]: [u64; 3], exit: usize) -> ([u64; 3], Stop) {
            let exits = self.area.len() - MOST_EXITS;
            let end = self.copy.end;
            // mov r11d, 1; ret
            self.area[end..end + 7].copy_from_slice(&[0x41, 0xbb, 1, 0, 0, 0, 0xc3]);
            self.area[exits..exits + self.copy.exits.len()].fill(0xc3);
            let (address, mut registers) = (self.area.as_ptr() as u64, [rax, rcx, rdx]);
            let is_end: u64;
            // SAFETY: code that changes these registers, and the stack not below where it is; it returns.
            unsafe {
                std::arch::asm!(
                    "xor r11d, r11d", "sub rsp, 256", "call {start}", "add rsp, 256",
                    start = in(reg) address + START as u64,
                    inout("rax") registers[0], inout("rcx") registers[1], inout("rdx") registers[2],
                    out("r11") is_end, out("rsi") _, out("rdi") _,
                );
            }
            let at = if is_end == 0 { exits + exit } else { end };
            (registers, self.copy.stop(self.area, address, address + at as u64))
        }
    }

    #[test]
    fn a_path_is_executed_as_its_code_would_be() {
        // 0: add rax, rcx; 3: cmp rax, 5; 7: jne 12 (0xc); 9: ...; c: lea rdx, [rip + 0x10] (= 0x23); 13: loop 0x17; 17: inc rax
        let mut code = vec![0x48, 0x01, 0xc8, 0x48, 0x83, 0xf8, 0x05, 0x75, 0x03, 0x90, 0x90, 0x90];
        code.extend([0x48, 0x8d, 0x15, 0x10, 0, 0, 0, 0xe2, 0x02, 0x90, 0x90, 0x48, 0xff, 0xc0]);
        let path = [branch(7, 0xc), branch(0x13, 0x17)];
        let mut copy = write(&code, &path, 6).unwrap();
        assert_eq!(copy.run([1, 2, 0], 0), ([4, 1, CODE + 0x23], Stop::End));
        // 3 + 2 is 5: the branch is not taken.
        let left = |from: u64, expected: u64, found: u64, instructions, branches| {
            let [from, expected, found] = [from, expected, found].map(|at| CODE + at);
            Stop::Left { from, expected, found, rip: found, instructions, branches, is_after_atomic: false }
        };
        assert_eq!(copy.run([3, 2, 0], 0), ([5, 2, 0], left(7, 0xc, 9, 2, 0)));
        // Nor is one that was expected not to be.
        let mut copy = write(&code, &[], 5).unwrap();
        assert_eq!(copy.run([3, 2, 7], 0), ([5, 2, 7], Stop::End));
    }

    #[test]
    fn targets_are_compared_with_those_of_the_burst() {
        // call 0x10; 10: pop rdx; 11: push rdx; 12: ret (to 5); 5: jmp rcx; 20: nop
        let mut code = vec![0x90; 0x40];
        code[..5].copy_from_slice(&[0xe8, 0x0b, 0, 0, 0]);
        code[5..7].copy_from_slice(&[0xff, 0xe1]);
        code[0x10..0x13].copy_from_slice(&[0x5a, 0x52, 0xc3]);
        let path = [branch(0, 0x10), branch(0x12, 5), branch(5, 0x20)];
        let mut copy = write(&code, &path, 6).unwrap();
        assert_eq!(copy.run([3, CODE + 0x20, 0], 0), ([3, CODE + 0x20, CODE + 5], Stop::End));
        // Elsewhere: the branch is to be executed again, where it is.
        let (registers, stop) = copy.run([3, CODE + 0x30, 0], 1);
        assert_eq!(registers, [3, CODE + 0x30, CODE + 5]);
        let [from, expected, found] = [5, 0x20, 0x30].map(|at| CODE + at);
        let left =
            Stop::Left { from, expected, found, rip: from, instructions: 4, branches: 2, is_after_atomic: false };
        assert_eq!(stop, left);
    }

    #[test]
    fn a_fault_is_one_of_the_instruction_of_the_program() {
        // 0: add rax, [rip + 0x20]
        let copy = write(&[0x48, 0x03, 0x05, 0x20, 0, 0, 0], &[], 1).unwrap();
        let (place, address) = (copy.copy.places[1], copy.area.as_ptr() as u64);
        let stop = copy.copy.stop(copy.area, address, address + u64::from(place.offset));
        assert_eq!(stop, Stop::Inside { rip: CODE, saved: Some((2, 0)), instructions: 0 });
    }

    #[test]
    fn repeated_instructions_are_known() {
        // rep stosb; repne scasb; stosb; rep ret; nothing
        let codes = [&[0xf3, 0xaa][..], &[0xf2, 0xae], &[0xaa], &[0xf3, 0xc3], &[]];
        assert_eq!(codes.map(is_repeated), [true, true, false, false, false]);
    }

    #[test]
    fn what_is_not_the_path_of_the_code_is_refused() {
        let refused = |code: &[u8], branches: &[Branch], instructions| write(code, branches, instructions).err();
        // A branch that is not there; none where one has to be; one that leads elsewhere; no code; a breakpoint.
        assert_eq!(refused(&[0x90; 9], &[branch(0, 4)], 2), Some(Refusal::OtherCode));
        assert_eq!(refused(&[0xeb, 0x02], &[], 1), Some(Refusal::OtherCode));
        assert_eq!(refused(&[0xeb, 0x02], &[branch(0, 5)], 1), Some(Refusal::OtherCode));
        assert_eq!(refused(&[0x90], &[], 2), Some(Refusal::OtherCode));
        assert_eq!(refused(&[0xcc], &[], 1), Some(Refusal::Instruction));
        assert_eq!(refused(&[0xeb, 0xfe], &[branch(0, 0); 40_000], 40_000), None);
        assert_eq!(refused(&[0xff, 0xe0], &[branch(0, 0); 40_000], 40_000), Some(Refusal::TooLong));
    }
}
