//! How far away data is: on machines that others share, no table says how much of the third level of the caches they leave.
//!
//! Every line of a piece of memory is loaded once, in an order of chance, and each load waits for the one before. What that takes for pieces of
//! different sizes tells how many cycles each level takes, and how large the third one is in effect. A cycle is half of what a rotation and an
//! exclusive or take that wait for each other, on every core.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use formats::calibration::{Calibration, SCHEMA};
use rustix::time::{ClockId, clock_gettime};

use crate::machine::Machine;

/// Bytes of a line, and of them in a number.
const LINE: usize = 64;
const WORD: usize = 4;
/// Loads that are timed of each piece, and how often; the least counts, for others may have the CPU.
const LOADS: usize = 400_000;
const PASSES: usize = 3;
/// Sizes of pieces, in units of half the second level; none is larger than this, KiB.
const SIZES: [u64; 12] = [3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];
const LARGEST: u64 = 96 << 10;
/// The second level where the machine does not say, KiB.
const SECOND: u64 = 1024;

/// Of one piece: its size in KiB, and cycles of a load.
type Point = (f64, f64);

/// Measures a machine, for some seconds of CPU time. `progress` is told the share that is done.
pub fn calibrate(machine: &Machine, progress: &dyn Fn(f64)) -> Calibration {
    let holds_data = |cache: &&crate::machine::Cache| cache.level == 2 && cache.kind != "Instruction";
    let second_kib = machine.caches.iter().find(holds_data).map_or(SECOND, |cache| cache.bytes() >> 10);
    let second_kib = second_kib.clamp(128, 16 << 10);
    let cycle = cycle_ns();
    let second = load_ns(second_kib / 2) / cycle;
    let sizes: Vec<u64> = SIZES.iter().map(|size| size * second_kib / 2).filter(|size| *size <= LARGEST).collect();
    let point = |(index, size): (usize, &u64)| {
        progress(index as f64 / sizes.len() as f64);
        (*size as f64, load_ns(*size) / cycle)
    };
    let points: Vec<Point> = sizes.iter().enumerate().map(point).collect();
    let fit = fit(&points, second_kib as f64, second);
    let measured = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    Calibration {
        schema: Some(SCHEMA.to_owned()),
        cpuid: Some(machine.cpuid()),
        measured: measured.map(|since| since.as_secs()),
        cycle_ns: Some(rounded(cycle, 1e4)),
        second_cycles: Some(rounded(second, 10.0)),
        third_cycles: fit.map(|fit| rounded(fit.third, 10.0)),
        memory_cycles: fit.map(|fit| rounded(fit.memory, 10.0)),
        second_kib: Some(second_kib),
        third_kib: fit.map(|fit| fit.third_kib as u64),
    }
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
/// cycles of the third level and of memory follow from all loads by least squares of relative errors. `None` where no T makes them rise.
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
        let is_possible = determinant.is_finite() && second < third && third < memory && memory.is_finite();
        is_possible.then(|| (points.iter().map(error).sum::<f64>(), Fit { third, memory, third_kib }))
    };
    let largest = points.iter().map(|(size, _)| *size).fold(second_kib, f64::max);
    // From a little more than the second level on to what nearly all pieces fit in.
    let possible = (1..200).map(|step| second_kib * 1.03_f64.powi(step)).take_while(|kib| *kib < 0.8 * largest);
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

    #[test]
    fn what_is_as_near_everywhere_has_no_levels() {
        let flat: Vec<Point> = SIZES.iter().map(|size| (*size as f64 * 512.0, 10.0)).collect();
        assert!(fit(&flat, 1024.0, 14.0).is_none());
        assert!(fit(&[], 1024.0, 14.0).is_none());
    }
}
