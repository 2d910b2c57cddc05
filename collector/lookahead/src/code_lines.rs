//! Which bytes are decoded, so that writes to them are noticed.

use foldhash::HashMap;

use crate::line_tables::LineTables;
use crate::native::Stubs;

/// Per page (4 KiB), one bit per 64-byte line that holds decoded code.
#[derive(Default)]
pub(crate) struct CodeLines {
    pages: HashMap<u64, u64>,
}

/// What stays with the code from burst to burst and is needed while it runs.
#[derive(Default)]
pub(crate) struct Resident {
    pub(crate) lines: CodeLines,
    pub(crate) stubs: Stubs,
    pub(crate) tables: LineTables,
}

impl CodeLines {
    pub(crate) fn lines_of(&self, page: u64) -> u64 {
        self.pages.get(&page).copied().unwrap_or(0)
    }

    /// Notes that the bytes from `start` to before `end` are decoded.
    pub(crate) fn mark(&mut self, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let next = ((at | 0xfff) + 1).min(end);
            *self.pages.entry(at >> 12).or_default() |= mask(at, (next - at) as usize);
            at = next;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.pages.clear();
    }
}

/// Bits of the lines that `count` bytes at `address` touch; they do not leave the page.
pub(crate) fn mask(address: u64, count: usize) -> u64 {
    if count == 0 {
        return 0;
    }
    let first = (address & 0xfff) / 64;
    let last = ((address & 0xfff) + count as u64 - 1) / 64;
    (u64::MAX << first) & (u64::MAX >> (63 - last.min(63)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_lines_on_both_sides_of_a_page_border() {
        let mut lines = CodeLines::default();
        lines.mark(0x1fc1, 0x2001);
        assert_eq!(lines.lines_of(1), 1 << 63);
        assert_eq!(lines.lines_of(2), 1);
        assert_eq!(mask(0x2040, 64), 0b10);
        assert_eq!(mask(0x203f, 2), 0b11);
    }
}
