//! Reading what instrumentation wrote, whichever kind it is.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use analyzer::BinarySearch;
use analyzer::truth::{Callgrind, ExactCounter, MixFile, Truth};
use anyhow::{Context, bail};

use crate::input::{Reader, Reads};

const TRUTH: Reader = Reader { name: "--truth", reads: Reads::ExactCounts, records: false };
const FROM: Reader = Reader { name: "--from", reads: Reads::ForeignCounts, records: false };

/// Reads exact counts: JSON of `hbbp truth`, or a file of callgrind or mix.
pub fn read_truth(path: &Path, search: BinarySearch) -> anyhow::Result<Truth> {
    let mut file = open(path)?;
    let begin = file.fill_buf().with_context(|| path.display().to_string())?;
    if begin.trim_ascii_start().starts_with(b"{") {
        let truth = Truth::read_json(file);
        if truth.is_err() {
            TRUTH.refuse(path)?;
        }
        return truth.with_context(|| path.display().to_string());
    }
    drop(file);
    TRUTH.refuse(path)?;
    let mut counter = ExactCounter::new(search);
    add(path, &mut counter)?;
    counter.finish().with_context(|| path.display().to_string())
}

/// Adds a file of callgrind or mix.
pub fn add(path: &Path, counter: &mut ExactCounter) -> anyhow::Result<()> {
    let mut file = open(path)?;
    let name = || path.display().to_string();
    let begin = file.fill_buf().with_context(name)?;
    if Callgrind::begins_like(begin) {
        counter.add_callgrind(Callgrind::read(file).with_context(name)?);
    } else if MixFile::begins_like(begin) {
        counter.add_mix_file(MixFile::read(file).with_context(name)?);
    } else {
        FROM.refuse(path)?;
        bail!(
            "{}: it begins neither like a file of callgrind (`# callgrind format`) nor like one of SDE's -mix \
             (`# Mix output version`)",
            path.display()
        );
    }
    Ok(())
}

fn open(path: &Path) -> anyhow::Result<BufReader<File>> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    Ok(BufReader::with_capacity(1 << 16, file))
}
