//! Which of many lines is chosen, and which are seen.

/// The chosen line of a list, and the first one on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub at: usize,
    pub top: usize,
}

/// Where to go in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

impl Cursor {
    /// Goes through a list of `length` lines, of which `height` are seen.
    pub fn go(&mut self, motion: Motion, length: usize, height: usize) {
        // One line of a page stays to be seen.
        let page = height.saturating_sub(1).max(1);
        self.at = match motion {
            Motion::Up => self.at.saturating_sub(1),
            Motion::Down => self.at.saturating_add(1),
            Motion::PageUp => self.at.saturating_sub(page),
            Motion::PageDown => self.at.saturating_add(page),
            Motion::First => 0,
            Motion::Last => usize::MAX,
        };
        self.show(length, height);
    }

    /// Makes the chosen line one of the list and of the screen.
    pub fn show(&mut self, length: usize, height: usize) {
        self.at = self.at.min(length.saturating_sub(1));
        self.top = self.top.min(length.saturating_sub(height)).min(self.at);
        self.top = self.top.max((self.at + 1).saturating_sub(height.max(1)));
    }
}

/// The next line, in a circle, after (or before) `at` that a test holds for.
pub fn next(length: usize, at: usize, backwards: bool, is_it: impl Fn(usize) -> bool) -> Option<usize> {
    let step = |away: usize| if backwards { (at + length - away) % length } else { (at + away) % length };
    (1..=length).map(step).find(|line| is_it(*line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_line_is_always_seen() {
        let mut cursor = Cursor::default();
        let mut went = |motion, length, height| {
            cursor.go(motion, length, height);
            (cursor.at, cursor.top)
        };
        assert_eq!(went(Motion::Up, 10, 4), (0, 0));
        assert_eq!(went(Motion::PageDown, 10, 4), (3, 0));
        assert_eq!(went(Motion::Down, 10, 4), (4, 1));
        assert_eq!(went(Motion::Last, 10, 4), (9, 6));
        assert_eq!(went(Motion::PageUp, 10, 4), (6, 6));
        assert_eq!(went(Motion::Up, 10, 4), (5, 5));
        // The screen got larger, smaller, nothing; the list got shorter, empty.
        assert_eq!(went(Motion::Down, 10, 40), (6, 0));
        assert_eq!(went(Motion::Down, 10, 1), (7, 7));
        assert_eq!(went(Motion::Down, 10, 0), (8, 8));
        assert_eq!(went(Motion::Down, 3, 4), (2, 0));
        assert_eq!(went(Motion::Last, 0, 4), (0, 0));
    }

    #[test]
    fn searches_go_round() {
        let even = |line: usize| line.is_multiple_of(2);
        assert_eq!(next(5, 0, false, even), Some(2));
        assert_eq!(next(5, 4, false, even), Some(0));
        assert_eq!(next(5, 0, true, even), Some(4));
        assert_eq!(next(5, 2, false, |line| line == 2), Some(2));
        assert_eq!(next(5, 2, false, |_| false), None);
        assert_eq!(next(0, 0, true, |_| true), None);
    }
}
