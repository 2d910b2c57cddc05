//! The tables of all cores: a line for each kind of instructions, with latency and the cycles between two that do not wait for each other.
//! `benches/core-tables` prints them beside LLVM's.

use simulated_core::{Kind, Microarchitecture};

fn main() {
    for kind in Kind::ALL {
        print!("{kind:?}");
        for microarchitecture in Microarchitecture::ALL {
            let core = microarchitecture.core();
            let (time, unit) = core.executes(kind);
            print!("\t{}/{:.2}", time.latency, time.occupies / core.units.per_cycle(unit));
        }
        println!();
    }
    for (name, value) in [
        ("width", (|core| core.width) as fn(&simulated_core::Core) -> f64),
        ("window", |core| core.window as f64),
        ("load", |core| core.load),
        ("load of a vector", |core| core.vector_load),
        ("mispredicted branch", |core| core.wrong_path),
    ] {
        print!("{name}");
        Microarchitecture::ALL.iter().for_each(|one| print!("\t{}", value(&one.core())));
        println!();
    }
}
