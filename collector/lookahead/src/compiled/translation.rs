//! One instruction after the other, from what the interpreter has to machine code of the host.
//!
//! An instruction that is translated leaves what its operation would leave. Where something is in its way (a line that is not in the tables,
//! an operand across two lines, a use of what was stored shortly before), and for all that are not translated, the interpreter
//! executes its operation.

use std::mem::offset_of;

use crate::BranchKind;
use crate::arith::{self, ADC, CMP, SBB, TEST};
use crate::compiled::assembler::{Assembler, Host, If, Jump, Place};
use crate::compiled::exit_code::ExitCode;
use crate::compiled::status::Status;
use crate::compiled::step::{Asked, Data};
use crate::compiled::targets::{Target, Targets};
use crate::context::{Context, ForBlocks};
use crate::form::{Form, IMM, MEM};
use crate::frequent::{Frequent, Kind};
use crate::line_tables::{self, Table};
use crate::lines::{DataLines, Stored};
use crate::op::{MemoryUse, Op};
use crate::operand::{Address, RAX, RCX, RDX, RSP, ZERO};
use crate::overlay::LINE;

const BLOCKS: usize = offset_of!(Context, blocks);
const TABLES: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, tables));
const TAG: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, tag));
const STORED: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, stored));
const TARGET: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, target));
const STEP: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, step));
const FRAME: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, frame));
const EXECUTED: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, executed));
const STATUS: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, status));
const CHANGED: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, changed));
const TARGETS: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, targets));
const NEXT_BRANCH: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, next_branch));
const SPIN_TARGET: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, spin_target));
const WITNESS: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, witness));
const WITNESS_VALUE: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, witness_value));
const BURST: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, burst));
const LEFT: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, left));
const UNTIL: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, until));
const NOT_TAKEN: Place = Place::Context(BLOCKS + offset_of!(ForBlocks, not_taken));

/// The operand in memory, once it is known where it is.
const OPERAND: Place = Place::At(Host::Di, 0);
const VALUE: Place = Place::Register(Host::Dx);

/// Bits of a place of the tables: 16 bytes.
const PLACE_BITS: u8 = 4;
const LINE_SHIFT: u8 = LINE.trailing_zeros() as u8;

/// Where a block is entered from another one: `BX` has the context already.
pub(super) const ENTRY: usize = 4;
/// pop rbx; ret
const LEAVE: [u8; 2] = [0x5b, 0xc3];

/// What is done where an instruction cannot go on by itself.
struct Detour {
    asked: Asked,
    jumps: [Option<Jump>; 3],
    /// A load of what was stored may be so soon after it that it counts: the place in the table is in `CX`.
    soon: Option<(Jump, usize)>,
    /// Where the code goes on.
    back: usize,
    /// The CPU has the status flags there.
    status: bool,
}

/// A branch leads to where an earlier one did: it may be that nothing has changed since.
struct Spin {
    jump: Jump,
    back: usize,
}

/// Jumps to where the code goes back to the burst's loop,
#[derive(Default)]
struct Leaving {
    /// with what it returns in `AX`,
    with_code: Vec<Jump>,
    /// or with where the path goes on in `DX`: after a taken branch,
    taken: Vec<Jump>,
    /// or without one.
    passed: Vec<Jump>,
}

/// A block that is being translated.
pub(super) struct Translation<'a> {
    assembler: &'a mut Assembler,
    /// The place of its first operation among all, and how many it has.
    first: u32,
    count: u8,
    detours: Vec<Detour>,
    spins: Vec<Spin>,
    leaving: Leaving,
    /// The CPU has the status flags: the instruction before left them.
    has_status: bool,
}

/// Where a register is.
fn register(number: u8) -> Place {
    // The second byte of one of the first four has a number of its own.
    Place::Context(8 * usize::from(number & 31) + usize::from(number >> 5))
}

/// Whether its operand in memory is where a base, an index and a displacement say.
fn is_plain(address: &Address) -> bool {
    address.segment == ZERO && !address.short
}

impl<'a> Translation<'a> {
    pub(super) fn begin(assembler: &'a mut Assembler, first: u32, count: u8) -> Self {
        assembler.code.clear();
        assembler.byte(0x53); // push rbx
        assembler.form(8, &[0x8b], Host::Bx as u8, Place::Register(Host::Di));
        debug_assert_eq!(assembler.code.len(), ENTRY);
        let (detours, spins) = (Vec::new(), Vec::new());
        Self { assembler, first, count, detours, spins, leaving: Leaving::default(), has_status: false }
    }

    /// Adds an instruction; `index` is its place in the block. `saves`: its status flags are needed after it.
    pub(super) fn add(&mut self, index: u8, op: &Op, frequent: Option<&Frequent>, saves: bool) {
        let Some(Frequent { kind, form, .. }) = frequent.filter(|_| is_plain(&op.address)) else {
            return self.ask(index, Status::is_touched(op));
        };
        if self.translate(index, op, *kind, *form, saves).is_none() {
            self.ask(index, Status::of(*kind, *form, op).is_used());
        }
    }

    /// Ends the block, after which comes the code at `after`.
    pub(super) fn end(mut self, after: u64) {
        self.pass(self.count, after);
        for detour in std::mem::take(&mut self.detours) {
            self.detour(detour);
        }
        for spin in std::mem::take(&mut self.spins) {
            self.spin(spin);
        }
        let Leaving { with_code, taken, passed } = std::mem::take(&mut self.leaving);
        for (jumps, code) in [(taken, ExitCode::TAKEN), (passed, ExitCode::PASSED)] {
            for jump in jumps {
                self.assembler.lands(jump);
            }
            self.assembler.store(8, TARGET, Host::Dx);
            self.assembler.set(Host::Ax, u64::from(code.0));
            self.assembler.bytes(&LEAVE);
        }
        for jump in with_code {
            self.assembler.lands(jump);
        }
        self.assembler.bytes(&LEAVE);
    }

    /// `None`, with nothing written, if it is left to the interpreter.
    fn translate(&mut self, index: u8, op: &Op, kind: Kind, form: Form, saves: bool) -> Option<()> {
        match kind {
            Kind::Arithmetic(operation) => self.arithmetic(index, op, operation, form, saves),
            Kind::Unary(operation) => self.unary(index, op, operation, form, saves),
            Kind::Shift(operation) => self.shift(index, op, operation, form, saves)?,
            Kind::Move => self.moves(index, op, form),
            Kind::Extend { from, signed } => {
                self.source(index, op, form, from);
                let place = if form.src == MEM { OPERAND } else { register(op.src) };
                match (from, signed) {
                    (4, _) => self.assembler.form(8, &[0x63], Host::Dx as u8, place),
                    _ => {
                        let opcode = 0xb6 | u8::from(signed) << 3 | u8::from(from == 2);
                        self.assembler.form(form.size, &[0x0f, opcode], Host::Dx as u8, place);
                    }
                }
                self.set(form.size, op.dst);
                self.has_status &= form.src != MEM;
            }
            Kind::Lea => {
                self.address(&op.address);
                self.assembler.form(form.size, &[0x8b], Host::Dx as u8, Place::Register(Host::Si));
                self.set(form.size, op.dst);
                self.has_status = false;
            }
            Kind::Push if form.dst == MEM => return None,
            Kind::Push => {
                self.top_of_stack(index, Data::Pushed);
                if form.dst == IMM {
                    self.assembler.set(Host::Dx, op.imm);
                } else {
                    self.assembler.load(8, Host::Dx, register(op.dst));
                }
                self.put(8);
                self.assembler.store(8, register(RSP), Host::Si);
            }
            Kind::Pop => {
                self.top_of_stack(index, Data::Popped);
                self.assembler.load(8, Host::Dx, OPERAND);
                self.drop_from_stack(8);
                self.assembler.store(8, register(op.dst), Host::Dx);
            }
            Kind::Widen => {
                let (size, opcode) = if form.size == 8 { (8, &[0x63][..]) } else { (4, &[0x0f, 0xbf][..]) };
                self.assembler.form(size, opcode, Host::Dx as u8, register(RAX));
                self.set(size, RAX);
            }
            Kind::Spread => {
                self.assembler.load(form.size, Host::Dx, register(RAX));
                self.assembler.shift(form.size, 7, Host::Dx, 8 * form.size as u8 - 1);
                self.set(form.size, RDX);
                self.has_status = false;
            }
            Kind::Nothing => {}
            Kind::SetIf(condition) => {
                self.destination(index, op, form, 1);
                self.take_status();
                self.assembler.form(4, &[0x0f, 0x90 | condition], 0, VALUE);
                self.put_or_set(form, op);
            }
            Kind::MoveIf(condition) => {
                self.source(index, op, form, form.size);
                self.take_status();
                self.assembler.load(form.size, Host::Dx, register(op.dst));
                let place = if form.src == MEM { OPERAND } else { register(op.src) };
                self.assembler.form(form.size, &[0x0f, 0x40 | condition], Host::Dx as u8, place);
                self.set(form.size, op.dst);
            }
            Kind::JumpIf(condition) => {
                self.take_status();
                let taken = self.assembler.jump_if(condition);
                self.assembler.immediate(4, arith::ADD, NOT_TAKEN, 1);
                self.pass(index + 1, op.next());
                self.assembler.lands(taken);
                self.take(index, op, BranchKind::Conditional, Some(op.imm));
            }
            Kind::Jump => self.take(index, op, BranchKind::Jump, Some(op.imm)),
            Kind::Call => {
                self.top_of_stack(index, Data::Pushed);
                self.push_return(op);
                self.take(index, op, BranchKind::Call, Some(op.imm));
            }
            Kind::IndirectJump => {
                self.destination(index, op, form, 8);
                let place = if form.dst == MEM { OPERAND } else { register(op.dst) };
                self.assembler.load(8, Host::Dx, place);
                self.take(index, op, BranchKind::IndirectJump, None);
            }
            Kind::IndirectCall if form.dst == MEM => return None,
            Kind::IndirectCall => {
                self.top_of_stack(index, Data::Pushed);
                // It may be the stack pointer.
                self.assembler.load(8, Host::Cx, register(op.dst));
                self.push_return(op);
                self.assembler.load(8, Host::Dx, Place::Register(Host::Cx));
                self.take(index, op, BranchKind::IndirectCall, None);
            }
            Kind::Return => {
                self.top_of_stack(index, Data::Popped);
                self.assembler.load(8, Host::Dx, OPERAND);
                self.drop_from_stack(8);
                self.take(index, op, BranchKind::Return, None);
            }
        }
        if let Some(detour) = self.detours.last_mut()
            && detour.asked.index == index
        {
            (detour.back, detour.status) = (self.assembler.code.len(), self.has_status);
            detour.asked.status = Status::of(kind, form, op).is_used();
        }
        Some(())
    }

    fn arithmetic(&mut self, index: u8, op: &Op, operation: u8, form: Form, saves: bool) {
        let writes = operation != CMP && operation != TEST;
        let in_memory = form.dst == MEM || form.src == MEM;
        if in_memory {
            let data = if form.dst == MEM && writes { Data::Written } else { Data::Read };
            self.operand(index, op, data, form.size);
        }
        if operation == ADC || operation == SBB {
            self.take_status();
        }
        let first = if form.dst == MEM { OPERAND } else { register(op.dst) };
        self.assembler.load(form.size, Host::Dx, first);
        match (form.src, operation) {
            (IMM, TEST) => {
                self.assembler.sized(form.size, 0xf6, 0, VALUE);
                let bytes = (op.imm as u32).to_le_bytes();
                self.assembler.bytes(&bytes[..if form.size == 1 { 1 } else { 4 }]);
            }
            (IMM, _) => self.assembler.immediate(form.size, operation, VALUE, op.imm as i32),
            (src, _) => {
                let second = if src == MEM { OPERAND } else { register(op.src) };
                match operation {
                    TEST => self.assembler.sized(form.size, 0x84, Host::Dx as u8, second),
                    _ => self.assembler.operation(form.size, operation, Host::Dx, second),
                }
            }
        }
        self.leaves_status(saves);
        if writes {
            self.put_or_set(form, op);
        }
    }

    fn unary(&mut self, index: u8, op: &Op, operation: u8, form: Form, saves: bool) {
        self.destination_changed(index, op, form);
        // These leave some or all flags as they were.
        let keeps = operation != arith::NEG;
        if keeps && saves {
            self.take_status();
        }
        let first = if form.dst == MEM { OPERAND } else { register(op.dst) };
        self.assembler.load(form.size, Host::Dx, first);
        let (opcode, number) = match operation {
            arith::INC => (0xfe, 0),
            arith::DEC => (0xfe, 1),
            arith::NEG => (0xf6, 3),
            _ => (0xf6, 2),
        };
        self.assembler.sized(form.size, opcode, number, VALUE);
        self.leaves_status(saves);
        self.put_or_set(form, op);
    }

    fn shift(&mut self, index: u8, op: &Op, operation: u8, form: Form, saves: bool) -> Option<()> {
        // Of rotations in memory, CPUs set OF otherwise than of those in registers.
        if operation < 4 && form.dst == MEM {
            return None;
        }
        self.destination_changed(index, op, form);
        if saves && Status::of(Kind::Shift(operation), form, op).keeps {
            self.take_status();
        }
        let first = if form.dst == MEM { OPERAND } else { register(op.dst) };
        self.assembler.load(form.size, Host::Dx, first);
        if form.src == IMM {
            self.assembler.sized(form.size, 0xc0, operation, VALUE);
            self.assembler.byte(op.imm as u8);
        } else {
            self.assembler.load(4, Host::Cx, register(RCX));
            self.assembler.sized(form.size, 0xd2, operation, VALUE);
        }
        self.leaves_status(saves);
        self.put_or_set(form, op);
        Some(())
    }

    fn moves(&mut self, index: u8, op: &Op, form: Form) {
        match (form.dst, form.src) {
            (MEM, src) => {
                self.operand(index, op, Data::Stored, form.size);
                if src == IMM {
                    self.assembler.set(Host::Dx, op.imm);
                } else {
                    self.assembler.load(form.size, Host::Dx, register(op.src));
                }
                self.put(form.size);
            }
            (_, MEM) => {
                self.operand(index, op, Data::Read, form.size);
                self.assembler.load(form.size, Host::Dx, OPERAND);
                self.set(form.size, op.dst);
            }
            (_, IMM) => {
                self.assembler.set(Host::Dx, op.imm);
                self.set(form.size, op.dst);
            }
            _ => {
                self.assembler.load(form.size, Host::Dx, register(op.src));
                self.set(form.size, op.dst);
            }
        }
    }

    /// Finds the second operand, if it is in memory.
    fn source(&mut self, index: u8, op: &Op, form: Form, size: usize) {
        if form.src == MEM {
            self.operand(index, op, Data::Read, size);
        }
    }

    /// Finds the first operand, if it is in memory.
    fn destination(&mut self, index: u8, op: &Op, form: Form, size: usize) {
        if form.dst == MEM {
            let data = if op.memory.stores() { Data::Stored } else { Data::Read };
            self.operand(index, op, data, size);
        }
    }

    fn destination_changed(&mut self, index: u8, op: &Op, form: Form) {
        if form.dst == MEM {
            self.operand(index, op, Data::Written, form.size);
        }
    }

    /// The value goes to a register as an instruction of so many bytes writes it: four clear the upper half.
    fn set(&mut self, size: usize, number: u8) {
        self.assembler.store(if size == 4 { 8 } else { size }, register(number), Host::Dx);
    }

    /// The value goes to the operand in memory.
    fn put(&mut self, size: usize) {
        self.assembler.sized(size, 0x38, Host::Dx as u8, OPERAND); // cmp
        self.assembler.store(size, OPERAND, Host::Dx);
        self.assembler.form(4, &[0x0f, 0x95], 0, Place::Register(Host::Ax)); // setne al
        self.assembler.form(1, &[0x08], Host::Ax as u8, CHANGED); // or
        self.has_status = false;
    }

    /// The value goes to the first operand.
    fn put_or_set(&mut self, form: Form, op: &Op) {
        if form.dst == MEM { self.put(form.size) } else { self.set(form.size, op.dst) }
    }

    /// Status flags that an instruction has left in the CPU go to the context.
    fn leaves_status(&mut self, saves: bool) {
        if saves {
            self.assembler.byte(0x9f); // lahf
            self.assembler.form(4, &[0x0f, 0x90], 0, Place::Register(Host::Ax)); // seto al
            self.assembler.store(2, STATUS, Host::Ax);
        }
        self.has_status = saves;
    }

    /// The CPU has the status flags of the context from here on.
    fn take_status(&mut self) {
        if !self.has_status {
            self.load_status();
        }
        self.has_status = true;
    }

    fn load_status(&mut self) {
        self.assembler.load(2, Host::Ax, STATUS);
        self.assembler.bytes(&[0x04, 0x7f]); // add al, 0x7f: overflows if it is 1
        self.assembler.byte(0x9e); // sahf
    }

    /// `SI` gets the address of an operand.
    fn address(&mut self, address: &Address) {
        let (base, index) = (address.base != ZERO, address.index != ZERO);
        if !base && !index {
            return self.assembler.set(Host::Si, address.displacement);
        }
        if base {
            self.assembler.load(8, Host::Si, register(address.base));
        }
        match (base, index) {
            (true, true) => {
                self.assembler.load(8, Host::Ax, register(address.index));
                // lea rsi, [rsi + rax * scale]
                self.assembler.bytes(&[0x48, 0x8d, 0x34, (address.scale & 3) << 6 | 0x06]);
            }
            (false, true) => {
                self.assembler.load(8, Host::Si, register(address.index));
                self.assembler.shift(8, 4, Host::Si, address.scale & 3);
            }
            _ => {}
        }
        match i32::try_from(address.displacement as i64) {
            Ok(0) => {}
            Ok(displacement) => self.assembler.immediate(8, 0, Place::Register(Host::Si), displacement),
            Err(_) => {
                self.assembler.set(Host::Ax, address.displacement);
                self.assembler.operation(8, 0, Host::Si, Place::Register(Host::Ax));
            }
        }
    }

    /// `DI` gets the place of an operand that the instruction names, with `SI` its address.
    fn operand(&mut self, index: u8, op: &Op, data: Data, size: usize) {
        self.address(&op.address);
        let mut detour = self.find(index, op.memory, data, size);
        if op.memory.elsewhere() {
            self.after_store(index, op.memory, &mut detour);
        }
        self.detours.push(detour);
        self.has_status = false;
    }

    /// The same of the top of the stack, or of what is pushed on it.
    fn top_of_stack(&mut self, index: u8, data: Data) {
        self.assembler.load(8, Host::Si, register(RSP));
        if data == Data::Pushed {
            self.assembler.immediate(8, 5, Place::Register(Host::Si), 8);
        }
        let detour = self.find(index, MemoryUse::default(), data, 8);
        self.detours.push(detour);
        self.has_status = false;
    }

    fn drop_from_stack(&mut self, bytes: i32) {
        self.assembler.immediate(8, 0, Place::Register(Host::Si), bytes);
        self.assembler.store(8, register(RSP), Host::Si);
        self.has_status = false;
    }

    fn push_return(&mut self, op: &Op) {
        self.assembler.set(Host::Dx, op.next());
        self.put(8);
        self.assembler.store(8, register(RSP), Host::Si);
    }

    /// Looks up the line of `SI`.
    fn find(&mut self, index: u8, memory: MemoryUse, data: Data, size: usize) -> Detour {
        let Table { first, places } = data.table();
        let known = !memory.none();
        let asm = &mut *self.assembler;
        let (ax, cx) = (Place::Register(Host::Ax), Place::Register(Host::Cx));
        asm.load(8, Host::Ax, Place::Register(Host::Si));
        asm.shift(8, 5, Host::Ax, LINE_SHIFT);
        asm.load(8, Host::Cx, ax);
        if known {
            asm.shift(8, 5, Host::Cx, line_tables::FOLDED);
            asm.operation(4, arith::XOR, Host::Cx, ax);
        }
        asm.immediate(4, arith::AND, cx, places as i32 - 1);
        asm.shift(4, 4, Host::Cx, PLACE_BITS);
        asm.operation(8, arith::ADD, Host::Cx, TABLES);
        asm.operation(8, arith::OR, Host::Ax, TAG);
        let place = |offset: usize| Place::At(Host::Cx, ((first << PLACE_BITS) + offset) as i32);
        asm.operation(8, CMP, Host::Ax, place(offset_of!(line_tables::Place, tag)));
        let mut jumps = [Some(asm.jump_if(If::NotEqual as u8)), None, None];
        if size > 1 {
            asm.load(4, Host::Ax, Place::Register(Host::Si));
            asm.immediate(4, arith::AND, ax, LINE as i32 - 1);
            asm.immediate(4, CMP, ax, (LINE - size) as i32);
            jumps[1] = Some(asm.jump_if(If::Above as u8));
        }
        asm.load(8, Host::Di, place(offset_of!(line_tables::Place, distance)));
        asm.operation(8, arith::ADD, Host::Di, Place::Register(Host::Si));
        let asked = Asked { index, status: false, data: Some(data), count: self.count };
        Detour { asked, jumps, soon: None, back: 0, status: false }
    }

    /// What [`DataLines`] does with stores, and with loads after them.
    fn after_store(&mut self, index: u8, memory: MemoryUse, detour: &mut Detour) {
        let asm = &mut *self.assembler;
        let cx = Place::Register(Host::Cx);
        asm.load(8, Host::Cx, Place::Register(Host::Si));
        asm.shift(8, 5, Host::Cx, DataLines::STORED_FOLDED);
        asm.operation(4, arith::XOR, Host::Cx, Place::Register(Host::Si));
        asm.immediate(4, arith::AND, cx, DataLines::STORED as i32 - 1);
        asm.shift(4, 4, Host::Cx, PLACE_BITS);
        asm.operation(8, arith::ADD, Host::Cx, STORED);
        let place = |offset: usize| Place::At(Host::Cx, offset as i32);
        if memory.loads() {
            asm.operation(8, CMP, Host::Si, place(offset_of!(Stored, address)));
            let jump = asm.jump_if(If::Equal as u8);
            detour.soon = Some((jump, asm.code.len()));
        }
        if memory.stores() {
            asm.store(8, place(offset_of!(Stored, address)), Host::Si);
            asm.load(4, Host::Ax, EXECUTED);
            asm.immediate(4, arith::ADD, Place::Register(Host::Ax), i32::from(index));
            asm.store(4, place(offset_of!(Stored, instruction)), Host::Ax);
        }
    }

    fn detour(&mut self, detour: Detour) {
        let Detour { asked, mut jumps, soon, back, status } = detour;
        if let Some((jump, resume)) = soon {
            let ax = Place::Register(Host::Ax);
            self.assembler.lands(jump);
            self.assembler.load(4, Host::Ax, EXECUTED);
            self.assembler.immediate(4, arith::ADD, ax, i32::from(asked.index));
            self.assembler.operation(
                4,
                arith::SUB,
                Host::Ax,
                Place::At(Host::Cx, offset_of!(Stored, instruction) as i32),
            );
            self.assembler.immediate(4, arith::SUB, ax, 1);
            self.assembler.immediate(4, CMP, ax, DataLines::FARTHEST as i32 - 1);
            jumps[2] = Some(self.assembler.jump_if(If::BelowOrEqual as u8));
            let jump = self.assembler.jump();
            self.assembler.lands_at(jump, resume);
        }
        for jump in jumps.into_iter().flatten() {
            self.assembler.lands(jump);
        }
        self.call(asked);
        if status {
            self.load_status();
        }
        let jump = self.assembler.jump();
        self.assembler.lands_at(jump, back);
    }

    /// The interpreter executes an operation.
    fn ask(&mut self, index: u8, status: bool) {
        self.call(Asked { index, status, data: None, count: self.count });
        self.has_status = false;
    }

    fn call(&mut self, asked: Asked) {
        self.assembler.load(8, Host::Di, FRAME);
        self.assembler.set(Host::Si, u64::from(self.first + u32::from(asked.index)));
        self.assembler.set(Host::Dx, u64::from(asked.encode()));
        self.assembler.form(4, &[0xff], 2, STEP); // call
        self.assembler.sized(4, 0x84, Host::Ax as u8, Place::Register(Host::Ax)); // test
        let jump = self.assembler.jump_if(If::NotEqual as u8);
        self.leaving.with_code.push(jump);
    }

    /// The block ends with a taken branch, to `target` or to where `DX` says.
    fn take(&mut self, index: u8, op: &Op, kind: BranchKind, target: Option<u64>) {
        if let Some(target) = target {
            self.assembler.set(Host::Dx, target);
        }
        let asm = &mut *self.assembler;
        let ax = Place::Register(Host::Ax);
        asm.load(8, Host::Ax, NEXT_BRANCH);
        asm.set(Host::Cx, op.ip);
        asm.store(8, Place::At(Host::Ax, 0), Host::Cx);
        asm.store(8, Place::At(Host::Ax, 8), Host::Dx);
        asm.set(Host::Cx, kind as u64);
        asm.store(8, Place::At(Host::Ax, 16), Host::Cx);
        asm.immediate(8, arith::ADD, ax, size_of::<[u64; 3]>() as i32);
        asm.store(8, NEXT_BRANCH, Host::Ax);
        asm.immediate(4, arith::ADD, EXECUTED, i32::from(index) + 1);
        asm.immediate(4, arith::SUB, UNTIL, 1);
        self.leaving.taken.push(asm.jump_if(If::Equal as u8));
        asm.operation(8, CMP, Host::Dx, SPIN_TARGET);
        let jump = asm.jump_if(If::Equal as u8);
        self.spins.push(Spin { jump, back: asm.code.len() });
        let leaving = self.go_on(target);
        self.leaving.taken.extend(leaving);
    }

    /// So many instructions of the block were executed, and the path goes on at `target`.
    fn pass(&mut self, instructions: u8, target: u64) {
        self.assembler.set(Host::Dx, target);
        self.assembler.immediate(4, arith::ADD, EXECUTED, i32::from(instructions));
        let leaving = self.go_on(Some(target));
        self.leaving.passed.extend(leaving);
    }

    /// Enters the block at the address in `DX`, if it is compiled, and is as it was, and all of it may be executed.
    fn go_on(&mut self, target: Option<u64>) -> [Jump; 3] {
        const PLACE: usize = size_of::<Target>();
        let asm = &mut *self.assembler;
        let ax = Place::Register(Host::Ax);
        asm.load(8, Host::Cx, TARGETS);
        if target.is_none() {
            asm.load(8, Host::Ax, Place::Register(Host::Dx));
            asm.shift(8, 5, Host::Ax, Targets::FOLDED);
            asm.operation(4, arith::XOR, Host::Ax, Place::Register(Host::Dx));
            asm.immediate(4, arith::AND, ax, Targets::PLACES as i32 - 1);
            asm.shift(4, 4, Host::Ax, PLACE.trailing_zeros() as u8);
            asm.operation(8, arith::ADD, Host::Cx, ax);
        }
        let known = target.map_or(0, Targets::place) * PLACE;
        let place = |offset: usize| Place::At(Host::Cx, (known + offset) as i32);
        asm.operation(8, CMP, Host::Dx, place(offset_of!(Target, start)));
        let other = asm.jump_if(If::NotEqual as u8);
        asm.load(4, Host::Ax, BURST);
        asm.operation(4, CMP, Host::Ax, place(offset_of!(Target, seen)));
        let unseen = asm.jump_if(If::NotEqual as u8);
        asm.load(4, Host::Ax, LEFT);
        asm.operation(4, arith::SUB, Host::Ax, place(offset_of!(Target, count)));
        let too_long = asm.jump_if(If::Below as u8);
        asm.store(4, LEFT, Host::Ax);
        asm.form(4, &[0xff], 4, place(offset_of!(Target, code))); // jmp
        self.has_status = false;
        [other, unseen, too_long]
    }

    /// Leaves the block if the state may be one that it was in before.
    fn spin(&mut self, Spin { jump, back }: Spin) {
        let asm = &mut *self.assembler;
        asm.lands(jump);
        asm.immediate(1, CMP, CHANGED, 0);
        let changed = asm.jump_if(If::NotEqual as u8);
        asm.lands_at(changed, back);
        asm.load(8, Host::Ax, WITNESS);
        asm.bytes(&[0x48, 0x8b, 0x04, 0xc3]); // mov rax, [rbx + rax * 8]
        asm.operation(8, CMP, Host::Ax, WITNESS_VALUE);
        let other = asm.jump_if(If::NotEqual as u8);
        asm.lands_at(other, back);
        self.leaving.taken.push(asm.jump());
    }
}
