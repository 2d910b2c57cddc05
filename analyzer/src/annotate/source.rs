//! Where instructions come from.

use crate::address::Svma;
use crate::lines::{Position, ScopeId, SourceIndex, Span};

/// A line of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourcePlace<'a> {
    /// Path of the file as the compiler noted it, absolute where that is known.
    pub path: &'a str,
    /// Counted from 1.
    pub line: u32,
}

/// A function that was inlined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inlined<'a> {
    /// Its name, demangled; `None` where the debug information has none.
    pub function: Option<String>,
    /// Where it was called.
    pub at: Option<SourcePlace<'a>>,
}

/// So many functions that begin at one instruction are told, the innermost.
const MOST: usize = 32;

/// The line of an instruction.
pub(super) fn place(index: &SourceIndex, at: Svma) -> Option<SourcePlace<'_>> {
    in_file(index, index.at(at)?.position)
}

/// The files that code comes from, and those in which inlined functions are called.
pub(super) fn paths(index: &SourceIndex) -> impl Iterator<Item = &str> {
    let lines = index.spans().iter().map(|span| span.position);
    let calls = index.scopes().iter().filter_map(|scope| scope.caller).map(|(_, position)| position);
    lines.chain(calls).filter_map(|position| index.file(position.file))
}

/// The inlined functions that an instruction is of and the one before is not, outermost first.
pub(super) fn begun(index: &SourceIndex, before: Option<Svma>, at: Svma) -> Vec<Inlined<'_>> {
    let Some(span) = index.at(at) else { return Vec::new() };
    let before = before.and_then(|before| index.at(before));
    if before.is_some_and(|before| before.scope == span.scope) {
        return Vec::new();
    }
    let callers = |span: &Span| std::iter::successors(Some(span.scope), |scope| caller(index, *scope));
    let mut left = before.into_iter().flat_map(callers).peekable();
    let mut begun = Vec::new();
    for scope in callers(span) {
        // Callers come before what was inlined into them, so both chains fall.
        while left.next_if(|left| *left > scope).is_some() {}
        let Some((_, position)) = index.scope(scope).caller else { break };
        if left.peek() == Some(&scope) || begun.len() == MOST {
            break;
        }
        let function = index.function(index.scope(scope)).demangled();
        begun.push(Inlined { function, at: in_file(index, position) });
    }
    begun.reverse();
    begun
}

fn caller(index: &SourceIndex, scope: ScopeId) -> Option<ScopeId> {
    index.scope(scope).caller.map(|(caller, _)| caller)
}

fn in_file(index: &SourceIndex, position: Position) -> Option<SourcePlace<'_>> {
    let path = index.file(position.file)?;
    (position.line > 0).then_some(SourcePlace { path, line: position.line })
}
