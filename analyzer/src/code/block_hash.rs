//! What the code of a block is, wherever it lies.

use std::hash::{DefaultHasher, Hash, Hasher};

use iced_x86::{Instruction, Mnemonic, OpKind};

use super::{Block, Image, instructions};
use crate::address::Svma;

/// A hash of the instructions of a block, with registers and constants, and without what the next build puts elsewhere: addresses (of branches,
/// of data, and where the file states at which addresses it is loaded, in constants) and padding. It is for comparisons within one process.
pub(crate) fn block_hash(image: &Image, block: &Block) -> u64 {
    let mut hasher = DefaultHasher::new();
    let code = instructions(image, block).filter(|instruction| instruction.mnemonic() != Mnemonic::Nop);
    code.for_each(|instruction| without_addresses(instruction, image).hash(&mut hasher));
    hasher.finish()
}

/// An instruction with 0 in place of each address.
fn without_addresses(mut code: Instruction, image: &Image) -> Instruction {
    // How far away the target is decides which form a jump has.
    code.as_near_branch();
    for operand in 0..code.op_count() {
        match code.op_kind(operand) {
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64 => code.set_near_branch64(0),
            OpKind::Immediate32 | OpKind::Immediate32to64 if is_address(image, code.immediate(operand)) => {
                code.set_immediate32(0);
            }
            OpKind::Immediate64 if is_address(image, code.immediate64()) => code.set_immediate64(0),
            OpKind::Memory if code.is_ip_rel_memory_operand() || is_address(image, code.memory_displacement64()) => {
                code.set_memory_displacement64(0);
            }
            _ => {}
        }
    }
    code
}

/// Whether a constant may be an address of the file: never in one that is loaded anywhere, whose addresses begin at 0.
fn is_address(image: &Image, value: u64) -> bool {
    let base = image.base_vaddr();
    let is_in = |start: Svma, size: u64| value >= start.0 && value - start.0 < size;
    base.0 > 0
        && value >= base.0
        && (image.segments().iter().any(|segment| is_in(segment.start, segment.size))
            || image.sections().iter().any(|section| is_in(section.start, section.size)))
}

#[cfg(test)]
mod tests {
    use super::super::Observed;
    use super::*;
    use crate::synthetic::{Elf, TEXT, at, build, code, function};

    /// The hash of the first block of some code, which is somewhere in a file.
    fn hash(code_of_block: &[u8], before: usize) -> u64 {
        let bytes = [vec![0x90; before], code_of_block.to_vec(), vec![0xc3; 0x200]].concat();
        let start = TEXT + before as u64;
        let file: Elf = code(&bytes, vec![function("f", start, code_of_block.len() as u64 + 0x200)]);
        let image = file.image();
        let starts = at(&[before as u64]);
        let (_, map) = build(&image, &Observed { targets: starts, ..Observed::default() });
        block_hash(&image, &map.blocks()[map.block_at(Svma(start)).unwrap()])
    }

    #[test]
    fn code_that_moved_is_the_same() {
        // add eax, 1; mov edx, [rip+0x40]; je +0x10
        let block = [0x83, 0xc0, 1, 0x8b, 0x15, 0x40, 0, 0, 0, 0x74, 0x10];
        assert_eq!(hash(&block, 0), hash(&block, 64));
        // Data and the target are further away, and before it is padding.
        let further = [0x66, 0x90, 0x83, 0xc0, 1, 0x8b, 0x15, 0x48, 0, 0, 0, 0x0f, 0x84, 0, 1, 0, 0];
        assert_eq!(hash(&block, 0), hash(&further, 16));
        // mov edi, TEXT; mov [TEXT+8], eax; ret: addresses of the file, and the same of others.
        let absolute = |low: u8| [0xbf, low, 0x10, 0x40, 0, 0x89, 0x04, 0x25, low + 8, 0x10, 0x40, 0, 0xc3];
        assert_eq!(hash(&absolute(0), 0), hash(&absolute(16), 0));
    }

    #[test]
    fn other_code_is_not() {
        let block = [0x83, 0xc0, 1, 0x8b, 0x57, 8, 0x74, 0x10];
        // Another constant, register, displacement, condition; one instruction more.
        for (at, byte) in [(2, 2), (1, 0xc1), (5, 16), (6, 0x75)] {
            let mut other = block;
            other[at] = byte;
            assert_ne!(hash(&block, 0), hash(&other, 0), "{at}");
        }
        let longer = [&[0xff, 0xc1][..], &block].concat();
        assert_ne!(hash(&block, 0), hash(&longer, 0));
    }
}
