//! What was odd about a recording's container.

use formats::metadata::FEATURE;
use perfdata::{FeatureBit, Recording};

/// What was odd about a recording's container but survivable, and which of its feature sections are not known.
pub fn notes(recording: &Recording) -> impl Iterator<Item = String> {
    let unknown = recording.features().other.keys().filter(|bit| bit.name().is_none() && **bit != FeatureBit(FEATURE));
    let unknown = unknown.map(|bit| format!("feature {bit} is not known to this version"));
    recording.notes().iter().cloned().chain(unknown)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use perfdata::{EventDescription, Features, Writer};

    use super::*;

    #[test]
    fn sections_of_others_are_noted() {
        let section = |bit: u32| (FeatureBit(bit), bit.to_string().into_bytes());
        let features = Features { other: [13, 77, FEATURE].map(section).into(), ..Features::default() };
        let mut writer = Writer::create(Cursor::new(Vec::new()), &[EventDescription::default()]).expect("a header");
        writer.write_finished_round().expect("a record");
        let bytes = writer.finish(&features).expect("features").into_inner();
        let recording = Recording::from_bytes(bytes).expect("a recording");
        let notes: Vec<String> = notes(&recording).filter(|note| note.contains("feature")).collect();
        assert_eq!(notes, ["feature 77 is not known to this version"]);
    }
}
