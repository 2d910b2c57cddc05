//! Follows a thread through its code by the packets of its trace.
//!
//! ```text
//! TNT    one bit for each conditional branch, and for each return that goes where its call came from
//! TIP    where an indirect branch, another return, or a far transfer went
//! FUP    where the program was when something else happened; then TIP (elsewhere) or TIP.PGD (the end)
//! ```
//!
//! Direct jumps and calls have no packets. A TIP may come later than bits of branches after it: bits that no branch can take wait for it.

use std::collections::{BTreeMap, VecDeque};

use super::code::{Files, ProcessCode, Run, Unknown, Way};
use super::packets::Packet;
use crate::recording::KERNEL_HALF;

/// Calls whose returns may have a bit in place of an address (SDM: RET compression).
const MOST_CALLS: usize = 64;
/// Handlers of signals within each other.
const MOST_INTERRUPTED: usize = 64;
/// Direct branches in a row: a program that does nothing else has no packets.
const MOST_DIRECT: usize = 1 << 10;
/// Bits of a whole short TNT packet, and of a whole long one: a TIP after it may be of a branch before some of its bits.
const WHOLE: [u32; 2] = [6, 47];

/// What was lost, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// The hardware had no room for packets (OVF), or the kernel none for the area.
    pub overflows: u64,
    /// Bytes of the trace that are not there, or that cannot be read.
    pub missing: u64,
    /// System calls and interrupts of which the trace has what the kernel did.
    pub kernel: u64,
    /// Places where the code is not known.
    pub unknown: BTreeMap<Unknown, u64>,
    /// The packets do not fit the code.
    pub contradictions: u64,
    /// Streams that something other than a branch ended: their last instructions count for nothing.
    pub cut: u64,
}

impl Losses {
    /// Adds what another thread lost.
    pub fn add(&mut self, other: Losses) {
        self.overflows += other.overflows;
        self.missing += other.missing;
        self.kernel += other.kernel;
        self.contradictions += other.contradictions;
        self.cut += other.cut;
        for (unknown, times) in other.unknown {
            *self.unknown.entry(unknown).or_default() += times;
        }
    }

    /// Whether nothing was lost. The end of a thread is not a loss.
    pub fn is_nothing(&self) -> bool {
        *self == Losses::default()
    }
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// It executes this next.
    At(u64),
    /// It is not traced, and will go on there, if nothing happens to it.
    Off(Option<u64>),
    /// Not known.
    Lost,
}

/// One thread, between the first and the last packet of it.
#[derive(Debug)]
pub(super) struct Walk {
    position: Position,
    /// Where the stream began that it is in.
    start: Option<u64>,
    bits: VecDeque<bool>,
    /// Where streams began that something else interrupted, such as the handler of a signal, by where it did.
    interrupted: Vec<(u64, u64)>,
    /// The last FUP, until it is known what it is for.
    place: Option<u64>,
    is_place_of_other: bool,
    /// Packets were lost just now: the next place is where the program goes on.
    is_after_loss: bool,
    in_sync: bool,
    /// What the packets say is of the kernel.
    in_kernel: bool,
    bits_in_last: u32,
    /// Streams of the present step.
    streams: Vec<[u64; 3]>,
    losses: Losses,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            position: Position::Lost,
            start: None,
            bits: VecDeque::new(),
            interrupted: Vec::new(),
            place: None,
            is_place_of_other: false,
            is_after_loss: false,
            in_sync: false,
            in_kernel: false,
            bits_in_last: 0,
            streams: Vec::new(),
            losses: Losses::default(),
        }
    }
}

fn call(calls: &mut Vec<u64>, returns_to: u64) {
    if calls.len() == MOST_CALLS {
        calls.remove(0);
    }
    calls.push(returns_to);
}

/// Whether an address is the kernel's.
fn is_kernel(address: u64) -> bool {
    address >= KERNEL_HALF
}

/// Why a step cannot be made.
enum Stop {
    Unknown(Unknown),
    Contradiction,
}

type Step = Result<(), Stop>;

/// The code, and who is told each stream: where it starts, its branch, and where that goes.
pub(super) struct Around<'a, 'f> {
    /// Where the calls return to that the hardware knows, of all threads of its area: some returns have a bit in place of an address.
    pub calls: &'a mut Vec<u64>,
    pub code: &'a mut ProcessCode,
    pub files: &'a mut Files<'f>,
    pub stream: &'a mut dyn FnMut(u64, u64, u64),
}

impl Walk {
    /// Takes in the next packet. What cannot be is not counted.
    pub fn take(&mut self, packet: Packet, around: &mut Around<'_, '_>) {
        let done = self.step(packet, around);
        if let Err(Stop::Contradiction) = done {
            self.losses.contradictions += 1;
            self.lose(around.calls);
            return;
        }
        self.streams.drain(..).for_each(|[start, from, to]| (around.stream)(start, from, to));
        if let Err(Stop::Unknown(unknown)) = done {
            *self.losses.unknown.entry(unknown).or_default() += 1;
            self.lose(around.calls);
        }
    }

    /// Packets that come next are missing.
    pub fn overflow(&mut self, calls: &mut Vec<u64>) {
        self.losses.overflows += 1;
        self.lose(calls);
    }

    /// Bytes before the next packets are missing.
    pub fn gap(&mut self, calls: &mut Vec<u64>) {
        self.losses.missing += 1;
        self.lose(calls);
    }

    /// The trace of the thread has ended.
    pub fn finish(self) -> Losses {
        self.losses
    }

    /// Other code is mapped: what began in the code before does not go on.
    pub fn has_other_code(&mut self) {
        self.losses.cut += self.interrupted.drain(..).count() as u64;
    }

    fn step(&mut self, packet: Packet, around: &mut Around<'_, '_>) -> Step {
        let place = self.place.take();
        let is_after_loss = std::mem::take(&mut self.is_after_loss);
        match packet {
            Packet::Sync => {
                (self.in_sync, self.is_place_of_other, self.is_after_loss) = (true, false, is_after_loss);
                // The hardware forgets them, too.
                around.calls.clear();
            }
            Packet::SyncEnd => self.in_sync = false,
            Packet::PlaceOfOther => self.is_place_of_other = !self.in_sync,
            Packet::Place(Some(at)) if is_kernel(at) => self.enter_kernel(),
            Packet::Place(Some(at)) if self.in_sync => {
                self.in_kernel = false;
                return self.is_at(at, around);
            }
            Packet::Place(_) if std::mem::take(&mut self.is_place_of_other) => {}
            Packet::Place(at) => {
                // Or something interrupts it right there.
                if let (true, Some(at)) = (is_after_loss, at) {
                    self.begin(at);
                }
                self.place = at;
            }
            Packet::Overflow => {
                self.overflow(around.calls);
                self.is_after_loss = true;
            }
            Packet::Damage => self.lose(around.calls),
            Packet::Branches { taken, count } => {
                self.bits_in_last = count;
                if self.position != Position::Lost && !self.in_kernel {
                    self.bits.extend((0..count).rev().map(|bit| taken >> bit & 1 != 0));
                    return self.take_bits(around);
                }
            }
            Packet::On(Some(at)) if is_kernel(at) => self.enter_kernel(),
            Packet::On(Some(at)) => {
                self.in_kernel = false;
                self.turn_on(at);
            }
            Packet::On(None) => self.gap(around.calls),
            Packet::Off(_) if self.in_kernel => {}
            Packet::Off(_) => return self.turn_off(place, around),
            Packet::Target(Some(to)) if self.in_kernel => {
                if !is_kernel(to) {
                    self.in_kernel = false;
                    self.turn_on(to);
                }
            }
            Packet::Target(Some(to)) if is_kernel(to) => {
                let done = self.turn_off(place, around);
                self.enter_kernel();
                return done;
            }
            Packet::Target(to) => return self.go(place, to, around),
        }
        Ok(())
    }

    /// What follows is of the kernel, whose code is not followed.
    fn enter_kernel(&mut self) {
        self.losses.kernel += u64::from(!self.in_kernel);
        self.in_kernel = true;
        if let Position::At(_) = self.position {
            self.cut();
            self.position = Position::Off(None);
        }
    }

    fn lose(&mut self, calls: &mut Vec<u64>) {
        (self.position, self.place, self.start) = (Position::Lost, None, None);
        calls.clear();
        self.bits.clear();
        self.streams.clear();
        self.in_kernel = false;
    }

    /// What was executed since the last branch counts for nothing.
    fn cut(&mut self) {
        self.losses.cut += u64::from(self.start.take().is_some());
    }

    fn begin(&mut self, at: u64) {
        self.cut();
        self.bits.clear();
        (self.position, self.start) = (Position::At(at), Some(at));
    }

    /// The packets say where it is.
    fn is_at(&mut self, at: u64, around: &mut Around<'_, '_>) -> Step {
        match self.position {
            Position::At(_) => self.walk_to(at, around),
            Position::Off(_) | Position::Lost => {
                self.begin(at);
                Ok(())
            }
        }
    }

    fn run(&self, around: &mut Around<'_, '_>) -> Result<Run, Stop> {
        match self.position {
            Position::At(at) => around.code.run(at, around.files).map_err(Stop::Unknown),
            Position::Off(_) | Position::Lost => Err(Stop::Contradiction),
        }
    }

    /// A branch was taken.
    fn branch(&mut self, run: &Run, to: u64) {
        if let Some(start) = self.start {
            self.streams.push([start, run.branch, to]);
        }
        (self.start, self.position) = (Some(to), Position::At(to));
    }

    /// Takes a branch that has no packet. Returns whether this was one.
    fn take_direct(&mut self, run: &Run, calls: &mut Vec<u64>) -> bool {
        match run.way {
            Way::Jump { target } => self.branch(run, target),
            Way::Call { target, returns } => {
                if returns {
                    call(calls, run.after);
                }
                self.branch(run, target);
            }
            _ => return false,
        }
        true
    }

    /// Follows the branches that there are bits of. Bits that are left wait for the address of a branch before them.
    fn take_bits(&mut self, around: &mut Around<'_, '_>) -> Step {
        let mut direct = 0;
        while let Some(&taken) = self.bits.front() {
            let run = self.run(around)?;
            if self.take_direct(&run, around.calls) {
                direct += 1;
                if direct > MOST_DIRECT {
                    return Err(Stop::Contradiction);
                }
                continue;
            }
            direct = 0;
            match run.way {
                Way::Conditional { target } => {
                    self.bits.pop_front();
                    if taken {
                        self.branch(&run, target);
                    } else {
                        self.position = Position::At(run.after);
                    }
                }
                Way::Return if taken && !around.calls.is_empty() => {
                    self.bits.pop_front();
                    let to = around.calls.pop().unwrap_or_default();
                    self.branch(&run, to);
                }
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Goes on to the next branch that has an address in the packets.
    fn next_with_address(&mut self, around: &mut Around<'_, '_>) -> Result<Run, Stop> {
        for _ in 0..MOST_DIRECT {
            let run = self.run(around)?;
            if matches!(run.way, Way::Conditional { .. }) {
                return Err(Stop::Contradiction);
            }
            if !self.take_direct(&run, around.calls) {
                return Ok(run);
            }
        }
        Err(Stop::Contradiction)
    }

    /// Goes on to a place, with no more bits than there are.
    fn walk_to(&mut self, to: u64, around: &mut Around<'_, '_>) -> Step {
        if !self.bits.is_empty() {
            return Err(Stop::Contradiction);
        }
        for _ in 0..MOST_DIRECT {
            let Position::At(at) = self.position else { return Err(Stop::Contradiction) };
            if at == to {
                return Ok(());
            }
            let run = self.run(around)?;
            if at < to && to <= run.branch {
                self.position = Position::At(to);
                return Ok(());
            }
            if !self.take_direct(&run, around.calls) {
                return Err(Stop::Contradiction);
            }
        }
        Err(Stop::Contradiction)
    }

    /// TIP: `place` is where the program was, if no branch of its own went there.
    fn go(&mut self, place: Option<u64>, to: Option<u64>, around: &mut Around<'_, '_>) -> Step {
        let Some(to) = to else {
            self.gap(around.calls);
            return Ok(());
        };
        if self.position == Position::Lost {
            // It may be of a branch before bits that have come already; not where something interrupts the program.
            if place.is_some() || !WHOLE.contains(&self.bits_in_last) {
                self.begin(to);
            }
            return Ok(());
        }
        if let Some(place) = place {
            self.walk_to(place, around)?;
            self.begin(to);
            return Ok(());
        }
        let run = self.next_with_address(around)?;
        match run.way {
            Way::IndirectCall => call(around.calls, run.after),
            Way::Return => drop(around.calls.pop()),
            _ => {}
        }
        self.branch(&run, to);
        self.take_bits(around)
    }

    /// TIP.PGE: the kernel lets the program go on, where it was or elsewhere.
    fn turn_on(&mut self, at: u64) {
        let Position::Off(place) = self.position else { return self.begin(at) };
        if place == Some(at) && self.start.is_some() {
            self.position = Position::At(at);
            return;
        }
        // The handler of a signal has ended, and so have those that began after it. What led to its last system call is cut.
        if let Some(index) = self.interrupted.iter().rposition(|(place, _)| *place == at) {
            let start = self.interrupted.get(index).map(|(_, start)| *start);
            self.interrupted.truncate(index);
            self.begin(at);
            self.start = start;
            return;
        }
        if let (Some(place), Some(start)) = (place, self.start.take()) {
            if self.interrupted.len() == MOST_INTERRUPTED {
                self.interrupted.remove(0);
                self.losses.cut += 1;
            }
            self.interrupted.push((place, start));
        }
        self.begin(at);
    }

    /// TIP.PGD
    fn turn_off(&mut self, place: Option<u64>, around: &mut Around<'_, '_>) -> Step {
        if self.position == Position::Lost {
            // It goes on there, when it does.
            self.position = place.map_or(Position::Lost, |place| Position::Off(Some(place)));
            return Ok(());
        }
        let goes_on = match place {
            Some(place) => {
                self.walk_to(place, around)?;
                Some(place)
            }
            None => {
                let run = self.next_with_address(around)?;
                (run.way == Way::Far).then_some(run.after)
            }
        };
        if goes_on.is_none() {
            self.cut();
        }
        self.position = Position::Off(goes_on);
        Ok(())
    }
}
