//! Loops as bars beside the code.

use analyzer::annotate::{AnnotatedBlock, AnnotatedFunction, CountedLoop};

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
    /// It is after the block, before the next one.
    After,
}

/// The margin of a function.
pub struct Margin<'a> {
    loops: &'a [CountedLoop],
    /// By loop: the loops around it and itself, outermost first, as far as they have bars.
    around: Vec<[Option<usize>; DEEPEST]>,
}

impl<'a> Margin<'a> {
    pub fn of(function: &'a AnnotatedFunction) -> Self {
        let loops = function.loops.as_deref().unwrap_or_default();
        let mut around: Vec<[Option<usize>; DEEPEST]> = Vec::with_capacity(loops.len());
        // Outer loops come before those inside of them.
        for (index, one) in loops.iter().enumerate() {
            let mut of_loop = one.parent.and_then(|parent| around.get(parent)).copied().unwrap_or_default();
            if let Some(bar) = one.depth.checked_sub(1).and_then(|column| of_loop.get_mut(column)) {
                *bar = Some(index);
            }
            around.push(of_loop);
        }
        Margin { loops, around }
    }

    /// How many columns the bars take.
    pub fn columns(&self) -> usize {
        self.loops.iter().map(|one| one.depth).max().unwrap_or(0).min(DEEPEST)
    }

    /// Whether a bar ends with a block.
    pub fn ends(&self, index: usize, block: &AnnotatedBlock) -> bool {
        self.bars_of(block).any(|(_, one)| one.last == index)
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
    pub fn bars(&self, index: usize, block: &AnnotatedBlock, at: At) -> String {
        let mut bars = vec![' '; self.columns_up_to(block)];
        for (column, one) in self.bars_of(block) {
            bars[column] = match at {
                At::First if index == one.first => '┌',
                At::Last if index == one.last => '└',
                At::After if index == one.last => ' ',
                At::First if index == one.header => '├',
                _ => '│',
            };
        }
        bars.into_iter().collect()
    }

    fn columns_up_to(&self, block: &AnnotatedBlock) -> usize {
        self.bars_of(block).map(|(column, _)| column + 1).last().unwrap_or(0)
    }

    /// The loops around a block that have bars, by column.
    fn bars_of(&self, block: &AnnotatedBlock) -> impl Iterator<Item = (usize, &CountedLoop)> {
        let around = block.innermost.and_then(|innermost| self.around.get(innermost));
        let columns = around.into_iter().flatten().enumerate();
        columns.filter_map(|(column, index)| Some((column, self.loops.get((*index)?)?)))
    }
}
