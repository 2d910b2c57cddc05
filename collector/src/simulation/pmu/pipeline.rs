//! When instructions retire: in order, but begun before those ahead of them have ended.
//!
//! Instructions enter in order, [`WIDTH`] in a cycle, as long as no more than [`UNDERWAY`] are underway; each ends its latency later, and
//! retires when it and all before it have ended. Which instruction needs the result of which is not modelled: latencies overlap where
//! they would not on a CPU. So what follows a long latency retires in one go: that is the shadow.

use crate::simulation::pmu::model::{MISPREDICTION, UNDERWAY, WIDTH};

/// Time is in slots: `WIDTH` are a cycle.
#[derive(Debug)]
pub(super) struct Pipeline {
    next_entry: u64,
    retired: u64,
    /// When the last instructions retired, in turn.
    underway: [u64; UNDERWAY],
    at: usize,
    divider_free: u64,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self { next_entry: 0, retired: 0, underway: [0; UNDERWAY], at: 0, divider_free: 0 }
    }
}

impl Pipeline {
    /// The next instruction: its latency in cycles, whether it needs the divider, whether it is a mispredicted branch. Returns when it
    /// retires.
    #[inline]
    pub(super) fn retire(&mut self, latency: u32, divides: bool, mispredicted: bool) -> u64 {
        let entry = self.next_entry.max(self.underway[self.at]);
        let slots = u64::from(latency) * WIDTH;
        let mut end = entry + slots;
        if divides {
            end = entry.max(self.divider_free) + slots;
            self.divider_free = end;
        }
        self.next_entry = if mispredicted { end + MISPREDICTION * WIDTH } else { entry + 1 };
        self.retired = end.max(self.retired + 1);
        self.underway[self.at] = self.retired;
        self.at = (self.at + 1) % UNDERWAY;
        self.retired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_in_a_cycle() {
        let mut pipeline = Pipeline::default();
        let first = pipeline.retire(1, false, false);
        let last = (0..1000).map(|_| pipeline.retire(1, false, false)).last();
        assert_eq!(last, Some(first + 1000));
    }

    #[test]
    fn what_is_behind_a_long_latency_retires_in_one_go() {
        let mut pipeline = Pipeline::default();
        let long = pipeline.retire(200, false, false);
        assert_eq!(long, 200 * WIDTH);
        let behind: Vec<u64> = (0..UNDERWAY as u64).map(|_| pipeline.retire(1, false, false)).collect();
        assert!(behind.iter().zip(long + 1..).all(|(&at, expected)| at == expected));
        // Those did not fit beside it; and a second long one that does overlaps it.
        assert!(pipeline.retire(1, false, false) > long + WIDTH);
        let mut pipeline = Pipeline::default();
        assert_eq!((pipeline.retire(200, false, false), pipeline.retire(200, false, false)), (800, 801));
    }

    #[test]
    fn one_division_at_a_time_and_nothing_behind_a_wrong_prediction() {
        let mut pipeline = Pipeline::default();
        let first = pipeline.retire(20, true, false);
        assert_eq!(pipeline.retire(20, true, false), first + 20 * WIDTH);
        let mut pipeline = Pipeline::default();
        let branch = pipeline.retire(1, false, true);
        assert_eq!(pipeline.retire(1, false, false), branch + (MISPREDICTION + 1) * WIDTH);
    }
}
