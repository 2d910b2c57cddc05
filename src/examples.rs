//! Examples in the help of commands that are below others: those of the command above that call them.

use clap::Command;

/// The command, whose commands of the second level have examples.
pub fn with_examples(mut command: Command) -> Command {
    // Before, the second level is not there.
    command.build();
    command.mut_subcommands(|above| {
        let name = format!("hbbp {}", above.get_name());
        let all = above.get_after_help().map(ToString::to_string).unwrap_or_default();
        above.mut_subcommands(|below| {
            let own = lines_of(&all, &format!("  {name} {}", below.get_name()));
            match below.get_after_help() {
                None if !own.is_empty() => below.after_help(format!("Examples:\n{own}")),
                _ => below,
            }
        })
    })
}

/// The lines that begin with this call, with those that go on with them.
fn lines_of(examples: &str, call: &str) -> String {
    let mut lines = Vec::new();
    let mut is_of_call = false;
    for line in examples.lines() {
        is_of_call = match line.strip_prefix(call) {
            Some(rest) => rest.is_empty() || rest.starts_with(' '),
            None => is_of_call && line.starts_with("    "),
        };
        lines.extend(is_of_call.then_some(line));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_call_go_on() {
        let examples = "Examples:\n  hbbp a on       x\n  hbbp a only\n  hbbp a on -q\n                  y\n\nMore";
        assert_eq!(lines_of(examples, "  hbbp a on"), "  hbbp a on       x\n  hbbp a on -q\n                  y");
        assert_eq!(lines_of(examples, "  hbbp a off"), "");
    }
}
