//! The six status flags, kept as a result and its carries, worked out only when asked for.
//!
//! ```text
//! result   sign-extended result of the last operation: ZF = it is zero, SF = its sign, PF = parity of its low byte
//! aux      63 CF | 62 CF^OF | 15..8 correction of PF | 3 AF | 0 correction of SF
//! ```
//! The corrections are zero after arithmetic and let any combination of flags be represented (`popf`, `ptest`).

/// Carry.
pub const CF: u64 = 1 << 0;
/// Parity of the low byte.
pub const PF: u64 = 1 << 2;
/// Carry out of bit 3.
pub const AF: u64 = 1 << 4;
/// Zero.
pub const ZF: u64 = 1 << 6;
/// Sign.
pub const SF: u64 = 1 << 7;
/// Direction of string instructions.
pub const DF: u64 = 1 << 10;
/// Signed overflow.
pub const OF: u64 = 1 << 11;
/// All status flags.
pub const STATUS: u64 = CF | PF | AF | ZF | SF | OF;

const AUX_CF: u64 = 1 << 63;
const AUX_PO: u64 = 1 << 62;
const AUX_AF: u64 = 1 << 3;
const AUX_SF: u64 = 1;

/// What `lahf` has of them.
const LAHF: u64 = STATUS & !OF;

/// The status flags that `lahf` and `seto al` have left in `ax`.
#[inline(always)]
pub(crate) fn status_of(saved: u16) -> u64 {
    u64::from(saved >> 8) & LAHF | if saved & 1 != 0 { OF } else { 0 }
}

/// Lazily evaluated status flags.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags {
    result: u64,
    aux: u64,
}

/// Sign-extends the low `N` bytes.
#[inline(always)]
pub(crate) const fn sign_extend<const N: usize>(value: u64) -> u64 {
    match N {
        1 => value as i8 as i64 as u64,
        2 => value as i16 as i64 as u64,
        4 => value as i32 as i64 as u64,
        _ => value,
    }
}

impl Flags {
    pub(crate) fn from_rflags(rflags: u64) -> Self {
        let mut flags = Self { result: u64::from(rflags & ZF == 0), aux: 0 };
        let even = rflags & PF != 0;
        // A result of 0 has even parity, one of 1 has odd parity.
        if even != (flags.result == 0) {
            flags.aux |= 1 << 8;
        }
        flags.aux |= u64::from(rflags & SF != 0);
        flags.aux |= if rflags & AF != 0 { AUX_AF } else { 0 };
        flags.set_carry_overflow(rflags & CF != 0, rflags & OF != 0);
        flags
    }

    /// From what `lahf` and `seto al` leave in `ax`.
    #[inline(always)]
    pub(crate) fn from_saved(saved: u16) -> Self {
        Self::from_rflags(status_of(saved))
    }

    /// What `lahf` and `seto al` would leave in `ax`.
    #[inline(always)]
    pub(crate) fn saved(self) -> u16 {
        let status = self.status();
        ((status & LAHF | 2) << 8) as u16 | u16::from(status & OF != 0)
    }

    pub(crate) fn status(self) -> u64 {
        let bit = |on: bool, flag: u64| if on { flag } else { 0 };
        bit(self.cf(), CF)
            | bit(self.pf(), PF)
            | bit(self.aux & AUX_AF != 0, AF)
            | bit(self.zf(), ZF)
            | bit(self.sf(), SF)
            | bit(self.of(), OF)
    }

    /// After `a + b (+ carry) = result`, in `N` bytes; upper bits of the arguments are ignored.
    #[inline(always)]
    pub(crate) fn add<const N: usize>(&mut self, a: u64, b: u64, result: u64) {
        self.set_carries::<N>((a & b) | ((a | b) & !result), result);
    }

    /// After `a - b (- borrow) = result`.
    #[inline(always)]
    pub(crate) fn sub<const N: usize>(&mut self, a: u64, b: u64, result: u64) {
        self.set_carries::<N>((!a & b) | (!(a ^ b) & result), result);
    }

    #[inline(always)]
    fn set_carries<const N: usize>(&mut self, carries: u64, result: u64) {
        self.result = sign_extend::<N>(result);
        self.aux = ((carries << (64 - 8 * N)) & (AUX_CF | AUX_PO)) | (carries & AUX_AF);
    }

    /// After `and`, `or`, `xor`, `test`: CF and OF are cleared; AF is undefined, and cleared by every CPU known.
    #[inline(always)]
    pub(crate) fn logic<const N: usize>(&mut self, result: u64) {
        self.result = sign_extend::<N>(result);
        self.aux = 0;
    }

    /// SF, ZF and PF of a result, with CF and OF given, and AF, which is undefined, as the CPU has it.
    #[inline(always)]
    pub(crate) fn shifted<const N: usize>(&mut self, result: u64, carry: bool, overflow: bool, af: bool) {
        self.result = sign_extend::<N>(result);
        self.aux = (u64::from(af) << 3) | (u64::from(carry) << 63) | (u64::from(carry != overflow) << 62);
    }

    #[inline(always)]
    pub(crate) fn set_carry_overflow(&mut self, carry: bool, overflow: bool) {
        self.aux = (self.aux & !(AUX_CF | AUX_PO)) | (u64::from(carry) << 63) | (u64::from(carry != overflow) << 62);
    }

    #[inline(always)]
    pub(crate) fn set_cf(&mut self, carry: bool) {
        self.set_carry_overflow(carry, self.of());
    }

    #[inline(always)]
    pub(crate) fn cf(self) -> bool {
        self.aux & AUX_CF != 0
    }

    #[inline(always)]
    pub(crate) fn of(self) -> bool {
        (self.aux ^ (self.aux << 1)) & AUX_CF != 0
    }

    #[inline(always)]
    pub(crate) fn zf(self) -> bool {
        self.result == 0
    }

    #[inline(always)]
    pub(crate) fn sf(self) -> bool {
        ((self.result >> 63) ^ (self.aux & AUX_SF)) != 0
    }

    #[inline(always)]
    pub(crate) fn pf(self) -> bool {
        ((self.result ^ (self.aux >> 8)) as u8).count_ones() & 1 == 0
    }

    /// Condition code as encoded in the low four bits of `jcc`.
    #[inline(always)]
    pub(crate) fn condition<const CC: u8>(self) -> bool {
        let base = match CC >> 1 {
            0 => self.of(),
            1 => self.cf(),
            2 => self.zf(),
            3 => self.cf() || self.zf(),
            4 => self.sf(),
            5 => self.pf(),
            6 => self.sf() != self.of(),
            _ => self.zf() || self.sf() != self.of(),
        };
        base != (CC & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_survives() {
        for bits in 0..64u64 {
            let rflags = [CF, PF, AF, ZF, SF, OF].iter().enumerate().map(|(i, f)| ((bits >> i) & 1) * f).sum();
            let flags = Flags::from_rflags(rflags);
            assert_eq!(flags.status(), rflags);
            assert_eq!((Flags::from_saved(flags.saved()).status(), status_of(flags.saved())), (rflags, rflags));
        }
    }

    #[test]
    fn arithmetic_at_the_edges() {
        let mut flags = Flags::default();
        flags.sub::<1>(0x80, 1, 0x7f);
        assert_eq!(flags.status(), OF | AF);
        flags.add::<4>(0xffff_ffff, 1, 0x1_0000_0000);
        assert_eq!(flags.status(), CF | ZF | AF | PF);
        flags.add::<8>(i64::MAX as u64, 1, 1 << 63);
        assert_eq!(flags.status(), OF | SF | AF | PF);
    }
}
