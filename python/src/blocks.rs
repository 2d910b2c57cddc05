//! Blocks as a table.

use analyzer::Analysis;
use analyzer::mix::Filter;
use reports::Precision;
use reports::blocks::{BlockRow, all_rows, keep_largest, keep_passing};
use reports::lacks::without_samples;

use crate::columns::Columns;
use crate::table::Table;
use crate::words::Keywords;

/// The blocks that have instructions which pass the filters, by module and address, as `hbbp blocks --format json` has them.
///
/// # Errors
/// There is nothing to show.
pub fn table(analysis: &Analysis, filters: Vec<Filter>, threads: usize) -> anyhow::Result<Table> {
    let mut rows = all_rows(analysis);
    let mut notes: Vec<String> = without_samples(analysis).into_iter().collect();
    if rows.is_empty() && notes.is_empty() {
        anyhow::bail!("there is nothing to show: no sample fell into any code");
    }
    if !filters.is_empty() && notes.is_empty() {
        let (mix, said) = reports::passing(analysis, filters, threads, &Keywords)?;
        keep_passing(&mut rows, &mix);
        notes = said;
    }
    let instructions = analysis.instructions();
    let precision = Precision::of(analysis, rows.iter().map(|row| (row.executed() / instructions, row.share)));
    keep_largest(&mut rows, usize::MAX, false);
    let blocks: Vec<BlockRow> = rows.iter().map(|row| row.described()).collect();
    let path = |block: &BlockRow| analysis.modules.get(analysis.counted[block.module].counts.module).path.as_str();
    let build_id = |block: &BlockRow| analysis.build_id(&analysis.counted[block.module]).map(ToString::to_string);
    let mut columns = Columns::default();
    columns.texts("module", blocks.iter().map(|of| Some(path(of))));
    columns.texts("build_id", blocks.iter().map(build_id));
    columns.texts("function", blocks.iter().map(|of| of.function.as_deref()));
    columns.counts("start", blocks.iter().map(|of| Some(of.start)));
    columns.counts("end", blocks.iter().map(|of| Some(of.end)));
    columns.counts("instructions", blocks.iter().map(|of| Some(of.instructions)));
    columns.flags("decoded", blocks.iter().map(|of| Some(of.decoded)));
    columns.numbers("ebs", blocks.iter().map(|of| Some(of.ebs)));
    columns.numbers("lbr", blocks.iter().map(|of| Some(of.lbr)));
    columns.numbers("count", blocks.iter().map(|of| Some(of.count)));
    columns.texts("chosen", blocks.iter().map(|of| Some(of.chosen)));
    columns.flags("bias", blocks.iter().map(|of| Some(of.bias)));
    columns.counts("ebs_samples", blocks.iter().map(|of| Some(of.ebs_samples)));
    columns.counts("lbr_streams", blocks.iter().map(|of| Some(of.lbr_streams)));
    columns.numbers("count_error", blocks.iter().map(|of| of.count_error));
    columns.numbers("share_error", blocks.iter().map(|of| of.share_error));
    columns.flags("rests_on_little", blocks.iter().map(|of| Some(of.rests_on_little)));
    Ok(Table::new(columns.batch()?).with(instructions, precision.map(|precision| precision.text), notes))
}
