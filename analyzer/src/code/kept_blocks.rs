//! Blocks as they are kept: to cut them again takes long, and each is told in some bytes by how far it is from the one before.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::block::{Block, Evidence, Terminator};
use super::{FunctionId, kept};
use crate::address::Svma;

/// Of a block: bytes from the end of the one before, its own bytes, those before its last instruction, how many instructions, how many
/// functions further it is, and how it ends and was found.
type Packed = (u64, u64, u64, u32, u32, (Terminator, Evidence));

/// Blocks that are sorted and disjoint, those of one function beside each other.
pub(super) struct KeptBlocks<'a>(pub &'a [Block]);

/// The blocks of [`KeptBlocks`] again.
pub(super) struct ReadBlocks(pub Vec<Block>);

fn ends_of(before: Option<&Block>) -> (Svma, FunctionId) {
    before.map_or((Svma(0), FunctionId(0)), |block| (block.end, block.function))
}

fn packed(block: &Block, before: Option<&Block>) -> Packed {
    let (end, function) = ends_of(before);
    let gap = block.start.0.wrapping_sub(end.0);
    let (size, last) = (block.end.0.wrapping_sub(block.start.0), block.last.0.wrapping_sub(block.start.0));
    let further = block.function.0.wrapping_sub(function.0);
    (gap, size, last, block.instructions, further, (block.terminator, block.evidence))
}

/// `None` where it is no block that could come after the other one.
fn unpacked(packed: Packed, before: Option<&Block>) -> Option<Block> {
    let (gap, size, last, instructions, further, (terminator, evidence)) = packed;
    let (end, function) = ends_of(before);
    if last >= size || instructions == 0 {
        return None;
    }
    let start = end.0.checked_add(gap)?;
    Some(Block {
        start: Svma(start),
        end: Svma(start.checked_add(size)?),
        last: Svma(start.checked_add(last)?),
        instructions,
        function: FunctionId(function.0.checked_add(further)?),
        terminator,
        evidence,
    })
}

impl Serialize for KeptBlocks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        kept::write(self.0, packed, serializer)
    }
}

impl<'de> Deserialize<'de> for ReadBlocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        kept::read(deserializer, unpacked).map(ReadBlocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, end: u64, last: u64, function: u32, terminator: Terminator) -> Block {
        let (start, end, last, function) = (Svma(start), Svma(end), Svma(last), FunctionId(function));
        Block { start, end, last, instructions: 2, function, terminator, evidence: Evidence::Swept }
    }

    #[test]
    fn blocks_are_the_same_again() {
        let blocks = [
            block(0x40_1000, 0x40_1005, 0x40_1003, 3, Terminator::Conditional),
            block(0x40_1005, 0x40_1006, 0x40_1005, 3, Terminator::Overlap),
            block(0x40_2000, u64::MAX, 0x40_2001, 9, Terminator::Return),
        ];
        let text = serde_json::to_string(&KeptBlocks(&blocks)).unwrap();
        assert_eq!(serde_json::from_str::<ReadBlocks>(&text).unwrap().0, blocks);
        assert_eq!(serde_json::from_str::<ReadBlocks>("[]").unwrap().0, []);
    }

    #[test]
    fn what_can_be_no_block_is_refused() {
        let read = |block: &str| {
            let block = format!("[[16, 4, 3, 1, 1, [\"Return\", \"Reached\"]], {block}]");
            serde_json::from_str::<ReadBlocks>(&block).map(|ReadBlocks(blocks)| blocks.len()).ok()
        };
        let kind = "[\"Jump\", \"Swept\"]";
        assert_eq!(read(&format!("[0, 1, 0, 1, 0, {kind}]")), Some(2));
        for (what, numbers) in [
            ("no bytes", "0, 0, 0, 1, 0".to_owned()),
            ("its last instruction after its end", "0, 4, 4, 1, 0".to_owned()),
            ("no instructions", "0, 4, 0, 0, 0".to_owned()),
            ("a start beyond all addresses", format!("{}, 4, 0, 1, 0", u64::MAX)),
            ("an end beyond all addresses", format!("0, {}, 0, 1, 0", u64::MAX)),
            ("a function beyond all", format!("0, 4, 0, 1, {}", u32::MAX)),
        ] {
            assert_eq!(read(&format!("[{numbers}, {kind}]")), None, "{what}");
        }
    }
}
