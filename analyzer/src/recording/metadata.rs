//! What `hbbp record` said about a recording beyond what `perf.data` has a place for.

use std::time::Duration;

use formats::metadata::{FEATURE, Metadata, Percent, Provenance, TracerMetadata, Unit};
use perfdata::{Chunk, Error, FeatureBit, Recording};
use serde::Serialize;

/// What a burst stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstUnit {
    /// CPU time of the program, in nanoseconds.
    Nanoseconds,
    /// Instructions that the program executed.
    Instructions,
    /// It is not said, or not known to this version.
    Unknown,
}

/// What the software tracer said of itself. Nothing is derived from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tracer {
    /// How it followed the program: `lookahead` or `breakpoint`.
    pub kind: Option<String>,
    /// How many bursts it made.
    pub bursts: Option<u64>,
    /// Instructions after which a burst ends.
    pub burst_instructions: Option<u64>,
    /// Taken branches after which a burst ends.
    pub depth: Option<u64>,
    /// Time recording took, in per cent of the program's CPU time; 0 to 100,000, or else as if it were not there.
    pub overhead: Option<f64>,
    /// What recording was allowed to take on top of its budget in the first seconds of CPU time, ns. In reports for people only.
    #[serde(skip)]
    pub start_credit_ns: Option<u64>,
    /// The program's CPU time, and how long was recorded, if it hardly ran: `overhead` means nothing then. In reports for people only.
    #[serde(skip)]
    pub idle: Option<(Duration, Duration)>,
}

/// The metadata of a recording: what was said last, or, if the recorder never came to that, what it said first. Recordings of others
/// have none, which is empty.
///
/// # Errors
/// The recording cannot be read.
pub fn metadata_of(recording: &Recording) -> Result<Metadata, Error> {
    match recording.features().other.get(&FeatureBit(FEATURE)) {
        Some(text) => Ok(read(text)),
        None => first_metadata(recording),
    }
}

/// The metadata in the first record.
fn first_metadata(recording: &Recording) -> Result<Metadata, Error> {
    let mut chunk = Chunk::new();
    let has_records = recording.chunks().next_into(&mut chunk)?;
    let first = chunk.records().next().filter(|_| has_records);
    let text = first.and_then(|raw| Metadata::text_of_record(raw.record_type.0, raw.body));
    Ok(text.map(read).unwrap_or_default())
}

/// The metadata is input like any other: a text that cannot be read is said to be so.
fn read(text: &[u8]) -> Metadata {
    Metadata::read(text).unwrap_or_else(|error| Metadata {
        degradations: vec![format!("what the recorder noted (feature 250) cannot be read: {error}")],
        ..Metadata::default()
    })
}

/// What the bursts of an event stand for, if it has any.
pub fn burst_unit(metadata: &Metadata, event: &str) -> Option<BurstUnit> {
    let event = metadata.event(event).filter(|event| event.provenance == Some(Provenance::Software))?;
    Some(match event.unit {
        Some(Unit::Nanoseconds) => BurstUnit::Nanoseconds,
        Some(Unit::Instructions) => BurstUnit::Instructions,
        _ => BurstUnit::Unknown,
    })
}

/// Whether a simulated PMU made an event's samples.
pub fn is_simulated(metadata: &Metadata, event: &str) -> bool {
    metadata.event(event).is_some_and(|event| event.provenance == Some(Provenance::Simulated))
}

impl Tracer {
    /// What a recording's metadata says of it, if there was one.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        let tracer = metadata.tracer.clone()?;
        let TracerMetadata { kind, bursts, burst_instructions, depth, overhead, start_credit_ns, .. } = tracer;
        let overhead = overhead.map(|Percent(percent)| percent);
        Some(Tracer { kind, bursts, burst_instructions, depth, overhead, start_credit_ns, idle: metadata.idle() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reports_repeat_is_read_and_the_rest_is_ignored() {
        let metadata = read(br#"{"schema":"hbbp-recording/9","degradations":["no PMU"],"lost":3,"new":{"field":1}}"#);
        assert_eq!((metadata.degradations, metadata.lost), (vec!["no PMU".to_owned()], Some(3)));
        assert_eq!(read(b"{}"), Metadata::default());
        assert!(read(b"[1").degradations.concat().contains("feature 250"));
    }

    #[test]
    fn bursts_are_the_events_of_software_provenance() {
        let metadata = read(
            br#"{"events":[{"name":"task-clock","role":"ebs","unit":"nanoseconds"},
                {"name":"lbr","provenance":"hardware","unit":"taken-branches"},
                {"name":"burst:u","role":"lbr","provenance":"software","unit":"nanoseconds"},
                {"name":"burst2","provenance":"software","unit":"instructions"},
                {"name":"burst3","provenance":"software","unit":7},
                {"name":"simulated/instructions/","provenance":"simulated","unit":"instructions"}],
                "tracer":{"kind":"lookahead","bursts":8,"burst_instructions":10000,"overhead":0.93,"start_credit_ns":50000000,"more":[]}}"#,
        );
        let names = ["task-clock", "lbr", "burst:u", "burst2", "burst3", "burst4"];
        let (time, instructions) = (Some(BurstUnit::Nanoseconds), Some(BurstUnit::Instructions));
        let units = [None, None, time, instructions, Some(BurstUnit::Unknown), None];
        assert_eq!(names.map(|name| burst_unit(&metadata, name)), units);
        assert!(is_simulated(&metadata, "simulated/instructions/"));
        assert!(!names.iter().any(|name| is_simulated(&metadata, name)));
        let tracer = Tracer {
            kind: Some("lookahead".into()),
            bursts: Some(8),
            burst_instructions: Some(10_000),
            depth: None,
            overhead: Some(0.93),
            start_credit_ns: Some(50_000_000),
            idle: None,
        };
        assert_eq!(Tracer::of(&metadata), Some(tracer));
    }

    #[test]
    fn odd_values_cost_no_more_than_themselves() {
        for odd in [
            r#""events":7,"tracer":[1]"#,
            r#""events":{"name":"burst:u","provenance":"software"},"tracer":null"#,
            r#""events":[7,null,{"provenance":"software"},{"name":3,"provenance":"software"}],"tracer":"none""#,
        ] {
            let metadata = read(format!(r#"{{"lost":3,{odd}}}"#).as_bytes());
            assert_eq!(metadata, Metadata { lost: Some(3), ..Metadata::default() }, "{odd}");
        }
        let metadata = read(br#"{"tracer":{"kind":1,"bursts":-1,"depth":1e300,"overhead":-1e308}}"#);
        assert_eq!(Tracer::of(&metadata), Some(Tracer::default()));
    }
}
