//! What instructions are for.
//!
//! The categories follow the chapters of Intel's SDM (volume 1, chapter 5) and, where those mix things, the categories of
//! XED. They are found by the spelling of mnemonics, which is regular, and not from a list of all of them.

use super::kinds::{BranchKind, Element};
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

/// What the category depends on.
pub(super) struct Traits {
    /// Mnemonic in lower case.
    pub mnemonic: &'static str,
    pub isa: &'static str,
    pub branch: BranchKind,
    pub element: Element,
    /// Has an operand in a vector register (`mm0` and up).
    pub vector: bool,
    /// Has an operand in a mask register.
    pub mask: bool,
    /// Has an implicit operand at `rsi` or `rdi`.
    pub string: bool,
    /// The encoding adds a `v` to the name.
    pub three_operand: bool,
}

pub(super) fn category(traits: &Traits) -> Category {
    by_flow(traits)
        .or_else(|| by_family(traits))
        .or_else(|| if traits.vector { Some(vector(traits)) } else { general(traits.mnemonic) })
        .unwrap_or(Category::System)
}

fn by_flow(traits: &Traits) -> Option<Category> {
    let name = traits.mnemonic;
    Some(match traits.branch {
        BranchKind::Conditional if name.starts_with('x') => Category::Synchronization,
        BranchKind::Conditional | BranchKind::Jump | BranchKind::IndirectJump => Category::Branch,
        BranchKind::Call | BranchKind::IndirectCall => Category::Call,
        BranchKind::Return if matches!(name, "ret" | "retf") => Category::Return,
        BranchKind::Return | BranchKind::SystemCall if name.starts_with("sys") => Category::SystemCall,
        BranchKind::Return | BranchKind::SystemCall if name.contains("iret") || name == "int" => Category::Interrupt,
        BranchKind::Trap if name.starts_with("int") || name.starts_with("ud") => Category::Interrupt,
        _ => return None,
    })
}

/// Families that an extension or a kind of operand marks, whatever the operation.
fn by_family(traits: &Traits) -> Option<Category> {
    let name = stem(traits);
    if traits.isa == "x87" || name == "wait" {
        return Some(Category::X87);
    }
    if traits.isa.starts_with("amx") {
        return Some(Category::Matrix);
    }
    if begins(name, &["aes", "sha1", "sha2", "sha5", "pclmul", "gf2p8", "sm3", "sm4", "rdrand", "rdseed"])
        || begins(traits.isa, &["padlock", "kl", "wide_kl", "aeskle"])
    {
        return Some(Category::Crypto);
    }
    if begins(name, &["prefetch", "clflush", "clwb", "cldemote", "clzero", "clevict"])
        || name.contains("pf0")
        || name.contains("pf1")
    {
        return Some(Category::Cache);
    }
    if begins(name, &["gather", "pgather", "scatter", "pscatter"]) {
        return Some(Category::GatherScatter);
    }
    if traits.mask && (name.starts_with('k') || begins(name, &["pmovm2", "pmovb2m", "pmovw2m", "pmovd2m", "pmovq2m"])) {
        return Some(Category::Mask);
    }
    if begins(
        name,
        &["fxsave", "fxrstor", "xsave", "xrstor", "ldmxcsr", "stmxcsr", "zeroupper", "zeroall", "emms", "femms"],
    ) {
        return Some(Category::State);
    }
    let string = traits.string && !traits.vector || begins(name, &["pcmpestr", "pcmpistr"]);
    match (string, begins(name, &["ins", "outs"])) {
        (true, true) => Some(Category::InputOutput),
        (true, false) => Some(Category::String),
        _ => None,
    }
}

fn vector(traits: &Traits) -> Category {
    let name = stem(traits);
    if begins(name, &["cvt", "pmovsx", "pmovzx", "pf2i", "pi2f", "bcstne"]) || narrows(name) {
        Category::Conversion
    } else if begins(name, &["fmadd", "fmsub", "fnmadd", "fnmsub", "fcmadd", "4fmadd", "4fnmadd"]) {
        Category::Fma
    } else if begins(
        name,
        &["cmp", "comis", "ucomis", "pcmp", "ptest", "test", "pcom", "fpclass", "p2intersect", "pconflict", "pfcmp"],
    ) && !name.starts_with("pcompress")
    {
        Category::Compare
    } else if begins(name, &["andp", "andnp", "orp", "xorp", "pand", "por", "pxor", "pternlog", "pcmov"]) {
        Category::Logical
    } else if begins(name, &["psll", "psrl", "psra", "prol", "pror", "prot", "psha", "pshl", "pshr", "pmultishift"]) {
        Category::Shift
    } else if begins(name, &["popcnt", "ppopcnt", "plzcnt", "pshufbitqmb"]) {
        Category::Bit
    } else if begins(
        name,
        &[
            "shuf",
            "pshuf",
            "perm",
            "pperm",
            "unpck",
            "punpck",
            "blend",
            "pblend",
            "insert",
            "extr",
            "pinsr",
            "pextr",
            "broadcast",
            "pbroadcast",
            "palignr",
            "align",
            "pack",
            "compress",
            "pcompress",
            "expand",
            "pexpand",
            "movddup",
            "movshdup",
            "movsldup",
            "movhlps",
            "movlhps",
            "pswap",
        ],
    ) {
        Category::Shuffle
    } else if begins(name, &["mov", "lddqu", "maskmov", "pmaskmov", "pmovmskb"]) {
        Category::DataTransfer
    } else {
        match traits.element {
            Element::F16 | Element::Bf16 | Element::F32 | Element::F64 => Category::FloatArithmetic,
            _ => Category::SimdInteger,
        }
    }
}

/// `pmovwb`, `pmovsdw`, `pmovusqd`: to narrower integers.
fn narrows(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("pmov") else { return false };
    let types = rest.strip_prefix("us").or_else(|| rest.strip_prefix('s')).unwrap_or(rest);
    matches!(types, "wb" | "db" | "dw" | "qb" | "qw" | "qd")
}

fn general(name: &str) -> Option<Category> {
    Some(match name {
        "mov" | "movzx" | "movsx" | "movsxd" | "movbe" | "movnti" | "movdiri" | "movdir64b" | "movq" | "movd"
        | "umov" | "xchg" | "bswap" | "xlatb" | "lds" | "les" | "lfs" | "lgs" | "lss" => Category::DataTransfer,
        "lea" => Category::Address,
        "push" | "pusha" | "pushad" | "pushf" | "pushfd" | "pushfq" | "pop" | "popa" | "popad" | "popf" | "popfd"
        | "popfq" | "enter" | "leave" => Category::Stack,
        "add" | "adc" | "adcx" | "adox" | "sub" | "sbb" | "inc" | "dec" | "neg" | "mul" | "mulx" | "imul" | "div"
        | "idiv" => Category::IntegerArithmetic,
        "aaa" | "aad" | "aam" | "aas" | "daa" | "das" => Category::Decimal,
        "and" | "andn" | "or" | "xor" | "not" => Category::Logical,
        "rol" | "ror" | "rorx" | "rcl" | "rcr" | "sal" | "shl" | "shlx" | "shr" | "shrx" | "sar" | "sarx" | "shld"
        | "shrd" => Category::Shift,
        "cmp" | "test" | "bound" => Category::Compare,
        "cbw" | "cwde" | "cdqe" | "cwd" | "cdq" | "cqo" => Category::Conversion,
        "clc" | "cmc" | "cld" | "stc" | "std" | "lahf" | "sahf" | "salc" => Category::Flags,
        "in" | "out" => Category::InputOutput,
        "nop" | "reservednop" | "endbr32" | "endbr64" => Category::Nop,
        "lfence" | "mfence" | "sfence" | "pause" | "tpause" | "monitor" | "monitorx" | "mwait" | "mwaitx"
        | "umonitor" | "umwait" | "xadd" | "aadd" | "aand" | "aor" | "axor" | "xtest" | "xend" | "xsusldtrk"
        | "xresldtrk" => Category::Synchronization,
        _ if name.starts_with("cmpxchg") || name.starts_with("cmp") && name.ends_with("xadd") => {
            Category::Synchronization
        }
        _ if name.starts_with("cmov") => Category::ConditionalMove,
        _ if name.starts_with("set") && name != "setssbsy" => Category::ConditionalSet,
        "bzhi" | "pdep" | "pext" | "bextr" | "lzcnt" | "tzcnt" | "popcnt" | "crc32" | "t1mskc" | "tzmsk" | "tzcnti"
        | "bt" | "btc" | "btr" | "bts" | "bsf" | "bsr" => Category::Bit,
        _ if name.starts_with("bls") || name.starts_with("blc") => Category::Bit,
        _ => return None,
    })
}

/// The mnemonic without the `v` that VEX, EVEX and XOP encodings put before it.
fn stem(traits: &Traits) -> &'static str {
    let bare = traits.mnemonic.strip_prefix('v').filter(|_| traits.three_operand);
    bare.unwrap_or(traits.mnemonic)
}

fn begins(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}
