//! The options of every report on a recording.

use analyzer::Analysis;

use crate::input::InputArgs;
use crate::output::{Head, HeadArgs, OutputArgs, Precision};

/// Where the recording comes from, and how its report is printed.
#[derive(clap::Args)]
pub struct ReportArgs {
    /// Print only the N largest rows; 0 prints all [default: 40 in a table, all in csv and json]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,

    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    pub output: OutputArgs,

    #[command(flatten)]
    head: HeadArgs,
}

impl ReportArgs {
    /// The head of the report, whose largest rows are that right.
    pub fn head(&self, analysis: &Analysis, precision: Option<Precision>) -> Head {
        let mut head = Head::of(analysis);
        (head.verbose, head.precision) = (self.head.verbose, precision);
        head
    }

    /// How many rows to print.
    pub fn rows(&self) -> usize {
        self.output.format.rows(self.top)
    }
}
