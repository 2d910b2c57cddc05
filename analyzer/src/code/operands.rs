//! Elements and widths of an instruction's operands.
//!
//! The type of the memory operand, which is stated even for the form of an instruction without one, says most of it; the rest
//! is in the suffix of the mnemonic.

use iced_x86::{Instruction, MemorySize, OpKind, Register};

use super::kinds::{Element, Packing, Width};

/// An instruction's operands, without what differs between instructions of one opcode and form.
pub(super) struct Operands {
    /// Bits of the widest vector operand; 0 for none.
    pub vector_bits: usize,
    /// Has a mask register operand of its own (not as write mask).
    pub mask: bool,
    /// Has an implicit operand at `rsi` or `rdi`.
    pub string: bool,
    /// Bits of the first general register or sign-extended immediate; 0 for none.
    general_bits: usize,
    /// Of the operand in memory, if it is there or could be.
    memory: MemorySize,
}

impl Operands {
    pub fn of(instruction: &Instruction) -> Self {
        let mut whole = *instruction;
        whole.set_is_broadcast(false);
        let mut operands =
            Self { vector_bits: 0, mask: false, string: false, general_bits: 0, memory: whole.memory_size() };
        for index in 0..instruction.op_count() {
            match instruction.op_kind(index) {
                OpKind::Register => operands.add_register(instruction.op_register(index)),
                OpKind::Immediate8to64 | OpKind::Immediate32to64 if index == 0 => operands.general_bits = 64,
                OpKind::Memory => {
                    operands.add_memory(instruction.memory_index());
                    // `shl dword ptr [rdi], cl` is 32 bits wide.
                    if index == 0 && matches!(operands.memory.size(), 1 | 2 | 4 | 8) {
                        operands.general_bits = operands.memory.size() * 8;
                    }
                }
                OpKind::MemorySegRSI | OpKind::MemoryESRDI | OpKind::MemorySegRDI => operands.string = true,
                _ => {}
            }
        }
        operands
    }

    fn add_register(&mut self, register: Register) {
        let bits = register.size() * 8;
        if register.is_vector_register() || register.is_mm() {
            self.vector_bits = self.vector_bits.max(bits);
        } else if register.is_gpr() && self.general_bits == 0 && register != Register::DX {
            self.general_bits = bits;
        }
        self.mask |= register.is_k();
    }

    fn add_memory(&mut self, index: Register) {
        if index.is_vector_register() {
            self.vector_bits = self.vector_bits.max(index.size() * 8);
        } else if self.memory.is_packed() && !is_bounds(self.memory) {
            self.vector_bits = self.vector_bits.max(self.memory.size() * 8);
        } else if matches!(element_of(self.memory), Some(Element::F16 | Element::F32 | Element::F64)) {
            // `vfpclassss k1, [rdi]`, `cvtsd2si rax, [rdi]`: the register would be an xmm.
            self.vector_bits = self.vector_bits.max(128);
        }
    }

    /// Packing and element type.
    pub fn elements(&self, mnemonic: &str, isa: &str) -> (Packing, Element) {
        let stated = element_of(self.memory);
        if isa == "x87" && controls_x87(mnemonic) {
            return (Packing::None, Element::None);
        }
        if isa == "x87" {
            return (Packing::Scalar, stated.filter(|_| !self.memory.is_packed()).unwrap_or(Element::F80));
        }
        if isa.starts_with("amx") && mnemonic.starts_with('t') {
            return (Packing::Packed, tile_element(mnemonic));
        }
        if self.vector_bits == 0 {
            return (Packing::None, Element::None);
        }
        let stem = mnemonic.strip_prefix('v').unwrap_or(mnemonic);
        if let Some(source) = conversion_source(stem) {
            let element = source.element().or(stated).or(self.general_element()).unwrap_or(Element::I32);
            return (if source.is_scalar() { Packing::Scalar } else { Packing::Packed }, element);
        }
        let packing = if is_scalar(stem) { Packing::Scalar } else { Packing::Packed };
        let element = whole_register(stem).or(stated).or_else(|| suffix_element(stem)).unwrap_or(Element::Bits);
        (packing, element)
    }

    /// See [`super::Attributes::width`].
    pub fn width(&self, mnemonic: &str, packing: Packing, element: Element) -> Width {
        match packing {
            Packing::Packed => width(self.vector_bits),
            Packing::Scalar => width(element_bits(element)),
            Packing::None => width(self.general_width(mnemonic)),
        }
    }

    fn general_width(&self, mnemonic: &str) -> usize {
        if self.mask && mnemonic.starts_with('k') {
            return match mnemonic.as_bytes().last() {
                Some(b'b') => 8,
                Some(b'w') => 16,
                Some(b'd') => 32,
                Some(b'q') => 64,
                _ => 0,
            };
        }
        match self.general_bits {
            0 if matches!(self.memory.size(), 1 | 2 | 4 | 8 | 16) => self.memory.size() * 8,
            bits => bits,
        }
    }

    /// The type of a general register among the operands.
    fn general_element(&self) -> Option<Element> {
        match self.general_bits {
            32 => Some(Element::I32),
            64 => Some(Element::I64),
            _ => None,
        }
    }
}

/// The pair of limits that `bound` reads.
fn is_bounds(memory: MemorySize) -> bool {
    matches!(memory, MemorySize::Bound16_WordWord | MemorySize::Bound32_DwordDword)
}

/// By suffix (`addss`, `cmpsd`, `vaddsh`, but not `pmaxsd`: signed doublewords), or because it moves one element.
fn is_scalar(stem: &str) -> bool {
    let suffix = ["ss", "sd", "sh"].iter().any(|suffix| stem.ends_with(suffix));
    let one =
        ["movd", "movq", "movw", "movhpd", "movlpd", "movq2dq", "movdq2q", "insertps", "extractps"].contains(&stem);
    one || suffix && !stem.starts_with('p') && !stem.starts_with("broadcast")
        || stem.starts_with("pinsr")
        || stem.starts_with("pextr")
}

/// What has no elements, or others than the type of the memory operand says.
fn whole_register(stem: &str) -> Option<Element> {
    Some(match stem {
        "pand" | "pandn" | "por" | "pxor" | "ptest" | "movdqa" | "movdqu" | "movntdq" | "movntdqa" | "movntq"
        | "lddqu" => Element::Bits,
        "movq2dq" | "movdq2q" => Element::I64,
        "maskmovq" | "maskmovdqu" | "pmovb2m" => Element::I8,
        "pmovw2m" => Element::I16,
        "pmovd2m" => Element::I32,
        "pmovq2m" => Element::I64,
        _ => return None,
    })
}

/// Instructions on the unit's control, status and tags.
fn controls_x87(mnemonic: &str) -> bool {
    let bare = mnemonic.strip_prefix("fn").or_else(|| mnemonic.strip_prefix('f')).unwrap_or(mnemonic);
    [
        "ldcw", "stcw", "stsw", "ldenv", "stenv", "init", "save", "rstor", "clex", "op", "incstp", "decstp", "free",
        "freep",
    ]
    .contains(&bare)
}

/// The source type of a conversion: `ss` of `cvtss2sd`, `b` of `pmovzxbw`, `d` of `pmovsdw`.
struct ConversionSource<'name>(&'name str);

fn conversion_source(stem: &str) -> Option<ConversionSource<'_>> {
    if let Some(types) = stem.strip_prefix("cvtt").or_else(|| stem.strip_prefix("cvt")) {
        return types.split('2').next().map(ConversionSource);
    }
    let rest = stem.strip_prefix("pmov")?;
    let known = ["sx", "zx", "us", "s", ""]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix).filter(|types| types.len() == 2))?;
    ["bw", "bd", "bq", "wd", "wq", "dq", "wb", "db", "dw", "qb", "qw", "qd"]
        .contains(&known)
        .then(|| ConversionSource(&known[..1]))
}

impl ConversionSource<'_> {
    fn element(&self) -> Option<Element> {
        Some(match self.0 {
            "ss" | "ps" | "ne" | "neps" => Element::F32,
            "sd" | "pd" => Element::F64,
            "sh" | "ph" => Element::F16,
            "dq" | "udq" | "pi" | "d" => Element::I32,
            "qq" | "uqq" | "q" => Element::I64,
            "w" | "uw" => Element::I16,
            "b" => Element::I8,
            _ => return None,
        })
    }

    fn is_scalar(&self) -> bool {
        matches!(self.0, "ss" | "sd" | "sh" | "si" | "usi")
    }
}

fn suffix_element(stem: &str) -> Option<Element> {
    let float = !stem.starts_with('p');
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| stem.ends_with(suffix));
    Some(match () {
        () if float && ends(&["ps", "ss"]) => Element::F32,
        () if float && ends(&["pd", "sd"]) => Element::F64,
        () if float && ends(&["ph", "sh"]) => Element::F16,
        () if ends(&["dq"]) => Element::Bits,
        () if ends(&["b"]) => Element::I8,
        () if ends(&["w"]) => Element::I16,
        () if ends(&["d"]) => Element::I32,
        () if ends(&["q"]) => Element::I64,
        () => return None,
    })
}

fn tile_element(mnemonic: &str) -> Element {
    match mnemonic {
        _ if mnemonic.contains("bf16") => Element::Bf16,
        _ if mnemonic.contains("fp16") => Element::F16,
        _ if mnemonic.starts_with("tdpb") => Element::I8,
        _ => Element::Bits,
    }
}

fn element_of(memory: MemorySize) -> Option<Element> {
    Some(match memory.element_type() {
        MemorySize::UInt8 | MemorySize::Int8 => Element::I8,
        MemorySize::UInt16 | MemorySize::Int16 => Element::I16,
        MemorySize::UInt32 | MemorySize::Int32 => Element::I32,
        MemorySize::UInt52 | MemorySize::UInt64 | MemorySize::Int64 => Element::I64,
        MemorySize::Float16 => Element::F16,
        MemorySize::BFloat16 => Element::Bf16,
        MemorySize::Float32 => Element::F32,
        MemorySize::Float64 => Element::F64,
        MemorySize::Float80 => Element::F80,
        MemorySize::Bcd => Element::Bcd,
        MemorySize::UInt128
        | MemorySize::Int128
        | MemorySize::UInt256
        | MemorySize::Int256
        | MemorySize::UInt512
        | MemorySize::Int512 => Element::Bits,
        _ => return None,
    })
}

fn element_bits(element: Element) -> usize {
    match element {
        Element::None | Element::Bits => 0,
        Element::I8 => 8,
        Element::I16 | Element::F16 | Element::Bf16 => 16,
        Element::I32 | Element::F32 => 32,
        Element::I64 | Element::F64 => 64,
        Element::F80 | Element::Bcd => 80,
    }
}

fn width(bits: usize) -> Width {
    match bits {
        8 => Width::W8,
        16 => Width::W16,
        32 => Width::W32,
        64 => Width::W64,
        80 => Width::W80,
        128 => Width::W128,
        256 => Width::W256,
        512 => Width::W512,
        _ => Width::None,
    }
}
