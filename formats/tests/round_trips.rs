//! What is written reads back the same, and any bytes give a value or an error.

use addresses::{FileOffset, Svma};
use formats::burst_data::{DataUse, DataUses, Forwarded};
use formats::executions::{CountedInstruction, Executions};
use formats::flow::{FlowBranch, FlowDocument, FlowModule, FlowRange, FlowSample, LeftOut};
use formats::metadata::{Metadata, RECORD_TYPE};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A JSON value of any kind, as odd as can be.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z:/ é\"\\\\]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z_]{1,6}", inner, 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// The value of a field: mostly such as it should be.
fn field(right: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![6 => right, 1 => any_value()].boxed()
}

fn word(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    proptest::sample::select(words).prop_map(Value::from).boxed()
}

fn number() -> BoxedStrategy<Value> {
    any::<u64>().prop_map(Value::from).boxed()
}

fn share() -> BoxedStrategy<Value> {
    any::<f64>().prop_map(Value::from).boxed()
}

fn text() -> BoxedStrategy<Value> {
    ".{0,12}".prop_map(Value::from).boxed()
}

fn histogram() -> BoxedStrategy<Value> {
    btree_map("[a-z ]{0,6}", field(number()), 0..3)
        .prop_map(|entries| Value::Object(entries.into_iter().collect()))
        .boxed()
}

/// An object of some of these fields.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| proptest::option::weighted(0.8, field(value)).prop_map(move |value| (name, value)))
        .collect();
    fields
        .prop_map(|fields| {
            Value::Object(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
        })
        .boxed()
}

fn numbers(names: &[&'static str]) -> Vec<(&'static str, BoxedStrategy<Value>)> {
    names.iter().map(|&name| (name, number())).collect()
}

fn event() -> BoxedStrategy<Value> {
    let period = prop_oneof![
        any::<u64>().prop_map(|count| json!({"every": count})),
        any::<u64>().prop_map(|hertz| json!({"frequency": hertz})),
    ];
    let mut fields = vec![
        ("name", text()),
        ("role", word(&["ebs", "lbr"])),
        ("unit", word(&["instructions", "operations", "taken-branches", "branches", "nanoseconds", "other"])),
        ("period", period.boxed()),
        ("precise", (0..4_u8).prop_map(Value::from).boxed()),
        ("levels", word(&["all", "user", "kernel"])),
        ("branches", text()),
        ("provenance", word(&["hardware", "software", "simulated"])),
    ];
    fields.extend(numbers(&["samples", "counted", "enabled_ns", "running_ns", "lost"]));
    object(fields)
}

fn tracer() -> BoxedStrategy<Value> {
    let mut fields = vec![
        ("kind", word(&["lookahead", "agent", "agent-check", "timer", "breakpoint", "check", "another"])),
        ("overhead_allowed", share()),
        ("overhead", prop_oneof![0.0..1e5, any::<f64>()].prop_map(Value::from).boxed()),
        ("ends", histogram()),
        ("continued", histogram()),
        ("unsupported", histogram()),
        ("predictions", object(numbers(&["checked", "diverged"]))),
        ("checks", checks()),
        ("starting", object(numbers(&["took_ns", "threads", "lasted_ns"]))),
        ("stop_cost", stop_cost()),
        ("time", object(numbers(&["application_ns", "stops_ns", "state_ns", "lookahead_ns", "samples_ns"]))),
    ];
    for name in ["taken_fraction", "static_fraction", "usefulness"] {
        fields.push((name, share()));
    }
    fields.extend(numbers(&["burst_instructions", "depth", "bursts", "lost_bursts", "instructions", "backed_off"]));
    object(fields)
}

fn checks() -> BoxedStrategy<Value> {
    let texts = || vec(field(text()), 0..4).prop_map(Value::from).boxed();
    let mut fields = vec![("unfinished", histogram()), ("divergences", texts()), ("races", texts())];
    fields.extend(numbers(&["bursts", "instructions", "branches", "diverged", "raced"]));
    object(fields)
}

fn stop_cost() -> BoxedStrategy<Value> {
    let mut fields =
        vec![("calibrated", any::<bool>().prop_map(Value::from).boxed()), ("not_calibrated_because", text())];
    fields.extend(numbers(&["same_cpu_ns", "other_cpu_ns", "sample_ns", "timed_stops", "timed_same_cpu_ns"]));
    object(fields)
}

fn metadata() -> BoxedStrategy<Value> {
    let mut fields = vec![
        ("schema", text()),
        ("version", text()),
        ("source", word(&["branch-records", "counter", "clock", "other"])),
        ("target", text()),
        ("events", vec(field(event()), 0..4).prop_map(Value::from).boxed()),
        ("branch_depth", any::<u32>().prop_map(Value::from).boxed()),
        ("tracer", tracer()),
        ("simulation", object(vec![("core", text()), ("steps", histogram()), ("failures", text()), ("bias", share())])),
        ("degradations", vec(field(text()), 0..4).prop_map(Value::from).boxed()),
        ("unknown", any_value().boxed()),
    ];
    fields.extend(numbers(&[
        "samples",
        "lost",
        "lost_by_hardware",
        "throttled",
        "late",
        "began_unix_ns",
        "duration_ns",
    ]));
    object(fields)
}

fn count() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..3e20, 0.0..1000.0, Just(0.0)]
}

fn address() -> impl Strategy<Value = Svma> {
    any::<u64>().prop_map(Svma)
}

fn range() -> impl Strategy<Value = FlowRange> {
    let from =
        |(one, other, count): (Svma, Svma, f64)| FlowRange { first: one.min(other), last: one.max(other), count };
    (address(), address(), count()).prop_map(from)
}

fn flow_module(modules: usize) -> impl Strategy<Value = FlowModule> {
    let build_id = proptest::option::of("([0-9a-f]{2}){1,20}");
    let branch = (address(), 0..modules, address(), count(), count()).prop_map(FlowBranch::from);
    let samples = vec((address(), count()).prop_map(FlowSample::from), 0..4);
    (".{0,12}", build_id, any::<bool>(), vec(range(), 0..4), vec(branch, 0..4), samples).prop_map(
        |(path, build_id, read, ranges, branches, samples)| FlowModule {
            path,
            build_id,
            read,
            ranges,
            branches,
            samples,
            slices: Vec::new(),
        },
    )
}

fn flow() -> impl Strategy<Value = FlowDocument> {
    let modules = (1..4_usize).prop_flat_map(|modules| vec(flow_module(modules), modules));
    (any::<bool>(), any::<u64>(), [count(), count(), count(), count()], modules).prop_map(
        |(executions, inputs, [seen, streams, branches, samples], modules)| {
            let left_out = LeftOut { streams, branches, samples };
            let mut flow = FlowDocument::new(executions, inputs, seen, left_out);
            flow.modules = modules;
            flow
        },
    )
}

fn data_uses() -> impl Strategy<Value = DataUses> {
    let instruction = || 0..1_u32 << 31;
    let first = (instruction(), 1..=u32::MAX).prop_map(|(instruction, line)| DataUse { instruction, line });
    let forwarded =
        (instruction(), any::<u32>()).prop_map(|(instruction, distance)| Forwarded { instruction, distance });
    (vec(first, 0..9), vec(forwarded, 0..9), proptest::option::of(instruction()))
        .prop_map(|(first, forwarded, known_until)| DataUses { first, forwarded, known_until })
}

proptest! {
    /// Whatever is odd in it, metadata is read; and what was read is written such that it reads the same.
    #[test]
    fn metadata_survives(document in metadata()) {
        let read = Metadata::read(document.to_string().as_bytes());
        prop_assume!(document.is_object() || read.is_err());
        if let Ok(metadata) = read {
            prop_assert_eq!(&Metadata::read(&metadata.to_json()).unwrap(), &metadata);
            let body = metadata.to_record_body().unwrap();
            prop_assert_eq!(body.len() % 8, 0);
            let text = Metadata::text_of_record(RECORD_TYPE, &body).unwrap();
            prop_assert_eq!(Metadata::read(text).unwrap(), metadata);
        }
    }

    /// Values of the right type survive beside odd ones.
    #[test]
    fn odd_values_cost_no_more_than_themselves(odd in any_value(), lost in any::<u64>()) {
        for key in ["schema", "events", "tracer", "simulation", "degradations", "samples", "source", "branch_depth"] {
            let mut document = Map::new();
            document.insert(key.to_owned(), odd.clone());
            document.insert("lost".to_owned(), json!(lost));
            let metadata = Metadata::read(Value::Object(document).to_string().as_bytes()).unwrap();
            prop_assert_eq!(metadata.lost, Some(lost));
        }
    }

    #[test]
    fn flows_survive(flow in flow()) {
        let mut text = Vec::new();
        flow.write(&mut text).unwrap();
        prop_assert_eq!(FlowDocument::read(text.as_slice()).unwrap(), flow);
    }

    #[test]
    fn executions_survive(instructions in vec((".{0,12}", any::<u64>(), any::<u64>()), 0..9)) {
        let counted = |(path, offset, count)| CountedInstruction { path, file_offset: FileOffset(offset), count };
        let executions = Executions::new(instructions.into_iter().map(counted).collect());
        let text = serde_json::to_vec(&executions).unwrap();
        prop_assert_eq!(Executions::read(&text).unwrap(), executions);
    }

    #[test]
    fn data_of_bursts_survives(uses in data_uses(), padding in 0..8_usize) {
        let mut raw = uses.to_bytes();
        raw.resize(raw.len() + padding, 0xff);
        prop_assert_eq!(DataUses::read(&raw), uses);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200)) {
        let _ = (Metadata::read(&bytes), FlowDocument::read(bytes.as_slice()), Executions::read(&bytes));
        let _ = Metadata::text_of_record(RECORD_TYPE, &bytes).map(Metadata::read);
        prop_assert!(DataUses::read(&bytes).to_bytes().len() <= bytes.len());
    }

    #[test]
    fn any_json_is_read_or_refused(value in any_value(), schema in proptest::sample::select(vec!["hbbp-flow/1", "hbbp-executions/1"])) {
        let mut document = value;
        if let Value::Object(fields) = &mut document {
            fields.insert("schema".to_owned(), json!(schema));
        }
        let text = document.to_string();
        let _ = (Metadata::read(text.as_bytes()), FlowDocument::read(text.as_bytes()), Executions::read(text.as_bytes()));
    }
}
