//! `--help` of every command.

mod support;

use support::stdout;

#[test]
fn every_command_explains_its_options_with_examples() {
    let help = stdout(&["--help"]);
    // Commands are in lists by what they are for, between how they are used and the options.
    let list = help.split_once("\n\nRecord:\n").unwrap().1.split_once("\nOptions:\n").unwrap().0;
    // Lines of a command begin two columns in, what goes on further.
    let names = list.lines().filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let names: Vec<&str> = names.map(|line| line.split(' ').next().unwrap()).filter(|&name| name != "help").collect();
    assert!(names.len() > 10, "{help}");
    for name in names {
        let help = stdout(&[name, "--help"]);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let about = words(help.split("\n\n").next().unwrap());
        assert!(
            words(list).contains(&format!("{name} {about}")),
            "{name} is {about:?} in its help, and not in the list: {list}"
        );
        assert!(
            help.contains("Usage: hbbp") && help.contains("Examples:\n") && help.contains("\n  hbbp "),
            "{name}: {help}"
        );
        assert!(help.contains("Options:\n") || help.contains("Commands:\n"), "{name}: {help}");
        // Help is at most 100 columns wide: a longer example is broken, and its second line begins in the margin's two columns.
        let examples = help.split("Examples:\n").nth(1).unwrap().split("\n\n").next().unwrap();
        let starts = ["hbbp ", "env ", "clang ", "    "];
        let is_whole =
            |line: &str| line.strip_prefix("  ").is_some_and(|line| starts.iter().any(|start| line.starts_with(start)));
        assert!(examples.lines().all(is_whole), "{name}: {examples}");
    }
    for name in ["export", "merge", "diff"] {
        let help = stdout(&[name, "--help"]);
        let paragraph = help.split("\n\n").nth(1).unwrap();
        assert!(!paragraph.starts_with("Usage") && paragraph.lines().count() > 1, "{name}: {help}");
    }
}

#[test]
fn commands_of_commands_have_the_examples_that_call_them() {
    for name in ["control", "generate", "model", "taxonomy"] {
        let help = stdout(&[name, "--help"]);
        let list = help.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
        let below: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
        for below in below.into_iter().filter(|&below| below != "help") {
            let call = format!("  hbbp {name} {below}");
            let help = stdout(&[name, below, "--help"]);
            let examples = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{call}: {help}")).1;
            assert!(examples.starts_with(&call), "{call}: {help}");
        }
    }
}
