//! What `hbbp record` noted about a recording beyond what `perf.data` has a place for.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The part of feature 250 (`hbbp-recording/1`, JSON) that the analysis needs or reports repeat. Fields that are absent are empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// What was weaker than it could be when the recording was made.
    pub degradations: Vec<String>,
    /// Records the kernel had no room for; those lost after the last that was written are in no other place.
    pub lost: u64,
    /// Samples the hardware lost.
    pub lost_by_hardware: u64,
    /// How often the kernel throttled an event.
    pub throttled: u64,
    /// Events whose samples did not come from the machine.
    #[serde(rename = "events", deserialize_with = "made_events")]
    pub made: MadeEvents,
    /// The tracer that wrote them.
    #[serde(deserialize_with = "tracer")]
    pub tracer: Option<Tracer>,
}

/// Events whose samples software made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeEvents {
    /// Those with `"provenance":"software"`.
    pub bursts: Vec<BurstEvent>,
    /// Names of those with `"provenance":"simulated"`.
    pub simulated: Vec<String>,
}

/// An event whose samples are bursts: stacks of branches that were followed in software.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurstEvent {
    /// Its name in the recording.
    pub name: String,
    /// What its periods count.
    pub unit: BurstUnit,
}

/// What a burst stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstUnit {
    /// CPU time.
    Nanoseconds,
    /// Executed instructions.
    Instructions,
    /// It is not said, or not known to this version.
    Unknown,
}

/// What the software tracer said of itself. Nothing is derived from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tracer {
    /// How it followed the program: `lookahead` or `breakpoint`.
    pub kind: Option<String>,
    /// Bursts it made.
    pub bursts: Option<u64>,
    /// Instructions after which a burst ends.
    pub burst_instructions: Option<u64>,
    /// Taken branches after which a burst ends.
    pub depth: Option<u64>,
    /// Time recording took, in per cent of the program's CPU time; 0 to 100,000, or else as if it were not there.
    pub overhead: Option<f64>,
}

impl Metadata {
    /// The note is input like any other: one that cannot be read is said to be so.
    pub fn read(note: &[u8]) -> Self {
        serde_json::from_slice(note).unwrap_or_else(|error| Metadata {
            degradations: vec![format!("what the recorder noted (feature 250) cannot be read: {error}")],
            ..Metadata::default()
        })
    }

    /// What the bursts of an event stand for, if it has any.
    pub fn burst_unit(&self, event: &str) -> Option<BurstUnit> {
        self.made.bursts.iter().find(|burst| burst.name == event).map(|burst| burst.unit)
    }

    /// Whether a simulated PMU made an event's samples.
    pub fn is_simulated(&self, event: &str) -> bool {
        self.made.simulated.iter().any(|name| name == event)
    }
}

/// Entries that are odd are passed over: what they say is lost, the rest of the note is not.
fn made_events<'de, D: Deserializer<'de>>(note: D) -> Result<MadeEvents, D::Error> {
    let events = Value::deserialize(note)?;
    let mut made = MadeEvents::default();
    for event in events.as_array().into_iter().flatten() {
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        let Some(name) = text("name").map(ToString::to_string) else { continue };
        match (text("provenance"), text("unit")) {
            (Some("software"), unit) => {
                let unit = match unit {
                    Some("nanoseconds") => BurstUnit::Nanoseconds,
                    Some("instructions") => BurstUnit::Instructions,
                    _ => BurstUnit::Unknown,
                };
                made.bursts.push(BurstEvent { name, unit });
            }
            (Some("simulated"), _) => made.simulated.push(name),
            _ => {}
        }
    }
    Ok(made)
}

fn tracer<'de, D: Deserializer<'de>>(note: D) -> Result<Option<Tracer>, D::Error> {
    let tracer = Value::deserialize(note)?;
    let number = |key: &str| tracer.get(key).and_then(Value::as_u64);
    Ok(tracer.is_object().then(|| Tracer {
        kind: tracer.get("kind").and_then(Value::as_str).map(ToString::to_string),
        bursts: number("bursts"),
        burst_instructions: number("burst_instructions"),
        depth: number("depth"),
        overhead: tracer.get("overhead").and_then(Value::as_f64).filter(|percent| (0.0..1e5).contains(percent)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reports_repeat_is_read_and_the_rest_is_ignored() {
        let metadata =
            Metadata::read(br#"{"schema":"hbbp-recording/9","degradations":["no PMU"],"lost":3,"new":{"field":1}}"#);
        assert_eq!(metadata, Metadata { degradations: vec!["no PMU".into()], lost: 3, ..Metadata::default() });
        assert_eq!(Metadata::read(b"{}"), Metadata::default());
        assert!(Metadata::read(b"[1").degradations.concat().contains("feature 250"));
    }

    #[test]
    fn bursts_are_the_events_of_software_provenance() {
        let metadata = Metadata::read(
            br#"{"events":[{"name":"task-clock","role":"ebs","unit":"nanoseconds"},
                {"name":"lbr","provenance":"hardware","unit":"taken-branches"},
                {"name":"burst:u","role":"lbr","provenance":"software","unit":"nanoseconds"},
                {"name":"burst2","provenance":"software","unit":"instructions"},
                {"name":"burst3","provenance":"software","unit":7},
                {"name":"simulated/instructions/","provenance":"simulated","unit":"instructions"}],
                "tracer":{"kind":"lookahead","bursts":8,"burst_instructions":10000,"overhead":0.93,"more":[]}}"#,
        );
        let names = ["task-clock", "lbr", "burst:u", "burst2", "burst3", "burst4"];
        let (time, instructions) = (Some(BurstUnit::Nanoseconds), Some(BurstUnit::Instructions));
        let units = [None, None, time, instructions, Some(BurstUnit::Unknown), None];
        assert_eq!(names.map(|name| metadata.burst_unit(name)), units);
        assert!(
            metadata.is_simulated("simulated/instructions/") && !names.iter().any(|name| metadata.is_simulated(name))
        );
        let tracer = Tracer {
            kind: Some("lookahead".into()),
            bursts: Some(8),
            burst_instructions: Some(10_000),
            depth: None,
            overhead: Some(0.93),
        };
        assert_eq!(metadata.tracer, Some(tracer));
    }

    #[test]
    fn odd_values_cost_no_more_than_themselves() {
        for odd in [
            r#""events":7,"tracer":[1]"#,
            r#""events":{"name":"burst:u","provenance":"software"},"tracer":null"#,
            r#""events":[7,null,{"provenance":"software"},{"name":3,"provenance":"software"}],"tracer":"none""#,
        ] {
            let metadata = Metadata::read(format!(r#"{{"lost":3,{odd}}}"#).as_bytes());
            assert_eq!(metadata, Metadata { lost: 3, ..Metadata::default() }, "{odd}");
        }
        let metadata = Metadata::read(br#"{"tracer":{"kind":1,"bursts":-1,"depth":1e300,"overhead":-1e308}}"#);
        assert_eq!(metadata.tracer, Some(Tracer::default()));
    }
}
