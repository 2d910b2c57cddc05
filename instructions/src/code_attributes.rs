//! The part of an instruction's attributes that its opcode decides, worked out once per opcode.

use std::sync::{LazyLock, OnceLock};

use iced_x86::{
    Code, EncodingKind, Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind,
};

use super::attributes::Attributes;
use super::by_mnemonic::by_mnemonic;
use super::category::Category;
use super::category_table::category;
use super::flow::Flow;
use super::isa::isa;
use super::kinds::{BranchKind, Encoding, MemoryAccess, Width};
use super::operands::Operands;

/// Attributes, and what decides the prefix flags.
#[derive(Clone, Copy, Debug)]
struct CodeAttributes {
    /// With `lock` and `rep` unset.
    pub attributes: Attributes,
    /// A `rep` prefix means repetition.
    pub repeatable: bool,
    /// Locks without a prefix.
    pub locks: bool,
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

/// What the instruction's opcode, and whether it has an explicit operand in memory, say of it.
fn of_code(instruction: &Instruction) -> CodeAttributes {
    // Allocated when it is first used: it is large, and the executable is mapped into programs.
    static KNOWN: LazyLock<Vec<[OnceLock<CodeAttributes>; 2]>> = LazyLock::new(|| vec![Default::default(); CODES]);
    let in_memory = instruction.op_kinds().any(is_memory);
    match KNOWN.get(instruction.code() as usize) {
        Some([without, with]) => {
            *if in_memory { with } else { without }.get_or_init(|| compute(instruction, in_memory))
        }
        None => compute(instruction, in_memory),
    }
}

/// More than there are opcodes (about 5,000).
const CODES: usize = 1 << 13;
/// More than there are mnemonics (about 2,000).
const MNEMONICS: usize = 1 << 12;

/// The name of a mnemonic in lower case: `mov`, `vaddps`.
pub fn mnemonic_name(mnemonic: Mnemonic) -> &'static str {
    static NAMES: LazyLock<Vec<OnceLock<String>>> = LazyLock::new(|| vec![OnceLock::new(); MNEMONICS]);
    let name = NAMES.get(mnemonic as usize);
    name.map_or("unknown", |name| name.get_or_init(|| format!("{mnemonic:?}").to_ascii_lowercase()))
}

fn compute(instruction: &Instruction, in_memory: bool) -> CodeAttributes {
    let code = instruction.code();
    let encoding = encoding(code);
    let mnemonic = mnemonic_name(code.mnemonic());
    let isa = isa(code);
    let operands = Operands::of(instruction);
    let (packing, element) = operands.elements(code.mnemonic(), isa);
    let branch = branch(Flow::of(instruction));
    let category = category(code);
    let has_width = branch == BranchKind::None && !matches!(category, Category::Cache | Category::Nop);
    let attributes = Attributes {
        mnemonic,
        category,
        isa,
        encoding,
        packing,
        element,
        width: if has_width { operands.width(code.mnemonic(), packing, element) } else { Width::None },
        memory: memory(instruction),
        stack: code.is_stack_instruction(),
        branch,
        lock: false,
        rep: false,
        long_latency: is_long(code.mnemonic()),
    };
    CodeAttributes { attributes, repeatable: operands.string, locks: in_memory && code.mnemonic() == Mnemonic::Xchg }
}

fn encoding(code: Code) -> Encoding {
    match code.encoding() {
        EncodingKind::VEX => Encoding::Vex,
        EncodingKind::EVEX => Encoding::Evex,
        EncodingKind::XOP => Encoding::Xop,
        EncodingKind::D3NOW => Encoding::ThreeDNow,
        EncodingKind::MVEX => Encoding::Mvex,
        _ => Encoding::Legacy,
    }
}

fn branch(flow: Flow) -> BranchKind {
    match flow {
        Flow::Next => BranchKind::None,
        Flow::Conditional => BranchKind::Conditional,
        Flow::Jump => BranchKind::Jump,
        Flow::IndirectJump => BranchKind::IndirectJump,
        Flow::Call => BranchKind::Call,
        Flow::IndirectCall => BranchKind::IndirectCall,
        Flow::Return => BranchKind::Return,
        Flow::SystemCall => BranchKind::SystemCall,
        Flow::Trap => BranchKind::Trap,
    }
}

fn memory(instruction: &Instruction) -> MemoryAccess {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info_options(instruction, InstructionInfoOptions::NO_REGISTER_USAGE);
    let (mut reads, mut writes) = (false, false);
    for used in info.used_memory() {
        let access = used.access();
        reads |= matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite);
        writes |=
            matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite);
    }
    match (reads, writes) {
        (false, false) => MemoryAccess::None,
        (true, false) => MemoryAccess::Read,
        (false, true) => MemoryAccess::Write,
        (true, true) => MemoryAccess::ReadWrite,
    }
}

pub(super) fn is_memory(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Memory
            | OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI
    )
}

by_mnemonic! {
    fn is_long -> bool, otherwise false;
    true =>
        Cpuid Div Divpd Divps Divsd Divss F2xm1 Fbld Fbstp Fcos Fdiv Fdivp Fdivr Fdivrp Fidiv Fidivr Fpatan Fprem
        Fprem1 Fptan Fsin Fsincos Fsqrt Fxtract Fyl2x Fyl2xp1 Idiv Rdrand Rdseed Sqrtpd Sqrtps Sqrtsd Sqrtss Vdivpd
        Vdivph Vdivps Vdivsd Vdivsh Vdivss Vsqrtpd Vsqrtph Vsqrtps Vsqrtsd Vsqrtsh Vsqrtss;
}
