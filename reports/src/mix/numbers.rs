//! The numbers that a mix has of each row.

use std::fmt;
use std::str::FromStr;

use analyzer::mix::{Dimension, Key, Mix, Operations, Query, Sum, Taken};
use analyzer::uncertainty::Interval;

use crate::number::{count, with_digits};

/// A number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Executed instructions.
    Executions,
    /// Their share of all that pass the filters; where there are groups, of their group.
    Share,
    /// The share that a column has of its row (needs columns).
    RowShare,
    /// How far the share may be from the truth (±: 95 %).
    Error,
    /// Executed instructions for each call of the function (needs `function` among the rows, and branches).
    PerCall,
    /// Branches that were taken: jumps, calls, returns, system calls (needs branches).
    Taken,
    /// How many of these were mispredicted (needs branches of hardware).
    Mispredicted,
    /// The part of the taken branches that was mispredicted.
    MispredictRate,
    /// Executed instructions for each taken branch.
    PerTaken,
    /// Samples and streams that were seen; those of a block are shared out among its instructions.
    Samples,
    /// Floating-point operations: one for each element, two for multiply and add in one (≤: a mask left some of them out; ≥: some code was not read).
    Flops,
    /// Bytes read and written, those of the stack, too (≤: a mask left some out; ≥: some are not known, as those of `rep movsb`).
    Bytes,
    /// Arithmetic intensity: floating-point operations for each byte read or written.
    Intensity,
    /// Floating-point operations for each call of the function (needs `function` among the rows, and branches).
    FlopsPerCall,
    /// Bytes read and written for each call of the function (needs `function` among the rows, and branches).
    BytesPerCall,
    /// The part of the time that the instructions took, of all that pass the filters (needs samples of a clock beside branch stacks or bursts).
    Time,
    /// How far that may be from the truth (95 %).
    TimeError,
    /// How many times as long an instruction took as the mean of all.
    TimePerInstruction,
    /// Cycles that the instructions took (needs branches of hardware that are timed; ≥: not all of the code was).
    Cycles,
    /// Instructions for each cycle, of the code that was timed.
    Ipc,
    /// Cycles for each call of the function (needs `function` among the rows, and timed branches).
    CyclesPerCall,
}

/// No name of a [`Number`].
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownNumber(pub String);

impl std::error::Error for UnknownNumber {}

impl fmt::Display for UnknownNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Number::ALL.map(Number::as_str).join(", ");
        write!(f, "there is no number {:?}; the numbers are {names}", self.0)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// By its name or its other name, in letters of any case. Columns of documents have names with underscores, which are taken, too.
impl FromStr for Number {
    type Err = UnknownNumber;

    fn from_str(name: &str) -> Result<Self, UnknownNumber> {
        let hyphened = name.replace('_', "-");
        let is_called = |number: &Number| {
            let names = [Some(number.as_str()), number.other_name()];
            names.into_iter().flatten().any(|of| of.eq_ignore_ascii_case(&hyphened))
        };
        Number::ALL.into_iter().find(is_called).ok_or_else(|| UnknownNumber(name.to_owned()))
    }
}

impl Number {
    /// All of them.
    pub const ALL: [Number; 21] = [
        Number::Executions,
        Number::Share,
        Number::RowShare,
        Number::Error,
        Number::PerCall,
        Number::Taken,
        Number::Mispredicted,
        Number::MispredictRate,
        Number::PerTaken,
        Number::Samples,
        Number::Flops,
        Number::Bytes,
        Number::Intensity,
        Number::FlopsPerCall,
        Number::BytesPerCall,
        Number::Time,
        Number::TimeError,
        Number::TimePerInstruction,
        Number::Cycles,
        Number::Ipc,
        Number::CyclesPerCall,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Number::Executions => "executions",
            Number::Share => "share",
            Number::RowShare => "row-share",
            Number::Error => "error",
            Number::PerCall => "per-call",
            Number::Taken => "taken",
            Number::Mispredicted => "mispredicted",
            Number::MispredictRate => "mispredict-rate",
            Number::PerTaken => "per-taken",
            Number::Samples => "samples",
            Number::Flops => "flops",
            Number::Bytes => "bytes",
            Number::Intensity => "intensity",
            Number::FlopsPerCall => "flops-per-call",
            Number::BytesPerCall => "bytes-per-call",
            Number::Time => "time",
            Number::TimeError => "time-error",
            Number::TimePerInstruction => "time-per-instruction",
            Number::Cycles => "cycles",
            Number::Ipc => "ipc",
            Number::CyclesPerCall => "cycles-per-call",
        }
    }

    /// Another name that it is known by.
    pub fn other_name(self) -> Option<&'static str> {
        match self {
            Number::Executions => Some("count"),
            Number::Error => Some("±"),
            _ => None,
        }
    }
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
            Number::Flops => "FLOPs",
            Number::Bytes => "bytes",
            Number::Intensity => "FLOP/byte",
            Number::FlopsPerCall => "FLOPs/call",
            Number::BytesPerCall => "bytes/call",
            Number::Time => "time",
            Number::TimeError => "time ±",
            Number::TimePerInstruction => "time/instr",
            Number::Cycles => "cycles",
            Number::Ipc => "IPC",
            Number::CyclesPerCall => "cycles/call",
        }
    }
}

impl Number {
    /// Whether it is made of taken branches.
    pub fn is_of_branches(self) -> bool {
        matches!(self, Number::Taken | Number::Mispredicted | Number::MispredictRate | Number::PerTaken)
    }

    /// Whether it is for each call of a function.
    pub fn is_per_call(self) -> bool {
        matches!(self, Number::PerCall | Number::FlopsPerCall | Number::BytesPerCall | Number::CyclesPerCall)
    }

    /// Whether only branch records of hardware tell it.
    pub fn is_of_mispredictions(self) -> bool {
        matches!(self, Number::Mispredicted | Number::MispredictRate)
    }

    /// Whether it is made of samples of time.
    pub fn is_of_time(self) -> bool {
        matches!(self, Number::Time | Number::TimeError | Number::TimePerInstruction)
    }

    /// A number that is made of the time of a sum, which is a part of a whole; `None` where it is not known.
    pub fn of_time(self, mix: &Mix, sum: &Sum, whole: &Sum) -> Option<f64> {
        let time = mix.time_within(sum, whole)?;
        match self {
            Number::Time => Some(time.share),
            Number::TimeError => Some(time.error),
            Number::TimePerInstruction => mix.time_per_instruction(sum),
            _ => None,
        }
    }

    /// Whether it is made of the cycles of timed branches.
    pub fn is_of_cycles(self) -> bool {
        matches!(self, Number::Cycles | Number::Ipc | Number::CyclesPerCall)
    }

    /// A number that is made of the cycles of a sum, not for each call; `None` where none are known.
    pub fn of_cycles(self, sum: &Sum) -> Option<f64> {
        let timed = Some(sum.timed).filter(|timed| timed.instructions > 0.0)?;
        match self {
            Number::Cycles | Number::CyclesPerCall => Some(timed.cycles),
            Number::Ipc => timed.ipc(),
            _ => None,
        }
    }

    /// Whether it is made of floating-point operations or bytes.
    pub fn is_of_operations(self) -> bool {
        matches!(self, Number::Flops | Number::Bytes | Number::Intensity | Number::FlopsPerCall | Number::BytesPerCall)
    }

    /// A number that is made of the operations of a sum, not for each call; `None` where it is not known, as of code that was not read.
    pub fn of_operations(self, sum: &Sum) -> Option<f64> {
        let operations = &sum.operations.as_ref()?.sum;
        match self {
            Number::Flops | Number::FlopsPerCall => Some(operations.flops),
            Number::Bytes | Number::BytesPerCall => Some(operations.bytes()),
            Number::Intensity => operations.intensity(),
            _ => None,
        }
    }

    /// A number that is made of the branches of a sum: of rates, the ratio; `None` where there is none, or nothing is known of it.
    pub fn of_branches(self, mix: &Mix, sum: &Sum) -> Option<f64> {
        let Taken { count, mispredicted } = sum.taken;
        let is_known = mix.knows_mispredictions || !self.is_of_mispredictions();
        let ratio = |part: f64| (count > 0.0).then(|| part / count);
        match self {
            Number::Taken => Some(count),
            Number::Mispredicted => Some(mispredicted),
            Number::MispredictRate => ratio(mispredicted),
            Number::PerTaken => ratio(sum.count),
            _ => None,
        }
        .filter(|_| is_known)
    }
}

/// A number of a row for each call of its function: instructions, floating-point operations, bytes or cycles; `None` where that is not known. `row`:
/// its values, or the first of them.
pub fn per_call(number: Number, mix: &Mix, query: &Query, row: &[String], sum: &Sum) -> Option<f64> {
    let value_of = |wanted: Dimension| {
        let at = query.rows.iter().position(|key: &Key| *key == wanted)?;
        row.get(at).map(String::as_str)
    };
    let calls = mix.calls.of_function(value_of(Dimension::Function)?, value_of(Dimension::Module))?;
    let of_row = match number {
        Number::PerCall => Some(sum.count),
        Number::CyclesPerCall => number.of_cycles(sum),
        _ => number.of_operations(sum),
    };
    of_row.filter(|_| calls > 0.0).map(|of_row| of_row / calls)
}

/// What is said before a number of the operations of so many instructions, if it is not exact in what it counts: at most so much, at least so
/// much, either. What masks leave out of less than a hundredth does not matter. What is not known may be any number of bytes, and always does.
pub fn bound(number: Number, instructions: f64, operations: &Operations) -> &'static str {
    const MATTERS: f64 = 0.01;
    let matters = |part: f64, of: f64| of > 0.0 && part > MATTERS * of;
    let fewer_flops = matters(operations.masked_flops, operations.flops);
    let fewer_bytes = matters(operations.masked_bytes, operations.bytes());
    let more_flops = unread(instructions, operations) > 0.0;
    let more_bytes = more_flops || operations.unknown_bytes > 0.0;
    let (at_most, at_least) = match number {
        Number::Flops | Number::FlopsPerCall => (fewer_flops, more_flops),
        Number::Bytes | Number::BytesPerCall => (fewer_bytes, more_bytes),
        Number::Intensity => {
            let has_flops = operations.flops > 0.0;
            (fewer_flops || more_bytes && has_flops, more_flops || fewer_bytes && has_flops)
        }
        _ => (false, false),
    };
    match (at_most, at_least) {
        (false, false) => "",
        (true, false) => "≤ ",
        (false, true) => "≥ ",
        (true, true) => "~ ",
    }
}

/// What is said before cycles of a sum: at least so many, where code of it was not timed. What is less than a hundredth does not matter.
pub fn bound_of_cycles(number: Number, sum: &Sum) -> &'static str {
    const MATTERS: f64 = 0.01;
    let is_sum = matches!(number, Number::Cycles | Number::CyclesPerCall);
    if is_sum && sum.timed.instructions < (1.0 - MATTERS) * sum.count { "≥ " } else { "" }
}

/// How many of these executed instructions are of code that was not read, so that nothing is known of their operations.
pub fn unread(instructions: f64, operations: &Operations) -> f64 {
    // Sums in another order differ by rounding.
    const ROUNDING: f64 = 1e-9;
    let unread = instructions - operations.instructions;
    if unread > ROUNDING * instructions { unread } else { 0.0 }
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

/// The same of a ratio that is uncertain by so much: with the digits that mean something.
pub fn uncertain_ratio(value: f64, interval: Interval) -> String {
    const HALF: f64 = 0.5;
    const TENTH: f64 = 0.05;
    let digits = match interval.half_width.map(|width| width / value.abs()) {
        Some(HALF..) => 1,
        Some(TENTH..) => 2,
        _ => return ratio(value),
    };
    match value {
        0.0 => count(0.0),
        ..1.0 => format!("{value:.*}", (digits - 1 - value.log10().floor() as i32).clamp(1, 6) as usize),
        _ => with_digits(value, digits as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_unknown_bytes_bound_numbers() {
        let numbers = [Number::Flops, Number::Bytes, Number::Intensity];
        let of = |masked_flops: f64, masked_bytes: f64, unknown_bytes: f64| {
            let of = Operations {
                flops: 10.0,
                bytes_read: 10.0,
                masked_flops,
                masked_bytes,
                unknown_bytes,
                instructions: 100.0,
                ..Operations::default()
            };
            numbers.map(|number| bound(number, 100.0, &of))
        };
        assert_eq!(of(0.0, 0.0, 0.0), ["", "", ""]);
        assert_eq!(of(1.0, 0.0, 0.0), ["≤ ", "", "≤ "]);
        assert_eq!(of(0.0, 1.0, 0.0), ["", "≤ ", "≥ "]);
        assert_eq!(of(0.0, 0.0, 1.0), ["", "≥ ", "≤ "]);
        assert_eq!(of(1.0, 1.0, 0.0), ["≤ ", "≤ ", "~ "]);
        assert_eq!(of(0.05, 0.05, 0.0), ["", "", ""]);
        // A few such instructions may move more than all others.
        assert_eq!(of(0.0, 0.0, 0.001), ["", "≥ ", "≤ "]);
        let only = Operations { unknown_bytes: 1.0, instructions: 1.0, ..Operations::default() };
        assert_eq!(numbers.map(|number| bound(number, 1.0, &only)), ["", "≥ ", ""]);
        // A part of the code was not read.
        let read = Operations { flops: 10.0, bytes_read: 10.0, instructions: 99.0, ..Operations::default() };
        assert_eq!(numbers.map(|number| bound(number, 100.0, &read)), ["≥ ", "≥ ", "~ "]);
    }

    #[test]
    fn uncertain_ratios_have_fewer_digits() {
        let shown = |value: f64, width: f64| {
            uncertain_ratio(value, Interval { half_width: Some(width), ..Interval::default() })
        };
        assert_eq!(shown(0.1234, 0.001), "0.123");
        assert_eq!(shown(0.1234, 0.02), "0.12");
        assert_eq!(shown(0.1234, 0.1), "0.1");
        assert_eq!([shown(12.34, 3.0), shown(1234.0, 900.0), shown(0.0, 0.1)], ["12", "1,000", "0"]);
        assert_eq!(uncertain_ratio(0.1234, Interval::default()), "0.123");
    }

    #[test]
    fn ratios_have_three_digits() {
        assert_eq!(
            [0.0, 0.0341, 0.25, 1.25, 12.52, 1_251.0].map(ratio),
            ["0", "0.0341", "0.250", "1.25", "12.5", "1,250"]
        );
    }
}
