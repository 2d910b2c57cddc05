//! Which samples are recorded: what programs and `hbbp control` said of themselves and of all, over time.

use std::collections::{HashMap, VecDeque};

use control::{Message, Order, Scope};
use perf_event_open_sys::bindings as sys;

use crate::control::outlook::Outlook;
use crate::session::record_layout::{BrokenRecord, RecordBytes, RecordLayout, SAMPLE, first_record, word};

/// `PERF_RECORD_MISC_COMM_EXEC`: the name is that of a program that was executed.
const COMM_EXEC: u16 = 1 << 13;

/// Messages that wait for the records of their time, at most: each has its effect sooner then.
const MOST_WAITING: usize = 1 << 18;
/// Processes that may have said something of themselves.
const MOST_PROCESSES: usize = 1 << 20;

/// Leaves out samples of processes that are switched off.
///
/// The latest word counts: what a process said of itself holds until something is said of all, and the other way round. A process that
/// is forked has its parent's switch; one that executes a program has said nothing.
///
/// ```text
/// all       on                              off        on
/// pid 7              stop      start                        stop
/// recorded  --------|         |------------|          |----|
/// ```
#[derive(Debug)]
pub(crate) struct Switch {
    layout: RecordLayout,
    /// What was said and does not hold yet, by time.
    waiting: VecDeque<Said>,
    all: Turn,
    own: HashMap<u32, Turn>,
    turns: u64,
    /// Id of the bursts' event.
    burst: Option<u64>,
    left_out: LeftOut,
    /// A process has another place of the switch than was heard: it was forked, or has executed a program.
    has_news: bool,
}

/// Samples that were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Of all events.
    pub(crate) samples: u64,
    /// Bursts among them.
    pub(crate) bursts: u64,
}

/// Something that was said.
#[derive(Clone, Copy, Debug)]
struct Said {
    time: u64,
    /// Of whom; `None` of all.
    pid: Option<u32>,
    on: bool,
}

/// A place of the switch, and which turn brought it there.
#[derive(Clone, Copy, Debug)]
struct Turn {
    number: u64,
    time: u64,
    on: bool,
}

impl Turn {
    /// Since when it is off, ns, if so.
    fn off_since(&self) -> Option<u64> {
        (!self.on).then_some(self.time)
    }
}

impl Switch {
    /// `on`: how it stands in the beginning. `burst`: the id of the event whose samples are bursts.
    pub(crate) fn new(layout: RecordLayout, on: bool, burst: Option<u64>) -> Self {
        let all = Turn { number: 0, time: 0, on };
        Self {
            layout,
            waiting: VecDeque::new(),
            all,
            own: HashMap::new(),
            turns: 0,
            burst,
            left_out: LeftOut::default(),
            has_news: false,
        }
    }

    /// Samples that were left out.
    pub(crate) fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Whether a process has another place of the switch than was heard since this was asked last.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// Takes in what was said up to `now`, ns; marks are nothing to it.
    pub(crate) fn hear(&mut self, messages: &[Message], now: u64) {
        let turns = messages.iter().filter(|message| message.order != Order::Mark);
        self.waiting.extend(turns.map(|message| Said {
            time: message.time.min(now),
            pid: (message.scope == Scope::Process).then_some(message.pid),
            on: message.order == Order::Start,
        }));
        self.waiting.make_contiguous().sort_by_key(|said| said.time);
        while self.waiting.len() > MOST_WAITING {
            self.turn();
        }
    }

    /// Takes samples of those that are off out of `records`, which are in order of time.
    pub(crate) fn leave_out(&mut self, records: &mut Vec<u8>) -> Result<(), BrokenRecord> {
        if self.waiting.is_empty() && self.own.is_empty() && self.all.on {
            return Ok(());
        }
        // Kept records move to the front.
        let (mut kept, mut offset) = (0, 0);
        while let Some(record) = first_record(&records[offset..], offset)? {
            let keep = self.keeps(&record);
            let all = offset..offset + record.all.len();
            offset = all.end;
            if keep {
                records.copy_within(all.clone(), kept);
                kept += all.len();
            }
        }
        records.truncate(kept);
        Ok(())
    }

    /// How things are when all that was heard holds.
    pub(crate) fn outlook(&self) -> Outlook {
        let mut outlook = Outlook { all: self.all.off_since(), own: HashMap::new() };
        outlook.own.extend(self.own.iter().map(|(pid, own)| (*pid, own.off_since())));
        for said in &self.waiting {
            let off = (!said.on).then_some(said.time);
            match said.pid {
                Some(pid) => drop(outlook.own.insert(pid, off)),
                None => outlook = Outlook { all: off, own: HashMap::new() },
            }
        }
        outlook
    }

    fn keeps(&mut self, record: &RecordBytes<'_>) -> bool {
        if let Some(time) = self.layout.time(record) {
            while self.waiting.front().is_some_and(|said| said.time <= time) {
                self.turn();
            }
        }
        let pids = word(record.body, 0).map(|word| (word as u32, (word >> 32) as u32));
        match (record.kind, pids) {
            (SAMPLE, _) => {
                let on = self.layout.sample_pid(record).map_or(self.all, |pid| self.place(pid)).on;
                if !on {
                    let is_burst = self.burst.is_some() && self.layout.sample_id(record) == self.burst;
                    self.left_out.samples += 1;
                    self.left_out.bursts += u64::from(is_burst);
                }
                return on;
            }
            (sys::PERF_RECORD_FORK, Some((pid, parent))) if pid != parent => {
                self.set_own(pid, self.own.get(&parent).copied())
            }
            (sys::PERF_RECORD_COMM, Some((pid, _))) if record.misc() & COMM_EXEC != 0 => self.set_own(pid, None),
            (sys::PERF_RECORD_EXIT, Some((pid, _))) if word(record.body, 8).is_some_and(|word| word as u32 == pid) => {
                self.set_own(pid, None);
            }
            _ => {}
        }
        true
    }

    fn set_own(&mut self, pid: u32, turn: Option<Turn>) {
        let before = match turn {
            Some(turn) => self.own.insert(pid, turn),
            None => self.own.remove(&pid),
        };
        self.has_news |= before.map(|before| before.number) != turn.map(|turn| turn.number);
    }

    fn place(&self, pid: u32) -> Turn {
        self.own.get(&pid).copied().unwrap_or(self.all)
    }

    /// What was said first holds now.
    fn turn(&mut self) {
        let Some(Said { time, pid, on }) = self.waiting.pop_front() else { return };
        self.turns += 1;
        let turn = Turn { number: self.turns, time, on };
        match pid {
            // Pids are what was said. There are fewer processes.
            Some(pid) if self.own.len() < MOST_PROCESSES => drop(self.own.insert(pid, turn)),
            Some(_) => {}
            None => {
                self.all = turn;
                self.own.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use perfdata::{AttrFlags, EventAttr, SampleFormat};

    use super::*;

    fn switch(on: bool) -> Switch {
        let format = SampleFormat::IDENTIFIER | SampleFormat::IP | SampleFormat::TID | SampleFormat::TIME;
        let attr = EventAttr { sample_format: format, flags: AttrFlags::SAMPLE_ID_ALL, ..EventAttr::default() };
        Switch::new(RecordLayout::of(&attr), on, Some(5))
    }

    fn said(time: u64, order: Order, pid: Option<u32>) -> Message {
        let mut message = Message::of_all(order, "");
        message.time = time;
        if let Some(pid) = pid {
            (message.scope, message.pid) = (Scope::Process, pid);
        }
        message
    }

    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let header = [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &(8 + words.len() as u16 * 8).to_le_bytes()];
        header.concat().into_iter().chain(words.iter().flat_map(|word| word.to_le_bytes())).collect()
    }

    fn sample(pid: u64, time: u64) -> Vec<u8> {
        record(SAMPLE, 0, &[5, 0x1000, pid | pid << 32, time])
    }

    fn fork(pid: u64, parent: u64, time: u64) -> Vec<u8> {
        record(sys::PERF_RECORD_FORK, 0, &[pid | parent << 32, pid | parent << 32, time, pid, time, 5])
    }

    fn exit(pid: u64, time: u64) -> Vec<u8> {
        record(sys::PERF_RECORD_EXIT, 0, &[pid | 1 << 32, pid | pid << 32, time, pid, time, 5])
    }

    fn exec(pid: u64, time: u64) -> Vec<u8> {
        record(sys::PERF_RECORD_COMM, COMM_EXEC, &[pid | pid << 32, 0x78, pid | pid << 32, time, 5])
    }

    /// Pids and times of the samples that are left.
    fn kept(switch: &mut Switch, records: &[Vec<u8>]) -> Vec<(u64, u64)> {
        let mut bytes = records.concat();
        switch.leave_out(&mut bytes).unwrap();
        let mut kept = Vec::new();
        let mut offset = 0;
        while let Some(record) = first_record(&bytes[offset..], offset).unwrap() {
            offset += record.all.len();
            if record.kind == SAMPLE {
                kept.push((word(record.body, 16).unwrap() as u32 as u64, word(record.body, 24).unwrap()));
            }
        }
        kept
    }

    #[test]
    fn the_latest_word_counts() {
        let mut switch = switch(true);
        let messages = [
            said(20, Order::Stop, Some(7)),
            said(40, Order::Start, Some(7)),
            said(60, Order::Stop, None),
            said(80, Order::Start, None),
            said(90, Order::Stop, Some(7)),
        ];
        // What is said need not come in order, nor with the records of its time.
        switch.hear(&[messages[3].clone(), messages[0].clone(), messages[1].clone()], 100);
        let first: Vec<Vec<u8>> = (1..=5).map(|at| sample(7, at * 10)).collect();
        assert_eq!(kept(&mut switch, &first), [(7, 10), (7, 40), (7, 50)]);
        switch.hear(&[messages[4].clone(), messages[2].clone()], 100);
        let second: Vec<Vec<u8>> = (6..=10).flat_map(|at| [sample(7, at * 10), sample(8, at * 10)]).collect();
        assert_eq!(kept(&mut switch, &second), [(7, 80), (8, 80), (8, 90), (8, 100)]);
        assert_eq!(switch.left_out(), LeftOut { samples: 2 + 6, bursts: 2 + 6 });
    }

    #[test]
    fn children_have_their_parents_switch_and_programs_none() {
        let mut switch = switch(true);
        switch.hear(&[said(10, Order::Stop, Some(7))], 100);
        let records =
            [fork(8, 7, 20), sample(8, 30), exec(8, 40), sample(8, 50), sample(7, 55), fork(9, 8, 60), sample(9, 70)];
        assert_eq!(kept(&mut switch, &records), [(8, 50), (9, 70)]);
        assert!(switch.take_news() && !switch.take_news());
        // What has ended has said nothing, and a pid that is used again is another process.
        let again = [exit(7, 75), fork(7, 1, 80), sample(7, 90)];
        assert_eq!(kept(&mut switch, &again), [(7, 90)]);
        assert!(switch.own.is_empty() && switch.take_news());
    }

    #[test]
    fn a_recording_that_begins_off_waits_for_a_word() {
        let mut switch = switch(false);
        assert_eq!(kept(&mut switch, &[sample(7, 5), fork(8, 7, 6), exec(8, 7)]), []);
        switch.hear(&[said(10, Order::Start, Some(7))], 100);
        assert_eq!(kept(&mut switch, &[sample(7, 9), sample(7, 11), sample(8, 12)]), [(7, 11)]);
        assert_eq!(switch.left_out().samples, 3);
    }

    #[test]
    fn times_to_come_and_floods_are_bounded() {
        let mut switch = switch(true);
        switch.hear(&[said(u64::MAX, Order::Stop, None)], 50);
        assert_eq!(kept(&mut switch, &[sample(7, 49), sample(7, 50)]), [(7, 49)]);
        let flood: Vec<Message> = (0..10_000).map(|pid| said(60, Order::Start, Some(pid % 100))).collect();
        for _ in 0..40 {
            switch.hear(&flood, 60);
        }
        assert!(switch.waiting.len() <= MOST_WAITING);
    }
}
