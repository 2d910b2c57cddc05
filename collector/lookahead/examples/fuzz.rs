//! Compares random instructions with the CPU: `cargo run --release -p hbbp-lookahead --example fuzz -- [SEED [CASES]]`

#[path = "../tests/support/mod.rs"]
mod support;

fn main() -> std::process::ExitCode {
    let mut numbers = std::env::args().skip(1).filter_map(|a| a.parse().ok());
    let (seed, cases) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(20_000));
    let report = support::fuzz::fuzz(seed, cases);
    println!(
        "seed {seed}: {} executed, {} trapped, {} mnemonics, {} divergences, {} unsupported, {} undefined flags",
        report.executed,
        report.trapped,
        report.mnemonics.len(),
        report.divergences.values().sum::<u64>(),
        report.unsupported.values().sum::<u64>(),
        report.undefined.values().sum::<u64>(),
    );
    println!("  divergences: {:?}", report.divergences);
    let vectors_of_addresses = |name: &str| name.contains("gather") || name.contains("scatter");
    let gathered: u64 =
        report.mnemonics.iter().filter(|(name, _)| vectors_of_addresses(name)).map(|(_, count)| count).sum();
    println!("  gathers and scatters: {gathered}");
    println!("  unsupported: {:?}", report.unsupported);
    println!("  undefined flags: {:?}", report.undefined);
    for example in &report.examples {
        println!("  {example}");
    }
    if report.divergences.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
