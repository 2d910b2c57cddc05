//! Manual pages and completions.

mod support;

use std::fs::{read_dir, read_to_string};
use std::process::Command;

use support::stdout;
use tempfile::TempDir;

/// The long options that a help text explains, at the beginning of a line, after a short one perhaps.
fn options(help: &str) -> impl Iterator<Item = &str> {
    let begins = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = begins.flat_map(|line| line.split_whitespace().take(2));
    let long = words.filter_map(|word| word.strip_prefix("--"));
    long.filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
}

/// The text of a page in roff, whose escapes are undone.
fn plain(page: &str) -> String {
    page.replace("\\-", "-").replace("\\*(Aq", "'").replace("\\&", "").replace("\\\\", "\\")
}

#[test]
fn every_command_has_a_manual_page_with_what_its_help_says() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path().join("made/on the way");
    assert_eq!(stdout(&["generate", "manual", "-o", folder.to_str().unwrap()]), "");
    let mut pages = 0;
    for entry in read_dir(&folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let page = plain(&read_to_string(entry.path()).unwrap());
        let name = name.strip_suffix(".1").unwrap();
        if name.starts_with("cargo-") {
            continue;
        }
        let words: Vec<&str> = name.split('-').skip(1).chain(["--help"]).collect();
        let help = stdout(&words);
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
            assert!(page.contains(&format!(".SH {section}\n")), "{name}: {section}");
        }
        assert_eq!(page.contains("\n.SH EXAMPLES\n.nf\n"), help.contains("\nExamples:\n"), "{name}");
        for example in help.lines().filter(|line| line.starts_with("  hbbp ")) {
            assert!(page.contains(example), "{name}: {example:?}\n{page}");
        }
        for option in options(help.split("Options:\n").nth(1).unwrap_or_default().split("\n\nExamples").next().unwrap())
        {
            assert!(page.contains(&format!("--{option}")), "{name}: --{option}");
        }
        pages += 1;
    }
    assert!(pages > 20, "{pages}");
    let first = plain(&read_to_string(folder.join("hbbp.1")).unwrap());
    assert!(first.contains("hbbp-record(1)") && !first.contains("help(1)") && !first.contains("hbbp-again"), "{first}");
    assert!(!folder.join("hbbp-help.1").exists() && !folder.join("hbbp-again.1").exists());
}

#[test]
fn cargo_hbbp_has_manual_pages() {
    let folder = TempDir::new().unwrap();
    stdout(&["generate", "manual", "-o", folder.path().to_str().unwrap()]);
    let page = |name: &str| plain(&read_to_string(folder.path().join(name)).unwrap());
    let (whole, pgo) = (page("cargo-hbbp.1"), page("cargo-hbbp-pgo.1"));
    for (name, page) in [("cargo-hbbp", &whole), ("cargo-hbbp-pgo", &pgo)] {
        assert!(page.contains(&format!("\n.SH NAME\n{name} - ")), "{page}");
        for section in ["SYNOPSIS\n.nf\n  cargo hbbp pgo", "DESCRIPTION\n", "EXAMPLES\n.nf\n  cargo hbbp pgo"] {
            assert!(page.contains(&format!("\n.SH {section}")), "{name}: {section}\n{page}");
        }
    }
    assert!(whole.contains("cargo-hbbp-pgo(1)") && !whole.contains("\n.SH OPTIONS"), "{whole}");
    // All options of `hbbp pgo`, but those that say how something else than cargo builds.
    let help = stdout(&["pgo", "--help"]);
    let all: Vec<&str> =
        options(help.split("Options:\n").nth(1).unwrap().split("\n\nExamples").next().unwrap()).collect();
    let others = ["build", "run", "clean", "binary"];
    assert!(all.len() > 10 && others.iter().all(|option| all.contains(option)), "{all:?}");
    for option in all {
        let explained = pgo.contains(&format!("\\fB--{option}\\fR"));
        assert_eq!(explained, !others.contains(&option), "--{option}\n{pgo}");
    }
}

#[test]
fn bash_completes_commands_options_and_values() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("hbbp.bash");
    stdout(&["generate", "completions", "bash", "-o", file.to_str().unwrap()]);
    let complete = |words: &[&str]| {
        let script = format!(
            "source {}; COMP_WORDS=({}); COMP_CWORD={}; _hbbp hbbp '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file.display(),
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(complete(&["hbbp", "annot"]), "annotate\n");
    assert_eq!(complete(&["hbbp", "mix", "--subt"]), "--subtotals\n");
    assert_eq!(complete(&["hbbp", "mix", "--format", "mark"]), "markdown\n");
}

#[test]
fn other_shells_have_completions() {
    for (shell, beginning) in [("zsh", "#compdef hbbp"), ("fish", "# Print an optspec for argparse")] {
        let script = stdout(&["generate", "completions", shell]);
        assert!(script.starts_with(beginning) && script.contains("vectorization"), "{shell}: {script}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().join("man");
    let output = support::hbbp().args(["generate", "manual", "-o"]).arg(&path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains(path.to_str().unwrap()), "{errors}");
}
