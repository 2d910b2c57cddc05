//! The bytes themselves, which old recordings and other readers have.

use addresses::Svma;
use formats::burst_data::{DataUse, DataUses, Forwarded};
use formats::executions::Executions;
use formats::flow::{FlowBranch, FlowDocument, FlowModule, FlowRange, FlowSample, LeftOut};
use formats::metadata::{
    CountsFrom, EventMetadata, Levels, Metadata, Percent, Period, Provenance, RECORD_TYPE, Role, Unit,
};

/// As version 0.1.0 wrote it.
const RECORDED: &str = concat!(
    r#"{"schema":"hbbp-recording/1","version":"0.1.0","source":"clock","target":"command","events":[{"name":"task-clock:u","#,
    r#""role":"ebs","unit":"nanoseconds","period":{"every":10000019},"precise":0,"levels":"user","samples":4,"counted":5,"#,
    r#""enabled_ns":6,"running_ns":7,"lost":0},{"name":"burst:u","role":"lbr","unit":"nanoseconds","period":{"every":25000000},"#,
    r#""precise":0,"levels":"user","branches":"any,u","provenance":"software","samples":8,"counted":9,"enabled_ns":9,"#,
    r#""running_ns":9,"lost":0}],"tracer":{"kind":"lookahead","burst_instructions":10000,"overhead_allowed":1.0,"#,
    r#""overhead":0.93,"bursts":8,"lost_bursts":0,"instructions":80000,"taken_branches":9000,"static_branches":3000,"#,
    r#""not_taken":500,"taken_fraction":0.9,"static_fraction":0.3,"usefulness":1.4,"pages":70,"pages_missed":3,"#,
    r#""sampling_stops":8,"other_stops":1,"breakpoints":2,"breakpoints_missed":0,"threads":1,"processes":1,"backed_off":0,"#,
    r#""ends":{"as long as asked":8},"continued":{},"unsupported":{"cpuid":1},"predictions":{"checked":2,"diverged":0},"#,
    r#""time":{"application_ns":9,"stops_ns":1,"state_ns":1,"lookahead_ns":1,"decoding_ns":1,"breakpoints_ns":1,"#,
    r#""other_ns":1,"samples_ns":1}},"degradations":["no PMU"],"samples":12,"lost":0,"lost_by_hardware":0,"throttled":0,"#,
    r#""late":0,"duration_ns":1000,"collector_cpu_ns":100}"#
);

#[test]
fn metadata_keeps_its_bytes() {
    let metadata = Metadata::read(RECORDED.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(metadata.to_json()).unwrap(), RECORDED);
    assert_eq!((metadata.source, metadata.lost), (Some(CountsFrom::Clock), Some(0)));
    let burst = metadata.event("burst:u").unwrap();
    assert_eq!((burst.role, burst.unit), (Some(Role::Lbr), Some(Unit::Nanoseconds)));
    assert_eq!((burst.period, burst.levels), (Some(Period::Every(25_000_000)), Some(Levels::User)));
    assert_eq!(burst.provenance, Some(Provenance::Software));
    let tracer = metadata.tracer.unwrap();
    assert_eq!((tracer.bursts, tracer.overhead), (Some(8), Some(Percent(0.93))));
    assert_eq!(tracer.ends.unwrap()["as long as asked"], 8);
}

#[test]
fn a_recording_says_when_it_was_made_or_does_not() {
    let ended = |text: &str| Metadata::read(text.as_bytes()).unwrap().ended_unix_ns();
    assert_eq!(ended(RECORDED), None, "older recordings do not say it");
    let began = 1_764_186_000_123_456_789_u64;
    assert_eq!(ended(&format!(r#"{{"began_unix_ns":{began},"duration_ns":1000}}"#)), Some(began + 1000));
    assert_eq!(ended(&format!(r#"{{"began_unix_ns":{began}}}"#)), Some(began), "the recorder was killed");
    for odd in [
        r#"{"began_unix_ns":-1}"#,
        r#"{"began_unix_ns":"today"}"#,
        r#"{"began_unix_ns":18446744073709551615,"duration_ns":1}"#,
    ] {
        assert_eq!(ended(odd), None, "{odd}");
    }
    let metadata = Metadata { began_unix_ns: Some(began), ..Metadata::default() };
    assert_eq!(Metadata::read(&metadata.to_json()).unwrap(), metadata);
}

#[test]
fn what_is_not_known_is_not_written() {
    let metadata =
        Metadata::read(br#"{"degradations":["no PMU",7],"events":[{"name":"burst:u"},{"role":"ebs"},7]}"#).unwrap();
    assert_eq!(metadata.to_json(), br#"{"events":[{"name":"burst:u"}],"degradations":["no PMU"]}"#);
    assert!(Metadata::read(b"[]").is_err() && Metadata::read(b"{").is_err());
}

#[test]
fn flows_keep_their_bytes() {
    let mut flow = FlowDocument::new(true, 2, 9.0, LeftOut { streams: 1.0, branches: 0.5, samples: 0.0 });
    flow.modules.push(FlowModule {
        path: "/bin/x".to_owned(),
        build_id: Some("01ab".to_owned()),
        read: true,
        ranges: vec![FlowRange { first: Svma(16), last: Svma(32), count: 3.0 }],
        branches: vec![FlowBranch { from: Svma(32), module: 0, to: Svma(16), count: 2.5, mispredicted: 1.0 }],
        samples: vec![FlowSample { at: Svma(18), count: 7.0 }],
        slices: Vec::new(),
    });
    let text = concat!(
        r#"{"schema":"hbbp-flow/1","executions":true,"inputs":2,"seen":9.0,"#,
        r#""left_out":{"streams":1.0,"branches":0.5,"samples":0.0},"modules":[{"path":"/bin/x","build_id":"01ab","#,
        r#""read":true,"ranges":[[16,32,3.0]],"branches":[[32,0,16,2.5,1.0]],"samples":[[18,7.0]]}]}"#,
        "\n"
    );
    let mut written = Vec::new();
    flow.write(&mut written).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), text);
    assert_eq!(FlowDocument::read(text.as_bytes()).unwrap(), flow);
    let four = text.replace("[32,0,16,2.5,1.0]", "[32,0,16,2.5]");
    let refused = FlowDocument::read(four.as_bytes()).unwrap_err().to_string();
    assert!(refused.contains("invalid length 4, expected a tuple of size 5"), "{refused}");
}

#[test]
fn data_of_bursts_keeps_its_bytes() {
    let first = vec![DataUse { instruction: 7, line: 0x1234 }, DataUse { instruction: 9, line: u32::MAX }];
    let uses = DataUses { first, forwarded: vec![Forwarded { instruction: 600, distance: 3 }], known_until: Some(500) };
    let words = [7 << 32 | 0x1234, 9 << 32 | 0xffff_ffff, 500 << 32, 1 << 63 | 600 << 32 | 3_u64];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!((uses.to_bytes(), DataUses::read(&bytes)), (bytes.clone(), uses));
    assert_eq!(DataUses::read(&bytes[..11]).first.len(), 1, "what follows the last whole word is padding");
    let zero = DataUses { first: vec![DataUse { instruction: 7, line: 0 }], ..DataUses::default() };
    assert!(zero.to_bytes().is_empty(), "it would say that there was no room for more");
}

#[test]
fn executions_say_what_they_are() {
    let text = r#"{"schema":"hbbp-executions/1","instructions":[{"path":"/bin/x","file_offset":4096,"count":17}]}"#;
    let executions = Executions::read(text.as_bytes()).unwrap();
    assert_eq!(serde_json::to_string(&executions).unwrap(), text);
    let error = Executions::read(br#"{"schema":"hbbp-blocks/1"}"#).unwrap_err().to_string();
    assert!(error.contains("`hbbp-blocks/1`, expected `hbbp-executions/1`"), "{error}");
}

#[test]
fn metadata_fits_into_a_record() {
    // With the rest of it, into the last word: a sentence has two quotation marks and a comma.
    let last = "degradations left out for lack of room in a record: 1".to_owned();
    let sentences = vec!["x".repeat(30_000), "y".repeat(35_465 - last.len() - 3), "z".repeat(30_000)];
    let metadata = Metadata { degradations: sentences.clone(), lost: Some(3), ..Metadata::default() };
    let body = metadata.to_record_body().unwrap();
    assert_eq!(body.len() + 8, 65_528);
    let read = Metadata::read(Metadata::text_of_record(RECORD_TYPE, &body).unwrap()).unwrap();
    assert_eq!((read.degradations, read.lost), ([&sentences[..2], &[last]].concat(), Some(3)));
    let endless = EventMetadata { name: "x".repeat(70_000), ..EventMetadata::default() };
    assert_eq!(Metadata { events: vec![endless], ..Metadata::default() }.to_record_body(), None);
    for (record_type, body) in [(80, body.as_slice()), (RECORD_TYPE, b"\0\0\0\0\0\0\0\0cycles"), (RECORD_TYPE, b"")] {
        assert_eq!(Metadata::text_of_record(record_type, body), None);
    }
}
