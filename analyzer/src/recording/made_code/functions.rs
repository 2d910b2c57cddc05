//! What is called a function in a layer of code: what names say, and what is known beside them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use super::names::NamesInForce;
use super::page::Page;
use crate::code::MadeFunction;
use crate::recording::pages::PAGE;

/// Unknown bytes within what is called a function where no name says what is one.
const GAP: u64 = 32;

/// The functions of a layer.
#[derive(Debug, Default)]
pub(super) struct Functions<'a> {
    /// Those with names whose first byte is known.
    pub whole: Vec<MadeFunction<'a>>,
    /// Of others what is known, and what is known beside them, called by its address. Where instructions begin in it only addresses of the
    /// recording say.
    pub parts: Vec<MadeFunction<'a>>,
}

/// A function, or what is known of it, and where one with a name begins.
type Known<'a> = (MadeFunction<'a>, Option<u64>);

/// The functions of a layer: those with names, and what is known beside them, called by its address. `names_in`: those that hold in a page.
pub(super) fn functions<'a: 'n, 'n>(
    pages: &BTreeMap<u64, Page>,
    names_in: impl Fn(u64) -> &'n NamesInForce<'a>,
) -> Functions<'a> {
    let mut functions: Vec<Known<'a>> = Vec::new();
    for known in known_ranges(pages) {
        let mut at = known.start;
        while at < known.end {
            let page = at - at % PAGE;
            let page_end = page + PAGE;
            let names = names_in(page);
            // The name that holds the address, or the next one.
            let (function, to) = match names.at(at) {
                // It may begin before what is known.
                Some((start, end, name)) => {
                    let before = functions.last().filter(|(_, of)| at > known.start && *of == Some(start));
                    let first = before.map_or_else(|| first_in_pages(pages, start, at), |((first, ..), _)| *first);
                    (((first, end - first, Cow::Borrowed(name)), Some(start)), end)
                }
                None => {
                    let to = names.next_start(at).map_or(known.end, |start| known.end.min(start)).min(page_end);
                    (((at, to - at, Cow::Owned(format!("[jit {at:#x}]").into_bytes())), None), to)
                }
            };
            push(&mut functions, function, at, known.start);
            at = to.min(page_end);
        }
    }
    let is_whole = |((first, ..), start): &Known<'_>| *start == Some(*first) && is_known(pages, *first);
    let (whole, parts): (Vec<Known<'a>>, Vec<Known<'a>>) = functions.into_iter().partition(is_whole);
    let functions_of = |known: Vec<Known<'a>>| known.into_iter().map(|(function, _)| function).collect();
    Functions { whole: functions_of(whole), parts: functions_of(parts) }
}

/// Adds a function that holds `at`, an address in what is known from `known_from` on. In the next page it may be the last one again, or what is
/// known beside functions may go on; or else names of other times hold there.
fn push<'a>(functions: &mut Vec<Known<'a>>, (function, start): Known<'a>, at: u64, known_from: u64) {
    let (mut first, mut size, name) = function;
    if let Some(((last, last_size, last_name), _)) = functions.last_mut() {
        let last_end = *last + *last_size;
        if *last == first && *last_name == name {
            *last_size = size.max(*last_size);
            return;
        }
        let goes_on =
            matches!((&name, &*last_name), (Cow::Owned(_), Cow::Owned(_))) && last_end == at && at > known_from;
        if goes_on {
            *last_size += size;
            return;
        }
        if last_end > first {
            let cut = first.max(at - at % PAGE);
            (first, size) = (cut, size.saturating_sub(cut - first));
            *last_size = (*last_size).min(cut.saturating_sub(*last));
        }
    }
    functions.push(((first, size, name), start));
}

fn is_known(pages: &BTreeMap<u64, Page>, at: u64) -> bool {
    pages.get(&(at - at % PAGE)).is_some_and(|page| page.knows((at % PAGE) as usize))
}

/// The first address from `start` on that is in the same stretch of pages, one after the other, as `at`.
fn first_in_pages(pages: &BTreeMap<u64, Page>, start: u64, at: u64) -> u64 {
    let mut first = at - at % PAGE;
    while first > start && first >= PAGE && pages.contains_key(&(first - PAGE)) {
        first -= PAGE;
    }
    first.max(start)
}

/// What is known, in one where there is little between.
fn known_ranges(pages: &BTreeMap<u64, Page>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut add = |known: Range<u64>| match ranges.last_mut() {
        Some(last) if known.start - last.end <= GAP => last.end = known.end,
        _ => ranges.push(known),
    };
    for (start, page) in pages {
        for (at, bits) in (*start..).step_by(64).zip(page.0.known) {
            let (mut bits, mut from) = (bits, 0);
            while bits != 0 {
                let first = from + bits.trailing_zeros();
                let length = (bits >> bits.trailing_zeros()).trailing_ones();
                add(at + u64::from(first)..at + u64::from(first + length));
                bits = bits.checked_shr(first - from + length).unwrap_or(0);
                from = first + length;
            }
        }
    }
    ranges
}
