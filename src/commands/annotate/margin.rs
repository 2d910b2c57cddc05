//! Loops as bars beside the code.

use analyzer::annotate::{AnnotatedBlock, AnnotatedFunction};

/// Deeper loops have no bars of their own.
const DEEPEST: usize = 8;

/// Where a line stands among those of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// It is the first line of several.
    First,
    /// It is neither.
    Between,
    /// It is the last line.
    Last,
    /// It is behind the block, before the next one.
    After,
}

/// How many columns the bars of a function take.
pub fn columns(function: &AnnotatedFunction) -> usize {
    function.loops.iter().flatten().map(|one| one.depth).max().unwrap_or(0).min(DEEPEST)
}

/// The bars beside a line of a block, the outermost loop first.
///
/// ```text
/// ┌    the first line of the loop by address
/// │┌   one inside of it
/// │└
/// ├    its header, where that is not the first
/// └    the last
/// ```
pub fn bars(function: &AnnotatedFunction, index: usize, block: &AnnotatedBlock, at: At) -> String {
    let mut bars = vec![' '; columns(function)];
    for (_, one) in function.loops_around(block) {
        let Some(bar) = one.depth.checked_sub(1).and_then(|column| bars.get_mut(column)) else { continue };
        *bar = match at {
            At::First if index == one.first => '┌',
            At::Last if index == one.last => '└',
            At::After if index == one.last => ' ',
            At::First if index == one.header => '├',
            _ => '│',
        };
    }
    bars.into_iter().collect()
}
