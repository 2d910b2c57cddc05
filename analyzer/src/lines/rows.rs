//! The line program of a unit.

use gimli::IncompleteLineProgram;

use super::scopes::Piece;
use super::sections::Bytes;
use super::{Encoding, FileId, Position};

/// Addresses `[start, end)` of one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub start: u64,
    pub end: u64,
    pub position: Position,
}

/// The rows by address, disjoint, and what stopped the reading of the program if it is damaged. Of rows that overlap, which only
/// damaged programs have, the one that starts last has the address.
///
/// A byte of a program can make a row, so only those are kept that have code of a piece. `pieces` are sorted and disjoint, `file_of` gives
/// the file with an index of the program's table.
pub(super) fn rows(
    program: IncompleteLineProgram<Bytes<'_>>,
    encoding: Encoding,
    mut file_of: impl FnMut(u64) -> FileId,
    pieces: &[Piece],
) -> (Vec<Row>, Option<gimli::Error>) {
    let wanted = |row: &Row| {
        let next = pieces.partition_point(|piece| piece.end <= row.start);
        pieces.get(next).is_some_and(|piece| piece.start < row.end)
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut program = program.rows();
    // Linkers put code there that they left out. Modules of the kernel begin there.
    let is_code_at_0 = pieces.first().is_some_and(|piece| piece.start == 0);
    // The row that lasts until the next address.
    let mut open: Option<(Row, u64)> = None;
    let damage = loop {
        let row = match program.next_row() {
            Ok(Some((_, row))) => row,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        let address = row.address();
        if let Some((mut closed, file)) = open.take() {
            closed.end = address;
            if closed.start < closed.end && wanted(&closed) {
                closed.position.file = file_of(file);
                rows.push(closed);
            }
        }
        if !row.end_sequence() && (address != 0 || is_code_at_0) {
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            let discriminator = encoding.decode(u32::try_from(row.discriminator()).unwrap_or(0));
            let position = Position { line, discriminator, ..Position::default() };
            open = Some((Row { start: address, end: address, position }, row.file_index()));
        }
    };
    rows.sort_by_key(|row| row.start);
    let mut next_start = u64::MAX;
    for row in rows.iter_mut().rev() {
        row.end = row.end.min(next_start);
        next_start = row.start;
    }
    rows.retain(|row| row.start < row.end);
    (rows, damage)
}

#[cfg(test)]
mod tests {
    use gimli::{DebugLine, DebugLineOffset, LittleEndian};

    use super::super::ScopeId;
    use super::*;

    #[test]
    fn rows_without_code_of_a_piece_are_not_kept() {
        // The header: version 4, the header's length, instructions of 1 byte, 1 operation each, statements, lines from 0, of 14,
        // opcodes from 4 (those below have 0, 1 and 1 operands), no folders, no files.
        let header = [4, 0, 11, 0, 0, 0, 1, 1, 1, 0, 14, 4, 0, 1, 1, 0, 0];
        // Address 0x1000; 200 rows, each a byte and a line after the last (opcode 4 + 14 + 1); the end a byte later.
        let start = [0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0];
        let instructions = [&start[..], &[19; 200], &[2, 1, 0, 1, 1]].concat();
        let length = (header.len() + instructions.len()) as u32;
        let bytes = [&length.to_le_bytes()[..], &header, &instructions].concat();
        let piece = |start, end| Piece { start, end, scope: ScopeId(0) };
        let pieces = [piece(0x100, 0x200), piece(0x1010, 0x1012), piece(0x1020, 0x1021), piece(0x2000, 0x3000)];
        let section = DebugLine::new(&bytes, LittleEndian);
        let program = section.program(DebugLineOffset(0), 8, None, None).unwrap();
        let (rows, damage) = rows(program, Encoding::Plain, |file| FileId(file as u32 + 1), &pieces);
        assert_eq!(damage, None);
        let found: Vec<_> =
            rows.iter().map(|row| (row.start, row.end, row.position.file.0, row.position.line)).collect();
        assert_eq!(found, [(0x1010, 0x1011, 2, 17), (0x1011, 0x1012, 2, 18), (0x1020, 0x1021, 2, 33)]);
    }
}
