//! What of an instruction decides the values of its keys.

use std::borrow::Cow;

use ::instructions::{Attributes, Bytes, Form};
use iced_x86::Instruction;

use crate::mix::Dimension;
use crate::mix::values::{LOCK, LONG, NONE, NORMAL, REP, STACK, UNKNOWN};

/// The attributes and the form of an instruction. All that are alike have the same values of all keys that are attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    attributes: Attributes,
    form: Option<Form>,
}

impl Kind {
    /// The kind of a decoded instruction. Its form takes longer than all the rest, and is left out where nothing asks for it.
    pub fn of(instruction: &Instruction, with_form: bool) -> Self {
        Kind { attributes: Attributes::of(instruction), form: with_form.then(|| Form::of(instruction)) }
    }

    /// The value of a key: `None` if the key is no attribute, or is of the form and that was left out.
    pub fn value(&self, key: Dimension) -> Option<Cow<'static, str>> {
        let Kind { attributes, form } = self;
        Some(match key {
            Dimension::Mnemonic => attributes.mnemonic.into(),
            Dimension::Category => attributes.category.as_str().into(),
            Dimension::Isa => attributes.isa.into(),
            Dimension::Encoding => attributes.encoding.as_str().into(),
            Dimension::Packing => attributes.packing.as_str().into(),
            Dimension::Element => attributes.element.as_str().into(),
            Dimension::Width => attributes.width.as_str().into(),
            Dimension::Memory => attributes.memory.as_str().into(),
            Dimension::Branch => attributes.branch.as_str().into(),
            Dimension::Stack => if attributes.stack { STACK } else { NONE }.into(),
            Dimension::Lock => if attributes.lock { LOCK } else { NONE }.into(),
            Dimension::Rep => if attributes.rep { REP } else { NONE }.into(),
            Dimension::Latency => if attributes.long_latency { LONG } else { NORMAL }.into(),
            _ => return form_value(form.as_ref()?, key),
        })
    }
}

impl Dimension {
    /// Whether the [`Form`] of an instruction tells it.
    pub(super) fn is_of_form(self) -> bool {
        matches!(
            self,
            Dimension::Operands
                | Dimension::OperandSize
                | Dimension::VectorWidth
                | Dimension::AddressMode
                | Dimension::BytesRead
                | Dimension::BytesWritten
                | Dimension::ImmediateSize
                | Dimension::Length
        )
    }
}

fn form_value(form: &Form, key: Dimension) -> Option<Cow<'static, str>> {
    let bits = |bits: Option<u32>| bits.map_or(NONE.into(), |bits| bits.to_string().into());
    let bytes = |bytes: Bytes| match bytes {
        Bytes::Known(bytes) => bytes.to_string().into(),
        Bytes::Unknown => UNKNOWN.into(),
    };
    Some(match key {
        Dimension::Operands => form.operands.to_string().into(),
        Dimension::OperandSize => bits(form.operand_size),
        Dimension::VectorWidth => bits(form.vector_width),
        Dimension::ImmediateSize => bits(form.immediate_size),
        Dimension::AddressMode => form.address_mode.as_str().into(),
        Dimension::BytesRead => bytes(form.bytes_read),
        Dimension::BytesWritten => bytes(form.bytes_written),
        Dimension::Length => form.length.to_string().into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::Values;
    use iced_x86::{Decoder, DecoderOptions};

    fn kind(code: &[u8]) -> Kind {
        Kind::of(&Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode(), true)
    }

    #[test]
    fn instructions_have_the_values_of_their_form() {
        let check = |code: &[u8], expected: &[(Dimension, &str)]| {
            for (key, value) in expected {
                assert_eq!(kind(code).value(*key).as_deref(), Some(*value), "{key} of {code:x?}");
            }
        };
        // add qword ptr [rax+rcx*4+8],1
        check(
            &[0x48, 0x83, 0x44, 0x88, 8, 1],
            &[
                (Dimension::Operands, "mem-imm"),
                (Dimension::OperandSize, "64"),
                (Dimension::VectorWidth, "none"),
                (Dimension::ImmediateSize, "8"),
                (Dimension::AddressMode, "base+index+disp"),
                (Dimension::BytesRead, "8"),
                (Dimension::BytesWritten, "8"),
                (Dimension::Length, "6"),
                (Dimension::Stack, "none"),
            ],
        );
        // vaddps ymm0,ymm0,[rdi]
        check(
            &[0xc5, 0xfc, 0x58, 0x07],
            &[(Dimension::VectorWidth, "256"), (Dimension::BytesRead, "32"), (Dimension::BytesWritten, "0")],
        );
        // push rax; rep movsb
        check(&[0x50], &[(Dimension::Stack, "stack"), (Dimension::BytesWritten, "8"), (Dimension::Operands, "reg")]);
        check(&[0xf3, 0xa4], &[(Dimension::BytesRead, "unknown"), (Dimension::Rep, "rep")]);
    }

    #[test]
    fn every_attribute_has_a_value_that_its_key_can_have() {
        // ret, push, lock xadd, div, vaddps, vgatherdps, rep movsb, fld tbyte, mov with a 64-bit immediate
        let codes: [&[u8]; 9] = [
            &[0xc3],
            &[0x50],
            &[0xf0, 0x0f, 0xc1, 0x07],
            &[0xf7, 0xf1],
            &[0xc5, 0xfc, 0x58, 0x07],
            &[0xc4, 0xe2, 0x6d, 0x92, 0x04, 0x88],
            &[0xf3, 0xa4],
            &[0xdb, 0x2f],
            &[0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8],
        ];
        for code in codes {
            for &key in Dimension::ALL {
                let value = kind(code).value(key);
                assert_eq!(value.is_some(), key.is_attribute(), "{key} of {code:x?}");
                let Some(value) = value else { continue };
                let is_possible = match key.values() {
                    Values::Words(words) => words.contains(&&*value),
                    Values::Numbers(words) => value.parse::<u64>().is_ok() || words.contains(&&*value),
                    Values::Text => true,
                };
                assert!(is_possible, "{key} {value}");
                let without_form = Kind { form: None, ..kind(code) };
                assert_eq!(without_form.value(key).is_none(), key.is_of_form(), "{key}");
            }
        }
    }
}
