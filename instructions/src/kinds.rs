//! Kinds of encodings, operands and branches.

use super::vocabulary::vocabulary;

vocabulary! {
    /// How an instruction is encoded.
    Encoding, "encoding" {
        /// One to three opcode bytes with single-byte prefixes.
        Legacy = "legacy",
        /// VEX prefix (AVX, BMI, masks).
        Vex = "vex",
        /// EVEX prefix (AVX-512).
        Evex = "evex",
        /// XOP prefix (AMD Bulldozer).
        Xop = "xop",
        /// 3DNow! suffix.
        ThreeDNow = "3dnow",
        /// MVEX prefix (Knights Corner).
        Mvex = "mvex",
    }
}

vocabulary! {
    /// Whether an instruction works on elements of vectors.
    Packing, "packing" {
        /// No vector or floating-point operands.
        None = "none",
        /// One element: `addsd`, `movd`, `pextrb`, all of x87.
        Scalar = "scalar",
        /// All elements: `addpd`, `pand`, gathers, broadcasts.
        Packed = "packed",
    }
}

vocabulary! {
    /// The type of vector elements. Integers are not told apart by sign.
    Element, "element" {
        /// No vector or floating-point operands.
        None = "none",
        /// The whole register, without a division into elements: `pand`, `movdqa`, `aesenc`.
        Bits = "bits",
        /// 8-bit integers.
        I8 = "i8",
        /// 16-bit integers.
        I16 = "i16",
        /// 32-bit integers.
        I32 = "i32",
        /// 64-bit integers.
        I64 = "i64",
        /// IEEE 754 half precision.
        F16 = "f16",
        /// bfloat16.
        Bf16 = "bf16",
        /// IEEE 754 single precision.
        F32 = "f32",
        /// IEEE 754 double precision.
        F64 = "f64",
        /// x87 extended precision.
        F80 = "f80",
        /// x87 packed decimal, 18 digits.
        Bcd = "bcd",
    }
}

vocabulary! {
    /// An operand width in bits.
    Width, "width" {
        /// No operands, or none with a width (addresses of state areas, tiles, branch targets).
        None = "none",
        /// 8 bits.
        W8 = "8",
        /// 16 bits.
        W16 = "16",
        /// 32 bits.
        W32 = "32",
        /// 64 bits: `rax`, `mm0`.
        W64 = "64",
        /// 80 bits: x87 registers.
        W80 = "80",
        /// 128 bits: `xmm0`.
        W128 = "128",
        /// 256 bits: `ymm0`.
        W256 = "256",
        /// 512 bits: `zmm0`.
        W512 = "512",
    }
}

vocabulary! {
    /// What an instruction does to memory.
    MemoryAccess, "memory access" {
        /// No access.
        None = "none",
        /// Reads only.
        Read = "read",
        /// Writes only.
        Write = "write",
        /// Reads and writes.
        ReadWrite = "read-write",
    }
}

vocabulary! {
    /// What an instruction does to the flow of control.
    BranchKind, "branch kind" {
        /// On to the next instruction.
        None = "none",
        /// `jcc`, `loop`, `jrcxz`, `xbegin`, `xabort`.
        Conditional = "conditional",
        /// `jmp` to a stated target.
        Jump = "jump",
        /// `jmp` to a computed target.
        IndirectJump = "indirect-jump",
        /// `call` of a stated target.
        Call = "call",
        /// `call` of a computed target.
        IndirectCall = "indirect-call",
        /// `ret`, `iret`, `sysret`.
        Return = "return",
        /// `syscall`, `sysenter`, `int n`, `vmcall`.
        SystemCall = "system-call",
        /// `int3`, `ud2`, `hlt`.
        Trap = "trap",
    }
}
