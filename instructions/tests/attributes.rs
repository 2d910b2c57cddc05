//! Instruction attributes: a golden table of chosen instructions, and rules that hold for every opcode there is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::str::FromStr;

use iced_x86::{Code, Decoder, DecoderOptions, EncodingKind, Instruction, OpCodeOperandKind, OpKind, Register};
use instructions::{
    AddressMode, Attributes, BranchKind, Bytes, Category, Element, Encoding, Form, MemoryAccess, OperandKind, Packing,
    UnknownName, Width, isa_names, mnemonic_name,
};

/// Bytes from GNU as; see `instructions/make.sh`.
const INSTRUCTIONS: &str = include_str!("instructions/instructions.txt");

/// The same of forms.
const FORMS: &str = include_str!("instructions/forms.txt");

fn decode(bytes: &[u8]) -> Instruction {
    let mut decoder = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE);
    let instruction = decoder.decode();
    assert!(!instruction.is_invalid() && instruction.len() == bytes.len(), "{bytes:02x?}");
    instruction
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn golden_table() {
    let mut table = String::new();
    for line in INSTRUCTIONS.lines() {
        let (hex, text) = line.split_once(" | ").unwrap();
        let a = Attributes::of(&decode(&bytes(hex)));
        let flags = [(a.stack, " stack"), (a.lock, " lock"), (a.rep, " rep"), (a.long_latency, " long")];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        writeln!(
            table,
            "{text:42} {} {} {} {} | {} {} {} | memory {} | branch {}{flags}",
            a.mnemonic, a.category, a.isa, a.encoding, a.packing, a.element, a.width, a.memory, a.branch
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn forms() {
    let mut table = String::new();
    for line in FORMS.lines() {
        let (hex, text) = line.split_once(" | ").unwrap();
        let form = Form::of(&decode(&bytes(hex)));
        let size = |bits: Option<u32>| bits.map_or("none".to_owned(), |bits| bits.to_string());
        let bytes = |bytes: Bytes| match bytes {
            Bytes::Known(bytes) => bytes.to_string(),
            Bytes::Unknown => "unknown".to_owned(),
        };
        writeln!(
            table,
            "{text:50} {} | operands {} vectors {} | reads {} writes {} | {} | immediate {} | length {}",
            form.operands,
            size(form.operand_size),
            size(form.vector_width),
            bytes(form.bytes_read),
            bytes(form.bytes_written),
            form.address_mode,
            size(form.immediate_size),
            form.length
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
}

/// What forms and attributes both know of an opcode is the same.
#[test]
fn forms_agree_with_attributes() {
    for instruction in all_opcodes() {
        let code = instruction.code();
        let (form, a) = (Form::of(&instruction), Attributes::of(&instruction));
        let reads = matches!(a.memory, MemoryAccess::Read | MemoryAccess::ReadWrite);
        let writes = matches!(a.memory, MemoryAccess::Write | MemoryAccess::ReadWrite);
        assert_eq!(form.bytes_read != Bytes::Known(0), reads, "{code:?}: {form:?}");
        assert_eq!(form.bytes_written != Bytes::Known(0), writes, "{code:?}: {form:?}");
        assert_eq!(
            form.operands.iter().any(|kind| kind == OperandKind::Memory),
            form.address_mode != AddressMode::None,
            "{code:?}: {form:?}"
        );
        assert!(form.operands.iter().count() <= instruction.op_count() as usize, "{code:?}: {form:?}");
        if a.packing == Packing::Packed && a.category != Category::Matrix && a.width != Width::None {
            assert_eq!(form.vector_width.map(|bits| bits.to_string()).as_deref(), Some(a.width.as_str()), "{code:?}");
        }
    }
}

/// Every opcode but the decoder's own and those of Knights Corner: with registers, and with an operand in memory, where these forms
/// exist.
fn all_opcodes() -> impl Iterator<Item = Instruction> {
    let real = |code: &Code| {
        code.op_code().is_instruction() && *code != Code::INVALID && code.encoding() != EncodingKind::MVEX
    };
    Code::values().filter(real).flat_map(|code| {
        let mut plain = Instruction::default();
        plain.set_code(code);
        let (mut in_memory, mut never_plain) = (None, false);
        for (index, &kind) in (0..).zip(code.op_code().op_kinds()) {
            set_operand(&mut plain, index, kind);
            if may_be_memory(kind) {
                in_memory = Some((index, kind));
                never_plain |= format!("{kind:?}").starts_with("mem") || kind == OpCodeOperandKind::sibmem;
            }
        }
        let in_memory = in_memory.map(|(index, kind)| {
            let mut instruction = plain;
            instruction.set_op_kind(index, OpKind::Memory);
            instruction.set_memory_base(Register::RDI);
            instruction.set_memory_index(vector_index(kind));
            instruction
        });
        [Some(plain).filter(|_| !never_plain), in_memory].into_iter().flatten()
    })
}

fn set_operand(instruction: &mut Instruction, index: u32, kind: OpCodeOperandKind) {
    let name = format!("{kind:?}");
    let register = match name.split('_').next().unwrap() {
        "r8" | "al" | "cl" => Register::CL,
        "r16" | "ax" => Register::CX,
        "dx" => Register::DX,
        "r32" | "eax" => Register::ECX,
        "r64" | "rax" => Register::RCX,
        "mm" => Register::MM1,
        "xmm" | "xmmp3" => Register::XMM1,
        "ymm" => Register::YMM1,
        "zmm" | "zmmp3" => Register::ZMM1,
        "k" | "kp1" => Register::K1,
        "bnd" => Register::BND1,
        "tmm" => Register::TMM1,
        "st0" | "sti" => Register::ST1,
        "es" if name == "es_rDI" => return instruction.set_op_kind(index, OpKind::MemoryESRDI),
        "seg" if name == "seg_rSI" => return instruction.set_op_kind(index, OpKind::MemorySegRSI),
        "seg" if name == "seg_rDI" => return instruction.set_op_kind(index, OpKind::MemorySegRDI),
        "imm8sex64" => return instruction.set_op_kind(index, OpKind::Immediate8to64),
        "imm32sex64" => return instruction.set_op_kind(index, OpKind::Immediate32to64),
        _ => return,
    };
    instruction.set_op_kind(index, OpKind::Register);
    instruction.set_op_register(index, register);
}

fn vector_index(kind: OpCodeOperandKind) -> Register {
    let name = format!("{kind:?}");
    match name.strip_prefix("mem_vsib").and_then(|rest| rest.chars().last()) {
        Some('x') => Register::XMM2,
        Some('y') => Register::YMM2,
        Some('z') => Register::ZMM2,
        _ => Register::None,
    }
}

fn may_be_memory(kind: OpCodeOperandKind) -> bool {
    let name = format!("{kind:?}");
    name.contains("mem") && !name.ends_with("reg_mem") && kind != OpCodeOperandKind::mem_offs
}

/// The attributes of every form of every opcode, as one number: a change to a table shows here. If it is meant, the new number is right.
#[test]
fn attributes_of_every_opcode_stay() {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = all_opcodes().fold(0xcbf2_9ce4_8422_2325, |hash, instruction| {
        format!("{:?} {:?}\n", instruction.code(), Attributes::of(&instruction)).bytes().fold(hash, fnv)
    });
    assert_eq!(hash, 0x17d7_369b_4fe1_1ed9, "{hash:#x}");
}

#[test]
fn rules_for_every_opcode() {
    let checked = all_opcodes().inspect(check_rules).count();
    assert!(checked > 7_000, "only {checked} forms");
}

fn check_rules(instruction: &Instruction) {
    let code = instruction.code();
    let a = Attributes::of(instruction);
    assert_eq!(a.mnemonic, format!("{:?}", code.mnemonic()).to_lowercase());
    let encoding = match code.encoding() {
        EncodingKind::VEX => Encoding::Vex,
        EncodingKind::EVEX => Encoding::Evex,
        EncodingKind::XOP => Encoding::Xop,
        EncodingKind::D3NOW => Encoding::ThreeDNow,
        _ => Encoding::Legacy,
    };
    assert_eq!(a.encoding, encoding, "{code:?}");
    assert!(isa_names().contains(&a.isa), "{code:?}: {}", a.isa);
    assert_eq!(a.packing == Packing::None, a.element == Element::None, "{code:?}: {a:?}");
    assert_eq!(a.branch != BranchKind::None, code_changes_flow(code), "{code:?}: {a:?}");
    match a.packing {
        Packing::None => assert!(!matches!(a.width, Width::W256 | Width::W512), "{code:?}: {a:?}"),
        Packing::Packed if a.category == Category::Matrix => {}
        Packing::Packed if a.category == Category::Cache => assert!(a.mnemonic.contains("pf")),
        Packing::Packed => {
            assert!(matches!(a.width, Width::W64 | Width::W128 | Width::W256 | Width::W512), "{code:?}: {a:?}");
        }
        Packing::Scalar => assert_eq!(a.width, width_of(a.element), "{code:?}: {a:?}"),
    }
    if a.encoding != Encoding::Legacy {
        assert_ne!(a.isa, "base", "{code:?}");
    }
    if a.encoding == Encoding::Evex {
        assert!(a.isa.starts_with("avx512") || ["gfni", "vaes", "vpclmulqdq"].contains(&a.isa), "{code:?}: {}", a.isa);
        assert!(a.packing != Packing::None, "{code:?}: {a:?}");
    }
    if a.encoding == Encoding::Legacy {
        assert!(!a.isa.starts_with("avx") && !matches!(a.width, Width::W256 | Width::W512), "{code:?}: {a:?}");
    }
    if has_vector_register(code) {
        assert!(a.packing != Packing::None, "{code:?}: {a:?}");
    }
    assert!(!a.stack || a.memory != MemoryAccess::None, "{code:?}: {a:?}");
    assert!(!a.lock || a.mnemonic == "xchg");
    assert!(!a.rep);
}

/// Instructions with an operand in memory that they do not access as data: they compute, prefetch or watch its address, or (MPX)
/// look something up by it.
#[test]
fn addresses_that_are_no_access() {
    let silent: BTreeSet<_> = all_opcodes()
        .filter(|instruction| instruction.op_kinds().any(|kind| kind == OpKind::Memory))
        .map(|instruction| Attributes::of(&instruction))
        .filter(|a| a.memory == MemoryAccess::None && !matches!(a.category, Category::Nop | Category::Cache))
        .map(|a| a.mnemonic)
        .collect();
    let expected = ["lea", "invlpg", "ud0", "ud1", "undoc", "bndmk", "bndcl", "bndcn", "bndcu", "bndldx", "bndstx"];
    assert_eq!(silent, BTreeSet::from(expected));
}

fn code_changes_flow(code: Code) -> bool {
    use iced_x86::FlowControl;
    let by_name = matches!(code, Code::Hlt | Code::Xabort_imm8);
    by_name || (code.flow_control() != FlowControl::Next && !matches!(code, Code::Xend | Code::Into))
}

fn has_vector_register(code: Code) -> bool {
    code.op_code().op_kinds().iter().any(|kind| {
        let name = format!("{kind:?}");
        name.starts_with("xmm") || name.starts_with("ymm") || name.starts_with("zmm") || name.starts_with("mm_")
    })
}

fn width_of(element: Element) -> Width {
    match element {
        Element::I8 => Width::W8,
        Element::I16 | Element::F16 | Element::Bf16 => Width::W16,
        Element::I32 | Element::F32 => Width::W32,
        Element::I64 | Element::F64 => Width::W64,
        Element::F80 | Element::Bcd => Width::W80,
        Element::None | Element::Bits => Width::None,
    }
}

/// The suffix of floating-point mnemonics says packing and element type: no rule that found them may disagree.
#[test]
fn suffixes_agree_with_elements() {
    let operations =
        ["add", "sub", "mul", "div", "sqrt", "min", "max", "cmp", "fmadd213", "fnmsub231", "rndscale", "getexp"];
    let suffixes = [
        ("ss", Packing::Scalar, Element::F32),
        ("sd", Packing::Scalar, Element::F64),
        ("sh", Packing::Scalar, Element::F16),
        ("ps", Packing::Packed, Element::F32),
        ("pd", Packing::Packed, Element::F64),
        ("ph", Packing::Packed, Element::F16),
    ];
    let mut checked = 0;
    for instruction in all_opcodes() {
        let a = Attributes::of(&instruction);
        if a.packing == Packing::None {
            continue;
        }
        let stem = a.mnemonic.strip_prefix('v').unwrap_or(a.mnemonic);
        for (suffix, packing, element) in suffixes {
            if stem.strip_suffix(suffix).is_some_and(|operation| operations.contains(&operation)) {
                assert_eq!((a.packing, a.element), (packing, element), "{:?}", instruction.code());
                checked += 1;
            }
        }
    }
    assert!(checked > 200, "only {checked} opcodes");
}

/// Which mnemonics are in which category: reviewed by eye, and kept from changing unseen.
#[test]
fn mnemonics_by_category() {
    let mut categories: BTreeMap<Category, BTreeSet<&str>> = BTreeMap::new();
    let mut by_code: BTreeMap<Code, Category> = BTreeMap::new();
    for instruction in all_opcodes() {
        let a = Attributes::of(&instruction);
        categories.entry(a.category).or_default().insert(a.mnemonic);
        let known = *by_code.entry(instruction.code()).or_insert(a.category);
        assert_eq!(known, a.category, "{:?} in its two forms", instruction.code());
    }
    let mut listing = String::new();
    for (category, mnemonics) in &categories {
        writeln!(listing, "{category}:").unwrap();
        for line in mnemonics.iter().copied().collect::<Vec<_>>().chunks(12) {
            writeln!(listing, "    {}", line.join(" ")).unwrap();
        }
    }
    insta::assert_snapshot!(listing);
    assert_eq!(categories.len(), Category::ALL.len(), "a category without an instruction");
}

#[test]
fn names_are_read_back() {
    fn check<T: Copy + PartialEq + std::fmt::Debug + FromStr<Err = UnknownName>>(
        all: &[T],
        name: impl Fn(T) -> &'static str,
    ) {
        let names: BTreeSet<_> = all.iter().map(|&value| name(value)).collect();
        assert_eq!(names.len(), all.len(), "two values of one name");
        for &value in all {
            assert_eq!(name(value).parse::<T>(), Ok(value));
        }
    }
    check(Category::ALL, Category::as_str);
    check(Encoding::ALL, Encoding::as_str);
    check(Packing::ALL, Packing::as_str);
    check(Element::ALL, Element::as_str);
    check(Width::ALL, Width::as_str);
    check(MemoryAccess::ALL, MemoryAccess::as_str);
    check(BranchKind::ALL, BranchKind::as_str);
    check(OperandKind::ALL, OperandKind::as_str);
    check(AddressMode::ALL, AddressMode::as_str);
    let error = "vectorised".parse::<Packing>().unwrap_err();
    assert_eq!(error.to_string(), "no packing is called \"vectorised\"; there are none, scalar, packed");
    assert_eq!(mnemonic_name(iced_x86::Mnemonic::Vfmadd231ps), "vfmadd231ps");
}
