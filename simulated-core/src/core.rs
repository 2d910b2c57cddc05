//! What is wide, long and slow in a core.

use std::ops::RangeInclusive;

/// A part of a core that executes instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Simple operations on general registers.
    Integer,
    /// Products of general registers.
    Multiply,
    /// Quotients of general registers.
    Divide,
    /// Simple operations on vectors.
    Vector,
    /// Products of vectors.
    VectorMultiply,
    /// Shifts of vectors.
    VectorShift,
    /// Sums of floating point numbers.
    FloatAdd,
    /// Quotients and roots of floating point numbers.
    VectorDivide,
}

impl Unit {
    /// How many there are.
    pub const COUNT: usize = 8;

    /// The unit of whose places it has some.
    pub fn is_part_of(self) -> Option<Unit> {
        matches!(self, Unit::VectorMultiply | Unit::VectorShift | Unit::FloatAdd).then_some(Unit::Vector)
    }
}

/// Instructions that each [`Unit`] starts in a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Units {
    pub(crate) integer: f64,
    pub(crate) multiply: f64,
    pub(crate) divide: f64,
    pub(crate) vector: f64,
    pub(crate) vector_multiply: f64,
    pub(crate) vector_shift: f64,
    pub(crate) float_add: f64,
    pub(crate) vector_divide: f64,
}

impl Units {
    /// Instructions that a unit starts in a cycle.
    pub fn per_cycle(&self, unit: Unit) -> f64 {
        match unit {
            Unit::Integer => self.integer,
            Unit::Multiply => self.multiply,
            Unit::Divide => self.divide,
            Unit::Vector => self.vector,
            Unit::VectorMultiply => self.vector_multiply,
            Unit::VectorShift => self.vector_shift,
            Unit::FloatAdd => self.float_add,
            Unit::VectorDivide => self.vector_divide,
        }
    }
}

/// How long an instruction takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    /// From operands to results, cycles; what a load takes is not part of it.
    pub latency: f64,
    /// Cycles for which its unit can start nothing else.
    pub occupies: f64,
}

/// Instructions that a unit takes one after the other.
pub(crate) const fn takes(latency: f64) -> Time {
    Time { latency, occupies: 1.0 }
}

/// Instructions that keep their unit.
pub(crate) const fn keeps(latency: f64, occupies: f64) -> Time {
    Time { latency, occupies }
}

/// How long instructions of each [`Kind`](crate::Kind) take that is not the same on all cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    pub(crate) multiply: Time,
    /// Of 32 bits and fewer.
    pub(crate) divide: Time,
    pub(crate) divide_64: Time,
    pub(crate) lock: Time,
    pub(crate) vector: Time,
    pub(crate) vector_multiply: Time,
    pub(crate) vector_shift: Time,
    pub(crate) float_add: Time,
    pub(crate) float_multiply: Time,
    pub(crate) multiply_add: Time,
    /// Of single precision,
    pub(crate) float_divide: Time,
    pub(crate) square_root: Time,
    /// and of double precision.
    pub(crate) float_divide_64: Time,
    pub(crate) square_root_64: Time,
    pub(crate) convert: Time,
    pub(crate) compare_to_flags: Time,
    /// Between general and vector registers.
    pub(crate) cross: Time,
    pub(crate) crypto: Time,
    /// String instructions with a `rep` prefix, of usual counts,
    pub(crate) repeat: Time,
    /// and `rep movsb` and `rep stosb`.
    pub(crate) repeat_bytes: Time,
}

/// A level of the caches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Lines of 64 bytes that are found in it, with those of the levels before.
    pub lines: f64,
    /// Cycles until data is there that is not found in it, beyond those of this level.
    pub beyond: f64,
}

/// Which loads of what was just stored get the stored register, in no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renaming {
    /// None: the core waits for each store.
    Never,
    /// All of them.
    Always,
    /// Those of general registers, by a base register and a displacement, where what is stored at the address is loaded once only.
    OfOneLoad,
}

/// Sizes of a first and of a second level that a machine can have, bytes.
const POSSIBLE: [RangeInclusive<u64>; 2] = [8 << 10..=1 << 20, 64 << 10..=64 << 20];

/// What a core is taken to be like. [`Microarchitecture::core`](crate::Microarchitecture::core) has the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Core {
    /// Instructions per cycle that come and that retire.
    pub width: f64,
    /// Instructions underway.
    pub window: usize,
    /// Cycles from the execution of a mispredicted branch until instructions come from the right place.
    pub wrong_path: f64,
    /// Cycles for which a correctly predicted taken branch keeps others from coming, of its own place among the `width`.
    pub taken: f64,
    /// Cycles of a load of a general register that finds its data in the first level,
    pub load: f64,
    /// and of one of a vector.
    pub vector_load: f64,
    /// Cycles from a store to a load of the same memory by another address.
    pub forward: f64,
    /// Which loads by the registers and displacement of a store get the register that was stored, at once.
    pub renames_memory: Renaming,
    /// Cycles more for a sum of floating point numbers on its way to another unit than to the next sum.
    pub from_sum: f64,
    /// Loads that begin in a cycle,
    pub loads: f64,
    /// those of vectors,
    pub vector_loads: f64,
    /// and stores.
    pub stores: f64,
    /// What executes instructions.
    pub units: Units,
    /// Whether operations on vectors take places of those on general registers.
    pub shares_ports: bool,
    /// How long instructions take.
    pub times: Times,
    /// The caches, nearest first. The lines of the last are what other programs leave.
    pub levels: [Level; 3],
}

impl Core {
    /// The same with data caches of these sizes in the first and in the second level, bytes, where they are known and possible. How much of
    /// the third level others leave is not known of any machine.
    #[must_use]
    pub fn with_caches(mut self, first: Option<u64>, second: Option<u64>) -> Self {
        let third = self.levels[2].lines - self.levels[1].lines;
        for ((level, bytes), possible) in self.levels.iter_mut().zip([first, second]).zip(POSSIBLE) {
            if let Some(bytes) = bytes.filter(|bytes| possible.contains(bytes)) {
                level.lines = (bytes / 64) as f64;
            }
        }
        self.levels[1].lines = self.levels[1].lines.max(self.levels[0].lines);
        self.levels[2].lines = self.levels[1].lines + third;
        self
    }
}

/// How far away data is on a machine, cycles and bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Cycles from an address to data of the second level,
    pub second: f64,
    /// of the third,
    pub third: f64,
    /// and of memory.
    pub memory: f64,
    /// How much is found in the second level at most, bytes,
    pub second_bytes: u64,
    /// and in the third, with the second.
    pub third_bytes: u64,
}

impl Core {
    /// The same with what was measured of the machine; `None` if that is not possible.
    pub fn with_measured(mut self, measured: &Measured) -> Option<Self> {
        let Measured { second, third, memory, second_bytes, third_bytes } = *measured;
        let lines = |bytes: u64| (bytes / 64) as f64;
        let rises = self.load < second && second < third && third < memory && memory < 1e4;
        let fits = self.levels[0].lines < lines(second_bytes) && second_bytes < third_bytes && third_bytes <= 1 << 32;
        (rises && fits).then_some(())?;
        self.levels[0].beyond = second - self.load;
        self.levels[1] = Level { lines: lines(second_bytes), beyond: third - second };
        self.levels[2] = Level { lines: lines(third_bytes), beyond: memory - third };
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Microarchitecture;

    #[test]
    fn caches_of_the_machine_are_taken_where_they_are_possible() {
        let core = Microarchitecture::GoldenCove.core();
        let lines = |first, second| core.with_caches(first, second).levels.map(|level| level.lines);
        assert_eq!(lines(None, None), core.levels.map(|level| level.lines));
        assert_eq!(lines(Some(32 << 10), Some(1 << 20)), [512.0, 16_384.0, 16_384.0 + 32_768.0]);
        assert_eq!(lines(Some(0), Some(u64::MAX)), core.levels.map(|level| level.lines));
    }

    #[test]
    fn what_was_measured_is_taken_where_it_is_possible() {
        let core = Microarchitecture::Zen5.core();
        let measured =
            Measured { second: 15.0, third: 60.0, memory: 500.0, second_bytes: 1 << 20, third_bytes: 8 << 20 };
        let levels = core.with_measured(&measured).unwrap().levels;
        assert_eq!(levels.map(|level| level.beyond), [11.0, 45.0, 440.0]);
        assert_eq!(levels.map(|level| level.lines), [768.0, 16_384.0, 131_072.0]);
        for odd in [
            Measured { second: 70.0, ..measured },
            Measured { memory: f64::NAN, ..measured },
            Measured { memory: f64::INFINITY, ..measured },
            Measured { third_bytes: 1 << 10, ..measured },
            Measured { second_bytes: 1 << 10, ..measured },
            Measured { third_bytes: u64::MAX, ..measured },
        ] {
            assert_eq!(core.with_measured(&odd), None, "{odd:?}");
        }
    }
}
