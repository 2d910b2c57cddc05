//! What `hbbp record` noted about a recording beyond what `perf.data` has a place for.

use serde::Deserialize;

/// The part of feature 250 (`hbbp-recording/1`, JSON) that reports repeat. Fields that are absent are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Facts {
    degradations: Vec<String>,
}

/// What was weaker than it could be when the recording was made. The note is input like any other: one that cannot be read is
/// said to be so.
pub fn recorded_degradations(note: &[u8]) -> Vec<String> {
    match serde_json::from_slice::<Facts>(note) {
        Ok(facts) => facts.degradations,
        Err(error) => vec![format!("what the recorder noted (feature 250) cannot be read: {error}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degradations_are_passed_on_and_the_rest_is_ignored() {
        let note = br#"{"schema":"hbbp-recording/9","degradations":["no PMU"],"new":{"field":1}}"#;
        assert_eq!(recorded_degradations(note), ["no PMU"]);
        assert!(recorded_degradations(b"{}").is_empty());
        assert!(recorded_degradations(b"[1").concat().contains("feature 250"));
    }
}
