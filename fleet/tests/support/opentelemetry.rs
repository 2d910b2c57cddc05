//! Profiles of OpenTelemetry, as collectors write them in JSON.

use serde_json::{Value, json};

/// What a service did on a host: host, service, version, and at how many addresses it has a sample.
pub type Owner<'a> = (&'a str, &'a str, &'a str, u64);

/// A message as collectors write it in JSON, of samples of this type.
pub fn message(owners: &[Owner<'_>], kind: &str) -> String {
    let most = owners.iter().map(|owner| owner.3).max().unwrap_or_default();
    let attribute = |key: &str, text: &str| json!({"key": key, "value": {"stringValue": text}});
    let resource = |&(host, service, version, places): &Owner<'_>| -> Value {
        let samples: Vec<Value> = (1..=places)
            .map(|place| json!({"stackIndex": place, "timestampsUnixNano": ["1790000000000000000"]}))
            .collect();
        json!({
            "resource": {"attributes": [
                attribute("host.name", host), attribute("service.name", service), attribute("service.version", version),
                {"key": "process.pid", "value": {"intValue": "77"}}]},
            "scopeProfiles": [{"profiles": [{
                "sampleType": {"typeStrindex": 1, "unitStrindex": 2}, "periodType": {"typeStrindex": 3, "unitStrindex": 4},
                "period": "50000000", "timeUnixNano": "1790000000000000000", "durationNano": "5000000000", "samples": samples}]}]
        })
    };
    let locations = (0..=most)
        .map(|place| json!({"mappingIndex": u64::from(place > 0), "address": (4096 + 4 * place).to_string()}));
    let stacks = (0..=most).map(|place| json!({"locationIndices": if place > 0 { vec![place] } else { Vec::new() }}));
    json!({
        "resourceProfiles": owners.iter().map(resource).collect::<Vec<_>>(),
        "dictionary": {
            "mappingTable": [{}, {"memoryStart": "4096", "memoryLimit": "81920", "fileOffset": "4096", "filenameStrindex": 5}],
            "locationTable": locations.collect::<Vec<_>>(), "stackTable": stacks.collect::<Vec<_>>(),
            "functionTable": [{}], "linkTable": [{}], "attributeTable": [{}],
            "stringTable": ["", kind, "count", "cpu", "nanoseconds", "/nowhere/server"]}
    })
    .to_string()
}
