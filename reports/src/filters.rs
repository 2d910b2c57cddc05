//! What reports on code keep.

use analyzer::Analysis;
use analyzer::mix::{Dimension, Filter, Mix, Query, mix};
use anyhow::{bail, ensure};

use crate::mix::unmatched;

/// Refuses filters by processes, threads and phases, in a report of that name which does not tell them apart.
///
/// # Errors
/// There is such a filter.
pub fn only_of_code(name: &str, filters: &[Filter]) -> anyhow::Result<()> {
    let of_tasks = |filter: &&Filter| filter.key.dimension().is_some_and(Dimension::is_of_task);
    let Some(Filter { key, .. }) = filters.iter().find(of_tasks) else { return Ok(()) };
    bail!("--filter {key}: {name} adds up all processes, threads and phases; `hbbp mix` tells them apart")
}

/// How many of the instructions of each block pass the filters ([`Mix::by_block`]), and what there is to say of the filters.
///
/// # Errors
/// No instruction passes: why that may be.
pub fn passing(analysis: &Analysis, filters: Vec<Filter>, threads: usize) -> anyhow::Result<(Mix, Vec<String>)> {
    let query = Query { rows: vec![Dimension::Module.into()], filters, blocks: true, threads, ..Query::default() };
    let passing = mix(analysis, &query)?;
    let unmatched: Vec<String> = passing.unmatched.iter().map(unmatched::sentence).collect();
    ensure!(
        !passing.by_block.is_empty(),
        "there is nothing to show: {}",
        [&["no instruction passes the filters".to_owned()], unmatched.as_slice()].concat().join("; ")
    );
    let said = passing.notes.iter().cloned().chain(unmatched).collect();
    Ok((passing, said))
}
