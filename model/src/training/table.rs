//! Labelled blocks as CSV.
//!
//! One line per block: program, module, function and start (hexadecimal), the features that are not worked out from others
//! ([`FEATURES`]), both counts, executions, and for people the label and the weight, which follow from these.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::io::{Read, Write};

use crate::training::LabelledBlock;
use crate::training::digits::to_digits;
use crate::{FEATURES, Feature, Features};

/// Why a file is no table of labelled blocks.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// It cannot be read or written, or is no CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A column is missing.
    #[error("there is no column {0:?} in its first line; labelled blocks have {columns}", columns = columns().join(","))]
    Column(String),
    /// A field cannot be what it says.
    #[error("line {line}: {column} is {value:?}, which is not {expected}")]
    Field {
        /// Counted from 1, the header being the first.
        line: u64,
        /// The column that it is in.
        column: String,
        /// The text that stands there.
        value: String,
        /// What should be there.
        expected: &'static str,
    },
}

const PLACE: [&str; 4] = ["program", "module", "function", "start"];
const COUNTS: [&str; 3] = ["ebs_count", "lbr_count", "executions"];
const FOLLOWS: [&str; 2] = ["label", "weight"];

/// The columns, in order.
pub fn columns() -> Vec<&'static str> {
    let features = recorded().map(|(feature, _)| feature.name);
    PLACE.into_iter().chain(features).chain(COUNTS).chain(FOLLOWS).collect()
}

type Set = fn(&mut Features, f64);

fn recorded() -> impl Iterator<Item = (&'static Feature, Set)> {
    FEATURES.iter().filter_map(|feature| Some((feature, feature.set?)))
}

/// Writes blocks, counts to six significant digits.
///
/// # Errors
/// What the writer says.
pub fn write_blocks(blocks: &[LabelledBlock], out: impl Write) -> Result<(), TableError> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(columns())?;
    for block in blocks {
        let place =
            [block.program.clone(), block.module.clone(), block.function.clone(), format!("{:#x}", block.start)];
        let features = recorded().map(|(feature, _)| short((feature.get)(&block.features)));
        let counts = [block.features.ebs_count, block.features.lbr_count, block.executions].map(short);
        let follows = [block.label().to_string(), short(block.weight())];
        csv.write_record(place.into_iter().chain(features).chain(counts).chain(follows))?;
    }
    csv.flush().map_err(csv::Error::from)?;
    Ok(())
}

/// A number to six significant digits, without an exponent.
fn short(value: f64) -> String {
    to_digits(value, 6).to_string()
}

/// Reads blocks. Columns are found by name; others than [`columns`] are passed over.
///
/// # Errors
/// What is wrong with the file, and where.
pub fn read_blocks(file: impl Read) -> Result<Vec<LabelledBlock>, TableError> {
    let mut csv = csv::Reader::from_reader(file);
    let header = csv.headers()?.clone();
    let place =
        |name: &str| header.iter().position(|column| column == name).ok_or_else(|| TableError::Column(name.to_owned()));
    let [program, module, function, start] = [place("program")?, place("module")?, place("function")?, place("start")?];
    let counts = [place("ebs_count")?, place("lbr_count")?, place("executions")?];
    let features: Vec<(usize, Set)> =
        recorded().map(|(feature, set)| Ok((place(feature.name)?, set))).collect::<Result<_, TableError>>()?;
    let mut blocks = Vec::new();
    for record in csv.records() {
        let record = record?;
        let text = |column: usize| record.get(column).unwrap_or_default();
        let wrong = |column: usize, expected| TableError::Field {
            line: record.position().map_or(0, csv::Position::line),
            column: header.get(column).unwrap_or_default().to_owned(),
            value: text(column).to_owned(),
            expected,
        };
        let number = |column: usize| {
            let value: Option<f64> = text(column).parse().ok();
            value.filter(|value| (0.0..1e30).contains(value)).ok_or_else(|| wrong(column, "a number from 0 to 1e30"))
        };
        let address = text(start).strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let mut block = Features::default();
        for &(column, set) in &features {
            set(&mut block, number(column)?);
        }
        [block.ebs_count, block.lbr_count] = [number(counts[0])?, number(counts[1])?];
        blocks.push(LabelledBlock {
            program: text(program).to_owned(),
            module: text(module).to_owned(),
            function: text(function).to_owned(),
            start: address.ok_or_else(|| wrong(start, "a hexadecimal address like 0x401000"))?,
            features: block,
            executions: number(counts[2])?,
        });
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockEnd, Source};

    fn block() -> LabelledBlock {
        let features = Features {
            instructions: 7,
            bytes: 30,
            bias: true,
            ebs_samples: 3,
            ebs_count: 12_345_678.9,
            lbr_count: 1e-7,
            end: BlockEnd::Indirect,
            shadowed: true,
            ..Features::default()
        };
        let [program, module, function] = ["gzip", "/bin/gzip", "f<a,b>"].map(str::to_owned);
        LabelledBlock { program, module, function, start: 0x401_000, features, executions: 1.5e7 }
    }

    #[test]
    fn blocks_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        write_blocks(&[block()], &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.ends_with(",12345700,0.0000001,15000000,ebs,105000000\n"), "{text}");
        let read = read_blocks(text.as_bytes()).unwrap();
        let expected = Features { ebs_count: 12_345_700.0, ..block().features };
        assert_eq!(read, [LabelledBlock { features: expected, ..block() }]);
        assert_eq!(read[0].label(), Source::Ebs);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let mut bytes = Vec::new();
        write_blocks(&[block()], &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let check = |from: &str, to: &str, expected: &str| {
            let said = read_blocks(text.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        };
        check("0x401000", "401000", "line 2: start is \"401000\", which is not a hexadecimal address");
        check(",15000000,", ",NaN,", "line 2: executions is \"NaN\", which is not a number");
        check(",15000000,", ",-1,", "line 2: executions is \"-1\"");
        check("bias", "colour", "no column \"bias\" in its first line; labelled blocks have program,module,function");
    }
}
