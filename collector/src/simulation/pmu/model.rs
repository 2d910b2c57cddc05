//! Every constant of the model, with its reason. They are those of an Ivy Bridge, the machine of HBBP, as far as its maker or
//! measurements of it (A. Fog, *Instruction tables* and *The microarchitecture of Intel, AMD and VIA CPUs*) say; the others are marked.

/// Instructions that enter and leave the pipeline in a cycle. Time is counted in slots, of which a cycle has so many.
pub(super) const WIDTH: u64 = 4;

/// Instructions that are underway at most: entries of the reorder buffer.
pub(super) const UNDERWAY: usize = 168;

/// Cycles until instructions flow again behind a branch that went elsewhere than predicted.
pub(super) const MISPREDICTION: u64 = 15;

/// Latency of an instruction for which no other is given, cycles.
pub(super) const PLAIN: u32 = 1;
/// Integer division, up to 32 and of 64 bits. The divider does one at a time, of floats too.
pub(super) const DIVISION_32: u32 = 24;
pub(super) const DIVISION_64: u32 = 60;
/// Division and square root of floats.
pub(super) const FLOAT_DIVISION: u32 = 18;
/// Other arithmetic of floats, and integer multiplication.
pub(super) const ARITHMETIC: u32 = 4;
/// x87 instructions made of microcode: sines, logarithms.
pub(super) const TRANSCENDENTAL: u32 = 100;
/// Locked instructions wait for everything before them.
pub(super) const LOCKED: u32 = 20;
/// `cpuid`, `rdtsc` and the like.
pub(super) const SLOW: u32 = 30;

/// Bytes of a cache line, as a power of two.
pub(super) const LINE: u32 = 6;

/// One level of the data caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// A power of two.
    pub(super) sets: usize,
    pub(super) ways: usize,
    /// Cycles until what is found here can be used.
    pub(super) latency: u32,
}

/// 32 KiB, 256 KiB, and of the shared cache 8 MiB.
pub(super) const LEVELS: [Level; 3] = [
    Level { sets: 64, ways: 8, latency: 4 },
    Level { sets: 512, ways: 8, latency: 12 },
    Level { sets: 8192, ways: 16, latency: 30 },
];

/// Cycles until what is in no cache can be used.
pub(super) const MEMORY: u32 = 200;

/// Entries of the predictor's tables, and branches of its history, as powers of two: what fits into some KiB. What makers build is
/// larger and better; mispredictions are too many rather than too few. (Assumption.)
pub(super) const DIRECTIONS: u32 = 14;
pub(super) const TARGETS: u32 = 12;
pub(super) const HISTORY: u32 = 12;
/// Entries of the stack of return addresses.
pub(super) const RETURNS: usize = 16;

/// Cycles from the overflow of a precise event's counter until its next event makes the sample. Intel's manual (volume 3B, *Precise
/// Distribution of Instructions Retired*) knows of "a finite delay", "constant in core clock space", and does not say how long it is; a few
/// cycles are needed for the shadowing that HBBP describes. (Assumption.)
///
/// Of `PREC_DIST` the manual says that "an early indication of when the counter is about to overflow" takes the delay away, and the list of
/// events that it "reduces" the shadow. So that is armed in the cycle of the overflow, and what retires in that same cycle is not sampled:
/// instruction by instruction it is accurate on later cores only.
pub(super) const ARMING: u64 = 8;

/// Cycles from the overflow of a counter until an interrupt stops the core, and with it the stack, at least and at most, each as likely:
/// it takes now more, now less. (Assumption; `benches/stack-positions` compares what follows from it with a recording of a Westmere.)
pub(super) const INTERRUPT: std::ops::RangeInclusive<u64> = 20..=60;

/// How often a stack with a branch that holds it is held until that branch is the oldest: HBBP (III.C) saw branches in entry\[0\] "even up
/// to 50% of the time". Nobody knows how it comes about. (Assumption.)
pub(super) const HOLDING: f64 = 0.5;
