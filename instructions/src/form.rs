//! The form of one instruction: its operands, how it addresses memory, how long it is.

use iced_x86::{
    Instruction, InstructionInfoFactory, InstructionInfoOptions, MemorySize, OpAccess, OpCodeOperandKind, OpKind,
    Register, UsedMemory,
};

use super::code_attributes::{is_memory, mnemonic_name};
use super::isa::isa;
use super::operands::Operands;
use super::vocabulary::vocabulary;

/// What tells instructions of one opcode apart, and how large the parts of an instruction are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    /// The kinds of its operands, the destination first.
    pub operands: OperandKinds,
    /// Bits of the largest register or operand in memory, masks not counted: `None` if there is none.
    pub operand_size: Option<u32>,
    /// Bits of the widest vector register, or of a packed operand in memory. Unlike [`super::Attributes::width`] that of
    /// the register also where one element is worked on: `addsd xmm0, xmm1` uses 128 bits. `None` for x87.
    pub vector_width: Option<u32>,
    /// Bytes that it reads from memory, with the stack: at most, if a mask or a condition decides.
    pub bytes_read: Bytes,
    /// Bytes that it writes to memory, with the stack: at most, if a mask or a condition decides.
    pub bytes_written: Bytes,
    /// How the address of its operand in memory is stated.
    pub address_mode: AddressMode,
    /// Bits of the largest immediate, as it is encoded: 8 in `add rax, 1`. `None` if there is none.
    pub immediate_size: Option<u32>,
    /// Bytes of the instruction, prefixes included.
    pub length: usize,
}

/// A number of bytes, if the instruction says it: `rep movsb` and `xsave` do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bytes {
    /// So many.
    Known(u64),
    /// Registers, or the processor, decide how many.
    Unknown,
}

impl Bytes {
    fn add(&mut self, more: Option<u64>) {
        *self = match (*self, more) {
            (Bytes::Known(bytes), Some(more)) => Bytes::Known(bytes.saturating_add(more)),
            _ => Bytes::Unknown,
        };
    }
}

/// The kinds of up to five operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperandKinds([Option<OperandKind>; 5]);

impl OperandKinds {
    /// The kinds in order, the destination first.
    pub fn iter(&self) -> impl Iterator<Item = OperandKind> {
        self.0.into_iter().flatten()
    }
}

/// `reg-mem-imm`; `none` without operands.
impl std::fmt::Display for OperandKinds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: Vec<&str> = self.iter().map(OperandKind::as_str).collect();
        f.pad(&if kinds.is_empty() { "none".to_owned() } else { kinds.join("-") })
    }
}

vocabulary! {
    /// The kind of an operand.
    OperandKind, "operand kind" {
        /// A register.
        Register = "reg",
        /// In memory, or an address that is computed.
        Memory = "mem",
        /// A number in the instruction.
        Immediate = "imm",
        /// Where a branch goes.
        Target = "target",
    }
}

vocabulary! {
    /// How an instruction states the address of its operand in memory.
    AddressMode, "address mode" {
        /// No operand in memory.
        None = "none",
        /// `[rax]`
        Base = "base",
        /// `[rax+8]`
        BaseDisplacement = "base+disp",
        /// `[rax+rcx*4]`
        BaseIndex = "base+index",
        /// `[rax+rcx*4+8]`
        BaseIndexDisplacement = "base+index+disp",
        /// `[rcx*4+table]`: an index without a base.
        IndexDisplacement = "index+disp",
        /// Relative to the next instruction: `[rip+0x2000]`.
        RipRelative = "rip-relative",
        /// A number: `[0x1000]`, `fs:[0x28]`.
        Absolute = "absolute",
        /// A vector of indices: gathers and scatters.
        Vector = "vector",
        /// Registers that the opcode decides: `movsb`, `maskmovdqu`.
        Implied = "implied",
    }
}

impl Form {
    /// The form of a decoded instruction.
    pub fn of(instruction: &Instruction) -> Self {
        let Operands { vector_bits, .. } = Operands::of(instruction);
        let (bytes_read, bytes_written) = bytes(instruction);
        Form {
            operands: operand_kinds(instruction),
            operand_size: operand_size(instruction),
            vector_width: (vector_bits > 0 && isa(instruction.code()) != "x87").then_some(vector_bits as u32),
            bytes_read,
            bytes_written,
            address_mode: address_mode(instruction),
            immediate_size: immediate_size(instruction),
            length: instruction.len(),
        }
    }
}

/// The operands with what the opcode's table says of them. The 1 in `shl eax, 1` is none: it is not encoded.
fn operands(instruction: &Instruction) -> impl Iterator<Item = (u32, OpKind)> {
    let table = instruction.op_code();
    (0..instruction.op_count())
        .filter(move |&index| table.op_kind(index) != OpCodeOperandKind::imm8_const_1)
        .map(|index| (index, instruction.op_kind(index)))
}

fn operand_kinds(instruction: &Instruction) -> OperandKinds {
    let mut kinds = OperandKinds::default();
    for (slot, (_, kind)) in kinds.0.iter_mut().zip(operands(instruction)) {
        *slot = Some(match kind {
            OpKind::Register => OperandKind::Register,
            kind if is_memory(kind) => OperandKind::Memory,
            kind if immediate_bits(kind).is_some() => OperandKind::Immediate,
            _ => OperandKind::Target,
        });
    }
    kinds
}

fn operand_size(instruction: &Instruction) -> Option<u32> {
    let bits = operands(instruction).filter_map(|(index, kind)| match kind {
        OpKind::Register if !instruction.op_register(index).is_k() => Some(instruction.op_register(index).size()),
        kind if is_memory(kind) => Some(instruction.memory_size().size()),
        _ => None,
    });
    bits.max().filter(|&bytes| bytes > 0).map(|bytes| bytes as u32 * 8)
}

fn immediate_size(instruction: &Instruction) -> Option<u32> {
    operands(instruction).filter_map(|(_, kind)| immediate_bits(kind)).max()
}

/// Bits of an immediate as it is encoded.
fn immediate_bits(kind: OpKind) -> Option<u32> {
    match kind {
        OpKind::Immediate8
        | OpKind::Immediate8_2nd
        | OpKind::Immediate8to16
        | OpKind::Immediate8to32
        | OpKind::Immediate8to64 => Some(8),
        OpKind::Immediate16 => Some(16),
        OpKind::Immediate32 | OpKind::Immediate32to64 => Some(32),
        OpKind::Immediate64 => Some(64),
        _ => None,
    }
}

fn address_mode(instruction: &Instruction) -> AddressMode {
    let mut mode = AddressMode::None;
    for (_, kind) in operands(instruction) {
        match kind {
            OpKind::Memory => return stated_address(instruction),
            kind if is_memory(kind) => mode = AddressMode::Implied,
            _ => {}
        }
    }
    mode
}

fn stated_address(instruction: &Instruction) -> AddressMode {
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    let has_displacement = instruction.memory_displ_size() > 0;
    if (0..instruction.op_count()).any(|at| instruction.op_code().op_kind(at) == OpCodeOperandKind::seg_rBX_al) {
        return AddressMode::Implied;
    }
    match (base != Register::None, index != Register::None, has_displacement) {
        _ if instruction.is_ip_rel_memory_operand() => AddressMode::RipRelative,
        _ if index.is_vector_register() => AddressMode::Vector,
        (true, false, false) => AddressMode::Base,
        (true, false, true) => AddressMode::BaseDisplacement,
        (true, true, false) => AddressMode::BaseIndex,
        (true, true, true) => AddressMode::BaseIndexDisplacement,
        (false, true, _) => AddressMode::IndexDisplacement,
        (false, false, _) => AddressMode::Absolute,
    }
}

/// Bytes read and written.
fn bytes(instruction: &Instruction) -> (Bytes, Bytes) {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
    let (mut read, mut written) = (Bytes::Known(0), Bytes::Known(0));
    let repeats =
        instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
    for used in info.used_memory() {
        let size = if repeats { None } else { size(instruction, used) };
        match used.access() {
            OpAccess::Read | OpAccess::CondRead => read.add(size),
            OpAccess::Write | OpAccess::CondWrite => written.add(size),
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                read.add(size);
                written.add(size);
            }
            OpAccess::None | OpAccess::NoMemAccess => {}
        }
    }
    (read, written)
}

/// Whether a mask decides which of its elements an instruction computes, reads or writes: a mask register, or, of `vmaskmovps`, `vgatherdps` and
/// the like, a vector.
pub fn is_masked(instruction: &Instruction) -> bool {
    instruction.op_mask() != Register::None
        || instruction.memory_index().is_vector_register()
        || mnemonic_name(instruction.mnemonic()).contains("maskmov")
}

/// Bytes of one access; of gathers and scatters of all elements.
fn size(instruction: &Instruction, used: &UsedMemory) -> Option<u64> {
    let bytes = Some(used.memory_size().size()).filter(|&bytes| bytes > 0 && !varies(used.memory_size()))?;
    let elements = if used.vsib_size() > 0 { elements(instruction, used, bytes) } else { 1 };
    Some((bytes * elements) as u64)
}

/// Elements that a gather or scatter moves: as many as there are indices, and as fit into the register.
fn elements(instruction: &Instruction, used: &UsedMemory, bytes: usize) -> usize {
    let registers = (0..instruction.op_count()).filter(|&at| instruction.op_kind(at) == OpKind::Register);
    let vectors = registers.map(|at| instruction.op_register(at)).filter(|register| register.is_vector_register());
    let indices = used.index().size() / used.vsib_size().max(1) as usize;
    vectors.map(|register| register.size() / bytes).max().map_or(indices, |fit| fit.min(indices))
}

/// Areas whose size the processor's state decides.
fn varies(size: MemorySize) -> bool {
    matches!(size, MemorySize::Xsave | MemorySize::Xsave64 | MemorySize::Unknown)
}
