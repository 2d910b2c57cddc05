//! Flags that the manuals leave undefined.

use iced_x86::{Decoder, DecoderOptions, Mnemonic, RflagsBits};

use crate::flags::{AF, CF, OF, PF, SF, ZF};

/// The status flags, as bits of `rflags`, that the instruction at the start of `bytes` leaves undefined by the manuals. CPUs differ in
/// them; the interpreter gives what the CPU at hand gives where that is cheap, and nothing should depend on it.
pub fn undefined_flags(bytes: &[u8]) -> u64 {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let mut undefined = instruction.rflags_undefined();
    if matches!(instruction.mnemonic(), Mnemonic::Rcl | Mnemonic::Rcr) {
        undefined |= RflagsBits::OF; // for every count but 1, also those that rotate by nothing
    }
    [
        (RflagsBits::CF, CF),
        (RflagsBits::PF, PF),
        (RflagsBits::AF, AF),
        (RflagsBits::ZF, ZF),
        (RflagsBits::SF, SF),
        (RflagsBits::OF, OF),
    ]
    .iter()
    .filter(|(theirs, _)| undefined & theirs != 0)
    .map(|(_, ours)| ours)
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_defines_carry_and_overflow_only() {
        assert_eq!(undefined_flags(&[0x48, 0xf7, 0xe1]), PF | AF | ZF | SF); // mul rcx
        assert_eq!(undefined_flags(&[0x48, 0x01, 0xc8]), 0); // add rax, rcx
    }
}
