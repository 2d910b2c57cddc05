//! The code of blocks: instructions, and the lines of the source that they come from.

use std::collections::HashMap;
use std::io::Write;

use analyzer::Analysis;
use analyzer::address::Svma;
use analyzer::annotate::{AnnotatedBlock, AnnotatedFunction, Annotation, Query, SourceTexts, annotate};
use analyzer::mix::UNREADABLE;
use analyzer::recording::base_name;
use reports::blocks::Row;
use serde_json::Value;

use super::{Columns, length};
use crate::commands::annotate::Annotated;
use crate::commands::annotate::code::{digits, heat_of_share, instructions};
use crate::commands::annotate::json::instruction;
use crate::commands::annotate::listing::{Line, Listing};
use crate::output::{Colours, Layout, Role};

/// The functions that blocks are of, and where the blocks are in them.
pub struct BlockCode<'a> {
    analysis: &'a Analysis,
    annotation: Annotation,
    /// By module and first address: places of functions, and of blocks in them.
    places: HashMap<(usize, Svma), (usize, usize)>,
    has_source: bool,
}

impl<'a> BlockCode<'a> {
    /// The code of these blocks. `threads` read the lines of the source, if these are wanted.
    pub fn of(analysis: &'a Analysis, rows: &[Row<'_>], has_source: bool, threads: usize) -> Self {
        let symbol = |row: &Row<'_>| Some((row.module_index, row.module.function_symbol(row.block.index)?));
        let among = Some(rows.iter().filter_map(symbol).collect());
        let query =
            Query { functions: None, among, top: usize::MAX, most_instructions: None, source: has_source, threads };
        let annotation = annotate(analysis, &query);
        let blocks = annotation.functions.iter().enumerate().flat_map(|(at, function)| {
            let places = function.blocks.iter().enumerate();
            places.map(move |(place, block)| ((function.module, block.start), (at, place)))
        });
        let places = blocks.collect();
        Self { analysis, annotation, places, has_source }
    }

    /// Whether the code of any block was read.
    pub fn is_any(&self) -> bool {
        !self.places.is_empty()
    }

    /// Whether any line of the source is known.
    pub fn has_lines(&self) -> bool {
        self.annotation.has_lines()
    }

    /// What was damaged or missing in debug information, in words.
    pub fn notes(&self) -> &[String] {
        &self.annotation.notes
    }

    fn annotated(&self) -> Annotated<'_> {
        Annotated {
            analysis: self.analysis,
            annotation: &self.annotation,
            instructions: self.analysis.instructions(),
            has_source: self.has_source,
        }
    }

    fn block(&self, row: &Row<'_>) -> Option<(&AnnotatedFunction, &AnnotatedBlock)> {
        let (function, block) = self.places.get(&(row.module_index, row.block.start))?;
        let function = self.annotation.functions.get(*function)?;
        Some((function, function.blocks.get(*block)?))
    }

    /// The instructions of a block, as `hbbp annotate` writes them in JSON; null where its code was not read.
    pub fn described(&self, row: &Row<'_>) -> Value {
        let Some((function, block)) = self.block(row) else { return Value::Null };
        let (of, mut before) = (self.annotated(), None);
        block.instructions.iter().map(|one| instruction(&of, function, one, before.replace(one.address))).collect()
    }

    /// Prints each block with its numbers, and its code below them.
    pub fn print(
        &self,
        rows: &[Row<'_>],
        texts: &mut SourceTexts,
        (layout, colours): (Layout, Colours),
        out: &mut dyn Write,
    ) -> std::io::Result<()> {
        let of = self.annotated();
        let columns = Columns::of(self.analysis, rows);
        let digits = digits(rows.iter().filter_map(|row| self.block(row)).map(|(_, block)| block));
        let mut lines = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            lines.extend((at > 0).then(Line::default));
            lines.push(Line {
                cells: columns.counts(self.analysis, of.instructions, row),
                heat: heat_of_share(of.share(row.executed())),
                body: self.titled(row),
                role: Role::Title,
                ..Line::default()
            });
            match self.block(row) {
                Some((function, block)) => {
                    lines.extend(instructions(&of, function, block, &mut None, (digits, &mut *texts)));
                }
                None => lines.push(Line { body: "  not readable".into(), role: Role::Dim, ..Line::default() }),
            }
        }
        let titles = columns.titles_of_counts().into_iter().map(|(title, _)| title).collect();
        let listing = Listing { titles, dispensable: vec!["ebs", columns.branches, "chosen", "±"], bars: 0, lines };
        listing.print(out, layout, colours)
    }

    /// What a block is: `deflate (gzip) 0x4030, 14 instructions, bias`.
    fn titled(&self, row: &Row<'_>) -> String {
        let path = &self.analysis.modules.get(row.module.counts.module).path;
        let function = row.module.function_name(row.block.index).unwrap_or_else(|| UNREADABLE.to_owned());
        let (file, start, length) = (base_name(path), row.block.start, length(row));
        let instructions = if length == "1" { "instruction" } else { "instructions" };
        let bias = if row.block.count.bias { ", bias" } else { "" };
        format!("{function} ({file}) {start}, {length} {instructions}{bias}")
    }
}
