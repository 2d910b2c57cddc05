//! What one instruction is.

use iced_x86::Instruction;

use super::category::Category;
use super::code_attributes::{CodeAttributes, of_code};
use super::vocabulary::vocabulary;

/// The attributes of an instruction, for pivots and filters.
///
/// All but `lock` and `rep` depend only on the opcode and on whether it has an operand in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes {
    /// The mnemonic in lower case, in Intel's spelling: `mov`, `jne`, `vaddps`.
    pub mnemonic: &'static str,
    /// What it is for.
    pub category: Category,
    /// The instruction set extension that added it: `base`, `x87`, `sse2`, `avx512f`; see [`super::isa_names`].
    pub isa: &'static str,
    /// How it is encoded.
    pub encoding: Encoding,
    /// Whether it works on one element or on all elements of its vector operands.
    pub packing: Packing,
    /// The type of the elements: of conversions, the source's.
    pub element: Element,
    /// Bits of the widest vector operand if packed, of the element if scalar, of the first operand otherwise.
    pub width: Width,
    /// What it does to memory, with the stack if it uses that (`push`, `call`, `ret`). Addresses that are only computed or
    /// prefetched (`lea`, `nop`, `prefetch`) are no access.
    pub memory: MemoryAccess,
    /// Whether it accesses the stack without naming it: `push`, `pop`, `call`, `ret`, `enter`, `leave`.
    pub stack: bool,
    /// What it does to the flow of control.
    pub branch: BranchKind,
    /// A `lock` prefix, or `xchg` with memory, which locks without one.
    pub lock: bool,
    /// A string instruction with a `rep` prefix.
    pub rep: bool,
    /// Division, remainder, square root, x87 transcendentals and decimal conversions, `cpuid`, random numbers: tens of
    /// cycles or more, on every processor.
    pub long_latency: bool,
}

impl Attributes {
    /// The attributes of a decoded instruction.
    pub fn of(instruction: &Instruction) -> Self {
        let CodeAttributes { attributes, repeatable, locks } = of_code(instruction);
        Self {
            lock: instruction.has_lock_prefix() || locks,
            rep: repeatable && (instruction.has_rep_prefix() || instruction.has_repne_prefix()),
            ..attributes
        }
    }
}

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
