//! Addresses that several have, given to one of them.

use std::collections::BinaryHeap;

use super::Span;
use crate::address::Svma;

/// Cuts ranges `[start, end)`, sorted by start, into disjoint pieces: start, end, and the index of the range that has the piece. Of those that
/// reach there it is the one of the highest rank, of equal ones the last.
pub(super) fn owned<R: Ord>(
    ranges: impl ExactSizeIterator<Item = (u64, u64, R)> + Clone,
    mut visit: impl FnMut(u64, u64, usize),
) {
    let limits = ranges.clone().skip(1).map(|(start, ..)| start).chain([u64::MAX]);
    // Ranges that may reach on, the owner on top.
    let mut open = BinaryHeap::new();
    for (index, ((start, end, rank), limit)) in ranges.zip(limits).enumerate() {
        let mut position = start;
        open.push((rank, index, end));
        while let Some(&(_, owner, end)) = open.peek() {
            let end = end.min(limit);
            if position < end {
                visit(position, end, owner);
                position = end;
            }
            if limit <= position {
                break;
            }
            open.pop();
        }
    }
}

/// Makes spans disjoint and sorts them. Units do not share code, as a rule; where they do (identical functions folded into one), an address
/// belongs to the last unit that has it: one copy has all of the code. Scopes count on from unit to unit, so that is the span with the
/// last scope.
/// ```text
/// first unit  |----------|-----------|          |-|             |-|
/// last unit     |------|---------|          ->    |------|-------|
/// ```
pub(super) fn disjoint(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.start);
    let mut found: Vec<Span> = Vec::with_capacity(spans.len());
    let ranges = spans.iter().map(|span| (span.start.0, span.end.0, span.scope));
    owned(ranges, |start, end, owner| {
        let Some(owner) = spans.get(owner) else { return };
        let piece = Span { start: Svma(start), end: Svma(end), ..*owner };
        let same =
            |last: &&mut Span| (last.end, last.scope, last.position) == (piece.start, piece.scope, piece.position);
        match found.last_mut().filter(same) {
            Some(last) => last.end = piece.end,
            None => found.push(piece),
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::super::{Position, ScopeId};
    use super::*;

    fn check(spans: &[(u64, u64, u32, u32)], expected: &[(u64, u64, u32, u32)]) {
        let span = |&(start, end, scope, line)| Span {
            start: Svma(start),
            end: Svma(end),
            scope: ScopeId(scope),
            position: Position { line, ..Position::default() },
        };
        let found: Vec<_> = disjoint(spans.iter().map(span).collect())
            .iter()
            .map(|span| (span.start.0, span.end.0, span.scope.0, span.position.line))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn folded_functions_belong_to_the_last_unit() {
        check(&[], &[]);
        // Two copies whose lines change at different addresses, and the other way around.
        let (one, two) = ([(0, 3, 0, 1), (3, 10, 0, 2)], [(0, 4, 1, 5), (4, 10, 1, 6)]);
        check(&[one, two].concat(), &two);
        let (one, two) = ([(0, 3, 1, 1), (3, 10, 1, 2)], [(0, 4, 0, 5), (4, 10, 0, 6)]);
        check(&[one, two].concat(), &one);
    }

    #[test]
    fn what_is_around_shared_code_is_kept() {
        check(&[(0, 20, 0, 1), (5, 10, 1, 2)], &[(0, 5, 0, 1), (5, 10, 1, 2), (10, 20, 0, 1)]);
        check(&[(0, 20, 1, 1), (5, 10, 0, 2), (12, 25, 0, 3)], &[(0, 20, 1, 1), (20, 25, 0, 3)]);
        check(
            &[(0, 9, 2, 1), (1, 30, 0, 2), (2, 20, 1, 3), (40, 50, 0, 4)],
            &[(0, 9, 2, 1), (9, 20, 1, 3), (20, 30, 0, 2), (40, 50, 0, 4)],
        );
    }

    #[test]
    fn spans_that_only_touch_are_as_they_were() {
        let spans = [(0, 3, 0, 1), (3, 4, 0, 2), (4, 6, 1, 2), (8, 9, 1, 2)];
        check(&spans, &spans);
    }
}
