//! The list of commands in `hbbp --help`, by what they are for.

use std::fmt::Write;

use clap::Command;
use textwrap::{Options, WordSplitter, fill};

use crate::output::terminal_width;

/// Every command that is shown, by what it is for, in the order of the list.
const JOBS: [(&str, &[&str]); 6] = [
    ("Record", &["record", "control"]),
    ("Look", &["mix", "vectorization", "blocks", "annotate", "paths", "tui", "report", "taxonomy"]),
    ("Compare and collect", &["diff", "merge", "archive", "fleet"]),
    ("Profiles for compilers and tools", &["export", "pgo"]),
    ("Truth and models", &["truth", "validate", "label", "train", "model"]),
    ("This machine", &["doctor", "calibrate", "generate"]),
];

/// Columns of the names.
const NAMES: usize = 17;

/// Columns of a line at most, as in all help.
pub const MOST_COLUMNS: usize = 100;

/// The command with its list of commands by job.
pub fn with_jobs(command: Command) -> Command {
    let list = list(&command);
    let options = format!("{}Options:{:#}", command.get_styles().get_header(), command.get_styles().get_header());
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{options}\n{{options}}{{after-help}}"
    ))
}

fn list(command: &Command) -> String {
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let width = terminal_width().or_else(columns).unwrap_or(MOST_COLUMNS).min(MOST_COLUMNS);
    let indent = " ".repeat(NAMES);
    let options = Options::new(width.saturating_sub(NAMES).max(20)).word_splitter(WordSplitter::NoHyphenation);
    let mut text = String::new();
    for (job, names) in JOBS {
        let _ = writeln!(text, "{header}{job}:{header:#}");
        // Some are left out of builds without their feature.
        for command in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let about = fill(&about, &options).replace('\n', &format!("\n{indent}"));
            let _ = writeln!(text, "  {literal}{name:<width$}{literal:#}{about}", width = NAMES - 2);
        }
        text.push('\n');
    }
    text
}

/// The width that is asked for where there is no terminal, as for the rest of the help.
fn columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn every_command_has_a_job() {
        let command = Cli::command();
        let mut shown: Vec<&str> =
            command.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
        let mut listed: Vec<&str> = JOBS.iter().flat_map(|(_, names)| *names).copied().collect();
        listed.retain(|name| command.find_subcommand(name).is_some());
        shown.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, shown);
        assert!(JOBS.iter().flat_map(|(_, names)| *names).all(|name| name.len() < NAMES - 3));
    }
}
