//! Decoded code, kept from burst to burst.

use std::mem;
use std::ops::Range;
use std::time::{Duration, Instant};

use addresses::Avma;
use foldhash::{HashMap, HashMapExt};
use iced_x86::InstructionInfoFactory;

use crate::code_lines::Resident;
use crate::compiled::Compiler;
use crate::compiled::targets::Targets;
use crate::decode::decode_block;
use crate::exit::Exit;
use crate::machine::Machine;
use crate::memory::PAGE;
use crate::native::{CompiledId, StubMemory};
use crate::op::Op;
use crate::outcome::StopReason;

/// Bytes of the longest instruction (SDM volume 2, 2.3.11).
pub const LONGEST_INSTRUCTION: usize = 15;
/// Bytes looked at for one block.
const WINDOW: usize = 256;
const RECENT: usize = 2048;
/// One in so many decodings is timed.
const TIMED: u32 = 16;
/// No burst has this number, but for one in four thousand million.
const NEVER: u32 = u32::MAX;
const NO_BLOCK: u32 = u32::MAX;
const NO_ADDRESS: u64 = u64::MAX;

/// A straight-line run of operations.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Address of the first operation, and after the last.
    start: u64,
    pub(crate) end: u64,
    /// Where its bytes are in [`CodeCache::bytes`].
    bytes: u32,
    /// The block at `end`, if known.
    fall: u32,
    /// Where the branch went last, and the block there.
    taken: u32,
    taken_to: u64,
    /// How often it still is to run before it is compiled; 0: that was done, or is not to be.
    runs: u32,
    pub(crate) compiled: Option<CompiledId>,
}

/// What compiled blocks of a cache look at.
pub(crate) struct ForBlocks<'c> {
    pub(crate) ops: &'c [Op],
    pub(crate) blocks: &'c [Block],
    /// By number of the block, the burst in which its bytes were last seen in memory.
    pub(crate) seen: &'c [u32],
    pub(crate) targets: &'c Targets,
    pub(crate) burst: u32,
}

/// Blocks of decoded code. It must be told of every change of the code (see [`invalidate`](Self::invalidate)), or be one that
/// [looks for itself](Self::comparing).
pub struct CodeCache {
    pub(crate) ops: Vec<Op>,
    pub(crate) blocks: Vec<Block>,
    /// What the blocks were decoded from.
    bytes: Vec<u8>,
    /// By number of the block, the burst in which its bytes were last seen in memory.
    seen: Vec<u32>,
    compares: bool,
    /// Number of the burst, if code is compared in each; else always the same.
    burst: u32,
    by_address: HashMap<u64, u32>,
    recent: Box<[(u64, u32)]>,
    resident: Resident,
    /// A burst has what is resident.
    lent: bool,
    factory: InstructionInfoFactory,
    compiler: Compiler,
    targets: Targets,
    compiled_after: u32,
    limit: usize,
    /// Decodings until one is timed.
    untimed: u32,
    decoding: Duration,
}

impl CodeCache {
    /// A cache of at most `instructions` decoded instructions (about 70 bytes each); when it is full, it starts anew.
    pub fn new(instructions: usize) -> Self {
        Self {
            ops: Vec::new(),
            blocks: Vec::new(),
            bytes: Vec::new(),
            seen: Vec::new(),
            compares: false,
            burst: 0,
            by_address: HashMap::new(),
            recent: vec![(NO_ADDRESS, NO_BLOCK); RECENT].into_boxed_slice(),
            resident: Resident::default(),
            lent: false,
            factory: InstructionInfoFactory::new(),
            compiler: Compiler::default(),
            targets: Targets::default(),
            compiled_after: 0,
            limit: instructions.clamp(1024, 1 << 26),
            // The first finds everything cold.
            untimed: TIMED / 2,
            decoding: Duration::ZERO,
        }
    }

    /// A cache that need not be told of changes: in each burst, a block is compared with the code in memory before it is first executed.
    /// For memory that is cheap to read.
    pub fn comparing(instructions: usize) -> Self {
        Self { compares: true, ..Self::new(instructions) }
    }

    /// The same with memory for its stubs.
    pub fn with_stub_memory(mut self, memory: StubMemory) -> Self {
        // What was decoded refers to the stubs that it had.
        self.forget();
        let resident = Resident { stubs: memory.into(), ..Resident::default() };
        Self { resident, ..self }
    }

    /// The same, with blocks that are compiled after so many runs, for bursts of which data is noted
    /// ([`run_with_lines`](crate::run_with_lines)). 0, as it is without that: none is. It pays where bursts are long: an instruction takes less
    /// time then, but the first one longer until the code is in the CPU's caches.
    pub fn compiling_after(self, runs: u32) -> Self {
        Self { compiled_after: runs, ..self }
    }

    /// Number of decoded instructions held.
    pub fn instructions(&self) -> usize {
        self.ops.len()
    }

    /// Time spent on decoding so far, from one in sixteen decodings.
    pub fn decoding(&self) -> Duration {
        self.decoding
    }

    /// Forgets the code in `range`, because another mapping was put there or the code was rewritten.
    pub fn invalidate(&mut self, range: Range<Avma>) {
        let hit = |block: &Block| block.start < range.end.0 && range.start.0 < block.end;
        let (blocks, seen) = (&self.blocks, &mut self.seen);
        let before = self.by_address.len();
        self.by_address.retain(|_, id| {
            let keeps = blocks.get(*id as usize).is_some_and(|block| !hit(block));
            if !keeps && let Some(seen) = seen.get_mut(*id as usize) {
                // Compiled blocks may be linked to it.
                *seen = NEVER;
            }
            keeps
        });
        if self.by_address.len() == before {
            return;
        }
        if self.by_address.is_empty() {
            return self.clear();
        }
        self.recent.fill((NO_ADDRESS, NO_BLOCK));
        self.targets.clear();
        for block in &mut self.blocks {
            (block.fall, block.taken, block.taken_to) = (NO_BLOCK, NO_BLOCK, NO_ADDRESS);
        }
        self.resident.lines.clear();
        for id in self.by_address.values() {
            let block = &self.blocks[*id as usize];
            self.resident.lines.mark(block.start, block.end);
        }
    }

    /// Number of decoded blocks held. It grows with each that is decoded, and falls where the cache starts anew.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Where the blocks begin that were decoded when there were `blocks` of them, and after that.
    pub fn decoded_since(&self, blocks: usize) -> impl Iterator<Item = Avma> {
        let first = if blocks > self.blocks.len() { 0 } else { blocks };
        self.blocks.iter().skip(first).map(|block| Avma(block.start))
    }

    /// The number of the latest burst, for [`code_since`](Self::code_since).
    pub fn bursts(&self) -> u32 {
        self.burst
    }

    /// The code that bursts after that number executed, by block: where it is, and its bytes. Of a cache that is told of changes, all code that it
    /// holds.
    pub fn code_since(&self, before: u32) -> impl Iterator<Item = (Avma, &[u8])> {
        let newest = self.burst.wrapping_sub(before);
        let is_new = move |seen: u32| match self.compares {
            true => (1..=newest).contains(&seen.wrapping_sub(before)),
            false => seen != NEVER,
        };
        let seen = self.seen.iter().zip(&self.blocks).filter(move |(seen, _)| is_new(**seen));
        seen.filter_map(|(_, block)| {
            let length = block.end.wrapping_sub(block.start) as usize;
            Some((Avma(block.start), self.bytes.get(block.bytes as usize..)?.get(..length)?))
        })
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.forget();
        self.resident.lines.clear();
        self.resident.stubs.clear();
    }

    /// Hands what is resident to a burst.
    pub(crate) fn lend(&mut self) -> Resident {
        if mem::replace(&mut self.lent, true) {
            // The burst before panicked (in a `Memory`) and took along the stubs of all that is decoded.
            self.forget();
        }
        if self.compares {
            self.burst = self.burst.wrapping_add(1);
        }
        self.resident.tables.begin();
        mem::take(&mut self.resident)
    }

    /// Takes back what [`lend`](Self::lend) gave.
    pub(crate) fn take_back(&mut self, resident: Resident) {
        self.resident = resident;
        self.lent = false;
    }

    fn forget(&mut self) {
        self.ops.clear();
        self.blocks.clear();
        self.seen.clear();
        self.targets.clear();
        self.bytes.clear();
        self.by_address.clear();
        self.recent.fill((NO_ADDRESS, NO_BLOCK));
    }

    /// The block after `from`, whose end was reached.
    #[inline(always)]
    pub(crate) fn following(&mut self, from: u32, m: &mut Machine<'_>) -> Result<u32, StopReason> {
        let Block { fall, start, end, .. } = self.blocks[from as usize];
        if fall != NO_BLOCK && self.is_seen(fall, m) {
            return Ok(fall);
        }
        let id = self.at(end, m)?;
        if let Some(block) = self.blocks.get_mut(from as usize).filter(|block| block.start == start) {
            block.fall = id;
        }
        Ok(id)
    }

    /// The block at `target`, to which the branch at the end of `from` went.
    #[inline(always)]
    pub(crate) fn after(&mut self, from: u32, target: u64, m: &mut Machine<'_>) -> Result<u32, StopReason> {
        let Block { taken, taken_to, start, .. } = self.blocks[from as usize];
        if taken_to == target && self.is_seen(taken, m) {
            return Ok(taken);
        }
        let id = self.at(target, m)?;
        if let Some(block) = self.blocks.get_mut(from as usize).filter(|block| block.start == start) {
            (block.taken, block.taken_to) = (id, target);
        }
        Ok(id)
    }

    /// The block that starts at `pc`, decoded now if it is new.
    pub(crate) fn at(&mut self, pc: u64, m: &mut Machine<'_>) -> Result<u32, StopReason> {
        let slot = (pc ^ (pc >> 11)) as usize % RECENT;
        let (recent, id) = self.recent[slot];
        if recent == pc && self.is_seen(id, m) {
            return Ok(id);
        }
        let id = match self.by_address.get(&pc).copied() {
            Some(id) if self.is_seen(id, m) => id,
            _ => self.decode(pc, m)?,
        };
        self.recent[slot] = (pc, id);
        Ok(id)
    }

    /// Whether some blocks are compiled.
    pub(crate) fn compiles(&self) -> bool {
        self.compiled_after > 0
    }

    /// A block is about to run in a way that its compiled code could, too. Returns that code, if there is some.
    #[inline(always)]
    pub(crate) fn compiled(&mut self, id: u32, m: &mut Machine<'_>) -> Option<CompiledId> {
        let block = &mut self.blocks[id as usize];
        if block.runs > 0 {
            block.runs -= 1;
            if block.runs == 0 {
                self.compile(id, m);
            }
        }
        self.blocks[id as usize].compiled
    }

    #[cold]
    fn compile(&mut self, id: u32, m: &mut Machine<'_>) {
        let Block { first, count, start, end, bytes, .. } = self.blocks[id as usize];
        let ops = &self.ops[first as usize..][..count as usize];
        let bytes = &self.bytes[bytes as usize..][..end.wrapping_sub(start) as usize];
        let code = m.resident.stubs.code_place().and_then(|place| self.compiler.compile(id, ops, bytes, place));
        self.blocks[id as usize].compiled = code.and_then(|code| m.resident.stubs.add_compiled(&code));
        self.put_target(id, m);
    }

    /// Compiled code goes on to the block by itself from now on, from where it said that none was linked.
    #[cold]
    pub(crate) fn link(&mut self, site: u64, id: u32, m: &mut Machine<'_>) {
        if let Some(compiled) = self.blocks[id as usize].compiled {
            m.resident.stubs.link(site, compiled);
        }
    }

    /// Branches whose target the code does not say find a block from now on, if it is compiled.
    pub(crate) fn put_target(&mut self, id: u32, m: &Machine<'_>) {
        let Block { start, compiled, .. } = self.blocks[id as usize];
        if let Some(code) = compiled.and_then(|compiled| m.resident.stubs.address(compiled)) {
            self.targets.put(start, code);
        }
    }

    /// Where a block begins.
    pub(crate) fn start_of(&self, id: u32) -> u64 {
        self.blocks[id as usize].start
    }

    /// What compiled blocks look at, for which they have been made.
    pub(crate) fn for_blocks(&self) -> ForBlocks<'_> {
        ForBlocks { ops: &self.ops, blocks: &self.blocks, seen: &self.seen, targets: &self.targets, burst: self.burst }
    }

    /// Whether the code of a block is still what it was decoded from.
    #[inline(always)]
    fn is_seen(&mut self, id: u32, m: &mut Machine<'_>) -> bool {
        self.seen[id as usize] == self.burst || self.is_same(id, m)
    }

    #[inline(never)]
    fn is_same(&mut self, id: u32, m: &mut Machine<'_>) -> bool {
        let block = &self.blocks[id as usize];
        let length = block.end.wrapping_sub(block.start) as usize;
        let before = self.bytes.get(block.bytes as usize..block.bytes as usize + length);
        let same = before.is_some_and(|before| m.has_bytes(block.start, before));
        if same {
            self.seen[id as usize] = self.burst;
        }
        same
    }

    #[cold]
    fn decode(&mut self, pc: u64, m: &mut Machine<'_>) -> Result<u32, StopReason> {
        if self.ops.len() + 64 > self.limit || m.resident.stubs.nearly_full() {
            self.forget();
            m.resident.lines.clear();
            m.resident.stubs.clear();
        }
        // Looking at the clock may take longer than what is timed.
        let began = (self.untimed == 0).then(Instant::now);
        self.untimed = self.untimed.checked_sub(1).unwrap_or(TIMED - 1);
        let mut window = [0; WINDOW];
        let length = fetch(pc, &mut window, m)?;
        let first = self.ops.len();
        let end = decode_block(pc, &window[..length], &mut self.ops, &mut self.factory, &mut m.resident.stubs);
        self.decoding += began.map_or(Duration::ZERO, |began| began.elapsed() * TIMED);
        let count = self.ops.len() - first;
        if count == 0 {
            return Err(StopReason::UnreadableCode);
        }
        for page in [pc >> 12, end.wrapping_sub(1) >> 12] {
            if m.overlay.is_written(page) {
                self.ops.truncate(first);
                return Err(StopReason::SelfModifying);
            }
            m.overlay.close_for_writing(page);
        }
        m.resident.lines.mark(pc, end);
        let id = self.blocks.len() as u32;
        let bytes = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&window[..end.wrapping_sub(pc) as usize]);
        self.blocks.push(Block {
            first: first as u32,
            count: count as u32,
            start: pc,
            end,
            bytes,
            fall: NO_BLOCK,
            taken: NO_BLOCK,
            taken_to: NO_ADDRESS,
            runs: self.compiled_after,
            compiled: None,
        });
        self.seen.push(self.burst);
        self.by_address.insert(pc, id);
        Ok(id)
    }
}

/// Reads up to a window of code; less if the next page cannot be read.
fn fetch(pc: u64, window: &mut [u8; WINDOW], m: &mut Machine<'_>) -> Result<usize, StopReason> {
    let in_page = (PAGE - (pc & 0xfff) as usize).min(WINDOW);
    let unreadable = |m: &Machine<'_>| match m.stop {
        StopReason::OverlayFull => StopReason::OverlayFull,
        _ => StopReason::UnreadableCode,
    };
    if let Err(Exit::Stop | Exit::NotTaken | Exit::Taken(_)) = m.load_bytes(pc, &mut window[..in_page]) {
        return Err(unreadable(m));
    }
    // The next page only if an instruction may reach into it.
    if in_page < LONGEST_INSTRUCTION {
        let rest = pc.wrapping_add(in_page as u64);
        if m.load_bytes(rest, &mut window[in_page..32]).is_ok() {
            return Ok(32);
        }
    }
    Ok(in_page)
}
