//! `hbbp`: how often every basic block of a program runs.
#![forbid(unsafe_code)]

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Counts how often every basic block of a program runs, with or without hardware branch records.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Record(commands::record::Args),
    Doctor(commands::doctor::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Record(args) => commands::record::run(args),
        Command::Doctor(args) => commands::doctor::run(args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("hbbp: {error:#}");
        ExitCode::FAILURE
    })
}
