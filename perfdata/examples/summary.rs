//! Prints what is in a recording: events, features, records by type. `cargo run -p hbbp-perfdata --example summary FILE`

use std::collections::BTreeMap;
use std::path::Path;

use perfdata::{Chunk, Recording};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which recording?")?;
    let recording =
        if path == "-" { Recording::from_stream(std::io::stdin().lock())? } else { Recording::open(Path::new(&path))? };
    for event in recording.events() {
        println!("event {}: {} ids, {}", event.name, event.ids.len(), event.attr.sample_format);
    }
    println!("{:#?}", recording.features());
    let mut counts = BTreeMap::new();
    let mut errors = BTreeMap::new();
    let mut branches = 0;
    let mut reader = recording.chunks();
    let mut chunk = Chunk::new();
    while reader.next_into(&mut chunk)? {
        for raw in chunk.records() {
            *counts.entry(raw.record_type.to_string()).or_insert(0u64) += 1;
            let result = if raw.is_sample() {
                recording.sample(&raw).map(|sample| branches += sample.branch_stack.map_or(0, |stack| stack.len()))
            } else {
                recording.parse(&raw).map(drop)
            };
            if let Err(error) = result {
                *errors.entry(error.to_string()).or_insert(0u64) += 1;
            }
        }
    }
    println!("records: {counts:#?}\nbranches: {branches}");
    println!("errors: {errors:#?}\ndamage: {:?}\nnotes: {:#?}", reader.damage(), recording.notes());
    Ok(())
}
