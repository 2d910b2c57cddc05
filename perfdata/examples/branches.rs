//! Prints the most frequent taken branches of a recording: `cargo run -p hbbp-perfdata --example branches FILE`

use std::collections::HashMap;
use std::path::Path;

use perfdata::{Chunk, Recording};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which recording?")?;
    let recording = Recording::open(Path::new(&path))?;
    let mut counts: HashMap<_, u64> = HashMap::new();
    let mut reader = recording.chunks();
    let mut chunk = Chunk::new();
    while reader.next_into(&mut chunk)? {
        for raw in chunk.records().filter(|raw| raw.is_sample()) {
            for branch in recording.sample(&raw)?.branch_stack.iter().flat_map(|stack| stack.iter()) {
                *counts.entry((branch.from, branch.to)).or_default() += 1;
            }
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|&(branch, count)| (std::cmp::Reverse(count), branch));
    for ((from, to), count) in counts.iter().take(20) {
        println!("{count:>10} {from} -> {to}");
    }
    println!("{} branches in all", counts.len());
    if let Some(damage) = reader.damage() {
        println!("reading stopped early: {damage}");
    }
    Ok(())
}
