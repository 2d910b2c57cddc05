//! Manual pages (man-pages(7)): what `--help` says, in sections.

use std::io;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::commands::generate::cargo;

/// The pages of a command that is built, of all its commands, and of `cargo hbbp`: names of files and contents.
pub fn pages(command: &Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut pages = Vec::new();
    add(command, "hbbp", &mut pages)?;
    for (name, command) in cargo::commands(command) {
        pages.push((format!("{name}.1"), page(&command, name)?));
    }
    Ok(pages)
}

fn add(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    pages.push((format!("{name}.1"), page(command, name)?));
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.into_iter().try_for_each(|command| add(command, &format!("{name}-{}", command.get_name()), pages))
}

fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let man = man.title(name).source(concat!("hbbp ", env!("CARGO_PKG_VERSION"))).manual("hbbp");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    let usage = command.clone().render_usage().to_string();
    verbatim(&format!("Synopsis:\n  {}", usage.trim_start_matches("Usage: "))).to_writer(&mut out)?;
    man.render_description_section(&mut out)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut out)?;
    }
    if command.get_subcommands().next().is_some() {
        man.render_subcommands_section(&mut out)?;
    }
    verbatim(&command.get_after_help().map(ToString::to_string).unwrap_or_default()).to_writer(&mut out)?;
    let others = match name {
        "hbbp" => return Ok(out),
        "cargo-hbbp" => "cargo-hbbp-pgo(1), hbbp(1)",
        "cargo-hbbp-pgo" => "cargo-hbbp(1), hbbp-pgo(1), hbbp(1)",
        _ => "hbbp(1)",
    };
    Roff::new().control("SH", ["SEE ALSO"]).text([roman(others)]).to_writer(&mut out)?;
    Ok(out)
}

/// What follows the options in `--help`, line by line as it is there: sections begin with a line that ends in a colon at the margin, and
/// have indented lines.
fn verbatim(help: &str) -> Roff {
    let mut roff = Roff::new();
    let mut is_open = false;
    for line in help.lines() {
        let title = line.strip_suffix(':').filter(|title| !title.starts_with(' ') && !title.is_empty());
        if let Some(title) = title {
            if std::mem::replace(&mut is_open, true) {
                roff.control("fi", []);
            }
            roff.control("SH", [title.to_uppercase().as_str()]).control("nf", []);
        } else if is_open && (line.is_empty() || line.starts_with(' ')) {
            roff.text([roman(line)]);
        } else if !line.is_empty() {
            if std::mem::take(&mut is_open) {
                roff.control("fi", []);
            }
            roff.control("PP", []).text([roman(line)]);
        }
    }
    if is_open {
        roff.control("fi", []);
    }
    roff
}
