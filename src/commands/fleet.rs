//! `hbbp fleet`: what another executable does, which is installed where it is wanted.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

use crate::fleet::{NOT_INSTALLED, program};

/// Keep recordings of many machines, ask them in SQL, and make reports of any slice of them (with hbbp-fleet, if it is installed)
///
/// It is an executable of its own, `hbbp-fleet`, beside this one or in PATH: `hbbp fleet ARGUMENTS` is the same as `hbbp-fleet ARGUMENTS`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What hbbp-fleet is to do; `hbbp fleet help` says what there is
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  hbbp fleet ingest profiles web1.data web2.data --service web
  hbbp fleet query profiles 'SELECT service, count(*) FROM recordings GROUP BY 1'
  hbbp fleet mix profiles --service web --since 7d --rows function";

/// Becomes that executable.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let program = program();
    let error = Command::new(&program).args(&args.arguments).exec();
    if error.kind() == ErrorKind::NotFound {
        bail!(NOT_INSTALLED);
    }
    Err(error).with_context(|| program.display().to_string())
}
