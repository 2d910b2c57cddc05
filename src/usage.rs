//! The names of options, and options that a command cannot do anything with.

use std::fmt::Display;

use clap::error::ErrorKind;
use reports::{Argument, Arguments};

use crate::output::{broken, columns_of};

/// What may be asked of reports, as options.
pub struct CommandLine;

impl Arguments for CommandLine {
    fn name(&self, argument: Argument) -> &'static str {
        match argument {
            Argument::Rows => "--rows",
            Argument::Columns => "--columns",
            Argument::Filter => "--filter",
            Argument::Per => "--per",
            Argument::Values => "--values",
            Argument::Sort => "--sort",
            Argument::Subtotals => "--subtotals",
            Argument::Binaries => "--binary",
            Argument::Symfs => "--symfs",
        }
    }

    fn values_of(&self, key: &str) -> String {
        format!("hbbp mix --rows {key}")
    }
}

/// Says on standard error what is wrong with the options of a command (`hbbp merge`), and ends the process with status 2. `A` are its options.
pub fn wrong_usage<A: clap::Args>(command: &'static str, why: impl Display) -> ! {
    A::augment_args(clap::Command::new(command)).error(ErrorKind::ArgumentConflict, wrapped(&why.to_string())).exit()
}

/// Broken at words for the terminal that errors go to, after the word that clap puts before them.
fn wrapped(why: &str) -> String {
    const BEFORE: &str = "error: ";
    let Some(columns) = columns_of(std::io::stderr()) else { return why.to_owned() };
    broken(BEFORE, why, columns).split_off(BEFORE.len())
}
