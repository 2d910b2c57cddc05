//! The verdict in one sentence.

use analyzer::validation::{Estimate, Grade, Named, Validation, Verdict};

use crate::output::with_digits;

/// What a validation comes to.
///
/// Example: `good: mean mnemonic error 2.1 %, block overlap 94 %; the worst rows are movzx (12 % off), je (5.2 %); next (21 % off)`.
pub fn sentence(verdict: &Verdict<'_>, validation: &Validation) -> String {
    let mut text = format!("{}: mean mnemonic error {}", verdict.grade.as_str(), percent(verdict.mnemonic_error));
    // Chance adds up in quadrature: with so much of it, at least half of the square of the error is chance.
    let is_chance = verdict.mnemonic_noise.is_some_and(|noise| noise > 0.0 && noise >= verdict.mnemonic_error * 0.7);
    // Where the blocks decide, more of the same does not help by what chance does to mnemonics.
    if is_chance && Grade::of(verdict.mnemonic_error, None) == verdict.grade {
        text += " (mostly chance: record longer)";
    }
    if let Some(overlap) = verdict.block_overlap {
        text += &format!(", block overlap {}", percent(overlap));
    }
    if validation.compared_truth < 0.95 {
        text += &format!(", of the {} of the truth that was compared", percent(validation.compared_truth));
    }
    if validation.compared_recording < 0.95 {
        text += &format!("; of the recording, {} was compared", percent(validation.compared_recording));
    }
    let mnemonics = rows(&verdict.mnemonics, |name| name.clone());
    let functions = rows(&verdict.functions, |name| name.function.clone().unwrap_or_else(|| "?".into()));
    let worst: Vec<String> = [mnemonics, functions].into_iter().flatten().collect();
    if !worst.is_empty() {
        text += &format!("; the worst rows are {}", worst.join("; "));
    }
    text
}

/// `movzx (12 % off), je (5.2 %)`: each with its error by the hybrid.
fn rows<N>(rows: &[&Named<N>], name: impl Fn(&N) -> String) -> Option<String> {
    let named = rows.iter().enumerate().map(|(at, row)| {
        let off = if at == 0 { " off" } else { "" };
        match row.error(Estimate::Hybrid) {
            Some(error) => format!("{} ({}{off})", name(&row.name), percent(error)),
            None => format!("{} (not in the truth)", name(&row.name)),
        }
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join(", "))
}

fn percent(part: f64) -> String {
    format!("{} %", with_digits(100.0 * part, 2))
}
