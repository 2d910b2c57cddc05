//! Which pages a thread's next burst is likely to touch.

use std::collections::HashMap;

use addresses::Avma;

/// Pages remembered at most.
const MOST: usize = 512;
/// What a touch adds; scores halve with every burst. A page is expected again when it was touched in both of the last two bursts, or
/// in every other one.
const TOUCH: u8 = 8;
const EXPECTED: u8 = 10;

/// Pages that were touched lately, with a score each.
#[derive(Debug, Default)]
pub(crate) struct WorkingSet {
    scores: HashMap<Avma, u8>,
    expected: Vec<Avma>,
}

impl WorkingSet {
    /// A burst touched these.
    pub(crate) fn touched(&mut self, pages: impl Iterator<Item = Avma>) {
        self.scores.retain(|_, score| {
            *score /= 2;
            *score > 0
        });
        for page in pages {
            if self.scores.len() < MOST || self.scores.contains_key(&page) {
                *self.scores.entry(page).or_default() += TOUCH;
            }
        }
        self.expected.clear();
        self.expected.extend(self.scores.iter().filter(|(_, score)| **score >= EXPECTED).map(|(page, _)| *page));
        // Neighbours are read faster one after the other.
        self.expected.sort_unstable();
    }

    /// The pages to read in advance, ascending.
    pub(crate) fn expected(&self) -> &[Avma] {
        &self.expected
    }

    /// The thread has another program now.
    pub(crate) fn clear(&mut self) {
        self.scores.clear();
        self.expected.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_come_again_are_expected() {
        let mut set = WorkingSet::default();
        let page = |number: u64| Avma(number << 12);
        for burst in 0..20 {
            set.touched([page(7), page(100 + burst), page(5)].into_iter());
        }
        assert_eq!(set.expected(), [page(5), page(7)]);
        // Every other burst is enough, every fourth is not.
        for burst in 0..20 {
            let pages = [(burst % 2 == 0).then_some(page(1)), (burst % 4 == 0).then_some(page(2))];
            set.touched(pages.into_iter().flatten());
        }
        set.touched([page(1), page(2)].into_iter());
        assert_eq!(set.expected(), [page(1)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut set = WorkingSet::default();
        for burst in 0..100 {
            set.touched((0..2000).map(|number| Avma((burst * 2000 + number) << 12)));
            assert!(set.scores.len() <= MOST);
        }
    }
}
