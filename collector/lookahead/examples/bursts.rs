//! Bursts from stopped moments of a real program: what they cost and why they end.
//!
//! `cargo run --release -p hbbp-lookahead --example bursts -- PROGRAM [ARGUMENT...]`

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::{BTreeMap, HashMap};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use addresses::Avma;
use lookahead::{CodeCache, Fault, Fuel, Memory, Overlay, Page, StopReason, run};
use support::tracee::{Remote, Tracee};

struct Remembering<'t> {
    remote: Remote<'t>,
    pages: HashMap<Avma, Box<Page>>,
}

impl Memory for Remembering<'_> {
    fn read_page(&mut self, address: Avma, page: &mut Page) -> Result<(), Fault> {
        if let Some(known) = self.pages.get(&address) {
            page.copy_from_slice(&known[..]);
            return Ok(());
        }
        self.remote.read_page(address, page)?;
        self.pages.insert(address, Box::new(*page));
        Ok(())
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: bursts PROGRAM [ARGUMENT...]");
        return ExitCode::from(2);
    };
    let mut command = Command::new(&program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    let mut tracee = match Tracee::start(command) {
        Ok(tracee) => tracee,
        Err(error) => {
            eprintln!("{program}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let (mut overlay, mut cache, mut sink) = (Overlay::new(4096), CodeCache::new(1 << 20), Vec::new());
    let fuel = Fuel { instructions: 1 << 16, branches: 256 };
    let mut stops: BTreeMap<String, u64> = BTreeMap::new();
    let (mut bursts, mut instructions, mut branches, mut pages) = (0u64, 0, 0, 0);
    let (mut first, mut again) = (Duration::ZERO, Duration::ZERO);
    while bursts < 400 && tracee.run_for(Duration::from_millis(3)) {
        let start = tracee.registers();
        // Once as it comes, and once more with the code decoded and the pages at hand.
        let mut memory = Remembering { remote: Remote(&tracee), pages: HashMap::new() };
        for round in 0..2 {
            let mut registers = start.clone();
            sink.clear();
            overlay.clear();
            let started = Instant::now();
            let outcome = run(&mut registers, &mut overlay, &mut memory, &mut cache, fuel, &[], &mut sink);
            let took = started.elapsed();
            if round == 0 {
                first += took;
                instructions += outcome.instructions;
                branches += outcome.branches;
                pages += overlay.pages();
                let stop = match outcome.stop {
                    StopReason::Unsupported(what) => format!("Unsupported {:?}", what.mnemonic),
                    StopReason::Fault { .. } => "Fault".into(),
                    other => format!("{other:?}"),
                };
                *stops.entry(stop).or_default() += 1;
            } else {
                again += took;
            }
        }
        bursts += 1;
    }
    if instructions == 0 {
        eprintln!("{program}: ended before the first burst");
        return ExitCode::FAILURE;
    }
    println!(
        "{program}: {bursts} bursts, {:.0} instructions, {:.0} branches, {:.1} pages each; {:.1} us each ({:.1} ns per \
         instruction), repeated {:.1} ns per instruction; {} instructions decoded",
        instructions as f64 / bursts as f64,
        branches as f64 / bursts as f64,
        pages as f64 / bursts as f64,
        first.as_secs_f64() * 1e6 / bursts as f64,
        first.as_nanos() as f64 / instructions as f64,
        again.as_nanos() as f64 / instructions as f64,
        cache.instructions(),
    );
    println!("  {stops:?}");
    ExitCode::SUCCESS
}
