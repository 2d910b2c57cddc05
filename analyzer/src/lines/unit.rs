//! What one unit says of the code that was hit.

use std::collections::BTreeSet;
use std::ops::Range;

use gimli::IncompleteLineProgram;

use super::files::Files;
use super::functions::Functions;
use super::rows::{Row, rows};
use super::scopes::{Piece, Scopes, scopes};
use super::split::SplitFiles;
use super::strings::string;
use super::units::{DebugFile, OpenUnit};
use super::{Encoding, FileId, Position, Scope, SourceFunction, Span};
use crate::address::Svma;

/// The source of a unit's functions that were hit. Indices count within the unit.
#[derive(Default)]
pub(super) struct UnitSource {
    /// Paths of the files, the one of id 1 first.
    pub files: Vec<String>,
    pub functions: Vec<SourceFunction>,
    pub scopes: Vec<Scope>,
    pub spans: Vec<Span>,
    /// What was damaged or missing, in words.
    pub notes: Vec<String>,
}

/// Reads a unit. `line_starts` are the offsets of all line programs.
pub(super) fn read_unit<'data>(
    file: &DebugFile<'data>,
    index: usize,
    split: &SplitFiles<'data>,
    line_starts: &BTreeSet<usize>,
    flow_sensitive: bool,
    hit: &impl Fn(&Range<u64>) -> bool,
) -> UnitSource {
    let mut source = UnitSource::default();
    let opened = match file.open(index) {
        Ok(opened) => opened,
        Err(error) => {
            source.notes.push(format!("a unit of debug information cannot be opened: {error}"));
            return source;
        }
    };
    let program = file.line_program(&opened, line_starts);
    let header = program.as_ref().and_then(|program| program.as_ref().ok()).map(IncompleteLineProgram::header);
    let mut files = Files::of(file, &opened, header);
    let mut file_of = |index| files.at(index);
    let part = split.read(file, &opened, |file, opened| read_entries(file, opened, flow_sensitive, &mut file_of, hit));
    let (encoding, functions, found) = match part {
        None => read_entries(file, &opened, flow_sensitive, &mut file_of, hit),
        Some(Ok(read)) => read,
        Some(Err(why)) => {
            source.notes.push(format!("split debug information is missing: {why}"));
            return source;
        }
    };
    if let Some(error) = found.damage {
        source.notes.push(format!("a unit of debug information is damaged: {error}"));
    }
    let (rows, damage) = match program {
        Some(Ok(program)) => rows(program, encoding, file_of, &found.pieces),
        Some(Err(error)) => (Vec::new(), Some(error)),
        None => (Vec::new(), None),
    };
    if let Some(error) = damage {
        source.notes.push(format!("a line program is damaged: {error}"));
    }
    if files.is_exhausted() {
        source.notes.push("a line program states longer paths than its bytes could hold".into());
    }
    source.spans = spans(&found.pieces, &rows);
    source.files = files.into_paths();
    source.functions = functions;
    source.scopes = found.scopes;
    source
}

fn read_entries<'data>(
    file: &DebugFile<'data>,
    opened: &OpenUnit<'data>,
    flow_sensitive: bool,
    file_of: impl FnMut(u64) -> FileId,
    hit: &impl Fn(&Range<u64>) -> bool,
) -> (Encoding, Vec<SourceFunction>, Scopes) {
    let producer = opened.root.attr_value(gimli::DW_AT_producer);
    let producer = producer.and_then(|value| string(&file.dwarf, &opened.unit, value)).unwrap_or_default();
    let encoding = match Encoding::of_producer(&String::from_utf8_lossy(producer)) {
        Encoding::Prefixed if flow_sensitive => Encoding::FlowSensitive,
        other => other,
    };
    let mut functions = Functions::new(file, opened);
    let found = scopes(&file.dwarf, &opened.unit, encoding, &mut functions, file_of, hit);
    (encoding, functions.into_list(), found)
}

/// Pieces cut where the position changes. Both sorted and disjoint; what no row covers has line 0.
fn spans(pieces: &[Piece], rows: &[Row]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut rows = rows;
    for piece in pieces {
        let mut push = |start: u64, end: u64, position: Position| {
            let same = |last: &&mut Span| last.end.0 == start && last.scope == piece.scope && last.position == position;
            match spans.last_mut().filter(same) {
                Some(last) => last.end = Svma(end),
                None if start < end => {
                    spans.push(Span { start: Svma(start), end: Svma(end), scope: piece.scope, position });
                }
                None => {}
            }
        };
        rows = rows.get(rows.partition_point(|row| row.end <= piece.start)..).unwrap_or_default();
        let mut position = piece.start;
        for row in rows.iter().take_while(|row| row.start < piece.end) {
            push(position, row.start, Position::default());
            position = row.end.min(piece.end);
            push(row.start.max(piece.start), position, row.position);
        }
        push(position, piece.end, Position::default());
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::super::ScopeId;
    use super::*;

    #[test]
    fn pieces_are_cut_where_the_line_changes() {
        let piece = |start, end, scope| Piece { start, end, scope: ScopeId(scope) };
        let row = |start, end, line| Row { start, end, position: Position { line, ..Position::default() } };
        let pieces = [piece(0, 10, 0), piece(10, 14, 1), piece(14, 20, 0), piece(30, 40, 2)];
        let rows = [row(2, 6, 7), row(6, 12, 8), row(12, 14, 8), row(14, 16, 9), row(29, 35, 1), row(38, 50, 2)];
        let found: Vec<_> =
            spans(&pieces, &rows).iter().map(|s| (s.start.0, s.end.0, s.scope.0, s.position.line)).collect();
        let expected = [
            (0, 2, 0, 0),
            (2, 6, 0, 7),
            (6, 10, 0, 8),
            (10, 14, 1, 8),
            (14, 16, 0, 9),
            (16, 20, 0, 0),
            (30, 35, 2, 1),
            (35, 38, 2, 0),
            (38, 40, 2, 2),
        ];
        assert_eq!(found, expected);
    }
}
