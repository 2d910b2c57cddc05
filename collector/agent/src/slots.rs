//! Bursts on their way from the program to the recorder: memory that both have.
//!
//! The agent takes a free slot, fills it, and marks it full; the recorder takes what is full and frees it. A burst that may go on after a
//! system call is held meanwhile: it is whole as it is, and becomes full if the recorder or another burst cannot wait for it. A process
//! that dies with a slot leaves it taken: the recorder frees the slots of threads that have ended. The program could write to this
//! memory: what is read here is believed as little as any other input.

use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use addresses::Avma;
use lookahead::{Branch, BranchKind, Branches, DataLines, ExecutedCode, StopReason};

use crate::file_code::FileCode;
use crate::inside::{burst, follow};
use crate::slot_code::SlotCode;
use crate::timers::{SharedTimers, Timers};

/// Slots there are: for some 50 ms of bursts on a machine of many CPUs.
const SLOTS: usize = 128;
/// Taken branches of a burst at most.
pub(crate) const BRANCHES: usize = 32_768;
/// Taken branches of a piece: as many as the recorder puts into one sample.
pub(crate) const PIECE: usize = 2000;
pub(crate) const PIECES: usize = BRANCHES.div_ceil(PIECE);
const USES: usize = DataLines::MOST;
const FORWARDED: usize = DataLines::MOST_FORWARDED;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const FULL: u32 = 2;
/// And above these two bits which hold it is, so that nobody takes another's for his own.
const HELD: u32 = 3;
const STATE_BITS: u32 = 2;
const STATE: u32 = (1 << STATE_BITS) - 1;

/// Where nobody has said yet whose burst a slot is for.
const NOBODY: u32 = u32::MAX;

/// More than any burst has.
const MOST_INSTRUCTIONS: u64 = 1 << 31;

/// Where the kind of a branch stands beside its address: addresses in user space have at most 56 bits.
const KIND_SHIFT: u32 = 56;

/// How far bursts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions of a burst at most.
    pub instructions: u64,
    /// Taken branches of a burst at most; never more than 32,768.
    pub branches: u64,
}

/// The memory that both sides have.
#[repr(C)]
pub(crate) struct Shared {
    /// Not zero: no burst is to be taken.
    off: AtomicU32,
    pub(crate) tally: SharedTally,
    instructions: AtomicU64,
    branches: AtomicU64,
    /// Not zero: threads execute the paths of their bursts under observation.
    checks: AtomicU32,
    /// Numbers of holds.
    holds: AtomicU32,
    pub(crate) timers: SharedTimers,
    pub(crate) file_code: FileCode,
    /// The signal of timers.
    signal: AtomicU32,
    /// Of each slot, side by side: they are looked at more often than the slots.
    states: [AtomicU32; SLOTS],
    slots: [Slot; SLOTS],
}

/// What comes of signals without a burst.
#[repr(C)]
#[derive(Default)]
pub(crate) struct SharedTally {
    /// As many bursts were being taken as can be.
    pub(crate) busy: AtomicU32,
    /// No slot was free.
    pub(crate) no_slot: AtomicU32,
    /// Something happened in a burst that must not: a fault outside of a first touch, a call of a function that is not there.
    pub(crate) given_up: AtomicU32,
    /// Where it last happened: the return address of the call, or the instruction.
    pub(crate) given_up_at: AtomicU64,
    /// The handlers of faults were in use elsewhere.
    pub(crate) waiting: AtomicU32,
    /// Threads that came to the system call where their burst had ended, on the same stack,
    pub(crate) came: AtomicU32,
    /// of these, with other registers than the burst had there,
    pub(crate) diverged: AtomicU32,
    /// and those that came elsewhere.
    pub(crate) strayed: AtomicU32,
}

#[repr(C)]
pub(crate) struct Slot {
    branch_count: AtomicU32,
    use_count: AtomicU32,
    forwarded_count: AtomicU32,
    /// The event whose signal started the burst: the number of its descriptor in the recorder. If a timer did, the thread.
    event: AtomicU32,
    process: AtomicU32,
    start: AtomicU64,
    /// Whether it starts right after a system call: 0 or 1.
    after_call: AtomicU64,
    /// When it ended, by `CLOCK_MONOTONIC`, ns.
    time: AtomicU64,
    /// Instructions of each piece of 2,000 branches.
    pieces: [AtomicU64; PIECES],
    not_taken: AtomicU64,
    /// CPU time of the handler until the burst is written, ns.
    took: AtomicU64,
    /// System calls that it went over.
    system_calls: AtomicU64,
    /// Of that, decoding.
    decoding: AtomicU64,
    pages: AtomicU64,
    /// Place in [`ENDS`], and the mnemonic of an unsupported instruction.
    end: AtomicU64,
    /// Instructions of which all data is known; all ones: of all.
    known_until: AtomicU64,
    /// What came of the comparison with the thread.
    checked: [AtomicU64; 8],
    /// Kind and address of each, and where it went.
    branches: [[AtomicU64; 2]; BRANCHES],
    uses: [AtomicU64; USES],
    forwarded: [AtomicU64; FORWARDED],
    /// What it executed that is of no file.
    pub(crate) code: SlotCode,
}

const _: () = assert!(size_of::<Shared>() as u64 <= crate::layout::SCRATCH - crate::layout::SLOTS);

/// Why bursts end.
const ENDS: [&str; 12] = [
    "instruction budget",
    "branch depth",
    "system call",
    "unreadable memory",
    "exception",
    "software interrupt",
    "unsupported instruction",
    "unreadable code",
    "self-modifying code",
    "spinning",
    "too many pages",
    "another reason",
];

impl Shared {
    /// Of the agent, inside a program.
    pub(crate) fn inside() -> &'static Self {
        // SAFETY: where the agent runs, the recorder has mapped it there (`layout`). All of it is atomic: any bits will do.
        unsafe { &*(crate::layout::SLOTS as *const Self) }
    }

    /// Where the word is that says so.
    pub(crate) const OFF: u64 = crate::layout::SLOTS + std::mem::offset_of!(Self, off) as u64;

    pub(crate) fn is_off(&self) -> bool {
        self.off.load(Relaxed) != 0
    }

    /// The signal of timers.
    pub(crate) fn signal(&self) -> i32 {
        self.signal.load(Relaxed) as i32
    }

    pub(crate) fn checks(&self) -> bool {
        self.checks.load(Relaxed) != 0
    }

    pub(crate) fn limits(&self) -> Limits {
        let branches = self.branches.load(Relaxed).min(BRANCHES as u64);
        Limits { instructions: self.instructions.load(Relaxed), branches }
    }

    /// A slot to fill, the first that is free: it is the warmest.
    pub(crate) fn take(&self, event: u32, process: u32) -> Option<TakenSlot<'_>> {
        let free = |state: &AtomicU32| {
            state.load(Relaxed) == FREE && state.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok()
        };
        let index = self.states.iter().position(free)?;
        let (slot, state) = (&self.slots[index], &self.states[index]);
        slot.event.store(event, Relaxed);
        slot.process.store(process, Relaxed);
        slot.checked[0].store(0, Relaxed);
        slot.code.clear();
        Some(TakenSlot { slot, state })
    }
}

/// A burst as the agent has taken it.
pub(crate) struct Taken<'a> {
    pub(crate) start: u64,
    pub(crate) after_call: bool,
    pub(crate) time: u64,
    pub(crate) pieces: [u64; PIECES],
    pub(crate) not_taken: u64,
    pub(crate) decoding: u64,
    pub(crate) pages: u64,
    pub(crate) system_calls: u64,
    pub(crate) stop: StopReason,
    /// Taken branches, which [`SlotBranches`] has written.
    pub(crate) branches: usize,
    pub(crate) lines: &'a DataLines,
}

/// A slot that a burst has.
#[derive(Clone, Copy)]
pub(crate) struct TakenSlot<'a> {
    pub(crate) slot: &'a Slot,
    state: &'a AtomicU32,
}

impl<'a> TakenSlot<'a> {
    /// Gives it back as it was.
    pub(crate) fn free(self) {
        self.slot.event.store(NOBODY, Relaxed);
        self.state.store(FREE, Release);
    }

    /// Leaves it to the recorder; the handler took so long, ns of CPU time.
    pub(crate) fn hand_over(self, took: u64) {
        self.slot.took.store(took, Relaxed);
        self.state.store(FULL, Release);
    }

    /// Keeps it while the thread makes a system call.
    pub(crate) fn hold(self, took: u64) -> HeldSlot<'a> {
        self.slot.took.store(took, Relaxed);
        let mark = Shared::inside().holds.fetch_add(1, Relaxed) << STATE_BITS | HELD;
        self.state.store(mark, Release);
        HeldSlot { slot: self, mark }
    }
}

/// A slot that is held. Others may have made it full meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct HeldSlot<'a> {
    slot: TakenSlot<'a>,
    mark: u32,
}

impl<'a> HeldSlot<'a> {
    /// To be filled further; `None` if the burst is the recorder's already.
    pub(crate) fn take_again(self) -> Option<TakenSlot<'a>> {
        self.slot.state.compare_exchange(self.mark, TAKEN, Acquire, Relaxed).ok().map(|_| self.slot)
    }

    /// Leaves the burst to the recorder as it is.
    pub(crate) fn leave(self) {
        let _ = self.slot.state.compare_exchange(self.mark, FULL, AcqRel, Relaxed);
    }
}

impl Slot {
    /// Says what came of the comparison with the thread.
    pub(crate) fn set_checked(&self, checked: &Checked) {
        for (word, value) in self.checked.iter().zip(checked.words()) {
            word.store(value, Relaxed);
        }
    }

    /// Fills in all but the branches. [`TakenSlot::hand_over`] makes it the recorder's.
    pub(crate) fn fill(&self, burst: &Taken<'_>) {
        let (uses, forwarded) = (burst.lines.uses(), burst.lines.forwarded());
        for (word, used) in self.uses.iter().zip(uses) {
            word.store(u64::from(used.instruction) << 32 | used.line & 0xffff_ffff, Relaxed);
        }
        for (word, used) in self.forwarded.iter().zip(forwarded) {
            word.store(u64::from(used.instruction) << 32 | u64::from(used.distance), Relaxed);
        }
        let mnemonic = match burst.stop {
            StopReason::Unsupported(instruction) => instruction.mnemonic as u64,
            _ => 0,
        };
        let end = ENDS.iter().position(|name| *name == burst.stop.name()).unwrap_or(ENDS.len() - 1);
        self.branch_count.store(burst.branches.min(BRANCHES) as u32, Relaxed);
        self.use_count.store(uses.len() as u32, Relaxed);
        self.forwarded_count.store(forwarded.len() as u32, Relaxed);
        self.start.store(burst.start, Relaxed);
        self.after_call.store(u64::from(burst.after_call), Relaxed);
        self.time.store(burst.time, Relaxed);
        for (word, instructions) in self.pieces.iter().zip(burst.pieces) {
            word.store(instructions, Relaxed);
        }
        self.not_taken.store(burst.not_taken, Relaxed);
        self.decoding.store(burst.decoding, Relaxed);
        self.pages.store(burst.pages, Relaxed);
        self.system_calls.store(burst.system_calls, Relaxed);
        self.end.store(mnemonic << 8 | end as u64, Relaxed);
        self.known_until.store(burst.lines.known_until().map_or(u64::MAX, u64::from), Relaxed);
    }
}

/// Writes the branches of a burst to its slot when they are taken.
pub(crate) struct SlotBranches<'a> {
    pub(crate) slot: &'a Slot,
    /// How many there are.
    pub(crate) count: &'a mut usize,
    /// Where they are kept, too, if the burst is to be checked.
    pub(crate) kept: Option<&'a mut Vec<Branch>>,
}

impl Branches for SlotBranches<'_> {
    #[inline(always)]
    fn taken(&mut self, branch: Branch) {
        if let Some([from, to]) = self.slot.branches.get(*self.count) {
            from.store(branch.from.0 & !(0xff << KIND_SHIFT) | (branch.kind as u64) << KIND_SHIFT, Relaxed);
            to.store(branch.to.0, Relaxed);
        }
        *self.count += 1;
        if let Some(kept) = &mut self.kept {
            kept.push(branch);
        }
    }
}

/// A burst that has come out of a program.
#[derive(Clone, Debug, Default)]
pub struct Burst {
    /// The event whose signal started it: the number of its descriptor in the recorder. If a timer did, the thread.
    pub event: i32,
    /// The process that has taken it.
    pub process: i32,
    /// Address of its first instruction.
    pub start: Avma,
    /// That is the one after a system call.
    pub after_call: bool,
    /// When it ended, by `CLOCK_MONOTONIC`, ns.
    pub time: u64,
    /// Executed instructions of each piece of 2,000 branches; one at least.
    pub pieces: Vec<u64>,
    /// Conditional branches that were not taken.
    pub not_taken: u64,
    /// CPU time of the handler, ns.
    pub took: u64,
    /// Of that, decoding, ns.
    pub decoding: u64,
    /// Pages of memory that it touched.
    pub pages: u64,
    /// System calls that it went over.
    pub system_calls: u64,
    /// Why it ended.
    pub end: &'static str,
    /// The mnemonic of iced-x86 of the instruction that is not interpreted, if that ended it.
    pub unsupported: Option<u16>,
    /// Taken branches, in the order of execution.
    pub branches: Vec<Branch>,
    /// First uses of lines of data: instructions executed before, and the low half of address / 64.
    pub uses: Vec<(u32, u32)>,
    /// Uses of what was stored before: instructions executed before, and the distance in instructions.
    pub forwarded: Vec<(u32, u32)>,
    /// Instructions for which both are known; `None` if for all.
    pub known_until: Option<u32>,
    /// What came of the comparison with the thread, if there was one ([`Slots::check`]).
    pub checked: Option<Checked>,
    /// The code that it executed, but for code of files that the process is known to have ([`Slots::set_file_code`]).
    pub code: ExecutedCode,
    /// Blocks of such code for which there was no room.
    pub code_left_out: u64,
}

/// A burst beside what its thread did then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Instructions that the thread executed as the burst says.
    pub instructions: u64,
    /// Taken branches among them.
    pub branches: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of comparing a burst with its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The same branches, and the same registers and memory at the end.
    #[default]
    Same,
    /// It was not compared to the end, for this reason.
    Unfinished(&'static str),
    /// The thread did something else.
    Different(Difference),
}

/// What a thread did otherwise than its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `branch`, `memory` or the name of a register.
    pub what: &'static str,
    /// Address of the branch, or of the last instruction that wrote to the register; where the memory is. 0: not known.
    pub at: Avma,
    /// By the burst: where the branch goes, or the content: of a vector register, the first eight bytes that differ.
    pub expected: u64,
    /// By the thread.
    pub found: u64,
    /// Memory that is not what the burst has there.
    pub changed: Option<MemoryChange>,
    /// The branch comes soon after an instruction that reads and writes memory at once: what that found there is seen no more.
    pub is_after_atomic: bool,
}

/// Memory that is not what a burst has there: others have written to it, or the burst is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryChange {
    /// Where it is.
    pub at: Avma,
    /// The burst has changed it, too.
    pub is_of_path: bool,
}

/// Why bursts are not compared to the end.
pub(crate) const REASONS: [&str; 9] = [
    "its path is too long for a copy",
    "an instruction cannot be copied",
    "its code has changed",
    "the program handles or blocks SIGTRAP",
    "a fault",
    "nothing to compare",
    "it reads a clock",
    "it ends within a repeated instruction",
    "an unknown reason",
];

/// What can differ: general registers in encoding order first, then vector registers.
pub(crate) const NAMES: [&str; 73] = [
    "rax",
    "rcx",
    "rdx",
    "rbx",
    "rsp",
    "rbp",
    "rsi",
    "rdi",
    "r8",
    "r9",
    "r10",
    "r11",
    "r12",
    "r13",
    "r14",
    "r15",
    "zmm0",
    "zmm1",
    "zmm2",
    "zmm3",
    "zmm4",
    "zmm5",
    "zmm6",
    "zmm7",
    "zmm8",
    "zmm9",
    "zmm10",
    "zmm11",
    "zmm12",
    "zmm13",
    "zmm14",
    "zmm15",
    "zmm16",
    "zmm17",
    "zmm18",
    "zmm19",
    "zmm20",
    "zmm21",
    "zmm22",
    "zmm23",
    "zmm24",
    "zmm25",
    "zmm26",
    "zmm27",
    "zmm28",
    "zmm29",
    "zmm30",
    "zmm31",
    "k0",
    "k1",
    "k2",
    "k3",
    "k4",
    "k5",
    "k6",
    "k7",
    "st0",
    "st1",
    "st2",
    "st3",
    "st4",
    "st5",
    "st6",
    "st7",
    "mxcsr",
    "x87 control",
    "x87 status",
    "x87 tags",
    "rflags",
    "fs",
    "gs",
    "branch",
    "memory",
];

impl Checked {
    const SAME: u64 = 1;
    const UNFINISHED: u64 = 2;
    const DIFFERENT: u64 = 3;
    /// Addresses of programs have fewer bits.
    const OF_PATH_SHIFT: u32 = 63;
    const ATOMIC_SHIFT: u32 = 62;

    fn words(&self) -> [u64; 8] {
        let place = |list: &[&str], name: &str| list.iter().position(|n| *n == name).unwrap_or(list.len() - 1) as u64;
        let Self { instructions, branches, outcome } = *self;
        match outcome {
            Outcome::Same => [Self::SAME, instructions, branches, 0, 0, 0, 0, 0],
            Outcome::Unfinished(why) => [Self::UNFINISHED, instructions, branches, place(&REASONS, why), 0, 0, 0, 0],
            Outcome::Different(Difference { what, at, expected, found, changed, is_after_atomic }) => {
                let word = |change: MemoryChange| change.at.0 | u64::from(change.is_of_path) << Self::OF_PATH_SHIFT;
                let changed = changed.map_or(0, word) | u64::from(is_after_atomic) << Self::ATOMIC_SHIFT;
                [Self::DIFFERENT, instructions, branches, place(&NAMES, what), at.0, expected, found, changed]
            }
        }
    }

    fn of_words(words: [u64; 8]) -> Option<Self> {
        let [how, instructions, branches, number, place, expected, found, changed] = words;
        let name = |list: &'static [&'static str]| list[(number as usize).min(list.len() - 1)];
        let outcome = match how {
            Self::SAME => Outcome::Same,
            Self::UNFINISHED => Outcome::Unfinished(name(&REASONS)),
            Self::DIFFERENT => {
                let is_after_atomic = changed >> Self::ATOMIC_SHIFT & 1 != 0;
                let changed = changed & !(1 << Self::ATOMIC_SHIFT);
                let is_of_path = changed >> Self::OF_PATH_SHIFT != 0;
                let at = Avma(changed & !(1 << Self::OF_PATH_SHIFT));
                let changed = (changed != 0).then_some(MemoryChange { at, is_of_path });
                let at = Avma(place);
                Outcome::Different(Difference { what: name(&NAMES), at, expected, found, changed, is_after_atomic })
            }
            _ => return None,
        };
        Some(Self { instructions, branches, outcome })
    }
}

/// What came of signals without a burst, since the recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// As many bursts were being taken as can be.
    pub busy: u64,
    /// No slot was free.
    pub no_slot: u64,
    /// Bursts that were given up: a bug, or memory that was unmapped while it was read.
    pub given_up: u64,
    /// Where one was given up, an address in the image, relative to its start.
    pub given_up_at: u64,
    /// The handlers of faults were in use elsewhere.
    pub waiting: u64,
    /// Threads that came to the system call where their burst had ended, on the same stack,
    pub came: u64,
    /// of these, with other registers than the burst had there,
    pub diverged: u64,
    /// and those that came elsewhere.
    pub strayed: u64,
}

/// The recorder's side.
pub struct Slots {
    shared: NonNull<Shared>,
}

// SAFETY: an address of memory that stays mapped as long as the value lives; what is there is atomic.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// # Safety
    /// `shared` is memory of the size of [`Shared`], readable and writable until the value is dropped.
    pub(crate) unsafe fn new(shared: NonNull<Shared>) -> Self {
        Self { shared }
    }

    fn shared(&self) -> &Shared {
        // SAFETY: see `new`. All of it is atomic: any bits will do.
        unsafe { self.shared.as_ref() }
    }

    /// From now on bursts go so far.
    pub fn set_limits(&self, limits: Limits) {
        self.shared().instructions.store(limits.instructions, Relaxed);
        self.shared().branches.store(limits.branches, Relaxed);
    }

    /// Where a process has code of files: disjoint ranges, by address. The bytes of other code are handed over with its bursts.
    pub fn set_file_code(&self, process: u32, ranges: &[Range<Avma>]) {
        self.shared().file_code.set(process, ranges);
    }

    /// Whether threads are compared with their bursts from now on.
    pub fn check(&self, on: bool) {
        self.shared().checks.store(u32::from(on), Relaxed);
    }

    /// What processes have to say whose bursts are started by timers.
    pub fn timers(&self) -> Timers<'_> {
        Timers { shared: &self.shared().timers }
    }

    /// Timers are to send this signal.
    pub(crate) fn set_signal(&self, signal: i32) {
        self.shared().signal.store(signal as u32, Relaxed);
    }

    /// Whether bursts are to be taken.
    pub fn switch(&self, on: bool) {
        self.shared().off.store(u32::from(!on), Relaxed);
    }

    /// Takes out every burst that is there. `burst` is used for each.
    pub fn drain(&self, burst: &mut Burst, mut each: impl FnMut(&mut Burst)) {
        for (slot, state) in self.shared().slots.iter().zip(&self.shared().states) {
            if state.load(Acquire) == FULL {
                let is_whole = burst.read(slot);
                slot.event.store(NOBODY, Relaxed);
                state.store(FREE, Release);
                if is_whole {
                    each(burst);
                }
            }
        }
    }

    /// Makes bursts full that wait for their thread to come out of a system call: those of the clocks that `which` names.
    pub fn release(&self, which: impl Fn(i32) -> bool) {
        for (slot, state) in self.shared().slots.iter().zip(&self.shared().states) {
            let mark = state.load(Acquire);
            if mark & STATE == HELD && which(slot.event.load(Relaxed) as i32) {
                let _ = state.compare_exchange(mark, FULL, AcqRel, Relaxed);
            }
        }
    }

    /// Whether so many bursts wait for their threads that there may be no slots for others.
    pub fn is_crowded(&self) -> bool {
        self.shared().states.iter().filter(|state| state.load(Relaxed) & STATE == HELD).count() > SLOTS / 2
    }

    /// Frees what threads have left behind that have ended. Returns how many slots these were.
    pub fn reclaim(&self, has_ended: impl Fn(i32) -> bool) -> u64 {
        let slots = self.shared().slots.iter().zip(&self.shared().states);
        // One that was taken just now may be nobody's yet.
        let is_left = |event: u32| event != NOBODY && has_ended(event as i32);
        let left = slots.filter(|(slot, state)| {
            state.load(Acquire) == TAKEN
                && is_left(slot.event.load(Relaxed))
                && state.compare_exchange(TAKEN, FREE, Acquire, Relaxed).is_ok()
        });
        left.count() as u64
    }

    /// What came of signals without a burst.
    pub fn tally(&self) -> Tally {
        let tally = &self.shared().tally;
        Tally {
            busy: u64::from(tally.busy.load(Relaxed)),
            no_slot: u64::from(tally.no_slot.load(Relaxed)),
            given_up: u64::from(tally.given_up.load(Relaxed)),
            given_up_at: tally.given_up_at.load(Relaxed).wrapping_sub(crate::layout::BASE),
            waiting: u64::from(tally.waiting.load(Relaxed)),
            came: u64::from(tally.came.load(Relaxed)),
            diverged: u64::from(tally.diverged.load(Relaxed)),
            strayed: u64::from(tally.strayed.load(Relaxed)),
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        // SAFETY: see `new`; nothing refers to it any more.
        unsafe { libc::munmap(self.shared.as_ptr().cast(), size_of::<Shared>()) };
    }
}

impl Burst {
    /// Taken branches at most.
    pub const BRANCHES: usize = BRANCHES;
    /// Taken branches of a piece, but for the last.
    pub const PIECE: usize = PIECE;
    /// System calls that one goes over at most,
    pub const SYSTEM_CALLS: u64 = follow::MOST;
    /// and pages of memory that it touches at most before each of them.
    pub const PAGES: usize = burst::PAGES;

    /// Executed instructions.
    pub fn instructions(&self) -> u64 {
        self.pieces.iter().fold(0, |sum, piece| sum.saturating_add(*piece))
    }

    /// Whether what the slot holds can be a burst.
    fn read(&mut self, slot: &Slot) -> bool {
        let pair = |word: &AtomicU64| {
            let word = word.load(Relaxed);
            ((word >> 32) as u32, word as u32)
        };
        let branches = slot.branches.iter().take(slot.branch_count.load(Relaxed) as usize);
        self.branches.clear();
        let mut is_whole = true;
        self.branches.extend(branches.map(|[from, to]| {
            let (from, to) = (from.load(Relaxed), to.load(Relaxed));
            let kind = KINDS.get((from >> KIND_SHIFT) as usize).copied().flatten();
            is_whole &= kind.is_some();
            let kind = kind.unwrap_or(BranchKind::Conditional);
            Branch { from: Avma(from & !(0xff << KIND_SHIFT)), to: Avma(to), kind }
        }));
        self.uses.clear();
        self.uses.extend(slot.uses.iter().take(slot.use_count.load(Relaxed) as usize).map(pair));
        self.forwarded.clear();
        self.forwarded.extend(slot.forwarded.iter().take(slot.forwarded_count.load(Relaxed) as usize).map(pair));
        let end = slot.end.load(Relaxed);
        self.end = ENDS.get((end & 0xff) as usize).copied().unwrap_or(ENDS[ENDS.len() - 1]);
        self.unsupported = (self.end == "unsupported instruction").then_some((end >> 8) as u16);
        self.known_until = u32::try_from(slot.known_until.load(Relaxed)).ok();
        self.event = slot.event.load(Relaxed) as i32;
        self.process = slot.process.load(Relaxed) as i32;
        self.start = Avma(slot.start.load(Relaxed));
        self.after_call = slot.after_call.load(Relaxed) == 1;
        self.time = slot.time.load(Relaxed);
        let pieces = self.branches.len() / PIECE + 1;
        self.pieces.clear();
        self.pieces.extend(slot.pieces.iter().take(pieces).map(|word| word.load(Relaxed)));
        self.pieces.pop_if(|last| *last == 0 && pieces > 1);
        self.not_taken = slot.not_taken.load(Relaxed);
        self.took = slot.took.load(Relaxed);
        self.decoding = slot.decoding.load(Relaxed).min(self.took);
        self.pages = slot.pages.load(Relaxed);
        self.system_calls = slot.system_calls.load(Relaxed);
        self.checked = Checked::of_words(slot.checked.each_ref().map(|word| word.load(Relaxed)));
        self.code.clear();
        self.code_left_out = slot.code.read(&mut self.code);
        is_whole && self.instructions() >= self.branches.len() as u64 && self.instructions() <= MOST_INSTRUCTIONS
    }
}

/// Kinds of branches by their numbers.
const KINDS: [Option<BranchKind>; 8] = {
    use BranchKind as K;
    let all = [K::Conditional, K::Jump, K::IndirectJump, K::Call, K::IndirectCall, K::Return];
    let (mut kinds, mut next) = ([None; 8], 0);
    while next < all.len() {
        kinds[all[next] as usize] = Some(all[next]);
        next += 1;
    }
    kinds
};
