//! The numbers that a mix has of each row.

use analyzer::mix::{Dimension, Key, Mix, Query, Sum, Taken};

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
    /// Branches that were taken: jumps, calls, returns, system calls (needs branches)
    Taken,
    /// How many of these were mispredicted (needs branches of hardware)
    Mispredicted,
    /// The part of the taken branches that was mispredicted
    MispredictRate,
    /// Executed instructions for each taken branch
    PerTaken,
    /// Samples and streams that were seen; those of a block are shared out among its instructions
    Samples,
}

impl Number {
    /// What is shown where nothing was asked for.
    pub const DEFAULT: [Number; 3] = [Number::Executions, Number::Share, Number::Error];

    /// Above its column of a table.
    pub fn title(self) -> &'static str {
        match self {
            Number::Executions => "count",
            Number::Share => "share",
            Number::RowShare => "of row",
            Number::Error => "±",
            Number::PerCall => "per call",
            Number::Taken => "taken",
            Number::Mispredicted => "mispredicted",
            Number::MispredictRate => "mispredict",
            Number::PerTaken => "per taken",
            Number::Samples => "samples",
        }
    }
}

impl Number {
    /// Whether it is made of taken branches.
    pub fn is_of_branches(self) -> bool {
        matches!(self, Number::Taken | Number::Mispredicted | Number::MispredictRate | Number::PerTaken)
    }

    /// A number that is made of the branches of a sum: of rates, the ratio; `None` where there is none.
    pub fn of_branches(self, sum: &Sum) -> Option<f64> {
        let Taken { count, mispredicted } = sum.taken;
        let ratio = |part: f64| (count > 0.0).then(|| part / count);
        match self {
            Number::Taken => Some(count),
            Number::Mispredicted => Some(mispredicted),
            Number::MispredictRate => ratio(mispredicted),
            Number::PerTaken => ratio(sum.count),
            _ => None,
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

/// The part that a count is of another one, 0 to 1; 0 of nothing.
pub fn part(count: f64, of: f64) -> f64 {
    if of > 0.0 { count / of } else { 0.0 }
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
