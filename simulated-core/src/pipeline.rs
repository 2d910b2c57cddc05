//! When instructions retire on a core that executes out of order.
//!
//! Instructions come in order, wait for their operands and a unit, and retire in order. What is modelled is what decides how fast one loop is against
//! another: chains of dependences through registers and memory, the window, mispredicted branches, and data that is far away.
//! Addresses are not known; operands are taken to be the same memory where they are the same sum of the same unknown values.

use crate::core::{Core, Renaming, Unit};
use crate::operation::{FLAGS, Flow, GENERAL, Operand, Operation, RSP, RegisterSet, Symbolic};
use crate::predictor::Outcome;
use crate::ready::Ready;
use crate::wait::{MEMORY_LINE, Wait};
use crate::wrong_path::WrongPath;

/// How far units may lag behind what comes, cycles: queues before them.
const QUEUE: f64 = 20.0;
/// Cycles of transfers for which stores find room in their queue: 64 stores, two to a line.
const STORE_QUEUE: f64 = 128.0;
/// Stores and waits that are remembered.
const REMEMBERED: usize = 1024;
/// Instructions whose stores are found by their distance.
const STORES: usize = 256;
const LINE: u64 = 64;

/// A value that is not known, and a constant to be added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Value {
    unknown: u64,
    plus: i64,
}

/// A store that loads may wait for.
#[derive(Clone, Copy, Default)]
struct Stored {
    /// Hash of the address.
    key: u64,
    operand: Operand,
    time: f64,
    /// How often it was loaded, up to 255,
    loads: u8,
    /// and whether what was stored at the address before was loaded more than once.
    is_loaded_again: bool,
}

/// A line on its way.
#[derive(Clone, Copy, Default)]
struct Awaited {
    /// The unknown values of the address that was used first, and its constant.
    unknown: u64,
    plus: i64,
    time: f64,
}

/// Instructions come in order, wait, and retire in order.
pub struct Pipeline {
    core: Core,
    /// When the next instruction comes.
    now: f64,
    /// When the last one retired.
    retired: f64,
    /// When each of the instructions underway retires; a ring.
    window: Box<[f64]>,
    next: usize,
    ready: Ready,
    wrong_path: WrongPath,
    /// Registers that hold a sum of floating point numbers.
    sums: RegisterSet,
    values: [Value; GENERAL],
    unknown: u64,
    units: [f64; Unit::COUNT],
    loads: f64,
    vector_loads: f64,
    stores: f64,
    transfers: f64,
    stored: Box<[Stored; REMEMBERED]>,
    awaited: Box<[Awaited; REMEMBERED]>,
    /// When the data of each of the last instructions is stored, if it stores; a ring.
    store_times: Box<[f64; STORES]>,
    /// Instructions that were executed so far: their places in the rings.
    executed: usize,
    /// The last instruction set the flags.
    set_flags: bool,
}

impl Pipeline {
    /// That of a core, empty.
    pub fn new(core: Core) -> Self {
        let mut pipeline = Pipeline {
            core,
            now: 0.0,
            retired: 0.0,
            window: vec![0.0; core.window.max(1)].into_boxed_slice(),
            next: 0,
            ready: Ready::default(),
            wrong_path: WrongPath::default(),
            sums: 0,
            values: [Value::default(); GENERAL],
            unknown: 0,
            units: [0.0; Unit::COUNT],
            loads: 0.0,
            vector_loads: 0.0,
            stores: 0.0,
            transfers: 0.0,
            stored: Box::new([Stored::default(); REMEMBERED]),
            awaited: Box::new([Awaited::default(); REMEMBERED]),
            store_times: Box::new([0.0; STORES]),
            executed: 0,
            set_flags: false,
        };
        pipeline.forget_values();
        pipeline
    }

    /// Another path begins, or code is missing: no value is one seen before.
    pub fn forget_values(&mut self) {
        for register in 0..GENERAL {
            self.values[register] = self.new_value();
        }
    }

    /// Executes one instruction; the cycles from the retirement of the last one to its own. `wait`: for data that it uses first. `from_store`: how
    /// many instructions before its address was stored to.
    pub fn execute(
        &mut self,
        operation: &Operation,
        outcome: Outcome,
        wait: Option<Wait>,
        from_store: Option<u32>,
    ) -> f64 {
        // A branch and the instruction before it that sets the flags come as one.
        let is_fused = operation.flow == Flow::Conditional && self.set_flags;
        self.set_flags = operation.results >> FLAGS & 1 != 0;
        let place = if is_fused { 0.0 } else { 1.0 / self.core.width };
        self.now += place;
        // The window is full until the instruction whose place it takes has retired.
        self.now = self.now.max(self.window[self.next]);
        let asked = self.wrong_path.execute(&self.core, operation, outcome, wait, place);
        let addressed = self.ready.latest(operation.address, self.now);
        let mut start = self.ready.latest(operation.sources, self.now);
        if operation.unit != Unit::FloatAdd && operation.latency > 0.0 {
            start = start.max(self.ready.latest(operation.sources & self.sums, 0.0) + self.core.from_sum);
        }
        if let Some(operand) = &operation.load {
            start = start.max(self.load(operation, operand, addressed, wait, asked, from_store));
        }
        start = self.on_unit(operation, start);
        let done = start + operation.latency;
        if let Some(operand) = operation.store {
            let address = self.address(&operand);
            self.stores = self.stores.max(self.now - QUEUE) + 1.0 / self.core.stores;
            let of_line = wait.filter(|_| operation.load.is_none()).map_or(0.0, |wait| wait.transfer);
            let transfer = if operation.streamed > 0.0 { operation.streamed * MEMORY_LINE } else { of_line };
            if transfer > 0.0 {
                // Nobody waits for a store, until the queue of stores is full.
                self.transfers = self.transfers.max(self.now) + transfer;
                self.now = self.now.max(self.transfers - STORE_QUEUE);
            }
            let time = done.max(addressed).max(self.stores);
            let key = hash(address.unknown, address.plus as u64);
            let stored = &mut self.stored[key as usize % REMEMBERED];
            let is_loaded_again = stored.key == key && stored.loads > 1;
            *stored = Stored { key, operand, time, loads: 0, is_loaded_again };
            self.store_times[self.executed % STORES] = time;
        }
        self.write(operation, done);
        match outcome {
            Outcome::Straight => {}
            Outcome::Taken => self.now += self.core.taken,
            Outcome::Mispredicted => {
                self.wrong_path.begin(self.now, done, &self.ready);
                self.now = self.now.max(done + self.core.wrong_path);
            }
        }
        let before = self.retired;
        self.retired = done.max(before + place);
        self.window[self.next] = self.retired;
        self.next = (self.next + 1) % self.window.len();
        self.executed += 1;
        self.retired - before
    }

    /// The address of an operand: a number for its unknown values, and the constant.
    fn address(&self, operand: &Operand) -> Value {
        let value = |register: Option<u8>| register.map_or(Value::default(), |number| self.values[number as usize]);
        let (base, index) = (value(operand.base), value(operand.index));
        let unknown = hash(hash(base.unknown, index.unknown), operand.scale as u64);
        let plus = base.plus.wrapping_add(operand.displacement).wrapping_add(index.plus.wrapping_mul(operand.scale));
        Value { unknown, plus }
    }

    /// When a load has its data; `asked`: when it is there because a wrong path asked for it.
    fn load(
        &mut self,
        operation: &Operation,
        operand: &Operand,
        addressed: f64,
        wait: Option<Wait>,
        asked: Option<f64>,
        from_store: Option<u32>,
    ) -> f64 {
        let address = self.address(operand);
        self.loads = self.loads.max(self.now - QUEUE) + 1.0 / self.core.loads;
        let (free, latency) = if operation.loads_vector() {
            self.vector_loads = self.vector_loads.max(self.now - QUEUE) + 1.0 / self.core.vector_loads;
            (self.loads.max(self.vector_loads), self.core.vector_load)
        } else {
            (self.loads, self.core.load)
        };
        let mut there = addressed.max(free) + latency;
        let line = &mut self.awaited[address.unknown as usize % REMEMBERED];
        match wait {
            Some(wait) => {
                let later = there + wait.latency;
                there = asked.map_or(later, |asked| there.max(asked.min(later)));
                if wait.transfer > 0.0 {
                    self.transfers = self.transfers.max(self.now) + wait.transfer;
                    there = there.max(self.transfers);
                }
                *line = Awaited { unknown: address.unknown, plus: address.plus, time: there };
            }
            // The line may be on its way.
            None if line.unknown == address.unknown && line.plus.wrapping_sub(address.plus).unsigned_abs() < LINE => {
                there = there.max(line.time);
            }
            None => {}
        }
        let key = hash(address.unknown, address.plus as u64);
        let stored = &mut self.stored[key as usize % REMEMBERED];
        match stored.key == key {
            true => {
                stored.loads = stored.loads.saturating_add(1);
                let is_renamed = stored.operand.is_place_of(operand)
                    && match self.core.renames_memory {
                        Renaming::Never => false,
                        Renaming::Always => true,
                        Renaming::OfOneLoad => {
                            let is_plain = operand.base.is_some() && operand.index.is_none();
                            is_plain && !operation.loads_vector() && !stored.is_loaded_again
                        }
                    };
                if is_renamed { stored.time } else { there.max(stored.time + self.core.forward) }
            }
            false => from_store
                .and_then(|distance| self.stored_before(distance))
                .map_or(there, |time| there.max(time + self.core.forward)),
        }
    }

    /// When an instruction so far before has stored.
    fn stored_before(&self, distance: u32) -> Option<f64> {
        let at = self.executed.checked_sub(distance as usize).filter(|_| (distance as usize) < STORES)?;
        Some(self.store_times[at % STORES])
    }

    /// When its unit starts an instruction whose operands are there at `ready`.
    fn on_unit(&mut self, operation: &Operation, ready: f64) -> f64 {
        if operation.latency == 0.0 {
            return ready;
        }
        let mut free = ready;
        let unit = operation.unit;
        let is_vector = matches!(unit.is_part_of().unwrap_or(unit), Unit::Vector | Unit::VectorDivide);
        let shared = (is_vector && self.core.shares_ports).then_some(Unit::Integer);
        for (unit, occupies) in [
            Some((unit, operation.occupies)),
            unit.is_part_of().map(|whole| (whole, operation.occupies)),
            shared.map(|shared| (shared, 1.0)),
        ]
        .into_iter()
        .flatten()
        {
            let next = &mut self.units[unit as usize];
            let starts = next.max(self.now - QUEUE);
            *next = starts + occupies / self.core.units.per_cycle(unit);
            free = free.max(starts);
        }
        free
    }

    fn write(&mut self, operation: &Operation, done: f64) {
        self.sums = if operation.is_sum { self.sums | operation.results } else { self.sums & !operation.results };
        self.ready.write(operation.results, done);
        let mut new = operation.results as u64 & ((1 << GENERAL) - 1);
        match operation.symbolic {
            Symbolic::New => {}
            Symbolic::Sum(to, from, by) => {
                let value = self.values[from as usize];
                self.values[to as usize] = Value { plus: value.plus.wrapping_add(by), ..value };
                new &= !(1 << to);
            }
            Symbolic::Stack(by) => {
                let stack = &mut self.values[RSP as usize];
                stack.plus = stack.plus.wrapping_add(by);
            }
        }
        while new != 0 {
            self.values[new.trailing_zeros() as usize] = self.new_value();
            new &= new - 1;
        }
    }

    fn new_value(&mut self) -> Value {
        self.unknown += 1;
        Value { unknown: self.unknown, plus: 0 }
    }
}

fn hash(left: u64, right: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (left ^ right.rotate_left(32)).wrapping_mul(ODD) ^ right.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    (mixed ^ mixed >> 29).wrapping_mul(ODD)
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    use super::*;
    use crate::tables::amd::ZEN_5 as CORE;
    use crate::tables::intel::{GOLDEN_COVE, SKYLAKE};

    fn decoded(bytes: &[u8]) -> Vec<Operation> {
        let mut factory = InstructionInfoFactory::new();
        let decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
        decoder.into_iter().map(|instruction| Operation::of(&instruction, &mut factory, &CORE)).collect()
    }

    /// Cycles of a round of a loop of these instructions, as the last one's outcome is.
    fn round(bytes: &[u8], outcome: Outcome, wait: Option<Wait>) -> f64 {
        round_on(CORE, bytes, outcome, wait)
    }

    fn round_on(core: Core, bytes: &[u8], outcome: Outcome, wait: Option<Wait>) -> f64 {
        let mut factory = InstructionInfoFactory::new();
        let decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
        let operations: Vec<Operation> =
            decoder.into_iter().map(|instruction| Operation::of(&instruction, &mut factory, &core)).collect();
        let mut pipeline = Pipeline::new(core);
        let mut cycles = 0.0;
        for _ in 0..1000 {
            for (index, operation) in operations.iter().enumerate() {
                let is_last = index + 1 == operations.len();
                cycles += pipeline.execute(operation, if is_last { outcome } else { Outcome::Straight }, wait, None);
            }
        }
        cycles / 1000.0
    }

    #[test]
    fn chains_take_their_latency() {
        assert!((round(&[0x48, 0x01, 0xd8], Outcome::Straight, None) - 1.0).abs() < 0.01); // add rax, rbx
        assert!((round(&[0x48, 0x0f, 0xaf, 0xc3], Outcome::Straight, None) - 3.0).abs() < 0.02); // imul rax, rbx
        assert!((round(&[0x48, 0x8b, 0x00], Outcome::Straight, None) - CORE.load).abs() < 0.02); // mov rax, [rax]
    }

    #[test]
    fn sums_reach_other_units_later() {
        assert!((round(&[0x0f, 0x58, 0xc1], Outcome::Straight, None) - 2.0).abs() < 0.02); // addps xmm0, xmm1
        // addps xmm0, xmm1; mulps xmm0, xmm1
        assert!((round(&[0x0f, 0x58, 0xc1, 0x0f, 0x59, 0xc1], Outcome::Straight, None) - 6.0).abs() < 0.02);
    }

    #[test]
    fn what_is_independent_overlaps() {
        let four = [0x48, 0x01, 0xd8, 0x48, 0x01, 0xd9, 0x48, 0x01, 0xda, 0x48, 0x01, 0xde]; // add rax/rcx/rdx/rsi, rbx
        assert!(round(&four, Outcome::Straight, None) < 1.1);
        // Loads that do not depend on each other wait together: mov rax, [rbx].
        let wait = Some(Wait { latency: 100.0, transfer: 0.0 });
        assert!(round(&[0x48, 0x8b, 0x03], Outcome::Straight, wait) < 1.0);
        // Those that do, one after the other: mov rax, [rax].
        assert!(round(&[0x48, 0x8b, 0x00], Outcome::Straight, wait) > 100.0);
    }

    #[test]
    fn stores_are_forwarded_to_loads_of_the_same_address() {
        // add [rsp + 8], rax: a load, a sum and a store of one address, again and again.
        assert!((round(&[0x48, 0x01, 0x44, 0x24, 0x08], Outcome::Straight, None) - 1.0).abs() < 0.1);
        // push rax; pop rax
        assert!(round(&[0x50, 0x58], Outcome::Straight, None) < 1.5);
        // mov rbx, rsp; add [rbx], rax; add [rsp], rax: the same address by another register.
        let code = [0x48, 0x89, 0xe3, 0x48, 0x01, 0x03, 0x48, 0x01, 0x04, 0x24];
        assert!((round(&code, Outcome::Straight, None) - 2.0 * (CORE.forward + 1.0)).abs() < 0.2);
    }

    #[test]
    fn a_store_that_is_known_by_its_distance_is_waited_for() {
        let operations = decoded(&[0xff, 0x04, 0x8b, 0x48, 0x89, 0xf1]); // inc dword [rbx + rcx * 4]; mov rcx, rsi
        let cycles = |distance: Option<u32>| {
            let mut pipeline = Pipeline::new(CORE);
            let mut round = || -> f64 {
                pipeline.forget_values();
                operations.iter().map(|operation| pipeline.execute(operation, Outcome::Straight, None, distance)).sum()
            };
            (0..1000).map(|_| round()).sum::<f64>() / 1000.0
        };
        assert!(cycles(None) < 2.0);
        assert!((cycles(Some(2)) - CORE.forward - 1.0).abs() < 0.1);
        assert!(cycles(Some(4)) < 0.6 * cycles(Some(2)));
        assert!(cycles(Some(u32::MAX)) < 2.0);
    }

    #[test]
    fn mispredicted_branches_cost_a_refill() {
        let code = [0x48, 0x01, 0xd8, 0x75, 0xfb]; // add rax, rbx; jne
        assert!(round(&code, Outcome::Taken, None) < 1.2);
        assert!(round(&code, Outcome::Mispredicted, None) > CORE.wrong_path);
    }

    #[test]
    fn loads_on_the_wrong_path_bring_their_lines() {
        // mov rax, [rbx]; test rax, rax; jne: every branch waits for a line, and none is predicted. While one waits, the next line is on its way.
        let wait = Some(Wait { latency: 100.0, transfer: 0.0 });
        let cycles = round(&[0x48, 0x8b, 0x03, 0x48, 0x85, 0xc0, 0x75, 0xf8], Outcome::Mispredicted, wait);
        assert!(cycles < 0.7 * (100.0 + CORE.load + CORE.wrong_path), "{cycles}");
        // mov rbx, [rcx]; imul rcx, rbx, 1; test rbx, rbx; jne: the next address is not there before the branch is executed.
        let code = [0x48, 0x8b, 0x19, 0x48, 0x6b, 0xcb, 0x01, 0x48, 0x85, 0xdb, 0x75, 0xf4];
        let cycles = round(&code, Outcome::Mispredicted, wait);
        assert!(cycles > 100.0 + CORE.load + CORE.wrong_path, "{cycles}");
    }

    #[test]
    fn cores_differ() {
        let on = |core: Core, bytes: &[u8]| round_on(core, bytes, Outcome::Straight, None);
        let divide = [0x48, 0xf7, 0xf3]; // div rbx
        assert!(on(SKYLAKE, &divide) > 2.5 * on(CORE, &divide));
        // add [rsp + 8], rax: a core that does not rename memory waits for the store.
        let again = [0x48, 0x01, 0x44, 0x24, 0x08];
        assert!((on(SKYLAKE, &again) - SKYLAKE.forward - 1.0).abs() < 0.2, "{}", on(SKYLAKE, &again));
        // add rax/rcx/rdx/rsi, rbx; paddd xmm0/xmm1/xmm2, xmm15: vectors take ports of general registers on one of them.
        let mixed = [
            0x48, 0x01, 0xd8, 0x48, 0x01, 0xd9, 0x48, 0x01, 0xda, 0x48, 0x01, 0xde, 0x66, 0x41, 0x0f, 0xfe, 0xc7, 0x66,
            0x41, 0x0f, 0xfe, 0xcf, 0x66, 0x41, 0x0f, 0xfe, 0xd7,
        ];
        let shares = Core { shares_ports: true, width: 10.0, ..SKYLAKE };
        let apart = Core { shares_ports: false, ..shares };
        assert!(on(shares, &mixed) > 1.6 && on(apart, &mixed) < 1.3, "{} {}", on(shares, &mixed), on(apart, &mixed));
    }

    /// Loops that were measured on a Golden Cove take 1.0, 6.2, 6.1, 6.2 and 7.9 cycles.
    #[test]
    fn a_store_that_is_loaded_once_only_is_renamed_on_some_cores() {
        let round = |bytes: &[u8]| round_on(GOLDEN_COVE, bytes, Outcome::Straight, None);
        // mov rax, [rsp - 64]; add rax, 1; mov [rsp - 64], rax
        let once = [0x48, 0x8b, 0x44, 0x24, 0xc0, 0x48, 0x83, 0xc0, 0x01, 0x48, 0x89, 0x44, 0x24, 0xc0];
        assert!((round(&once) - 1.0).abs() < 0.1, "{}", round(&once));
        // The same, and mov rdx, [rsp - 64].
        let again = [&once[..], &[0x48, 0x8b, 0x54, 0x24, 0xc0]].concat();
        let waits = GOLDEN_COVE.forward + 1.0;
        assert!((round(&again) - waits).abs() < 0.2, "{}", round(&again));
        // mov rax, [rip]; add rax, 1; mov [rip - 11], rax: the same address.
        let relative = [0x48, 0x8b, 0x05, 0, 0, 0, 0, 0x48, 0x83, 0xc0, 0x01, 0x48, 0x89, 0x05, 0xf5, 0xff, 0xff, 0xff];
        assert!((round(&relative) - waits).abs() < 0.2, "{}", round(&relative));
        // mov rax, [rdi + 8 * rsi]; add rax, 1; mov [rdi + 8 * rsi], rax
        let index = [0x48, 0x8b, 0x04, 0xf7, 0x48, 0x83, 0xc0, 0x01, 0x48, 0x89, 0x04, 0xf7];
        assert!((round(&index) - waits).abs() < 0.2, "{}", round(&index));
        // movsd xmm0, [rsp - 64]; addsd xmm0, xmm1; movsd [rsp - 64], xmm0
        let vector = [0xf2, 0x0f, 0x10, 0x44, 0x24, 0xc0, 0xf2, 0x0f, 0x58, 0xc1, 0xf2, 0x0f, 0x11, 0x44, 0x24, 0xc0];
        assert!((round(&vector) - GOLDEN_COVE.forward - 2.0).abs() < 0.2, "{}", round(&vector));
    }

    /// Measured on a Golden Cove: 34.2 and 10.2 cycles for copies of 64 bytes.
    #[test]
    fn string_instructions_keep_others_waiting() {
        // mov rsi, r13; mov rdi, r14; mov ecx, 8; rep movsq, and rep movsb
        let set_up = [0x4c, 0x89, 0xee, 0x4c, 0x89, 0xf7, 0xb9, 8, 0, 0, 0];
        let round = |copy: &[u8]| {
            let code = [&set_up, copy].concat();
            round_on(GOLDEN_COVE, &code, Outcome::Straight, None)
        };
        let (words, bytes) = (round(&[0xf3, 0x48, 0xa5]), round(&[0xf3, 0xa4]));
        assert!((words - 34.0).abs() < 2.0 && (bytes - 10.0).abs() < 2.0, "{words} {bytes}");
    }

    #[test]
    fn what_is_written_past_the_caches_waits_for_memory() {
        // movntdq [rdi], xmm0; add rdi, 16
        let code = [0x66, 0x0f, 0xe7, 0x07, 0x48, 0x83, 0xc7, 0x10];
        let quarter_of_a_line = MEMORY_LINE / 4.0;
        assert!((round(&code, Outcome::Straight, None) - quarter_of_a_line).abs() < 0.2);
        let line = Some(Wait { latency: 100.0, transfer: 50.0 });
        assert!((round(&code, Outcome::Straight, line) - quarter_of_a_line).abs() < 0.2, "its line is not read");
        // movdqa [rdi], xmm0; add rdi, 16
        assert!(round(&[0x66, 0x0f, 0x7f, 0x07, 0x48, 0x83, 0xc7, 0x10], Outcome::Straight, None) < 1.2);
    }

    #[test]
    fn divisions_wait_for_their_unit() {
        let code = [0x48, 0xf7, 0xf3]; // div rbx
        assert!(round(&code, Outcome::Straight, None) > 13.0);
    }
}
