//! A burst in the making, and the samples it becomes.

pub(crate) mod address_space;
pub(crate) mod memory;
pub(crate) mod path;
pub(crate) mod prediction;
pub(crate) mod static_path;
pub(crate) mod taker;
pub(crate) mod working_set;

use std::borrow::Cow;

use formats::burst_data;
use formats::burst_weight::BurstWeight;
use lookahead::{Branch, BranchKind, DataLines, ExecutedCode, Outcome, StopReason};
use perfdata::{Avma, BranchFlags, CpuMode, EventAttr, SampleFields, Weight};

/// Branches of one sample (24 bytes each): a record is at most 65,535 bytes long.
const SAMPLE_BRANCHES: usize = agent::Burst::PIECE;
/// With a word for each use of data, one more for their end, and some 100 bytes of other fields.
const _: () = assert!(SAMPLE_BRANCHES * 24 + (DataLines::MOST + DataLines::MOST_FORWARDED + 2) * 8 + 200 <= 65_535);

/// The path of a thread from one sampling stop.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    /// Its taken branches, oldest first.
    pub(crate) branches: Vec<Branch>,
    pieces: Vec<Piece>,
    pub(crate) lines: DataLines,
    /// The branches of a sample, newest first: memory that is used for each.
    stack: Vec<perfdata::Branch>,
    /// The data that it used, in place of `lines`, where the agent has taken it.
    uses: Option<Vec<u8>>,
    /// What it stands for, in the unit of the event.
    pub(crate) period: u64,
    pub(crate) instructions: u64,
    /// Times it went on after something that the interpreter could not follow.
    pub(crate) continuations: u32,
    /// It starts right after a system call.
    pub(crate) after_call: bool,
    /// It ended before a system call.
    pub(crate) ends_at_call: bool,
    /// The code that it executed and that is in no file.
    pub(crate) code: ExecutedCode,
}

#[derive(Debug)]
struct Piece {
    /// Address of its first instruction.
    start: Avma,
    /// Index of its first branch.
    first: usize,
    instructions: u64,
}

impl Burst {
    pub(crate) fn begin(&mut self, start: Avma, after_call: bool, period: u64) {
        self.branches.clear();
        self.lines.clear();
        self.pieces.clear();
        self.pieces.push(Piece { start, first: 0, instructions: 0 });
        (self.period, self.instructions, self.continuations) = (period, 0, 0);
        (self.after_call, self.ends_at_call) = (after_call, false);
        self.uses = None;
        self.code.clear();
    }

    /// Becomes one that the agent has taken, which is left without its branches.
    pub(crate) fn take_over(&mut self, taken: &mut agent::Burst, period: u64) {
        self.begin(taken.start, taken.after_call, period);
        std::mem::swap(&mut self.branches, &mut taken.branches);
        self.pieces.clear();
        for (index, &instructions) in taken.pieces.iter().enumerate() {
            let first = index * agent::Burst::PIECE;
            let start = first.checked_sub(1).map_or(taken.start, |before| self.branches[before].to);
            self.pieces.push(Piece { start, first, instructions });
        }
        self.instructions = taken.instructions();
        self.ends_at_call = taken.end == StopReason::SystemCall.name();
        let first = taken.uses.iter().map(|&(instruction, line)| burst_data::DataUse { instruction, line });
        let forwarded =
            taken.forwarded.iter().map(|&(instruction, distance)| burst_data::Forwarded { instruction, distance });
        self.uses = Some(burst_data::write(first, taken.known_until, forwarded));
    }

    /// Branches that fit into the present piece, one at least: a new piece begins if it is full.
    pub(crate) fn room(&mut self) -> u64 {
        let held = self.branches.len() - self.pieces.last().map_or(0, |piece| piece.first);
        if held < SAMPLE_BRANCHES {
            return (SAMPLE_BRANCHES - held) as u64;
        }
        let start = self.branches.last().map_or(Avma(0), |branch| branch.to);
        self.pieces.push(Piece { start, first: self.branches.len(), instructions: 0 });
        SAMPLE_BRANCHES as u64
    }

    /// Instructions were executed, whose branches are in already.
    pub(crate) fn executed(&mut self, instructions: u64) {
        self.instructions += instructions;
        if let Some(piece) = self.pieces.last_mut() {
            piece.instructions += instructions;
        }
    }

    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.executed(outcome.instructions);
    }

    /// Of the taken branches, those that their bytes decide.
    pub(crate) fn static_branches(&self) -> u64 {
        let is_static = |branch: &&Branch| matches!(branch.kind, BranchKind::Jump | BranchKind::Call);
        self.branches.iter().filter(is_static).count() as u64
    }

    /// Appends its samples: each piece has the address of its first instruction as ip, the number of its instructions in its weight
    /// ([`burst_weight`](formats::burst_weight)), and as period its share of what the burst stands for. The first one has the data that the burst
    /// used as raw data ([`burst_data`]).
    ///
    /// Returns how many samples could not be written.
    pub(crate) fn write(&mut self, event: &BurstEvent, thread: ThreadId, time: u64, records: &mut Vec<u8>) -> u64 {
        let Self { stack, .. } = self;
        let mut failed = 0;
        let uses = self.uses.as_deref().map_or_else(|| Cow::Owned(data_uses(&self.lines)), Cow::Borrowed);
        for (index, piece) in self.pieces.iter().enumerate() {
            let end = self.pieces.get(index + 1).map_or(self.branches.len(), |next| next.first);
            let flags = |kind: BranchKind| BranchFlags((kind as u64) << 20);
            let entry =
                |branch: &Branch| perfdata::Branch { from: branch.from, to: branch.to, flags: flags(branch.kind) };
            stack.clear();
            stack.extend(self.branches[piece.first..end].iter().rev().map(entry));
            let share = u128::from(self.period) * u128::from(piece.instructions) / u128::from(self.instructions.max(1));
            let weight = BurstWeight {
                instructions: piece.instructions,
                of_cut: if self.ends_at_call { self.instructions } else { 0 },
                after_call: self.after_call,
                ends_at_call: self.ends_at_call && index + 1 == self.pieces.len(),
            };
            let sample = SampleFields {
                cpu_mode: CpuMode::User,
                id: event.id,
                ip: piece.start,
                pid: thread.pid as u32,
                tid: thread.tid as u32,
                time,
                period: share as u64,
                raw: if index == 0 { &uses } else { &[] },
                branches: stack,
                weight: Some(Weight::Full(weight.to_number())),
                ..SampleFields::default()
            };
            failed += u64::from(sample.append_record(&event.attr, records).is_err());
        }
        failed
    }
}

/// The data that a burst used, as its first sample has it.
fn data_uses(lines: &DataLines) -> Vec<u8> {
    let first = lines.uses().iter().map(|used| burst_data::DataUse {
        instruction: used.instruction,
        line: used.line as u32, // its low half
    });
    let forwarded = lines
        .forwarded()
        .iter()
        .map(|used| burst_data::Forwarded { instruction: used.instruction, distance: used.distance });
    burst_data::write(first, lines.known_until(), forwarded)
}

/// The event that bursts are samples of.
#[derive(Clone, Debug)]
pub(crate) struct BurstEvent {
    pub(crate) attr: EventAttr,
    pub(crate) id: u64,
}

/// A thread and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadId {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
}

#[cfg(test)]
mod tests {
    use perfdata::SampleFormat;

    use super::*;
    use crate::tracer::TracerStatistics;
    use crate::tracer::budget::stop_cost::StopCost;
    use crate::tracer::options::{BurstSize, TracerKind};
    use crate::tracer::settings::Settings;

    #[test]
    fn samples_that_cannot_be_written_are_counted_and_said() {
        let mut burst = Burst::default();
        burst.begin(Avma(0x1000), false, 1);
        burst.executed(1);
        let event = |format| BurstEvent { attr: EventAttr { sample_format: format, ..EventAttr::default() }, id: 1 };
        let (thread, mut records) = (ThreadId { pid: 1, tid: 1 }, Vec::new());
        assert_eq!(burst.write(&event(SampleFormat::IP), thread, 0, &mut records), 0);
        assert_eq!(records.len(), 16);
        // What only the kernel has.
        assert_eq!(burst.write(&event(SampleFormat::REGS_USER), thread, 0, &mut records), 1);
        assert_eq!(records.len(), 16, "nothing of it is written");
        let settings = Settings::of_test(BurstSize::default().end(TracerKind::Lookahead), 1.0);
        let mut statistics = TracerStatistics::new(&settings, StopCost::built_in("a test"));
        assert!(statistics.degradations().is_empty());
        statistics.unwritable_samples = 3;
        assert!(statistics.degradations()[0].starts_with("3 samples of bursts could not be written"));
    }
}
