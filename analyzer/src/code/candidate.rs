//! What a symbol, an entry of the procedure linkage table or an unwind entry claims to be a function.

use object::LittleEndian as LE;
use object::elf::{STB_GLOBAL, STB_GNU_UNIQUE, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym64};

use super::function::Origin;
use super::made_elf::STT_PART;
use super::names::Name;
use crate::address::Svma;

/// A claim: these addresses are a function of this name. `end == start` as long as the size is not known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub start: Svma,
    pub end: Svma,
    pub rank: Rank,
    pub origin: Origin,
    pub has_known_end: bool,
    pub name: Name,
}

/// How good a symbol is as the name of the code at its address; smaller is better.
///
/// Typed before untyped (a label of assembly code), then global, weak, local: of `__write`, `__libc_write`
/// and `write` the table shows the global one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(u8);

impl Rank {
    pub const PLT: Self = Self(0x0f);

    pub fn of(symbol: &Sym64<LE>) -> Option<Self> {
        let kind = match symbol.st_type() {
            STT_FUNC | STT_GNU_IFUNC | STT_PART => 0,
            STT_NOTYPE => 0x10,
            _ => return None,
        };
        let binding = match symbol.st_bind() {
            STB_GLOBAL | STB_GNU_UNIQUE => 0,
            STB_WEAK => 1,
            _ => 2,
        };
        Some(Self(kind | binding))
    }
}
