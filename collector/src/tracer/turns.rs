//! Some of many at a time, where all would take too long.

/// Whose turn it is.
#[derive(Debug, Default)]
pub(crate) struct Turns(usize);

impl Turns {
    /// Those of `all` whose turn it is, `at_a_time` at most. After as many calls as it takes, each had its turn.
    pub(crate) fn next<I>(&mut self, all: I, at_a_time: usize) -> impl Iterator<Item = I::Item> + use<I>
    where
        I: ExactSizeIterator,
    {
        let turn = self.0 % all.len().div_ceil(at_a_time).max(1);
        self.0 = self.0.wrapping_add(1);
        all.skip(turn * at_a_time).take(at_a_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_turn() {
        let mut turns = Turns::default();
        let mut of = |count: usize| turns.next(0..count, 3).collect::<Vec<_>>();
        assert_eq!([of(7), of(7), of(7), of(7)], [vec![0, 1, 2], vec![3, 4, 5], vec![6], vec![0, 1, 2]]);
        // There are fewer by now.
        assert_eq!([of(2), of(0), of(3)], [vec![0, 1], vec![], vec![0, 1, 2]]);
    }
}
