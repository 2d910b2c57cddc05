//! Bytes of an address space by page.

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// The parts of `bytes`, the first of which is at an address, that are in one page each; with their addresses.
pub(super) fn pages(at: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let (mut at, mut rest) = (at, bytes);
    std::iter::from_fn(move || {
        let (page, after) = rest.split_at(rest.len().min((PAGE - at % PAGE) as usize));
        let found = (at, page);
        // The last one may end with the last address.
        (at, rest) = (at.wrapping_add(page.len() as u64), after);
        (!page.is_empty()).then_some(found)
    })
}
