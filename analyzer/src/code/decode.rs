//! Bytes to instructions.

use iced_x86::{Decoder, Instruction};

use super::{Block, Image};
use crate::address::Svma;

/// Longest x86 instruction, in bytes.
pub(crate) const LONGEST_INSTRUCTION: u64 = 15;

/// Decodes the bytes of one range of code at any offset.
pub(super) struct CodeDecoder<'image> {
    decoder: Decoder<'image>,
    start: Svma,
    instruction: Instruction,
}

impl<'image> CodeDecoder<'image> {
    /// A range outside of the image decodes to nothing.
    pub fn new(image: &'image Image, start: Svma, size: u64) -> Self {
        Self { decoder: image.decoder(start, size), start, instruction: Instruction::default() }
    }

    /// The instruction at an offset; `None` if there is none that ends inside the range.
    pub fn at(&mut self, offset: usize) -> Option<&Instruction> {
        if self.decoder.position() != offset {
            self.decoder.set_position(offset).ok()?;
            self.decoder.set_ip(self.start.0.wrapping_add(offset as u64));
        }
        if !self.decoder.can_decode() {
            return None;
        }
        self.decoder.decode_out(&mut self.instruction);
        (!self.instruction.is_invalid()).then_some(&self.instruction)
    }
}

/// Decodes the instructions of a block, [`Block::instructions`] of them unless the image is another one.
///
/// The last instruction of a block that ends with [`Terminator::Overlap`](super::Terminator::Overlap) reaches beyond
/// [`Block::end`].
pub fn instructions<'image>(image: &'image Image, block: &Block) -> impl Iterator<Item = Instruction> + use<'image> {
    let size = (block.last.0 - block.start.0).saturating_add(LONGEST_INSTRUCTION);
    let last = block.last.0;
    let decoder = image.decoder(block.start, size);
    decoder.into_iter().take_while(move |instruction| instruction.ip() <= last && !instruction.is_invalid())
}
