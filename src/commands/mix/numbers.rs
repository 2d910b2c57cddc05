//! The numbers of `--values`, and what help says of them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use reports::mix::numbers::Number;

/// Numbers by their names.
pub fn numbers() -> impl TypedValueParser<Value = Number> {
    let named = |number: Number| PossibleValue::new(number.as_str()).aliases(number.other_name()).help(about(number));
    PossibleValuesParser::new(Number::ALL.map(named)).try_map(|name| name.parse::<Number>())
}

/// What a number is, in a phrase.
fn about(number: Number) -> &'static str {
    match number {
        Number::Executions => "Executed instructions",
        Number::Share => "Their share of all that pass the filters; with --per, of their group",
        Number::RowShare => "The share that a column has of its row (needs --columns)",
        Number::Error => "How far the share may be from the truth (±: 95 %)",
        Number::PerCall => {
            "Executed instructions for each call of the function (needs `function` among the rows, and branches)"
        }
        Number::Taken => "Branches that were taken: jumps, calls, returns, system calls (needs branches)",
        Number::Mispredicted => "How many of these were mispredicted (needs branches of hardware)",
        Number::MispredictRate => "The part of the taken branches that was mispredicted",
        Number::PerTaken => "Executed instructions for each taken branch",
        Number::Samples => "Samples and streams that were seen; those of a block are shared out among its instructions",
        Number::Flops => {
            "Floating-point operations: one for each element, two for multiply and add in one (≤: a mask left some of them out; ≥: some code was not read)"
        }
        Number::Bytes => {
            "Bytes read and written, those of the stack, too (≤: a mask left some out; ≥: some are not known, as those of `rep movsb`)"
        }
        Number::Intensity => "Arithmetic intensity: floating-point operations for each byte read or written",
        Number::FlopsPerCall => {
            "Floating-point operations for each call of the function (needs `function` among the rows, and branches)"
        }
        Number::BytesPerCall => {
            "Bytes read and written for each call of the function (needs `function` among the rows, and branches)"
        }
        Number::Time => {
            "The part of the time that they took, of all that pass the filters (needs samples of a clock beside branches)"
        }
        Number::TimeError => "How far that part may be from the truth (95 %)",
        Number::TimePerInstruction => "How many times as long an instruction took as the mean of all",
        Number::Cycles => {
            "Cycles that the instructions took (needs branches of hardware that are timed; ≥: not all of the code was)"
        }
        Number::Ipc => "Instructions for each cycle, of the code that was timed",
        Number::CyclesPerCall => {
            "Cycles for each call of the function (needs `function` among the rows, and timed branches)"
        }
    }
}
