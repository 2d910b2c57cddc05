//! Functions of which the CPU decides which one runs (`STT_GNU_IFUNC`): variants of one function, such as `memcpy` for AVX2 and AVX-512.
//!
//! A resolver looks at the CPU's capabilities and returns the address of a variant. It takes the addresses of all of them:
//! ```text
//! lea  __memmove_evex(%rip), %rax      that is how they are found, in stripped files too
//! lea  __memmove_avx(%rip), %rdx
//! cmove %rdx, %rax
//! ret
//! ```

use std::collections::BTreeSet;

use iced_x86::{CodeSize, Instruction, Mnemonic, OpKind, Register};
use object::LittleEndian as LE;
use object::elf::{SHT_DYNSYM, SHT_SYMTAB, STT_GNU_IFUNC};

use super::symbols::SymbolTable;
use super::{FunctionId, FunctionTable, Image};
use crate::address::Svma;

/// Families of variants: sorted, each of two functions at least. Different resolvers can share variants.
pub fn variants(image: &Image, functions: &FunctionTable) -> Vec<Vec<FunctionId>> {
    let families: BTreeSet<Vec<FunctionId>> = resolvers(image)
        .into_iter()
        .map(|resolver| {
            let taken = addresses_taken(image, functions, resolver);
            let mut family: Vec<FunctionId> = taken.filter_map(|address| entry(functions, address)).collect();
            family.sort_unstable();
            family.dedup();
            family
        })
        .filter(|family| family.len() > 1)
        .collect();
    families.into_iter().collect()
}

fn resolvers(image: &Image) -> BTreeSet<Svma> {
    let mut resolvers = BTreeSet::new();
    for kind in [SHT_SYMTAB, SHT_DYNSYM] {
        let Some(table) = SymbolTable::of(image, kind) else { continue };
        let indirect = table.symbols().iter().filter(|symbol| symbol.st_type() == STT_GNU_IFUNC);
        resolvers.extend(indirect.map(|symbol| Svma(symbol.st_value.get(LE))));
    }
    resolvers
}

fn addresses_taken(image: &Image, functions: &FunctionTable, resolver: Svma) -> impl Iterator<Item = Svma> {
    /// Resolvers are short; a symbol can claim any size.
    const LONGEST: u64 = 4096;
    let size = functions.at(resolver).map_or(0, |id| functions.get(id).end.0 - resolver.0);
    let table = image.global_offset_table();
    let decoder = image.decoder(resolver, size.min(LONGEST));
    decoder.into_iter().filter_map(move |instruction| taken(&instruction, table))
}

/// The address that an instruction takes: relative to itself, or as a constant in programs at fixed addresses; in position-independent
/// code of 32 bits, relative to the global offset table, whose address a register has.
fn taken(instruction: &Instruction, global_offset_table: Option<Svma>) -> Option<Svma> {
    match instruction.mnemonic() {
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => Some(Svma(instruction.ip_rel_memory_address())),
        Mnemonic::Lea
            if instruction.code_size() == CodeSize::Code32 && instruction.memory_index() == Register::None =>
        {
            let distance = instruction.memory_displacement32();
            Some(Svma((global_offset_table?.0 as u32).wrapping_add(distance).into()))
        }
        Mnemonic::Mov
            if instruction.op1_kind() == OpKind::Immediate32to64 || instruction.op1_kind() == OpKind::Immediate32 =>
        {
            Some(Svma(instruction.immediate(1)))
        }
        _ => None,
    }
}

fn entry(functions: &FunctionTable, address: Svma) -> Option<FunctionId> {
    functions.at(address).filter(|&id| functions.get(id).start == address)
}
