//! A function of an image.

use serde::{Deserialize, Serialize};

use super::names::Name;
use crate::address::Svma;

/// Index of a function in its [`FunctionTable`](super::FunctionTable).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// Where a function's range comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// A symbol of `.symtab` (of the file or of its separate debug file).
    Symbol,
    /// A symbol of `.dynsym`.
    DynamicSymbol,
    /// An entry of the procedure linkage table.
    Plt,
    /// An unwind entry where no symbol is.
    EhFrame,
    /// Code that nothing describes: where it has functions and instructions is not known.
    Gap,
    /// A symbol of a part of a function, or of code around it (`STT_PART` of `made_elf`): its first byte may be amid an instruction.
    Part,
}

/// A function, or the part of one that no other symbol lies in: `[start, end)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// The first address of the range.
    pub start: Svma,
    /// The address after its last byte.
    pub end: Svma,
    /// The address that the name stands for. It is before `start` only in the part of a function that lies
    /// after a symbol inside it, so offsets printed as `name+0x10` count from here.
    pub symbol: Svma,
    /// Where the range comes from.
    pub origin: Origin,
    /// Whether it is known where the function ends. After a symbol without a size, up to the next one, there may be many functions.
    pub has_known_end: bool,
    pub(super) name: Name,
}
