//! Floating-point operations and bytes of memory: what arithmetic intensity is made of.

use std::collections::HashMap;
use std::sync::Arc;

use ::instructions::is_masked;
use iced_x86::Instruction;

use crate::mix::kind::Kind;
use crate::mix::{Dimension, Taxonomies, Taxonomy};
use crate::uncertainty::sampled::ratio;
use crate::uncertainty::{Design, Interval, Sampled};

/// Operations of instructions, each as often as it was executed. What a mask leaves out is counted, too: which elements
/// that is was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Operations {
    /// Floating-point operations, as the taxonomy `flops` counts them: one for each element, two for multiply and add in one.
    pub flops: f64,
    /// Bytes read from memory, those of the stack, too.
    pub bytes_read: f64,
    /// Bytes written to memory, those of the stack, too.
    pub bytes_written: f64,
    /// Of `flops`, those of instructions with a mask: at most so many were done.
    pub masked_flops: f64,
    /// Of the bytes, those of instructions with a mask: at most so many were moved.
    pub masked_bytes: f64,
    /// Executed instructions whose bytes registers decide, such as `rep movsb`: their bytes are not counted.
    pub unknown_bytes: f64,
    /// The executed instructions that all of this is of: those whose code was read.
    pub instructions: f64,
}

impl Operations {
    /// Bytes read and written.
    pub fn bytes(&self) -> f64 {
        self.bytes_read + self.bytes_written
    }

    /// Arithmetic intensity: floating-point operations for each byte that is read or written; `None` without any bytes.
    pub fn intensity(&self) -> Option<f64> {
        (self.bytes() > 0.0).then(|| self.flops / self.bytes())
    }

    /// Adds others so many times.
    pub(super) fn add(&mut self, other: &Operations, times: f64) {
        self.flops += times * other.flops;
        self.bytes_read += times * other.bytes_read;
        self.bytes_written += times * other.bytes_written;
        self.masked_flops += times * other.masked_flops;
        self.masked_bytes += times * other.masked_bytes;
        self.unknown_bytes += times * other.unknown_bytes;
        self.instructions += times * other.instructions;
    }
}

/// Operations that were executed, with their replicates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutedOperations {
    /// How many.
    pub sum: Operations,
    /// What the floating-point operations would be in the replicates.
    flops: Sampled,
    /// What the bytes would be in the replicates.
    bytes: Sampled,
}

impl ExecutedOperations {
    /// Adds those of one execution, so many times.
    pub(super) fn execute(&mut self, of_one: &Operations, (count, sampled): (f64, &Sampled)) {
        self.sum.add(of_one, count);
        for (sum, times) in [(&mut self.flops, of_one.flops), (&mut self.bytes, of_one.bytes())] {
            if times > 0.0 {
                sum.add(sampled, times);
            }
        }
    }

    /// Adds others.
    pub(crate) fn add(&mut self, other: &ExecutedOperations) {
        self.sum.add(&other.sum, 1.0);
        self.flops.add(&other.flops, 1.0);
        self.bytes.add(&other.bytes, 1.0);
    }

    /// How uncertain the number of floating-point operations is.
    pub fn flops_interval(&self, design: &Design) -> Interval {
        design.interval(self.sum.flops, &self.flops)
    }

    /// How uncertain the number of bytes is.
    pub fn bytes_interval(&self, design: &Design) -> Interval {
        design.interval(self.sum.bytes(), &self.bytes)
    }

    /// How uncertain the [arithmetic intensity](Operations::intensity) is.
    pub fn intensity_interval(&self, design: &Design) -> Interval {
        let replicates = self.flops.replicates.zip(&self.bytes.replicates, ratio);
        let seen = self.flops.seen.or(self.bytes.seen);
        design.interval(self.sum.intensity().unwrap_or_default(), &Sampled { replicates, seen })
    }
}

/// What single instructions do.
pub(super) struct OperationsOf {
    /// Its groups are numbers.
    flops: Option<Arc<Taxonomy>>,
    known: HashMap<(Kind, bool), Operations>,
}

impl OperationsOf {
    pub fn new() -> Self {
        OperationsOf { flops: Taxonomies::default().get("flops").cloned(), known: HashMap::new() }
    }

    /// The operations of an instruction that is executed once.
    pub fn one(&mut self, instruction: &Instruction) -> Operations {
        let (kind, is_masked) = (Kind::of(instruction, true), is_masked(instruction));
        *self.known.entry((kind, is_masked)).or_insert_with(|| {
            let flops = self.flops.as_ref().and_then(|flops| flops.group_of(&kind).parse().ok()).unwrap_or(0.0);
            let bytes = |key: Dimension| kind.value(key).and_then(|bytes| bytes.parse::<f64>().ok());
            let [read, written] = [Dimension::BytesRead, Dimension::BytesWritten].map(bytes);
            let mut of_one = Operations {
                flops,
                bytes_read: read.unwrap_or(0.0),
                bytes_written: written.unwrap_or(0.0),
                unknown_bytes: if read.is_none() || written.is_none() { 1.0 } else { 0.0 },
                instructions: 1.0,
                ..Operations::default()
            };
            if is_masked {
                (of_one.masked_flops, of_one.masked_bytes) = (flops, of_one.bytes());
            }
            of_one
        })
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn one(code: &[u8]) -> Operations {
        OperationsOf::new().one(&Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode())
    }

    #[test]
    fn instructions_have_operations_and_bytes() {
        let numbers = |code: &[u8]| {
            let of = one(code);
            [of.flops, of.bytes_read, of.bytes_written, of.masked_flops, of.masked_bytes, of.unknown_bytes]
        };
        // vfmadd231pd zmm0,zmm1,[rax]; the same with a mask {k1}
        assert_eq!(numbers(&[0x62, 0xf2, 0xf5, 0x48, 0xb8, 0x00]), [16.0, 64.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(numbers(&[0x62, 0xf2, 0xf5, 0x49, 0xb8, 0x00]), [16.0, 64.0, 0.0, 16.0, 64.0, 0.0]);
        // addsd xmm0,[rdi]; movaps [rdi],xmm0
        assert_eq!(numbers(&[0xf2, 0x0f, 0x58, 0x07]), [1.0, 8.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(numbers(&[0x0f, 0x29, 0x07]), [0.0, 0.0, 16.0, 0.0, 0.0, 0.0]);
        // vmaskmovps ymm0,ymm1,[rdi]; push rax; rep movsb
        assert_eq!(numbers(&[0xc4, 0xe2, 0x75, 0x2c, 0x07]), [0.0, 32.0, 0.0, 0.0, 32.0, 0.0]);
        assert_eq!(numbers(&[0x50]), [0.0, 0.0, 8.0, 0.0, 0.0, 0.0]);
        assert_eq!(numbers(&[0xf3, 0xa4]), [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    }

    /// Counted by hand: complex numbers take 6 to multiply and 8 to multiply and add, pairs of bfloat16 take 4.
    #[test]
    fn complex_numbers_and_bfloat16_have_operations() {
        let flops = |code: [u8; 6]| one(&code).flops;
        // [width of zmm, ymm, xmm] in the fourth byte
        let by_width = |code: [u8; 6]| {
            [0x48, 0x28, 0x08].map(|width| {
                let mut code = code;
                code[3] = width;
                flops(code)
            })
        };
        // vdpbf16ps zmm1,zmm2,zmm3
        assert_eq!(by_width([0x62, 0xf2, 0x6e, 0, 0x52, 0xcb]), [16.0 * 4.0, 8.0 * 4.0, 4.0 * 4.0]);
        // vfmulcph, vfcmulcph
        for prefix in [0x6e, 0x6f] {
            assert_eq!(by_width([0x62, 0xf6, prefix, 0, 0xd6, 0xcb]), [16.0 * 6.0, 8.0 * 6.0, 4.0 * 6.0]);
        }
        // vfmaddcph, vfcmaddcph
        for prefix in [0x6e, 0x6f] {
            assert_eq!(by_width([0x62, 0xf6, prefix, 0, 0x56, 0xcb]), [16.0 * 8.0, 8.0 * 8.0, 4.0 * 8.0]);
        }
        // vfmulcsh, vfcmulcsh; vfmaddcsh, vfcmaddcsh
        assert_eq!([0x6e, 0x6f].map(|prefix| flops([0x62, 0xf6, prefix, 0x08, 0xd7, 0xcb])), [6.0, 6.0]);
        assert_eq!([0x6e, 0x6f].map(|prefix| flops([0x62, 0xf6, prefix, 0x08, 0x57, 0xcb])), [8.0, 8.0]);
        // v4fmaddps zmm1,zmm4,[rax]; v4fmaddss xmm1,xmm4,[rax]
        assert_eq!(flops([0x62, 0xf2, 0x5f, 0x48, 0x9a, 0x08]), 4.0 * 16.0 * 2.0);
        assert_eq!(flops([0x62, 0xf2, 0x5f, 0x08, 0x9b, 0x08]), 4.0 * 2.0);
    }

    #[test]
    fn intensity_is_operations_for_each_byte() {
        let mut sum = Operations::default();
        assert_eq!(sum.intensity(), None);
        sum.add(&one(&[0xf2, 0x0f, 0x58, 0x07]), 3.0);
        sum.add(&one(&[0x0f, 0x29, 0x07]), 1.0);
        assert_eq!(sum.intensity(), Some(3.0 / 40.0));
        assert_eq!(sum.instructions, 4.0);
    }
}
