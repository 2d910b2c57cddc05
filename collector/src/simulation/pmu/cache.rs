//! Data caches: which loads take long.

use addresses::Avma;

use crate::simulation::pmu::model::{LEVELS, LINE, MEMORY};

/// No line has this number: addresses are shorter.
const EMPTY: u64 = u64::MAX;

/// All levels, each with its lines, least recently used last in their set. What one level drops stays in the others.
#[derive(Debug)]
pub(super) struct Caches {
    levels: [Vec<u64>; LEVELS.len()],
    /// The line that was used last.
    last: u64,
}

impl Default for Caches {
    fn default() -> Self {
        Self { levels: LEVELS.map(|level| vec![EMPTY; level.sets * level.ways]), last: EMPTY }
    }
}

impl Caches {
    /// Uses the line of `address`, and returns how many cycles that takes.
    #[inline]
    pub(super) fn access(&mut self, address: Avma) -> u32 {
        let line = address.0 >> LINE;
        if line == self.last {
            return LEVELS[0].latency;
        }
        self.last = line;
        self.look_up(line)
    }

    fn look_up(&mut self, line: u64) -> u32 {
        for (lines, level) in self.levels.iter_mut().zip(LEVELS) {
            let start = (line as usize & (level.sets - 1)) * level.ways;
            let set = &mut lines[start..start + level.ways];
            let found = set.iter().position(|&held| held == line);
            set[..=found.unwrap_or(level.ways - 1)].rotate_right(1);
            set[0] = line;
            if found.is_some() {
                return level.latency;
            }
        }
        MEMORY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_where_they_still_are() {
        let mut caches = Caches::default();
        let way = |number: u64| Avma(0x10_0000 + number * 4096);
        assert_eq!(caches.access(way(0)), MEMORY);
        assert_eq!(caches.access(Avma(way(0).0 + 63)), 4, "the same line");
        (1..8).for_each(|number| assert_eq!(caches.access(way(number)), MEMORY));
        assert_eq!(caches.access(way(0)), 4, "eight ways");
        assert_eq!(caches.access(way(8)), MEMORY);
        assert_eq!(caches.access(way(1)), 12, "the least recently used has made room");
        assert_eq!(caches.access(way(0)), 4);
    }
}
