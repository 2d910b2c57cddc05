//! What is weaker in the sides of a comparison than it could be.

use std::path::Path;

use crate::output;

/// The title of each thing that is weaker, where people see all of it.
pub const DEGRADED: &str = "degraded";

/// Sentences that name the side, those first of what is missing or damaged.
#[derive(Default)]
pub struct Weaker {
    sentences: Vec<String>,
    /// What is not compared: people see it, however much else there is.
    left_out: Vec<String>,
    /// How many are of what is missing or damaged; the others are of how the sides were recorded.
    shortcomings: usize,
    is_whole: bool,
}

impl Weaker {
    /// Of two files, with the notes on each and how many of these are of what is missing or damaged, and what is not compared of each.
    /// `is_whole`: whether people see all of it.
    pub fn of(
        files: [&Path; 2],
        notes: [(&[String], usize); 2],
        left_out: &[Option<String>; 2],
        is_whole: bool,
    ) -> Self {
        let parts = |side: usize| notes[side].0.split_at(notes[side].1.min(notes[side].0.len()));
        let missing = [0, 1].map(|side| parts(side).0.iter().collect());
        let recorded = [0, 1].map(|side| parts(side).1.iter().collect());
        let mut sentences = said_once(files, missing);
        let shortcomings = sentences.len();
        sentences.extend(said_once(files, recorded));
        let left_out = said_once(files, [0, 1].map(|side| left_out[side].iter().collect()));
        Weaker { sentences, left_out, shortcomings, is_whole }
    }

    /// Whether a part of any side is not compared.
    pub fn leaves_out(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// Lines of the head, titles and texts, with what is weaker in the comparison itself.
    pub fn lines(&self, of_comparison: Vec<String>) -> Vec<(&'static str, String)> {
        let shortcomings = of_comparison.len() + self.shortcomings;
        let all: Vec<String> = of_comparison.into_iter().chain(self.sentences.iter().cloned()).collect();
        let left_out = self.left_out.iter().cloned();
        if self.is_whole {
            return left_out.chain(all).map(|sentence| (DEGRADED, sentence)).collect();
        }
        let short = output::weaker_in_short(&all, shortcomings, "they were recorded");
        left_out.chain(short).map(|text| ("weaker", text)).collect()
    }

    /// Says all of it on standard error, for a report that has no place for it.
    pub fn say(&self) {
        self.left_out.iter().chain(&self.sentences).for_each(output::say);
    }
}

/// What is said of both is said once.
fn said_once(files: [&Path; 2], [before, after]: [Vec<&String>; 2]) -> Vec<String> {
    let of_before = before.iter().map(|note| match after.contains(note) {
        true => format!("both: {note}"),
        false => format!("{}: {note}", files[0].display()),
    });
    let of_after = after.iter().filter(|note| !before.contains(note));
    of_before.chain(of_after.map(|note| format!("{}: {note}", files[1].display()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_sides_lack_is_said_once() {
        let [same, other] = ["no branches".to_owned(), "3 samples lost".to_owned()];
        let said = said_once(["a.data", "b.data"].map(Path::new), [vec![&same], vec![&same, &other]]);
        assert_eq!(said, ["both: no branches", "b.data: 3 samples lost"]);
    }
}
