//! `hbbp blocks`: how often every basic block ran.

mod code;

use std::io::Write;
use std::process::ExitCode;

use analyzer::annotate::SourceTexts;
use analyzer::counting::{Detail, GroupBy};
use analyzer::mix::Filter;
use analyzer::recording::base_name;
use analyzer::{Analysis, CountedModule};
use anyhow::Context;
use model::Source;
use reports::blocks::{BlockRow, Row, all_rows, keep_largest, keep_passing};
use reports::lacks::without_lines;
use serde::Serialize;
use serde_json::{Value, json};

use crate::commands::blocks::code::BlockCode;
use crate::commands::filtering::{FilterArgs, asks_loops, passing};
use crate::commands::mix::keys;
use crate::commands::reporting::ReportArgs;
use crate::input::{Input, Reader, Reads};
use crate::output;
use crate::output::{
    Align, Colours, Format, Head, Layout, MARKED, Precision, Role, Table, count, more, print_below, print_head,
    rounded, share, share_cells,
};
use crate::usage::{CommandLine, wrong_usage};

/// Print how often every basic block ran
#[derive(clap::Args)]
#[command(after_help = keys::after(EXAMPLES))]
#[command(mut_arg("top", |top| top.help(TOP)))]
#[command(mut_arg("filters", |filters| filters.help(FILTER)))]
pub struct Args {
    /// Print the instructions of each block below its numbers (not in csv)
    #[arg(long)]
    asm: bool,

    /// Print the lines of the source that each block comes from, too, and the names of inlined functions where they begin
    #[arg(long, requires = "asm")]
    source: bool,

    #[command(flatten)]
    kept: FilterArgs,

    #[command(flatten)]
    report: ReportArgs,
}

const READER: Reader = Reader { name: "hbbp blocks", reads: Reads::Flows, records: true };

const TOP: &str = "Print only the N blocks with the most executed instructions; 0 prints all [default: 40 in a table, all in csv and json]";

const FILTER: &str = "Keep only blocks that have instructions with these values, as `hbbp mix --filter` does: key=value, key=one,other, key~regex, \
                      key>=number; those first that execute most of them";

const EXAMPLES: &str = "\
Examples:
  hbbp blocks run.data --top 20
  hbbp blocks run.data --filter latency=long       with a division or the like
  hbbp blocks run.data --top 5 --source --asm      the hottest five, with their code
  hbbp blocks run.data --binary gzip=./build/gzip --format json
  hbbp blocks -- sort -n -o sorted.txt numbers.txt";

/// The columns of a table of blocks.
pub(super) struct Columns {
    has_both: bool,
    /// What branches are called: how they came.
    branches: &'static str,
    has_bias: bool,
}

/// Prints the blocks of a recording with their counts, the most executed first.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.report.output.check()?;
    if args.asm && matches!(args.report.output.format, Format::Csv | Format::Parquet) {
        let why = "--asm is for tables, markdown and json; `hbbp annotate --format csv` has a row for each instruction";
        wrong_usage::<Args>(READER.name, why.to_owned());
    }
    let filters = args.kept.filters_of_code::<Args>(READER.name, &args.kept.taxonomies()?);
    let input = args.report.input.begin(&READER, None)?;
    input.end(print(args, filters, &input))
}

fn print(args: &Args, filters: Vec<Filter>, input: &Input<'_>) -> anyhow::Result<()> {
    let detail = if args.asm || asks_loops(&filters) { Detail::Branches } else { Detail::Blocks };
    let analysis = input.analyze_in_detail(GroupBy::default(), detail)?;
    let mut rows = all_rows(&analysis);
    let nothing = args.report.output.say_without_samples(&analysis);
    if rows.is_empty() && nothing.is_none() {
        anyhow::bail!("there is nothing to show: no sample fell into any code");
    }
    if !filters.is_empty() && nothing.is_none() {
        let mix = passing(&analysis, filters, args.report.input.analysis.threads())?;
        keep_passing(&mut rows, &mix);
    }
    let instructions = analysis.instructions();
    let precision = Precision::of(&analysis, rows.iter().map(|row| (row.executed() / instructions, row.share)));
    let head = args.report.head(&analysis, precision);
    let left_out = keep_largest(&mut rows, args.report.rows(), args.report.output.format.is_for_people());
    let input = &args.report.input.analysis;
    let code = args.asm.then(|| BlockCode::of(&analysis, &rows, args.source, input.threads()));
    if let Some(code) = code.as_ref().filter(|_| nothing.is_none()) {
        code.notes().iter().for_each(output::say);
        if args.source && code.is_any() && !code.has_lines() {
            output::say(without_lines(&CommandLine));
        }
    }
    let report = Report { analysis: &analysis, head: &head, rows: &rows, code };
    let mut texts = SourceTexts::below(input.search().symfs);
    let (layout, colours) = (args.report.output.layout(), args.report.output.colours());
    args.report.output.write(&[], |out| match args.report.output.format {
        Format::Table | Format::Markdown => report.for_people(left_out, &mut texts, (layout, colours), out),
        Format::Csv | Format::Parquet => csv(&analysis, &rows, out),
        Format::Json => report.json(out),
    })
}

/// All that is printed.
struct Report<'a> {
    analysis: &'a Analysis,
    head: &'a Head,
    rows: &'a [Row<'a>],
    /// Their code, where it is wanted.
    code: Option<BlockCode<'a>>,
}

impl Columns {
    /// Those that these blocks have something in.
    pub fn of(analysis: &Analysis, rows: &[Row<'_>]) -> Self {
        Columns {
            has_both: analysis.sources.ebs.is_some() && analysis.sources.lbr.is_some(),
            branches: analysis.title_of(Source::Lbr),
            has_bias: rows.iter().any(|row| row.block.count.bias),
        }
    }

    /// What those of counts are called.
    fn titles_of_counts(&self) -> Vec<(&'static str, Align)> {
        let mut titles = vec![("share", Align::Right), ("±", Align::Right), ("count", Align::Right)];
        if self.has_both {
            titles.extend([("ebs", Align::Right), (self.branches, Align::Right), ("chosen", Align::Left)]);
        }
        titles
    }

    /// What all are called.
    pub fn titles(&self) -> Vec<(&'static str, Align)> {
        let mut titles = self.titles_of_counts();
        titles.extend([("instr", Align::Right), ("start", Align::Right)]);
        titles.extend(self.has_bias.then_some(("bias", Align::Left)));
        titles.extend([("module", Align::Left), ("function", Align::Left)]);
        titles
    }

    /// Which of them are left out where a table would be too wide, the first of them first.
    pub fn dispensable(&self) -> Vec<usize> {
        let titles = self.titles();
        (0..titles.len()).filter(|&column| ["ebs", self.branches, "chosen"].contains(&titles[column].0)).collect()
    }

    /// The counts of a block.
    fn counts(&self, analysis: &Analysis, instructions: f64, row: &Row<'_>) -> Vec<String> {
        let counts = &row.block.count;
        let shown = |value: f64| count(rounded(value, row.count));
        let mut cells = share_cells(row.executed(), instructions, row.share).to_vec();
        cells.push(shown(counts.count));
        if self.has_both {
            cells.extend([shown(counts.ebs), shown(counts.lbr), analysis.title_of(counts.chosen).to_owned()]);
        }
        cells
    }

    /// The cells of a block.
    pub fn cells(&self, analysis: &Analysis, instructions: f64, row: &Row<'_>) -> Vec<String> {
        let mut cells = self.counts(analysis, instructions, row);
        let path = &analysis.modules.get(row.module.counts.module).path;
        cells.extend([length(row), row.block.start.to_string()]);
        cells.extend(self.has_bias.then(|| if row.block.count.bias { "bias" } else { "" }.to_string()));
        cells.extend([base_name(path), row.module.function_name(row.block.index).unwrap_or_default()]);
        cells
    }
}

/// How many instructions a block has.
fn length(row: &Row<'_>) -> String {
    let estimated = if row.block.size.decoded { "" } else { "~" };
    format!("{estimated}{:.0}", row.block.size.instructions)
}

fn table(
    analysis: &Analysis,
    rows: &[Row<'_>],
    (layout, colours): (Layout, Colours),
    out: &mut dyn Write,
) -> std::io::Result<()> {
    /// The column that bars stand after: the uncertainty of the share.
    const AFTER_SHARES: usize = 1;
    let columns = Columns::of(analysis, rows);
    let titles = columns.titles().into_iter().map(|(title, align)| (title.to_string(), align)).collect();
    let mut table =
        Table::new(titles).dispense_with(columns.dispensable()).in_colours(colours).with_bars_after(Some(AFTER_SHARES));
    let instructions = analysis.instructions();
    for row in rows {
        table.row_with_bar(Role::Plain, row.executed(), columns.cells(analysis, instructions, row));
    }
    table.print(out, layout)
}

impl Report<'_> {
    fn for_people(
        &self,
        (dropped, left_out): (usize, f64),
        texts: &mut SourceTexts,
        (layout, colours): (Layout, Colours),
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let instructions = self.analysis.instructions();
        print_head(self.head, instructions, out, layout)?;
        match &self.code {
            Some(code) => code.print(self.rows, texts, (layout, colours), out)?,
            None => table(self.analysis, self.rows, (layout, colours), out)?,
        }
        if dropped > 0 {
            let left_out = share(left_out, instructions);
            print_below(&more(dropped, ["block", "blocks"], &left_out), out, layout)?;
        }
        if self.rows.iter().any(|row| row.share.rests_on_little) {
            print_below(MARKED, out, layout)?;
        }
        Ok(())
    }

    fn json(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let Self { analysis, head, rows, code } = self;
        let module = |module: &CountedModule| {
            json!({
                "path": analysis.modules.get(module.counts.module).path,
                "build_id": analysis.build_id(module).map(ToString::to_string),
                "read": module.is_read(),
            })
        };
        let blocks: Vec<Described> = rows
            .iter()
            .map(|row| Described { block: row.described(), code: code.as_ref().map(|code| code.described(row)) })
            .collect();
        let document = json!({
            "schema": "hbbp-blocks/1",
            "source": head.source,
            "instructions": analysis.instructions(),
            "head": head,
            "modules": analysis.counted.iter().map(module).collect::<Vec<_>>(),
            "blocks": blocks,
        });
        serde_json::to_writer(&mut *out, &document)?;
        Ok(writeln!(out)?)
    }
}

/// A block of a document, with its code where that is wanted.
#[derive(Serialize)]
struct Described {
    #[serde(flatten)]
    block: BlockRow,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Value>,
}

fn csv(analysis: &Analysis, rows: &[Row<'_>], out: &mut dyn Write) -> anyhow::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record([
        "module",
        "start",
        "end",
        "instructions",
        "function",
        "ebs",
        "lbr",
        "count",
        "chosen",
        "bias",
        "count_error",
        "share_error",
        "rests_on_little",
    ])?;
    let width = |width: Option<f64>| width.map_or(String::new(), |width| width.to_string());
    for row in rows {
        let block = row.described();
        csv.write_record([
            analysis.modules.get(row.module.counts.module).path.clone(),
            row.block.start.to_string(),
            row.block.end.to_string(),
            block.instructions.to_string(),
            block.function.unwrap_or_default(),
            block.ebs.to_string(),
            block.lbr.to_string(),
            block.count.to_string(),
            block.chosen.to_string(),
            block.bias.to_string(),
            width(block.count_error),
            width(block.share_error),
            block.rests_on_little.to_string(),
        ])?;
    }
    csv.flush().context("cannot write the table")
}
