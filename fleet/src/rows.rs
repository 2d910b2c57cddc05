//! What ran in a part, as rows of the tables: from sums of flows, and back to them.

use std::sync::Arc;

use addresses::Svma;
use analyzer::BuildId;
use analyzer::flow::{Evidence, ExactCount, FlowBuilder, ModuleAddress};
use analyzer::recording::Module;
use analyzer::uncertainty::Slice;
use anyhow::{Context, bail};
use chrono::NaiveDate;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, RecordBatch, StringArray, UInt64Array,
};
use datafusion::arrow::datatypes::{Decimal128Type, UInt64Type};

use crate::tables::{COUNT_DIGITS, Table};

/// How the table of modules and that of the flow name a module: its build id in hexadecimal digits, or else `path:` and its path.
pub fn key_of(module: &Module) -> String {
    match &module.build_id {
        Some(build_id) => build_id.identity(),
        None => format!("path:{}", module.path),
    }
}

/// What is said of a part beside what ran in it.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    /// The part that the rows are of.
    pub part: String,
    /// The day of its recordings.
    pub day: NaiveDate,
    /// Where it was recorded, if that is known and one host.
    pub host: Option<String>,
    /// What service it is of, if that is said and one.
    pub service: Option<String>,
    /// Which version of the service, if that is said and one.
    pub version: Option<String>,
    /// The counts are executions.
    pub executions: bool,
}

/// Days since 1970, as tables have them.
pub fn day_number(day: NaiveDate) -> i32 {
    day.signed_duration_since(NaiveDate::default()).num_days() as i32
}

/// The rows of the table of modules of a part.
///
/// # Errors
/// None that could come up: the columns are those of the table.
pub fn modules_of(builder: &FlowBuilder, labels: &Labels) -> anyhow::Result<RecordBatch> {
    let modules: Vec<(&Module, bool)> = builder.modules().collect();
    let same = |text: &str| Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, modules.len())));
    let build_id = |module: &Module| module.build_id.as_ref().map(BuildId::to_string);
    let columns: Vec<ArrayRef> = vec![
        same(&labels.part),
        Arc::new(Date32Array::from(vec![day_number(labels.day); modules.len()])),
        Arc::new(StringArray::from_iter_values(modules.iter().map(|(module, _)| key_of(module)))),
        Arc::new(modules.iter().map(|(_, read)| Some(*read)).collect::<BooleanArray>()),
        Arc::new(modules.iter().map(|(module, _)| build_id(module)).collect::<StringArray>()),
        Arc::new(StringArray::from_iter_values(modules.iter().map(|(module, _)| &module.path))),
    ];
    Ok(RecordBatch::try_new(Table::Modules.schema(), columns)?)
}

/// The rows of the table of the flow of a part.
///
/// # Errors
/// None that could come up: the columns are those of the table.
pub fn flow_of(builder: &FlowBuilder, labels: &Labels) -> anyhow::Result<RecordBatch> {
    let keys: Vec<(String, bool)> = builder.modules().map(|(module, read)| (key_of(module), read)).collect();
    let rows: Vec<(usize, Evidence, ExactCount, ExactCount)> = builder.sums().collect();
    let same = |text: Option<&String>| -> ArrayRef { Arc::new(rows.iter().map(|_| text).collect::<StringArray>()) };
    let target = |seen: &Evidence| match seen {
        Evidence::Branch(_, to) => keys.get(to.module),
        Evidence::Range(..) | Evidence::Sample(_) => None,
    };
    let from = |seen: &Evidence| match *seen {
        Evidence::Range(from, _) | Evidence::Branch(from, _) | Evidence::Sample(from) => from.0,
    };
    let to = |seen: &Evidence| match *seen {
        Evidence::Range(_, to) => Some(to.0),
        Evidence::Branch(_, to) => Some(to.at.0),
        Evidence::Sample(_) => None,
    };
    let kind = |seen: &Evidence| match seen {
        Evidence::Range(..) => RANGE,
        Evidence::Branch(..) => BRANCH,
        Evidence::Sample(_) => SAMPLE,
    };
    let columns: Vec<ArrayRef> = vec![
        same(Some(&labels.part)),
        Arc::new(Date32Array::from(vec![day_number(labels.day); rows.len()])),
        same(labels.host.as_ref()),
        same(labels.service.as_ref()),
        same(labels.version.as_ref()),
        Arc::new(BooleanArray::from(vec![labels.executions; rows.len()])),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &keys[row.0].0))),
        Arc::new(rows.iter().map(|row| Some(keys[row.0].1)).collect::<BooleanArray>()),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| kind(&row.1)))),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| from(&row.1)))),
        Arc::new(rows.iter().map(|row| to(&row.1)).collect::<UInt64Array>()),
        Arc::new(rows.iter().map(|row| target(&row.1).map(|key| &key.0)).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| target(&row.1).map(|key| key.1)).collect::<BooleanArray>()),
        counts(rows.iter().map(|row| row.2))?,
        counts(rows.iter().map(|row| row.3))?,
    ];
    Ok(RecordBatch::try_new(Table::Flow.schema(), columns)?)
}

const RANGE: &str = "range";
const BRANCH: &str = "branch";
const SAMPLE: &str = "sample";

/// A column of counts.
///
/// # Errors
/// None that could come up: all counts have as many digits as the column.
pub fn counts(counts: impl Iterator<Item = ExactCount>) -> anyhow::Result<ArrayRef> {
    let numbers = Decimal128Array::from_iter_values(counts.map(ExactCount::billionths));
    Ok(Arc::new(numbers.with_precision_and_scale(COUNT_DIGITS, ExactCount::SCALE as i8)?))
}

/// The count in a row of a column.
pub fn count_in(column: &ArrayRef, row: usize) -> anyhow::Result<ExactCount> {
    let numbers = column.as_primitive_opt::<Decimal128Type>().context("counts are no decimal numbers")?;
    Ok(ExactCount::of_billionths(numbers.value(row)))
}

/// Adds rows to a flow: `module`, `read`, `kind`, `from_address`, `to_address`, `target`, `target_read`, `count`, `mispredicted`, as the
/// table has them. The modules come from theirs. Where they have a `slice`, a hexadecimal digit says which one they are of.
///
/// # Errors
/// The rows say what cannot be: somebody else wrote them.
pub fn add_flow(builder: &mut FlowBuilder, places: &Places, rows: &RecordBatch) -> anyhow::Result<()> {
    let slices = rows.column_by_name("slice").map(|_| texts(rows, "slice")).transpose()?;
    let [modules, kinds, targets] = ["module", "kind", "target"].map(|name| texts(rows, name));
    let (modules, kinds, targets) = (modules?, kinds?, targets?);
    let [read, target_read] = ["read", "target_read"].map(|name| flags(rows, name));
    let (read, target_read) = (read?, target_read?);
    let [from, to] = ["from_address", "to_address"].map(|name| {
        column(rows, name)?.as_primitive_opt::<UInt64Type>().with_context(|| format!("{name} is no number"))
    });
    let (from, to) = (from?, to?);
    let (count, mispredicted) = (column(rows, "count")?, column(rows, "mispredicted")?);
    for row in 0..rows.num_rows() {
        let module = places.of(modules.value(row), read.value(row))?;
        let (from, to) = (Svma(from.value(row)), to.is_valid(row).then(|| Svma(to.value(row))));
        let seen = match (kinds.value(row), to) {
            (RANGE, Some(to)) if from <= to => Evidence::Range(from, to),
            (BRANCH, Some(at)) if targets.is_valid(row) => {
                let module = places.of(targets.value(row), target_read.value(row))?;
                Evidence::Branch(from, ModuleAddress { module, at })
            }
            (SAMPLE, None) => Evidence::Sample(from),
            (kind, _) => bail!("the flow has a row that cannot be: {kind} at {from} of {}", modules.value(row)),
        };
        let (count, mispredicted) = (count_in(count, row)?, count_in(mispredicted, row)?);
        builder.add(module, seen, count, mispredicted);
        if let Some(slices) = slices {
            builder.add_in_slice(slice_of(slices.value(row)), module, seen, count);
        }
    }
    Ok(())
}

/// The slice that the last letter of a part's name says: a hexadecimal digit, unless somebody else made the name.
fn slice_of(letter: &str) -> Slice {
    let other = || letter.bytes().map(usize::from).sum::<usize>() % 16;
    Slice::of_index(usize::from_str_radix(letter, 16).unwrap_or_else(|_| other())).unwrap_or_default()
}

/// Where modules are in a flow that grows.
#[derive(Debug, Default)]
pub struct Places(std::collections::HashMap<(String, bool), usize>);

impl Places {
    /// Adds modules: rows with `module`, `read`, `build_id`, `path`.
    ///
    /// # Errors
    /// The rows say what cannot be: somebody else wrote them.
    pub fn add(&mut self, builder: &mut FlowBuilder, rows: &RecordBatch) -> anyhow::Result<()> {
        let (keys, paths, build_ids, read) =
            (texts(rows, "module")?, texts(rows, "path")?, texts(rows, "build_id")?, flags(rows, "read")?);
        for row in 0..rows.num_rows() {
            let build_id = build_ids.is_valid(row).then(|| BuildId::from_hex(build_ids.value(row)));
            let module = Module::named(paths.value(row).to_owned(), build_id.flatten());
            if key_of(&module) != keys.value(row) {
                bail!("the table of modules has {} under the name {}", module.path, keys.value(row));
            }
            let index = builder.module(&module, read.value(row));
            self.0.insert((keys.value(row).to_owned(), read.value(row)), index);
        }
        Ok(())
    }

    fn of(&self, key: &str, read: bool) -> anyhow::Result<usize> {
        let place = self.0.get(&(key.to_owned(), read)).copied();
        place.with_context(|| format!("the flow is of {key}, which the table of modules does not have"))
    }
}

/// A column by its name.
pub fn column<'a>(rows: &'a RecordBatch, name: &str) -> anyhow::Result<&'a ArrayRef> {
    rows.column_by_name(name).with_context(|| format!("there is no column {name}"))
}

/// A column of texts.
pub fn texts<'a>(rows: &'a RecordBatch, name: &str) -> anyhow::Result<&'a StringArray> {
    column(rows, name)?.as_string_opt::<i32>().with_context(|| format!("{name} is no text"))
}

/// A column of truths.
pub fn flags<'a>(rows: &'a RecordBatch, name: &str) -> anyhow::Result<&'a BooleanArray> {
    column(rows, name)?.as_boolean_opt().with_context(|| format!("{name} is neither true nor false"))
}
