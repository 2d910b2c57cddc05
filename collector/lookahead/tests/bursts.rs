//! Whole bursts: branches, fuel, reasons to stop, what is kept and what is forgotten.

mod support;

use addresses::Avma;
use lookahead::{
    Branch, BranchKind, CodeCache, DataLines, DataUse, Fault, Forwarded, Fuel, Memory, Outcome, Overlay, Page,
    Registers, StopReason, run, run_with_lines,
};
use support::pages::Pages;

const CODE: u64 = 0x40_0000;
const STACK: u64 = 0x80_0000;

struct Bench {
    memory: Pages,
    overlay: Overlay,
    cache: CodeCache,
    registers: Registers,
    branches: Vec<Branch>,
}

fn bench(code: &[u8]) -> Bench {
    let mut memory = Pages::default();
    memory.put(CODE, code);
    memory.put(STACK, &[0; 0x2000]);
    let mut registers = Registers { rip: CODE, ..Registers::default() };
    registers.general[4] = STACK + 0x1000;
    Bench { memory, overlay: Overlay::new(64), cache: CodeCache::new(4096), registers, branches: Vec::new() }
}

impl Bench {
    fn run(&mut self, instructions: u64, branches: u64) -> Outcome {
        self.run_without(instructions, branches, &[])
    }

    fn run_without(&mut self, instructions: u64, branches: u64, forbidden: &[std::ops::Range<Avma>]) -> Outcome {
        run(
            &mut self.registers,
            &mut self.overlay,
            &mut self.memory,
            &mut self.cache,
            Fuel { instructions, branches },
            forbidden,
            &mut self.branches,
        )
    }
}

/// call f; jmp back; f: dec ecx; jnz +0 to itself's next; ret
const CALLS: [u8; 14] = [
    0xe8, 0x02, 0x00, 0x00, 0x00, // 0: call 7
    0xeb, 0xf9, // 5: jmp 0
    0xff, 0xc1, // 7: inc ecx
    0x83, 0xf9, 0x03, // 9: cmp ecx, 3
    0x74, 0x00, // c: je e
];

#[test]
fn branches_are_recorded_in_order_with_their_kinds() {
    let mut code = CALLS.to_vec();
    code.push(0xc3); // e: ret
    let mut bench = bench(&code);
    let outcome = bench.run(1000, 10);
    let seen: Vec<(u64, u64, BranchKind)> =
        bench.branches.iter().map(|b| (b.from.0 - CODE, b.to.0 - CODE, b.kind)).collect();
    let (call, jump, ret) = ((0, 7, BranchKind::Call), (5, 0, BranchKind::Jump), (0xe, 5, BranchKind::Return));
    let taken = (0xc, 0xe, BranchKind::Conditional);
    assert_eq!(seen, [call, ret, jump, call, ret, jump, call, taken, ret, jump]);
    assert_eq!((outcome.instructions, outcome.branches, outcome.not_taken), (18, 10, 2));
    assert_eq!(outcome.stop, StopReason::Branches);
    assert_eq!(bench.registers.rip, CODE);
}

#[test]
fn a_burst_cut_anywhere_goes_on_where_it_ended() {
    let mut code = CALLS.to_vec();
    code.push(0xc3);
    let mut whole = bench(&code);
    whole.run(500, 1000);
    for step in [1, 2, 3, 7] {
        let mut cut = bench(&code);
        let mut left = 500;
        while left > 0 {
            let outcome = cut.run(step.min(left), 1000);
            assert_eq!(outcome.stop, StopReason::Fuel);
            left -= outcome.instructions;
        }
        assert_eq!(cut.registers, whole.registers);
        assert_eq!(cut.branches, whole.branches);
    }
}

#[test]
fn forbidden_ranges_end_a_burst_behind_the_branch() {
    let mut code = CALLS.to_vec();
    code.push(0xc3);
    let mut bench = bench(&code);
    let range = Avma(CODE + 7)..Avma(CODE + 8);
    let outcome = bench.run_without(100, 100, &[range]);
    assert_eq!((outcome.stop, outcome.branches, outcome.instructions), (StopReason::Forbidden, 1, 1));
    assert_eq!(bench.registers.rip, CODE + 7);
}

#[test]
fn a_spin_loop_is_noticed_and_a_working_loop_is_not() {
    // pause; cmp dword [rsp], 1; jne start
    let mut waits = bench(&[0xf3, 0x90, 0x83, 0x3c, 0x24, 0x01, 0x75, 0xf8]);
    let outcome = waits.run(1_000_000, 1_000_000);
    assert_eq!(outcome.stop, StopReason::Spinning);
    assert!(outcome.branches < 32, "{outcome:?}");
    // inc dword [rsp]; cmp dword [rsp], 0; jne start
    let mut works = bench(&[0xff, 0x04, 0x24, 0x83, 0x3c, 0x24, 0x00, 0x75, 0xf7]);
    assert_eq!(works.run(10_000, 1_000_000).stop, StopReason::Fuel);
}

#[test]
fn reading_the_pointer_of_a_shadow_stack_does_nothing_where_there_is_none() {
    const READ: [u8; 6] = [0xf3, 0x48, 0x0f, 0x1e, 0xc8, 0xf4]; // rdsspq rax; hlt
    let mut without = bench(&READ);
    without.registers.general[0] = 7;
    let outcome = without.run(100, 100);
    assert_eq!((outcome.instructions, outcome.stop, without.registers.general[0]), (1, StopReason::Exception, 7));
    let mut with = bench(&READ);
    with.registers.shadow_stack = true;
    let outcome = with.run(100, 100);
    assert!(matches!(outcome.stop, StopReason::Unsupported(_)), "{outcome:?}");
}

#[test]
fn writing_over_decoded_code_stops() {
    // mov byte [rip+0], 0x90 (over the next instruction); nop
    let mut bench = bench(&[0xc6, 0x05, 0x00, 0x00, 0x00, 0x00, 0x90, 0x90, 0xc3]);
    let outcome = bench.run(100, 100);
    assert_eq!((outcome.stop, outcome.instructions), (StopReason::SelfModifying, 0));
}

#[test]
fn running_what_was_just_written_stops() {
    // mov byte [rsp], 0xc3; jmp rsp
    let mut bench = bench(&[0xc6, 0x04, 0x24, 0xc3, 0xff, 0xe4]);
    let outcome = bench.run(100, 100);
    assert_eq!((outcome.stop, outcome.branches), (StopReason::SelfModifying, 1));
    assert_eq!(bench.registers.rip, STACK + 0x1000);
}

#[test]
fn code_and_pages_are_read_once() {
    let mut code = CALLS.to_vec();
    code.push(0xc3);
    let mut bench = bench(&code);
    bench.run(500, 10);
    assert_eq!(bench.memory.reads, 2, "one page of code, one of stack");
    bench.overlay.clear();
    bench.run(500, 9);
    assert_eq!(bench.memory.reads, 3, "the code is still decoded");
}

#[test]
fn invalidated_code_is_read_again() {
    let mut bench = bench(&[0xff, 0xc0, 0xeb, 0xfc]); // inc eax; jmp start
    bench.run(10, 100);
    assert_eq!(bench.registers.general[0], 5);
    bench.memory.put(CODE, &[0xff, 0xc8]); // dec eax
    bench.overlay.clear();
    bench.run(2, 100);
    assert_eq!(bench.registers.general[0], 6, "the cache was not told");
    bench.cache.invalidate(Avma(CODE + 3)..Avma(CODE + 0x10));
    bench.overlay.clear();
    bench.run(2, 100);
    assert_eq!(bench.registers.general[0], 5);
}

/// What a burst does to a loop that counts in memory: the branches and registers, and what is in memory then.
fn counted(mut bench: Bench) -> (Vec<Branch>, Registers, Page) {
    bench.run(1000, 1000);
    let mut stack = [0; lookahead::PAGE];
    bench.memory.read_page(Avma(STACK), &mut stack).unwrap();
    (bench.branches, bench.registers, stack)
}

#[test]
fn memory_in_place_gives_the_same_burst_and_stays_as_it_is() {
    // inc dword [rsp - 8]; mov eax, [rsp - 8]; push rax; pop rcx; jmp start
    let code = [0xff, 0x44, 0x24, 0xf8, 0x8b, 0x44, 0x24, 0xf8, 0x50, 0x59, 0xeb, 0xf4];
    let mut in_place = bench(&code);
    in_place.memory.in_place = true;
    let (in_place, copied) = (counted(in_place), counted(bench(&code)));
    assert_eq!(in_place.0, copied.0);
    assert_eq!(in_place.1, copied.1);
    assert_eq!(in_place.1.general[0], 200);
    assert_eq!(in_place.2, [0; lookahead::PAGE]);
}

#[test]
fn a_line_in_place_is_copied_when_its_page_was_written_to() {
    // mov rax, [rsp]; syscall
    let mut bench = bench(&[0x48, 0x8b, 0x04, 0x24, 0x0f, 0x05]);
    bench.memory.in_place = true;
    let loads = |bench: &mut Bench| {
        bench.registers.rip = CODE;
        bench.run(10, 10);
        bench.registers.general[0]
    };
    assert_eq!(loads(&mut bench), 0);
    bench.memory.put(STACK + 0x1000, &[7]);
    assert_eq!(loads(&mut bench), 7, "it is read where it is");
    // push rax; syscall
    bench.memory.put(CODE + 0x100, &[0x50, 0x0f, 0x05]);
    (bench.registers.rip, bench.registers.general[4]) = (CODE + 0x100, STACK + 0x1020);
    bench.run(1, 1);
    bench.registers.general[4] = STACK + 0x1000;
    bench.memory.put(STACK + 0x1000, &[8]);
    assert_eq!(loads(&mut bench), 7, "it was copied when it was written to");
    bench.registers.general[4] = STACK + 0x1100;
    bench.memory.put(STACK + 0x1100, &[9]);
    assert_eq!(loads(&mut bench), 9, "another line is copied when it is used");
    bench.memory.put(STACK + 0x1100, &[10]);
    assert_eq!(loads(&mut bench), 9);
    let (_, page) = bench.overlay.written().next().unwrap();
    assert_eq!([page[0], page[0x100]], [7, 9]);
    bench.registers.general[4] = STACK + 0x1000;
    bench.overlay.clear();
    assert_eq!(loads(&mut bench), 8);
    assert_eq!(bench.memory.reads, 0);
}

#[test]
fn a_cache_that_compares_need_not_be_told() {
    let mut bench = bench(&[0xff, 0xc0, 0xeb, 0x00, 0xff, 0xc0, 0xeb, 0xf8]); // inc eax; jmp +0; inc eax; jmp start
    bench.cache = CodeCache::comparing(4096);
    bench.run(8, 100);
    assert_eq!(bench.registers.general[0], 4);
    bench.memory.put(CODE + 4, &[0xff, 0xc8]); // dec eax
    bench.overlay.clear();
    for expected in [4, 4] {
        bench.run(8, 100);
        assert_eq!(bench.registers.general[0], expected, "one block is another, the other is the same");
    }
    bench.memory.put(CODE, &[0xff, 0xc8]);
    bench.overlay.clear();
    bench.run(8, 100);
    assert_eq!(bench.registers.general[0], 0);
}

#[test]
fn a_cache_compares_the_last_bytes_of_the_address_space() {
    const LAST: u64 = u64::MAX - 1;
    let mut bench = bench(&[]);
    bench.memory.put(LAST, &[0xeb, 0xfe]); // jmp to itself
    bench.cache = CodeCache::comparing(4096);
    for _ in 0..2 {
        bench.registers.rip = LAST;
        bench.overlay.clear();
        assert_eq!(bench.run(2, 100).branches, 2);
    }
}

#[test]
fn unreadable_code_and_data() {
    let mut jump = bench(&[0xff, 0xe0]); // jmp rax
    let outcome = jump.run(10, 10);
    assert_eq!((outcome.stop, outcome.branches), (StopReason::UnreadableCode, 1));
    let mut end = bench(&[0x90; 0x1000]);
    let outcome = end.run(10_000, 10);
    assert_eq!((outcome.stop, outcome.instructions), (StopReason::UnreadableCode, 0x1000));
    let mut load = bench(&[0x90, 0x48, 0x8b, 0x00]); // nop; mov rax, [rax]
    let outcome = load.run(10, 10);
    assert_eq!((outcome.stop, outcome.instructions), (StopReason::Fault { address: Avma(0) }, 1));
    assert_eq!(load.registers.rip, CODE + 1);
    let mut store = bench(&[0x50]); // push rax
    store.memory.read_only.push(STACK >> 12);
    assert_eq!(store.run(10, 10).stop, StopReason::Fault { address: Avma(STACK + 0xff8) });
    assert_eq!(store.registers.general[4], STACK + 0x1000);
}

#[test]
fn an_instruction_across_pages_is_decoded() {
    let mut bench = bench(&[]);
    bench.memory.put(CODE + 0xffd, &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xc0, 0x0f, 0x05]);
    bench.registers.rip = CODE + 0xffd;
    let outcome = bench.run(10, 10);
    assert_eq!((outcome.stop, outcome.instructions), (StopReason::SystemCall, 2));
    assert_eq!(bench.registers.general[0], 0x0403_0202);
}

#[test]
fn a_long_repetition_is_bounded() {
    let mut bench = bench(&[0xf3, 0xaa, 0x0f, 0x05]); // rep stosb; syscall
    (bench.registers.general[1], bench.registers.general[7]) = (1000, STACK);
    let outcome = bench.run(10, 10);
    assert_eq!((outcome.stop, outcome.instructions), (StopReason::Fuel, 0));
    assert_eq!((bench.registers.general[1], bench.registers.general[7]), (360, STACK + 640));
    assert_eq!(bench.run(10, 10).stop, StopReason::SystemCall);
}

#[test]
fn a_small_cache_starts_anew_and_stays_right() {
    // 300 times: inc eax; jmp +0, then jmp to the start
    let mut code = [0xff, 0xc0, 0xeb, 0x00].repeat(300);
    code.push(0xe9);
    code.extend_from_slice(&(-(300 * 4 + 5i32)).to_le_bytes());
    let mut bench = bench(&code);
    bench.cache = CodeCache::new(0);
    let outcome = bench.run(10 * 601, 100_000);
    assert_eq!((outcome.stop, bench.registers.general[0]), (StopReason::Fuel, 3000));
    let mut small = self::bench(&code.repeat(1));
    small.cache = CodeCache::new(1);
    for _ in 0..601 {
        small.run(10, 100_000);
    }
    assert_eq!(small.registers, bench.registers);
}

/// Memory that panics when `bad` is read.
struct Panicking<'m> {
    memory: &'m mut Pages,
    bad: u64,
}

impl Memory for Panicking<'_> {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        assert_ne!(address.0, self.bad, "as this test wants");
        self.memory.read_page(address, page)
    }
}

#[test]
fn a_cache_stays_right_after_a_panic_in_the_middle_of_a_burst() {
    const BAD: u64 = 0x90_0000;
    // pxor xmm0, xmm1; paddd xmm0, xmm1; pxor xmm0, xmm1; jmp to itself
    let mut bench = bench(&[0x66, 0x0f, 0xef, 0xc1, 0x66, 0x0f, 0xfe, 0xc1, 0x66, 0x0f, 0xef, 0xc1, 0xeb, 0xfe]);
    let low = |registers: &Registers| u64::from_le_bytes(registers.vector.zmm[0][..8].try_into().expect("8 bytes"));
    let start = Registers { rip: CODE, ..bench.registers.clone() };
    let vectors = |bench: &mut Bench| {
        bench.registers = start.clone();
        bench.registers.vector.zmm[1][0] = 5;
        bench.registers.vector.zmm[0][0] = 1;
        let outcome = bench.run(3, u64::MAX);
        (outcome.instructions, low(&bench.registers))
    };
    let right = (3, ((1 ^ 5) + 5) ^ 5);
    assert_eq!(vectors(&mut bench), right);

    bench.overlay.clear();
    bench.memory.put(CODE + 0x100, &[0x48, 0x8b, 0x06]); // mov rax, [rsi]
    bench.registers.rip = CODE + 0x100;
    bench.registers.general[6] = BAD;
    let Bench { memory, overlay, cache, registers, branches } = &mut bench;
    let fuel = Fuel { instructions: 1, branches: 1 };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run(registers, overlay, &mut Panicking { memory, bad: BAD }, cache, fuel, &[], branches)
    }));
    assert!(panicked.is_err());

    bench.overlay.clear();
    bench.memory.put(CODE + 0x200, &[0x66, 0x0f, 0x59, 0xc1]); // mulpd xmm0, xmm1, which needs a longer stub
    bench.registers.rip = CODE + 0x200;
    assert_eq!(bench.run(1, u64::MAX).instructions, 1);
    assert_eq!(vectors(&mut bench), right);
}

#[test]
fn too_many_pages_stop() {
    // mov rax, [rdi]; add rdi, 4096; jmp start
    let mut bench = bench(&[0x48, 0x8b, 0x07, 0x48, 0x81, 0xc7, 0, 0x10, 0, 0, 0xeb, 0xf4]);
    bench.memory.put(0x100_0000, &[0; 0x10000]);
    bench.registers.general[7] = 0x100_0000;
    bench.overlay = Overlay::new(10);
    let outcome = bench.run(1000, 1000);
    assert_eq!(outcome.stop, StopReason::OverlayFull);
    assert_eq!(outcome.branches, 9);
}

#[test]
fn uses_of_what_was_stored_shortly_before_are_found() {
    // mov rbx, rsp; mov [rbx + 0x40], eax; inc dword [rbx + 0x44]; add ecx, [rbx + 0x40]; lea edx, [rbx + 8]; mov [rsp], rdx; mov rdx, [rsp];
    // inc dword [rbx + 0x44]; int3
    let code = [
        &[0x48, 0x89, 0xe3][..],
        &[0x89, 0x43, 0x40],
        &[0xff, 0x43, 0x44],
        &[0x03, 0x4b, 0x40],
        &[0x8d, 0x53, 0x08],
        &[0x48, 0x89, 0x14, 0x24],
        &[0x48, 0x8b, 0x14, 0x24],
        &[0xff, 0x43, 0x44],
        &[0xcc],
    ];
    let mut bench = bench(&code.concat());
    let mut lines = DataLines::default();
    lines.continue_at(100);
    let fuel = Fuel { instructions: 8, branches: 100 };
    let Bench { memory, overlay, cache, registers, branches } = &mut bench;
    run_with_lines(registers, overlay, memory, cache, fuel, branches, &mut lines);
    // Those at a constant distance from the stack pointer are left to the reader of the code.
    let used = |instruction, distance| Forwarded { instruction, distance };
    assert_eq!(lines.forwarded(), [used(103, 2), used(107, 5)]);
    lines.clear();
    assert!(lines.forwarded().is_empty());
}

#[test]
fn data_lines_come_where_they_are_used_first() {
    // mov rax, [rsp]; mov rax, [rsp + 0x3c]; mov rax, [rsp + 8]; inc dword [rsp + 0x44]; jmp to the first. The second crosses a border.
    let code = [
        &[0x48, 0x8b, 0x04, 0x24][..],
        &[0x48, 0x8b, 0x44, 0x24, 0x3c],
        &[0x48, 0x8b, 0x44, 0x24, 0x08],
        &[0xff, 0x44, 0x24, 0x44],
        &[0xeb, 0xec],
    ];
    let mut bench = bench(&code.concat());
    let mut lines = DataLines::default();
    lines.continue_at(100);
    let fuel = Fuel { instructions: 1000, branches: 100 };
    let Bench { memory, overlay, cache, registers, branches } = &mut bench;
    let outcome = run_with_lines(registers, overlay, memory, cache, fuel, branches, &mut lines);
    assert_eq!((outcome.stop, branches.len()), (StopReason::Branches, 100));
    let line = (STACK + 0x1000) / 64;
    let used = |instruction, line| DataUse { instruction, line };
    assert_eq!(lines.uses(), [used(100, line), used(101, line + 1)]);
    assert_eq!(lines.forwarded(), []);
    lines.clear();
    assert!(lines.uses().is_empty());
}
