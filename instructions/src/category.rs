//! What instructions are for.
//!
//! The categories follow the chapters of Intel's SDM (volume 1, chapter 5) and, where those mix things, the categories of
//! XED.

use super::vocabulary::vocabulary;

vocabulary! {
    /// What an instruction is for.
    Category, "category" {
        /// `mov`, `movaps`, `xchg`, `bswap`, `movmskps`, non-temporal and masked moves.
        DataTransfer = "data-transfer",
        /// `cmovcc`.
        ConditionalMove = "conditional-move",
        /// `setcc`.
        ConditionalSet = "conditional-set",
        /// `push`, `pop`, `enter`, `leave`.
        Stack = "stack",
        /// `lea`.
        Address = "address",
        /// `add`, `sub`, `imul`, `div`, `inc`, `neg` on general registers.
        IntegerArithmetic = "integer-arithmetic",
        /// `aaa`, `daa`: 32-bit code only.
        Decimal = "decimal",
        /// `and`, `or`, `xor`, `not`, `pand`, `andps`, `vpternlogd`.
        Logical = "logical",
        /// `shl`, `sar`, `ror`, `shld`, `psllw`, `vprold`.
        Shift = "shift-rotate",
        /// `bt`, `bsf`, `tzcnt`, `popcnt`, `pdep`, `blsr`, `crc32`, `vpopcntb`.
        Bit = "bit-byte",
        /// `cmp`, `test`, `cmpps`, `comisd`, `pcmpeqb`, `ptest`.
        Compare = "compare",
        /// `jmp`, `jcc`, `loop`.
        Branch = "branch",
        /// `call`.
        Call = "call",
        /// `ret`.
        Return = "return",
        /// `syscall`, `sysenter` and their returns.
        SystemCall = "system-call",
        /// `int`, `int3`, `iret`, `ud2`.
        Interrupt = "interrupt",
        /// `movs`, `stos`, `scas`, `lods`, `cmps`, `pcmpistri`.
        String = "string",
        /// `in`, `out`, `ins`, `outs`.
        InputOutput = "io",
        /// `clc`, `std`, `lahf`.
        Flags = "flags",
        /// `cdqe`, `cvtsi2sd`, `pmovzxbw`: between types or widths.
        Conversion = "conversion",
        /// `addps`, `mulsd`, `divpd`, `sqrtss`, `minps`, `roundsd`, `dpps`.
        FloatArithmetic = "fp-arithmetic",
        /// `vfmadd231ps` and its family.
        Fma = "fma",
        /// `paddd`, `pmullw`, `psadbw`, `pminub`, `vpdpbusd`.
        SimdInteger = "simd-integer",
        /// `pshufb`, `vpermd`, `unpcklps`, `pblendw`, `pinsrb`, `vbroadcastss`, `palignr`, `packuswb`, `vpcompressd`.
        Shuffle = "shuffle",
        /// `vgatherdps`, `vpscatterdd`.
        GatherScatter = "gather-scatter",
        /// `kmovw`, `kandq`, `kortestb`, `vpmovm2b`.
        Mask = "mask",
        /// AMX tiles.
        Matrix = "matrix",
        /// `aesenc`, `sha256rnds2`, `pclmulqdq`, `gf2p8mulb`, `rdrand`.
        Crypto = "crypto",
        /// All of x87.
        X87 = "x87",
        /// `mfence`, `pause`, `cmpxchg`, `xadd`, `mwait`, transactions.
        Synchronization = "synchronization",
        /// `prefetcht0`, `clflush`, `clwb`.
        Cache = "cache",
        /// `nop`, and `endbr64`, which is one for whoever does not check it.
        Nop = "nop",
        /// `xsave`, `fxrstor`, `ldmxcsr`, `vzeroupper`, `emms`: register state as a whole.
        State = "state",
        /// The rest: `cpuid`, `rdtsc`, segment and control registers, virtualization, enclaves.
        System = "system",
    }
}
