//! Executable memory for stubs and compiled blocks, and pages by address. The crate's only file with `unsafe`, but for the assembly of
//! `compiled::routines`.
//!
//! A stub is a function `extern "sysv64" fn(*mut Context)` that loads the registers one instruction needs from the context,
//! executes the instruction, and stores what it changed. The memory is mapped twice, once writable and once executable, so that
//! no page is both and adding a stub needs no system call.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use foldhash::{HashMap, HashMapExt};

use crate::code_cache::ForBlocks;
use crate::compiled;
use crate::compiled::CodePlace;
use crate::compiled::exit_code::ExitCode;
use crate::compiled::routines::Routine;
use crate::context::{BRANCHES, Context};
use crate::flags::{AF, OF, STATUS};
use crate::lines::DataLines;
use crate::machine::Machine;
use crate::memory::{PAGE, Page};
use crate::outcome::StopReason;
use crate::stub::code::{Code, Traits};

/// Bytes of executable memory; about 20,000 stubs.
const SIZE: usize = 2 << 20;

/// Name of a stub. It means that stub only as long as the memory it was written to has not been cleared; then, and for the
/// stubs of another [`Stubs`], it names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StubId {
    /// Where it begins, in bytes from the start of the memory.
    start: u32,
    generation: u32,
}

impl StubId {
    pub(crate) const NONE: Self = Self { start: u32::MAX, generation: 0 };
}

/// Generation of memory that no stub has been written to since it was cleared: of no id.
const EMPTY: u32 = u32::MAX;

/// The generation handed out next: no two fillings of stub memory in this process have the same one. `None` once all
/// have been used, which is after four thousand million fillings.
fn next_generation() -> Option<u32> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let more = |next: u32| (next != EMPTY).then(|| next + 1);
    NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
}

/// Every stub in use.
pub(crate) struct Stubs {
    mapping: Option<Mapping>,
    used: usize,
    generation: u32,
    known: HashMap<[u8; 16], (StubId, Traits)>,
    /// Where the routines of compiled blocks begin, if they are there.
    routines: Option<u32>,
}

impl Default for Stubs {
    fn default() -> Self {
        Self { mapping: None, used: 0, generation: EMPTY, known: HashMap::new(), routines: None }
    }
}

struct Mapping {
    writable: NonNull<u8>,
    executable: NonNull<u8>,
    /// Whether it is unmapped at the end.
    owned: bool,
}

// SAFETY: the mapping is owned by the value, reached only through it, and has no tie to the thread that made it.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        // SAFETY: both addresses come from `mmap` with this size and nothing refers to the memory any more.
        unsafe {
            libc::munmap(self.writable.as_ptr().cast(), SIZE);
            libc::munmap(self.executable.as_ptr().cast(), SIZE);
        }
    }
}

/// Executable memory for stubs that is there already, where none can be asked of the system.
#[derive(Debug)]
pub struct StubMemory(NonNull<u8>);

impl StubMemory {
    /// Its size.
    pub const BYTES: usize = SIZE;

    /// The memory that begins at `start`.
    ///
    /// # Safety
    /// [`BYTES`](Self::BYTES) bytes are readable, writable and executable as long as the process lives, and nobody else's.
    pub unsafe fn new(start: NonNull<u8>) -> Self {
        Self(start)
    }
}

// SAFETY: an address of memory that belongs to the value, whatever thread has it.
unsafe impl Send for StubMemory {}

impl From<StubMemory> for Stubs {
    fn from(memory: StubMemory) -> Self {
        let mapping = Mapping { writable: memory.0, executable: memory.0, owned: false };
        Self { mapping: Some(mapping), ..Self::default() }
    }
}

impl Stubs {
    /// The stub made for the same normalised instruction before.
    pub(crate) fn find(&self, key: &[u8; 16]) -> Option<(StubId, Traits)> {
        self.known.get(key).copied()
    }

    /// Keeps `code`; `None` if there is no room, or the system grants no executable memory.
    pub(crate) fn add(&mut self, key: [u8; 16], code: &Code, traits: Traits) -> Option<StubId> {
        let id = self.write(code.bytes())?;
        self.known.insert(key, (id, traits));
        Some(id)
    }

    fn write(&mut self, bytes: &[u8]) -> Option<StubId> {
        if self.mapping.is_none() {
            self.mapping = map();
        }
        let mapping = self.mapping.as_ref()?;
        if self.generation == EMPTY {
            self.generation = next_generation()?;
        }
        let start = self.used;
        let end = start.checked_add(bytes.len()).filter(|&end| end <= SIZE)?;
        // SAFETY: `start..end` lies inside the writable mapping, which no reference points into.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), mapping.writable.as_ptr().add(start), bytes.len());
        }
        self.used = end.next_multiple_of(16).min(SIZE);
        Some(StubId { start: start as u32, generation: self.generation })
    }

    /// Where the code of the next block has to be made for; `None` as for [`add`](Self::add).
    pub(crate) fn code_place(&mut self) -> Option<CodePlace> {
        let routines = match self.routines {
            Some(routines) => routines,
            None => self.write(routines())?.start,
        };
        self.routines = Some(routines);
        Some(CodePlace { start: self.used, routines: routines as usize })
    }

    /// Keeps the code of a block; `None` if there is no room, or something else was put at its place.
    pub(crate) fn add_compiled(&mut self, code: &compiled::Code<'_>) -> Option<CompiledId> {
        let CodePlace { start, routines } = code.place();
        if start != self.used || self.routines.is_none_or(|there| there as usize != routines) {
            return None;
        }
        self.write(code.bytes()).map(CompiledId)
    }

    /// The mapping, if it has the code of a block.
    fn mapping_of(&self, CompiledId(id): CompiledId) -> Option<&Mapping> {
        self.mapping.as_ref().filter(|_| id.generation == self.generation)
    }

    /// Where the code of a block is; `None` for an id that names none.
    pub(crate) fn address(&self, id: CompiledId) -> Option<u64> {
        let mapping = self.mapping_of(id)?;
        Some(mapping.executable.as_ptr() as u64 + u64::from(id.0.start))
    }

    /// The jump of which compiled code said, at `site`, that it leads nowhere yet, leads to a block from now on.
    pub(crate) fn link(&mut self, site: u64, to: CompiledId) {
        let Some(mapping) = self.mapping_of(to) else { return };
        let site = site.wrapping_sub(mapping.executable.as_ptr() as u64) as usize;
        if site > self.used.saturating_sub(4) {
            return;
        }
        // SAFETY: `site`, where a block has the distance of its jump, and the jump before it lie in what is in use of the mapping, which
        // no reference points into. The jump leads to the start of a block's code afterwards, which is one of the same memory.
        unsafe {
            let before = mapping.writable.as_ptr().add(site).cast::<u32>().read_unaligned() as usize;
            if before <= site {
                let distance = u64::from(to.0.start).wrapping_sub((site - before) as u64 + 4) as u32;
                mapping.writable.as_ptr().add(site - before).cast::<u32>().write_unaligned(distance);
            }
        }
    }

    /// Whether a block of new instructions might not find room any more.
    pub(crate) fn nearly_full(&self) -> bool {
        self.used > SIZE - (32 << 10)
    }

    /// Forgets every stub; ids given out before are refused from now on.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.routines = None;
        self.used = 0;
        self.generation = EMPTY;
    }

    /// Runs a stub on `context`. Returns false, having done nothing, for an id that names none of these stubs.
    #[inline(always)]
    pub(crate) fn call(&self, id: StubId, context: &mut Context) -> bool {
        let Some(mapping) = &self.mapping else { return false };
        if id.generation != self.generation {
            return false;
        }
        // SAFETY: an id with this generation was made by `add`, of these stubs (generations are unique), since the memory was
        // last cleared (which ends a generation), and what `add` wrote is overwritten only after that: so the address is the
        // start of a `Code`. Such code can only come from the `stub`
        // module, whose contract is: it is complete, returns, keeps what the calling convention wants kept, touches no memory
        // but the stack below and `*context`, and its instruction was checked to exist on this CPU and not to trap.
        unsafe {
            let stub: unsafe extern "sysv64" fn(*mut Context) =
                std::mem::transmute(mapping.executable.as_ptr().add(id.start as usize));
            stub(context);
        }
        true
    }
}

/// Names a compiled block, as [`StubId`] names a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompiledId(StubId);

/// The routines of compiled blocks, which begin with where each of them is.
pub(crate) fn routines() -> &'static [u8] {
    unsafe extern "C" {
        static hbbp_lookahead_routines: u8;
        static hbbp_lookahead_routines_end: u8;
    }
    // SAFETY: `compiled::routines` defines both, the second one after the last byte of the first; they are constants.
    unsafe {
        let (first, end) = (&raw const hbbp_lookahead_routines, &raw const hbbp_lookahead_routines_end);
        std::slice::from_raw_parts(first, end as usize - first as usize)
    }
}

/// What compiled blocks hand on to [`step`].
struct Frame<'f, 'm> {
    machine: *mut Machine<'m>,
    lines: *mut DataLines,
    blocks: ForBlocks<'f>,
}

/// Called by compiled blocks.
extern "sysv64" fn step(frame: &Frame<'_, '_>, asked: u32) -> u32 {
    // SAFETY: `run_compiled` has made the frame of references that it has alone, and waits for the blocks' code, which has none.
    let (machine, lines) = unsafe { (&mut *frame.machine, &mut *frame.lines) };
    let block = frame.blocks.blocks.get(machine.context.hot.current as usize);
    compiled::step::step(machine, lines, frame.blocks.ops, block.map_or(u32::MAX, |block| block.first), asked).0
}

/// What blocks may do before they come back.
pub(crate) struct Allowed {
    /// Instructions.
    pub(crate) left: u32,
    /// Taken branches; 1 to [`BRANCHES`].
    pub(crate) until: u32,
    /// Where a branch must not lead if this register has this value and no memory has changed.
    pub(crate) suspect: (u64, usize, u64),
    /// Where the path stands.
    pub(crate) start: u64,
}

/// Runs a compiled block, and those that follow. If the id names none of the stubs at hand, nothing is run, as if the code could not be read.
pub(crate) fn run_compiled(
    id: CompiledId,
    m: &mut Machine<'_>,
    lines: &mut DataLines,
    blocks: ForBlocks<'_>,
    allowed: &Allowed,
) -> ExitCode {
    let stubs = &m.resident.stubs;
    let (Some(mapping), Some(routines)) = (stubs.mapping_of(id), stubs.routines) else { return refused(m, allowed) };
    let base = mapping.executable.as_ptr();
    let start = base.wrapping_add(routines as usize + Routine::START.offset());
    let code = base.wrapping_add(id.0.start as usize);
    m.blocks_have_status();
    let (tag, tables) = (m.resident.tables.tag(), m.resident.tables.start() as u64);
    let executed = lines.executed();
    let machine: *mut Machine<'_> = m;
    let frame = Frame { machine, lines, blocks };
    // SAFETY: as for a stub, the id names code that `add_compiled` has written, which comes from the module `compiled` only, and so do the
    // routines and the targets, which are forgotten with the stubs. The contract of such code is: it is complete, returns, keeps what the
    // calling convention wants kept, and touches no memory but the stack below, the context, `seen` at the number of its block, the places
    // of the tables, of `stored` and of the targets, which are as large as it believes, and lines that the tables say are there: they get in
    // by `LineTables::put`, and are taken out when they move, so they are readable, and those of the tables for writing belong
    // to a frame of the overlay. It writes as many branches to the context as it is allowed, for which there is room. What it calls is
    // `step`, with the frame, while nothing else uses what that refers to.
    unsafe {
        let context = &raw mut (*machine).context;
        let hot = &mut (*context).hot;
        hot.tables = tables;
        hot.tag = tag;
        hot.stored = (*frame.lines).stored() as u64;
        hot.targets = frame.blocks.targets.first();
        hot.seen = frame.blocks.seen.as_ptr() as u64;
        hot.next_branch = &raw mut (*context).branches as u64;
        hot.step = step as *const () as u64;
        hot.frame = &raw const frame as u64;
        (hot.spin_target, hot.witness, hot.witness_value) =
            (allowed.suspect.0, allowed.suspect.1 as u32 & 31, allowed.suspect.2);
        hot.burst = frame.blocks.burst;
        hot.left = allowed.left;
        hot.end = executed.wrapping_add(allowed.left);
        hot.until = allowed.until.clamp(1, BRANCHES as u32);
        hot.not_taken = 0;
        hot.changed = u8::from((*machine).changed);
        let run: unsafe extern "sysv64" fn(*mut Context, *const u8) -> u32 = std::mem::transmute(start);
        let exit = run(context, code);
        let m = &mut *machine;
        m.changed = m.context.hot.changed != 0;
        m.target = m.context.hot.target;
        (*frame.lines).continue_at(u64::from(m.context.hot.end.wrapping_sub(m.context.hot.left)));
        ExitCode(exit)
    }
}

/// What there is of a block whose code was forgotten: the cache forgets both together.
#[cold]
fn refused(m: &mut Machine<'_>, allowed: &Allowed) -> ExitCode {
    m.stop = StopReason::UnreadableCode;
    m.context.hot.target = allowed.start;
    m.context.hot.left = allowed.left;
    m.context.hot.not_taken = 0;
    m.context.hot.next_branch = m.context.branches.as_ptr() as u64;
    ExitCode::STOPPED
}

/// A page of memory that can be read where it is, as it belongs to the process that runs the interpreter.
#[derive(Clone, Copy, Debug)]
pub struct InPlace(NonNull<Page>);

impl InPlace {
    /// The page that begins at `page`.
    ///
    /// # Safety
    /// All of it is readable until the [`Overlay`](crate::Overlay) that it is given to is cleared or dropped. Other threads may write to
    /// it meanwhile.
    pub unsafe fn new(page: NonNull<Page>) -> Self {
        Self(page)
    }
}

/// Where the bytes of a page are: in a frame of an overlay, or in place.
///
/// It must not be used after the overlay was cleared; overlays keep it in what they clear.
#[derive(Clone, Copy)]
pub(crate) struct PageBytes(NonNull<u8>);

// SAFETY: an address. What is there is a frame of the overlay that holds it, or memory of the process, as readable for one thread as for
// another.
unsafe impl Send for PageBytes {}
// SAFETY: as above; it is only read through.
unsafe impl Sync for PageBytes {}

impl PageBytes {
    /// Bytes of no page, which nothing asks for.
    pub(crate) const NONE: Self = Self(NonNull::dangling());

    /// Where the page begins.
    pub(crate) fn address(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// `N` bytes from `at` on; they lie within the page.
    #[inline(always)]
    pub(crate) fn load<const N: usize>(self, at: usize) -> [u8; N] {
        assert!(at <= PAGE - N);
        // SAFETY: the page is readable (see `InPlace::new` and `Frames`), and the bytes lie within it. Another thread of the program may
        // be writing to a page in place: any bytes will do.
        unsafe { std::ptr::read_unaligned(self.0.as_ptr().add(at).cast()) }
    }

    /// Copies the bytes from `at` on, which lie within the page.
    #[inline]
    pub(crate) fn copy(self, at: usize, bytes: &mut [u8]) {
        assert!(at <= PAGE && bytes.len() <= PAGE - at);
        // SAFETY: as above; `bytes` is memory of the interpreter's, which no page of the program is.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr().add(at), bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Whether these bytes are there from `at` on; they lie within the page.
    #[inline]
    pub(crate) fn has(self, mut at: usize, bytes: &[u8]) -> bool {
        let mut words = bytes.chunks_exact(8);
        words.all(|word| {
            let same = self.load::<8>(at) == *word;
            at += 8;
            same
        }) && words.remainder().iter().zip(at..).all(|(byte, at)| self.load::<1>(at) == [*byte])
    }
}

impl From<InPlace> for PageBytes {
    fn from(page: InPlace) -> Self {
        Self(page.0.cast())
    }
}

/// Pages that an overlay owns. They stay where they are until it is dropped.
#[derive(Default)]
pub(crate) struct Frames {
    pages: Vec<NonNull<Page>>,
}

// SAFETY: the pages are owned by the value and reached only through it.
unsafe impl Send for Frames {}
// SAFETY: a shared reference gives shared references to pages only.
unsafe impl Sync for Frames {}

impl Drop for Frames {
    fn drop(&mut self) {
        for page in self.pages.drain(..) {
            // SAFETY: `push` made it of a box, and nothing refers to it any more.
            drop(unsafe { Box::from_raw(page.as_ptr()) });
        }
    }
}

impl Frames {
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// One more, of zeros.
    pub(crate) fn push(&mut self) {
        let page = Box::into_raw(Box::new([0; PAGE]));
        self.pages.extend(NonNull::new(page));
    }

    /// Where the bytes of a frame are.
    pub(crate) fn bytes(&self, frame: usize) -> PageBytes {
        PageBytes(self.pages[frame].cast())
    }
}

impl std::ops::Index<usize> for Frames {
    type Output = Page;

    #[inline(always)]
    fn index(&self, frame: usize) -> &Page {
        // SAFETY: a box's page, borrowed as long as the value that owns it.
        unsafe { self.pages[frame].as_ref() }
    }
}

impl std::ops::IndexMut<usize> for Frames {
    #[inline(always)]
    fn index_mut(&mut self, frame: usize) -> &mut Page {
        // SAFETY: as above, and as exclusively.
        unsafe { self.pages[frame].as_mut() }
    }
}

/// Offset of a component in the standard format of XSAVE; `None` if this CPU does not have it.
#[allow(unused_unsafe)] // `__cpuid_count` is unsafe up to Rust 1.93
pub(crate) fn xsave_offset(component: u32) -> Option<usize> {
    if !std::arch::is_x86_feature_detected!("xsave") {
        return None;
    }
    // SAFETY: every 64-bit x86 CPU has `cpuid`, and one with XSAVE has leaf 13.
    let leaf = unsafe { std::arch::x86_64::__cpuid_count(13, component) };
    (leaf.eax != 0).then_some(leaf.ebx as usize)
}

/// Size of an XSAVE component in bytes, and whether it is aligned to 64 bytes in the compacted format.
#[allow(unused_unsafe)]
pub(crate) fn xsave_size(component: u32) -> Option<(usize, bool)> {
    xsave_offset(component)?;
    // SAFETY: as in `xsave_offset`, which has found the leaf.
    let leaf = unsafe { std::arch::x86_64::__cpuid_count(13, component) };
    Some((leaf.eax as usize, leaf.ecx & 2 != 0))
}

/// State components the system has enabled (XCR0); 0 without XSAVE.
pub(crate) fn xcr0() -> u64 {
    static ENABLED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    #[target_feature(enable = "xsave")]
    fn read() -> u64 {
        // SAFETY: register 0 exists wherever XSAVE is enabled.
        unsafe { std::arch::x86_64::_xgetbv(0) }
    }
    *ENABLED.get_or_init(|| {
        if !std::arch::is_x86_feature_detected!("xsave") {
            return 0;
        }
        // SAFETY: the feature was detected.
        unsafe { read() }
    })
}

/// Whether `xsavec`, and with it the compacted format, is there.
pub(crate) fn has_xsavec() -> bool {
    std::arch::is_x86_feature_detected!("xsavec")
}

/// Whether `rdpid` is there.
#[allow(unused_unsafe)]
pub(crate) fn has_rdpid() -> bool {
    // SAFETY: every 64-bit x86 CPU has `cpuid`, and the second call asks only for a leaf that the first says is there.
    unsafe { std::arch::x86_64::__cpuid(0).eax >= 7 && std::arch::x86_64::__cpuid_count(7, 0).ecx & (1 << 22) != 0 }
}

/// Whether AMD made this CPU.
#[allow(unused_unsafe)]
pub(crate) fn made_by_amd() -> bool {
    static AMD: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *AMD.get_or_init(|| {
        // SAFETY: every 64-bit x86 CPU has `cpuid` and leaf 0.
        let leaf = unsafe { std::arch::x86_64::__cpuid(0) };
        [leaf.ebx, leaf.edx, leaf.ecx] == [*b"Auth", *b"enti", *b"cAMD"].map(u32::from_le_bytes)
    })
}

/// Whether user code may use `rdfsbase` and its like (HWCAP2_FSGSBASE).
pub(crate) fn segment_bases_enabled() -> bool {
    // SAFETY: looks up a number.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & 2 != 0 }
}

/// The bits of `mxcsr` that may be set on this CPU, as `fxsave` tells.
pub(crate) fn mxcsr_mask() -> u32 {
    static MASK: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    #[repr(align(16))]
    struct Area([u8; 512]);
    *MASK.get_or_init(|| {
        let mut area = Area([0; 512]);
        // SAFETY: every 64-bit x86 CPU has `fxsave`, which fills exactly the area.
        unsafe { std::arch::asm!("fxsave64 [{}]", in(reg) area.0.as_mut_ptr(), options(nostack)) };
        match u32::from_le_bytes([area.0[28], area.0[29], area.0[30], area.0[31]]) {
            0 => 0xffbf, // SDM vol. 1, 11.6.6
            mask => mask,
        }
    })
}

/// What this CPU does with flags that the manuals leave undefined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quirks {
    /// AF after a shift.
    pub(crate) shift_sets_af: bool,
    /// Flags that a division leaves alone.
    pub(crate) division_keeps: u64,
    /// Flags that a division sets.
    pub(crate) division_sets: u64,
    /// OF after a shift by more than one bit.
    pub(crate) shifted: ShiftOverflow,
    /// OF after a rotation of a register by an immediate other than 1.
    pub(crate) rotated_by_immediate: ShiftOverflow,
    /// The same, of a value in memory.
    pub(crate) rotated_in_memory: ShiftOverflow,
    /// OF after a rotation by `cl`, where it is not 1.
    pub(crate) rotated_by_cl: ShiftOverflow,
}

/// OF after a shift or rotation by more than one bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShiftOverflow {
    /// Made of the result, by the rule for one bit.
    OfResult,
    /// What the same with one bit gives.
    OfOneBit,
    /// What it was before.
    Kept,
}

impl ShiftOverflow {
    /// What `rotate` does, which shifts or rotates a value left by 13 bits, with these flags before; it returns those after.
    fn of(rotate: impl Fn(u64, u64) -> u64) -> Self {
        // Zero rotated by any number of bits does not overflow; this bit does by one, and is in the middle by 13.
        match (rotate(0, 0x202 | OF) & OF != 0, rotate(1 << 62, 0x202) & OF != 0) {
            (true, _) => Self::Kept,
            (false, true) => Self::OfOneBit,
            (false, false) => Self::OfResult,
        }
    }
}

/// Tries it out, once.
pub(crate) fn quirks() -> Quirks {
    static QUIRKS: std::sync::OnceLock<Quirks> = std::sync::OnceLock::new();
    *QUIRKS.get_or_init(|| {
        let divide = |mut flags: u64| {
            // SAFETY: changes nothing but the named registers and the status flags; 100 / 7 does not trap.
            unsafe {
                std::arch::asm!(
                    "push {flags}", "popfq", "div {divisor}", "pushfq", "pop {flags}",
                    flags = inout(reg) flags, divisor = in(reg) 7u64, inout("rax") 100u64 => _, inout("rdx") 0u64 => _,
                );
            }
            flags & STATUS
        };
        let (all, none) = (divide(0x202 | STATUS), divide(0x202));
        let shifted: u64;
        // SAFETY: changes nothing but the named register and the status flags.
        unsafe {
            std::arch::asm!("mov {0:e}, 4", "test {0:e}, {0:e}", "shl {0:e}, 1", "pushfq", "pop {0}", out(reg) shifted);
        }
        let shifted_left = ShiftOverflow::of(|value, mut flags| {
            // SAFETY: changes nothing but the named registers and the status flags.
            unsafe {
                std::arch::asm!(
                    "push {flags}", "popfq", "shl {value}, 13", "pushfq", "pop {flags}",
                    flags = inout(reg) flags, value = inout(reg) value => _,
                );
            }
            flags
        });
        let rotated_by_immediate = ShiftOverflow::of(|value, mut flags| {
            // SAFETY: changes nothing but the named registers and the status flags.
            unsafe {
                std::arch::asm!(
                    "push {flags}", "popfq", "rol {value}, 13", "pushfq", "pop {flags}",
                    flags = inout(reg) flags, value = inout(reg) value => _,
                );
            }
            flags
        });
        let rotated_in_memory = ShiftOverflow::of(|mut value, mut flags| {
            // SAFETY: changes nothing but the named register, the value and the status flags.
            unsafe {
                std::arch::asm!(
                    "push {flags}", "popfq", "rol qword ptr [{value}], 13", "pushfq", "pop {flags}",
                    flags = inout(reg) flags, value = in(reg) &raw mut value,
                );
            }
            flags
        });
        let rotated_by_cl = ShiftOverflow::of(|value, mut flags| {
            // SAFETY: as above.
            unsafe {
                std::arch::asm!(
                    "push {flags}", "popfq", "rol {value}, cl", "pushfq", "pop {flags}",
                    flags = inout(reg) flags, value = inout(reg) value => _, in("cl") 13_u8,
                );
            }
            flags
        });
        Quirks {
            shift_sets_af: shifted & AF != 0,
            division_keeps: all & !none,
            division_sets: none,
            shifted: shifted_left,
            rotated_by_immediate,
            rotated_in_memory,
            rotated_by_cl,
        }
    })
}

fn map() -> Option<Mapping> {
    const MFD_EXEC: libc::c_uint = 0x10;
    // SAFETY: plain system calls; the name is a C string, the descriptor is closed once and before that only used here, and the
    // mappings are new memory that nothing else knows.
    unsafe {
        let name = c"lookahead stubs".as_ptr();
        let mut file = libc::memfd_create(name, libc::MFD_CLOEXEC | MFD_EXEC);
        if file < 0 {
            // Kernels before 6.3 do not know MFD_EXEC, and allow execution without it.
            file = libc::memfd_create(name, libc::MFD_CLOEXEC);
        }
        if file < 0 {
            return None;
        }
        let map = |protection| {
            let at = libc::mmap(std::ptr::null_mut(), SIZE, protection, libc::MAP_SHARED, file, 0);
            if at == libc::MAP_FAILED { None } else { NonNull::new(at.cast::<u8>()) }
        };
        let mapping = if libc::ftruncate(file, SIZE as libc::off_t) == 0 {
            map(libc::PROT_READ | libc::PROT_WRITE).and_then(|writable| {
                let executable = map(libc::PROT_READ | libc::PROT_EXEC);
                if executable.is_none() {
                    libc::munmap(writable.as_ptr().cast(), SIZE);
                }
                executable.map(|executable| Mapping { writable, executable, owned: true })
            })
        } else {
            None
        };
        libc::close(file);
        mapping
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::InstructionInfoFactory;

    use super::*;
    use crate::decode::decode_block;

    const PXOR: [u8; 4] = [0x66, 0x0f, 0xef, 0xc1];
    const PADDD: [u8; 4] = [0x66, 0x0f, 0xfe, 0xc1];
    /// Its stub is longer than those of the others: it loads and stores `mxcsr`, too.
    const MULPD: [u8; 4] = [0x66, 0x0f, 0x59, 0xc1];

    fn stub(stubs: &mut Stubs, instruction: &[u8]) -> StubId {
        let mut ops = Vec::new();
        decode_block(0x1000, instruction, &mut ops, &mut InstructionInfoFactory::new(), stubs);
        let id = ops.first().map_or(StubId::NONE, |op| op.stub);
        assert_ne!(id, StubId::NONE, "a stub of {instruction:02x?}");
        id
    }

    #[test]
    fn an_id_kept_over_a_clearing_is_refused() {
        let mut stubs = Stubs::default();
        let first = stub(&mut stubs, &PXOR);
        let second = stub(&mut stubs, &PADDD);
        assert!(stubs.call(second, &mut Context::default()));
        stubs.clear();
        assert!(!stubs.call(first, &mut Context::default()), "memory that is empty");
        let new = stub(&mut stubs, &MULPD);
        assert!(stubs.used > second.start as usize, "the second stub's place is inside the new stub");
        assert!(!stubs.call(second, &mut Context::default()), "the middle of another stub");
        assert!(!stubs.call(first, &mut Context::default()), "another stub");
        assert!(stubs.call(new, &mut Context::default()));
    }

    #[test]
    fn an_id_of_other_stubs_is_refused() {
        let (mut stubs, mut others) = (Stubs::default(), Stubs::default());
        stub(&mut stubs, &PXOR);
        let second = stub(&mut stubs, &PADDD);
        assert!(!others.call(second, &mut Context::default()), "without memory");
        stub(&mut others, &MULPD);
        assert!(!others.call(second, &mut Context::default()));
        assert!(stubs.call(second, &mut Context::default()));
    }

    #[test]
    fn no_stub_is_called_by_the_id_of_none() {
        let mut stubs = Stubs::default();
        assert!(!stubs.call(StubId::NONE, &mut Context::default()));
        stub(&mut stubs, &PXOR);
        stubs.clear();
        assert!(!stubs.call(StubId::NONE, &mut Context::default()));
    }
}
