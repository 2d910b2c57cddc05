//! Batches of a day become one, with parts put together or left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use chrono::NaiveDate;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use futures::StreamExt;

use crate::engine::Engine;
use crate::selection::check_counts;
use crate::store::{Batch, Store};
use crate::tables::Table;
use crate::writer::{BatchFiles, TableFile};

/// What a part becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name from then on.
    pub part: String,
    /// The host of all in it, if it is one.
    pub host: Option<String>,
}

/// Writes one batch that replaces those of a day. `groups`: what each of their parts becomes; a part that is not among them is left out.
///
/// # Errors
/// A file is damaged, or the store cannot be written. Then nothing has changed.
pub async fn rewrite(
    store: &Store,
    engine: &Engine,
    day: NaiveDate,
    batches: &[Batch],
    groups: &BTreeMap<String, Group>,
) -> anyhow::Result<()> {
    check_counts(engine).await?;
    let changes = groups.iter().any(|(part, group)| group.part != *part);
    let column = |text: fn(&Group) -> Option<&String>| -> ArrayRef {
        Arc::new(groups.values().map(text).collect::<StringArray>())
    };
    let of: ArrayRef = Arc::new(StringArray::from_iter_values(groups.keys()));
    engine.name(
        "groups",
        RecordBatch::try_from_iter_with_nullable([
            ("of_part", of, false),
            ("new_part", column(|group| Some(&group.part)), false),
            ("new_host", column(|group| group.host.as_ref()), true),
        ])?,
    )?;
    let mut files = BatchFiles::begin(store, day);
    for table in Table::ALL {
        let mut file = match table {
            Table::Recordings => files.recordings(batches)?,
            _ => TableFile::begin(store, day, table, &[])?,
        };
        let mut rows = engine.ask(&question(table, changes)).await?;
        while let Some(rows) = rows.next().await {
            // What can be absent is a matter of the table, and not of how it was asked for.
            let rows = rows?;
            file.write(
                &RecordBatch::try_new(table.schema(), rows.columns().to_vec()).context("a table has other columns")?,
            )?;
        }
        if table == Table::Recordings {
            files.finish('c', file)?;
            break;
        }
        files.add(table, file)?;
    }
    Ok(())
}

/// The rows of a table after it. `changes`: some parts become one, and their rows are added up.
fn question(table: Table, changes: bool) -> String {
    let schema = table.schema();
    let column = |name: &String| match (name.as_str(), table) {
        ("part", _) => "new_part AS part".to_owned(),
        ("host", Table::Flow) => "new_host AS host".to_owned(),
        ("count" | "mispredicted", Table::Flow) if changes => format!("sum({name}) AS {name}"),
        _ => name.clone(),
    };
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let columns: Vec<String> = names.iter().map(column).collect();
    let key = |name: &&String| !matches!(name.as_str(), "count" | "mispredicted");
    let grouped: Vec<String> =
        names.iter().filter(key).map(|name| column(name).split(" AS ").next().unwrap_or(name).to_owned()).collect();
    let grouped =
        if table == Table::Recordings || !changes { String::new() } else { format!("GROUP BY {}", grouped.join(", ")) };
    let order: Vec<String> = table.sorted_by().iter().map(|name| format!("{name} ASC NULLS FIRST")).collect();
    format!(
        "SELECT {} FROM {} JOIN groups ON part = of_part {grouped} ORDER BY {}",
        columns.join(", "),
        table.name(),
        order.join(", ")
    )
}
