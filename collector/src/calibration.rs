//! How far away data is: on machines that others share, no table says how much of the third level of the caches they leave.
//!
//! Every line of a piece of memory is loaded once, in an order of chance, and each load waits for the one before. What that takes for pieces of
//! different sizes tells how many cycles each level takes, and how large the third one is in effect. A cycle is half of what a rotation and an
//! exclusive or take that wait for each other, on every core.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use formats::calibration::{Calibration, SCHEMA};
use perfdata::Cache;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::machine::Machine;

/// Bytes of a line, and of them in a number.
const LINE: usize = 64;
const WORD: usize = 4;
/// Loads that are timed of each piece, and how often; the least counts, for others may have the CPU.
const LOADS: usize = 400_000;
const PASSES: usize = 3;
/// Sizes of pieces, in units of half the second level, up to the size that must be reached, KiB: well beyond the third level, of which a machine
/// may leave all; none is larger than the last.
const SIZES: [u64; 18] = [3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
const LEAST_LARGEST: u64 = 96 << 10;
const LARGEST: u64 = 512 << 10;
const BEYOND_THIRD: u64 = 3;
/// The second level where the machine does not say, KiB.
const SECOND: u64 = 1024;
/// Memory takes so many cycles more than the third level at least, or else no piece has reached it: 40 ns at 2 GHz.
const FARTHER: f64 = 80.0;
/// How much the clock may change while one piece is measured.
const STEADY: f64 = 0.15;
/// The clock rises in the first moments of work.
const WARMING: Duration = Duration::from_millis(100);

/// Of one piece: its size in KiB, and cycles of a load.
type Point = (f64, f64);

/// Measures a machine, for some seconds of CPU time, on its first CPU. `progress` is told the share that is done. What cannot be told apart, or
/// what was measured while the clock changed, is missing in the result.
pub fn calibrate(machine: &Machine, progress: &dyn Fn(f64)) -> Calibration {
    // The caches are those of that CPU; where it may not run there, it runs where it may.
    if let Some(first) = machine.online.iter().next().filter(|cpu| (*cpu as usize) < CpuSet::MAX_CPU) {
        let mut only = CpuSet::new();
        only.set(first as usize);
        let _ = sched_setaffinity(None, &only);
    }
    let size = |level: u32| Cache::data_bytes(&machine.caches, level).map(|bytes| bytes >> 10);
    let second_kib = size(2).unwrap_or(SECOND).clamp(128, 16 << 10);
    let largest = (BEYOND_THIRD * size(3).unwrap_or(0)).clamp(LEAST_LARGEST, LARGEST).min(machine.memory_kb / 4);
    let began = now();
    while now() - began < WARMING {
        cycle_ns();
    }
    let second = cycles(second_kib / 2);
    let sizes: Vec<u64> = SIZES.iter().map(|size| size * second_kib / 2).filter(|size| *size <= largest).collect();
    let point = |(index, size): (usize, &u64)| {
        progress(index as f64 / sizes.len() as f64);
        Some((*size as f64, cycles(*size)?))
    };
    let points: Option<Vec<Point>> = sizes.iter().enumerate().map(point).collect();
    let fit = second.zip(points).and_then(|(second, points)| fit(&points, second_kib as f64, second));
    let measured = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    Calibration {
        schema: Some(SCHEMA.to_owned()),
        cpuid: Some(machine.cpuid()),
        measured: measured.map(|since| since.as_secs()),
        cycle_ns: Some(rounded(cycle_ns(), 1e4)),
        second_cycles: second.map(|second| rounded(second, 10.0)),
        third_cycles: fit.map(|fit| rounded(fit.third, 10.0)),
        memory_cycles: fit.map(|fit| rounded(fit.memory, 10.0)),
        second_kib: Some(second_kib),
        third_kib: fit.map(|fit| fit.third_kib as u64),
    }
}

/// Cycles of a load from a piece of so many KiB; `None` if the clock changed meanwhile, again and again.
fn cycles(kib: u64) -> Option<f64> {
    let attempt = |_| {
        let before = cycle_ns();
        let load = load_ns(kib);
        let after = cycle_ns();
        ((after / before - 1.0).abs() < STEADY).then_some(2.0 * load / (before + after))
    };
    (0..PASSES).find_map(attempt)
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// What the loads of all pieces say.
#[derive(Clone, Copy, Debug)]
struct Fit {
    third: f64,
    memory: f64,
    third_kib: f64,
}

/// A piece of s KiB is found in the second level to S / s, in the third to (T - S) / s, and the rest in memory. For each T that is possible, the
/// cycles of the third level and of memory follow from all loads by least squares of relative errors. `None` where no T explains them by a
/// memory that is well beyond the third level.
fn fit(points: &[Point], second_kib: f64, second: f64) -> Option<Fit> {
    let of = |third_kib: f64| {
        let (mut aa, mut ab, mut bb, mut ay, mut by) = (0.0, 0.0, 0.0, 0.0, 0.0);
        let parts = |size: f64| {
            let near = (second_kib / size).min(1.0);
            let third = (third_kib / size).min(1.0) - near;
            (near, third, 1.0 - near - third)
        };
        for (size, cycles) in points {
            let (near, a, b) = parts(*size);
            let (y, weight) = (cycles - near * second, 1.0 / (cycles * cycles));
            aa += weight * a * a;
            ab += weight * a * b;
            bb += weight * b * b;
            ay += weight * a * y;
            by += weight * b * y;
        }
        let determinant = aa * bb - ab * ab;
        let (third, memory) = ((ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant);
        let error = |(size, cycles): &Point| {
            let (near, a, b) = parts(*size);
            ((near * second + a * third + b * memory) / cycles - 1.0).powi(2)
        };
        let is_possible = determinant.is_finite() && second < third && third + FARTHER < memory && memory.is_finite();
        is_possible.then(|| (points.iter().map(error).sum::<f64>(), Fit { third, memory, third_kib }))
    };
    let largest = points.iter().map(|(size, _)| *size).fold(second_kib, f64::max);
    // From a little more than the second level on to what nearly all pieces fit in.
    let possible = (1..300).map(|step| second_kib * 1.03_f64.powi(step)).take_while(|kib| *kib < 0.8 * largest);
    possible.filter_map(of).min_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, fit)| fit)
}

/// CPU time of this thread.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The least time of some passes, ns of CPU time.
fn least(mut pass: impl FnMut()) -> f64 {
    let mut time = || {
        let before = now();
        pass();
        (now() - before).as_nanos() as f64
    };
    (0..PASSES).map(|_| time()).fold(f64::INFINITY, f64::min)
}

fn cycle_ns() -> f64 {
    const STEPS: u64 = 4_000_000;
    let mut value = std::hint::black_box(1_u64);
    let took = least(|| {
        for step in 0..STEPS {
            value = (value ^ step).rotate_left(7);
        }
        std::hint::black_box(value);
    });
    took / (2 * STEPS) as f64
}

/// ns of a load from a piece of so many KiB.
fn load_ns(kib: u64) -> f64 {
    let lines = (kib as usize) << 10 >> LINE.trailing_zeros();
    let words = LINE / WORD;
    let mut order: Vec<u32> = (0..lines as u32).collect();
    fastrand::Rng::with_seed(kib).shuffle(&mut order);
    let mut piece = vec![0_u32; lines * words];
    for (from, to) in order.iter().zip(order.iter().cycle().skip(1)) {
        piece[*from as usize * words] = to * words as u32;
    }
    let mut at = 0;
    // Once around, to bring in what there is room for.
    (0..lines).for_each(|_| at = piece[at as usize]);
    let took = least(|| {
        for _ in 0..LOADS {
            at = piece[at as usize];
        }
        std::hint::black_box(at);
    });
    took / LOADS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of a machine as the fit takes one to be.
    fn points(second_kib: f64, third_kib: f64, cycles: [f64; 3]) -> Vec<Point> {
        let point = |size: u64| {
            let size = size as f64 * second_kib / 2.0;
            let near = (second_kib / size).min(1.0);
            let third = (third_kib / size).min(1.0) - near;
            (size, near * cycles[0] + third * cycles[1] + (1.0 - near - third) * cycles[2])
        };
        SIZES.map(point).to_vec()
    }

    #[test]
    fn machines_are_found_again() {
        for (second, third, cycles) in [(1024.0, 8192.0, [14.0, 55.0, 600.0]), (512.0, 16_384.0, [12.0, 46.0, 350.0])] {
            let fit = fit(&points(second, third, cycles), second, cycles[0]).unwrap();
            assert!((fit.third_kib / third - 1.0).abs() < 0.05, "{fit:?}");
            assert!((fit.third / cycles[1] - 1.0).abs() < 0.1, "{fit:?}");
            assert!((fit.memory / cycles[2] - 1.0).abs() < 0.05, "{fit:?}");
        }
    }

    #[test]
    fn a_third_level_that_few_pieces_fit_in_explains_all_loads() {
        // Its size and its cycles stand for each other then.
        let points = points(2048.0, 3000.0, [15.0, 75.0, 420.0]);
        let fit = fit(&points, 2048.0, 15.0).unwrap();
        for (size, cycles) in points {
            let near = (2048.0 / size).min(1.0);
            let third = (fit.third_kib / size).min(1.0) - near;
            let explained = near * 15.0 + third * fit.third + (1.0 - near - third) * fit.memory;
            assert!((explained / cycles - 1.0).abs() < 0.02, "{size}: {explained} {cycles}");
        }
    }

    /// All pieces are in the third level, and take a little more the larger they are: translations of addresses.
    #[test]
    fn where_no_piece_reaches_memory_none_is_made_up() {
        for (second_kib, cycles) in [(512.0, [12.0, 46.0]), (2048.0, [15.0, 75.0])] {
            let point = |size: u64| {
                let size = size as f64 * second_kib / 2.0;
                let near = second_kib / size;
                (size, near * cycles[0] + (1.0 - near) * cycles[1] + 20.0 * size / (size + 16_384.0))
            };
            let points: Vec<Point> = SIZES[..12].iter().map(|size| point(*size)).collect();
            assert!(fit(&points, second_kib, cycles[0]).is_none(), "{:?}", fit(&points, second_kib, cycles[0]));
        }
    }

    #[test]
    fn what_is_as_near_everywhere_has_no_levels() {
        let flat: Vec<Point> = SIZES.iter().map(|size| (*size as f64 * 512.0, 10.0)).collect();
        assert!(fit(&flat, 1024.0, 14.0).is_none());
        assert!(fit(&[], 1024.0, 14.0).is_none());
    }
}
