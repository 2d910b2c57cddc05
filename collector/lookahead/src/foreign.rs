//! Instructions left to the CPU: vector, mask, x87 and rare integer ones, executed one by one in stubs.

use iced_x86::{
    Code, CpuidFeature, EncodingKind, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use crate::exit::Step;
use crate::features::present;
use crate::form::address;
use crate::machine::Machine;
use crate::masked;
use crate::memory::PAGE;
use crate::mxcsr::ignores_mxcsr;
use crate::native::{StubId, Stubs, made_by_amd};
use crate::op::{Handler, Op};
use crate::outcome::StopReason;
use crate::stub::Plan;
use crate::stub::code::Traits;
use crate::stub_call::{FLOAT, GIVES_FLAGS, READS, TAKES_FLAGS, WRITES, X87, call, load_scratch, run, store_scratch};

/// The context beyond general registers and flags may change.
const CHANGES: u8 = 64;

/// Whether an operation is known to neither read nor change the status flags: it is that of a stub that does not.
pub(crate) fn leaves_status(op: &Op) -> bool {
    op.stub != StubId::NONE && op.extra & (TAKES_FLAGS | GIVES_FLAGS) == 0
}

/// Finds or makes the stub for an instruction; `None` if it is not one that may run in a stub.
pub(crate) fn select(
    instruction: &Instruction,
    op: &mut Op,
    factory: &mut InstructionInfoFactory,
    stubs: &mut Stubs,
) -> Option<Handler> {
    if !harmless(instruction) {
        return None;
    }
    let info = factory.info(instruction);
    let memory = (0..instruction.op_count()).find(|&operand| instruction.op_kind(operand) == OpKind::Memory);
    let access = match (memory, info.used_memory()) {
        (None, []) => OpAccess::None,
        (Some(operand), [_]) => {
            op.address = address(instruction)?;
            info.op_access(operand)
        }
        _ => return None,
    };
    let traits = traits(instruction);
    // What only the address used must not be loaded into the stub: it is harmless, but for rsp and the count of free registers.
    let explicit = explicit_registers(instruction, info.used_registers());
    let mut plan = Plan { instruction: *instruction, used: &explicit, traits };
    let (key, state) = plan.normalise()?;
    op.stub = match stubs.find(&key) {
        Some((id, _)) => id,
        None => {
            let code = plan.write(&key, state)?;
            stubs.add(key, &code, traits)?
        }
    };
    let (reads, writes) = match access {
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write => (false, true),
        _ => (true, true),
    };
    let bit = |on: bool, flag: u8| if on { flag } else { 0 };
    op.extra = bit(traits.takes_flags, TAKES_FLAGS)
        | bit(traits.gives_flags, GIVES_FLAGS)
        | bit(traits.float, FLOAT)
        | bit(traits.x87, X87)
        | bit(reads, READS)
        | bit(writes, WRITES)
        | CHANGES;
    let size = instruction.memory_size().size();
    if size > crate::context::SCRATCH || (size == 0 && (reads || writes)) {
        return None;
    }
    op.imm = size as u64;
    op.src = if needs_alignment(instruction) { size as u8 - 1 } else { 0 };
    if (reads || writes)
        && let Some(handler) = masked::select(instruction, op, reads, writes)
    {
        return Some(handler);
    }
    if instruction.mnemonic() == Mnemonic::Xgetbv {
        return Some(extended_control);
    }
    let plain = op.extra & !CHANGES == 0;
    Some(match (reads, writes, size) {
        (false, false, _) if plain => registers,
        (true, false, 16) if plain => read::<16>,
        (true, false, 32) if plain => read::<32>,
        (true, false, 64) if plain => read::<64>,
        (true, false, 4) if plain => read::<4>,
        (true, false, 8) if plain => read::<8>,
        _ => general,
    })
}

/// The registers used other than by the address.
fn explicit_registers(instruction: &Instruction, used: &[iced_x86::UsedRegister]) -> Vec<iced_x86::UsedRegister> {
    let (base, index) = (instruction.memory_base().full_register(), instruction.memory_index().full_register());
    let operand = |register: Register| {
        (0..instruction.op_count()).any(|operand| {
            instruction.op_kind(operand) == OpKind::Register
                && instruction.op_register(operand).full_register() == register
        })
    };
    used.iter()
        .filter(|one| {
            let register = one.register().full_register();
            let of_address = register == base || register == index;
            !of_address || one.access() != OpAccess::Read || operand(register) || implicit(instruction, register)
        })
        .copied()
        .collect()
}

/// General registers that the instruction reads without naming them.
fn implicit(instruction: &Instruction, register: Register) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b => {
            matches!(register, Register::RAX | Register::RBX | Register::RCX | Register::RDX)
        }
        Mnemonic::Mulx => register == Register::RDX,
        Mnemonic::Pcmpestri
        | Mnemonic::Pcmpestrm
        | Mnemonic::Pcmpestri64
        | Mnemonic::Pcmpestrm64
        | Mnemonic::Vpcmpestri64
        | Mnemonic::Vpcmpestrm64
        | Mnemonic::Vpcmpestri
        | Mnemonic::Vpcmpestrm => {
            matches!(register, Register::RAX | Register::RDX)
        }
        Mnemonic::Rcl | Mnemonic::Rcr | Mnemonic::Shld | Mnemonic::Shrd => register == Register::RCX,
        _ => false,
    }
}

/// Whether the instruction does nothing a stub cannot contain.
fn harmless(instruction: &Instruction) -> bool {
    if instruction.flow_control() != FlowControl::Next
        || needs_more_than_registers(instruction.code())
        || instruction.is_vsib()
        || !instruction.cpuid_features().iter().all(|&feature| present(feature))
    {
        return false;
    }
    let plain_operands = (0..instruction.op_count()).all(|operand| match instruction.op_kind(operand) {
        OpKind::Register => {
            let register = instruction.op_register(operand);
            register.is_gpr()
                || register.is_vector_register()
                || register.is_k()
                || register.is_st()
                || register.is_mm()
        }
        OpKind::Memory
        | OpKind::Immediate8
        | OpKind::Immediate8_2nd
        | OpKind::Immediate16
        | OpKind::Immediate32
        | OpKind::Immediate64
        | OpKind::Immediate8to16
        | OpKind::Immediate8to32
        | OpKind::Immediate8to64
        | OpKind::Immediate32to64 => true,
        _ => false,
    });
    plain_operands && (is_integer(instruction.mnemonic()) || is_vector(instruction))
}

/// Integer instructions that are left to the CPU.
pub(crate) fn is_integer(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Rcl
            | M::Rcr
            | M::Shld
            | M::Shrd
            | M::Bsf
            | M::Bsr
            | M::Cmpxchg8b
            | M::Cmpxchg16b
            | M::Movbe
            | M::Popcnt
            | M::Lzcnt
            | M::Tzcnt
            | M::Andn
            | M::Bextr
            | M::Blsi
            | M::Blsmsk
            | M::Blsr
            | M::Bzhi
            | M::Mulx
            | M::Pdep
            | M::Pext
            | M::Rorx
            | M::Adcx
            | M::Adox
            | M::Crc32
            | M::Rdtsc
            | M::Rdtscp
            | M::Rdpid
            | M::Cpuid
            | M::Xgetbv
    )
}

fn is_vector(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    if matches!(
        instruction.mnemonic(),
        M::Fnstenv
            | M::Fldenv
            | M::Fnsave
            | M::Frstor
            | M::Fxsave
            | M::Fxrstor
            | M::Wait
            | M::Vzeroall
            | M::Ldmxcsr
            | M::Stmxcsr
            | M::Vldmxcsr
            | M::Vstmxcsr
            | M::Movnti
    ) {
        return matches!(instruction.mnemonic(), M::Vzeroall | M::Movnti);
    }
    if is_x87(instruction)
        || matches!(instruction.mnemonic(), M::Emms | M::Cvtsd2si | M::Cvttsd2si | M::Cvtss2si | M::Cvttss2si)
    {
        return true;
    }
    instruction.encoding() != EncodingKind::Legacy
        || (0..instruction.op_count()).any(|operand| {
            let register = instruction.op_register(operand);
            register.is_vector_register() || register.is_mm()
        })
}

fn is_x87(instruction: &Instruction) -> bool {
    is_x87_code(instruction.code())
}

/// Whether its first byte is 0xd8 to 0xdf. Bytes are in a table of iced's whose texts take milliseconds to build.
fn is_x87_code(code: Code) -> bool {
    let of_fpu = |feature: &CpuidFeature| {
        matches!(
            feature,
            CpuidFeature::FPU
                | CpuidFeature::FPU287
                | CpuidFeature::FPU287XL_ONLY
                | CpuidFeature::FPU387
                | CpuidFeature::FPU387SL_ONLY
        )
    };
    code.mnemonic() == Mnemonic::Fisttp || code.mnemonic() != Mnemonic::Wait && code.cpuid_features().iter().any(of_fpu)
}

/// Whether it has to be allowed by the kernel, uses the stack, or saves or restores more than it names.
fn needs_more_than_registers(code: Code) -> bool {
    code.is_privileged()
        || code.is_save_restore_instruction()
        || code.is_stack_instruction()
        || is_input_output(code.mnemonic())
}

/// Whether it reads or writes ports.
fn is_input_output(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::In | M::Insb | M::Insw | M::Insd | M::Out | M::Outsb | M::Outsw | M::Outsd)
}

fn traits(instruction: &Instruction) -> Traits {
    let x87 = is_x87(instruction)
        || instruction.mnemonic() == Mnemonic::Emms
        || (0..instruction.op_count()).any(|operand| instruction.op_register(operand).is_mm());
    const STATUS: u32 = iced_x86::RflagsBits::OF
        | iced_x86::RflagsBits::SF
        | iced_x86::RflagsBits::ZF
        | iced_x86::RflagsBits::AF
        | iced_x86::RflagsBits::CF
        | iced_x86::RflagsBits::PF;
    let modified = instruction.rflags_modified() & STATUS;
    let certain = modified & !instruction.rflags_undefined();
    // Undefined flags may be the old ones, and an instruction with a count of zero keeps them all.
    let takes_flags = instruction.rflags_read() & STATUS != 0
        || (modified != 0
            && (certain != STATUS
                || matches!(instruction.mnemonic(), Mnemonic::Rcl | Mnemonic::Rcr | Mnemonic::Shld | Mnemonic::Shrd)));
    Traits { takes_flags, gives_flags: modified != 0, float: !x87 && obeys_mxcsr(instruction), x87 }
}

/// Whether rounding, flags or exceptions in `mxcsr` may matter: where it is not known that they do not.
fn obeys_mxcsr(instruction: &Instruction) -> bool {
    !is_integer(instruction.mnemonic()) && !ignores_mxcsr(instruction.mnemonic())
}

/// Whether a misaligned operand raises an exception.
fn needs_alignment(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let size = instruction.memory_size().size();
    if !(16..=64).contains(&size) || is_x87(instruction) {
        return false;
    }
    match instruction.mnemonic() {
        M::Movups
        | M::Movupd
        | M::Movdqu
        | M::Lddqu
        | M::Pcmpestri64
        | M::Pcmpestrm64
        | M::Pcmpistri
        | M::Pcmpistrm
        | M::Pcmpestri
        | M::Pcmpestrm => false,
        // The SDM demands alignment (vol. 2, exceptions of type 4), and Intel's CPUs do; AMD's Zen 4 and 5 do not.
        M::Sha1msg1 | M::Sha1msg2 | M::Sha1nexte | M::Sha1rnds4 | M::Sha256msg1 | M::Sha256msg2 | M::Sha256rnds2 => {
            !made_by_amd()
        }
        M::Vmovaps | M::Vmovapd | M::Vmovdqa | M::Vmovdqa32 | M::Vmovdqa64 => true,
        M::Vmovntps | M::Vmovntpd | M::Vmovntdq | M::Vmovntdqa => true,
        M::Cmpxchg16b => true,
        _ => instruction.encoding() == EncodingKind::Legacy,
    }
}

/// A stub that uses nothing but vector registers.
fn registers(m: &mut Machine<'_>, op: &Op) -> Step {
    m.changed = true;
    run(m, op)
}

/// A stub that reads `N` bytes of memory, and otherwise uses nothing but registers.
fn read<const N: usize>(m: &mut Machine<'_>, op: &Op) -> Step {
    let address = m.address(&op.address);
    if address & u64::from(op.src) != 0 {
        return m.stopped(StopReason::Exception);
    }
    if (address & 0xfff) as usize + N <= PAGE {
        let (page, at) = m.readable(address, N)?;
        m.context.scratch[..N].copy_from_slice(&page.load::<N>(at));
    } else {
        let mut bytes = [0; N];
        m.load_bytes(address, &mut bytes)?;
        m.context.scratch[..N].copy_from_slice(&bytes);
    }
    m.changed = true;
    run(m, op)
}

/// `xgetbv`, of which only register 0 exists everywhere.
fn extended_control(m: &mut Machine<'_>, op: &Op) -> Step {
    if m.get::<4>(crate::operand::RCX) != 0 {
        return crate::system::unsupported(m, op);
    }
    call(m, op)
}

/// A stub of any kind: with flags, a floating-point environment, an operand that is read or written.
fn general(m: &mut Machine<'_>, op: &Op) -> Step {
    let size = op.imm as usize;
    let address = if op.extra & (READS | WRITES) != 0 { m.address(&op.address) } else { 0 };
    if address & u64::from(op.src) != 0 {
        return m.stopped(StopReason::Exception);
    }
    if op.extra & READS != 0 {
        load_scratch(m, address, size)?;
    }
    if op.extra & WRITES != 0 {
        m.check_writable(address, size)?;
    }
    call(m, op)?;
    if op.extra & WRITES != 0 {
        store_scratch(m, address, 0, size)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use iced_x86::OpCodeTableKind;

    use super::*;

    /// Those of the cores that this crate is for, against the table of what iced knows of each.
    #[test]
    fn properties_are_those_of_the_table_of_codes() {
        let known = |code: &Code| {
            let op_code = code.op_code();
            op_code.is_instruction() && op_code.mode64() && code.encoding() != EncodingKind::MVEX
        };
        let mut codes = 0;
        for code in Code::values().filter(known) {
            codes += 1;
            let op_code = code.op_code();
            let first = if op_code.op_code_len() == 2 { op_code.op_code() >> 8 } else { op_code.op_code() };
            let x87 = code.encoding() == EncodingKind::Legacy
                && op_code.table() == OpCodeTableKind::Normal
                && (0xd8..=0xdf).contains(&first);
            assert_eq!(is_x87_code(code), x87, "{code:?}");
            let more = op_code.is_privileged()
                || op_code.is_save_restore()
                || op_code.is_stack_instruction()
                || op_code.is_input_output();
            assert_eq!(needs_more_than_registers(code), more, "{code:?}");
        }
        assert!(codes > 3000, "{codes}");
    }
}
