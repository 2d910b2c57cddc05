//! The keys of a mix, in the help.

use analyzer::mix::{Dimension, Taxonomies, Values};
use textwrap::{Options, WordSplitter, fill};

/// Columns of the names.
const NAMES: usize = 19;
/// Columns of a line: what help has at most.
const WIDTH: usize = 100;
/// Longer lists of values are not printed.
const MOST_VALUES: usize = 40;

/// The commands that take keys, and the options that do.
const TAKEN: [(&str, &[&str]); 7] = [
    ("mix", &["rows", "columns", "per", "filter"]),
    ("vectorization", &["filter"]),
    ("blocks", &["filter"]),
    ("annotate", &["filter"]),
    ("paths", &["filter"]),
    ("diff", &["rows", "filter"]),
    ("tui", &["rows", "columns", "filter"]),
];

/// The examples, and after them all keys with the values that they have.
pub fn after(examples: &str) -> String {
    let keys: Vec<String> = Dimension::ALL.iter().map(|key| dimension(*key)).collect();
    let taxonomies = Taxonomies::built_in_names();
    let taxonomies =
        described("(taxonomies)", &format!("Groups of instructions: {taxonomies}; `hbbp taxonomy` explains them."));
    let options = |(name, options): (&str, &[&str])| {
        let options: Vec<String> = options.iter().map(|option| format!("--{option}")).collect();
        format!("{name} {}", options.join(", "))
    };
    let taken = format!("They are taken by {}.", TAKEN.map(options).join("; "));
    let taken = fill(&taken, Options::new(WIDTH).word_splitter(WordSplitter::NoHyphenation));
    format!("{examples}\n\nKeys:\n{}\n{taxonomies}\n\n{taken}", keys.join("\n"))
}

fn dimension(key: Dimension) -> String {
    let values = match key.values() {
        Values::Words(words) if words.len() <= MOST_VALUES => format!(" One of {}.", words.join(", ")),
        Values::Words(words) => format!(" One of {}: `hbbp mix --rows {key}` shows those that ran.", words.len()),
        Values::Text => String::new(),
        Values::Numbers(words) => format!("{}.", [&["A number"], words].concat().join(" or ")),
    };
    described(key.as_str(), &format!("{} {}", key.about().replace('`', ""), values.trim_start()))
}

fn described(name: &str, about: &str) -> String {
    let name = format!("  {name:<width$}", width = NAMES - 2);
    let indent = " ".repeat(NAMES);
    let options = Options::new(WIDTH)
        .initial_indent(&name)
        .subsequent_indent(&indent)
        .word_splitter(WordSplitter::NoHyphenation)
        .break_words(false);
    fill(about.trim_end(), options)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn commands_take_keys_where_the_help_says() {
        let mut all = Cli::command();
        all.build();
        for command in all.get_subcommands().filter(|command| !command.is_hide_set()) {
            let has = |option: &&&str| command.get_arguments().any(|argument| argument.get_long() == Some(**option));
            let there: Vec<&str> = ["rows", "columns", "per", "filter"].iter().filter(has).copied().collect();
            let said = TAKEN.iter().find(|(name, _)| *name == command.get_name());
            assert_eq!(said.map_or(&[][..], |(_, options)| options), there, "{}", command.get_name());
        }
    }

    #[test]
    fn every_key_is_explained_in_lines_that_fit() {
        let help = after("Examples:");
        assert!(help.contains("blocks --filter;"), "{help}");
        for key in Dimension::ALL {
            let line = help.lines().find(|line| line.split_whitespace().next() == Some(key.as_str()));
            assert!(line.is_some_and(|line| line.len() > NAMES), "{key}: {help}");
        }
        assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
        assert!(help.contains("One of legacy, vex, evex, xop, 3dnow, mvex."), "{help}");
    }
}
