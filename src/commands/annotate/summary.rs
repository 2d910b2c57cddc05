//! Functions with their shares of instructions and of time, and how long an instruction of each takes.

use std::io::Write;

use analyzer::annotate::Ranked;
use analyzer::recording::base_name;

use super::Report;
use crate::output::{Align, MARKED, Role, Table, more, print_below, print_head, print_line, share, share_cells, times};

/// Functions that take so many times as long as all code, with so much of the time, stand out.
const SLOW: f64 = 2.0;
const WORTH_A_LINE: f64 = 0.01;

/// Prints the table: what takes most of the time first, or what executes most where time is not known.
pub fn print(report: &Report<'_>, top: usize, out: &mut dyn Write) -> anyhow::Result<()> {
    print_head(report.head, report.of.instructions, out, report.layout)?;
    let mut ranked: Vec<&Ranked> = report.of.annotation.ranked.iter().collect();
    let has_time = ranked.iter().any(|of| of.time.is_some());
    let time = |of: &Ranked| of.time.map_or(0.0, |time| time.share);
    ranked.sort_by(|one, other| time(other).total_cmp(&time(one)));
    if let Some(slowest) = slowest(ranked.iter().copied()) {
        print_line("slow", &slowest, out, report.layout)?;
        writeln!(out)?;
    }
    let mut titles = vec![("instr", Align::Right), ("±", Align::Right)];
    if has_time {
        titles.extend([("time", Align::Right), ("±", Align::Right), ("time/instr", Align::Right)]);
    }
    titles.extend([("function", Align::Left), ("module", Align::Left)]);
    // The module, then the uncertainties.
    let dispensable = if has_time { vec![6, 3, 1] } else { vec![3, 1] };
    let titles = titles.into_iter().map(|(title, align)| (title.to_owned(), align)).collect();
    // Beside the time, or the instructions.
    let bars = if has_time { 3 } else { 1 };
    let mut table =
        Table::new(titles).dispense_with(dispensable).in_colours(report.colours).with_bars_after(Some(bars));
    for of in ranked.iter().take(top) {
        let mut cells = share_cells(of.share, 1.0, of.share_interval).to_vec();
        if has_time {
            cells.extend(of.time.map_or_else(Default::default, |time| share_cells(time.share, 1.0, time.interval())));
            cells.push(long(of).map_or(String::new(), times));
        }
        let path = report.of.path(of.module);
        let file = base_name(path);
        cells.extend([of.name.clone(), file]);
        let part = if has_time { time(of) } else { of.share };
        table.row_with_bar(if is_slow(of) { Role::Warm } else { Role::Plain }, part, cells);
    }
    table.print(out, report.layout)?;
    if let Some(rest) = ranked.get(top..).filter(|rest| !rest.is_empty()) {
        let mut parts = format!("{} of the instructions", share(rest.iter().map(|of| of.share).sum(), 1.0));
        if has_time {
            parts += &format!(", {} of the time", share(rest.iter().map(|of| time(of)).sum(), 1.0));
        }
        print_below(&more(rest.len(), ["function", "functions"], &parts), out, report.layout)?;
    }
    if ranked.iter().take(top).any(|of| of.share_interval.rests_on_little) {
        print_below(MARKED, out, report.layout)?;
    }
    if !has_time {
        let why = "time: that needs samples of a clock or of cycles, and branch stacks beside them";
        print_line("lacks", why, out, report.layout)?;
    }
    Ok(())
}

fn long(of: &Ranked) -> Option<f64> {
    of.time?.per_instruction(of.share, of.share_interval)
}

fn is_slow(of: &Ranked) -> bool {
    long(of).is_some_and(|long| long >= SLOW) && of.time.is_some_and(|time| time.share >= WORTH_A_LINE)
}

/// The function that takes most of the time beyond its share of the instructions, if that is surely more.
pub fn slowest<'r>(ranked: impl IntoIterator<Item = &'r Ranked>) -> Option<String> {
    let beyond = |of: &Ranked| of.time.map_or(0.0, |time| time.share) - of.share;
    let is_sure = |of: &&Ranked| {
        let widths = of.time.map_or(0.0, |time| time.error) + of.share_interval.half_width.unwrap_or(1.0);
        is_slow(of) && beyond(of) > widths
    };
    let of = ranked.into_iter().filter(is_sure).max_by(|one, other| beyond(one).total_cmp(&beyond(other)))?;
    let (time, long) = (of.time?, long(of)?);
    let [time, instructions] =
        [share_cells(time.share, 1.0, time.interval()), share_cells(of.share, 1.0, of.share_interval)]
            .map(|[share, _]| share);
    Some(format!(
        "{}: {time} of the time, {instructions} of the instructions: an instruction takes {} as long as the mean",
        of.name,
        times(long)
    ))
}
