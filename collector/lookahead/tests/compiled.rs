//! Compiled blocks beside the interpreter: random loops, whose bursts must be the same to the last flag.

mod support;

use addresses::Avma;
use lookahead::{
    Branch, CodeCache, DataLines, DataUse, Forwarded, Fuel, Outcome, Overlay, Page, Registers, run_with_lines,
};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use support::pages::Pages;

const CODE: u64 = 0x40_0000;
/// Five pages, of which the last may only be read. None comes after them.
const DATA: u64 = 0x80_0000;
const DATA_BYTES: u64 = 5 * 4096;

/// Registers that random instructions write to; the others hold addresses, an index (r13) and the number of rounds (rbp).
const FREE: [u8; 9] = [0, 1, 2, 8, 9, 10, 11, 14, 15];
const POINTERS: [u8; 4] = [3, 6, 7, 12];
const INDEX: u8 = 13;

struct Program {
    random: SplitMix64,
    code: Vec<u8>,
}

impl Program {
    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Prefixes, opcode, and operands: a register or a number, and a register or memory.
    fn form(&mut self, prefix: &[u8], opcode: &[u8], register: Option<u8>, number: u8, memory: bool, wide: bool) {
        self.code.extend_from_slice(prefix);
        let reg = register.unwrap_or(number);
        let w = u8::from(wide) << 3;
        if !memory {
            let rm = self.one_of(&FREE);
            // Without a prefix, bytes of registers 4 to 7 are the second ones of others.
            if w | (reg & 8) | (rm & 8) != 0 || self.below(4) == 0 {
                self.code.push(0x40 | w | (reg & 8) >> 1 | rm >> 3);
            }
            self.code.extend_from_slice(opcode);
            self.code.push(0xc0 | (reg & 7) << 3 | rm & 7);
            return;
        }
        let base = self.one_of(&POINTERS);
        let indexed = self.below(3) == 0;
        let x = if indexed { INDEX >> 3 } else { 0 };
        self.code.push(0x40 | w | (reg & 8) >> 1 | x << 1 | base >> 3);
        self.code.extend_from_slice(opcode);
        let displacement = self.one_of(&[0_i8, 8, -8, 3, 61, -64, 100]);
        if indexed {
            let scale = self.below(4) as u8;
            self.code.extend_from_slice(&[0x44 | (reg & 7) << 3, scale << 6 | (INDEX & 7) << 3 | base & 7]);
        } else if base & 7 == 4 {
            self.code.extend_from_slice(&[0x44 | (reg & 7) << 3, 0x24]);
        } else {
            self.code.push(0x40 | (reg & 7) << 3 | base & 7);
        }
        self.code.push(displacement as u8);
    }

    fn immediate(&mut self, bytes: usize) {
        let value = match self.below(3) {
            0 => self.below(3).wrapping_sub(1),
            1 => self.below(200),
            _ => self.random.next_u64(),
        };
        self.code.extend_from_slice(&value.to_le_bytes()[..bytes]);
    }

    fn instruction(&mut self) {
        let (memory, wide, byte) = (self.below(2) == 0, self.below(2) == 0, self.below(3) == 0);
        let free = self.one_of(&FREE);
        let size = u8::from(!byte);
        let wide = wide && !byte;
        match self.below(22) {
            0..=2 => {
                let opcode = (self.below(8) << 3) as u8 | size | if memory && self.below(2) == 0 { 2 } else { 0 };
                self.form(&[], &[opcode], Some(free), 0, memory, wide);
            }
            3 => {
                let operation = self.below(8) as u8;
                let opcode = if byte { 0x80 } else { self.one_of(&[0x81, 0x83]) };
                self.form(&[], &[opcode], None, operation, memory, wide);
                self.immediate(if opcode == 0x81 { 4 } else { 1 });
            }
            4 => self.form(&[], &[0x84 | size], Some(free), 0, memory, wide),
            5..=8 => {
                let opcode = self.one_of(&[0x88, 0x8a]) | size;
                self.form(&[], &[opcode], Some(free), 0, memory, wide);
            }
            9 => {
                self.form(&[], &[0xc6 | size], None, 0, memory, wide);
                self.immediate(if byte { 1 } else { 4 });
            }
            10 => self.form(&[], &[0x8d], Some(free), 0, true, wide),
            11 => {
                let opcode = self.one_of(&[0xb6, 0xb7, 0xbe, 0xbf]);
                self.form(&[], &[0x0f, opcode], Some(free), 0, memory, wide);
            }
            12 => {
                let code: &[u8] = match self.below(6) {
                    0 => &[0x48, 0x63, 0xc2],       // movsxd rax, edx
                    1 => &[0x48, 0x98],             // cdqe
                    2 => &[0x98],                   // cwde
                    3 => &[0x48, 0x99],             // cqo
                    4 => &[0x99],                   // cdq
                    _ => &[0x66, 0x0f, 0x1f, 0x00], // nop
                };
                self.code.extend_from_slice(code);
            }
            13 => {
                let code: &[u8] = match self.below(9) {
                    0 => &[0x50],                                     // push rax
                    1 => &[0x6a, 0xf3],                               // push -13
                    2 => &[0xff, 0x36],                               // push [rsi]
                    3 => &[0x41, 0x5a],                               // pop r10
                    4 => &[0x54, 0x5a],                               // push rsp; pop rdx
                    5 => &[0x54, 0x5c],                               // push rsp; pop rsp
                    6 => &[0x8b, 0x05, 0, 0, 0, 0],                   // mov eax, [rip]
                    7 => &[0x8b, 0x04, 0x25, 0x08, 0x11, 0x80, 0x00], // mov eax, [0x801108]
                    _ => &[0x9c, 0x5a],                               // pushf; pop rdx
                };
                self.code.extend_from_slice(code);
            }
            14 => {
                let operation = self.one_of(&[0_u8, 1, 4, 5, 7]);
                let opcode = self.one_of(&[0xc0, 0xd0, 0xd2]);
                self.form(&[], &[opcode | size], None, operation, memory, wide);
                if opcode == 0xc0 {
                    let count = self.one_of(&[0, 1, 2, 5, 7, 9, 16, 31, 32, 33, 63, 64]);
                    self.code.push(count);
                }
            }
            15 => {
                let (opcode, operation) = self.one_of(&[(0xfe, 0), (0xfe, 1), (0xf6, 2), (0xf6, 3)]);
                self.form(&[], &[opcode | size], None, operation, memory, wide);
            }
            16 => {
                let condition = self.below(16) as u8;
                self.form(&[], &[0x0f, 0x90 | condition], None, 0, memory, false);
            }
            17 => {
                let condition = self.below(16) as u8;
                self.form(&[], &[0x0f, 0x40 | condition], Some(free), 0, memory, wide);
            }
            18 => match self.below(4) {
                0 => self.form(&[], &[0x0f, 0xaf], Some(free), 0, memory, wide), // imul
                1 => self.form(&[], &[0x86 | size], Some(free), 0, memory, wide), // xchg
                2 => self.form(&[0x66], &[0x01], Some(free), 0, memory, false),  // add of 16 bits
                _ => self.form(&[0xf3], &[0x0f, 0x6f], Some(1), 0, true, false), // movdqu xmm1, [..]
            },
            19 => self.form(&[0xf3], &[0x0f, 0x7f], Some(1), 0, true, false), // movdqu [..], xmm1
            20 => {
                // Over the next instruction, if the condition holds.
                let condition = self.below(16) as u8;
                self.code.extend_from_slice(&[0x70 | condition, 0]);
                let at = self.code.len();
                self.instruction();
                self.code[at - 1] = (self.code.len() - at) as u8;
            }
            _ => match self.below(6) {
                // lea rax, [rip + 2]; jmp rax; the same with call, and pop rdx
                3 => self.code.extend_from_slice(&[0x48, 0x8d, 0x05, 2, 0, 0, 0, 0xff, 0xe0]),
                4 => self.code.extend_from_slice(&[0x48, 0x8d, 0x05, 2, 0, 0, 0, 0xff, 0xd0, 0x5a]),
                // the same by memory: push rax; jmp [rsp]; pop rax
                5 => self.code.extend_from_slice(&[0x48, 0x8d, 0x05, 4, 0, 0, 0, 0x50, 0xff, 0x24, 0x24, 0x58]),
                0 => self.code.extend_from_slice(&[0xe8, 0, 0, 0, 0, 0x58]), // call the next; pop rax
                1 => self.code.extend_from_slice(&[0xe8, 2, 0, 0, 0, 0xeb, 1, 0xc3]), // call the ret; over it; ret
                // lea rax, [rip + 5]; push rax; mov [rsp], rax; ret to what comes after it
                _ => self.code.extend_from_slice(&[0x48, 0x8d, 0x05, 2, 0, 0, 0, 0x50, 0xc3]),
            },
        }
    }

    fn random(seed: u64) -> Self {
        let mut program = Self { random: SplitMix64::seed_from_u64(seed), code: Vec::new() };
        for _ in 0..1 + program.below(24) {
            program.instruction();
        }
        program.code.extend_from_slice(&[0xff, 0xcd, 0x0f, 0x85]); // dec ebp; jne to the start
        let back = (program.code.len() as i32 + 4).wrapping_neg();
        program.code.extend_from_slice(&back.to_le_bytes());
        program.code.push(0xf4); // hlt
        program
    }
}

#[derive(Debug, PartialEq)]
struct Burst {
    outcome: Outcome,
    registers: Registers,
    branches: Vec<Branch>,
    uses: Vec<DataUse>,
    forwarded: Vec<Forwarded>,
    known_until: Option<u32>,
    written: Vec<(Avma, Page)>,
}

/// Three bursts of a program, cut where `cuts` says, with blocks that are compiled after so many runs.
fn bursts(program: &mut Program, compiled_after: u32, in_place: bool, cuts: [u64; 3]) -> Vec<Burst> {
    let mut random = SplitMix64::seed_from_u64(cuts[0]);
    let mut memory = Pages::default();
    (memory.in_place, memory.read_only) = (in_place, vec![(DATA >> 12) + 4]);
    memory.put(CODE, &program.code);
    let data: Vec<u8> = (0..DATA_BYTES).map(|at| ((at * at) >> 7) as u8).collect();
    memory.put(DATA, &data);
    let mut registers = Registers { rip: CODE, ..Registers::default() };
    for free in FREE {
        registers.general[usize::from(free)] = random.next_u64() >> (random.next_u64() % 64);
    }
    for pointer in POINTERS {
        // Seldom where the memory ends.
        let end = if random.next_u64().is_multiple_of(16) { DATA_BYTES } else { 3 * 4096 };
        registers.general[usize::from(pointer)] = DATA + 200 + random.next_u64() % (end - 200);
    }
    registers.general[4] = DATA + 4096 + 8 * (random.next_u64() % 64);
    registers.general[5] = 1000;
    registers.general[usize::from(INDEX)] = random.next_u64() % 16;
    registers.rflags = 0x202 | random.next_u64() & 0x8d5;
    let (mut overlay, mut lines) = (Overlay::new(64), DataLines::default());
    let mut cache = CodeCache::comparing(4096).compiling_after(compiled_after);
    let mut done = Vec::new();
    for instructions in cuts {
        let mut branches = Vec::new();
        overlay.clear();
        lines.clear();
        let outcome = run_with_lines(
            &mut registers,
            &mut overlay,
            &mut memory,
            &mut cache,
            Fuel { instructions, branches: 1000 },
            &mut branches,
            &mut lines,
        );
        done.push(Burst {
            outcome,
            registers: registers.clone(),
            branches,
            uses: lines.uses().to_vec(),
            forwarded: lines.forwarded().to_vec(),
            known_until: lines.known_until(),
            written: overlay.written().collect(),
        });
    }
    done
}

/// A thousand programs, each of which ends in its own way: without fuel, before memory that is not there, or of what is not
/// interpreted.
#[test]
fn bursts_are_the_same() {
    let programs = std::env::var("COMPILED_PROGRAMS").map_or(1000, |number| number.parse().expect("a number"));
    let mut instructions = 0;
    for seed in 0..programs {
        let mut program = Program::random(seed);
        let cuts = [1500 + seed % 97, 700 + seed % 13, 2000];
        let in_place = seed % 2 == 0;
        let interpreted = bursts(&mut program, 0, in_place, cuts);
        for compiled_after in [1, 5] {
            let compiled = bursts(&mut program, compiled_after, in_place, cuts);
            for (ours, theirs) in compiled.iter().zip(&interpreted) {
                if ours != theirs {
                    let code = program.code.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                    assert_eq!(ours.outcome, theirs.outcome, "program {seed}: {code}");
                    assert_eq!(ours.registers, theirs.registers, "program {seed}: {code}");
                    assert_eq!(ours.branches, theirs.branches, "program {seed}: {code}");
                    assert_eq!(ours.uses, theirs.uses, "program {seed}: {code}");
                    assert_eq!(ours.forwarded, theirs.forwarded, "program {seed}: {code}");
                    assert_eq!(ours.known_until, theirs.known_until, "program {seed}: {code}");
                    assert!(ours.written == theirs.written, "program {seed}: {code}: other memory");
                }
            }
        }
        instructions += interpreted.iter().map(|burst| burst.outcome.instructions).sum::<u64>();
    }
    assert!(instructions > programs * 500, "{instructions}: programs end too soon to say something");
}
