//! Whether the same work took fewer instructions.

use analyzer::uncertainty::{Counted, Side};

use super::Changes;
use crate::number::{count, share, with_digits};

/// How many instructions both sides executed.
pub struct Work {
    /// The numbers; `None` where they are not known.
    pub sides: [Option<Counted>; 2],
}

impl Work {
    /// Of a comparison.
    pub fn of(changes: &Changes<'_>) -> Self {
        let sums = changes.comparison.instructions;
        // What flows say of their unit is said of all their numbers.
        let counted = |side: usize| changes.sides[side].counted(sums[side]).filter(|_| changes.executions[side]);
        Work { sides: [counted(0), counted(1)] }
    }

    /// The change as a part of those before (-0.1 is a tenth fewer), and half the width of its interval; `None` where it is not known.
    pub fn change(&self) -> Option<(f64, f64)> {
        let [before, after] = [self.sides[0]?, self.sides[1]?];
        if before.instructions <= 0.0 || after.instructions <= 0.0 {
            return None;
        }
        let ratio = after.instructions / before.instructions;
        let error = ratio * (before.error / before.instructions).hypot(after.error / after.instructions);
        Some((ratio - 1.0, error))
    }

    /// What there is to say of it, in a sentence.
    pub fn text(&self, changes: &Changes<'_>) -> String {
        let Some((change, error)) = self.change() else {
            let unknown = self.sides.iter().zip(&changes.files).filter(|(side, _)| side.is_none());
            let files: Vec<&str> = unknown.map(|(_, file)| file.as_str()).collect();
            return format!(
                "whether it took fewer instructions is not known: {} {} not say how many were executed; `hbbp truth` and \
                 hardware events that count instructions do",
                files.join(" and "),
                if files.len() == 1 { "does" } else { "do" }
            );
        };
        let numbers = self.numbers(changes);
        if change.abs() <= error {
            let width = with_digits(100.0 * error, 2);
            return match error {
                0.0 => format!("as many instructions on both sides: {numbers}"),
                UNKNOWN.. => format!("no change beyond ± {width} %, so whether it changed is not known: {numbers}"),
                _ => format!("no change beyond ± {width} %: {numbers}"),
            };
        }
        let width = if error > 0.0 { format!(" (± {} %)", with_digits(100.0 * error, 2)) } else { String::new() };
        let what = if change < 0.0 { "fewer" } else { "more" };
        let percent = share(change.abs(), 1.0);
        format!("{percent}{width} {what} instructions, if both sides did the same work: {numbers}")
    }

    /// The numbers, and who counted them.
    fn numbers(&self, changes: &Changes<'_>) -> String {
        let sides = self.sides.iter().zip(changes.sides).zip(["before", "after"]);
        let numbers = sides.filter_map(|((counted, side), when)| {
            let by = if let Side::Exact = side { "exact" } else { "the event in user code" };
            counted.map(|counted| format!("{} {when} ({by})", count(counted.instructions)))
        });
        numbers.collect::<Vec<_>>().join(", ")
    }
}

/// A change is not known where its interval has this half width or more, as a part of what there was before.
const UNKNOWN: f64 = 0.05;
