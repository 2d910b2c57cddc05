//! `hbbp taxonomy`: named groups of instructions.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use analyzer::mix::{Taxonomies, Taxonomy};
use anyhow::anyhow;
use reports::taxonomies::with_files;
use serde_json::{Value, json};

use crate::output::{Align, Table, TextFormat, print_line, terminal_width, write_to};

/// List, check and show taxonomies: named groups of instructions
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  hbbp taxonomy list                         all that come with the program
  hbbp taxonomy show vectorization           its groups, in the order in which they are tried
  hbbp taxonomy check mine.toml              is it right? says line and column where it is not
  hbbp taxonomy show mine --taxonomy mine.toml --format json
  hbbp mix --taxonomy mine.toml --rows mine  use it";

#[derive(clap::Subcommand)]
enum Action {
    /// Print the names of all taxonomies
    List(Options),
    /// Check files of taxonomies
    Check {
        /// The files; they can inherit one another
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the groups of a taxonomy
    Show {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,

        #[command(flatten)]
        options: Options,
    },
}

#[derive(clap::Args)]
struct Options {
    /// A file with a taxonomy of your own, beside those that come with the program
    #[arg(long = "taxonomy", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// A table, or JSON
    #[arg(long, value_enum, default_value = "text")]
    format: TextFormat,
}

/// Prints or checks taxonomies.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::List(options) => {
            let taxonomies = with_files(&options.files)?;
            write_to(None, |out| match options.format {
                TextFormat::Text => list(&taxonomies, out),
                TextFormat::Json => {
                    let all: Vec<Value> = taxonomies.iter().map(|taxonomy| document(taxonomy)).collect();
                    Ok(writeln!(out, "{}", json!({"schema": "hbbp-taxonomies/1", "taxonomies": all}))?)
                }
            })?;
        }
        Action::Check { files } => {
            with_files(files)?;
            let number = files.len();
            say!("{number} {} right", if number == 1 { "taxonomy is" } else { "taxonomies are" });
        }
        Action::Show { name, options } => {
            let taxonomies = with_files(&options.files)?;
            let unknown = || anyhow!("there is no taxonomy {name:?}; there are {}", taxonomies.names());
            let taxonomy = taxonomies.get(name).ok_or_else(unknown)?;
            write_to(None, |out| match options.format {
                TextFormat::Text => show(taxonomy, out),
                TextFormat::Json => {
                    let mut document = document(taxonomy);
                    document["schema"] = "hbbp-taxonomy/1".into();
                    Ok(writeln!(out, "{document}")?)
                }
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(taxonomies: &Taxonomies, out: &mut dyn Write) -> anyhow::Result<()> {
    let titles = [("taxonomy", Align::Left), ("groups", Align::Right), ("what it tells apart", Align::Left)];
    let mut table = Table::new(titles.map(|(title, align)| (title.to_owned(), align)).to_vec());
    for taxonomy in taxonomies.iter() {
        table.row(vec![taxonomy.name.clone(), taxonomy.groups.len().to_string(), taxonomy.description.clone()]);
    }
    Ok(table.print(out, terminal_width())?)
}

fn show(taxonomy: &Taxonomy, out: &mut dyn Write) -> anyhow::Result<()> {
    let layout = terminal_width().into();
    print_line("taxonomy", &format!("{}: {}", taxonomy.name, taxonomy.description), out, layout)?;
    let groups = format!("an instruction is in the first whose conditions hold; in {:?} if none do", taxonomy.other);
    print_line("groups", &groups, out, layout)?;
    writeln!(out)?;
    let titles = ["group", "conditions", "what it is"].map(|title| (title.to_owned(), Align::Left));
    let mut table = Table::new(titles.to_vec());
    for group in &taxonomy.groups {
        table.row(vec![group.name.clone(), group.conditions(), group.description.clone().unwrap_or_default()]);
    }
    Ok(table.print(out, layout)?)
}

fn document(taxonomy: &Taxonomy) -> Value {
    let group = |group: &analyzer::mix::Group| {
        json!({
            "name": group.name,
            "description": group.description,
            "inherits": group.inherits,
            "conditions": group.conditions(),
        })
    };
    json!({
        "name": taxonomy.name,
        "description": taxonomy.description,
        "inherits": taxonomy.inherits,
        "other": taxonomy.other,
        "groups": taxonomy.groups.iter().map(group).collect::<Vec<_>>(),
    })
}
