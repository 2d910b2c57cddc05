//! Kinds of instructions that take the same time on a core.

use iced_x86::{Instruction, Mnemonic, OpKind};
use instructions::{Attributes, Category, Element, by_mnemonic};

/// What decides how long an instruction takes, and where it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Done before it is executed, or with the access to memory.
    Free,
    /// Simple operations on general registers.
    Integer,
    /// Products of general registers.
    Multiply,
    /// Quotients of 32 bits and fewer.
    Divide,
    /// Quotients of 64 bits.
    Divide64,
    /// With a `lock` prefix, or as if.
    Lock,
    /// String instructions with a `rep` prefix.
    Repeat,
    /// Of these, moves and stores of bytes: some cores are fast with few of them.
    RepeatBytes,
    /// What waits for everything before it, or goes to the kernel.
    Serializing,
    /// x87.
    X87,
    /// Quotients, roots and transcendental functions of x87.
    X87Long,
    /// Simple operations on vectors.
    Vector,
    /// Products of vectors of integers.
    VectorMultiply,
    /// Shifts of vectors.
    VectorShift,
    /// Sums of floating point numbers, and what takes as long.
    FloatAdd,
    /// Products of floating point numbers.
    FloatMultiply,
    /// Products and sums at once.
    MultiplyAdd,
    /// Quotients of single precision,
    FloatDivide,
    /// and of double precision.
    FloatDivide64,
    /// Square roots of single precision,
    SquareRoot,
    /// and of double precision.
    SquareRoot64,
    /// Between types of numbers.
    Convert,
    /// Comparisons of floating point numbers that set the flags.
    CompareToFlags,
    /// Moves between general and vector registers.
    Cross,
    /// Steps of ciphers and hashes.
    Crypto,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Kind::Free,
        Kind::Integer,
        Kind::Multiply,
        Kind::Divide,
        Kind::Divide64,
        Kind::Lock,
        Kind::Repeat,
        Kind::RepeatBytes,
        Kind::Serializing,
        Kind::X87,
        Kind::X87Long,
        Kind::Vector,
        Kind::VectorMultiply,
        Kind::VectorShift,
        Kind::FloatAdd,
        Kind::FloatMultiply,
        Kind::MultiplyAdd,
        Kind::FloatDivide,
        Kind::FloatDivide64,
        Kind::SquareRoot,
        Kind::SquareRoot64,
        Kind::Convert,
        Kind::CompareToFlags,
        Kind::Cross,
        Kind::Crypto,
    ];

    /// The kind of a decoded instruction with these attributes.
    pub fn of(instruction: &Instruction, attributes: &Attributes) -> Self {
        let is_vector = attributes.element != Element::None;
        let is_double = attributes.element == Element::F64;
        let mnemonic = instruction.mnemonic();
        if attributes.lock {
            return Kind::Lock;
        }
        if attributes.rep {
            return if matches!(mnemonic, Mnemonic::Movsb | Mnemonic::Stosb) {
                Kind::RepeatBytes
            } else {
                Kind::Repeat
            };
        }
        match attributes.category {
            Category::State if matches!(mnemonic, Mnemonic::Vzeroupper | Mnemonic::Vzeroall) => Kind::Free,
            Category::System | Category::State | Category::SystemCall => Kind::Serializing,
            Category::X87 if attributes.long_latency => Kind::X87Long,
            Category::X87 => Kind::X87,
            Category::IntegerArithmetic if attributes.long_latency && bytes(instruction) == 8 => Kind::Divide64,
            Category::IntegerArithmetic if attributes.long_latency => Kind::Divide,
            Category::IntegerArithmetic if matches!(mnemonic, Mnemonic::Mul | Mnemonic::Imul | Mnemonic::Mulx) => {
                Kind::Multiply
            }
            Category::FloatArithmetic if is_square_root(mnemonic) && is_double => Kind::SquareRoot64,
            Category::FloatArithmetic if is_square_root(mnemonic) => Kind::SquareRoot,
            Category::FloatArithmetic if attributes.long_latency && is_double => Kind::FloatDivide64,
            Category::FloatArithmetic if attributes.long_latency => Kind::FloatDivide,
            Category::FloatArithmetic if is_float_product(mnemonic) => Kind::FloatMultiply,
            Category::FloatArithmetic => Kind::FloatAdd,
            Category::Fma if is_vector => Kind::MultiplyAdd,
            Category::Conversion if is_vector => Kind::Convert,
            Category::SimdInteger if is_integer_product(mnemonic) => Kind::VectorMultiply,
            Category::Shift if is_vector => Kind::VectorShift,
            Category::Compare if sets_flags(mnemonic) => Kind::CompareToFlags,
            Category::Crypto => Kind::Crypto,
            Category::DataTransfer if is_mask_of_signs(mnemonic) || crosses(instruction) => Kind::Cross,
            Category::Stack | Category::Call | Category::Return | Category::Nop => Kind::Free,
            _ if is_vector => Kind::Vector,
            _ => Kind::Integer,
        }
    }
}

/// Size of the first operand.
fn bytes(instruction: &Instruction) -> usize {
    match instruction.op0_kind() {
        OpKind::Memory => instruction.memory_size().size(),
        _ => instruction.op0_register().size(),
    }
}

/// A move between a general and a vector register.
pub(crate) fn crosses(instruction: &Instruction) -> bool {
    let registers = [0, 1]
        .map(|operand| (instruction.op_kind(operand) == OpKind::Register).then(|| instruction.op_register(operand)));
    match registers {
        [Some(to), Some(from)] => {
            to.is_gpr() != from.is_gpr() && (to.is_vector_register() || from.is_vector_register())
        }
        _ => false,
    }
}

/// Moves vectors, or their first element, as they are. Those that leave the rest of a register as it was (`movss` between registers) are few.
pub(crate) fn moves_vector(instruction: &Instruction, attributes: &Attributes) -> bool {
    let mnemonic = instruction.mnemonic();
    attributes.category == Category::DataTransfer
        && attributes.element != Element::None
        && !moves_a_part(mnemonic)
        && !is_mask_of_signs(mnemonic)
}

by_mnemonic! {
    /// Moves a half of a vector, or what a mask says.
    fn moves_a_part -> bool, otherwise false;
    true =>
        Maskmovdqu Maskmovq Movhpd Movhps Movlpd Movlps Vmaskmovdqu Vmaskmovpd Vmaskmovps Vmovhpd Vmovhps Vmovlpd
        Vmovlps Vpmaskmovd Vpmaskmovq;
}

by_mnemonic! {
    /// Moves the signs of a vector to a general register.
    fn is_mask_of_signs -> bool, otherwise false;
    true =>
        Movmskpd Movmskps Pmovmskb Vmovmskpd Vmovmskps Vpmovmskb;
}

by_mnemonic! {
    /// Takes square roots.
    fn is_square_root -> bool, otherwise false;
    true =>
        Sqrtpd Sqrtps Sqrtsd Sqrtss Vsqrtpd Vsqrtph Vsqrtps Vsqrtsd Vsqrtsh Vsqrtss;
}

by_mnemonic! {
    /// Multiplies floating point numbers.
    fn is_float_product -> bool, otherwise false;
    true =>
        Mulpd Mulps Mulsd Mulss Vmulpd Vmulph Vmulps Vmulsd Vmulsh Vmulss;
}

by_mnemonic! {
    /// Multiplies integers of vectors, or what takes as long.
    fn is_integer_product -> bool, otherwise false;
    true =>
        Pmaddubsw Pmaddwd Pmuldq Pmulhrsw Pmulhuw Pmulhw Pmulld Pmullw Pmuludq Psadbw Vpdpbusd Vpdpbusds Vpdpwssd
        Vpdpwssds Vpmadd52huq Vpmadd52luq Vpmaddubsw Vpmaddwd Vpmuldq Vpmulhrsw Vpmulhuw Vpmulhw Vpmulld Vpmullq
        Vpmullw Vpmuludq Vpsadbw;
}

by_mnemonic! {
    /// Compares floating point numbers, and sets the flags.
    fn sets_flags -> bool, otherwise false;
    true =>
        Comisd Comiss Ucomisd Ucomiss Vcomisd Vcomish Vcomiss Vucomisd Vucomish Vucomiss;
}
