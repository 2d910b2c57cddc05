//! Whether a burst is what its thread does then: the thread executes a copy of the path, on its own registers and memory, and what it leaves
//! there is compared with what the interpreter left in its own.
//!
//! ```text
//! clock's signal   the frame is made to lead to the copy; burst; the copy is written
//! copy             the thread itself; all signals blocked but SIGTRAP and those of faults, which come on a stack of the agent
//! SIGTRAP          at the end of the path, or where a branch leads elsewhere: compared; the thread goes on where its own code does
//! fault            the thread goes on in its own code before the instruction, which faults again
//! ```

use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Release};

use addresses::Avma;
use iced_x86::Register;
use lookahead::{Fault, Fuel, InPlace, LONGEST_INSTRUCTION, Memory, Overlay, PAGE, Page, Registers, run};

use crate::inside::burst::Agent;
use crate::inside::context::Tcb;
use crate::inside::faults::{self, bit};
use crate::inside::frame::Frame;
use crate::inside::own::{self, OwnMemory};
use crate::inside::{burst, follow, system};
use crate::layout::{CONTEXT_COUNT, COPIES, COPY_BYTES, tcb};
use crate::path_copy::{self, PathCopy, Refusal, STACK, STACK_BYTES, START, Stop};
use crate::slots::{Checked, Difference, MemoryChange, NAMES, Outcome, REASONS};

/// Pages of memory that a checked burst may touch: each is kept as it was, too.
pub(crate) const PAGES: usize = 512;
/// The kernel's si_code for `int3`.
const SI_KERNEL: i32 = 0x80;
/// What an event sends: POLL_IN to POLL_HUP.
const OF_CLOCK: std::ops::RangeInclusive<i32> = 1..=6;
/// Bytes of a line of memory, the unit of the overlay's copies.
const LINE: usize = 64;

const TOO_LONG: &str = REASONS[0];
const NO_COPY: &str = REASONS[1];
const OTHER_CODE: &str = REASONS[2];
const NO_TRAP: &str = REASONS[3];
const FAULT: &str = REASONS[4];
const NOTHING: &str = REASONS[5];
const UNSTEADY: &str = REASONS[6];
const REPEATING: &str = REASONS[7];

/// What a context has for checks.
pub(crate) struct Check {
    copy: PathCopy,
    /// The pages that the burst touched, as they were then.
    seen: Vec<(u64, Page)>,
    /// The registers where the path begins and where it ends.
    start: Option<Registers>,
    expected: Option<Registers>,
    instructions: u64,
    /// What a thread had before it was led to the copy.
    detour: Option<Detour>,
    /// A SIGTRAP that somebody sent meanwhile.
    sent: Option<libc::siginfo_t>,
}

/// What a frame says of where the thread goes on.
#[derive(Clone, Copy)]
struct Detour {
    frame: NonNull<Frame>,
    rip: u64,
    blocked: u64,
    stack: [u64; 3],
}

/// The memory of the program, whose pages are kept as they are when a burst first touches them.
pub(crate) struct Remembering<'a>(&'a mut Vec<(u64, Page)>);

impl Memory for Remembering<'_> {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        OwnMemory.read_page(address, page)
    }

    fn in_place(&mut self, address: Avma) -> Result<Option<InPlace>, Fault> {
        let found = OwnMemory.in_place(address)?;
        if self.0.len() < self.0.capacity() {
            self.0.push((address.0, [0; PAGE]));
            if let Some((_, page)) = self.0.last_mut() {
                own::copy(address.0, page);
            }
        }
        Ok(found)
    }

    fn writable(&mut self, address: Avma) -> bool {
        OwnMemory.writable(address)
    }
}

fn area_of(context: u64) -> u64 {
    COPIES + context * COPY_BYTES
}

fn area(context: u64) -> &'static mut [u8] {
    // SAFETY: mapped with the image, writable and executable, a part for each context, which one thread at a time has.
    unsafe { std::slice::from_raw_parts_mut(area_of(context) as *mut u8, COPY_BYTES as usize) }
}

/// The context in whose copy an address is.
fn context_at(rip: u64) -> Option<*mut Tcb> {
    let context = rip.checked_sub(COPIES)? / COPY_BYTES;
    (context < CONTEXT_COUNT).then(|| tcb(context) as *mut Tcb)
}

fn fetch(address: u64, bytes: &mut [u8; LONGEST_INSTRUCTION]) -> usize {
    own::copy(address, bytes)
}

impl Check {
    pub(crate) fn new() -> Self {
        let seen = Vec::with_capacity(PAGES);
        Self { copy: PathCopy::new(), seen, start: None, expected: None, instructions: 0, detour: None, sent: None }
    }

    /// The program's memory, for a burst.
    pub(crate) fn memory(&mut self) -> Remembering<'_> {
        Remembering(&mut self.seen)
    }

    /// From now on the frame leads to the copy of a context. Before the burst: the path may read the memory in which the frame is.
    pub(crate) fn redirect(&mut self, context: u64, frame: &mut Frame, registers: &Registers) {
        let Frame { rip, blocked, stack, .. } = *frame;
        self.detour = Some(Detour { frame: NonNull::from(&mut *frame), rip, blocked, stack });
        self.start = Some(registers.clone());
        self.sent = None;
        self.seen.clear();
        frame.rip = area_of(context) + START as u64;
        frame.blocked |= faults::ALL_BUT_FAULTS & !bit(libc::SIGTRAP);
        frame.stack = [area_of(context) + STACK as u64, 0, STACK_BYTES as u64];
    }

    /// The frame that was redirected leads where it did before.
    pub(crate) fn undo(&mut self) {
        if let Some(mut detour) = self.detour.take() {
            // SAFETY: the handler of the frame's signal has not returned.
            let frame = unsafe { detour.frame.as_mut() };
            (frame.rip, frame.blocked, frame.stack) = (detour.rip, detour.blocked, detour.stack);
        }
    }

    /// The thread, which stands in the copy, goes on at `rip` in its own code.
    fn leave(&mut self, rip: u64, frame: &mut Frame) {
        const SS_DISABLE: u64 = 2;
        let Some(Detour { blocked, stack, .. }) = self.detour.take() else { return };
        (frame.rip, frame.blocked, frame.stack) = (rip, blocked, stack);
        // Where there is none, the kernel refuses to take the agent's away without that.
        if stack[2] == 0 {
            frame.stack = [0, SS_DISABLE, 0];
        }
        if let Some(sent) = self.sent.take() {
            system::send_to_self(libc::SIGTRAP, &raw const sent);
        }
    }
}

/// Writes the copy of a burst that has come to `expected`; what cannot be done, otherwise.
pub(crate) fn begin(
    check: &mut Check,
    context: u64,
    path: path_copy::Path<'_>,
    expected: Registers,
) -> Result<(), &'static str> {
    let blocked = check.detour.map_or(0, |detour| detour.blocked);
    if path.instructions == 0 {
        return Err(NOTHING);
    }
    if blocked & bit(libc::SIGTRAP) != 0 || !follow::is_ready() {
        return Err(NO_TRAP);
    }
    check.copy.write(path, area(context), fetch).map_err(|refusal| match refusal {
        Refusal::TooLong => TOO_LONG,
        Refusal::Instruction => NO_COPY,
        Refusal::OtherCode => OTHER_CODE,
    })?;
    check.instructions = path.instructions;
    check.expected = Some(expected);
    Ok(())
}

/// The context in whose copy a thread has come to a breakpoint. Null if it has not. A SIGTRAP that was sent to a thread in a copy is kept until
/// the end. Nothing here uses thread-local storage.
pub(crate) fn trapped(info: *const libc::siginfo_t, frame: &Frame) -> Option<*mut Tcb> {
    let tcb = context_at(frame.rip)?;
    // SAFETY: the kernel has written it.
    if unsafe { (*info).si_code } != SI_KERNEL {
        // SAFETY: the context of this thread, which has it until its copy ends.
        if let Some(check) = unsafe { check_of(tcb) } {
            // SAFETY: the kernel has written it.
            check.sent = Some(unsafe { info.read() });
        }
        return Some(std::ptr::null_mut());
    }
    Some(tcb)
}

/// # Safety
/// The context is the calling thread's.
unsafe fn check_of(tcb: *mut Tcb) -> Option<&'static mut Check> {
    // SAFETY: the caller's.
    unsafe { (*tcb).agent.map(|mut agent| agent.as_mut()).and_then(|agent| agent.check.as_deref_mut()) }
}

/// A fault in a copy: the thread goes on in its own code. `false`: it is not in one. Nothing here uses thread-local storage.
pub(crate) fn faulted(signal: i32, info: *const libc::siginfo_t, frame: &mut Frame) -> bool {
    let Some(tcb) = context_at(frame.rip) else { return false };
    // SAFETY: the kernel has written it.
    if unsafe { (*info).si_code } <= 0 {
        // Somebody has sent it: until the end of the copy.
        frame.blocked |= bit(signal);
        system::send_to_self(signal, info);
        return true;
    }
    // SAFETY: the context of this thread, which has it until its copy ends.
    let Some(agent) = (unsafe { (*tcb).agent.map(|mut agent| agent.as_mut()) }) else { return false };
    let Agent { check: Some(check), slot: Some(slot), .. } = agent else { return false };
    // SAFETY: as above.
    let (index, waits, busy) = unsafe { ((*tcb).index, &(*tcb).waits, &(*tcb).busy) };
    let Stop::Inside { rip, saved, instructions } = check.copy.stop(area(index), area_of(index), frame.rip) else {
        return false;
    };
    if let Some((register, value)) = saved {
        frame.set_general(register, value);
    }
    slot.slot.set_checked(&Checked { instructions, branches: 0, outcome: Outcome::Unfinished(FAULT) });
    check.leave(rip, frame);
    slot.hand_over(agent.path.took);
    agent.slot = None;
    agent.has_handlers = false;
    faults::end(agent.process);
    waits.store(0, Release);
    busy.store(0, Release);
    true
}

/// Whether a context's thread is in a copy.
pub(crate) fn is_under_way(tcb: &Tcb) -> bool {
    tcb.waits.load(Acquire) & follow::PHASE == follow::CHECKED
}

/// The thread of `tcb` has come to a breakpoint of its copy.
pub(crate) fn ended(tcb: &mut Tcb, frame: &mut Frame) {
    let began = system::thread_time();
    let (index, fs_base) = (tcb.index, tcb.fs_base);
    // SAFETY: the agent of the context at hand, which this thread has alone.
    let Some(agent) = tcb.agent.map(|mut agent| unsafe { agent.as_mut() }) else { return };
    let Some(slot) = agent.slot else { return };
    let Agent { check: Some(check), overlay, code, .. } = agent else { return };
    let found = burst::registers(frame, fs_base);
    let expected = check.expected.take();
    let stop = check.copy.stop(area(index), area_of(index), frame.rip.wrapping_sub(1));
    // First of all: from here on the thread goes on in its own code, whatever happens.
    let end = expected.as_ref().map_or(0, |registers| registers.rip);
    let goes_on_at = match stop {
        Stop::End => end,
        Stop::Left { rip, .. } | Stop::Inside { rip, .. } => rip,
    };
    check.leave(goes_on_at, frame);
    // The frame of a probe's fault would come where this frame is.
    system::disable_alternate_stack();
    system::set_mask(faults::ALL_BUT_FAULTS);
    let unfinished = Outcome::Unfinished(FAULT);
    let checked = match (stop, found, expected) {
        (Stop::End, Some(mut found), Some(expected)) => {
            found.rip = expected.rip;
            let changes = Changes { seen: &check.seen, overlay };
            let registers = difference(&expected, &found, check.copy.undefined).map(|(what, expected, found)| {
                let at = check.copy.last_writer(register(what), fetch).map_or(Avma(0), Avma);
                Difference { what, at, expected, found, changed: changes.found(), is_after_atomic: false }
            });
            let different = registers.or_else(|| changes.as_difference()).map(Outcome::Different);
            let (instructions, branches) = (check.instructions, agent.branches.len() as u64);
            Checked { instructions, branches, outcome: different.unwrap_or_default() }
        }
        (Stop::Left { from, expected, found, instructions, branches, is_after_atomic, .. }, ..) => {
            // The memory of the burst where the thread has left it.
            let fuel = Fuel { instructions, branches: u64::MAX };
            let mut snapshot = Snapshot(&check.seen);
            overlay.clear();
            if let Some(mut start) = check.start.take() {
                run(&mut start, overlay, &mut snapshot, code, fuel, &[], &mut Vec::with_capacity(1 << 14));
            }
            let changed = Changes { seen: &check.seen, overlay }.found();
            let at = Avma(from);
            let different = Difference { what: "branch", at, expected, found, changed, is_after_atomic };
            Checked { instructions, branches, outcome: Outcome::Different(different) }
        }
        (Stop::Inside { instructions, .. }, ..) => Checked { instructions, branches: 0, outcome: unfinished },
        (Stop::End, ..) => Checked { outcome: unfinished, ..Checked::default() },
    };
    let checked = match checked.outcome {
        // Part of its repetitions are in the registers and the memory of the burst.
        Outcome::Different(different) if stop == Stop::End && is_of_repetition(end, different.what) => {
            Checked { outcome: Outcome::Unfinished(REPEATING), ..checked }
        }
        _ => checked,
    };
    let checked = match check.copy.unsteady {
        // What came after it may differ.
        Some((instructions, branches))
            if instructions <= checked.instructions && matches!(checked.outcome, Outcome::Different(_)) =>
        {
            Checked { instructions, branches, outcome: Outcome::Unfinished(UNSTEADY) }
        }
        _ => checked,
    };
    slot.slot.set_checked(&checked);
    forget_clock(agent.signal);
    tcb.waits.store(0, Release);
    burst::complete(agent, slot, began);
}

/// Whether a difference at the end of a path can be one of a repeated instruction that stands there: a burst may end within it, where it comes
/// to memory that it cannot have. The thread has not begun with it.
fn is_of_repetition(end: u64, what: &str) -> bool {
    let mut bytes = [0; LONGEST_INSTRUCTION];
    let length = fetch(end, &mut bytes);
    path_copy::is_repeated(&bytes[..length]) && matches!(what, "rax" | "rcx" | "rsi" | "rdi" | "rflags" | "memory")
}

/// Overflows of the clock during a check start no burst: the next one would begin where this one ends.
fn forget_clock(signal: i32) {
    // One that was sent to the thread, and one to the process.
    for _ in 0..2 {
        // SAFETY: all zeros is a signal's information.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        if !system::take_waiting(signal, &mut info) {
            return;
        }
        if !OF_CLOCK.contains(&info.si_code) {
            return system::send_to_self(signal, &raw const info);
        }
    }
}

/// The first register that differs, by its name, with what it was to be and what it is. `undefined`: flags that may differ.
fn difference(expected: &Registers, found: &Registers, undefined: u64) -> Option<(&'static str, u64, u64)> {
    /// Status flags and the direction of strings.
    const FLAGS: u64 = 0xcd5;
    const STATUS: u64 = 0x8d5;
    let differ = |name: usize, expected: u64, found: u64| (expected != found).then_some((NAMES[name], expected, found));
    let general = (0..16).find_map(|register| differ(register, expected.general[register], found.general[register]));
    let vectors = || {
        let (expected, found) = (&expected.vector.zmm, &found.vector.zmm);
        (0..32).find_map(|register| differ_within(16 + register, &expected[register], &found[register]))
    };
    let masks = || {
        (0..8).find_map(|register| differ(48 + register, expected.vector.mask[register], found.vector.mask[register]))
    };
    let x87 = || {
        let (expected, found) = (&expected.vector.x87, &found.vector.x87);
        let word = |of: &[u8; 512], at: usize| u64::from(u16::from_le_bytes([of[at], of[at + 1]]));
        let at = |register: usize| 32 + 16 * register..42 + 16 * register;
        let registers =
            (0..8).find_map(|register| differ_within(56 + register, &expected[at(register)], &found[at(register)]));
        let others = || {
            differ(65, word(expected, 0), word(found, 0))
                .or_else(|| differ(66, word(expected, 2), word(found, 2)))
                .or_else(|| differ(67, word(expected, 4) & 0xff, word(found, 4) & 0xff))
        };
        registers.or_else(others)
    };
    let flags = || {
        let mask = FLAGS & !(undefined & STATUS);
        differ(68, expected.rflags & mask, found.rflags & mask)
    };
    general
        .or_else(flags)
        .or_else(vectors)
        .or_else(masks)
        .or_else(x87)
        .or_else(|| differ(64, u64::from(expected.vector.mxcsr), u64::from(found.vector.mxcsr)))
        .or_else(|| differ(69, expected.fs_base, found.fs_base))
        .or_else(|| differ(70, expected.gs_base, found.gs_base))
}

/// The first word of eight bytes, or what is left, that differs.
fn differ_within(name: usize, expected: &[u8], found: &[u8]) -> Option<(&'static str, u64, u64)> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let mut words = expected.chunks(8).zip(found.chunks(8));
    words
        .find(|(expected, found)| expected != found)
        .map(|(expected, found)| (NAMES[name], word(expected), word(found)))
}

/// The register of a name, as the decoder knows it.
fn register(name: &str) -> Register {
    match NAMES.iter().position(|known| *known == name) {
        Some(number @ 0..16) => Register::RAX + number as u32,
        Some(number @ 16..48) => Register::ZMM0 + (number - 16) as u32,
        Some(number @ 48..56) => Register::K0 + (number - 48) as u32,
        _ => Register::None,
    }
}

/// Memory as a burst has found it.
struct Snapshot<'a>(&'a [(u64, Page)]);

impl Memory for Snapshot<'_> {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        let (_, seen) = self.0.iter().find(|(seen, _)| *seen == address.0).ok_or(Fault)?;
        page.copy_from_slice(seen);
        Ok(())
    }
}

/// Memory before the burst, by the burst, and now.
struct Changes<'a> {
    seen: &'a [(u64, Page)],
    overlay: &'a Overlay,
}

/// A word of memory that is not what the burst has there.
struct Changed {
    address: u64,
    before: u64,
    expected: u64,
    found: u64,
}

impl Changes<'_> {
    /// The first word that differs and is like this: of a line of which the burst has a copy, and changed by it.
    fn first(&self, is_like: impl Fn(bool, bool) -> bool) -> Option<Changed> {
        self.seen.iter().find_map(|(address, before)| {
            let (lines, after) = self.overlay.copied_lines(Avma(*address)).unwrap_or((0, before));
            let mut now = [0; PAGE];
            own::copy(*address, &mut now);
            let value = |page: &Page, word: usize| {
                u64::from_le_bytes(page[word * 8..word * 8 + 8].try_into().unwrap_or_default())
            };
            (0..PAGE / 8).find_map(|word| {
                let is_copied = lines >> (word * 8 / LINE) & 1 != 0;
                let (before, found) = (value(before, word), value(&now, word));
                let expected = if is_copied { value(after, word) } else { before };
                let changed = Changed { address: address + (word * 8) as u64, before, expected, found };
                (found != expected && is_like(is_copied, expected != before)).then_some(changed)
            })
        })
    }

    /// What may be why a thread takes another way: first of all what only others can have changed.
    fn found(&self) -> Option<MemoryChange> {
        let changed = self.first(|_, is_of_path| !is_of_path).or_else(|| self.first(|_, _| true));
        changed.map(|changed| changed.as_change())
    }

    /// What a thread has stored otherwise than its burst.
    fn as_difference(&self) -> Option<Difference> {
        let changed = self.first(|_, is_of_path| is_of_path).or_else(|| self.first(|is_copied, _| is_copied));
        changed.map(|changed| {
            let Changed { address, expected, found, .. } = changed;
            let (at, change) = (Avma(address), Some(changed.as_change()));
            Difference { what: "memory", at, expected, found, changed: change, is_after_atomic: false }
        })
    }
}

impl Changed {
    fn as_change(&self) -> MemoryChange {
        MemoryChange { at: Avma(self.address), is_of_path: self.expected != self.before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What differs first after one change.
    fn changed(change: impl FnOnce(&mut Registers)) -> Option<(&'static str, u64, u64)> {
        let expected = Registers { general: [7; 16], ..Registers::default() };
        let mut found = expected.clone();
        change(&mut found);
        difference(&expected, &found, 0)
    }

    #[test]
    fn a_register_that_is_wrong_is_named_with_both_values() {
        assert_eq!(changed(|_| ()), None);
        assert_eq!(changed(|found| found.general[3] = 8), Some(("rbx", 7, 8)));
        assert_eq!(changed(|found| found.vector.zmm[17][9] = 2), Some(("zmm17", 0, 0x200)));
        assert_eq!(changed(|found| found.vector.mask[2] = 5), Some(("k2", 0, 5)));
        assert_eq!(changed(|found| found.vector.x87[32 + 16 + 8] = 1), Some(("st1", 0, 1)));
        assert_eq!(changed(|found| found.vector.mxcsr |= 1), Some(("mxcsr", 0x1f80, 0x1f81)));
        assert_eq!(changed(|found| found.vector.x87[0] = 0), Some(("x87 control", 0x37f, 0x300)));
        assert_eq!(changed(|found| found.rflags |= 1), Some(("rflags", 0, 1)));
        assert_eq!(changed(|found| found.gs_base = 1), Some(("gs", 0, 1)));
    }

    #[test]
    fn what_means_nothing_is_not_compared() {
        // Addresses of the last x87 instruction; the resume flag; flags that the manuals leave undefined.
        assert_eq!(changed(|found| found.vector.x87[8..24].fill(9)), None);
        assert_eq!(changed(|found| found.rflags |= 1 << 16), None);
        let expected = Registers::default();
        let found = Registers { rflags: expected.rflags | 1 << 4 | 1, ..Registers::default() };
        assert_eq!(difference(&expected, &found, 1 << 4), Some(("rflags", 0, 1)));
        assert_eq!(difference(&expected, &found, 1 << 4 | 1), None);
        assert_eq!(
            (register("rdx"), register("zmm31"), register("k7")),
            (Register::RDX, Register::ZMM31, Register::K7)
        );
        assert_eq!(register("mxcsr"), Register::None);
    }
}
