//! Sums over intervals: one addition per end of an interval, however long it is.

/// What can be added up over intervals.
pub(crate) trait Amount: Copy + Default {
    /// The sum of both amounts.
    fn plus(self, other: Self) -> Self;
    /// The difference; of a sum and one of its parts it is what the others add up to.
    fn minus(self, other: Self) -> Self;
    /// A running sum, without what rounding has left of it where no interval is.
    fn settled(self) -> Self {
        self
    }
}

/// Sums by position of what is the same for all positions of an interval.
///
/// Example: 3 for `[0, 4)` and 2 for `[2, 6)` are the pieces `[0, 2)` 3, `[2, 4)` 5 and `[4, 6)` 2.
#[derive(Debug)]
pub(crate) struct IntervalSum<T> {
    /// By position, what the running sum changes by there.
    changes: Vec<T>,
    /// Where intervals begin and end.
    ends: Vec<u32>,
}

impl<T: Amount> IntervalSum<T> {
    /// Nothing, over so many positions.
    pub fn new(positions: usize) -> Self {
        IntervalSum { changes: vec![T::default(); positions + 1], ends: Vec::new() }
    }

    /// Adds to the positions `[first, end)`.
    pub fn add(&mut self, first: usize, end: usize, amount: T) {
        if first < end {
            self.changes[first] = self.changes[first].plus(amount);
            self.changes[end] = self.changes[end].minus(amount);
            self.ends.extend([first as u32, end as u32]);
        }
    }

    /// Calls `visit` with the pieces `[first, end)` between neighbouring ends of intervals and the sum over them, in order. Nothing is left.
    pub fn drain(&mut self, mut visit: impl FnMut(usize, usize, T)) {
        self.ends.sort_unstable();
        self.ends.dedup();
        let mut sum = T::default();
        for (index, &end) in self.ends.iter().enumerate() {
            sum = sum.plus(std::mem::take(&mut self.changes[end as usize])).settled();
            if let Some(&next) = self.ends.get(index + 1) {
                visit(end as usize, next as usize, sum);
            }
        }
        self.ends.clear();
    }
}

/// The same over addresses: `intervals` are `[first, end)` with their amounts, and so are the pieces that `visit` is called with.
pub(crate) fn sum_over_addresses<T: Amount>(
    intervals: impl Iterator<Item = (u64, u64, T)> + Clone,
    mut visit: impl FnMut(u64, u64, T),
) {
    let mut ends: Vec<u64> = intervals.clone().flat_map(|(first, end, _)| [first, end]).collect();
    ends.sort_unstable();
    ends.dedup();
    let position = |at: u64| ends.partition_point(|end| *end < at);
    let mut sum = IntervalSum::new(ends.len());
    for (first, end, amount) in intervals {
        sum.add(position(first), position(end), amount);
    }
    sum.drain(|first, end, amount| visit(ends[first], ends[end], amount));
}

macro_rules! whole_numbers {
    ($($number:ty),*) => {
        $(impl Amount for $number {
            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn minus(self, other: Self) -> Self {
                self - other
            }
        })*
    };
}

whole_numbers!(i64, i128);

/// Executions, and the number of intervals that they are of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Executions {
    /// How often the intervals were executed.
    pub count: f64,
    /// Where there are none the sum is nothing, whatever rounding has left of it.
    pub intervals: i64,
}

impl Amount for Executions {
    fn plus(self, other: Self) -> Self {
        Executions { count: self.count + other.count, intervals: self.intervals + other.intervals }
    }

    fn minus(self, other: Self) -> Self {
        Executions { count: self.count - other.count, intervals: self.intervals - other.intervals }
    }

    fn settled(self) -> Self {
        if self.intervals == 0 { Executions::default() } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sum: &mut IntervalSum<i64>) -> Vec<(usize, usize, i64)> {
        let mut pieces = Vec::new();
        sum.drain(|first, end, amount| pieces.push((first, end, amount)));
        pieces
    }

    #[test]
    fn intervals_cut_each_other() {
        let mut sum = IntervalSum::new(8);
        sum.add(0, 4, 3);
        sum.add(2, 6, 2);
        sum.add(5, 5, 7);
        sum.add(7, 3, 7);
        assert_eq!(pieces(&mut sum), [(0, 2, 3), (2, 4, 5), (4, 6, 2)]);
        // What was drained is not there any more.
        sum.add(1, 3, 1);
        sum.add(6, 8, 1);
        assert_eq!(pieces(&mut sum), [(1, 3, 1), (3, 6, 0), (6, 8, 1)]);
        assert!(pieces(&mut sum).is_empty());
    }

    #[test]
    fn neighbours_with_the_same_sum_are_told_apart() {
        let mut sum = IntervalSum::new(4);
        sum.add(0, 2, 1);
        sum.add(2, 4, 1);
        assert_eq!(pieces(&mut sum), [(0, 2, 1), (2, 4, 1)]);
    }

    #[test]
    fn rounding_leaves_nothing_where_no_interval_is() {
        let mut sum = IntervalSum::new(4);
        for count in [0.1, 0.2, 0.3] {
            sum.add(0, 2, Executions { count, intervals: 1 });
        }
        sum.add(3, 4, Executions { count: 1.0, intervals: 1 });
        let mut counts = Vec::new();
        sum.drain(|first, _, sum| counts.push((first, sum.count)));
        assert_eq!(counts[1..], [(2, 0.0), (3, 1.0)]);
    }

    #[test]
    fn addresses_are_positions() {
        let mut pieces = Vec::new();
        let intervals = [(0x10, 0x20, 1_i64), (0x18, u64::MAX, 2), (u64::MAX, u64::MAX, 4)];
        sum_over_addresses(intervals.into_iter(), |first, end, sum| pieces.push((first, end, sum)));
        assert_eq!(pieces, [(0x10, 0x18, 1), (0x18, 0x20, 3), (0x20, u64::MAX, 2)]);
    }
}
