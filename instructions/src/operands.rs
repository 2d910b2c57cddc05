//! Elements and widths of an instruction's operands.
//!
//! The type of the memory operand, which is stated even for the form of an instruction without one, says most of it; the mnemonic says the rest.

use iced_x86::{Instruction, MemorySize, Mnemonic, OpKind, Register};

use super::element_table::{Named, NamedElement, controls_x87, mask_bits, named, tile_element};
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
                OpKind::Immediate8to32 | OpKind::Immediate32 if index == 0 => operands.general_bits = 32,
                OpKind::Memory => {
                    operands.add_memory(instruction.memory_index());
                    // `shl dword ptr [rdi], cl` is 32 bits wide.
                    if index == 0 && matches!(operands.memory.size(), 1 | 2 | 4 | 8) {
                        operands.general_bits = operands.memory.size() * 8;
                    }
                }
                OpKind::MemorySegRSI
                | OpKind::MemoryESRDI
                | OpKind::MemorySegRDI
                | OpKind::MemorySegESI
                | OpKind::MemoryESEDI
                | OpKind::MemorySegEDI => operands.string = true,
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
    pub fn elements(&self, mnemonic: Mnemonic, isa: &str) -> (Packing, Element) {
        let stated = element_of(self.memory);
        if controls_x87(mnemonic) {
            return (Packing::None, Element::None);
        }
        if isa == "x87" {
            return (Packing::Scalar, stated.filter(|_| !self.memory.is_packed()).unwrap_or(Element::F80));
        }
        if let Some(element) = tile_element(mnemonic) {
            return (Packing::Packed, element);
        }
        if self.vector_bits == 0 {
            return (Packing::None, Element::None);
        }
        let Named { packing, element } = named(mnemonic);
        let element = match element {
            NamedElement::Always(element) => element,
            NamedElement::Source(source) => source.or(stated).or(self.general_element()).unwrap_or(Element::I32),
            NamedElement::Otherwise(element) => stated.unwrap_or(element),
            NamedElement::Unnamed => stated.unwrap_or(Element::Bits),
        };
        (packing, element)
    }

    /// The width that an instruction works with, as [`super::Attributes::width`] defines it.
    pub fn width(&self, mnemonic: Mnemonic, packing: Packing, element: Element) -> Width {
        match packing {
            Packing::Packed => width(self.vector_bits),
            Packing::Scalar => width(element_bits(element)),
            Packing::None => width(self.general_width(mnemonic)),
        }
    }

    fn general_width(&self, mnemonic: Mnemonic) -> usize {
        if let Some(bits) = mask_bits(mnemonic).filter(|_| self.mask) {
            return bits;
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
