//! Code that bursts executed, on its way to who keeps it.

use addresses::Avma;

/// Pieces of code: where they are, and their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutedCode {
    places: Vec<(Avma, u32)>,
    bytes: Vec<u8>,
}

impl ExecutedCode {
    /// Adds a piece.
    pub fn push(&mut self, at: Avma, bytes: &[u8]) {
        self.places.push((at, bytes.len() as u32));
        self.bytes.extend_from_slice(bytes);
    }

    /// Forgets all pieces.
    pub fn clear(&mut self) {
        self.places.clear();
        self.bytes.clear();
    }

    /// Whether there is no piece.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes of memory that it takes.
    pub fn size(&self) -> usize {
        self.places.len() * size_of::<(Avma, u32)>() + self.bytes.len()
    }

    /// The pieces, in the order they were added in.
    pub fn pieces(&self) -> impl Iterator<Item = (Avma, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.places.iter().map(move |(at, length)| {
            let (piece, after) = rest.split_at((*length as usize).min(rest.len()));
            rest = after;
            (*at, piece)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_out_as_they_went_in() {
        let mut code = ExecutedCode::default();
        code.push(Avma(0x1000), &[0x90, 0xc3]);
        code.push(Avma(0x2000), &[0xcc]);
        let pieces: Vec<_> = code.pieces().collect();
        assert_eq!(pieces, [(Avma(0x1000), &[0x90, 0xc3][..]), (Avma(0x2000), &[0xcc])]);
        code.clear();
        assert!(code.is_empty() && code.pieces().next().is_none());
    }
}
