//! Where code comes from.

use super::Discriminator;
use crate::address::Svma;
use crate::code::demangle;

/// Number of a file in its [`SourceIndex`](super::SourceIndex), counted from 1; 0 where the compiler names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A place in the source: a line of a file, and which of the copies and parts of that line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The file that the line is in.
    pub file: FileId,
    /// Counted from 1; 0 where the compiler names no line.
    pub line: u32,
    /// Tells blocks on one line apart.
    pub discriminator: Discriminator,
}

/// A function as the debug information describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceFunction {
    /// The name that the linker sees (mangled): `DW_AT_linkage_name`, or `DW_AT_name` in a language that mangles none.
    pub linkage_name: Option<String>,
    /// The name in the source, without namespaces and parameters (`DW_AT_name`).
    pub name: Option<String>,
    /// The line of its declaration (`DW_AT_decl_line`); compilers count lines of a profile from it.
    pub start_line: Option<u32>,
}

impl SourceFunction {
    /// Its name for people.
    pub fn demangled(&self) -> Option<String> {
        self.linkage_name.as_ref().or(self.name.as_ref()).map(|name| demangle(name))
    }
}

/// Index of a scope in its [`SourceIndex`](super::SourceIndex).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(pub u32);

/// A function that has code of its own, or one that was inlined into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Where it was inlined: into which scope, and called from where in it. `None` for a function with code of its own.
    pub caller: Option<(ScopeId, Position)>,
    /// Index of the function in its [`SourceIndex`](super::SourceIndex).
    pub function: u32,
    /// The first address of its code.
    pub entry: Svma,
}

/// Addresses `[start, end)` that come from one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first address of the span.
    pub start: Svma,
    /// The address after the last.
    pub end: Svma,
    /// The innermost function that the code is of, inlined ones included.
    pub scope: ScopeId,
    /// Where in that function.
    pub position: Position,
}
