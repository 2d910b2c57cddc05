//! The phases that go on at a time of the recording: the last mark of each process, and of all.

use std::collections::BTreeMap;

use formats::phase_mark::PhaseMark;

/// Marks that wait for a record of their time at most: a program may mark phases all the time.
const MOST_WAITING: usize = 4096;

/// Marks that hold, and those that are to come.
///
/// A process that is forked is in its parent's phase; one that executes a program has marked nothing.
#[derive(Debug, Default)]
pub(crate) struct PhasesStanding {
    all: Option<PhaseMark>,
    own: BTreeMap<u32, PhaseMark>,
    /// Marks of later than what went by so far, by time.
    waiting: Vec<PhaseMark>,
}

impl PhasesStanding {
    /// Somebody has said that a phase begins.
    pub(crate) fn hear(&mut self, mark: PhaseMark) {
        if self.waiting.len() >= MOST_WAITING
            && let Some(first) = self.waiting.first()
        {
            self.pass(first.time);
        }
        let place = self.waiting.partition_point(|waiting| waiting.time <= mark.time);
        self.waiting.insert(place, mark);
    }

    /// A record of this time goes by, ns.
    pub(crate) fn pass(&mut self, time: u64) {
        let passed = self.waiting.partition_point(|mark| mark.time <= time);
        for mark in self.waiting.drain(..passed) {
            match mark.pid {
                Some(pid) => drop(self.own.insert(pid, mark)),
                None => self.all = Some(mark),
            }
        }
    }

    /// A process begins as its parent is.
    pub(crate) fn fork(&mut self, pid: u32, parent: u32) {
        match self.own.get(&parent).cloned() {
            Some(mark) => drop(self.own.insert(pid, PhaseMark { pid: Some(pid), ..mark })),
            None => drop(self.own.remove(&pid)),
        }
    }

    /// A process has another program, or has ended.
    pub(crate) fn execute(&mut self, pid: u32) {
        self.own.remove(&pid);
    }

    /// The marks that hold, and those that are to come.
    pub(crate) fn marks(&self) -> impl Iterator<Item = &PhaseMark> {
        self.all.iter().chain(self.own.values()).chain(&self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(time: u64, pid: Option<u32>, name: &str) -> PhaseMark {
        PhaseMark { time, pid, name: name.to_owned() }
    }

    #[test]
    fn children_have_their_parents_phase_and_programs_none() {
        let mut phases = PhasesStanding::default();
        phases.hear(mark(30, Some(7), "solve"));
        phases.hear(mark(10, Some(7), "load"));
        phases.hear(mark(5, None, "all"));
        phases.pass(20);
        phases.fork(8, 7);
        phases.fork(9, 7);
        phases.execute(9);
        let marks: Vec<PhaseMark> = phases.marks().cloned().collect();
        let load = |pid| mark(10, Some(pid), "load");
        assert_eq!(marks, [mark(5, None, "all"), load(7), load(8), mark(30, Some(7), "solve")]);
        // A pid that is used again is another process.
        phases.fork(8, 1);
        phases.pass(30);
        assert_eq!(phases.marks().cloned().collect::<Vec<_>>(), [mark(5, None, "all"), mark(30, Some(7), "solve")]);
    }
}
