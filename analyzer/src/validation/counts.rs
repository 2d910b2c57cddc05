//! The counts of one thing by every estimate, beside the exact one.

use crate::counting::BlockCount;

/// Which source an estimate is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Estimate {
    /// Event-based samples alone.
    Ebs,
    /// Branch stacks alone.
    Lbr,
    /// The chosen one of both, per block.
    Hybrid,
}

impl Estimate {
    /// The three, in the order in which reports list them.
    pub const ALL: [Estimate; 3] = [Estimate::Ebs, Estimate::Lbr, Estimate::Hybrid];

    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Estimate::Ebs => "ebs",
            Estimate::Lbr => "lbr",
            Estimate::Hybrid => "hybrid",
        }
    }

    pub(super) fn of(self, count: &BlockCount) -> f64 {
        match self {
            Estimate::Ebs => count.ebs,
            Estimate::Lbr => count.lbr,
            Estimate::Hybrid => count.count,
        }
    }
}

/// Where counts come from: the truth, all samples, or one of two halves of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Truth,
    Whole(Estimate),
    Half(usize, Estimate),
}

impl Column {
    fn index(self) -> usize {
        match self {
            Column::Truth => 0,
            Column::Whole(estimate) => 1 + estimate as usize,
            Column::Half(half, estimate) => 4 + 3 * half + estimate as usize,
        }
    }
}

/// One count of every column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts([f64; 10]);

impl Counts {
    pub fn get(&self, column: Column) -> f64 {
        self.0[column.index()]
    }

    pub fn increase(&mut self, column: Column, by: f64) {
        self.0[column.index()] += by;
    }

    pub fn add(&mut self, other: &Counts) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// Of each column its share of the column's total.
    pub fn shares(&self, totals: &Counts) -> Counts {
        let mut shares = *self;
        shares
            .0
            .iter_mut()
            .zip(totals.0)
            .for_each(|(count, total)| *count = if total > 0.0 { *count / total } else { 0.0 });
        shares
    }
}
