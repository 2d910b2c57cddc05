//! `hbbp model`: the models there are.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use model::{Chooser, PublishedRule, SourcePair};
use reports::models::{Found, PUBLISHED, for_pair, imported_file, named, read};

use crate::output::{Align, Table, TextFormat, evidence, terminal_width, tree, write_to};

/// Show, import and export models
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  hbbp model show                             which model is used for which sources
  hbbp model show software                    its tree, its features, and how it was tested
  hbbp model show mine.json --format json
  hbbp model import mine.json                 use it from now on for its kind of sources
  hbbp model remove software                  back to the model that comes with the program
  hbbp model export software -o copy.json";

#[derive(clap::Subcommand)]
enum Action {
    /// Print a model, or which model is used for which kind of sources
    Show {
        /// A file, or the kind of sources a model is for: hardware, software or simulated
        #[arg(value_name = "FILE|NAME")]
        name: Option<String>,

        /// Text, or the JSON of the model file
        #[arg(long, value_enum, default_value = "text")]
        format: TextFormat,
    },
    /// Write a model to a file
    Export {
        /// The kind of sources it is for, or a file
        #[arg(value_name = "NAME")]
        name: String,

        /// Write it to this file instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Check a model, and use it from now on for its kind of sources
    Import {
        /// The model, as `hbbp train -o` writes it
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Remove an imported model
    Remove {
        /// The kind of sources it is for
        #[arg(value_name = "KIND")]
        pair: SourcePair,
    },
}

/// Prints the models that there are, or one of them.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Show { name: None, format: TextFormat::Json } => bail!("--format json prints one model: name it"),
        Action::Show { name: None, .. } => write_to(None, overview)?,
        Action::Show { name: Some(name), .. } if name == PUBLISHED => {
            write_to(None, |out| Ok(writeln!(out, "{}", PublishedRule.describe())?))?;
        }
        Action::Show { name: Some(name), format } => {
            let found = named(name)?;
            write_to(None, |out| match format {
                TextFormat::Text => show(&found, out),
                TextFormat::Json => Ok(out.write_all(found.model.to_json().as_bytes())?),
            })?;
        }
        Action::Export { name, output } => {
            let json = named(name)?.model.to_json();
            write_to(output.as_deref(), |out| Ok(out.write_all(json.as_bytes())?))?;
        }
        Action::Import { file } => import(file)?,
        Action::Remove { pair } => remove(*pair)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn overview(out: &mut dyn Write) -> anyhow::Result<()> {
    let titles = ["sources", "model", "what decides"].map(|title| (title.to_string(), Align::Left));
    let mut table = Table::new(titles.to_vec());
    for pair in SourcePair::ALL {
        let (origin, decides) = match for_pair(pair)? {
            Some(Found { model, origin }) if model.beats_best_single() => (origin, model.describe()),
            Some(Found { model, origin }) => {
                (origin, format!("{} everywhere: the tree does not beat it", model.evidence.best_single()))
            }
            None => ("none".into(), PublishedRule.describe()),
        };
        table.row(vec![pair.to_string(), origin, decides]);
    }
    Ok(table.print(out, terminal_width())?)
}

fn show(found: &Found, out: &mut dyn Write) -> anyhow::Result<()> {
    let Found { model, origin } = found;
    let parameters = model.evidence.parameters;
    writeln!(out, "# model     for {} sources ({origin})", model.pair)?;
    writeln!(
        out,
        "# trained   on {} blocks of {} programs; weights: {}, at most {} leaves and depth {}\n",
        model.evidence.blocks,
        model.evidence.leave_one_out.len(),
        parameters.weighting,
        parameters.leaves,
        parameters.depth
    )?;
    tree(&model.tree, out, terminal_width())?;
    writeln!(out)?;
    Ok(evidence(model, out, terminal_width())?)
}

fn import(file: &std::path::Path) -> anyhow::Result<()> {
    let Found { model, .. } = read(file)?;
    let place = place(model.pair)?;
    let context = || format!("cannot write {}", place.display());
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).with_context(context)?;
    }
    // Whoever reads at this moment sees the old model or the new one.
    let new = place.with_extension("new");
    std::fs::write(&new, model.to_json()).and_then(|()| std::fs::rename(&new, &place)).with_context(context)?;
    let use_of_it = match model.beats_best_single() {
        true => "chooses from now on".to_string(),
        false => format!("is kept, but {} is believed everywhere", model.evidence.best_single()),
    };
    say!("the model for {} sources {use_of_it}: {}", model.pair, model.verdict());
    say!("{}; `hbbp model remove {}` forgets it", place.display(), model.pair);
    Ok(())
}

fn remove(pair: SourcePair) -> anyhow::Result<()> {
    let place = place(pair)?;
    match std::fs::remove_file(&place) {
        Ok(()) => say!("{} is removed", place.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("no model for {pair} sources was imported ({} is not there)", place.display())
        }
        Err(error) => return Err(error).with_context(|| format!("cannot remove {}", place.display())),
    }
    Ok(())
}

fn place(pair: SourcePair) -> anyhow::Result<PathBuf> {
    imported_file(pair).context("imported models are kept in XDG_DATA_HOME or HOME, and neither is set to a path")
}
