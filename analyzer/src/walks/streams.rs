//! What streams are in the code: looked up once for each.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use perfdata::{Branch, BranchKind};

use crate::address::Avma;
use crate::counting::{Spots, is_kernel};
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

/// A stream, and the branch at its end.
#[derive(Clone, Debug)]
pub struct WalkedStream {
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
    known: HashTable<Known>,
}

/// Which stream: its address space, where it starts, if that is known, and the branch at its end.
type Key = (SpaceId, Option<Avma>, Avma, Avma, BranchKind);

struct Known {
    key: Key,
    stream: WalkedStream,
}

impl<'a> Streams<'a> {
    /// None are known yet.
    pub fn new(code: &'a WalkedCode<'a>, spots: &'a Spots, spaces: &'a [Space]) -> Self {
        Streams { code, spots, spaces, known: HashTable::new() }
    }

    /// The stream from a branch target to a branch.
    pub fn get(&mut self, id: SpaceId, start: Option<Avma>, branch: &Branch) -> Option<&WalkedStream> {
        let Streams { code, spots, spaces, known } = self;
        let space = spaces.get(id.0 as usize)?;
        let key = (id, start, branch.from, branch.to, branch.flags.kind());
        Some(match known.entry(hash(&key), |known| known.key == key, |known| hash(&known.key)) {
            Entry::Occupied(known) => &known.into_mut().stream,
            Entry::Vacant(free) => {
                let stream = look_up(code, spots, space, start, branch);
                &free.insert(Known { key, stream }).into_mut().stream
            }
        })
    }

    /// The function of an address.
    pub fn function_at(&self, id: SpaceId, at: Avma) -> Option<FunctionKey> {
        let space = self.spaces.get(id.0 as usize)?;
        Some(self.code.target(at, self.spots.of(at, space.guest, (&space.mappings, space.kernel))).function)
    }
}

/// One folded multiplication, as of the sums of the second reading: the table wants all bits of the hash to differ.
fn hash((space, start, from, to, kind): &Key) -> u64 {
    let start = start.map_or(u64::MAX, |start| start.0);
    fold(start ^ u64::from(space.0).rotate_left(40), from.0 ^ to.0.rotate_left(32) ^ u64::from(kind.0).rotate_left(16))
}

fn look_up(code: &WalkedCode<'_>, spots: &Spots, space: &Space, start: Option<Avma>, branch: &Branch) -> WalkedStream {
    let spot = |at| spots.of(at, space.guest, (&space.mappings, space.kernel));
    let (from, to) = (spot(branch.from), spot(branch.to));
    let (by_kernel, to_kernel) = (is_kernel(branch.from), is_kernel(branch.to));
    let transfer = match (by_kernel, to_kernel) {
        (false, true) => Transfer::EnterKernel,
        (true, false) => Transfer::LeaveKernel,
        _ => code.transfer(branch, from, to),
    };
    let parts = match start {
        None => Some(Vec::new()),
        Some(start) => {
            let (first, last) = spots.of_stream((start, branch.from), space.guest, (&space.mappings, space.kernel));
            let is_straight = start <= branch.from && (first.module, first.base) == (last.module, last.base);
            let to_kernel = !by_kernel && to_kernel;
            if is_straight { code.parts(first, last, to_kernel) } else { None }
        }
    };
    WalkedStream {
        parts,
        function: code.target(branch.from, from).function,
        ends: [code.block_at(from), code.block_at(to)],
        transfer,
        target: code.target(branch.to, to),
    }
}
