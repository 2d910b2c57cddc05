//! One instruction after the other, from what the interpreter has to machine code of the host.
//!
//! An instruction that is translated leaves what its operation would leave. Where something is in its way (a line that is not in the tables,
//! an operand across two lines, a use of what was stored shortly before), and for all that are not translated, the interpreter
//! executes its operation.

use std::mem::offset_of;

use crate::BranchKind;
use crate::arith::{self, ADC, CMP, SBB, TEST};
use crate::compiled::assembler::{Assembler, Host, Jump, Place};
use crate::compiled::routines::{Routine, at};
use crate::compiled::status::Status;
use crate::compiled::step::{Asked, Data};
use crate::context::Hot;
use crate::form::{Form, IMM, MEM};
use crate::frequent::{Frequent, Kind};
use crate::op::Op;
use crate::operand::{Address, RAX, RCX, RDX, RSP, ZERO};

const STATUS: Place = Place::Context(at(offset_of!(Hot, status)));
const CHANGED: Place = Place::Context(at(offset_of!(Hot, changed)));
const NOT_TAKEN: Place = Place::Context(at(offset_of!(Hot, not_taken)));

/// The operand in memory, once it is known where it is.
const OPERAND: Place = Place::At(Host::Di);
const VALUE: Place = Place::Register(Host::Dx);

const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;

/// A call of a routine that asks the interpreter where it cannot help.
struct Asking {
    asked: Asked,
    /// Where that is said, and where the call ends.
    at: usize,
    end: usize,
}

/// A way out of the block: what leads there, and where, if that is not in `DX`.
struct Way {
    jump: Jump,
    target: Option<u64>,
}

/// A block that is being translated.
pub(super) struct Translation<'a> {
    assembler: &'a mut Assembler,
    /// Bytes from the routines to the code.
    distance: usize,
    /// Instructions of the block.
    count: u8,
    asking: Option<Asking>,
    ways: Vec<Way>,
    /// The CPU has the status flags: the instruction before left them.
    has_status: bool,
    /// Some code is longer than a routine can go over.
    failed: bool,
}

/// Where a register is.
fn register(number: u8) -> Place {
    // The second byte of one of the first four has a number of its own.
    Place::Context(8 * i32::from(number & 31) + i32::from(number >> 5))
}

/// Whether its operand in memory is where a base, an index and a displacement say.
fn is_plain(address: &Address) -> bool {
    address.segment == ZERO && !address.short
}

impl<'a> Translation<'a> {
    /// Begins the block of this number, whose code will be so many bytes after the routines.
    pub(super) fn begin(assembler: &'a mut Assembler, distance: usize, number: u32, count: u8) -> Self {
        assembler.code.clear();
        let (asking, ways) = (None, Vec::new());
        let mut block = Self { assembler, distance, count, asking, ways, has_status: false, failed: false };
        block.assembler.set(Host::Ax, u64::from(number | u32::from(count) << 24));
        block.routine(CALL, Routine::ENTER);
        block
    }

    /// Adds an instruction; `index` is its place in the block. `saves`: its status flags are needed after it.
    pub(super) fn add(&mut self, index: u8, op: &Op, frequent: Option<&Frequent>, saves: bool) {
        let Some(Frequent { kind, form, .. }) = frequent.filter(|_| is_plain(&op.address)) else {
            return self.ask(index, Status::is_touched(op));
        };
        let status = Status::of(*kind, *form, op).is_used();
        match self.translate(index, op, *kind, *form, saves) {
            Some(()) => self.answer(status),
            None => self.ask(index, status),
        }
    }

    /// Ends the block, after which comes the code at `after`. `None` if it has become too long.
    pub(super) fn end(mut self, ends: bool, after: u64) -> Option<()> {
        if !ends {
            self.goes_on(Some(after));
        }
        for Way { jump, target } in std::mem::take(&mut self.ways) {
            self.assembler.lands(jump);
            if let Some(target) = target {
                self.assembler.set(Host::Dx, target);
            }
            self.routine(CALL, Routine::UNLINKED);
            let before = self.assembler.code.len() - jump.0;
            self.assembler.bytes(&(before as u32).to_le_bytes());
        }
        (!self.failed).then_some(())
    }

    fn routine(&mut self, opcode: u8, routine: Routine) {
        self.assembler.far(opcode, self.distance - routine.offset());
    }

    /// `None`, with nothing written, if it is left to the interpreter.
    fn translate(&mut self, index: u8, op: &Op, kind: Kind, form: Form, saves: bool) -> Option<()> {
        match kind {
            Kind::Arithmetic(operation) => self.arithmetic(index, op, operation, form, saves),
            Kind::Unary(operation) => self.unary(index, op, operation, form, saves),
            Kind::Shift(operation) => self.shift(index, op, operation, form, saves)?,
            Kind::Move => self.moves(index, op, form),
            Kind::Extend { from, signed } => {
                self.operand(index, op, from);
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
                self.operand(index, op, 1);
                self.take_status();
                self.assembler.form(4, &[0x0f, 0x90 | condition], 0, VALUE);
                self.put_or_set(form, op);
            }
            Kind::MoveIf(condition) => {
                self.operand(index, op, form.size);
                self.take_status();
                self.assembler.load(form.size, Host::Dx, register(op.dst));
                let place = if form.src == MEM { OPERAND } else { register(op.src) };
                self.assembler.form(form.size, &[0x0f, 0x40 | condition], Host::Dx as u8, place);
                self.set(form.size, op.dst);
            }
            Kind::JumpIf(condition) => {
                self.take_status();
                let taken = self.assembler.jump_if(condition);
                self.assembler.sized(4, 0xfe, 0, NOT_TAKEN); // inc
                self.goes_on(Some(op.next()));
                self.assembler.lands(taken);
                self.take(op, BranchKind::Conditional, op.imm);
            }
            Kind::Jump => self.take(op, BranchKind::Jump, op.imm),
            Kind::Call => {
                self.top_of_stack(index, Data::Pushed);
                self.push_return(op);
                self.take(op, BranchKind::Call, op.imm);
            }
            Kind::IndirectJump => {
                self.operand(index, op, 8);
                let place = if form.dst == MEM { OPERAND } else { register(op.dst) };
                self.assembler.load(8, Host::Dx, place);
                self.take_to(op, BranchKind::IndirectJump);
            }
            Kind::IndirectCall if form.dst == MEM => return None,
            Kind::IndirectCall => {
                self.top_of_stack(index, Data::Pushed);
                // It may be the stack pointer.
                self.assembler.load(8, Host::Cx, register(op.dst));
                self.push_return(op);
                self.assembler.load(8, Host::Dx, Place::Register(Host::Cx));
                self.take_to(op, BranchKind::IndirectCall);
            }
            Kind::Return => {
                self.top_of_stack(index, Data::Popped);
                self.assembler.load(8, Host::Dx, OPERAND);
                self.drop_from_stack(8);
                self.take_to(op, BranchKind::Return);
            }
        }
        Some(())
    }

    fn arithmetic(&mut self, index: u8, op: &Op, operation: u8, form: Form, saves: bool) {
        let writes = operation != CMP && operation != TEST;
        self.operand(index, op, form.size);
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
        self.operand(index, op, form.size);
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
        self.operand(index, op, form.size);
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
        self.operand(index, op, form.size);
        match (form.dst, form.src) {
            (MEM, src) => {
                if src == IMM {
                    self.assembler.set(Host::Dx, op.imm);
                } else {
                    self.assembler.load(form.size, Host::Dx, register(op.src));
                }
                self.put(form.size);
            }
            (_, MEM) => {
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
            Ok(displacement) => self.assembler.immediate(8, arith::ADD, Place::Register(Host::Si), displacement),
            Err(_) => {
                self.assembler.set(Host::Ax, address.displacement);
                self.assembler.operation(8, arith::ADD, Host::Si, Place::Register(Host::Ax));
            }
        }
    }

    /// `DI` gets the place of the operand in memory that the instruction names, if it has one, with `SI` its address.
    fn operand(&mut self, index: u8, op: &Op, size: usize) {
        let data = match (op.memory.loads(), op.memory.stores()) {
            (false, false) => return,
            (true, false) => Data::Read,
            (false, true) => Data::Stored,
            (true, true) => Data::Written,
        };
        self.address(&op.address);
        self.find(index, data, Routine::find(data, size, op.memory.elsewhere()));
    }

    /// The same of the top of the stack, or of what is pushed on it.
    fn top_of_stack(&mut self, index: u8, data: Data) {
        self.assembler.load(8, Host::Si, register(RSP));
        if data == Data::Pushed {
            self.assembler.immediate(8, arith::SUB, Place::Register(Host::Si), 8);
        }
        self.find(index, data, Routine::find(data, 8, false));
    }

    fn find(&mut self, index: u8, data: Data, routine: Routine) {
        let asked = Asked { index, remaining: self.count - index, status: false, data: Some(data), back: 0 };
        self.call(asked, routine);
    }

    /// The interpreter executes an operation.
    fn ask(&mut self, index: u8, status: bool) {
        self.call(Asked { index, remaining: self.count - index, status, data: None, back: 0 }, Routine::ASK);
        self.answer(status);
        self.has_status = false;
    }

    fn call(&mut self, asked: Asked, routine: Routine) {
        let at = self.assembler.code.len() + 1;
        self.assembler.byte(0xb8); // mov eax
        self.assembler.bytes(&[0; 4]);
        self.routine(CALL, routine);
        self.asking = Some(Asking { asked, at, end: self.assembler.code.len() });
        self.has_status = false;
    }

    /// The instruction ends here: what was asked for in it is known now.
    fn answer(&mut self, status: bool) {
        let Some(Asking { asked, at, end }) = self.asking.take() else { return };
        let back = u8::try_from(self.assembler.code.len() - end);
        self.failed |= back.is_err();
        let asked = Asked { status, back: back.unwrap_or(0), ..asked };
        self.assembler.code[at..at + 4].copy_from_slice(&asked.encode().to_le_bytes());
    }

    fn drop_from_stack(&mut self, bytes: i32) {
        self.assembler.immediate(8, arith::ADD, Place::Register(Host::Si), bytes);
        self.assembler.store(8, register(RSP), Host::Si);
        self.has_status = false;
    }

    fn push_return(&mut self, op: &Op) {
        self.assembler.set(Host::Dx, op.next());
        self.put(8);
        self.assembler.store(8, register(RSP), Host::Si);
    }

    /// The block ends with a branch that was taken to where the code says.
    fn take(&mut self, op: &Op, kind: BranchKind, target: u64) {
        self.assembler.set(Host::Dx, target);
        let back = op.ip.wrapping_sub(target);
        self.failed |= i32::try_from(back as i64).is_err();
        self.assembler.set(Host::Cx, u64::from(back as u32));
        self.assembler.set(Host::Ax, kind as u64);
        self.routine(CALL, Routine::TAKE);
        self.goes_on(None);
    }

    /// The block ends with a branch that was taken to where `DX` says.
    fn take_to(&mut self, op: &Op, kind: BranchKind) {
        self.assembler.set(Host::Cx, op.ip);
        self.assembler.set(Host::Ax, kind as u64);
        self.routine(JUMP, Routine::TAKE_TO);
    }

    /// The path goes on at `target`, or where `DX` says.
    fn goes_on(&mut self, target: Option<u64>) {
        let jump = self.assembler.jump();
        self.ways.push(Way { jump, target });
    }
}
