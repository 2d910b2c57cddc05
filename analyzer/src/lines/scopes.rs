//! Functions and what was inlined into them.

use std::ops::Range;

use gimli::{AttributeValue, Dwarf, EntriesRaw, UnitOffset};

use super::damage::{Damage, MOST_ATTRIBUTES};
use super::disjoint::owned;
use super::functions::Functions;
use super::ranges::{RangeAttributes, read_ranges};
use super::sections::{Bytes, Unit};
use super::{Encoding, FileId, Position, Scope, ScopeId};
use crate::address::Svma;

/// Deepest nesting of inlined functions that is followed; what is deeper counts for the function around it.
const DEEPEST: u16 = 500;

/// Addresses `[start, end)` of which a scope is the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub start: u64,
    pub end: u64,
    pub scope: ScopeId,
}

/// The scopes of a unit's functions that were hit; callers come before what was inlined into them.
pub(super) struct Scopes {
    pub scopes: Vec<Scope>,
    /// The addresses of the scopes, sorted and disjoint.
    pub pieces: Vec<Piece>,
    /// What ended the reading early.
    pub damage: Option<Damage>,
}

/// An entry for a function that entries below it belong to, in the order of nesting.
struct Open {
    depth: isize,
    /// None where no code of it was hit.
    scope: Option<ScopeId>,
    nesting: u16,
}

/// Attributes of a subprogram or an inlined subroutine.
#[derive(Default)]
struct Attributes<'data> {
    ranges: RangeAttributes<'data>,
    origin: Option<UnitOffset>,
    call: Position,
    call_file: Option<u64>,
}

/// Reads the tree of entries. `file_of` gives the file with an index of the unit's table, `hit` says whether code of a range was executed.
pub(super) fn scopes<'data>(
    dwarf: &Dwarf<Bytes<'data>>,
    unit: &Unit<'data>,
    encoding: Encoding,
    functions: &mut Functions<'_, 'data>,
    file_of: impl FnMut(u64) -> FileId,
    hit: &impl Fn(&Range<u64>) -> bool,
) -> Scopes {
    let mut found = Scopes { scopes: Vec::new(), pieces: Vec::new(), damage: None };
    found.damage = walk(dwarf, unit, encoding, functions, file_of, hit, &mut found).err();
    found.pieces = innermost(std::mem::take(&mut found.pieces));
    found
}

/// Pieces are in the order of their entries, as they nest: of those with the same start the inner one is later.
fn walk<'data>(
    dwarf: &Dwarf<Bytes<'data>>,
    unit: &Unit<'data>,
    encoding: Encoding,
    functions: &mut Functions<'_, 'data>,
    mut file_of: impl FnMut(u64) -> FileId,
    hit: &impl Fn(&Range<u64>) -> bool,
    found: &mut Scopes,
) -> Result<(), Damage> {
    let mut fuel = 4 * unit.header.length_including_self() + 1024;
    let mut entries = unit.entries_raw(None)?;
    let mut open: Vec<Open> = Vec::new();
    while !entries.is_empty() {
        let (depth, offset) = (entries.next_depth(), entries.next_offset());
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        let specifications = abbreviation.attributes();
        if specifications.len() > MOST_ATTRIBUTES {
            return Err(Damage::Attributes(specifications.len()));
        }
        while open.last().is_some_and(|around| around.depth >= depth) {
            open.pop();
        }
        let around = open.last().and_then(|around| Some((around.scope?, around.nesting)));
        let caller = match abbreviation.tag() {
            gimli::DW_TAG_subprogram => None,
            gimli::DW_TAG_inlined_subroutine if around.is_some_and(|(_, nesting)| nesting < DEEPEST) => around,
            _ => {
                entries.skip_attributes(specifications)?;
                continue;
            }
        };
        let attributes = read_attributes(&mut entries, specifications, encoding)?;
        let mut own = Vec::new();
        read_ranges(dwarf, unit, &attributes.ranges, &mut fuel, |range| own.push(range))?;
        // Linkers put code there that they left out.
        own.retain(|range| range.start != 0 || hit(range));
        let nesting = caller.map_or(0, |(_, nesting)| nesting + 1);
        let Some(entry) =
            own.first().filter(|_| caller.is_some() || own.iter().any(hit)).map(|range| Svma(range.start))
        else {
            if caller.is_none() {
                open.push(Open { depth, scope: None, nesting });
            }
            continue;
        };
        let scope = ScopeId(u32::try_from(found.scopes.len()).map_err(|_| gimli::Error::UnsupportedOffset)?);
        // What was inlined is described where its entry refers to; that of a function with code of its own may say more itself.
        let described = match attributes.origin {
            Some(origin) if caller.is_some() => origin,
            _ => offset,
        };
        let function = functions.of(unit, described)?;
        let caller = caller.map(|(around, _)| {
            let file = attributes.call_file.map_or(FileId::default(), &mut file_of);
            (around, Position { file, ..attributes.call })
        });
        found.scopes.push(Scope { caller, function, entry });
        found.pieces.extend(own.iter().map(|range| Piece { start: range.start, end: range.end, scope }));
        open.push(Open { depth, scope: Some(scope), nesting });
    }
    Ok(())
}

fn read_attributes<'data>(
    entries: &mut EntriesRaw<'_, Bytes<'data>>,
    specifications: &[gimli::AttributeSpecification],
    encoding: Encoding,
) -> Result<Attributes<'data>, gimli::Error> {
    let mut attributes = Attributes::default();
    for &specification in specifications {
        let attribute = entries.read_attribute(specification)?;
        let number = || attribute.udata_value().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        match attribute.name() {
            gimli::DW_AT_low_pc => attributes.ranges.low = Some(attribute.value()),
            gimli::DW_AT_high_pc => attributes.ranges.high = Some(attribute.value()),
            gimli::DW_AT_ranges => attributes.ranges.list = Some(attribute.value()),
            gimli::DW_AT_call_file => attributes.call_file = file_index(attribute.value()),
            gimli::DW_AT_call_line => attributes.call.line = number(),
            gimli::DW_AT_GNU_discriminator => attributes.call.discriminator = encoding.decode(number()),
            gimli::DW_AT_abstract_origin => {
                if let AttributeValue::UnitRef(origin) = attribute.value() {
                    attributes.origin = Some(origin);
                }
            }
            _ => {}
        }
    }
    Ok(attributes)
}

fn file_index(value: AttributeValue<Bytes<'_>>) -> Option<u64> {
    match value {
        AttributeValue::FileIndex(index) => Some(index),
        other => other.udata_value(),
    }
}

/// Makes the ranges disjoint: an address belongs to the range that starts last, of those with the same start to the one that comes
/// last; as ranges of entries nest, that is the innermost.
/// ```text
/// f  |----------------------|        f |---|        |---|      |
/// g      |--------|  |--|       ->   g     |-|   |--|   |--|
/// h        |---|                     h       |---|
/// ```
fn innermost(mut ranges: Vec<Piece>) -> Vec<Piece> {
    ranges.sort_by_key(|range| range.start);
    let mut pieces: Vec<Piece> = Vec::with_capacity(ranges.len());
    owned(ranges.iter().map(|range| (range.start, range.end, ())), |start, end, owner| {
        pieces.extend(ranges.get(owner).map(|range| Piece { start, end, scope: range.scope }));
    });
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ranges: &[(u64, u64, u32)], expected: &[(u64, u64, u32)]) {
        let ranges = ranges.iter().map(|&(start, end, scope)| Piece { start, end, scope: ScopeId(scope) }).collect();
        let pieces: Vec<_> = innermost(ranges).iter().map(|piece| (piece.start, piece.end, piece.scope.0)).collect();
        assert_eq!(pieces, expected);
    }

    #[test]
    fn an_address_belongs_to_the_innermost_scope() {
        check(&[], &[]);
        check(&[(1, 9, 0)], &[(1, 9, 0)]);
        check(
            &[(0, 24, 0), (4, 13, 1), (16, 20, 1), (6, 11, 2)],
            &[(0, 4, 0), (4, 6, 1), (6, 11, 2), (11, 13, 1), (13, 16, 0), (16, 20, 1), (20, 24, 0)],
        );
        // A call at the very beginning, one up to the very end, and all of a function inlined.
        check(&[(0, 9, 0), (0, 3, 1), (5, 9, 2)], &[(0, 3, 1), (3, 5, 0), (5, 9, 2)]);
        check(&[(0, 9, 0), (0, 9, 1), (0, 9, 2)], &[(0, 9, 2)]);
        // Two functions, apart.
        check(&[(20, 30, 1), (0, 10, 0)], &[(0, 10, 0), (20, 30, 1)]);
    }

    #[test]
    fn ranges_that_do_not_nest_are_disjoint_too() {
        check(&[(0, 10, 0), (5, 15, 1)], &[(0, 5, 0), (5, 15, 1)]);
        check(&[(0, 20, 0), (5, 10, 1), (8, 12, 2)], &[(0, 5, 0), (5, 8, 1), (8, 12, 2), (12, 20, 0)]);
    }
}
