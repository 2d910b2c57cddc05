//! Options that a command cannot do anything with.

use std::fmt::Display;

use clap::error::ErrorKind;

/// Says on standard error what is wrong with the options of a command (`hbbp merge`), and ends the process with status 2. `A` are its options.
pub fn wrong_usage<A: clap::Args>(command: &'static str, why: impl Display) -> ! {
    A::augment_args(clap::Command::new(command)).error(ErrorKind::ArgumentConflict, why).exit()
}
