//! The options that say what a report keeps: filters, and taxonomies whose groups they name.

use std::fmt::Display;
use std::path::PathBuf;

use analyzer::Analysis;
use analyzer::mix::{Dimension, Filter, Key, Mix, Taxonomies};
use reports::key_of_task;
use reports::mix::filter;
use reports::taxonomies::with_files;

use crate::output;
use crate::usage::{CommandLine, wrong_usage};

/// What is kept.
#[derive(clap::Args)]
pub struct FilterArgs {
    /// Keep only instructions with these values: key=value, key=one,other (`*` matches any text), key~regex, key>=number; `!=` and `!~` leave out; <, <= and > compare numbers, too
    #[arg(long = "filter", value_name = "COMPARISON")]
    pub filters: Vec<String>,

    /// A file with a taxonomy of your own, whose name is one more key
    #[arg(long = "taxonomy", value_name = "FILE")]
    pub taxonomies: Vec<PathBuf>,
}

impl FilterArgs {
    /// The taxonomies that come with the program, and those of the files.
    ///
    /// # Errors
    /// A file is none, or cannot be read.
    pub fn taxonomies(&self) -> anyhow::Result<Taxonomies> {
        with_files(&self.taxonomies)
    }

    /// The filters. The process ends with what is wrong with one, if something is; `A` are all options of the command of that name.
    pub fn filters<A: clap::Args>(&self, name: &'static str, taxonomies: &Taxonomies) -> Vec<Filter> {
        let wrong = |why: &dyn Display| -> ! { wrong_usage::<A>(name, format!("--filter: {why}")) };
        let read = |text: &String| filter(text, taxonomies).unwrap_or_else(|error| wrong(&error));
        self.filters.iter().map(read).collect()
    }

    /// The same for a report that does not tell processes, threads and phases apart.
    pub fn filters_of_code<A: clap::Args>(&self, name: &'static str, taxonomies: &Taxonomies) -> Vec<Filter> {
        let filters = self.filters::<A>(name, taxonomies);
        if let Some(key) = key_of_task(&filters) {
            let why = "adds up all processes, threads and phases; `hbbp mix` tells them apart";
            wrong_usage::<A>(name, format!("--filter {key}: {name} {why}"));
        }
        filters
    }
}

/// How many of the instructions of each block pass the filters. What there is to say of the filters is said.
///
/// # Errors
/// No instruction passes: why that may be.
pub fn passing(analysis: &Analysis, filters: Vec<Filter>, threads: usize) -> anyhow::Result<Mix> {
    let (passing, said) = reports::passing(analysis, filters, threads, &CommandLine)?;
    said.iter().for_each(output::say);
    Ok(passing)
}

/// Whether any filter is of loops, which are found best where branches are known.
pub fn asks_loops(filters: &[Filter]) -> bool {
    filters.iter().filter_map(|filter| Key::dimension(&filter.key)).any(Dimension::is_of_loops)
}
