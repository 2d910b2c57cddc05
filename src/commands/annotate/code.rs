//! The instructions of a function, block by block, as lines of a listing.

use std::ops::Range;

use analyzer::address::Svma;
use analyzer::annotate::{AnnotatedBlock, AnnotatedFunction, Inlined, Seen, SourcePlace, SourceTexts};
use model::Source;

use super::listing::{Line, Listing};
use super::margin::{At, Margin};
use super::{Annotated, notes};
use crate::output::{Role, count, rounded, share_cells, with_digits};

/// What the share of a block must be to be marked: that of all instructions, 0 to 1.
const HOT: f64 = 0.1;
const WARM: f64 = 0.01;

/// The code of a function, with the lines of the source that it comes from where these are wanted.
pub fn listing(of: &Annotated<'_>, function: &AnnotatedFunction, texts: &mut SourceTexts) -> Listing {
    let has_both = of.analysis.sources.ebs.is_some() && of.analysis.sources.lbr.is_some();
    let has_bias = function.blocks.iter().filter_map(|block| block.count).any(|count| count.bias);
    let branches = of.analysis.title_of(Source::Lbr);
    let mut titles = vec!["share", "±", "count"];
    if has_both {
        titles.extend(["ebs", branches, "chosen"]);
    }
    titles.extend(has_bias.then_some("bias"));
    let has_cycles = function.blocks.iter().any(|block| of.cycles(function, block).is_some());
    if has_cycles {
        titles.extend(["cycles", "ipc"]);
    }
    let digits = digits(&function.blocks);
    let margin = Margin::of(function);
    let mut lines = Vec::new();
    let mut before: Option<Svma> = None;
    let is_read = of.why_unread(function).is_none();
    let mut unreadable = function.unreadable.iter().peekable();
    for (index, block) in function.blocks.iter().enumerate() {
        while let Some(gap) = unreadable.next_if(|gap| gap.start < block.start) {
            lines.extend([not_readable(gap, is_read), Line::default()]);
        }
        let mut of_block: Vec<Line> = header(of, function, index, block);
        let header = of_block.len();
        of_block.extend(instructions(of, function, block, &mut before, (digits, texts)));
        let first = of_block.iter_mut().skip(header).find(|line| line.address.is_some());
        first.into_iter().for_each(|line| line.cells = cells(of, function, block, [has_both, has_bias, has_cycles]));
        let last = of_block.len().saturating_sub(1);
        for (at, line) in of_block.iter_mut().enumerate() {
            let at = match at {
                0 if last > 0 || !margin.ends(index, block) => At::First,
                at if at == last => At::Last,
                _ => At::Between,
            };
            line.bars = margin.bars(index, block, at);
        }
        lines.append(&mut of_block);
        if index + 1 < function.blocks.len() {
            lines.push(Line { bars: margin.bars(index, block, At::After), ..Line::default() });
        }
    }
    for gap in unreadable {
        lines.extend([Line::default(), not_readable(gap, is_read)]);
    }
    Listing {
        titles,
        dispensable: vec!["ebs", branches, "chosen", "bias", "±", "cycles", "ipc"],
        bars: margin.columns(),
        lines,
    }
}

/// Columns that the addresses of instructions take.
pub fn digits<'a>(blocks: impl IntoIterator<Item = &'a AnnotatedBlock>) -> usize {
    let addresses = blocks.into_iter().flat_map(|block| &block.instructions).map(|one| one.address.0);
    format!("{:x}", addresses.max().unwrap_or(0)).len()
}

/// The instructions of a block without its counts, and the lines of the source that are others than those of the instruction `before`.
pub fn instructions(
    of: &Annotated<'_>,
    function: &AnnotatedFunction,
    block: &AnnotatedBlock,
    before: &mut Option<Svma>,
    (digits, texts): (usize, &mut SourceTexts),
) -> Vec<Line> {
    let mut lines = Vec::new();
    for (at, instruction) in block.instructions.iter().enumerate() {
        if of.has_source {
            lines.extend(source_lines(of, function, *before, instruction.address, texts));
            *before = Some(instruction.address);
        }
        let other = notes::by_other_source(block).filter(|_| at == 0);
        let branch = notes::of_branch(function, block).filter(|_| at + 1 == block.instructions.len());
        let said: Vec<String> = [other, branch].into_iter().flatten().collect();
        lines.push(Line {
            heat: heat(of, block),
            address: Some(instruction.address),
            body: format!("  {:>digits$x}  {}", instruction.address.0, instruction.text),
            role: if is_seen(block) { Role::Plain } else { Role::Dim },
            note: if said.is_empty() { String::new() } else { format!("; {}", said.join("; ")) },
            ..Line::default()
        });
    }
    lines
}

/// Whether any source saw it.
pub fn is_seen(block: &AnnotatedBlock) -> bool {
    matches!(block.seen, Seen::Counted | Seen::ByOtherSource)
}

/// The loop that a block is the header of, and how often it went around where that was asked for.
fn header(of: &Annotated<'_>, function: &AnnotatedFunction, index: usize, block: &AnnotatedBlock) -> Vec<Line> {
    let Some(headed) = function.innermost(block).filter(|one| one.header == index) else { return Vec::new() };
    let trips = of.trips(function, headed).into_iter().flat_map(notes::of_trips);
    let lines = std::iter::once(notes::of_loop(headed)).chain(trips);
    lines.map(|body| Line { body, role: Role::Drawn, ..Line::default() }).collect()
}

fn heat(of: &Annotated<'_>, block: &AnnotatedBlock) -> Role {
    match heat_of_share(of.share(block.executed())) {
        Role::Plain if block.seen != Seen::Counted => Role::Dim,
        heat => heat,
    }
}

/// How hot code is that has this share of all instructions, 0 to 1.
pub fn heat_of_share(share: f64) -> Role {
    match share {
        HOT.. => Role::Hot,
        WARM.. => Role::Warm,
        _ => Role::Plain,
    }
}

fn cells(
    of: &Annotated<'_>,
    function: &AnnotatedFunction,
    block: &AnnotatedBlock,
    [has_both, has_bias, has_cycles]: [bool; 3],
) -> Vec<String> {
    let Some(counted) = block.count.filter(|_| is_seen(block)) else {
        let why = if block.seen == Seen::Padding { "padding" } else { "not seen" };
        return vec![String::new(), String::new(), why.into()];
    };
    let shown = |value: f64| count(rounded(value, block.count_interval));
    let mut cells = match block.seen {
        Seen::Counted => share_cells(block.executed(), of.instructions, block.share_interval).to_vec(),
        _ => vec![String::new(), String::new()],
    };
    cells.push(shown(counted.count));
    if has_both {
        let by = |value: f64, observations: u64| if observations > 0 { shown(value) } else { "not seen".into() };
        cells.push(by(counted.ebs, counted.ebs_samples));
        cells.push(by(counted.lbr, counted.lbr_streams));
        cells.push(of.analysis.title_of(counted.chosen).to_owned());
    }
    cells.extend(has_bias.then(|| if counted.bias { "bias" } else { "" }.to_owned()));
    if has_cycles {
        let cycles = of.cycles(function, block);
        let shown = |value: Option<f64>| value.map_or(String::new(), |value| with_digits(value, 3));
        cells.extend([shown(cycles.map(|of| of.cycles)), shown(cycles.and_then(|of| of.ipc))]);
    }
    cells
}

/// Bytes that are no instructions, or of code that was not read.
fn not_readable(gap: &Range<Svma>, is_read: bool) -> Line {
    let bytes = gap.end.0 - gap.start.0;
    let [why, what] =
        if is_read { ["not readable", "that are no instructions"] } else { ["not read", "whose code is not known"] };
    let body = format!("  {:x}  {bytes} bytes {what}", gap.start.0);
    let cells = vec![String::new(), String::new(), why.into()];
    Line { cells, heat: Role::Dim, body, role: Role::Dim, ..Line::default() }
}

/// What was inlined where, and the line, where they are others than before.
fn source_lines(
    of: &Annotated<'_>,
    function: &AnnotatedFunction,
    before: Option<Svma>,
    at: Svma,
    texts: &mut SourceTexts,
) -> Vec<Line> {
    let annotation = of.annotation;
    let begun = annotation.begun(function, before, at);
    let place = annotation.place(function, at);
    let place_before = before.and_then(|before| annotation.place(function, before));
    let line = place.filter(|_| !begun.is_empty() || place != place_before).map(|place| source_line(of, place, texts));
    let bodies = begun.iter().map(|begun| inlined(of, begun)).chain(line);
    bodies.map(|body| Line { body, role: Role::Source, ..Line::default() }).collect()
}

fn inlined(of: &Annotated<'_>, inlined: &Inlined<'_>) -> String {
    let at = inlined.at.map_or(String::new(), |at| format!(", called in {}", name(of, at)));
    format!("inlined: {}{at}", inlined.function.as_deref().unwrap_or("a function without a name"))
}

fn source_line(of: &Annotated<'_>, place: SourcePlace<'_>, texts: &mut SourceTexts) -> String {
    let text = texts.line(place.path, place.line).map_or(String::new(), |text| format!("  {text}"));
    format!("{}{}", name(of, place), text.replace('\t', " "))
}

/// A place as `loop.c:12`.
fn name(of: &Annotated<'_>, place: SourcePlace<'_>) -> String {
    format!("{}:{}", of.annotation.short_name(place.path), place.line)
}
