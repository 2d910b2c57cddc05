//! `hbbp generate`: manual pages and completions, made of the same words as `--help`.

mod cargo;
mod manual;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

use crate::examples::with_examples;
use crate::output::write_to;

/// Write manual pages, or completions for a shell
///
/// Packages of hbbp come with both. This is for a binary that came alone.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  hbbp generate completions bash > ~/.local/share/bash-completion/completions/hbbp
  hbbp generate completions zsh -o ~/.zfunc/_hbbp
  hbbp generate completions fish -o ~/.config/fish/completions/hbbp.fish
  hbbp generate manual -o ~/.local/share/man/man1        then: man hbbp-record";

#[derive(clap::Subcommand)]
enum What {
    /// What a shell needs to complete commands and options
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,

        /// Write into this file instead of printing
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Manual pages, one for each command, and those of `cargo hbbp`
    Manual {
        /// Write hbbp.1, hbbp-record.1 and so on into this folder, which is made where it is not there
        #[arg(short, long, value_name = "FOLDER")]
        output: PathBuf,
    },
}

/// Writes what `args` ask for of the whole command line.
pub fn run(args: &Args, command: Command) -> anyhow::Result<ExitCode> {
    let mut command = with_examples(command.disable_help_subcommand(true));
    match &args.what {
        What::Completions { shell, output } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command, "hbbp", &mut script);
            write_to(output.as_deref(), |out| Ok(out.write_all(&script)?))?;
        }
        What::Manual { output } if output.as_os_str() == "-" => {
            anyhow::bail!("manual pages are many files, which standard output cannot hold: name a folder with -o")
        }
        What::Manual { output } => {
            fs::create_dir_all(output).with_context(|| format!("cannot make the folder {}", output.display()))?;
            command.build();
            for (name, page) in manual::pages(&command)? {
                let path = output.join(name);
                fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
