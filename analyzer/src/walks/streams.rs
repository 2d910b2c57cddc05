//! What streams are in the code: looked up once for each.
//!
//! Where nothing records branches of the kernel, a stream runs straight through system calls. If it is known where these enter the kernel, it is
//! told as a stack of the hardware would have it, but for what the kernel did:
//!
//! ```text
//! recorded   A .. syscall .. jmp B
//! told       A .. syscall -> entry of the kernel      the entry -> after it .. jmp B
//! ```

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use perfdata::{Branch, BranchKind};

use crate::address::{Avma, FileOffset};
use crate::counting::{KernelEntries, Spot, Spots, View, is_kernel};
use crate::recording::AddressSpace;
use crate::walks::{BlockKey, FunctionKey, Part, Target, Transfer, WalkedCode, fold};

/// An address space in which addresses are: an index of all that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpaceId(pub u32);

/// An address space of a process, or of a guest.
pub struct Space {
    /// What is mapped where.
    pub mappings: AddressSpace,
    /// It is a guest's.
    pub guest: bool,
    /// Which epoch of the kernel's code.
    pub kernel: u32,
}

impl Space {
    pub(crate) fn view(&self) -> View<'_> {
        View::new(&self.mappings, self.kernel, self.guest)
    }
}

/// How it is known that a branch was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It was recorded.
    Recorded,
    /// A system call in the middle of what was recorded.
    Call,
    /// The way back of that: where in the kernel it begins is not known. The stream is the entry of the kernel, of which one instruction ran at
    /// least.
    WayBack,
}

/// A stream, and the branch at its end.
#[derive(Clone, Debug)]
pub struct WalkedStream {
    /// How the branch is known.
    pub known: Known,
    /// What it executes; nothing where its start is not known, `None` where no code can have made it.
    pub parts: Option<Vec<Part>>,
    /// The function of the branch.
    pub function: FunctionKey,
    /// The blocks of the branch, and of where it goes.
    pub ends: [BlockKey; 2],
    /// What the branch does.
    pub transfer: Transfer,
    /// Where it goes.
    pub target: Target,
}

/// All streams that were looked up.
pub struct Streams<'a> {
    code: &'a WalkedCode<'a>,
    spots: &'a Spots,
    spaces: &'a [Space],
    entries: &'a KernelEntries,
    looked_up: HashTable<LookedUp>,
}

/// Which stream: its address space, where it starts, if that is known, and the branch at its end.
type Key = (SpaceId, Option<Avma>, Avma, Avma, BranchKind);

struct LookedUp {
    key: Key,
    /// Several where it runs through system calls.
    streams: Vec<WalkedStream>,
}

/// System calls of a stream that are told: functions that make them branch before the next one.
const MOST_CALLS: usize = 8;

impl<'a> Streams<'a> {
    /// None are known yet.
    pub fn new(code: &'a WalkedCode<'a>, spots: &'a Spots, spaces: &'a [Space], entries: &'a KernelEntries) -> Self {
        Streams { code, spots, spaces, entries, looked_up: HashTable::new() }
    }

    /// The stream from a branch target to a branch: with the way into the kernel and back at each system call in it. Nothing of a space that is
    /// not known.
    pub fn get(&mut self, id: SpaceId, start: Option<Avma>, branch: &Branch) -> &[WalkedStream] {
        let Streams { code, spots, spaces, entries, looked_up } = self;
        let Some(space) = spaces.get(id.0 as usize) else { return &[] };
        let key = (id, start, branch.from, branch.to, branch.flags.kind());
        match looked_up.entry(hash(&key), |one| one.key == key, |one| hash(&one.key)) {
            Entry::Occupied(one) => &one.into_mut().streams,
            Entry::Vacant(free) => {
                let streams = look_up(code, (spots, space), entries, start, branch);
                &free.insert(LookedUp { key, streams }).into_mut().streams
            }
        }
    }

    /// The function of an address.
    pub fn function_at(&self, id: SpaceId, at: Avma) -> Option<FunctionKey> {
        let space = self.spaces.get(id.0 as usize)?;
        Some(self.code.target(at, self.spots.of(at, &space.view())).function)
    }
}

/// One folded multiplication, as of the sums of the second reading: the table wants all bits of the hash to differ.
fn hash((space, start, from, to, kind): &Key) -> u64 {
    let start = start.map_or(u64::MAX, |start| start.0);
    fold(start ^ u64::from(space.0).rotate_left(40), from.0 ^ to.0.rotate_left(32) ^ u64::from(kind.0).rotate_left(16))
}

fn look_up(
    code: &WalkedCode<'_>,
    (spots, space): (&Spots, &Space),
    entries: &KernelEntries,
    start: Option<Avma>,
    branch: &Branch,
) -> Vec<WalkedStream> {
    let view = space.view();
    let spot = |at| spots.of(at, &view);
    let (from, to) = (spot(branch.from), spot(branch.to));
    let (by_kernel, to_kernel) = (is_kernel(branch.from), is_kernel(branch.to));
    let transfer = match (by_kernel, to_kernel) {
        (false, true) => Transfer::EnterKernel,
        (true, false) => Transfer::LeaveKernel,
        _ => code.transfer(branch, from, to),
    };
    let mut streams = Vec::with_capacity(1);
    let parts = match start {
        None => Some(Vec::new()),
        Some(start) => {
            let (first, last) = spots.of_stream(start, (branch.from, from), &view);
            let is_straight = start <= branch.from && (first.module, first.base) == (last.module, last.base);
            let to_kernel = !by_kernel && to_kernel;
            let parts = if is_straight { code.parts(first, last, to_kernel) } else { None };
            match parts.is_some() && !by_kernel && !entries.is_empty() {
                true => match through_calls(code, entries, (start, first, last), to_kernel) {
                    Some((calls, rest)) => {
                        streams.extend(calls);
                        Some(rest)
                    }
                    None => parts,
                },
                false => parts,
            }
        }
    };
    streams.push(WalkedStream {
        known: Known::Recorded,
        parts,
        function: code.target(branch.from, from).function,
        ends: [code.block_at(from), code.block_at(to)],
        transfer,
        target: code.target(branch.to, to),
    });
    streams
}

/// A stream up to the last system call in it, the way back of that included, and what comes after. `None` where there is no system call in it of
/// which it is known where it leads.
fn through_calls(
    code: &WalkedCode<'_>,
    entries: &KernelEntries,
    (mut start, mut first, last): (Avma, Spot, Spot),
    to_kernel: bool,
) -> Option<(Vec<WalkedStream>, Vec<Part>)> {
    let calls = code.system_calls(first, last, entries, MOST_CALLS);
    let mut streams = Vec::with_capacity(2 * calls.len());
    for call in calls {
        let at = |offset: FileOffset| Avma(start.0.wrapping_add(offset.0.wrapping_sub(first.offset.0)));
        let (from, after) = (Spot { offset: call.at, ..first }, Spot { offset: call.after, ..first });
        let (from_avma, after_avma) = (at(call.at), at(call.after));
        let function = code.target(from_avma, from).function;
        // It is where code of the kernel ran: nobody asks for its address.
        let entry = code.target(Avma(call.entry.offset.0), call.entry);
        let entered = code.entered(call.entry);
        streams.push(WalkedStream {
            known: Known::Call,
            parts: Some(code.parts(first, from, true)?),
            function,
            ends: [code.block_at(from), entered],
            transfer: Transfer::EnterKernel,
            target: entry,
        });
        streams.push(WalkedStream {
            known: Known::WayBack,
            parts: Some(Vec::new()),
            function: entry.function,
            ends: [entered, code.block_at(after)],
            transfer: Transfer::LeaveKernel,
            // Where the next function begins after the call, it is no signal handler.
            target: Target { function, at: after_avma, is_entry: false },
        });
        (start, first) = (after_avma, after);
    }
    if streams.is_empty() { None } else { Some((streams, code.parts(first, last, to_kernel)?)) }
}
