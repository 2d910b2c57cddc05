//! The answer, and the rows that it rests on, for people.

use std::io::Write;

use analyzer::uncertainty::Interval;
use analyzer::vectorization::{Domain, Form, Work};
use reports::mix::numbers::{Number, bound, uncertain_ratio};

use super::Report;
use super::answer::{WIDTHS, answer, percent};
use crate::output::{Align, MARKED, Role, Table, print_below, print_head, print_line, share, share_cells};

/// Details go before names are cut to less.
const READABLE_NAME: usize = 20;

/// The part of all instructions that work on vectors of integers must be beside floating-point work, to have columns.
const WORTH_COLUMNS: f64 = 0.005;

/// A column: its title, and its cell for a row.
struct Column<'a> {
    title: String,
    cell: Box<dyn Fn(&Work) -> String + 'a>,
    /// The higher, the sooner it is left out on a narrow terminal; 0 is part of the answer and stays.
    detail: usize,
}

/// Prints the answer, the head and the rows.
pub fn print(report: &Report<'_>, out: &mut dyn Write) -> anyhow::Result<()> {
    let of = report.vectorization;
    print_line("answer", &answer(of, report.by_loop), out, report.layout)?;
    print_head(report.head, of.all.instructions, out, report.layout)?;
    let columns = columns(report);
    let mut titles = vec![(if report.by_loop { "loop" } else { "function" }.to_owned(), Align::Left)];
    titles.extend(columns.iter().map(|column| (column.title.clone(), Align::Right)));
    let places: &[&str] = if report.by_loop { &["depth", "header"] } else { &[] };
    titles.extend(places.iter().map(|title| ((*title).to_owned(), Align::Right)));
    let mut by_detail: Vec<(usize, usize)> = columns.iter().enumerate().map(|(at, one)| (one.detail, at + 1)).collect();
    by_detail.retain(|(detail, _)| *detail > 0);
    by_detail.sort_by(|one, other| other.cmp(one));
    let first = (columns.len() + 1..titles.len()).rev();
    let dispensable = first.chain(by_detail.into_iter().map(|(_, column)| column)).collect();
    // The first number is a share of all, and its uncertainty is after it.
    let mut table = Table::new(titles)
        .with_names_of(READABLE_NAME)
        .dispense_with(dispensable)
        .in_colours(report.colours)
        .with_bars_after(Some(2));
    let domain = if of.all.flops() > 0.0 { Domain::Float } else { Domain::Integer };
    let mut marked = false;
    let mut line = |name: String, work: &Work, place: [String; 2], has_bar: bool| {
        let cells: Vec<String> = columns.iter().map(|column| (column.cell)(work)).collect();
        // `12 ?`, not `?` alone: that is what is not known.
        marked |= cells.iter().any(|cell| cell.ends_with(" ?"));
        let cells = [name].into_iter().chain(cells).chain(place.into_iter().take(places.len())).collect();
        match of.share(work, domain).filter(|_| has_bar) {
            Some((share, _)) => table.row_with_bar(Role::Plain, share, cells),
            None => table.row(cells),
        }
    };
    for row in of.rows.iter().take(report.top) {
        let place = row.place.as_ref().map(|place| [place.depth.to_string(), format!("{:x}", place.header.0)]);
        let name = match (report.by_loop, &row.place) {
            (true, None) => format!("{} [no loop]", row.function),
            _ => row.name().to_owned(),
        };
        line(name, &row.work, place.unwrap_or_default(), true);
    }
    let others = of.rows.len().saturating_sub(report.top);
    if others > 0 {
        let name = if others == 1 { "[1 other]".to_owned() } else { format!("[{others} others]") };
        line(name, &of.rest(report.top), Default::default(), false);
    }
    line("[all]".to_owned(), &of.all, Default::default(), false);
    if of.rows.is_empty() {
        return Ok(());
    }
    table.print(out, report.layout)?;
    if of.without > 0 {
        let what = match (report.by_loop, of.without) {
            (true, 1) => "1 more loop or function",
            (true, number) => &format!("{number} more loops and functions"),
            (false, 1) => "1 more function",
            (false, number) => &format!("{number} more functions"),
        };
        let rest = share(of.all.instructions - of.rest(0).instructions, of.all.instructions);
        print_below(&format!("... {what} without any, {rest} of the instructions"), out, report.layout)?;
    }
    if marked {
        print_below(MARKED, out, report.layout)?;
    }
    Ok(())
}

/// A share and its uncertainty. Nothing, and all, of what was seen are that for certain.
fn cells(share: f64, interval: Interval) -> [String; 2] {
    match share {
        0.0 => ["0 %".into(), String::new()],
        1.0 => ["100 %".into(), String::new()],
        _ => share_cells(share, 1.0, interval),
    }
}

/// The columns that the recording has anything for, always in the same order.
fn columns<'a>(report: &Report<'a>) -> Vec<Column<'a>> {
    let of = report.vectorization;
    let mut columns: Vec<Column<'a>> = Vec::new();
    let mut add = |title: &str, detail: usize, cell: Box<dyn Fn(&Work) -> String + 'a>| {
        columns.push(Column { title: title.to_owned(), cell, detail });
    };
    let share_of = move |work: &Work, domain: Domain| {
        of.share(work, domain).map_or_else(Default::default, |(share, interval)| cells(share, interval))
    };
    let scalar = move |work: &Work| {
        let share = work.float_share(Form::Scalar);
        share.map_or_else(Default::default, |share| cells(share, work.scalar_interval(&of.design)))
    };
    let shown = |part: Option<f64>| part.map_or(String::new(), percent);
    let has_float = of.all.flops() > 0.0;
    if has_float {
        add("FLOPs", 0, Box::new(move |work| share_of(work, Domain::Float)[0].clone()));
        add("±", 0, Box::new(move |work| share_of(work, Domain::Float)[1].clone()));
        add("scalar", 0, Box::new(move |work| scalar(work)[0].clone()));
        add("±", 1, Box::new(move |work| scalar(work)[1].clone()));
        for width in WIDTHS {
            let form = Form::Packed(width);
            if width > 64 || of.all.float_share(form) > Some(0.0) {
                add(&width.to_string(), usize::from(width == 64), Box::new(move |work| shown(work.float_share(form))));
            }
        }
        if of.all.float_share(Form::X87) > Some(0.0) {
            add("x87", 2, Box::new(move |work| shown(work.float_share(Form::X87))));
        }
        add("FMA", 3, Box::new(move |work| shown(work.fma_share())));
        let any = |element: &&str| of.all.element_share(Domain::Float, element) > Some(0.0);
        for element in ["f16", "f32", "f64"].into_iter().filter(any) {
            add(element, 4, Box::new(move |work| shown(work.element_share(Domain::Float, element))));
        }
    }
    // Beside floating point, registers that are set to zero are no work worth columns; without it, they are the answer.
    if of.all.integer() > 0.0 && (!has_float || of.all.integer() >= WORTH_COLUMNS * of.all.instructions) {
        let detail = |detail: usize| if has_float { detail } else { 0 };
        add("int", detail(5), Box::new(move |work| share_of(work, Domain::Integer)[0].clone()));
        add("±", detail(6), Box::new(move |work| share_of(work, Domain::Integer)[1].clone()));
        for width in WIDTHS.into_iter().filter(|width| *width > 64 || of.all.integer_share(*width) > Some(0.0)) {
            add(&format!("int {width}"), detail(6), Box::new(move |work| shown(work.integer_share(width))));
        }
        let any = |element: &&str| of.all.element_share(Domain::Integer, element) > Some(0.0);
        for element in ["i8", "i16", "i32", "i64"].into_iter().filter(any) {
            add(element, 7, Box::new(move |work| shown(work.element_share(Domain::Integer, element))));
        }
    }
    if has_float {
        let intensity = move |work: &Work| {
            let shown = |(intensity, interval)| {
                bound(Number::Intensity, work.instructions, &work.operations.sum).to_owned()
                    + &uncertain_ratio(intensity, interval)
            };
            work.intensity(&of.design).map_or(String::new(), shown)
        };
        add("FLOP/byte", 8, Box::new(intensity));
    }
    let of_row = |part: f64, whole: f64| if whole > 0.0 { percent(part / whole) } else { String::new() };
    add("moves", 7, Box::new(move |work| of_row(work.moves(), work.instructions)));
    add("instr", 8, Box::new(move |work| of_row(work.instructions, of.all.instructions)));
    columns
}
