//! What `hbbp record` noted about a recording beyond what `perf.data` has a place for.

use serde::Deserialize;

/// The part of feature 250 (`hbbp-recording/1`, JSON) that reports repeat. Fields that are absent are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// What was weaker than it could be when the recording was made.
    pub degradations: Vec<String>,
    /// Records the kernel had no room for; those lost after the last that was written are in no other place.
    pub lost: u64,
    /// Samples the hardware lost.
    pub lost_by_hardware: u64,
    /// How often the kernel throttled an event.
    pub throttled: u64,
}

impl Facts {
    /// The note is input like any other: one that cannot be read is said to be so.
    pub fn read(note: &[u8]) -> Self {
        serde_json::from_slice(note).unwrap_or_else(|error| Facts {
            degradations: vec![format!("what the recorder noted (feature 250) cannot be read: {error}")],
            ..Facts::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reports_repeat_is_read_and_the_rest_is_ignored() {
        let facts =
            Facts::read(br#"{"schema":"hbbp-recording/9","degradations":["no PMU"],"lost":3,"new":{"field":1}}"#);
        assert_eq!(facts, Facts { degradations: vec!["no PMU".into()], lost: 3, ..Facts::default() });
        assert_eq!(Facts::read(b"{}"), Facts::default());
        assert!(Facts::read(b"[1").degradations.concat().contains("feature 250"));
    }
}
