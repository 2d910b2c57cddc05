//! Multiplication and division.

use iced_x86::{Instruction, Mnemonic};

use crate::exit::Step;
use crate::flags::{Flags, sign_extend};
use crate::form::{Form, IMM, MEM, REG, by_size, operands};
use crate::machine::Machine;
use crate::op::{Handler, Op};
use crate::operand::{RAX, RDX};
use crate::outcome::StopReason;

pub(crate) fn select(instruction: &Instruction, op: &mut Op) -> Option<Handler> {
    let mnemonic = instruction.mnemonic();
    if !matches!(mnemonic, Mnemonic::Imul | Mnemonic::Mul | Mnemonic::Div | Mnemonic::Idiv) {
        return None;
    }
    let form = operands(instruction, op)?;
    match (mnemonic, instruction.op_count()) {
        (Mnemonic::Imul, 2) => product(form, REG),
        (Mnemonic::Imul, 3) => product(form, IMM),
        (Mnemonic::Imul, _) => wide_product::<true>(form),
        (Mnemonic::Mul, _) => wide_product::<false>(form),
        (Mnemonic::Div, _) => {
            by_size!(form.size, N => if form.dst == REG { divide::<N, REG> } else { divide::<N, MEM> })
        }
        _ => by_size!(form.size, N => if form.dst == REG { divide_signed::<N, REG> } else { divide_signed::<N, MEM> }),
    }
}

fn product(form: Form, by: u8) -> Option<Handler> {
    by_size!(form.size, N => match (form.src, by) {
        (REG, REG) => run_product::<N, REG, REG>,
        (REG, _) => run_product::<N, REG, IMM>,
        (_, REG) => run_product::<N, MEM, REG>,
        _ => run_product::<N, MEM, IMM>,
    })
}

fn run_product<const N: usize, const SRC: u8, const BY: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let a = if SRC == MEM {
        let address = m.address(&op.address);
        m.load::<N>(address)?
    } else {
        m.get::<N>(op.src)
    };
    let b = if BY == IMM { op.imm } else { m.get::<N>(op.dst) };
    let (a, b) = (sign_extend::<N>(a) as i64, sign_extend::<N>(b) as i64);
    let (result, overflow) = a.overflowing_mul(b);
    let overflow = overflow || sign_extend::<N>(result as u64) as i64 != result;
    m.set::<N>(op.dst, result as u64);
    m.flags.set_carry_overflow(overflow, overflow);
    Ok(())
}

fn wide_product<const SIGNED: bool>(form: Form) -> Option<Handler> {
    by_size!(form.size, N => if form.dst == REG {
        run_wide_product::<SIGNED, N, REG>
    } else {
        run_wide_product::<SIGNED, N, MEM>
    })
}

fn operand<const N: usize, const DST: u8>(m: &mut Machine<'_>, op: &Op) -> Result<u64, crate::exit::Exit> {
    if DST == MEM {
        let address = m.address(&op.address);
        m.load::<N>(address)
    } else {
        Ok(m.get::<N>(op.dst))
    }
}

fn run_wide_product<const SIGNED: bool, const N: usize, const DST: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let b = operand::<N, DST>(m, op)?;
    let a = m.get::<N>(RAX);
    let (low, overflow, high) = if SIGNED {
        let wide = i128::from(sign_extend::<N>(a) as i64) * i128::from(sign_extend::<N>(b) as i64);
        (wide as u64, wide != i128::from(sign_extend::<N>(wide as u64) as i64), (wide >> (8 * N)) as u64)
    } else {
        let wide = u128::from(a) * u128::from(b);
        (wide as u64, wide >> (8 * N) != 0, (wide >> (8 * N)) as u64)
    };
    if N == 1 {
        m.set::<2>(RAX, low);
    } else {
        m.set::<N>(RAX, low);
        m.set::<N>(RDX, high);
    }
    m.flags.set_carry_overflow(overflow, overflow);
    Ok(())
}

/// High and low half of the dividend.
fn dividend<const N: usize>(m: &Machine<'_>) -> (u64, u64) {
    if N == 1 { ((m.reg(RAX) >> 8) & 0xff, m.reg(RAX) & 0xff) } else { (m.get::<N>(RDX), m.get::<N>(RAX)) }
}

fn set_quotient<const N: usize>(m: &mut Machine<'_>, quotient: u64, remainder: u64) {
    if N == 1 {
        m.set::<2>(RAX, (quotient & 0xff) | (remainder << 8));
    } else {
        m.set::<N>(RAX, quotient);
        m.set::<N>(RDX, remainder);
    }
    // All flags are undefined; so far CPUs keep some and set or clear the others.
    m.flags = Flags::from_rflags((m.flags.status() & m.quirks.division_keeps) | m.quirks.division_sets);
}

fn divide<const N: usize, const DST: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let divisor = operand::<N, DST>(m, op)?;
    let (high, low) = dividend::<N>(m);
    // The quotient fits exactly if the high half is below the divisor.
    if high >= divisor {
        return m.stopped(StopReason::Exception);
    }
    let (quotient, remainder) = if N < 8 {
        let whole = (high << (8 * (N & 7))) | low;
        (whole / divisor, whole % divisor)
    } else if high == 0 {
        (low / divisor, low % divisor)
    } else {
        let whole = (u128::from(high) << 64) | u128::from(low);
        ((whole / u128::from(divisor)) as u64, (whole % u128::from(divisor)) as u64)
    };
    set_quotient::<N>(m, quotient, remainder);
    Ok(())
}

fn divide_signed<const N: usize, const DST: u8>(m: &mut Machine<'_>, op: &Op) -> Step {
    let divisor = sign_extend::<N>(operand::<N, DST>(m, op)?) as i64;
    let (high, low) = dividend::<N>(m);
    let fits_64 = N < 8 || high == ((low as i64) >> 63) as u64;
    let divided = if fits_64 {
        let whole = if N < 8 { sign_extend_to(16 * N as u32, (high << (8 * (N & 7))) | low) } else { low as i64 };
        whole.checked_div(divisor).zip(whole.checked_rem(divisor))
    } else {
        let whole = ((u128::from(high) << 64) | u128::from(low)) as i128;
        let divisor = i128::from(divisor);
        whole.checked_div(divisor).and_then(|q| i64::try_from(q).ok()).zip(whole.checked_rem(divisor).map(|r| r as i64))
    };
    match divided {
        Some((quotient, remainder)) if sign_extend::<N>(quotient as u64) as i64 == quotient => {
            set_quotient::<N>(m, quotient as u64, remainder as u64);
            Ok(())
        }
        _ => m.stopped(StopReason::Exception),
    }
}

fn sign_extend_to(bits: u32, value: u64) -> i64 {
    let unused = 64 - bits.min(64);
    ((value << unused) as i64) >> unused
}
