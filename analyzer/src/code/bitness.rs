//! Whether code is of 32 or of 64 bits.

use iced_x86::{Decoder, DecoderOptions};

use crate::address::Svma;

/// How many bits addresses have in the mode that the CPU executes code in. The same bytes are other instructions in each: `40` is
/// `inc %eax` in one and the prefix of another instruction in the other.
///
/// The machine that an ELF file is for says it, and not the class of the file: programs for x32 have files of class 32 and code of
/// 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bitness {
    /// i386 (`EM_386`): compatibility mode, on a kernel of 64 bits.
    Bits32,
    /// x86-64 (`EM_X86_64`), x32 included: 64-bit mode.
    Bits64,
}

impl Bitness {
    /// Decodes bytes of which the first is at `start`.
    pub fn decoder(self, bytes: &[u8], start: Svma) -> Decoder<'_> {
        Decoder::with_ip(self.bits(), bytes, start.0, DecoderOptions::NONE)
    }

    /// 32 or 64.
    pub fn bits(self) -> u32 {
        match self {
            Bitness::Bits32 => 32,
            Bitness::Bits64 => 64,
        }
    }
}
