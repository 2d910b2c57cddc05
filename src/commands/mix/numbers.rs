//! The numbers that a mix has of each row.

use analyzer::mix::{Dimension, Key, Mix, Query, Sum};

use crate::output::{count, with_digits};

/// A number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Number {
    /// Executed instructions
    #[value(alias = "count")]
    Executions,
    /// Their share of all that pass the filters; with --per, of their group
    Share,
    /// The share that a column has of its row (needs --columns)
    RowShare,
    /// How far the share may be from the truth (±: 95 %)
    #[value(alias = "±")]
    Error,
    /// Executed instructions for each call of the function (needs `function` among the rows, and branches)
    PerCall,
    /// Samples and streams that were seen; those of a block are shared out among its instructions
    Samples,
}

impl Number {
    /// Above its column of a table.
    pub fn title(self) -> &'static str {
        match self {
            Number::Executions => "count",
            Number::Share => "share",
            Number::RowShare => "of row",
            Number::Error => "±",
            Number::PerCall => "per call",
            Number::Samples => "samples",
        }
    }
}

/// Instructions for each call of the function of a row; `None` where that is not known. `row`: its values, or the first of them.
pub fn per_call(mix: &Mix, query: &Query, row: &[String], sum: &Sum) -> Option<f64> {
    let value_of = |wanted: Dimension| {
        let at = query.rows.iter().position(|key: &Key| *key == wanted)?;
        row.get(at).map(String::as_str)
    };
    let calls = mix.calls.of_function(value_of(Dimension::Function)?, value_of(Dimension::Module))?;
    (calls > 0.0).then(|| sum.count / calls)
}

/// A ratio with three digits that mean something: `0.034`, `1.25`, `12.5`, `1,250`.
pub fn ratio(value: f64) -> String {
    match value {
        0.0 => count(0.0),
        ..1.0 => format!("{value:.*}", (2 - value.log10().floor() as i32).clamp(2, 6) as usize),
        _ => with_digits(value, 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_three_digits() {
        assert_eq!(
            [0.0, 0.0341, 0.25, 1.25, 12.52, 1_251.0].map(ratio),
            ["0", "0.0341", "0.250", "1.25", "12.5", "1,250"]
        );
    }
}
