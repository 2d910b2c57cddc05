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

/// Calls whose returns may have a bit in place of an address (SDM: RET compression).
const MOST_CALLS: usize = 64;
/// Handlers of signals within each other.
const MOST_INTERRUPTED: usize = 64;
/// Direct branches in a row: a program that does nothing else has no packets.
const MOST_DIRECT: usize = 1 << 16;
/// Bits of a whole short TNT packet, and of a whole long one: a TIP after it may be of a branch before some of its bits.
const WHOLE: [u32; 2] = [6, 47];

/// What was lost, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// There was no room for packets (OVF, or the area was full).
    pub overflows: u64,
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
        self.contradictions += other.contradictions;
        self.cut += other.cut;
        for (unknown, times) in other.unknown {
            *self.unknown.entry(unknown).or_default() += times;
        }
    }

    /// Whether nothing was lost. The end of a thread is not a loss.
    pub fn is_nothing(&self) -> bool {
        self.overflows == 0 && self.contradictions == 0 && self.cut == 0 && self.unknown.is_empty()
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
    calls: Vec<u64>,
    bits: VecDeque<bool>,
    /// Where streams began that something else interrupted, such as the handler of a signal, by where it did.
    interrupted: Vec<(u64, u64)>,
    /// The last FUP, until it is known what it is for.
    place: Option<u64>,
    is_place_of_other: bool,
    in_sync: bool,
    bits_in_last: u32,
    losses: Losses,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            position: Position::Lost,
            start: None,
            calls: Vec::new(),
            bits: VecDeque::new(),
            interrupted: Vec::new(),
            place: None,
            is_place_of_other: false,
            in_sync: false,
            bits_in_last: 0,
            losses: Losses::default(),
        }
    }
}

/// Why a step cannot be made.
enum Stop {
    Unknown(Unknown),
    Contradiction,
}

type Step = Result<(), Stop>;

/// The code, and who is told each stream: where it starts, its branch, and where that goes.
pub(super) struct Around<'a, 'f> {
    pub code: &'a mut ProcessCode,
    pub files: &'a mut Files<'f>,
    pub stream: &'a mut dyn FnMut(u64, u64, u64),
}

impl Walk {
    /// Takes in the next packet.
    pub fn take(&mut self, packet: Packet, around: &mut Around<'_, '_>) {
        let step = self.step(packet, around);
        match step {
            Ok(()) => {}
            Err(Stop::Unknown(unknown)) => {
                *self.losses.unknown.entry(unknown).or_default() += 1;
                self.lose();
            }
            Err(Stop::Contradiction) => {
                self.losses.contradictions += 1;
                self.lose();
            }
        }
    }

    /// The next packets are of a later time; what was between is not known to be nothing.
    pub fn gap(&mut self) {
        self.losses.overflows += 1;
        self.lose();
    }

    /// The trace of the thread has ended.
    pub fn finish(self) -> Losses {
        self.losses
    }

    fn step(&mut self, packet: Packet, around: &mut Around<'_, '_>) -> Step {
        let place = self.place.take();
        match packet {
            Packet::Sync => {
                (self.in_sync, self.is_place_of_other) = (true, false);
                // The hardware forgets them, too.
                self.calls.clear();
            }
            Packet::SyncEnd => self.in_sync = false,
            Packet::Place(Some(at)) if self.in_sync => return self.is_at(at, around),
            Packet::Place(_) if std::mem::take(&mut self.is_place_of_other) => {}
            Packet::Place(at) => {
                // After a loss it is where the program goes on; or where something interrupts it at once.
                if let (Position::Lost, Some(at)) = (self.position, at) {
                    self.begin(at);
                }
                self.place = at;
            }
            Packet::PlaceOfOther => self.is_place_of_other = true,
            Packet::Overflow => {
                self.losses.overflows += 1;
                self.lose();
            }
            Packet::Damage => self.lose(),
            Packet::Branches { taken, count } => {
                self.bits_in_last = count;
                if self.position != Position::Lost {
                    self.bits.extend((0..count).rev().map(|bit| taken >> bit & 1 != 0));
                    return self.take_bits(around);
                }
            }
            Packet::On(Some(at)) => self.turn_on(at),
            Packet::On(None) => self.lose(),
            Packet::Off(_) => return self.turn_off(place, around),
            Packet::Target(to) => return self.go(place, to, around),
        }
        Ok(())
    }

    fn lose(&mut self) {
        self.cut();
        (self.position, self.place) = (Position::Lost, None);
        self.calls.clear();
        self.bits.clear();
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
    fn branch(&mut self, run: &Run, to: u64, around: &mut Around<'_, '_>) {
        if let Some(start) = self.start {
            (around.stream)(start, run.branch, to);
        }
        (self.start, self.position) = (Some(to), Position::At(to));
    }

    fn call(&mut self, returns_to: u64) {
        if self.calls.len() == MOST_CALLS {
            self.calls.remove(0);
        }
        self.calls.push(returns_to);
    }

    /// Takes a branch that has no packet. Returns whether this was one.
    fn take_direct(&mut self, run: &Run, around: &mut Around<'_, '_>) -> bool {
        match run.way {
            Way::Jump { target } => self.branch(run, target, around),
            Way::Call { target, returns } => {
                if returns {
                    self.call(run.after);
                }
                self.branch(run, target, around);
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
            if self.take_direct(&run, around) {
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
                        self.branch(&run, target, around);
                    } else {
                        self.position = Position::At(run.after);
                    }
                }
                Way::Return if taken && !self.calls.is_empty() => {
                    self.bits.pop_front();
                    let to = self.calls.pop().unwrap_or_default();
                    self.branch(&run, to, around);
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
            if !self.take_direct(&run, around) {
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
            if !self.take_direct(&run, around) {
                return Err(Stop::Contradiction);
            }
        }
        Err(Stop::Contradiction)
    }

    /// TIP: `place` is where the program was, if no branch of its own went there.
    fn go(&mut self, place: Option<u64>, to: Option<u64>, around: &mut Around<'_, '_>) -> Step {
        let Some(to) = to else {
            self.lose();
            return Ok(());
        };
        if self.position == Position::Lost {
            // It may be of a branch before bits that have come already.
            if !WHOLE.contains(&self.bits_in_last) {
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
            Way::IndirectCall => self.call(run.after),
            Way::Return => drop(self.calls.pop()),
            _ => {}
        }
        self.branch(&run, to, around);
        self.take_bits(around)
    }

    /// TIP.PGE
    fn turn_on(&mut self, at: u64) {
        let Position::Off(place) = self.position else { return self.begin(at) };
        if place == Some(at) {
            self.position = Position::At(at);
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
        if let Some(index) = self.interrupted.iter().rposition(|(place, _)| *place == at) {
            self.start = Some(self.interrupted.remove(index).1);
        }
    }

    /// TIP.PGD
    fn turn_off(&mut self, place: Option<u64>, around: &mut Around<'_, '_>) -> Step {
        if self.position == Position::Lost {
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
