//! What is known of the code: of each instruction its class, and how often it was executed.

use std::collections::HashMap;

use addresses::Avma;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess};
use lookahead::BranchKind;

use crate::simulation::pmu::model::{
    ARITHMETIC, DIVISION_32, DIVISION_64, FLOAT_DIVISION, LOCKED, PLAIN, SLOW, TRANSCENDENTAL,
};

/// Where the bytes of instructions come from.
pub(crate) trait CodeBytes {
    /// Reads up to 15 bytes of code. Returns how many could be read.
    fn read(&mut self, ip: Avma, bytes: &mut [u8; 15]) -> usize;
}

/// What matters of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub(super) length: u8,
    /// Without its loads, cycles.
    pub(super) latency: u32,
    /// It names a memory operand, and reads it.
    pub(super) reads: bool,
    /// It names a memory operand, and writes it.
    pub(super) writes: bool,
    /// It needs the divider.
    pub(super) divides: bool,
    pub(super) branch: Option<BranchKind>,
}

const RECENT: usize = 1 << 14;

/// The instructions of an address space that were executed.
pub(crate) struct CodeTable {
    /// By the low bits of their address: address and index.
    recent: Box<[(u64, u32)]>,
    by_address: HashMap<u64, u32>,
    instructions: Vec<(Class, u64)>,
    factory: InstructionInfoFactory,
}

impl Default for CodeTable {
    fn default() -> Self {
        Self {
            recent: vec![(u64::MAX, 0); RECENT].into_boxed_slice(),
            by_address: HashMap::new(),
            instructions: Vec::new(),
            factory: InstructionInfoFactory::new(),
        }
    }
}

impl CodeTable {
    /// The instruction at `ip` is executed once.
    #[inline]
    pub(super) fn executed(&mut self, ip: Avma, bytes: &mut dyn CodeBytes) -> Class {
        let index = self.index(ip, bytes);
        let (class, count) = &mut self.instructions[index];
        *count += 1;
        *class
    }

    /// The instruction at `ip`.
    pub(super) fn class(&mut self, ip: Avma, bytes: &mut dyn CodeBytes) -> Class {
        let index = self.index(ip, bytes);
        self.instructions[index].0
    }

    #[inline]
    fn index(&mut self, ip: Avma, bytes: &mut dyn CodeBytes) -> usize {
        let recent = self.recent[ip.0 as usize % RECENT];
        if recent.0 == ip.0 { recent.1 as usize } else { self.look_up(ip, bytes) }
    }

    #[cold]
    fn look_up(&mut self, ip: Avma, bytes: &mut dyn CodeBytes) -> usize {
        let Self { by_address, instructions, factory, .. } = self;
        let index = *by_address.entry(ip.0).or_insert_with(|| {
            let mut code = [0; 15];
            let length = bytes.read(ip, &mut code);
            instructions.push((class(ip, &code[..length.min(15)], factory), 0));
            (instructions.len() - 1) as u32
        });
        self.recent[ip.0 as usize % RECENT] = (ip.0, index);
        index as usize
    }

    /// How often each instruction was executed, in no order; all is forgotten.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Avma, u64)> {
        self.recent.fill((u64::MAX, 0));
        let instructions = std::mem::take(&mut self.instructions);
        std::mem::take(&mut self.by_address)
            .into_iter()
            .map(move |(address, index)| (Avma(address), instructions[index as usize].1))
    }
}

fn class(ip: Avma, bytes: &[u8], factory: &mut InstructionInfoFactory) -> Class {
    let instruction = Decoder::with_ip(64, bytes, ip.0, DecoderOptions::NONE).decode();
    let (mut reads, mut writes) = (false, false);
    let explicit = (0..instruction.op_count())
        .find(|&operand| instruction.op_kind(operand) == iced_x86::OpKind::Memory)
        .filter(|_| !matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop));
    if let Some(operand) = explicit {
        let access = factory.info(&instruction).op_access(operand);
        reads = matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite);
        writes =
            matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite);
    }
    let (latency, divides) = latency(&instruction);
    Class { length: instruction.len().max(1) as u8, latency, reads, writes, divides, branch: branch(&instruction) }
}

/// Cycles, and whether it needs the divider.
fn latency(instruction: &Instruction) -> (u32, bool) {
    use Mnemonic as M;
    match instruction.mnemonic() {
        M::Div | M::Idiv => {
            let wide = instruction.op0_register().size() == 8 || instruction.memory_size().size() == 8;
            (if wide { DIVISION_64 } else { DIVISION_32 }, true)
        }
        M::Fdiv | M::Fdivp | M::Fdivr | M::Fdivrp | M::Fidiv | M::Fidivr | M::Fsqrt => (FLOAT_DIVISION, true),
        M::Fsin
        | M::Fcos
        | M::Fsincos
        | M::Fptan
        | M::Fpatan
        | M::F2xm1
        | M::Fyl2x
        | M::Fyl2xp1
        | M::Fprem
        | M::Fprem1 => (TRANSCENDENTAL, false),
        M::Cpuid | M::Rdtsc | M::Rdtscp | M::Xgetbv | M::Xsave | M::Xsavec | M::Xrstor | M::Xsavec64 | M::Xrstor64 => {
            (SLOW, false)
        }
        M::Mul | M::Imul => (ARITHMETIC, false),
        M::Xchg if instruction.op0_kind() == iced_x86::OpKind::Memory => (LOCKED, false),
        _ if instruction.has_lock_prefix() => (LOCKED, false),
        mnemonic if is_float_division(mnemonic) => (FLOAT_DIVISION, true),
        mnemonic if is_float_arithmetic(mnemonic) => (ARITHMETIC, false),
        _ => (PLAIN, false),
    }
}

/// Division or square root of single or double precision.
#[rustfmt::skip]
fn is_float_division(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Divpd | M::Divps | M::Divsd | M::Divss | M::Sqrtpd | M::Sqrtps | M::Sqrtsd | M::Sqrtss | M::Vdivpd
        | M::Vdivps | M::Vdivsd | M::Vdivss | M::Vsqrtpd | M::Vsqrtps | M::Vsqrtsd | M::Vsqrtss
    )
}

/// Sum, difference, product, or both in one, of single or double precision.
#[rustfmt::skip]
fn is_float_arithmetic(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Addpd | M::Addps | M::Addsd | M::Addss | M::Addsubpd | M::Addsubps | M::Mulpd | M::Mulps | M::Mulsd
        | M::Mulss | M::Subpd | M::Subps | M::Subsd | M::Subss | M::Vaddpd | M::Vaddps | M::Vaddsd | M::Vaddss
        | M::Vaddsubpd | M::Vaddsubps | M::Vfmadd132pd | M::Vfmadd132ps | M::Vfmadd132sd | M::Vfmadd132ss
        | M::Vfmadd213pd | M::Vfmadd213ps | M::Vfmadd213sd | M::Vfmadd213ss | M::Vfmadd231pd | M::Vfmadd231ps
        | M::Vfmadd231sd | M::Vfmadd231ss | M::Vfmaddpd | M::Vfmaddps | M::Vfmaddsd | M::Vfmaddss | M::Vfmaddsub132pd
        | M::Vfmaddsub132ps | M::Vfmaddsub213pd | M::Vfmaddsub213ps | M::Vfmaddsub231pd | M::Vfmaddsub231ps
        | M::Vfmaddsubpd | M::Vfmaddsubps | M::Vfmsub132pd | M::Vfmsub132ps | M::Vfmsub132sd | M::Vfmsub132ss
        | M::Vfmsub213pd | M::Vfmsub213ps | M::Vfmsub213sd | M::Vfmsub213ss | M::Vfmsub231pd | M::Vfmsub231ps
        | M::Vfmsub231sd | M::Vfmsub231ss | M::Vfmsubadd132pd | M::Vfmsubadd132ps | M::Vfmsubadd213pd
        | M::Vfmsubadd213ps | M::Vfmsubadd231pd | M::Vfmsubadd231ps | M::Vfmsubaddpd | M::Vfmsubaddps | M::Vfmsubpd
        | M::Vfmsubps | M::Vfmsubsd | M::Vfmsubss | M::Vfnmadd132pd | M::Vfnmadd132ps | M::Vfnmadd132sd
        | M::Vfnmadd132ss | M::Vfnmadd213pd | M::Vfnmadd213ps | M::Vfnmadd213sd | M::Vfnmadd213ss | M::Vfnmadd231pd
        | M::Vfnmadd231ps | M::Vfnmadd231sd | M::Vfnmadd231ss | M::Vfnmaddpd | M::Vfnmaddps | M::Vfnmaddsd
        | M::Vfnmaddss | M::Vfnmsub132pd | M::Vfnmsub132ps | M::Vfnmsub132sd | M::Vfnmsub132ss | M::Vfnmsub213pd
        | M::Vfnmsub213ps | M::Vfnmsub213sd | M::Vfnmsub213ss | M::Vfnmsub231pd | M::Vfnmsub231ps | M::Vfnmsub231sd
        | M::Vfnmsub231ss | M::Vfnmsubpd | M::Vfnmsubps | M::Vfnmsubsd | M::Vfnmsubss | M::Vmulpd | M::Vmulps
        | M::Vmulsd | M::Vmulss | M::Vsubpd | M::Vsubps | M::Vsubsd | M::Vsubss | M::Vaddnpd | M::Vaddnps
        | M::Vaddsetsps | M::Vfmadd233ps | M::Vsubrpd | M::Vsubrps
    )
}

fn branch(instruction: &Instruction) -> Option<BranchKind> {
    Some(match instruction.flow_control() {
        FlowControl::ConditionalBranch => BranchKind::Conditional,
        FlowControl::UnconditionalBranch => BranchKind::Jump,
        FlowControl::IndirectBranch => BranchKind::IndirectJump,
        FlowControl::Call if instruction.is_call_near() => BranchKind::Call,
        FlowControl::IndirectCall if instruction.is_call_near_indirect() => BranchKind::IndirectCall,
        FlowControl::Return if matches!(instruction.mnemonic(), Mnemonic::Ret) => BranchKind::Return,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables are regular: names say what an instruction does, and of which precision.
    #[test]
    fn names_say_what_is_arithmetic() {
        for mnemonic in Mnemonic::values() {
            let name = format!("{mnemonic:?}").to_lowercase();
            let name = name.strip_prefix('v').unwrap_or(&name);
            let is_float = ["ss", "sd", "ps", "pd"].iter().any(|suffix| name.ends_with(suffix));
            let begins = |with: &[&str]| is_float && with.iter().any(|beginning| name.starts_with(beginning));
            assert_eq!(is_float_division(mnemonic), begins(&["div", "sqrt"]), "{mnemonic:?}");
            assert_eq!(is_float_arithmetic(mnemonic), begins(&["add", "sub", "mul", "fm", "fnm"]), "{mnemonic:?}");
        }
    }

    fn check(bytes: &[u8], latency: u32, reads: bool, writes: bool, branch: Option<BranchKind>) {
        let class = class(Avma(0x1000), bytes, &mut InstructionInfoFactory::new());
        let length = bytes.len() as u8;
        let divides = matches!(latency, DIVISION_32 | DIVISION_64 | FLOAT_DIVISION);
        assert_eq!(class, Class { length, latency, reads, writes, divides, branch }, "{bytes:x?}");
    }

    #[test]
    fn classes() {
        check(&[0x48, 0x01, 0xc8], PLAIN, false, false, None); // add rax, rcx
        check(&[0x48, 0x8b, 0x07], PLAIN, true, false, None); // mov rax, [rdi]
        check(&[0x48, 0x89, 0x07], PLAIN, false, true, None); // mov [rdi], rax
        check(&[0xf0, 0x48, 0x01, 0x07], LOCKED, true, true, None); // lock add [rdi], rax
        check(&[0x48, 0x8d, 0x07], PLAIN, false, false, None); // lea rax, [rdi]
        check(&[0x48, 0xf7, 0xf1], DIVISION_64, false, false, None); // div rcx
        check(&[0xf7, 0xf9], DIVISION_32, false, false, None); // idiv ecx
        check(&[0xf2, 0x0f, 0x5e, 0xc1], FLOAT_DIVISION, false, false, None); // divsd xmm0, xmm1
        check(&[0xf2, 0x0f, 0x51, 0x07], FLOAT_DIVISION, true, false, None); // sqrtsd xmm0, [rdi]
        check(&[0xc5, 0xfb, 0x59, 0xc1], ARITHMETIC, false, false, None); // vmulsd xmm0, xmm0, xmm1
        check(&[0x75, 0xfe], PLAIN, false, false, Some(BranchKind::Conditional));
        check(&[0xff, 0x27], PLAIN, true, false, Some(BranchKind::IndirectJump)); // jmp [rdi]
        check(&[0xe8, 0, 0, 0, 0], PLAIN, false, false, Some(BranchKind::Call));
        check(&[0xc3], PLAIN, false, false, Some(BranchKind::Return));
        check(&[0x0f, 0x05], PLAIN, false, false, None); // syscall
    }
}
