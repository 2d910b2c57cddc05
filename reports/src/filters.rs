//! What reports on code keep.

use analyzer::Analysis;
use analyzer::mix::{Dimension, Filter, Key, Mix, Query, mix};
use anyhow::ensure;

use crate::mix::{is_of_code, unmatched};
use crate::{Argument, Arguments};

/// The first key of filters that is of processes, threads or phases: reports that add them up cannot keep by it.
pub fn key_of_task(filters: &[Filter]) -> Option<&Key> {
    filters.iter().map(|filter| &filter.key).find(|key| key.dimension().is_some_and(Dimension::is_of_task))
}

/// How many of the instructions of each block pass the filters ([`Mix::by_block`]), and what there is to say of the filters.
///
/// # Errors
/// No instruction passes: why that may be.
pub fn passing(
    analysis: &Analysis,
    filters: Vec<Filter>,
    threads: usize,
    arguments: &dyn Arguments,
) -> anyhow::Result<(Mix, Vec<String>)> {
    let by_code = filters.iter().any(|filter| is_of_code(&filter.key));
    let query = Query { rows: vec![Dimension::Module.into()], filters, blocks: true, threads, ..Query::default() };
    let passing = mix(analysis, &query)?;
    ensure!(
        !passing.by_block.is_empty() || !by_code || analysis.has_readable_code(),
        "there is nothing to show: filters choose code, and that of no module could be read: name the binaries with {} or {}",
        arguments.name(Argument::Binaries),
        arguments.name(Argument::Symfs)
    );
    let unmatched: Vec<String> = passing.unmatched.iter().map(|of| unmatched::sentence(of, arguments)).collect();
    ensure!(
        !passing.by_block.is_empty(),
        "there is nothing to show: {}",
        [&["no instruction passes the filters".to_owned()], unmatched.as_slice()].concat().join("; ")
    );
    let said = passing.notes.iter().cloned().chain(unmatched).collect();
    Ok((passing, said))
}
