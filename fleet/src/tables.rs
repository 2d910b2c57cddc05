//! The three tables: their columns. docs/formats/fleet-store.md says what they mean.

use std::sync::Arc;

use analyzer::flow::ExactCount;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

/// A table of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// What was recorded: a row for each recording.
    Recordings,
    /// The files that ran: a row for each module of each part.
    Modules,
    /// What ran: ranges, branches, samples, with their counts.
    Flow,
}

impl Table {
    /// All of them, in the order in which they are written: a part counts when its recordings are there.
    pub const ALL: [Table; 3] = [Table::Flow, Table::Modules, Table::Recordings];

    /// Its name in SQL and in names of files.
    pub fn name(self) -> &'static str {
        match self {
            Table::Recordings => "recordings",
            Table::Modules => "modules",
            Table::Flow => "flow",
        }
    }

    /// How names of files with a part of it end.
    pub fn ending(self) -> String {
        format!(".{}.parquet", self.name())
    }

    /// Its columns.
    pub fn schema(self) -> SchemaRef {
        let text = |name: &str| Field::new(name, DataType::Utf8, false);
        let maybe = |name: &str| Field::new(name, DataType::Utf8, true);
        let flag = |name: &str| Field::new(name, DataType::Boolean, false);
        let count = |name: &str| Field::new(name, count_type(), false);
        let address = |name: &str| Field::new(name, DataType::UInt64, false);
        let day = || Field::new("day", DataType::Date32, false);
        let columns = match self {
            Table::Recordings => vec![
                text("id"),
                text("part"),
                Field::new("time", time_type(), false),
                flag("time_is_of_file"),
                day(),
                text("file"),
                maybe("host"),
                maybe("service"),
                maybe("version"),
                text("source"),
                maybe("cpu"),
                maybe("command"),
                Field::new("weight", DataType::Float64, false),
                flag("executions"),
                Field::new("inputs", DataType::UInt64, false),
                flag("seen_is_known"),
                count("seen"),
                count("left_out_streams"),
                count("left_out_branches"),
                count("left_out_samples"),
                maybe("weaker"),
            ],
            Table::Modules => vec![text("part"), day(), text("module"), flag("read"), maybe("build_id"), text("path")],
            Table::Flow => vec![
                text("part"),
                day(),
                maybe("host"),
                maybe("service"),
                maybe("version"),
                flag("executions"),
                text("module"),
                flag("read"),
                text("kind"),
                address("from_address"),
                Field::new("to_address", DataType::UInt64, true),
                maybe("target"),
                Field::new("target_read", DataType::Boolean, true),
                count("count"),
                count("mispredicted"),
            ],
        };
        Arc::new(Schema::new(columns))
    }

    /// By which columns its rows are sorted: those of a module are together.
    pub fn sorted_by(self) -> &'static [&'static str] {
        match self {
            Table::Recordings => &["time", "id"],
            Table::Modules => &["module", "read", "part", "path", "build_id"],
            Table::Flow => &["module", "read", "part", "kind", "from_address", "to_address", "target", "target_read"],
        }
    }
}

/// Counts are decimal numbers, which add up exactly.
pub const fn count_type() -> DataType {
    DataType::Decimal128(COUNT_DIGITS, ExactCount::SCALE as i8)
}

/// Decimal digits of a count, those after the point included.
pub const COUNT_DIGITS: u8 = 38;

/// Moments, in UTC.
pub fn time_type() -> DataType {
    DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
}
