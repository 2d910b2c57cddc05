//! What an instruction of compiled code costs, in a burst over code of this program: sorting, searching, counting, hashing.
//!
//! `cargo run --release -p hbbp-lookahead --example own_code [BURSTS [INSTRUCTIONS]]`. For steady figures, count instructions:
//! `valgrind --tool=callgrind --toggle-collect='lookahead::run::run_with_lines*' target/release/examples/own_code 1 2000000`.

use std::hint::black_box;
use std::ptr::NonNull;
use std::time::Instant;

use addresses::Avma;
use lookahead::{CodeCache, DataLines, Fault, Fuel, InPlace, Memory, Overlay, Page, Registers, run_with_lines};

/// This process's memory, where it is.
struct Own;

impl Memory for Own {
    fn read_page(&mut self, _: Avma, _: &mut Page) -> Result<(), Fault> {
        Err(Fault)
    }

    fn in_place(&mut self, address: Avma) -> Result<Option<InPlace>, Fault> {
        // SAFETY: `work` uses its own code, its arrays and its stack, which stay where they are.
        Ok(NonNull::new(address.0 as *mut Page).map(|page| unsafe { InPlace::new(page) }))
    }
}

const LENGTH: usize = 4096;

/// Mostly integers, branches and loads, as in compilers and interpreters.
#[inline(never)]
extern "C" fn work(values: &mut [u32; LENGTH], counts: &mut [u32; 256]) -> u64 {
    let mut sum = 0_u64;
    for round in 0..1000_u32 {
        for (index, value) in values.iter_mut().enumerate() {
            *value = (index as u32 ^ round).wrapping_mul(2_654_435_761) >> 7;
            counts[(*value & 255) as usize] += 1;
        }
        values.sort_unstable();
        for wanted in 0..512_u32 {
            sum += values.binary_search(&(wanted << 13)).unwrap_or_else(|place| place) as u64;
        }
        let hash =
            values.iter().fold(0xcbf2_9ce4_u64, |hash, value| (hash ^ u64::from(*value)).wrapping_mul(0x100_0000_01b3));
        sum ^= hash;
    }
    sum
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let (bursts, instructions) = (arguments.next().unwrap_or(200), arguments.next().unwrap_or(10_000));
    let (mut values, mut counts) = (Box::new([0; LENGTH]), Box::new([0; 256]));
    let stack = vec![0_u64; 1 << 15];
    let mut registers = Registers { rip: black_box(work) as *const () as u64, ..Registers::default() };
    registers.general[7] = values.as_mut_ptr() as u64;
    registers.general[6] = counts.as_mut_ptr() as u64;
    let top = stack.as_ptr() as u64 + 8 * (1 << 15) - 4096;
    registers.general[4] = (top & !15) - 8;
    let (mut overlay, mut cache) = (Overlay::new(4096), CodeCache::comparing(1 << 16));
    let (mut branches, mut lines) = (Vec::with_capacity(1 << 20), DataLines::default());
    let mut times = Vec::new();
    for _ in 0..bursts {
        overlay.clear();
        branches.clear();
        lines.clear();
        let mut registers = registers.clone();
        let fuel = Fuel { instructions, branches: u64::MAX };
        let began = Instant::now();
        let outcome =
            run_with_lines(&mut registers, &mut overlay, &mut Own, &mut cache, fuel, &mut branches, &mut lines);
        times.push(began.elapsed().as_nanos() as f64 / outcome.instructions as f64);
        assert_eq!(outcome.instructions, instructions, "{outcome:?}");
    }
    times.sort_by(f64::total_cmp);
    let (first, median) = (times.first().unwrap_or(&0.0), times.get(times.len() / 2).unwrap_or(&0.0));
    println!(
        "{median:.2} ns per instruction (fastest {first:.2}), {} branches, {} pages",
        branches.len(),
        overlay.pages()
    );
}
