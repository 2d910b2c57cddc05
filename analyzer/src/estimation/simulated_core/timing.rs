//! What is wide, long and slow in the simulated core.

/// Instructions per cycle that come and that retire. This constant and those below that no manual gives are what
/// `benches/core-latencies` measures on a Zen 5: mixes that no unit holds up run at 5.5 to 7.7. Errors of the training programs are the same within
/// a tenth for 6.5 and 7, and grow below.
pub(super) const WIDTH: f64 = 6.5;
/// Instructions underway: AMD's Software Optimization Guide for Zen 5. With 200 the errors are the same.
pub(super) const WINDOW: usize = 448;
/// Cycles from the execution of a mispredicted branch until instructions come from the right place.
pub(super) const WRONG_PATH: f64 = 14.0;
/// Cycles for which a correctly predicted taken branch keeps others from coming, of its own place among the `WIDTH`.
pub(super) const TAKEN: f64 = 0.25;
/// Cycles of a load that finds its data in the first level.
pub(super) const LOAD: f64 = 4.0;
pub(super) const VECTOR_LOAD: f64 = 6.0;
/// Cycles from a store to a load of the same memory by another address. One by the same registers and displacement gets the register that
/// was stored.
pub(super) const FORWARD: f64 = 6.0;
/// Cycles more for a sum of floating point numbers on its way to another unit than to the next sum.
pub(super) const FROM_SUM: f64 = 1.0;
pub(super) const LOADS_PER_CYCLE: f64 = 3.0;
pub(super) const VECTOR_LOADS_PER_CYCLE: f64 = 2.0;
pub(super) const STORES_PER_CYCLE: f64 = 2.0;
/// Cycles of transfers for which stores find room in their queue: 64 stores, two to a line.
pub(super) const STORE_QUEUE: f64 = 128.0;
/// How far units may lag behind what comes, cycles: queues in front of them.
pub(super) const QUEUE: f64 = 20.0;
/// Stores and waits that are remembered.
pub(super) const REMEMBERED: usize = 1024;
/// Instructions whose stores are found by their distance.
pub(super) const STORES: usize = 256;
pub(super) const REGISTERS: usize = 128;
pub(super) const LINE: i64 = 64;
