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
    let without_code = without_code(&filters, analysis, arguments);
    let query = Query { rows: vec![Dimension::Module.into()], filters, blocks: true, threads, ..Query::default() };
    let passing = mix(analysis, &query)?;
    let unmatched: Vec<String> = passing.unmatched.iter().map(|of| unmatched::sentence(of, arguments)).collect();
    ensure!(
        !passing.by_block.is_empty(),
        "there is nothing to show: {}",
        nothing_passes(without_code, &[], &unmatched)
    );
    let said = passing.notes.iter().cloned().chain(unmatched).collect();
    Ok((passing, said))
}

/// That filters choose code, and none could be read, if it is so.
pub fn without_code(filters: &[Filter], analysis: &Analysis, arguments: &dyn Arguments) -> Option<String> {
    let is_so = filters.iter().any(|filter| is_of_code(&filter.key)) && !analysis.has_readable_code();
    is_so.then(|| {
        let [binaries, symfs] = [Argument::Binaries, Argument::Symfs].map(|argument| arguments.name(argument));
        format!(
            "filters choose code, and that of no module could be read: name the binaries with {binaries} or {symfs}"
        )
    })
}

/// Why nothing is left: `why`, or else that no instruction passes the filters; what is weaker, and which values nothing has.
pub fn nothing_passes(why: Option<String>, weaker: &[String], unmatched: &[String]) -> String {
    let why = why.unwrap_or_else(|| "no instruction passes the filters".to_owned());
    [&[why], weaker, unmatched].concat().join("; ")
}
