//! Room for code of ours in a process that has no agent: after the kernel's shared object (vdso(7)), whose last page ends in zeros. The
//! kernel gives the process a copy of that page when it is written to.

use addresses::Avma;
use lookahead::PAGE;

use crate::sys::process::Mapping;
use crate::sys::{read_memory, write_code};

/// Zeros that may belong to what comes before: of a header, of a name.
const MARGIN: usize = 32;

/// A place where code was put, and how long that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) start: Avma,
    bytes: usize,
}

/// Why there is no room.
pub(crate) const NO_ROOM: &str = "its vdso has no room for code that maps the agent or unmaps it";

impl Room {
    /// Puts code into the process of a stopped thread, with these mappings, after what is there. What another one has put there is not touched:
    /// its thread may still be on its way.
    pub(crate) fn put(thread: i32, maps: &[Mapping], code: &[u8]) -> Option<Self> {
        let vdso = maps.iter().find(|map| map.path == b"[vdso]")?;
        let page = vdso.end.checked_sub(PAGE as u64).filter(|&page| page >= vdso.start)?;
        let mut content = [0; PAGE];
        read_memory(thread, Avma(page), &mut content).then_some(())?;
        let start = Avma(page + after(&content, code.len())? as u64);
        write_code(thread, start, code).then_some(Self { start, bytes: code.len() })
    }

    /// Whether an address is in it.
    pub(crate) fn contains(self, address: u64) -> bool {
        (self.start.0..self.start.0 + self.bytes as u64).contains(&address)
    }

    /// Clears it. No thread executes the code any more.
    pub(crate) fn clear(self, process: i32) {
        write_code(process, self.start, &vec![0; self.bytes]);
    }
}

/// Where so many bytes have room in a page.
fn after(page: &[u8; PAGE], bytes: usize) -> Option<usize> {
    let used = page.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1 + MARGIN);
    Some(used.next_multiple_of(16)).filter(|start| start + bytes <= PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process::mappings;

    #[test]
    fn code_comes_after_what_is_there() {
        let mut page = [0; PAGE];
        assert_eq!(after(&page, PAGE), Some(0));
        page[99] = 1;
        assert_eq!(after(&page, 100), Some(144));
        assert_eq!((after(&page, PAGE - 144), after(&page, PAGE - 143)), (Some(144), None));
        page[PAGE - 1] = 1;
        assert_eq!(after(&page, 1), None);
    }

    #[test]
    fn in_this_process_the_rest_of_the_page_is_used_and_given_back() {
        let own = std::process::id();
        let maps = mappings(own);
        let put = |code: &[u8]| Room::put(own as i32, &maps, code).unwrap();
        let read = |room: Room| {
            let mut bytes = vec![0; room.bytes];
            assert!(read_memory(own as i32, room.start, &mut bytes));
            bytes
        };
        let (first, second) = (put(&[0xcc; 40]), put(&[0xf4; 24]));
        assert_eq!((read(first), read(second)), (vec![0xcc; 40], vec![0xf4; 24]));
        assert!(second.start.0 >= first.start.0 + 40);
        second.clear(own as i32);
        first.clear(own as i32);
        assert_eq!((read(first), read(second)), (vec![0; 40], vec![0; 24]));
        assert_eq!(put(&[0xcc; 40]).start, first.start);
        first.clear(own as i32);
    }
}
