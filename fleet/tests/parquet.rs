//! Reports as Parquet: they have what the same report has as CSV.

mod support;

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::csv::ReaderBuilder;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use support::{Setup, hbbp};

fn report(words: &[&str]) -> std::process::Output {
    // `hbbp` looks for hbbp-fleet beside itself first, where there is none of this build.
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_hbbp-fleet"));
    let path = std::env::join_paths([program.parent().unwrap(), "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
    let alone = tempfile::tempdir().unwrap();
    let copy = alone.path().join("hbbp");
    std::fs::copy(hbbp(), &copy).unwrap();
    Command::new(copy).args(words).env("PATH", path).env("XDG_CACHE_HOME", "/dev/null").output().unwrap()
}

/// The cells of a column; a number as it is printed, `None` where there is nothing.
fn cells(rows: &[RecordBatch], column: usize) -> Vec<Option<String>> {
    let of_batch = |rows: &RecordBatch| -> Vec<Option<String>> {
        let column = rows.column(column);
        match column.data_type() {
            DataType::Float64 => {
                let numbers = column.as_primitive::<Float64Type>();
                numbers.iter().map(|number| number.map(|number| number.to_string())).collect()
            }
            _ => column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect(),
        }
    };
    rows.iter().flat_map(of_batch).collect()
}

#[test]
fn parquet_has_what_csv_has() {
    let setup = Setup::new();
    let fixture = testing::Fixture::bursts("compress");
    let (file, binary) = (fixture.recording.to_str().unwrap(), fixture.binary_option());
    let reports: [&[&str]; 6] = [
        &["mix", file, "--rows", "function,mnemonic", "--columns", "packing"],
        &["mix", file, "--rows", "mnemonic", "--values", "share,executions"],
        &["blocks", file],
        &["annotate", file],
        &["vectorization", file],
        &["diff", file, file],
    ];
    for words in reports {
        let words = [words, &["--binary", &binary, "--format"]].concat();
        let csv = report(&[&words[..], &["csv"]].concat());
        assert!(csv.status.success(), "{words:?}: {}", String::from_utf8_lossy(&csv.stderr));
        let parquet = setup.path("rows.parquet");
        let output = report(&[&words[..], &["parquet", "-o", &parquet]].concat());
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&parquet).unwrap()).unwrap().build().unwrap();
        let rows: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
        let first = csv.stdout.split(|byte| *byte == b'\n').next().unwrap();
        let names: Vec<&str> = std::str::from_utf8(first).unwrap().split(',').collect();
        let of_parquet: Vec<_> = rows[0].schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(of_parquet, names, "{words:?}");
        let texts = Schema::new(names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect::<Vec<_>>());
        let expected = ReaderBuilder::new(Arc::new(texts)).with_header(true).build(&csv.stdout[..]).unwrap();
        let expected: Vec<RecordBatch> = expected.map(Result::unwrap).collect();
        let mut numbers = 0;
        for (column, name) in names.iter().enumerate() {
            let is_number = *rows[0].column(column).data_type() == DataType::Float64;
            numbers += usize::from(is_number);
            let (found, mut expected) = (cells(&rows, column), cells(&expected, column));
            if is_number {
                let as_number = |cell: &String| cell.parse::<f64>().unwrap().to_string();
                expected.iter_mut().for_each(|cell| *cell = cell.as_ref().map(as_number));
            }
            assert_eq!(found, expected, "{words:?}: {name}");
        }
        assert!(numbers > 0, "{words:?}");
    }
    // What begins and ends without a word is whole.
    let words = ["mix", file, "--binary", &binary, "--format", "parquet"];
    let output = report(&words);
    assert!(output.stdout.starts_with(b"PAR1") && output.stdout.ends_with(b"PAR1"));
}

/// What `hbbp-fleet parquet` makes of a table; nothing where it fails.
fn parquet(setup: &Setup, csv: &[u8]) -> Option<Vec<u8>> {
    let mut fleet = setup.fleet();
    let mut fleet =
        fleet.arg("parquet").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    fleet.stdin.take().unwrap().write_all(csv).unwrap();
    let output = fleet.wait_with_output().unwrap();
    output.status.success().then_some(output.stdout)
}

#[test]
fn what_is_no_table_is_an_error() {
    let setup = Setup::new();
    assert!(parquet(&setup, b"a,b\n1,x\n").unwrap().starts_with(b"PAR1"));
    assert!(parquet(&setup, b"a,b\n").unwrap().starts_with(b"PAR1"), "without rows");
    let of_texts = |more: &[&str]| {
        let file = setup.path("texts.parquet");
        let mut fleet = setup.fleet();
        let mut fleet = fleet.args(["parquet", "-o", &file]).args(more).stdin(Stdio::piped()).spawn().unwrap();
        fleet.stdin.take().unwrap().write_all(b"function,count,nothing\n0012,1,\n100,2.5,\n").unwrap();
        assert!(fleet.wait().unwrap().success());
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&file).unwrap()).unwrap();
        reader.schema().fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>()
    };
    assert_eq!(of_texts(&[]), [DataType::Float64, DataType::Float64, DataType::Float64]);
    assert_eq!(of_texts(&["--text", "module,function"]), [DataType::Utf8, DataType::Float64, DataType::Float64]);
    assert_eq!(parquet(&setup, b"a,b\n1\n"), None, "too few fields");
    assert_eq!(parquet(&setup, b"a,b\n1,\xff\n"), None, "no UTF-8");
    let output = report(&["mix", "/nonexistent.data", "--format", "parquet", "-o", &setup.path("out")]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("/nonexistent.data"));
    assert!(!std::path::Path::new(&setup.path("out")).exists());
}
