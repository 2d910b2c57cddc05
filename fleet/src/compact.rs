//! `hbbp-fleet compact`: many small files of a day become one, and old recordings are put together. No sum changes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::bail;
use chrono::{NaiveDate, Utc};

use crate::engine::{Engine, MOST_MEMORY, check};
use crate::output::say;
use crate::rewrite::{Group, rewrite};
use crate::rows::{flags, texts};
use crate::store::{Batch, Store};
use crate::tables::Table;

/// Put the files of each day together, and old recordings
///
/// Files: no slice changes. Recordings: with --by host, those of a day, host, service and version become one part; with --by service, those of a
/// day, service and version. What they sum up to stays the same, but they cannot be told apart any more.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Folder of the store
    store: PathBuf,

    /// What recordings that are put together have in common, beside day and version
    #[arg(long, value_enum, requires = "older_than")]
    by: Option<By>,

    /// Put together recordings of days that are so many days past
    #[arg(long, value_name = "DAYS", requires = "by")]
    older_than: Option<u32>,
}

const EXAMPLES: &str = "\
Examples:
  hbbp-fleet compact profiles
  hbbp-fleet compact profiles --by host --older-than 7
  hbbp-fleet compact profiles --by service --older-than 90";

/// What recordings of a part have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Host, service and version
    Host,
    /// Service and version, of all hosts
    Service,
}

/// Rewrites each day that has several batches, or recordings to put together.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let store = Store::open(&args.store)?;
    let writing = store.write()?;
    // What the last one replaced goes before another batch replaces that one: nothing that is replaced ever counts again.
    store.clean(&writing, true)?;
    let mut days: BTreeMap<NaiveDate, Vec<Batch>> = BTreeMap::new();
    for batch in store.batches()? {
        days.entry(batch.day).or_default().push(batch);
    }
    let (mut rewritten, mut files, mut failed) = (0, 0, 0);
    for (day, batches) in days {
        let age = Utc::now().date_naive().signed_duration_since(day).num_days();
        let by = args.by.filter(|_| args.older_than.is_some_and(|days| age >= i64::from(days)));
        match compacted(&store, day, &batches, by, MOST_MEMORY).await {
            Ok(true) => {
                rewritten += 1;
                files += batches.len();
            }
            Ok(false) => {}
            Err(error) => {
                failed += 1;
                say(&format!("day={day} stays as it is: {error:#}"));
            }
        }
    }
    let removed = store.clean(&writing, false)?;
    eprintln!("hbbp-fleet: {files} batches of {rewritten} days became one for each day; {removed} files removed");
    if failed > 0 {
        bail!("{failed} of the days could not be put together");
    }
    Ok(())
}

/// Makes one batch of those of a day, if that changes anything.
async fn compacted(
    store: &Store,
    day: NaiveDate,
    batches: &[Batch],
    by: Option<By>,
    memory: usize,
) -> anyhow::Result<bool> {
    check(store, batches, &Table::ALL)?;
    let engine = Engine::of_batches(store, store.read(), batches.to_vec(), memory)?;
    let groups = groups(&engine, by).await?;
    if batches.len() < 2 && groups.iter().all(|(part, group)| group.part == *part) {
        return Ok(false);
    }
    rewrite(store, &engine, day, batches, &groups).await?;
    Ok(true)
}

/// What the recordings of a part have in common.
type Key = (Option<String>, Option<String>, Option<String>, bool);

/// What each part becomes.
async fn groups(engine: &Engine, by: Option<By>) -> anyhow::Result<BTreeMap<String, Group>> {
    let mut recordings: Vec<(String, String, Key)> = Vec::new();
    for rows in engine.rows("SELECT id, part, host, service, version, executions FROM recordings").await? {
        let [ids, parts, hosts, services, versions] =
            ["id", "part", "host", "service", "version"].map(|name| texts(&rows, name));
        let (ids, parts, hosts, services, versions) = (ids?, parts?, hosts?, services?, versions?);
        let executions = flags(&rows, "executions")?;
        let texts = ids.iter().zip(parts).zip(hosts).zip(services).zip(versions).zip(executions);
        for (((((id, part), host), service), version), executions) in texts {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let (Some(id), Some(part)) = (owned(id), owned(part)) else { continue };
            recordings.push((id, part, (owned(host), owned(service), owned(version), executions.unwrap_or_default())));
        }
    }
    recordings.sort();
    // What is one part already stays together.
    let mut parts: BTreeMap<String, (Key, Vec<String>)> = BTreeMap::new();
    for (id, part, key) in recordings {
        let known = parts.entry(part).or_insert_with(|| (key.clone(), Vec::new()));
        if known.0.0 != key.0 {
            known.0.0 = None;
        }
        known.1.push(id);
    }
    let of = |key: &Key, part: &String| match by {
        None => (part.clone(), key.clone()),
        Some(By::Host) => (String::new(), key.clone()),
        Some(By::Service) => (String::new(), (None, key.1.clone(), key.2.clone(), key.3)),
    };
    let mut members: BTreeMap<(String, Key), Vec<&String>> = BTreeMap::new();
    for (part, (key, _)) in &parts {
        members.entry(of(key, part)).or_default().push(part);
    }
    let mut groups = BTreeMap::new();
    for together in members.into_values() {
        let mut hosts: Vec<&Option<String>> = together.iter().map(|part| &parts[*part].0.0).collect();
        hosts.dedup();
        let host = if let [host] = hosts[..] { host.clone() } else { None };
        let name = match together[..] {
            [only] => only.clone(),
            _ => {
                let mut ids: Vec<&str> = together.iter().flat_map(|part| &parts[*part].1).map(String::as_str).collect();
                ids.sort_unstable();
                format!("together-{}", blake3::hash(ids.concat().as_bytes()))
            }
        };
        for part in together {
            groups.insert(part.clone(), Group { part: name.clone(), host: host.clone() });
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use analyzer::flow::{Evidence, ExactCount, FlowBuilder};
    use std::sync::Arc;

    use analyzer::recording::Module;
    use datafusion::arrow::array::{
        ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, RecordBatch, StringArray,
        TimestampNanosecondArray, UInt64Array,
    };
    use datafusion::arrow::datatypes::{DataType, Int64Type};
    use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::rows::{Labels, counts, day_number, flow_of, modules_of};
    use crate::selection::{Slices, sum};
    use crate::writer::write_batch;

    const DAY: NaiveDate = NaiveDate::from_ymd_opt(2025, 1, 1).unwrap();

    /// The rows of a recording with so many ranges.
    fn recorded(part: &str, ranges: u64) -> [RecordBatch; 3] {
        let mut builder = FlowBuilder::default();
        let module = builder.module(&Module::named("/nowhere/server".to_owned(), None), true);
        for at in 0..ranges {
            let range = Evidence::Range(addresses::Svma(at * 8), addresses::Svma(at * 8 + 4));
            builder.add(module, range, ExactCount::of(1.0), ExactCount::default());
        }
        let labels = Labels { part: part.to_owned(), day: DAY, service: Some("web".to_owned()), ..Labels::default() };
        let table = Table::Recordings.schema();
        let columns = table.fields().iter().map(|field| -> ArrayRef {
            match field.data_type() {
                DataType::Utf8 if ["id", "part"].contains(&field.name().as_str()) => {
                    Arc::new(StringArray::from(vec![part]))
                }
                DataType::Utf8 => Arc::new(StringArray::from(vec!["web"])),
                DataType::Boolean => Arc::new(BooleanArray::from(vec![false])),
                DataType::Date32 => Arc::new(Date32Array::from(vec![day_number(DAY)])),
                DataType::Float64 => Arc::new(Float64Array::from(vec![1.0])),
                DataType::UInt64 => Arc::new(UInt64Array::from(vec![1])),
                DataType::Timestamp(..) => Arc::new(TimestampNanosecondArray::from(vec![0]).with_timezone("UTC")),
                _ => counts([ExactCount::default()].into_iter()).unwrap(),
            }
        });
        let recordings = RecordBatch::try_new(table.clone(), columns.collect()).unwrap();
        [flow_of(&builder, &labels).unwrap(), modules_of(&builder, &labels).unwrap(), recordings]
    }

    #[tokio::test]
    async fn a_day_that_is_larger_than_the_memory_is_put_together() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_or_make(folder.path()).unwrap();
        for number in 0..8 {
            let rows = recorded(&number.to_string().repeat(64), 20_000).map(|rows| vec![rows]);
            write_batch(&store, DAY, 'i', rows, &[]).unwrap();
        }
        let memory = 24 << 20;
        for (by, rows) in [(None, 160_000), (Some(By::Service), 20_000)] {
            assert!(compacted(&store, DAY, &store.batches().unwrap(), by, memory).await.unwrap());
            let flow = store.file(&store.batches().unwrap()[0], Table::Flow);
            let file = SerializedFileReader::new(std::fs::File::open(flow).unwrap()).unwrap();
            assert_eq!(file.metadata().file_metadata().num_rows(), rows, "{by:?}");
            let engine = Engine::of(&store).await.unwrap();
            let sum = engine.rows("SELECT CAST(sum(count) AS BIGINT) AS sum FROM flow").await.unwrap();
            assert_eq!(sum[0].column(0).as_primitive::<Int64Type>().value(0), 160_000, "{by:?}");
        }
    }

    #[tokio::test]
    async fn counts_that_cannot_be_are_an_error_and_no_sum() {
        for count in [-1, 300_000_000_000_000_000_001_000_000_000] {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open_or_make(folder.path()).unwrap();
            let [flow, modules, recordings] = recorded("a", 3);
            let mut columns = flow.columns().to_vec();
            let index = flow.schema().index_of("count").unwrap();
            let odd = Decimal128Array::from(vec![7_000_000_000, count, 7_000_000_000]);
            columns[index] = Arc::new(odd.with_data_type(columns[index].data_type().clone()));
            let flow = RecordBatch::try_new(flow.schema(), columns).unwrap();
            let batch = write_batch(&store, DAY, 'i', [vec![flow], vec![modules], vec![recordings]], &[]).unwrap();
            let engine = Engine::of(&store).await.unwrap();
            let error = sum(&engine, &Default::default(), Slices::Together).await.unwrap_err().to_string();
            assert!(error.contains("day=2025-01-01") && error.contains("below 0 or above 3e20"), "{error}");
            let other = write_batch(&store, DAY, 'i', recorded("b", 3).map(|rows| vec![rows]), &[]).unwrap();
            compacted(&store, DAY, &[batch, other], Some(By::Host), MOST_MEMORY).await.unwrap_err();
        }
    }
}
