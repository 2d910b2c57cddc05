//! Where and how long kinds of instructions execute on a core.

use crate::core::{Core, Time, Unit, keeps, takes};
use crate::kind::Kind;

impl Core {
    /// How long an instruction of a kind takes, and where it executes.
    pub fn executes(&self, kind: Kind) -> (Time, Unit) {
        let times = &self.times;
        match kind {
            Kind::Free => (takes(0.0), Unit::Integer),
            Kind::Integer => (takes(1.0), Unit::Integer),
            Kind::Multiply => (times.multiply, Unit::Multiply),
            Kind::Divide => (times.divide, Unit::Divide),
            Kind::Divide64 => (times.divide_64, Unit::Divide),
            Kind::Lock => (times.lock, Unit::Integer),
            Kind::Repeat => (times.repeat, Unit::Integer),
            Kind::RepeatBytes => (times.repeat_bytes, Unit::Integer),
            // What it waits for is the kernel's: much the same everywhere.
            Kind::Serializing => (keeps(40.0, 40.0), Unit::Integer),
            Kind::X87 => (takes(5.0), Unit::Vector),
            Kind::X87Long => (keeps(15.0, 6.0), Unit::VectorDivide),
            Kind::Vector => (times.vector, Unit::Vector),
            Kind::VectorMultiply => (times.vector_multiply, Unit::VectorMultiply),
            Kind::VectorShift => (times.vector_shift, Unit::VectorShift),
            Kind::FloatAdd => (times.float_add, Unit::FloatAdd),
            Kind::FloatMultiply => (times.float_multiply, Unit::VectorMultiply),
            Kind::MultiplyAdd => (times.multiply_add, Unit::VectorMultiply),
            Kind::FloatDivide => (times.float_divide, Unit::VectorDivide),
            Kind::FloatDivide64 => (times.float_divide_64, Unit::VectorDivide),
            Kind::SquareRoot => (times.square_root, Unit::VectorDivide),
            Kind::SquareRoot64 => (times.square_root_64, Unit::VectorDivide),
            Kind::Convert => (times.convert, Unit::FloatAdd),
            Kind::CompareToFlags => (times.compare_to_flags, Unit::Vector),
            Kind::Cross => (times.cross, Unit::Vector),
            Kind::Crypto => (times.crypto, Unit::Vector),
        }
    }
}
