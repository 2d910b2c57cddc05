//! The line program of a unit.

use gimli::IncompleteLineProgram;

use super::sections::Bytes;
use super::{Encoding, Position};

/// Addresses `[start, end)` of one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub start: u64,
    pub end: u64,
    pub position: Position,
}

/// The rows by address, disjoint, and what stopped the reading of the program if it is damaged. Of rows that overlap, which only
/// damaged programs have, the one that starts last has the address.
pub(super) fn rows(program: IncompleteLineProgram<Bytes<'_>>, encoding: Encoding) -> (Vec<Row>, Option<gimli::Error>) {
    let mut rows: Vec<Row> = Vec::new();
    let mut program = program.rows();
    // The row that lasts until the next address, in a sequence that does not start at 0, where linkers put code they left out.
    let mut open: Option<Row> = None;
    let damage = loop {
        let row = match program.next_row() {
            Ok(Some((_, row))) => row,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        let address = row.address();
        if let Some(before) = open.take().filter(|before| before.start < address) {
            rows.push(Row { end: address, ..before });
        }
        if !row.end_sequence() && address != 0 {
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            let discriminator = encoding.decode(u32::try_from(row.discriminator()).unwrap_or(0));
            open = Some(Row { start: address, end: address, position: Position { line, discriminator } });
        }
    };
    rows.sort_by_key(|row| row.start);
    for index in 1..rows.len() {
        rows[index - 1].end = rows[index - 1].end.min(rows[index].start);
    }
    rows.retain(|row| row.start < row.end);
    (rows, damage)
}
